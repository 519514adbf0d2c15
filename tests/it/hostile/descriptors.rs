//! No client uses up the file descriptors of the process: with streams that it does not read, with
//! requests to a server that does not respond, or with connections.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use crate::certificates::Authority;
use crate::edge::{Edge, Setup};
use crate::http::{self, Connection, connect_from, socket_from};
use crate::http2::{self, Client, Exchange};
use crate::origin::{self, After, Origin};
use crate::presets::{DOMAIN, SKILL};
use crate::tls::encrypted;

/// The limit of descriptors. At most half of them are reserved.
const LIMIT: usize = 300;
/// How many streams a connection may have.
const STREAMS: usize = 100;
/// How many large files the site has: more than may be open at once.
const FILES: usize = 20;
/// How many files of one owner may be open at once. All owners together may have a tenth of the
/// descriptors that are not reserved, and one owner half of that.
const OPEN_MAX: usize = 8;
/// The length of a large file, which is not held in memory.
const FILE_BYTES: usize = 1 << 20;

/// A gateway with few descriptors, a site with large files, and two sites with their own servers.
struct Site {
    authority: Authority,
    edge: Edge,
    /// Takes connections, and never responds.
    hanging: TcpListener,
    _origin: Origin,
}

impl Site {
    fn start(connections: &str) -> Self {
        let authority = Authority::new();
        let hanging = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = hanging.local_addr().unwrap();
        let silent = hanging.try_clone().unwrap();
        std::thread::spawn(move || {
            let mut open = Vec::new();
            while let Ok((stream, _)) = silent.accept() {
                open.push(stream);
            }
        });
        let origin = Origin::responding(|request, stream| {
            origin::write_page(stream, &request.method, "well");
            After::Keep
        });
        let script = format!("ulimit -n {LIMIT}; exec \"$@\"");
        let setup = encrypted(&authority, Setup::new())
            .wrapped_by(&["sh", "-c", &script, "sh"])
            .conf("connections", connections)
            .acme("origin: embedded")
            .site(
                "hanging",
                &format!("origin: {{ url: \"http://{address}\" }}"),
            )
            .site("well", &origin.record())
            .site("other", "origin: embedded");
        publish_videos(&setup, "acme", FILES, 0);
        publish_videos(&setup, "other", 1, 1);
        Self {
            authority,
            edge: setup.start(),
            hanging,
            _origin: origin,
        }
    }

    /// Opens a connection whose streams get no content.
    async fn closed_window(&self) -> Client {
        let mut settings = h2::client::Builder::new();
        settings.initial_window_size(0);
        let config = self.authority.client(&["h2"]);
        Client::open_with(self.edge.https.unwrap(), DOMAIN, config, settings).await
    }

    /// Checks that other clients get their responses at once, and so does the operator; and that
    /// nothing in the process was without a descriptor.
    fn check_others(&self) {
        for (host, path) in [
            (DOMAIN, "/"),
            (DOMAIN, "/skill.md"),
            (DOMAIN, "/video-0.mp4"),
            ("well.waypost.localhost", "/any"),
        ] {
            let response = http::request(self.edge.http, "GET", host, path, &[]);
            assert_eq!(response.status, 200, "{host}{path}");
        }
        let health = http::request(self.edge.operator, "GET", "localhost", "/healthz", &[]);
        assert_eq!(health.status, 200);
        // A release is stored and served.
        let docs = [("skill.md", SKILL)];
        self.edge.publish("well", &docs);
        let errors = |line: &serde_json::Value| {
            let message = line["message"].as_str().unwrap_or_default();
            line["level"] == "error" || message.contains("accept:")
        };
        if self.edge.count_log(errors) > 0 {
            panic!("{}", self.edge.wait_for_log(errors));
        }
        let open = fs::read_dir(format!("/proc/{}/fd", self.edge.id())).unwrap();
        let open = open.count();
        assert!(open < LIMIT - 20, "{open} descriptors");
    }

    fn limited(&self) -> f64 {
        self.edge
            .metric("gateway_requests_ended_total{reason=\"descriptor_limit\"}")
    }
}

/// Publishes a site with large files, which differ from those of another `byte`.
fn publish_videos(setup: &Setup, project: &str, files: usize, byte: u8) {
    let config = r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#;
    // A release has the files that pages name.
    let links = (0..files).map(|number| format!("[{number}](/video-{number}.mp4)\n"));
    let page: String = links.collect();
    let docs = setup.documentation(&[
        ("skill.md", SKILL),
        ("docs.json", config),
        ("index.mdx", &page),
    ]);
    for number in 0..files {
        let mut bytes = vec![byte; FILE_BYTES];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        fs::write(docs.join(format!("video-{number}.mp4")), bytes).unwrap();
    }
    setup.publish_directory(project, &docs);
}

