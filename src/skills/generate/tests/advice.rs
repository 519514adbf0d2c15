//! Pitfalls, limits, mistakes, and when not to use the product.

use super::{BASE, product, section, text};

#[test]
fn pitfalls_limits_and_unsuited_cases_are_what_authors_wrote() {
    let text = product().text;
    let context = section(&text, "Context");
    for line in [
        format!("- A box is deleted after five minutes. – [Quickstart]({BASE}/start)"),
        format!("- At most 20 boxes can be paused at a time. – [Pause a box]({BASE}/boxes)"),
        format!(
            "- Boxes are not suitable for databases that must stay. – [Pause a box]({BASE}/boxes)"
        ),
    ] {
        assert!(context.contains(&line), "{line}\n{context}");
    }
    assert!(!context.contains("This page is new"), "{context}");
}

#[test]
fn limits_are_sentences_that_say_one() {
    let limits = "---\ntitle: Rate limits\ndescription: Understand our limits to choose the right plan.\n---\n\n\
        We set up limits for fairness. A key may make at most 100 calls in a minute. You must wait for 60 s after a 429.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{ "name": "Acme", "navigation": { "pages": ["index", "limits"] } }"#,
        ),
        (
            "index.mdx",
            "# Acme\n\nIf you prefer to avoid using the facade, inject it into your controllers instead. \
            Do not use them in your code at any time, please. Do not use Acme for files of more than a gigabyte.\n",
        ),
        ("limits.mdx", limits),
    ]);
    let (_, context) = text.split_once("### Pitfalls and limits").unwrap();
    let (limits, unsuited) = context.split_once("### When not to use it").unwrap();
    for limit in [
        "- A key may make at most 100 calls in a minute. – ",
        "- You must wait for 60 s after a 429. – ",
    ] {
        assert!(limits.contains(limit), "{text}");
    }
    assert!(
        !limits.contains("right plan") && !limits.contains("fairness"),
        "{text}"
    );
    assert!(
        unsuited.contains("- Do not use Acme for files of more than a gigabyte."),
        "{text}"
    );
    assert!(
        !unsuited.contains("facade") && !unsuited.contains("use them"),
        "{text}"
    );
}

#[test]
fn mistakes_are_a_table_with_their_remedies() {
    let config = r#"{"name":"Acme","navigation":{"pages":["boxes","troubleshooting"]}}"#;
    let boxes = "# Boxes\n\n## Troubleshooting\n\n### `403` when a box starts\n\n\
        The key has no rights. Create a key with the right `boxes`. More words.\n\n\
        ### Wrong size\n\n`expected 4 channels, but got 16 instead`\n\n### Restart the box\n\nMake sure that it is paused.\n\n## Other\n\n### A thing that fails\n\n\
        Make sure that this is not listed.\n";
    let page = "---\ntitle: Troubleshooting\n---\n\n<Accordion title=\"The build is slow\">\n\
        Issue: make sure to read.\n\nSee the issue 24 there.\n\n- Fix: Check that the cache is on.\n</Accordion>\n\n\
        <Accordion title=\"Nothing helps\">\nSee the pages below:\n</Accordion>\n";
    let files = [
        ("docs.json", config),
        ("boxes.mdx", boxes),
        ("troubleshooting.mdx", page),
    ];
    let text = text(&files);
    let list = "### Mistakes and remedies\n\n\
        | Mistake or symptom | What to do | Page |\n|---|---|---|\n\
        | `403` when a box starts | Create a key with the right `boxes`. | [Boxes](https://docs.acme.test/boxes) |\n\
        | The build is slow | Check that the cache is on. | [Troubleshooting](https://docs.acme.test/troubleshooting) |\n\n";
    assert!(text.contains(list), "{text}");
}

#[test]
fn notes_about_the_page_and_reasons_are_no_limits() {
    let config = r#"{"name":"Acme","navigation":{"pages":["boxes"]}}"#;
    let boxes = "# Boxes\n\n<Note>Both tools take the user from the session, so the model cannot see \
        others. The session is shown by default on the left.</Note>\n\n\
        <Note>The list is at the left side. A name must be shorter than the key.</Note>\n\n\
        <Note>The channel lives here because an extension cannot have one.</Note>\n";
    let text = text(&[("docs.json", config), ("boxes.mdx", boxes)]);
    let (_, context) = text.split_once("### Pitfalls and limits").unwrap();
    let (limits, _) = context.split_once("###").unwrap();
    assert_eq!(
        limits.trim(),
        "- A name must be shorter than the key. – [Boxes](https://docs.acme.test/boxes)"
    );
}

