//! Tests of the responses of the embedded origin.

mod cache;

use std::sync::Arc;

use super::*;
use crate::build::{Input, Options, build};
use crate::discovery::paths::{self, find_mcp};
use crate::discovery::{SUMMARY_PATH, Summary};
use crate::index::{Cache, Documents, Files, Listing, Material, Stored};
use crate::response::Connection;
use crate::site::{BasePath, FrameHost, Frames, Host, ProjectId, Service, Site};
use crate::source::{Tree, TreePath};
use crate::store::Store;

const MARKDOWN: &str = "text/markdown; charset=utf-8";
const CONFIG: &str = r#"{"name": "Acme", "navigation": {"pages": ["start", "guides/a", "guides/index"]}, "redirects": [{"source": "/old/:page*", "destination": "/guides/:page*"}, {"source": "/gone", "destination": "/guides/a#x", "permanent": false}, {"source": "/out", "destination": "https://out.test/"}]}"#;

fn site(base_path: &str) -> Site {
    Site {
        domains: vec![Host::parse("docs.acme.test").unwrap()],
        base_path: BasePath::parse(base_path).unwrap(),
        ..Site::new(ProjectId::parse("acme").unwrap())
    }
}

/// A site and the directory with the store that its files are read from.
struct StoredSite {
    served: Served,
    _directory: tempfile::TempDir,
}

impl std::ops::Deref for StoredSite {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.served
    }
}

fn served(base_path: &str) -> StoredSite {
    served_by(&Service::default(), base_path)
}

fn served_by(service: &Service, base_path: &str) -> StoredSite {
    served_from(Cache::default(), service, base_path)
}

fn served_from(cache: Cache, service: &Service, base_path: &str) -> StoredSite {
    let long = format!(
        "---\ntitle: A\n---\n\n## X\n\n{}",
        "Words to read. ".repeat(200)
    );
    let files = [
        ("docs.json", CONFIG),
        (
            "start.mdx",
            "---\ncanonical: /guides/a\n---\nBegin. ![](/images/a.svg) [a](/guides/a)",
        ),
        ("guides/a.mdx", &long),
        (
            "guides/index.mdx",
            "---\ncanonical: https://old.test/all?x\n---\nAll guides.",
        ),
        (
            "images/a.svg",
            "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>1</script></svg>",
        ),
        ("images/b.svg", "<svg/>"),
    ];
    served_of(cache, service, base_path, &files)
}

/// Serves a site of the given files.
fn served_of(
    cache: Cache,
    service: &Service,
    base_path: &str,
    files: &[(&str, &str)],
) -> StoredSite {
    let files = files
        .iter()
        .map(|(path, text)| (TreePath::parse(path).unwrap(), (*text).to_owned().into()));
    let options = Options::default();
    let input = Input::read(Tree::from_files(files, []), &options);
    let release = build(&input, &options).release;
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_directory(directory.path().join("store")).unwrap();
    store.put(&release).unwrap();
    let bytes = |path: &str| release.file(path).unwrap().bytes.clone();
    let site = site(base_path);
    let listing = Listing::of(release.inventory().clone(), &store).unwrap();
    let files = Files::new(
        Stored {
            store: Arc::new(store),
            cache: Arc::new(cache),
            release: release.id(),
            project: site.project.clone(),
            owner: std::sync::Arc::from(&*site.owner),
            older_files: std::sync::OnceLock::new(),
        },
        listing,
        &format!("https://docs.acme.test{base_path}"),
        1_700_000_000,
    );
    let material = Material {
        summary: Summary::parse(&bytes(SUMMARY_PATH)).unwrap(),
        skills: Vec::new(),
        promoted_at: 1_700_000_000,
        files: Some(Arc::new(files)),
    };
    let documents = Documents::compile(&site, service, &material).unwrap();
    StoredSite {
        served: Served {
            numbers: None,
            site: Arc::new(site),
            state: State::Public(Arc::new(documents)),
        },
        _directory: directory,
    }
}

