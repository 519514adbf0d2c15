//! Tests of the content of pages, and of the time that hostile pages take.

use std::time::Instant;

use super::*;

fn files(path: &str) -> Option<Arc<str>> {
    let text = match path {
        "snippets/plan.mdx" => "---\ntitle: x\n---\nThe {plan} plan, **{props.price}**.",
        "snippets/values.mdx" => {
            "export const version = \"1.2\";\nexport const Box = ({ title, size = \"m\" }) => (\n  <Card title={title}>{size}</Card>\n);\n"
        }
        "snippets/loop.mdx" => "import L from \"/snippets/loop.mdx\"\n\n<L /> <L />",
        _ => return None,
    };
    Some(text.into())
}

fn nodes(text: &str) -> Vec<Node> {
    let read = read(&Source::new("guides/a.mdx", text), &files).unwrap();
    assert_eq!(read.diagnostics, [], "{text}");
    read.nodes
}

#[track_caller]
fn warned(text: &str, message: &str) -> Vec<Node> {
    let read = read(&Source::new("guides/a.mdx", text), &files).unwrap();
    let told: Vec<_> = read.diagnostics.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|told| told.contains(message)), "{told:?}");
    read.nodes
}

fn only(mut nodes: Vec<Node>) -> Node {
    assert_eq!(nodes.len(), 1, "{nodes:#?}");
    nodes.remove(0)
}

fn element(node: &Node) -> &Element {
    match node {
        Node::Element(element) => element,
        other => panic!("not an element: {other:?}"),
    }
}

#[test]
fn a_brace_in_a_regular_expression_ends_nothing() {
    for (text, shown) in [
        ("{/[}]/.test(\"}\") ? \"re\" : \"no\"} end", "re end"),
        ("{/{/.test(\"a\") ? \"re\" : \"no\"} end", "no end"),
        (
            "{[\"a}b\"].map(t => t.replace(/\\}/g, \"-\"))} end",
            "a-b end",
        ),
        ("{6 / 2 / 3} end", "1 end"),
        ("{[1].map(n => <b>a/{n}/b</b>)} end", "a/1/b end"),
    ] {
        assert_eq!(plain(&nodes(text)).trim(), shown, "{text}");
    }
}

#[test]
fn indentation_inside_of_tags_is_not_code() {
    let tabs = only(nodes(
        "<Tabs>\n    <Tab title=\"One\">\n        Some *text*.\n\n        ```js\n        let a = {};\n          b\n        ```\n    </Tab>\n</Tabs>\n",
    ));
    let tab = only(element(&tabs).children.clone());
    assert_eq!(element(&tab).text("title"), Some("One"));
    let [Node::Paragraph(text), Node::Fence { info, code }] = &element(&tab).children[..] else {
        panic!("{tab:#?}");
    };
    assert_eq!(plain(text), "Some text.");
    assert_eq!((&**info, &**code), ("js", "let a = {};\n  b\n"));
}

#[test]
fn a_fence_that_is_not_indented_keeps_the_rest_readable() {
    let note = only(nodes("<Note>\n    Text\n\n```\nraw <b> {\n```\n</Note>"));
    let [Node::Paragraph(_), Node::Fence { code, .. }] = &element(&note).children[..] else {
        panic!("{note:#?}");
    };
    assert_eq!(code, "raw <b> {\n");
}

#[test]
fn blocks_stand_in_lists_and_quotations() {
    let list = only(nodes(
        "1. One\n\n   <Note>\n   Inside\n   </Note>\n\n2. Two\n",
    ));
    let Node::List {
        start: Some(1),
        items,
    } = list
    else {
        panic!("{list:?}");
    };
    assert_eq!(items.len(), 2);
    assert_eq!(&*element(&items[0].children[1]).name, "Note");

    let Node::Quote(inside) = only(nodes("> <Tip>\n> Inside\n> </Tip>\n")) else {
        panic!("no quotation");
    };
    assert_eq!(&*element(&inside[0]).name, "Tip");
}

