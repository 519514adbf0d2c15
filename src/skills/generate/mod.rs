//! The generated `skill.md` of a site whose authors wrote no skill.
//!
//! `generate` is a function from the documentation to a text. It adds no facts: every line
//! comes from a page, the navigation or a specification, and links lead to pages of the site.
//!
//! | section | made from |
//! |---|---|
//! | frontmatter | the site's name; what the product is, its packages, and what its guides do; the version that the default version's label names |
//! | Capabilities | a table of areas: the parts and groups of the navigation and the cards of the first page; a table of decisions: tables for a choice, "use A when B", alternatives of the code |
//! | Skills | the first working call; more calls in its language; the commands of a command line; environment variables; guides by group; endpoints with method, path and what they require; then reference, community and changelog |
//! | Workflows | `<Steps>`, numbered lists and numbered headings of pages that tell how to do something |
//! | Integration | specifications, their servers and their authentication; pages about integrations, SDKs and command lines; the list of all pages |
//! | Context | what the product is; pitfalls and limits from callouts; mistakes and their remedies; when not to use it, and what is old; versions, languages |
//!
//! The role of a page decides where it is used: see `role`.
//!
//! **Rules**
//!
//! * G1: the same documentation gives the same bytes.
//! * G2: it has at most [`LINES_MAX`] lines and [`CHARACTERS_MAX`] characters, also if the address of
//!   the site has [`ADDRESS_CHARACTERS_MAX`] characters. The most important content is written
//!   first: the first page of every group before any second page, guides before reference,
//!   community and changelog. The list of pages has a part of its own, and the other sections get
//!   smaller for it.
//! * G3: it uses only the default language and the default version, and only pages that are
//!   public and not hidden.
//! * G4: the public validator accepts it: block YAML, quoted texts, no `---` in the frontmatter.
//! * G5: every section is there, no heading is there twice, and every line names its page or is
//!   below a line that does.
//!
//! Links begin with the base URL that the caller gives; a build gives a placeholder, because
//! a release does not know its domain.
//!
//! An operator may configure another program or a language model that writes the file;
//! [`Material`](super::Material) is its input. [`accept()`] decides whether the text of that
//! program replaces this one.
//!
//! Sources: `internals/decisions#generated-skill` (the sections); Agent Skills specification.

mod about;
mod accept;
mod advice;
mod capability;
mod code;
mod command;
mod decision;
mod description;
mod example;
mod first;
mod group;
mod integration;
mod limit;
mod mistake;
mod outline;
mod package;
mod quickstart;
mod reference;
mod role;
mod secret;
mod section;
mod sink;
mod step;
mod text;
mod interleave;
mod variable;
mod words;
mod workflow;
mod wrong;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;
use crate::frontmatter;

use super::{Slug, cut};
use about::Subject;
pub use about::about;
pub use accept::{Age, Rejected, accept};
use advice::{Advice, advice};
pub(in crate::skills) use code::INSTALLS;
use first::{First, first};
use integration::integration;
use interleave::interleave;
use outline::{Category, Outline, link_to};
pub use sink::ADDRESS_CHARACTERS_MAX;
use sink::{Share, cost};
use text::plain;
pub(in crate::skills) use text::quoted;
use workflow::workflows;

/// The most lines of a generated skill: the Agent Skills specification recommends this limit.
pub const LINES_MAX: usize = 500;
/// The most characters of a generated skill: some thousand tokens of an agent's context.
pub const CHARACTERS_MAX: usize = 20_000;
/// The version in the metadata when the documentation names none.
const VERSION_DEFAULT: &str = "1.0";
/// The longest description, in UTF-16 code units; clients accept 1024.
const DESCRIPTION_UNITS_MAX: usize = 800;
/// The longest text about the product, and the longest title, in characters.
const ABOUT_CHARACTERS_MAX: usize = 500;
const TITLE_CHARACTERS_MAX: usize = 120;
/// How many characters the list of pages has at least, if a link to the first page of each group needs
/// so many; how many of them are for reference, community and changelog; and the parts of their
/// longest size that other sections have for it, in percent.
const PAGES_CHARACTERS_MIN: usize = 3600;
const LATE_CHARACTERS_MIN: usize = 700;
const SHARES: [Share; 6] = [
    Share(100),
    Share(75),
    Share(60),
    Share(50),
    Share(35),
    Share(20),
];
/// Below this share, the list of pages must have only two thirds of its least size: sections say more
/// than titles of pages.
const SHARE_MIN: usize = 50;
/// How many characters the headings of sections and the lines about all other pages need.
const REST_CHARACTERS: usize = 720;
/// How many characters one category of pages needs besides its lines.
const CATEGORY_CHARACTERS: usize = 24;

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

