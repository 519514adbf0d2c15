//! Header fields of a page: links to texts for agents, its canonical address, its translations.
//!
//! Sources: CSP Level 3; RFC 8288 (`Link`) and its §3.4.1 (`hreflang`); RFC 9727
//! (`api-catalog`); HTML §7.6 (`Speculation-Rules`);
//! `internals/decisions#pages-know-no-domain`, `internals/decisions#files-of-authors`.

use http::header::{self, HeaderName, HeaderValue};

use super::search::with_form;
use super::{CATALOG, Request};
use crate::discovery::paths::MCP_CARD;
use crate::release::site::SPECULATION;
use crate::response::Response;
use crate::site::percent::encode;

/// The policy of files of the repository. A browser could run scripts in some types (SVG, PDF).
pub(super) const ASSET_POLICY: HeaderValue =
    HeaderValue::from_static("sandbox; default-src 'none'; style-src 'unsafe-inline'");

/// The directive of the policy of pages that lists to which servers scripts may send requests.
const CONNECT: &str = "connect-src 'self'";

// === impl Request ===

impl Request<'_> {
    /// Returns the policy of the page. The page of an endpoint may send requests to the servers of
    /// its specification. A page that asks whether it was helpful has a form.
    pub(super) fn page_policy(&self) -> HeaderValue {
        let has_votes = self.numbers.is_some() && self.files.description().votes;
        match has_votes {
            true => with_form(&self.policy_of_servers()),
            false => self.policy_of_servers(),
        }
    }

    fn policy_of_servers(&self) -> HeaderValue {
        let servers = &self.files.description().servers;
        let own = servers
            .iter()
            .filter(|(_, pages)| pages.contains(self.path));
        // CSP Level 3 §2.3.1: with other characters, an origin could add directives.
        let is_source = |origin: &&str| {
            let allowed = |b: u8| b.is_ascii_alphanumeric() || b":/.*-".contains(&b);
            origin.bytes().all(allowed)
        };
        let own = own.map(|(origin, _)| &**origin).filter(is_source);
        let own: String = own.flat_map(|origin| [" ", origin]).collect();
        if own.is_empty() {
            return self.policy.clone();
        }
        let policy = self.policy.to_str().unwrap_or_default();
        let policy = policy.replace(CONNECT, &format!("{CONNECT}{own}"));
        HeaderValue::from_str(&policy).unwrap_or_else(|_| self.policy.clone())
    }

    /// Returns the link to the catalog of APIs, if there is one.
    fn catalog(&self) -> Option<String> {
        let has_one = self.files.has(&format!("texts/{CATALOG}"));
        let base = self.base;
        has_one.then(|| format!("<{base}/.well-known/{CATALOG}>; rel=\"{CATALOG}\""))
    }

    /// Adds the link to the catalog of APIs.
    pub(super) fn with_catalog(&self, response: Response) -> Response {
        let link = self
            .catalog()
            .and_then(|link| HeaderValue::from_str(&link).ok());
        match link {
            Some(link) => response.with(header::LINK, link),
            None => response,
        }
    }

    /// Adds the URL of the rules that say which links a browser may load before a click. The
    /// policy forbids inline scripts, so the rules cannot be in the page.
    pub(super) fn with_speculation(&self, response: Response) -> Response {
        let rules = format!("\"{}/{SPECULATION}\"", self.base);
        match HeaderValue::from_str(&rules) {
            Ok(rules) => response.with(HeaderName::from_static("speculation-rules"), rules),
            Err(_) => response,
        }
    }

    /// Adds links to texts for agents, the canonical address and the translations of the page.
    /// All of them are served by this node.
    pub(super) fn with_links(&self, response: Response) -> Response {
        let base = self.base;
        let page = self.path.strip_suffix(".md").unwrap_or(self.path);
        let page = if page == "index" { "" } else { page };
        let markdown = if page.is_empty() { "index" } else { page };
        let canonical = match self.files.description().canonical.get(page) {
            None => format!("{}/{}", self.files.files.address, encode(page)),
            Some(url) => match url.strip_prefix('/') {
                Some(path) => format!("{}/{}", self.files.files.address, encode(path)),
                None => url.to_string(),
            },
        };
        let mut links = format!(
            "<{base}/llms.txt>; rel=\"llms-txt\", <{base}/llms-full.txt>; rel=\"llms-full-txt\", \
             <{base}/.well-known/agent-card.json>; rel=\"agent-card\", \
             <{base}/.well-known/agent-skills/index.json>; rel=\"agent-skills\", \
             <{base}/{}.md>; rel=\"alternate\"; type=\"text/markdown\", <{canonical}>; rel=\"canonical\"",
            encode(markdown),
        );
        if self.has_mcp {
            links += &format!(", <{base}{MCP_CARD}>; rel=\"mcp-server-card\"");
        }
        if let Some(catalog) = self.catalog() {
            links += &format!(", {catalog}");
        }
        // RFC 8288 §3.4.1. Search engines require absolute addresses, and the page itself in the
        // list.
        for translation in self.files.description().translations(page) {
            let address = &self.files.files.address;
            let target = format!(
                ", <{address}/{}>; rel=\"alternate\"",
                encode(&translation.path)
            );
            links += &format!("{target}; hreflang=\"{}\"", translation.language);
            if translation.default {
                links += &format!("{target}; hreflang=\"x-default\"");
            }
        }
        let list = format!("{base}/llms.txt");
        match (HeaderValue::from_str(&links), HeaderValue::from_str(&list)) {
            (Ok(links), Ok(list)) => response
                .with(header::LINK, links)
                .with(HeaderName::from_static("x-llms-txt"), list),
            _ => response,
        }
    }
}
