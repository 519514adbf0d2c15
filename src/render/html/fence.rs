//! Fenced code: what its info string says, and the code with its colours.

use super::Writer;
use crate::render::highlight;

/// What the info string of a fence says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info {
    /// The language.
    pub language: String,
    /// What stands above the code.
    pub title: String,
    /// The lines that are marked, from 1.
    pub marked: Vec<(usize, usize)>,
    /// Whether lines are numbered.
    pub numbered: bool,
    /// Whether long lines are broken.
    pub wrapped: bool,
}

// === impl Info ===

impl Info {
    /// Reads an info string: `js title="a.js" {1,3-4} lines`, or the title as bare words.
    pub(crate) fn parse(info: &str) -> Self {
        let info = info.trim();
        let end = info.find(|c: char| c.is_whitespace() || c == '{');
        let (language, mut rest) = info.split_at(end.unwrap_or(info.len()));
        let mut read = Self {
            language: language.to_owned(),
            ..Self::default()
        };
        let mut title: Vec<&str> = Vec::new();
        while !rest.trim_start().is_empty() {
            rest = rest.trim_start();
            let (word, after) = word(rest);
            rest = after;
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            let value = value.trim_matches(['"', '\'']);
            match (key, value) {
                ("lines", _) => read.numbered = true,
                ("wrap", _) => read.wrapped = true,
                ("title" | "filename", value) if !value.is_empty() => title = vec![value],
                ("highlight", value) => read.marked.extend(ranges(value)),
                (key, "") if key.starts_with('{') => read.marked.extend(ranges(key)),
                ("expandable" | "twoslash" | "showLineNumbers", _) => {}
                (_, "") if !word.contains('=') => title.push(word),
                _ => {}
            }
        }
        read.title = title.join(" ").trim_matches(['"', '\'']).to_owned();
        read
    }

    fn marks(&self, line: usize) -> bool {
        self.marked
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&line))
    }
}

/// Splits off a word; quotes and braces keep spaces together.
fn word(text: &str) -> (&str, &str) {
    let mut closes = None;
    for (at, c) in text.char_indices() {
        match (closes, c) {
            (None, '"' | '\'') => closes = Some(c),
            (None, '{') => closes = Some('}'),
            (Some(close), c) if c == close => closes = None,
            (None, c) if c.is_whitespace() => return text.split_at(at),
            _ => {}
        }
    }
    (text, "")
}

/// Reads `{1,3-4}`.
fn ranges(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    let inner = text.trim_matches(['{', '}', '[', ']']);
    inner.split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some((from.trim().parse().ok()?, to.trim().parse().ok()?))
    })
}

// === impl Writer ===

impl Writer<'_> {
    pub(super) fn fence(&mut self, info: &str, code: &str) {
        let info = Info::parse(info);
        self.code(&info, code, true);
    }

    /// Writes code; in a group its title stands on the tab.
    pub(super) fn code(&mut self, info: &Info, code: &str, titled: bool) {
        self.out.markup("<figure class=code");
        if !info.language.is_empty() {
            self.out.attribute("data-language", &info.language);
        }
        self.out.markup(">");
        if titled && !info.title.is_empty() {
            self.out.markup("<figcaption>").text(&info.title);
            self.out.markup("</figcaption>");
        }
        self.out.markup("<pre tabindex=0").markup(match () {
            () if info.numbered => " class=numbered><code>",
            () if info.wrapped => " class=wrapped><code>",
            () => "><code>",
        });
        let needs_lines = info.numbered || !info.marked.is_empty();
        for (n, line) in highlight::lines(&info.language, code).iter().enumerate() {
            if needs_lines {
                self.out.markup(if info.marks(n + 1) {
                    "<span class=\"line marked\">"
                } else {
                    "<span class=line>"
                });
                self.out.append(line).markup("</span>");
            } else {
                self.out.append(line);
            }
        }
        self.out.markup("</code></pre></figure>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_info_string_is_read_as_authors_write_it() {
        let info = Info::parse("js title=\"My app.js\" {1,3-4} lines");
        assert_eq!(info.language, "js");
        assert_eq!(info.title, "My app.js");
        assert_eq!(info.marked, [(1, 1), (3, 4)]);
        assert!(info.numbered && info.marks(4) && !info.marks(2));
        assert_eq!(Info::parse("bash Install it").title, "Install it");
        assert_eq!(Info::parse("ts{2}").marked, [(2, 2)]);
        assert_eq!(Info::parse("py icon=\"x\" theme={null}").title, "");
        assert_eq!(Info::parse(""), Info::default());
    }
}