/// Generates the skill of the documentation; `None` when no page may be used (rule G3).
///
/// `title` and `about` are the site's name and description; links begin with `base_url`.
#[must_use]
pub fn generate(docs: &Docs, title: &str, about: &str, base_url: &str) -> Option<Generated> {
    let outline = Outline::of(docs);
    if outline.categories.is_empty() {
        return None;
    }
    let title = text::fit(&plain(title), TITLE_CHARACTERS_MAX);
    let about = text::fit(&plain(about), ABOUT_CHARACTERS_MAX);
    let slug = Slug::from_name(&title).or_else(|| Slug::from_name("documentation"))?;
    let description = description::description(docs, &title, &about, &outline);
    let description = cut(&description, DESCRIPTION_UNITS_MAX).to_owned();
    let version = outline.version().unwrap_or(VERSION_DEFAULT);

    let mut page = Page::new();
    page.frontmatter(&slug, &description, &title, version);
    page.line(&format!("# {title}"));
    if !about.is_empty() {
        page.line("");
        page.line(&about);
    }
    // Each section has a limit of its own; the list of pages gets the rest. If that is too little,
    // the sections get smaller.
    let mut essential = Essential::of(docs, &outline, &about, SHARES[0], base_url);
    let mut sized = Scaled::of(docs, &outline, &essential.first, SHARES[0], base_url);
    let rest = |essential: &Essential<'_>, sized: &Scaled| {
        let lines = essential.sections().into_iter().chain(sized.sections());
        page.rest(&lines.collect::<Vec<_>>(), base_url)
    };
    let pages_min = pages_characters_min(docs, &outline, base_url);
    for share in &SHARES[1..] {
        let needed = match share.0 < SHARE_MIN {
            true => pages_min * 2 / 3,
            false => pages_min,
        };
        if rest(&essential, &sized).characters >= needed {
            break;
        }
        if share.of_essential() != essential.share {
            essential = Essential::of(docs, &outline, &about, *share, base_url);
        }
        sized = Scaled::of(docs, &outline, &essential.first, *share, base_url);
    }
    let pages = skills(docs, &outline, base_url, rest(&essential, &sized));
    page.section("Capabilities", &essential.capabilities);
    let mut of_skills = essential.first.lines;
    for lines in [
        headed("More calls", sized.examples),
        headed("Commands", sized.commands),
        headed("Environment variables", sized.variables),
        headed("Guides", pages.early),
        headed("Entry points of the reference", sized.reference),
        headed("Reference, community and changes", pages.late),
    ] {
        if !lines.is_empty() && !of_skills.is_empty() {
            of_skills.push(String::new());
        }
        of_skills.extend(lines);
    }
    page.section("Skills", &of_skills);
    page.section("Workflows", &sized.workflows);
    page.section("Integration", &sized.integration);
    page.section("Context", &essential.context);
    Some(Generated {
        slug,
        description,
        text: page.text,
    })
}

/// Returns the line of the metadata without which version 1.3 of the `skills` tool does not install a
/// skill from the address of its file. The tool installs it under this name.
pub(in crate::skills) fn installable(slug: &str) -> String {
    format!("  mintlify-proj: {}", quoted(slug))
}

/// Returns the title and the version in the metadata of a generated skill.
pub(in crate::skills) fn version_and_title(skill: &str) -> (String, String) {
    let found = frontmatter::read(skill).ok().flatten();
    let metadata = found
        .as_ref()
        .and_then(|found| found.mapping.get("metadata"));
    let value = |key: &str| {
        let value = metadata.and_then(|metadata| metadata.get(key)?.text());
        value.unwrap_or_default().to_owned()
    };
    let version = match value("version") {
        version if version.is_empty() => VERSION_DEFAULT.to_owned(),
        version => version,
    };
    (value("project"), version)
}

/// Returns the version that the labels of the default versions name, else "1.0".
#[must_use]
pub fn documentation_version(docs: &Docs) -> Box<str> {
    Outline::of(docs)
        .version()
        .unwrap_or(VERSION_DEFAULT)
        .into()
}

/// The sections that an agent needs most.
struct Essential<'d> {
    share: Share,
    capabilities: Vec<String>,
    first: First<'d>,
    context: Vec<String>,
}

// === impl Essential ===

