//! Credentials stay with their owner: no host can make the service remove them, no other owner can
//! use them, and no record shows how the operator's network responds.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc::{Receiver, channel};

use crate::edge::{Edge, Setup};
use crate::ports::free_address;
use crate::repository::{follow, queue, setup};

/// A host that gives every request the same response, and reports the heads of the requests.
fn host(response: &str) -> (SocketAddr, Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, heads) = channel();
    let response = response.to_owned();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines = lines.map_while(Result::ok);
            let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
            // The test may have ended.
            let _reported = seen.send(head);
            let _closed = stream.write_all(response.as_bytes());
        }
    });
    (address, heads)
}

const UNAUTHORIZED: &str = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\n\
                       Content-Length: 0\r\nConnection: close\r\n\r\n";

/// A setup with one attempt for each update and these credentials.
fn with_credentials(credentials: &str) -> Setup {
    let setup = setup();
    let root = setup.path("").display().to_string();
    setup
        .conf(
            "git",
            &format!(
                "{{ mirrors: {root}/mirrors, allow_http: true, private_hosts: [127.0.0.1], credentials: [{credentials}] }}"
            ),
        )
        .conf(
            "queue",
            &format!("{{ sqlite: {{ path: {root}/q.sqlite }}, attempts_max: 1 }}"),
        )
}

/// Writes the login for a host to a file.
fn write_login(setup: &Setup, address: SocketAddr) -> String {
    let file = setup.path("credentials");
    let login = format!("http://bot:s3cr3t@127.0.0.1%3a{}\n", address.port());
    fs::write(&file, &login).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    login
}

fn repository(owner: &str, url: &str) -> String {
    format!("owner: {owner}\nrepository: {{ url: \"{url}\", branch: main }}")
}

fn summary(edge: &Edge, project: &str) -> String {
    let record = follow(&edge.setup, &queue(&edge.setup, project));
    assert_eq!(record["status"], "failure", "{record:#}");
    record["summary"].as_str().unwrap().to_owned()
}

#[test]
fn a_host_that_rejects_a_login_does_not_remove_it() {
    let (address, heads) = host(UNAUTHORIZED);
    let setup = setup();
    let file = setup.path("credentials").display().to_string();
    let root = setup.path("").display().to_string();
    let login = write_login(&setup, address);
    let git = format!(
        "{{ mirrors: {root}/mirrors, allow_http: true, private_hosts: [127.0.0.1], \
         credentials: [{{ host: 127.0.0.1, owners: [acme], https: {file} }}] }}"
    );
    let url = format!("http://{address}/acme/docs.git");
    let edge = setup
        .conf("git", &git)
        .site("acme", &repository("acme", &url))
        .start();
    let said = summary(&edge, "acme");
    assert!(
        said.starts_with("the repository does not exist, or the service may not read it"),
        "{said}"
    );
    let sent = |head: &Vec<String>| {
        let mut lines = head.iter();
        // `bot:s3cr3t` in base 64.
        lines.any(|line| line.contains("Basic Ym90OnMzY3IzdA=="))
    };
    assert!(heads.try_iter().any(|head| sent(&head)), "it was used");
    assert_eq!(fs::read_to_string(file).unwrap(), login);
}

#[test]
fn another_owner_can_neither_use_credentials_nor_name_what_is_reserved() {
    let (address, heads) = host(UNAUTHORIZED);
    let setup = with_credentials("");
    let file = setup.path("credentials").display().to_string();
    let root = setup.path("").display().to_string();
    write_login(&setup, address);
    let git = format!(
        "{{ mirrors: {root}/mirrors, allow_http: true, private_hosts: [127.0.0.1], credentials: [\
         {{ host: 127.0.0.1, owners: [acme], https: {file} }}, \
         {{ host: 127.0.0.1, path: acme, owner: acme, https: {file} }}] }}"
    );
    let url = |path: &str| format!("http://{address}/{path}");
    let edge = setup
        .conf("git", &git)
        .site("bob", &repository("bob", &url("acme/docs.git")))
        .site("other", &repository("bob", &url("bob/docs.git")))
        .start();
    assert_eq!(
        summary(&edge, "bob"),
        "this repository is reserved for another owner"
    );
    assert_eq!(heads.try_iter().count(), 0, "the host is not asked");
    summary(&edge, "other");
    let heads: Vec<_> = heads.try_iter().collect();
    assert!(!heads.is_empty());
    // `bot:s3cr3t` in base 64.
    let is_login = |line: &String| line.contains("Basic Ym90OnMzY3IzdA==");
    let authorized = heads.iter().flatten().any(is_login);
    assert!(!authorized, "{heads:#?}");
}

