//! A builder of HTML in which text cannot become markup.
//!
//! Markup is a `&'static str`, so it comes from the source code of this program. Text of authors
//! and readers goes through [`Html::text`] or [`Html::attribute`], which escape it.
//!
//! Sources: WHATWG HTML §13.3 (escaping a string).

/// HTML so far. It is serialised only into caches that this program reads back.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Html(String);

// === impl Html ===

impl Html {
    /// Makes space for this many more bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.0.reserve(bytes);
    }

    /// Writes markup, which must be a constant.
    pub fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Writes text.
    pub fn text(&mut self, text: &str) -> &mut Self {
        let mut rest = text;
        while let Some(at) = rest.find(['&', '<', '>', '"']) {
            self.0.push_str(&rest[..at]);
            self.0.push_str(match rest.as_bytes()[at] {
                b'&' => "&amp;",
                b'<' => "&lt;",
                b'>' => "&gt;",
                _ => "&quot;",
            });
            rest = &rest[at + 1..];
        }
        self.0.push_str(rest);
        self
    }

    /// Writes an attribute; a tag must be open.
    pub fn attribute(&mut self, name: &'static str, value: &str) -> &mut Self {
        self.0.push(' ');
        self.0.push_str(name);
        self.0.push_str("=\"");
        self.text(value);
        self.0.push('"');
        self
    }

    /// Writes an attribute `data-name` that an author chose, unless its name has other characters
    /// than lower-case letters, digits and hyphens.
    pub fn data(&mut self, name: &str, value: &str) -> &mut Self {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty() || !name.chars().all(is_plain) {
            return self;
        }
        self.0.push_str(" data-");
        self.0.push_str(name);
        self.0.push_str("=\"");
        self.text(value);
        self.0.push('"');
        self
    }

    /// Writes a number.
    pub fn number(&mut self, number: usize) -> &mut Self {
        self.0.push_str(&number.to_string());
        self
    }

    /// Adds other HTML.
    pub fn append(&mut self, other: &Self) -> &mut Self {
        self.0.push_str(&other.0);
        self
    }

    /// Adds HTML whose texts are escaped already: the MathML of a formula, or a part of a page
    /// that this program wrote before.
    pub fn escaped(&mut self, html: &str) -> &mut Self {
        self.0.push_str(html);
        self
    }

    /// Returns the HTML.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the HTML.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attribute_of_an_author_is_written_only_with_a_plain_name() {
        let mut html = Html::default();
        html.data("kind", "a\"b")
            .data("x onclick=y", "1")
            .data("A", "1");
        assert_eq!(html.as_str(), " data-kind=\"a&quot;b\"");
    }

    #[test]
    fn text_never_becomes_markup() {
        let mut html = Html::default();
        html.markup("<p")
            .attribute("title", "\"><script>")
            .markup(">")
            .text("<b>&amp;\"ü")
            .markup("</p>");
        assert_eq!(
            html.as_str(),
            "<p title=\"&quot;&gt;&lt;script&gt;\">&lt;b&gt;&amp;amp;&quot;ü</p>"
        );
    }
}
