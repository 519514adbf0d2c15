//! The rules of the navigation, as readers see them.

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
fn n3_the_title_of_a_group_opens_its_root() {
    let (docs, map) = docs(
        r#""navigation": {"groups": [{"group": "Start", "root": "a", "pages": ["b"]}, {"group": "More", "pages": ["c"]}]}"#,
        &[("a", ""), ("b", ""), ("c", "")],
    );
    let html = page(&docs, &map, "b");
    shows(
        &html,
        &[
            "<p class=group-title><a href=\"a\">Start</a></p>",
            "<p class=group-title>More</p>",
            "<a href=\"b\" aria-current=page>B</a>",
        ],
    );
}

#[test]
fn n4_a_root_page_lists_the_children_of_its_group() {
    let navigation = r#""navigation": {"directory": "card", "groups": [{"group": "Start", "root": "a", "pages": ["b", {"group": "In", "pages": ["c"]}]}]}"#;
    let pages = [
        ("a", ""),
        ("b", "---\ndescription: About b.\n---\n"),
        ("c", ""),
    ];
    let (card, map) = docs(navigation, &pages);
    shows(
        &page(&card, &map, "a"),
        &[
            "<ul class=\"cards cols-2 listing\">",
            "<a href=\"b\">B</a></p><p>About b.</p>",
            "<a href=\"c\">In</a></p><p>C</p>",
        ],
    );
    assert!(!page(&card, &map, "b").contains("listing"));
    let (rows, map) = docs(&navigation.replace("card", "accordion"), &pages);
    shows(
        &page(&rows, &map, "a"),
        &[
            "<ul class=\"listing rows\">",
            "<li><details><summary>In</summary><ul><li><a href=\"c\">C</a></li></ul></details>",
        ],
    );
    let (none, map) = docs(&navigation.replace("card", "none"), &pages);
    assert!(!page(&none, &map, "a").contains("listing"));
}

#[test]
fn n5_nested_groups_are_closed_unless_expanded_or_read() {
    let (docs, map) = docs(
        r#""navigation": {"groups": [{"group": "Top", "pages": ["a", {"group": "Shut", "pages": ["b"]}, {"group": "Wide", "expanded": true, "pages": ["c"]}]}]}"#,
        &[("a", ""), ("b", ""), ("c", "")],
    );
    let html = page(&docs, &map, "a");
    shows(
        &html,
        &[
            "<details><summary>Shut</summary>",
            "<details open><summary>Wide</summary>",
        ],
    );
    shows(
        &page(&docs, &map, "b"),
        &["<details open><summary>Shut</summary>"],
    );
}

#[test]
fn drilldown_makes_the_title_of_a_group_a_link_to_its_first_page() {
    let navigation = r#""interaction": {"drilldown": true}, "navigation": {"groups": [{"group": "Top", "pages": ["a", {"group": "In", "pages": ["b"]}]}]}"#;
    let pages = [("a", ""), ("b", "")];
    let (docs_true, map) = docs(navigation, &pages);
    shows(
        &page(&docs_true, &map, "a"),
        &["<li class=nested><a href=\"b\">In</a><details><summary aria-label=\"Pages of In\">"],
    );
    let (docs_false, map) = docs(&navigation.replace("true", "false"), &pages);
    shows(&page(&docs_false, &map, "a"), &["<summary>In</summary>"]);
}

#[test]
fn n7_the_list_of_versions_links_to_the_same_page() {
    let (docs, map) = docs(
        r#""navigation": {"versions": [{"version": "v2", "tag": "Latest", "pages": ["v2/a", "v2/b"]}, {"version": "v1", "default": true, "pages": ["v1/a", "v1/c"]}]}"#,
        &[("v2/a", ""), ("v2/b", ""), ("v1/a", ""), ("v1/c", "")],
    );
    shows(
        &page(&docs, &map, "v2/a"),
        &[
            "<summary><span><small>Version</small> v2 <span class=badge>Latest</span></span></summary>",
            "<a href=\"a\" aria-current=true>v2 <span class=badge>Latest</span></a>",
            "<a href=\"../v1/a\">v1 <span class=\"badge faint\">default</span></a>",
            "You are reading <strong>v2</strong>.</span> <a href=\"../v1/a\">Go to v1</a>",
        ],
    );
    assert!(!page(&docs, &map, "v1/c").contains("class=outdated"));
    shows(&page(&docs, &map, "v2/b"), &["<a href=\"../v1/a\">v1"]);
}

