//! Tests of the URLs that may be fetched. Tests of fetching use a real server, in `tests/it`.

use super::*;

fn config(hosts: &[&str]) -> Config {
    Config {
        hosts: hosts.iter().map(|host| host.parse().unwrap()).collect(),
        ..Config::default()
    }
}

fn checked_url(config: &Config, url: &str) -> Result<Uri, FetchError> {
    let fetching = Fetching {
        config,
        agent: agent(config),
        deadline: Instant::now(),
    };
    fetching.allowed(url)
}

#[test]
fn only_https_urls_of_allowed_hosts_are_fetched() {
    let config = config(&["api.acme.com", "*.acme.dev"]);
    for url in [
        "https://api.acme.com/openapi.json",
        "https://API.acme.com:8443/openapi.json?v=2",
        "https://docs.acme.dev",
    ] {
        checked_url(&config, url).unwrap();
    }
    for (url, reason) in [
        ("http://api.acme.com/openapi.json", "only https is fetched"),
        (
            "file:///etc/passwd",
            "it is not a URL like https://host/path",
        ),
        ("https://acme.dev/", "acme.dev is not an allowed host"),
        (
            "https://api.acme.com.evil.test/",
            "api.acme.com.evil.test is not an allowed host",
        ),
        (
            "https://api.acme.com@evil.test/",
            "it is not a URL like https://host/path",
        ),
        (
            "https://127.0.0.1/",
            "it is not a URL like https://host/path",
        ),
        ("https://[::1]/", "it is not a URL like https://host/path"),
    ] {
        assert_eq!(
            checked_url(&config, url).unwrap_err().to_string(),
            reason,
            "{url}"
        );
    }
}

#[test]
fn any_host_means_any_name_but_no_address() {
    let config = config(&["*"]);
    checked_url(&config, "https://acme.com/a.yaml").unwrap();
    checked_url(&config, "https://169.254.169.254/latest").unwrap_err();
}

#[test]
fn a_redirect_is_read_where_it_was_found() {
    let base: Uri = "https://a.test:8443/v1/api.json?x".parse().unwrap();
    for (reference, url) in [
        ("https://b.test/x", "https://b.test/x"),
        ("//b.test/x", "https://b.test/x"),
        ("/x", "https://a.test:8443/x"),
        ("x.json", "https://a.test:8443/v1/x.json"),
        ("?v=2", "https://a.test:8443/v1/api.json?v=2"),
        ("http://b.test/", "http://b.test/"),
    ] {
        assert_eq!(absolute(&base, reference), url, "{reference}");
    }
}

#[test]
fn patterns_are_written_as_they_are_read() {
    for text in ["*", "*.acme.com", "api.acme.com"] {
        let pattern: Pattern = text.parse().unwrap();
        let json = serde_json::to_string(&pattern).unwrap();
        assert_eq!(json, format!("{text:?}"));
        assert_eq!(serde_json::from_str::<Pattern>(&json).unwrap(), pattern);
    }
    for text in ["", "*.", "a*.com", "https://a.com", "10.0.0.1"] {
        text.parse::<Pattern>().unwrap_err();
    }
}

#[test]
fn network_failures_are_transient_and_mistakes_are_not() {
    let status = |status| FetchError::Status {
        host: "a.test".into(),
        status,
    };
    assert!(status(503).is_transient() && status(429).is_transient());
    assert!(!status(404).is_transient() && !FetchError::Redirects.is_transient());
}
