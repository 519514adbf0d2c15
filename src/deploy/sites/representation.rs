//! A site record as JSON: what clients read and write.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::digest::Digest;
use crate::response::{ETag, Encoding};
use crate::site::{HostHeader, KeptIn, Origin, Site, Upstream, UpstreamHttp, Visibility};
use crate::store::SiteRecord;

/// A record as it is sent to a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Representation {
    /// The members, in the order in which they are sent.
    pub members: Map<String, Value>,
}

// === impl Representation ===

impl Representation {
    /// Returns the representation of a record in the store: as it was written.
    #[must_use]
    pub fn of_record(record: &SiteRecord) -> Self {
        let mut members = Map::new();
        members.insert("project".to_owned(), record.project.as_str().into());
        members.insert("kept_in".to_owned(), "api".into());
        members.extend(record.record.clone());
        Self { members }
    }

    /// Returns the representation of a site, with every key.
    #[must_use]
    pub fn of_site(site: &Site) -> Self {
        let Site {
            project,
            owner,
            subdomain,
            domains,
            base_path,
            visibility,
            repository,
            lenient,
            allow_empty,
            origin,
            mcp,
            kept_in,
        } = site;
        let mut members = Map::new();
        let mut set = |key: &str, value: Value| members.insert(key.to_owned(), value);
        set("project", project.as_str().into());
        let _none = match kept_in {
            KeptIn::Api => set("kept_in", "api".into()),
            KeptIn::File(name) => {
                set("kept_in", "file".into());
                set("file", (**name).into())
            }
        };
        set("owner", (**owner).into());
        set("subdomain", (**subdomain).into());
        let domains = domains.iter().map(|host| host.as_str().into());
        set("domains", Value::Array(domains.collect()));
        set("base_path", base_path.as_str().into());
        let visibility = match visibility {
            Visibility::Public => "public",
            Visibility::Private => "private",
        };
        set("visibility", visibility.into());
        if let Some(repository) = repository {
            let value = json!({
                "url": repository.url,
                "branch": repository.branch,
                "directory": repository.directory,
            });
            set("repository", value);
        }
        set("lenient", (*lenient).into());
        set("allow_empty", (*allow_empty).into());
        set("origin", origin_of(origin));
        set("mcp", (*mcp).into());
        Self { members }
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> Bytes {
        let mut text = serde_json::to_vec_pretty(&self.members).expect("JSON can be written");
        text.push(b'\n');
        text.into()
    }

    /// Returns the entity tag of the text.
    #[must_use]
    pub fn etag(&self) -> ETag {
        ETag::new(&Digest::of(&self.text()), Encoding::Identity)
    }
}

fn origin_of(origin: &Origin) -> Value {
    match origin {
        Origin::Embedded => "embedded".into(),
        Origin::Upstream(upstream) => {
            let Upstream {
                scheme,
                host: _,
                port: _,
                http,
                host_header,
            } = upstream;
            let http = match http {
                UpstreamHttp::One => "1.1",
                UpstreamHttp::OneOrTwo => "auto",
                UpstreamHttp::Two => "2",
            };
            let host = match host_header {
                HostHeader::Preserve => "preserve",
                HostHeader::Upstream => "upstream",
            };
            json!({
                "url": format!("{}://{}", scheme.as_str(), upstream.authority()),
                "http": http,
                "host": host,
            })
        }
    }
}
