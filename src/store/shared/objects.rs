//! The object store: S3 and its kin, GCS, Azure, or a directory.
//!
//! An object never changes and its name is used once: the digest of its bytes, and random digits.
//! So a node never removes an object that another node has just written. Which
//! objects exist is known from the database; the object store itself is listed only to find
//! leftovers of killed processes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Name;
use object_store::prefix::PrefixStore;
use object_store::{
    BackoffConfig, ClientConfigKey, Error, ObjectStore, ObjectStoreExt as _, PutMode, PutOptions,
    PutPayload, RetryConfig,
};

use super::blocking;
use super::http::Connector;
use crate::digest::Digest;
use crate::error::chain;
use crate::parallel;
use crate::store::FileError;

/// How often a request is tried at most, and for how long.
const RETRIES_MAX: usize = 4;
const RETRY_TIME: Duration = Duration::from_secs(30);
/// How many requests are sent at once for one release.
const PARALLEL: usize = 16;
/// The object that names the store that the place belongs to.
const MARKER: &str = "waypost-store";
/// The directory of all other objects.
const CONTENT: &str = "content";
/// How many threads the requests use.
const THREADS: usize = 2;

/// Where the objects are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX`, `az://CONTAINER/PREFIX` or
    /// `file:///DIRECTORY`.
    pub url: Box<str>,
    /// The address of a server with the protocol of S3, or of Azure; `None`: that of the provider.
    pub endpoint: Option<Box<str>>,
    /// The region of S3.
    pub region: Option<Box<str>>,
    /// The id of the access key of S3, or the storage account of Azure; `None` for S3: the
    /// credentials of the machine.
    pub account: Option<Box<str>>,
    /// The file with the secret: the secret access key of S3, the key of the account of Azure,
    /// the service account of GCS in JSON.
    pub secret_file: Option<PathBuf>,
    /// Whether `endpoint` may begin with `http://`.
    pub allow_http: bool,
}

/// The object store.
#[derive(Debug)]
pub(super) struct Objects {
    config: Config,
    /// Made when it is first used, so that a gateway starts while a directory is not mounted.
    store: OnceLock<Arc<dyn ObjectStore>>,
    /// The place, for messages.
    place: PathBuf,
    runtime: Option<tokio::runtime::Runtime>,
}

/// An object that is to be written.
pub(super) struct Upload {
    pub(super) digest: Digest,
    pub(super) bytes: Bytes,
}

/// An object that was written.
pub(super) struct Uploaded {
    pub(super) digest: Digest,
    pub(super) name: String,
    pub(super) length: u64,
}

// === impl Config ===