#[test]
fn n8_a_language_has_its_own_banner_footer_and_navbar() {
    let (docs, map) = docs(
        r#""banner": {"content": "Site"}, "navigation": {"languages": [{"language": "en", "pages": ["a"]}, {"language": "ar", "banner": {"content": "**Hers** [x](javascript:alert(1))", "dismissible": true}, "footer": {"socials": {"github": "https://github.com/acme"}}, "navbar": {"links": [{"label": "Nav", "href": "https://a.test"}]}, "pages": ["ar/a"]}]}"#,
        &[("a", ""), ("ar/a", "")],
    );
    let html = page(&docs, &map, "ar/a");
    shows(
        &html,
        &[
            "<html lang=\"ar\" dir=rtl data-banner=",
            " data-banner><p><strong>Hers</strong> <a>x</a>",
            "<a href=\"https://github.com/acme\" rel=noopener>GitHub</a>",
            "<a href=\"https://a.test\" rel=noopener>Nav</a>",
            "<a href=\"../a\" lang=\"en\" hreflang=\"en\">English</a>",
        ],
    );
    let html = page(&docs, &map, "a");
    shows(&html, &["<html lang=\"en\"", "<p>Site</p>"]);
    assert!(!html.contains("data-banner"));
}

#[test]
fn tabs_anchors_and_menus_link_to_their_first_pages() {
    let (docs, map) = docs(
        r#""navigation": {"global": {"anchors": [{"anchor": "Blog", "href": "https://blog.test"}]}, "tabs": [{"tab": "Guides", "anchors": [{"anchor": "Use", "pages": ["a"]}, {"anchor": "Grow", "pages": ["b"]}]}, {"tab": "API", "menu": [{"item": "REST", "description": "Over HTTP.", "pages": ["c"]}]}, {"tab": "Out", "href": "https://out.test"}]}"#,
        &[("a", ""), ("b", ""), ("c", "")],
    );
    shows(
        &page(&docs, &map, "a"),
        &[
            "<li class=current><a href=\"a\" aria-current=true>Guides</a></li>",
            "<summary>API</summary><ul><li><a href=\"c\">REST<small>Over HTTP.</small></a>",
            "<a href=\"https://out.test\" rel=noopener>Out</a>",
            "<a href=\"a\" aria-current=true>Use</a>",
            "<a href=\"b\">Grow</a>",
            "<a href=\"https://blog.test\" rel=noopener>Blog</a>",
        ],
    );
}

