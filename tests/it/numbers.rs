//! Numbers for owners: which requests count, who may read the numbers, their bounds, and the
//! switches.

use serde_json::{Value, json};

use crate::edge::{Edge, Setup};
use crate::http::{Connection, Response};
use crate::presets::{SKILL, SUBDOMAIN};
use crate::repository::{API, call};

const FILES: [(&str, &str); 4] = [
    (
        "docs.json",
        r#"{"name": "Acme", "navigation": {"pages": ["index", "guide"]}}"#,
    ),
    ("index.mdx", "---\ntitle: Welcome\n---\n\nRead the guide."),
    ("guide.mdx", "---\ntitle: Guide\n---\n\nHow limits work."),
    ("skill.md", SKILL),
];
const BROWSER: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
/// Two processes of one store: only one of them can be upgraded.
const LISTEN: &str =
    "{ http: [\"127.0.0.1:0\"], operator: \"127.0.0.1:0\", upgrade_socket: false }";
const GPT: &str = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; \
                   +https://openai.com/gptbot)";

/// A gateway with the site `acme`, and a key of its owner.
fn edge(setup: Setup) -> (Edge, String) {
    let acme = key(&setup, "acme", &[]);
    let edge = setup.site("acme", "owner: acme").start();
    edge.publish("acme", &FILES);
    (edge, acme)
}

#[track_caller]
fn key(setup: &Setup, owner: &str, more: &[&str]) -> String {
    let output = setup.run(&[&["key", "create", "--owner", owner], more].concat());
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[track_caller]
fn numbers(edge: &Edge, key: &str) -> Value {
    let answer = call(edge, key, "GET", "/v1/sites/acme/numbers");
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

#[track_caller]
fn ask_as(edge: &Edge, agent: &str, path: &str) {
    let answer = edge.request("GET", SUBDOMAIN, path, &[("User-Agent", agent)]);
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
}

/// Sends a message to the MCP server.
#[track_caller]
fn mcp(edge: &Edge, agent: &str, message: &Value) -> Response {
    let text = message.to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {SUBDOMAIN}\r\nUser-Agent: {agent}\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\n\r\n",
        text.len()
    );
    let mut connection = Connection::open(edge.http);
    connection.send(format!("{head}{text}").as_bytes());
    connection.receive("POST").unwrap()
}

/// Sends a vote as a browser does.
#[track_caller]
fn vote(edge: &Edge, fields: &str, content: &str) -> Response {
    let head = format!(
        "POST /_waypost/helpful HTTP/1.1\r\nHost: {SUBDOMAIN}\r\n{fields}\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n",
        content.len()
    );
    let mut connection = Connection::open(edge.http);
    connection.send(format!("{head}{content}").as_bytes());
    connection.receive("POST").unwrap()
}

fn find<'v>(list: &'v Value, member: &str, name: &str) -> &'v Value {
    let mut items = list.as_array().unwrap().iter();
    let found = items.find(|item| item[member] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {list}"))
}

