//! The sections of a skill that have a limit of their own; the list of pages gets the rest.

use std::collections::HashSet;

use super::about::{self, Subject};
use super::advice::{Advice, advice};
use super::command::Program;
use super::first::{First, first};
use super::integration::integration;
use super::name::Names;
use super::outline::{self, Outline, link_to};
use super::sink::Share;
use super::text::plain;
use super::workflow::workflows;
use super::{capability, command, decision, example, mistake, reference, variable};
use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;

/// The sections that an agent needs most.
pub(super) struct Essential<'d> {
    pub(super) share: Share,
    pub(super) capabilities: Vec<String>,
    pub(super) first: First<'d>,
    pub(super) context: Vec<String>,
}

// === impl Essential ===

impl<'d> Essential<'d> {
    pub(super) fn of(
        docs: &'d Docs,
        outline: &Outline,
        about: &str,
        names: &Names,
        share: Share,
        base_url: &str,
    ) -> Self {
        let (own, others) = (share.of_essential(), share);
        let first = first(docs, outline, names, own, base_url);
        let advice = advice(docs, outline, own, base_url);
        let mistakes = mistake::table(docs, outline, others, base_url);
        Self {
            share: own,
            capabilities: capabilities(
                docs,
                outline,
                about,
                &first.choices,
                (own, others),
                base_url,
            ),
            context: context(docs, outline, (&advice, mistakes), base_url),
            first,
        }
    }

    pub(super) fn sections(&self) -> [&Vec<String>; 3] {
        [&self.capabilities, &self.first.lines, &self.context]
    }
}

/// The other sections, which get smaller first.
pub(super) struct Scaled {
    pub(super) examples: Vec<String>,
    pub(super) commands: Vec<String>,
    pub(super) variables: Vec<String>,
    pub(super) reference: Vec<String>,
    pub(super) workflows: Vec<String>,
    pub(super) integration: Vec<String>,
}

// === impl Scaled ===

impl Scaled {
    pub(super) fn of(
        docs: &Docs,
        outline: &Outline,
        first: &First<'_>,
        names: &Names,
        program: Option<&Program>,
        share: Share,
        base_url: &str,
    ) -> Self {
        let workflows = workflows(docs, outline, &first.shown, share, base_url);
        Self {
            examples: example::examples(docs, outline, first, names, &workflows, share, base_url),
            commands: command::table(docs, program, share, base_url),
            variables: variable::table(docs, outline, share, base_url),
            reference: reference::table(docs, outline, share, base_url),
            workflows: or_line(workflows, || {
                format!(
                    "No page describes a procedure in steps; the guides are in {}.",
                    outline.all_pages(base_url)
                )
            }),
            integration: or_line(integration(docs, outline, share, base_url), || {
                format!(
                    "No page is about an integration; all pages are in {}.",
                    outline.all_pages(base_url)
                )
            }),
        }
    }

    pub(super) fn sections(&self) -> [&Vec<String>; 6] {
        [
            &self.examples,
            &self.commands,
            &self.variables,
            &self.reference,
            &self.workflows,
            &self.integration,
        ]
    }
}

/// Writes what the product can do, and the decisions that an agent must take.
fn capabilities(
    docs: &Docs,
    outline: &Outline,
    about: &str,
    choices: &[(Vec<String>, PageId)],
    (own, others): (Share, Share),
    base_url: &str,
) -> Vec<String> {
    let table = capability::table(docs, outline, about, own, base_url);
    let mut lines = or_line(table, || {
        format!(
            "- The pages are a reference: {}",
            outline.all_pages(base_url)
        )
    });
    let decisions = decision::decisions(docs, outline, choices, others, base_url);
    if !decisions.is_empty() {
        lines.push(String::new());
        lines.extend(headed("Decide first", decisions));
    }
    lines
}

/// Puts a heading above lines; without lines there is none.
pub(super) fn headed(heading: &str, lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return lines;
    }
    let head = [format!("### {heading}"), String::new()];
    head.into_iter().chain(lines).collect()
}

/// Returns the lines, or this one if there are none.
fn or_line(lines: Vec<String>, line: impl FnOnce() -> String) -> Vec<String> {
    if lines.is_empty() {
        vec![line()]
    } else {
        lines
    }
}

/// Writes the context: a description of the product, pitfalls and limits, when not to use it,
/// versions and languages.
fn context(
    docs: &Docs,
    outline: &Outline,
    (advice, mistakes): (&Advice, Vec<String>),
    base_url: &str,
) -> Vec<String> {
    let mut lines = Vec::new();
    let home = outline.home(docs);
    if let Some(id) = home {
        let product = about::product(&docs.config.name);
        let words = about::definition(docs, id, &product, Subject::Any);
        let words = words.unwrap_or_else(|| {
            let page = docs.navigation.page(id);
            let words = outline::words(docs, page);
            match about::repeats(&words, &page.title, &docs.config.name) {
                true => String::new(),
                false => words,
            }
        });
        let link = link_to(docs, id, base_url);
        if words.is_empty() {
            lines.push(format!("- Start here: {link}"));
        } else {
            lines.push(format!("- {words} – {link}"));
        }
    }
    if outline.versions.len() > 1 {
        let labels = outline.versions.iter().map(|label| plain(label));
        let labels = labels.collect::<Vec<_>>().join(", ");
        lines.push(format!(
            "- Versions: {labels} (this skill describes the first)"
        ));
    }
    if outline.languages.len() > 1 {
        let codes = outline.languages.iter().map(|code| plain(code));
        let codes = codes.collect::<Vec<_>>().join(", ");
        lines.push(format!(
            "- Languages: {codes} (this skill describes the first)"
        ));
    }
    let pages: HashSet<_> = outline.pages().collect();
    let count = pages.len();
    lines.push(match outline.named_lists(base_url) {
        None => format!(
            "- Pages of the documentation: {count}, all in {}",
            outline.all_pages(base_url)
        ),
        Some(lists) => format!("- Pages of the documentation: {count}, in lists: {lists}"),
    });
    if !advice.pitfalls.is_empty() {
        lines.push(String::new());
        lines.extend(headed("Pitfalls and limits", advice.pitfalls.clone()));
    }
    if !mistakes.is_empty() {
        lines.push(String::new());
        lines.extend(headed("Mistakes and remedies", mistakes));
    }
    let product = about::product(&docs.config.name);
    let unsuited = or_line(advice.unsuited.clone(), || {
        let product = if product.is_empty() {
            "this product"
        } else {
            &product
        };
        match outline.lists.is_empty() {
            true => format!(
                "- For anything that is not about {product}: [llms.txt]({base_url}/llms.txt) lists what the pages are about"
            ),
            false => format!(
                "- For anything that is not about {product}; what the pages are about is in {}",
                outline.all_pages(base_url)
            ),
        }
    });
    lines.push(String::new());
    lines.extend(headed("When not to use it", unsuited));
    lines
}