#[test]
fn a_site_below_a_base_path_has_its_texts_at_the_root_of_the_host_too() {
    let below = served("/docs");
    for path in [
        "/llms.txt",
        "/llms-full.txt",
        "/sitemap.xml",
        "/robots.txt",
        "/.well-known/llms.txt",
    ] {
        let at_root = get(&below, path);
        assert_eq!(at_root.status, 200, "{path}");
        let at_base = get(&below, &format!("/docs{path}"));
        assert_eq!(text(&at_root), text(&at_base), "{path}");
    }
    // Pages and other files are below the base path only.
    for path in ["/guides/a", "/start", "/images/a.svg", "/fr/llms.txt"] {
        assert_eq!(get(&below, path).status, 404, "{path}");
    }
}

fn get(served: &Served, path: &str) -> Response {
    response(served, path, &RequestHeaders::GET)
}

fn text(response: &Response) -> &str {
    std::str::from_utf8(response.body.memory().unwrap()).unwrap()
}

fn field(response: &Response, name: &str) -> String {
    let found = response
        .more
        .iter()
        .find(|(known, _)| known.as_str() == name);
    found.map_or(String::new(), |(_, value)| {
        value.to_str().unwrap().to_owned()
    })
}

#[track_caller]
fn leads(served: &Served, path: &str, status: u16, location: &str) {
    let asked = RequestHeaders {
        query: Some("q=1"),
        ..RequestHeaders::GET
    };
    let response = response(served, path, &asked);
    assert_eq!(response.status, status, "{path}");
    assert_eq!(
        response.location.as_deref(),
        Some(location.as_bytes()),
        "{path}"
    );
}

#[test]
fn a_page_is_html_for_people_and_markdown_for_agents() {
    let served = served("");
    let page = get(&served, "/guides/a");
    assert_eq!((page.status, page.media_type), (200, Some(HTML)));
    assert_eq!(page.vary, Some("Accept, Accept-Encoding"));
    assert!(
        field(&page, "content-security-policy")
            .starts_with("default-src 'none'; script-src 'self';")
    );
    assert!(field(&page, "link").contains("</guides/a.md>; rel=\"alternate\""));
    assert!(field(&page, "link").contains("<https://docs.acme.test/guides/a>; rel=\"canonical\""));

    let asked = RequestHeaders {
        accept: Some(b"text/markdown, */*"),
        ..RequestHeaders::GET
    };
    let markdown = response(&served, "/guides/a", &asked);
    assert_eq!(markdown.media_type, Some(MARKDOWN));
    assert_eq!(markdown.vary, Some("Accept, Accept-Encoding"));
    assert_eq!(text(&markdown), text(&get(&served, "/guides/a.md")));
    let start = get(&served, "/start.md");
    assert!(
        text(&start).contains("(https://docs.acme.test/guides/a.md)"),
        "{start:?}"
    );
}

#[test]
fn other_spellings_and_old_paths_redirect_to_the_page() {
    let served = served("");
    leads(&served, "/guides/a/", 308, "/guides/a?q=1");
    leads(&served, "/guides/a.mdx", 308, "/guides/a?q=1");
    leads(&served, "/guides/index", 308, "/guides?q=1");
    leads(&served, "/old/a", 308, "/guides/a?q=1");
    leads(&served, "/gone", 307, "/guides/a?q=1#x");
    leads(&served, "/out", 308, "https://out.test/?q=1");
    assert_eq!(get(&served, "/guides").status, 200);
    // Without a page at the root, the root redirects to the first page.
    assert_eq!(
        get(&served, "/").location.as_deref(),
        Some(b"/start".as_slice())
    );
}

#[test]
fn a_site_lives_below_its_base_path() {
    let served = served("/docs");
    assert_eq!(get(&served, "/docs/guides/a").status, 200);
    assert_eq!(get(&served, "/guides/a").status, 404);
    leads(&served, "/", 307, "/docs/");
    leads(&served, "/docs", 308, "/docs/");
    leads(&served, "/docs/guides/", 308, "/docs/guides?q=1");
    assert!(
        text(&get(&served, "/docs/llms.txt")).contains("(https://docs.acme.test/docs/start.md)")
    );
    let missing = get(&served, "/docs/nothing/here");
    assert!(
        text(&missing).contains("href=\"/docs/start\""),
        "{}",
        text(&missing)
    );
}