#[test]
fn pages_and_files_are_counted_by_kind_of_reader_on_both_paths() {
    for connections in ["{}", "{ fast_path: false }"] {
        let (edge, acme) = edge(Setup::new().conf("connections", connections));
        for _ in 0..3 {
            ask_as(&edge, BROWSER, "/guide");
        }
        ask_as(&edge, BROWSER, "/");
        ask_as(&edge, GPT, "/guide");
        ask_as(&edge, GPT, "/guide.md");
        let markdown = [("Accept", "text/markdown"), ("User-Agent", "curl/8")];
        assert_eq!(
            edge.request("GET", SUBDOMAIN, "/guide", &markdown).status,
            200
        );
        let tag = edge.get(SUBDOMAIN, "/guide");
        let tag = tag.field("etag").unwrap();
        let again = [("If-None-Match", tag), ("User-Agent", BROWSER)];
        assert_eq!(edge.request("GET", SUBDOMAIN, "/guide", &again).status, 304);
        for path in ["/skill.md", "/.well-known/agent-card.json", "/llms.txt"] {
            ask_as(&edge, "claude-code/2.0", path);
        }
        ask_as(&edge, GPT, "/.well-known/agent-skills/sdk/SKILL.md");
        // These are not counted.
        edge.request("HEAD", SUBDOMAIN, "/guide", &[("User-Agent", BROWSER)]);
        assert_eq!(edge.get(SUBDOMAIN, "/missing").status, 404);
        assert_eq!(edge.get(SUBDOMAIN, "/robots.txt").status, 200);

        let counted = numbers(&edge, &acme);
        let guide = find(&counted["pages"], "path", "/guide");
        assert_eq!((&guide["html"], &guide["markdown"]), (&json!(6), &json!(2)));
        let readers = json!({ "browsers": 4, "GPTBot": 2, "other agents": 2 });
        assert_eq!(guide["readers"], readers);
        assert_eq!(counted["pages"].as_array().unwrap().len(), 2, "{counted}");
        assert_eq!(find(&counted["pages"], "path", "/")["html"], 1);
        for path in ["/skill.md", "/.well-known/agent-card.json", "/llms.txt"] {
            let file = find(&counted["files"], "path", path);
            assert_eq!(file["readers"], json!({ "Claude-Code": 1 }), "{path}");
        }
        let skill = find(&counted["skills"], "name", "sdk");
        assert_eq!(skill["readers"], json!({ "GPTBot": 1 }));
        let day = &counted["days"][0];
        assert_eq!((&day["html"], &day["browsers"]), (&json!(7), &json!(5)));
        // Nothing is counted twice, and nothing of the reading itself.
        assert_eq!(numbers(&edge, &acme), counted);
    }
}

#[test]
fn searches_without_result_are_kept_once_they_are_asked_again() {
    let (edge, acme) = edge(Setup::new());
    let search = |query: &str, accept: &str| {
        let path = format!("/_waypost/search?q={query}");
        let answer = edge.request("GET", SUBDOMAIN, &path, &[("Accept", accept)]);
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    search("limits", "application/json");
    search("Webhook++Retries", "application/json");
    search("webhook+retries", "text/html");
    search("asked+once", "application/json");
    // While somebody types, only a text that stays is counted.
    search("webhook+re&typing=1", "application/json");
    search("webhook+retries&typing=1&settled=1", "application/json");
    // Suggestions of the page for a missing path: nobody has asked.
    for accept in ["application/json", "text/html"] {
        search("webhook+retries&settled=0", accept);
    }
    let path = "/_waypost/search?q=webhook+retries+now";
    let json = [("Accept", "application/json")];
    assert_eq!(edge.request("HEAD", SUBDOMAIN, path, &json).status, 200);
    for _ in 0..2 {
        search("jane.doe%40example.com", "application/json");
    }
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "search", "arguments": { "query": "webhook retries" } },
    });
    assert_eq!(mcp(&edge, "curl/8", &call).status, 200);
    let counted = numbers(&edge, &acme);
    let searches = &counted["searches"];
    assert_eq!(
        (&searches["asked"], &searches["empty"]),
        (&json!(8), &json!(7))
    );
    assert_eq!(
        searches["texts"],
        json!([{ "text": "webhook retries", "asked": 4 }])
    );
    assert_eq!(counted["left_out"]["searches"], 2);
}