impl Config {
    /// Returns why a text names no place.
    ///
    /// # Errors
    ///
    /// The allowed forms, if it has none of them.
    pub fn check(url: &str) -> Result<(), &'static str> {
        let expected = "s3://BUCKET/PREFIX, gs://BUCKET/PREFIX, az://CONTAINER/PREFIX or \
                        file:///DIRECTORY";
        let (scheme, rest) = url.split_once("://").ok_or(expected)?;
        let is_place = match scheme {
            "s3" | "gs" | "az" => !rest.is_empty() && !rest.starts_with('/'),
            "file" => rest.starts_with('/'),
            _ => false,
        };
        match is_place && !rest.contains(['?', '#', '@']) {
            true => Ok(()),
            false => Err(expected),
        }
    }

    fn open(&self) -> Result<Arc<dyn ObjectStore>, Error> {
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        if scheme == "file" {
            return Ok(Arc::new(self.directory(Path::new(rest))?));
        }
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let retry = RetryConfig {
            backoff: BackoffConfig::default(),
            max_retries: RETRIES_MAX,
            retry_timeout: RETRY_TIME,
        };
        let secret = || -> Result<Option<String>, Error> {
            let Some(file) = &self.secret_file else {
                return Ok(None);
            };
            let read = std::fs::read_to_string(file).map_err(|error| Error::Generic {
                store: "secret",
                source: format!("read the secret in {}: {error}", file.display()).into(),
            })?;
            Ok(Some(read.trim().to_owned()))
        };
        let store: Arc<dyn ObjectStore> = match scheme {
            "gs" => {
                // Its default lets the objects too be fetched without TLS.
                let allow_http = GoogleConfigKey::Client(ClientConfigKey::AllowHttp);
                let mut builder = GoogleCloudStorageBuilder::from_env()
                    .with_bucket_name(bucket)
                    .with_config(allow_http, self.allow_http.to_string())
                    .with_retry(retry)
                    .with_http_connector(Connector);
                if let Some(file) = &self.secret_file {
                    builder = builder.with_service_account_path(file.to_string_lossy());
                }
                if let Some(endpoint) = &self.endpoint {
                    builder = builder.with_base_url(endpoint);
                }
                Arc::new(builder.build()?)
            }
            "az" => {
                let mut builder = MicrosoftAzureBuilder::from_env()
                    .with_container_name(bucket)
                    .with_allow_http(self.allow_http)
                    .with_retry(retry)
                    .with_http_connector(Connector);
                if let Some(account) = &self.account {
                    builder = builder.with_account(&**account);
                }
                if let Some(secret) = secret()? {
                    builder = builder.with_access_key(secret);
                }
                if let Some(endpoint) = &self.endpoint {
                    builder = builder.with_endpoint(endpoint.to_string());
                }
                Arc::new(builder.build()?)
            }
            _ => {
                let mut builder = AmazonS3Builder::from_env()
                    .with_bucket_name(bucket)
                    .with_allow_http(self.allow_http)
                    .with_retry(retry)
                    .with_http_connector(Connector);
                if let Some(account) = &self.account {
                    builder = builder.with_access_key_id(&**account);
                }
                if let Some(secret) = secret()? {
                    builder = builder.with_secret_access_key(secret);
                }
                if let Some(region) = &self.region {
                    builder = builder.with_region(&**region);
                }
                if let Some(endpoint) = &self.endpoint {
                    builder = builder.with_endpoint(&**endpoint);
                }
                Arc::new(builder.build()?)
            }
        };
        Ok(match prefix {
            "" => store,
            prefix => Arc::new(PrefixStore::new(store, prefix)),
        })
    }

    /// A directory, which must exist: a missing mount must not look like an empty directory.
    fn directory(&self, path: &Path) -> Result<LocalFileSystem, Error> {
        Ok(LocalFileSystem::new_with_prefix(path)?.with_fsync(true))
    }
}

// === impl Objects ===

impl Objects {
    pub(super) fn new(config: &Config) -> Result<Self, FileError> {
        let place = PathBuf::from(&*config.url);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("objects")
            .enable_all()
            .build()
            .map_err(FileError::on("start threads for", &place))?;
        Ok(Self {
            config: config.clone(),
            store: OnceLock::new(),
            place,
            runtime: Some(runtime),
        })
    }

