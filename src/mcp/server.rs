//! The description of a server, and the lists of its skills.
//!
//! Sources: Model Context Protocol 2025-11-25, `basic/lifecycle`; 2026-07-28, `server/discover`;
//! SEP-2640, "Enumeration via skills/list", "Retrieval via skills/get", "Directory Listing".

use std::fmt::Write as _;

use serde_json::{Map, Number, Value, json};

use super::tool::Tool;
use super::version::{REVISIONS, negotiated};
use super::{Call, Outcome, Rejection, quoted};
use crate::digest::Digest;
use crate::frontmatter;
use crate::site::{BasePath, Host};
use crate::syntax::{self, Data};

/// The identifier of the extension (SEP-2640).
const SKILLS: &str = "io.modelcontextprotocol/skills";
/// The member of `_meta` with the digest of a file.
const DIGEST: &str = "waypost/digest";
/// The address of skills at the hosted service.
pub(super) const HOSTED_SKILLS: &str = "mintlify://skills/";
/// How many bytes of instructions and of a tool's description clients pass on.
pub(super) const TEXT_BYTES_MAX: usize = 2048;
/// How many bytes of a site's title or description other texts contain.
const TITLE_BYTES_MAX: usize = 100;
const DESCRIPTION_BYTES_MAX: usize = 500;

/// The server of one site.
#[derive(Clone, Debug)]
pub struct Server<'s> {
    /// Its name: the subdomain of the site.
    pub name: &'s str,
    /// The title of the documentation.
    pub title: &'s str,
    /// The subject of the documentation; may be empty.
    pub description: &'s str,
    /// The version of the documentation that is shown by default.
    pub version: &'s str,
    /// The canonical address of the site, without slash at the end.
    pub address: &'s str,
    /// The address of the server, for documents that announce it.
    pub endpoint: &'s str,
    /// Its `Implementation`, as JSON ([`information`]).
    pub information: &'s str,
    /// The path of the site on each host.
    pub base_path: &'s BasePath,
    /// The hosts of the customer.
    pub domains: &'s [Host],
    /// The host of the default subdomain.
    pub default_host: &'s str,
    /// Whether the release has pages.
    pub has_pages: bool,
    /// The skills, sorted by slug.
    pub skills: Vec<Skill<'s>>,
    /// The descriptions of all skills as resources, joined by commas.
    pub resources: &'s str,
    /// The entries of all skills that have one, joined by commas.
    pub entries: &'s str,
}

/// A skill of a server.
#[derive(Clone, Copy, Debug)]
pub struct Skill<'s> {
    /// Its name in URLs.
    pub slug: &'s str,
    /// Its description as a resource, as JSON ([`SkillTexts::resource`]).
    pub resource: &'s str,
    /// Its entry, as JSON ([`SkillTexts::entry`]); empty if it has none.
    pub entry: &'s str,
    /// Its file.
    pub file: &'s [u8],
}

/// The texts about a skill, which are made when a release is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillTexts {
    /// A `Resource` of the protocol.
    pub resource: String,
    /// A skill entry of SEP-2640; empty if no entry can describe the file.
    pub entry: String,
}

// === impl SkillTexts ===

impl SkillTexts {
    /// Makes the texts about a skill: its slug, its name as the author wrote it, its description
    /// and its file.
    ///
    /// A skill that no entry can describe is listed at its address of the hosted service: SEP-2640
    /// demands that a file `skill://{name}/SKILL.md` has this name in its frontmatter.
    #[must_use]
    pub fn new(slug: &str, name: &str, description: &str, file: &[u8], digest: &Digest) -> Self {
        let uri = uri(slug);
        let digest = format!("sha256:{digest}");
        let matter = matter(slug, file);
        let resource = json!({
            "uri": match matter {
                Some(_) => uri.clone(),
                None => hosted_uri(slug),
            },
            "name": slug,
            "title": name,
            "description": description,
            "mimeType": "text/markdown",
            "size": file.len(),
            "_meta": {DIGEST: digest},
        });
        let entry = matter.map(|matter| {
            let file = json!({"uri": uri, "digest": digest, "size": file.len()});
            json!({"uri": uri, "frontmatter": matter, "resources": [file]}).to_string()
        });
        Self {
            resource: resource.to_string(),
            entry: entry.unwrap_or_default(),
        }
    }
}