#[test]
fn calls_of_mcp_clients_are_counted_by_the_name_that_they_give() {
    let (edge, acme) = edge(Setup::new());
    let begin = json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "claude-ai", "version": "1" },
        },
    });
    let call = |name: &str| {
        json!({
            "jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": { "name": name, "arguments": { "id": "guide" } },
        })
    };
    let mut private = begin.clone();
    private["params"]["clientInfo"]["name"] = "jane@example.com".into();
    mcp(&edge, "node", &begin);
    mcp(&edge, "node", &private);
    mcp(&edge, "claude-code/2.0", &call("fetch"));
    mcp(&edge, "node", &call("no_such_tool"));
    // The name of the search at the hosted service; the other one is not of this site.
    mcp(&edge, "node", &call("search_acme"));
    mcp(&edge, "node", &call("search_other"));
    let counted = numbers(&edge, &acme);
    let connect = find(&counted["tools"], "name", "connect");
    let readers = json!({ "claude-ai": 1, "other agents": 1 });
    assert_eq!(connect["readers"], readers);
    let fetch = find(&counted["tools"], "name", "fetch");
    assert_eq!(fetch["readers"], json!({ "Claude-Code": 1 }));
    let search = find(&counted["tools"], "name", "search");
    assert_eq!(search["readers"].as_object().unwrap().len(), 1);
    assert_eq!(
        search["readers"]
            .as_object()
            .unwrap()
            .values()
            .next()
            .unwrap(),
        1
    );
    assert_eq!(counted["tools"].as_array().unwrap().len(), 3, "{counted}");
}

#[test]
fn a_hostile_client_makes_no_list_longer_than_its_bound() {
    let (edge, acme) = edge(Setup::new());
    let mut connection = Connection::open(edge.http);
    for number in 0..1500 {
        // Letters only: a text with many digits is not kept.
        let word: String = format!("{number:04}")
            .bytes()
            .map(|digit| char::from(digit - b'0' + b'k'))
            .collect();
        for _ in 0..2 {
            let head = format!(
                "GET /_waypost/search?q=zz{word} HTTP/1.1\r\nHost: {SUBDOMAIN}\r\n\
                 User-Agent: {word}bot/1\r\nAccept: application/json\r\n\r\n"
            );
            connection.send(head.as_bytes());
            assert_eq!(connection.receive("GET").unwrap().status, 200);
        }
        let page = format!(
            "GET /missing-{word} HTTP/1.1\r\nHost: {SUBDOMAIN}\r\nUser-Agent: {word}\r\n\r\n"
        );
        connection.send(page.as_bytes());
        assert_eq!(connection.receive("GET").unwrap().status, 404);
    }
    let counted = call(&edge, &acme, "GET", "/v1/sites/acme/numbers?limit=1000").json();
    let texts = counted["searches"]["texts"].as_array().unwrap();
    assert_eq!(texts.len(), 200);
    assert_eq!(counted["searches"]["empty"], 3000);
    let kept: u64 = texts
        .iter()
        .map(|text| text["asked"].as_u64().unwrap())
        .sum();
    let left_out = counted["left_out"]["searches"].as_u64().unwrap();
    assert!(
        left_out >= 2000 && kept + left_out <= 3000,
        "{kept} {left_out}"
    );
    assert_eq!(counted["pages"], json!([]));
}

#[test]
fn only_the_owner_and_operators_read_numbers() {
    let setup = Setup::new();
    let other = key(&setup, "other", &[]);
    let operator = key(&setup, "ops", &["--role", "operator"]);
    let (edge, acme) = edge(setup);
    ask_as(&edge, BROWSER, "/guide");
    let path = "/v1/sites/acme/numbers";
    assert_eq!(call(&edge, &acme, "GET", path).status, 200);
    assert_eq!(call(&edge, &operator, "GET", path).status, 200);
    let unknown = call(&edge, &acme, "GET", "/v1/sites/nobody/numbers");
    let foreign = call(&edge, &other, "GET", path);
    assert_eq!((foreign.status, foreign.text()), (404, unknown.text()));
    assert_eq!(edge.get(API, path).status, 401);
    for (query, status, says) in [
        ("from=yesterday", 400, "2027-01-31"),
        ("limit=0", 400, "limit"),
        ("from=2026-02-01&to=2026-01-01", 422, "is after"),
        ("from=2026-01-01&to=2026-12-31", 422, "92 days"),
    ] {
        let answer = call(&edge, &acme, "GET", &format!("{path}?{query}"));
        assert_eq!(answer.status, status, "{query}");
        assert!(answer.text().contains(says), "{}", answer.text());
    }
    ask_as(&edge, BROWSER, "/");
    ask_as(&edge, BROWSER, "/");
    let first = call(&edge, &acme, "GET", &format!("{path}?limit=1")).json();
    assert_eq!(first["pages"][0]["path"], "/");
    let next = first["next"].as_str().unwrap();
    let second = call(&edge, &acme, "GET", next).json();
    assert_eq!(second["pages"][0]["path"], "/guide");
    assert_eq!(second["next"], Value::Null);
}

