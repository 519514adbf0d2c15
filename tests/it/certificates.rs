//! Certificates for one test: an authority that only the test trusts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rcgen::{BasicConstraints, Certificate, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

/// Issues certificates that a client of [`Authority::client`] trusts.
#[derive(Debug)]
pub struct Authority {
    certificate: Certificate,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
#[derive(Debug)]
pub struct Pair {
    pub certificate: Certificate,
    pub key: KeyPair,
}

impl Authority {
    pub fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // If issuer and subject have the same name, OpenSSL takes a certificate for self-signed.
        params
            .distinguished_name
            .push(DnType::CommonName, "authority of one test");
        let key = KeyPair::generate().unwrap();
        let certificate = params.self_signed(&key).unwrap();
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    pub fn issue(&self, names: &[&str]) -> Pair {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(names)
            .unwrap()
            .signed_by(&key, &self.issuer)
            .unwrap();
        Pair { certificate, key }
    }

    /// Writes the authority's own certificate, for `ca_file` settings.
    pub fn write(&self, path: &Path) {
        fs::write(path, self.certificate.pem()).unwrap();
    }

    /// Makes the client side of TLS that trusts this authority alone.
    pub fn client(&self, alpn: &[&str]) -> Arc<ClientConfig> {
        self.client_of(alpn, rustls::DEFAULT_VERSIONS)
    }

    pub fn client_of(
        &self,
        alpn: &[&str],
        versions: &[&'static SupportedProtocolVersion],
    ) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.der().clone()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    /// Makes the server side of TLS for an origin.
    pub fn server(&self, names: &[&str], alpn: &[&str]) -> Arc<ServerConfig> {
        let pair = self.issue(names);
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.key.serialize_der()));
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![pair.der()], key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }
}

impl Pair {
    pub fn der(&self) -> CertificateDer<'static> {
        self.certificate.der().clone()
    }

    /// Writes the pair in the layout of the gateway's certificate directory.
    ///
    /// Each file is written under a temporary name and then renamed.
    pub fn write(&self, root: &Path, name: &str) {
        let directory = root.join(name);
        fs::create_dir_all(&directory).unwrap();
        for (file, text) in [
            ("privkey.pem", self.key.serialize_pem()),
            ("fullchain.pem", self.certificate.pem()),
        ] {
            let partial = directory.join("partial");
            fs::write(&partial, text).unwrap();
            // A key that others may read is rejected.
            fs::set_permissions(&partial, fs::Permissions::from_mode(0o600)).unwrap();
            fs::rename(partial, directory.join(file)).unwrap();
        }
    }
}
