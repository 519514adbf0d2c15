//! The pages of Docusaurus and `MkDocs`: their ids, titles and addresses, and syntax that is not
//! read here.

use std::collections::BTreeMap;

use super::notes::Notes;
use crate::docs::page;
use crate::frontmatter;
use crate::source::TreePath;
use crate::syntax::{Span, Value};

/// How many bytes a page may have.
const BYTES_MAX: u64 = 4 << 20;

/// A page of the other tool.
pub(super) struct Page {
    pub(super) path: TreePath,
    /// Its path below the root of the new documentation, without extension.
    pub(super) slug: String,
    /// Its frontmatter, always a map if there is one.
    pub(super) meta: Option<Value>,
    /// Where its body starts, in bytes.
    body: usize,
    text: String,
    /// The label that the navigation gives it.
    pub(super) label: Option<String>,
    first_heading: Option<String>,
}

/// Syntax of a page that is not read here.
pub(super) struct Foreign {
    pub(super) is: fn(&str) -> bool,
    /// The name of the value, with an article.
    pub(super) name: &'static str,
    /// The text to write instead.
    pub(super) instead: &'static str,
}

// === impl Page ===

impl Page {
    /// Reads a page below `root`; `None` if it cannot be read.
    pub(super) fn read(notes: &Notes<'_>, path: &TreePath, root: &TreePath) -> Option<Self> {
        let below = path.strip_prefix(root)?;
        let slug = below
            .strip_suffix(".mdx")
            .or_else(|| below.strip_suffix(".md"))?;
        let bytes = notes.tree.read_at_most(path, BYTES_MAX).ok()?;
        let text = String::from_utf8(bytes.to_vec()).ok()?;
        let (meta, body) = match frontmatter::read(&text) {
            Ok(Some(read)) => (Some(read.mapping), read.body_offset),
            _ => (None, 0),
        };
        let first_heading = lines(&text[body..])
            .find_map(|(_, line)| line.strip_prefix("# "))
            .map(|heading| heading.trim().trim_end_matches('#').trim().to_owned());
        let first_heading = first_heading.filter(|heading| {
            let is_plain = !heading.contains(['`', '*', '[', '<', '{', '!', '\\', '_']);
            is_plain && !heading.is_empty()
        });
        Some(Self {
            path: path.clone(),
            slug: slug.to_owned(),
            meta,
            body,
            text,
            label: None,
            first_heading,
        })
    }

    /// Returns a text of the frontmatter.
    pub(super) fn meta(&self, key: &str) -> Option<&str> {
        self.meta.as_ref()?.get(key)?.scalar()
    }

    /// Returns the name of the file, without extension.
    pub(super) fn name(&self) -> &str {
        self.slug.rsplit('/').next().unwrap_or(&self.slug)
    }

    /// Returns the title that the other tool shows.
    fn title(&self) -> Option<&str> {
        self.meta("title").or(self.first_heading.as_deref())
    }

    /// Returns the lines that its frontmatter lacks: a title and a label.
    fn missing(&self) -> Vec<(&'static str, String)> {
        let mut missing = Vec::new();
        let shown = page::title_of(&self.slug);
        if let (None, Some(heading)) = (self.meta("title"), &self.first_heading)
            && **heading != *shown
        {
            missing.push(("title", heading.clone()));
        }
        let label = self.label.as_deref().or(self.meta("sidebar_label"));
        let title = self.title().unwrap_or(&shown);
        if let Some(label) = label
            && label != title
            && self.meta("sidebarTitle").is_none()
        {
            missing.push(("sidebarTitle", label.to_owned()));
        }
        missing
    }

    /// Returns the text with the missing lines of frontmatter.
    fn with(&self, missing: &[(&str, String)]) -> String {
        let lines: String = missing
            .iter()
            .map(|(key, text)| format!("{key}: {}\n", serde_json::Value::from(text.as_str())))
            .collect();
        let rest = self.text.trim_start_matches('\u{feff}');
        match self.body {
            0 => format!("---\n{lines}---\n\n{rest}"),
            _ => {
                let after = rest.find('\n').map_or(rest.len(), |at| at + 1);
                format!("{}{lines}{}", &rest[..after], &rest[after..])
            }
        }
    }
}

/// Writes titles and labels into the frontmatter of pages, or says which are lost.
pub(super) fn titles(
    notes: &mut Notes<'_>,
    pages: &mut [Page],
    write: bool,
) -> Vec<(TreePath, String)> {
    let mut changed = Vec::new();
    for page in pages {
        let missing = page.missing();
        if missing.is_empty() {
            continue;
        }
        if write {
            let text = page.with(&missing);
            page.body = frontmatter::read(&text)
                .ok()
                .flatten()
                .map_or(0, |read| read.body_offset);
            page.text.clone_from(&text);
            changed.push((page.path.clone(), text));
            continue;
        }
        let Some(file) = notes.add_text(&page.path, &page.text) else {
            continue;
        };
        let span = Span {
            file,
            start: 0,
            end: 0,
        };
        let lines: Vec<_> = missing
            .iter()
            .map(|(key, text)| format!("`{key}: {text}`"))
            .collect();
        let message = format!("the frontmatter lacks {}", lines.join(" and "));
        notes.title(span, message, "`waypost convert --pages` writes it");
    }
    changed
}

/// Names the first place of each syntax that is not read here, in each page.
pub(super) fn syntax(notes: &mut Notes<'_>, pages: &[Page], foreign: &[Foreign]) {
    for page in pages {
        let mut found: BTreeMap<usize, (Span, usize)> = BTreeMap::new();
        let mut file = None;
        for (start, line) in lines(&page.text[page.body..]) {
            let trimmed = line.trim_start();
            let Some(kind) = foreign.iter().position(|one| (one.is)(trimmed)) else {
                continue;
            };
            file = file.or_else(|| notes.add_text(&page.path, &page.text));
            let Some(file) = file else { return };
            let start = page.body + start + (line.len() - trimmed.len());
            let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
            let span = Span {
                file,
                start: place(start),
                end: place(start + trimmed.trim_end().len()),
            };
            found.entry(kind).or_insert((span, 0)).1 += 1;
        }
        for (kind, (span, count)) in found {
            let Foreign { name, instead, .. } = foreign[kind];
            let message = match count {
                1 => format!("{name} is not read"),
                _ => format!("{name} is not read; the page has {count} of them"),
            };
            notes.syntax(span, message, instead);
        }
    }
}

/// Returns the lines of a text outside of fenced code, each with its place.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence: Option<&str> = None;
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        let marks = |mark: char| {
            let length = trimmed.len() - trimmed.trim_start_matches(mark).len();
            (length >= 3).then(|| &trimmed[..length])
        };
        let mark = marks('`').or_else(|| marks('~'));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if mark.starts_with(open) && mark == trimmed => fence = None,
            (None, None) => return Some((start, line)),
            _ => {}
        }
        None
    })
}