#[test]
fn numbers_survive_restarts_and_several_processes_add_up() {
    let (first, acme) = edge(Setup::new());
    let second = first.setup.beside().conf("listen", LISTEN).start();
    for (edge, times) in [(&first, 2), (&second, 3)] {
        for _ in 0..times {
            ask_as(edge, BROWSER, "/guide");
        }
    }
    // A kill loses no written counts; a process that stops writes the rest.
    assert_eq!(numbers(&first, &acme)["days"][0]["html"], 2);
    first.signal("KILL");
    let setup = first.ended();
    second.stop();
    let third = setup.start();
    let counted = numbers(&third, &acme);
    let guide = find(&counted["pages"], "path", "/guide");
    assert_eq!(guide["readers"], json!({ "browsers": 5 }));
    ask_as(&third, GPT, "/guide");
    third.signal("TERM");
    let setup = third.ended();
    let printed = setup.run(&["site", "numbers", "acme"]);
    let text = String::from_utf8(printed.stdout).unwrap();
    let row = text.lines().find(|line| line.contains("/guide"));
    let row: Vec<_> = row.unwrap().split_whitespace().collect();
    assert_eq!(row, ["/guide", "6", "0", "0", "0"], "{text}");
    let printed = setup.run(&["site", "numbers", "acme", "--format", "json"]);
    let counted: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let guide = find(&counted["pages"], "path", "/guide");
    assert_eq!(guide["readers"], json!({ "browsers": 5, "GPTBot": 1 }));
}

#[test]
fn the_operator_and_each_record_turn_counting_off() {
    let (off, acme) = edge(Setup::new().conf("numbers", "{ enabled: false }"));
    ask_as(&off, BROWSER, "/guide");
    assert_eq!(numbers(&off, &acme)["days"], json!([]));
    drop(off);

    let (edge, acme) = edge(Setup::new());
    ask_as(&edge, BROWSER, "/guide");
    edge.write_site("acme", "owner: acme\nnumbers: false");
    ask_as(&edge, BROWSER, "/guide");
    edge.write_site("acme", "owner: acme");
    ask_as(&edge, BROWSER, "/guide");
    assert_eq!(numbers(&edge, &acme)["days"][0]["html"], 2);
}

#[test]
fn numbers_go_with_their_site() {
    let (edge, acme) = edge(Setup::new());
    ask_as(&edge, BROWSER, "/guide");
    assert_eq!(numbers(&edge, &acme)["days"][0]["html"], 1);
    edge.remove_site("acme");
    edge.write_site("acme", "owner: acme");
    assert_eq!(numbers(&edge, &acme)["days"], json!([]));
}

const ASKING: &str = r#"{"name": "Acme", "feedback": {"thumbs": true},
    "navigation": {"pages": ["index", "guide"]}}"#;
const SAME: &str = "Sec-Fetch-Site: same-origin\r\n";

fn asking(setup: Setup) -> (Edge, String) {
    let (edge, acme) = edge(setup);
    let mut files = FILES;
    files[0].1 = ASKING;
    edge.publish("acme", &files);
    (edge, acme)
}