#[test]
fn what_the_product_is_not_for_is_said_and_nothing_is_claimed_about_the_other_pages() {
    let config = r#"{"name":"Acme","navigation":{"pages":["boxes"]}}"#;
    let unsuited = |page: &str| {
        let text = text(&[("docs.json", config), ("boxes.mdx", page)]);
        let (_, unsuited) = text.split_once("### When not to use it\n\n").unwrap();
        unsuited.trim().to_owned()
    };
    assert_eq!(
        unsuited("# Boxes\n\nAcme is not for mail. This file is not for you.\n"),
        format!("- Acme is not for mail. – [Boxes]({BASE}/boxes)")
    );
    assert_eq!(
        unsuited("# Boxes\n\nIt does **not** send mail.\n"),
        format!(
            "- For anything that is not about Acme: [llms.txt]({BASE}/llms.txt) lists what the pages are about"
        )
    );
}

#[test]
fn unsuited_cases_name_a_purpose_and_what_is_old() {
    let page = "# Boxes\n\n## When not to use labels\n\n- You need a name of two letters.\n\n## When not to use Acme\n\n- You need a disk of more than a terabyte.\n\n\
        ## Notes\n\nNamed colors are not supported. Acme lacks support for old browsers of phones.\n\
        It is not suitable for mail.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["boxes","legacy-flow"]}}"#,
        ),
        ("boxes.mdx", page),
        ("legacy-flow.mdx", "---\ntitle: Password flow\n---\n"),
    ]);
    let (_, unsuited) = text.split_once("### When not to use it\n\n").unwrap();
    let boxes = format!("[Boxes]({BASE}/boxes)");
    assert_eq!(
        unsuited.trim(),
        format!(
            "- When not to use Acme: You need a disk of more than a terabyte. – {boxes}\n\
             - Do not start new work with what the pages call legacy or deprecated: \
             [Password flow]({BASE}/legacy-flow)"
        )
    );
}

/// Returns the list of pitfalls and limits of these pages.
fn pitfalls(pages: &[(&str, &str)]) -> String {
    let slugs = pages.iter().map(|(path, _)| path.trim_end_matches(".mdx"));
    let slugs: Vec<&str> = slugs.collect();
    let config =
        serde_json::json!({ "name": "Acme", "navigation": { "pages": slugs } }).to_string();
    let files: Vec<(&str, &str)> = pages
        .iter()
        .copied()
        .chain([("docs.json", &*config)])
        .collect();
    let text = text(&files);
    let (_, rest) = text.split_once("### Pitfalls and limits\n\n").unwrap();
    rest.split("\n\n").next().unwrap().to_owned()
}

#[test]
fn warnings_come_first_and_among_them_those_that_say_what_happens() {
    let list = pitfalls(&[
        (
            "boxes.mdx",
            "<Warning>Choose the size of a box with care.</Warning>\n",
        ),
        (
            "keys.mdx",
            "<Note>Keys must be rotated. Otherwise all calls are rejected.</Note>\n",
        ),
        (
            "jobs.mdx",
            "<Warning>Do not stop a job by force: its files are lost.</Warning>\n",
        ),
    ]);
    let link = |title: &str, path: &str| format!("[{title}]({BASE}/{path})");
    assert_eq!(
        list,
        [
            format!(
                "- Do not stop a job by force: its files are lost. – {}",
                link("Jobs", "jobs")
            ),
            format!(
                "- Choose the size of a box with care. – {}",
                link("Boxes", "boxes")
            ),
            format!(
                "- Keys must be rotated. Otherwise all calls are rejected. – {}",
                link("Keys", "keys")
            ),
        ]
        .join("\n")
    );
}

