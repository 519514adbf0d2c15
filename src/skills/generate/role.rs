//! The role of a page, decided by its title, its group and its path.
//!
//! An agent needs the pages that lead to a first call before a reference, and a reference before a
//! changelog. Pages do not declare their role, so the words that authors use for such pages decide.
//! A page without these words is a guide.

use crate::docs::navigation::tree::Page;

/// The role of a page. The order is the order of use in the generated skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// It leads to a first result.
    Start,
    /// It installs something.
    Install,
    /// It says how to get and send credentials.
    Access,
    /// It says how to do something.
    Guide,
    /// It connects the product with another tool.
    Integration,
    /// It explains.
    Concept,
    /// It lists everything of one kind: endpoints, modules, fields.
    Reference,
    /// It is about the people and the organisation.
    Community,
    /// It lists changes, or is about something old.
    Changelog,
}

const START: [&str; 8] = [
    "quickstart",
    "quick start",
    "getting started",
    "get started",
    "getstarted",
    "hello world",
    "your first",
    "first steps",
];
const INSTALL: [&str; 5] = ["install", "installation", "installing", "setup", "set up"];
const ACCESS: [&str; 9] = [
    "authentication",
    "authenticate",
    "authorization",
    "api key",
    "api keys",
    "credentials",
    "access token",
    "access tokens",
    "api authentication",
];
const CHANGELOG: [&str; 6] = [
    "changelog",
    "changelogs",
    "release notes",
    "release note",
    "what s new",
    "version history",
];
const COMMUNITY: [&str; 23] = [
    "community",
    "contributing",
    "contribute",
    "contributor",
    "contributors",
    "governance",
    "code of conduct",
    "showcase",
    "legal",
    "blog",
    "roadmap",
    "antitrust",
    "maintainers",
    "working groups",
    "interest groups",
    "newsletter",
    "groups and governance",
    "terms of service",
    "terms of use",
    "terms and conditions",
    "privacy policy",
    "acceptable use",
    "data processing agreement",
];
/// Words that make a page one of the community only if the title has no others, and small words
/// that it may have, too.
const COMMUNITY_TITLES: [&str; 3] = ["support", "help", "contact"];
const SMALL: [&str; 4] = ["get", "and", "us", "our"];
const REFERENCE: [&str; 14] = [
    "reference",
    "references",
    "api docs",
    "specification",
    "specifications",
    "specs",
    "adr",
    "adrs",
    "decision records",
    "decision record",
    "rfc",
    "audits",
    "rfcs",
    "seps",
];
/// Words of parts and groups whose pages all lead to a first result.
const STARTS: [&str; 4] = ["quickstart", "quickstarts", "quick start", "quick starts"];
/// Words for things that are no longer recommended.
const OLD: [&str; 4] = ["legacy", "deprecated", "archive", "archived"];
/// Words of pages about a migration. Such a page is a guide, even if it also mentions another tool.
const MIGRATION: [&str; 5] = ["migration", "migrate", "migrating", "upgrade", "upgrading"];
const INTEGRATION: [&str; 12] = [
    "integration",
    "integrations",
    "sdk",
    "sdks",
    "cli",
    "plugin",
    "plugins",
    "connector",
    "connectors",
    "client libraries",
    "extension",
    "extensions",
];
const CONCEPT: [&str; 26] = [
    "how it works",
    "architecture",
    "concept",
    "concepts",
    "overview",
    "understanding",
    "about",
    "glossary",
    "background",
    "lifecycle",
    "internals",
    "security",
    "attack",
    "attacks",
    "threat",
    "what is",
    "explained",
    "terminology",
    "principles",
    "introduction",
    "intro",
    "welcome",
    "best practices",
    "faq",
    "faqs",
    "design",
];
/// Words of headings whose lists are not procedures of the product.
const NO_PROCEDURE: [&str; 39] = [
    "attack",
    "attacks",
    "attacker",
    "threat",
    "threats",
    "risk",
    "risks",
    "vulnerability",
    "exploit",
    "flow",
    "how it works",
    "how does it work",
    "how this works",
    "under the hood",
    "background",
    "lifecycle",
    "architecture",
    "overview",
    "why",
    "what are",
    "what happens",
    "what is",
    "process",
    "changelog",
    "benefits",
    "features",
    "next steps",
    "what s next",
    "resolution order",
    "table of contents",
    "contents",
    "troubleshooting",
    "troubleshoot",
    "problems",
    "issues",
    "failure",
    "failures",
    "error",
    "errors",
];

