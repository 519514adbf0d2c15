//! PostgreSQL servers with TLS, and standbys.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;

use crate::certificates::Pair;
use crate::cluster::{Cluster, PASSWORD, USER, as_user, program};

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

    /// Starts a server that listens on this address too, for clients of the networks of tests (RFC
    /// 2544).
    #[track_caller]
    pub fn listening(address: &str) -> Self {
        let mut cluster = Self::empty(&[&format!("listen_addresses={address}")]);
        cluster.init();
        let rules = cluster.data().join("pg_hba.conf");
        let mut rules = File::options().append(true).open(rules).unwrap();
        writeln!(rules, "host all all 198.18.0.0/15 scram-sha-256").unwrap();
        cluster.restart();
        cluster
    }

    /// Starts a standby with a copy of this server, which it follows.
    #[track_caller]
    pub fn standby(&self) -> Self {
        let mut standby = Self::empty(&[]);
        standby.settings.clone_from(&self.settings);
        standby.own();
        let copied = as_user(&standby.directory)
            .arg(program("pg_basebackup"))
            .args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf"])
            .args(["-U", USER, "-h"])
            .arg(&self.directory)
            .arg("-D")
            .arg(standby.data())
            .env("PGPASSWORD", PASSWORD)
            .output()
            .unwrap();
        assert!(copied.status.success(), "{copied:?}");
        standby.restart();
        standby
    }

    /// Makes a standby a primary, with a timeline of its own.
    #[track_caller]
    pub fn promote(&self) {
        assert_eq!(self.psql("postgres", "SELECT pg_promote()"), Ok("t".into()));
    }

    /// Returns the address of a database that is on one of two servers.
    pub fn url_with(&self, other: &Self, database: &str) -> String {
        let (one, two) = (self.directory.display(), other.directory.display());
        format!("host={one},{two} user={USER} dbname={database}")
    }
}
