//! Tests of the responses of the index, for small sites that the tests make.

use bytes::Bytes;

use super::*;
use crate::digest::Digest;
use crate::discovery::{BASE_URL_PLACEHOLDER, Listed, Summary};
use crate::response::encoding::Effort;
use crate::response::{Conditions, Encoding};
use crate::site::{Scheme, Upstream};

const PROMOTED_AT: u64 = 1_700_000_000;

fn site(name: &str, domains: &[&str]) -> Site {
    Site {
        domains: domains
            .iter()
            .map(|domain| Host::parse(domain).unwrap())
            .collect(),
        ..Site::new(ProjectId::parse(name).unwrap())
    }
}

fn material(skills: &[(&str, &str)]) -> Material {
    let mut skills = skills.to_vec();
    skills.sort_unstable();
    let listed = skills.iter().map(|(slug, body)| Listed {
        slug: (*slug).into(),
        name: (*slug).into(),
        description: "Use it.".into(),
        digest: Digest::of(body.as_bytes()),
        generated: body.contains(BASE_URL_PLACEHOLDER),
    });
    Material {
        summary: Summary::new("Acme", "Docs.", "1.0", listed.collect()),
        skills: skills
            .iter()
            .map(|(_, body)| {
                SkillFile::encoded(Bytes::copy_from_slice(body.as_bytes()), Effort::Release)
            })
            .collect(),
        promoted_at: PROMOTED_AT,
        files: None,
    }
}

fn public(site: &Site, skills: &[(&str, &str)]) -> State {
    State::Public(Arc::new(
        Documents::compile(site, &Service::default(), &material(skills)).unwrap(),
    ))
}

fn serving(sites: &[(&Site, State)]) -> Index {
    let index = Index::new(Service::default());
    let lost = index.put_sites(
        sites
            .iter()
            .map(|(site, state)| (Arc::new((*site).clone()), state.clone())),
    );
    index.drop_hosts(lost);
    index
}

fn get(
    index: &Index,
    host: &str,
    document: Document<'_>,
    headers: &RequestHeaders<'_>,
) -> Response {
    index
        .with(host, |served| {
            index.response(served, host, document, headers)
        })
        .expect("a host that is served")
}

fn text(response: &Response) -> &str {
    str::from_utf8(response.body.memory().unwrap()).unwrap()
}

#[test]
fn one_skill_is_the_entry_point_and_several_make_it_a_redirect() {
    let acme = site("acme", &[]);
    let host = "acme.waypost.localhost";
    let one = serving(&[(&acme, public(&acme, &[("sdk", "# SDK")]))]);
    let response = get(&one, host, Document::Entry, &RequestHeaders::GET);
    assert_eq!((response.status, text(&response)), (200, "# SDK"));

    let several = serving(&[(&acme, public(&acme, &[("sdk", "# SDK"), ("cli", "# CLI")]))]);
    let response = get(&several, host, Document::Entry, &RequestHeaders::GET);
    assert_eq!(
        (response.status, response.location.as_deref()),
        (307, Some(b"/.well-known/skills/index.json".as_slice()))
    );

    let none = serving(&[(&acme, public(&acme, &[]))]);
    assert_eq!(
        get(&none, host, Document::Entry, &RequestHeaders::GET).status,
        404
    );
    assert_eq!(
        get(&none, host, Document::Card, &RequestHeaders::GET).status,
        200
    );
}

#[test]
fn every_domain_has_its_own_card_and_the_default_subdomain_shows_the_canonical_one() {
    let acme = site("acme", &["docs.acme.com", "docs.acme.dev"]);
    let index = serving(&[(&acme, public(&acme, &[]))]);
    for (host, url) in [
        ("docs.acme.com", "https://docs.acme.com"),
        ("docs.acme.dev", "https://docs.acme.dev"),
        ("acme.waypost.localhost", "https://docs.acme.com"),
    ] {
        let response = get(&index, host, Document::Card, &RequestHeaders::GET);
        assert!(
            text(&response).contains(&format!("\"url\":\"{url}\"")),
            "{host}: {}",
            text(&response)
        );
        assert_eq!(response.last_modified, None);
    }
}

