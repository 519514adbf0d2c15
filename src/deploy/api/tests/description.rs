//! Every response of the API conforms to its description.

use super::*;
use crate::deploy::queue::Outcome;
use crate::digest::Digest;
use crate::release::ReleaseId;

/// Checks a value against the part of JSON Schema that the description uses.
pub(super) fn conforms(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        let pointer = name.trim_start_matches('#');
        return conforms(document, document.pointer(pointer).ok_or(name)?, value);
    }
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let allows = |allowed: &Value| match allowed {
        Value::Array(kinds) => kinds.iter().any(|allowed| allowed == kind),
        allowed => allowed == kind,
    };
    if !schema["type"].is_null() && !allows(&schema["type"]) {
        return Err(format!("{value} is not {}", schema["type"]));
    }
    if schema["enum"]
        .as_array()
        .is_some_and(|known| !known.contains(value))
    {
        return Err(format!("{value} is not one of {}", schema["enum"]));
    }
    for item in value.as_array().into_iter().flatten() {
        conforms(document, &schema["items"], item)?;
    }
    if let Value::Object(members) = value {
        for name in schema["required"].as_array().into_iter().flatten() {
            let name = name.as_str().unwrap();
            members
                .get(name)
                .ok_or_else(|| format!("{name} is missing"))?;
        }
        for (name, member) in members {
            match schema["properties"].get(name) {
                Some(schema) => conforms(document, schema, member)?,
                None if schema["properties"].is_null() => {}
                None => return Err(format!("{name} is not described")),
            }
        }
    }
    Ok(())
}

/// Checks a response against the description of this operation.
#[track_caller]
pub(super) fn described(document: &Value, path: &str, method: &str, response: &Response) {
    let responses = &document["paths"][path][method]["responses"];
    let mut described = &responses[response.status.to_string()];
    if let Some(name) = described["$ref"].as_str() {
        described = document.pointer(name.trim_start_matches('#')).unwrap();
    }
    let Some(media_type) = response.media_type else {
        assert!(described.is_object() && described["content"].is_null());
        return;
    };
    let schema = &described["content"][media_type]["schema"];
    assert!(
        schema.is_object(),
        "{method} {path}: {} {media_type} is not described",
        response.status
    );
    conforms(document, schema, &json(response)).unwrap();
    for name in described["headers"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name)
    {
        match name.as_str() {
            "Location" => assert!(response.location.is_some()),
            "Allow" => assert!(response.allow.is_some()),
            "ETag" => assert!(response.etag.is_some()),
            name => assert!(!field(response, &name.to_ascii_lowercase()).is_empty()),
        }
    }
}

