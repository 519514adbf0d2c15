//! Sample requests of an endpoint: the author's samples, then a sample in each language.
//!
//! A credential is an environment variable in a sample, so that it can be pasted as it is. A body
//! without an example gets one that is made from its schema.
//!
//! Sources: OpenAPI 3.1.1 §4.8.5 (servers), §4.8.14 (media types), §4.8.19 (examples).

use std::borrow::Cow;

use super::{Writer, element, fence};
use crate::docs::config::Language;
use crate::docs::openapi::{Endpoint, Media, Method, Operation, Response, Server, Specification};
use crate::mdx::Node;
use crate::site::percent::encode_component;
use crate::syntax::{Data, Member, Value as Json};

/// How many servers get a curl command of their own.
const SERVERS_MAX: usize = 6;
/// How many examples of one body are shown.
const EXAMPLES_MAX: usize = 8;
/// How many levels an example has that is made from a schema, and how many fields an object of it.
const SKETCH_DEPTH_MAX: usize = 5;
const SKETCH_MEMBERS_MAX: usize = 24;
/// The server that is shown if the specification names none.
const NO_SERVER: &str = "https://api.example.com";

// === impl Writer ===

impl Writer<'_> {
    /// Makes the element with the author's samples, then a sample in each language.
    pub(super) fn samples(&self, endpoint: &Endpoint, operation: &Operation<'_>) -> Option<Node> {
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
        if endpoint.method != Method::Webhook {
            let servers = operation.servers();
            let first = servers.first().map_or(NO_SERVER.to_owned(), address);
            for language in self.languages {
                let request = Request::of(endpoint, operation, &first, self.request_sketch());
                let (id, name) = language.names();
                if *language != Language::Curl || servers.len() < 2 {
                    fences.push(fence(id, name, &request.written(*language)));
                    continue;
                }
                for server in servers.iter().take(SERVERS_MAX) {
                    let address = address(server);
                    let request = Request::of(endpoint, operation, &address, self.request_sketch());
                    let server = server.description.unwrap_or(server.url);
                    let title = format!("{name} ({server})");
                    fences.push(fence(id, &title, &request.written(*language)));
                }
            }
        }
        (!fences.is_empty()).then(|| element("RequestExample", Vec::new(), fences))
    }

    fn request_sketch(&self) -> Sketch<'_> {
        Sketch {
            is_required_only: self.is_required_only,
            ..Sketch::request(self.specification)
        }
    }
}

/// A request that samples show.
#[derive(Debug)]
struct Request<'r> {
    method: Method,
    url: String,
    credential: Option<Credential<'r>>,
    /// The media type of the body.
    kind: Option<&'r str>,
    body: Option<Cow<'r, Json>>,
}

/// A credential of a request, from environment variables.
#[derive(Debug)]
enum Credential<'r> {
    /// HTTP Basic (RFC 7617), from `USER` and `PASSWORD`.
    Basic,
    /// A bearer token (RFC 6750), from `TOKEN`.
    Bearer,
    /// A header with a value from the variable.
    Header(&'r str, String),
}

// === impl Request ===

impl<'r> Request<'r> {
    fn of(
        endpoint: &Endpoint,
        operation: &Operation<'r>,
        server: &str,
        sketch: Sketch<'_>,
    ) -> Self {
        let security = operation.security();
        let mut schemes = security.iter().flat_map(|set| &set.schemes);
        let credential = schemes.next().and_then(|(name, scheme)| {
            let field = |key| scheme.get(key).and_then(Json::text);
            let is_basic = || field("scheme").is_some_and(|s| s.eq_ignore_ascii_case("basic"));
            match (field("type"), field("in"), field("name")) {
                (Some("http"), ..) if is_basic() => Some(Credential::Basic),
                (Some("http" | "oauth2" | "openIdConnect"), ..) => Some(Credential::Bearer),
                (Some("apiKey"), Some("header"), Some(header)) => {
                    Some(Credential::Header(header, name.to_uppercase()))
                }
                _ => None,
            }
        });
        let body = operation.body();
        let media = body.as_ref().and_then(|body| body.content.first());
        Self {
            method: endpoint.method,
            url: format!("{}{}", server.trim_end_matches('/'), endpoint.path),
            credential,
            kind: media.map(|media| media.kind),
            body: media.and_then(|media| Some(sketch.examples(media).into_iter().next()?.1)),
        }
    }

