//! Tests of the calls for sites, domains and the audit log.

mod responses;

use serde_json::json;

use super::*;

/// A call with content and conditions.
#[derive(Default)]
struct Call<'c> {
    content_type: Option<&'c str>,
    content: String,
    if_match: Option<String>,
    if_none_match: Option<&'c str>,
    query: Option<&'c str>,
}

impl Node {
    /// Returns a node on which owners may add domains, and make many changes.
    fn for_sites() -> Self {
        let config = Config {
            rate: Rate {
                calls: 25,
                ..Rate::default()
            },
            owners_add_domains: true,
            ..Config::default()
        };
        Self::with(config, Policy::default())
    }

    async fn call(&self, method: &str, path: &str, key: &Secret, call: Call<'_>) -> Response {
        let authorization = format!("Bearer {}", key.reveal());
        let request = Request {
            authorization: vec![authorization.as_bytes()],
            content_type: call.content_type.map(str::as_bytes),
            content: call.content.into(),
            if_match: call.if_match.iter().map(String::as_bytes).collect(),
            if_none_match: call
                .if_none_match
                .iter()
                .map(|tag| tag.as_bytes())
                .collect(),
            query: call.query,
            ..request(method, path)
        };
        self.api.handle(&request).await
    }

    /// Reads a path.
    async fn read(&self, path: &str, key: &Secret) -> Response {
        let (path, query) = path
            .split_once('?')
            .map_or((path, None), |(p, q)| (p, Some(q)));
        let call = Call {
            query,
            ..Call::default()
        };
        self.call("GET", path, key, call).await
    }

    /// Creates or replaces a site.
    async fn put(&self, project: &str, key: &Secret, record: Value) -> Response {
        let path = format!("/v1/sites/{project}");
        self.call("PUT", &path, key, content(&record, self.tag(project).await))
            .await
    }

    /// Creates a site of an owner.
    async fn create(&self, project: &str, owner: &str, domains: &[&str]) {
        let record = json!({ "owner": owner, "subdomain": project, "domains": domains });
        let response = self.put(project, &self.operator, record).await;
        assert_eq!(response.status, 201, "{}", json(&response));
    }

    async fn patch(&self, project: &str, key: &Secret, patch: Value) -> Response {
        let call = Call {
            content_type: Some("application/merge-patch+json"),
            ..content(&patch, self.tag(project).await)
        };
        let path = format!("/v1/sites/{project}");
        self.call("PATCH", &path, key, call).await
    }

    async fn domain(&self, method: &str, project: &str, host: &str, key: &Secret) -> Response {
        let path = format!("/v1/sites/{project}/domains/{host}");
        self.call(method, &path, key, Call::default()).await
    }

    /// Calls a domain, and asserts the status of the response.
    async fn domain_is(&self, status: u16, method: &str, project: &str, host: &str, key: &Secret) {
        let response = self.domain(method, project, host, key).await;
        assert_eq!(response.status, status, "{method} {host} of {project}");
    }

    /// Returns the entity tag of a site, if it exists.
    async fn tag(&self, project: &str) -> Option<String> {
        let response = self
            .read(&format!("/v1/sites/{project}"), &self.operator)
            .await;
        tag_of(&response)
    }

    /// Writes a file of site records, and reads it.
    fn write_file(&self, name: &str, text: &str) -> Vec<String> {
        std::fs::write(self.directory.path().join("sites").join(name), text).unwrap();
        let changes = self.files.lock().unwrap().scan_files(Removals::Accepted);
        let diagnostics = changes.unwrap().diagnostics;
        diagnostics.iter().map(ToString::to_string).collect()
    }
}

fn content(value: &Value, if_match: Option<String>) -> Call<'static> {
    Call {
        content_type: Some("application/json"),
        content: value.to_string(),
        if_match,
        ..Call::default()
    }
}

fn tag_of(response: &Response) -> Option<String> {
    let mut text = Vec::new();
    response.etag.as_ref()?.write(&mut text);
    Some(String::from_utf8(text).unwrap())
}