#[test]
fn the_smallest_coding_a_client_takes_is_sent_with_a_tag_of_its_own() {
    let acme = site("acme", &[]);
    let body = "Call the endpoint, then read the answer. ".repeat(60);
    let index = serving(&[(&acme, public(&acme, &[("sdk", &body)]))]);
    let mut tags = Vec::new();
    for (accept, encoding) in [
        ("gzip, br, zstd", Encoding::Brotli),
        ("gzip, zstd", Encoding::Zstd),
        ("gzip", Encoding::Gzip),
        ("", Encoding::Identity),
    ] {
        let headers = RequestHeaders {
            accept_encoding: Some(accept.as_bytes()),
            ..RequestHeaders::GET
        };
        let response = get(
            &index,
            "acme.waypost.localhost",
            Document::Skill("sdk"),
            &headers,
        );
        assert_eq!(response.encoding, encoding);
        assert_eq!(
            encoding == Encoding::Identity,
            response.body.memory().unwrap()[..] == *body.as_bytes()
        );
        assert!(!tags.contains(&response.etag), "{accept}");
        tags.push(response.etag);
        let mut tag = Vec::new();
        response.etag.unwrap().write(&mut tag);
        let conditions = Conditions {
            if_none_match: Some(&tag),
            ..Conditions::default()
        };
        let again = get(
            &index,
            "acme.waypost.localhost",
            Document::Skill("sdk"),
            &RequestHeaders {
                conditions,
                ..headers
            },
        );
        assert_eq!(
            (again.status, again.etag, again.body.len()),
            (304, response.etag, 0)
        );
    }
}

#[test]
fn a_generated_skill_carries_the_canonical_address_and_its_digest_is_of_the_served_bytes() {
    let acme = site("acme", &["docs.acme.com"]);
    let body = format!("See {BASE_URL_PLACEHOLDER}/guide and {BASE_URL_PLACEHOLDER}.");
    let index = serving(&[(&acme, public(&acme, &[("acme", &body)]))]);
    let skill = get(
        &index,
        "acme.waypost.localhost",
        Document::Skill("acme"),
        &RequestHeaders::GET,
    );
    assert_eq!(
        text(&skill),
        "See https://docs.acme.com/guide and https://docs.acme.com."
    );
    let manifest = get(
        &index,
        "docs.acme.com",
        Document::Manifest,
        &RequestHeaders::GET,
    );
    assert!(text(&manifest).contains(&format!(
        "sha256:{}",
        Digest::of(skill.body.memory().unwrap())
    )));
}

#[test]
fn a_file_that_is_not_the_listed_one_is_never_served() {
    let acme = site("acme", &[]);
    let mut torn = material(&[("sdk", "# SDK")]);
    torn.skills[0].identity = Bytes::from_static(b"# SD");
    let error = Documents::compile(&acme, &Service::default(), &torn).unwrap_err();
    assert!(matches!(error, CompileError::Digest { slug } if &*slug == "sdk"));
}

#[test]
fn private_and_unreleased_sites_have_404_for_every_document() {
    let acme = site("acme", &[]);
    for (state, caching) in [
        (State::Private, caching::ABSENT),
        (State::Unreleased, caching::NEVER),
    ] {
        let index = serving(&[(&acme, state)]);
        for document in [
            Document::Entry,
            Document::Manifest,
            Document::Legacy,
            Document::Skill("sdk"),
            Document::Card,
        ] {
            let response = get(
                &index,
                "acme.waypost.localhost",
                document,
                &RequestHeaders::GET,
            );
            assert_eq!((response.status, response.caching), (404, caching));
        }
    }
}

#[test]
fn other_methods_get_405_and_options_is_a_preflight() {
    let acme = site("acme", &[]);
    let index = serving(&[(&acme, public(&acme, &[]))]);
    let with = |method, document| {
        get(
            &index,
            "acme.waypost.localhost",
            document,
            &RequestHeaders {
                method,
                ..RequestHeaders::GET
            },
        )
    };
    assert_eq!(with("OPTIONS", Document::Card).status, 204);
    assert_eq!(with("POST", Document::Card).status, 405);
    assert_eq!(
        with("POST", Document::Card).allow,
        Some("GET, HEAD, OPTIONS")
    );
    assert_eq!(with("POST", Document::Absent).status, 404);
}

