//! Every response for sites, compared with the description of the API.

use super::*;
use crate::deploy::api::tests::description::described;

#[tokio::test]
async fn every_response_for_sites_conforms_to_the_description_and_every_status_occurs() {
    let node = Node::for_sites();
    let document = json(&node.api.handle(&request("GET", "/openapi.json")).await);
    let (list, audit) = ("/v1/sites", "/v1/audit");
    let (site, domains) = ("/v1/sites/{projectId}", "/v1/sites/{projectId}/domains");
    let domain = "/v1/sites/{projectId}/domains/{host}";
    let paths = [
        (list, list),
        (audit, audit),
        (site, "/v1/sites/one"),
        (domains, "/v1/sites/one/domains"),
        (domain, "/v1/sites/one/domains/docs.acme.com"),
    ];
    let mut given = BTreeSet::new();
    let mut check = |template: &str, method: &str, response: &Response| {
        let method = method.to_lowercase();
        described(&document, template, &method, response);
        given.insert((template.to_owned(), method, response.status.to_string()));
    };
    let record = json!({ "owner": "acme", "subdomain": "one" });
    check(
        site,
        "PUT",
        &node.put("one", &node.operator, record.clone()).await,
    );
    check(
        site,
        "PUT",
        &node.put("one", &node.operator, record.clone()).await,
    );
    node.create("two", "globex", &["docs.two.com"]).await;
    for (method, status) in [("PUT", 201), ("PUT", 200), ("GET", 200), ("DELETE", 204)] {
        let response = node
            .domain(method, "one", "docs.acme.com", &node.editor)
            .await;
        assert_eq!(response.status, status);
        check(domain, method, &response);
    }
    check(
        domain,
        "PUT",
        &node
            .domain("PUT", "one", "docs.two.com", &node.editor)
            .await,
    );
    check(
        domain,
        "PUT",
        &node
            .domain("PUT", "one", "a.waypost.localhost", &node.editor)
            .await,
    );
    check(
        domain,
        "DELETE",
        &node.domain("DELETE", "one", "x.com", &node.editor).await,
    );
    for (method, path) in [("PUT", domain), ("DELETE", domain)] {
        let call = Call {
            if_match: Some("\"old\"".to_owned()),
            ..Call::default()
        };
        let there = "/v1/sites/one/domains/x.com";
        check(
            path,
            method,
            &node.call(method, there, &node.editor, call).await,
        );
    }
    check(
        site,
        "PATCH",
        &node
            .patch("one", &node.editor, json!({ "lenient": true }))
            .await,
    );
    check(
        site,
        "PATCH",
        &node
            .patch("one", &node.editor, json!({ "lenient": 7 }))
            .await,
    );
    let taken = json!({ "domains": ["docs.two.com"] });
    check(
        site,
        "PATCH",
        &node.patch("one", &node.operator, taken).await,
    );
    let invalid = json!({ "subdomain": 7 });
    check(site, "PUT", &node.put("one", &node.operator, invalid).await);
    let taken = json!({ "subdomain": "one", "domains": ["docs.two.com"] });
    check(site, "PUT", &node.put("one", &node.operator, taken).await);
    for method in ["PUT", "PATCH"] {
        let media_type = match method {
            "PUT" => "application/json",
            _ => "application/merge-patch+json",
        };
        for (content_type, content, if_match) in [
            (media_type, "{", None),
            ("text/plain", "{}", None),
            (media_type, "{\"subdomain\": \"one\"}", None),
            (
                media_type,
                "{\"subdomain\": \"one\"}",
                Some("\"old\"".to_owned()),
            ),
        ] {
            let call = Call {
                content_type: Some(content_type),
                content: content.to_owned(),
                if_match,
                ..Call::default()
            };
            check(
                site,
                method,
                &node
                    .call(method, "/v1/sites/one", &node.operator, call)
                    .await,
            );
        }
    }
    check(
        site,
        "PATCH",
        &node.patch("none", &node.operator, json!({})).await,
    );
    let not_there = Call {
        content_type: Some("application/json"),
        content: "{}".to_owned(),
        ..Call::default()
    };
    let path = "/v1/sites/a.b";
    check(
        site,
        "PUT",
        &node.call("PUT", path, &node.operator, not_there).await,
    );
    for if_match in [None, Some("\"old\"".to_owned())] {
        let call = Call {
            if_match,
            ..Call::default()
        };
        check(
            site,
            "DELETE",
            &node
                .call("DELETE", "/v1/sites/one", &node.operator, call)
                .await,
        );
    }
    for (template, path) in [
        (site, "/v1/sites/none"),
        (domains, "/v1/sites/none/domains"),
    ] {
        check(template, "GET", &node.read(path, &node.operator).await);
    }
    check(
        site,
        "DELETE",
        &node
            .call("DELETE", "/v1/sites/none", &node.operator, Call::default())
            .await,
    );
    let absent = "/v1/sites/one/domains/none.com";
    check(domain, "GET", &node.read(absent, &node.operator).await);
    check(
        domain,
        "PUT",
        &node.domain("PUT", "none", "a.com", &node.operator).await,
    );
    for (template, path) in [
        (list, list),
        (audit, audit),
        (domains, "/v1/sites/one/domains"),
        (site, "/v1/sites/one"),
    ] {
        check(template, "GET", &node.read(path, &node.operator).await);
        if template != site {
            check(
                template,
                "GET",
                &node.read(&format!("{path}?limit=0"), &node.operator).await,
            );
        }
    }
    let bearer: &'static [u8] = format!("Bearer {}", node.operator.reveal())
        .leak()
        .as_bytes();
    for (template, path) in paths {
        let methods = document["paths"][template].as_object().unwrap();
        for method in methods.keys().filter(|name| *name != "parameters") {
            let upper = method.to_uppercase();
            check(
                template,
                method,
                &node.api.handle(&request(&upper, path)).await,
            );
            check(
                template,
                method,
                &node.api.handle(&request("POST", path)).await,
            );
            let plain = Request {
                is_confidential: false,
                ..request(&upper, path)
            };
            check(template, method, &node.api.handle(&plain).await);
            let large = Request {
                is_too_large: true,
                authorization: vec![bearer],
                ..request(&upper, path)
            };
            check(template, method, &node.api.handle(&large).await);
        }
    }
    // A file has the site now.
    node.write_file(
        "f.yaml",
        "project: filed\nowner: acme\nsubdomain: filed\ndomains: [docs.filed.com]\n",
    );
    for (method, host) in [("PUT", "a.com"), ("DELETE", "docs.filed.com")] {
        check(
            domain,
            method,
            &node.domain(method, "filed", host, &node.operator).await,
        );
    }
    let call = Call {
        if_match: Some("*".to_owned()),
        ..Call::default()
    };
    check(
        site,
        "DELETE",
        &node
            .call("DELETE", "/v1/sites/filed", &node.operator, call)
            .await,
    );
    let call = Call {
        if_match: node.tag("one").await,
        ..Call::default()
    };
    check(
        site,
        "DELETE",
        &node
            .call("DELETE", "/v1/sites/one", &node.operator, call)
            .await,
    );
    // Too many changes of an owner.
    while {
        let response = node.domain("PUT", "two", "a.com", &node.editor).await;
        response.status != 429
    } {}
    for (template, method, path) in [
        (site, "PUT", "/v1/sites/one"),
        (site, "PATCH", "/v1/sites/one"),
        (site, "DELETE", "/v1/sites/one"),
        (domain, "PUT", "/v1/sites/one/domains/a.com"),
        (domain, "DELETE", "/v1/sites/one/domains/a.com"),
    ] {
        check(
            template,
            method,
            &node.call(method, path, &node.editor, Call::default()).await,
        );
    }
    // Too many reads of the audit log.
    let refused = loop {
        let call = Call::default();
        let response = node.call("GET", "/v1/audit", &node.editor, call).await;
        if response.status == 429 {
            break response;
        }
    };
    check("/v1/audit", "GET", &refused);
    // The store does not work.
    let store = node.directory.path().join("store");
    std::fs::remove_dir_all(&store).unwrap();
    std::fs::write(&store, "").unwrap();
    for (template, path) in paths {
        let methods = document["paths"][template].as_object().unwrap();
        for method in methods.keys().filter(|name| *name != "parameters") {
            let call = Call {
                content_type: Some(match &**method {
                    "patch" => "application/merge-patch+json",
                    _ => "application/json",
                }),
                content: record.to_string(),
                ..Call::default()
            };
            let upper = method.to_uppercase();
            let path = path.replace("one", "two");
            let response = node.call(&upper, &path, &node.operator, call).await;
            check(template, method, &response);
        }
    }

    let mut named = BTreeSet::new();
    for (template, _) in paths {
        for (method, operation) in document["paths"][template].as_object().unwrap() {
            for (status, _) in operation["responses"].as_object().into_iter().flatten() {
                named.insert((template.to_owned(), method.clone(), status.clone()));
            }
        }
    }
    let missing: Vec<_> = named.difference(&given).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(given, named);
}
