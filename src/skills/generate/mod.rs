//! The generated `skill.md` of a site whose authors wrote no skill.
//!
//! `generate` is a function from the documentation to a text. It adds no facts: every line
//! comes from a page, the navigation or a specification, and links lead to pages of the site.
//!
//! | section | made from |
//! |---|---|
//! | frontmatter | the site's name; what the product is, its packages, and what its guides do; the version that the default version's label names |
//! | title | what the product is; where its pages are as Markdown, and where they are listed |
//! | Capabilities | a table of areas: the parts and groups of the navigation and the cards of the first page; a table of decisions: tables for a choice, "use A when B", alternatives of the code |
//! | Skills | the first working call; more calls in its language; the commands of a command line; environment variables; guides by group; endpoints with method, path and what they require; then reference, community and changelog |
//! | Workflows | `<Steps>`, numbered lists and numbered headings of pages that tell how to do something, with the code of each step |
//! | Integration | specifications, their servers and their authentication; pages about integrations, SDKs and command lines |
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
mod alone;
mod capability;
mod code;
mod command;
mod decision;
mod description;
mod example;
mod file;
mod first;
mod group;
mod instruction;
mod integration;
mod limit;
mod list;
mod lists;
mod mistake;
mod name;
mod outline;
mod own_file;
mod package;
mod quickstart;
mod reference;
mod role;
mod sample;
mod secret;
mod section;
mod sink;
mod sized;
mod step;
mod text;
mod interleave;
mod variable;
mod words;
mod workflow;
mod wrong;
#[cfg(test)]
mod tests;

use crate::diagnostic::Diagnostic;
use crate::docs::Docs;
use crate::frontmatter;

use super::{Slug, cut};
pub use about::about;
pub use accept::{Age, Rejected, accept};
pub(in crate::skills) use code::INSTALLS;
use file::Page;
use first::First;
use list::{pages_characters_min, skills};
pub use lists::PageList;
use name::Names;
use outline::Outline;
pub use sink::ADDRESS_CHARACTERS_MAX;
use sink::Share;
use sized::{Essential, Scaled, headed};
use text::plain;
pub(in crate::skills) use text::quoted;

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
/// The parts of their longest size that the other sections have for the list of pages, in percent.
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

/// A generated skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Its slug.
    pub slug: Slug,
    /// Its description.
    pub description: String,
    /// The file.
    pub text: String,
    /// Warnings about sentences of the pages that the file leaves out.
    pub warnings: Vec<Diagnostic>,
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
/// `title` and `about` are the site's name and description; links begin with `base_url`. `lists` are the
/// parts of `llms.txt`, if it names them instead of pages.
#[must_use]
pub fn generate(
    docs: &Docs,
    (title, about): (&str, &str),
    base_url: &str,
    lists: Vec<PageList>,
) -> Option<Generated> {
    let mut outline = Outline::of(docs);
    outline.lists = lists;
    let outline = outline;
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
    let lists = outline.all_pages(base_url);
    page.line("");
    page.line(&format!(
        "Pages as Markdown: add `.md` to an address. All pages are in {lists}."
    ));
    // Each section has a limit of its own; the list of pages gets the rest. If that is too little,
    // the sections get smaller.
    let program = command::program(docs, &outline);
    let names = Names::of(docs, &outline, program.as_ref());
    let essential_of = |share| Essential::of(docs, &outline, &about, &names, share, base_url);
    let scaled_of = |first: &First<'_>, share| {
        Scaled::of(
            docs,
            &outline,
            first,
            &names,
            program.as_ref(),
            share,
            base_url,
        )
    };
    let mut essential = essential_of(SHARES[0]);
    let mut sized = scaled_of(&essential.first, SHARES[0]);
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
            essential = essential_of(*share);
        }
        sized = scaled_of(&essential.first, *share);
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
        warnings: instruction::instructions(docs, &outline),
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

// === impl Scaled ===
