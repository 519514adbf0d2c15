//! The search of a site, over HTTP: for programs, for browsers without scripts, in a preview.

use serde_json::Value;

use crate::edge::{Edge, Setup};
use crate::presets::SUBDOMAIN;

const CONFIG: &str = r#"{"name": "Acme", "navigation": {"versions": [
    {"version": "v2", "pages": ["index", "limits", "secret", "hidden"]},
    {"version": "v1", "pages": ["v1/limits"]}]},
    "redirects": [{"source": "/old", "destination": "/limits"}]}"#;

const FILES: [(&str, &str); 6] = [
    ("docs.json", CONFIG),
    (
        "index.mdx",
        "---\ntitle: Welcome\n---\n\nRead about limits first.",
    ),
    (
        "limits.mdx",
        "---\ntitle: Limits\n---\n\nWhat is counted.\n\n## Tokens\n\nThe option `max_tokens` counts <b>every</b> token & word.",
    ),
    (
        "v1/limits.mdx",
        "---\ntitle: Limits\n---\n\nThe old quota, with `max_tokens` too.",
    ),
    (
        "secret.mdx",
        "---\ngroups: [staff]\n---\n\nThe password counts.",
    ),
    (
        "hidden.mdx",
        "---\nhidden: true\n---\n\nThe unlisted trick counts.",
    ),
];

fn edge() -> Edge {
    let edge = Setup::new().site("acme", "origin: embedded").start();
    edge.publish("acme", &FILES);
    edge
}

