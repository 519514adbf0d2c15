//! The pages of a site, over HTTP.
//!
//! Sources: `internals/decisions#old-styles-stay`; RFC 9110 §13.1.5 and §14.

use crate::edge::{Edge, Setup};
use crate::presets::{CARD, LEGACY, MANIFEST, SUBDOMAIN};

fn edge() -> Edge {
    Setup::new().site("acme", "origin: embedded").start()
}

/// Returns the path of the stylesheet that a page loads.
#[track_caller]
fn stylesheet(edge: &Edge) -> String {
    let page = edge.get(SUBDOMAIN, "/");
    let mut pieces = page.text().split("_waypost/site.").skip(1);
    let digest = pieces.find_map(|rest| rest.split(['"', ' ', '>']).next()?.strip_suffix(".css"));
    let digest = digest.expect("a page has a stylesheet");
    format!("/_waypost/site.{digest}.css")
}

#[test]
fn files_of_a_cached_page_stay_when_another_release_is_served() {
    let edge = edge();
    let publish = |colour: &str| {
        let config = format!(
            r##"{{"name": "Acme", "colors": {{"primary": "{colour}"}}, "navigation": {{"pages": ["index"]}}}}"##
        );
        edge.publish("acme", &[("docs.json", &config), ("index.mdx", "Welcome.")]);
    };
    publish("#123456");
    let old = stylesheet(&edge);
    let before = edge.get(SUBDOMAIN, &old);
    assert_eq!(before.status, 200);
    publish("#654321");
    assert_ne!(stylesheet(&edge), old);
    // The first response is from the store, the second from memory.
    for _twice in 0..2 {
        let after = edge.get(SUBDOMAIN, &old);
        assert_eq!((after.status, &after.body), (200, &before.body));
        let caching = after.field("cache-control").unwrap();
        assert!(caching.contains("immutable"), "{caching}");
    }
    let never = edge.get(SUBDOMAIN, "/_waypost/site.0123456789abcdef.css");
    assert_eq!(never.status, 404);
}

#[test]
fn a_range_is_sent_if_the_client_has_the_same_file() {
    let edge = edge();
    let drawing = "<svg xmlns=\"http://www.w3.org/2000/svg\"/>";
    edge.publish(
        "acme",
        &[
            (
                "docs.json",
                r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#,
            ),
            ("index.mdx", "![A drawing](/a.svg)"),
            ("a.svg", drawing),
        ],
    );
    let whole = edge.get(SUBDOMAIN, "/a.svg");
    assert_eq!((whole.status, whole.text()), (200, drawing));
    assert_eq!(whole.field("accept-ranges"), Some("bytes"));
    let etag = whole.field("etag").unwrap();
    let get = |fields: &[(&str, &str)]| edge.request("GET", SUBDOMAIN, "/a.svg", fields);
    let length = drawing.len();
    let (part, beyond) = (format!("bytes 1-3/{length}"), format!("bytes */{length}"));
    for fields in [
        [("Range", "bytes=1-3")].as_slice(),
        &[("Range", "bytes=1-3"), ("If-Range", etag)],
        &[("Range", "bytes=1-3"), ("Accept-Encoding", "br, gzip")],
    ] {
        let answer = get(fields);
        assert_eq!((answer.status, answer.text()), (206, "svg"), "{fields:?}");
        assert_eq!(answer.field("content-range"), Some(&*part), "{fields:?}");
        assert_eq!(answer.field("content-encoding"), None, "{fields:?}");
    }
    let rejected = get(&[("Range", &format!("bytes={length}-"))]);
    assert_eq!(rejected.status, 416);
    assert_eq!(rejected.field("content-range"), Some(&*beyond));
    for fields in [
        [("Range", "bytes=1-3"), ("If-Range", "\"other\"")],
        [
            ("Range", "bytes=1-3"),
            ("If-Range", whole.field("last-modified").unwrap()),
        ],
    ] {
        let answer = get(&fields);
        assert_eq!((answer.status, answer.text()), (200, drawing), "{fields:?}");
    }
    // RFC 9110 §13.2.2: the condition comes before the range.
    let known = get(&[("Range", "bytes=1-3"), ("If-None-Match", etag)]);
    assert_eq!(known.status, 304);
    // A page is sent whole.
    let page = edge.request("GET", SUBDOMAIN, "/", &[("Range", "bytes=0-3")]);
    assert_eq!((page.status, page.field("content-range")), (200, None));
}

