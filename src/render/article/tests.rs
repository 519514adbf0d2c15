//! A page always becomes an article.

use super::*;

fn article(file: &str, text: &str) -> Article {
    let source = Source {
        file,
        title: "Keys",
        description: None,
        text,
    };
    render(&source, &Map::default(), &|_| None)
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
    assert_eq!(article.summary.as_deref(), Some("How to make keys."));
    assert_eq!(article.markdown, "# Keys\n\nHow to *make* keys.\n\nMore.\n");
}

#[test]
fn findings_name_the_line_of_the_file() {
    let article = article("a.mdx", "---\ntitle: Keys\n---\n\n<Fancy />\n");
    let at = article.diagnostics[0].location.map(|at| at.line);
    assert_eq!(at, Some(5));
}

#[test]
fn in_plain_markdown_a_tag_is_text() {
    let article = article("a.md", "{x} <b>y</b>");
    assert_eq!(article.html.as_str(), "<p>{x} &lt;b&gt;y&lt;/b&gt;</p>\n");
}