#[test]
fn the_limits_of_the_product_come_before_one_of_each_part_and_values_have_their_heading() {
    let part = "---\ntitle: Webhook limitations\n---\n\nA hook must answer in 5 s. A hook must be public.\n";
    let whole = "---\ntitle: Rate limits\n---\n\n## Calls\n\n**100 calls per 30 seconds**\n\n- 5 calls per second and key\n- 7 calls per second and key\n\n## Small plan\n\n\
        **Up to 20 boxes at once**\n\nA key may have at most 5 names. A name must have 3 letters. A team must have \
        a name.\n\n## Beyond\n\nIf you exceed them, calls fail with the status 429.\n";
    let list = pitfalls(&[("hooks.mdx", part), ("limits.mdx", whole)]);
    let words: Vec<&str> = list
        .lines()
        .map(|line| line.split(" – ").next().unwrap())
        .collect();
    assert_eq!(
        words,
        [
            "- Calls: 100 calls per 30 seconds",
            "- Calls: 5 calls per second and key",
            "- Small plan: Up to 20 boxes at once",
            "- If you exceed them, calls fail with the status 429.",
            "- A hook must answer in 5 s.",
        ]
    );
}

#[test]
fn a_text_that_needs_the_text_around_it_is_no_pitfall() {
    let list = pitfalls(&[
        (
            "a.mdx",
            "<Note>To avoid this behavior, you must create the directory.</Note>\n",
        ),
        (
            "b.mdx",
            "<Warning>You can close it, as the test does not require a window.</Warning>\n",
        ),
        (
            "c.mdx",
            "<Warning>If you skip this step, the box fails.</Warning>\n",
        ),
        (
            "d.mdx",
            "<Warning>Add the following scopes, which are required: a, b.</Warning>\n",
        ),
        (
            "e.mdx",
            "<Warning>A box without a key fails. See the page about keys for more.</Warning>\n",
        ),
    ]);
    assert_eq!(
        list,
        format!("- A box without a key fails. – [E]({BASE}/e)")
    );
}

#[test]
fn a_rule_about_a_value_is_no_case_against_the_product() {
    let page = "# Boxes\n\nIf you have a domain, enter your domain instead. Avoid clashes: do not use known names as the \
        name of a box. Do not use Acme for mail of your customers.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["boxes"]}}"#,
        ),
        ("boxes.mdx", page),
    ]);
    let (_, unsuited) = text.split_once("### When not to use it\n\n").unwrap();
    assert_eq!(
        unsuited.trim(),
        format!("- Do not use Acme for mail of your customers. – [Boxes]({BASE}/boxes)")
    );
}

#[test]
fn a_sentence_that_points_to_another_one_is_no_pitfall_and_a_quote_stays_whole() {
    let list = pitfalls(&[
        (
            "a.mdx",
            "<Warning>If it stays at the default, the box fails.</Warning>\n",
        ),
        (
            "b.mdx",
            "<Warning>Use this panel when a team fails to run long queries.</Warning>\n",
        ),
        (
            "c.mdx",
            "<Warning>\n**A key is secret**\n\nA box that shows it is blocked.\n</Warning>\n",
        ),
        (
            "d.mdx",
            "<Warning>A blocked host shows the error: \"Failed to start. Reject it\".</Warning>\n",
        ),
    ]);
    let link = |title: &str, path: &str| format!("[{title}]({BASE}/{path})");
    assert_eq!(
        list,
        [
            format!(
                "- A key is secret. A box that shows it is blocked. – {}",
                link("C", "c")
            ),
            format!(
                "- A blocked host shows the error: \"Failed to start. Reject it\". – {}",
                link("D", "d")
            ),
        ]
        .join("\n")
    );
}

#[test]
fn without_a_case_against_the_product_the_fallback_says_so() {
    let page = "# Boxes\n\nAcme does not support polygons with holes. Because of keys, some users need MFA, which is \
        not compatible with an Acme box. If you work locally, use `acme preview` instead.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["boxes"]}}"#,
        ),
        ("boxes.mdx", page),
    ]);
    let (_, unsuited) = text.split_once("### When not to use it\n\n").unwrap();
    let fallback = "- For anything that is not about Acme: [llms.txt]";
    assert!(unsuited.starts_with(fallback), "{unsuited}");
}

