//! Tests of the site in a release.

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
fn stylesheets_of_authors_apply_to_every_page_and_load_files_of_the_release() {
    let built = built(&[
        ("index.mdx", "<div className=\"hero top\">Text.</div>"),
        ("guides/a.mdx", "Text."),
        (
            "style.css",
            ".hero { background: url(images/x.svg) }\n@import url(https://fonts.test/x);\n",
        ),
        ("theme/more.css", ".top { color: red }"),
        (".waypostignore", "drafts\n"),
        ("drafts/x.css", ".no { color: red }"),
        ("images/x.svg", "<svg/>"),
    ]);
    let files = || built.release.files().map(|(path, _)| path.to_string());
    let authors: Vec<_> = files().filter(|path| path.contains("/authors.")).collect();
    let sheet = text(&built.release, &authors[0]);
    assert!(sheet.contains("url(../images/x.svg)"), "{sheet}");
    assert!(
        sheet.contains(".x-top:where(main,main *){color:red}"),
        "{sheet}"
    );
    assert!(
        !sheet.contains("fonts.test") && !sheet.contains(".no"),
        "{sheet}"
    );
    assert!(files().any(|path| path == "assets/images/x.svg"));
    for page in ["pages/index.html", "pages/guides/a.html", "404.html"] {
        let name = authors[0].strip_prefix("static/").unwrap();
        assert!(text(&built.release, page).contains(name), "{page}");
    }
    let index = text(&built.release, "pages/index.html");
    assert!(index.contains("class=\"hero x-top\""), "{index}");
    let found = built.report.diagnostics.iter();
    let found: Vec<_> = found
        .filter(|found| found.rule == "stylesheet")
        .map(ToString::to_string)
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("style.css:2:"), "{found:?}");
}

/// Returns a PNG of random pixels, which no encoding makes much smaller.
fn noisy_png(width: u32, height: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let pixels = image::GrayImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        image::Luma([state.to_be_bytes()[0]])
    });
    let mut out = std::io::Cursor::new(Vec::new());
    pixels.write_to(&mut out, image::ImageFormat::Png).unwrap();
    out.into_inner()
}

#[test]
fn a_large_picture_and_a_heavy_icon_have_smaller_forms_that_are_made_once() {
    let config = CONFIG.replacen('{', "{\"favicon\": \"/icon.png\", ", 1);
    let tree = |page: &str| {
        let file = |path: &str, bytes: Vec<u8>| (TreePath::parse(path).unwrap(), bytes.into());
        let files = [
            file("docs.json", config.clone().into_bytes()),
            file("index.mdx", format!("![](/wide.png) {page}").into_bytes()),
            file("guides/a.mdx", b"![](/copy.png)".to_vec()),
            file("wide.png", noisy_png(3_000, 100)),
            file("copy.png", noisy_png(3_000, 100)),
            file("unused.png", noisy_png(2_999, 100)),
            file("icon.png", noisy_png(200, 200)),
        ];
        Tree::from_files(files, [])
    };
    let first = of_tree(tree("One."));
    let forms: Vec<(String, _)> = first
        .release
        .files()
        .filter(|(path, _)| path.as_str().contains("/image."))
        .map(|(path, file)| (path.to_string(), file.clone()))
        .collect();
    assert_eq!(
        forms.len(),
        2,
        "one of two equal pictures, one of the icon: {forms:?}"
    );
    let (path, wide) = forms
        .iter()
        .find(|(path, _)| path.ends_with(".webp"))
        .unwrap();
    assert_eq!(&*wide.media_type, "image/webp");
    let original = first.release.file("assets/wide.png").unwrap();
    assert!(wide.bytes.len() * 2 < original.bytes.len() * 3 / 2);
    let index = text(&first.release, "pages/index.html");
    assert!(
        index.contains(path.strip_prefix("static/").unwrap()),
        "{index}"
    );
    let (icon, _) = forms
        .iter()
        .find(|(path, _)| path.ends_with(".png"))
        .unwrap();
    let link = format!(
        "<link rel=icon href=\"{}\"",
        icon.strip_prefix("static/").unwrap()
    );
    assert!(index.contains(&link), "{index}");

    // The next build takes the forms from the release before it.
    let taken = std::sync::Mutex::new(Vec::new());
    let take = |item: &Item| {
        let (path, file) = first
            .release
            .files()
            .find(|(_, file)| file.digest() == item.digest)?;
        taken.lock().unwrap().push(path.to_string());
        Some(file.clone())
    };
    let inventory = first.release.inventory();
    let previous = Previous {
        release: Some(PreviousRelease {
            inventory,
            file: &take,
        }),
        ..Previous::default()
    };
    let again = build_after(&input(tree("Two.")), &Options::default(), &previous);
    assert_eq!(again.release.id(), of_tree(tree("Two.")).release.id());
    let taken = taken.into_inner().unwrap();
    assert!(
        forms.iter().all(|(path, _)| taken.contains(path)),
        "{taken:?}"
    );
}