    fn written(&self, language: Language) -> String {
        match language {
            Language::Curl => self.curl(),
            Language::Python => self.python(),
            Language::JavaScript => self.javascript(),
            Language::Go => self.go(),
        }
    }

    /// Returns whether the body is JSON (RFC 8259 §11, RFC 6839 §3.1).
    fn has_json(&self) -> bool {
        self.kind.is_some_and(|kind| kind.contains("json"))
    }

    /// Returns the body as text: JSON, a form, or the example as its author wrote it.
    fn text(&self) -> Option<String> {
        let body = self.body.as_deref()?;
        Some(match body.text() {
            Some(text) if !self.has_json() => text.to_owned(),
            _ if self.kind.is_some_and(is_form) && body.is_map() => form(body),
            _ => json(body),
        })
    }

    fn curl(&self) -> String {
        let mut parts = vec![format!("curl -X {} {}", self.method, quoted(&self.url))];
        match &self.credential {
            Some(Credential::Basic) => parts.push("-u \"$USER:$PASSWORD\"".to_owned()),
            Some(Credential::Bearer) => {
                parts.push(format!("-H {}", quoted("Authorization: Bearer $TOKEN")));
            }
            Some(Credential::Header(header, variable)) => {
                parts.push(format!("-H {}", quoted(&format!("{header}: ${variable}"))));
            }
            None => {}
        }
        if let Some(kind) = self.kind {
            parts.push(format!("-H {}", quoted(&format!("Content-Type: {kind}"))));
        }
        if let Some(body) = self.text() {
            parts.push(format!("-d {}", single_quoted(&body)));
        }
        parts.join(" \\\n  ")
    }

    fn python(&self) -> String {
        let variable = |name: &str| format!("os.environ[{}]", string(name));
        let mut headers = Vec::new();
        let mut arguments = Vec::new();
        match &self.credential {
            Some(Credential::Basic) => arguments.push(format!(
                "auth=({}, {})",
                variable("USER"),
                variable("PASSWORD")
            )),
            Some(Credential::Bearer) => headers.push(format!(
                "\"Authorization\": \"Bearer \" + {}",
                variable("TOKEN")
            )),
            Some(Credential::Header(header, name)) => {
                headers.push(format!("{}: {}", string(header), variable(name)));
            }
            None => {}
        }
        match self.body.as_deref() {
            Some(body) if self.has_json() => {
                let mut literal = String::new();
                write_literal(body, 1, &PYTHON_WORDS, &mut literal);
                arguments.push(format!("json={literal}"));
            }
            body => {
                headers.extend(
                    self.kind
                        .map(|kind| format!("\"Content-Type\": {}", string(kind))),
                );
                if body.is_some() {
                    let text = self.text().unwrap_or_default();
                    arguments.push(format!("data={}", string(&text)));
                }
            }
        }
        if !headers.is_empty() {
            arguments.insert(0, format!("headers={{{}}}", headers.join(", ")));
        }
        let method = self.method.to_string().to_lowercase();
        let mut code = String::new();
        if self.credential.is_some() {
            code += "import os\n\n";
        }
        code += "import requests\n\n";
        code += &format!(
            "response = requests.{method}(\n    {},\n",
            string(&self.url)
        );
        for argument in arguments {
            code += &format!("    {argument},\n");
        }
        code + ")\nresponse.raise_for_status()\nprint(response.text)"
    }

