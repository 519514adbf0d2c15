//! PostgreSQL servers with TLS.

use std::os::unix::fs::PermissionsExt as _;

use crate::certificates::Pair;
use crate::cluster::Cluster;

impl Cluster {
    /// Starts a server that listens on this port of 127.0.0.1, with a certificate.
    #[track_caller]
    pub fn with_tls(port: u16, pair: &Pair) -> Self {
        let mut cluster = Self::empty(&["listen_addresses=127.0.0.1", "ssl=on"]);
        cluster.port = port;
        for (setting, name, text) in [
            ("ssl_cert_file", "server.crt", pair.certificate.pem()),
            ("ssl_key_file", "server.key", pair.key.serialize_pem()),
        ] {
            let path = cluster.directory.join(name);
            std::fs::write(&path, text).unwrap();
            let only_owner = std::fs::Permissions::from_mode(0o600);
            std::fs::set_permissions(&path, only_owner).unwrap();
            cluster
                .settings
                .push(format!("{setting}={}", path.display()));
        }
        cluster.init();
        cluster.restart();
        cluster
    }
}