#[test]
fn a_page_has_a_sheet_of_the_utility_classes_that_it_uses() {
    let page = "<div className=\"flex md:p-4 unknown\" style={{gap: '1px'}}>Text.</div>";
    let built = built(&[("index.mdx", page), ("guides/a.mdx", "Text.")]);
    let files = || built.release.files().map(|(path, _)| path.to_string());
    let sheets: Vec<_> = files()
        .filter(|path| path.starts_with("static/_waypost/page."))
        .collect();
    let sheet = text(&built.release, &sheets[0]);
    assert!(
        sheet.starts_with("@layer utilities{.flex{display:flex}"),
        "{sheet}"
    );
    assert!(
        sheet.contains("@media (min-width:768px){.md\\:p-4{padding:1rem}}"),
        "{sheet}"
    );
    assert!(!sheet.contains("unknown"), "{sheet}");
    assert!(!text(&built.release, "pages/guides/a.html").contains("page."));

    // A later process takes the page with its sheet.
    let articles = Articles::from_bytes(&built.articles.to_bytes()).unwrap();
    assert_eq!(articles.len(), 2);
    let file =
        |(path, text): (&str, &str)| (TreePath::parse(path).unwrap(), text.to_owned().into());
    let files = [
        ("docs.json", CONFIG),
        ("index.mdx", page),
        ("guides/a.mdx", "Text."),
    ];
    let previous = Previous {
        articles: articles.clone(),
        ..Previous::default()
    };
    let tree = Tree::from_files(files.map(file), []);
    let again = build_after(&input(tree), &Options::default(), &previous);
    assert_eq!(again.release.id(), built.release.id());
    assert_eq!(again.articles.shared(&articles), 2);
}

#[test]
fn a_page_frames_the_hosts_of_the_service_and_links_others() {
    let page = "<iframe src=\"https://play.acme.test/x\" title=\"Play\"></iframe>";
    let files = [("docs.json", CONFIG), ("index.mdx", page)];
    let files = files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_owned().into()));
    let input = input(Tree::from_files(files, []));
    let options = Options {
        frames: Frames::new([FrameHost::parse("*.acme.test").unwrap()]),
        ..Options::default()
    };
    let index = |built: Built| text(&built.release, "pages/index.html");
    let default = build(&input, &Options::default());
    let articles = default.articles.clone();
    assert!(index(default).contains("<a href=\"https://play.acme.test/x\""));
    // Articles that were made with another list are not reused.
    let previous = Previous {
        articles,
        release: None,
    };
    let framed = build_after(&input, &options, &previous);
    assert!(index(framed).contains("<iframe "));
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