    fn javascript(&self) -> String {
        let mut headers = Vec::new();
        match &self.credential {
            Some(Credential::Basic) => headers.push(
                "Authorization: \"Basic \" + btoa(`${process.env.USER}:${process.env.PASSWORD}`)"
                    .to_owned(),
            ),
            Some(Credential::Bearer) => {
                headers.push("Authorization: `Bearer ${process.env.TOKEN}`".to_owned());
            }
            Some(Credential::Header(header, name)) => {
                headers.push(format!("{}: process.env[{}]", string(header), string(name)));
            }
            None => {}
        }
        headers.extend(
            self.kind
                .map(|kind| format!("\"Content-Type\": {}", string(kind))),
        );
        let mut code = format!("const response = await fetch({}, {{\n", string(&self.url));
        code += &format!("  method: \"{}\",\n", self.method);
        if !headers.is_empty() {
            let lines = headers.iter().map(|header| format!("    {header},\n"));
            code += &format!("  headers: {{\n{}  }},\n", lines.collect::<String>());
        }
        if let Some(text) = self.text() {
            let body = match self.has_json() {
                true => format!("JSON.stringify({})", text.replace('\n', "\n  ")),
                false => string(&text),
            };
            code += &format!("  body: {body},\n");
        }
        code + "});\nif (!response.ok) throw new Error(response.status);\nconsole.log(await response.text());"
    }

    fn go(&self) -> String {
        let text = self.text();
        let mut imports = vec!["io", "log", "net/http", "os"];
        imports.extend(text.is_some().then_some("strings"));
        let imports = imports.iter().map(|name| format!("\t\"{name}\"\n"));
        let mut code = format!(
            "package main\n\nimport (\n{})\n\nfunc main() {{\n",
            imports.collect::<String>()
        );
        let body = match &text {
            Some(text) if text.contains('`') => format!("strings.NewReader({})", string(text)),
            Some(text) => format!("strings.NewReader(`{text}`)"),
            None => "nil".to_owned(),
        };
        let url = string(&self.url);
        code += &format!(
            "\trequest, err := http.NewRequest(\"{}\", {url}, {body})\n\tif err != nil {{\n\t\tlog.Fatal(err)\n\t}}\n",
            self.method
        );
        match &self.credential {
            Some(Credential::Basic) => {
                code += "\trequest.SetBasicAuth(os.Getenv(\"USER\"), os.Getenv(\"PASSWORD\"))\n";
            }
            Some(Credential::Bearer) => {
                code +=
                    "\trequest.Header.Set(\"Authorization\", \"Bearer \"+os.Getenv(\"TOKEN\"))\n";
            }
            Some(Credential::Header(header, name)) => {
                let (header, name) = (string(header), string(name));
                code += &format!("\trequest.Header.Set({header}, os.Getenv({name}))\n");
            }
            None => {}
        }
        if let Some(kind) = self.kind {
            code += &format!("\trequest.Header.Set(\"Content-Type\", {})\n", string(kind));
        }
        code + "\tresponse, err := http.DefaultClient.Do(request)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\
             \tdefer response.Body.Close()\n\tio.Copy(os.Stdout, response.Body)\n}"
    }
}

/// `true`, `false` and `null` of a language.
type Words = [&'static str; 3];
const JSON_WORDS: Words = ["true", "false", "null"];
const PYTHON_WORDS: Words = ["True", "False", "None"];

/// Writes a string literal, which Python, JavaScript and Go read as JSON does.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn json(value: &Json) -> String {
    let mut out = String::new();
    write_literal(value, 0, &JSON_WORDS, &mut out);
    out
}

/// Writes a value in one line: a text as it is, another value as JSON.
pub(super) fn in_one_line(value: &Json) -> String {
    if let Some(scalar) = value.scalar() {
        return scalar.to_owned();
    }
    let mut out = String::new();
    // Line breaks in texts are escaped, so these lines are the layout.
    for line in json(value).lines() {
        if out.ends_with(',') {
            out.push(' ');
        }
        out.push_str(line.trim_start());
    }
    out
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

/// Returns the URL of a server with default values for its variables (§4.8.6).
pub(super) fn address(server: &Server<'_>) -> String {
    let mut url = server.url.to_owned();
    for member in server.value.get("variables").map_or(&[][..], Json::members) {
        if let Some(default) = member.value.get("default").and_then(Json::scalar) {
            url = url.replace(&format!("{{{}}}", member.key), default);
        }
    }
    url
}

/// Returns the examples of a body, each with its name.
fn examples<'m>(media: &Media<'m>) -> Vec<(Option<&'m str>, &'m Json)> {
    let named = media.value.get("examples").map_or(&[][..], Json::members);
    let mut all: Vec<_> = named
        .iter()
        .filter_map(|member| {
            let title = member.value.get("summary").and_then(Json::text);
            let name = title.unwrap_or(&member.key);
            Some((Some(name), member.value.get("value")?))
        })
        .take(EXAMPLES_MAX)
        .collect();
    if let Some(only) = media.value.get("example") {
        all.insert(0, (None, only));
    }
    // §4.8.24: the examples of the schema, if the media type has none.
    if all.is_empty() {
        let only = media.schema.and_then(|schema| {
            let stated = |key| schema.written.get(key).or_else(|| schema.value.get(key));
            let first = || stated("examples")?.items().first();
            stated("example").or_else(first)
        });
        all.extend(only.map(|only| (None, only)));
    }
    all
}

