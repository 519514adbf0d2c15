//! Where an endpoint is (OpenAPI 3.1.1 §4.8.5) and how a client authenticates (§4.8.30).

use super::node::{element, expandable, flag, heading, paragraph, prose, text};
use super::schema::default;
use super::{FIELDS_MAX, Writer, bytes};
use crate::docs::openapi::Operation;
use crate::mdx::Node;
use crate::mdx::anchor::github;
use crate::syntax::Value as Json;

impl Writer<'_> {
    /// Shows the servers if a reader can choose: several servers, or variables.
    pub(super) fn servers(&self, operation: &Operation<'_>, nodes: &mut Vec<Node>) {
        let servers = operation.servers();
        let has_variables = servers
            .iter()
            .any(|server| server.value.get("variables").is_some());
        if servers.len() < 2 && !has_variables {
            return;
        }
        let mut inside = Vec::new();
        for server in servers {
            let words = server.description.map_or(0, str::len);
            if !self.has_part(server.url.len() + words) {
                break;
            }
            let mut line = vec![Node::Code(server.url.to_owned())];
            line.extend(
                server
                    .description
                    .map(|words| Node::Text(format!(" {words}"))),
            );
            inside.push(Node::Paragraph(line));
            for member in server.value.get("variables").map_or(&[][..], Json::members) {
                if !self.has_part(bytes(&member.value)) {
                    break;
                }
                let mut attributes = vec![
                    text("name", &member.key),
                    text("type", self.messages.variable),
                ];
                attributes.extend(default(member.value.get("default")));
                let mut children = prose(member.value.get("description").and_then(Json::text));
                children.extend(self.values(&member.value));
                inside.push(element("ResponseField", attributes, children));
            }
        }
        nodes.push(expandable(self.messages.servers, "servers", inside));
    }

    /// Shows the alternative ways to authenticate (§4.8.30).
    pub(super) fn security(&self, operation: &Operation<'_>, nodes: &mut Vec<Node>) {
        let alternatives = operation.security();
        if alternatives.iter().all(|set| set.schemes.is_empty()) {
            return;
        }
        nodes.push(heading(self.messages.authorization, "authorization"));
        let several = alternatives.len() > 1;
        if several {
            nodes.push(paragraph(self.messages.any_one_is_enough));
        }
        for (n, set) in alternatives.iter().enumerate() {
            let fields: Vec<Node> = set
                .schemes
                .iter()
                .filter(|(name, _)| self.has_part(name.len()))
                .map(|(name, scheme)| self.credential(name, scheme))
                .collect();
            if !several {
                nodes.extend(fields);
                continue;
            }
            let names: Vec<&str> = set.schemes.iter().map(|(name, _)| *name).collect();
            let (title, anchor) = match &names[..] {
                [] => (self.messages.nothing.to_owned(), "nothing".to_owned()),
                names => (names.join(self.messages.and), names.join(" and ")),
            };
            let mut attributes = vec![text("title", &title), text("id", &github(&anchor))];
            attributes.extend((n == 0).then(|| flag("defaultOpen")));
            nodes.push(element("Expandable", attributes, fields));
        }
    }

    /// Shows the place and the kind of a credential (§4.8.27).
    fn credential(&self, name: &str, scheme: &Json) -> Node {
        let field = |key| scheme.get(key).and_then(Json::text);
        let (place, key, kind) = match (field("type"), field("in"), field("name")) {
            (Some("apiKey"), Some(place), Some(key)) => {
                (place, key, self.messages.api_key.to_owned())
            }
            (Some("http"), ..) => {
                let scheme = field("scheme").unwrap_or("bearer");
                ("header", "Authorization", format!("HTTP {scheme}"))
            }
            (Some("mutualTLS"), ..) => ("name", name, self.messages.certificate.to_owned()),
            (kind, ..) => (
                "header",
                "Authorization",
                kind.unwrap_or("bearer").to_owned(),
            ),
        };
        let mut children = vec![Node::Paragraph(vec![Node::Code(name.to_owned())])];
        children.extend(self.prose(field("description")));
        let scopes = scheme.get("flows").map_or(&[][..], Json::members).iter();
        let scopes =
            scopes.flat_map(|flow| flow.value.get("scopes").map_or(&[][..], Json::members));
        for scope in scopes.take(FIELDS_MAX) {
            let words = scope.value.text().unwrap_or_default();
            if !self.has_bytes(scope.key.len() + words.len()) {
                break;
            }
            let line = vec![
                Node::Code(scope.key.to_string()),
                Node::Text(format!(" {words}")),
            ];
            children.push(Node::Paragraph(line));
        }
        let attributes = vec![text(place, key), text("type", &kind), flag("required")];
        element("ParamField", attributes, children)
    }
}
