//! The values of the query and header that a request must have.
//!
//! Sources: OpenAPI 3.1.1 §4.8.12.2 (styles of parameters).

use super::Credential;
use super::example::Sketch;
use super::literal::in_one_line;
use crate::docs::openapi::{Operation, Parameter};
use crate::site::percent::encode_component;
use crate::syntax::{Data, Value as Json};

/// §4.8.12.1: parameters with the names of these header fields have no effect.
pub(in crate::render::endpoint) const NO_HEADERS: [&str; 3] =
    ["accept", "content-type", "authorization"];

/// Returns the required values of the query, without those of credentials.
pub(super) fn query(
    operation: &Operation<'_>,
    credentials: &[Credential<'_>],
    sketch: Sketch<'_>,
) -> String {
    let is_credential = |name: &str| {
        let mut credentials = credentials.iter();
        credentials.any(|one| matches!(one, Credential::Query { name: key, .. } if *key == name))
    };
    let parameters = operation.parameters().into_iter();
    let parameters = parameters
        .filter(|one| one.required && one.place == "query" && !is_credential(one.name))
        .flat_map(|one| pairs(&one, sketch.parameter(&one).as_ref()));
    parameters.collect::<Vec<_>>().join("&")
}

/// Returns the required fields of the header, without those of credentials.
pub(super) fn headers<'r>(
    operation: &Operation<'r>,
    credentials: &[Credential<'_>],
    sketch: Sketch<'_>,
) -> Vec<(&'r str, String)> {
    let is_credential = |name: &str| {
        let mut credentials = credentials.iter();
        credentials.any(|one| {
            matches!(one, Credential::Header { name: key, .. } if key.eq_ignore_ascii_case(name))
        })
    };
    let has_effect = |name: &str| !NO_HEADERS.iter().any(|no| no.eq_ignore_ascii_case(name));
    let parameters = operation.parameters().into_iter();
    let parameters = parameters.filter(|one| {
        let is_sent = one.required && one.place == "header";
        is_sent && has_effect(one.name) && !is_credential(one.name)
    });
    let fields = parameters.map(|one| {
        let value = match sketch.parameter(&one) {
            Some(value) => match &value.data {
                Data::List(items) => items.iter().map(in_one_line).collect::<Vec<_>>().join(","),
                _ => in_one_line(&value),
            },
            None => format!("{{{}}}", one.name),
        };
        (one.name, value)
    });
    fields.collect()
}

/// Writes the value of a parameter for the query: pairs of names and values. A parameter without a
/// value has its name in braces, as in a path.
fn pairs(parameter: &Parameter<'_>, value: Option<&Json>) -> Vec<String> {
    let name = encode_component(parameter.name);
    let Some(value) = value else {
        return vec![format!("{name}={{{name}}}")];
    };
    let encoded = |value: &Json| encode_component(&in_one_line(value));
    let style = parameter.value.get("style").and_then(Json::text);
    let explode = parameter.value.get("explode").and_then(Json::flag);
    let explode = explode.unwrap_or(style.is_none_or(|style| style == "form"));
    let between = match style {
        Some("spaceDelimited") => "%20",
        Some("pipeDelimited") => "%7C",
        _ => ",",
    };
    match &value.data {
        // The value is in a media type.
        _ if parameter.value.get("content").is_some() => vec![format!("{name}={}", encoded(value))],
        Data::List(items) if explode => {
            let items = items.iter();
            items
                .map(|item| format!("{name}={}", encoded(item)))
                .collect()
        }
        Data::List(items) => {
            let items: Vec<_> = items.iter().map(encoded).collect();
            vec![format!("{name}={}", items.join(between))]
        }
        Data::Map(members) => {
            let members = members
                .iter()
                .map(|member| (encode_component(&member.key), encoded(&member.value)));
            if style == Some("deepObject") {
                members
                    .map(|(key, value)| format!("{name}%5B{key}%5D={value}"))
                    .collect()
            } else if explode {
                members
                    .map(|(key, value)| format!("{key}={value}"))
                    .collect()
            } else {
                let members: Vec<_> = members
                    .map(|(key, value)| format!("{key}{between}{value}"))
                    .collect();
                vec![format!("{name}={}", members.join(between))]
            }
        }
        _ => vec![format!("{name}={}", encoded(value))],
    }
}
