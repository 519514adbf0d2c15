//! Compiles a release and a site record into discovery documents.
//!
//! All documents of a site, each in all its codings, are in one allocation; a document is a
//! position and a length ([`Packed`]). So a million sites need a million allocations instead of
//! ten million small ones, and the body of a response is a shared slice.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

use super::files::addressed;
use super::{Files, VARY};
use crate::digest::Digest;
use crate::discovery::paths::{self, Document};
use crate::discovery::{self, Summary};
use crate::mcp::{self, Server, SkillTexts};
use crate::response::encoding::{Accepted, Effort};
use crate::response::{Cors, Counted, ETag, Encoding, Response, caching};
use crate::site::{Host, Origin, Service, Site};

/// The parts of a release that discovery documents are made from.
#[derive(Clone, Debug)]
pub struct Material {
    /// The summary of the release.
    pub summary: Summary,
    /// The skill files, in the order of the summary's list.
    pub skills: Vec<SkillFile>,
    /// When the release was promoted, in seconds after the Unix epoch.
    pub promoted_at: u64,
    /// The files of its site, if it has one and the origin is embedded.
    pub files: Option<Arc<Files>>,
}

/// A skill file in the codings that the release has.
#[derive(Clone, Debug, Default)]
pub struct SkillFile {
    /// The author's bytes.
    pub identity: Bytes,
    /// Encoded, in the order of [`Encoding::CODED`].
    pub coded: [Option<Bytes>; 3],
}

/// The discovery documents of one release of one site, on all of its hosts.
#[derive(Debug)]
pub struct Documents {
    /// The bytes of all documents, one after the other.
    bytes: Bytes,
    manifest: Packed,
    legacy: Packed,
    /// One card for each domain, in the order of the site record. Without a domain there is one
    /// card, for the default subdomain.
    cards: Box<[Packed]>,
    /// Skills, sorted by slug.
    skills: Box<[Skill]>,
    /// The target of the redirect from `/skill.md` if there are several skills.
    redirect: Span,
    last_modified: u64,
    files: Option<Arc<Files>>,
    /// The texts of the site's MCP server, if it has one.
    mcp: Option<McpTexts>,
    /// The `Content-Security-Policy` of pages. All sites have the same one, and share its bytes.
    page_policy: HeaderValue,
}

/// One document. Its codings follow each other, the identity first.
#[derive(Clone, Copy, Debug)]
struct Packed {
    start: u32,
    identity: u32,
    /// In the order of [`Encoding::CODED`]; 0 for a coding that is not smaller.
    coded: [u32; 3],
    etag: [u8; 16],
}

#[derive(Debug)]
struct Skill {
    slug: Span,
    file: Packed,
    /// Whether it was generated: then it contains the address of the site.
    is_generated: bool,
    /// Its texts for MCP; empty if the site has no MCP server.
    resource: Span,
    entry: Span,
}

/// The texts with which an MCP server describes itself. These texts take about 400 bytes for each
/// site, and the texts of a skill about 850 (three skills of the bundled documentation, November
/// 2026). Longer answers are not here: they are written when they are asked for, and cached
/// ([`crate::mcp`] has the reason).
#[derive(Debug)]
struct McpTexts {
    title: Span,
    description: Span,
    version: Span,
    address: Span,
    endpoint: Span,
    default_host: Span,
    information: Span,
    /// The texts of all skills, joined.
    resources: Span,
    entries: Span,
}

/// Texts that are packed one after the other, with commas between them.
struct Joined {
    whole: Span,
    parts: Vec<Span>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    length: u32,
}

/// Why a release cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The digest of a skill file is not the one in the summary.
    #[error("the file of skill {slug} is not the one that discovery.json lists")]
    Digest {
        /// The slug of the skill.
        slug: Box<str>,
    },
    /// The documents are too large for positions of 32 bits.
    #[error("the discovery documents of one site take more than 4 GiB")]
    TooLarge,
}

