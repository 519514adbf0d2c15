//! Fenced code: its info string, and its lines with highlighting.

use std::borrow::Cow;

use super::Writer;
use crate::diagnostic::Diagnostic;
use crate::render::highlight::Uncoloured;
use crate::render::{highlight, icon};

/// Expandable code with at most this many lines is shown in full.
const SHOWN_LINES: usize = 12;
/// How many pieces of code without colours are reported for a page, each with its reason.
const UNCOLOURED_MAX: usize = 20;
/// How many characters of such code the report shows.
const BEGINNING: usize = 40;

/// The info string of a fence.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Info {
    /// The language.
    pub language: String,
    /// The title above the code.
    pub title: String,
    /// The name of an icon beside the title.
    pub icon: String,
    /// The ranges of highlighted lines; the first line is 1.
    pub marked: Vec<(usize, usize)>,
    /// The ranges of focused lines; all others are dimmed.
    pub focused: Vec<(usize, usize)>,
    /// Whether lines are numbered.
    pub numbered: bool,
    /// Whether long lines are wrapped.
    pub wrapped: bool,
    /// Whether only the start is shown until the reader expands it.
    pub expandable: bool,
}

/// How a line is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Plain,
    Marked,
    Added,
    Removed,
    Focused,
}

// === impl Info ===

impl Info {
    /// Reads an info string such as `js title="a.js" {1,3-4} lines`. Words that are not options are
    /// the title.
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
            let value = value.trim_matches(['"', '\'', '{', '}']);
            let is_on = value != "false";
            match key {
                "lines" | "showLineNumbers" | "numbered" => read.numbered = is_on,
                "wrap" => read.wrapped = is_on,
                "expandable" => read.expandable = is_on,
                "title" | "filename" if !value.is_empty() => title = vec![value],
                "icon" if !value.is_empty() => read.icon = value.to_owned(),
                "highlight" => read.marked.extend(ranges(value)),
                "focus" => read.focused.extend(ranges(value)),
                "twoslash" => {}
                key if key.starts_with('{') => read.marked.extend(ranges(key)),
                _ if !word.contains('=') => title.push(word),
                _ => {}
            }
        }
        read.title = title.join(" ").trim_matches(['"', '\'']).to_owned();
        read
    }

    /// Returns how a line is shown, by its number from 1, and its text without an annotation
    /// such as `// [!code ++]`.
    fn line<'l>(&self, number: usize, line: &'l str) -> (Line, Cow<'l, str>) {
        let within = |ranges: &[(usize, usize)]| {
            ranges
                .iter()
                .any(|(from, to)| (*from..=*to).contains(&number))
        };
        if let Some((kind, rest)) = remark(line) {
            return (kind, rest);
        }
        let kind = if within(&self.marked) {
            Line::Marked
        } else if within(&self.focused) {
            Line::Focused
        } else {
            Line::Plain
        };
        (kind, Cow::Borrowed(line))
    }
}

/// Finds `[!code ++]` in a comment at the end of a line; returns the line without it.
fn remark(line: &str) -> Option<(Line, Cow<'_, str>)> {
    let start = line.rfind("[!code ")?;
    let inside = &line[start + "[!code ".len()..];
    let end = inside.find(']')?;
    let kind = match inside[..end].split(':').next()?.trim() {
        "++" => Line::Added,
        "--" => Line::Removed,
        "focus" => Line::Focused,
        "highlight" | "hl" | "warning" | "error" => Line::Marked,
        _ => return None,
    };
    let after = inside[end + 1..]
        .trim_end()
        .trim_end_matches(["*/", "-->"][usize::from(inside.contains("-->"))]);
    let before = line[..start].trim_end();
    let comments = ["//", "#", "/*", "<!--", "--", ";", "%"];
    let before = comments
        .iter()
        .find_map(|comment| before.strip_suffix(comment))
        .unwrap_or(before);
    let newline = if line.ends_with('\n') { "\n" } else { "" };
    Some((
        kind,
        format!("{}{}{newline}", before.trim_end(), after.trim_end()).into(),
    ))
}

/// Returns code without its annotations such as `// [!code ++]`, which only colour a line.
pub(in crate::render) fn without_remarks(code: &str) -> Cow<'_, str> {
    if !code.contains("[!code ") {
        return Cow::Borrowed(code);
    }
    let lines = code.split_inclusive('\n').map(|line| match remark(line) {
        Some((_, line)) => line,
        None => Cow::Borrowed(line),
    });
    Cow::Owned(lines.collect())
}

