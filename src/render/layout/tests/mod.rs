//! The rules of the navigation, as readers see them.

mod head;
mod navigation;

use super::*;
use crate::docs::{self, Docs};
use crate::render::article::{self, Source};
use crate::render::link::{Asset, Map};
use crate::response::Encoding;
use crate::source::{Tree, TreePath};

/// The documentation of a configuration; its pages exist, each with its path as text.
fn docs(navigation: &str, pages: &[(&str, &str)]) -> (Docs, Map) {
    let path = |path: &str| TreePath::parse(path).unwrap();
    let config = format!("{{\"name\": \"Acme\", {navigation}}}");
    let files = pages
        .iter()
        .map(|(slug, text)| (path(&format!("{slug}.mdx")), (*text).to_owned().into()))
        .chain([(path("docs.json"), config.into())]);
    let tree = Tree::from_files(files, []);
    let (docs, found) = docs::read(&tree, &docs::Options::default());
    assert!(!found.iter().any(|found| found.is_error()), "{found:#?}");
    let pages = docs
        .navigation
        .pages
        .iter()
        .map(|page| path_of(page).into());
    let map = Map {
        pages: pages.collect(),
        ..Map::default()
    };
    (docs, map)
}

fn page(docs: &Docs, map: &Map, path: &str) -> String {
    written(docs, map, path, Mode::Default)
}

fn written(docs: &Docs, map: &Map, path: &str, mode: Mode) -> String {
    let assets = Assets::new(docs, "");
    let layout = Layout::new(docs, map, &assets);
    let (id, page) = docs
        .navigation
        .pages()
        .find(|(_, page)| path_of(page) == path)
        .unwrap();
    let file = format!("{}.mdx", page.slug);
    let source = crate::mdx::Source {
        title: &page.title,
        ..crate::mdx::Source::new(&file, "Text.")
    };
    let read = crate::mdx::read(&source, &|_| None);
    let article = article::render(&Source::alone(&source, &read), map);
    layout.page(id, &article, mode)
}

#[track_caller]
fn shows(html: &str, pieces: &[&str]) {
    for piece in pieces {
        assert!(html.contains(piece), "{piece} is not in {html}");
    }
}

#[test]
fn labels_of_authors_are_text() {
    let (docs, map) = docs(
        r#""navigation": {"groups": [{"group": "<script>1</script>", "tag": "\"><img>", "pages": ["a"]}]}"#,
        &[(
            "a",
            "---\ntitle: \"<b>\"\ndescription: \"\\\"><script>\"\n---\n",
        )],
    );
    let html = page(&docs, &map, "a");
    // The script of the page, and its linked data.
    assert_eq!(html.matches("<script").count(), 2, "{html}");
    assert!(!html.contains("<b>") && !html.contains("<img"));
}

#[test]
fn links_of_the_404_page_work_at_any_path() {
    let (docs, map) = docs(
        r#""banner": {"content": "New: [b](/guides/b)"}, "navigation": {"pages": ["a", "guides/b"]}"#,
        &[("a", ""), ("guides/b", "")],
    );
    let assets = Assets::new(&docs, "");
    let html = Layout::new(&docs, &map, &assets).not_found(None);
    let placeholder = crate::discovery::BASE_URL_PLACEHOLDER;
    assert!(html.contains(&format!("New: <a href=\"{placeholder}/guides/b\">b</a>")));
    for piece in html.split("href=\"").skip(1) {
        assert!(
            piece.starts_with(placeholder) || piece.starts_with("#_content"),
            "{piece}"
        );
    }
}

#[test]
fn a_logo_is_a_picture_or_else_the_name_of_the_site() {
    let logo = |logo: &str| {
        let navigation = format!("\"logo\": {logo}, \"navigation\": {{\"pages\": [\"guides/a\"]}}");
        let (docs, mut map) = docs(&navigation, &[("guides/a", "")]);
        map.assets.insert("l.svg".into(), Asset::default());
        let html = page(&docs, &map, "guides/a");
        let (_, inside) = html.split_once("<a class=logo").unwrap();
        let (_, inside) = inside.split_once('>').unwrap();
        inside.split_once("</a>").unwrap().0.to_owned()
    };
    let image = |src: &str, more: &str| format!("<img height=28 src=\"{src}\" alt=\"Acme\"{more}>");
    let light = image("../l.svg", " class=\"only-light\"");
    let dark = image("https://a.test/d.svg", " class=\"only-dark\"");
    for (written, shown) in [
        ("\"/l.svg\"", image("../l.svg", "")),
        ("\"./l.svg\"", image("../l.svg", "")),
        (
            "{\"light\": \"/l.svg\", \"dark\": \"https://a.test/d.svg\"}",
            light + &dark,
        ),
        (
            "{\"light\": \"/none.svg\", \"dark\": \"/l.svg\"}",
            image("../l.svg", ""),
        ),
        (
            "{\"light\": \"/none.svg\", \"dark\": \"http://a.test/d.svg\"}",
            "Acme".to_owned(),
        ),
    ] {
        assert_eq!(logo(written), shown, "{written}");
    }
}

