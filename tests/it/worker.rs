//! A worker without listeners, beside a gateway or alone.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::edge::Setup;
use crate::http;
use crate::presets::SKILL;
use crate::repository::{Repository, follow, queue, record, setup};

/// `waypost worker`, running.
struct Worker {
    process: Child,
    operator: SocketAddr,
}

impl Worker {
    #[track_caller]
    fn start(setup: &Setup) -> Self {
        setup.write_conf();
        let mut process = Command::new(env!("CARGO_BIN_EXE_waypost"))
            .args(["worker", "--conf"])
            .arg(setup.path("waypost.yaml"))
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let operator = lines
            .by_ref()
            .map_while(Result::ok)
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(&line).ok())
            .find_map(|line| line["operator"].as_str()?.parse().ok());
        // The test must read the log, because a full pipe would block the worker.
        std::thread::spawn(move || lines.count());
        Self {
            process,
            operator: operator.unwrap(),
        }
    }

    fn request(&self, method: &str, path: &str) -> http::Response {
        http::request(self.operator, method, "localhost", path, &[])
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

#[test]
fn a_separate_worker_builds_and_serves_its_metrics() {
    let setup = setup().conf("worker", "{ operator: \"127.0.0.1:0\" }");
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let setup = setup.site("acme", &docs.record());
    let mut worker = Worker::start(&setup);
    assert_eq!(worker.request("GET", "/healthz").text(), "ok\n");
    assert_eq!(worker.request("GET", "/readyz").text(), "ready\n");
    assert_eq!(worker.request("POST", "/reload").status, 405);

    let id = queue(&setup, "acme");
    let update = follow(&setup, &id);
    assert_eq!(update["status"], "success", "{update:#}");
    assert!(
        update["visibleAt"].is_null(),
        "nobody serves it: {update:#}"
    );
    // The metric is counted just after the end is recorded.
    let deadline = Instant::now() + Duration::from_secs(10);
    let counted = "deploy_updates_total{outcome=\"success\"} 1";
    while !worker.request("GET", "/metrics").text().contains(counted) {
        assert!(Instant::now() < deadline, "the success is not counted");
    }
    let numbers = worker.request("GET", "/metrics");
    for family in [
        "deploy_queue_updates{state=\"queued\"} 0",
        "deploy_step_duration_seconds_count{step=\"fetch\"} 1",
    ] {
        assert!(numbers.text().contains(family), "{family}");
    }

    let id = worker.process.id().to_string();
    assert!(Command::new("kill").arg(id).status().unwrap().success());
    assert!(worker.process.wait().unwrap().success());
}

#[test]
fn a_release_of_a_worker_beside_the_gateway_is_visible_since_the_gateway_served_it() {
    let setup = setup().conf("worker", "{ embedded: false, operator: \"127.0.0.1:0\" }");
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let edge = setup.site("acme", &docs.record()).start();
    let id = queue(&edge.setup, "acme");
    assert_eq!(
        record(&edge.setup, &id)["status"],
        "queued",
        "the gateway builds nothing"
    );
    let worker = Worker::start(&edge.setup);
    let update = follow(&edge.setup, &id);
    assert_eq!(update["status"], "success", "{update:#}");
    // The end may be recorded before the visibility.
    let deadline = Instant::now() + Duration::from_secs(10);
    while record(&edge.setup, &id)["visibleAt"].is_null() {
        assert!(
            Instant::now() < deadline,
            "the record does not say when it became visible"
        );
    }
    assert_eq!(
        edge.get("acme.waypost.localhost", "/skill.md").text(),
        SKILL
    );
    drop(worker);
}

/// The record of a site was changed after the worker had read it, and the updates of two sites are
/// due at once.
#[test]
fn a_worker_builds_each_site_with_its_newest_record() {
    let setup = setup().conf("worker", "{ operator: \"127.0.0.1:0\", grace_seconds: 0 }");
    let [former, newer] = ["former", "newer"].map(|name| {
        let docs = Repository::new(&setup, name);
        docs.push("Begin", &[("skill.md", SKILL), ("name.md", name)]);
        docs
    });
    let set = |project: &str, docs: &Repository| {
        let record = format!("owner: acme\nsubdomain: {project}\n{}\n", docs.record());
        let file = setup.path("record.yaml");
        std::fs::write(&file, record).unwrap();
        let set = setup.run(&["site", "set", project, file.to_str().unwrap()]);
        assert!(set.status.success(), "{set:?}");
    };
    let projects = ["one", "two", "three"];
    projects.iter().for_each(|project| set(project, &former));
    let _worker = Worker::start(&setup);
    projects.iter().for_each(|project| set(project, &newer));
    let updates = projects.map(|project| queue(&setup, project));
    let head = newer.git(&["rev-parse", "HEAD"]);
    for id in updates {
        let update = follow(&setup, &id);
        assert_eq!(update["status"], "success", "{update:#}");
        assert_eq!(update["commit"]["sha"], *head, "{update:#}");
    }
}

/// The site moved to another owner while its update waited. The former owner can read the record of
/// the update, so the record must not show a build for the new owner.
#[test]
fn an_update_of_a_former_owner_builds_nothing() {
    let setup = setup().conf("worker", "{ operator: \"127.0.0.1:0\", grace_seconds: 0 }");
    let file = setup.path("updates.sqlite").display().to_string();
    let conf = format!("{{ sqlite: {{ path: {file} }}, attempts_max: 1 }}");
    let setup = setup.conf("queue", &conf);
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let set = |owner: &str| {
        let record = format!("owner: {owner}\nsubdomain: acme\n{}\n", docs.record());
        let file = setup.path("record.yaml");
        std::fs::write(&file, record).unwrap();
        let set = setup.run(&["site", "set", "acme", file.to_str().unwrap()]);
        assert!(set.status.success(), "{set:?}");
    };
    set("acme");
    let former = queue(&setup, "acme");
    set("globex");
    let _worker = Worker::start(&setup);
    let update = follow(&setup, &former);
    assert_eq!(update["status"], "failure", "{update:#}");
    let summary = update["summary"].as_str().unwrap();
    assert!(summary.contains("has another owner"), "{summary}");
    assert!(update["commit"].is_null(), "{update:#}");
    let update = follow(&setup, &queue(&setup, "acme"));
    assert_eq!(update["status"], "success", "{update:#}");
}
