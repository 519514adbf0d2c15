//! Every page becomes an article.

use std::time::Instant;

use super::*;
use crate::mdx;

fn article(file: &str, text: &str) -> Article {
    let source = mdx::Source {
        title: "Keys",
        ..mdx::Source::new(file, text)
    };
    let read = mdx::read(&source, &|_| None);
    render(&Source::alone(&source, &read), &Map::default())
}

#[test]
fn a_page_over_a_limit_is_shown_as_its_source() {
    let article = article("a.mdx", &"<Note>".repeat(1000));
    assert!(article.html.as_str().contains("&lt;Note&gt;&lt;Note&gt;"));
    assert_eq!(article.diagnostics, []);
}

#[test]
fn no_page_stalls_a_build() {
    let deep = |open: &str, close: &str, n: usize| open.repeat(n) + "x" + &close.repeat(n);
    let wide = format!(
        "|{}\n|{}\n{}",
        "a|".repeat(9000),
        "-|".repeat(9000),
        "|x\n".repeat(9000)
    );
    let hostile = [
        ("quotations", ">".repeat(20_000)),
        ("quotations with spaces", "> ".repeat(20_000)),
        (
            "lists in lists",
            (0..2000).map(|n| " ".repeat(2 * n) + "- a\n").collect(),
        ),
        ("lists in a line", "- ".repeat(20_000)),
        ("divs", deep("<div>", "</div>", 100_000)),
        ("divs on lines", deep("<div>\n", "</div>\n", 100_000)),
        (
            "rows",
            format!("|a|b|\n|-|-|\n{}", "|x|y|\n".repeat(16_000)),
        ),
        ("rows that lack columns", wide),
        (
            "rows of HTML",
            format!("<table>{}</table>", "<tr><td>x</td></tr>".repeat(8_000)),
        ),
        (
            "cells that claim columns and rows",
            format!(
                "<table>{}</table>",
                "<tr><td colSpan=\"1000000\" rowSpan=\"1000000\">x</td></tr>".repeat(4_000)
            ),
        ),
        (
            "tables in cells",
            deep("<table><tr><td>", "</td></tr></table>", 2_000),
        ),
        (
            "tables in cells that are read",
            deep("<table><tr><td>", "</td></tr></table>", 20),
        ),
        ("links in a paragraph", "[a](b) ".repeat(20_000)),
        ("nested links", deep("[", "](b)", 20_000)),
        ("images", "![a](b)".repeat(20_000)),
        ("addresses", "https://a.b/".repeat(20_000)),
        ("bytes", "word ".repeat(2 << 20)),
        ("zero bytes", "\0".repeat(500_000)),
        ("entities", "&amp;".repeat(100_000)),
        ("headings", "# a\n".repeat(20_000)),
        ("emphasis", deep("*a ", "*", 20_000)),
        (
            "footnotes",
            (0..10_000)
                .map(|n| format!("[^{n}]: x[^{n}]\n\n"))
                .collect(),
        ),
        ("icons", "<Icon icon=\"none-such\" />\n".repeat(5_000)),
        (
            "icons by many names",
            (0..20_000)
                .map(|n| format!("<Icon icon=\"n{n}\" />\n"))
                .collect(),
        ),
        ("marks", "\u{2cfe}0\u{2cff}".repeat(50_000)),
        (
            "expressions",
            format!("{{{}1{}}}", "[".repeat(20_000), "]".repeat(20_000)),
        ),
        ("formulas", format!("${}$", "{".repeat(8_000))),
        (
            "roots",
            format!("${}x{}$", "\\sqrt{".repeat(900), "}".repeat(900)),
        ),
        ("code", format!("```js\n{}\n```", "(".repeat(60_000))),
        (
            "code lines",
            format!("```js\n{}\n```", "`${`\n".repeat(6_000)),
        ),
    ];
    for (what, text) in hostile {
        let since = Instant::now();
        let article = article("a.mdx", &text);
        let took = since.elapsed();
        println!(
            "{what}: {took:?}, {} bytes, {:?}",
            article.html.as_str().len(),
            article.diagnostics.first().map(ToString::to_string)
        );
        // The limit allows for an unoptimised build and other tests; a release build takes a tenth.
        assert!(took.as_secs() < 5, "{what} took {took:?}");
        assert!(article.html.as_str().len() < 64 << 20, "{what}");
    }
}

#[test]
fn a_page_at_the_byte_limit_is_read() {
    // Rows and links have no limit of their own: they are read and written in one pass, so
    // the limit of bytes bounds them too.
    let spend = |head: &str, one: &str| {
        let count = (mdx::PAGE_BYTES_MAX - head.len()) / one.len();
        (
            article("a.md", &(head.to_owned() + &one.repeat(count))),
            count,
        )
    };
    let (rows, count) = spend("|a|b|\n|-|-|\n", "|x|y|\n");
    assert_eq!(rows.html.as_str().matches("<td>").count(), 2 * count);
    let (links, count) = spend("", "[a](b) ");
    assert_eq!(links.html.as_str().matches("<a ").count(), count);
    for article in [rows, links] {
        assert!(article.diagnostics.is_empty(), "{:?}", article.diagnostics);
    }
}

#[test]
fn a_page_has_its_title_once_and_its_metadata() {
    let article = article("a.mdx", "# Keys\n\nHow to *make* keys.\n\nMore.");
    assert!(!article.html.as_str().contains("<h2"), "{:?}", article.html);
    assert_eq!(article.summary.as_deref(), Some("How to make keys."));
    assert_eq!(article.markdown, "# Keys\n\nHow to *make* keys.\n\nMore.\n");
}

#[test]
fn in_plain_markdown_a_tag_is_an_element_and_a_brace_is_text() {
    let article = article("a.md", "{x} <b>y</b>");
    assert_eq!(article.html.as_str(), "<p>{x} <b>y</b></p>\n");
}

#[test]
fn a_page_whose_title_is_not_shown_keeps_its_own_with_its_classes() {
    let of_mode = |mode: &str| {
        let path = |path: &str| crate::source::TreePath::parse(path).unwrap();
        let config = r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#;
        let page = format!(
            "---\ntitle: Keys\nmode: {mode}\n---\n\n# Keys\n\n<h1 className=\"text-4xl\">All *keys*</h1>\n\n## More\n"
        );
        let files = [
            (path("docs.json"), config.to_owned().into()),
            (path("index.mdx"), page.into()),
        ];
        let tree = crate::source::Tree::from_files(files, []);
        let (docs, _found) = crate::docs::read(&tree, &crate::docs::Options::default());
        let (_, page) = docs.navigation.pages().next().unwrap();
        let article = render(&Source::of(&docs, page), &Map::default());
        article.html.as_str().to_owned()
    };
    for mode in ["custom", "frame"] {
        let html = of_mode(mode);
        assert!(html.contains("<h1 id=\"keys\">Keys<a"), "{html}");
        assert!(
            html.contains("<h1 id=\"all-keys\" class=\"text-4xl\">All"),
            "{html}"
        );
        assert!(html.contains("<h2 id=\"more\">"), "{html}");
    }
    let html = of_mode("wide");
    assert!(
        !html.contains("<h1") && !html.contains("id=\"keys\""),
        "{html}"
    );
    assert!(
        html.contains("<h2 id=\"all-keys\" class=\"text-4xl\">"),
        "{html}"
    );
}
