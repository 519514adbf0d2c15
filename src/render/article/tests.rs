//! A page always becomes an article.

use super::*;

fn article(file: &str, text: &str) -> Article {
    render(file, text, &Map::default(), &|_| None)
}

#[test]
fn the_head_of_a_page_is_read_and_has_defaults() {
    let text = "---\ntitle: 'Keys'\ndescription: How.\nsidebarTitle: K\ntag: NEW\nmode: wide\nhidden: true\nnoindex: true\nkeywords: [a, 2]\nopenapi: GET /x\n---\nBody";
    let (head, body, found) = head("a/keys.mdx", text);
    assert_eq!(&text[body..], "Body");
    assert_eq!(found, None);
    assert_eq!(head.title, "Keys");
    assert_eq!(head.sidebar_title.as_deref(), Some("K"));
    assert_eq!(head.mode, Mode::Wide);
    assert!(head.hidden && head.noindex && !head.restricted);
    assert_eq!(head.keywords, ["a", "2"]);
    assert_eq!(super::head("a/get-started.mdx", "x").0.title, "Get started");
}

#[test]
fn a_head_that_cannot_be_read_restricts_the_page() {
    let (head, _, found) = head("a.mdx", "---\ngroups: [admin\n---\nSecret");
    assert!(head.restricted);
    assert!(found.unwrap().is_error());
}

#[test]
fn a_page_over_a_limit_is_an_article_that_says_so() {
    let article = article("a.mdx", &"<Note>".repeat(1000));
    assert!(article.html.as_str().contains("cannot be shown"));
    assert!(article.diagnostics.iter().any(Diagnostic::is_error));
}

#[test]
fn a_page_says_its_title_once_and_describes_itself() {
    let article = article(
        "a.mdx",
        "---\ntitle: Keys\n---\n# Keys\n\nHow to *make* keys.\n\nMore.",
    );
    assert!(!article.html.as_str().contains("<h2"), "{:?}", article.html);
    assert_eq!(
        article.head.description.as_deref(),
        Some("How to make keys.")
    );
    assert_eq!(
        article.markdown,
        "# Keys\n\n> How to make keys.\n\nHow to *make* keys.\n\nMore.\n"
    );
}

#[test]
fn in_plain_markdown_a_tag_is_text() {
    let article = article("a.md", "{x} <b>y</b>");
    assert_eq!(article.html.as_str(), "<p>{x} &lt;b&gt;y&lt;/b&gt;</p>\n");
}