#[track_caller]
fn detail(response: &Response, status: u16) -> String {
    let body = json(response);
    assert_eq!(response.status, status, "{body}");
    body["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_site_is_created_read_replaced_changed_and_removed() {
    let node = Node::for_sites();
    let record = json!({ "owner": "acme", "subdomain": "one", "domains": ["Docs.Acme.com."] });
    let created = node.put("one", &node.operator, record).await;
    assert_eq!(created.status, 201, "{}", json(&created));
    assert_eq!(created.location.as_deref(), Some(&b"/v1/sites/one"[..]));
    let body = json(&created);
    assert_eq!(body["project"], "one");
    assert_eq!(body["kept_in"], "api");
    assert_eq!(body["domains"], json!(["docs.acme.com"]));
    let read = node.read("/v1/sites/one", &node.acme).await;
    assert_eq!((json(&read), tag_of(&read)), (body, tag_of(&created)));

    let patched = node
        .patch(
            "one",
            &node.editor,
            json!({ "visibility": "private", "domains": null }),
        )
        .await;
    let body = json(&patched);
    assert_eq!(body["visibility"], "private", "{body}");
    assert!(body["domains"].is_null() && tag_of(&patched) != tag_of(&created));

    // A record that was read can be written back.
    let replaced = node.put("one", &node.editor, body.clone()).await;
    assert_eq!((replaced.status, json(&replaced)), (200, body));

    let call = Call {
        if_match: node.tag("one").await,
        ..Call::default()
    };
    let removed = node
        .call("DELETE", "/v1/sites/one", &node.operator, call)
        .await;
    assert_eq!(removed.status, 204);
    detail(&node.read("/v1/sites/one", &node.operator).await, 404);
}

#[tokio::test]
async fn a6_a_change_names_the_record_that_it_changes() {
    let node = Node::for_sites();
    node.create("one", "acme", &[]).await;
    let old = node.tag("one").await;
    let record = |path: &str| json!({ "owner": "acme", "subdomain": "one", "base_path": path });
    let send = async |method: &str, call| {
        let response = node
            .call(method, "/v1/sites/one", &node.operator, call)
            .await;
        response.status
    };
    assert_eq!(send("PUT", content(&record("/a"), None)).await, 428);
    assert_eq!(send("DELETE", Call::default()).await, 428);
    assert_eq!(send("PUT", content(&record("/a"), old.clone())).await, 200);
    // A second writer, which has read the record before the first one wrote it.
    assert_eq!(send("PUT", content(&record("/b"), old.clone())).await, 412);
    let weak = old.map(|tag| format!("W/{tag}"));
    assert_eq!(send("PUT", content(&record("/b"), weak)).await, 412);
    let create_only = Call {
        if_none_match: Some("*"),
        ..content(&record("/b"), None)
    };
    assert_eq!(send("PUT", create_only).await, 412);
    let anything = content(&record("/c"), Some("*".to_owned()));
    assert_eq!(send("PUT", anything).await, 200);
    let missing = content(&record("/c"), Some("*".to_owned()));
    let response = node
        .call("PUT", "/v1/sites/two", &node.operator, missing)
        .await;
    assert_eq!(response.status, 412);
    let unchanged = Call {
        if_none_match: Some("*"),
        ..Call::default()
    };
    assert_eq!(send("GET", unchanged).await, 304);
}

#[tokio::test]
async fn all_mistakes_of_a_record_are_in_one_response() {
    let node = Node::for_sites();
    let record = json!({
        "project": "two", "subdomain": "-x-", "domains": ["1.2.3.4", "api.waypost.localhost"],
        "base_path": "docs", "visibilty": "public", "origin": { "url": "http://127.0.0.1" },
    });
    let response = node.put("one", &node.operator, record).await;
    let text = detail(&response, 422);
    for part in [
        "`project` cannot be changed: it is \"one\"",
        "`subdomain` is \"-x-\"",
        "host is an IP address",
        "the host of the admin API",
        "`base_path`",
        "did you mean `visibility`?",
        "127.0.0.1 is not a public address",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let errors = json(&response)["errors"].as_array().unwrap().len();
    assert_eq!(errors, 7, "{text}");

    let record = json!({ "subdomain": "one", "domains": ["localhost", "docs.acme.com"] });
    let text = detail(&node.put("one", &node.operator, record).await, 422);
    assert_eq!(text, "`domains` contains \"localhost\", which has no dot");

    let call = |text: &str| Call {
        content_type: Some("application/json; charset=utf-8"),
        content: text.to_owned(),
        ..Call::default()
    };
    let send = async |text: &str| {
        node.call("PUT", "/v1/sites/one", &node.operator, call(text))
            .await
    };
    let text = detail(
        &send("{\n \"subdomain\": \"a\",\n \"subdomain\": \"b\"}").await,
        400,
    );
    assert!(text.contains("line 3, column 2"), "{text}");
    detail(&send("[]").await, 400);
    detail(&send("").await, 400);
    let wrong_type = Call {
        content_type: Some("text/plain"),
        ..call("{}")
    };
    let response = node
        .call("PUT", "/v1/sites/one", &node.operator, wrong_type)
        .await;
    detail(&response, 415);
}

#[tokio::test]
async fn only_an_operator_creates_removes_and_renames_sites() {
    let node = Node::for_sites();
    node.create("one", "acme", &[]).await;
    node.create("foreign", "globex", &[]).await;
    let record = json!({ "owner": "acme", "subdomain": "one" });
    for key in [&node.editor, &node.acme] {
        // T5: a caller sees no site of another owner.
        let absent = detail(&node.put("absent", key, record.clone()).await, 403);
        let foreign = detail(&node.put("foreign", key, record.clone()).await, 403);
        assert_eq!(absent, foreign);
    }
    for project in ["absent", "foreign"] {
        detail(&node.patch(project, &node.editor, json!({})).await, 404);
        detail(
            &node
                .domain("PUT", project, "a.acme.com", &node.editor)
                .await,
            404,
        );
        detail(
            &node
                .read(&format!("/v1/sites/{project}"), &node.editor)
                .await,
            404,
        );
    }
    for (patch, status) in [
        (json!({ "owner": "globex" }), 403),
        (json!({ "subdomain": "other" }), 403),
        (json!({ "base_path": "/docs" }), 200),
    ] {
        let response = node.patch("one", &node.editor, patch.clone()).await;
        assert_eq!(response.status, status, "{patch}: {}", json(&response));
    }
    let call = Call {
        if_match: node.tag("one").await,
        ..Call::default()
    };
    let removed = node
        .call("DELETE", "/v1/sites/one", &node.editor, call)
        .await;
    detail(&removed, 403);
    // A key with the role `deploy` cannot change sites.
    detail(&node.patch("one", &node.acme, json!({})).await, 403);
    // A key for one project does not cover another one.
    detail(&node.patch("one", &node.scoped, json!({})).await, 403);
    let response = node
        .patch("foreign", &node.operator, json!({ "owner": "acme" }))
        .await;
    assert_eq!(response.status, 200);
}

#[tokio::test]
async fn t2_a_host_belongs_to_one_site() {
    let node = Node::for_sites();
    node.write_file(
        "f.yaml",
        "project: filed\nsubdomain: filed\ndomains: [docs.filed.com]\n",
    );
    node.create("one", "acme", &["docs.acme.com"]).await;
    let record =
        json!({ "subdomain": "filed", "domains": ["docs.acme.com", "docs.filed.com", "new.com"] });
    let response = node.put("two", &node.operator, record.clone()).await;
    let text = detail(&response, 409);
    for part in [
        "docs.acme.com is a host of the site one already, which is kept in the API",
        "docs.filed.com is a host of the site filed already, which is kept in the file f.yaml",
        "filed.waypost.localhost is a host of the site filed already",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("new.com"), "{text}");
    // The message does not name the site of another owner.
    node.create("three", "acme", &[]).await;
    let text = detail(
        &node
            .domain("PUT", "three", "docs.filed.com", &node.editor)
            .await,
        409,
    );
    assert_eq!(text, "docs.filed.com is a host of another site already");
    // A host that a site gives up is free.
    node.domain_is(204, "DELETE", "one", "docs.acme.com", &node.operator)
        .await;
    node.domain_is(201, "PUT", "three", "docs.acme.com", &node.editor)
        .await;
    // A file that names a host of the store is rejected.
    let found = node.write_file(
        "g.yaml",
        "project: g\nsubdomain: g\ndomains: [docs.acme.com]\n",
    );
    assert!(
        found[0].contains("docs.acme.com is a host of project three already (the API)"),
        "{found:?}"
    );
}

#[tokio::test]
async fn t1_a_site_of_a_file_is_changed_in_the_file() {
    let node = Node::for_sites();
    node.create("one", "acme", &["docs.acme.com"]).await;
    let found = node.write_file("f.yaml", "project: one\nowner: acme\nsubdomain: filed\n");
    assert!(
        found[0].contains("project one is defined in f.yaml:1 already"),
        "{found:?}"
    );
    let read = json(&node.read("/v1/sites/one", &node.editor).await);
    assert_eq!(
        (&read["kept_in"], &read["file"]),
        (&"file".into(), &"f.yaml".into())
    );
    assert_eq!(read["subdomain"], "filed");
    for text in [
        detail(
            &node
                .patch("one", &node.operator, json!({ "lenient": true }))
                .await,
            409,
        ),
        detail(
            &node.domain("PUT", "one", "a.acme.com", &node.editor).await,
            409,
        ),
    ] {
        assert_eq!(
            text,
            "the site one is kept in the file f.yaml of the operator: change it there"
        );
    }
    // Without the file, the record of the store counts again.
    std::fs::remove_file(node.directory.path().join("sites/f.yaml")).unwrap();
    let changes = node.files.lock().unwrap().scan_files(Removals::Accepted);
    assert!(changes.unwrap().diagnostics.is_empty());
    let read = json(&node.read("/v1/sites/one", &node.editor).await);
    assert_eq!(
        (&read["kept_in"], &read["subdomain"]),
        (&"api".into(), &"one".into())
    );
}

#[tokio::test]
async fn sites_and_domains_are_listed_in_pages() {
    let node = Node::for_sites();
    for project in ["c", "a", "b"] {
        node.create(project, "acme", &[]).await;
    }
    node.create("z", "globex", &[]).await;
    let listed = async |mut path: String, key: &Secret, list: &str, id: &str| {
        let (mut pages, mut found) = (0, Vec::new());
        loop {
            let page = json(&node.read(&path, key).await);
            pages += 1;
            let items = page[list].as_array().unwrap_or_else(|| panic!("{page}"));
            found.extend(
                items
                    .iter()
                    .map(|item| item[id].as_str().unwrap().to_owned()),
            );
            match page["next"].as_str() {
                Some(next) => next.clone_into(&mut path),
                None => return (pages, found.join(" ")),
            }
        }
    };
    let sites = async |path: &str, key| listed(path.to_owned(), key, "sites", "project").await;
    assert_eq!(
        sites("/v1/sites", &node.operator).await,
        (1, "a b c z".into())
    );
    assert_eq!(
        sites("/v1/sites?limit=2", &node.acme).await,
        (2, "a b c".into())
    );
    assert_eq!(
        sites("/v1/sites?owner=globex", &node.operator).await,
        (1, "z".into())
    );
    assert_eq!(
        sites("/v1/sites?owner=globex", &node.acme).await,
        (1, String::new())
    );
    let domains = json!(["a.acme.com", "b.acme.com", "c.acme.com"]);
    node.patch("a", &node.editor, json!({ "domains": domains }))
        .await;
    let path = "/v1/sites/a/domains?limit=2".to_owned();
    let found = listed(path, &node.acme, "domains", "host").await;
    assert_eq!(found, (2, "a.acme.com b.acme.com c.acme.com".into()));
    for query in [
        "limit=0",
        "limit=x",
        "limit=1001",
        "limit=1&limit=2",
        "after=%ff",
    ] {
        detail(
            &node.read(&format!("/v1/sites?{query}"), &node.acme).await,
            400,
        );
    }
}

#[tokio::test]
async fn t4_each_change_has_one_entry_in_the_audit_log() {
    let node = Node::for_sites();
    node.create("one", "acme", &[]).await;
    node.create("two", "globex", &[]).await;
    node.domain_is(201, "PUT", "one", "docs.acme.com", &node.editor)
        .await;
    // These calls change nothing.
    node.domain_is(200, "PUT", "one", "docs.acme.com", &node.editor)
        .await;
    detail(
        &node
            .patch("one", &node.editor, json!({ "base_path": "x" }))
            .await,
        422,
    );
    node.domain_is(204, "DELETE", "one", "docs.acme.com", &node.editor)
        .await;
    detail(
        &node
            .domain("DELETE", "one", "docs.acme.com", &node.editor)
            .await,
        404,
    );

    let page = json(&node.read("/v1/audit", &node.operator).await);
    let entries = page["entries"].as_array().unwrap();
    let what: Vec<_> = entries
        .iter()
        .map(|entry| format!("{} {} {}", entry["id"], entry["what"], entry["project"]))
        .collect();
    assert_eq!(
        what,
        [
            "4 \"domain.remove\" \"one\"",
            "3 \"domain.add\" \"one\"",
            "2 \"site.create\" \"two\"",
            "1 \"site.create\" \"one\"",
        ]
    );
    let added = &entries[1];
    assert_eq!(added["host"], "docs.acme.com");
    assert_eq!(added["at"], "2027-01-15T08:00:00.000Z");
    assert!(added["before"]["domains"].as_array().unwrap().is_empty());
    assert_eq!(added["after"]["domains"], json!(["docs.acme.com"]));
    assert_eq!(added["who"]["key"].as_str().unwrap().len(), 16);
    assert_ne!(added["who"]["key"], entries[2]["who"]["key"]);
    // An owner sees the changes of its own sites, page by page.
    let page = json(&node.read("/v1/audit?limit=2", &node.acme).await);
    let next = page["next"].as_str().unwrap().to_owned();
    let ids = |page: &Value| {
        let entries = page["entries"].as_array().unwrap().clone();
        entries
            .iter()
            .map(|entry| entry["id"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(&page), [4, 3]);
    assert_eq!(ids(&json(&node.read(&next, &node.acme).await)), [1]);
    let page = json(&node.read("/v1/audit?project=two", &node.operator).await);
    assert_eq!(ids(&page), [2]);
    // A key for one project sees its changes, behind newer ones of other projects.
    for project in ["docs", "three", "four"] {
        node.create(project, "acme", &[]).await;
    }
    let page = json(&node.read("/v1/audit?limit=1", &node.scoped).await);
    assert_eq!((ids(&page), &page["next"]), (vec![5], &Value::Null));
}

#[tokio::test]
async fn an_owner_makes_a_limited_number_of_changes() {
    let node = Node::for_sites();
    node.create("one", "acme", &[]).await;
    for _ in 0..25 {
        let response = node
            .domain("PUT", "one", "docs.acme.com", &node.editor)
            .await;
        assert!(matches!(response.status, 200 | 201));
    }
    let response = node
        .domain("PUT", "one", "docs.acme.com", &node.editor)
        .await;
    detail(&response, 429);
    assert_eq!(field(&response, "retry-after"), "10");
    node.domain_is(200, "GET", "one", "docs.acme.com", &node.editor)
        .await;
}

#[tokio::test]
async fn an_owner_reads_the_audit_log_a_limited_number_of_times() {
    let node = Node::for_sites();
    node.create("one", "acme", &[]).await;
    for _ in 0..25 {
        assert_eq!(node.read("/v1/audit", &node.acme).await.status, 200);
    }
    let response = node.read("/v1/audit", &node.acme).await;
    detail(&response, 429);
    assert_eq!(field(&response, "retry-after"), "10");
    // Its changes count on their own, and the operator is not limited.
    node.domain_is(201, "PUT", "one", "docs.acme.com", &node.editor)
        .await;
    for _ in 0..50 {
        assert_eq!(node.read("/v1/audit", &node.operator).await.status, 200);
    }
}

#[tokio::test]
async fn t6_owners_add_domains_only_if_the_operator_lets_them() {
    let node = Node::new();
    node.create("one", "acme", &["docs.acme.com"]).await;
    let add = async |node: &Node, host: &str| {
        let response = node.domain("PUT", "one", host, &node.editor).await;
        (response.status, json(&response)["detail"].to_string())
    };
    let (status, detail) = add(&node, "help.acme.com").await;
    assert_eq!(status, 403, "{detail}");
    assert!(detail.contains("only an operator adds domains"), "{detail}");
    let patch = json!({ "domains": ["docs.acme.com", "help.acme.com"] });
    assert_eq!(node.patch("one", &node.editor, patch).await.status, 403);
    // Other keys may be changed, and a domain given up.
    let patch = json!({ "base_path": "/docs", "domains": [] });
    assert_eq!(node.patch("one", &node.editor, patch).await.status, 200);

    // A host below another owner's domain is never an owner's.
    let node = Node::for_sites();
    node.create("one", "acme", &["docs.acme.com"]).await;
    node.create("two", "globex", &["globex.com"]).await;
    let (status, detail) = add(&node, "docs.globex.com").await;
    assert_eq!(status, 409, "{detail}");
    assert!(
        detail.contains("docs.globex.com is below a domain of another owner"),
        "{detail}"
    );
    assert_eq!(add(&node, "old.docs.acme.com").await.0, 201);
    let by_operator = node
        .domain("PUT", "one", "docs.globex.com", &node.operator)
        .await;
    assert_eq!(by_operator.status, 201);
}

#[tokio::test]
async fn a_call_keeps_its_place_as_long_as_it_has_a_thread() {
    let node = Node::new();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    let call = node.api.ask(move |_sites| {
        let _dropped = ended.recv();
        Ok(())
    });
    // The client waits no longer.
    assert!(futures_util::FutureExt::now_or_never(call).is_none());
    let waiting = &node.api.waiting;
    assert_eq!(waiting.available_permits(), WAITING_MAX - 1);
    drop(end);
    let all = u32::try_from(WAITING_MAX).unwrap();
    assert!(waiting.acquire_many(all).await.is_ok());
}