/// Returns the address of a skill (SEP-2640, "Resource Mapping").
pub(super) fn uri(slug: &str) -> String {
    format!("skill://{slug}/SKILL.md")
}

/// Returns the address of a skill at the hosted service.
fn hosted_uri(slug: &str) -> String {
    format!("{HOSTED_SKILLS}{slug}")
}

/// Returns the `Implementation` of a server, as JSON, from the fields of [`Server`].
#[must_use]
pub fn information(name: &str, title: &str, version: &str, address: &str) -> String {
    format!(
        r#"{{"name":{},"title":{},"version":{},"websiteUrl":{}}}"#,
        quoted(name),
        quoted(short(title)),
        quoted(version),
        quoted(address),
    )
}

fn short(title: &str) -> &str {
    &title[..title.floor_char_boundary(TITLE_BYTES_MAX)]
}

/// Reads the frontmatter of a skill as JSON; `None` if an entry with it would not be valid.
///
/// SEP-2640: the last segment of the address is equal to `name`. Clients drop a whole list in
/// which one entry breaks this, or has a value of `metadata` that is not a text (Agent Skills
/// specification).
fn matter(slug: &str, file: &[u8]) -> Option<Value> {
    let matter = frontmatter::read(str::from_utf8(file).ok()?).ok()??;
    if !matter.repeated.is_empty() {
        return None;
    }
    let matter = to_json(&matter.mapping)?;
    let metadata = matter.get("metadata");
    let has_texts = |value: &Value| {
        let members = value.as_object();
        members.is_some_and(|members| members.values().all(Value::is_string))
    };
    let text = |key| matter.get(key).and_then(Value::as_str);
    let is_valid = text("name") == Some(slug)
        && text("description").is_some_and(|text| !text.is_empty())
        && metadata.is_none_or(has_texts);
    is_valid.then_some(matter)
}

fn to_json(value: &syntax::Value) -> Option<Value> {
    Some(match &value.data {
        Data::Null => Value::Null,
        Data::Flag(flag) => Value::Bool(*flag),
        Data::Number(text) => match (value.integer(), text.parse::<f64>()) {
            (Some(number), _) => Value::Number(number.into()),
            (None, Ok(number)) => Value::Number(Number::from_f64(number)?),
            (None, Err(_)) => return None,
        },
        Data::Text(text) => Value::String(text.to_string()),
        Data::List(items) => Value::Array(items.iter().map(to_json).collect::<Option<_>>()?),
        Data::Map(members) => {
            let member =
                |member: &syntax::Member| Some((member.key.to_string(), to_json(&member.value)?));
            Value::Object(members.iter().map(member).collect::<Option<Map<_, _>>>()?)
        }
        Data::Unresolved => return None,
    })
}

// === impl Server ===

