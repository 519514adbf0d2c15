//! Collects the public skills of a tree.
//!
//! There are four steps: find the files (`find`), read each file (`read`), check that at least
//! one skill is usable, and give each skill a unique slug. A step that fails for one skill
//! reports a diagnostic and continues with the others.

use std::collections::{BTreeMap, BTreeSet};

use super::find::{self, Search};
use super::read::{ParsedSkill, Reading, read};
use super::{COUNT_MAX, Skill, Slug, TOTAL_BYTES_MAX};
use crate::diagnostic::Diagnostic;
use crate::source::Tree;

/// Returns the public skills of a tree, sorted by slug, and the diagnostics.
///
/// `service_name` names the directory: `.{service_name}/skills`.
#[must_use]
pub fn collect(tree: &Tree, service_name: &str) -> (Vec<Skill>, Vec<Diagnostic>) {
    let Search {
        candidates,
        mut unusable,
        mut diagnostics,
    } = find::search(tree, service_name);
    let mut parsed_skills = Vec::new();
    let mut private = 0;
    let mut bytes = 0;
    for candidate in candidates.iter().take(COUNT_MAX) {
        match read(tree, candidate, &mut diagnostics) {
            Reading::Public(parsed) if bytes + parsed.bytes.len() > TOTAL_BYTES_MAX => {
                let message = format!(
                    "with this file skills have more than {TOTAL_BYTES_MAX} bytes together; it is left out"
                );
                diagnostics.push(Diagnostic::warning(
                    "skill-size",
                    candidate.path.as_str(),
                    message,
                ));
                unusable += 1;
            }
            Reading::Public(parsed) => {
                bytes += parsed.bytes.len();
                parsed_skills.push(*parsed);
            }
            Reading::Private => private += 1,
            Reading::Unusable => unusable += 1,
        }
    }
    if let Some(first) = candidates.get(COUNT_MAX) {
        let over = candidates.len() - COUNT_MAX;
        let message = format!("{over} skills from here on are left out: {COUNT_MAX} are allowed");
        diagnostics.push(Diagnostic::warning(
            "skill-count",
            first.path.as_str(),
            message,
        ));
    }
    if parsed_skills.is_empty() && private == 0 && unusable > 0 {
        let message = match unusable {
            1 => "the only skill file cannot be used".to_owned(),
            _ => format!("none of the {unusable} skill files can be used"),
        };
        let file = diagnostics.first().map(|first| first.file.clone());
        let file = file.expect("every unusable file has a diagnostic");
        let none = Diagnostic::warning("skill-none", &file, message);
        diagnostics.push(none.help(
            "the other messages give the reasons; the pages are still published, and the site serves a generated skill",
        ));
    }
    (publish(parsed_skills, &mut diagnostics), diagnostics)
}

/// Gives each skill a unique slug.
fn publish(parsed_skills: Vec<ParsedSkill<'_>>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Skill> {
    // The first skill whose name makes a slug keeps this slug; no other skill gets it.
    let mut holders: BTreeMap<Slug, &str> = BTreeMap::new();
    for parsed in &parsed_skills {
        holders
            .entry(parsed.slug.clone())
            .or_insert(parsed.candidate.path.as_str());
    }
    let mut taken: BTreeSet<Slug> = holders.keys().cloned().collect();
    let mut skills = Vec::with_capacity(parsed_skills.len());
    for parsed in &parsed_skills {
        let path = &parsed.candidate.path;
        let holder = holders[&parsed.slug];
        let slug = if holder == path.as_str() {
            parsed.slug.clone()
        } else {
            let other = free_slug(parsed, &taken);
            let message = format!(
                "`{}` has the slug `{}`, which {holder} already has; it is served as `{other}`",
                parsed.name, parsed.slug
            );
            let mut diagnostic = Diagnostic::warning("skill-slug", path.as_str(), message);
            diagnostic.location = parsed.named_at;
            diagnostics.push(diagnostic.help("give one of the two another name"));
            taken.insert(other.clone());
            other
        };
        skills.push(Skill {
            slug,
            name: parsed.name.as_str().into(),
            description: parsed.description.as_str().into(),
            meta: parsed.meta.clone(),
            bytes: parsed.bytes.clone(),
            path: path.clone(),
        });
    }
    skills.sort_by(|one, other| one.slug.cmp(&other.slug));
    skills
}

/// Finds a free slug for a skill whose own slug is taken.
fn free_slug(parsed: &ParsedSkill<'_>, taken: &BTreeSet<Slug>) -> Slug {
    let of_directory = Slug::from_name(&parsed.candidate.fallback_name);
    let numbered = (2..).map(|number| parsed.slug.numbered(number));
    of_directory
        .into_iter()
        .chain(numbered)
        .find(|slug| !taken.contains(slug))
        .expect("there are more numbers than skills")
}
