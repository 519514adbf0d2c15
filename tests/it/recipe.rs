//! A real nginx runs the proxy configuration of the documentation, unchanged, before a gateway.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use crate::clients;
use crate::edge::{Edge, Setup};
use crate::http::{self, Response};
use crate::ports::free_address;
use crate::presets::SKILL;

/// The host that readers see.
const HOST: &str = "www.acme.test";

/// A running nginx.
struct Nginx<'e> {
    edge: &'e Edge,
    address: SocketAddr,
}

impl<'e> Nginx<'e> {
    /// Starts nginx with the server that the documentation shows.
    fn before(edge: &'e Edge) -> Self {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/demo/docs/operate/proxy.mdx");
        let page = fs::read_to_string(page).unwrap();
        let recipe = page.split("```nginx").nth(1).unwrap();
        let recipe = recipe.split_once('\n').unwrap().1;
        let recipe = recipe.split("```").next().unwrap();
        let address = free_address();
        let conf = format!(
            "pid nginx.pid; error_log stderr; events {{}}\n\
             http {{ access_log off; upstream waypost {{ server {}; }}\n\
             server {{ listen {address}; server_name {HOST};\n{recipe}\n}} }}\n",
            edge.http
        );
        fs::write(edge.setup.path("nginx.conf"), conf).unwrap();
        // It goes into the background once it listens.
        assert!(nginx(edge, &[]), "nginx does not start");
        Self { edge, address }
    }

    fn get(&self, path: &str) -> Response {
        http::request(self.address, "GET", HOST, path, &[])
    }
}

impl Drop for Nginx<'_> {
    fn drop(&mut self) {
        nginx(self.edge, &["-s", "stop"]);
    }
}

fn nginx(edge: &Edge, arguments: &[&str]) -> bool {
    let prefix = edge.setup.path("");
    let mut command = Command::new("/usr/sbin/nginx");
    command
        .arg("-p")
        .arg(prefix)
        .args(["-e", "stderr", "-c", "nginx.conf"]);
    command.args(arguments).status().unwrap().success()
}

#[test]
fn a_site_below_a_path_of_the_customers_domain_is_whole() {
    let edge = Setup::new()
        .site("acme", &format!("domains: [{HOST}]\nbase_path: /docs"))
        .start();
    edge.publish(
        "acme",
        &[
            (
                "docs.json",
                r#"{ "name": "Acme", "navigation": { "pages": ["index", "a/b"] } }"#,
            ),
            ("index.mdx", "[On](/a/b)\n"),
            ("a/b.mdx", "Text.\n"),
            ("skill.md", SKILL),
        ],
    );
    let nginx = Nginx::before(&edge);

    let page = nginx.get("/docs/");
    assert_eq!(page.status, 200);
    assert!(page.text().contains("href=\"a/b\""), "{}", page.text());
    assert_eq!(nginx.get("/docs/a/b").status, 200);
    assert_eq!(nginx.get("/docs/a/b.md").status, 200);
    assert_eq!(nginx.get("/docs").status, 308);
    for path in [
        "/skill.md",
        "/docs/skill.md",
        "/.well-known/skills/sdk/skill.md",
        "/.well-known/agent-skills/sdk/SKILL.md",
        "/docs/.well-known/agent-skills/sdk/SKILL.md",
    ] {
        let skill = nginx.get(path);
        assert_eq!((skill.status, skill.text()), (200, SKILL), "{path}");
    }
    let card = nginx.get("/.well-known/agent-card.json");
    assert!(
        card.text().contains(&format!("://{HOST}/docs")),
        "{}",
        card.text()
    );
    // Crawlers and agents request these paths only at the root of a host.
    for (path, start) in [
        ("/llms.txt", "# Acme"),
        ("/llms-full.txt", "# Index"),
        ("/llms-agents.txt", "## Acme"),
        ("/.well-known/llms.txt", "# Acme"),
        ("/.well-known/llms-full.txt", "# Index"),
        ("/.well-known/api-catalog", "{"),
        ("/.well-known/mcp/server-card.json", "{"),
        ("/.well-known/mcp.json", "{"),
        ("/sitemap.xml", "<?xml"),
        ("/robots.txt", "User-agent: *"),
    ] {
        let text = nginx.get(path);
        assert_eq!(text.status, 200, "{path}");
        assert!(text.text().starts_with(start), "{path}: {}", text.text());
        assert_eq!(text.body, nginx.get(&format!("/docs{path}")).body, "{path}");
    }
    let sitemap = nginx.get("/sitemap.xml");
    assert!(sitemap.text().contains(&format!("://{HOST}/docs/a/b")));
    // All other paths are served by the customer's own server.
    assert_eq!(nginx.get("/pricing").status, 404);
    // A real client, which is given the address of the file or of the documentation.
    for path in ["/skill.md", "/docs/skill.md", "/docs", ""] {
        let url = format!("http://{HOST}:{}{path}", nginx.address.port());
        let installed = clients::installed_from(&edge, &url);
        assert_eq!(installed, [("sdk".to_owned(), SKILL.to_owned())], "{url}");
    }
}