#[test]
fn elements_in_a_line_hold_markdown() {
    let Node::Paragraph(line) = only(nodes(
        "See <Tooltip tip=\"An {x}\">the **key**</Tooltip> here<br/>now.",
    )) else {
        panic!("no paragraph");
    };
    let tooltip = element(&line[1]);
    assert_eq!(tooltip.text("tip"), Some("An {x}"));
    assert!(matches!(&tooltip.children[1], Node::Strong(_)));
    assert_eq!(plain(&line), "See the key herenow.");
}

#[test]
fn expressions_that_need_no_running_have_values() {
    let page = "import { version, Box } from '/snippets/values.mdx'\nimport Plan from \"../snippets/plan\"\n\nexport const items = [\"a\", 2, { b: `c ${version}` }];\n\n# V {version}\n\n<Box title=\"T\" />\n\n<Plan plan=\"Pro\" price={`$${version}`} />\n\n{/* gone */}\n";
    let nodes = nodes(page);
    let [Node::Heading { children, .. }, card, Node::Paragraph(plan)] = &nodes[..] else {
        panic!("{nodes:#?}");
    };
    assert_eq!(plain(children), "V 1.2");
    assert_eq!(element(card).text("title"), Some("T"));
    assert_eq!(plain(&element(card).children), "m");
    assert_eq!(plain(plan), "The Pro plan, $1.2.");
}

#[test]
fn a_snippet_chooses_by_its_props() {
    let page = "export const Box = ({ title, wide = false, kind = \"a\" }) => {\n  return (\n    <div>\n      {title && <b>{title}</b>}{wide ? \"wide\" : \"slim\"} {kind === \"a\" ? \"A\" : \"B\"}{!wide && \"!\"} {\"x\" + kind}\n    </div>\n  );\n};\nexport function Name({ children }) {\n  return <i>{children}</i>\n}\n\n<Box title=\"T\" wide />\n\n<Box kind={[\"b\", \"c\"][1]} />\n\n<Name>Me</Name>\n";
    let text = plain(&nodes(page));
    let words: Vec<_> = text.split_whitespace().collect();
    assert_eq!(words, ["Twide", "A", "xa", "slim", "B!", "xc", "Me"]);
}

#[test]
fn what_cannot_be_evaluated_is_told_and_leaves_a_note() {
    let shown = warned(
        "Total {items.map(i => i.x)}.",
        "`items.map(i => i.x)` cannot be evaluated: items is not defined",
    );
    let Node::Paragraph(line) = only(shown) else {
        panic!("no paragraph");
    };
    assert!(matches!(&line[1], Node::Expression(_)), "{line:?}");
    warned(
        "import A from '../../../etc/passwd'\n\ntext",
        "is not a file",
    );
    warned("import A from 'lucide-react'\n\n<A/>", "is not a file");
    let kept = warned(
        "export const A = () => window.x;\n\n<A title=\"t\">\n\nkept **text**\n\n</A>",
        "the component `A` cannot be evaluated: window is not defined",
    );
    assert_eq!(plain(&kept).trim(), "t kept text");
    let text = warned("Open {yourDomain} now.", "`{yourDomain}` is shown as text");
    assert_eq!(plain(&text).trim(), "Open {yourDomain} now.");
    // Names that are not used are not evaluated.
    assert_eq!(
        plain(&nodes("export const now = Date.now();\n\ntext")).trim(),
        "text"
    );
}

#[test]
fn a_component_sees_what_it_holds_and_markdown_stays_markdown() {
    let page = "import { Children, cloneElement } from 'react';\n\
        export const Row = ({ children, n = 0 }) => <li><b>{n}</b>{children}</li>;\n\
        export const Rows = ({ children }) => <ol>{Children.map(children, (child, at) => \
        cloneElement(child, { n: at + 1 }))}</ol>;\n\
        export const items = ['x', 'y'];\n\n\
        <Rows>\n  <Row>one *two*</Row>\n  <Row>\n\n  ## Three {items.length}\n\n  - a {items[0]}\n  - \
        [b](/c)\n\n  | h | i |\n  |---|---|\n  | {items.map(i => i)} | `k` |\n\n  </Row>\n</Rows>\n";
    let list = only(nodes(page));
    let list = element(&list);
    let [Node::Element(one), Node::Element(two)] = &list.children[..] else {
        panic!("{list:#?}");
    };
    assert_eq!((&*list.name, &*one.name), ("ol", "li"));
    assert!(
        matches!(&one.children[..], [_, Node::Text(_), Node::Emphasis(_)]),
        "{one:#?}"
    );
    let [
        number,
        Node::Heading { children, .. },
        Node::List { items, .. },
        Node::Table(table),
    ] = &two.children[..]
    else {
        panic!("{two:#?}");
    };
    assert_eq!(plain(std::slice::from_ref(number)), "2");
    assert_eq!(plain(children), "Three 2");
    assert_eq!(plain(&items[0].children).trim(), "a x");
    assert_eq!(plain(&table.rows[0][0]), "xy");
    assert!(matches!(&table.rows[0][1][..], [Node::Code(_)]));
}