/// Returns the words of a text in lower case, with a space before and after each.
pub(super) fn normal(text: &str) -> String {
    let mut out = String::from(" ");
    for c in text.chars() {
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    if !out.ends_with(' ') {
        out.push(' ');
    }
    out
}

/// Returns whether some normal words contain one of these.
pub(super) fn has(normal: &str, any: &[&str]) -> bool {
    // A search for each of these takes longer to prepare than the text takes to compare.
    let mut places = normal.match_indices(' ').map(|(at, _)| &normal[at + 1..]);
    places.any(|rest| {
        let first = rest.as_bytes().first();
        any.iter()
            .filter(|words| words.as_bytes().first() == first)
            .filter_map(|words| rest.strip_prefix(words))
            .any(|after| after.starts_with(' '))
    })
}

/// Returns whether the title or the address of a page says that it is about something old.
fn is_old(page: &Page) -> bool {
    has(&normal(&page.slug), &OLD) || has(&normal(&page.title), &OLD)
}

/// Returns whether a title is only about a start, not about a task.
pub(super) fn is_about_start(title: &str) -> bool {
    has(&normal(title), &START)
}

/// Returns whether the title or the address of a page, not only its group, says that it is about a start.
pub(super) fn is_named_start(page: &Page) -> bool {
    let last = page.slug.trim_end_matches("/index");
    let last = last.rsplit('/').next().unwrap_or_default();
    has(&normal(&page.title), &START) || has(&normal(last), &START)
}

/// Returns whether the title or the address of a page says that its subject is not for new work.
pub(super) fn is_obsolete(page: &Page) -> bool {
    const OBSOLETE: [&str; 2] = ["legacy", "deprecated"];
    has(&normal(&page.slug), &OBSOLETE) || has(&normal(&page.title), &OBSOLETE)
}

/// Returns whether a page is about a migration or about troubleshooting: its code is not for new
/// work.
pub(super) fn is_about_repair(page: &Page) -> bool {
    const REPAIR: [&str; 2] = ["troubleshooting", "troubleshoot"];
    let is_about = |text: &str| {
        let words = normal(text);
        has(&words, &MIGRATION) || has(&words, &REPAIR)
    };
    is_about(&page.title) || is_about(&page.slug)
}

/// Returns whether a title is only about an installation or about credentials.
pub(super) fn is_about_setup(title: &str) -> bool {
    let words = normal(title);
    INSTALL.contains(&words.trim()) || ACCESS.contains(&words.trim())
}

/// Returns whether the lists below a heading are not procedures of the product.
pub(super) fn is_explanation(heading: &str) -> bool {
    has(&normal(heading), &NO_PROCEDURE)
}

// === impl Role ===

impl Role {
    /// Returns the role of a page. `places` are the labels of its part, its group and the group around
    /// that.
    pub(super) fn of(page: &Page, places: &[&str]) -> Self {
        let segments = page.slug.trim_end_matches("/index");
        let last = normal(segments.rsplit('/').next().unwrap_or_default());
        let title = normal(&page.title);
        let places: Vec<String> = places.iter().map(|label| normal(label)).collect();
        let in_places = |any: &[&str]| places.iter().any(|place| has(place, any));
        let named = |any: &[&str]| has(&title, any) || has(&last, any);
        let is_only = |any: &[&str]| any.iter().any(|words| title.trim() == *words);
        let mut words = title.split_whitespace();
        let is_support = has(&title, &COMMUNITY_TITLES)
            && words.all(|word| COMMUNITY_TITLES.contains(&word) || SMALL.contains(&word));
        if page.subject.is_some() {
            return Self::Reference;
        }
        // Each change may have a page of its own.
        let is_change = has(&normal(&page.slug), &CHANGELOG);
        if is_old(page)
            || is_change
            || in_places(&OLD)
            || named(&CHANGELOG)
            || in_places(&CHANGELOG)
        {
            return Self::Changelog;
        }
        if named(&COMMUNITY) || in_places(&COMMUNITY) || is_support {
            return Self::Community;
        }
        if named(&START) || in_places(&STARTS) {
            return Self::Start;
        }
        if is_only(&ACCESS) {
            return Self::Access;
        }
        let is_identifier = !page.title.trim().contains(char::is_whitespace)
            && page.title.contains(['_', '.', '('])
            && page.title.chars().any(char::is_alphabetic);
        if is_identifier || named(&REFERENCE) || in_places(&REFERENCE) {
            return Self::Reference;
        }
        if has(&normal(&page.slug), &["api reference", "sdk reference"]) {
            return Self::Reference;
        }
        if named(&INSTALL) {
            return Self::Install;
        }
        if has(&title, &MIGRATION) {
            return Self::Guide;
        }
        if has(&title, &INTEGRATION) || in_places(&INTEGRATION) {
            return Self::Integration;
        }
        if has(&title, &CONCEPT) {
            return Self::Concept;
        }
        Self::Guide
    }

    /// Returns whether the pages come after all others: reference, community, changelog.
    pub(super) fn is_late(self) -> bool {
        self >= Self::Reference
    }

    /// Returns whether the page can hold procedures of the product.
    pub(super) fn has_procedures(self) -> bool {
        self <= Self::Integration
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_whole_words() {
        assert!(has(&normal("The SDK's (new)"), &["sdk"]));
        assert!(!has(&normal("Reclining"), &["cli"]));
        assert!(has(&normal("what's new"), &["what s new"]));
        assert!(is_explanation("Attack description"));
        assert!(is_explanation("How it works"));
        assert!(!is_explanation("Refund a charge"));
    }
}