#[tokio::test]
async fn every_response_conforms_to_the_description_and_every_described_status_occurs() {
    let update = "/v1/project/update/{projectId}";
    let status = "/v1/project/update-status/{statusId}";
    let policy = Policy {
        waiting_max: 1,
        ..Policy::default()
    };
    let node = Node::with(Config::default(), policy);
    let served = node.api.handle(&request("GET", "/openapi.json")).await;
    let document = json(&served);
    assert_eq!(
        document["servers"][0]["url"],
        "https://api.waypost.localhost"
    );
    described(&document, "/openapi.json", "get", &served);

    let mut given = BTreeSet::new();
    let mut check = |path: &str, method: &str, response: &Response| {
        described(&document, path, method, response);
        given.insert((
            path.to_owned(),
            method.to_owned(),
            response.status.to_string(),
        ));
    };
    let wrong = node.api.handle(&request("POST", "/openapi.json")).await;
    check("/openapi.json", "get", &served);
    check("/openapi.json", "get", &wrong);

    let send = async |path: &str, key, once: &[&str]| node.send("POST", path, key, once).await;
    let queued = send("/v1/project/update/docs", &node.acme, &["k"]).await;
    check(update, "post", &queued);
    check(
        update,
        "post",
        &send("/v1/project/update/docs", &node.acme, &[""]).await,
    );
    check(
        update,
        "post",
        &node
            .api
            .handle(&request("POST", "/v1/project/update/docs"))
            .await,
    );
    check(
        update,
        "post",
        &send("/v1/project/update/blog", &node.scoped, &[]).await,
    );
    check(
        update,
        "post",
        &send("/v1/project/update/nothing", &node.acme, &[]).await,
    );
    check(
        update,
        "post",
        &node
            .send("PUT", "/v1/project/update/docs", &node.acme, &[])
            .await,
    );
    check(
        update,
        "post",
        &send("/v1/project/update/blog", &node.acme, &["k"]).await,
    );
    check(
        update,
        "post",
        &send("/v1/project/update/blog", &node.acme, &[]).await,
    );

    let id = json(&queued)["statusId"].as_str().unwrap().to_owned();
    let path = format!("/v1/project/update-status/{id}");
    let get = async |key| node.send("GET", &path, key, &[]).await;
    check(status, "get", &get(&node.acme).await);
    let now = Timestamp::of(node.api.clock.now());
    let claim = node
        .queue
        .claim(&WorkerId::new("w"), Owners::All, now)
        .unwrap()
        .unwrap();
    let outcome = Outcome::Success {
        release: ReleaseId::parse(&Digest::of(b"r").to_string()).unwrap(),
        visible_at: Some(now),
    };
    let _ = node
        .queue
        .finish(&claim, &outcome, "published", now)
        .unwrap();
    check(status, "get", &get(&node.acme).await);
    check(status, "get", &get(&node.globex).await);
    check(
        status,
        "get",
        &node.api.handle(&request("GET", &path)).await,
    );
    check(
        status,
        "get",
        &node.send("PUT", &path, &node.acme, &[]).await,
    );
    let large = |method, path, authorization: &'static [u8]| Request {
        authorization: vec![authorization],
        is_too_large: true,
        ..request(method, path)
    };
    let bearer: &'static [u8] = format!("Bearer {}", node.acme.reveal()).leak().as_bytes();
    check(
        update,
        "post",
        &node
            .api
            .handle(&large("POST", "/v1/project/update/docs", bearer))
            .await,
    );
    check(
        status,
        "get",
        &node.api.handle(&large("GET", path.as_str(), bearer)).await,
    );
    let blog = node
        .send("POST", "/v1/project/update/blog", &node.acme, &[])
        .await;
    let blog = json(&blog)["statusId"].as_str().unwrap().to_owned();
    let blog = format!("/v1/project/update-status/{blog}");
    check(
        status,
        "get",
        &node.send("GET", &blog, &node.scoped, &[]).await,
    );
    while {
        let response = send("/v1/project/update/docs", &node.acme, &[]).await;
        check(update, "post", &response);
        response.status != 429
    } {}
    let broken = Node::new();
    broken.break_queue();
    let response = broken.send("GET", &path, &broken.acme, &[]).await;
    assert_eq!(response.status, 503);
    check(status, "get", &response);

    let mut named = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        // The test of sites checks their paths.
        if path.starts_with("/v1/sites") || path == "/v1/audit" {
            continue;
        }
        for method in ["get", "post"] {
            for status in item[method]["responses"].as_object().into_iter().flatten() {
                named.insert((path.clone(), method.to_owned(), status.0.clone()));
            }
        }
    }
    assert_eq!(given, named);
}

/// In OpenAPI 3.1.1 §4.8.23, a reference has no other members than a summary and a description.
/// Schemas follow JSON Schema, where it may have any.
#[tokio::test]
async fn a_reference_of_the_description_stands_alone_and_leads_somewhere() {
    fn walk(document: &Value, value: &Value, is_schema: bool, wrong: &mut Vec<String>) {
        match value {
            Value::Array(items) => {
                for item in items {
                    walk(document, item, is_schema, wrong);
                }
            }
            Value::Object(members) => {
                if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                    let others = members.keys().filter(|name| {
                        !["$ref", "summary", "description"].contains(&name.as_str())
                    });
                    let is_alone = is_schema || others.count() == 0;
                    let leads = document.pointer(target.trim_start_matches('#')).is_some();
                    if !is_alone || !leads {
                        wrong.push(value.to_string());
                    }
                }
                for (name, member) in members {
                    let is_schema = is_schema || name == "schema" || name == "schemas";
                    walk(document, member, is_schema, wrong);
                }
            }
            _ => {}
        }
    }
    let node = Node::new();
    let document = json(&node.api.handle(&request("GET", "/openapi.json")).await);
    let mut wrong = Vec::new();
    walk(&document, &document, false, &mut wrong);
    assert!(wrong.is_empty(), "{wrong:#?}");
}
