//! "Try it": the form that sends a request of an endpoint from the reader's browser.
//!
//! The page holds a description of the request; a script makes the form of it. The policy of the
//! page allows requests to the servers of the endpoint only ([`origins`]).
//!
//! **Limits.** A form has at most [`INPUTS_MAX`] inputs of each kind, and a page allows at most
//! [`ORIGINS_MAX`] origins. Cookies cannot be sent, because browsers do not let pages set them.
//!
//! Sources: OpenAPI 3.1.1 §4.8.5 (servers), §4.8.12 (parameters), §4.8.27 (security schemes);
//! CSP Level 3 §2.3.1 (source expressions).

use std::collections::BTreeSet;

use serde_json::{Map, Value as Form, json};

use super::sample;
use crate::docs::config::Api;
use crate::docs::openapi::{Endpoint, Method, Operation, Schema, Server, Specification};
use crate::syntax::Value as Json;

/// How many parameters, servers, schemes or fields of a body a form has.
const INPUTS_MAX: usize = 60;
/// How many origins the policy of a page allows.
const ORIGINS_MAX: usize = 16;

/// Describes the request of an endpoint for the form; `None` for a webhook, and for an endpoint
/// without a server to which a browser can send a request.
#[must_use]
pub fn form(specification: &Specification, endpoint: &Endpoint, api: &Api) -> Option<Form> {
    let operation = specification.operation(endpoint)?;
    if endpoint.method == Method::Webhook || origins_of(&operation).is_none() {
        return None;
    }
    let servers = operation.servers().into_iter().take(INPUTS_MAX);
    let servers: Vec<Form> = match servers.map(|one| server(&one)).collect::<Vec<_>>() {
        none if none.is_empty() => vec![json!({"url": "/"})],
        all => all,
    };
    let mut form = json!({
        "method": endpoint.method.to_string(),
        "path": &*endpoint.path,
        "servers": servers,
        "auth": auth(&operation),
        "parameters": parameters(specification, &operation, api.examples.prefill),
        "body": body(specification, &operation),
    });
    if api.playground.credentials {
        form["credentials"] = true.into();
    }
    Some(form)
}

/// Returns the origins to which the form of an endpoint sends requests, as sources of a policy. The
/// site's own origin, which every page may ask, is not in the list.
#[must_use]
pub fn origins(specification: &Specification, endpoint: &Endpoint) -> BTreeSet<Box<str>> {
    let operation = specification.operation(endpoint);
    operation
        .filter(|_| endpoint.method != Method::Webhook)
        .and_then(|operation| origins_of(&operation))
        .unwrap_or_default()
}

/// Returns `None` if there are servers, but none that a browser can send a request to.
fn origins_of(operation: &Operation<'_>) -> Option<BTreeSet<Box<str>>> {
    let servers = operation.servers();
    // §4.8.1.1: without servers, the server is `/`.
    let mut is_own = servers.is_empty();
    let mut origins = BTreeSet::new();
    for server in &servers {
        for url in with_variables(server) {
            if url.starts_with('/') && !url.starts_with("//") || !url.contains(':') {
                is_own = true;
            } else {
                origins.extend(origin(&url).filter(|_| origins.len() < ORIGINS_MAX));
            }
        }
    }
    (is_own || !origins.is_empty()).then_some(origins)
}

/// Returns the addresses that a server has with all listed values of its variables. A variable
/// without listed values that is the first label of a host becomes `*`; another one has its default
/// value.
fn with_variables(server: &Server<'_>) -> Vec<String> {
    let mut urls = vec![server.url.trim().to_owned()];
    for member in server.value.get("variables").map_or(&[][..], Json::members) {
        let mark = format!("{{{}}}", member.key);
        let listed = member.value.get("enum").map_or(&[][..], Json::items);
        let mut values: Vec<&str> = listed.iter().filter_map(Json::scalar).collect();
        let label = format!("://{mark}.");
        if values.is_empty() {
            let default = member.value.get("default").and_then(Json::scalar);
            match urls.iter().any(|url| url.contains(&label)) {
                true => values.push("*"),
                false => values.extend(default),
            }
        }
        let filled = urls.iter().flat_map(|url| {
            let values = values.iter();
            values.map(|value| url.replace(&mark, value))
        });
        urls = filled.take(ORIGINS_MAX).collect();
    }
    urls
}