#[track_caller]
fn ask(edge: &Edge, query: &str) -> Value {
    let answer = edge.get(SUBDOMAIN, &format!("/_waypost/search?{query}"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

fn urls(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().unwrap().iter();
    results
        .map(|result| result["url"].as_str().unwrap())
        .collect()
}

#[test]
fn a_question_finds_pages_with_sections_and_excerpts() {
    let edge = edge();
    let answer = ask(&edge, "q=max_tokens");
    assert_eq!(urls(&answer), ["/limits"]);
    let result = &answer["results"][0];
    assert_eq!(
        (&result["title"], &result["version"]),
        (&"Limits".into(), &"v2".into())
    );
    let section = &result["sections"][0];
    assert_eq!(section["heading"], "Tokens");
    assert_eq!(section["url"], "/limits#tokens");
    let excerpt = section["excerpt"].as_array().unwrap();
    let marked = excerpt.iter().find(|piece| piece["match"] == true).unwrap();
    assert_eq!(marked["text"], "max_tokens");
    assert_eq!(answer["versions"], serde_json::json!(["v2", "v1"]));
    assert_eq!(urls(&ask(&edge, "q=max_tokens&version=v1")), ["/v1/limits"]);
    let elsewhere = ask(&edge, "q=quota");
    assert_eq!(
        (urls(&elsewhere), &elsewhere["elsewhere"]),
        (vec!["/v1/limits"], &true.into())
    );
}

#[test]
fn hidden_and_private_pages_are_never_found() {
    let edge = edge();
    for query in ["q=password", "q=unlisted+trick", "q=kubernetes+helm"] {
        let answer = ask(&edge, query);
        assert_eq!(urls(&answer), Vec::<&str>::new(), "{query}");
        assert_eq!(answer["total"], 0);
    }
    assert!(
        !urls(&ask(&edge, "q=counts"))
            .iter()
            .any(|url| url.contains("secret"))
    );
}

#[test]
fn an_answer_may_be_cached_a_minute_and_is_confirmed_by_its_tag() {
    let edge = edge();
    let path = "/_waypost/search?q=limits";
    let first = edge.get(SUBDOMAIN, path);
    let caching = first.field("cache-control").unwrap();
    assert!(caching.contains("max-age=60"), "{caching}");
    assert_eq!(first.field("access-control-allow-origin"), Some("*"));
    let tag = first.field("etag").unwrap().to_owned();
    let fields = [("if-none-match", tag.as_str())];
    assert_eq!(edge.request("GET", SUBDOMAIN, path, &fields).status, 304);
    let other = edge.request("GET", SUBDOMAIN, "/_waypost/search?q=tokens", &fields);
    assert_eq!(other.status, 200);
    assert_eq!(edge.request("HEAD", SUBDOMAIN, path, &[]).status, 200);
    assert_eq!(edge.request("POST", SUBDOMAIN, path, &[]).status, 405);
    let mut files = FILES;
    files[1].1 = "---\ntitle: Welcome\n---\n\nThere are no limits.";
    edge.publish("acme", &files);
    let after = edge.request("GET", SUBDOMAIN, path, &fields);
    assert_eq!(after.status, 200, "another release has other tags");
}

#[test]
fn a_question_that_cannot_be_answered_says_why() {
    let edge = edge();
    let long = "a".repeat(600);
    for (query, why) in [
        ("", "`q` is missing"),
        ("q=a&limit=1000", "`limit` is a number from 1 to 50"),
        ("q=a&cursor=x", "`cursor`"),
        (&format!("q={long}"), "longer than 512 bytes"),
    ] {
        let path = format!("/_waypost/search?{query}");
        let fields = [("accept", "application/json")];
        let answer = edge.request("GET", SUBDOMAIN, &path, &fields);
        assert_eq!(answer.status, 400, "{query}");
        let problem = answer.json();
        assert!(
            problem["detail"].as_str().unwrap().contains(why),
            "{query}: {problem}"
        );
    }
    // An unknown version counts as none, and the answer says so.
    let other = ask(&edge, "q=limits&version=v9");
    assert_eq!(
        (urls(&other)[0], &other["elsewhere"]),
        ("/limits", &true.into())
    );
    assert_eq!(ask(&edge, "q=limits&version=v2")["elsewhere"], false);
    // Bytes that are not text find nothing more.
    ask(&edge, "q=limits%00%ff&version=%F0");
}

#[test]
fn a_browser_without_scripts_gets_a_page_of_results() {
    let edge = edge();
    let browser = [("accept", "text/html,application/xhtml+xml,*/*;q=0.8")];
    for path in ["/_waypost/search", "/search"] {
        let path = format!("{path}?q=%22max_tokens%22");
        let page = edge.request("GET", SUBDOMAIN, &path, &browser);
        assert_eq!(page.status, 200);
        let text = page.text();
        for piece in [
            "value=\"&quot;max_tokens&quot;\"",
            "<a href=\"/limits\">Limits</a>",
            "<a href=\"/limits#tokens\">Tokens</a>",
            "<mark>max_tokens</mark> counts every <mark>token</mark> &amp; word",
        ] {
            assert!(text.contains(piece), "no {piece} in {text}");
        }
        let policy = page.field("content-security-policy").unwrap();
        assert!(policy.contains("form-action 'self'"), "{policy}");
    }
    let hostile = edge.request(
        "GET",
        SUBDOMAIN,
        "/search?q=%3Cscript%3Ealert%3C/script%3E",
        &browser,
    );
    assert!(
        !hostile.text().contains("<script>alert"),
        "{}",
        hostile.text()
    );
    let nothing = edge.request("GET", SUBDOMAIN, "/search?q=zzzz", &browser);
    assert!(nothing.text().contains("<p>Nothing found"));
    let form = edge.request("GET", SUBDOMAIN, "/search", &browser);
    assert!(form.text().contains("<form role=search") && !form.text().contains("<p>Nothing found"));
    assert_eq!(edge.get(SUBDOMAIN, "/search?q=limits").json()["total"], 2);
    // A link checker follows the link of each page, and gets the form.
    assert_eq!(edge.get(SUBDOMAIN, "/_waypost/search").status, 200);
}

#[test]
fn a_page_of_the_site_at_search_is_served() {
    let edge = Setup::new().site("acme", "origin: embedded").start();
    let config = r#"{"name": "Acme", "navigation": {"pages": ["search", "other"]}}"#;
    let files = [
        ("docs.json", config),
        ("search.mdx", "Our own page."),
        ("other.mdx", "Whales."),
    ];
    edge.publish("acme", &files);
    let page = edge.get(SUBDOMAIN, "/search?q=whales");
    assert!(page.text().contains("Our own page."), "{}", page.text());
    assert_eq!(urls(&ask(&edge, "q=whales")), ["/other"]);
}

#[test]
fn results_are_read_in_pages() {
    let edge = Setup::new().site("acme", "origin: embedded").start();
    let names: Vec<String> = (0..12).map(|n| format!("page-{n}")).collect();
    let config = serde_json::json!({"name": "Acme", "navigation": {"pages": names}}).to_string();
    let texts: Vec<(String, String)> = names
        .iter()
        .map(|name| (format!("{name}.mdx"), "Whales sing.".to_owned()))
        .collect();
    let texts = texts
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()));
    let files: Vec<_> = [("docs.json", config.as_str())]
        .into_iter()
        .chain(texts)
        .collect();
    edge.publish("acme", &files);
    let mut seen = Vec::new();
    let mut query = "q=whales&limit=5".to_owned();
    loop {
        let answer = ask(&edge, &query);
        seen.extend(urls(&answer).into_iter().map(str::to_owned));
        let Some(cursor) = answer["cursor"].as_str() else {
            break;
        };
        query = format!("q=whales&limit=5&cursor={cursor}");
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 12);
}

#[test]
fn authors_choose_which_pages_are_found_and_which_come_first() {
    let edge = Setup::new().site("acme", "origin: embedded").start();
    let config = r#"{"name": "Acme", "navigation": {"groups": [
        {"group": "Guides", "pages": ["index", "quiet", "heavy", "other"]},
        {"group": "Drafts", "hidden": true, "searchable": true, "pages": ["draft", "secret"]},
        {"group": "Old", "boost": 0.1, "pages": ["old", "kept"]}]}}"#;
    let page = "---\ntitle: Quotas\nKEY\n---\n\nEach key has quotas of its own.";
    let with = |key: &str| page.replace("KEY", key);
    let files = [
        ("docs.json", config.to_owned()),
        ("index.mdx", "Welcome.".to_owned()),
        ("quiet.mdx", with("searchable: false")),
        ("heavy.mdx", with("boost: 4")),
        ("other.mdx", with("mode: wide")),
        ("draft.mdx", with("boost: 2")),
        ("secret.mdx", with("groups: [staff]\nsearchable: true")),
        ("old.mdx", with("mode: wide")),
        ("kept.mdx", with("boost: 3")),
    ];
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (*path, text.as_str()))
        .collect();
    edge.publish("acme", &files);
    let answer = ask(&edge, "q=quotas");
    assert_eq!(
        urls(&answer),
        ["/heavy", "/kept", "/draft", "/other", "/old"]
    );
    // A page that search does not find is served and listed as before.
    assert_eq!(edge.get(SUBDOMAIN, "/quiet").status, 200);
    let listed = edge.get(SUBDOMAIN, "/llms.txt").text().to_owned();
    assert!(listed.contains("/quiet.md") && !listed.contains("/draft.md"));
}

