//! The files that a configuration names.

use std::path::PathBuf;

use crate::config::{self, Config};

/// A file that the configuration names.
pub(super) struct Named {
    /// The key that names it.
    pub(super) key: Box<str>,
    /// Its path.
    pub(super) path: PathBuf,
    /// What it is.
    pub(super) kind: Kind,
}

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A secret.
    Secret,
    /// Certificates or keys of other servers. They often belong to the machine, like
    /// `/etc/ssl/certs`.
    Authority,
    /// Another file of this program.
    Own,
}

/// Returns the files that the configuration names.
pub(super) fn files(config: &Config) -> Vec<Named> {
    let mut named = Vec::new();
    let mut add = |kind: Kind, key: String, path: &Option<PathBuf>| {
        let key = key.into_boxed_str();
        named.extend(path.clone().map(|path| Named { key, path, kind }));
    };
    for (at, credential) in config.git.credentials.iter().enumerate() {
        let of = |name: &str| format!("git.credentials[{at}].{name}");
        add(Kind::Secret, of("https"), &credential.https);
        add(Kind::Secret, of("ssh_key"), &credential.ssh_key);
        let known_hosts = &credential.ssh_known_hosts;
        add(Kind::Authority, of("ssh_known_hosts"), known_hosts);
    }
    let key_file = &config.generate.model.key_file;
    add(Kind::Secret, "generate.model.key_file".into(), key_file);
    let of_queue = ("queue.postgres", &config.queue.postgres);
    let shared = config.store.shared().map(|shared| &shared.config);
    let of_store = shared.map(|shared| ("store.postgres", &shared.database));
    for (section, database) in [Some(of_queue), of_store].into_iter().flatten() {
        let of = |name: &str| format!("{section}.{name}");
        add(Kind::Secret, of("password_file"), &database.password_file);
        add(Kind::Authority, of("ca_file"), &database.ca_file);
    }
    if let Some(shared) = shared {
        let secret = &shared.objects.secret_file;
        add(Kind::Secret, "store.objects.secret_file".into(), secret);
    }
    add(Kind::Secret, "acme.key_file".into(), &config.acme.key_file);
    for (at, authority) in config.acme.authorities.iter().enumerate() {
        let of = |name: &str| format!("acme.authorities[{at}].{name}");
        add(Kind::Secret, of("eab_key_file"), &authority.eab_key_file);
        add(Kind::Authority, of("ca_file"), &authority.ca_file);
    }
    let token = &config.listen.operator_token;
    add(Kind::Secret, "listen.operator_token".into(), token);
    add(Kind::Secret, "edges.key".into(), &config.edges.key);
    let certificate = &config.edges.certificate;
    add(Kind::Own, "edges.certificate".into(), certificate);
    if let config::Store::Follow { follow, .. } = &config.store {
        let of = |name: &str| format!("store.follow.{name}");
        let token = Some(follow.token_file.clone());
        add(Kind::Secret, of("token_file"), &token);
        add(Kind::Secret, of("key_file"), &follow.key_file);
        add(Kind::Authority, of("ca_file"), &follow.ca_file);
    }
    named
}

/// Returns the secret files that the configuration names.
pub(super) fn secrets(config: &Config) -> impl Iterator<Item = PathBuf> {
    let secrets = files(config).into_iter();
    let secrets = secrets.filter(|file| file.kind == Kind::Secret);
    secrets.map(|file| file.path)
}
