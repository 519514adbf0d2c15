//! Tests: the shipped file is the default and complete; all mistakes are reported at once.

use super::*;
use crate::syntax::strict::Report;

const SHIPPED: &str = include_str!("../../conf/waypost.yaml");

fn diagnostics_of(text: &str) -> Vec<String> {
    let diagnostics = Config::parse("waypost.yaml", text).unwrap_err();
    diagnostics.iter().map(ToString::to_string).collect()
}

#[test]
fn the_shipped_file_is_the_default() {
    assert_eq!(
        Config::parse("waypost.yaml", SHIPPED),
        Ok(Config::default())
    );
}

/// Lists the known keys of a section: the message about an unknown key contains them.
fn known_keys(section: &[&str]) -> Vec<String> {
    let mut text = String::new();
    for (depth, key) in section.iter().enumerate() {
        text.push_str(&format!("{}{key}:\n", " ".repeat(depth)));
    }
    text.push_str(&format!("{}zzzzzzzzzz: 1\n", " ".repeat(section.len())));
    let diagnostics = Config::parse("waypost.yaml", &text).unwrap_err();
    let help = diagnostics[0].help.clone().unwrap();
    let known = help.strip_prefix("known keys: ").unwrap();
    known.split(", ").map(str::to_owned).collect()
}

#[test]
fn the_shipped_file_lists_every_key() {
    let sections: [&[&str]; 24] = [
        &[],
        &["service"],
        &["listen"],
        &["store"],
        &["store", "local"],
        &["store", "follow"],
        &["edges"],
        &["queue"],
        &["queue", "sqlite"],
        &["queue", "postgres"],
        &["git"],
        &["specifications"],
        &["worker"],
        &["generate"],
        &["generate", "model"],
        &["tls"],
        &["acme"],
        &["connections"],
        &["clients"],
        &["memory"],
        &["upstream"],
        &["log"],
        &["admin"],
        &["verification"],
    ];
    let documents = Report::new("conf", "", SHIPPED).documents().unwrap();
    for section in sections {
        let value = section
            .iter()
            .fold(&documents[0], |value, key| value.get(key).unwrap());
        for key in known_keys(section) {
            assert!(value.get(&key).is_some(), "{section:?} {key}");
        }
    }
}

#[test]
fn an_empty_file_is_the_default() {
    for text in ["", "# nothing\n", "---\n", "connections:\nlisten:\n"] {
        assert_eq!(
            Config::parse("waypost.yaml", text),
            Ok(Config::default()),
            "{text:?}"
        );
    }
}

#[test]
fn every_mistake_is_found_with_its_place() {
    let text = "service:\n  nmae: x\n  domain: a b\nlisten:\n  http: [\"localhost:80\", 80]\n\
                connections:\n  head_seconds: 0\n  fast_path: yes please\n  trusted_peers: [10.0.0.0/40]\n\
                access_log: { path: x }\nlog: { filter: loud }\nserver: { thread: 1, user: 2 }\n\
                store: { nats: {} }\n";
    let expected = [
        "waypost.yaml:2:3: error[conf]: `service.nmae` is not a known key (did you mean `name`?)",
        "waypost.yaml:3:11: error[conf]: `service.domain` is \"a b\", expected other text: host",
        "waypost.yaml:5:10: error[conf]: `listen.http` is \"localhost:80\", expected other text",
        "waypost.yaml:5:26: error[conf]: `listen.http` is 80, expected text, in quotes",
        "waypost.yaml:7:17: error[conf]: `connections.head_seconds` is 0, expected a whole number from 1",
        "waypost.yaml:8:14: error[conf]: `connections.fast_path` is \"yes please\", expected true or false",
        "waypost.yaml:9:19: error[conf]: `connections.trusted_peers` is \"10.0.0.0/40\", expected other",
        "waypost.yaml:10:13: error[conf]: `access_log` is a mapping, expected `off`, `stdout` or",
        "waypost.yaml:11:16: error[conf]: `log.filter` is \"loud\", expected a level",
        "waypost.yaml:12:9: error[conf]: `server.thread` is not a setting of pingora (did you",
        "waypost.yaml:12:9: error[conf]: `server.user` cannot be set: the process does not change",
        "waypost.yaml:13:10: error[conf]: `store.nats` is not a known key (known keys: local, follow",
    ];
    let found = diagnostics_of(text);
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
}

#[test]
fn unset_keys_have_their_defaults() {
    let text = "service: { name: docs }\nlisten: { https: [\"[::]:443\"], operator: false }\n\
                connections: { idle_seconds: 5, trusted_peers: [10.0.0.0/8, \"::1\"] }\n\
                tls: { directory: certs, default: docs.example.com }\n\
                access_log: { file: var/access.log }\nlog: { format: json, filter: \"warn,a=off\" }\n\
                worker: { operator: \"127.0.0.1:9081\" }\nserver: { threads: 4 }\nstore: { local: { keep_releases: 0 } }\nsites: s.yaml\n";
    let config = Config::parse("waypost.yaml", text).unwrap();
    assert_eq!(&*config.service.name, "docs");
    assert_eq!(config.service.domain, Service::default().domain);
    assert_eq!(config.listen.http, Listen::default().http);
    assert_eq!(config.listen.https.len(), 1);
    assert_eq!(config.listen.operator, None);
    assert_eq!(config.worker.operator, Some(([127, 0, 0, 1], 9081).into()));
    assert_eq!(config.connections.limits.idle, Duration::from_secs(5));
    assert_eq!(config.connections.limits.head, Limits::default().head);
    assert_eq!(config.connections.trusted_peers.len(), 2);
    assert_eq!(config.tls.directory, Some("certs".into()));
    let file = access::Target::File("var/access.log".into());
    assert_eq!(config.access_log, file);
    assert_eq!(config.log.format, logging::Format::Json);
    assert_eq!(config.server["threads"], 4);
    assert_eq!(config.store.local().retention.releases, 0);
    assert_eq!(config.sites.path, PathBuf::from("s.yaml"));
}

