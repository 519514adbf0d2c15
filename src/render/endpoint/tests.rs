//! Tests of the content that readers see of a specification.

use super::*;
use crate::docs;
use crate::mdx::anchor::Anchors;
use crate::render::link::{Map, Start};
use crate::render::{html, markdown, messages::Messages};
use crate::source::{Tree, TreePath};

/// A specification with one endpoint.
const PAY: &str = r##"{"openapi": "3.1.0", "info": {"title": "Pay", "version": "1"},
      "servers": [{"url": "https://api.pay.test/v1/"}],
      "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        "schemas": {"Node": {"type": "object", "required": ["id"], "properties": {
          "id": {"type": "string", "description": "The *id*."}, "next": {"$ref": "#/components/schemas/Node"}}}}},
      "security": [{"key": []}],
      "paths": {"/nodes/{id}": {"put": {"summary": "Set", "description": "Sets **it**.",
        "parameters": [{"name": "id", "in": "path", "schema": {"type": "string", "maxLength": 9, "pattern": "^[a-z]{1,9}_*$"}}, {"name": "mode", "in": "query", "schema": {"type": "string", "enum": ["a", "b"], "default": "a"}}],
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}, "example": {"id": "it's", "n": [1, null]}}}},
        "responses": {"200": {"description": "Done."}}}}}}"##;

fn shown() -> Shown<'static> {
    Shown {
        samples: &Language::ALL,
        ..Shown::default()
    }
}

/// Writes the page of the first endpoint of a specification for people and for agents.
fn written(specification: &str, language: &str) -> (String, String) {
    let path = |path: &str| TreePath::parse(path).unwrap();
    let config = r#"{"name": "Pay", "navigation": {"openapi": "api.json", "pages": []}}"#;
    let tree = Tree::from_files(
        [
            (path("docs.json"), config.into()),
            (path("api.json"), specification.to_owned().into()),
        ],
        [],
    );
    let (docs, _) = docs::read(&tree, &docs::Options::default());
    let specification = &docs.specifications[0];
    let subject = Subject::Endpoint(specification, &specification.endpoints[0]);
    let mut nodes = nodes(subject, language, shown());
    Anchors::default().assign(&mut nodes);
    let (map, messages) = (Map::default(), Messages::of(language));
    let html = html::write("x.mdx", Start::Page("x"), &nodes, &map, messages, true).html;
    let markdown = markdown::write("x.mdx", &nodes, &map, messages);
    (html.into_string(), markdown)
}

#[test]
fn elements_in_a_description_are_shown_and_braces_are_text() {
    let api = PAY.replace(
        "Sets **it**.",
        "Sets {it}.\\n\\n  <Note>\\n    Mind <code>{id}</code>.<br>Twice.\\n  </Note>\\n\\nA <token>.",
    );
    let (html, markdown) = written(&api, "en");
    assert!(html.contains("<p>Sets {it}.</p>"), "{html}");
    assert!(html.contains("Mind <code>{id}</code>.<br>Twice."), "{html}");
    assert!(html.contains("<p>A &lt;token"), "{html}");
    assert!(
        markdown.contains("> **Note:** Mind `{id}`.  \n> Twice."),
        "{markdown}"
    );
}

#[test]
fn an_endpoint_shows_its_specification() {
    let (_, written) = written(PAY, "en");
    for piece in [
        "```http\nPUT /nodes/{id}\n```",
        "Sets **it**.",
        "- `Authorization` HTTP bearer header required: `key`",
        "- `id` string path required: length at most 9, matches `^[a-z]{1,9}_*$`",
        "- `mode` string query default: `a`: One of `a`, `b`",
        "- `id` string required: The *id*.",
        "[Node](#schema-node), as above.",
        "curl -X PUT \"https://api.pay.test/v1/nodes/{id}\" \\\n  -H \"Authorization: Bearer $TOKEN\"",
        "-d '{\n  \"id\": \"it'\\''s\",\n  \"n\": [\n    1,\n    null\n  ]\n}'",
        "### 200\n\nDone.",
        "```python Python\nimport os\n\nimport requests\n\nresponse = requests.put(\n    \"https://api.pay.test/v1/nodes/{id}\",\n    headers={\"Authorization\": \"Bearer \" + os.environ[\"TOKEN\"]},\n    json={\n",
        "    json={\n        \"id\": \"it's\",\n        \"n\": [\n            1,\n            None\n        ]\n    },\n",
        "```javascript JavaScript\nconst response = await fetch(\"https://api.pay.test/v1/nodes/{id}\", {\n  method: \"PUT\",\n",
        "Authorization: `Bearer ${process.env.TOKEN}`",
        "request, err := http.NewRequest(\"PUT\", \"https://api.pay.test/v1/nodes/{id}\", strings.NewReader(`{\n",
    ] {
        assert!(written.contains(piece), "{piece}\nis not in\n{written}");
    }
}