#[test]
fn snippets_take_props_and_import_snippets() {
    let load = |path: &str| {
        let text = match path {
            "snippets/Card.jsx" => {
                "import { words } from './words.js';\nimport data from './data.json';\nexport default \
                function Plan({ name, children }) { return <Card title={`${name}: ${words.free}`}>\
                {children}{data.list.join()}</Card>; }\nexport const Price: React.FC<{ n: number }> = \
                ({ n }) => <b>{(n * 2).toFixed(2)}</b>;"
            }
            "snippets/words.js" => "export const words = { free: 'Free' };",
            "snippets/data.json" => "{\"list\": [1, 2]}",
            "snippets/text.mdx" => {
                "import Plan, { Price } from './Card.jsx';\n\nexport const own = 'o';\n\n## About {name}\n\n\
                <Plan name={own}>in **bold**</Plan>\n\n<Price n={count + 1} />\n\n{missing && 'x'}\n"
            }
            _ => return None,
        };
        Some(Arc::from(text))
    };
    let page = "import Text from '/snippets/text.mdx';\nimport Plan from '../snippets/Card';\n\n\
        <Text name=\"A\" count=\"4\" />\n\n<Text name={'B' + 'C'} count={4} />\n\n<Plan name=\"P\">x</Plan>\n";
    let read = read(&Source::new("guides/a.mdx", page), &load).unwrap();
    let told: Vec<_> = read.diagnostics.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{told:?}");
    let headings: Vec<_> = read.outline.headings.iter().map(|one| &*one.text).collect();
    assert_eq!(headings, ["About A", "About BC"]);
    let text = plain(&read.nodes);
    // A count in quotes is a text.
    assert!(text.contains("82.00") && text.contains("10.00"), "{text}");
    assert!(
        text.contains("in bold1,2") && text.contains("x1,2"),
        "{text}"
    );
}

#[test]
fn a_page_without_anything_to_evaluate_starts_no_engine() {
    let page = "import Plan from \"../snippets/plan\"\nimport { X } from '/snippets/values.mdx'\n\n\
        export const a = ['b', { c: 'd' }];\nexport const D = () => <b/>;\n\n# {a[1].c} {/* e */}\n\n\
        <Plan plan=\"Pro\" price={`$${a[0]}`} />\n\n<Card title={a[0]} cols={2}>{a[0]}</Card>\n";
    let before = crate::jsx::engines_started();
    assert_eq!(nodes(page).len(), 3);
    assert_eq!(crate::jsx::engines_started(), before);
    nodes("{[1].map(n => n)}");
    assert_eq!(crate::jsx::engines_started(), before + 1);
}

#[test]
fn a_result_is_not_deeper_than_a_page() {
    let page = "export const Deep = ({ n }) => n === 0 ? 'end' : <div><Deep n={n - 1} /></div>;\n\n<Deep n={150} />\n";
    let shown = warned(page, "shown as their text");
    assert_eq!(plain(&shown).trim(), "end");
}

#[test]
fn what_opens_no_tag_is_text() {
    for text in ["a <= b and c < d", "Vec<u8", "2 { 3", "<5 items>", "$5 {"] {
        assert_eq!(plain(&nodes(text)).trim(), text);
    }
    let shown = warned("a Vec<T> b", "is never closed");
    assert_eq!(plain(&shown).trim(), "a Vec<T> b");
    let shown = warned("a </Note> b", "closes a tag that is not open");
    assert_eq!(plain(&shown).trim(), "a </Note> b");
}

