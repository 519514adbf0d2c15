//! The one list of intercepted paths.
//!
//! Routing uses it, and tests compare the README with it. Each path exists below the base path of
//! a site and at the root of the host: reverse proxies of customers forward the well-known paths
//! of the root, and some clients request only those.
//!
//! Any other path below an intercepted prefix is [`Document::Absent`]: a 404 that never reaches
//! an origin, which could respond with a file that looks like a discovery document.
//!
//! Sources: Agent Skills Discovery 0.2.0 and 0.1; A2A 0.3.0; RFC 8615 (well-known URIs);
//! RFC 3986 §6.2.2.

use std::borrow::Cow;

use crate::site::BasePath;

/// The skill file of a site that has one skill.
const ENTRY: &str = "/skill.md";
/// The agent card (A2A 0.3.0).
const CARD: &str = "/.well-known/agent-card.json";
/// The manifest and the skill files (Agent Skills Discovery 0.2.0).
const MANIFESTS: &str = "/.well-known/agent-skills";
/// The legacy index and the skill files (Agent Skills Discovery 0.1).
const LEGACY: &str = "/.well-known/skills";
const INDEX: &str = "index.json";
/// The end of the path of a manifest. A client that is given the address of a file or a page
/// (`skills add SITE/skill.md`) looks for the manifest below that address first, and version 1.7
/// of the `skills` tool then rejects the manifest of the whole site.
const MANIFEST_BELOW: &str = "/.well-known/agent-skills/index.json";
/// The name that clients of 0.1 and of 0.2 request.
const SKILL_FILE: &str = "SKILL.md";
/// The name that Agent Skills Discovery 0.1 gives a skill file.
const SKILL_FILE_LOWER: &str = "skill.md";

/// The paths of discovery documents, as people write them. Every other path below the two
/// `/.well-known` directories is intercepted too, and is 404.
pub const PATTERNS: [&str; 7] = [
    "/skill.md",
    "/.well-known/agent-skills/index.json",
    "/.well-known/agent-skills/{name}/SKILL.md",
    "/.well-known/skills/index.json",
    "/.well-known/skills/{name}/skill.md",
    "/.well-known/skills/{name}/SKILL.md",
    "/.well-known/agent-card.json",
];

/// The MCP server of a site, below its base path.
const MCP: &str = "/mcp";
/// The card of the server (SEP-2127, draft).
const MCP_OWN_CARD: &str = "/mcp/server-card";
/// Where scanners and clients look for a card of the MCP server, and for a list of servers.
pub const MCP_CARD: &str = "/.well-known/mcp/server-card.json";
const MCP_LISTS: [&str; 3] = [
    "/.well-known/mcp",
    "/.well-known/mcp.json",
    "/.well-known/mcp/server-cards.json",
];

/// A path of the MCP server of a site, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum McpPath {
    /// The server.
    Server,
    /// Its card below `/.well-known`.
    Card,
    /// Its card below its own address.
    OwnCard,
    /// The list of servers.
    List,
}

/// A document of discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Document<'p> {
    /// `/skill.md`: the skill of a site with one, a redirect to the index of several.
    Entry,
    /// The 0.2.0 manifest.
    Manifest,
    /// The legacy index.
    Legacy,
    /// The file of the skill with this slug, in both versions of discovery.
    Skill(&'p str),
    /// The agent card.
    Card,
    /// An intercepted path without a document.
    Absent,
}

impl Document<'_> {
    /// Returns the path at which all sites have this document; `None` for files of skills and
    /// absent documents.
    #[must_use]
    pub fn pattern(&self) -> Option<&'static str> {
        match self {
            Self::Entry => Some(PATTERNS[0]),
            Self::Manifest => Some(PATTERNS[1]),
            Self::Legacy => Some(PATTERNS[3]),
            Self::Card => Some(PATTERNS[6]),
            Self::Skill(_) | Self::Absent => None,
        }
    }
}

/// Finds the document at a normalised path; `None` if the path is not intercepted.
///
/// ```
/// use waypost::discovery::paths::{Document, find};
/// use waypost::site::BasePath;
///
/// let base = BasePath::parse("/docs")?;
/// assert_eq!(find("/docs/skill.md", &base), Some(Document::Entry));
/// assert_eq!(find("/skill.md", &base), Some(Document::Entry));
/// assert_eq!(find("/docs/.well-known/skills/sdk/SKILL.md", &base), Some(Document::Skill("sdk")));
/// assert_eq!(find("/docs/.well-known/skills/", &base), Some(Document::Absent));
/// assert_eq!(find("/docs/guide", &base), None);
/// # Ok::<(), waypost::site::InvalidBasePath>(())
/// ```
#[must_use]
pub fn find<'p>(path: &'p str, base_path: &BasePath) -> Option<Document<'p>> {
    let below = base_path.strip(path).filter(|below| *below != path);
    below.and_then(beneath_base).or_else(|| beneath_base(path))
}

