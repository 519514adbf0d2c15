//! The answer of each tool.

use serde_json::{Value, json};

use super::{call, post, result, serving, text};
use crate::presets::{DOMAIN, SKILL};

/// Asserts that a call is answered with a sentence for the model.
#[track_caller]
pub(super) fn helps(result: &Value, with: &str) {
    assert_eq!(result["isError"], true, "{result}");
    assert!(text(result).contains(with), "{result}");
}

#[test]
fn tools_are_described_as_directories_of_connectors_demand() {
    let edge = serving("");
    let listed = result(&edge, "tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    let names: Vec<&str> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["search", "fetch", "list_pages", "grep", "skill"]);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() < 64 && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        assert!(tool["description"].as_str().unwrap().len() < 2048);
        assert!(
            tool["description"].as_str().unwrap().contains("Acme Docs"),
            "{tool}"
        );
        assert!(!tool["title"].as_str().unwrap().is_empty());
        assert_eq!(tool["inputSchema"]["type"], "object");
        assert_eq!(tool["outputSchema"]["type"], "object");
        let hints = &tool["annotations"];
        assert_eq!(hints["readOnlyHint"], true);
        assert_eq!(hints["destructiveHint"], false);
        assert_eq!(hints["openWorldHint"], false);
    }
    assert_eq!(result(&edge, "tools/list", json!({})), listed);
    for name in ["Fetch", "search_", "", "fetch "] {
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name}});
        assert_eq!(
            post(&edge, &message).json()["error"]["code"],
            -32602,
            "{name}"
        );
    }
}

#[test]
fn search_answers_in_the_shape_of_connectors_and_fetch_takes_its_ids() {
    let edge = serving("");
    for name in ["search", "search_acme_docs", "search_acme"] {
        let result = call(&edge, name, json!({"query": "max_tokens"}));
        let found: Value = serde_json::from_str(text(&result)).unwrap();
        let best = &found["results"][0];
        assert_eq!(best["id"], "guides/limits#requests", "{result}");
        assert_eq!(best["url"], "https://docs.acme.test/guides/limits#requests");
        assert_eq!(best["title"], "Limits › Requests");
        assert!(
            best["text"].as_str().unwrap().contains("max_tokens"),
            "{best}"
        );
        let structured = &result["structuredContent"];
        assert_eq!(
            structured["results"][0]["sections"][0]["heading"],
            "Requests"
        );
        let fetched = call(&edge, "fetch", json!({"id": best["id"]}));
        let fetched = fetched["structuredContent"]["text"].as_str().unwrap();
        assert!(fetched.starts_with("## Requests"), "{fetched}");
    }
    // The hidden page has this word too.
    let secret = call(&edge, "search", json!({"query": "secret"}));
    assert!(!secret.to_string().contains("hidden"), "{secret}");
    let nothing = call(&edge, "search", json!({"query": "xylophone quartz"}));
    assert_eq!(
        nothing["structuredContent"],
        json!({"results": [], "total": 0})
    );
    assert_eq!(text(&nothing), "{\"results\":[]}");
    let first = call(
        &edge,
        "search",
        json!({"query": "E1042 limits", "limit": 1}),
    );
    let structured = &first["structuredContent"];
    assert_eq!(structured["results"].as_array().unwrap().len(), 1);
    let cursor = structured["next_cursor"].clone();
    let second = call(
        &edge,
        "search",
        json!({"query": "E1042 limits", "limit": 1, "cursor": cursor}),
    );
    assert_ne!(
        second["structuredContent"]["results"][0]["id"],
        structured["results"][0]["id"]
    );
    let few = call(&edge, "search", json!({"query": "E1042", "max_tokens": 1}));
    assert_eq!(
        few["structuredContent"]["results"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    for (arguments, sentence) in [
        (json!({}), "`query` is missing"),
        (json!({"query": "  "}), "`query` is missing"),
        (json!({"query": "a".repeat(513)}), "at most 512"),
        (json!({"query": "a", "limit": 51}), "from 1 to 50"),
        (json!({"query": "a", "cursor": "x"}), "without a cursor"),
    ] {
        helps(&call(&edge, "search", arguments), sentence);
    }
}

#[test]
fn fetch_returns_a_page_by_its_id_its_address_or_an_old_path() {
    let edge = serving("base_path: /docs");
    let fields = [("Content-Type", "application/json")];
    let fetch = |id: &str| {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "fetch", "arguments": {"id": id},
        }});
        let body = message.to_string();
        super::post_with(&edge, "/docs/mcp", &fields, body.as_bytes()).json()["result"].clone()
    };
    let page = edge.get(DOMAIN, "/docs/guides/start.md");
    for id in [
        "guides/start",
        "/guides/start",
        "/docs/guides/start",
        "guides/start.md",
        "guides/start/",
        " guides/start ",
        "https://docs.acme.test/docs/guides/start",
        "https://docs.acme.test/docs/guides/start.md?x=1",
        "https://acme.waypost.localhost/docs/guides/start#top",
        "begin",
    ] {
        let result = fetch(id);
        let document: Value = serde_json::from_str(text(&result)).unwrap();
        assert_eq!(document["text"], page.text(), "{id}");
        assert_eq!(document, result["structuredContent"]);
        assert_eq!(document["id"], "guides/start");
        assert_eq!(document["title"], "Start");
        assert_eq!(document["url"], "https://docs.acme.test/docs/guides/start");
        assert!(document.get("next").is_none() && document.get("contents").is_none());
    }
    let root: Value = serde_json::from_str(text(&fetch("index"))).unwrap();
    assert_eq!(
        (&root["id"], &root["title"]),
        (&json!("index"), &json!("Welcome"))
    );
    assert_eq!(root["metadata"], json!({"description": "Begin here."}));
    helps(&fetch("guides/strat"), "Did you mean guides/start?");
    helps(
        &fetch("https://other.test/docs/guides/start"),
        "is not on this site",
    );
    helps(&fetch("../../etc/passwd"), "There is no page");
    helps(&fetch("zzzzzzzzzzzzzzz"), "`list_pages`");
}

