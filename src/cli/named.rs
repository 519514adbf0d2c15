//! The files that a configuration names.

use std::path::PathBuf;

use crate::config::{self, Config};

/// Returns the secret files, each with the key that names it.
pub(super) fn secrets(config: &Config) -> Vec<(Box<str>, PathBuf)> {
    let mut named = Vec::new();
    let mut add = |key: String, path: &Option<PathBuf>| {
        named.extend(path.clone().map(|path| (key.into_boxed_str(), path)));
    };
    for (at, credential) in config.git.credentials.iter().enumerate() {
        add(format!("git.credentials[{at}].https"), &credential.https);
        add(
            format!("git.credentials[{at}].ssh_key"),
            &credential.ssh_key,
        );
    }
    let model = &config.generate.model;
    add("generate.model.key_file".to_owned(), &model.key_file);
    let password = &config.queue.postgres.password_file;
    add("queue.postgres.password_file".to_owned(), password);
    if let Some(shared) = config.store.shared() {
        let password = &shared.config.database.password_file;
        add("store.postgres.password_file".to_owned(), password);
        let secret = &shared.config.objects.secret_file;
        add("store.objects.secret_file".to_owned(), secret);
    }
    add("acme.key_file".to_owned(), &config.acme.key_file);
    for (at, authority) in config.acme.authorities.iter().enumerate() {
        add(
            format!("acme.authorities[{at}].eab_key_file"),
            &authority.eab_key_file,
        );
    }
    add(
        "listen.operator_token".to_owned(),
        &config.listen.operator_token,
    );
    add("edges.key".to_owned(), &config.edges.key);
    if let config::Store::Follow { follow, .. } = &config.store {
        let token = Some(follow.token_file.clone());
        add("store.follow.token_file".to_owned(), &token);
        add("store.follow.key_file".to_owned(), &follow.key_file);
    }
    named
}

/// Returns the files with the certificates and keys of other servers, which are no secrets, each
/// with the key that names it. They often belong to the machine, like `/etc/ssl/certs`.
pub(super) fn authorities(config: &Config) -> Vec<(Box<str>, PathBuf)> {
    let mut named = Vec::new();
    let mut add = |key: String, path: &Option<PathBuf>| {
        named.extend(path.clone().map(|path| (key.into_boxed_str(), path)));
    };
    for (at, credential) in config.git.credentials.iter().enumerate() {
        add(
            format!("git.credentials[{at}].ssh_known_hosts"),
            &credential.ssh_known_hosts,
        );
    }
    let ca_file = &config.queue.postgres.ca_file;
    add("queue.postgres.ca_file".to_owned(), ca_file);
    if let Some(shared) = config.store.shared() {
        let ca_file = &shared.config.database.ca_file;
        add("store.postgres.ca_file".to_owned(), ca_file);
    }
    for (at, authority) in config.acme.authorities.iter().enumerate() {
        add(
            format!("acme.authorities[{at}].ca_file"),
            &authority.ca_file,
        );
    }
    if let config::Store::Follow { follow, .. } = &config.store {
        add("store.follow.ca_file".to_owned(), &follow.ca_file);
    }
    named
}

/// Returns the other files that are no secrets, each with the key that names it.
pub(super) fn others(config: &Config) -> Vec<(Box<str>, PathBuf)> {
    let certificate = config.edges.certificate.clone();
    let named = certificate.map(|path| ("edges.certificate".into(), path));
    named.into_iter().collect()
}