/// Returns the origin of a URL as a source of a policy; `None` if it cannot be one.
fn origin(url: &str) -> Option<Box<str>> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "https" && scheme != "http" {
        return None;
    }
    let authority = rest
        .split(['/', '?', '#', '\\'])
        .next()?
        .to_ascii_lowercase();
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) => (host, Some(port)),
        None => (&*authority, None),
    };
    let is_label = |label: &str| {
        let letters = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
        !label.is_empty() && label.bytes().all(letters)
    };
    let below = host.strip_prefix("*.");
    // A whole top-level domain is too much.
    let is_pattern = below.is_some_and(|below| below.contains('.'));
    let is_host = (below.is_none() || is_pattern) && below.unwrap_or(host).split('.').all(is_label);
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    (is_host && is_port).then(|| format!("{scheme}://{authority}").into())
}

fn server(server: &Server<'_>) -> Form {
    let mut form = Map::new();
    form.insert("url".to_owned(), server.url.trim().into());
    set(&mut form, "about", server.description);
    let variables = server.value.get("variables").map_or(&[][..], Json::members);
    if !variables.is_empty() {
        let variables = variables.iter().take(INPUTS_MAX).map(|member| {
            let mut variable = Map::new();
            variable.insert("name".to_owned(), (*member.key).into());
            set(
                &mut variable,
                "value",
                member.value.get("default").and_then(Json::scalar),
            );
            let listed = member.value.get("enum").map_or(&[][..], Json::items);
            set_values(&mut variable, listed);
            Form::Object(variable)
        });
        form.insert("variables".to_owned(), variables.collect());
    }
    Form::Object(form)
}

/// Describes the alternatives to authenticate: sets of schemes.
fn auth(operation: &Operation<'_>) -> Vec<Form> {
    let alternatives = operation.security().into_iter().take(INPUTS_MAX);
    let alternatives = alternatives.map(|set| {
        let schemes = set.schemes.iter();
        let schemes = schemes.filter_map(|(name, scheme)| credential(name, scheme));
        Form::Array(schemes.collect())
    });
    let mut all: Vec<Form> = Vec::new();
    for alternative in alternatives {
        if !all.contains(&alternative) {
            all.push(alternative);
        }
    }
    all
}

/// Describes a credential; `None` if a page cannot send it.
fn credential(name: &str, scheme: &Json) -> Option<Form> {
    let text = |key| scheme.get(key).and_then(Json::text);
    let mut form = Map::new();
    form.insert("name".to_owned(), name.into());
    let is_basic = || text("scheme").is_some_and(|scheme| scheme.eq_ignore_ascii_case("basic"));
    match (text("type")?, text("in"), text("name")) {
        ("http", ..) if is_basic() => set(&mut form, "kind", Some("basic")),
        ("http" | "oauth2" | "openIdConnect", ..) => set(&mut form, "kind", Some("bearer")),
        ("apiKey", Some(place @ ("header" | "query")), Some(key)) => {
            set(&mut form, "kind", Some("key"));
            set(&mut form, "place", Some(place));
            set(&mut form, "key", Some(key));
        }
        _ => return None,
    }
    Some(Form::Object(form))
}

fn parameters(
    specification: &Specification,
    operation: &Operation<'_>,
    prefill: bool,
) -> Vec<Form> {
    let parameters = operation.parameters().into_iter();
    // Browsers do not let pages set cookies and some header fields.
    let sendable = parameters.filter(|parameter| {
        parameter.place != "cookie"
            && !(parameter.place == "header"
                && sample::NO_HEADERS
                    .iter()
                    .any(|name| parameter.name.eq_ignore_ascii_case(name)))
    });
    let parameters = sendable.take(INPUTS_MAX).map(|parameter| {
        let mut form = Map::new();
        set(&mut form, "name", Some(parameter.name));
        set(&mut form, "place", Some(parameter.place));
        if parameter.required {
            form.insert("required".to_owned(), true.into());
        }
        describe(specification, &mut form, parameter.schema, prefill);
        // §4.8.12.2: an example of the parameter overrides that of its schema.
        let example = sample::parameter_example(specification, parameter.value);
        let example = example.filter(|_| prefill);
        if let Some(example) = example.and_then(Json::scalar) {
            set(&mut form, "value", Some(example));
        }
        Form::Object(form)
    });
    parameters.collect()
}