#[test]
fn hosts_are_added_and_removed_with_their_site() {
    let mut acme = site("acme", &["a.example", "b.example"]);
    let index = serving(&[(&acme, State::Private)]);
    assert_eq!(index.size(), (1, 3));
    acme.domains = vec![
        Host::parse("b.example").unwrap(),
        Host::parse("c.example").unwrap(),
    ];
    let lost = index.put_sites([(Arc::new(acme.clone()), State::Private)]);
    index.drop_hosts(lost);
    assert!(index.served("a.example").is_none());
    assert_eq!(
        index.served("c.example").unwrap().site.domains,
        acme.domains
    );
    assert_eq!(index.size(), (1, 3));
    index.remove_sites([&acme.project]);
    assert_eq!(index.size(), (0, 0));
}

#[test]
fn a_host_can_move_between_sites_in_either_order() {
    for order in [[0, 1], [1, 0]] {
        let (old, new) = (site("old", &["docs.acme.com"]), site("new", &[]));
        let index = serving(&[(&old, State::Private), (&new, State::Private)]);
        let after = [site("old", &[]), site("new", &["docs.acme.com"])];
        let mut lost = LostHosts::default();
        for i in order {
            let site = (Arc::new(after[i].clone()), State::Private);
            lost.extend([index.put_sites([site])]);
            // The host always has a site.
            assert!(index.served("docs.acme.com").is_some(), "{order:?}");
        }
        index.drop_hosts(lost);
        assert_eq!(
            index.served("docs.acme.com").unwrap().site.project.as_str(),
            "new",
            "{order:?}"
        );
    }
}

#[test]
fn a_promotion_changes_all_hosts_at_once_and_no_host() {
    let acme = site("acme", &["docs.acme.com"]);
    let index = serving(&[(&acme, State::Unreleased)]);
    assert!(index.promote(&acme.project, public(&acme, &[("sdk", "# SDK")])));
    for host in ["docs.acme.com", "acme.waypost.localhost"] {
        assert_eq!(
            get(&index, host, Document::Entry, &RequestHeaders::GET).status,
            200
        );
    }
    assert!(!index.promote(&ProjectId::parse("nobody").unwrap(), State::Private));
    assert_eq!(index.size(), (1, 2));
}

#[test]
fn sites_are_found_by_project_and_by_owner() {
    let [mut a, mut b] = [site("a", &[]), site("b", &["docs.acme.com"])];
    (a.owner, b.owner) = ("one".into(), "two".into());
    let index = serving(&[(&a, State::Private), (&b, State::Unreleased)]);
    assert_eq!(index.projects_of("one"), [a.project.clone()]);
    assert_eq!(index.projects_of("three"), []);
    let served = index.served_by(&b.project).unwrap();
    assert_eq!(served.site.domains, b.domains);
    assert!(
        index
            .served_by(&ProjectId::parse("nobody").unwrap())
            .is_none()
    );
    let sites = index.sites();
    let mut projects: Vec<_> = sites.iter().map(|site| site.project.as_str()).collect();
    projects.sort_unstable();
    assert_eq!(projects, ["a", "b"]);
}

#[test]
fn certificates_are_ordered_for_domains_that_lead_to_a_visible_site() {
    let mut shown = site("shown", &["a.example", "b.example"]);
    shown.not_ordered = [Host::parse("b.example").unwrap()].into();
    let hidden = site("hidden", &["c.example"]);
    let upstream = Site {
        origin: Origin::Upstream(Upstream::new(Scheme::Https, "origin.test", 443)),
        ..site("upstream", &["d.example"])
    };
    let index = serving(&[
        (&shown, State::Unreleased),
        (&hidden, State::Private),
        (&upstream, State::Private),
    ]);
    let mut domains = index.domains();
    domains.sort_unstable();
    assert_eq!(
        domains,
        [("a.example", "shown"), ("d.example", "upstream")]
            .map(|(host, owner)| (Host::parse(host).unwrap(), Box::from(owner)))
    );
    let is_hidden = |site: &Site| index.served_by(&site.project).unwrap().is_hidden();
    assert!(is_hidden(&hidden) && !is_hidden(&upstream) && !is_hidden(&shown));
}

