//! The settings of stores, of edges and of the listener for edges.

use std::path::PathBuf;

use super::deploying::read_postgres;
use super::read::{DAY_SECONDS, Section, audit_bytes, path, within};
use super::{Edges, SharedStore, Store};
use crate::database;
use crate::follow;
use crate::site::address;
use crate::store::shared::ObjectsConfig;
use crate::store::{Retention, local, shared};
use crate::syntax::Value;
use crate::syntax::strict::{Expected, Report, boolean, number, parsed, seconds, text};

pub(super) fn read_store(section: Section<'_, '_, '_>, store: &mut Store, report: &Report<'_>) {
    let mut local = local::Config::default();
    within(section, "local", |section| read_local(section, &mut local));
    let mut follow = follow::Config::default();
    let mut cache = cache();
    within(section, "follow", |section| {
        read_follow(section, &mut follow, &mut cache, report);
    });
    let mut database = database::Config::default();
    let mut shared_cache = PathBuf::from("var/cache");
    let mut cache_bytes_max = follow::Config::default().cache_bytes_max;
    within(section, "postgres", |section| {
        read_postgres(section, &mut database, "store.postgres", report);
        section.set("cache", &mut shared_cache, path);
        let bytes = number(1 << 20..=1 << 50);
        section.set("cache_bytes_max", &mut cache_bytes_max, bytes);
    });
    let mut objects = ObjectsConfig::default();
    within(section, "objects", |section| {
        read_objects(section, &mut objects, report);
    });
    let is_shared = database.url.is_some();
    if is_shared && !follow.url.is_empty() {
        let why = "`store.postgres.url` and `store.follow.url` exclude each other: an edge needs no database";
        report.error(section.value(), why);
    }
    if is_shared == objects.url.is_empty() {
        let why = "`store.postgres.url` and `store.objects.url` need each other: records are in the \
                   database, releases in the object store";
        report.error(section.value(), why);
    }
    *store = match follow.url.is_empty() {
        true if is_shared => Store::Shared(Box::new(SharedStore {
            cache: local::Config {
                path: shared_cache,
                // A worker builds on what it has built yesterday.
                retention: Retention {
                    releases: 1,
                    ..local.retention
                },
                ..local
            },
            config: shared::Config {
                database,
                objects,
                retention: local.retention,
                audit_bytes_max: local.audit_bytes_max,
            },
            cache_bytes_max,
        })),
        true => Store::Local(local),
        false => Store::Follow {
            follow: Box::new(follow),
            cache,
        },
    };
}

/// Returns the settings of a cache that has no others.
fn cache() -> local::Config {
    local::Config {
        path: "var/cache".into(),
        retention: Retention {
            releases: 1,
            unnamed_seconds: 3600,
        },
        owner_bytes_max: 0,
        ..local::Config::default()
    }
}

fn read_local(section: Section<'_, '_, '_>, local: &mut local::Config) {
    let local::Config {
        path: place,
        retention,
        free_bytes_min,
        owner_bytes_max,
        audit_bytes_max,
    } = local;
    let Retention {
        releases,
        unnamed_seconds,
    } = retention;
    section.set("path", place, path);
    section.set("keep_releases", releases, number(0..=10_000));
    let year = 365 * DAY_SECONDS;
    section.set("keep_unnamed_seconds", unnamed_seconds, number(60..=year));
    section.set("free_bytes_min", free_bytes_min, number(0..=1 << 50));
    section.set("owner_bytes_max", owner_bytes_max, number(0..=1 << 50));
    section.set("audit_bytes_max", audit_bytes_max, audit_bytes);
}

