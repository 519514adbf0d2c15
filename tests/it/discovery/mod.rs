//! The discovery documents, on every host, as the contract says.

use crate::edge::{SKILL, Setup};

#[test]
fn one_skill_is_served_at_the_entry_point_on_every_host() {
    let edge = Setup::new()
        .site("acme", "domains: [docs.acme.test]")
        .start();
    edge.publish("acme", &[("skill.md", SKILL)]);
    for host in [
        "docs.acme.test",
        "acme.waypost.localhost",
        "DOCS.acme.test.:8080",
    ] {
        let response = edge.get(host, "/skill.md");
        assert_eq!((response.status, response.text()), (200, SKILL), "{host}");
        assert_eq!(
            response.field("content-type"),
            Some("text/markdown; charset=utf-8")
        );
    }
}
