//! Tests of the anchors of words, places and repeated headings.

use super::*;
use crate::mdx::{Node, Page, Source, read};

fn page(text: &str) -> Page {
    read(&Source::new("a.mdx", text), &|_| None).unwrap()
}

/// Returns the anchors of a page in their order, each with its aliases.
fn all(text: &str) -> Vec<String> {
    fn walk(nodes: &[Node], out: &mut Vec<String>) {
        for node in nodes {
            let anchor = match node {
                Node::Heading { anchor, .. } => anchor.as_deref(),
                Node::Element(element) => element.anchor.as_deref(),
                _ => None,
            };
            out.extend(anchor.map(|anchor| {
                let names = std::iter::once(&anchor.id).chain(&anchor.aliases);
                names.map(|name| &**name).collect::<Vec<_>>().join(" ")
            }));
            node.each_children(&mut |children| walk(children, out));
        }
    }
    let mut out = Vec::new();
    walk(&page(text).nodes, &mut out);
    out
}

#[test]
fn anchors_equal_those_of_the_hosted_service() {
    for (words, anchor) in [
        ("config.json options", "config-json-options"),
        ("Fees & billing", "fees-&-billing"),
        ("x/bank", "x/bank"),
        ("1.1.1", "1-1-1"),
        ("begin_cell", "begin-cell"),
        ("What's new?", "whats-new"),
        ("dogs'", "dogs"),
        ("l'été", "l-été"),
        ("C++ & Rust", "c++-&-rust"),
        ("foo--bar", "foo-bar"),
        ("__init__", "init"),
        ("Über uns", "über-uns"),
        ("日本語 見出し", "日本語-見出し"),
        ("Привет мир", "привет-мир"),
        ("🚀 Launch", "-launch"),
        ("100%", "100%"),
        ("a + b", "a-+-b"),
        ("a@b.com", "a@b-com"),
        ("[link] (paren)", "link-paren"),
        ("Step 1: do", "step-1-do"),
        ("GET /users/{id}", "get-/users/id"),
        ("a…b", "a…b"),
        ("U.S.A.", "u-s-a"),
        ("5 * 3", "5-3"),
        ("can't & won't", "cant-&-wont"),
        ("ab's-x", "abs-x"),
        ("x → y", "x-→-y"),
        ("3. Do it", "3-do-it"),
        ("", ""),
    ] {
        assert_eq!(slug(words), anchor, "{words}");
    }
}

#[test]
fn repeated_anchors_are_numbered_from_two() {
    assert_eq!(
        all("# One\n\n## One\n\n<h3>One</h3>\n\nOne\n---\n\n<Tab title=\"One\"/>"),
        ["one", "one-2", "one-3", "one-4", "one-5"]
    );
    assert_eq!(all("## A\n\n## A 2\n\n## A"), ["a", "a-2", "a-3"]);
}

#[test]
fn the_anchor_of_github_is_an_alias() {
    assert_eq!(
        all("## begin_cell\n\n## a.b\n\n## ab"),
        ["begin-cell begin_cell", "a-b", "ab ab-2"]
    );
}

#[test]
fn an_alias_that_is_an_anchor_leads_to_the_place_of_the_anchor() {
    // On GitHub the first one is `ab`.
    assert_eq!(all("## a.b\n\n## ab")[..1], ["a-b"]);
}

#[test]
fn components_have_anchors_of_their_titles() {
    let text = "<Steps>\n<Step title=\"First `step`\">x</Step>\n<Step>y</Step>\n</Steps>\n\n\
        <Accordion title=\"Fees & more\">z</Accordion>\n\n<Update label=\"v1.2\">u</Update>\n\n\
        <Tabs>\n<Tab>\n### In a tab\n</Tab>\n</Tabs>\n";
    assert_eq!(
        all(text),
        [
            "first-step",
            "fees-&-more fees--more fees-and-more",
            "v1-2 v12",
            "tab",
            "in-a-tab"
        ]
    );
}

#[test]
fn fields_have_anchors_of_their_name_and_path() {
    let text = "<ParamField body=\"userId\" />\n\n<ResponseField name=\"shared_link\">\n\
        <ResponseField name=\"can_view\" part=\"body\" />\n</ResponseField>\n";
    assert_eq!(
        all(text),
        [
            "param-user-id field-userid param-userId param-userid",
            "param-shared-link field-shared_link param-shared_link",
            "param-can-view field-can_view param-can_view param-shared_link-can_view \
             param-shared-link-can-view body-shared_link-can_view body-shared-link-can-view",
        ]
    );
}

#[test]
fn authors_can_set_anchors() {
    assert_eq!(
        all("## One {#Mine}\n\n<a name=\"old\"></a>\n\n<div id=\"two words\">x</div>\n\n## Old"),
        ["Mine", "old", "two-words", "old-2"]
    );
}