#[test]
fn a_redirect_leads_nowhere() {
    let (inside, asked) = host(UNAUTHORIZED);
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://{inside}/info/refs?service=git-upload-pack\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    );
    let (address, _heads) = host(&redirect);
    let url = format!("http://{address}/docs.git");
    let edge = with_credentials("")
        .site("acme", &repository("acme", &url))
        .start();
    let said = summary(&edge, "acme");
    assert!(said.contains("redirects"), "{said}");
    assert_eq!(asked.try_iter().count(), 0);
}

#[test]
fn a_record_does_not_tell_which_ports_of_a_host_are_open() {
    let closed = free_address();
    let (not_http, _) = host("SSH-2.0-OpenSSH_9.2\r\n");
    let (broken, _) = host("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let record = |address: SocketAddr| repository("acme", &format!("http://{address}/docs.git"));
    let edge = with_credentials("")
        .site("closed", &record(closed))
        .site("ssh", &record(not_http))
        .site("broken", &record(broken))
        .start();
    let said = ["closed", "ssh", "broken"].map(|project| summary(&edge, project));
    assert!(said.iter().all(|one| *one == said[0]), "{said:#?}");
    assert!(!said[0].contains("127.0.0.1"), "{said:#?}");
}

#[test]
fn a_record_does_not_tell_which_private_repositories_exist() {
    let status = |line: &str| {
        let (address, _heads) = host(&format!(
            "HTTP/1.1 {line}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        ));
        repository("acme", &format!("http://{address}/docs.git"))
    };
    let (refusing, _heads) = host(UNAUTHORIZED);
    let edge = with_credentials("")
        .site("absent", &status("404 Not Found"))
        .site("forbidden", &status("403 Forbidden"))
        .site(
            "refused",
            &repository("acme", &format!("http://{refusing}/docs.git")),
        )
        .start();
    let said = ["absent", "forbidden", "refused"].map(|project| summary(&edge, project));
    assert!(said.iter().all(|one| *one == said[0]), "{said:#?}");
    assert!(said[0].starts_with("the repository does not exist, or the service may not read it"));
}

#[test]
fn a_repository_url_reaches_no_private_address() {
    let (address, asked) = host(UNAUTHORIZED);
    let setup = setup();
    let root = setup.path("").display().to_string();
    let port = address.port();
    let record = |host: &str| repository("acme", &format!("http://{host}:{port}/docs.git"));
    let once = format!("{{ sqlite: {{ path: {root}/updates.sqlite }}, attempts_max: 1 }}");
    let edge = setup
        .conf(
            "git",
            &format!(
                "{{ mirrors: {root}/mirrors, allow_http: true, private_hosts: [10.0.0.0/8] }}"
            ),
        )
        .conf("queue", &once)
        .site("address", &record("127.0.0.1"))
        .site("name", &record("localhost"))
        .site("mapped", &record("[::ffff:127.0.0.1]"))
        .site("unknown", &record("no-such-host.invalid"))
        .site(
            "ssh",
            &repository("acme", &format!("ssh://git@localhost:{port}/docs.git")),
        )
        .start();
    for project in ["address", "mapped"] {
        let said = summary(&edge, project);
        assert!(said.contains("has no public address"), "{project}: {said}");
    }
    // The author does not learn whether a name exists in the network of the operator.
    let unknown = summary(&edge, "unknown");
    assert!(unknown.contains("cannot be reached"), "{unknown}");
    for project in ["name", "ssh"] {
        assert_eq!(summary(&edge, project), unknown, "{project}");
    }
    assert_eq!(asked.try_iter().count(), 0);
}