#[test]
fn the_page_that_a_site_opens_with_is_no_article() {
    let (docs, map) = docs(
        r#""navigation": {"pages": ["index", "a"]}"#,
        &[("index", ""), ("a", "")],
    );
    shows(
        &written(&docs, &map, "", Mode::Default),
        &["\"@type\":\"WebPage\""],
    );
    shows(
        &written(&docs, &map, "a", Mode::Default),
        &["\"@type\":\"TechArticle\""],
    );
}

#[test]
fn the_layout_has_the_language_of_its_page() {
    let (docs, map) = docs(
        r#""navigation": {"languages": [{"language": "he", "pages": ["a"]}, {"language": "uz", "pages": ["b"]}]}"#,
        &[("a", ""), ("b", "")],
    );
    shows(&page(&docs, &map, "a"), &["dir=rtl", ">העתקת הדף</button>"]);
    shows(
        &page(&docs, &map, "b"),
        &["lang=\"uz\"", ">Copy page</button>"],
    );
}

#[test]
fn only_a_page_with_a_source_file_has_an_edit_link() {
    let (docs, map) = docs(r#""navigation": {"pages": ["a"]}"#, &[("a", "")]);
    let assets = Assets::new(&docs, "");
    let repository = crate::site::Repository {
        url: "https://github.com/acme/docs".into(),
        branch: "main".into(),
        directory: "".into(),
    };
    let edit = repository.edit_link();
    let layout = Layout::new(&docs, &map, &assets).edited_at(edit.as_ref());
    let (id, _) = docs.navigation.pages().next().unwrap();
    let address = "https://github.com/acme/docs/edit/main/a.mdx";
    assert_eq!(layout.edit(id).as_deref(), Some(address));
    assert_eq!(Layout::new(&docs, &map, &assets).edit(id), None);
}

#[test]
fn the_menu_of_a_page_has_the_entries_of_contextual() {
    let menu = |contextual: &str| {
        let config = format!(r#""contextual": {contextual}, "navigation": {{"pages": ["a"]}}"#);
        let (docs, map) = docs(&config, &[("a", "")]);
        let html = page(&docs, &map, "a");
        let (_, actions) = html.split_once("<div class=actions>").unwrap();
        actions.split_once("</div>").unwrap().0.to_owned()
    };
    let own = menu(
        r#"{"options": ["claude", "cursor", {"title": "Ask <us>", "description": "Now", "href": "https://us.test/?q=$page"}]}"#,
    );
    shows(
        &own,
        &[
            " hidden>View as Markdown",
            "data-mcp=\"cursor\"><summary>Open in</summary>",
            "data-ask=\"https://claude.ai/new?q=\">Claude</a>",
            "data-to=\"https://us.test/?q=$page\">Ask &lt;us&gt; <small>Now</small></a>",
        ],
    );
    assert!(!own.contains("copy-page"));
    let none = menu(r#"{"options": ["copy", "view"]}"#);
    assert!(none.contains("copy-page") && !none.contains("<details") && !none.contains("hidden"));
    shows(
        &menu("{}"),
        &["copy-page", "data-mcp=\"cursor vscode mcp\"><summary>MCP<"],
    );
}

#[test]
fn the_page_for_missing_paths_has_the_texts_of_the_site() {
    let (docs, map) = docs(
        r#""errors": {"404": {"title": "Lost & found", "description": "Try [b](/b) or <script>1</script>."}},
           "navigation": {"languages": [{"language": "en", "pages": ["a", "b"]}, {"language": "fr", "pages": ["fr/a"]}]}"#,
        &[("a", ""), ("b", ""), ("fr/a", "")],
    );
    let assets = Assets::new(&docs, "");
    let layout = Layout::new(&docs, &map, &assets);
    let html = layout.not_found(None);
    shows(
        &html,
        &[
            "<title>Lost &amp; found - Acme",
            "<h1>Lost &amp; found</h1><div class=lead>",
            "/b\">b</a>",
        ],
    );
    assert_eq!(html.matches("<script").count(), 1);
    assert!(!html.contains("http-equiv"));
    // The texts are in the first language of the site.
    let french = docs
        .navigation
        .pages()
        .find(|(_, page)| &*page.url == "/fr/a");
    let html = layout.not_found(french.map(|(id, _)| id));
    assert!(!html.contains("Lost"), "{html}");
}

#[test]
fn a_site_may_take_readers_of_missing_paths_to_its_first_page() {
    let (docs, map) = docs(
        r#""errors": {"404": {"redirect": true}}, "search": {"prompt": "Ask"}, "navigation": {"pages": ["guides/a"]}"#,
        &[("guides/a", "")],
    );
    let assets = Assets::new(&docs, "");
    let html = Layout::new(&docs, &map, &assets).not_found(None);
    let placeholder = crate::discovery::BASE_URL_PLACEHOLDER;
    let refresh = format!("<meta http-equiv=refresh content=\"0;url={placeholder}/guides/a\">");
    shows(&html, &[&refresh, "<span>Ask</span>"]);
}

#[test]
fn related_pages_are_linked_below_the_article() {
    let related = "---\nrelated:\n  - ./b\n  - Other: /guides/b#x\n  - https://out.test/x\n  - /none\n  - Bad: javascript:1\n---\n";
    let (docs, map) = docs(
        r#""navigation": {"pages": ["guides/a", "guides/b"]}"#,
        &[
            ("guides/a", related),
            ("guides/b", "---\ntitle: About b\nrelated: false\n---\n"),
        ],
    );
    let html = page(&docs, &map, "guides/a");
    shows(
        &html,
        &[
            "<a href=\"b\">About b</a>",
            "<a href=\"b#x\">Other</a>",
            "<a href=\"https://out.test/x\" rel=noopener>https://out.test/x</a>",
        ],
    );
    let (_, list) = html.split_once("<nav class=related").unwrap();
    let (list, _) = list.split_once("</nav>").unwrap();
    assert_eq!(list.matches("<li>").count(), 3);
    assert!(!page(&docs, &map, "guides/b").contains("class=related"));
    let lines: Vec<_> = broken_related(&docs, &map)
        .iter()
        .map(|found| found.location.unwrap().line)
        .collect();
    assert_eq!(lines, [6, 7]);
}

#[test]
fn frontmatter_hides_parts_of_the_layout() {
    let specification = r#"{"openapi": "3.1.0", "info": {"title": "P", "version": "1"}, "servers": [{"url": "https://api.test"}], "paths": {"/a": {"get": {}}, "/b": {"get": {}}}}"#;
    let path = |path: &str| TreePath::parse(path).unwrap();
    let config = r#"{"name": "A", "api": {"openapi": "a.json", "playground": {"display": "interactive"}}, "navigation": {"pages": ["a", "b", "c"]}}"#;
    let files = [
        ("docs.json", config),
        ("a.json", specification),
        ("a.mdx", "---\nopenapi: GET /a\n---\n"),
        ("b.mdx", "---\nopenapi: GET /b\nplayground: none\n---\n"),
        ("c.mdx", "---\nhideFooterPagination: true\n---\n"),
    ];
    let files = files.map(|(name, text)| (path(name), text.into()));
    let (docs, _) = docs::read(&Tree::from_files(files, []), &docs::Options::default());
    let map = Map::default();
    let has = |page_path: &str, piece: &str| page(&docs, &map, page_path).contains(piece);
    assert!(
        has("a", "class=\"try-it") && !has("b", "class=\"try-it") && !has("c", "class=\"try-it")
    );
    assert!(has("a", "<script type=module") && !has("b", "<script type=module"));
    assert!(has("b", "class=neighbours") && !has("c", "class=neighbours"));
    let assets = Assets::new(&docs, "");
    let servers = Layout::new(&docs, &map, &assets).servers();
    let pages: Vec<_> = servers
        .iter()
        .flat_map(|(origin, pages)| pages.iter().map(move |page| format!("{origin} {page}")))
        .collect();
    assert_eq!(pages, ["https://api.test a"]);
}