/// Splits off a word; spaces between quotes or braces do not end it.
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
        if info.language == "mermaid" {
            return self.diagram(code, &info.title);
        }
        self.code(&info, code, true);
    }

    /// Writes the icon of a fence, if it has one.
    pub(in crate::render) fn fence_icon(&mut self, info: &Info) {
        if let Some(icon) = icon::find(&info.icon, None, self.map.library) {
            self.out.icon(icon, None);
        }
    }

    /// Writes code; `titled` is false in a group, where the tab has the title.
    pub(in crate::render) fn code(&mut self, info: &Info, code: &str, titled: bool) {
        let has_title = titled && !info.title.is_empty();
        // One line has no strip above it.
        let is_short = !has_title && code.trim_end().lines().count() <= 1;
        self.out.markup(match is_short {
            true => "<figure class=\"code short\"",
            false => "<figure class=code",
        });
        if !info.language.is_empty() {
            self.out.attribute("data-language", &info.language);
        }
        // The method of a request has its colour.
        if is_short && info.language == "http" {
            let method = code.split(' ').next().unwrap_or_default();
            if !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase()) {
                self.out.attribute("data-method", method);
            }
        }
        self.out.markup(">");
        if has_title {
            self.out.markup("<figcaption>");
            self.fence_icon(info);
            self.out.text(&info.title).markup("</figcaption>");
        }
        let is_long = info.expandable && code.lines().count() > SHOWN_LINES;
        if is_long {
            self.out
                .markup("<label class=more><input type=checkbox> ")
                .text(self.messages.article.show_all)
                .markup("</label>");
        }
        self.out.markup("<pre tabindex=0");
        let mut class: Vec<&str> = Vec::new();
        class.extend(info.numbered.then_some("numbered"));
        class.extend(info.wrapped.then_some("wrapped"));
        class.extend((!info.focused.is_empty()).then_some("focusing"));
        if !class.is_empty() {
            self.out.attribute("class", &class.join(" "));
        }
        self.out.markup("><code>");
        self.lines(info, code);
        self.out.markup("</code></pre></figure>\n");
    }

    fn lines(&mut self, info: &Info, code: &str) {
        let lines: Vec<_> = code
            .split_inclusive('\n')
            .enumerate()
            .map(|(n, line)| info.line(n + 1, line))
            .collect();
        let needs_lines = info.numbered || lines.iter().any(|(kind, _)| *kind != Line::Plain);
        let text: String = lines.iter().map(|(_, line)| &**line).collect();
        if self.is_draft {
            if let Err(reason) = highlight::check(&info.language, &text) {
                self.uncoloured(info, &text, reason);
            }
            return;
        }
        let coloured = highlight::lines(&info.language, &text, &mut self.highlighting);
        let coloured = coloured.unwrap_or_else(|reason| {
            self.uncoloured(info, &text, reason);
            highlight::plain(&text)
        });
        for (line, (kind, _)) in coloured.iter().zip(&lines) {
            if !needs_lines {
                self.out.append(line);
                continue;
            }
            self.out.markup(match kind {
                Line::Plain => "<span class=line>",
                Line::Marked => "<span class=\"line marked\">",
                Line::Added => "<span class=\"line added\">",
                Line::Removed => "<span class=\"line removed\">",
                Line::Focused => "<span class=\"line focused\">",
            });
            self.out.append(line).markup("</span>");
        }
    }
}

impl Writer<'_> {
    /// Reports code that is shown without colours.
    fn uncoloured(&mut self, info: &Info, code: &str, reason: Uncoloured) {
        self.uncoloured += 1;
        if self.uncoloured > UNCOLOURED_MAX {
            return;
        }
        let begins: String = code.trim_start().chars().take(BEGINNING).collect();
        let begins = begins.lines().next().unwrap_or_default();
        let language = &info.language;
        let message = format!(
            "the code in `{language}` that begins with `{begins}` is shown without colours: {reason}"
        );
        let found = Diagnostic::warning("page-limit", self.file, message);
        self.diagnostics.push(found);
    }

    /// Reports how much code without colours was not reported.
    pub(super) fn count_uncoloured(&mut self) {
        if let more @ 1.. = self.uncoloured.saturating_sub(UNCOLOURED_MAX) {
            let message = format!("{more} more pieces of code are shown without colours");
            let found = Diagnostic::warning("page-limit", self.file, message);
            self.diagnostics.push(found);
        }
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
        assert!(info.numbered);
        assert_eq!(info.line(4, "x").0, Line::Marked);
        assert_eq!(info.line(2, "x").0, Line::Plain);
        assert_eq!(Info::parse("bash Install it").title, "Install it");
        assert_eq!(Info::parse("ts{2}").marked, [(2, 2)]);
        assert_eq!(Info::parse("py icon=\"x\" theme={null}").title, "");
        assert_eq!(Info::parse("py icon=\"x\" theme={null}").icon, "x");
        assert_eq!(Info::parse("js focus={2} expandable").focused, [(2, 2)]);
        assert!(!Info::parse("js wrap=false").wrapped);
        assert_eq!(Info::parse(""), Info::default());
    }

    #[test]
    fn annotations_of_lines_are_read_and_removed() {
        for (line, kind, shown) in [
            ("let a; // [!code ++]\n", Line::Added, "let a;\n"),
            ("a = 1 # [!code --]", Line::Removed, "a = 1"),
            ("<b/> <!-- [!code focus] -->\n", Line::Focused, "<b/>\n"),
            ("b {} /* [!code highlight:2] */\n", Line::Marked, "b {}\n"),
        ] {
            assert_eq!(remark(line), Some((kind, shown.into())), "{line}");
        }
        assert_eq!(remark("// [!code x]"), None);
        assert_eq!(remark("x"), None);
    }
}