#[test]
fn code_and_formulas_are_left_alone() {
    assert_eq!(
        plain(&nodes("`<b>{x}` and $\\frac{a}{b}$")),
        "<b>{x} and \\frac{a}{b} "
    );
    let heading = only(nodes("## Keys {#my-keys}"));
    assert!(matches!(heading, Node::Heading { id: Some(id), .. } if id == "my-keys"));
}

#[test]
fn what_cannot_hold_anything_may_be_closed_twice() {
    let Node::Paragraph(line) = only(nodes("a<br></br>b</br>c")) else {
        panic!("no paragraph");
    };
    assert_eq!(plain(&line), "abc");
    assert_eq!(&*element(&line[1]).name, "br");
}

#[test]
fn a_closing_tag_may_have_spaces() {
    let note = only(nodes("<Note>\nMind.\n</ Note >"));
    assert_eq!(&*element(&note).name, "Note");
    assert_eq!(plain(&element(&note).children).trim(), "Mind.");
    // A space after `<` opens no tag.
    assert_eq!(plain(&nodes("a < b")).trim(), "a < b");
}

#[test]
fn a_tag_or_brace_beside_emphasis_counts_as_punctuation() {
    for (text, shown) in [
        ("**Note:**<br/>text", "Note:text"),
        ("_word_<br/>text", "wordtext"),
        ("**~~old~~**<br/>text", "oldtext"),
        ("**(a)**{\" \"}text", "(a) text"),
        ("<b>a</b>**(b)**", "a(b)"),
        ("**<b>a</b>**", "a"),
    ] {
        assert_eq!(plain(&nodes(text)).trim(), shown, "{text}");
    }
}

#[test]
fn a_tag_without_a_partner_does_not_hide_the_next_block() {
    let opened = warned("<Note>\n```js\nlet a;\n```", "`<Note>` is never closed");
    let [Node::Paragraph(tag), Node::Fence { info, code }] = &opened[..] else {
        panic!("{opened:#?}");
    };
    assert_eq!(
        (&*plain(tag), &**info, &**code),
        ("<Note>", "js", "let a;\n")
    );
    let closed = warned("Text\n</div>\n- one", "`</div>` closes a tag");
    let [Node::Paragraph(tag), Node::List { .. }] = &closed[..] else {
        panic!("{closed:#?}");
    };
    assert_eq!(plain(tag), "Text\n</div>");
}

#[test]
fn a_description_has_elements_and_no_expressions() {
    let read = |text: &str| read_description(text).unwrap();
    let described =
        read("Of `{id}` in /files/{id}.\n\n  <Note>\n    Mind <b>this</b>.\n  </Note>\n");
    let [Node::Paragraph(first), note] = &described[..] else {
        panic!("{described:#?}");
    };
    assert_eq!(plain(first), "Of {id} in /files/{id}.");
    assert_eq!(&*element(note).name, "Note");
    assert_eq!(plain(&element(note).children).trim(), "Mind this.");
    for text in [
        "A <token>x</token> {y",
        "A List<String>",
        "a < b <Snippet file=\"x\" />",
    ] {
        assert_eq!(plain(&read(text)).trim(), text, "{text}");
    }
    let card = only(read("<Card title={name()} onClick={() => 1}>x</Card>"));
    assert_eq!(element(&card).attributes, []);
}

#[test]
fn a_markdown_file_has_elements_and_no_expressions() {
    let text = "A<sup>1</sup> {b} <T>c</T>\n\n<table><tr><td>d</td></tr></table>\n\n<!-- no -->";
    let read = read(&Source::new("a.md", text), &files).unwrap();
    assert_eq!(read.diagnostics, []);
    let [Node::Paragraph(line), table] = &read.nodes[..] else {
        panic!("{:#?}", read.nodes);
    };
    assert_eq!(&*element(&line[1]).name, "sup");
    assert_eq!(plain(line), "A1 {b} <T>c</T>");
    assert_eq!(&*element(table).name, "table");
}

#[test]
fn an_unknown_component_keeps_what_it_holds() {
    let shown = warned(
        "<Fancy a={1}>\n\nInside\n\n</Fancy>",
        "no component `Fancy`",
    );
    assert_eq!(plain(&shown).trim(), "Inside");
}

