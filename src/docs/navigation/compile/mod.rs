//! Compiles `navigation` of `docs.json` into the resolved navigation.
//!
//! The compiler walks over the elements once. On the way down, a [`Scope`] carries what
//! children inherit: directory (N4), specification (N6), hidden, place in search, language,
//! version, the labels of the breadcrumb. Each element is checked against the table of keys, and
//! one kind of its children is compiled (N1, N2). An element without content is omitted, with a
//! diagnostic.

mod binding;
mod divisions;
mod endpoints;
mod groups;
mod table;
mod written;

use std::collections::HashSet;
use std::rc::Rc;

use crate::docs::config::Mdx;
use crate::docs::openapi::Specifications;
use crate::docs::page::Pages;
use crate::docs::page::ignored::Ignored;
use crate::docs::schema::{Element, NO_EFFECT};
use crate::source::Tree;
use crate::syntax::{Diagnostics, Span, SpanDiagnostic, Value};

use self::binding::Bound;
use self::endpoints::Applied;
use self::table::Table;
use super::schema::{ChildKind, Children, SourceElement};
use super::tree::{Anchor, Content, Directory, Navigation, Open};

/// The rule that languages are named by the listed codes.
pub const LANGUAGE: &str = "language";
/// The rule that an element has content.
pub const EMPTY: &str = "empty";
/// The rule that sibling labels are different.
pub const DUPLICATE_LABEL: &str = "duplicate-label";

/// The input of [`compile`].
#[derive(Debug)]
pub struct Input<'a> {
    /// The tree that specifications are read from.
    pub tree: &'a Tree,
    /// The files of the tree that are ignored.
    pub ignored: &'a Ignored,
    /// The value of `navigation`.
    pub navigation: &'a Value,
    /// The pages; `None` to check `docs.json` alone.
    pub pages: Option<&'a Pages>,
    /// The value of `api.openapi`.
    pub api: &'a [(Box<str>, Span)],
    /// The value of `api.mdx`.
    pub mdx: &'a Mdx,
    /// Whether rules N1 and N2 warn instead of failing.
    pub lenient: bool,
}

/// The settings that children inherit.
#[derive(Clone, Debug, Default)]
struct Scope {
    directory: Directory,
    hidden: bool,
    /// Whether search finds the pages, if an element says so.
    searchable: Option<bool>,
    boost: Option<f32>,
    applied: Option<Rc<Applied>>,
    breadcrumb: Vec<Box<str>>,
    language: Option<Box<str>>,
    version: Option<Box<str>>,
}

/// The state of the walk.
struct Compiler<'a> {
    input: &'a Input<'a>,
    specifications: &'a mut Specifications,
    diagnostics: &'a mut Diagnostics,
    table: Table<'a>,
    bound: HashSet<Bound>,
    /// The specifications of `api.openapi` that could be read.
    api: Vec<usize>,
    /// Whether the specifications that nothing names have been read.
    discovered: bool,
}

/// Compiles a navigation and reports all mistakes in one pass.
#[must_use]
pub fn compile(
    input: &Input<'_>,
    specifications: &mut Specifications,
    diagnostics: &mut Diagnostics,
) -> Navigation {
    let mut compiler = Compiler {
        input,
        specifications,
        diagnostics,
        table: Table::new(input.pages),
        bound: HashSet::new(),
        api: Vec::new(),
        discovered: false,
    };
    compiler.bound = binding::bound(input.pages);
    let root = SourceElement {
        element: None,
        value: input.navigation,
    };
    let (content, global) = if input.navigation.is_map() {
        let content = compiler.content(&root, &mut Scope::default());
        // The pages of a site without divisions are one sidebar.
        compiler.table.leave_sidebar(Vec::new());
        (content, compiler.global(input.navigation))
    } else {
        (None, Vec::new())
    };
    compiler.bind();
    let Compiler { table, .. } = compiler;
    Navigation {
        content,
        global,
        pages: table.finish(),
    }
}

// === impl Compiler ===