#[test]
fn the_anchor_of_an_unevaluated_heading_is_unknown() {
    let unknown = |text: &str| page(text).outline.anchors.has_unknown();
    assert!(unknown("## Version {version()}"));
    assert!(unknown("<Step title={name()}>x</Step>"));
    assert!(!unknown("## Version {version()} {#version}"));
    assert!(!unknown(
        "export const version = \"1\"\n\n## Version {version}"
    ));
}

#[test]
fn hidden_content_has_no_anchor() {
    assert_eq!(
        all("<Visibility for=\"agents\">\n## Hidden\n</Visibility>\n\n{/* ## No */}\n\n`## Code`"),
        Vec::<String>::new()
    );
}

#[test]
fn only_ids_that_html_writes_are_anchors_of_a_drawing() {
    let ids = |text: &str| {
        let page = page(text);
        let mut ids: Vec<String> = page.outline.anchors.iter().map(str::to_owned).collect();
        ids.sort();
        ids
    };
    let drawing = |text: &str| ids(&format!("a <svg id=\"b\">{text}</svg> c"));
    assert_eq!(drawing("<path ID=\"p\" d=\"M0 0\"/>"), ["b", "p"]);
    assert_eq!(
        drawing("<><g id=\"g\"><rect id=\"r\"/></g></>"),
        ["b", "g", "r"]
    );
    // A drawing that shows nothing is left out.
    assert!(drawing("<defs><linearGradient id=\"l\"/></defs>").is_empty());
    // Other elements, elements in a title and references to other pages are left out.
    let parts = "<path d=\"M0 0\"/><image id=\"i\"/><title><text id=\"t\">T</text></title>";
    assert_eq!(drawing(&format!("{parts}<g id=\"//x\"/>")), ["b"]);
    assert!(ids("a <path id=\"p\" d=\"M0 0\"/> b").is_empty());
}

#[test]
fn a_tooltip_without_a_text_has_no_anchor() {
    let text =
        "<Tooltip>a</Tooltip> <Tooltip tip=\"\">b</Tooltip> <Tooltip tip=\"what\">c</Tooltip>";
    assert_eq!(all(text), ["tip"]);
}

#[test]
fn a_tooltip_that_is_not_shown_has_no_anchor() {
    for (start, end) in [
        ("<defs>", "</defs>"),
        ("<Prompt>", "</Prompt>"),
        ("<Visibility for=\"agents\">", "</Visibility>"),
    ] {
        let text = format!("{start}<Tooltip tip=\"what\">a</Tooltip>{end}");
        assert!(all(&text).is_empty(), "{text}");
    }
}

#[test]
fn a_footnote_has_its_id_alone() {
    let text = "# Fn 1\n\n<span id=\"fn-1\">a</span>\n\nb[^1]\n\n[^1]: One.\n\n[^1]: Two.\n";
    let page = page(text);
    let mut ids = all(text);
    for node in &page.nodes {
        if let Node::Footnote { label, .. } = node {
            ids.push(of_footnote(label));
        }
    }
    ids.sort();
    let mut different = ids.clone();
    different.dedup();
    assert_eq!(ids, different);
    assert!(ids.contains(&"fn-1".to_owned()), "{ids:?}");
}

#[test]
fn a_footnote_in_a_drawing_or_a_prompt_is_no_anchor() {
    for (start, end) in [("<svg>", "</svg>"), ("<Prompt>", "</Prompt>")] {
        let text = format!("a[^1]\n\n{start}\n\n[^1]: Hidden.\n\n{end}\n");
        let anchors = page(&text).outline.anchors;
        assert!(!anchors.iter().any(|anchor| anchor == "fn-1"), "{text}");
        let text = format!("{text}\n[^2]: Shown.\n");
        let anchors = page(&text).outline.anchors;
        assert!(anchors.iter().any(|anchor| anchor == "fn-2"), "{text}");
    }
}

#[test]
fn a_field_with_a_long_path_has_no_aliases_of_its_path() {
    let fields: String = (0..100).fold(String::new(), |fields, n| {
        format!("{fields}<Param body=\"a{n}\" part=\"body\" />\n")
    });
    let long = "n".repeat(5000);
    let text = format!("<ParamField body=\"{long}\">\n{fields}</ParamField>\n");
    let anchors = all(&text);
    assert!(anchors[0].contains(&format!("param-{long}")));
    assert_eq!(anchors[100], "param-a99 field-a99");
}

#[test]
fn an_element_of_html_has_its_id_and_no_other_name() {
    let text = "<Expandable title=\"properti/es\">x</Expandable>\n\n<div id=\"properties\">y</div>\n\n\
         <div id=\" \">z</div>";
    assert_eq!(all(text), ["properti/es properti-es", "properties"]);
}
