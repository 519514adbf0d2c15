//! The generated `skill.md` of a site whose authors wrote no skill.
//!
//! `generate` is a function from the documentation to a text. It adds no facts: every line
//! comes from a page, the navigation or a specification, and links lead to pages of the site.
//!
//! | section | made from |
//! |---|---|
//! | frontmatter | the site's name and description; the default version's label |
//! | Capabilities | the top level of the navigation: the first pages of each part |
//! | Skills | every page by its group; endpoints with method, path and what they require |
//! | Workflows | `<Steps>` and numbered lists |
//! | Integration | specifications, their servers and their authentication; the list of all pages |
//! | Context | the description of the first page, versions, languages |
//!
//! **Rules**
//!
//! * G1: the same documentation gives the same bytes.
//! * G2: it has at most [`LINES_MAX`] lines and [`CHARACTERS_MAX`] characters. The most
//!   important content is written first: the first page of every group before any second page,
//!   and the other sections before a long list of pages.
//! * G3: it uses only the default language and the default version, and only pages that are
//!   public and not hidden.
//! * G4: the public validator accepts it: block YAML, quoted texts, no `---` inside.
//!
//! Links begin with the base URL that the caller gives; a build gives a placeholder, because
//! a release does not know its domain.
//!
//! An operator may configure another program that writes the file; [`source_pages`] is its input.
//! [`accept()`] decides whether the text of that program replaces this one.
//!
//! Sources: `internals/decisions#generated-skill` (the sections); Agent Skills specification.

mod accept;
mod integration;
mod outline;
mod secret;
mod text;
mod workflow;
#[cfg(test)]
mod tests;

use crate::docs::Docs;

use super::{Slug, cut};
pub use accept::{Age, Rejected, accept};
use integration::integration;
use outline::{Category, Outline};
use text::{plain, quoted};
use workflow::workflows;

/// The most lines of a generated skill: the Agent Skills specification recommends this limit.
pub const LINES_MAX: usize = 500;
/// The most characters of a generated skill: some thousand tokens of an agent's context.
pub const CHARACTERS_MAX: usize = 20_000;
/// The version in the metadata when the documentation names none.
const VERSION_DEFAULT: &str = "1.0";
/// The longest description, in UTF-16 code units; clients accept 1024.
const DESCRIPTION_UNITS_MAX: usize = 600;
/// How many parts the description names, and how many pages each capability names.
const PARTS_NAMED: usize = 6;
/// Labels that nearly every documentation has: they do not say when to use the skill.
const GENERIC_LABELS: [&str; 8] = [
    "Getting started",
    "Get started",
    "Introduction",
    "Overview",
    "Documentation",
    "Guides",
    "Welcome",
    "Other",
];
const CAPABILITIES_MAX: usize = 24;

/// A generated skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Its slug.
    pub slug: Slug,
    /// Its description.
    pub description: String,
    /// The file.
    pub text: String,
}

/// A page that a skill may use (rule G3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePage<'d> {
    /// The label of its group.
    pub group: String,
    /// Its title, as one plain line.
    pub title: String,
    /// Its path below the site's base URL.
    pub url: &'d str,
    /// Its description or first paragraph, in a sentence.
    pub about: String,
    /// Method and path of the endpoint it describes, if it describes one.
    pub endpoint: Option<String>,
}

/// Lists the pages that a skill may use, in the order of the navigation.
#[must_use]
pub fn source_pages(docs: &Docs) -> Vec<SourcePage<'_>> {
    let outline = Outline::of(docs);
    let mut source_pages = Vec::new();
    for category in &outline.categories {
        for entry in &category.entries {
            let page = docs.navigation.page(entry.page);
            let endpoint = outline::endpoint(docs, page);
            source_pages.push(SourcePage {
                group: category.label.clone(),
                title: entry.title.clone(),
                url: &page.url,
                about: outline::words(docs, page),
                endpoint: endpoint.map(|(_, is)| format!("{} {}", is.method, is.path)),
            });
        }
    }
    source_pages
}

