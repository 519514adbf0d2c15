//! Divisions: tabs, menu items, anchors, dropdowns, products, versions and languages.
//!
//! Rules N7 (the first is the default) and N8 (a language carries its own banner, footer
//! and navbar).

use std::collections::HashSet;

use crate::docs::config::{Banner, Footer, Navbar};
use crate::docs::schema::Declared as _;
use crate::docs::schema::{self, Element};
use crate::syntax::{SpanDiagnostic, Value};

use super::super::language::{self, Code, Language};
use super::super::schema::SourceElement;
use super::super::tree::{Content, Division, DivisionKind, Divisions, LanguageParts};
use super::{Compiler, DUPLICATE_LABEL, LANGUAGE, Scope};

// === impl Compiler ===

impl Compiler<'_> {
    pub(super) fn divisions(
        &mut self,
        kind: DivisionKind,
        element: Element,
        items: &[Value],
        scope: &Scope,
    ) -> Option<Content> {
        let mut list = Vec::new();
        let mut default: Option<usize> = None;
        let mut labels = HashSet::new();
        for item in items {
            let Some(written) = self.element(item, element) else {
                continue;
            };
            if let Some(label) = written.label()
                && !labels.insert(label)
            {
                let message = format!("there are two entries `{label}` in `{}`", kind.key());
                self.warn(DUPLICATE_LABEL, written.place(), message);
            }
            let is_default = self.default_of(&written, default.is_some());
            let Some(division) = self.division(kind, &written, scope) else {
                continue;
            };
            if is_default {
                default = Some(list.len());
            }
            list.push(division);
        }
        // Rule N7: the first is the default unless an entry says otherwise.
        let visible = list
            .iter()
            .position(|division| !division.hidden && division.first.is_some());
        (!list.is_empty()).then_some(Content::Divisions(Divisions {
            kind,
            default: default.or(visible).unwrap_or(0),
            list,
        }))
    }

    /// Checks an element's object; `None` when it is not an object or has no label.
    pub(super) fn element<'v>(
        &mut self,
        item: &'v Value,
        element: Element,
    ) -> Option<SourceElement<'v>> {
        let written = SourceElement {
            element: Some(element),
            value: item,
        };
        let is_object = schema::check(item, element.object(), self.diagnostics);
        (is_object && written.label().is_some()).then_some(written)
    }

    /// Rule N7: whether an entry is the default; a second one is not.
    fn default_of(&mut self, written: &SourceElement<'_>, decided: bool) -> bool {
        let Some((true, span)) = written.flag("default") else {
            return false;
        };
        if decided {
            let message = format!(
                "{} is a second default; the first one counts",
                written.name()
            );
            self.warn("N7", span, message);
        }
        !decided
    }

    fn division(
        &mut self,
        kind: DivisionKind,
        written: &SourceElement<'_>,
        scope: &Scope,
    ) -> Option<Division> {
        let label = written.label()?;
        let mut scope = scope.clone();
        let mut parts = None;
        match kind {
            DivisionKind::Languages => {
                let language = self.language(written)?;
                scope.language = Some(language.code.clone());
                parts = Some(Box::new(LanguageParts {
                    language,
                    banner: written.value.get("banner").and_then(Banner::read),
                    footer: written.value.get("footer").and_then(Footer::read),
                    navbar: written.value.get("navbar").and_then(Navbar::read),
                }));
            }
            DivisionKind::Versions => scope.version = Some(label.into()),
            _ => scope
                .breadcrumb
                .push(written.text("name").map_or(label, |(name, _)| name).into()),
        }
        let outer = self.table.enter_sidebar();
        let content = self.content(written, &mut scope);
        self.table.leave_sidebar(outer);
        let content = content?;
        let shown = match (&parts, kind) {
            (Some(parts), DivisionKind::Languages) => parts.language.name,
            _ => label,
        };
        Some(Division {
            label: shown.into(),
            description: written.owned_text("description"),
            icon: written.icon(),
            tag: written.owned_text("tag"),
            hidden: scope.hidden,
            language: parts,
            global: self.global(written.value),
            first: content.first(self.table.pages()),
            content,
        })
    }

    fn language(&mut self, written: &SourceElement<'_>) -> Option<Language> {
        let (text, span) = written.text("language")?;
        match language::parse(text) {
            Code::Listed(language) => Some(language),
            Code::Alias(language, listed) => {
                let message = format!("`{text}` is read, but the listed code is `{listed}`");
                let diagnostic = SpanDiagnostic::warning(LANGUAGE, span, message);
                self.diagnostics.push(
                    diagnostic
                        .help(format!("write `{listed}`"))
                        .edit(span, format!("\"{listed}\"")),
                );
                Some(language)
            }
            Code::Unknown => {
                let codes: Vec<_> = language::codes().collect();
                let message = format!("`{text}` is not a supported language");
                let help = format!("the codes are {}", codes.join(", "));
                self.diagnostics
                    .push(SpanDiagnostic::error(LANGUAGE, span, message).help(help));
                None
            }
        }
    }
}
