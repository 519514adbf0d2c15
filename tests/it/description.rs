//! A fuzzer compares the OpenAPI description of the admin API with the running program.
//!
//! `schemathesis` reads the served description, sends valid and invalid requests, and compares
//! status, media type, headers and body of every response with the description.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::clients::client;
use crate::names::Names;
use crate::presets::SKILL;
use crate::repository::{API, Repository, follow, key, setup, trigger};

/// All checks of the fuzzer that need no knowledge of the purpose of an API.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance,\
                      negative_data_rejection,unsupported_method,allow_header_conformance";

#[test]
fn every_response_of_the_admin_api_conforms_to_its_description() {
    // No domain has a proof. A caller that asks for checks too often is refused.
    let names = Names::start();
    let verification = format!("{{ {}, check_now_seconds: 1 }}", names.resolvers());
    let setup = setup().conf("verification", &verification);
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let acme = key(&setup, "acme");
    let operator = setup.run(&["key", "create", "--owner", "ops", "--role", "operator"]);
    let operator = String::from_utf8(operator.stdout)
        .unwrap()
        .trim()
        .to_owned();
    let stored = setup.path("stored.yaml");
    fs::write(
        &stored,
        "owner: acme\nsubdomain: stored\ndomains: [docs.acme.test]\n",
    )
    .unwrap();
    let set = setup.run(&["site", "set", "stored", stored.to_str().unwrap()]);
    assert!(set.status.success(), "{set:?}");
    let edge = setup
        .site("acme", &format!("owner: acme\n{}", docs.record()))
        .site("other", "owner: other")
        .start();
    let id = trigger(&edge, &acme, "acme");
    follow(&edge.setup, &id);
    // Random ids never exist, so the description gets ids that do exist as examples.
    let mut description = edge.get(API, "/openapi.json").json();
    let parameters = &mut description["components"]["parameters"];
    parameters["projectId"]["examples"] =
        json!({ "own": { "value": "acme" }, "stored": { "value": "stored" } });
    parameters["host"]["examples"] = json!({ "own": { "value": "docs.acme.test" } });
    parameters["ifMatch"]["examples"] = json!({ "any": { "value": "*" } });
    parameters["statusId"]["examples"] = json!({ "own": { "value": id } });
    let file = edge.setup.path("openapi.json");
    fs::write(&file, description.to_string()).unwrap();

    let folder = client("schemathesis", "schemathesis==4.32.5");
    let output = Command::new(folder.join("bin/st"))
        .arg("run")
        .arg(&file)
        .args(["--url", &format!("http://{}", edge.http)])
        .args(["--header", &format!("Host: {API}")])
        .args(["--header", &format!("Authorization: Bearer {operator}")])
        .args(["--checks", CHECKS])
        .args(["--phases", "examples,coverage,fuzzing"])
        .args(["--max-examples", "50", "--seed", "1", "--no-color"])
        .arg("--continue-on-failure")
        .current_dir(edge.setup.path("."))
        .output()
        .unwrap();

    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    let count = |status: u16| {
        edge.metric(&format!(
            "gateway_requests_total{{route=\"admin\",status=\"{status}\"}}"
        ))
    };
    // The fuzzer has triggered updates of known projects too.
    assert!(count(202) > 1.0, "known projects were triggered");
    assert!(count(200) > 1.0, "known records were read");
    for status in [404, 405] {
        assert!(count(status) > 0.0, "{status}");
    }
    assert!(count(500) + count(502) + count(503) < 1.0);
}
