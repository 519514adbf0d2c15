//! OpenAPI specifications by URL: the allowed hosts, and the result of a build with and without a
//! response.
//!
//! The server is real and uses TLS.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::certificates::Authority;
use crate::edge::Setup;
use crate::presets::SUBDOMAIN;
use crate::repository::{self, Repository, follow, key, trigger};

const PETS: &str = r#"{
  "openapi": "3.1.0", "info": {"title": "Pets", "version": "1"},
  "paths": {"/pets": {"get": {"summary": "List pets", "responses": {}}}}
}"#;
/// The text of the generated skill about the endpoint.
const ENDPOINT: &str = "/pets";

/// A server of specifications, with a certificate that only its own test trusts.
struct Server {
    address: SocketAddr,
    authority: Authority,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Status, `Location` and body by target; 404 for all others.
    respond_with: Mutex<HashMap<String, (u16, String, String)>>,
    requests: Mutex<Vec<String>>,
}

impl Server {
    fn start() -> Self {
        let authority = Authority::new();
        let config = authority.server(&["localhost"], &[]);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // A client that does not trust the certificate closes the connection early.
                let _hung_up = serving.respond(stream, Arc::clone(&config));
            }
        });
        Self {
            address,
            authority,
            shared,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("https://localhost:{}{path}", self.address.port())
    }

    fn respond_with(&self, path: &str, status: u16, body: &str) {
        let respond = (status, String::new(), body.to_owned());
        let mut respond_with = self.shared.respond_with.lock().unwrap();
        respond_with.insert(path.to_owned(), respond);
    }

    fn redirect_to(&self, path: &str, location: &str) {
        let respond = (302, location.to_owned(), String::new());
        let mut respond_with = self.shared.respond_with.lock().unwrap();
        respond_with.insert(path.to_owned(), respond);
    }

    fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.requests.lock().unwrap())
    }

    /// Writes the authority's certificate to a file that replaces the system's certificates.
    fn trusted_in(&self, setup: &Setup) -> String {
        let file = setup.path("authority.pem");
        self.authority.write(&file);
        format!("SSL_CERT_FILE={}", file.display())
    }
}