impl Compiler<'_> {
    fn warn(&mut self, rule: &'static str, span: Span, message: impl Into<String>) {
        self.diagnostics
            .push(SpanDiagnostic::warning(rule, span, message));
    }

    /// Compiles the content of an element; `scope` receives what its children inherit.
    fn content(&mut self, written: &SourceElement<'_>, scope: &mut Scope) -> Option<Content> {
        self.inherit(written, scope);
        let children = written.children();
        let link = written.text("href").filter(|_| written.element.is_some());
        self.one_kind(written, &children, link.map(|(_, span)| span));
        if let Some((href, span)) = link {
            return Some(Content::Link(self.href(href, span)));
        }
        let Some(chosen) = children.first() else {
            let generated = self.generated_groups(scope, Open::Always);
            if generated.is_empty() {
                self.report_empty(written, scope);
                return None;
            }
            return Some(Content::Groups(generated));
        };
        let declares = written.value.get("openapi").is_some();
        match chosen.kind {
            ChildKind::Divisions(kind, element) => {
                self.divisions(kind, element, chosen.items, scope)
            }
            ChildKind::Groups => Some(self.groups(chosen.items, declares, scope)),
            ChildKind::Pages => Some(self.pages(chosen.items, declares, scope)),
        }
    }

    /// Rules N1 and N2: one kind of children at each level, and none beside a link.
    fn one_kind(
        &mut self,
        written: &SourceElement<'_>,
        children: &[Children<'_>],
        href: Option<Span>,
    ) {
        let name = written.name();
        let make = match self.input.lenient {
            true => SpanDiagnostic::warning,
            false => SpanDiagnostic::error,
        };
        let rule = if written.element.is_none() {
            "N1"
        } else {
            "N2"
        };
        if let [first, others @ ..] = children {
            for other in others {
                let (kept, key) = (first.kind.key(), other.kind.key());
                let message = format!("{name} has `{kept}` and `{key}` at the same level");
                let help = match written.element {
                    None => "keep one primary pattern",
                    Some(_) => "keep one kind of children",
                };
                let help = format!(
                    "{help}; nest `{key}` inside `{kept}`, or the other way round{}",
                    self.lenient_hint()
                );
                self.diagnostics
                    .push(make(rule, other.key, message).help(help));
            }
            if let Some(span) = href {
                let kept = first.kind.key();
                let message = format!("{name} has `href` beside `{kept}`");
                let help = format!(
                    "a link has no children; remove one of the two{}",
                    self.lenient_hint()
                );
                self.diagnostics.push(make("N2", span, message).help(help));
            }
            if !first.listed {
                let message = format!(
                    "{name} has `{}`, which is accepted but not listed for {}",
                    first.kind.key(),
                    written.object().name
                );
                self.warn("N2", first.key, message);
            }
        }
    }

    /// Returns the end of the help for rules N1 and N2: how the documentation is published
    /// without a change of its navigation.
    fn lenient_hint(&self) -> &'static str {
        match self.input.lenient {
            true => "",
            false => {
                "; with `\"lenient\": true` in docs.json, or `lenient: true` in the site's record, \
                 this is a warning"
            }
        }
    }

    /// Adds the diagnostic for an element without content.
    fn report_empty(&mut self, written: &SourceElement<'_>, scope: &Scope) {
        let is_unknown = scope
            .applied
            .as_ref()
            .is_some_and(|applied| applied.is_unknown());
        match written.element {
            // The specification was not read, so the element may have pages that are not known.
            _ if is_unknown => {}
            None => {
                let message = "navigation has no primary pattern";
                let help = "give it one of `pages`, `groups`, `tabs`, `anchors`, `dropdowns`, `products`, `versions`, `languages`";
                let diagnostic = SpanDiagnostic::error("N1", written.place(), message);
                self.diagnostics.push(diagnostic.help(help));
            }
            Some(_) => {
                let message = format!("{} has no pages and is left out", written.name());
                self.warn(EMPTY, written.place(), message);
            }
        }
    }

    /// Reads the settings of an element that apply to it and its descendants.
    fn inherit(&mut self, written: &SourceElement<'_>, scope: &mut Scope) {
        let directory = written
            .text("directory")
            .and_then(|(text, _)| Directory::parse(text));
        scope.directory = directory.unwrap_or(scope.directory);
        scope.hidden = written
            .flag("hidden")
            .map_or(scope.hidden, |(hidden, _)| hidden);
        // A hidden element inside of a searchable one is out of search again.
        let is_hidden = matches!(written.flag("hidden"), Some((true, _)));
        let inherited = scope.searchable.filter(|_| !is_hidden);
        let searchable = written.flag("searchable").map(|(searchable, _)| searchable);
        scope.searchable = searchable.or(inherited);
        scope.boost = written.weight("boost").or(scope.boost);
        if let Some(value) = written.value.get("openapi") {
            scope.applied = self.apply(value, written.value, scope.applied.is_some());
        }
    }

    /// Reads `global.anchors`.
    fn global(&mut self, value: &Value) -> Vec<Anchor> {
        let anchors = value.get("global").and_then(|global| global.get("anchors"));
        let mut links = Vec::new();
        for item in anchors.map_or(&[][..], Value::items) {
            let Some(written) = self.element(item, Element::GlobalAnchor) else {
                continue;
            };
            if let (Some(label), Some((href, span))) = (written.label(), written.text("href"))
                && !written.flag("hidden").is_some_and(|(hidden, _)| hidden)
            {
                links.push(Anchor {
                    label: label.into(),
                    icon: written.icon(),
                    href: self.href(href, span),
                });
            }
        }
        links
    }

    /// Reads a link: a URL, or the path of a page.
    fn href(&mut self, text: &str, span: Span) -> Box<str> {
        if text
            .trim_start()
            .to_ascii_lowercase()
            .starts_with("javascript:")
        {
            let message = "a link leads to a page or a URL, not to a script";
            self.diagnostics
                .push(SpanDiagnostic::error("N2", span, message));
            return "/".into();
        }
        if has_scheme(text) || text.starts_with(['/', '#']) {
            return text.into();
        }
        let path = text.split(['#', '?']).next().unwrap_or(text);
        if self.table.is_missing(path) && self.input.pages.is_some() {
            let message = format!("there is no page `{path}`");
            let help = "a link to another site starts with `https://`";
            self.diagnostics
                .push(SpanDiagnostic::warning(table::MISSING, span, message).help(help));
        }
        format!("/{}", text.trim_start_matches("./")).into()
    }

    /// Adds the warning for a setting without effect.
    fn no_effect(&mut self, rule: Option<&'static str>, span: Span, message: String) {
        self.warn(rule.unwrap_or(NO_EFFECT), span, message);
    }
}

/// RFC 3986 §3.1: whether a text starts with a scheme; `//host` counts.
#[must_use]
pub fn has_scheme(text: &str) -> bool {
    if text.starts_with("//") {
        return true;
    }
    let scheme = text.split(':').next().unwrap_or_default();
    scheme.len() < text.len()
        && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}
