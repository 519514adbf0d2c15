//! Tests of the Markdown that agents read.

use super::*;
use crate::mdx;

fn written(text: &str) -> String {
    let map = Map {
        pages: ["", "guides/a", "guides/b"].map(Into::into).into(),
        assets: [("a.png".into(), crate::render::link::Asset::default())].into(),
        ..Map::default()
    };
    let read = mdx::read(&mdx::Source::new("guides/a.mdx", text), &|_| None).unwrap();
    write("guides/a.mdx", &read.nodes, &map, Messages::of("en"))
}

#[track_caller]
fn check(text: &str, markdown: &str) {
    assert_eq!(written(text), format!("{markdown}\n"), "{text}");
}

#[test]
fn components_become_markdown() {
    check("<Note>Mind *this*.</Note>", "> **Note:** Mind *this*.");
    check(
        "<CardGroup cols={2}>\n<Card title=\"B\" href=\"/guides/b\" icon=\"x\">Text</Card>\n<Card title=\"C\"/>\n</CardGroup>",
        "- [B](https://base-url.invalid/guides/b.md): Text\n\n- **C**",
    );
    check(
        "<Steps>\n<Step title=\"One\">\nDo.\n\n```sh\nls\n```\n</Step>\n<Step title=\"Two\">Rest.</Step>\n</Steps>",
        "1. **One**\n\n   Do.\n\n   ```sh\n   ls\n   ```\n\n2. **Two**\n\n   Rest.",
    );
    check(
        "<Tabs>\n<Tab title=\"A\">one</Tab>\n<Tab title=\"B\">two</Tab>\n</Tabs>",
        "**A**\n\none\n\n**B**\n\ntwo",
    );
    check(
        "<ParamField path=\"id\" type=\"string\" required default=\"x\">The id.</ParamField>",
        "- `id` string path required default: `x`: The id.",
    );
    check(
        "An <Tooltip tip=\"what runs\">agent</Tooltip> reads.",
        "An agent (what runs) reads.",
    );
    check(
        "<Visibility for=\"humans\">x</Visibility>\n\n<Visibility for=\"agents\">y</Visibility>",
        "y",
    );
}

#[test]
fn html_tables_and_lists_become_markdown() {
    check(
        "<table><tr><th>A</th><th>B</th></tr><tr><td rowSpan=\"2\">1</td><td>a | b</td></tr>\n<tr><td>3</td></tr><tr><td colspan=\"2\"><ul><li>x</li><li>y</li></ul></td></tr></table>",
        "| A | B |\n| --- | --- |\n| 1 | a \\| b |\n|  | 3 |\n| • x<br>• y |  |",
    );
    // GFM §4.10: a table has a head.
    check(
        "<table><caption>Rates</caption><tbody><tr><td>1</td></tr></tbody></table>",
        "Rates\n\n|  |\n| --- |\n| 1 |",
    );
    check(
        "<ol start=\"3\"><li>a</li><li>b<ul><li>c</li></ul></li></ol>",
        "3. a\n4. b\n\n   - c",
    );
    check("<blockquote>Said.</blockquote>", "> Said.");
}

#[test]
fn a_cell_that_claims_a_million_columns_gets_at_most_the_limit() {
    let written =
        written("<table><tr><td colspan=\"1000000\" rowspan=\"9999999999\">1</td></tr></table>");
    assert!(written.len() < 1000, "{}", written.len());
}

#[test]
fn a_list_in_a_cell_keeps_its_items_apart() {
    check(
        "| Role | May |\n|---|---|\n| admin | <ul><li>read</li><li>write</li></ul> |",
        "| Role | May |\n| --- | --- |\n| admin | • read<br>• write |",
    );
}

#[test]
fn spaces_at_the_edges_of_elements_stay_in_the_sentence() {
    check(
        "<strong>Warning: </strong>do it. See<a href=\"https://x.test\"> this page </a>now.",
        "**Warning:** do it. See [this page](https://x.test) now.",
    );
    check("a<b> b </b> c <i> </i>d", "a **b** c d");
    check("Ask <a id=\"x\">us </a>now.", "Ask us now.");
}

#[test]
fn text_that_looks_like_markdown_stays_text() {
    for text in [
        "\\# Not a heading",
        "1\\. Not a list",
        "20\\) Not a list",
        "\\- x",
        "\\+ x",
        "\\> x",
        "A line\n\\# second",
        "A line\n\\---",
        "A line\n\\===",
        "a | b\n\\--- | ---",
        "\\_\\_init\\_\\_",
        "\\~\\~x\\~\\~",
        "\\&lt; and \\&#60;",
        "Look\\![here](https://x.test)",
    ] {
        check(text, text);
    }
    // None of these is Markdown.
    for text in [
        "a_b",
        "#5 and C#",
        "-1",
        "3.5",
        "2026.",
        "R&D, a & b",
        "a ~ b",
        "a _ b",
        "1-2",
    ] {
        check(text, text);
    }
    check("- 1\\. a\n- b", "- 1\\. a\n- b");
}