#[test]
fn lists_are_addressed_to_the_site() {
    let served = served("");
    for path in [
        "/llms.txt",
        "/.well-known/llms.txt",
        "/llms-full.txt",
        "/sitemap.xml",
        "/robots.txt",
    ] {
        let list = get(&served, path);
        assert_eq!(list.status, 200, "{path}");
        assert!(text(&list).contains("https://docs.acme.test/"), "{path}");
        assert!(!text(&list).contains(".invalid"), "{path}");
    }
}

#[test]
fn every_advertised_path_has_a_response() {
    let served = served("");
    let page = get(&served, "/guides/a");
    for link in field(&page, "link").split(", ") {
        let path = link.trim_start_matches('<').split('>').next().unwrap();
        let path = path.strip_prefix("https://docs.acme.test").unwrap_or(path);
        let base = &served.site.base_path;
        let is_discovery = paths::find(path, base).is_some() || find_mcp(path, base).is_some();
        assert!(is_discovery || get(&served, path).status == 200, "{link}");
    }
    for list in ["/llms.txt", "/sitemap.xml"] {
        let list = get(&served, list);
        let urls = text(&list).split("https://docs.acme.test").skip(1);
        for url in urls {
            let path = url.split([')', '<', '`', '\n']).next().unwrap();
            let base = &served.site.base_path;
            let is_discovery = paths::find(path, base).is_some() || find_mcp(path, base).is_some();
            assert!(is_discovery || get(&served, path).status == 200, "{path}");
        }
    }
}

#[test]
fn files_of_the_repository_are_served_with_a_strict_policy() {
    let served = served("");
    let image = get(&served, "/images/a.svg");
    assert_eq!(
        (image.status, image.media_type),
        (200, Some("image/svg+xml"))
    );
    assert!(field(&image, "content-security-policy").starts_with("sandbox;"));
    // No page shows this file, so the release does not have it.
    assert_eq!(get(&served, "/images/b.svg").status, 404);
}

#[test]
fn files_named_by_digest_are_immutable() {
    let served = served("");
    let page = get(&served, "/guides/a");
    let style = text(&page)
        .split("href=\"../")
        .find_map(|piece| piece.split_once(".css"))
        .unwrap()
        .0;
    let style = get(&served, &format!("/{style}.css"));
    assert_eq!((style.status, style.caching), (200, caching::IMMUTABLE));
}

#[test]
fn a_question_is_answered_and_its_tag_depends_on_release_base_and_question() {
    let ask = |base: &str, query: &str, if_none_match: Option<&[u8]>| {
        let mut headers = RequestHeaders {
            query: Some(query),
            ..RequestHeaders::GET
        };
        headers.conditions.if_none_match = if_none_match;
        response(&served(base), &format!("{base}/_waypost/search"), &headers)
    };
    let answer = ask("/docs", "q=read", None);
    assert_eq!((answer.status, answer.caching), (200, caching::DISCOVERY));
    let found: serde_json::Value = serde_json::from_str(text(&answer)).unwrap();
    assert_eq!(found["results"][0]["url"], "/docs/guides/a", "{found}");
    assert_eq!(
        found["results"][0]["sections"][0]["url"],
        "/docs/guides/a#x"
    );
    let mut tag = Vec::new();
    answer.etag.as_ref().unwrap().write(&mut tag);
    assert_eq!(ask("/docs", "q=read", Some(&tag)).status, 304);
    for (base, query) in [
        ("/docs", "q=words"),
        ("/docs", "q=read&limit=1"),
        ("", "q=read"),
    ] {
        assert_eq!(ask(base, query, Some(&tag)).status, 200, "{base} {query}");
    }
}