#[test]
fn our_own_marks_in_a_page_are_not_marks() {
    assert_eq!(
        plain(&nodes("a \u{2cfe}0\u{2cff} <br/> b")).trim(),
        "a \u{fffd}0\u{fffd}  b"
    );
}

#[test]
fn a_page_over_a_limit_is_refused_by_name() {
    let rejected = |text: &str| read(&Source::new("a.mdx", text), &files).unwrap_err();
    assert_eq!(rejected(&"x".repeat(PAGE_BYTES_MAX + 1)), Rejected::TooLong);
    assert_eq!(rejected(&"<Note>".repeat(20_000)), Rejected::TooDeep);
    assert!(matches!(
        rejected("import L from \"/snippets/loop.mdx\"\n\n<L />"),
        Rejected::TooDeep | Rejected::TooMuchExpanded
    ));
}

#[test]
fn no_page_takes_long() {
    let hostile = [
        ("quotations", ">".repeat(40_000)),
        ("lists", "- ".repeat(40_000)),
        (
            "rows",
            format!("|a|b|\n|-|-|\n{}", "|x|y|\n".repeat(60_000)),
        ),
        (
            "columns",
            format!("|{}\n|{}\n", "a|".repeat(20_000), "-|".repeat(20_000)),
        ),
        ("links", "[a](b) ".repeat(60_000)),
        ("brackets", "[".repeat(200_000)),
        ("braces", "{".repeat(200_000)),
        ("open tags", "<a b={".repeat(60_000)),
        ("quotes", "<a b=\"".repeat(60_000)),
        ("closed tags", "<b>x</b> ".repeat(60_000)),
        ("cards", "<Card title=\"a\" />\n".repeat(30_000)),
        ("emphasis", "*a **b ".repeat(60_000)),
        ("comments", "<!--".repeat(100_000)),
        ("formulas", "$a ".repeat(100_000)),
        (
            "backticks",
            (1..1200).map(|n| "`".repeat(n) + " ").collect(),
        ),
        ("fences", "```\n".repeat(100_000)),
        ("exports", "export const a = {\n".repeat(30_000)),
        ("spaces", " ".repeat(1_000_000)),
        (
            "indents",
            (0..900).map(|n| " ".repeat(n) + "- a\n").collect(),
        ),
        (
            "attributes",
            format!(
                "<a{}{}>x</a>",
                " href=\"\"".repeat(60_000),
                " z=\"\"".repeat(60_000)
            ),
        ),
        (
            "fences under text",
            format!("   - a\n{}", "     ```\n".repeat(60_000)),
        ),
        (
            "an indented fence",
            format!("a\n{}```\n", " ".repeat(1_000_000)),
        ),
        (
            "backticks in rows",
            format!("|a|\n|-|\n{}", "|`a\n".repeat(60_000)),
        ),
        ("backticks in lines", "|`a\n".repeat(60_000)),
    ];
    for (what, text) in hostile {
        let since = Instant::now();
        // The page may be read or rejected; both results are correct.
        let _answer = read(&Source::new("a.mdx", &text), &files);
        let took = since.elapsed();
        // The limit allows for an unoptimised build and other tests; optimised, each page takes
        // some milliseconds.
        assert!(took.as_secs() < 10, "{what} took {took:?}");
    }
}

#[test]
fn an_element_indented_deeper_than_its_sibling_is_shown() {
    let tabs = "<Steps>\n  <Step title=\"One\">\n    Alpha text.\n\n<Tabs>\n  <Tab title=\"x\">\nhello\n  \
        </Tab>\n</Tabs>\n    <Note>\n      zebra\n    </Note>\n  </Step>\n</Steps>\n";
    let fence = "<Steps>\n  <Step title=\"One\">\n\n```js\nlet a;\n```\n\n    Text.\n\n        \
        <Note>zebra</Note>\n  </Step>\n</Steps>\n";
    for text in [tabs, fence] {
        let nodes = nodes(text);
        assert!(plain(&nodes).contains("zebra"), "{nodes:#?}");
    }
}

#[test]
fn a_comment_may_hold_headings_and_blank_lines() {
    let text = "# Synopsis\n\n{/*\n## Backwards Compatibility\n\n(discussion of it)\n\n## Forwards \
        Compatibility\n\n*/}\n\n## History\n\nDon't say it's `EndBlock()`\n\n{/*\n## Others\n\n*/}\n";
    let words = plain(&nodes(text));
    assert!(
        !words.contains("Compatibility") && !words.contains("/*"),
        "{words}"
    );
}