/// Begins a request on each stream of a connection.
async fn fill(client: &mut Client, host: &str, path: &str) -> Vec<Exchange> {
    let mut open = Vec::new();
    for _ in 0..STREAMS {
        open.push(client.begin(http2::get(host, path), true).await.unwrap());
    }
    open
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_are_not_read_share_the_descriptor_of_their_file() {
    let site = Site::start("{}");
    let mut held = Vec::new();
    for _ in 0..5 {
        let mut client = site.closed_window().await;
        for exchange in fill(&mut client, DOMAIN, "/video-0.mp4").await {
            let response = exchange.response.await.unwrap();
            assert_eq!(response.status(), 200);
            held.push(response);
        }
        held.shrink_to_fit();
        std::mem::forget(client);
    }
    tokio::task::block_in_place(|| site.check_others());
    assert!(site.limited() < 0.5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_one_open_file_too_many_gets_503() {
    let site = Site::start("{}");
    let mut client = site.closed_window().await;
    let mut held = Vec::new();
    for number in 0..FILES {
        let path = format!("/video-{number}.mp4");
        let exchange = client.begin(http2::get(DOMAIN, &path), true).await.unwrap();
        let response = exchange.response.await.unwrap();
        match number < OPEN_MAX {
            true => assert_eq!(response.status(), 200, "{number}"),
            false => {
                assert_eq!(response.status(), 503, "{number}");
                assert!(response.headers().contains_key("retry-after"));
            }
        }
        held.push(response);
    }
    // The files of another owner are sent to another client.
    let other = tokio::task::block_in_place(|| {
        let stream = connect_from(Ipv4Addr::new(127, 0, 0, 2), site.edge.http);
        let mut connection = Connection::over(stream);
        let host = "other.waypost.localhost";
        let head = format!("GET /video-0.mp4 HTTP/1.1\r\nHost: {host}\r\n\r\n");
        connection.send(head.as_bytes());
        connection.receive("GET").unwrap()
    });
    assert_eq!((other.status, other.body.len()), (200, FILE_BYTES));
    drop(held);
    tokio::task::block_in_place(|| {
        // The streams were reset, so their files are closed, and the others are served again.
        let last = format!("/video-{}.mp4", FILES - 1);
        http::wait_until("the files are closed", || {
            site.edge.get(DOMAIN, &last).status == 200
        });
        site.check_others();
        assert!(site.limited() > 11.5);
    });
}

#[test]
fn one_client_cannot_hold_the_files_of_all_owners_open() {
    const OWNERS: u8 = 10;
    let host = |owner: u8| format!("owner-{owner}.waypost.localhost");
    let script = format!("ulimit -n {LIMIT}; exec \"$@\"");
    let mut setup = Setup::new().wrapped_by(&["sh", "-c", &script, "sh"]);
    for owner in 0..OWNERS {
        setup = setup.site(&format!("owner-{owner}"), "origin: embedded");
    }
    for owner in 0..OWNERS {
        publish_videos(&setup, &format!("owner-{owner}"), 2, owner);
    }
    let edge = setup.start();
    // Returns the status, and the connection, which reads no more than the header.
    let begin = |from: Ipv4Addr, owner: u8, file: u8| {
        let socket = socket_from(from);
        socket.set_recv_buffer_size(4096).unwrap();
        socket.connect(&edge.http.into()).unwrap();
        let mut stream = TcpStream::from(socket);
        let host = host(owner);
        let head = format!("GET /video-{file}.mp4 HTTP/1.1\r\nHost: {host}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut line = [0; 12];
        stream.read_exact(&mut line).unwrap();
        (String::from_utf8_lossy(&line[9..]).into_owned(), stream)
    };
    let mut held = Vec::new();
    for owner in 0..OWNERS {
        for file in 0..2 {
            held.push(begin(Ipv4Addr::LOCALHOST, owner, file));
        }
    }
    let open = held.iter().filter(|(status, _)| status == "200").count();
    assert_eq!(open, OPEN_MAX);
    assert!(
        held.iter()
            .skip(OPEN_MAX)
            .all(|(status, _)| status == "503")
    );
    let (status, _connection) = begin(Ipv4Addr::new(127, 0, 0, 2), OWNERS - 1, 1);
    assert_eq!(status, "200");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_a_server_that_does_not_respond_leave_descriptors_for_others() {
    for fast_path in [true, false] {
        let site = Site::start(&format!("{{ fast_path: {fast_path} }}"));
        let mut held = Vec::new();
        for _ in 0..5 {
            let mut client = site.closed_window().await;
            held.extend(fill(&mut client, "hanging.waypost.localhost", "/any").await);
            std::mem::forget(client);
        }
        tokio::task::block_in_place(|| site.check_others());
        // Most have no place, and get an answer soon.
        let mut busy = 0;
        for exchange in held {
            let answer = tokio::time::timeout(Duration::from_secs(1), exchange.response);
            busy += usize::from(matches!(answer.await, Ok(Ok(it)) if it.status() == 503));
            if busy == 3 * STREAMS {
                break;
            }
        }
        assert_eq!(busy, 3 * STREAMS);
    }
}

/// Begins a request from an address of this machine.
fn begin_from(from: Ipv4Addr, site: &Site, host: &str) -> Connection {
    let mut connection = Connection::over(connect_from(from, site.edge.http));
    connection.send(format!("GET /any HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    connection
}

/// Begins 40 requests to sites whose servers never respond, one site for each owner. Then another
/// client gets a response of another site at once.
fn hanging_sites_leave_descriptors(owners: &[&str], client_of: impl Fn(u8) -> Ipv4Addr) {
    const REQUESTS: u8 = 40;
    for fast_path in [true, false] {
        let site = Site::start(&format!("{{ fast_path: {fast_path} }}"));
        let address = site.hanging.local_addr().unwrap();
        let records: String = (0..)
            .zip(owners)
            .map(|(n, owner)| {
                format!(
                    "---\nproject: h{n}\nowner: {owner}\nsubdomain: h{n}\n\
                     origin: {{ url: \"http://{address}\" }}\n"
                )
            })
            .collect();
        let edge = &site.edge;
        edge.change_sites(|| edge.setup.write_records("many", &records));
        let _held: Vec<_> = (0..REQUESTS)
            .map(|n| {
                let host = format!("h{}.waypost.localhost", usize::from(n) % owners.len());
                begin_from(client_of(n), &site, &host)
            })
            .collect();
        let in_progress = || {
            let list = http::request(edge.operator, "GET", "localhost", "/upstreams", &[]).json();
            let servers = list["servers"].as_array().unwrap().clone();
            let of = |server: &serde_json::Value, name: &str| server[name].as_f64().unwrap();
            let requests = servers.iter();
            requests
                .map(|server| of(server, "requests") + of(server, "queued"))
                .sum::<f64>()
        };
        http::wait_until("a request has no place and no response", || {
            in_progress() + site.limited() >= f64::from(REQUESTS)
        });
        let mut other = begin_from(Ipv4Addr::new(127, 0, 9, 9), &site, "well.waypost.localhost");
        let response = other.receive("GET").unwrap();
        assert_eq!(response.status, 200, "fast path {fast_path}");
    }
}

#[test]
fn an_owner_whose_servers_never_respond_leaves_descriptors_for_others() {
    hanging_sites_leave_descriptors(&["hostile"; 3], |n| Ipv4Addr::new(127, 0, 1, n + 1));
}

#[test]
fn a_client_of_many_servers_leaves_descriptors_for_others() {
    let owners = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    hanging_sites_leave_descriptors(&owners, |_| Ipv4Addr::new(127, 0, 0, 7));
}

#[test]
fn slow_readers_from_one_address_leave_connections_for_others() {
    let site = Site::start("{}");
    let lowered = site.edge.wait_for_log(|line| line["of_address"].is_u64());
    let room = |key: &str| lowered[key].as_u64().unwrap();
    assert!(
        room("of_address") <= room("connections_max") / 2,
        "{lowered}"
    );
    let slow: Vec<_> = (0..LIMIT)
        .map(|_| {
            let socket = socket_from(Ipv4Addr::new(127, 0, 0, 9));
            socket.set_recv_buffer_size(8 << 10).unwrap();
            socket.connect(&site.edge.http.into()).unwrap();
            let mut stream = TcpStream::from(socket);
            let head = format!("GET /video-0.mp4 HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n");
            // It is closed if the address has too many.
            let _closed = stream.write_all(head.as_bytes());
            stream
        })
        .collect();
    site.check_others();
    let mut other = Connection::open(site.edge.http);
    other.send(format!("GET /skill.md HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n").as_bytes());
    assert_eq!(other.receive("GET").unwrap().text(), SKILL);
    drop(slow);
}
