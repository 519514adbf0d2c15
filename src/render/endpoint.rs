//! The pages of endpoints, made from their specification (rule N6).
//!
//! An endpoint becomes the same nodes that an author would have written, so HTML and
//! Markdown of it come from the same writers.
//!
//! **Limits.** Schemas are shown at most [`DEPTH_MAX`] deep and [`FIELDS_MAX`] fields a
//! page; a schema inside of itself is named and not shown again.
//!
//! Sources: OpenAPI 3.1.1 §4.8.10 (operations), §4.8.24 (schemas).

use super::mdx::{Element, Node, Value};
use crate::docs::openapi::{Endpoint, Media, Operation, Schema, Specification};
use crate::docs::value::{Data, Value as Json};

/// How deep fields are shown in each other.
const DEPTH_MAX: usize = 6;
/// How many fields a page shows.
const FIELDS_MAX: usize = 400;

/// Writes the body of the page of an endpoint; nothing when its specification lost it.
#[must_use]
pub fn nodes(specification: &Specification, endpoint: &Endpoint) -> Vec<Node> {
    let Some(operation) = specification.operation(endpoint) else {
        return Vec::new();
    };
    let mut writer = Writer {
        specification,
        fields: 0,
        within: Vec::new(),
    };
    let mut nodes = Vec::new();
    let target = format!("{} {}", endpoint.method, endpoint.path);
    nodes.push(Node::Fence {
        info: "http".to_owned(),
        code: target,
    });
    nodes.extend(prose(operation.description()));
    writer.security(&operation, &mut nodes);
    writer.parameters(&operation, &mut nodes);
    writer.body(&operation, &mut nodes);
    writer.examples(endpoint, &operation, &mut nodes);
    writer.responses(&operation, &mut nodes);
    nodes
}

struct Writer<'s> {
    specification: &'s Specification,
    fields: usize,
    /// The names of the schemas around the one that is written.
    within: Vec<&'s str>,
}

// === impl Writer ===

impl<'s> Writer<'s> {
    fn security(&self, operation: &Operation<'s>, nodes: &mut Vec<Node>) {
        let alternatives = operation.security();
        let names: Vec<String> = alternatives
            .iter()
            .map(|set| {
                let names = set.schemes.iter().map(|(name, scheme)| {
                    let text = |key| scheme.get(key).and_then(Json::text);
                    match (text("type"), text("scheme"), text("in"), text("name")) {
                        (Some("http"), Some(kind), ..) => format!("{name} (HTTP {kind})"),
                        (Some("apiKey"), _, Some(place), Some(key)) => {
                            format!("{name} ({place} {key})")
                        }
                        (Some(kind), ..) => format!("{name} ({kind})"),
                        _ => (*name).to_owned(),
                    }
                });
                names.collect::<Vec<_>>().join(" and ")
            })
            .filter(|names| !names.is_empty())
            .collect();
        if !names.is_empty() {
            nodes.push(heading("Authorization"));
            nodes.push(Node::Paragraph(vec![Node::Text(names.join(", or "))]));
        }
    }

    fn parameters(&mut self, operation: &Operation<'s>, nodes: &mut Vec<Node>) {
        let parameters = operation.parameters();
        for (place, title) in [
            ("path", "Path parameters"),
            ("query", "Query parameters"),
            ("header", "Headers"),
            ("cookie", "Cookies"),
        ] {
            let mut here = parameters.iter().filter(|p| p.place == place).peekable();
            if here.peek().is_none() {
                continue;
            }
            nodes.push(heading(title));
            for parameter in here {
                let mut attributes = vec![text(place, parameter.name)];
                if let Some(schema) = parameter.schema {
                    attributes.push(text("type", &kind(schema.value)));
                    attributes.extend(default(schema.value));
                }
                attributes.extend(parameter.required.then(|| flag("required")));
                attributes.extend(parameter.deprecated.then(|| flag("deprecated")));
                let mut children = prose(parameter.description);
                if let Some(schema) = parameter.schema {
                    children.extend(values(schema.value));
                }
                nodes.push(element("ParamField", attributes, children));
            }
        }
    }

    fn body(&mut self, operation: &Operation<'s>, nodes: &mut Vec<Node>) {
        let Some(body) = operation.body() else {
            return;
        };
        nodes.push(heading("Body"));
        nodes.extend(prose(body.description));
        self.content(&body.content, nodes);
    }