#[test]
fn places_are_those_of_the_file_whatever_was_dropped_before() {
    let text = "---\r\ntitle: x\r\n---\r\n\r\n<Steps>\r\n  <Step title=\"a\">\r\n    See [b](/c) and \
        <a href=\"/d\">e</a>.\r\n\r\n        ![f](/g.png)\r\n  </Step>\r\n</Steps>\r\n";
    let body = text.find("<Steps>").unwrap();
    let page = read(
        &Source {
            body,
            ..Source::new("a.mdx", text)
        },
        &files,
    )
    .unwrap();
    let written: Vec<_> = page
        .outline
        .references
        .iter()
        .map(|reference| (&*reference.target, &text[reference.span.range()]))
        .collect();
    assert_eq!(written, [("/c", "/c"), ("/d", "/d"), ("/g.png", "/g.png")]);
}

#[test]
fn a_page_lists_its_imports_and_exports_with_their_places() {
    let text = "import A, { b as c } from \"./x.mdx\"\n\nexport const d = 1, e = `${\"}\"}`;\nexport \
        { f } from '/y.mdx'\n\nText {d}.\n\nexport const g = ;\n";
    let page = read(&Source::new("a.mdx", text), &files).unwrap();
    let found: Vec<_> = page
        .module
        .iter()
        .map(|statement| {
            assert_eq!(&text[statement.span.range()], &*statement.source);
            let names = |names: &[module::Binding]| {
                let pairs = names.iter();
                let pairs = pairs.map(|one| format!("{}={}", one.name, one.local));
                pairs.collect::<Vec<_>>().join(",")
            };
            match &statement.kind {
                module::StatementKind::Import { from, names: all } => {
                    format!("import {} {from}", names(all))
                }
                module::StatementKind::Export { from, names: all } => {
                    format!("export {} {}", names(all), from.as_deref().unwrap_or("-"))
                }
                module::StatementKind::Broken => "broken".to_owned(),
            }
        })
        .collect();
    assert_eq!(
        found,
        [
            "import default=A,b=c ./x.mdx",
            "export d=d,e=e -",
            "export f=f /y.mdx",
            "broken"
        ]
    );
    let broken = page.diagnostics.iter();
    let broken: Vec<_> = broken
        .filter(|found| found.rule == "mdx-syntax")
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        broken,
        ["a.mdx:8:1: warning[mdx-syntax]: JavaScript cannot be read here: unexpected token"]
    );
}

#[test]
fn what_is_no_expression_is_shown_as_text() {
    let shown = warned("Use {your key} here.", "JavaScript cannot be read here");
    assert_eq!(plain(&shown).trim(), "Use {your key} here.");
}

#[test]
fn a_component_uses_names_that_are_declared_after_it() {
    let page = "export const Box = ({ title: name = first, ...rest }) => <b {...rest}>{name} {last}</b>;\n\
        export const first = \"F\";\nexport const last = first + \"L\";\n\n<Box id=\"x\" />\n\n\
        export const Item = () =>\n  <i>\n    one\n  </i>\n\n<Item />\n";
    let nodes = nodes(page);
    let words: Vec<_> = plain(&nodes)
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    assert_eq!(words, ["F", "FL", "one"]);
}

fn codes(nodes: &[Node]) -> Vec<&str> {
    let mut found = Vec::new();
    for node in nodes {
        match node {
            Node::Code(code) => found.push(&**code),
            node => node.each_children(&mut |children| found.extend(codes(children))),
        }
    }
    found
}

