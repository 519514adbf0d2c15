//! Tests of the responses of the API.

mod description;
mod sites;

use std::collections::BTreeSet;
use std::sync::Mutex;

use serde_json::Value;

use super::super::keys::{Directory, Keys, NewKey, Role, Secret};
use super::super::queue::{Backend, Owners, Policy, Sqlite};
use super::super::update::WorkerId;
use super::*;
use crate::deploy::sites::reading_again;
use crate::site::{BasePath, Origin, PrivateHosts, Repository, Site, Visibility};
use crate::store::Store;
use crate::store::sites::{Removals, Sites};

/// A node's API over an empty queue, two owners and their keys.
struct Node {
    api: Api,
    queue: Arc<Queue>,
    files: Arc<Mutex<Sites>>,
    /// A key of an operator.
    operator: Secret,
    /// A key of the owner `acme` that may change its sites.
    editor: Secret,
    acme: Secret,
    scoped: Secret,
    globex: Secret,
    directory: tempfile::TempDir,
}

const NOON: u64 = 1_800_000_000;

fn site(project: &str, owner: &str) -> Site {
    Site {
        project: ProjectId::parse(project).unwrap(),
        owner: owner.into(),
        subdomain: project.into(),
        domains: Vec::new(),
        base_path: BasePath::default(),
        visibility: Visibility::Public,
        repository: Some(Repository {
            url: "https://git.example/docs.git".into(),
            branch: "main".into(),
            directory: "".into(),
        }),
        lenient: false,
        allow_empty: false,
        origin: Origin::Embedded,
        mcp: true,
        numbers: true,
        hsts: None,
        kept_in: crate::site::KeptIn::Api,
        not_ordered: Box::default(),
    }
}

impl Node {
    fn new() -> Self {
        Self::with(Config::default(), Policy::default())
    }

    fn with(config: Config, policy: Policy) -> Self {
        // In memory if possible: a store begins with a thousand directories.
        let memory = std::path::Path::new("/dev/shm");
        let directory = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        let directory = directory.unwrap();
        let key_files = Directory::open(&directory.path().join("keys")).unwrap();
        let key = |owner: &str, projects: &[ProjectId], role: Role| {
            let new = NewKey {
                owner,
                projects,
                role,
                ..NewKey::default()
            };
            let keys = Keys::Directory(key_files.clone());
            let made = keys.create("waypost", &new, Timestamp::default());
            made.unwrap().1
        };
        let docs = ProjectId::parse("docs").unwrap();
        let deploy = |owner: &str| key(owner, &[], Role::Deploy);
        let (acme, globex) = (deploy("acme"), deploy("globex"));
        let scoped = key("acme", &[docs], Role::Owner);
        let operator = key("platform", &[], Role::Operator);
        let editor = key("acme", &[], Role::Owner);
        let clock = Clock::fixed_at(NOON);
        let sqlite = Sqlite::open(&directory.path().join("updates.sqlite")).unwrap();
        let queue = Arc::new(Queue::new(Backend::Sqlite(sqlite), policy));
        let sites = [
            site("docs", "acme"),
            site("blog", "acme"),
            site("help", "globex"),
            Site {
                repository: None,
                ..site("bare", "acme")
            },
        ]
        .map(Arc::new);
        let find_site: FindSite = Arc::new(move |project| {
            sites
                .iter()
                .find(|site| site.project == *project)
                .map(Arc::clone)
        });
        let keys = Arc::new(KeyCache::load(key_files, "waypost", clock).unwrap());
        let service = Service::default();
        std::fs::create_dir(directory.path().join("sites")).unwrap();
        let store = Store::open_directory(directory.path().join("store")).unwrap();
        let sites = Sites::new(
            service.clone(),
            PrivateHosts::default(),
            directory.path().join("sites"),
            clock,
        );
        let store = Arc::new(store);
        let mut sites = sites.with_store(Arc::clone(&store));
        let _changes = sites.scan(Removals::Guarded).unwrap();
        let sites = Arc::new(Mutex::new(sites));
        let changed = reading_again(&sites);
        let site_admin = SiteAdmin::new(
            store,
            service.clone(),
            PrivateHosts::default(),
            Arc::clone(&sites) as _,
            changed,
            clock,
        )
        .owners_add_domains(config.owners_add_domains);
        Self {
            files: sites,
            operator,
            editor,
            api: Api::new(
                config,
                &service,
                keys,
                Arc::clone(&queue),
                find_site,
                Arc::new(site_admin),
                Metrics::new(&telemetry::Metrics::new()),
                clock,
            ),
            queue,
            acme,
            scoped,
            globex,
            directory,
        }
    }

