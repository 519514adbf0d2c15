//! Skills and pages as resources.
//!
//! | address | is |
//! |---|---|
//! | `skill://{slug}/SKILL.md` | a skill (SEP-2640) |
//! | `mintlify://skills/{slug}` | the same skill, where clients of the hosted service look for it. A skill whose name is not its slug is listed here |
//! | `skill://{slug}/_manifest` | its files, for clients that are older than SEP-2640 |
//! | `https://{host}{base}/{page}.md` | the Markdown of a page |
//!
//! The address of a page is its address on the web, because a client can read it there too
//! (2026-07-28, `server/resources`, "Common URI Schemes"). An address is only looked up in the
//! lists of the release, so no address can lead to another file or another site.

use serde_json::{Value, json};

use super::server::{HOSTED_SKILLS, Skill, uri};
use super::{Call, Era, Outcome, Rejection, Server, quoted, shortened};
use crate::digest::Digest;
use crate::release::pages::{Page, id_of};
use crate::release::site::page_of;
use crate::site::percent::{decode_or_keep, encode};

/// How many pages a list has.
const PAGES_MAX: usize = 100;
/// The code of an unknown resource before 2026-07-28 (2025-11-25, `server/resources`).
const RESOURCE_NOT_FOUND: i32 = -32002;
const MARKDOWN: &str = "text/markdown";

/// The part of a site that an address or an id names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The path of a page, without leading slash; empty for the page at the root.
    pub(super) path: String,
    /// The anchor on it.
    pub(super) anchor: Option<String>,
}

// === impl Call ===