#[test]
fn advice_is_whole_sentences_that_are_understood_alone() {
    let long =
        "A result that is returned for a query has the values of all of its fields ".repeat(4);
    let page = format!(
        "# Boxes\n\n<Warning>{long}and fails.</Warning>\n\n\
         <Warning>All boxes are deleted for good. {long}and fails.</Warning>\n\n## Limits\n\n\
         <Note>Some chains also have a limit, and return an error past that range.</Note>\n"
    );
    let unsuited = [
        "Although it is not suited for this purpose, people use it for bars of searches.",
        "Not recommended for pages where the trust of users matters most.",
        "Surfer is not a replacement for Driver, because it calls Driver.",
        "Remember that this is a not for production tutorial.",
        "Don't use our name or logo in a place where it would look official.",
        "Acme is not a replacement for a database of orders.",
    ];
    let pages = ["a.mdx", "b.mdx", "c.mdx", "d.mdx", "e.mdx", "f.mdx"];
    let mut files: Vec<(&str, &str)> = pages.into_iter().zip(unsuited).collect();
    files.push((
        "docs.json",
        r#"{"name":"Acme","navigation":{"pages":["boxes","a","b","c","d","e","f"]}}"#,
    ));
    files.push(("boxes.mdx", &page));
    let text = text(&files);
    let (_, context) = text.split_once("### Pitfalls and limits\n\n").unwrap();
    assert_eq!(
        context.trim(),
        format!(
            "- All boxes are deleted for good. – [Boxes]({BASE}/boxes)\n\n\
             ### When not to use it\n\n\
             - Acme is not a replacement for a database of orders. – [F]({BASE}/f)"
        )
    );
}

#[test]
fn the_module_of_a_reference_is_no_page_about_limits() {
    let module = "---\ntitle: rate_limiting\n---\n\nThe error is raised when the limit of 5 calls is exceeded.\n";
    let config = r#"{"name":"Acme","navigation":{"pages":["index","rate_limiting"]}}"#;
    let text = text(&[
        ("docs.json", config),
        ("index.mdx", "# Acme\n"),
        ("rate_limiting.mdx", module),
    ]);
    assert!(!text.contains("limit of 5 calls"), "{text}");
}

#[test]
fn a_mistake_is_something_that_does_not_work_and_its_remedy_a_sentence() {
    let page = "---\ntitle: Troubleshooting\n---\n\n## Custom path of the program\n\nInstall Acme and run it once.\n\n\
        ## Error format\n\nCheck the code of the answer.\n\n## A call is refused\n\nTEST RESPONSE FIELD PART.\n\nCheck the key of the call.\n";
    let config = r#"{"name":"Acme","navigation":{"pages":["index","troubleshooting"]}}"#;
    let text = text(&[
        ("docs.json", config),
        ("index.mdx", "# Acme\n"),
        ("troubleshooting.mdx", page),
    ]);
    let table = text.split_once("### Mistakes and remedies").unwrap().1;
    let row = "| A call is refused | Check the key of the call. |";
    assert!(table.contains(row), "{text}");
    for other in ["Custom path", "Error format", "TEST"] {
        assert!(!table.contains(other), "{other}\n{text}");
    }
}

#[test]
fn a_fragment_and_another_setting_are_no_reason_against_the_product() {
    let page = "# Acme\n\nProblems are:\n\n- Versions of a box incompatible with the versions of Acme\n\n\
        If you want Acme to draw the picture, use `box.picture` instead.\n\n\
        If you want to use Acme without a box, use Boxer instead.\n\n\
        Note: The Acme box is not suitable for animals.\n";
    let config = r#"{"name":"Acme","navigation":{"pages":["index"]}}"#;
    let text = text(&[("docs.json", config), ("index.mdx", page)]);
    let unsuited = text.split_once("### When not to use it").unwrap().1;
    assert!(!unsuited.contains("Versions of a box"), "{text}");
    assert!(!unsuited.contains("box.picture"), "{text}");
    assert!(
        unsuited.contains("- The Acme box is not suitable"),
        "{text}"
    );
    let other = "If you want to use Acme without a box, use Boxer instead.";
    let page = page.replace("Note: The Acme box is not suitable for animals.\n", "");
    let text = self::text(&[("docs.json", config), ("index.mdx", &page)]);
    assert!(text.contains(other), "{text}");
}