#[test]
fn lists_leave_out_hidden_pages() {
    let Built { release, .. } = acme();
    assert_eq!(
        text(&release, "texts/llms.txt"),
        "# Acme\n\nSkills for agents: [list](https://base-url.invalid/.well-known/agent-skills/index.json)\n\nMCP server: `https://base-url.invalid/mcp`\n\n## Start\n\n- [Index](https://base-url.invalid/index.md): See a .\n- [A & B](https://base-url.invalid/guides/a.md): About a.\n"
    );
    for list in ["texts/llms-full.txt", "texts/sitemap.xml"] {
        let list = text(&release, list);
        assert!(list.contains("guides/a"), "{list}");
        for absent in ["hidden", "loose", "secret", "SECRET"] {
            assert!(!list.contains(absent), "{absent} in {list}");
        }
    }
    assert_eq!(found(&release, "text").as_slice(), ["guides/a"]);
    assert_eq!(found(&release, "welcome").as_slice(), [""]);
    for absent in ["link", "navigation", "secret"] {
        assert!(found(&release, absent).is_empty(), "{absent}");
    }
    assert!(text(&release, "texts/robots.txt").ends_with("/sitemap.xml\n"));
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
fn icons_of_the_navigation_are_written_or_included_or_reported() {
    let config = r#"{"name": "Acme", "icons": {"library": "lucide"}, "navigation": {"groups": [
{"group": "A", "icon": "rockett", "pages": ["index"]},
{"group": "B", "icon": "bell", "pages": [{"group": "C", "icon": "/images/c.svg", "pages": ["b"]}]},
{"group": "D", "icon": "/images/none.svg", "pages": ["d"]}]}}"#;
    let files = [
        ("docs.json", config),
        ("index.mdx", "---\nicon: hosue\ncanonical: nowhere\n---\nx"),
        ("b.mdx", "---\nicon: \"🚀\"\n---\nx"),
        ("d.mdx", "x"),
        ("images/c.svg", "<svg/>"),
    ];
    let files = files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_owned().into()));
    let Built {
        release, report, ..
    } = of_tree(Tree::from_files(files, []));
    let html = text(&release, "pages/b.html");
    // Lucide icons are stroked.
    assert!(html.contains("fill=none stroke=currentColor") && html.contains("🚀"));
    assert!(html.contains("src=\"images/c.svg\"") && release.file("assets/images/c.svg").is_some());
    let mut reported: Vec<_> = report.diagnostics.iter().map(ToString::to_string).collect();
    reported.sort();
    assert_eq!(
        reported,
        [
            "docs.json:2:24: warning[icon]: there is no icon `rockett` (did you mean `rocket`?)",
            "docs.json:4:24: warning[icon]: there is no file `/images/none.svg`",
            "index.mdx: warning[canonical]: `canonical` is `nowhere`, neither a page of this site nor a URL (write a path such as `/guides/start`, or `https://` and the rest)",
            "index.mdx: warning[icon]: there is no icon `hosue` (did you mean `house`?)",
        ]
    );
}

#[test]
fn files_that_the_layout_links_are_in_the_release() {
    let config = r#"{"name": "Acme", "banner": {"content": "[New](/files/banner.pdf)"},
        "navbar": {"links": [{"label": "N", "href": "/files/navbar.pdf"}], "primary": {"type": "button", "label": "P", "href": "/files/primary.pdf"}},
        "footer": {"socials": {"x": "/files/social.pdf"}, "links": [{"header": "H", "items": [{"label": "F", "href": "/files/footer.pdf"}]}]},
        "navigation": {"global": {"anchors": [{"anchor": "G", "href": "/files/global.pdf"}]}, "languages": [
            {"language": "en", "tabs": [{"tab": "T", "pages": ["index"]}, {"tab": "D", "href": "/files/tab.pdf"}]},
            {"language": "fr", "banner": {"content": "[Neuf](/files/neuf.pdf)"}, "pages": ["fr/index"]}]}}"#;
    let names = [
        "banner", "navbar", "primary", "social", "footer", "global", "tab", "neuf", "unused",
    ];
    let pdfs = names.map(|name| (format!("files/{name}.pdf"), "%PDF".to_owned()));
    let pages = ["index", "fr/index"].map(|page| (format!("{page}.mdx"), "Text.".to_owned()));
    let files = pdfs
        .into_iter()
        .chain(pages)
        .chain([("docs.json".to_owned(), config.to_owned())]);
    let files = files.map(|(path, text)| (TreePath::parse(&path).unwrap(), text.into()));
    let Built {
        release, report, ..
    } = of_tree(Tree::from_files(files, []));
    report.publishable().unwrap();
    let html = text(&release, "pages/index.html") + &text(&release, "pages/fr.html");
    for name in names {
        let is_linked = html.contains(&format!("files/{name}.pdf\""));
        assert_eq!(is_linked, name != "unused", "{name} in {html}");
        let is_there = release.file(&format!("assets/files/{name}.pdf")).is_some();
        assert_eq!(is_there, is_linked, "{name}");
    }
}