impl<'s> Server<'s> {
    pub(super) fn short_title(&self) -> &'s str {
        short(self.title)
    }

    /// Returns the skill with this slug.
    pub(super) fn skill(&self, slug: &str) -> Option<&Skill<'s>> {
        self.skills.iter().find(|skill| skill.slug == slug)
    }

    /// Returns whether a host is one of the site's.
    pub(super) fn has_host(&self, host: &str) -> bool {
        let mut domains = self.domains.iter().map(Host::as_str);
        let is_same = |known: &str| known.eq_ignore_ascii_case(host);
        is_same(self.default_host) || domains.any(is_same)
    }

    fn capabilities(&self) -> String {
        let skills = match self.skills.is_empty() {
            true => String::new(),
            false => format!(r#","extensions":{{"{SKILLS}":{{"directoryRead":true}}}}"#),
        };
        format!(r#"{{"tools":{{}},"resources":{{}}{skills}}}"#)
    }

    /// Tells a model what the server is for.
    fn instructions(&self) -> String {
        let title = self.short_title();
        let end = self.description.floor_char_boundary(DESCRIPTION_BYTES_MAX);
        let mut out = format!("The documentation of {title}.");
        if end > 0 {
            out += &format!(" {}", &self.description[..end]);
        }
        out.push('\n');
        for tool in Tool::listed(self) {
            writeln!(out, "- `{}`: {}", tool.name(), tool.summary())
                .expect("a String takes every character");
        }
        if !self.skills.is_empty() {
            out += "Skills tell how to do a task:\n";
        }
        for (nth, skill) in self.skills.iter().enumerate() {
            let line = format!("- {}: {}\n", skill.slug, skill.description());
            let left = self.skills.len() - nth;
            // The hint needs room too, unless this is the last skill.
            let hint = format!(
                "- {left} more: call `{}` without a name.",
                Tool::Skill.name()
            );
            let rest = if left > 1 { hint.len() } else { 0 };
            if out.len() + line.len() + rest > TEXT_BYTES_MAX {
                out += &hint;
                break;
            }
            out += &line;
        }
        out.truncate(out.floor_char_boundary(TEXT_BYTES_MAX));
        out.trim_end().to_owned()
    }
}

// === impl Skill ===

impl Skill<'_> {
    /// Returns its description as a resource.
    pub(super) fn described(&self) -> Value {
        serde_json::from_str(self.resource).unwrap_or_default()
    }

    fn description(&self) -> String {
        let described = self.described();
        let description = described.get("description").and_then(Value::as_str);
        description.unwrap_or_default().replace('\n', " ")
    }
}

// === impl Call ===

impl Call<'_> {
    /// 2025-11-25, `basic/lifecycle`.
    pub(super) fn initialize(&self) -> Result<Outcome, Rejection> {
        let version = negotiated(self.text("protocolVersion")?);
        let server = self.server;
        Ok(self.kept_or(&format!("initialize {version}"), || {
            format!(
                r#""protocolVersion":"{version}","capabilities":{},"serverInfo":{},"instructions":{}"#,
                server.capabilities(),
                server.information,
                quoted(&server.instructions()),
            )
        }))
    }

    /// 2026-07-28, `server/discover`.
    pub(super) fn discover(&self) -> Outcome {
        self.kept_or("server/discover", || {
            format!(
                r#""supportedVersions":{},"capabilities":{},"instructions":{}"#,
                json!(REVISIONS),
                self.server.capabilities(),
                quoted(&self.server.instructions()),
            )
        })
    }

    pub(super) fn skills(&self) -> Result<Outcome, Rejection> {
        self.first_page()?;
        let entries = self.server.entries;
        Ok(Outcome::Cacheable(format!(r#""skills":[{entries}]"#)))
    }

    pub(super) fn skill(&self) -> Result<Outcome, Rejection> {
        let asked = self.text("uri")?;
        let mut skills = self.server.skills.iter();
        let skill = skills.find(|skill| !skill.entry.is_empty() && uri(skill.slug) == asked);
        let skill = skill.ok_or_else(|| Rejection::unknown_skill(asked))?;
        Ok(Outcome::Cacheable(format!(r#""skill":{}"#, skill.entry)))
    }

    /// Lists the files of a skill: there is only one.
    pub(super) fn directory(&self) -> Result<Outcome, Rejection> {
        let asked = self.text("uri")?;
        self.first_page()?;
        let slug = asked.strip_prefix("skill://").unwrap_or_default();
        let skill = self.server.skill(slug);
        let skill = skill.filter(|skill| !skill.entry.is_empty());
        let skill = skill.ok_or_else(|| Rejection::unknown_skill(asked))?;
        Ok(Outcome::Cacheable(format!(
            r#""resources":[{}]"#,
            skill.resource
        )))
    }
}

impl Rejection {
    fn unknown_skill(uri: &str) -> Self {
        let Self::Error {
            status,
            code,
            message,
            ..
        } = Self::invalid("There is no such skill.")
        else {
            return Self::failed();
        };
        let data = Some(json!({"uri": super::shortened(uri)}));
        Self::Error {
            status,
            code,
            message,
            data,
        }
    }
}