/// Adds type, values and value of a schema.
fn describe(
    specification: &Specification,
    form: &mut Map<String, Form>,
    schema: Option<Schema<'_>>,
    prefill: bool,
) {
    let Some(Schema {
        value: schema,
        written,
        ..
    }) = schema
    else {
        return;
    };
    let kind = schema.get("type");
    let kind = kind.and_then(|kind| kind.text().or_else(|| kind.items().first()?.text()));
    set(form, "type", kind);
    match kind {
        Some("boolean") => {
            form.insert("values".to_owned(), json!(["true", "false"]));
        }
        _ => set_values(form, schema.get("enum").map_or(&[][..], Json::items)),
    }
    let stated = |key| specification.stated(written, key);
    let example = || {
        let first = || stated("examples")?.items().first();
        stated("example").or_else(first)
    };
    let value = stated("default");
    let value = value.or_else(|| example().filter(|_| prefill));
    set(form, "value", value.and_then(Json::scalar));
}

fn body(specification: &Specification, operation: &Operation<'_>) -> Vec<Form> {
    let Some(body) = operation.body() else {
        return Vec::new();
    };
    let contents = body.content.iter().take(INPUTS_MAX).map(|media| {
        let mut form = Map::new();
        set(&mut form, "type", Some(media.kind));
        let kind = media.kind.split(';').next().unwrap_or_default().trim();
        let schema = media.schema.map(|schema| schema.value);
        let is_form = matches!(
            kind,
            "multipart/form-data" | "application/x-www-form-urlencoded"
        );
        if is_form {
            let required = schema.and_then(|schema| schema.get("required"));
            let required = required.map_or(&[][..], Json::items);
            let members = schema.and_then(|schema| schema.get("properties"));
            let members = members.map_or(&[][..], Json::members).iter();
            let fields = members.take(INPUTS_MAX).map(|member| {
                let mut field = Map::new();
                set(&mut field, "name", Some(&member.key));
                if required.iter().any(|name| name.text() == Some(&member.key)) {
                    field.insert("required".to_owned(), true.into());
                }
                let schema = specification.schema(&member.value);
                if sample::is_file(specification, schema.map(|schema| schema.value)) {
                    field.insert("file".to_owned(), true.into());
                }
                describe(specification, &mut field, schema, true);
                Form::Object(field)
            });
            form.insert("fields".to_owned(), fields.collect());
        } else if sample::is_file(specification, schema) || kind == "application/octet-stream" {
            form.insert("file".to_owned(), true.into());
        } else {
            let examples = sample::Sketch::request(specification).shown(media);
            let example = examples.first().map(|example| &*example.text);
            set(&mut form, "example", example);
        }
        Form::Object(form)
    });
    contents.collect()
}

fn set(form: &mut Map<String, Form>, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        form.insert(key.to_owned(), value.into());
    }
}

