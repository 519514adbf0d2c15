//! The files that a conversion reads, and notes about parts that it could not convert.

use std::collections::BTreeSet;

use anyhow::Context as _;
use serde_json::{Map, Number, Value as Json};

use super::Converted;
use crate::docs::reference::{self, OpenError};
use crate::jsx::literal;
use crate::source::{Tree, TreePath};
use crate::syntax::{
    Data, Diagnostics, FILE_BYTES_MAX, FileId, Span, SpanDiagnostic, Value, is_yaml, json, yaml,
};

/// The rule about settings without a counterpart.
const SETTING: &str = "convert-setting";
/// The rule about values that only a program can compute.
const COMPUTED: &str = "convert-computed";
/// The rule about entries of a navigation that cannot be converted.
const ENTRY: &str = "convert-entry";
/// The rule about syntax in pages.
const SYNTAX: &str = "convert-syntax";
/// The rule about titles and labels of pages.
const TITLE: &str = "convert-title";

/// How many files one conversion reads as data.
const FILES_MAX: usize = 10_000;
/// How long a chain of files that import each other may be.
const IMPORTS_MAX: usize = 8;

/// The files of a conversion with the notes about them.
pub(super) struct Notes<'t> {
    pub(super) tree: &'t Tree,
    diagnostics: Diagnostics,
    files: usize,
    computed: BTreeSet<Span>,
}

// === impl Notes ===

impl<'t> Notes<'t> {
    pub(super) fn new(tree: &'t Tree) -> Self {
        Self {
            tree,
            diagnostics: Diagnostics::default(),
            files: 0,
            computed: BTreeSet::new(),
        }
    }

    /// Reads a file of JSON, YAML or JavaScript.
    ///
    /// # Errors
    ///
    /// When it cannot be read; the reason has file and line.
    pub(super) fn read(&mut self, path: &TreePath) -> anyhow::Result<Value> {
        self.read_imported(path, 0)
    }

    fn read_imported(&mut self, path: &TreePath, imports: usize) -> anyhow::Result<Value> {
        anyhow::ensure!(
            self.files < FILES_MAX,
            "there are more than {FILES_MAX} files"
        );
        self.files += 1;
        let mut found = Diagnostics::default();
        std::mem::swap(&mut found.files, &mut self.diagnostics.files);
        let opened = match is_yaml(path.as_str()) {
            true => open_yaml(self.tree, path, &mut found),
            false => reference::open(self.tree, path, &mut found),
        };
        let read = opened
            .with_context(|| format!("read {path}"))
            .map(|file| match path.as_str() {
                name if is_yaml(name) => (file, yaml::read(file, &mut found)),
                name if name.ends_with(".json") => (file, json::read(file, &mut found)),
                _ => (file, None),
            });
        std::mem::swap(&mut found.files, &mut self.diagnostics.files);
        let (file, value) = read?;
        let is_data = is_yaml(path.as_str()) || path.as_str().ends_with(".json");
        if is_data {
            let first = found.finish().into_iter().find(|one| one.is_error());
            return match (value, first) {
                (Some(value), _) => Ok(value),
                (None, Some(error)) => anyhow::bail!("{error}"),
                (None, None) => anyhow::bail!("{path} is empty"),
            };
        }
        self.script(file, path, imports)
    }

    fn script(&mut self, file: FileId, path: &TreePath, imports: usize) -> anyhow::Result<Value> {
        let text = std::sync::Arc::clone(self.diagnostics.files.text(file));
        let mut load = |from: &str| {
            let path = self.imported(path, from)?;
            let is_short = imports < IMPORTS_MAX;
            is_short.then(|| self.read_imported(&path, imports + 1).ok())?
        };
        let exported = literal::module(file, path.as_str(), &text, &mut load);
        let value = exported.map_err(|broken| {
            let at = u32::try_from(broken.at).unwrap_or(u32::MAX);
            let span = Span {
                file,
                start: at,
                end: at,
            };
            let at = self.diagnostics.files.locate(span);
            anyhow::anyhow!("{path}:{}:{}: {}", at.line, at.column, broken.message)
        })?;
        value.with_context(|| format!("{path} exports nothing by default"))
    }

    /// Finds the file that a file imports by a relative path.
    pub(super) fn imported(&self, from: &TreePath, import: &str) -> Option<TreePath> {
        if !import.starts_with('.') {
            return None;
        }
        let path = resolve(&from.parent()?, import)?;
        let named = ["", ".js", ".ts", ".json", ".mjs", ".cjs"].iter();
        let mut named = named.filter_map(|end| TreePath::parse(&format!("{path}{end}")).ok());
        named.find(|path| self.is_file(path))
    }

    pub(super) fn is_file(&self, path: &TreePath) -> bool {
        let found = self.tree.lookup(path);
        found.is_ok_and(|found| found.kind == crate::source::Kind::File)
    }

    /// Says that a setting has no counterpart.
    pub(super) fn setting(&mut self, span: Span, message: impl Into<String>) {
        self.push(SETTING, span, message, None);
    }

    /// Says that a setting has no counterpart, and what to do.
    pub(super) fn setting_with_help(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.push(SETTING, span, message, Some(help));
    }