impl Shared {
    fn respond(&self, stream: TcpStream, config: Arc<ServerConfig>) -> std::io::Result<()> {
        let tls = ServerConnection::new(config).map_err(std::io::Error::other)?;
        let mut stream = BufReader::new(StreamOwned::new(tls, stream));
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
        while stream.read_line(&mut line)? > 2 {}
        let respond = self.respond_with.lock().unwrap().get(&target).cloned();
        self.requests.lock().unwrap().push(target);
        let (status, location, body) = respond.unwrap_or((404, String::new(), String::new()));
        let location = match location.is_empty() {
            true => location,
            false => format!("Location: {location}\r\n"),
        };
        let length = body.len();
        write!(
            stream.get_mut(),
            "HTTP/1.1 {status} Is\r\n{location}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        )?;
        stream.get_mut().conn.send_close_notify();
        stream.get_mut().flush()
    }
}

/// The files of documentation whose specification is behind a URL.
fn documentation(url: &str) -> Vec<(&'static str, String)> {
    let config = format!(
        r#"{{"name": "Acme", "navigation": {{"groups": [{{"group": "API", "openapi": "{url}", "pages": ["index"]}}]}}}}"#
    );
    vec![("docs.json", config), ("index.mdx", "# Welcome".to_owned())]
}

fn files<'f>(files: &'f [(&'static str, String)]) -> Vec<(&'static str, &'f str)> {
    files.iter().map(|(path, text)| (*path, &**text)).collect()
}

/// Runs `check` on documentation with a specification behind a URL.
fn check(setup: &Setup, server: &Server, path: &str, arguments: &[&str]) -> (Option<i32>, String) {
    let files_of = documentation(&server.url(path));
    let docs = setup.documentation(&files(&files_of));
    let output = run(setup, server, &docs, "check", arguments);
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code(), text)
}

fn run(
    setup: &Setup,
    server: &Server,
    docs: &Path,
    subcommand: &str,
    arguments: &[&str],
) -> Output {
    Command::new("env")
        .arg(server.trusted_in(setup))
        .arg(env!("CARGO_BIN_EXE_waypost"))
        .args([subcommand, docs.to_str().unwrap(), "--root"])
        .arg(docs)
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn hosts_that_are_not_allowed_get_no_request() {
    let (setup, server) = (Setup::new(), Server::start());
    server.respond_with("/pets.json", 200, PETS);

    let (code, text) = check(&setup, &server, "/pets.json", &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("is remote; nothing is generated from it"),
        "{text}"
    );
    let (code, text) = check(
        &setup,
        &server,
        "/pets.json",
        &["--fetch-from", "api.acme.com"],
    );
    assert_eq!(code, Some(0), "{text}");
    let reason = "is not fetched: localhost is not an allowed host";
    assert!(text.contains(reason), "{text}");
    assert_eq!(server.requests(), Vec::<String>::new());
}

#[test]
fn a_fetched_specification_is_read_like_a_file() {
    let (setup, server) = (Setup::new(), Server::start());
    let allowed = ["--fetch-from", "localhost"];
    server.redirect_to("/latest", "v1/pets");
    server.respond_with("/v1/pets", 200, PETS);

    let (code, text) = check(&setup, &server, "/latest", &allowed);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("2 pages (0 not in the navigation), 1 specification: 0 errors, 0 warnings"),
        "{text}"
    );
    assert_eq!(server.requests(), ["/latest", "/v1/pets"]);

    server.respond_with("/v1/pets", 200, "swagger: '2.0'\n");
    let (code, text) = check(&setup, &server, "/latest", &allowed);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("this is Swagger 2.0") && text.contains(&server.url("/latest")),
        "{text}"
    );
}

#[test]
fn a_page_binds_an_endpoint_of_a_specification_behind_a_url() {
    let (setup, server) = (Setup::new(), Server::start());
    server.respond_with("/pets.json", 200, PETS);
    let config = r#"{"name": "Acme", "navigation": {"pages": ["pets"]}}"#;
    let page = format!(
        "---\nopenapi: \"{} GET /dogs\"\n---\n",
        server.url("/pets.json")
    );
    let docs = setup.documentation(&[("docs.json", config), ("pets.mdx", &page)]);

    let output = run(
        &setup,
        &server,
        &docs,
        "check",
        &["--fetch-from", "localhost"],
    );
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("the page shows only `GET /dogs`")
            && text.contains("has no endpoint `GET /dogs`"),
        "{text}"
    );
    let output = run(&setup, &server, &docs, "check", &[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("is remote; nothing is generated from it"),
        "{text}"
    );
}

#[test]
fn a_failed_fetch_is_an_error_with_url_and_reason() {
    let (setup, server) = (Setup::new(), Server::start());
    let allowed = ["--fetch-from", "localhost"];
    server.respond_with("/broken", 503, "");
    server.redirect_to("/around", "/around");
    server.redirect_to("/elsewhere", "https://metadata.internal/");
    server.redirect_to("/plain", "http://localhost/pets.json");
    server.respond_with("/long", 200, &" ".repeat((16 << 20) + 1));
    for (path, reason) in [
        ("/absent", "localhost responded with 404"),
        ("/broken", "localhost responded with 503"),
        ("/around", "it is redirected more than 5 times"),
        (
            "/elsewhere",
            "it is redirected: metadata.internal is not an allowed host",
        ),
        ("/plain", "it is redirected: only https is fetched"),
        ("/long", "it is longer than 16777216 bytes"),
    ] {
        let (code, text) = check(&setup, &server, path, &allowed);
        assert_eq!(code, Some(1), "{path}: {text}");
        assert!(
            text.contains(&server.url(path)) && text.contains(reason),
            "{path}: {text}"
        );
    }
    // `*` allows every public host; a private host must be named.
    let (code, text) = check(&setup, &server, "/pets.json", &["--fetch-from", "*"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("localhost has no public address"), "{text}");
    // The certificate of this server is from an authority that is not trusted.
    let other_server = Server::start();
    let files_of = documentation(&other_server.url("/pets.json"));
    let docs = setup.documentation(&files(&files_of));
    let output = run(&setup, &server, &docs, "check", &allowed);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("request from localhost") && text.contains("certificate"),
        "{text}"
    );
    assert_eq!(other_server.requests(), Vec::<String>::new());
}