#[test]
fn the_generation_changes_with_the_sites_and_not_with_a_promotion() {
    let acme = site("acme", &[]);
    let index = serving(&[(&acme, State::Unreleased)]);
    let first = index.generation();
    assert!(index.promote(&acme.project, State::Private));
    assert_eq!(index.generation(), first);
    let lost = index.put_sites([(Arc::new(acme.clone()), State::Private)]);
    index.drop_hosts(lost);
    let second = index.generation();
    index.remove_sites([&acme.project]);
    let generations = [first, second, index.generation()];
    assert!(generations.is_sorted_by(|a, b| a < b), "{generations:?}");
}

#[test]
fn an_unknown_host_is_a_404_and_over_http_2_a_421() {
    let index = serving(&[]);
    assert_eq!(index.unknown_host(false).status, 404);
    assert_eq!(index.unknown_host(false).caching, caching::ABSENT);
    assert_eq!(index.unknown_host(true).status, 421);
}

#[test]
fn a_condition_that_fails_is_a_412_and_a_known_tag_a_304() {
    let acme = site("acme", &[]);
    let index = serving(&[(&acme, public(&acme, &[]))]);
    let with = |if_match, if_none_match| {
        let conditions = Conditions {
            if_match,
            if_none_match,
            ..Conditions::default()
        };
        let headers = RequestHeaders {
            conditions,
            ..RequestHeaders::GET
        };
        get(&index, "acme.waypost.localhost", Document::Card, &headers).status
    };
    let (any, other) = (Some(&b"*"[..]), Some(&b"\"x\""[..]));
    assert_eq!(with(any, None), 200);
    assert_eq!(with(other, None), 412);
    assert_eq!(with(None, any), 304);
    assert_eq!(with(None, other), 200);
}

#[test]
fn a_get_that_was_answered_is_counted_if_the_site_and_the_response_are() {
    for (method, status, counted, numbers, expected) in [
        ("GET", 200, Some(Counted::Html), true, true),
        ("GET", 304, Some(Counted::Skill), true, true),
        ("GET", 404, Some(Counted::Html), true, false),
        ("HEAD", 200, Some(Counted::Html), true, false),
        ("GET", 200, None, true, false),
        ("GET", 200, Some(Counted::Html), false, false),
    ] {
        let acme = Site {
            numbers,
            ..site("acme", &[])
        };
        let index = Index::new(Service::default()).counting();
        index.drop_hosts(index.put_sites([(Arc::new(acme.clone()), State::Unreleased)]));
        assert!(index.counted().is_empty());
        let response = Response {
            counted,
            ..Problem::new(status, "a response").response()
        };
        let headers = RequestHeaders {
            method,
            path: "/sdk/SKILL.md",
            ..RequestHeaders::GET
        };
        index
            .served_by(&acme.project)
            .unwrap()
            .count(&headers, &response);
        let projects: Vec<_> = index
            .counted()
            .into_iter()
            .map(|counted| counted.0)
            .collect();
        let expected = expected.then_some(acme.project);
        assert_eq!(projects, Vec::from_iter(expected), "{method} {status}");
    }
}

#[test]
fn lost_hosts_of_several_changes_are_dropped_together() {
    let index = serving(&[
        (&site("a", &["a.example"]), State::Private),
        (&site("b", &["b.example"]), State::Private),
    ]);
    let mut lost = LostHosts::default();
    for name in ["a", "b"] {
        lost.extend([index.put_sites([(Arc::new(site(name, &[])), State::Private)])]);
    }
    assert_eq!(index.size(), (2, 4));
    index.drop_hosts(lost);
    assert_eq!(index.size(), (2, 2));
    assert!(index.served("a.example").is_none() && index.served("b.example").is_none());
}