#[test]
fn a_change_of_the_record_reaches_a_client_that_knows_only_a_date() {
    let edge = Setup::new()
        .site("acme", "origin: embedded\ndomains: [docs.acme.test]")
        .start();
    edge.publish(
        "acme",
        &[
            (
                "docs.json",
                r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#,
            ),
            (
                "index.mdx",
                "---\ntitle: Acme\ndescription: Begin here.\n---\n\n## Install\n\n```sh\nacme init\n```\n\n![A drawing](/a.svg)\n",
            ),
            ("a.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
        ],
    );
    let skill = edge.get(SUBDOMAIN, MANIFEST).json()["skills"][0]["url"].clone();
    let changing = [
        "/",
        "/index.md",
        "/llms.txt",
        "/llms-full.txt",
        "/sitemap.xml",
        "/robots.txt",
        MANIFEST,
        CARD,
        // It is generated.
        "/skill.md",
        skill.as_str().unwrap(),
    ];
    let whole = changing.map(|path| edge.get(SUBDOMAIN, path));
    edge.write_site(
        "acme",
        "origin: embedded\nbase_path: /docs\nmcp: false\ndomains: [help.acme.test]",
    );
    // A date after the release and after the change.
    let known = [("If-Modified-Since", "Sat, 06 Nov 2094 08:49:37 GMT")];
    let get = |path: &str| {
        let path = format!("/docs{path}");
        edge.request("GET", SUBDOMAIN, &path, &known)
    };
    for (path, before) in changing.into_iter().zip(whole) {
        assert_eq!(before.status, 200, "{path}");
        let after = get(path);
        assert_eq!(after.status, 200, "{path}");
        assert_ne!(after.body, before.body, "{path} does not change");
        assert_eq!(after.field("last-modified"), None, "{path}");
        let tag = after.field("etag").unwrap();
        let same = [("If-None-Match", tag)];
        let path = format!("/docs{path}");
        assert_eq!(edge.request("GET", SUBDOMAIN, &path, &same).status, 304);
    }
    for path in ["/a.svg", LEGACY] {
        let file = get(path);
        assert_eq!(file.status, 304, "{path}");
        assert!(file.field("last-modified").is_some(), "{path}");
    }
}

#[test]
fn translations_link_to_each_other() {
    let edge = edge();
    let config = r#"{"name": "Acme", "navigation": {"languages": [{"language": "en", "pages": ["index", "guide", "news", "draft"]}, {"language": "cn", "pages": ["zh-Hans/index", "zh-Hans/guide", "zh-Hans/draft"]}]}}"#;
    edge.publish(
        "acme",
        &[
            ("docs.json", config),
            ("index.mdx", "Welcome."),
            ("guide.mdx", "Guide."),
            ("news.mdx", "Only here."),
            ("draft.mdx", "---\nnoindex: true\n---\n\nNot for search."),
            ("zh-Hans/index.mdx", "欢迎。"),
            ("zh-Hans/guide.mdx", "指南。"),
            ("zh-Hans/draft.mdx", "草稿。"),
        ],
    );
    let translations = |path: &str| -> Vec<String> {
        let page = edge.get(SUBDOMAIN, path);
        assert_eq!(page.status, 200, "{path}");
        let links = page.field("link").unwrap().split(", ");
        let links = links.filter(|link| link.contains("hreflang="));
        links.map(str::to_owned).collect()
    };
    let home = translations("/guide");
    let link = |path: &str, language: &str| {
        let address = format!("https://{SUBDOMAIN}/{path}");
        format!("<{address}>; rel=\"alternate\"; hreflang=\"{language}\"")
    };
    assert_eq!(
        home,
        [
            link("guide", "en"),
            link("guide", "x-default"),
            link("zh-Hans/guide", "zh-Hans"),
        ]
    );
    assert_eq!(translations("/zh-Hans/guide"), home);
    assert_eq!(translations("/").len(), 3);
    for alone in ["/news", "/draft", "/zh-Hans/draft"] {
        assert!(translations(alone).is_empty(), "{alone}");
    }
}

const SPECIFICATION: &str = r#"{"openapi": "3.1.0", "info": {"title": "Pay", "version": "1"}, "servers": [{"url": "https://api.acme.test/v1"}], "paths": {"/pay": {"post": {"summary": "Pay"}}}}"#;

/// Publishes documentation with this specification.
fn describing(edge: &Edge, specification: &str) {
    let config = r#"{"name": "Acme", "navigation": {"groups": [{"group": "API", "openapi": "api/pay.json", "pages": ["index", "POST /pay"]}]}}"#;
    let files = [
        ("docs.json", config),
        ("index.mdx", "Welcome."),
        ("api/pay.json", specification),
    ];
    edge.publish("acme", &files);
}

#[test]
fn every_page_links_to_the_specifications() {
    let edge = edge();
    describing(&edge, SPECIFICATION);
    let page = edge.get(SUBDOMAIN, "/");
    let links = page.field("link").unwrap();
    assert!(
        links.contains("</.well-known/api-catalog>; rel=\"api-catalog\""),
        "{links}"
    );
    let catalog = edge.get(SUBDOMAIN, "/.well-known/api-catalog");
    assert_eq!(
        catalog.field("content-type"),
        Some("application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"")
    );
    let head = edge.request("HEAD", SUBDOMAIN, "/.well-known/api-catalog", &[]);
    assert_eq!(
        head.field("link"),
        Some("</.well-known/api-catalog>; rel=\"api-catalog\"")
    );
    let catalog: serde_json::Value = serde_json::from_str(catalog.text()).unwrap();
    let linkset = catalog["linkset"].as_array().unwrap();
    // The site's own list of pages, its search, and its MCP server.
    assert_eq!(linkset.len(), 4);
    assert_eq!(linkset[0]["anchor"], "https://api.acme.test/v1");
    let path = |kind: &str| {
        let address = linkset[0][kind][0]["href"].as_str().unwrap();
        let (_, path) = address.split_once(SUBDOMAIN).unwrap();
        let path = path.trim_start_matches(|c: char| c == ':' || c.is_ascii_digit());
        path.to_owned()
    };
    let specification = edge.get(SUBDOMAIN, &path("service-desc"));
    assert_eq!(specification.text(), SPECIFICATION);
    assert_eq!(
        linkset[0]["service-desc"][0]["type"],
        "application/vnd.oai.openapi+json"
    );
    let about = edge.get(SUBDOMAIN, &path("service-doc"));
    assert!(about.text().contains("<h1>Pay</h1>"), "{}", about.text());
    let list = edge.get(SUBDOMAIN, "/llms.txt").text().to_owned();
    assert!(list.contains("## OpenAPI\n\n- [Pay](http"), "{list}");
    assert!(list.contains("/api/pay.json)"), "{list}");
    // The catalog is only below `.well-known`.
    assert_eq!(edge.get(SUBDOMAIN, "/api-catalog").status, 404);
}

#[test]
fn a_specification_with_a_hidden_endpoint_is_not_served() {
    let edge = edge();
    let hidden = r#""post": {"summary": "Pay"}, "get": {"x-hidden": true}"#;
    describing(
        &edge,
        &SPECIFICATION.replace(r#""post": {"summary": "Pay"}"#, hidden),
    );
    let page = edge.get(SUBDOMAIN, "/");
    assert_eq!(page.status, 200);
    assert_eq!(edge.get(SUBDOMAIN, "/api/pay.json").status, 404);
    let catalog = edge.get(SUBDOMAIN, "/.well-known/api-catalog");
    assert!(!catalog.text().contains("pay.json"), "{}", catalog.text());
}

#[test]
fn only_allowed_hosts_are_framed() {
    let edge = Setup::new()
        .conf(
            "service",
            "{ frame_hosts: [play.acme.test, \"*.acme.dev\"] }",
        )
        .site("acme", "origin: embedded")
        .start();
    let framed = ["https://play.acme.test/one", "https://board.acme.dev/two"];
    let linked = [
        "https://www.youtube.com/embed/three",
        "https://acme.dev/four",
        "https://play.acme.test.evil.test/five",
    ];
    let all = framed.iter().chain(&linked);
    let page: String = all
        .map(|src| format!("<iframe src=\"{src}\" title=\"Shown\"></iframe>\n\n"))
        .collect();
    edge.publish(
        "acme",
        &[
            (
                "docs.json",
                r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#,
            ),
            ("index.mdx", &page),
        ],
    );
    let answer = edge.get(SUBDOMAIN, "/");
    let html = answer.text();
    assert_eq!(html.matches("<iframe").count(), framed.len(), "{html}");
    for src in framed {
        assert!(
            html.contains(&format!(" src=\"{src}\" title=\"Shown\"></iframe>")),
            "{html}"
        );
    }
    for src in linked {
        assert!(
            html.contains(&format!("<a href=\"{src}\" rel=noopener>Shown</a>")),
            "{html}"
        );
    }
    // CSP Level 3 §6.2.3: the browser obeys the policy even if the page has such a frame.
    let policy = answer.field("content-security-policy").unwrap();
    let frames = policy
        .split("; ")
        .find(|part| part.starts_with("frame-src"));
    assert_eq!(
        frames,
        Some("frame-src 'self' https://play.acme.test https://*.acme.dev"),
        "{policy}"
    );
}

#[test]
fn the_index_for_an_agents_file_has_at_most_8_kb_at_its_documented_address() {
    let documented = include_str!("../../conf/demo/docs/operate/responses.mdx");
    assert!(documented.contains("`llms-agents.txt` (an index of at most 8 KB"));
    let domain = format!("{}.{}.example", "docs".repeat(15), "acme".repeat(15));
    let edge = Setup::new()
        .site(
            "acme",
            &format!("origin: embedded\ndomains: [{domain}]\nbase_path: /manual"),
        )
        .start();
    let names: Vec<String> = (0..400)
        .map(|n| format!("guides/a-page-with-a-long-name-{n}"))
        .collect();
    let config = serde_json::json!({ "name": "Acme", "navigation": { "pages": names } });
    let config = config.to_string();
    let paths: Vec<String> = names.iter().map(|name| format!("{name}.mdx")).collect();
    let pages = paths.iter().map(|path| (&**path, "Words."));
    let files: Vec<(&str, &str)> = pages.chain([("docs.json", &*config)]).collect();
    edge.publish("acme", &files);

    let index = edge.get(&domain, "/manual/llms-agents.txt");
    assert_eq!(index.status, 200);
    assert_eq!(
        index.field("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert!(index.body.len() <= 8 << 10, "{}", index.body.len());
    // Its addresses are those of this host, and they answer.
    let text = index.text();
    assert!(
        text.contains("- guides/: a-page-with-a-long-name-0, "),
        "{text}"
    );
    let base = format!("https://{domain}/manual");
    assert!(text.contains(&format!("{base}/{{directory}}/{{page}}.md")));
    for path in ["/llms.txt", "/.well-known/agent-skills/index.json"] {
        assert!(text.contains(&format!("{base}{path}")), "{path}: {text}");
        let answer = edge.get(&domain, &format!("/manual{path}"));
        assert_eq!(answer.status, 200, "{path}");
    }
    let page = edge.get(&domain, "/manual/guides/a-page-with-a-long-name-1.md");
    assert!(page.text().ends_with("\n\nWords.\n"), "{}", page.text());
}