#[test]
fn a_vote_is_counted_with_a_script_and_without() {
    let (edge, acme) = asking(Setup::new());
    let page = edge.request("GET", SUBDOMAIN, "/guide", &[("Accept", "text/html")]);
    assert!(
        page.text().contains("action=\"_waypost/helpful\""),
        "{}",
        page.text()
    );
    let policy = page.field("content-security-policy").unwrap();
    assert!(policy.contains("form-action 'self'"), "{policy}");
    // A form: the browser is led back to the page, where the thanks are shown.
    let form = format!("{SAME}Accept: text/html,application/xhtml+xml\r\n");
    let answer = vote(&edge, &form, "page=guide&vote=yes");
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(answer.field("location"), Some("/guide#_thanked"));
    // A script, and a browser that does not say from where it asks.
    assert_eq!(vote(&edge, SAME, "page=guide&vote=no").status, 204);
    let origin = format!("Origin: http://{SUBDOMAIN}\r\n");
    assert_eq!(vote(&edge, &origin, "page=&vote=yes").status, 204);
    let counted = numbers(&edge, &acme);
    let guide = find(&counted["pages"], "path", "/guide");
    assert_eq!((&guide["yes"], &guide["no"]), (&json!(1), &json!(1)));
    assert_eq!(find(&counted["pages"], "path", "/")["yes"], 1);
    let day = &counted["days"][0];
    assert_eq!((&day["yes"], &day["no"]), (&json!(2), &json!(1)));
}

#[test]
fn one_client_cannot_forge_many_votes_for_a_page() {
    let (edge, acme) = asking(Setup::new());
    for nth in 0..20 {
        let answer = vote(&edge, SAME, "page=guide&vote=no");
        let expected = if nth < 5 { 204 } else { 429 };
        assert_eq!(answer.status, expected, "{nth}");
        assert_eq!(answer.field("retry-after").is_some(), expected == 429);
    }
    assert_eq!(vote(&edge, SAME, "page=&vote=yes").status, 204);
    let exceeded = "gateway_client_limits_exceeded_total{limit=\"votes\",mode=\"enforced\"}";
    assert!((edge.metric(exceeded) - 15.0).abs() < 0.5);
    let counted = numbers(&edge, &acme);
    assert_eq!(find(&counted["pages"], "path", "/guide")["no"], 5);
}

#[test]
fn a_vote_from_another_site_or_for_no_page_is_refused() {
    let (edge, acme) = asking(Setup::new());
    for fields in [
        "",
        "Sec-Fetch-Site: cross-site\r\n",
        "Sec-Fetch-Site: same-site\r\nOrigin: http://acme.waypost.localhost\r\n",
        "Origin: https://evil.test\r\n",
        "Origin: null\r\n",
        "Origin: http://\r\n",
    ] {
        let answer = vote(&edge, fields, "page=guide&vote=yes");
        assert_eq!(answer.status, 403, "{fields}");
    }
    let long = format!("page=guide&vote=yes&{}", "x".repeat(2048));
    for (content, status) in [
        ("page=missing&vote=yes", 422),
        ("page=..%2F..%2Fsecret&vote=yes", 422),
        ("page=guide&vote=maybe", 422),
        ("vote=yes", 422),
        ("", 422),
        (&*long, 413),
    ] {
        let answer = vote(&edge, SAME, content);
        assert_eq!(answer.status, status, "{content}");
    }
    let read = edge.get(SUBDOMAIN, "/_waypost/helpful");
    assert_eq!((read.status, read.field("allow")), (405, Some("POST")));
    assert_eq!(numbers(&edge, &acme)["days"], json!([]));
}

#[test]
fn a_site_that_does_not_ask_or_count_takes_no_votes() {
    let (edge, _) = edge(Setup::new());
    let page = edge.get(SUBDOMAIN, "/guide");
    assert!(!page.text().contains("_waypost/helpful"));
    let policy = page.field("content-security-policy").unwrap();
    assert!(policy.contains("form-action 'none'"), "{policy}");
    assert_eq!(vote(&edge, SAME, "page=guide&vote=yes").status, 404);
    drop(edge);
    let (edge, _) = asking(Setup::new().conf("numbers", "{ enabled: false }"));
    assert_eq!(vote(&edge, SAME, "page=guide&vote=yes").status, 404);
    drop(edge);
    let (edge, _) = asking(Setup::new());
    edge.write_site("acme", "owner: acme\nnumbers: false");
    assert_eq!(vote(&edge, SAME, "page=guide&vote=yes").status, 404);
}