#[test]
fn a_backtick_without_a_partner_hides_nothing_after_its_block() {
    for text in [
        "| Ctrl+` | Open |\n|---|---|\n| `Esc` | `<Modal />` and `{props.id}` |",
        "a | b\n--|--\nCtrl+` | `Esc`\nc | `<Modal />` and `{props.id}`",
        "> | a | b |\n> |---|---|\n> | Ctrl+` | Open |\n> | `Esc` | `<Modal />` and `{props.id}` |",
        "- Press `\n- `Esc`, `<Modal />` and `{props.id}`",
        "- Press `\n  1. `Esc`\n  2. `<Modal />` and `{props.id}`",
        "# The ` key\n`Esc` `<Modal />` and `{props.id}`",
        "The ` key\n# `Esc` `<Modal />` and `{props.id}`",
        "The ` key\n***\n`Esc` `<Modal />` and `{props.id}`",
        "The ` key\n> `Esc` `<Modal />` and `{props.id}`",
        "> The ` key\n>\n> `Esc` `<Modal />` and `{props.id}`",
        "<Note>\nThe ` key\n</Note>\n`Esc` `<Modal />` and `{props.id}`",
    ] {
        assert_eq!(
            codes(&nodes(text)),
            ["Esc", "<Modal />", "{props.id}"],
            "{text}"
        );
    }
    let list = only(nodes("- use ` here\n- then <Badge>New</Badge> and ` `"));
    let Node::List { items, .. } = list else {
        panic!("{list:?}");
    };
    assert_eq!(&*element(&items[1].children[1]).name, "Badge");
    // A code span may go on in the next line of its paragraph.
    let text = "> `<Modal />\n> {props.id}` and\n`|x| <Modal />\n1986 - {a}`";
    let shown = nodes(text);
    assert_eq!(
        codes(&shown),
        ["<Modal /> {props.id}", "|x| <Modal /> 1986 - {a}"]
    );
}

#[test]
fn code_and_formulas_show_the_source_of_the_tags_in_them() {
    let Node::Paragraph(line) = only(nodes("a $x\n<b>{1}</b><br/> y$")) else {
        panic!("no paragraph");
    };
    assert!(
        matches!(&line[1], Node::Formula { tex, .. } if tex == "x\n<b>{1}</b><br/> y"),
        "{line:?}"
    );
    // The second line starts no list.
    let shown = nodes("`a\n2. <b>{1}</b>`");
    assert_eq!(codes(&shown), ["a 2. <b>{1}</b>"]);
    let footnote = only(nodes("[^1]: ~~~<b>{1}</b>\n    <b>{1}</b>\n    ~~~"));
    let Node::Footnote { children, .. } = footnote else {
        panic!("{footnote:?}");
    };
    let fence = Node::Fence {
        info: "<b>{1}</b>".to_owned(),
        code: "<b>{1}</b>\n".to_owned(),
    };
    assert_eq!(children, [fence]);
}

#[test]
fn content_on_the_line_of_its_tags_is_inline() {
    for inner in [
        "-",
        "+",
        "*",
        "1.",
        "---",
        "> 5",
        "# hash",
        "- 5 items",
        " - spaces",
        "[^1]: hidden",
        "[x]: /y",
        "~~~",
    ] {
        for name in ["td", "li", "p", "Card"] {
            let shown = only(nodes(&format!("<{name}>{inner}</{name}>")));
            let line = vec![Node::Text(inner.trim().to_owned())];
            assert_eq!(element(&shown).children, [Node::Paragraph(line)], "{inner}");
        }
        let page = format!(
            "export const Box = ({{ children }}) => <b>{{children}}</b>;\n\n<Box>{inner}</Box>"
        );
        assert_eq!(plain(&nodes(&page)).trim(), inner.trim());
    }
    let note = only(nodes("<Note>\n- 5 items\n</Note>"));
    assert!(matches!(element(&note).children[..], [Node::List { .. }]));
}

#[test]
fn only_an_id_in_braces_is_not_a_word_of_a_heading() {
    let heading = |nodes: Vec<Node>| match only(nodes) {
        Node::Heading { id, children, .. } => (plain(&children), id),
        other => panic!("no heading: {other:?}"),
    };
    for (text, words, id) in [
        ("## Path /users/{id}", "Path /users/{id}", None),
        ("### Fields {required}", "Fields {required}", None),
        ("### Of `{x}` {required}", "Of {x} {required}", None),
        ("## Keys {.wide}", "Keys {.wide}", None),
        ("## Keys {#my-keys}", "Keys", Some("my-keys")),
        ("## Keys {#my-keys} ##", "Keys", Some("my-keys")),
        ("Keys {#my-keys}\n===", "Keys", Some("my-keys")),
        ("## Keys {#__init__}", "Keys", Some("__init__")),
        ("## {#my-keys}", "", Some("my-keys")),
        ("## Keys {#my keys}", "Keys {#my keys}", None),
        ("## Keys \\{#mine}", "Keys {#mine}", None),
    ] {
        let expected = (words.to_owned(), id.map(str::to_owned));
        assert_eq!(heading(read_markdown(text).unwrap()), expected, "{text}");
        if !text.contains(" {r") && !text.contains("s/{") && !text.contains("{.") {
            assert_eq!(heading(nodes(text)), expected, "{text}");
        }
    }
    assert_eq!(heading(nodes("## Of \\{id}")), ("Of {id}".to_owned(), None));
}