#[test]
fn an_icon_library_that_is_not_bundled_is_reported_once() {
    let config = r#"{"name": "Acme", "icons": {"library": "tabler"}, "navigation": {"groups": [
{"group": "A", "icon": "player-play", "pages": ["index"]},
{"group": "B", "icon": "brand-github", "pages": ["b"]}]}}"#;
    let files = [
        ("docs.json", config),
        (
            "index.mdx",
            "<Icon icon=\"stack-2\" /> <Icon icon=\"book-2\" />",
        ),
        ("b.mdx", "---\nicon: world\n---\nx"),
    ];
    let files = files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_owned().into()));
    let Built {
        release, report, ..
    } = of_tree(Tree::from_files(files, []));
    let reported: Vec<_> = report.diagnostics.iter().map(ToString::to_string).collect();
    let once = "docs.json: warning[icon-library]: the icons of `tabler` are not bundled; an icon is shown only if Font Awesome or Lucide has one of the same name (write `fontawesome` or `lucide`, and add other icons as files of the site)";
    assert_eq!(reported, [once]);
    // Two groups, a page, and what the page shows.
    let html = text(&release, "pages/index.html");
    assert_eq!(html.matches("<svg class=\"icon\"").count(), 5);
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

/// Texts that depend on other pages, on snippets, on images and on nothing.
const TEXTS: [&str; 7] = [
    "Plain.",
    "---\ntitle: Titled\n---\n\nSee [b](/b) and [c](./c#x).",
    "![](/images/x.svg) ![](/images/y.png)",
    "import S from \"/snippets/s.mdx\"\n\n<S />\n\nAfter.",
    "---\nhidden: true\n---\n\n## A\n\n```rust\nfn a() {}\n```\n",
    "---\ngroups: [staff]\n---\n\nSecret.",
    "<Unknown>{1 +}</Unknown>",
];

fn tree(pages: &[Option<usize>], snippet: Option<&str>, image: bool) -> Tree {
    let path = |text: &str| TreePath::parse(text).unwrap();
    let config = r#"{"name": "A", "navigation": {"pages": ["a", "b", "c", "d"]}}"#;
    let mut files = vec![(path("docs.json"), config.into())];
    for (name, text) in ["a", "b", "c", "d"].iter().zip(pages) {
        let long = "Words to compress. ".repeat(100);
        let text = text.map(|text| format!("{}\n\n{long}", TEXTS[text]));
        files.extend(text.map(|text| (path(&format!("{name}.mdx")), text.into())));
    }
    files.extend(snippet.map(|text| (path("snippets/s.mdx"), text.to_owned().into())));
    files.extend(image.then(|| (path("images/x.svg"), "<svg/>".into())));
    Tree::from_files(files, [])
}

fn edits() -> impl Strategy<Value = Tree> {
    let page = proptest::option::weighted(0.9, 0..TEXTS.len());
    let pages = proptest::collection::vec(page, 4);
    let snippet = proptest::option::of(proptest::sample::select(vec!["One.", "Two."]));
    (pages, snippet, any::<bool>()).prop_map(|(pages, snippet, image)| tree(&pages, snippet, image))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn cached_articles_never_change_the_release(
        trees in proptest::collection::vec(edits(), 2..4)
    ) {
        let options = Options::default();
        let mut before: Option<Built> = None;
        for tree in trees {
            let input = input(tree);
            let alone = build(&input, &options);
            let read = |item: &Item| {
                let release = &before.as_ref()?.release;
                let mut files = release.files();
                let (_, file) = files.find(|(_, file)| file.digest() == item.digest)?;
                Some(file.clone())
            };
            let previous = Previous {
                // The articles are read as the next process reads them.
                articles: before.as_ref().map_or_else(Articles::default, |built| {
                    Articles::from_bytes(&built.articles.to_bytes()).unwrap()
                }),
                release: before.as_ref().map(|built| PreviousRelease {
                    inventory: built.release.inventory(),
                    file: &read,
                }),
            };
            let after = build_after(&input, &options, &previous);
            prop_assert_eq!(after.release.id(), alone.release.id());
            prop_assert_eq!(&after.report.diagnostics, &alone.report.diagnostics);
            before = Some(after);
        }
    }
}