fn read_follow(
    section: Section<'_, '_, '_>,
    follow: &mut follow::Config,
    cache: &mut local::Config,
    report: &Report<'_>,
) {
    let follow::Config {
        url,
        token_file,
        public_keys,
        key_file,
        ca_file,
        allow_http,
        cache_bytes_max,
        object_bytes_max,
        snapshot_bytes_max,
    } = follow;
    section.set("url", url, address_of_source);
    section.set("token_file", token_file, path);
    if let Some(keys) = section.list("public_keys", parsed(str::parse)) {
        *public_keys = keys;
    }
    section.set("key_file", key_file, |value| path(value).map(Some));
    section.set("ca_file", ca_file, |value| path(value).map(Some));
    section.set("allow_http", allow_http, boolean);
    section.set("cache", &mut cache.path, path);
    section.set(
        "cache_bytes_max",
        cache_bytes_max,
        number(1 << 20..=1 << 50),
    );
    let object = number(1 << 10..=1 << 32);
    section.set("object_bytes_max", object_bytes_max, object);
    let snapshot = number(1 << 10..=1 << 36);
    section.set("snapshot_bytes_max", snapshot_bytes_max, snapshot);
    section.set(
        "keep_releases",
        &mut cache.retention.releases,
        number(0..=100),
    );
    section.set(
        "free_bytes_min",
        &mut cache.free_bytes_min,
        number(0..=1 << 50),
    );
    if url.is_empty() {
        return;
    }
    if *token_file == PathBuf::new() || public_keys.is_empty() {
        let why = "`store.follow` needs `token_file` and `public_keys`; `waypost edge add` and \
                   `waypost edge key` print them on the node that is followed";
        report.error(section.value(), why);
    }
    if url.starts_with("http://") && !*allow_http {
        let why = "`store.follow.url` begins with http://, which needs `allow_http: true`: the \
                   token is sent without encryption";
        report.error(section.value(), why);
    }
}

fn read_objects(section: Section<'_, '_, '_>, objects: &mut ObjectsConfig, report: &Report<'_>) {
    let ObjectsConfig {
        url,
        endpoint,
        region,
        account,
        secret_file,
        allow_http,
    } = objects;
    let or_none = |value: &Value| match value.is_null() {
        true => Ok(None),
        false => text(value).map(Some),
    };
    section.set("url", url, |value| {
        if value.is_null() {
            return Ok(Box::default());
        }
        let place = text(value)?;
        ObjectsConfig::check(&place).map_err(Expected::from)?;
        Ok(place)
    });
    section.set("endpoint", endpoint, or_none);
    section.set("region", region, or_none);
    section.set("account", account, or_none);
    section.set("secret_file", secret_file, |value| match value.is_null() {
        true => Ok(None),
        false => path(value).map(Some),
    });
    section.set("allow_http", allow_http, boolean);
    let is_plain = endpoint
        .as_ref()
        .is_some_and(|endpoint| endpoint.starts_with("http://"));
    if is_plain && !*allow_http {
        let why = "`store.objects.endpoint` begins with http://, which needs `allow_http: true`: \
                   releases are sent without encryption";
        report.error(section.value(), why);
    }
}

/// Reads the address of a source: a scheme and an authority.
fn address_of_source(value: &Value) -> Result<String, Expected> {
    let address = text(value)?;
    let uri = address.parse::<http::Uri>().ok();
    let is_address = uri.is_some_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https"))
            && uri.authority().is_some()
            && matches!(uri.path(), "" | "/")
            && uri.query().is_none()
    });
    match is_address {
        true => Ok(address.into()),
        false => Err("https:// and a host, without a path".into()),
    }
}

pub(super) fn read_edges(section: Section<'_, '_, '_>, edges: &mut Edges, report: &Report<'_>) {
    let Edges {
        listen,
        certificate,
        key,
        allow_http,
        challenge_wait,
        rings,
        hold,
        snapshot_bytes_max,
        object_bytes_max,
    } = edges;
    section.set("listen", listen, super::read::address_or_off);
    section.set("certificate", certificate, |value| path(value).map(Some));
    section.set("key", key, |value| path(value).map(Some));
    section.set("allow_http", allow_http, boolean);
    section.set("rings", rings, number(1..=10));
    section.set("hold_seconds", hold, seconds(1..=DAY_SECONDS));
    section.set("challenge_wait_seconds", challenge_wait, seconds(0..=120));
    let snapshot = number(1 << 10..=1 << 36);
    section.set("snapshot_bytes_max", snapshot_bytes_max, snapshot);
    let object = number(1 << 10..=1 << 32);
    section.set("object_bytes_max", object_bytes_max, object);
    let Some(listen) = listen else {
        return;
    };
    let has_tls = certificate.is_some() && key.is_some();
    if !has_tls && !*allow_http {
        let why = "`edges.listen` needs `edges.certificate` and `edges.key`, or `allow_http: true`";
        report.error(section.value(), why);
    }
    let is_open = listen.ip().is_unspecified() || address::is_public(listen.ip());
    if !has_tls && *allow_http && is_open {
        let why = "`edges.allow_http` is for addresses of a private network";
        report.error(section.value(), why);
    }
}