    fn responses(&mut self, operation: &Operation<'s>, nodes: &mut Vec<Node>) {
        let responses = operation.responses();
        if responses.is_empty() {
            return;
        }
        nodes.push(heading("Responses"));
        for response in responses {
            nodes.push(Node::Heading {
                level: 3,
                id: None,
                children: vec![Node::Text(response.status.to_owned())],
            });
            nodes.extend(prose(response.description));
            self.content(&response.content, nodes);
        }
    }

    /// Shows every media type of a body.
    fn content(&mut self, content: &[Media<'s>], nodes: &mut Vec<Node>) {
        for media in content {
            nodes.push(Node::Paragraph(vec![Node::Code(media.kind.to_owned())]));
            if let Some(schema) = media.schema {
                self.schema(schema, nodes);
            }
            if let Some(example) = example(media) {
                nodes.push(fence("json", "Example", &example));
            }
        }
    }

    /// Shows the fields of a schema.
    fn schema(&mut self, schema: Schema<'s>, nodes: &mut Vec<Node>) {
        if let Some(name) = schema.name {
            if self.within.contains(&name) {
                let text = format!("{name}, as above.");
                nodes.push(Node::Paragraph(vec![Node::Text(text)]));
                return;
            }
            self.within.push(name);
        }
        if self.within.len() <= DEPTH_MAX {
            self.shape(schema.value, nodes);
        }
        if schema.name.is_some() {
            self.within.pop();
        }
    }

    fn shape(&mut self, value: &'s Json, nodes: &mut Vec<Node>) {
        if let Some(items) = value
            .get("items")
            .and_then(|items| self.specification.schema(items))
        {
            return self.schema(items, nodes);
        }
        for part in value.get("allOf").map_or(&[][..], Json::items) {
            if let Some(part) = self.specification.schema(part) {
                self.schema(part, nodes);
            }
        }
        for key in ["oneOf", "anyOf"] {
            let alternatives = value.get(key).map_or(&[][..], Json::items);
            for (n, part) in alternatives.iter().enumerate() {
                let Some(part) = self.specification.schema(part) else {
                    continue;
                };
                let title = part.value.get("title").and_then(Json::text).or(part.name);
                let title = title.map_or_else(|| format!("Option {}", n + 1), ToOwned::to_owned);
                let mut children = prose(part.value.get("description").and_then(Json::text));
                self.within.push("");
                self.schema(part, &mut children);
                self.within.pop();
                nodes.push(element("Expandable", vec![text("title", &title)], children));
            }
        }
        let required = value.get("required").map_or(&[][..], Json::items);
        for member in value.get("properties").map_or(&[][..], Json::members) {
            self.fields += 1;
            if self.fields > FIELDS_MAX {
                return;
            }
            let Some(schema) = self.specification.schema(&member.value) else {
                continue;
            };
            let is_required = required.iter().any(|name| name.text() == Some(&member.key));
            self.field(&member.key, schema, is_required, nodes);
        }
    }

    fn field(&mut self, name: &str, schema: Schema<'s>, required: bool, nodes: &mut Vec<Node>) {
        let mut attributes = vec![text("name", name), text("type", &kind(schema.value))];
        attributes.extend(required.then(|| flag("required")));
        let deprecated = schema.value.get("deprecated").and_then(Json::flag);
        attributes.extend((deprecated == Some(true)).then(|| flag("deprecated")));
        attributes.extend(default(schema.value));
        let mut children = prose(schema.value.get("description").and_then(Json::text));
        children.extend(values(schema.value));
        let mut inner = Vec::new();
        self.within.push("");
        self.schema(schema, &mut inner);
        self.within.pop();
        if !inner.is_empty() {
            let title = text("title", "Fields");
            children.push(element("Expandable", vec![title], inner));
        }
        nodes.push(element("ResponseField", attributes, children));
    }

    /// Shows the author's own samples, or else how to ask with curl.
    fn examples(&self, endpoint: &Endpoint, operation: &Operation<'s>, nodes: &mut Vec<Node>) {
        let samples = ["x-codeSamples", "x-code-samples"]
            .into_iter()
            .find_map(|key| operation.value().get(key));
        let mut fences: Vec<Node> = samples
            .map_or(&[][..], Json::items)
            .iter()
            .filter_map(|sample| {
                let language = sample.get("lang")?.text()?;
                let label = sample.get("label").and_then(Json::text);
                let code = sample.get("source")?.text()?;
                let known = language.to_lowercase();
                Some(fence(&known, label.unwrap_or(language), code))
            })
            .collect();
        if endpoint.method.key() != "webhook" {
            let code = curl(endpoint, operation);
            fences.push(fence("bash", "cURL", &code));
        }
        if !fences.is_empty() {
            nodes.push(heading("Request"));
            nodes.push(element("RequestExample", Vec::new(), fences));
        }
    }
}

/// Writes how to ask an endpoint with curl.
fn curl(endpoint: &Endpoint, operation: &Operation<'_>) -> String {
    let servers = operation.servers();
    let server = servers.first().map_or("https://api.example.com", |s| s.url);
    let url = format!("{}{}", server.trim_end_matches('/'), endpoint.path);
    let mut parts = vec![format!("curl -X {} {}", endpoint.method, quoted(&url))];
    if let Some((name, scheme)) = operation
        .security()
        .iter()
        .flat_map(|set| &set.schemes)
        .next()
    {
        let field = |key| scheme.get(key).and_then(Json::text);
        match (field("type"), field("in"), field("name")) {
            (Some("http" | "oauth2" | "openIdConnect"), ..) => {
                parts.push(format!("-H {}", quoted("Authorization: Bearer $TOKEN")));
            }
            (Some("apiKey"), Some("header"), Some(header)) => {
                let key = name.to_uppercase();
                parts.push(format!("-H {}", quoted(&format!("{header}: ${key}"))));
            }
            _ => {}
        }
    }
    if let Some(media) = operation
        .body()
        .as_ref()
        .and_then(|body| body.content.first())
    {
        let kind = format!("Content-Type: {}", media.kind);
        parts.push(format!("-H {}", quoted(&kind)));
        if let Some(example) = example(media) {
            parts.push(format!("-d {}", single_quoted(&example)));
        }
    }
    parts.join(" \\\n  ")
}

/// Quotes a word for a shell; `$TOKEN` in it stays a variable.
fn quoted(word: &str) -> String {
    format!(
        "\"{}\"",
        word.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('`', "\\`")
    )
}

fn single_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Returns the example of a body, or the first of several.
fn example(media: &Media<'_>) -> Option<String> {
    let first = || {
        media
            .value
            .get("examples")?
            .members()
            .first()?
            .value
            .get("value")
    };
    let of_schema = || media.schema?.value.get("example");
    let example = media
        .value
        .get("example")
        .or_else(first)
        .or_else(of_schema)?;
    let mut out = String::new();
    write_json(example, 0, &mut out);
    Some(out)
}

fn write_json(value: &Json, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth + 1);
    let end = "  ".repeat(depth);
    match &value.data {
        Data::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Data::Number(number) => out.push_str(number),
        _ if value.is_map() => {
            out.push('{');
            for (n, member) in value.members().iter().enumerate() {
                out.push_str(if n == 0 { "\n" } else { ",\n" });
                out.push_str(&indent);
                out.push_str(&serde_json::Value::from(&*member.key).to_string());
                out.push_str(": ");
                write_json(&member.value, depth + 1, out);
            }
            out.push_str(&format!("\n{end}}}"));
        }
        _ if value.text().is_some() => {
            let text = value.text().unwrap_or_default();
            out.push_str(&serde_json::Value::from(text).to_string());
        }
        Data::Null => out.push_str("null"),
        _ => {
            out.push('[');
            for (n, item) in value.items().iter().enumerate() {
                out.push_str(if n == 0 { "\n" } else { ",\n" });
                out.push_str(&indent);
                write_json(item, depth + 1, out);
            }
            out.push_str(&format!("\n{end}]"));
        }
    }
}