#[test]
fn eyebrows_show_the_section_or_the_breadcrumb() {
    let navigation = r#""styling": {"eyebrows": "breadcrumbs"}, "navigation": {"tabs": [{"tab": "T", "groups": [{"group": "G", "pages": ["a", "b"]}]}]}"#;
    let pages = [("a", ""), ("b", "")];
    let (whole, map) = docs(navigation, &pages);
    shows(
        &page(&whole, &map, "a"),
        &["<ol><li>T</li><li>G</li></ol>", "<small>Next</small>B</a>"],
    );
    let (section, map) = docs(&navigation.replace("breadcrumbs", "section"), &pages);
    shows(&page(&section, &map, "a"), &["<p class=eyebrow>G</p>"]);
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
fn products_and_dropdowns_are_chosen_from_lists() {
    let (products, map) = docs(
        r#""navigation": {"products": [{"product": "Pay", "icon": "/p.svg", "description": "Money.", "pages": ["a"]}, {"product": "Ship", "pages": ["b"]}, {"product": "Out", "href": "https://out.test"}]}"#,
        &[("a", ""), ("b", "")],
    );
    shows(
        &page(&products, &map, "a"),
        &[
            "<details class=selector data-kind=\"products\" name=choices><summary><span><small class=unseen>Section</small> Pay</span></summary>",
            "<a href=\"a\" aria-current=true>Pay<small>Money.</small></a>",
            "<a href=\"b\">Ship</a>",
            "<a href=\"https://out.test\" rel=noopener>Out</a>",
        ],
    );
    let (docs, map) = docs(
        r#""navigation": {"dropdowns": [{"dropdown": "Use", "pages": ["a"]}, {"dropdown": "Away", "hidden": true, "pages": ["b"]}]}"#,
        &[("a", ""), ("b", "")],
    );
    let html = page(&docs, &map, "a");
    shows(&html, &["data-kind=\"dropdowns\""]);
    assert!(!html.contains("Away"));
    shows(&page(&docs, &map, "b"), &["</small> Away</span>"]);
}

#[test]
fn an_icon_that_many_entries_have_is_written_once() {
    let (docs, map) = docs(
        r#""navigation": {"groups": [{"group": "A", "icon": "star", "pages": ["a"]}, {"group": "B", "icon": "star", "pages": ["b"]}, {"group": "C", "icon": "house", "pages": ["c"]}]}"#,
        &[("a", "---\nicon: fa-star\n---\n"), ("b", ""), ("c", "")],
    );
    let html = page(&docs, &map, "b");
    let ids: Vec<_> = html.split("<path id=\"").skip(1).collect();
    let ids: Vec<_> = ids.iter().map(|id| id.split('"').next().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    let again = format!("<use href=\"#{}\"/></svg>", ids[0]);
    assert_eq!(html.matches(&again).count(), 2, "{html}");
    assert_eq!(html.matches("<use ").count(), 2, "{html}");
}

#[test]
fn a_page_without_a_sidebar_has_the_selectors_in_its_header() {
    let (docs, map) = docs(
        r#""navigation": {"versions": [{"version": "1", "pages": ["a"]}, {"version": "2", "pages": ["b"]}]}"#,
        &[("a", ""), ("b", "")],
    );
    let with = written(&docs, &map, "a", Mode::Default);
    let without = written(&docs, &map, "a", Mode::Custom);
    let header = |html: &str| html.split("</header>").next().unwrap().to_owned();
    assert!(!header(&with).contains("data-kind=\"versions\""));
    assert!(header(&without).contains("data-kind=\"versions\""));
    shows(
        &with,
        &[
            "popovertarget=_pages",
            "<nav class=sidebar id=_pages popover",
        ],
    );
    // The sidebar is a drawer, on narrow screens only.
    shows(
        &without,
        &[
            "popovertarget=_pages",
            "<nav class=\"sidebar drawer\" id=_pages popover",
        ],
    );
    shows(&without, &["<h1 class=unseen>"]);
}

#[test]
fn a_label_that_follows_itself_is_once_in_the_breadcrumb() {
    let (docs, map) = docs(
        r#""styling": {"eyebrows": "breadcrumbs"}, "navigation": {"tabs": [{"tab": "Design", "groups": [{"group": "Design", "pages": ["b", "a"]}]}]}"#,
        &[("a", ""), ("b", "")],
    );
    let html = written(&docs, &map, "a", Mode::Default);
    let (_, breadcrumbs) = html.split_once("<nav class=eyebrow").unwrap();
    let (breadcrumbs, _) = breadcrumbs.split_once("</nav>").unwrap();
    assert_eq!(breadcrumbs.matches("Design").count(), 1, "{breadcrumbs}");
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
fn the_kind_of_a_selector_is_not_written_twice() {
    let (docs, map) = docs(
        r#""navbar": {"links": [{"type": "github", "href": "https://github.com/a/b"}]},
           "navigation": {"versions": [{"version": "Version 2026-07-28", "pages": ["a"]}, {"version": "2.0", "pages": ["b"]}]}"#,
        &[("a", ""), ("b", "")],
    );
    let summary = |page: &str| {
        let html = written(&docs, &map, page, Mode::Default);
        let (_, after) = html.split_once("name=choices><summary>").unwrap();
        after.split_once("</summary>").unwrap().0.to_owned()
    };
    assert_eq!(summary("a"), "<span>Version 2026-07-28</span>");
    assert_eq!(summary("b"), "<span><small>Version</small> 2.0</span>");
    shows(&written(&docs, &map, "a", Mode::Default), &[">GitHub</a>"]);
}

#[test]
fn versions_and_languages_link_to_the_alternate_page() {
    let (docs, map) = docs(
        r#""navigation": {"languages": [{"language": "en", "pages": ["index", "guides/start", "guides/more", "run"]}, {"language": "cn", "pages": ["zh-Hans/index", "zh-Hans/guides/start"]}, {"language": "fr", "pages": ["fr/index", "guides/fr/start"]}]}"#,
        &[
            ("index", ""),
            ("guides/start", ""),
            ("guides/more", ""),
            ("run", ""),
            ("zh-Hans/index", ""),
            ("zh-Hans/guides/start", ""),
            ("fr/index", ""),
            ("guides/fr/start", ""),
        ],
    );
    let links = |path: &str| -> Vec<String> {
        let html = page(&docs, &map, path);
        let list = html.split("data-kind=\"languages\"").nth(1).unwrap();
        let list = list.split("</details>").next().unwrap();
        let hrefs = list.split("href=\"").skip(1);
        let hrefs = hrefs.map(|rest| rest.split('"').next().unwrap().to_owned());
        hrefs.filter(|href| href.contains('/')).collect()
    };
    // Added, by the tag of the language; inserted deeper.
    assert_eq!(
        links("guides/start"),
        ["../zh-Hans/guides/start", "fr/start"]
    );
    // Left out; replaced, as far as the paths agree.
    assert_eq!(
        links("zh-Hans/guides/start"),
        ["../../guides/start", "../../fr"]
    );
    // The nearest directory.
    assert_eq!(
        links("guides/more"),
        ["../zh-Hans/guides/start", "fr/start"]
    );
    // The first page: a word that names no language is not taken for one.
    shows(
        &page(&docs, &map, "run"),
        &[
            "<a href=\"zh-Hans\" lang=\"zh-Hans\"",
            "<a href=\"fr\" lang=\"fr\"",
        ],
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

/// The pages of a documentation with long titles, in nested groups that are open, closed, hidden
/// and repeated.
fn with_long_sidebar() -> (Docs, Map) {
    let navigation = r#""navigation": {"tabs": [
        {"tab": "One", "groups": [
            {"group": "Top", "root": "x/1", "icon": "star", "pages": ["x/2",
                {"group": "Closed", "icon": "star", "pages": ["x/3", {"group": "Deep", "root": "x/4", "pages": ["x/5", "x/y/6"]}]},
                {"group": "Open", "expanded": true, "pages": ["x/7", {"group": "In", "pages": ["x/8", "x/3"]}]}]},
            {"group": "Hidden", "hidden": true, "pages": ["x/9"]},
            {"group": "More", "pages": ["x/10", "x/11", "x/12", "index"]}]},
        {"tab": "Two", "pages": ["z/13", {"group": "Last", "pages": ["z/14"]}]}]}"#;
    let slugs: Vec<String> = (1..=14)
        .map(|n| match n {
            6 => "x/y/6".to_owned(),
            13.. => format!("z/{n}"),
            _ => format!("x/{n}"),
        })
        .chain(["index".to_owned()])
        .collect();
    let text = |slug: &String| {
        let title: String = (0..900)
            .map(|n| format!("{slug}-{} ", n * 7919 % 1009))
            .collect();
        format!("---\ntitle: {title}\nsidebarTitle: {title}\nicon: rocket\n---\nText.")
    };
    let texts: Vec<String> = slugs.iter().map(text).collect();
    let pages: Vec<(&str, &str)> = slugs
        .iter()
        .zip(&texts)
        .map(|(slug, text)| (&**slug, &**text))
        .collect();
    docs(navigation, &pages)
}

#[test]
fn a_copied_sidebar_is_the_one_that_is_written_for_the_page() {
    let (docs, map) = with_long_sidebar();
    let assets = Assets::new(&docs, "");
    let layout = Layout::new(&docs, &map, &assets);
    let source = crate::mdx::Source::new("a.mdx", "Text.");
    let read = crate::mdx::read(&source, &|_| None);
    let article = article::render(&Source::alone(&source, &read), &map);
    let pages: Vec<PageId> = docs.navigation.pages().map(|(id, _)| id).collect();
    assert_eq!(pages.len(), 15);
    let (forwards, backwards) = (Sidebars::default(), Sidebars::default());
    let first: Vec<SegmentedPage> = pages
        .iter()
        .map(|id| layout.page_with(*id, &article, Mode::Default, &forwards))
        .collect();
    let encoded = |written: &SegmentedPage| {
        [Encoding::Brotli, Encoding::Gzip].map(|encoding| {
            let bytes = written.html.as_bytes();
            encoding.encode_segments(bytes, &written.segments).unwrap()
        })
    };
    let mut long = 0;
    let codes: Vec<_> = first.iter().map(encoded).collect();
    for (at, id) in pages.iter().enumerate().rev() {
        let html = layout.page(*id, &article, Mode::Default);
        assert!(first[at].html == html, "{}", layout.path(*id));
        long += usize::from(first[at].segments.len() > 3);
        let ranges = first[at]
            .segments
            .iter()
            .map(|segment| segment.range.clone());
        let end = ranges.fold(0, |end, range| {
            assert_eq!(range.start, end);
            range.end
        });
        assert_eq!(end, html.len());
        // The order of the pages changes nothing.
        let again = layout.page_with(*id, &article, Mode::Default, &backwards);
        assert!(again.html == html && encoded(&again) == codes[at]);
        let mut decoded = Vec::new();
        let mut decoder = brotli::Decompressor::new(&codes[at][0][..], 4096);
        std::io::Read::read_to_end(&mut decoder, &mut decoded).unwrap();
        assert!(decoded == html.as_bytes());
    }
    // Those of the first tab; the sidebar of the second is short.
    assert_eq!(long, 13);
    // A page without a column for the sidebar has a drawer with the same entries. The addresses are
    // a segment of their own.
    let custom = layout.page_with(pages[0], &article, Mode::Custom, &forwards);
    assert!(custom.segments.iter().any(|segment| segment.same.is_some()));
    let addressed = &custom.html[custom.segments[1].range.clone()];
    assert!(addressed.starts_with(crate::release::site::ADDRESSED_START));
}

#[test]
fn a_page_has_the_same_segments_when_groups_around_others_are_opened() {
    let navigation = |expanded: bool| {
        format!(
            r#""navigation": {{"groups": [{{"group": "Top", "pages": [{{"group": "In", "expanded": {expanded}, "pages": ["a", "b"]}}, "c", "d"]}}]}}"#
        )
    };
    let title: String = (0..4000).map(|n| format!("{} ", n * 7919 % 4093)).collect();
    let text = format!("---\ntitle: {title}\n---\n");
    let pages = ["a", "b", "c", "d"].map(|slug| (slug, &*text));
    let segments = |expanded: bool| {
        let (docs, map) = docs(&navigation(expanded), &pages);
        let assets = Assets::new(&docs, "");
        let layout = Layout::new(&docs, &map, &assets);
        let source = crate::mdx::Source::new("a.mdx", "Text.");
        let read = crate::mdx::read(&source, &|_| None);
        let article = article::render(&Source::alone(&source, &read), &map);
        let (id, _) = docs.navigation.pages().next().unwrap();
        let sidebars = Sidebars::default();
        let written = layout.page_with(id, &article, Mode::Default, &sidebars);
        let segments = written.segments.iter();
        let segments: Vec<_> = segments
            .map(|one| (one.range.clone(), one.follows))
            .collect();
        (written.html, segments)
    };
    let closed = segments(false);
    assert!(closed.1.len() > 3);
    assert!(segments(true) == closed);
}

#[test]
fn tags_of_a_page_replace_those_of_the_site() {
    let config = r#""description": "About", "seo": {"metatags": {"og:site_name": "Acme docs", "twitter:card": "summary", "author": "A \"B\"", "og:image": "/s.png", "canonical": "https://x.test"},
        "paths": [{"path": "/guides", "metatags": {"author": "C"}}]}, "navigation": {"pages": ["a", "guides/b", "c"]}"#;
    let b = "---\ntitle: B\ndescription: Of b\n'og:title': Other\n'og:image': ./b.png\n'twitter:site': '@acme'\n---\n";
    let c = "---\n'og:image': javascript:alert(1)\n---\n";
    let (docs, mut map) = docs(config, &[("a", ""), ("guides/b", b), ("c", c)]);
    for image in ["s.png", "guides/b.png"] {
        map.assets.insert(image.into(), Asset::default());
    }
    let placeholder = crate::discovery::BASE_URL_PLACEHOLDER;
    let image =
        |path: &str| format!("<meta property=\"og:image\" content=\"{placeholder}/{path}\">");
    let html = page(&docs, &map, "a");
    shows(
        &html,
        &[
            "<meta property=\"og:site_name\" content=\"Acme docs\">",
            "<meta name=\"author\" content=\"A &quot;B&quot;\">",
            "<meta name=\"twitter:card\" content=\"summary\">",
            "<meta property=\"og:type\" content=\"website\">",
            &format!("<meta property=\"og:url\" content=\"{placeholder}/a\">"),
            &image("s.png"),
        ],
    );
    assert_eq!(html.matches("twitter:card").count(), 1);
    assert!(!html.contains("canonical"), "the response names it");
    let html = page(&docs, &map, "guides/b");
    shows(
        &html,
        &[
            "<meta name=\"author\" content=\"C\">",
            "<meta property=\"og:title\" content=\"Other\">",
            "<meta property=\"og:description\" content=\"Of b\">",
            "<meta name=\"twitter:site\" content=\"@acme\">",
            &image("guides/b.png"),
        ],
    );
    assert!(!html.contains("s.png"));
    shows(&page(&docs, &map, "c"), &[&image("s.png")]);
    let missing = missing_images(&docs, &map);
    assert_eq!(missing.len(), 1);
    assert_eq!(&*missing[0].file, "c.mdx");
    let files: Vec<_> = linked_files(&docs, &map).into_iter().collect();
    assert_eq!(files, ["guides/b.png".into(), "s.png".into()]);
    // A page that is shown at any path has no address of its own.
    let assets = Assets::new(&docs, "");
    assert!(
        !Layout::new(&docs, &map, &assets)
            .not_found(None)
            .contains("og:url")
    );
}

#[test]
fn search_engines_find_pages_as_seo_says() {
    let robots = |seo: &str, path: &str| {
        let config = format!(r#""seo": {seo}, "navigation": {{"pages": ["a", "b", "c"]}}"#);
        let pages = [
            ("a", ""),
            ("b", "---\nhidden: true\n---\n"),
            ("c", "---\nnoindex: true\n---\n"),
        ];
        let (docs, map) = docs(&config, &pages);
        let html = page(&docs, &map, path);
        let (_, rest) = html
            .split_once("<meta name=robots content=")
            .or_else(|| html.split_once("<meta name=\"robots\" content="))?;
        Some(rest.split_once('>').unwrap().0.to_owned())
    };
    let none = Some("noindex".to_owned());
    assert_eq!(robots("{}", "a"), None);
    assert_eq!(robots("{}", "b"), none);
    assert_eq!(robots(r#"{"indexing": "all"}"#, "b"), None);
    assert_eq!(robots(r#"{"indexing": "all"}"#, "c"), none);
    let tagged = |content: &str| format!(r#"{{"metatags": {{"robots": "{content}"}}}}"#);
    assert_eq!(robots(&tagged("noindex"), "a"), none);
    assert_eq!(
        robots(&tagged("max-snippet:50"), "a").as_deref(),
        Some("\"max-snippet:50\"")
    );
    assert_eq!(robots(&tagged("index"), "c"), none);
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
fn linked_data_say_what_a_page_is_and_where() {
    let (docs, map) = docs(
        r#""seo": {"organization": {"name": "Acme </script>", "url": "https://acme.test"}}, "navigation": {"groups": [{"group": "Guides", "root": "a", "pages": ["b", "c"]}]}"#,
        &[
            ("a", ""),
            (
                "b",
                "---\ntitle: \"</script><b>\"\ndescription: Of b\n---\n",
            ),
            ("c", "---\nnoindex: true\n---\n"),
        ],
    );
    let html = page(&docs, &map, "b");
    let (_, data) = html
        .split_once("<script type=\"application/ld+json\">")
        .unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let placeholder = crate::discovery::BASE_URL_PLACEHOLDER;
    let [article, breadcrumb] = &data["@graph"].as_array().unwrap()[..] else {
        panic!("{data}");
    };
    assert_eq!(article["headline"], "</script><b>");
    assert_eq!(article["description"], "Of b");
    assert_eq!(article["publisher"]["name"], "Acme </script>");
    assert_eq!(article["isPartOf"]["name"], "Acme");
    let items = breadcrumb["itemListElement"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["name"]), (2, &"Guides".into()));
    assert_eq!(items[0]["item"], format!("{placeholder}/a"));
    assert_eq!(items[1]["item"], format!("{placeholder}/b"));
    assert!(!page(&docs, &map, "c").contains("ld+json"));
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