    /// Makes the queue unreachable, if none of its connections was used for reading yet.
    fn break_queue(&self) {
        let path = self.directory.path().join("updates.sqlite");
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(path).unwrap();
    }

    /// Sends a request with a key, and with these idempotency keys.
    async fn send(&self, method: &str, path: &str, key: &Secret, once: &[&str]) -> Response {
        let authorization = format!("Bearer {}", key.reveal());
        let request = Request {
            authorization: vec![authorization.as_bytes()],
            idempotency_key: once.iter().map(|key| key.as_bytes()).collect(),
            ..request(method, path)
        };
        self.api.handle(&request).await
    }

    async fn trigger(&self, project: &str) -> Response {
        let path = format!("/v1/project/update/{project}");
        self.send("POST", &path, &self.acme, &[]).await
    }
}

fn request<'r>(method: &'r str, path: &'r str) -> Request<'r> {
    Request {
        method,
        path,
        authorization: Vec::new(),
        idempotency_key: Vec::new(),
        query: None,
        content_type: None,
        if_match: Vec::new(),
        if_none_match: Vec::new(),
        content: Bytes::new(),
        is_too_large: false,
        is_confidential: true,
        client: None,
    }
}

#[track_caller]
fn json(response: &Response) -> Value {
    serde_json::from_slice(response.body.memory().unwrap()).unwrap()
}

#[track_caller]
fn field<'a>(response: &'a Response, name: &str) -> &'a str {
    let found = response
        .more
        .iter()
        .find(|(known, _)| known.as_str() == name);
    found
        .unwrap_or_else(|| panic!("no {name}"))
        .1
        .to_str()
        .unwrap()
}