/// Names the type of a schema: `string`, `integer[]`, `string or null`.
fn kind(schema: &Json) -> String {
    let plain = |value: &Json| value.text().map(ToOwned::to_owned);
    let types: Vec<String> = match schema.get("type") {
        Some(value) if value.text().is_some() => plain(value).into_iter().collect(),
        Some(value) => value.items().iter().filter_map(plain).collect(),
        None if schema.get("properties").is_some() => vec!["object".to_owned()],
        None => Vec::new(),
    };
    let format = schema.get("format").and_then(Json::text);
    let mut kind = types.join(" or ");
    if kind == "array" {
        let items = schema.get("items").map(self::kind).unwrap_or_default();
        kind = if items.is_empty() {
            kind
        } else {
            format!("{items}[]")
        };
    }
    match format {
        Some(format) if !kind.is_empty() => format!("{kind} <{format}>"),
        _ => kind,
    }
}

fn default(schema: &Json) -> Option<(Box<str>, Value)> {
    Some(text("default", schema.get("default")?.scalar()?))
}

/// Lists the values that a schema allows.
fn values(schema: &Json) -> Vec<Node> {
    let allowed: Vec<&str> = schema
        .get("enum")
        .map_or(&[][..], Json::items)
        .iter()
        .filter_map(Json::scalar)
        .take(50)
        .collect();
    if allowed.is_empty() {
        return Vec::new();
    }
    let mut line = vec![Node::Text("One of ".to_owned())];
    for (n, value) in allowed.into_iter().enumerate() {
        if n > 0 {
            line.push(Node::Text(", ".to_owned()));
        }
        line.push(Node::Code(value.to_owned()));
    }
    vec![Node::Paragraph(line)]
}