/// Generates the skill of a documentation; `None` when no page may be used (rule G3).
///
/// `title` and `about` are the site's name and description; links begin with `base_url`.
#[must_use]
pub fn generate(docs: &Docs, title: &str, about: &str, base_url: &str) -> Option<Generated> {
    let outline = Outline::of(docs);
    if outline.categories.is_empty() {
        return None;
    }
    let (title, about) = (plain(title), plain(about));
    let slug = Slug::from_name(&title).or_else(|| Slug::from_name("documentation"))?;
    let description = description(&title, &about, &outline);
    let version = outline
        .version
        .clone()
        .unwrap_or_else(|| VERSION_DEFAULT.into());

    let mut page = Page::new();
    page.frontmatter(&slug, &description, &title, &version);
    page.line(&format!("# {title}"));
    if !about.is_empty() {
        page.line("");
        page.line(&about);
    }
    let capabilities = capabilities(&outline);
    let workflows = workflows(docs, &outline, base_url);
    let integration = integration(docs, &outline, base_url);
    let context = context(docs, &outline, base_url);
    // Every other section has its own limit; the list of pages gets the rest.
    let after: usize = [&workflows, &integration, &context]
        .iter()
        .map(|lines| cost(lines))
        .sum();
    page.section("Capabilities", &capabilities);
    let skills = skills(docs, &outline, base_url, page.left(after));
    page.section("Skills", &skills);
    page.section("Workflows", &workflows);
    page.section("Integration", &integration);
    page.section("Context", &context);
    Some(Generated {
        slug,
        description,
        text: page.text,
    })
}

/// Returns the label of the version that a documentation shows by default, else "1.0".
#[must_use]
pub fn documentation_version(docs: &Docs) -> Box<str> {
    Outline::of(docs)
        .version
        .unwrap_or_else(|| VERSION_DEFAULT.into())
}

/// Writes when to use the skill: agents decide by this text.
fn description(title: &str, about: &str, outline: &Outline) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for category in &outline.categories {
        let label = &*category.label;
        let says_something = !GENERIC_LABELS
            .iter()
            .any(|word| label.eq_ignore_ascii_case(word));
        if says_something && !parts.contains(&label) && parts.len() < PARTS_NAMED {
            parts.push(label);
        }
    }
    let mut text = format!("Use when working with {title}");
    if !parts.is_empty() {
        text.push_str(&format!(", for questions about {}", parts.join(", ")));
    }
    text.push('.');
    if !about.is_empty() {
        text.push_str(&format!(" {about}"));
    }
    cut(&text, DESCRIPTION_UNITS_MAX).to_owned()
}

/// Writes one line for each part of the navigation, with the titles of its first pages.
fn capabilities(outline: &Outline) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut parts: Vec<&str> = Vec::new();
    for category in &outline.categories {
        if parts.contains(&&*category.part) {
            continue;
        }
        parts.push(&category.part);
        let of_part = outline
            .categories
            .iter()
            .filter(|other| other.part == category.part);
        let titles: Vec<&str> = of_part
            .flat_map(|category| &category.entries)
            .map(|entry| &*entry.title)
            .take(PARTS_NAMED)
            .collect();
        lines.push(format!("- **{}**: {}", category.part, titles.join(", ")));
        if lines.len() == CAPABILITIES_MAX {
            break;
        }
    }
    lines
}

