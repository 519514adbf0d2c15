//! Imports and exports of a page.
//!
//! A plain value that a page exports can be used without running anything, and a Markdown file
//! that it imports can be shown like a part of the page. All other names get their values from
//! the engine ([`evaluation`](super::evaluation)), and only if the page uses them.
//!
//! Sources: MDX 3 (ESM); ECMA-262 §16.2.

use std::ops::Range;
use std::sync::Arc;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    BindingPattern, Declaration, Expression, Statement as Parsed, VariableDeclaration,
};
use oxc_span::{GetSpan as _, Span as Within};

use super::evaluation::is_markdown;
use super::module::{Binding, Statement, StatementKind};
use super::scope::{Scope, Template};
use super::script;
use super::span::Origin;
use super::value::{Code, Value, bare};
use super::{Load, Node, PAGE_BYTES_MAX, Reader, WarningPosition, clean, line_ends, lines};

/// The last byte of a line for which a warning names the column.
const COLUMN_MAX: usize = 400;
/// The endings that the path of an import may omit.
const EXTENSIONS: [&str; 7] = [".mdx", ".md", ".jsx", ".tsx", ".js", ".ts", ".json"];

// === impl Reader ===

impl Reader<'_> {
    /// Adds the names that the statements of a file declare to its scope; `at` is where its
    /// text starts in the cleaned text of the file.
    pub(super) fn declare(
        &mut self,
        text: &str,
        at: usize,
        statements: &[Range<usize>],
        scope: Scope,
        depth: usize,
    ) {
        for range in statements {
            let code = Code {
                source: &text[range.clone()],
                at: at + range.start,
                scope,
                depth,
            };
            self.parse_statements(code);
        }
    }

    /// Parses statements and adds the names that they declare.
    fn parse_statements(&mut self, code: Code<'_>) {
        if !self.charge_script(code.source) {
            return;
        }
        let allocator = Allocator::default();
        match script::module(&allocator, code.source, &self.file) {
            Ok(program) => {
                for parsed in &program.body {
                    let span = parsed.span();
                    if let Some(kind) = StatementKind::of(parsed) {
                        self.keep(kind, code, span.start as usize..span.end as usize);
                    }
                    self.statement(parsed, code);
                }
            }
            Err(broken) => {
                self.keep(StatementKind::Broken, code, 0..code.source.len());
                self.report_broken(&broken, code.at);
            }
        }
    }

    /// Adds a statement of the page itself to its list.
    fn keep(&mut self, kind: StatementKind, code: Code<'_>, range: Range<usize>) {
        if code.scope.is_page() {
            self.module.push(Statement {
                kind,
                source: code.source[range.clone()].into(),
                span: self.origin.span(code.at + range.start..code.at + range.end),
            });
        }
    }

    fn statement(&mut self, parsed: &Parsed<'_>, code: Code<'_>) {
        match parsed {
            Parsed::ImportDeclaration(import) if import.import_kind.is_type() => {}
            Parsed::ImportDeclaration(import) => {
                if let Some(StatementKind::Import { from, names }) = StatementKind::of(parsed) {
                    let at = self.place(code, import.source.span);
                    self.import(&names, &from, at, code.scope);
                }
            }
            Parsed::ExportFromDeclaration(export) if !export.export_kind.is_type() => {
                let from = export.source.value.as_str();
                self.find(from, self.place(code, export.source.span));
            }
            Parsed::ExportAllDeclaration(export) => {
                let from = export.source.value.as_str();
                self.find(from, self.place(code, export.source.span));
            }
            Parsed::ExportDeclaration(export) => match &export.declaration {
                Declaration::VariableDeclaration(variables) => self.variables(variables, code),
                Declaration::FunctionDeclaration(function) => {
                    let id = function.id.iter();
                    id.for_each(|id| self.scopes.declare(code.scope, id.name.as_str()));
                }
                Declaration::ClassDeclaration(class) => {
                    let id = class.id.iter();
                    id.for_each(|id| self.scopes.declare(code.scope, id.name.as_str()));
                }
                Declaration::TSEnumDeclaration(one) => {
                    self.scopes.declare(code.scope, one.id.name.as_str());
                }
                // Types have no value.
                _ => {}
            },
            Parsed::ExportDefaultDeclaration(_) => {
                if let Some(StatementKind::Export { names, .. }) = StatementKind::of(parsed) {
                    for one in names.iter().filter(|one| &*one.local != "default") {
                        self.scopes.declare(code.scope, &one.local);
                    }
                }
            }
            _ => {}
        }
    }

    fn variables(&mut self, variables: &VariableDeclaration<'_>, code: Code<'_>) {
        for variable in &variables.declarations {
            for id in variable.id.get_binding_identifiers() {
                self.scopes.declare(code.scope, id.name.as_str());
            }
            // A value that changes later is not plain.
            if let (BindingPattern::BindingIdentifier(id), Some(init), true) =
                (&variable.id, &variable.init, variables.kind.is_const())
                && !matches!(
                    bare(init),
                    Expression::ArrowFunctionExpression(_) | Expression::FunctionExpression(_)
                )
                && let Ok(value) = self.value_of(code, init)
            {
                self.scopes.set_value(code.scope, id.name.as_str(), value);
            }
        }
    }

    /// Returns the place of a text in quotes, without its quotes.
    fn place(&self, code: Code<'_>, quoted: Within) -> WarningPosition {
        let (start, end) = (quoted.start as usize + 1, quoted.end as usize - 1);
        let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let from = code
            .source
            .floor_char_boundary(start.saturating_sub(COLUMN_MAX));
        let before = &code.source[from..start];
        let line_start = before.rfind('\n').map(|end| end + 1);
        let line_start = line_start.or((from == 0).then_some(0));
        WarningPosition {
            line: self.line(code.at + start),
            column: line_start.map_or(1, |start| count(&before[start..]) + 1),
            length: line_start.map_or(0, |_| count(&code.source[start..end.max(start)])),
        }
    }

    /// Imports names of a file into a scope.
    pub(super) fn import(
        &mut self,
        names: &[Binding],
        from: &str,
        at: WarningPosition,
        scope: Scope,
    ) {
        if from == "react" {
            for Binding { local, .. } in names {
                self.scopes.declare(scope, local);
            }
            return;
        }
        let Some((path, text)) = self.find(from, at) else {
            for Binding { local, .. } in names {
                self.scopes.declare(scope, local);
                self.scopes.set_missing(scope, local);
            }
            return;
        };
        for Binding { name, local } in names {
            self.scopes.declare(scope, local);
            if &**name == "default" && is_markdown(&path) {
                let template = self.template(&path, &text);
                self.scopes.set_component(scope, local, Arc::new(template));
            }
        }
    }

    /// Finds the file that an import names; reports a file that does not exist.
    fn find(&mut self, from: &str, at: WarningPosition) -> Option<(Box<str>, Arc<str>)> {
        if from == "react" {
            return None;
        }
        let Some(path) = resolve(&self.file, from, self.load) else {
            let message = format!("`{from}` is not a file of the documentation");
            self.warn_at("mdx-import", at, message);
            return None;
        };
        let text = (self.load)(&path).filter(|text| text.len() <= PAGE_BYTES_MAX);
        if text.is_none() {
            self.warn_at("snippet", at, format!("there is no snippet `{from}`"));
        }
        Some((path.into(), text?))
    }

    fn template(&mut self, path: &str, text: &str) -> Template {
        let (head, body) = text.split_at(frontmatter_end(text));
        let (body, shifts) = clean(body);
        let origin = Origin {
            file: self.number_of(path),
            start: head.len(),
            shifts,
            line: 1 + lines(head),
            line_ends: line_ends(&body),
        };
        Template {
            file: path.into(),
            body: body.into(),
            origin: Arc::new(origin),
        }
    }

    /// Shows a Markdown file with its props.
    pub(super) fn expand(
        &mut self,
        template: &Template,
        mut props: Vec<(Box<str>, Value)>,
        depth: usize,
    ) -> Vec<Node> {
        if !self.charge_text(&template.body) {
            return Vec::new();
        }
        let count = self.scopes.len();
        let scope = self.scopes.add(None);
        let outer = self.enter(template.file.clone(), Arc::clone(&template.origin));
        let inside = std::mem::take(&mut self.evaluation.inside);
        let bytes = props.iter().map(|(name, value)| name.len() + value.bytes());
        if self.charge(bytes.sum()) {
            props.sort_by(|(one, _), (other, _)| one.cmp(other));
            for (name, value) in &props {
                self.scopes.set_value(scope, name, value.clone());
            }
            let all = Value::Object(props.clone());
            self.scopes.set_value(scope, "props", all);
            self.scopes.set_props(scope, props);
        }
        let nodes = self.file(&template.body, 0, scope, depth + 1);
        self.evaluation.inside = inside;
        self.leave(outer);
        self.scopes.truncate(count);
        nodes
    }

    /// Makes another file the current one; returns the state that [`Reader::leave`] restores.
    pub(super) fn enter(&mut self, file: Box<str>, origin: Arc<Origin>) -> (Box<str>, Arc<Origin>) {
        let file = std::mem::replace(&mut self.file, file);
        (file, std::mem::replace(&mut self.origin, origin))
    }

    pub(super) fn leave(&mut self, (file, origin): (Box<str>, Arc<Origin>)) {
        self.file = file;
        self.origin = origin;
    }
}

/// Returns the byte at which the text of a snippet starts, after its frontmatter.
pub(super) fn frontmatter_end(text: &str) -> usize {
    match crate::frontmatter::read(text) {
        Ok(Some(found)) => found.body_offset,
        _ => 0,
    }
}

/// Finds the file that an import in `file` names, as a path from the root of the docs;
/// `None` if the import is a package or leads outside the root.
pub(super) fn resolve(file: &str, from: &str, load: &Load<'_>) -> Option<String> {
    let mut segments: Vec<&str> = match from.strip_prefix('/') {
        Some(_) => Vec::new(),
        None if from.starts_with('.') => file.split('/').rev().skip(1).collect(),
        None => return None,
    };
    if !from.starts_with('/') {
        segments.reverse();
    }
    for segment in from.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            other => segments.push(other),
        }
    }
    let path = segments.join("/");
    if EXTENSIONS.iter().any(|end| path.ends_with(end)) {
        return Some(path);
    }
    let mut all = EXTENSIONS.iter().map(|end| format!("{path}{end}"));
    let found = all.find(|path| load(path).is_some());
    Some(found.unwrap_or_else(|| format!("{path}.mdx")))
}
