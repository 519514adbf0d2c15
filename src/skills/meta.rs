//! The keys of a skill's frontmatter other than name and description.
//!
//! The file is served unchanged, so these values do not change what a client reads in it.
//! Code that describes skills without their files uses them.
//!
//! Source: Agent Skills specification, "Frontmatter".

use std::collections::BTreeMap;

use crate::diagnostic::Diagnostic;
use crate::frontmatter::Frontmatter;
use crate::syntax::{Data, Member, Value};

/// The Agent Skills specification's bound, in characters.
const COMPATIBILITY_LENGTH_MAX: usize = 500;

/// The values of a skill's frontmatter other than name and description.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The license of the skill.
    pub license: Option<Box<str>>,
    /// The requirements of the skill.
    pub compatibility: Option<Box<str>>,
    /// Additional keys and values; numbers and booleans are texts, as they are written.
    pub metadata: BTreeMap<Box<str>, Box<str>>,
    /// The tools the skill may use without asking, in the order in which they are written.
    pub allowed_tools: Vec<Box<str>>,
    /// Whether `metadata.internal` is `true`.
    pub internal: bool,
}

// === impl Meta ===

impl Meta {
    /// Reads the values; a value of the wrong type gets a diagnostic.
    pub(super) fn read(
        frontmatter: &Frontmatter,
        file: &str,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let mut reader = Reader {
            frontmatter,
            file,
            diagnostics,
        };
        let mapping = &frontmatter.mapping;
        let mut meta = Self {
            license: reader.text("license"),
            compatibility: reader.text("compatibility"),
            ..Self::default()
        };
        if let Some(compatibility) = &meta.compatibility {
            let length = compatibility.chars().count();
            if length > COMPATIBILITY_LENGTH_MAX {
                let member = mapping
                    .member("compatibility")
                    .expect("it was read from it");
                let message = format!(
                    "`compatibility` has {length} characters; {COMPATIBILITY_LENGTH_MAX} are allowed"
                );
                reader.warn(member, message);
            }
        }
        if let Some(member) = mapping.member("allowed-tools") {
            match tools(&member.value) {
                Some(tools) => meta.allowed_tools = tools,
                None => reader.wrong(member, "a text or a list of texts"),
            }
        }
        if let Some(member) = mapping.member("metadata") {
            meta.read_metadata(member, &mut reader);
        }
        meta
    }

    fn read_metadata(&mut self, metadata: &Member, reader: &mut Reader<'_>) {
        if !metadata.value.is_map() && !metadata.value.is_null() {
            reader.wrong(metadata, "keys with texts");
        }
        for member in metadata.value.members() {
            if let Some(value) = member.value.scalar() {
                self.metadata.insert(member.key.clone(), value.into());
            } else if !member.value.is_null() {
                reader.wrong(member, "a text");
            }
        }
        if let Some(internal) = metadata.value.member("internal") {
            self.internal = internal.value.flag() == Some(true);
            if self.internal {
                let message = "`internal: true` hides the skill from the `skills` tool";
                let help = "it is still listed and served; `groups` makes it private";
                let diagnostic = reader.diagnostic("skill-internal", internal, message.to_owned());
                reader.diagnostics.push(diagnostic.help(help));
            }
        }
    }
}

/// Reads keys and collects the diagnostics about them.
struct Reader<'r> {
    frontmatter: &'r Frontmatter,
    file: &'r str,
    diagnostics: &'r mut Vec<Diagnostic>,
}

// === impl Reader ===

impl Reader<'_> {
    fn text(&mut self, key: &str) -> Option<Box<str>> {
        let member = self.frontmatter.mapping.member(key)?;
        let text = member.value.scalar();
        if text.is_none() && !member.value.is_null() {
            self.wrong(member, "a text");
        }
        text.map(str::trim)
            .filter(|text| !text.is_empty())
            .map(Into::into)
    }

    fn wrong(&mut self, member: &Member, wanted: &str) {
        let kind = member.value.yaml_kind();
        self.warn(member, format!("`{}` is {kind}, not {wanted}", member.key));
    }

    fn warn(&mut self, member: &Member, message: String) {
        let diagnostic = self.diagnostic("skill-meta", member, message);
        self.diagnostics.push(diagnostic);
    }

    fn diagnostic(&self, rule: &'static str, member: &Member, message: String) -> Diagnostic {
        let place = self.frontmatter.locate(member.span);
        let diagnostic = Diagnostic::warning(rule, self.file, message);
        diagnostic.at(place.line, place.column, place.length)
    }
}

