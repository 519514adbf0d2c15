//! What a release holds of a site.

use crate::build::{Built, Options, build};
use crate::release::Release;
use crate::source::{Tree, TreePath};

const CONFIG: &str = r#"{"name": "Acme", "navigation": {"groups": [{"group": "Start", "pages": ["index", "guides/a", "hidden"]}]}, "redirects": [{"source": "/old", "destination": "/guides/a"}]}"#;

fn built(files: &[(&str, &str)]) -> Built {
    let file = |(path, text): &(&str, &str)| {
        let path = TreePath::parse(path).unwrap();
        (path, (*text).to_owned().into())
    };
    let config = [("docs.json", CONFIG)];
    build(
        &Tree::from_files(config.iter().chain(files).map(file), []),
        &Options::default(),
    )
}

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
fn a_release_holds_each_page_for_people_and_for_agents() {
    let Built { release, report } = acme();
    report.refuse_if_errors().unwrap();
    assert!(text(&release, "pages/index.html").contains("<a href=\"guides/a\">a</a>"));
    assert!(text(&release, "pages/guides/a.html").contains("<h1>A &amp; B</h1>"));
    assert_eq!(
        text(&release, "pages/guides/a.md"),
        "# A & B\n\n> About a.\n\nText.\n"
    );
    assert!(release.file("pages/loose.html").is_some());
}

#[test]
fn lists_name_only_what_may_be_found() {
    let Built { release, .. } = acme();
    assert_eq!(
        text(&release, "texts/llms.txt"),
        "# Acme\n\n## Start\n\n- [Index](https://base-url.invalid/index.md): See a .\n- [A & B](https://base-url.invalid/guides/a.md): About a.\n"
    );
    for list in [
        "texts/llms-full.txt",
        "texts/sitemap.xml",
        "static/_waypost/pages.json",
    ] {
        let list = text(&release, list);
        assert!(list.contains("guides/a"), "{list}");
        for absent in ["hidden", "loose", "secret", "SECRET"] {
            assert!(!list.contains(absent), "{absent} in {list}");
        }
    }
    assert!(text(&release, "texts/robots.txt").ends_with("/sitemap.xml\n"));
}

#[test]
fn what_is_not_public_is_nowhere() {
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
fn one_bad_page_leaves_the_others_alone() {
    let Built { release, report } = built(&[
        ("index.mdx", "Fine."),
        ("guides/a.mdx", &"<Note>".repeat(10_000)),
        ("hidden.mdx", "x"),
    ]);
    let told = report.diagnostics.iter().find(|d| d.rule == "page-limit");
    assert_eq!(told.map(|d| &*d.file), Some("guides/a.mdx"));
    report.refuse_if_errors().unwrap();
    assert!(text(&release, "pages/index.html").contains("<p>Fine.</p>"));
    assert!(text(&release, "pages/guides/a.html").contains("cannot be shown"));
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
        ];
        assert!(
            candidates.iter().any(|path| release.file(path).is_some()),
            "{target}"
        );
        seen += 1;
    }
    assert!(seen > 4, "{html}");
}