/// Lists pages by category; the first pages of all categories are chosen before any second
/// page (rule G2).
fn skills(docs: &Docs, outline: &Outline, base_url: &str, budget: Budget) -> Vec<String> {
    let lines: Vec<Vec<String>> = outline
        .categories
        .iter()
        .map(|category| {
            category
                .entries
                .iter()
                .map(|entry| entry.line(docs, base_url))
                .collect()
        })
        .collect();
    let mut shown = vec![0; lines.len()];
    let mut budget = budget;
    let longest = lines.iter().map(Vec::len).max().unwrap_or(0);
    'all: for nth in 0..longest {
        for (category, (of_category, shown)) in
            outline.categories.iter().zip(lines.iter().zip(&mut shown))
        {
            let Some(line) = of_category.get(nth) else {
                continue;
            };
            // The first page of a category also needs the heading, and the line "and N more pages".
            let heading = if nth == 0 {
                category.heading().len() + 60
            } else {
                0
            };
            if !budget.take(
                line.chars().count() + 1 + heading,
                if nth == 0 { 5 } else { 1 },
            ) {
                break 'all;
            }
            *shown = nth + 1;
        }
    }
    let listed = outline.categories.iter().zip(lines.iter().zip(shown));
    let mut out = Vec::new();
    for (category, (lines, shown)) in listed.filter(|(_, (_, shown))| *shown > 0) {
        if !out.is_empty() {
            out.push(String::new());
        }
        out.push(category.heading());
        out.push(String::new());
        out.extend_from_slice(&lines[..shown]);
        if shown < lines.len() {
            out.push(format!("- and {} more pages", lines.len() - shown));
        }
    }
    out
}

/// Writes the description of the first page, the versions and languages, and the number of pages.
fn context(docs: &Docs, outline: &Outline, base_url: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(opening) = docs.navigation.first().map(|id| docs.navigation.page(id)) {
        let words = outline::words(docs, opening);
        if !words.is_empty() {
            lines.push(words);
            lines.push(String::new());
        }
        let title = plain(&opening.title);
        lines.push(format!(
            "- Start here: [{title}]({base_url}{})",
            opening.url
        ));
    }
    let list = |what: &str, labels: &[Box<str>]| {
        let others = labels.iter().map(|label| plain(label)).collect::<Vec<_>>();
        format!(
            "- {what}: {} (this skill describes the first)",
            others.join(", ")
        )
    };
    if outline.versions.len() > 1 {
        lines.push(list("Versions", &outline.versions));
    }
    if outline.languages.len() > 1 {
        lines.push(list("Languages", &outline.languages));
    }
    let pages: usize = outline
        .categories
        .iter()
        .map(|category| category.entries.len())
        .sum();
    lines.push(format!("- Pages of the documentation: {pages}"));
    lines
}

impl Category {
    fn heading(&self) -> String {
        if self.part == self.label {
            format!("### {}", self.label)
        } else {
            format!("### {}: {}", self.part, self.label)
        }
    }
}

/// How many lines and characters a list may still use.
#[derive(Clone, Copy)]
struct Budget {
    lines: usize,
    characters: usize,
}

impl Budget {
    /// Uses some of it; returns `false` when too little is left.
    fn take(&mut self, characters: usize, lines: usize) -> bool {
        if characters > self.characters || lines > self.lines {
            return false;
        }
        self.characters -= characters;
        self.lines -= lines;
        true
    }
}

/// The text that is being written.
struct Page {
    text: String,
}

impl Page {
    fn new() -> Self {
        Self {
            text: String::new(),
        }
    }

    fn frontmatter(&mut self, slug: &Slug, description: &str, title: &str, version: &str) {
        self.line("---");
        // A slug may be `0`, `1e3` or `null`: without quotes YAML does not read these as texts.
        self.line(&format!("name: {}", quoted(slug.as_str())));
        self.line(&format!("description: {}", quoted(description)));
        self.line("metadata:");
        self.line(&format!("  project: {}", quoted(title)));
        self.line(&format!("  version: {}", quoted(&plain(version))));
        self.line("---");
        self.line("");
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds a section, unless it has no lines.
    fn section(&mut self, title: &str, lines: &[String]) {
        if lines.is_empty() {
            return;
        }
        self.line("");
        self.line(&format!("## {title}"));
        self.line("");
        for line in lines {
            self.line(line);
        }
    }

    /// Returns the budget that is left when other sections need `after` characters.
    fn left(&self, after: usize) -> Budget {
        let used = self.text.chars().count() + after + 200;
        let lines = self.text.lines().count() + workflow::LINES_MAX + integration::LINES_MAX + 40;
        Budget {
            lines: LINES_MAX.saturating_sub(lines),
            characters: CHARACTERS_MAX.saturating_sub(used),
        }
    }
}

fn cost(lines: &[String]) -> usize {
    lines.iter().map(|line| line.chars().count() + 1).sum()
}
