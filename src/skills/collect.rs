//! Collects the public skills of a tree.
//!
//! There are four steps: find the files (`find`), read each file (`read`), check that at least
//! one skill is usable, and give each skill a unique slug. A step that fails for one skill
//! reports a diagnostic and continues with the others.

use std::collections::{BTreeMap, BTreeSet};

use super::find::{self, Search};
use super::read::{Draft, Reading, read};
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
        mut told,
    } = find::search(tree, service_name);
    let mut drafts = Vec::new();
    let mut gated = 0;
    let mut bytes = 0;
    for candidate in candidates.iter().take(COUNT_MAX) {
        match read(tree, candidate, &mut told) {
            Reading::Public(draft) if bytes + draft.bytes.len() > TOTAL_BYTES_MAX => {
                let message = format!(
                    "with this file skills have more than {TOTAL_BYTES_MAX} bytes together; it is left out"
                );
                told.push(Diagnostic::warning(
                    "skill-size",
                    candidate.path.as_str(),
                    message,
                ));
                unusable += 1;
            }
            Reading::Public(draft) => {
                bytes += draft.bytes.len();
                drafts.push(*draft);
            }
            Reading::Gated => gated += 1,
            Reading::Unusable => unusable += 1,
        }
    }
    if let Some(first) = candidates.get(COUNT_MAX) {
        let over = candidates.len() - COUNT_MAX;
        let message = format!("{over} skills from here on are left out: {COUNT_MAX} are allowed");
        told.push(Diagnostic::warning(
            "skill-count",
            first.path.as_str(),
            message,
        ));
    }
    if drafts.is_empty() && gated == 0 && unusable > 0 {
        let message = match unusable {
            1 => "the only skill file cannot be used".to_owned(),
            _ => format!("none of the {unusable} skill files can be used"),
        };
        let file = told.first().map(|first| first.file.clone());
        let file = file.expect("what is not usable is told");
        let none = Diagnostic::error("skill-none", &file, message);
        told.push(none.help("the other findings say why"));
    }
    (publish(drafts, &mut told), told)
}

/// Returns whether authors put skill files into the tree, usable or not.
///
/// A tree without skill files may get a generated one.
#[must_use]
pub fn has_authored(tree: &Tree, service_name: &str) -> bool {
    let search = find::search(tree, service_name);
    !search.candidates.is_empty() || search.unusable > 0
}

/// Gives each draft a unique slug.
fn publish(drafts: Vec<Draft<'_>>, told: &mut Vec<Diagnostic>) -> Vec<Skill> {
    // The first draft whose name makes a slug keeps this slug; no other draft gets it.
    let mut holders: BTreeMap<Slug, &str> = BTreeMap::new();
    for draft in &drafts {
        holders
            .entry(draft.slug.clone())
            .or_insert(draft.candidate.path.as_str());
    }
    let mut taken: BTreeSet<Slug> = holders.keys().cloned().collect();
    let mut skills = Vec::with_capacity(drafts.len());
    for draft in &drafts {
        let path = &draft.candidate.path;
        let holder = holders[&draft.slug];
        let slug = if holder == path.as_str() {
            draft.slug.clone()
        } else {
            let other = another(draft, &taken);
            let message = format!(
                "`{}` comes to the slug `{}`, which {holder} has; it is served as `{other}`",
                draft.name, draft.slug
            );
            let mut diagnostic = Diagnostic::warning("skill-slug", path.as_str(), message);
            diagnostic.location = draft.named_at;
            told.push(diagnostic.help("give one of the two another name"));
            taken.insert(other.clone());
            other
        };
        skills.push(Skill {
            slug,
            name: draft.name.as_str().into(),
            description: draft.description.as_str().into(),
            meta: draft.meta.clone(),
            bytes: draft.bytes.clone(),
            path: path.clone(),
        });
    }
    skills.sort_by(|one, other| one.slug.cmp(&other.slug));
    skills
}

/// Finds a free slug for a draft whose own slug is taken.
fn another(draft: &Draft<'_>, taken: &BTreeSet<Slug>) -> Slug {
    let of_directory = Slug::from_name(&draft.candidate.fallback_name);
    let numbered = (2..).map(|number| draft.slug.numbered(number));
    of_directory
        .into_iter()
        .chain(numbered)
        .find(|slug| !taken.contains(slug))
        .expect("there are more numbers than skills")
}