#[test]
fn an_indented_fence_below_text_opens_code() {
    for text in [
        "- a\n      ```js\n      let z = 1;\n        y\n      ```",
        "- a\n  b\n          ```js\n          let z = 1;\n            y\n          ```",
        "1. a\nlazy\n       ```js\n       let z = 1;\n         y\n       ```",
        "Text\n    ```js\n    let z = 1;\n      y\n    ```\nText",
        "Text\n\t```js\n\tlet z = 1;\n\t  y\n\t```",
        "Text\n    ```js\nlet z = 1;\n      y\n    ```",
        "<Note>\n  - a\n        ```js\n        let z = 1;\n          y\n        ```\n</Note>",
        "[^1]: a\n\n    b\n        ```js\n        let z = 1;\n          y\n        ```",
        // These need no help.
        "- a\n  - b\n    ```js\n    let z = 1;\n      y\n    ```",
        "[^1]: a\n    ```js\n    let z = 1;\n      y\n    ```",
        "- a\n\n    b\n    ```js\n    let z = 1;\n      y\n    ```",
    ] {
        fn fences(nodes: &[Node], found: &mut Vec<Node>) {
            for node in nodes {
                if let Node::Fence { .. } = node {
                    found.push(node.clone());
                }
                node.each_children(&mut |children| fences(children, found));
            }
        }
        let shown = nodes(text);
        let mut found = Vec::new();
        fences(&shown, &mut found);
        let fence = Node::Fence {
            info: "js".to_owned(),
            code: "let z = 1;\n  y\n".to_owned(),
        };
        assert_eq!(found, [fence], "{text}");
        // It stays in its item or its footnote.
        let first = shown
            .iter()
            .find(|node| !matches!(node, Node::Paragraph(_)));
        let is_in_list = text.starts_with(['-', '1', '[']);
        assert_eq!(
            !matches!(first, Some(Node::Fence { .. })),
            is_in_list || text.starts_with('<'),
            "{shown:?}"
        );
    }
}

#[test]
fn an_address_of_mail_in_angle_brackets_is_a_link_to_mail() {
    let shown = only(read_markdown("<support@acme.com>").unwrap());
    let Node::Paragraph(line) = shown else {
        panic!("{shown:?}");
    };
    assert!(
        matches!(&line[..], [Node::Link { href, .. }] if href == "mailto:support@acme.com"),
        "{line:?}"
    );
    assert_eq!(plain(&line), "support@acme.com");
}

#[test]
fn a_line_that_starts_with_code_of_three_backticks_opens_no_fence() {
    let text = "```npm i``` installs it.\n\nimport P from \"/snippets/plan.mdx\"\n\n\
        <P plan=\"Pro\" price=\"1\" />\n\nexport const a = 1;\n\n{a}\n";
    let words = plain(&nodes(text));
    assert_eq!(words.trim(), "npm i installs it. The Pro plan, 1. 1");
}

#[test]
fn a_tag_has_a_limited_number_of_attributes() {
    let many: String = (0..300).fold(String::new(), |many, n| format!("{many} a{n}"));
    let told = format!("has more than {ATTRIBUTES_MAX} attributes; the others are left out");
    let card = only(warned(&format!("<Card{many}>\nx\n</Card>"), &told));
    assert_eq!(element(&card).attributes.len(), ATTRIBUTES_MAX);
    // The component takes the values that were read.
    let page = format!("export const S = (all) => <b>{{all.a1}}{{all.a299}}</b>;\n\n<S{many} />");
    warned(&page, &told);
}