/// Reads tools: a list, or a text with white space or commas between the tools.
///
/// White space and commas inside parentheses belong to a tool: `Bash(git add *)`.
fn tools(value: &Value) -> Option<Vec<Box<str>>> {
    match &value.data {
        Data::Null => Some(Vec::new()),
        Data::List(items) => items
            .iter()
            .map(|item| item.scalar().map(|tool| tool.trim().into()))
            .collect(),
        _ => {
            let mut depth = 0_usize;
            let between = |c: char| {
                match c {
                    '(' => depth += 1,
                    ')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                depth == 0 && (c == ',' || c.is_whitespace())
            };
            let tools = value.scalar()?.split(between);
            Some(
                tools
                    .filter(|tool| !tool.is_empty())
                    .map(Into::into)
                    .collect(),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontmatter;

    fn read(yaml: &str) -> (Meta, Vec<String>) {
        let text = format!("---\n{yaml}\n---\n");
        let found = frontmatter::read(&text).unwrap().unwrap();
        let mut diagnostics = Vec::new();
        let meta = Meta::read(&found, "SKILL.md", &mut diagnostics);
        (meta, diagnostics.iter().map(ToString::to_string).collect())
    }

    #[track_caller]
    fn check_tools(yaml: &str, expected: &[&str]) {
        let (meta, diagnostics) = read(&format!("allowed-tools: {yaml}"));
        let tools: Vec<&str> = meta.allowed_tools.iter().map(|tool| &**tool).collect();
        assert_eq!(tools, expected, "{yaml}");
        assert_eq!(diagnostics, [""; 0], "{yaml}");
    }

    #[test]
    fn tools_are_read_as_lists_and_as_texts() {
        check_tools("Read Grep", &["Read", "Grep"]);
        check_tools("Read, Write,Edit", &["Read", "Write", "Edit"]);
        check_tools("[Read, Grep]", &["Read", "Grep"]);
        check_tools(
            "\n  - Read\n  - Bash(git add *)",
            &["Read", "Bash(git add *)"],
        );
        check_tools("", &[]);
        check_tools(
            "Bash(npx acme *), Bash(git (x) y, z) Read",
            &["Bash(npx acme *)", "Bash(git (x) y, z)", "Read"],
        );
        check_tools(
            "\"Read(~/.cache/**), Write\"",
            &["Read(~/.cache/**)", "Write"],
        );
    }

    #[test]
    fn scalars_in_metadata_are_not_converted() {
        let (meta, diagnostics) =
            read("metadata:\n  version: 1.0\n  author: 'A B'\n  beta: true\n  none:");
        let pairs: Vec<_> = meta.metadata.iter().map(|(k, v)| (&**k, &**v)).collect();
        assert_eq!(
            pairs,
            [("author", "A B"), ("beta", "true"), ("version", "1.0")]
        );
        assert_eq!(diagnostics, [""; 0]);
    }

    #[test]
    fn values_that_are_not_text_are_reported_and_left_out() {
        let (meta, diagnostics) = read(
            "license: [MIT]\nmetadata:\n  authors: [a, b]\n  k: v\n  nested: {\"a\": {}}\nallowed-tools: {a: b}",
        );
        assert_eq!(meta.license, None);
        assert_eq!(meta.metadata.len(), 1);
        assert_eq!(
            diagnostics,
            [
                "SKILL.md:2:1: warning[skill-meta]: `license` is a list, not a text",
                "SKILL.md:7:1: warning[skill-meta]: `allowed-tools` is a mapping, not a text or a list of texts",
                "SKILL.md:4:3: warning[skill-meta]: `authors` is a list, not a text",
                "SKILL.md:6:3: warning[skill-meta]: `nested` is a mapping, not a text",
            ]
        );
        assert_eq!(read("metadata: some words").1.len(), 1);
    }

    #[test]
    fn internal_is_reported_only_when_it_is_true() {
        assert!(read("metadata: {internal: true}").0.internal);
        let (meta, diagnostics) = read("metadata: {internal: 'true'}");
        assert!(!meta.internal && diagnostics.is_empty());
    }

    #[test]
    fn compatibility_has_a_length() {
        let long = "x".repeat(501);
        assert_eq!(read(&format!("compatibility: {long}")).1.len(), 1);
        assert_eq!(read(&format!("compatibility: {}", &long[1..])).1.len(), 0);
    }
}
