//! Tests of a specification and the look-ups in it.

use super::*;
use crate::diagnostic::Diagnostic;
use crate::syntax::Diagnostics;

const PETS: &str = r##"
openapi: 3.1.0
info: { title: Pets, version: "1" }
servers: [{ url: https://api.example.com }]
security: [{ key: [] }, { user: [], app: [] }]
tags: [{ name: pets, x-group: Our pets }]
paths:
  /pets/{id}/:
    parameters:
      - { name: id, in: path, schema: { type: string } }
      - { name: verbose, in: query, schema: { type: string } }
    post:
      summary: Rename a pet
      tags: [pets]
      requestBody:
        required: true
        content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } }
      responses: { 200: { description: Renamed } }
    get:
      tags: [pets]
      parameters:
        - { name: verbose, in: query, deprecated: true, schema: { type: boolean } }
      responses:
        "200": { $ref: "#/components/responses/One" }
webhooks:
  petAdded: { post: { summary: A pet was added, responses: { 200: { description: ok } } } }
components:
  responses:
    One:
      description: One pet
      content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } }
  securitySchemes:
    key: { type: apiKey }
    user: { type: http }
    app: { type: oauth2 }
  schemas:
    Pet: { type: object, properties: { mother: { $ref: "#/components/schemas/Pet" } } }
    Loop: { $ref: "#/components/schemas/Loop" }
    a/b c: { type: string }
"##;

fn read_text(name: &str, text: &str) -> (Option<Specification>, Vec<Diagnostic>) {
    let mut diagnostics = Diagnostics::default();
    let file = diagnostics.files.add(name, text.into());
    let specification = read(file, &mut diagnostics);
    (specification, diagnostics.finish())
}

fn pets() -> Specification {
    read_text("pets.yaml", PETS).0.unwrap()
}

#[test]
fn endpoints_are_listed_by_path_then_method_then_webhooks() {
    let pets = pets();
    let listed: Vec<_> = pets
        .endpoints
        .iter()
        .map(|e| format!("{} {}", e.method, e.path))
        .collect();
    assert_eq!(
        listed,
        ["GET /pets/{id}/", "POST /pets/{id}/", "WEBHOOK petAdded"]
    );
    assert_eq!(pets.find(Method::Get, "/pets/{id}"), Some(0));
    assert_eq!(pets.find(Method::Put, "/pets/{id}"), None);
    assert_eq!(pets.group_labels()["pets"], "Our pets");
}

#[test]
fn parameters_of_an_operation_override_those_of_its_path() {
    let pets = pets();
    let operation = pets.operation(&pets.endpoints[0]).unwrap();
    let parameters = operation.parameters();
    let names: Vec<_> = parameters
        .iter()
        .map(|p| (p.name, p.place, p.required))
        .collect();
    assert_eq!(names, [("verbose", "query", false), ("id", "path", true)]);
    assert!(parameters[0].deprecated);
    let schema = parameters[0].schema.unwrap();
    assert_eq!(schema.value.get("type").unwrap().text(), Some("boolean"));
}

#[test]
fn an_operation_has_bodies_responses_servers_and_security() {
    let pets = pets();
    let post = pets.operation(&pets.endpoints[1]).unwrap();
    let body = post.body().unwrap();
    assert!(body.required);
    assert_eq!(body.content[0].schema.unwrap().name, Some("Pet"));
    assert_eq!(post.servers()[0].url, "https://api.example.com");
    let security: Vec<_> = post.security().iter().map(|s| s.schemes.len()).collect();
    assert_eq!(security, [1, 2]);
    let get = pets.operation(&pets.endpoints[0]).unwrap();
    assert_eq!(get.responses()[0].description, Some("One pet"));
    let hook = pets.operation(&pets.endpoints[2]).unwrap();
    assert_eq!(hook.responses()[0].status, "200");
}

#[test]
fn broken_and_cyclic_references_are_reported() {
    let (pets, found) = read_text("pets.yaml", PETS);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].message.contains("#/components/schemas/Loop"));
    let pets = pets.unwrap();
    let pointed = pets.pointer("/components/schemas/a~1b%20c").unwrap();
    assert_eq!(pointed.get("type").unwrap().text(), Some("string"));
}

#[test]
fn other_files_are_not_specifications() {
    for (text, message) in [
        (r#"{"swagger": "2.0"}"#, "this is Swagger 2.0"),
        (r#"{"openapi": "4.0.0"}"#, "the version is not 3.0 or 3.1"),
        (r#"{"tabs": []}"#, "this is not an OpenAPI specification"),
        ("[]", "this is not an OpenAPI specification"),
    ] {
        let (specification, found) = read_text("api.json", text);
        assert!(specification.is_none());
        assert_eq!(found[0].message, message);
    }
}

#[test]
fn values_of_large_maps_are_found_by_name() {
    let many: String = (0..100)
        .map(|n| format!(r#""S{n}": {{"type": "object", "title": "{n}"}}, "#))
        .collect();
    let text = format!(
        r##"{{"openapi": "3.1.0", "info": {{"title": "x"}}, "paths": {{}}, "components": {{"schemas": {{{many}
        "Last": {{"$ref": "#/components/schemas/S99"}}, "Lost": {{"$ref": "#/components/schemas/S100"}}}}}}}}"##
    );
    let (specification, diagnostics) = read_text("large.json", &text);
    let specification = specification.unwrap();
    let title = |name| {
        let schema = specification.resolve(specification.named_schema(name)?)?;
        schema.get("title")?.text()
    };
    assert_eq!(
        ["S0", "S99", "Last"].map(title),
        [Some("0"), Some("99"), Some("99")]
    );
    assert_eq!(["Lost", "S100", ""].map(title), [None; 3]);
    assert_eq!(diagnostics.len(), 1);
}