#[test]
fn a_long_page_comes_in_parts_that_join_to_the_page() {
    let edge = serving("");
    let whole = edge.get(DOMAIN, "/guides/limits.md");
    let mut joined = String::new();
    let mut start = 0;
    loop {
        let result = call(
            &edge,
            "fetch",
            json!({"id": "guides/limits", "start": start, "max_tokens": 100}),
        );
        let document = &result["structuredContent"];
        let part = document["text"].as_str().unwrap();
        assert!(
            !part.is_empty() && document.to_string().len() <= 400,
            "{document}"
        );
        joined += part;
        let headings = document["contents"].as_array().unwrap();
        let headings: Vec<&str> = headings
            .iter()
            .map(|h| h["heading"].as_str().unwrap())
            .collect();
        assert!(
            headings
                .iter()
                .all(|heading| ["Limits", "Requests", "Bytes"].contains(heading))
        );
        match document.get("next").and_then(Value::as_u64) {
            Some(next) => start = next,
            None => break,
        }
    }
    assert_eq!(joined, whole.text());
    let section = call(&edge, "fetch", json!({"id": "guides/limits#bytes"}));
    let section = section["structuredContent"]["text"].as_str().unwrap();
    assert!(section.starts_with("## Bytes"), "{section}");
    helps(
        &call(
            &edge,
            "fetch",
            json!({"id": "guides/limits", "start": 100_000}),
        ),
        "bytes",
    );
}