/// Returns the status line of a response (RFC 9112 §4) and the type of its body, for a response
/// without an example; `None` for a range of statuses.
pub(super) fn status_line(response: &Response<'_>) -> Option<String> {
    let status = http::StatusCode::from_bytes(response.status.as_bytes()).ok()?;
    let reason = status.canonical_reason().unwrap_or_default();
    let mut line = format!("HTTP/1.1 {} {reason}", response.status)
        .trim_end()
        .to_owned();
    if let Some(media) = response.content.first() {
        line += &format!("\nContent-Type: {}", media.kind);
    }
    Some(line)
}

/// Returns whether a body is a form (WHATWG URL §5).
fn is_form(kind: &str) -> bool {
    kind.starts_with("application/x-www-form-urlencoded")
}

/// Writes the fields of an object as a form.
fn form(object: &Json) -> String {
    let pairs = object.members().iter().map(|member| {
        let value = member.value.scalar();
        let value = value.map_or_else(|| json(&member.value), ToOwned::to_owned);
        format!(
            "{}={}",
            encode_component(&member.key),
            encode_component(&value)
        )
    });
    pairs.collect::<Vec<_>>().join("&")
}

/// Returns the examples of a body as JSON, each with its name.
pub(super) fn written_examples<'m>(media: &Media<'m>) -> Vec<(Option<&'m str>, String)> {
    let all = examples(media).into_iter();
    all.map(|(name, value)| (name, json(value))).collect()
}

/// Makes examples of schemas, for bodies without one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sketch<'s> {
    specification: &'s Specification,
    /// The flag of fields that are left out (OpenAPI 3.1.1 §4.8.24): a request has none that is
    /// `readOnly`, a response none that is `writeOnly`.
    left_out: &'static str,
    /// Whether objects have their required fields only.
    is_required_only: bool,
}

// === impl Sketch ===

impl<'s> Sketch<'s> {
    /// Makes examples of the bodies of requests.
    pub(super) fn request(specification: &'s Specification) -> Self {
        Self {
            specification,
            left_out: "readOnly",
            is_required_only: false,
        }
    }

    /// Makes examples of the bodies of responses.
    pub(super) fn response(specification: &'s Specification) -> Self {
        Self {
            left_out: "writeOnly",
            ..Self::request(specification)
        }
    }

