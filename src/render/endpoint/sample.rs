//! Sample requests of an endpoint: the author's samples, or a curl command for each server.
//!
//! Sources: OpenAPI 3.1.1 §4.8.5 (servers), §4.8.14 (media types), §4.8.19 (examples).

use std::borrow::Cow;

use super::{Writer, element, fence, heading};
use crate::docs::openapi::{Endpoint, Media, Method, Operation, Server};
use crate::mdx::Node;
use crate::syntax::{Data, Value as Json};

/// How many servers get a curl command.
const SERVERS_MAX: usize = 6;
/// How many examples of one body are shown.
const EXAMPLES_MAX: usize = 8;
/// The server that is shown if the specification names none.
const NO_SERVER: &str = "https://api.example.com";

// === impl Writer ===

impl Writer<'_> {
    /// Shows the author's samples, or else curl commands.
    pub(super) fn examples(
        &self,
        endpoint: &Endpoint,
        operation: &Operation<'_>,
        nodes: &mut Vec<Node>,
    ) {
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
            let several = servers.len() > 1;
            for server in servers.iter().take(SERVERS_MAX) {
                let name = server.description.unwrap_or(server.url);
                let title = if several {
                    format!("cURL ({name})")
                } else {
                    "cURL".to_owned()
                };
                fences.push(fence(
                    "bash",
                    &title,
                    &curl(endpoint, operation, &address(server)),
                ));
            }
            if servers.is_empty() {
                fences.push(fence("bash", "cURL", &curl(endpoint, operation, NO_SERVER)));
            }
        }
        if !fences.is_empty() {
            nodes.push(heading(self.messages.request, "request"));
            nodes.push(element("RequestExample", Vec::new(), fences));
        }
    }
}

/// Writes the curl command for an endpoint.
fn curl(endpoint: &Endpoint, operation: &Operation<'_>, server: &str) -> String {
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
            (Some("http"), ..)
                if field("scheme").is_some_and(|s| s.eq_ignore_ascii_case("basic")) =>
            {
                parts.push("-u \"$USER:$PASSWORD\"".to_owned());
            }
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

/// Returns the URL of a server with default values for its variables (§4.8.6).
fn address(server: &Server<'_>) -> String {
    let mut url = server.url.to_owned();
    for member in server.value.get("variables").map_or(&[][..], Json::members) {
        if let Some(default) = member.value.get("default").and_then(Json::scalar) {
            url = url.replace(&format!("{{{}}}", member.key), default);
        }
    }
    url
}

/// Returns the first example of a body.
fn example(media: &Media<'_>) -> Option<String> {
    Some(examples(media).into_iter().next()?.1)
}

/// Returns the examples of a body, each with its name.
pub(super) fn examples<'m>(media: &Media<'m>) -> Vec<(Option<&'m str>, String)> {
    let text = |value: &Json| {
        let mut out = String::new();
        write_json(value, 0, &mut out);
        out
    };
    let named = media.value.get("examples").map_or(&[][..], Json::members);
    let mut all: Vec<_> = named
        .iter()
        .filter_map(|member| {
            let title = member.value.get("summary").and_then(Json::text);
            let name = title.unwrap_or(&member.key);
            Some((Some(name), text(member.value.get("value")?)))
        })
        .take(EXAMPLES_MAX)
        .collect();
    if let Some(only) = media.value.get("example") {
        all.insert(0, (None, text(only)));
    }
    // §4.8.24: the examples of the schema, if the media type has none.
    if all.is_empty() {
        let schema = media.schema.map(|schema| schema.value);
        let only = schema.and_then(|schema| {
            let first = || schema.get("examples")?.items().first();
            schema.get("example").or_else(first)
        });
        all.extend(only.map(|only| (None, text(only))));
    }
    all
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

fn write_json(value: &Json, depth: usize, out: &mut String) {
    let indent = "  ".repeat(depth + 1);
    let end = "  ".repeat(depth);
    match &value.data {
        Data::Flag(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Data::Number(number) => out.push_str(&json_number(number)),
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

#[cfg(test)]
mod tests {
    use super::*;

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
