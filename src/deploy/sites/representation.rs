//! A site record as JSON: what clients read and write.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::digest::Digest;
use crate::response::{ETag, Encoding};
use crate::site::{
    Check, HostHeader, KeptIn, Origin, Scheme, Server, Site, Upstream, UpstreamHttp, Visibility,
};
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
            numbers,
            hsts,
            kept_in,
            not_ordered: _,
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
        set("numbers", (*numbers).into());
        if let Some(hsts) = hsts {
            let value = json!({
                "seconds": hsts.seconds,
                "subdomains": hsts.subdomains,
                "preload": hsts.preload,
            });
            set("hsts", value);
        }
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
    let Origin::Upstream(upstream) = origin else {
        return "embedded".into();
    };
    let Upstream {
        scheme,
        host,
        port,
        http,
        host_header,
        weight,
        others,
        requests_max,
        copies,
        check,
    } = upstream;
    let http = match http {
        UpstreamHttp::One => "1.1",
        UpstreamHttp::OneOrTwo => "auto",
        UpstreamHttp::Two => "2",
    };
    let host_header = match host_header {
        HostHeader::Preserve => "preserve",
        HostHeader::Upstream => "upstream",
    };
    let others: Vec<Value> = others.iter().map(server_of).collect();
    json!({
        "url": url(*scheme, host, *port),
        "http": http,
        "host": host_header,
        "weight": weight,
        "others": others,
        "requests_max": requests_max,
        "copies": copies,
        "check": check.as_deref().map(check_of),
    })
}

fn check_of(check: &Check) -> Value {
    let Check {
        path,
        interval,
        timeout,
        status,
        healthy_threshold,
        unhealthy_threshold,
    } = check;
    json!({
        "path": path,
        "interval_seconds": interval.as_secs(),
        "timeout_seconds": timeout.as_secs(),
        "status": status,
        "healthy_threshold": healthy_threshold,
        "unhealthy_threshold": unhealthy_threshold,
    })
}

fn server_of(server: &Server) -> Value {
    let Server {
        scheme,
        host,
        port,
        weight,
        is_backup,
    } = server;
    json!({ "url": url(*scheme, host, *port), "weight": weight, "backup": is_backup })
}

/// Returns the address of a server. RFC 3986 §3.2.2: an IPv6 address is in brackets.
fn url(scheme: Scheme, host: &str, port: u16) -> String {
    let scheme = scheme.as_str();
    match host.contains(':') {
        true => format!("{scheme}://[{host}]:{port}"),
        false => format!("{scheme}://{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::{PrivateHosts, ProjectId, Service};
    use crate::store::sites::read_record;

    #[test]
    fn a_site_is_written_as_the_record_that_makes_it() {
        let record = json!({
            "owner": "org_1", "subdomain": "acme", "domains": ["docs.acme.com", "docs.acme.dev"],
            "base_path": "/docs", "visibility": "private", "lenient": true, "allow_empty": true,
            "repository": { "url": "https://git.example/a.git", "branch": "b", "directory": "c" },
            "origin": {
                "url": "https://origin.acme.com:8443", "http": "2", "host": "upstream", "weight": 3,
                "others": [{ "url": "http://[2606:4700::1111]", "weight": 2, "backup": true }],
                "requests_max": 50, "copies": false,
                "check": { "path": "/up?a", "interval_seconds": 7, "timeout_seconds": 2, "status": 204,
                    "healthy_threshold": 4, "unhealthy_threshold": 5 },
            },
            "mcp": true, "hsts": { "seconds": 31_536_000, "subdomains": true, "preload": true },
        });
        let read = |record: &Value| {
            let stored = SiteRecord {
                project: ProjectId::parse("acme").unwrap(),
                changed_at: 0,
                record: record.as_object().unwrap().clone(),
                ownership: std::collections::BTreeMap::new(),
            };
            let hosts = PrivateHosts::default();
            read_record(&stored, &Service::default(), &hosts).unwrap()
        };
        let server = json!({ "subdomain": "acme", "origin": { "url": "https://origin.acme.com" } });
        for record in [record, json!({ "subdomain": "acme" }), server] {
            let site = read(&record);
            let mut written = Representation::of_site(&site).members;
            for key in ["project", "kept_in"] {
                assert!(written.shift_remove(key).is_some());
            }
            assert_eq!(read(&Value::Object(written)), site);
        }
    }
}