/// Collects the bytes of all documents.
struct Packer(Vec<u8>);

// === impl Documents ===

impl Documents {
    /// Makes the documents of a public site.
    ///
    /// # Errors
    ///
    /// [`CompileError`] when the release is not complete.
    pub fn compile(
        site: &Site,
        service: &Service,
        material: &Material,
    ) -> Result<Self, CompileError> {
        let default_host = site
            .default_host(service)
            .expect("the reader of site records checked the subdomain");
        let canonical = site.advertised_host(&default_host);
        let address = |host: &Host| service.site_url(host, &site.base_path);

        let mut packer = Packer(Vec::new());
        let mut skills = Vec::with_capacity(material.skills.len());
        let mut digests = Vec::with_capacity(material.skills.len());
        let mut texts = Vec::new();
        for (listed, file) in material.summary.skills.iter().zip(&material.skills) {
            let file = if listed.generated {
                file.addressed_to(&address(canonical))
            } else {
                file.clone()
            };
            let digest = Digest::of(&file.identity);
            if !listed.generated && digest != listed.digest {
                return Err(CompileError::Digest {
                    slug: listed.slug.clone(),
                });
            }
            if site.mcp {
                let (slug, name) = (&listed.slug, &listed.name);
                let description = &listed.description;
                texts.push(SkillTexts::new(
                    slug,
                    name,
                    description,
                    &file.identity,
                    &digest,
                ));
            }
            skills.push(Skill {
                slug: packer.text(&listed.slug)?,
                file: packer.file(&file, &digest)?,
                is_generated: listed.generated,
                resource: Span::EMPTY,
                entry: Span::EMPTY,
            });
            digests.push(digest);
        }
        let resources = packer.joined(texts.iter().map(|texts| &*texts.resource))?;
        let entries = packer.joined(texts.iter().map(|texts| &*texts.entry))?;
        let parts = resources.parts.iter().zip(&entries.parts);
        for (skill, (resource, entry)) in skills.iter_mut().zip(parts) {
            (skill.resource, skill.entry) = (*resource, *entry);
        }
        let listed = material.summary.skills.iter().zip(digests);
        let endpoint = paths::mcp_address(&address(match site.origin {
            Origin::Embedded => canonical,
            Origin::Upstream(_) => &default_host,
        }));
        let is_elsewhere = matches!(site.origin, Origin::Upstream(_));
        let elsewhere = (site.mcp && is_elsewhere).then_some(endpoint.as_str());
        let manifest = discovery::manifest(listed, &site.base_path, elsewhere);
        let manifest = packer.document(&manifest)?;
        let legacy = packer.document(&discovery::legacy(&material.summary.skills))?;
        let redirect = packer.text(&paths::legacy_index(&site.base_path))?;
        let advertised = if site.domains.is_empty() {
            std::slice::from_ref(&default_host)
        } else {
            &site.domains
        };
        let summary = &material.summary;
        let card = |host| packer.document(&discovery::card(summary, &address(host), elsewhere));
        let cards = advertised.iter().map(card).collect::<Result<_, _>>()?;
        let mcp = match site.mcp {
            false => None,
            true => {
                let (title, version) = (&*summary.title, &*summary.documentation_version);
                let address = address(canonical);
                let address = address.trim_end_matches('/');
                let information = mcp::information(&site.subdomain, title, version, address);
                Some(McpTexts {
                    title: packer.text(title)?,
                    description: packer.text(&summary.description)?,
                    version: packer.text(version)?,
                    address: packer.text(address)?,
                    endpoint: packer.text(&endpoint)?,
                    default_host: packer.text(default_host.as_str())?,
                    information: packer.text(&information)?,
                    resources: resources.whole,
                    entries: entries.whole,
                })
            }
        };
        Ok(Self {
            bytes: packer.finish(),
            manifest,
            legacy,
            cards,
            skills: skills.into(),
            redirect,
            last_modified: material.promoted_at,
            files: material.files.clone(),
            mcp,
            page_policy: service.frames.page_policy().clone(),
        })
    }