#[test]
fn a_404_page_has_the_language_and_the_sidebar_of_its_path() {
    let config = r#"{"name": "Acme", "navigation": {"languages": [
        {"language": "en", "versions": [
            {"version": "v2", "pages": ["start", "shared"]}, {"version": "v1", "pages": ["old/one/a", "old/one/b/c", "shared"]}]},
        {"language": "fr", "pages": ["fr/index", "fr/guides/a", "shared"]}]}}"#;
    let files = [
        ("docs.json", config),
        ("start.mdx", ""),
        ("shared.mdx", ""),
        ("old/one/a.mdx", ""),
        ("old/one/b/c.mdx", ""),
        ("fr/index.mdx", ""),
        ("fr/guides/a.mdx", ""),
    ];
    let served = served_of(Cache::default(), &Service::default(), "/docs", &files);
    let (english, french) = ("Page not found", "Page introuvable");
    let latest = "language=\"en\" data-version=\"v2\"";
    let old = "language=\"en\" data-version=\"v1\"";
    let in_french = "language=\"fr\" data-finder";
    for (path, says, searched, home) in [
        ("none", english, latest, "start"),
        ("french", english, latest, "start"),
        ("old/none", english, latest, "start"),
        ("fr/none", french, in_french, "fr"),
        ("fr/guides/a/b/c/d/e/f", french, in_french, "fr"),
        ("old/one", english, old, "old/one/a"),
        ("old/one/b/c/d/none", english, old, "old/one/a"),
    ] {
        let response = get(&served, &format!("/docs/{path}"));
        assert_eq!((response.status, response.caching), (404, caching::ABSENT));
        let policy = field(&response, "content-security-policy");
        assert!(policy.contains("form-action 'self'"), "{policy}");
        for piece in [
            format!("<h1>{says}</h1>"),
            format!(" data-search=\"/docs/_waypost/search\" data-{searched}"),
            format!("</div><p><a href=\"/docs/{home}\">"),
        ] {
            let text = text(&response);
            assert!(text.contains(&piece), "{path}: no {piece} in {text}");
        }
        assert!(!text(&response).contains("aria-current=page"), "{path}");
    }
}

#[test]
fn only_files_of_the_site_can_be_sent() {
    let served = served("");
    for path in [
        "/site.json",
        "/discovery.json",
        "/404.html",
        "/404/guides.html",
        "/pages/start.html",
        "/start.html",
        "/guides/a.html.br",
        "/docs.json",
        "/start.mdx.md",
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/_waypost/../site.json",
        "/_waypost/%2e%2e/%2e%2e/site.json",
        "/.md",
        "//",
        "/%00",
    ] {
        let response = get(&served, path);
        assert!(
            response.status == 404 || response.location.is_some(),
            "{path} {response:?}"
        );
    }
}

#[test]
fn the_configuration_decides_which_hosts_a_page_may_frame() {
    let frames = |response: &Response| {
        let policy = field(response, "content-security-policy");
        let frames = policy
            .split("; ")
            .find(|part| part.starts_with("frame-src"));
        frames.unwrap().to_owned()
    };
    let service = Service {
        frames: Frames::new([FrameHost::parse("play.acme.test").unwrap()]),
        ..Service::default()
    };
    let served = served_by(&service, "");
    for path in ["/start", "/none"] {
        let policy = frames(&get(&served, path));
        assert_eq!(policy, "frame-src 'self' https://play.acme.test");
    }
    let default = served_by(&Service::default(), "");
    assert!(frames(&get(&default, "/start")).contains(" https://www.youtube.com "));
}

#[test]
fn the_canonical_address_is_the_one_that_the_author_names() {
    let served = served("/docs");
    for (path, known) in [
        ("/docs/start", "https://docs.acme.test/docs/guides/a"),
        ("/docs/start.md", "https://docs.acme.test/docs/guides/a"),
        ("/docs/guides", "https://old.test/all?x"),
        ("/docs/guides/a", "https://docs.acme.test/docs/guides/a"),
    ] {
        let links = field(&get(&served, path), "link");
        let canonical = format!(", <{known}>; rel=\"canonical\",");
        assert!(links.contains(&canonical), "{path}: {links}");
    }
}

