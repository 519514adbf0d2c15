//! Documents that announce a server to clients that look for one.
//!
//! | path, below the base path or at the root | document |
//! |---|---|
//! | `/.well-known/mcp/server-card.json` | a server card with the members that scanners read too |
//! | `/.well-known/mcp`, `/.well-known/mcp.json`, `/.well-known/mcp/server-cards.json` | a list of one server |
//! | `/mcp/server-card`, below the base path only | the same card, without the members that other formats add |
//!
//! The address is on the canonical domain if all requests to that domain come here. It is on the
//! default subdomain if the site's pages are on a server of the customer, because a proxy there may
//! forward only the paths of skills. The manifest of skills and the agent card name this address too
//! ([`crate::discovery`], rule D7).
//!
//! Sources: SEP-2127 (draft: server cards, schema version 2); the documents of the hosted service
//! as its documentation shows them.

use serde_json::{Value, json};

use super::tool::Tool;
use super::{REVISIONS, Server};
use crate::discovery::paths::McpPath;

const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/v2/server-card.schema.json";
/// The longest title and description of a card, in characters.
const TEXT_CHARS_MAX: usize = 100;

impl Server<'_> {
    /// Returns a document that announces the server; `None` for the address of the server itself.
    #[must_use]
    pub fn announcement(&self, path: McpPath) -> Option<Value> {
        Some(match path {
            McpPath::Server => return None,
            McpPath::Card => {
                let mut card = self.card();
                card["url"] = json!(self.endpoint);
                card["transport"] = json!("http");
                card["authentication"] = json!({"type": "none"});
                card["capabilities"] = json!({"tools": true, "resources": true});
                let tool = |tool: Tool| json!({"name": tool.name(), "description": tool.summary()});
                card["tools"] = Tool::listed(self).map(tool).collect();
                card
            }
            McpPath::OwnCard => self.card(),
            McpPath::List => json!({
                "version": "1.0",
                "transport": "http",
                "url": self.endpoint,
                "servers": [{
                    "name": self.name,
                    "title": first(self.title),
                    "description": self.about(),
                    "url": self.endpoint,
                    "transport": "http",
                    "authentication": {"type": "none"},
                }],
            }),
        })
    }

    fn card(&self) -> Value {
        json!({
            "$schema": SCHEMA,
            "name": format!("{}/{}", self.namespace(), self.name),
            "title": first(self.title),
            "version": self.version,
            "description": self.about(),
            "websiteUrl": self.address,
            "remotes": [{
                "type": "streamable-http",
                "url": self.endpoint,
                "supportedProtocolVersions": REVISIONS,
            }],
        })
    }

    /// Returns the canonical host with its labels in reverse order.
    fn namespace(&self) -> String {
        let host = self
            .domains
            .first()
            .map_or(self.default_host, |host| host.as_str());
        let mut labels: Vec<&str> = host.split('.').collect();
        labels.reverse();
        labels.join(".")
    }

    fn about(&self) -> String {
        let text = if self.description.is_empty() {
            self.title
        } else {
            self.description
        };
        first(&format!("Documentation: {text}"))
    }
}

/// Cuts a text to the length that a card allows, after a word.
fn first(text: &str) -> String {
    if text.chars().count() <= TEXT_CHARS_MAX {
        return text.to_owned();
    }
    // One character is for the ellipsis.
    let end = text.char_indices().nth(TEXT_CHARS_MAX - 1);
    let (start, rest) = text.split_at(end.map_or(text.len(), |(end, _)| end));
    let kept = match rest.starts_with(char::is_whitespace) {
        true => start,
        // A text without spaces is cut anywhere.
        false => start
            .rsplit_once(char::is_whitespace)
            .map_or(start, |(kept, _)| kept),
    };
    let is_open = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | ':' | '-' | '–' | '—');
    format!("{}…", kept.trim_end_matches(is_open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_after_a_word() {
        let short = "é".repeat(TEXT_CHARS_MAX);
        assert_eq!(first(&short), short);
        for (text, expected) in [
            (
                format!("{} word, and more", "a".repeat(90)),
                format!("{} word…", "a".repeat(90)),
            ),
            (
                format!("{} bcdef", "a".repeat(97)),
                format!("{}…", "a".repeat(97)),
            ),
            (
                format!("{} bc", "a".repeat(96)),
                format!("{} bc", "a".repeat(96)),
            ),
            (
                format!("{} b cd", "a".repeat(97)),
                format!("{} b…", "a".repeat(97)),
            ),
            ("語".repeat(200), format!("{}…", "語".repeat(99))),
        ] {
            assert_eq!(first(&text), expected, "{text}");
            assert!(first(&text).chars().count() <= TEXT_CHARS_MAX);
        }
    }
}
