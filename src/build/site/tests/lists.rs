//! The lists of a release: sitemap, `llms.txt`, feeds, search.

use super::*;

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

#[test]
fn the_title_of_a_page_is_no_markdown() {
    let config = r#"{"name": "A", "navigation": {"pages": ["index"]}}"#;
    let file = |path: &str, text: &str| (TreePath::parse(path).unwrap(), text.to_owned().into());
    let files = [
        file("docs.json", config),
        file(
            "index.mdx",
            "---\ntitle: Home [x](https://other.test)\n---\n",
        ),
    ];
    let release = of_tree(Tree::from_files(files, [])).release;
    let title = "Home \\[x\\](https://other.test)";
    let list = text(&release, "texts/llms.txt");
    assert!(list.contains(&format!("- [{title}](")), "{list}");
    let page = text(&release, "pages/index.md");
    assert!(page.contains(&format!("# {title}\n")), "{page}");
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
    assert!(
        feed.contains("First&lt;/h2&gt;") && !feed.contains("class=anchor"),
        "{feed}"
    );
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

#[test]
fn a_list_names_the_catalog_instead_of_many_specifications() {
    let of = |count: usize| {
        let groups: Vec<String> = (0..count)
            .map(|n| format!(r#"{{"group": "API {n}", "openapi": "{n}.json"}}"#))
            .collect();
        let config = format!(
            r#"{{"name": "Acme", "navigation": {{"groups": [{}]}}}}"#,
            groups.join(",")
        );
        let file = |path: String, text: String| (TreePath::parse(&path).unwrap(), text.into());
        let mut files = vec![file("docs.json".to_owned(), config)];
        files.extend((0..count).map(|n| {
            let api = format!(
                r#"{{"openapi": "3.1.0", "info": {{"title": "API {n}", "version": "1"}},
                    "paths": {{"/pay{n}": {{"get": {{"summary": "Pay {n}", "responses": {{}}}}}}}}}}"#
            );
            file(format!("{n}.json"), api)
        }));
        text(
            &of_tree(Tree::from_files(files, [])).release,
            "texts/llms.txt",
        )
    };
    assert!(of(30).contains("- [API 29](https://base-url.invalid/29.json)\n"));
    let many = of(31);
    assert!(
        many.contains(
            "## OpenAPI\n\n- [Catalog of 31 specifications](https://base-url.invalid/.well-known/api-catalog)\n"
        ),
        "{many}"
    );
    assert!(!many.contains("29.json"), "{many}");
}