#[test]
fn a_failed_fetch_in_an_update_leaves_the_last_release_served() {
    let (setup, server) = (repository::setup(), Server::start());
    server.respond_with("/pets.json", 200, PETS);
    let root = setup.path("").display().to_string();
    let queue = format!(
        "{{ sqlite: {{ path: {root}/updates.sqlite }}, attempts_max: 2, retry_seconds: 1, retry_seconds_max: 1 }}"
    );
    let trusted = server.trusted_in(&setup);
    let setup = setup
        .conf("queue", &queue)
        .conf(
            "specifications",
            "{ hosts: [localhost], private_hosts: [localhost] }",
        )
        .wrapped_by(&["env", &trusted]);
    let docs = Repository::new(&setup, "docs");
    let files_of = documentation(&server.url("/pets.json"));
    docs.push("Begin", &files(&files_of));
    let key = key(&setup, "acme");
    let edge = setup
        .site("acme", &format!("owner: acme\n{}", docs.record()))
        .start();

    let update = follow(&edge.setup, &trigger(&edge, &key, "acme"));
    assert_eq!(update["status"], "success", "{update:#}");
    let skill = edge.get(SUBDOMAIN, "/skill.md").text().to_owned();
    assert!(skill.contains(ENDPOINT), "{skill}");

    // Only the author can correct a 404, so it is reported at once.
    server.respond_with("/pets.json", 404, "");
    let update = follow(&edge.setup, &trigger(&edge, &key, "acme"));
    assert_eq!(
        (&update["status"], &update["attempts"]),
        (&"failure".into(), &1.into()),
        "{update:#}"
    );
    let logs = update["logs"].to_string();
    assert!(
        logs.contains(&server.url("/pets.json")) && logs.contains("responded with 404"),
        "{logs}"
    );
    // A 503 may be temporary, so the request is repeated.
    server.respond_with("/pets.json", 503, "");
    let update = follow(&edge.setup, &trigger(&edge, &key, "acme"));
    assert_eq!(
        (&update["status"], &update["attempts"]),
        (&"failure".into(), &2.into()),
        "{update:#}"
    );
    assert!(
        update["summary"]
            .as_str()
            .unwrap()
            .contains("responded with 503"),
        "{update:#}"
    );
    assert_eq!(edge.get(SUBDOMAIN, "/skill.md").text(), skill);
}

#[test]
fn a_private_address_gets_no_request_unless_the_operator_allows_it() {
    let (setup, server) = (Setup::new(), Server::start());
    server.respond_with("/pets.json", 200, PETS);
    let setup = setup
        .conf("specifications", "{ hosts: [\"*\"] }")
        .site("acme", "");
    let files_of = documentation(&server.url("/pets.json"));
    let docs = setup.documentation(&files(&files_of));
    let publish = |setup: &Setup| {
        setup.write_conf();
        let conf = setup.path("waypost.yaml").display().to_string();
        run(
            setup,
            &server,
            &docs,
            "publish",
            &["--project", "acme", "--conf", &conf],
        )
    };

    let output = publish(&setup);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("localhost has no public address"), "{text}");
    assert_eq!(server.requests(), Vec::<String>::new());
    let setup = setup.conf(
        "specifications",
        "{ hosts: [\"*\"], private_hosts: [localhost] }",
    );
    let output = publish(&setup);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(server.requests(), ["/pets.json"]);
}
