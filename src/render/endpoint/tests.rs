//! What a specification says becomes what a reader sees.

use super::*;
use crate::docs;
use crate::render::link::Map;
use crate::render::markdown;
use crate::render::words::Words;
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
    let written = markdown::write("x.mdx", &nodes, &Map::default(), Words::of("en"));
    for piece in [
        "```http\nPUT /nodes/{id}\n```",
        "Sets **it**.",
        "- `Authorization` (HTTP bearer, header, required): `key`",
        "- `id` (string, path, required)",
        "- `mode` (string, query), default `a`: One of `a`, `b`",
        "- `id` (string, required): The *id*.",
        "[Node](#schema-node), as above.",
        "curl -X PUT \"https://api.pay.test/v1/nodes/{id}\" \\\n  -H \"Authorization: Bearer $TOKEN\"",
        "-d '{\n  \"id\": \"it'\\''s\",\n  \"n\": [\n    1,\n    null\n  ]\n}'",
        "### 200\n\nDone.",
    ] {
        assert!(written.contains(piece), "{piece}\nis not in\n{written}");
    }
}