impl Call<'_> {
    /// Lists the skills, and then the pages in the order of the navigation.
    ///
    /// The cursor is the id of the last page of a list, so it stays valid when other pages
    /// change.
    pub(super) fn resources(&self) -> Result<Outcome, Rejection> {
        let after = match self.params.get("cursor") {
            None | Some(Value::Null) => None,
            Some(Value::String(after)) => Some(after.as_str()),
            Some(_) => return Err(Rejection::cursor()),
        };
        let name = format!("resources/list {after:?}");
        if let Some(kept) = self.library.kept(&name) {
            return Ok(Outcome::Stored(kept));
        }
        let mut listed: Vec<String> = Vec::new();
        if after.is_none() && !self.server.resources.is_empty() {
            listed.push(self.server.resources.to_owned());
        }
        let mut next = String::new();
        if self.server.has_pages {
            let pages = self.library.pages()?;
            let start = match after {
                None => 0,
                Some(after) => {
                    let at = pages.pages.iter().position(|page| *page.id == *after);
                    at.ok_or_else(Rejection::cursor)? + 1
                }
            };
            let rest = &pages.pages[start..];
            let shown = &rest[..rest.len().min(PAGES_MAX)];
            listed.extend(shown.iter().map(|page| self.server.page_resource(page)));
            if let Some(last) = shown.last().filter(|_| shown.len() < rest.len()) {
                next = format!(r#","nextCursor":{}"#, quoted(&last.id));
            }
        } else if after.is_some() {
            return Err(Rejection::cursor());
        }
        let listed = listed.join(",");
        let members = format!(r#""resources":[{listed}]{next}"#);
        self.library.keep(&name, &members);
        Ok(Outcome::Cacheable(members))
    }

    pub(super) fn templates(&self) -> Result<Outcome, Rejection> {
        self.first_page()?;
        let mut templates = Vec::new();
        if self.server.has_pages {
            templates.push(json!({
                "uriTemplate": format!("{}/{{+page}}.md", self.server.address),
                "name": "page",
                "title": "Page",
                "description": "A page of the documentation as Markdown, by its path.",
                "mimeType": MARKDOWN,
            }));
        }
        if !self.server.skills.is_empty() {
            for template in ["skill://{name}/SKILL.md", "mintlify://skills/{name}"] {
                templates.push(json!({
                    "uriTemplate": template,
                    "name": "skill",
                    "title": "Skill",
                    "description": "A skill, by its name.",
                    "mimeType": MARKDOWN,
                }));
            }
        }
        let templates = Value::Array(templates);
        Ok(Outcome::Cacheable(format!(
            r#""resourceTemplates":{templates}"#
        )))
    }

    pub(super) fn read(&self) -> Result<Outcome, Rejection> {
        let asked = self.text("uri")?;
        let contents = |media_type: &str, text: &str| {
            format!(
                r#""contents":[{{"uri":{},"mimeType":"{media_type}","text":{}}}]"#,
                quoted(asked),
                quoted(text),
            )
        };
        let name = format!("resources/read {asked}");
        if let Some(kept) = self.library.kept(&name) {
            return Ok(Outcome::Stored(kept));
        }
        // A skill has three addresses, each with one spelling.
        if let Some((media_type, text)) = self.skill_at(asked) {
            return Ok(self.kept_or(&name, || contents(media_type, &text)));
        }
        let (path, text) = self.page_at(asked)?;
        let contents = contents(MARKDOWN, &text);
        // Addresses can be written in endless ways, so only the listed one is kept.
        if asked == self.server.markdown_url(&path) {
            self.library.keep(&name, &contents);
        }
        Ok(Outcome::Cacheable(contents))
    }

    fn skill_at(&self, asked: &str) -> Option<(&'static str, String)> {
        let named = asked.strip_prefix("skill://").and_then(|rest| {
            let (slug, file) = rest.split_once('/')?;
            Some((self.server.skill(slug)?, file))
        });
        let (skill, file) = match asked.strip_prefix(HOSTED_SKILLS) {
            Some(slug) => (self.server.skill(slug)?, "SKILL.md"),
            None => named?,
        };
        match file {
            "SKILL.md" => Some((MARKDOWN, String::from_utf8_lossy(skill.file).into_owned())),
            "_manifest" => Some(("application/json", manifest(skill))),
            _ => None,
        }
    }

    /// Returns the path of a page and its Markdown.
    fn page_at(&self, asked: &str) -> Result<(String, String), Rejection> {
        let unknown = || self.unknown_resource(asked);
        let has_scheme = asked.starts_with("https://") || asked.starts_with("http://");
        if !has_scheme || !self.server.has_pages {
            return Err(unknown());
        }
        let place = self.server.place(asked).ok_or_else(unknown)?;
        let markdown = self.library.markdown(&place.path)?.ok_or_else(unknown)?;
        let markdown = String::from_utf8_lossy(&markdown).into_owned();
        Ok((place.path, markdown))
    }

    /// 2026-07-28, `server/resources`, "Error Handling": this revision uses another code than the
    /// earlier ones.
    fn unknown_resource(&self, uri: &str) -> Rejection {
        let code = match self.era {
            Era::Handshake => RESOURCE_NOT_FOUND,
            Era::Stateless => super::message::INVALID_PARAMS,
        };
        Rejection::Error {
            status: 200,
            code,
            message: "Resource not found".to_owned(),
            data: Some(json!({"uri": shortened(uri)})),
        }
    }
}

// === impl Server ===

impl Server<'_> {
    fn page_resource(&self, page: &Page) -> String {
        let mut resource = json!({
            "uri": self.markdown_url(page.path()),
            "name": page.id,
            "title": page.title,
            "mimeType": MARKDOWN,
        });
        if let Some(description) = &page.description {
            resource["description"] = json!(description);
        }
        resource.to_string()
    }

    /// Returns the address of a page as Markdown.
    pub(super) fn markdown_url(&self, path: &str) -> String {
        format!("{}/{}.md", self.address, encode(id_of(path)))
    }

    /// Returns the address of a page.
    pub(super) fn page_url(&self, path: &str) -> String {
        format!("{}/{}", self.address, encode(path))
    }

    /// Finds what an address or an id names: an address on one of the hosts of the site, a path
    /// with or without the base path, with or without the extension of its file.
    ///
    /// `None` for an address on another host.
    pub(super) fn place(&self, asked: &str) -> Option<Place> {
        let asked = asked.trim();
        let url = asked
            .strip_prefix("https://")
            .or_else(|| asked.strip_prefix("http://"));
        let (path, anchor) = match url.unwrap_or(asked).split_once('#') {
            Some((path, anchor)) => (path, Some(anchor)),
            None => (url.unwrap_or(asked), None),
        };
        let path = path.split('?').next().unwrap_or_default();
        let path = match url {
            None => path,
            Some(_) => {
                let end = path.find('/').unwrap_or(path.len());
                let (authority, path) = path.split_at(end);
                let host = authority.split(':').next().unwrap_or_default();
                if !self.has_host(host) {
                    return None;
                }
                // A path outside the base path does not belong to the site.
                self.base_path
                    .strip(if path.is_empty() { "/" } else { path })?
            }
        };
        // A path from the root of the host has the base path too.
        let base = self.base_path.as_str();
        let path = match url.is_none() && !base.is_empty() {
            true => self.base_path.strip(path).unwrap_or(path),
            false => path,
        };
        let path = decode_or_keep(path.trim_start_matches('/')).into_owned();
        let anchor = anchor.filter(|anchor| !anchor.is_empty());
        Some(Place {
            path: page_of(&path).to_owned(),
            anchor: anchor.map(|anchor| decode_or_keep(anchor).into_owned()),
        })
    }
}

/// Lists the files of a skill for clients that are older than SEP-2640.
fn manifest(skill: &Skill<'_>) -> String {
    let digest = Digest::of(skill.file);
    json!({
        "skill": skill.slug,
        "files": [{
            "path": "SKILL.md", "size": skill.file.len(), "hash": format!("sha256:{digest}"),
        }],
        "uri": uri(skill.slug),
    })
    .to_string()
}