impl<'d> Essential<'d> {
    fn of(docs: &'d Docs, outline: &Outline, about: &str, share: Share, base_url: &str) -> Self {
        let (own, others) = (share.of_essential(), share);
        let first = first(docs, outline, own, base_url);
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

    fn sections(&self) -> [&Vec<String>; 3] {
        [&self.capabilities, &self.first.lines, &self.context]
    }
}

/// The other sections, which get smaller first.
struct Scaled {
    examples: Vec<String>,
    commands: Vec<String>,
    variables: Vec<String>,
    reference: Vec<String>,
    workflows: Vec<String>,
    integration: Vec<String>,
}

// === impl Scaled ===

impl Scaled {
    fn of(docs: &Docs, outline: &Outline, first: &First<'_>, share: Share, base_url: &str) -> Self {
        let workflows = workflows(docs, outline, &first.shown, share, base_url);
        Self {
            examples: example::examples(docs, outline, first, &workflows, share, base_url),
            commands: command::table(docs, outline, share, base_url),
            variables: variable::table(docs, outline, share, base_url),
            reference: reference::table(docs, outline, share, base_url),
            workflows: or_line(workflows, || {
                format!(
                    "No page describes a procedure in steps; the guides are in [llms.txt]({base_url}/llms.txt)."
                )
            }),
            integration: integration(docs, outline, share, base_url),
        }
    }

    fn sections(&self) -> [&Vec<String>; 6] {
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
        format!("- The pages are a reference: [llms.txt]({base_url}/llms.txt)")
    });
    let decisions = decision::decisions(docs, outline, choices, others, base_url);
    if !decisions.is_empty() {
        lines.push(String::new());
        lines.extend(headed("Decide first", decisions));
    }
    lines
}

/// Puts a heading above lines; without lines there is none.
fn headed(heading: &str, lines: Vec<String>) -> Vec<String> {
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

/// The list of pages: those that an agent needs first, and the others.
#[derive(Default)]
struct Listed {
    early: Vec<String>,
    late: Vec<String>,
}

/// Returns the positions of categories in turns: the first of every part before any second one. So a
/// large part leaves room for the others.
fn by_part(categories: &[&Category]) -> Vec<usize> {
    let mut parts: Vec<(&str, Vec<usize>)> = Vec::new();
    for (at, category) in categories.iter().enumerate() {
        match parts.iter_mut().find(|(part, _)| *part == category.part) {
            Some((_, positions)) => positions.push(at),
            None => parts.push((&category.part, vec![at])),
        }
    }
    interleave(parts.into_iter().map(|(_, positions)| positions)).collect()
}

/// Returns how many characters the list of pages should have at least: a link for each group.
fn pages_characters_min(docs: &Docs, outline: &Outline, base_url: &str) -> usize {
    let of_category = |category: &Category| {
        let link = category.entries.first();
        let link = link.map_or(0, |entry| cost(&entry.link(docs, base_url), base_url));
        link + 1 + category.name().chars().count() + CATEGORY_CHARACTERS
    };
    let all: usize = outline.categories.iter().map(of_category).sum();
    (all + all / 4).min(PAGES_CHARACTERS_MIN)
}

/// Lists pages by category: a line for each, with links. The first page of every category is
/// chosen before any second one, guides before reference, community and changelog (rule G2).
fn skills(docs: &Docs, outline: &Outline, base_url: &str, rest: Rest) -> Listed {
    let (early, late): (Vec<&Category>, Vec<&Category>) = outline
        .categories
        .iter()
        .partition(|category| !category.is_late());
    let mut labels: HashMap<&str, usize> = HashMap::new();
    for category in &outline.categories {
        *labels.entry(&category.label).or_default() += 1;
    }
    // A part is only named where its groups could be confused with those of another part.
    let name_of = |category: &Category| match labels.get(&*category.label) {
        Some(1) if !category.label.trim().is_empty() => category.label.clone(),
        _ => category.name(),
    };
    let mut listed = Listed::default();
    // What the early ones leave is for the late ones, too.
    let reserved = match late.is_empty() {
        true => 0,
        false => LATE_CHARACTERS_MIN.min(rest.characters / 4),
    };
    let mut budget = rest;
    budget.characters -= reserved;
    for (categories, out, reserved) in [
        (early, &mut listed.early, 0),
        (late, &mut listed.late, reserved),
    ] {
        budget.characters += reserved;
        let mut is_complete = true;
        let mut links: Vec<Vec<String>> = vec![Vec::new(); categories.len()];
        let longest = categories
            .iter()
            .map(|category| category.entries.len())
            .max();
        let order = by_part(&categories);
        for nth in 0..longest.unwrap_or(0) {
            for at in &order {
                let (category, links) = (categories[*at], &mut links[*at]);
                let Some(entry) = category.entries.get(nth).filter(|_| links.len() == nth) else {
                    continue;
                };
                let link = entry.link(docs, base_url);
                // The first page also needs the label, and the words about the other pages.
                let (lines, more) = match nth {
                    0 => (1, name_of(category).chars().count() + CATEGORY_CHARACTERS),
                    _ => (0, 0),
                };
                if budget.take(cost(&link, base_url) + 1 + more, lines) {
                    links.push(link);
                }
            }
        }
        for (category, links) in categories.iter().zip(links) {
            let left = category.entries.len() - links.len();
            is_complete &= left == 0;
            if links.is_empty() {
                continue;
            }
            let more = match left {
                0 => String::new(),
                _ => format!(", and {left} more"),
            };
            out.push(format!(
                "- **{}**: {}{more}",
                name_of(category),
                links.join(", ")
            ));
        }
        // One line names the list of all pages, and not each category.
        if !is_complete && !out.is_empty() {
            out.push(format!(
                "- All other pages: [llms.txt]({base_url}/llms.txt)"
            ));
        }
    }
    listed
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
        let words = words.unwrap_or_else(|| outline::words(docs, docs.navigation.page(id)));
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
    lines.push(format!(
        "- Pages of the documentation: {}, all in [llms.txt]({base_url}/llms.txt)",
        pages.len()
    ));
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
        format!(
            "- For anything that is not about {product}; the pages name no other case: [llms.txt]({base_url}/llms.txt)"
        )
    });
    lines.push(String::new());
    lines.extend(headed("When not to use it", unsuited));
    lines
}