/// Asserts that an answer has the members of its schema, and no others.
#[track_caller]
fn is_described(value: &Value, schema: &Value, place: &str) {
    match value {
        Value::Object(members) => {
            let properties = schema["properties"].as_object();
            let properties = properties.unwrap_or_else(|| panic!("{place}: {schema}"));
            for (name, value) in members {
                let schema = properties.get(name);
                let schema = schema.unwrap_or_else(|| panic!("{place}: {name} is not described"));
                is_described(value, schema, &format!("{place}.{name}"));
            }
            for name in schema["required"].as_array().unwrap() {
                assert!(
                    members.contains_key(name.as_str().unwrap()),
                    "{place}: no {name}"
                );
            }
        }
        Value::Array(items) => {
            assert_eq!(schema["type"], "array", "{place}");
            for item in items {
                is_described(item, &schema["items"], place);
            }
        }
        _ => {
            let types = match &schema["type"] {
                Value::Array(types) => types.clone(),
                one => vec![one.clone()],
            };
            let is_type = |name: &Value| match name.as_str().unwrap() {
                "string" => value.is_string(),
                "integer" => value.is_u64(),
                "number" => value.is_number(),
                "boolean" => value.is_boolean(),
                "null" => value.is_null(),
                _ => false,
            };
            assert!(types.iter().any(is_type), "{place}: {value} {schema}");
        }
    }
}

#[test]
fn the_description_of_the_api_has_every_member_of_an_answer() {
    let edge = edge();
    let described = edge.get(SUBDOMAIN, "/_waypost/openapi.json").json();
    let operation = &described["paths"]["/_waypost/search"]["get"];
    let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    for query in ["q=max_tokens", "q=quota", "q=counts&limit=1", "q=xylophone"] {
        is_described(&ask(&edge, query), schema, query);
    }
    let names: Vec<&str> = operation["parameters"]
        .as_array()
        .unwrap()
        .iter()
        .map(|parameter| parameter["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "q", "limit", "cursor", "version", "language", "typing", "settled"
        ]
    );
    let pages = edge.get(SUBDOMAIN, "/_waypost/pages").json();
    let operation = &described["paths"]["/_waypost/pages"]["get"];
    let schema = &operation["responses"]["200"]["content"]["application/json"]["schema"];
    is_described(&pages, schema, "pages");
}