    /// Returns the examples of a body as JSON, or an example that is made from its schema.
    pub(super) fn texts<'m>(self, media: &Media<'m>) -> Vec<(Option<&'m str>, String)> {
        let all = self.examples(media).into_iter();
        all.map(|(name, value)| (name, json(&value))).collect()
    }

    fn examples<'m>(self, media: &Media<'m>) -> Vec<(Option<&'m str>, Cow<'m, Json>)> {
        let written = examples(media).into_iter();
        let mut all: Vec<_> = written
            .map(|(name, value)| (name, Cow::Borrowed(value)))
            .collect();
        if all.is_empty() && (media.kind.contains("json") || is_form(media.kind)) {
            let made = media.schema.and_then(|schema| self.of(schema.written, 0));
            all.extend(made.map(|made| (None, Cow::Owned(made))));
        }
        all
    }

    /// Makes an example of a schema: its own examples, defaults and first values, else a value of
    /// each type.
    ///
    /// It is `None` for a value deeper than [`SKETCH_DEPTH_MAX`], and for a schema without a type.
    fn of(self, written: &Json, depth: usize) -> Option<Json> {
        let stated = |key| self.specification.stated(written, key);
        let first = |key| stated(key).map_or(&[][..], Json::items).first();
        let mut keys = ["example", "const", "default"].into_iter();
        let schema = self.specification.resolve(written)?;
        if let Some(stated) = keys
            .find_map(stated)
            .or_else(|| first("examples"))
            .or_else(|| first("enum"))
        {
            return Some(stated.clone());
        }
        if depth >= SKETCH_DEPTH_MAX {
            return None;
        }
        let value = |data| Json {
            span: schema.span,
            data,
        };
        if let Some(part) = ["oneOf", "anyOf"].into_iter().find_map(first) {
            return self.of(part, depth);
        }
        let kinds = schema.get("type");
        let kind = kinds.and_then(|kind| kind.text().or_else(|| kind.items().first()?.text()));
        if let Some(items) = schema.get("items") {
            return Some(value(Data::List(vec![self.of(items, depth + 1)?])));
        }
        let members = self.members(schema, depth);
        if !members.is_empty() {
            return Some(value(Data::Map(members)));
        }
        let format = schema.get("format").and_then(Json::text);
        Some(value(match (kind?, format) {
            ("string", format) => Data::Text(
                match format {
                    Some("date-time") => "2026-01-31T12:00:00Z",
                    Some("date") => "2026-01-31",
                    Some("email") => "name@example.com",
                    Some("uri" | "url") => "https://example.com",
                    Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
                    _ => "string",
                }
                .into(),
            ),
            ("integer" | "number", _) => {
                let least = schema.get("minimum").and_then(Json::scalar);
                Data::Number(least.unwrap_or("1").into())
            }
            ("boolean", _) => Data::Flag(true),
            ("null", _) => Data::Null,
            ("object", _) => Data::Map(Vec::new()),
            _ => return None,
        }))
    }

    /// Makes the fields of an object; those of `allOf` come first.
    fn members(self, schema: &Json, depth: usize) -> Vec<Member> {
        let parts = schema.get("allOf").map_or(&[][..], Json::items);
        let parts = parts
            .iter()
            .filter_map(|part| self.specification.resolve(part));
        let mut members: Vec<Member> = Vec::new();
        for part in parts.chain([schema]) {
            let required = part.get("required").map_or(&[][..], Json::items);
            for member in part.get("properties").map_or(&[][..], Json::members) {
                let is_required = required.iter().any(|name| name.text() == Some(&member.key));
                let flag = self.specification.stated(&member.value, self.left_out);
                let flag = flag.and_then(Json::flag);
                let is_left_out = flag == Some(true) || self.is_required_only && !is_required;
                let is_known = members.iter().any(|known| known.key == member.key);
                if is_left_out || is_known || members.len() >= SKETCH_MEMBERS_MAX {
                    continue;
                }
                if let Some(value) = self.of(&member.value, depth + 1) {
                    members.push(Member {
                        value,
                        ..member.clone()
                    });
                }
            }
        }
        members
    }
}

/// Returns a number as JSON writes it (RFC 8259 §6).
///
/// YAML has more spellings: `.5`, `+1`, `0x1f`, `0o17`. JSON has no infinity, so `.inf` is
/// `null`, as JavaScript writes it.
fn json_number(number: &str) -> Cow<'_, str> {
    if serde_json::from_str::<serde_json::Number>(number).is_ok() {
        return Cow::Borrowed(number);
    }
    let digits = number.strip_prefix('+').unwrap_or(number);
    let integer = match (digits.strip_prefix("0x"), digits.strip_prefix("0o")) {
        (Some(digits), _) => u128::from_str_radix(digits, 16).ok(),
        (_, Some(digits)) => u128::from_str_radix(digits, 8).ok(),
        _ => digits.parse().ok(),
    };
    let decimal = || {
        let is_decimal = digits.bytes().any(|byte| byte.is_ascii_digit());
        let value: f64 = digits.parse().ok().filter(|_| is_decimal)?;
        serde_json::Number::from_f64(value)
    };
    match integer {
        Some(integer) => integer.to_string().into(),
        None => decimal().map_or("null".into(), |decimal| decimal.to_string().into()),
    }
}

