//! A link that the check accepts works in the HTML; a link that it warns about does not.

use std::path::Path;

use bytes::Bytes;
use waypost::source::{Tree, TreePath, directory};

#[path = "../links/compare.rs"]
mod compare;

use compare::{Compared, compare};

fn tree(files: &[(&str, &str)]) -> Tree {
    let files = files.iter().map(|(path, text)| {
        let path = TreePath::parse(path).unwrap();
        (path, Bytes::from((*text).to_owned()))
    });
    Tree::from_files(files, [])
}

#[track_caller]
fn assert_equal(compared: &Compared) {
    assert_eq!((&compared.dead, &compared.alive), (&vec![], &vec![]));
}

/// A page with every kind of heading.
const KINDS: &str = r#"---
title: Kinds
---
import Part from "/snippets/part.mdx"

# Kinds

## Plain words

## Plain words

Setext *heading*
----------------

<h2>Raw &amp; heading</h2>

### `code` & **strong** [link](/other#top-of-other)

### 1.1.1 begin_cell

### Fees &amp; billing

## Named {#my-Name}

<Part />

<Steps>
  <Step title="Step one">A</Step>
  <Step title="Step one" titleSize="h3">B</Step>
</Steps>

<Tabs>
  <Tab title="First tab">
    #### In a tab
  </Tab>
</Tabs>

<AccordionGroup>
  <Accordion title="What's this?">text</Accordion>
</AccordionGroup>

<Update label="v1.2.3">new</Update>

<ParamField body="user_id" type="string">
  <Expandable title="more">
    <ResponseField name="innerName" />
  </Expandable>
</ParamField>

<Visibility for="agents">
## For agents
</Visibility>

<a id="by-id" /> <a name="by-name"></a> <div id="Two words">x</div> <a id="both" href="/other">y</a>

{/* ## In a comment */}

<svg id="drawing"><path id="line" d="M0 0h1" /><image id="image" /></svg>

<svg id="empty"><defs><linearGradient id="gradient" /></defs></svg>

| a | b |
|---|---|
| <span id="in-a-cell">c</span> | d |

- item

  ## In a list

> ## In a quotation
"#;

#[test]
fn check_and_html_agree_on_every_kind_of_heading() {
    let wanted = "plain-words plain-words-2 plain-words-1 plain-words-3 setext-heading raw-&-heading \
        raw--heading raw-heading code-&-strong-link code--strong-link 1-1-1-begin-cell 111-begin_cell \
        fees-&-billing fees--billing my-Name my-name from-a-snippet from-a-snippet-2 step-one step-one-2 \
        step-one-3 first-tab in-a-tab whats-this v1-2-3 v123 param-user-id field-user_id \
        param-user_id param-inner-name param-innerName param-user_id-innerName for-agents by-id \
        by-name Two-words both in-a-comment in-a-cell in-a-list in-a-quotation kinds more drawing \
        line image empty gradient";
    let links: String = wanted
        .split_whitespace()
        .map(|anchor| format!("[x](/kinds#{anchor}) "))
        .collect();
    let endpoint = "path-parameters param-id body param-name body-name responses response-done 200 \
        param-none response-none authorization";
    let of_endpoint: String = endpoint
        .split_whitespace()
        .map(|anchor| format!("[y](/api/set#{anchor}) "))
        .collect();
    let api = r##"{"openapi": "3.1.0", "info": {"title": "Pay", "version": "1"},
        "paths": {"/nodes/{id}": {"put": {"summary": "Set",
          "parameters": [{"name": "id", "in": "path", "schema": {"type": "string"}}],
          "requestBody": {"content": {"application/json": {"schema": {"type": "object", "properties": {"name": {"type": "string"}}}}}},
          "responses": {"200": {"description": "Done.", "content": {"application/json": {"schema": {"type": "object", "properties": {"done": {"type": "boolean"}}}}}}}}}}}"##;
    let compared = compare(tree(&[
        (
            "docs.json",
            r#"{"name": "A", "navigation": {"pages": ["index", "kinds", "other", "api/set", "deep", "made"]}}"#,
        ),
        (
            "index.mdx",
            &format!("{links}\n\n{of_endpoint}\n\n[z](/deep#a) [v](/made#version-1)"),
        ),
        ("kinds.mdx", KINDS),
        (
            "other.mdx",
            "## Top of other\n\n[up](kinds#plain-words) [same](#top-of-other) [no](#Top-of-other)",
        ),
        (
            "api/set.mdx",
            "---\nopenapi: api.json PUT /nodes/{id}\n---\n",
        ),
        ("deep.mdx", &"<Note>".repeat(200)),
        ("made.mdx", "## Version {version()}\n"),
        (
            "snippets/part.mdx",
            "## From a snippet\n\n<h3>From a snippet</h3>\n\n[there](/kinds#none)\n",
        ),
        ("api.json", api),
    ]));
    assert_equal(&compared);
    let counts = (compared.private, compared.unknown);
    assert_eq!(counts, (0, 2), "{compared:?}");
    assert!(compared.found > 40 && compared.missing > 8, "{compared:?}");
}

#[test]
fn check_and_html_agree_on_the_bundled_documentation() {
    let root = Path::new("conf/demo/docs");
    let (root, docs) = directory::locate(root, None).unwrap();
    let (tree, _) = directory::open(&root, &docs, directory::Limits::default()).unwrap();
    let compared = compare(tree);
    assert_equal(&compared);
    assert_eq!(compared.missing, 0, "{compared:?}");
    assert!(compared.found > 0, "{compared:?}");
}
