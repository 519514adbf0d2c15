//! The additions of a preview to a page: the diagnostics, and the script that reloads the page.
//!
//! The panel is part of the page's markup, so it works without scripts. Style and script are
//! files, because the content security policy of pages allows no inline ones.

use crate::diagnostic::{Diagnostic, Severity};
use crate::markup::Html;

use super::shown::Version;

/// The path of the preview's own files. No page can have it.
pub(super) const PATH: &str = "/_waypost/preview/";
pub(super) const STYLES: &str = include_str!("preview.css");
pub(super) const SCRIPT: &str = include_str!("preview.js");
/// How many diagnostics the page shows; the terminal shows all.
const DIAGNOSTICS_MAX: usize = 100;

/// Writes the content of the panel, which is empty without diagnostics.
pub(super) fn write(found: &[Diagnostic], failure: Option<&str>) -> Html {
    let mut out = Html::default();
    if let Some(failure) = failure {
        out.markup("<p>The documentation cannot be read: ")
            .text(failure)
            .markup("</p>");
    }
    if found.is_empty() {
        return out;
    }
    let errors = found.iter().filter(|found| found.is_error()).count();
    out.markup("<details open><summary>");
    counted(&mut out, errors, " error");
    out.markup(", ");
    counted(&mut out, found.len() - errors, " warning");
    out.markup("</summary><ul>");
    // Errors come first, because they prevent the publication of the site.
    let sorted = [Severity::Error, Severity::Warning].into_iter();
    let sorted = sorted.flat_map(|severity| found.iter().filter(move |f| f.severity == severity));
    for found in sorted.take(DIAGNOSTICS_MAX) {
        item(&mut out, found);
    }
    out.markup("</ul>");
    if let Some(more) = found
        .len()
        .checked_sub(DIAGNOSTICS_MAX)
        .filter(|more| *more > 0)
    {
        out.markup("<p>and ").number(more).markup(" more</p>");
    }
    out.markup("</details>");
    out
}

fn counted(out: &mut Html, count: usize, what: &'static str) {
    out.number(count).markup(what);
    if count != 1 {
        out.markup("s");
    }
}

fn item(out: &mut Html, found: &Diagnostic) {
    out.markup(match found.severity {
        Severity::Error => "<li class=error><strong>error</strong> <code>",
        Severity::Warning => "<li class=warning><strong>warning</strong> <code>",
    });
    out.text(&found.file);
    if let Some(at) = found.location {
        out.text(&format!(":{}:{}", at.line, at.column));
    }
    out.markup("</code> <span>")
        .text(found.rule)
        .markup("</span> ");
    out.text(&found.message);
    if let Some(help) = &found.help {
        out.markup(" <em>").text(help).markup("</em>");
    }
    out.markup("</li>");
}

/// Adds panel and script to a page.
pub(super) fn add(page: &[u8], panel: &Html, version: Version) -> Vec<u8> {
    let end = memchr::memmem::rfind(page, b"</body>").unwrap_or(page.len());
    let mut added = Html::default();
    added
        .markup("<link rel=stylesheet href=\"/_waypost/preview/preview.css\">")
        .markup(
            "<section id=waypost-diagnostics aria-label=\"Diagnostics of the preview\" aria-live=polite>",
        )
        .append(panel)
        .markup("</section><script defer src=\"/_waypost/preview/preview.js\"")
        .attribute("data-version", &version.site.to_string())
        .markup("></script>");
    [&page[..end], added.into_string().as_bytes(), &page[end..]].concat()
}

/// Returns the page that is shown until the documentation can be read.
pub(super) fn empty_page() -> &'static [u8] {
    b"<!doctype html><html lang=en><head><meta charset=utf-8><title>Preview</title></head>\
      <body><main><h1>Nothing to show yet</h1><p>The documentation is shown here as soon as it \
      can be read.</p></main></body></html>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diagnostics_are_written_as_text_into_the_page() {
        let found = Diagnostic::error("N2", "a.mdx", "</section><script>x</script>").at(3, 4, 1);
        let panel = write(&[found], None);
        let page = add(b"<body><p>x</p></body></html>", &panel, Version::default());
        let page = String::from_utf8(page).unwrap();
        assert!(page.starts_with("<body><p>x</p>") && page.ends_with("</body></html>"));
        assert!(page.contains("<code>a.mdx:3:4</code>"), "{page}");
        assert!(page.contains("&lt;/section&gt;&lt;script&gt;x"), "{page}");
        assert!(page.contains("1 error, 0 warnings"), "{page}");
    }

    #[test]
    fn the_panel_is_empty_without_diagnostics() {
        assert_eq!(write(&[], None), Html::default());
    }
}