#[test]
fn an_endpoint_has_the_language_of_its_page_and_fixed_anchors() {
    let specification = r##"{"openapi": "3.1.0", "info": {"title": "Pay", "version": "1"},
      "servers": [{"url": "https://{r}.pay.test", "variables": {"r": {"default": "eu", "enum": ["eu", "us"]}}}],
      "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}, "tls": {"type": "mutualTLS"}},
        "schemas": {"Node": {"type": "object", "properties": {
          "next": {"$ref": "#/components/schemas/Node"}, "name": {"type": ["string", "null"], "minLength": 2, "maxLength": 9, "readOnly": true},
          "size": {"oneOf": [{"type": "integer"}, {"anyOf": [{"const": "all"}, {"title": "Some", "type": "array"}]}]}, "more": {"additionalProperties": {"type": "string"}}}}}},
      "security": [{"key": [], "tls": []}, {}],
      "paths": {"/nodes/{id}": {"put": {"deprecated": true,
        "parameters": [{"name": "id", "in": "path"}, {"name": "q", "in": "query"}, {"name": "h", "in": "header"}, {"name": "c", "in": "cookie"}],
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}, "example": {"id": 1}}}},
        "responses": {"200": {"description": "Done.", "headers": {"X-Left": {"schema": {"type": "integer"}}}}}}}}}"##;
    let (english, english_markdown) = written(specification, "en");
    let (french, markdown) = written(specification, "fr-CA");
    for piece in [
        "Ce point d’accès est obsolète et peut disparaître.",
        "**Serveurs**",
        "- `r` variable par défaut: `eu`: L’une des valeurs `eu`, `us`",
        "## Autorisation\n\nUn seul de ces moyens suffit :\n\n**key et tls**",
        "- `X-Key` clé d’API header obligatoire",
        "certificat client",
        "**Rien**",
        "## Paramètres de chemin",
        "## Paramètres de requête",
        "## En-têtes",
        "## Cookies",
        "## Corps",
        "[Node](#schema-node), comme ci-dessus.",
        "string ou null",
        "longueur d’au moins 2, longueur d’au plus 9",
        "L’un de ces schémas :",
        "**Option 2**",
        "Un ou plusieurs de ces schémas :",
        "Toujours `all`",
        "`{toute clé}`",
        "**Champs**",
        "## Réponses",
        "**En-têtes**",
    ] {
        assert!(markdown.contains(piece), "{piece}\nis not in\n{markdown}");
    }
    for piece in ["lecture seule", "```json Exemple"] {
        let both_texts = format!("{french}{markdown}");
        assert!(
            both_texts.contains(piece),
            "{piece}\nis not in\n{both_texts}"
        );
    }
    // Titles that are the same in both languages come from the specification.
    let titles = |markdown: &str| -> Vec<String> {
        let lines = markdown.lines().map(str::trim);
        let titles = lines.filter(|line| line.starts_with('#') || line.starts_with("**"));
        titles.map(str::to_owned).collect()
    };
    let (english_titles, titles) = (titles(&english_markdown), titles(&markdown));
    let both = titles.iter().filter(|title| english_titles.contains(title));
    assert_eq!(
        both.collect::<Vec<_>>(),
        [
            "## Cookies",
            "**Option 1**",
            "**Option 2**",
            "**Option 1**",
            "**Some**",
            "### 200"
        ]
    );
    let anchors = |html: &str| -> Vec<String> {
        let after = html.split(" id=\"").skip(1);
        after
            .map(|rest| rest.split('"').next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(anchors(&french), anchors(&english));
    assert!(anchors(&french).contains(&"path-parameters".to_owned()));
}

#[test]
fn a_schema_shows_its_description_fields_and_example() {
    let config = r#"{"name": "Pay", "navigation": {"pages": ["node"]}}"#;
    let specification = PAY.replace(
        r#""Node": {"type": "object","#,
        r#""Node": {"type": "object", "description": "One *node*.", "example": {"id": "n1"},"#,
    );
    let page = "---\nopenapi-schema: api.json Node\n---\nBy its author.\n";
    let files = [
        ("docs.json", config),
        ("api.json", &specification),
        ("node.mdx", page),
    ];
    let files = files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_owned().into()));
    let tree = Tree::from_files(files, []);
    let (docs, found) = docs::read(&tree, &docs::Options::default());
    assert_eq!(found, []);
    let page = &docs.navigation.pages[0];
    assert_eq!((&*page.title, page.specification()), ("Node", Some(0)));
    let nodes = nodes(
        Subject::Schema(&docs.specifications[0], "Node"),
        "en",
        Shown::default(),
    );
    let written = markdown::write("x.mdx", &nodes, &Map::default(), Messages::of("en"));
    for piece in [
        "One *node*.",
        "- `id` string required: The *id*.",
        "[Node](#schema-node), as above.",
        "```json Example\n{\n  \"id\": \"n1\"\n}\n```",
    ] {
        assert!(written.contains(piece), "{piece}\nis not in\n{written}");
    }
}

