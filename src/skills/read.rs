//! Reads one skill file.

use bytes::Bytes;

use super::find::Candidate;
use super::{
    BYTES_MAX, DESCRIPTION_UNITS_MAX, Meta, NAME_UNITS_MAX, Slug, cut, description::first_words,
};
use crate::diagnostic::{Diagnostic, Location, Severity};
use crate::frontmatter::{self, Frontmatter};
use crate::source::{EntryKind, ReadError, Tree};
use crate::syntax::{Data, Member, Value};

/// A public skill that has no unique slug yet.
#[derive(Debug)]
pub(super) struct ParsedSkill<'c> {
    pub candidate: &'c Candidate,
    /// The slug that its name makes.
    pub slug: Slug,
    pub name: String,
    /// Where the name is written.
    pub named_at: Option<Location>,
    pub description: String,
    pub meta: Meta,
    pub bytes: Bytes,
}

/// The result of reading a skill file.
#[derive(Debug)]
pub(super) enum Reading<'c> {
    /// A public skill.
    Public(Box<ParsedSkill<'c>>),
    /// A skill for some groups only; its content is discarded.
    Private,
    /// A file that was reported and is left out.
    Unusable,
}

/// Reads a skill file and adds its diagnostics to `diagnostics`.
pub(super) fn read<'c>(
    tree: &Tree,
    candidate: &'c Candidate,
    diagnostics: &mut Vec<Diagnostic>,
) -> Reading<'c> {
    let mut file = File {
        path: candidate.path.as_str(),
        diagnostics,
    };
    let Some(bytes) = file.bytes(tree, candidate) else {
        return Reading::Unusable;
    };
    let Some(text) = file.text(&bytes) else {
        return Reading::Unusable;
    };
    let (head, body) = match frontmatter::read(text) {
        Ok(Some(found)) => {
            for repeated in &found.repeated {
                let message = format!("`{}` is repeated", repeated.key);
                file.dropped_by_clients("skill-frontmatter", Some(repeated.location), message);
            }
            let body = &text[found.body_offset..];
            (found, body)
        }
        Ok(None) => {
            let message = "the file has no frontmatter".to_owned();
            file.dropped_by_clients("skill-frontmatter", None, message);
            (Frontmatter::default(), text.trim_start_matches('\u{feff}'))
        }
        Err(invalid) => {
            let mut diagnostic = invalid.diagnostic("skill-frontmatter", file.path);
            diagnostic.severity = Severity::Warning;
            let help = "the skill is left out; texts that contain `: ` or ` #` need quotes";
            file.diagnostics.push(diagnostic.help(help));
            return Reading::Unusable;
        }
    };
    if let Some(groups) = groups(&head) {
        let message = format!(
            "`{}` makes this skill private: it is not served",
            groups.key
        );
        file.warn("skill-groups", Some(head.locate(groups.span)), message);
        return Reading::Private;
    }
    let (name, slug) = file.name(&head, &candidate.fallback_name);
    file.compare_with_directory(&head, candidate);
    let description = file.description(&head, body, &name);
    let meta = Meta::read(&head, file.path, file.diagnostics);
    file.companions(candidate, body);
    Reading::Public(Box::new(ParsedSkill {
        candidate,
        slug,
        name,
        named_at: place_of(&head, "name"),
        description,
        meta,
        bytes,
    }))
}

/// Finds the key that makes a skill private.
///
/// An author who writes it in another letter case, or without a value, does not want a public
/// skill either.
fn groups(head: &Frontmatter) -> Option<&Member> {
    let mut members = head.mapping.members().iter();
    members.find(|member| member.key.trim().eq_ignore_ascii_case("groups"))
}

/// Returns where a key is written.
fn place_of(head: &Frontmatter, key: &str) -> Option<Location> {
    let member = head.mapping.member(key)?;
    Some(head.locate(member.span))
}

/// The path of the file that is read, and the list that receives its diagnostics.
struct File<'f> {
    path: &'f str,
    diagnostics: &'f mut Vec<Diagnostic>,
}

// === impl File ===