#[test]
fn a_database_is_named_without_its_password() {
    let of = |text: &str| format!("queue: {{ postgres: {{ {text} }} }}");
    for (text, expected) in [
        (
            "url: \"postgres://waypost:secret@db/queue\"",
            "password_file",
        ),
        (
            "url: \"postgres://db:port\"",
            "postgres://USER@HOST/DATABASE",
        ),
        ("url: \"dbname=queue\"", "a URL with a host"),
        (
            "url: \"postgres://w@/queue?host=/a,/b\"",
            "one directory of a socket in each `host=`",
        ),
        ("tls: false, ca_file: ca.pem", "has no effect"),
        ("connections_max: 1", "a whole number from 2"),
    ] {
        let diagnostics = diagnostics_of(&of(text));
        assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
        assert!(diagnostics[0].contains(expected), "{diagnostics:?}");
    }
    let text = of("url: \"postgres://waypost@db1,db2/queue\", password_file: p, tls: false");
    let postgres = Config::parse("waypost.yaml", &text).unwrap().queue.postgres;
    assert_eq!(
        postgres.url.as_deref(),
        Some("postgres://waypost@db1,db2/queue")
    );
    assert!(postgres.require_durable && !postgres.tls);
}

#[test]
fn a_site_may_be_framed_only_by_a_host_that_a_policy_can_name() {
    let text = "service: { frame_hosts: [play.acme.test, \"*.acme.dev\"] }";
    let frames = Config::parse("waypost.yaml", text).unwrap().service.frames;
    assert!(frames.allow("https://play.acme.test/x") && frames.allow("https://a.acme.dev"));
    assert!(!frames.allow("https://www.youtube.com/embed/x"));

    let text = "service:\n  frame_hosts:\n    - https://acme.test\n    - \"*\"\n    - acme.test\n";
    let found = diagnostics_of(text);
    assert_eq!(found.len(), 2, "{found:?}");
    let start = "waypost.yaml:3:7: error[conf]: `service.frame_hosts` is \"https://acme.test\"";
    assert!(found[0].starts_with(start), "{found:?}");
    assert!(found[1].starts_with("waypost.yaml:4:7: "), "{found:?}");
}

#[test]
fn access_logging_is_switched_off_in_either_spelling() {
    for text in [
        "access_log: off",
        "access_log: \"off\"",
        "access_log: false",
    ] {
        let config = Config::parse("waypost.yaml", text).unwrap();
        assert_eq!(config.access_log, access::Target::Off, "{text}");
    }
}

#[test]
fn a_second_document_is_an_error() {
    let found = diagnostics_of("service:\n---\nservice:\n");
    assert_eq!(
        found,
        ["waypost.yaml:3:1: error[conf]: a configuration is one document"]
    );
}

#[test]
fn an_edge_is_a_node_that_follows_another_one() {
    let key = format!("ed25519:{}=", "A".repeat(43));
    let text = format!(
        "store: {{ follow: {{ url: \"https://node.internal:9443\", token_file: t, public_keys: [\"{key}\"], \
         cache: c, cache_bytes_max: 1048576 }} }}\n"
    );
    let config = Config::parse("waypost.yaml", &text).unwrap();
    let Store::Follow { follow, cache } = &config.store else {
        panic!("{:?}", config.store);
    };
    assert_eq!(
        (&*follow.url, follow.cache_bytes_max),
        ("https://node.internal:9443", 1 << 20)
    );
    assert_eq!(cache.path, PathBuf::from("c"));

    let plain = text.replace("https", "http");
    let cases = [
        (
            "store: { follow: { url: \"https://a\" } }",
            "`store.follow` needs `token_file`",
        ),
        (
            "store: { follow: { url: \"ftp://a\" } }",
            "`store.follow.url` is \"ftp://a\"",
        ),
        (
            &*plain,
            "`store.follow.url` begins with http://, which needs `allow_http: true`",
        ),
        (
            "store: { follow: { public_keys: [x] } }",
            "`store.follow.public_keys` is \"x\"",
        ),
        (
            "edges: { listen: \"127.0.0.1:0\" }",
            "`edges.listen` needs `edges.certificate` and",
        ),
        (
            "edges: { listen: \"127.0.0.1:0\", certificate: c }",
            "`edges.listen` needs `edges.cert",
        ),
        (
            "edges: { listen: \"0.0.0.0:9443\", allow_http: true }",
            "`edges.allow_http` is for addresses of a private network",
        ),
    ];
    for (text, expected) in cases {
        let found = diagnostics_of(text);
        assert!(
            found.iter().any(|line| line.contains(expected)),
            "{found:?}\n{expected}"
        );
    }
    let orders = format!(
        "{text}acme: {{ authorities: [{{ directory: \"https://a.test/dir\" }}], agree_to_terms: true, \
         key_file: k }}\n"
    );
    let found = diagnostics_of(&orders);
    assert!(
        found.iter().any(|line| line.contains("exclude each other")),
        "{found:?}"
    );
}