#[test]
fn a_body_without_an_example_is_made_from_its_schema() {
    let specification = |body: &str| {
        format!(
            r##"{{"openapi": "3.1.0", "info": {{"title": "P", "version": "1"}}, "servers": [{{"url": "https://p.test"}}],
            "paths": {{"/a": {{"put": {{"requestBody": {{"content": {{{body}}}}}, "responses": {{"204": {{"description": "Done."}},
              "200": {{"description": "", "content": {{"text/markdown": {{}}}}}}, "4XX": {{"description": "No."}}}}}}}}}}}}"##
        )
    };
    let schema = r#"{"schema": {"type": "object", "properties": {"id": {"type": "string", "readOnly": true}, "n": {"type": "integer"}, "to": {"const": "a b"}}}}"#;
    let (_, json) = written(
        &specification(&format!("\"application/json\": {schema}")),
        "en",
    );
    for piece in [
        "-d '{\n  \"n\": 1,\n  \"to\": \"a b\"\n}'",
        "json={\n",
        "body: JSON.stringify({\n    \"n\": 1,",
        "strings.NewReader(`{\n  \"n\": 1,",
        "```text 204\nHTTP/1.1 204 No Content\n```",
        "```text 200\nHTTP/1.1 200 OK\nContent-Type: text/markdown\n```",
    ] {
        assert!(json.contains(piece), "{piece}\nis not in\n{json}");
    }
    assert!(!json.contains("```text 4XX"), "{json}");
    let kind = "\"application/x-www-form-urlencoded\"";
    let (_, form) = written(&specification(&format!("{kind}: {schema}")), "en");
    assert!(form.contains("-d 'n=1&to=a%20b'"), "{form}");
}

#[test]
fn errors_with_the_same_body_are_one_table() {
    let error = r##"{"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}"##;
    let specification = format!(
        r##"{{"openapi": "3.1.0", "info": {{"title": "P", "version": "1"}}, "servers": [{{"url": "https://p.test"}}],
        "components": {{"schemas": {{"Error": {{"type": "object", "properties": {{"detail": {{"type": "string"}}}}}}}}}},
        "paths": {{"/a": {{"get": {{"responses": {{"200": {{"description": "Done."}}, "400": {{"description": "It is *wrong*.", "content": {error}}},
          "429": {{"description": "Too many.", "headers": {{"Retry-After": {{"schema": {{"type": "integer"}}}}}}, "content": {error}}},
          "503": {{"description": "Away."}}}}}}}}}}}}"##
    );
    let (html, markdown) = written(&specification, "en");
    for piece in [
        "### 200\n\nDone.",
        "### Errors\n\n| Status | When |",
        "| `400` | It is *wrong*. |",
        "| `429` | Too many. |",
        "`Retry-After` integer header: `429`",
        "### 503\n\nAway.",
    ] {
        assert!(markdown.contains(piece), "{piece}\nis not in\n{markdown}");
    }
    assert_eq!(
        markdown.matches("- `detail` string").count(),
        1,
        "{markdown}"
    );
    assert!(
        html.contains("id=\"errors\"") || html.contains("id=errors"),
        "{html}"
    );
}

#[test]
fn settings_change_the_page_of_an_endpoint() {
    let specification = r##"{"openapi": "3.1.0", "info": {"title": "P", "version": "1"}, "servers": [{"url": "https://{at}.acme.test/v1/", "variables": {"at": {"default": "eu"}}}],
        "paths": {"/a": {"get": {"responses": {"200": {"description": "", "content": {"application/json": {"schema": {"type": "object", "properties": {"in": {"type": "object", "properties": {"deep": {"type": "string"}}}}}}}}}}}}}"##;
    let config = r#"{"name": "A", "navigation": {"openapi": "a.json", "pages": ["GET /a"]}}"#;
    let path = |path: &str| TreePath::parse(path).unwrap();
    let files = [
        (path("docs.json"), config.into()),
        (path("a.json"), specification.into()),
    ];
    let (docs, _) = crate::docs::read(
        &Tree::from_files(files, []),
        &crate::docs::Options::default(),
    );
    let specification = &docs.specifications[0];
    let subject = Subject::Endpoint(specification, &specification.endpoints[0]);
    let written = |shown| format!("{:?}", nodes(subject, "en", shown));
    let usual = written(Shown::default());
    assert!(
        usual.contains("\"GET /a\"") && !usual.contains("defaultOpen"),
        "{usual}"
    );
    let full = written(Shown {
        full_address: true,
        expanded: true,
        ..Shown::default()
    });
    assert!(full.contains("\"GET https://eu.acme.test/v1/a\""), "{full}");
    assert!(full.contains("defaultOpen"), "{full}");
}

