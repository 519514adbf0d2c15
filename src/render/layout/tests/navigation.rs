//! The sidebar, the selectors and the breadcrumb.

use super::*;

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
