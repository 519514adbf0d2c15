//! What an agent must decide first.

use super::{BASE, section, text};

#[test]
fn decisions_are_a_table_of_cases_and_alternatives() {
    let page = "# Queues\n\n| You want to… | Use |\n|---|---|\n| Keep the order | A **line** |\n\
        | Drop doubles | Use a set |\n\n| Scenario | Before | After |\n|---|---|---|\n| Small | no | yes |\n\n\
        ## Choosing a pool\n\n- **Warm**: best for short jobs.\n- **Cold**: costs nothing.\n\n\
        Choose a pool: it stays. For long jobs, use the cold pool.\n\n\
        ## Names\n\nUse it when you must. If you need two names, use an alias instead. For Name, use `x`.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["queues"]}}"#,
        ),
        ("queues.mdx", page),
    ]);
    let table = format!(
        "### Decide first\n\n| When | Use | Page |\n|---|---|---|\n\
         | Keep the order | A line | [Queues]({BASE}/queues) |\n\
         | Drop doubles | a set | \u{2033} |\n\
         | best for short jobs | Warm | \u{2033} |\n\
         | For long jobs | the cold pool | \u{2033} |\n\
         | you need two names | an alias | \u{2033} |\n\n"
    );
    assert!(text.contains(&table), "{text}");
}

#[test]
fn the_quickstarts_of_a_group_are_a_choice() {
    let page = |name: &str| format!("---\ntitle: {name}\n---\n\nUse it.\n");
    let (go, js, py) = (page("Go"), page("Node"), page("Python"));
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"tabs":[{"tab":"Queue","groups":[
                {"group":"Quickstarts","pages":["go","node","python"]},
                {"group":"Guides","pages":["start-quickstart","index"]}]}]}}"#,
        ),
        ("go.mdx", &go),
        ("node.mdx", &js),
        ("python.mdx", &py),
        ("start-quickstart.mdx", "# One\n"),
        ("index.mdx", "# Acme\n"),
    ]);
    let line = format!(
        "- Choose a start of Queue: Quickstarts: [Go]({BASE}/go), [Node]({BASE}/node), [Python]({BASE}/python)\n"
    );
    assert!(text.contains(&line), "{text}");
    assert_eq!(text.matches("Choose a start").count(), 1, "{text}");
}

#[test]
fn the_alternatives_are_all_tabs_with_code_and_not_only_those_that_install() {
    let tab = |title: &str, code: &str| format!("<Tab title=\"{title}\">\n{code}\n</Tab>\n");
    let tabs = [
        tab(
            "Python",
            "```python\n# pip3 install acme\nimport acme\nacme.pay(1)\n```",
        ),
        tab(
            "Ruby",
            "```ruby\n# bundle add acme\nrequire 'acme'\nAcme.pay(1)\n```",
        ),
        tab(
            "cURL",
            "```bash\ncurl https://api.acme.test/pay -d amount=1\n```",
        ),
    ];
    let start = format!(
        "---\ntitle: Quickstart\n---\n\n<Tabs>\n{}</Tabs>\n",
        tabs.concat()
    );
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["quickstart"]}}"#,
        ),
        ("quickstart.mdx", &start),
    ]);
    assert!(
        text.contains("- Choose one: Python, Ruby, cURL – "),
        "{text}"
    );
    assert!(!text.contains("- Install"), "{text}");
    assert!(text.contains("- Call (Python)"), "{text}");
}

#[test]
fn the_quickstarts_that_a_list_puts_in_order_are_no_choice() {
    let page = |name: &str| format!("---\ntitle: {name}\n---\n\nUse it.\n");
    let (boxes, queues) = (page("Boxes"), page("Queues"));
    let start = |list: &str| format!("---\ntitle: Quickstart\n---\n\n{list}\n");
    let written = |list: &str| {
        text(&[
            (
                "docs.json",
                r#"{"name":"Acme","navigation":{"groups":[
                    {"group":"Quickstart","pages":["start","boxes","queues"]}]}}"#,
            ),
            ("start.mdx", &start(list)),
            ("boxes.mdx", &boxes),
            ("queues.mdx", &queues),
        ])
    };
    let ordered = written("1. **[Boxes](/boxes)**: first.\n2. [Queues](/queues#first)");
    assert!(!ordered.contains("Choose a start"), "{ordered}");
    let free = written("- **[Boxes](/boxes)**\n- [Queues](/queues#first)");
    assert!(free.contains("- Choose a start of Quickstart: "), "{free}");
}

#[test]
fn a_choice_that_is_part_of_another_one_of_its_page_is_not_named() {
    let start = "---\ntitle: Quickstart\n---\n\n<CodeGroup>\n```bash JS\nnpm i acme\n```\n```bash Python\npip install acme\n```\n\
        </CodeGroup>\n\n<CodeGroup>\n```js JS\nimport { Box } from 'acme';\nawait Box.run();\n```\n\
        ```python Python\nfrom acme import Box\nBox.run()\n```\n```go Go\nimport \"acme\"\nacme.Run()\n```\n</CodeGroup>\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["quickstart"]}}"#,
        ),
        ("quickstart.mdx", start),
    ]);
    assert!(text.contains("- Choose one: JS, Python, Go – "), "{text}");
    assert_eq!(text.matches("Choose one").count(), 1, "{text}");
}