#[test]
fn an_article_is_reused_unless_its_page_or_snippet_changed() {
    let render = |snippet, articles| {
        let input = input(tree(&[Some(0), Some(3), None, None], Some(snippet), false));
        let previous = Previous {
            articles,
            release: None,
        };
        build_after(&input, &Options::default(), &previous).articles
    };
    let first = render("One.", Articles::default());
    let again = render("One.", first.clone());
    let other = render("Two.", first.clone());
    assert_eq!(first.shared(&again), 2);
    assert_eq!(first.shared(&other), 1);
}

#[test]
fn each_language_has_a_list_of_its_own_pages() {
    let config = r#"{"name": "A", "navigation": {"languages": [
        {"language": "en", "pages": ["index"]}, {"language": "fr", "pages": ["fr/index"]}]}}"#;
    let file = |path: &str, text: &str| (TreePath::parse(path).unwrap(), text.to_owned().into());
    let files = [
        file("docs.json", config),
        file("index.mdx", "English."),
        file("fr/index.mdx", "---\ntitle: Bienvenue\n---\n"),
    ];
    let release = of_tree(Tree::from_files(files, [])).release;
    let french = text(&release, "texts/fr/llms.txt");
    assert!(
        french.contains("Bienvenue") && !french.contains("index.md)"),
        "{french}"
    );
    assert!(!text(&release, "texts/llms.txt").contains("Bienvenue"));
    assert!(release.file("texts/en/llms.txt").is_none());
}

/// A site of two versions in two languages.
const PARTS: &str = r#"{"name": "Acme", "navigation": {"languages": [
    {"language": "en", "versions": [{"version": "v2 (beta)", "pages": ["a"]}, {"version": "v1", "pages": ["v1/a"]}]},
    {"language": "jp", "pages": ["jp/a"]}]}}"#;

#[test]
fn each_version_of_each_language_is_searched_apart() {
    let page = |path: &str, text: &str| (TreePath::parse(path).unwrap(), text.to_owned().into());
    let files = [
        page("docs.json", PARTS),
        page("a.mdx", "# Second\n\nWhales sing."),
        page("v1/a.mdx", "# First\n\nWhales sang."),
        page("jp/a.mdx", "# 最初\n\n東京に住んでいます。"),
    ];
    let Built { release, .. } = of_tree(Tree::from_files(files, []));
    let file = release.file(SEARCH_FILE).unwrap().bytes.clone();
    let index = Index::open(&file).unwrap();
    let parts: Vec<_> = index.parts().cloned().collect();
    let part = |language: &str, version: Option<&str>, is_default| PartInfo {
        language: language.to_owned(),
        version: version.map(str::to_owned),
        is_default,
        pages: 1,
    };
    assert_eq!(
        parts,
        [
            part("en", Some("v2 (beta)"), true),
            part("en", Some("v1"), false),
            part("ja", None, true),
        ]
    );
    assert_eq!(found(&release, "whale"), ["a"]);
    for (page, part) in [
        ("a", "data-language=\"en\" data-version=\"v2 (beta)\""),
        ("jp/a", "data-language=\"ja\" data-finder"),
    ] {
        let html = text(&release, &format!("pages/{page}.html"));
        assert!(html.contains(part), "{page}: {html}");
    }
}