impl Category {
    /// Returns the labels of its part and of itself.
    fn name(&self) -> String {
        if self.part == self.label || self.label.trim().is_empty() {
            self.part.clone()
        } else {
            format!("{}: {}", self.part, self.label)
        }
    }
}

/// How many lines and characters a list may still use.
#[derive(Clone, Copy)]
struct Rest {
    lines: usize,
    characters: usize,
}

impl Rest {
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
    /// The headings so far, in lower case.
    headings: HashSet<String>,
}

impl Page {
    fn new() -> Self {
        Self {
            text: String::new(),
            headings: HashSet::new(),
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
        self.line(&installable(slug.as_str()));
        self.line("---");
        self.line("");
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds a section. A heading in it that the text has already gets the name of the section.
    fn section(&mut self, title: &str, lines: &[String]) {
        if !self.text.ends_with("\n\n") {
            self.line("");
        }
        self.line(&format!("## {title}"));
        self.line("");
        let mut fence: Option<&str> = None;
        let mut is_blank = true;
        for line in lines {
            if fence.is_none() && is_blank && line.is_empty() {
                continue;
            }
            is_blank = line.is_empty();
            let mark = line.trim_start();
            let is_fence = mark.starts_with("```");
            let backticks = &mark[..mark.len() - mark.trim_start_matches('`').len()];
            fence = match fence {
                Some(open) if mark == open => None,
                None if is_fence => Some(backticks),
                fence => fence,
            };
            let heading = line.strip_prefix("### ").filter(|_| fence.is_none());
            match heading {
                Some(heading) => {
                    let heading = self.unused(heading, title);
                    self.line(&format!("### {heading}"));
                }
                None => self.line(line),
            }
        }
    }

    /// Makes a heading that the text does not have.
    fn unused(&mut self, heading: &str, section: &str) -> String {
        let numbered = (2..).map(|nth| format!("{heading} ({nth})"));
        let names = [
            heading.to_owned(),
            format!("{heading} ({})", section.to_lowercase()),
        ];
        let free = names.into_iter().chain(numbered);
        let mut free = free.filter(|name| self.headings.insert(name.to_lowercase()));
        free.next().expect("there are more numbers than headings")
    }

    /// Returns the free budget that remains after these lines.
    fn rest(&self, others: &[&Vec<String>], base_url: &str) -> Rest {
        let others = others.iter().flat_map(|lines| lines.iter());
        let after: usize = others.clone().map(|line| cost(line, base_url)).sum();
        let lines: usize = others.map(|line| line.lines().count().max(1)).sum();
        let used: usize = self.text.lines().map(|line| cost(line, base_url)).sum();
        Rest {
            lines: LINES_MAX.saturating_sub(lines + self.text.lines().count() + 30),
            characters: CHARACTERS_MAX.saturating_sub(used + after + REST_CHARACTERS),
        }
    }
}
