//! Tests of the site in a release.

mod assets;
mod cache;
mod lists;

use proptest::prelude::*;

use crate::build::{
    Articles, Built, Input, Options, Previous, PreviousRelease, build, build_after,
};
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::docs;
use crate::release::site::{SEARCH_FILE, page_file};
use crate::release::{Item, Release};
use crate::search::{Index, PartInfo, Question};
use crate::site::{FrameHost, Frames};
use crate::source::history::{End, History};
use crate::source::{Tree, TreePath};

const CONFIG: &str = r#"{"name": "Acme", "navigation": {"groups": [{"group": "Start", "pages": ["index", "guides/a", "hidden"]}]}, "redirects": [{"source": "/old", "destination": "/guides/a"}]}"#;

fn built(files: &[(&str, &str)]) -> Built {
    let file = |(path, text): &(&str, &str)| {
        let path = TreePath::parse(path).unwrap();
        (path, (*text).to_owned().into())
    };
    let config = [("docs.json", CONFIG)];
    of_tree(Tree::from_files(config.iter().chain(files).map(file), []))
}

fn of_tree(tree: Tree) -> Built {
    build(&input(tree), &Options::default())
}

fn input(tree: Tree) -> Input {
    Input::read(tree, &Options::default())
}

/// The path of the search, below the root of a site.
const SEARCH_PATH: &str = "_waypost/search";

fn acme() -> Built {
    built(&[
        (
            "index.mdx",
            "# Welcome\n\nSee [a](/guides/a) ![](/images/x.svg).",
        ),
        (
            "guides/a.mdx",
            "---\ntitle: A & B\ndescription: About a.\n---\n\nText.",
        ),
        ("hidden.mdx", "---\nhidden: true\n---\nOnly by link."),
        ("loose.mdx", "Not in the navigation."),
        ("secret.mdx", "---\ngroups: [staff]\n---\nTOP SECRET"),
        ("images/x.svg", "<svg/>"),
        ("images/unused.svg", "<svg/>"),
        (".env", "PASSWORD"),
        ("tool.js", "alert(1)"),
    ])
}

#[track_caller]
fn text(release: &Release, path: &str) -> String {
    let file = release.file(path).unwrap_or_else(|| panic!("no {path}"));
    String::from_utf8(file.bytes.to_vec()).unwrap()
}

#[test]
fn a_release_has_each_page_as_html_and_markdown() {
    let Built {
        release, report, ..
    } = acme();
    report.publishable().unwrap();
    assert!(text(&release, "pages/index.html").contains("<a href=\"guides/a\">a</a>"));
    assert!(text(&release, "pages/guides/a.html").contains("<h1>A &amp; B</h1>"));
    assert_eq!(
        text(&release, "pages/guides/a.md"),
        "# A & B\n\n> About a.\n\nText.\n"
    );
    assert!(release.file("pages/loose.html").is_some());
}

/// Returns the paths of the pages that the search of a release finds, sorted.
fn found(release: &Release, text: &str) -> Vec<String> {
    let file = release.file(SEARCH_FILE).unwrap().bytes.clone();
    let texts = |path: &str, range: std::ops::Range<u64>| {
        let text = release.file(&page_file(path, "md"))?.bytes.clone();
        Some(text.slice(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?))
    };
    let index = Index::open(&file).unwrap();
    let found = index.search(&file, &texts, &Question::new(text)).unwrap();
    let mut paths: Vec<_> = found.hits.into_iter().map(|hit| hit.path).collect();
    paths.sort();
    paths
}

#[test]
fn a_release_has_no_trace_of_a_private_page() {
    let Built { release, .. } = acme();
    for (path, file) in release.files() {
        let bytes = String::from_utf8_lossy(&file.bytes);
        for secret in ["TOP SECRET", "PASSWORD", "alert(1)"] {
            assert!(!bytes.contains(secret), "{secret} in {path}");
        }
    }
    let assets = release
        .files()
        .filter(|(path, _)| path.as_str().starts_with("assets/"));
    let assets: Vec<_> = assets.map(|(path, _)| path.as_str()).collect();
    assert_eq!(assets, ["assets/images/x.svg"]);
}

#[test]
fn a_page_that_is_not_utf_8_is_reported_and_the_others_are_read() {
    let file = |path: &str, bytes: &[u8]| {
        let path = TreePath::parse(path).unwrap();
        (path, bytes::Bytes::copy_from_slice(bytes))
    };
    let files = [
        file("docs.json", CONFIG.as_bytes()),
        file("index.mdx", b"Fine."),
        file("guides/a.mdx", b"Line.\nCaf\xe9"),
        file("hidden.mdx", b"x"),
    ];
    let Built {
        release, report, ..
    } = of_tree(Tree::from_files(files, []));
    let reported = report
        .diagnostics
        .iter()
        .find(|reported| reported.is_error());
    assert_eq!(
        reported.map(ToString::to_string).as_deref(),
        Some("guides/a.mdx:2:1: error[encoding]: the bytes here are not UTF-8")
    );
    assert!(text(&release, "pages/index.html").contains("<p>Fine.</p>"));
}