#[test]
fn a_sitemap_lists_pages_whose_own_address_is_canonical() {
    let config = r#"{"name": "Acme", "navigation": {"pages": ["index", "a", "b", "c", "d", "e", "guides/ö"]}}"#;
    let page = |canonical: &str| format!("---\ncanonical: {canonical}\n---\nText.");
    let pages = [
        ("docs.json", config.to_owned()),
        ("index.mdx", page("https://docs.acme.com/")),
        ("a.mdx", page("/b")),
        ("b.mdx", page("./b")),
        ("c.mdx", page("https://old.acme.com/b")),
        ("d.mdx", page("https://acme.com/docs/d/")),
        ("e.mdx", page("https://acme.com/docs/e?all")),
        ("guides/ö.mdx", page("https://acme.com/guides/%C3%B6")),
    ];
    let pages = pages.map(|(path, text)| (TreePath::parse(path).unwrap(), text.into()));
    let release = of_tree(Tree::from_files(pages, [])).release;
    let sitemap = text(&release, "texts/sitemap.xml");
    let listed: Vec<&str> = sitemap
        .lines()
        .filter_map(|line| {
            line.strip_prefix("<url><loc>")?
                .strip_suffix("</loc></url>")
        })
        .map(|address| address.strip_prefix(BASE_URL_PLACEHOLDER).unwrap())
        .collect();
    assert_eq!(listed, ["/", "/b", "/d", "/guides/%C3%B6"], "{sitemap}");
}

/// Reads the addresses of the pages in a list.
fn addresses(list: &str) -> Vec<&str> {
    let links = list.split("](https://base-url.invalid/").skip(1);
    let addresses = links
        .filter_map(|rest| rest.split_once(')'))
        .map(|(address, _)| address);
    addresses
        .filter(|address| address.ends_with(".md"))
        .collect()
}

#[test]
fn a_long_list_is_divided_and_loses_no_page() {
    let description = "What this page is about, in many words. ".repeat(8);
    let page = format!("---\ndescription: {description}\n---\nText.\n");
    let groups = ["Guides", "Guides for experts", "Other"].map(|label| {
        let pages = (0..200).map(|n| format!("\"{}/p{n}\"", label.replace(' ', "-")));
        let pages = pages.collect::<Vec<_>>().join(",");
        format!("{{\"group\":\"{label}\",\"pages\":[{pages}]}}")
    });
    let config = format!(
        "{{\"name\":\"A\",\"navigation\":{{\"groups\":[{}]}}}}",
        groups.join(",")
    );
    let file = |path: &str, text: &str| (TreePath::parse(path).unwrap(), text.to_owned().into());
    let mut files = vec![file("docs.json", &config)];
    for directory in ["Guides", "Guides-for-experts", "Other"] {
        files.extend((0..200).map(|n| file(&format!("{directory}/p{n}.mdx"), &page)));
    }
    let release = of_tree(Tree::from_files(files, [])).release;
    let first = text(&release, "texts/llms.txt");
    assert_eq!(addresses(&first), [""; 0], "the first list names the parts");
    let mut listed = Vec::new();
    let mut parts = 0;
    for (path, file) in release.files() {
        let path = path.to_string();
        let Some(name) = path
            .strip_prefix("texts/")
            .filter(|name| name.ends_with("llms.txt"))
        else {
            continue;
        };
        let list = String::from_utf8_lossy(&file.bytes).into_owned();
        // The limit holds for a long domain and base path.
        let address = format!("https://{}.test/docs", "a".repeat(52));
        assert_eq!(address.len(), 70);
        let served = list.replace("https://base-url.invalid", &address);
        assert!(served.chars().count() < 50_000, "{name}: {}", served.len());
        assert!(
            name == "llms.txt" || first.contains(&format!("/{name})")),
            "{name}: {first}"
        );
        parts += 1;
        listed.extend(addresses(&list).into_iter().map(str::to_owned));
    }
    assert!(parts > 4, "{first}");
    listed.sort();
    let count = listed.len();
    listed.dedup();
    assert_eq!(
        (listed.len(), count),
        (600, 600),
        "each page is in one list"
    );

    let agents = text(&release, "texts/llms-agents.txt");
    assert!(agents.len() <= 8 << 10, "{}", agents.len());
    assert!(agents.contains("- Guides/: p0, p1, "), "{agents}");
    assert!(agents.contains("- Other/: "), "{agents}");
}