/// Finds the path of the MCP server that a normalised path names. Cards and lists below
/// `/.well-known` are at the root of the host too.
///
/// ```
/// use waypost::discovery::paths::{McpPath, find_mcp};
/// use waypost::site::BasePath;
///
/// let base = BasePath::parse("/docs")?;
/// assert_eq!(find_mcp("/docs/mcp", &base), Some(McpPath::Server));
/// assert_eq!(find_mcp("/mcp", &base), None);
/// assert_eq!(find_mcp("/.well-known/mcp/server-card.json", &base), Some(McpPath::Card));
/// # Ok::<(), waypost::site::InvalidBasePath>(())
/// ```
#[must_use]
pub fn find_mcp(path: &str, base_path: &BasePath) -> Option<McpPath> {
    let below = base_path.strip(path);
    match below {
        Some(MCP) => return Some(McpPath::Server),
        Some(MCP_OWN_CARD) => return Some(McpPath::OwnCard),
        _ => {}
    }
    let is_one = |known: &str| below == Some(known) || path == known;
    if is_one(MCP_CARD) {
        return Some(McpPath::Card);
    }
    MCP_LISTS
        .iter()
        .any(|known| is_one(known))
        .then_some(McpPath::List)
}

/// Returns the address of the MCP server of a site at an address, without slash at its end.
#[must_use]
pub fn mcp_address(site: &str) -> String {
    format!("{site}{MCP}")
}

/// Finds the manifest below the address of a page, in a site whose pages are ours. In other
/// sites such a path belongs to the customer's server.
///
/// ```
/// use waypost::discovery::paths::{Document, find_below_page};
/// use waypost::site::BasePath;
///
/// let base = BasePath::parse("/docs")?;
/// let manifest = "/.well-known/agent-skills/index.json";
/// assert_eq!(find_below_page(&format!("/docs/guide{manifest}"), &base), Some(Document::Manifest));
/// assert_eq!(find_below_page(&format!("/other/guide{manifest}"), &base), None);
/// # Ok::<(), waypost::site::InvalidBasePath>(())
/// ```
#[must_use]
pub fn find_below_page(path: &str, base_path: &BasePath) -> Option<Document<'static>> {
    let page = base_path.strip(path)?.strip_suffix(MANIFEST_BELOW)?;
    page.starts_with('/').then_some(Document::Manifest)
}

fn beneath_base(path: &str) -> Option<Document<'_>> {
    if let Some(rest) = path.strip_prefix(ENTRY) {
        return match rest {
            "" => Some(Document::Entry),
            "/" => Some(Document::Absent),
            MANIFEST_BELOW => Some(Document::Manifest),
            _ => None,
        };
    }
    if let Some(rest) = path.strip_prefix(MANIFESTS) {
        return beneath_prefix(rest, Document::Manifest, &[SKILL_FILE]);
    }
    if let Some(rest) = path.strip_prefix(LEGACY) {
        return beneath_prefix(rest, Document::Legacy, &[SKILL_FILE, SKILL_FILE_LOWER]);
    }
    match path.strip_prefix(CARD)? {
        "" => Some(Document::Card),
        "/" => Some(Document::Absent),
        _ => None,
    }
}

/// Finds the document at `rest` below one of the two discovery prefixes.
fn beneath_prefix<'p>(rest: &'p str, index: Document<'p>, files: &[&str]) -> Option<Document<'p>> {
    if rest.is_empty() {
        return Some(Document::Absent);
    }
    let rest = rest.strip_prefix('/')?;
    if rest == INDEX {
        return Some(index);
    }
    Some(match rest.split_once('/') {
        Some((slug, file)) if files.contains(&file) => Document::Skill(slug),
        _ => Document::Absent,
    })
}

/// Returns the path of a skill file, as the manifest and the card print it.
#[must_use]
pub fn skill_file(base_path: &BasePath, slug: &str) -> String {
    format!("{base_path}{MANIFESTS}/{slug}/{SKILL_FILE}")
}

/// Returns the target of the redirect of `/skill.md`, for a site with several skills.
#[must_use]
pub fn legacy_index(base_path: &BasePath) -> String {
    format!("{base_path}{LEGACY}/{INDEX}")
}

/// Normalises the path of a request target (its query already cut off), borrowing when
/// there is nothing to do.
///
/// It does two things, in this order, so that a path has the same meaning here and at an origin:
/// percent-encoded *unreserved* characters are decoded (RFC 3986 §6.2.2.2), and dot segments are
/// removed (§5.2.4). `//` is not merged; `%2F`, `%5C` and everything else reserved stays encoded.
#[must_use]
pub fn normalise(path: &str) -> Cow<'_, str> {
    let decoded = decode_unreserved(path);
    let mut segments = decoded.as_bytes().split(|byte| *byte == b'/');
    if segments.any(|segment| matches!(segment, b"." | b"..")) {
        return Cow::Owned(remove_dot_segments(&decoded));
    }
    decoded
}

fn decode_unreserved(path: &str) -> Cow<'_, str> {
    if memchr::memchr(b'%', path.as_bytes()).is_none() {
        return Cow::Borrowed(path);
    }
    let mut out = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        let decoded = rest
            .get(at + 1..at + 3)
            .filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok())
            .filter(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~'));
        let length = match decoded {
            Some(byte) => {
                out.push(char::from(byte));
                3
            }
            None => {
                out.push('%');
                1
            }
        };
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn remove_dot_segments(path: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    let mut ends_in_directory = false;
    for segment in path.split('/').skip(1) {
        ends_in_directory = matches!(segment, "." | "..");
        match segment {
            "." => {}
            ".." => {
                out.pop();
            }
            _ => out.push(segment),
        }
    }
    if ends_in_directory {
        out.push("");
    }
    format!("/{}", out.join("/"))
}