    /// Returns the files of the site, if it has one and the origin is embedded.
    #[must_use]
    pub fn files(&self) -> Option<&Files> {
        self.files.as_deref()
    }

    /// Returns the content security policy of every page of the site.
    ///
    /// It comes from the configuration of this process, not from the configuration of the build.
    #[must_use]
    pub fn page_policy(&self) -> &HeaderValue {
        &self.page_policy
    }

    /// Returns the MCP server of the site; `None` if it has none.
    #[must_use]
    pub fn mcp_server<'s>(&'s self, site: &'s Site) -> Option<Server<'s>> {
        let texts = self.mcp.as_ref()?;
        let skill = |skill: &Skill| mcp::Skill {
            slug: self.text(skill.slug),
            resource: self.text(skill.resource),
            entry: self.text(skill.entry),
            file: &self.bytes[skill.file.identity_span().range()],
        };
        Some(Server {
            name: &site.subdomain,
            title: self.text(texts.title),
            description: self.text(texts.description),
            version: self.text(texts.version),
            address: self.text(texts.address),
            endpoint: self.text(texts.endpoint),
            information: self.text(texts.information),
            base_path: &site.base_path,
            domains: &site.domains,
            default_host: self.text(texts.default_host),
            has_pages: self.files.is_some(),
            skills: self.skills.iter().map(skill).collect(),
            resources: self.text(texts.resources),
            entries: self.text(texts.entries),
        })
    }

    /// Counts the bytes of all documents in all codings.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the response to a `GET` of a document; `None` when there is no such document.
    pub(super) fn response<'d>(
        &'d self,
        site: &Site,
        host: &str,
        document: Document<'_>,
        accepted: Accepted,
    ) -> Option<Response> {
        let of_skill = |skill: &'d Skill| (&skill.file, skill.is_generated);
        // The document, and whether it also changes with the site record, which has no date.
        let ((packed, is_of_record), counted) = match document {
            Document::Manifest => ((&self.manifest, true), Counted::Manifest),
            Document::Legacy => ((&self.legacy, false), Counted::Legacy),
            Document::Card => ((self.card(site, host), true), Counted::Card),
            Document::Skill(slug) => (of_skill(self.skill(slug)?), Counted::Skill),
            Document::Entry => match &*self.skills {
                [] => return None,
                [only] => (of_skill(only), Counted::Entry),
                _ => return Some(self.to_index()),
            },
            Document::Absent => return None,
        };
        let (media_type, caching) = match counted {
            Counted::Skill | Counted::Entry => (discovery::MARKDOWN, caching::SKILL),
            _ => (discovery::JSON, caching::DISCOVERY),
        };
        let (encoding, span) = packed.pick(accepted);
        Some(Response {
            encoding,
            etag: Some(ETag::from_identity(packed.etag, encoding)),
            last_modified: (!is_of_record).then_some(self.last_modified),
            caching,
            vary: Some(VARY),
            cors: Cors::Open,
            counted: Some(counted),
            ..Response::new(200, media_type, self.slice(span))
        })
    }

    /// Redirects to the list of skills. The status is 307, because the skills of a site may
    /// change.
    fn to_index(&self) -> Response {
        Response {
            location: Some(self.slice(self.redirect)),
            caching: caching::DISCOVERY,
            cors: Cors::Open,
            ..Response::empty(307)
        }
    }

    /// No list of domains contains the default subdomain, so it gets the canonical card.
    fn card(&self, site: &Site, host: &str) -> &Packed {
        let at = site
            .domains
            .iter()
            .position(|domain| domain.as_str() == host);
        at.and_then(|at| self.cards.get(at))
            .unwrap_or(&self.cards[0])
    }

    fn skill(&self, slug: &str) -> Option<&Skill> {
        let at = self
            .skills
            .binary_search_by(|skill| self.bytes[skill.slug.range()].cmp(slug.as_bytes()));
        at.ok().map(|at| &self.skills[at])
    }

    fn text(&self, span: Span) -> &str {
        str::from_utf8(&self.bytes[span.range()]).unwrap_or_default()
    }

    fn slice(&self, span: Span) -> Bytes {
        self.bytes.slice(span.range())
    }
}