#[test]
fn fields_have_the_labels_that_the_site_selects() {
    let specification = r##"{"openapi": "3.1.0", "info": {"title": "P", "version": "1"},
        "paths": {"/a": {"get": {"parameters": [{"name": "limit", "in": "query", "x-since": "2.1", "schema": {"type": "integer", "x-beta": true}}],
          "responses": {"200": {"description": "", "content": {"application/json": {"schema": {"type": "object", "properties": {
            "id": {"type": "string", "readOnly": true, "nullable": true, "x-beta": false, "x-since": 3, "x-plans": ["free", "team", {"no": 1}]},
            "plain": {"type": "string", "x-since": {"no": "label"}}}}}}}}}}}}"##;
    let labels = r#""api": {"params": {"post": ["x-since", "x-beta", "x-plans"]}},"#;
    let written = |settings: &str| {
        let config = format!(
            r#"{{"name": "A", {settings} "navigation": {{"openapi": "a.json", "pages": ["GET /a"]}}}}"#
        );
        let path = |path: &str| TreePath::parse(path).unwrap();
        let files = [
            (path("docs.json"), config.into()),
            (path("a.json"), specification.into()),
        ];
        let (docs, _) = crate::docs::read(
            &Tree::from_files(files, []),
            &crate::docs::Options::default(),
        );
        let (_, page) = docs.navigation.pages().next().unwrap();
        crate::render::article::render(
            &crate::render::article::Source::of(&docs, page),
            &crate::render::link::Map::default(),
        )
        .markdown
    };
    let shown = written(labels);
    for line in [
        "- `limit` 2.1 x-beta integer query\n",
        "- `id` read-only nullable 3 free team string\n",
        "- `plain` string\n",
    ] {
        assert!(shown.contains(line), "{line} is not in\n{shown}");
    }
    assert!(written("").contains("- `limit` integer query\n"));
}

/// Makes a specification with one endpoint, `POST /a`, of what the operation and the components
/// hold.
fn with(operation: &str, components: &str) -> String {
    format!(
        r##"{{"openapi": "3.1.0", "info": {{"title": "P", "version": "1"}}, "servers": [{{"url": "https://p.test"}}],
        "components": {{{components}}}, "paths": {{"/a": {{"post": {{{operation}}}}}}}}}"##
    )
}

fn assert_has(written: &str, pieces: &[&str]) {
    for piece in pieces {
        assert!(written.contains(piece), "{piece}\nis not in\n{written}");
    }
}

#[test]
fn words_beside_a_reference_override_those_of_its_target() {
    let components = r##""schemas": {"Status": {"type": "string", "description": "Any status.", "default": "closed", "enum": ["open", "closed"]}, "Alias": {"$ref": "#/components/schemas/Status", "description": "Another name.", "writeOnly": true}},
      "parameters": {"Page": {"name": "page", "in": "query", "description": "Any page.", "schema": {"type": "integer"}}},
      "headers": {"Left": {"description": "Any number.", "schema": {"type": "integer"}}},
      "requestBodies": {"Order": {"description": "Any order.", "content": {"application/json": {"schema": {"type": "object", "properties": {
        "status": {"$ref": "#/components/schemas/Status", "description": "Status of the order.", "deprecated": true, "default": "open"},
        "alias": {"$ref": "#/components/schemas/Alias"}, "other": {"$ref": "#/components/schemas/Status"}}}}}}},
      "responses": {"Done": {"description": "Any answer.", "headers": {"X-Left": {"$ref": "#/components/headers/Left", "description": "Orders left."}}}}"##;
    let operation = r##""parameters": [{"$ref": "#/components/parameters/Page", "description": "The page of orders."},
        {"name": "state", "in": "query", "schema": {"$ref": "#/components/schemas/Status", "default": "open", "deprecated": true}}],
      "requestBody": {"$ref": "#/components/requestBodies/Order", "description": "The order."},
      "responses": {"200": {"$ref": "#/components/responses/Done", "description": "The order is placed."}}"##;
    let (_, written) = written(&with(operation, components), "en");
    assert_has(
        &written,
        &[
            "- `page` integer query: The page of orders.\n",
            "- `state` string query deprecated default: `open`: Any status.\n",
            "- `status` string deprecated default: `open`: Status of the order.\n",
            "- `alias` write-only string default: `closed`: Another name.\n",
            "- `other` string default: `closed`: Any status.\n",
            "## Body\n\nThe order.\n",
            "### 200\n\nThe order is placed.\n",
            "`X-Left` integer header: Orders left.\n",
            // The body that is made has these values too.
            "  \"status\": \"open\",\n  \"alias\": \"closed\",\n",
        ],
    );
}

#[test]
fn a_list_of_values_that_is_cut_says_how_many_are_left() {
    let values: Vec<_> = (0..80).map(|n| format!("\"v{n}\"")).collect();
    let (all, some) = (values.join(", "), values[..50].join(", "));
    let operation = format!(
        r#""parameters": [{{"name": "all", "in": "query", "schema": {{"type": "string", "enum": [{all}]}}}},
        {{"name": "some", "in": "query", "schema": {{"type": "string", "enum": [{some}]}}}},
        {{"name": "mixed", "in": "query", "schema": {{"enum": ["a", null, [1, 2], {{"b": "c, d"}}]}}}},
        {{"name": "no", "in": "query", "schema": {{"const": null}}}}]"#
    );
    let (_, written) = written(&with(&operation, ""), "en");
    assert_has(
        &written,
        &[
            "`v48`, `v49` and 30 more\n",
            "`v48`, `v49`\n",
            "One of `a`, `null`, `[1, 2]`, `{\"b\": \"c, d\"}`\n",
            "- `no` query: Always `null`\n",
        ],
    );
}