#[test]
fn a_private_or_unpublished_site_has_no_pages() {
    let public = served("");
    for state in [State::Private, State::Unreleased] {
        let served = Served {
            numbers: None,
            site: Arc::clone(&public.site),
            state,
        };
        for path in [
            "/",
            "/start",
            "/llms.txt",
            "/robots.txt",
            "/_waypost/search",
        ] {
            assert_eq!(get(&served, path).status, 404, "{path}");
        }
    }
}

#[test]
fn pages_can_only_be_read() {
    let served = served("");
    let asked = |method| {
        response(
            &served,
            "/start",
            &RequestHeaders {
                method,
                ..RequestHeaders::GET
            },
        )
    };
    assert_eq!(asked("POST").status, 405);
    assert_eq!(asked("OPTIONS").status, 204);
}

#[test]
fn a_redirect_cannot_inject_a_header() {
    let served = served("");
    let location = get(&served, "/old/a%0d%0aSet-Cookie:%20x=1")
        .location
        .unwrap();
    assert_eq!(location, "/guides/a%0D%0ASet-Cookie:%20x=1");
}

/// Returns the paths of the site whose addresses occur in a text.
fn advertised(text: &str) -> Vec<String> {
    let words = text.split(['<', '>', '(', ')', '"', ' ', '\n']);
    let own = words.filter_map(|word| word.strip_prefix("https://docs.acme.test"));
    own.map(ToOwned::to_owned).collect()
}

#[test]
fn every_listed_address_has_a_response() {
    for base in ["", "/docs"] {
        let served = served(base);
        let page = get(&served, &format!("{base}/guides/a"));
        let mut paths = advertised(&field(&page, "link"));
        for list in ["llms.txt", "llms-full.txt", "sitemap.xml", "robots.txt"] {
            let list = get(&served, &format!("{base}/{list}"));
            paths.extend(advertised(text(&list)));
        }
        assert!(paths.len() > 10, "{paths:?}");
        let index = crate::index::Index::new(Service::default());
        for path in paths {
            let base = &served.site.base_path;
            let response = match crate::discovery::paths::find(&path, base) {
                Some(document) => {
                    index.response(&served, "docs.acme.test", document, &RequestHeaders::GET)
                }
                None => get(&served, &path),
            };
            assert_eq!(response.status, 200, "{path}");
        }
    }
}

#[test]
fn a_part_of_an_asset_is_sent_as_it_is_and_pages_are_sent_whole() {
    let served = served("");
    let headers = RequestHeaders {
        range: Some(b"bytes=0-3"),
        accept_encoding: Some(b"br, gzip"),
        ..RequestHeaders::GET
    };
    let part = response(&served, "/images/a.svg", &headers);
    assert_eq!((part.status, text(&part)), (206, "<svg"));
    let whole = get(&served, "/images/a.svg").body.len();
    assert_eq!(field(&part, "content-range"), format!("bytes 0-3/{whole}"));
    assert_eq!(part.encoding, crate::response::Encoding::Identity);
    assert_eq!(response(&served, "/guides/a", &headers).status, 200);
}

#[test]
fn the_feed_of_a_changelog_has_the_address_of_the_site() {
    let files = [
        (
            "docs.json",
            r#"{"name": "Acme", "navigation": {"pages": ["log"]}}"#,
        ),
        ("log.mdx", "<Update label=\"v1\">New.</Update>"),
    ];
    let site = served_of(Cache::default(), &Service::default(), "/docs", &files);
    let feed = get(&site, "/docs/log/rss.xml");
    assert_eq!(
        (feed.status, feed.media_type),
        (200, Some("application/rss+xml; charset=utf-8"))
    );
    assert!(text(&feed).contains("<link>https://docs.acme.test/docs/log</link>"));
    assert_eq!(get(&site, "/docs/rss.xml").status, 404);
}