#[tokio::test]
async fn the_response_to_a_trigger_has_the_id_of_its_record() {
    let node = Node::new();
    let response = node.trigger("docs").await;
    assert_eq!(response.status, 202);
    let id = json(&response)["statusId"].as_str().unwrap().to_owned();
    assert_eq!(
        response.location.as_deref(),
        Some(format!("/v1/project/update-status/{id}").as_bytes())
    );

    let path = format!("/v1/project/update-status/{id}");
    let response = node.send("GET", &path, &node.acme, &[]).await;
    assert_eq!(response.status, 200);
    let record = json(&response);
    assert_eq!(record["_id"], id.as_str());
    assert_eq!(record["status"], "queued");
    assert_eq!(record["createdAt"], "2027-01-15T08:00:00.000Z");
    assert_eq!(
        (&record["endedAt"], &record["commit"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(
        json(&node.trigger("docs").await)["statusId"],
        id.as_str(),
        "coalesced"
    );
}

#[tokio::test]
async fn a1_a_project_of_another_owner_is_404() {
    let node = Node::new();
    let shown = |response: &Response| {
        (
            response.status,
            response.body.memory().cloned(),
            format!("{:?}", response.allow),
        )
    };
    let unknown = node.trigger("nothing").await;
    assert_eq!(unknown.status, 404);
    for project in ["help", "%2e%2e", "", &"x".repeat(200)] {
        assert_eq!(
            shown(&node.trigger(project).await),
            shown(&unknown),
            "{project}"
        );
    }

    let path = "/v1/project/update/help";
    let id = json(&node.send("POST", path, &node.globex, &[]).await)["statusId"].clone();
    let foreign = format!("/v1/project/update-status/{}", id.as_str().unwrap());
    let unknown = "/v1/project/update-status/upd_00000000000000000000000000";
    let malformed = "/v1/project/update-status/x";
    let none = node.send("GET", unknown, &node.acme, &[]).await;
    assert_eq!(none.status, 404);
    for path in [foreign.as_str(), malformed] {
        assert_eq!(
            shown(&node.send("GET", path, &node.acme, &[]).await),
            shown(&none)
        );
    }
}

#[tokio::test]
async fn a2_every_invalid_key_has_the_same_response() {
    let node = Node::new();
    let unknown = Secret::generate("waypost").unwrap();
    let mut bodies = BTreeSet::new();
    let key = node.acme.reveal();
    for field_value in [
        format!("Bearer {}", unknown.reveal()),
        format!("Bearer {}", &key[..key.len() - 1]),
        format!("Bearer {key}x"),
        format!("Basic {key}"),
        key.to_owned(),
        "Bearer".to_owned(),
        String::new(),
        "Bearer \u{fc}".to_owned(),
    ] {
        let request = Request {
            authorization: vec![field_value.as_bytes()],
            ..request("POST", "/v1/project/update/docs")
        };
        let response = node.api.handle(&request).await;
        assert_eq!(response.status, 401, "{field_value}");
        let challenge = field(&response, "www-authenticate");
        assert_eq!(
            challenge,
            "Bearer realm=\"waypost\", error=\"invalid_token\""
        );
        bodies.insert(response.body.memory().cloned());
    }
    assert_eq!(bodies.len(), 1);
    let response = node
        .api
        .handle(&request("POST", "/v1/project/update/docs"))
        .await;
    assert_eq!(
        field(&response, "www-authenticate"),
        "Bearer realm=\"waypost\""
    );
}

#[tokio::test]
async fn a5_a_key_over_plain_http_is_not_read() {
    let authorization = |node: &Node| format!("bearer {}", node.acme.reveal());
    for (allow_plaintext, status) in [(false, 403), (true, 202)] {
        let config = Config {
            allow_plaintext,
            ..Config::default()
        };
        let node = Node::with(config, Policy::default());
        let authorization = authorization(&node);
        let request = Request {
            authorization: vec![authorization.as_bytes()],
            is_confidential: false,
            ..request("POST", "/v1/project/update/docs")
        };
        assert_eq!(node.api.handle(&request).await.status, status);
    }
}

#[tokio::test]
async fn a_key_for_one_project_is_rejected_for_other_projects() {
    let node = Node::new();
    let send = |path: &'static str| node.send("POST", path, &node.scoped, &[]);
    assert_eq!(send("/v1/project/update/docs").await.status, 202);
    let response = send("/v1/project/update/blog").await;
    assert_eq!(response.status, 403);
    assert!(field(&response, "www-authenticate").ends_with("error=\"insufficient_scope\""));
    assert_eq!(send("/v1/project/update/help").await.status, 404);
}

#[tokio::test]
async fn an_idempotency_key_repeats_the_response_and_belongs_to_one_project() {
    let node = Node::new();
    let send = |path: &'static str, once: &'static [&'static str]| {
        node.send("POST", path, &node.acme, once)
    };
    let first = send("/v1/project/update/docs", &["push-1"]).await;
    let claim = node.queue.claim(
        &WorkerId::new("w"),
        Owners::All,
        Timestamp::of(node.api.clock.now()),
    );
    assert!(
        claim.unwrap().is_some(),
        "it has begun, so nothing coalesces"
    );
    let again = send("/v1/project/update/docs", &["push-1"]).await;
    assert_eq!(
        (again.status, again.body.memory()),
        (202, first.body.memory())
    );
    assert_ne!(
        send("/v1/project/update/docs", &["push-2"])
            .await
            .body
            .memory(),
        first.body.memory()
    );
    assert_eq!(
        send("/v1/project/update/blog", &["push-1"]).await.status,
        422
    );
    assert_eq!(
        send("/v1/project/update/docs", &["a", "b"]).await.status,
        400
    );
    assert_eq!(send("/v1/project/update/docs", &["a b"]).await.status, 400);
    assert_eq!(send("/v1/project/update/docs", &[""]).await.status, 400);
}

#[tokio::test]
async fn the_eleventh_trigger_of_an_owner_in_ten_seconds_is_429() {
    let node = Node::new();
    for left in (0..10).rev() {
        let response = node.trigger("docs").await;
        assert_eq!(field(&response, "ratelimit-policy"), "\"owner\";q=10;w=10");
        assert_eq!(
            field(&response, "ratelimit"),
            format!("\"owner\";r={left};t=10")
        );
    }
    let response = node.trigger("docs").await;
    assert_eq!(response.status, 429);
    assert_eq!(field(&response, "retry-after"), "10");
    let path = "/v1/project/update/help";
    assert_eq!(node.send("POST", path, &node.globex, &[]).await.status, 202);
}

#[tokio::test]
async fn calls_for_projects_that_an_owner_does_not_have_count_for_nothing() {
    let node = Node::new();
    for _ in 0..20 {
        assert_eq!(node.trigger("nothing").await.status, 404);
        assert_eq!(node.trigger("help").await.status, 404);
    }
    let response = node.trigger("docs").await;
    assert_eq!(response.status, 202);
    assert_eq!(field(&response, "ratelimit"), "\"owner\";r=9;t=10");
}

#[tokio::test]
async fn a_project_without_a_repository_is_rejected_at_once() {
    let node = Node::new();
    let response = node.trigger("bare").await;
    assert_eq!(response.status, 422);
    assert!(
        json(&response)["detail"]
            .as_str()
            .unwrap()
            .contains("no repository")
    );
    assert_eq!(node.queue.depth().unwrap().queued, 0);
}

#[tokio::test]
async fn a3_a_full_queue_acknowledges_nothing() {
    let policy = Policy {
        waiting_max: 1,
        ..Policy::default()
    };
    let node = Node::with(Config::default(), policy);
    assert_eq!(node.trigger("docs").await.status, 202);
    let response = node.trigger("blog").await;
    assert_eq!(response.status, 503);
    assert_eq!(field(&response, "retry-after"), "30");
    assert_eq!(node.queue.depth().unwrap().queued, 1);
}

#[tokio::test]
async fn a3_a_queue_that_does_not_work_is_503_with_the_reason_and_no_path() {
    let node = Node::new();
    node.break_queue();
    let id = StatusId::generate(Timestamp::default()).unwrap();
    let path = format!("/v1/project/update-status/{id}");
    let response = node.send("GET", &path, &node.acme, &[]).await;
    assert_eq!(response.status, 503);
    assert_eq!(field(&response, "retry-after"), "5");
    let text = json(&response).to_string();
    assert!(!text.contains("sqlite"), "{text}");
    assert!(text.contains("its file cannot be opened"), "{text}");
    let rejected = node.trigger("docs").await;
    assert_eq!(rejected.status, 503);
    let text = json(&rejected).to_string();
    assert!(text.contains("its file was deleted or replaced"), "{text}");
}

#[tokio::test]
async fn other_methods_and_paths_have_their_problem() {
    let node = Node::new();
    for (method, path, status, allow) in [
        ("GET", "/v1/project/update/docs", 405, Some("POST")),
        ("OPTIONS", "/v1/project/update/docs", 405, Some("POST")),
        (
            "POST",
            "/v1/project/update-status/x",
            405,
            Some("GET, HEAD"),
        ),
        ("DELETE", "/openapi.json", 405, Some("GET, HEAD")),
        ("GET", "/", 404, None),
        ("POST", "/v1/project/update/docs/", 404, None),
        ("POST", "/v1/project/update", 404, None),
        ("POST", "/v2/project/update/docs", 404, None),
    ] {
        let response = node.send(method, path, &node.acme, &[]).await;
        assert_eq!(
            (response.status, response.allow),
            (status, allow),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn a4_no_response_is_cached() {
    let node = Node::new();
    for path in ["/v1/project/update/docs", "/v1/project/update/nothing", "/"] {
        let response = node.send("POST", path, &node.acme, &[]).await;
        assert_eq!(response.caching, crate::response::caching::NEVER);
    }
}