fn set_values(form: &mut Map<String, Form>, listed: &[Json]) {
    let values: Vec<&str> = listed
        .iter()
        .filter_map(Json::scalar)
        .take(INPUTS_MAX)
        .collect();
    if !values.is_empty() {
        form.insert("values".to_owned(), json!(values));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::openapi::Lookup;
    use crate::syntax::Diagnostics;

    #[test]
    fn an_origin_cannot_add_to_a_policy() {
        for (url, expected) in [
            ("https://api.acme.test/v1", Some("https://api.acme.test")),
            ("HTTP://localhost:8080", Some("http://localhost:8080")),
            ("https://*.acme.test", Some("https://*.acme.test")),
            ("https://*.test", None),
            ("https://*/", None),
            ("https://a.test; script-src *", None),
            ("https://a.test 'unsafe-inline'", None),
            ("https://user@a.test", None),
            ("https://a.test:99999", None),
            ("wss://a.test", None),
            ("javascript:alert(1)", None),
            ("https://{tenant}.acme.test", None),
            ("https://", None),
        ] {
            assert_eq!(origin(url).as_deref(), expected, "{url}");
        }
    }

    fn specification(servers: &str) -> Specification {
        let text = format!(
            r##"{{"openapi": "3.1.0", "info": {{"title": "Pay", "version": "1"}}, {servers}
            "components": {{"securitySchemes": {{"key": {{"type": "apiKey", "in": "header", "name": "X-Key"}}, "jar": {{"type": "apiKey", "in": "cookie", "name": "c"}}, "basic": {{"type": "http", "scheme": "Basic"}}}}}},
            "security": [{{"key": []}}, {{"basic": []}}, {{"jar": []}}],
            "paths": {{"/pay/{{id}}": {{"post": {{"parameters": [
                {{"name": "id", "in": "path", "required": true, "schema": {{"type": "string", "example": "p1"}}}},
                {{"name": "dry", "in": "query", "schema": {{"type": "boolean", "default": false}}}},
                {{"name": "Accept", "in": "header", "schema": {{"type": "string"}}}},
                {{"name": "sort", "in": "query", "example": "b", "schema": {{"enum": ["a", "b"], "example": "a"}}}}],
              "requestBody": {{"content": {{"application/json": {{"example": {{"sum": 3}}}},
                "multipart/form-data": {{"schema": {{"required": ["file"], "properties": {{"file": {{"type": "string", "format": "binary"}}, "all": {{"type": "array", "items": {{"type": "string", "contentMediaType": "image/png"}}}}}}}}}}}}}}}}}}}}}}"##
        );
        let mut diagnostics = Diagnostics::default();
        let file = diagnostics.files.add("a.json", text.into());
        let root = crate::syntax::json::read(file, &mut diagnostics).unwrap();
        let endpoint = Endpoint {
            method: Method::Post,
            path: "/pay/{id}".into(),
            summary: None,
            title: None,
            description: None,
            href: None,
            tags: Vec::new(),
            deprecated: false,
            hidden: false,
            excluded: false,
            span: crate::syntax::Span::default(),
        };
        Specification {
            path: "a.json".into(),
            title: "Pay".into(),
            endpoints: vec![endpoint],
            root,
            from_page: false,
            lookup: Lookup::default(),
        }
    }

    #[test]
    fn the_form_has_what_a_page_can_send() {
        let specification = specification(r#""servers": [{"url": "https://api.acme.test"}],"#);
        let endpoint = &specification.endpoints[0];
        let made = form(&specification, endpoint, &Api::default()).unwrap();
        assert_eq!(made["method"], "POST");
        assert_eq!(made["auth"][0][0]["key"], "X-Key");
        assert_eq!(made["auth"][1][0]["kind"], "basic");
        assert_eq!(made["auth"][2], json!([]));
        assert_eq!(
            made["parameters"],
            json!([
                {"name": "id", "place": "path", "required": true, "type": "string"},
                {"name": "dry", "place": "query", "type": "boolean", "values": ["true", "false"], "value": "false"},
                {"name": "sort", "place": "query", "values": ["a", "b"]},
            ])
        );
        assert_eq!(made["body"][0]["example"], "{\n  \"sum\": 3\n}");
        assert_eq!(made["body"][1]["fields"][0]["file"], true);
        assert_eq!(made["body"][1]["fields"][1]["file"], true);
        let mut api = Api::default();
        api.examples.prefill = true;
        let made = form(&specification, endpoint, &api).unwrap();
        assert_eq!(made["parameters"][0]["value"], "p1");
        assert_eq!(made["parameters"][2]["value"], "b");
    }

    #[test]
    fn a_page_may_ask_the_servers_of_its_endpoint() {
        let of = |servers: &str| {
            let specification = specification(servers);
            let endpoint = &specification.endpoints[0];
            let found = origins(&specification, endpoint);
            let is_shown = form(&specification, endpoint, &Api::default()).is_some();
            (Vec::from_iter(found).join(" "), is_shown)
        };
        let shown = |origins: &str| (origins.to_owned(), true);
        assert_eq!(of(""), shown(""));
        assert_eq!(of(r#""servers": [{"url": "/v1"}],"#), shown(""));
        assert_eq!(
            of(r#""servers": [{"url": "https://b.test/v1"}, {"url": "https://a.test"}],"#),
            shown("https://a.test https://b.test")
        );
        let variables = r#""servers": [{"url": "https://{tenant}.{region}.acme.test:{port}/x", "variables":
            {"tenant": {"default": "demo"}, "region": {"default": "eu", "enum": ["eu", "us"]}, "port": {"default": 8443}}}],"#;
        assert_eq!(
            of(variables),
            shown("https://*.eu.acme.test:8443 https://*.us.acme.test:8443")
        );
        let none = (String::new(), false);
        assert_eq!(of(r#""servers": [{"url": "ftp://a.test"}],"#), none);
    }
}