// === impl SkillFile ===

impl SkillFile {
    /// Replaces the placeholder by the address of a site, and encodes the result.
    fn addressed_to(&self, url: &str) -> Self {
        Self::encoded(addressed(&self.identity, url), Effort::Load)
    }

    /// Encodes a file in every coding that makes it smaller.
    #[must_use]
    pub fn encoded(identity: Bytes, effort: Effort) -> Self {
        let coded =
            Encoding::CODED.map(|encoding| encoding.encode(&identity, effort).map(Bytes::from));
        Self { identity, coded }
    }
}

// === impl Packed ===

impl Packed {
    /// Picks the available coding that the client prefers.
    fn pick(&self, accepted: Accepted) -> (Encoding, Span) {
        for encoding in accepted.preferred() {
            let at = encoding as usize;
            let length = self.coded[at];
            if length > 0 {
                let before: u32 = self.coded[..at].iter().sum();
                let start = self.start + self.identity + before;
                return (encoding, Span { start, length });
            }
        }
        (Encoding::Identity, self.identity_span())
    }

    fn identity_span(&self) -> Span {
        Span {
            start: self.start,
            length: self.identity,
        }
    }
}

// === impl Span ===

impl Span {
    const EMPTY: Self = Self {
        start: 0,
        length: 0,
    };

    fn range(self) -> std::ops::Range<usize> {
        let start = self.start as usize;
        start..start + self.length as usize
    }
}

// === impl Packer ===

impl Packer {
    fn text(&mut self, text: &str) -> Result<Span, CompileError> {
        let start = self.position()?;
        self.0.extend_from_slice(text.as_bytes());
        Ok(Span {
            start,
            length: self.position()? - start,
        })
    }

    /// Packs texts with commas between them. An empty text gets no comma.
    fn joined<'t>(&mut self, texts: impl Iterator<Item = &'t str>) -> Result<Joined, CompileError> {
        let start = self.position()?;
        let mut parts = Vec::new();
        for text in texts {
            if !text.is_empty() && self.position()? > start {
                self.0.push(b',');
            }
            parts.push(self.text(text)?);
        }
        let length = self.position()? - start;
        Ok(Joined {
            whole: Span { start, length },
            parts,
        })
    }

    /// Encodes and packs a document that depends on the site record.
    fn document(&mut self, body: &[u8]) -> Result<Packed, CompileError> {
        let digest = Digest::of(body);
        self.file(
            &SkillFile::encoded(Bytes::copy_from_slice(body), Effort::Load),
            &digest,
        )
    }

    fn file(&mut self, file: &SkillFile, digest: &Digest) -> Result<Packed, CompileError> {
        let start = self.position()?;
        self.0.extend_from_slice(&file.identity);
        let identity = self.position()? - start;
        let mut coded = [0; 3];
        for (length, bytes) in coded.iter_mut().zip(&file.coded) {
            let before = self.position()?;
            self.0
                .extend_from_slice(bytes.as_deref().unwrap_or_default());
            *length = self.position()? - before;
        }
        Ok(Packed {
            start,
            identity,
            coded,
            etag: ETag::new(digest, Encoding::Identity).identity(),
        })
    }

    /// Returns the packed bytes in an allocation of exactly their size.
    fn finish(self) -> Bytes {
        let exact: Box<[u8]> = self.0.as_slice().into();
        Bytes::from_owner(exact)
    }

    fn position(&self) -> Result<u32, CompileError> {
        u32::try_from(self.0.len()).map_err(|_too_long| CompileError::TooLarge)
    }
}
