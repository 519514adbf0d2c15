//! What agents read.

use super::*;
use crate::render::mdx;

fn written(text: &str) -> String {
    let map = Map {
        pages: ["", "guides/a", "guides/b"].map(Into::into).into(),
        assets: [("a.png".into(), crate::render::link::Asset::default())].into(),
        ..Map::default()
    };
    let read = mdx::read("guides/a.mdx", text, 1, &|_| None).unwrap();
    write("guides/a.mdx", &read.nodes, &map)
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
        "- `id` (string, path, required), default `x`: The id.",
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
fn markdown_stays_what_it_was() {
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
fn links_are_absolute_and_lead_to_markdown() {
    check(
        "[b](b#x) [home](/) ![p](/a.png) [bad](javascript:x)",
        "[b](https://base-url.invalid/guides/b.md#x) [home](https://base-url.invalid/index.md) ![p](https://base-url.invalid/a.png) bad",
    );
}