/// Reads a description, which is Markdown (§4.8.1); over a limit it is shown as text.
fn prose(description: Option<&str>) -> Vec<Node> {
    let Some(text) = description else {
        return Vec::new();
    };
    super::mdx::read_markdown(text)
        .unwrap_or_else(|_| vec![Node::Paragraph(vec![Node::Text(text.to_owned())])])
}

fn heading(title: &str) -> Node {
    Node::Heading {
        level: 2,
        id: None,
        children: vec![Node::Text(title.to_owned())],
    }
}

fn fence(language: &str, title: &str, code: &str) -> Node {
    Node::Fence {
        info: format!("{language} title=\"{}\"", title.replace('"', "")),
        code: code.to_owned(),
    }
}

fn element(name: &str, attributes: Vec<(Box<str>, Value)>, children: Vec<Node>) -> Node {
    Node::Element(Element {
        name: name.into(),
        attributes,
        children,
        line: 0,
    })
}

fn text(name: &str, value: &str) -> (Box<str>, Value) {
    (name.into(), Value::Text(value.to_owned()))
}

fn flag(name: &str) -> (Box<str>, Value) {
    (name.into(), Value::Boolean(true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs;
    use crate::render::link::Map;
    use crate::render::markdown;
    use crate::source::{Tree, TreePath};

    #[test]
    fn an_endpoint_shows_what_its_specification_says() {
        let specification = r##"{"openapi": "3.1.0", "info": {"title": "Pay", "version": "1"},
          "servers": [{"url": "https://api.pay.test/v1/"}],
          "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Node": {"type": "object", "required": ["id"], "properties": {
              "id": {"type": "string", "description": "The *id*."}, "next": {"$ref": "#/components/schemas/Node"}}}}},
          "security": [{"key": []}],
          "paths": {"/nodes/{id}": {"put": {"summary": "Set", "description": "Sets **it**.",
            "parameters": [{"name": "id", "in": "path", "schema": {"type": "string"}}, {"name": "mode", "in": "query", "schema": {"type": "string", "enum": ["a", "b"], "default": "a"}}],
            "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}, "example": {"id": "it's", "n": [1, null]}}}},
            "responses": {"200": {"description": "Done."}}}}}}"##;
        let path = |path: &str| TreePath::parse(path).unwrap();
        let config = r#"{"name": "Pay", "navigation": {"openapi": "api.json", "pages": []}}"#;
        let tree = Tree::from_files(
            [
                (path("docs.json"), config.into()),
                (path("api.json"), specification.into()),
            ],
            [],
        );
        let (docs, _) = docs::read(&tree, &docs::Options::default());
        let specification = &docs.specifications[0];
        let nodes = nodes(specification, &specification.endpoints[0]);
        let written = markdown::write("x.mdx", &nodes, &Map::default());
        for piece in [
            "```http\nPUT /nodes/{id}\n```",
            "Sets **it**.",
            "key (HTTP bearer)",
            "- `id` (string, path, required)",
            "- `mode` (string, query), default `a`: One of `a`, `b`",
            "- `id` (string, required): The *id*.",
            "Node, as above.",
            "curl -X PUT \"https://api.pay.test/v1/nodes/{id}\" \\\n  -H \"Authorization: Bearer $TOKEN\"",
            "-d '{\n  \"id\": \"it'\\''s\",\n  \"n\": [\n    1,\n    null\n  ]\n}'",
            "### 200\n\nDone.",
        ] {
            assert!(written.contains(piece), "{piece}\nis not in\n{written}");
        }
    }
}