impl File<'_> {
    fn warn(&mut self, rule: &'static str, place: Option<Location>, message: String) {
        let mut diagnostic = Diagnostic::warning(rule, self.path, message);
        diagnostic.location = place;
        self.diagnostics.push(diagnostic);
    }

    /// Warns of a mistake in a file that the `skills` tool does not install.
    fn dropped_by_clients(&mut self, rule: &'static str, place: Option<Location>, message: String) {
        self.warn(
            rule,
            place,
            format!("{message}; the `skills` tool drops this skill"),
        );
    }

    fn bytes(&mut self, tree: &Tree, candidate: &Candidate) -> Option<Bytes> {
        match tree.read_at_most(&candidate.path, BYTES_MAX) {
            Ok(bytes) => return Some(bytes),
            Err(ReadError::TooLarge { bytes, limit }) => {
                let message = format!("the file has {bytes} bytes; {limit} are allowed");
                self.warn("skill-size", None, message);
            }
            // This is not the author's mistake, so it is an error: a warning would publish a
            // release without the skill.
            Err(error) => {
                let cause = std::error::Error::source(&error);
                let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
                let message = format!("{error}{cause}");
                self.diagnostics
                    .push(Diagnostic::error("source-read", self.path, message));
            }
        }
        None
    }

    fn text<'b>(&mut self, bytes: &'b Bytes) -> Option<&'b str> {
        let text = match str::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let before = &bytes[..error.valid_up_to()];
                let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
                let place = Location {
                    line: u32::try_from(line).unwrap_or(u32::MAX),
                    column: 1,
                    length: 0,
                };
                self.warn(
                    "skill-encoding",
                    Some(place),
                    "the file is not UTF-8".to_owned(),
                );
                return None;
            }
        };
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            self.warn("skill-empty", None, "the file is empty".to_owned());
            return None;
        }
        Some(text)
    }

    /// Returns the name and its slug.
    fn name(&mut self, head: &Frontmatter, fallback: &str) -> (String, Slug) {
        let written = self.text_of(head, "name", "skill-name");
        let name = written.as_deref().unwrap_or(fallback);
        let slug = Slug::from_name(name);
        if written.is_some() && slug.as_ref().map(Slug::as_str) != Some(name) {
            let place = place_of(head, "name");
            let served = slug.as_ref().map_or("its directory's", Slug::as_str);
            let message = format!("`{name}` is not a slug; the skill is served as `{served}`");
            self.warn("skill-name", place, message);
        }
        let slug = slug
            .or_else(|| Slug::from_name(fallback))
            .unwrap_or_else(|| Slug::parse("skill").expect("a constant slug"));
        (cut(name, NAME_UNITS_MAX).to_owned(), slug)
    }

    /// Warns if a skill does not have the name of its directory, as the Agent Skills
    /// specification requires.
    fn compare_with_directory(&mut self, head: &Frontmatter, candidate: &Candidate) {
        let name = head.mapping.get("name").and_then(Value::text);
        let directory = &*candidate.fallback_name;
        let Some(name) = name.filter(|name| candidate.in_directory && *name != directory) else {
            return;
        };
        // A name that is not a slug already has a warning.
        if Slug::parse(name).is_ok() {
            let message = format!("the skill `{name}` is in the directory `{directory}`");
            let place = place_of(head, "name");
            let help = "give both the same name: some clients drop the skill otherwise";
            let mut diagnostic = Diagnostic::warning("skill-name", self.path, message).help(help);
            diagnostic.location = place;
            self.diagnostics.push(diagnostic);
        }
    }

    /// Returns the description for lists.
    fn description(&mut self, head: &Frontmatter, body: &str, name: &str) -> String {
        if let Some(written) = self.text_of(head, "description", "skill-description") {
            let kept = cut(&written, DESCRIPTION_UNITS_MAX);
            if kept.len() < written.len() {
                let place = place_of(head, "description");
                let message = format!(
                    "`description` is {} UTF-16 code units long; lists show the first {}",
                    written.encode_utf16().count(),
                    kept.encode_utf16().count()
                );
                self.warn("skill-description", place, message);
            }
            return kept.to_owned();
        }
        match first_words(body) {
            Some(words) => cut(&words, DESCRIPTION_UNITS_MAX).to_owned(),
            None => format!("The {name} skill."),
        }
    }

    /// Returns a text that clients require, or reports why it is missing.
    fn text_of(&mut self, head: &Frontmatter, key: &str, rule: &'static str) -> Option<String> {
        let Some(value) = head.mapping.get(key) else {
            if !head.mapping.members().is_empty() {
                self.dropped_by_clients(rule, None, format!("`{key}` is missing"));
            }
            return None;
        };
        let text = value.scalar().unwrap_or_default().trim();
        if value.text().is_none() || text.is_empty() {
            let message = match &value.data {
                Data::Text(_) => format!("`{key}` is empty"),
                _ => format!("`{key}` is {}, not a text", value.yaml_kind()),
            };
            self.dropped_by_clients(rule, place_of(head, key), message);
        }
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Reports files beside the skill that its text refers to: they are not served.
    fn companions(&mut self, candidate: &Candidate, body: &str) {
        let mentioned = candidate
            .companions
            .iter()
            .filter(|(name, kind)| match kind {
                EntryKind::Directory | EntryKind::Link => body.contains(&format!("{name}/")),
                EntryKind::File => body.contains(&**name),
                EntryKind::Submodule => false,
            });
        let names: Vec<_> = mentioned.map(|(name, _)| format!("`{name}`")).collect();
        if !names.is_empty() {
            let message = format!(
                "the text refers to {}; only `SKILL.md` is served",
                names.join(", ")
            );
            self.warn("skill-companion", None, message);
        }
    }
}