    /// Says that an entry of a navigation could not be converted, and what to do.
    pub(super) fn entry(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.push(ENTRY, span, message, Some(help));
    }

    /// Says that a title or label of a page is lost, and what to do.
    pub(super) fn title(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.push(TITLE, span, message, Some(help));
    }

    /// Says that a page has syntax that is not read, and what to write instead.
    pub(super) fn syntax(&mut self, span: Span, message: impl Into<String>, help: &str) {
        self.push(SYNTAX, span, message, Some(help));
    }

    /// Says that a value is computed by a program; once for each place.
    pub(super) fn computed(&mut self, span: Span) {
        if self.computed.insert(span) {
            let message = "a program computes this value, so it is left out";
            self.push(COMPUTED, span, message, Some("write it into docs.json"));
        }
    }

    fn push(
        &mut self,
        rule: &'static str,
        span: Span,
        message: impl Into<String>,
        help: Option<&str>,
    ) {
        let one = SpanDiagnostic::warning(rule, span, message).help_if(help);
        self.diagnostics.push(one);
    }

    /// Adds a text, so that notes can name its lines.
    pub(super) fn add_text(&mut self, path: &TreePath, text: &str) -> Option<FileId> {
        if self.files >= FILES_MAX {
            return None;
        }
        self.files += 1;
        Some(self.diagnostics.files.add(path.as_str(), text.into()))
    }

    /// Converts a value as it is; parts that are computed are left out with a note.
    pub(super) fn json(&mut self, value: &Value) -> Json {
        match &value.data {
            Data::Null => Json::Null,
            Data::Flag(flag) => Json::Bool(*flag),
            Data::Number(text) => {
                let number = text.parse::<i64>().map(Number::from).ok();
                let number = number.or_else(|| Number::from_f64(text.parse().ok()?));
                number.map_or_else(|| Json::String(text.to_string()), Json::Number)
            }
            Data::Text(text) => Json::String(text.to_string()),
            Data::List(items) => {
                let items = items.iter().map(|item| self.json(item));
                Json::Array(items.filter(|item| !item.is_null()).collect())
            }
            Data::Map(members) => {
                let members = members.iter();
                let members = members.map(|one| (one.key.to_string(), self.json(&one.value)));
                Json::Object(members.filter(|(_, value)| !value.is_null()).collect())
            }
            Data::Unresolved => {
                self.computed(value.span);
                Json::Null
            }
        }
    }

    /// Returns a text; a value that is computed gets a note.
    pub(super) fn text(&mut self, value: Option<&Value>) -> Option<String> {
        let value = value?;
        if value.data == Data::Unresolved {
            self.computed(value.span);
        }
        value.scalar().map(str::to_owned)
    }

    pub(super) fn finish(
        self,
        root: TreePath,
        config: Map<String, Json>,
        ignored: Vec<String>,
        pages: Vec<(TreePath, String)>,
    ) -> Converted {
        Converted {
            root,
            config,
            ignored,
            pages,
            notes: self.diagnostics.finish(),
        }
    }
}

/// Reads YAML without the tags of programs, such as `!!python/name:a.b` and `!ENV`: spaces take
/// their place, so that the places of everything else stay.
fn open_yaml(tree: &Tree, path: &TreePath, found: &mut Diagnostics) -> Result<FileId, OpenError> {
    let bytes = tree.read_at_most(path, FILE_BYTES_MAX);
    let mut bytes = bytes.map_err(OpenError::Read)?.to_vec();
    let mut at = 0;
    while let Some(found) = memchr::memchr(b'!', &bytes[at..]) {
        let start = at + found;
        at = start + 1;
        let before = bytes[..start].trim_ascii_end();
        let is_value = before.len() < start && matches!(before.last(), Some(b':' | b'-' | b','));
        let length = bytes[start..]
            .iter()
            .take_while(|b| b.is_ascii_graphic())
            .count();
        if is_value && length > 1 {
            bytes[start..start + length].fill(b' ');
        }
    }
    reference::text(path.as_str(), &bytes, found)
}

/// Resolves a relative path, which may contain `.` and `..`; `None` if it leaves the repository.
pub(super) fn resolve(directory: &TreePath, path: &str) -> Option<TreePath> {
    let mut segments: Vec<&str> = directory.segments().collect();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            other => segments.push(other),
        }
    }
    match segments.is_empty() {
        true => Some(TreePath::root()),
        false => TreePath::parse(&segments.join("/")).ok(),
    }
}

/// Sets a key unless its value is empty.
pub(super) fn set(map: &mut Map<String, Json>, key: &str, value: impl Into<Json>) {
    let value = value.into();
    let is_empty = match &value {
        Json::Null => true,
        Json::Array(items) => items.is_empty(),
        Json::Object(members) => members.is_empty(),
        Json::String(text) => text.is_empty(),
        _ => false,
    };
    if !is_empty {
        map.insert(key.to_owned(), value);
    }
}

/// Makes an object of the values that are not empty.
pub(super) fn object<const N: usize>(members: [(&str, Json); N]) -> Map<String, Json> {
    let mut map = Map::new();
    for (key, value) in members {
        set(&mut map, key, value);
    }
    map
}