/// Writes a value as a literal of JSON, or of a language with other words.
fn write_literal(value: &Json, depth: usize, words: &Words, out: &mut String) {
    let indent = "  ".repeat(depth + 1);
    let end = "  ".repeat(depth);
    match &value.data {
        Data::Flag(flag) => out.push_str(words[usize::from(!*flag)]),
        Data::Number(number) => out.push_str(&json_number(number)),
        _ if value.is_map() && value.members().is_empty() => out.push_str("{}"),
        _ if value.is_map() => {
            out.push('{');
            for (n, member) in value.members().iter().enumerate() {
                out.push_str(if n == 0 { "\n" } else { ",\n" });
                out.push_str(&indent);
                out.push_str(&serde_json::Value::from(&*member.key).to_string());
                out.push_str(": ");
                write_literal(&member.value, depth + 1, words, out);
            }
            out.push_str(&format!("\n{end}}}"));
        }
        _ if value.text().is_some() => {
            let text = value.text().unwrap_or_default();
            out.push_str(&serde_json::Value::from(text).to_string());
        }
        Data::Null => out.push_str(words[2]),
        _ if value.items().is_empty() => out.push_str("[]"),
        _ => {
            out.push('[');
            for (n, item) in value.items().iter().enumerate() {
                out.push_str(if n == 0 { "\n" } else { ",\n" });
                out.push_str(&indent);
                write_literal(item, depth + 1, words, out);
            }
            out.push_str(&format!("\n{end}]"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_is_made_from_a_schema() {
        let text = r##"{"openapi": "3.1.0", "info": {"title": "Pay", "version": "1"}, "paths": {}, "components": {"schemas": {
            "Node": {"type": "object", "required": ["kind"], "properties": {"id": {"type": "string", "format": "uuid"},
              "secret": {"type": "string", "writeOnly": true}, "made": {"type": "boolean", "readOnly": true}, "kind": {"enum": ["a", "b"]},
              "size": {"type": "integer", "minimum": 3}, "when": {"type": ["string", "null"], "format": "date"},
              "tags": {"type": "array", "items": {"type": "string", "example": "red"}},
              "next": {"$ref": "#/components/schemas/Node"}, "other": {}}}}}}"##;
        let mut diagnostics = crate::syntax::Diagnostics::default();
        let file = diagnostics.files.add("a.json", text.into());
        let root = crate::syntax::json::read(file, &mut diagnostics).unwrap();
        let specification = Specification {
            path: "a.json".into(),
            title: "Pay".into(),
            endpoints: Vec::new(),
            root,
        };
        let node = specification.named_schema("Node").unwrap();
        let made = |sketch: Sketch<'_>| -> serde_json::Value {
            serde_json::from_str(&json(&sketch.of(node, 0).unwrap())).unwrap()
        };
        let response = made(Sketch::response(&specification));
        assert_eq!(
            (&response["secret"], &response["made"]),
            (&serde_json::Value::Null, &true.into())
        );
        let required = Sketch {
            is_required_only: true,
            ..Sketch::request(&specification)
        };
        assert_eq!(made(required), serde_json::json!({"kind": "a"}));
        let made = made(Sketch::request(&specification));
        assert_eq!(
            (&made["secret"], &made["made"]),
            (&"string".into(), &serde_json::Value::Null)
        );
        assert_eq!(made["kind"], "a");
        assert_eq!(made["size"], 3);
        assert_eq!(made["when"], "2026-01-31");
        assert_eq!(made["tags"], serde_json::json!(["red"]));
        assert_eq!(made["next"]["next"]["kind"], "a");
        assert_eq!(made.get("other"), None);
        let depth = std::iter::successors(Some(&made), |node| node.get("next")).count();
        assert_eq!(depth, SKETCH_DEPTH_MAX);
    }

    #[test]
    fn a_number_of_yaml_is_a_number_of_json() {
        for (yaml, json) in [
            ("1.10", "1.10"),
            ("-0", "-0"),
            ("+12", "12"),
            ("012", "12"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("1.", "1.0"),
            ("0x1f", "31"),
            ("0o17", "15"),
            ("-.inf", "null"),
            (".NaN", "null"),
        ] {
            assert_eq!(json_number(yaml), json, "{yaml}");
        }
    }
}