#[test]
fn the_first_list_has_the_default_versions_and_names_the_others() {
    let config = r#"{"name": "A", "navigation": {"tabs": [
        {"tab": "Pay", "versions": [
            {"version": "v2", "default": true, "pages": ["pay"]},
            {"version": "v1 (old)", "pages": ["old"]}]},
        {"tab": "Help", "pages": ["help"]}]}}"#;
    let file = |path: &str, text: &str| (TreePath::parse(path).unwrap(), text.to_owned().into());
    let files = [
        file("docs.json", config),
        file("pay.mdx", "Pay."),
        file("old.mdx", "Old."),
        file("help.mdx", "Help."),
    ];
    let release = of_tree(Tree::from_files(files, [])).release;
    let first = text(&release, "texts/llms.txt");
    assert_eq!(addresses(&first), ["pay.md", "help.md"], "{first}");
    assert!(
        first.contains("- [v1 (old)](https://base-url.invalid/v1-old/llms.txt)"),
        "{first}"
    );
    assert_eq!(
        addresses(&text(&release, "texts/v1-old/llms.txt")),
        ["old.md"]
    );
    let agents = text(&release, "texts/llms-agents.txt");
    assert!(agents.contains("- /: pay, help\n"), "{agents}");
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

#[test]
fn a_changelog_has_a_feed_with_whole_addresses() {
    let log = "---\ntitle: News & more\nlastUpdatedDate: 2026-02-01T10:00:00Z\n---\n\n<Update label=\"2026-01-31\" description=\"v1 <x>\">\nSee [a](./a).\n</Update>\n\n<div>\n<Update label=\"v0.9\">\n## First\n</Update>\n</div>\n";
    let Built { release, .. } = built(&[
        ("index.mdx", "Text."),
        ("guides/a.mdx", log),
        (
            "hidden.mdx",
            "---\nhidden: true\n---\n<Update label=\"v1\">Secret.</Update>",
        ),
    ]);
    let feed = text(&release, "texts/guides/a/rss.xml");
    for piece in [
        "<title>News &amp; more - Acme</title>",
        "<title>2026-01-31: v1 &lt;x&gt;</title>",
        "<pubDate>Sat, 31 Jan 2026 00:00:00 +0000</pubDate>",
        "<title>v0.9</title>",
        &format!("&lt;a href=&quot;{BASE_URL_PLACEHOLDER}/guides/a&quot;&gt;a&lt;/a&gt;"),
        &format!("<link>{BASE_URL_PLACEHOLDER}/guides/a#"),
    ] {
        assert!(feed.contains(piece), "{piece} {feed}");
    }
    assert_eq!(feed.matches("<item>").count(), 2);
    assert_eq!(feed.matches("<pubDate>").count(), 1);
    let page = text(&release, "pages/guides/a.html");
    assert!(page.contains("<link rel=alternate type=\"application/rss+xml\" title=\"News &amp; more\" href=\"a/rss.xml\">"));
    assert!(page.contains("<time datetime=\"2026-02-01\">"));
    assert!(release.file("texts/hidden/rss.xml").is_none());
    assert!(!text(&release, "pages/index.html").contains("rss"));
    let sitemap = text(&release, "texts/sitemap.xml");
    assert!(
        sitemap.contains("/guides/a</loc><lastmod>2026-02-01</lastmod>"),
        "{sitemap}"
    );
}

#[test]
fn the_markdown_of_pages_ends_with_the_instructions_for_agents() {
    let config = CONFIG.replacen(
        '{',
        r#"{"markdown": {"instructions": ["Use version 2.", "Never version 1."]}, "#,
        1,
    );
    let tree = |config: &str| {
        let files = [("docs.json", config), ("index.mdx", "# Welcome\n\nText.")];
        let file =
            |(path, text): (&str, &str)| (TreePath::parse(path).unwrap(), text.to_owned().into());
        Tree::from_files(files.into_iter().map(file), [])
    };
    let usual = text(&of_tree(tree(CONFIG)).release, "pages/index.md");
    let Built { release, .. } = of_tree(tree(&config));
    let page = text(&release, "pages/index.md");
    let added = page.strip_prefix(&*usual).unwrap();
    assert!(added.starts_with("\n> Instructions for agents"), "{page}");
    assert!(
        added.ends_with(":\n>\n> Use version 2.\n> Never version 1.\n"),
        "{page}"
    );
    assert!(!text(&release, "texts/llms-full.txt").contains("version 1"));
}