#[test]
fn an_area_says_more_than_its_title() {
    let page = |title: &str, about: &str, text: &str| {
        format!("---\ntitle: {title}\ndescription: \"{about}\"\n---\n\n{text}\n")
    };
    let (home, sdk, keys) = (
        page(
            "Build with Acme",
            "Build with Acme",
            "<Card title=\"A\" href=\"/sdk\" />",
        ),
        page(
            "Acme SDK docs",
            "Version: v0.54",
            "The SDK makes boxes for code of models.",
        ),
        page("Authentication", "Authentication for the Acme API", ""),
    );
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"groups":[{"group":"Home","pages":["index"]},
                {"group":"SDK","pages":["sdk"]},{"group":"Keys","pages":["keys","rotate"]}]}}"#,
        ),
        ("index.mdx", &*home),
        ("sdk.mdx", &*sdk),
        ("keys.mdx", &*keys),
        ("rotate.mdx", "---\ntitle: Rotate a key\n---\n"),
    ]);
    for row in [
        format!("| SDK | The SDK makes boxes for code of models. | [Acme SDK docs]({BASE}/sdk) |"),
        format!("| Keys | Rotate a key | [Authentication]({BASE}/keys) |"),
        format!("- Start here: [Build with Acme]({BASE}/)"),
    ] {
        assert!(text.contains(&row), "{row}\n{text}");
    }
}

#[test]
fn choices_among_quickstarts_leave_room_for_the_table() {
    let groups = ["one", "two", "three"];
    let names = ["Alpha", "Beta", "Gamma", "Delta", "Omega"];
    let mut files: Vec<(String, String)> = Vec::new();
    let mut list = Vec::new();
    for group in groups {
        let pages: Vec<String> = names
            .iter()
            .map(|name| format!("{group}/quickstart-{name}"))
            .collect();
        for (name, page) in names.iter().zip(&pages) {
            // Two lines of such titles leave no room for a row.
            let more = " and more".repeat(8);
            let title =
                format!("Add a new shop of Acme and a bank of the same name{more} to {name}");
            files.push((format!("{page}.mdx"), format!("---\ntitle: {title}\n---\n")));
        }
        let pages = pages.iter().map(|page| format!("\"{page}\""));
        let pages = pages.collect::<Vec<_>>().join(",");
        list.push(format!("{{\"group\":\"{group}\",\"pages\":[{pages}]}}"));
    }
    let table = "# Sizes\n\n| You need… | Use |\n|---|---|\n| It must start fast | a small box |\n";
    files.push(("sizes.mdx".to_owned(), table.to_owned()));
    let config = format!(
        "{{\"name\":\"Acme\",\"navigation\":{{\"groups\":[{},{{\"group\":\"Sizes\",\"pages\":[\"sizes\"]}}]}}}}",
        list.join(",")
    );
    files.push(("docs.json".to_owned(), config));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    let text = text(&files);
    assert!(text.contains("- Choose a start of one: "), "{text}");
    assert!(
        text.contains("| It must start fast | a small box |"),
        "{text}"
    );
}

#[test]
fn code_that_shows_two_ways_to_import_is_an_alternative_but_no_call() {
    let page = "---\ntitle: Quickstart\n---\n\n<CodeGroup>\n\
        ```js JS\nconst { Acme } = require('acme')\nimport { Acme } from 'acme'\nAcme.pay(1)\n```\n\
        ```python Python\nimport acme\nacme.pay(1)\n```\n</CodeGroup>\n";
    let config = r#"{"name":"Acme","navigation":{"pages":["quickstart"]}}"#;
    let text = text(&[("docs.json", config), ("quickstart.mdx", page)]);
    assert!(text.contains("- Choose one: JS, Python"), "{text}");
    assert!(text.contains("- Call (Python)"), "{text}");
    assert!(!text.contains("require('acme')"), "{text}");
}

#[test]
fn a_table_of_use_cases_is_a_choice_only_if_it_or_its_heading_says_so() {
    let levels = "---\ntitle: Log messages\n---\n\n## Levels\n\n| Level | Use case |\n|---|---|\n| `debug` | Details of one run for a diagnosis |\n| `info` | Events of a normal run |\n";
    let stores = "---\ntitle: Stores\n---\n\n## Which one should I use?\n\n| Store | Use case |\n|---|---|\n| Memory | Values of one run |\n| None | Values that nobody reads |\n\n\
        ## File store\n\nUse this option if values must stay after a run.\n\n## Fast paths\n\nIf you have many small values, you can prefer batches.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["index","levels","stores"]}}"#,
        ),
        ("index.mdx", "# Acme\n"),
        ("levels.mdx", levels),
        ("stores.mdx", stores),
    ]);
    let decisions = section(&text, "Capabilities");
    assert!(
        decisions.contains("| Values of one run | Memory |"),
        "{text}"
    );
    assert!(
        decisions.contains("| values must stay after a run | File store |"),
        "{text}"
    );
    for other in ["`debug`", "`info`", "| None |"] {
        assert!(!decisions.contains(other), "{other}: {text}");
    }
}