    fn store(&self) -> Result<&Arc<dyn ObjectStore>, FileError> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let on = FileError::on("use the objects in", &self.place);
        let store = self
            .config
            .open()
            .map_err(|error| on(io::Error::other(chain(&error))))?;
        Ok(self.store.get_or_init(|| store))
    }

    fn wait<T: Send>(
        &self,
        act: &'static str,
        name: &str,
        request: impl Future<Output = Result<T, Error>> + Send,
    ) -> Result<Option<T>, FileError> {
        let path = self.place.join(name);
        let Some(runtime) = &self.runtime else {
            return Err(FileError::on(act, &path)(io::ErrorKind::BrokenPipe.into()));
        };
        match blocking(|| runtime.block_on(request)) {
            Ok(done) => Ok(Some(done)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(FileError::on(act, &path)(refused(error))),
        }
    }

    /// Writes the object that names the store, unless there is one. Returns which store the place
    /// belongs to.
    pub(super) fn mark(&self, store: &str) -> Result<String, FileError> {
        let options = PutOptions {
            mode: PutMode::Create,
            ..PutOptions::default()
        };
        let name = Name::from(MARKER);
        let payload = PutPayload::from(store.to_owned().into_bytes());
        let store = self.store()?;
        let put = async {
            match store.put_opts(&name, payload, options).await {
                Ok(_) | Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(()),
                Err(error) => Err(error),
            }
        };
        self.wait("write", MARKER, put)?;
        Ok(self.marker()?.unwrap_or_default())
    }

    /// Returns which store the place belongs to; `None` if to none.
    pub(super) fn marker(&self) -> Result<Option<String>, FileError> {
        let bytes = self.get(MARKER)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Reads an object; `None` if there is none. Its bytes are not checked.
    pub(super) fn get(&self, name: &str) -> Result<Option<Bytes>, FileError> {
        let at = Name::from(name);
        let store = self.store()?;
        self.wait("read", name, async { store.get(&at).await?.bytes().await })
    }

    /// Writes objects, several at once, under new names.
    pub(super) fn put(&self, uploads: &[Upload]) -> Result<Vec<Uploaded>, FileError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|error| {
            FileError::on("name an object in", &self.place)(io::Error::other(error))
        })?;
        let life = hex::encode(random);
        let name_of = |digest: &Digest| {
            let digest = digest.to_string();
            format!("{CONTENT}/{}/{}.{life}", &digest[..2], &digest[2..])
        };
        let store = self.store()?;
        parallel::try_map(uploads, PARALLEL, |upload| {
            let name = name_of(&upload.digest);
            let at = Name::from(&*name);
            let payload = PutPayload::from(upload.bytes.clone());
            self.wait("write", &name, async { store.put(&at, payload).await })?;
            Ok(Uploaded {
                digest: upload.digest,
                name,
                length: upload.bytes.len() as u64,
            })
        })
    }

    /// Removes objects. Those that are missing are removed already.
    pub(super) fn remove(&self, names: &[String]) -> Result<(), FileError> {
        let store = self.store()?;
        parallel::try_map(names, PARALLEL, |name| {
            let at = Name::from(&**name);
            self.wait("remove", name, async { store.delete(&at).await })
        })?;
        Ok(())
    }

    /// Lists the names of objects that were written before a time.
    pub(super) fn list(&self, before: SystemTime) -> Result<Vec<String>, FileError> {
        let store = self.store()?;
        let listed = async {
            let found = store
                .list_with_delimiter(Some(&Name::from(CONTENT)))
                .await?;
            let mut names = Vec::new();
            for shard in found.common_prefixes {
                let found = store.list_with_delimiter(Some(&shard)).await?;
                let old = found
                    .objects
                    .into_iter()
                    .filter(|object| SystemTime::from(object.last_modified) < before);
                names.extend(old.map(|object| object.location.to_string()));
            }
            Ok(names)
        };
        Ok(self.wait("list", CONTENT, listed)?.unwrap_or_default())
    }

    pub(super) fn place(&self) -> &Path {
        &self.place
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // A runtime must not be waited for where others are driven.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Gives an error of the object store a kind that callers know.
fn refused(error: Error) -> io::Error {
    let kind = match &error {
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            let why = format!("the object store refuses access: {}", chain(&error));
            return io::Error::new(io::ErrorKind::PermissionDenied, why);
        }
        _ => io::ErrorKind::Other,
    };
    // Each error of the object store repeats its causes.
    io::Error::new(kind, chain(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_scheme_and_a_bucket_or_a_directory() {
        for url in [
            "s3://b",
            "s3://b/p/q",
            "gs://b/p",
            "az://c",
            "file:///srv/objects",
        ] {
            assert_eq!(Config::check(url), Ok(()), "{url}");
        }
        for url in [
            "",
            "s3://",
            "s3:///p",
            "file://srv",
            "https://b",
            "s3://k:s@b",
            "s3://b?x",
        ] {
            assert!(Config::check(url).is_err(), "{url}");
        }
    }
}