#[test]
fn callouts_have_the_language_of_their_page() {
    let config = r#"{"name": "Acme", "navigation": {"languages": [
{"language": "en", "pages": ["index"]}, {"language": "fr", "pages": ["fr/index"]}]}}"#;
    let files = [
        ("docs.json", config),
        ("index.mdx", "<Note>x</Note>"),
        ("fr/index.mdx", "<Note>x</Note>"),
    ];
    let files = files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_owned().into()));
    let Built { release, .. } = of_tree(Tree::from_files(files, []));
    assert!(text(&release, "pages/index.html").contains("<strong class=callout-title>Note<"));
    assert!(text(&release, "pages/fr.html").contains("<strong class=callout-title>Remarque<"));
    assert!(text(&release, "pages/fr.md").contains("> **Remarque:** x"));
}

#[test]
fn one_bad_page_does_not_affect_the_others() {
    let Built {
        release, report, ..
    } = built(&[
        ("index.mdx", "Fine."),
        ("guides/a.mdx", &"<Note>".repeat(10_000)),
        ("hidden.mdx", "x"),
    ]);
    let reported = report.diagnostics.iter().find(|d| d.rule == "page-limit");
    assert_eq!(reported.map(|d| &*d.file), Some("guides/a.mdx"));
    report.publishable().unwrap();
    assert!(text(&release, "pages/index.html").contains("<p>Fine.</p>"));
    assert!(text(&release, "pages/guides/a.html").contains("shown as its author wrote it"));
}

#[test]
fn every_link_of_a_page_leads_to_a_file_of_the_release() {
    let Built { release, .. } = acme();
    let html = text(&release, "pages/guides/a.html");
    let targets = html.split(" href=\"").chain(html.split(" src=\"")).skip(1);
    let mut seen = 0;
    for target in targets.filter_map(|piece| piece.split('"').next()) {
        let Some(path) = target.strip_prefix("../").or(Some(target)) else {
            continue;
        };
        if path.starts_with(['#', '<']) || path.contains(':') || path.contains(' ') {
            continue;
        }
        // The server answers questions; no file does.
        if path == SEARCH_PATH {
            continue;
        }
        let below = if target.starts_with("../") {
            path.to_owned()
        } else {
            format!("guides/{path}")
        };
        let name = if below.is_empty() { "index" } else { &below };
        let candidates = [
            format!("pages/{name}.html"),
            format!("pages/{name}"),
            format!("static/{name}"),
            format!("assets/{name}"),
            format!("texts/{name}"),
        ];
        assert!(
            candidates.iter().any(|path| release.file(path).is_some()),
            "{target}"
        );
        seen += 1;
    }
    assert!(seen > 4, "{html}");
}

#[test]
fn with_timestamps_a_page_has_the_day_of_its_last_commit_unless_its_author_wrote_one() {
    let of = |end: End, setting: &str| {
        let config = format!(
            r#"{{"name": "Acme", "metadata": {{"timestamp": {setting}}}, "navigation": {{"pages": ["index", "own", "new"]}}}}"#
        );
        let files = [
            ("docs.json", &*config),
            ("index.mdx", "Text."),
            ("own.mdx", "---\nlastUpdatedDate: 2026-02-02\n---\nText."),
            ("new.mdx", "Text."),
        ];
        let path = |path: &str| TreePath::parse(path).unwrap();
        let day = |file: &str, day: &str| (path(file), day.into());
        let days = [day("index.mdx", "2026-01-31"), day("own.mdx", "2026-01-31")];
        let files = files.map(|(file, text)| (path(file), text.to_owned().into()));
        let tree = Tree::from_files(files, []).with_history(History::new(days, end));
        let options = Options::default();
        build(&Input::read(tree, &options), &options)
    };
    let Built {
        release, report, ..
    } = of(End::Complete, "true");
    assert_eq!(report.diagnostics, []);
    let sitemap = text(&release, "texts/sitemap.xml");
    for (page, day) in [("index", "2026-01-31"), ("own", "2026-02-02")] {
        let html = text(&release, &format!("pages/{page}.html"));
        assert!(
            html.contains(&format!("<time datetime=\"{day}\">")),
            "{html}"
        );
        assert!(
            html.contains(&format!("\"dateModified\":\"{day}\"")),
            "{html}"
        );
        assert!(
            sitemap.contains(&format!("<lastmod>{day}</lastmod>")),
            "{sitemap}"
        );
    }
    assert!(!text(&release, "pages/new.html").contains("<time"));

    let found = of(End::Shallow, "true").report;
    let [found] = &found.diagnostics[..] else {
        panic!("{found}");
    };
    assert_eq!((found.rule, found.is_error()), (docs::NO_DAY, false));
    assert!(found.message.starts_with("1 page has no day"), "{found:?}");

    let Built {
        release, report, ..
    } = of(End::Shallow, "false");
    assert_eq!(report.diagnostics, []);
    assert!(!text(&release, "pages/index.html").contains("<time"));
}