#[test]
fn several_pages_share_the_tokens_of_one_call() {
    let edge = serving("");
    let result = call(
        &edge,
        "fetch",
        json!({"ids": ["index", "none", "guides/limits"], "max_tokens": 200}),
    );
    let documents = result["structuredContent"]["documents"].as_array().unwrap();
    assert_eq!(documents.len(), 3);
    assert_eq!(documents[0]["title"], "Welcome");
    assert!(documents[1]["error"].as_str().unwrap().contains("no page"));
    assert!(result["structuredContent"].to_string().len() <= 800);
    assert!(documents[2]["next"].is_u64());
    for (arguments, sentence) in [
        (json!({}), "`id` is missing"),
        (json!({"id": 7}), "`id` must be a text"),
        (json!({"id": "index", "max_tokens": 0}), "from 1 to 20000"),
        (json!({"id": "index", "max_tokens": "many"}), "`max_tokens`"),
        (json!({"id": "index", "start": -1}), "`start`"),
        (json!({"ids": "index"}), "a list of texts"),
        (json!({"ids": vec!["index"; 11]}), "at most 10"),
    ] {
        helps(&call(&edge, "fetch", arguments), sentence);
    }
}

#[test]
fn list_pages_lists_what_everybody_may_find() {
    let edge = serving("");
    let result = call(&edge, "list_pages", json!({}));
    let structured = &result["structuredContent"];
    let ids = |structured: &Value| -> Vec<String> {
        let pages = structured["pages"].as_array().unwrap().iter();
        pages
            .map(|page| page["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        ids(structured),
        ["index", "guides/start", "guides/limits", "api/errors"]
    );
    assert_eq!(structured["total"], 4);
    let limits = &structured["pages"][2];
    assert_eq!(limits["description"], "What Acme limits.");
    assert_eq!(limits["url"], "https://docs.acme.test/guides/limits");
    assert!(text(&result).contains("- guides/limits: Limits – What Acme limits.\n"));
    let guides = call(&edge, "list_pages", json!({"path": "/guides/"}));
    assert_eq!(
        ids(&guides["structuredContent"]),
        ["guides/start", "guides/limits"]
    );
    let first = call(&edge, "list_pages", json!({"limit": 3}));
    let cursor = first["structuredContent"]["next_cursor"].clone();
    let rest = call(&edge, "list_pages", json!({"cursor": cursor}));
    assert_eq!(ids(&rest["structuredContent"]), ["api/errors"]);
    let few = call(&edge, "list_pages", json!({"max_tokens": 1}));
    assert_eq!(ids(&few["structuredContent"]).len(), 1);
    helps(
        &call(&edge, "list_pages", json!({"path": "guide"})),
        "no pages below",
    );
    helps(
        &call(&edge, "list_pages", json!({"cursor": "x"})),
        "without a cursor",
    );
    helps(
        &call(&edge, "list_pages", json!({"language": "fr"})),
        "one language",
    );
    // Programs get the same list without the protocol.
    let list = edge.get(DOMAIN, "/_waypost/pages");
    assert_eq!(list.field("access-control-allow-origin"), Some("*"));
    assert_eq!(ids(&list.json()), ids(structured));
    assert_eq!(list.json()["pages"][2]["url"], limits["url"]);
    assert!(list.field("etag").is_some());
}

#[test]
fn grep_finds_lines_with_the_heading_above_them() {
    let edge = serving("");
    let result = call(&edge, "grep", json!({"pattern": "E\\d{4}"}));
    let structured = &result["structuredContent"];
    let matches = structured["matches"].as_array().unwrap();
    // The hidden page has it too, and is not searched.
    let found: Vec<_> = matches
        .iter()
        .map(|found| (found["id"].as_str().unwrap(), found["heading"].as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("guides/limits", Some("Bytes")),
            ("api/errors", Some("Errors"))
        ]
    );
    assert_eq!(
        (&structured["searched"], &structured["pages"]),
        (&json!(4), &json!(4))
    );
    let page = edge.get(DOMAIN, "/guides/limits.md");
    let line = matches[0]["line"].as_u64().unwrap();
    let line = page
        .text()
        .lines()
        .nth(usize::try_from(line).unwrap() - 1)
        .unwrap()
        .to_owned();
    assert_eq!(matches[0]["text"], line);
    assert!(text(&result).contains(&format!("guides/limits:{}: {line}\n", matches[0]["line"])));
    for (arguments, count) in [
        (json!({"pattern": "e1042"}), 0),
        (json!({"pattern": " E1042 ", "literal": true}), 1),
        (json!({"pattern": "e1042", "ignore_case": true}), 2),
        (json!({"pattern": "E1042", "path": "api"}), 1),
        (json!({"pattern": "--max-bytes 10", "literal": true}), 1),
        (json!({"pattern": "(", "literal": true}), 1),
        (json!({"pattern": "^## "}), 2),
        // Every page has this line for agents, which is not searched.
        (json!({"pattern": "llms.txt"}), 0),
    ] {
        let result = call(&edge, "grep", arguments.clone());
        let found = result["structuredContent"]["matches"]
            .as_array()
            .unwrap()
            .len();
        assert_eq!(found, count, "{arguments} {result}");
    }
    let context = call(
        &edge,
        "grep",
        json!({"pattern": "E1042", "path": "guides", "context": 2}),
    );
    assert!(
        context["structuredContent"]["matches"][0]["text"]
            .as_str()
            .unwrap()
            .contains("```")
    );
}

#[test]
fn grep_continues_where_it_stopped() {
    let edge = serving("");
    let all = call(&edge, "grep", json!({"pattern": "."}));
    let all = all["structuredContent"]["matches"]
        .as_array()
        .unwrap()
        .clone();
    for arguments in [
        json!({"limit": 1}),
        json!({"limit": 3}),
        json!({"max_tokens": 20}),
    ] {
        let mut found = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let mut arguments = arguments.clone();
            arguments["pattern"] = json!(".");
            arguments["cursor"] = cursor;
            let result = call(&edge, "grep", arguments);
            let structured = &result["structuredContent"];
            found.extend(structured["matches"].as_array().unwrap().iter().cloned());
            match structured.get("next_cursor") {
                Some(next) => cursor = next.clone(),
                None => break,
            }
        }
        assert_eq!(found, all, "{arguments}");
    }
}

#[test]
fn grep_refuses_what_could_cost_too_much() {
    let edge = serving("");
    for (pattern, sentence) in [
        ("", "missing or empty"),
        ("(", "not a regular expression"),
        ("(?=a)b", "not a regular expression"),
        ("(a)\\1", "not a regular expression"),
        ("(a{1000}){1000}", "too large"),
        (&*"a".repeat(501), "at most 500"),
        (&*"(".repeat(300), "not a regular expression"),
    ] {
        helps(&call(&edge, "grep", json!({"pattern": pattern})), sentence);
    }
    helps(
        &call(&edge, "grep", json!({"pattern": "a", "cursor": "9:none"})),
        "without a cursor",
    );
    helps(
        &call(&edge, "grep", json!({"pattern": "a", "context": 11})),
        "from 0 to 10",
    );
    helps(&call(&edge, "grep", json!({})), "`pattern` is missing");
    helps(
        &call(&edge, "grep", json!({"pattern": "a", "path": "none"})),
        "no pages below the path none",
    );
}

#[test]
fn skill_returns_the_file() {
    let edge = serving("");
    let result = call(&edge, "skill", json!({"name": "sdk"}));
    assert_eq!(text(&result), SKILL);
    assert_eq!(result["structuredContent"]["uri"], "skill://sdk/SKILL.md");
    let listed = call(&edge, "skill", json!({}));
    assert_eq!(
        text(&listed),
        "- pay-refund: Take payments.\n- sdk: Use the SDK.\n"
    );
    helps(
        &call(&edge, "skill", json!({"name": "sdkk"})),
        "Did you mean sdk?",
    );
    helps(
        &call(&edge, "skill", json!({"name": "a very long name"})),
        "pay-refund, sdk",
    );
    let long = format!("{SKILL}\n{}", "Say \"it\".\n".repeat(50));
    let page = ("index.mdx", "A page.\n");
    let config = (
        "docs.json",
        r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#,
    );
    edge.publish("acme", &[config, page, ("skill.md", &long)]);
    let mut joined = String::new();
    let mut start = Some(0);
    while let Some(at) = start {
        let arguments = json!({"name": "sdk", "start": at, "max_tokens": 120});
        let part = call(&edge, "skill", arguments)["structuredContent"].clone();
        assert!(part.to_string().len() <= 480, "{part}");
        joined += part["text"].as_str().unwrap();
        start = part.get("next").and_then(Value::as_u64);
    }
    assert_eq!(joined, long);
}

/// A site with many pages, headings and lines.
fn large() -> crate::edge::Edge {
    let edge = crate::edge::Setup::new().acme("").start();
    let names: Vec<String> = (0..150).map(|nth| format!("guides/page-{nth}")).collect();
    let config = json!({"name": "Acme", "navigation": {"pages": names}});
    let mut files = vec![("docs.json".to_owned(), config.to_string())];
    for (nth, name) in names.iter().enumerate() {
        let section = |at: usize| {
            let words = "A \"widget\" has a limit, and each widget counts.\n".repeat(6);
            format!("\n## The widget of step {at}\n\n{words}")
        };
        let sections: String = (0..if nth == 0 { 100 } else { 3 }).map(section).collect();
        let text = format!(
            "---\ntitle: Page {nth}\ndescription: Widget {nth} of many.\n---\n\nWidgets.\n{sections}"
        );
        files.push((format!("{name}.mdx"), text));
    }
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    edge.publish("acme", &files);
    edge
}

#[test]
fn no_form_of_an_answer_has_more_tokens_than_the_call_allows() {
    let edge = large();
    for (tool, arguments) in [
        ("fetch", json!({"id": "guides/page-0"})),
        (
            "fetch",
            json!({"ids": ["guides/page-0", "guides/page-1", "guides/page-2"]}),
        ),
        ("search", json!({"query": "widget limit"})),
        ("search", json!({"query": "widget limit", "limit": 50})),
        ("list_pages", json!({})),
        (
            "grep",
            json!({"pattern": "widget", "limit": 500, "context": 3}),
        ),
    ] {
        let is_list = arguments.get("ids").is_some();
        for tokens in [100, 500, 2_000, 20_000] {
            if is_list && tokens == 100 {
                continue;
            }
            let mut arguments = arguments.clone();
            arguments["max_tokens"] = json!(tokens);
            let result = call(&edge, tool, arguments);
            let structured = result["structuredContent"].to_string();
            for form in [text(&result), &structured] {
                let counted = form.len().div_ceil(4);
                assert!(counted <= tokens, "{tool} {tokens}: {counted}");
                // A large answer uses what it may use.
                let is_full = tokens > 500 || form.len() > tokens;
                assert!(is_full, "{tool} {tokens}: {counted}");
            }
        }
    }
}

#[test]
fn headings_that_do_not_fit_are_counted_and_listed_from_a_later_start() {
    let edge = large();
    let fetch = |start: u64| {
        let arguments = json!({"id": "guides/page-0", "start": start, "max_tokens": 300});
        call(&edge, "fetch", arguments)["structuredContent"].clone()
    };
    let mut listed: Vec<u64> = Vec::new();
    let mut start = 0;
    loop {
        let document = fetch(start);
        let headings = document["contents"].as_array().unwrap();
        listed.extend(
            headings
                .iter()
                .map(|heading| heading["start"].as_u64().unwrap()),
        );
        if document.get("more_headings").is_none() {
            break;
        }
        let last = *listed.last().unwrap();
        assert!(last >= start, "{document}");
        start = last + 1;
    }
    listed.dedup();
    assert_eq!(listed.len(), 101);
}

#[test]
fn every_page_that_is_counted_can_be_reached() {
    let edge = large();
    let mut found = std::collections::BTreeSet::new();
    let mut cursor = Value::Null;
    let mut total = 0;
    loop {
        let arguments =
            json!({"query": "widget", "limit": 50, "max_tokens": 20_000, "cursor": cursor});
        let structured = call(&edge, "search", arguments)["structuredContent"].clone();
        total = structured["total"].as_u64().unwrap().max(total);
        for result in structured["results"].as_array().unwrap() {
            assert!(
                found.insert(
                    result["title"]
                        .as_str()
                        .unwrap()
                        .split(" ›")
                        .next()
                        .unwrap()
                        .to_owned()
                )
            );
        }
        match structured.get("next_cursor") {
            Some(next) => cursor = next.clone(),
            None => break,
        }
    }
    assert_eq!((total, found.len()), (150, 150));
    let last = edge
        .get(DOMAIN, "/_waypost/search?q=widget&limit=50&cursor=100")
        .json();
    assert_eq!(last["results"].as_array().unwrap().len(), 50);
}

#[test]
fn fetch_begins_at_the_section_that_an_anchor_names() {
    let edge = crate::edge::Setup::new().acme("").start();
    let page = "---\ntitle: Same\n---\n\nFirst [page](/other).\n\n## Errors\n\nOne.\n\n## Errors\n\n\
        The second.\n\n## Named {#own}\n\nThe third.\n\n## C'est là\n\nLast.\n";
    edge.publish(
        "acme",
        &[
            (
                "docs.json",
                r#"{"name": "Acme", "navigation": {"pages": ["same", "other"]}}"#,
            ),
            ("same.mdx", page),
            (
                "other.mdx",
                "---\ntitle: Other\nhidden: true\n---\n\n## A\n\nx\n\n## A\n\ny\n",
            ),
        ],
    );
    let fetch = |id: &str| call(&edge, "fetch", json!({"id": id}))["structuredContent"].clone();
    let found = call(&edge, "search", json!({"query": "second"}));
    assert_eq!(
        found["structuredContent"]["results"][0]["id"],
        "same#errors-2"
    );
    for (id, start) in [
        ("same#errors", "## Errors\n\nOne."),
        ("same#errors-2", "## Errors\n\nThe second."),
        ("same#own", "## Named"),
        ("same#own", "## Named\n\nThe third."),
        ("other#a-2", "## A\n\ny"),
    ] {
        let document = fetch(id);
        let text = document["text"].as_str().unwrap();
        assert!(text.starts_with(start), "{id}: {text}");
        assert!(document.get("note").is_none(), "{document}");
    }
    let unknown = fetch("same#nothing");
    assert_eq!(unknown["start"], 0);
    let note = unknown["note"].as_str().unwrap();
    assert!(note.contains("no section #nothing"), "{note}");
}

#[test]
fn grep_says_when_a_line_was_searched_in_part() {
    let edge = crate::edge::Setup::new().acme("").start();
    let long = format!("---\ntitle: Long\n---\n\n`{}needle`\n", "a".repeat(5_000));
    edge.publish(
        "acme",
        &[
            (
                "docs.json",
                r#"{"name": "Acme", "navigation": {"pages": ["long", "short"]}}"#,
            ),
            ("long.mdx", &long),
            ("short.mdx", "---\ntitle: Short\n---\n\nA word.\n"),
        ],
    );
    let result = call(&edge, "grep", json!({"pattern": "needle"}));
    assert_eq!(result["structuredContent"]["long_lines"], 1);
    assert!(
        text(&result).contains("only the first 4,096 bytes"),
        "{result}"
    );
    let result = call(&edge, "grep", json!({"pattern": "word", "path": "short"}));
    assert!(
        result["structuredContent"].get("long_lines").is_none(),
        "{result}"
    );
}

#[test]
fn grep_does_not_search_the_instructions_that_every_page_has() {
    let edge = crate::edge::Setup::new().acme("").start();
    edge.publish(
        "acme",
        &[
            (
                "docs.json",
                r#"{"name": "Acme", "markdown": {"instructions": "Use the needle."}, "navigation": {"pages": ["a", "b"]}}"#,
            ),
            ("a.mdx", "---\ntitle: A\n---\n\nA needle.\n"),
            ("b.mdx", "---\ntitle: B\n---\n\nA word.\n"),
        ],
    );
    let page = edge.get(DOMAIN, "/b.md");
    assert!(page.text().ends_with("\n> Use the needle.\n"), "{page:?}");
    let result = call(&edge, "grep", json!({"pattern": "needle"}));
    let matches = result["structuredContent"]["matches"].as_array().unwrap();
    let found: Vec<_> = matches.iter().map(|found| &found["id"]).collect();
    assert_eq!(found, ["a"]);
    assert_eq!(result["structuredContent"]["searched"], 2);
}