#[test]
fn a_default_that_is_a_list_or_an_object_is_shown_as_json() {
    let operation = r#""parameters": [{"name": "l", "in": "query", "schema": {"type": "array", "default": ["a", "b,\n c"]}},
        {"name": "o", "in": "query", "schema": {"type": "object", "default": {"a": {"b": [1, true]}}}}, {"name": "e", "in": "query", "schema": {"default": []}}]"#;
    let (_, written) = written(&with(operation, ""), "en");
    assert_has(
        &written,
        &[
            r#"- `l` array query default: `["a", "b,\n c"]`"#,
            r#"- `o` object query default: `{"a": {"b": [1, true]}}`"#,
            "- `e` query default: `[]`",
        ],
    );
}

#[test]
fn six_levels_of_fields_are_shown_and_a_note_says_where_they_end() {
    let answer = |schema: &str| {
        format!(
            r#""responses": {{"200": {{"description": "", "content": {{"application/json": {{"schema": {schema}}}}}}}}}"#
        )
    };
    let end = "More fields are not shown.";
    let named: Vec<_> = (1..10)
        .map(|n| format!(r##""L{n}": {{"type": "object", "properties": {{"n{n}": {{"$ref": "#/components/schemas/L{}"}}}}}}"##, n + 1))
        .collect();
    for last in [r#"{"type": "string"}"#, r#"{"$ref": "none"}"#] {
        let schemas = format!(r#""schemas": {{{}, "L10": {last}}}"#, named.join(", "));
        let first = answer(r##"{"$ref": "#/components/schemas/L1"}"##);
        let (_, written) = written(&with(&first, &schemas), "en");
        assert_has(&written, &["- `n6` object"]);
        assert!(!written.contains("`n7`"), "{written}");
        assert_eq!(written.matches(end).count(), 1, "{written}");
    }
    // The sixth level ends by itself.
    let ends = [5, 6].map(|n| {
        format!(
            r#""schemas": {{{}, "L{}": {{"type": "array", "items": {{"type": "string"}}}}}}"#,
            named[..n].join(", "),
            n + 1
        )
    });
    for schemas in ends {
        let first = answer(r##"{"$ref": "#/components/schemas/L1"}"##);
        let (_, written) = written(&with(&first, &schemas), "en");
        assert!(!written.contains(end), "{written}");
    }
    // Lists in lists and parts of parts are not levels of fields, but end too.
    let named: Vec<_> = (0..200)
        .map(|n| format!(r##""L{n}": {{"type": "array", "items": {{"allOf": [{{"$ref": "#/components/schemas/L{}"}}]}}}}"##, n + 1))
        .collect();
    let schemas = format!(
        r#""schemas": {{{}, "L200": {{"properties": {{"last": {{}}}}}}}}"#,
        named.join(", ")
    );
    let first = answer(r##"{"$ref": "#/components/schemas/L0"}"##);
    let (_, written) = written(&with(&first, &schemas), "en");
    assert_eq!(written.matches(end).count(), 1, "{written}");
}

#[test]
fn a_page_with_too_many_fields_says_that_there_are_more() {
    let answer = |count: usize| {
        let fields: Vec<_> = (0..count).map(|n| format!(r#""f{n}": {{}}"#)).collect();
        let schema = format!(
            r#"{{"type": "object", "properties": {{{}}}}}"#,
            fields.join(", ")
        );
        let operation = format!(
            r#""responses": {{"200": {{"description": "", "content": {{"application/json": {{"schema": {{"allOf": [{schema}, {{"description": "Part."}}]}}}}}}}}}}"#
        );
        written(&with(&operation, ""), "en").1
    };
    let (all, cut) = (answer(398), answer(399));
    let end = "More fields are not shown.";
    assert!(all.contains("`f397`") && !all.contains(end), "{all}");
    assert_eq!(cut.matches(end).count(), 1, "{cut}");
    let cut = answer(900);
    assert!(cut.contains("`f398`") && !cut.contains("`f399`"), "{cut}");
    assert_eq!(cut.matches(end).count(), 1, "{cut}");
}

#[test]
fn an_example_that_is_a_text_with_json_is_that_json() {
    let operation = |kind: &str, schema: &str, example: &str| {
        format!(
            r#""requestBody": {{"content": {{"{kind}": {{"schema": {schema}, "example": {example}}}}}}}, "responses": {{"200": {{"description": "", "content": {{"{kind}": {{"schema": {schema}, "example": {example}}}}}}}}}"#
        )
    };
    let text = r#""{\"a\": [1]}""#;
    for schema in [r#"{"type": "object"}"#, r#"{"allOf": []}"#] {
        let (_, written) = written(
            &with(&operation("application/json", schema, text), ""),
            "en",
        );
        assert_has(
            &written,
            &[
                "-d '{\n  \"a\": [\n    1\n  ]\n}'\n",
                "body: JSON.stringify({\n",
                "```json Example\n{\n  \"a\"",
                "```json 200\n{\n  \"a\"",
            ],
        );
    }
    for (schema, example, shown) in [
        (r#"{"type": "string"}"#, text, r#"-d '"{\"a\": [1]}"'"#),
        (r#"{"type": "object"}"#, r#""{no}""#, r#"-d '"{no}"'"#),
        (r#"{"type": "object"}"#, r#""12""#, r#"-d '"12"'"#),
    ] {
        let (_, written) = written(
            &with(&operation("application/json", schema, example), ""),
            "en",
        );
        assert_has(&written, &[shown]);
    }
}

#[test]
fn an_example_that_is_not_json_is_shown_as_it_is() {
    let content = r#"{"application/xml": {"example": "<a b=\"c\"/>"}}"#;
    let operation = format!(
        r#""requestBody": {{"content": {content}}}, "responses": {{"200": {{"description": "", "content": {content}}}}}"#
    );
    let (_, written) = written(&with(&operation, ""), "en");
    assert_has(
        &written,
        &[
            "-d '<a b=\"c\"/>'",
            "```xml Example\n<a b=\"c\"/>\n```",
            "```xml 200\n<a b=\"c\"/>\n```",
        ],
    );
}

#[test]
fn examples_may_be_references() {
    let operation = r##""requestBody": {"content": {"application/json": {"examples": {"one": {"$ref": "#/components/examples/One", "summary": "The one"}}}}}"##;
    let components = r#""examples": {"One": {"summary": "One", "value": {"a": 1}}}"#;
    let (_, written) = written(&with(operation, components), "en");
    assert_has(&written, &["-d '{\n  \"a\": 1\n}'", "```json The one\n{\n"]);
}

#[test]
fn samples_send_required_values_of_the_query_and_header() {
    let operation = r##""parameters": [
        {"name": "q", "in": "query", "required": true, "example": "a b&c", "schema": {"type": "string"}},
        {"name": "kind", "in": "query", "required": true, "schema": {"$ref": "#/components/schemas/Kind"}},
        {"name": "ids", "in": "query", "required": true, "examples": {"two": {"$ref": "#/components/examples/Two"}}},
        {"name": "in", "in": "query", "required": true, "explode": false, "schema": {"type": "array", "example": ["x", "y"]}},
        {"name": "filter", "in": "query", "required": true, "style": "deepObject", "schema": {"type": "object", "example": {"a": 1}}},
        {"name": "where", "in": "query", "required": true, "content": {"application/json": {"schema": {"type": "object", "example": {"a": 1}}}}},
        {"name": "any", "in": "query", "required": true}, {"name": "left", "in": "query", "schema": {"type": "string"}},
        {"name": "Idempotency-Key", "in": "header", "required": true, "schema": {"type": "string", "example": "k$1"}},
        {"name": "Accept", "in": "header", "required": true, "schema": {"type": "string"}}]"##;
    let components = r#""schemas": {"Kind": {"type": "string", "enum": ["new", "old"]}}, "examples": {"Two": {"value": [1, 2]}}"#;
    let (_, written) = written(&with(operation, components), "en");
    let url = "https://p.test/a?q=a%20b%26c&kind=new&ids=1&ids=2&in=x,y&filter%5Ba%5D=1&where=%7B%22a%22%3A%201%7D&any={any}";
    assert_has(
        &written,
        &[
            &format!("curl -X POST \"{url}\" \\\n  -H 'Idempotency-Key: k$1'\n```"),
            &format!("    \"{url}\",\n    headers={{\"Idempotency-Key\": \"k$1\"}},\n"),
            &format!(
                "fetch(\"{url}\", {{\n  method: \"POST\",\n  headers: {{\n    \"Idempotency-Key\": \"k$1\",\n  }},\n"
            ),
            &format!("http.NewRequest(\"POST\", \"{url}\", nil)"),
            "\trequest.Header.Set(\"Idempotency-Key\", \"k$1\")\n",
        ],
    );
}

#[test]
fn samples_send_every_key_that_a_request_needs() {
    let components = r#""securitySchemes": {"api-key": {"type": "apiKey", "in": "query", "name": "key"},
      "app.id": {"type": "apiKey", "in": "header", "name": "X-App"}, "2nd": {"type": "apiKey", "in": "cookie", "name": "session"}}"#;
    let operation = r#""security": [{"api-key": [], "app.id": [], "2nd": []}], "parameters": [{"name": "n", "in": "query", "required": true, "example": 1}]"#;
    let (_, written) = written(&with(operation, components), "en");
    assert_has(
        &written,
        &[
            "curl -X POST \"https://p.test/a?n=1&key=$API_KEY\" \\\n  -H \"X-App: $APP_ID\" \\\n  -H \"Cookie: session=$_2ND\"\n",
            "    \"https://p.test/a?n=1\",\n    headers={\"X-App\": os.environ[\"APP_ID\"], \"Cookie\": \"session=\" + os.environ[\"_2ND\"]},\n    params={\"key\": os.environ[\"API_KEY\"]},\n",
            "fetch(\"https://p.test/a?n=1&key=\" + encodeURIComponent(process.env[\"API_KEY\"]), {\n",
            "    \"X-App\": process.env[\"APP_ID\"],\n    \"Cookie\": \"session=\" + process.env[\"_2ND\"],\n",
            "\t\"net/http\"\n\t\"net/url\"\n\t\"os\"\n",
            "\"https://p.test/a?n=1&key=\"+url.QueryEscape(os.Getenv(\"API_KEY\")), nil)",
            "\trequest.Header.Set(\"Cookie\", \"session=\"+os.Getenv(\"_2ND\"))\n",
        ],
    );
}

#[test]
fn a_shell_expands_nothing_of_an_address_but_its_variables() {
    let components =
        r#""securitySchemes": {"key": {"type": "apiKey", "in": "query", "name": "key"}}"#;
    let of = |path: &str, security: &str| {
        let specification = with(security, components);
        written(&specification.replace("/a\"", &format!("{path}\"")), "en").1
    };
    let plain = of("/users/$count", "");
    assert_has(&plain, &["curl -X POST 'https://p.test/users/$count'\n"]);
    assert_has(
        &plain,
        &["requests.post(\n    \"https://p.test/users/$count\",\n"],
    );
    let keyed = of("/users/$count!it's`", r#""security": [{"key": []}]"#);
    assert_has(
        &keyed,
        &["curl -X POST 'https://p.test/users/$count!it'\\''s`?key='\"$KEY\"\n"],
    );
}

#[test]
fn samples_send_the_parts_of_a_form() {
    let parts = |extra: &str| {
        format!(
            r##""requestBody": {{"content": {{"multipart/form-data": {{"schema": {{"type": "object", "properties": {{
          "title": {{"type": "string", "example": "It's; @me"}}, "tags": {{"type": "array", "items": {{"type": "string", "enum": ["a"]}}}},
          "photo": {{"type": "string", "format": "binary"}}, "more": {{"type": "array", "items": {{"$ref": "#/components/schemas/File"}}}},
          "about": {{"type": "object", "properties": {{"n": {{"type": "integer"}}}}}}}}}}{extra}}}}}}}"##
        )
    };
    let components = r#""schemas": {"File": {"type": "string", "format": "binary"}}"#;
    let (_, made) = written(&with(&parts(""), components), "en");
    assert_has(
        &made,
        &[
            "curl -X POST \"https://p.test/a\" \\\n  --form-string 'title=It'\\''s; @me' \\\n  --form-string 'tags=a' \\\n  -F 'photo=@path/to/file' \\\n  -F 'more=@path/to/file' \\\n  --form-string 'about={\"n\": 1}'\n```",
            "    files=[\n        (\"title\", (None, \"It's; @me\")),\n        (\"tags\", (None, \"a\")),\n        (\"photo\", open(\"path/to/file\", \"rb\")),\n",
            "import { readFile } from \"node:fs/promises\";\n\nconst body = new FormData();\nbody.append(\"title\", \"It's; @me\");\n",
            "body.append(\"photo\", new Blob([await readFile(\"path/to/file\")]), \"file\");\n",
            "  method: \"POST\",\n  body,\n});",
            "\tform := multipart.NewWriter(&body)\n\tform.WriteField(\"title\", \"It's; @me\")\n\tform.WriteField(\"tags\", \"a\")\n\taddFile(form, \"photo\", \"path/to/file\")\n",
            "\"https://p.test/a\", &body)",
            "request.Header.Set(\"Content-Type\", form.FormDataContentType())",
        ],
    );
    assert!(!made.contains("\"multipart/form-data\""), "{made}");
    // An example of the author has the parts that it names.
    let example = r#", "example": {"photo": "cat.png", "title": "T"}"#;
    let (_, own) = written(&with(&parts(example), components), "en");
    assert_has(
        &own,
        &["\"https://p.test/a\" \\\n  -F 'photo=@path/to/file' \\\n  --form-string 'title=T'\n```"],
    );
}

#[test]
fn samples_send_a_file_as_the_body() {
    let operation = r#""requestBody": {"content": {"image/png": {"schema": {"type": "string", "format": "binary"}}}}"#;
    let (_, written) = written(&with(operation, ""), "en");
    assert_has(
        &written,
        &[
            "  -H \"Content-Type: image/png\" \\\n  --data-binary '@path/to/file'\n",
            "    data=open(\"path/to/file\", \"rb\"),\n",
            "  body: await readFile(\"path/to/file\"),\n",
            "\tbody, err := os.Open(\"path/to/file\")\n",
        ],
    );
}

#[test]
fn samples_name_the_type_of_json_that_has_another_name() {
    let operation =
        r#""requestBody": {"content": {"application/merge-patch+json": {"example": {"a": 1}}}}"#;
    let (_, written) = written(&with(operation, ""), "en");
    assert_has(
        &written,
        &["    headers={\"Content-Type\": \"application/merge-patch+json\"},\n    json={\n"],
    );
}

#[test]
fn a_sample_that_asks_for_the_head_does_not_wait_for_a_body() {
    let specification = with("", "").replace("\"post\"", "\"head\"");
    assert_has(
        &written(&specification, "en").1,
        &["curl --head \"https://p.test/a\"\n"],
    );
}

/// Reads a specification and makes the pages of each hundredth endpoint; returns the docs, and whether each
/// page is cut, with its bytes.
fn all_made(specification: String) -> (docs::Docs, Vec<(bool, usize)>) {
    let path = |path: &str| TreePath::parse(path).unwrap();
    let config = r#"{"name": "Pay", "navigation": {"openapi": "api.json"}}"#;
    let tree = Tree::from_files(
        [
            (path("docs.json"), config.into()),
            (path("api.json"), specification.into()),
        ],
        [],
    );
    let (docs, _) = docs::read(&tree, &docs::Options::default());
    let specification = &docs.specifications[0];
    let all = specification.endpoints.iter();
    let all = all.step_by(100).map(|one| {
        let made = made(Subject::Endpoint(specification, one), "en", shown());
        (made.is_cut, format!("{:?}", made.nodes).len())
    });
    let all = all.collect();
    (docs, all)
}

#[test]
fn a_part_that_many_endpoints_share_does_not_multiply_a_specification() {
    let properties: Vec<String> = (0..3000)
        .map(|n| {
            format!(
                r#""p{n}": {{"type": "string", "description": "{}"}}"#,
                "d".repeat(200)
            )
        })
        .collect();
    let long = "x".repeat(200_000);
    let components = format!(
        r##""schemas": {{"Wide": {{"type": "object", "properties": {{{}}}}}, "Long": {{"type": "string", "description": "{long}"}}}},
        "examples": {{"Long": {{"value": {{"a": "{long}"}}}}}},
        "pathItems": {{"Many": {{"get": {{"parameters": [{}], "responses": {{"200": {{"description": ""}}}}}}}}}}"##,
        properties.join(","),
        (0..900).map(|n| format!(r##"{{"name": "q{n}", "in": "query", "schema": {{"$ref": "#/components/schemas/Long"}}}}"##)).collect::<Vec<_>>().join(",")
    );
    let operation = |n: usize, content: &str| {
        format!(
            r##""/a{n}": {{"post": {{"summary": "A{n}", "requestBody": {{"content": {{"application/json": {{{content}}}}}}}, "responses": {{"200": {{"description": ""}}}}}}}}"##
        )
    };
    let whole = |paths: Vec<String>| {
        format!(
            r##"{{"openapi": "3.1.0", "info": {{"title": "P", "version": "1"}}, "components": {{{components}}}, "paths": {{{}}}}}"##,
            paths.join(",")
        )
    };
    let wide = r##""schema": {"$ref": "#/components/schemas/Wide"}"##;
    let long = r##""examples": {"a": {"$ref": "#/components/examples/Long"}}"##;
    let shared = |n| format!(r##""/a{n}": {{"$ref": "#/components/pathItems/Many"}}"##);
    for paths in [
        (0..1000).map(|n| operation(n, wide)).collect::<Vec<_>>(),
        (0..1000).map(|n| operation(n, long)).collect(),
        (0..1000).map(shared).collect(),
    ] {
        let first = paths[0].clone();
        let is_many = first.contains("pathItems");
        let (docs, all) = all_made(whole(paths));
        assert_eq!(all.len(), 10, "{first}");
        let room = SPECIFICATION_BYTES_MAX / 1000;
        for (is_cut, bytes) in all {
            assert!(is_cut && bytes < 8 * room, "{first}: {bytes}");
        }
        let page = &docs.navigation.pages[0];
        let source = crate::render::article::Source::of(&docs, page);
        let found = crate::render::article::check(&source, &Map::default());
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(
            found[0].rule == "page-limit" && found[0].message.contains("`api.json`"),
            "{found:?}"
        );
        let article = crate::render::article::render(&source, &Map::default());
        assert_eq!(article.diagnostics.len(), 1);
        // The same part is whole where it is on one page.
        let (_, one) = all_made(whole(vec![first]));
        assert_eq!(one[0].0, is_many, "{one:?}");
    }
}

#[test]
fn an_example_of_a_schema_that_grows_with_each_level_is_bounded() {
    let schemas: Vec<String> = (0..6)
        .map(|level| {
            let field = |n| {
                format!(
                    r##""f{n}": {{"$ref": "#/components/schemas/S{}"}}"##,
                    level + 1
                )
            };
            let fields: Vec<String> = (0..24).map(field).collect();
            format!(
                r#""S{level}": {{"type": "object", "properties": {{{}}}}}"#,
                fields.join(",")
            )
        })
        .collect();
    let (_, all) = all_made(with(
        r##""requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}, "responses": {"200": {"description": ""}}"##,
        &format!(
            r#""schemas": {{{}, "S6": {{"type": "string"}}}}"#,
            schemas.join(",")
        ),
    ));
    let bytes = all[0].1;
    assert!(bytes < 8 * PAGE_BYTES_MAX, "{bytes}");
}