#[test]
fn texts_of_attributes_are_escaped() {
    check(
        "<Card title=\"a] [b](x) *c*\" href=\"/guides/b\"/>",
        "- [a\\] \\[b\\](x) \\*c\\*](https://base-url.invalid/guides/b.md)",
    );
    check("<Tab title=\"<b>\">x</Tab>", "**\\<b>**\n\nx");
    check(
        "<img src=\"/a.png\" alt=\"a] b\"/>",
        "![a\\] b](https://base-url.invalid/a.png)",
    );
    check("[a](<https://x.test/a b(c>)", "[a](<https://x.test/a b(c>)");
    check("<code>a \\` b</code>", "`` a ` b ``");
}

#[test]
fn pictures_for_two_modes_and_media_become_links() {
    check(
        "<img light=\"/a.png\" dark=\"/b.png\" alt=\"L\"/>",
        "![L](https://base-url.invalid/a.png)",
    );
    check(
        "<video><source src=\"https://x.test/v.mp4\"/></video>",
        "[Video](https://x.test/v.mp4)",
    );
    // The link would have no target.
    check("a\n\n<iframe srcdoc=\"<p>x</p>\"></iframe>", "a");
    check(
        "a <svg><text>drawn</text><a href=\"x\">y</a></svg> b",
        "a b",
    );
}

#[test]
fn a_block_after_a_label_has_lines_of_its_own() {
    check(
        "<Warning>\n```sh\nls\n```\n</Warning>",
        "> **Warning:**\n>\n> ```sh\n> ls\n> ```",
    );
    check(
        "<Tree>\n<Tree.File name=\"a_b.ts\"/>\n</Tree>\n\nThen.",
        "- a_b.ts\n\nThen.",
    );
}

#[test]
fn markdown_is_written_as_it_was_read() {
    for text in [
        "## Head\n\nText with `code`, **bold** and a [link](https://a.test/).",
        "- a\n- b\n  - c",
        "1. a\n2. b",
        "| a | b |\n| --- | --: |\n| 1 | 2 |",
        "```js a.js\nlet x = `y`;\n```",
        "> quoted",
        "---",
        "$$\nx^2\n$$",
    ] {
        let once = written(text);
        assert_eq!(written(&once), once, "{text}");
    }
}

#[test]
fn links_are_absolute_urls_of_markdown() {
    check(
        "[b](b#x) [home](/) ![p](/a.png) [bad](javascript:x)",
        "[b](https://base-url.invalid/guides/b.md#x) [home](https://base-url.invalid/index.md) ![p](https://base-url.invalid/a.png) bad",
    );
}

#[test]
fn a_link_around_blocks_stays_a_link() {
    check(
        "<a href=\"/guides/b\"><div><img src=\"/a.png\" alt=\"\"/><div>Guide *B*</div><p>All of it.</p></div></a>",
        "[Guide *B*](https://base-url.invalid/guides/b.md): All of it.",
    );
    check(
        "<a href=\"https://x.test/\"><div></div></a>",
        "<https://x.test/>",
    );
}

#[test]
fn an_image_with_a_form_for_dark_mode_is_written_once() {
    check(
        "<img className=\"block dark:hidden\" src=\"/a.png\" alt=\"A\"/>\n<img className=\"hidden dark:block\" src=\"/b.png\" alt=\"A\"/>",
        "![A](https://base-url.invalid/a.png)",
    );
    check(
        "<div className=\"hidden dark:block\">\n![A](/a.png)\n</div>\n<div className=\"hidden dark:block\">Words</div>",
        "Words",
    );
}

#[test]
fn a_break_in_a_cell_stays_a_break() {
    check(
        "| a | b |\n|---|---|\n| x <br /> y<br/><br/> z | <br/> |",
        "| a | b |\n| --- | --- |\n| x<br>y<br>z |  |",
    );
}

#[test]
fn elements_that_a_style_sets_apart_have_a_space_between_them() {
    check(
        "<div className=\"flex gap-1\"><span>read:users</span><span>read:keys</span></div>",
        "read:users read:keys",
    );
    check("<p><b>a</b><i>b</i></p>", "**a***b*");
}

#[test]
fn a_heading_is_written_in_one_line_with_its_links() {
    check(
        "<h2>\n  Long title\n  goes on [link](/guides/b)<br/>\n  *here*\n</h2>",
        "## Long title goes on [link](https://base-url.invalid/guides/b.md) *here*",
    );
    check("Foo\nbar\n===", "# Foo bar");
    check("## a<br/>b", "## a b");
}
