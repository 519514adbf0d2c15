//! The fast path over HTTP/1.1 allocates nothing for a response with a document or a page, and the
//! direct path allocates nothing for a request to an upstream.
//!
//! This is a separate test binary, because it replaces the allocator by one that counts. The
//! gateway runs on the thread of the test; the client runs on another thread and is not counted.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(unsafe_code, reason = "a global allocator that counts and hands on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pingora::server::configuration::ServerConf;
use waypost::build::{Input, Options, build};
use waypost::clock::Clock;
use waypost::digest::Digest;
use waypost::discovery::{Listed, Summary};
use waypost::gateway::access::{Access, Target};
use waypost::gateway::balance::Balancer;
use waypost::gateway::clients::{ClientLimits, Clients};
use waypost::gateway::drain::{Drain, Phase};
use waypost::gateway::forward::TrustedPeers;
use waypost::gateway::tls::Policy;
use waypost::gateway::{ConnectionHandler, Gateway, Limits, Listeners, UpstreamLimits};
use waypost::index::{Cache, Documents, Files, Index, Listing, Material, SkillFile, State, Stored};
use waypost::origin::{self, Resolver};
use waypost::response::RequestHeaders;
use waypost::response::encoding::Effort;
use waypost::site::{
    Host, HostHeader, Origin, PrivateHost, ProjectId, Scheme, Service, Site, Upstream, UpstreamHttp,
};
use waypost::source::{Tree, TreePath};
use waypost::store::Store;
use waypost::telemetry::Metrics;

/// Requests before counting, in which buffers grow to their size.
const WARM_UP: usize = 100;
/// The least number of requests that are counted.
const COUNTED: usize = 2000;
/// The shortest time of counting, so that it includes work that happens once a second.
const COUNTED_FOR: Duration = Duration::from_millis(1100);

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes unchanged to `System`; the counter is a thread-local without destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller guarantees what `System` requires.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The files of a site with one page of some kilobytes.
fn files(site: &Site, directory: &Path) -> Files {
    let written = [
        (
            "docs.json",
            r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#.to_owned(),
        ),
        ("index.mdx", "Words to read.\n\n".repeat(200)),
    ];
    let written = written.map(|(path, text)| (TreePath::parse(path).unwrap(), text.into()));
    let options = Options::default();
    let input = Input::read(Tree::from_files(written, []), &options);
    let release = build(&input, &options).release;
    let store = Store::open_directory(directory.join("store")).unwrap();
    store.put(&release).unwrap();
    let listing = Listing::of(release.inventory().clone(), &store).unwrap();
    Files::new(
        Stored {
            store: Arc::new(store),
            cache: Arc::new(Cache::default()),
            release: release.id(),
            project: site.project.clone(),
            owner: Arc::from(&*site.owner),
            older_files: std::sync::OnceLock::new(),
        },
        listing,
        "https://docs.acme.test",
        1_700_000_000,
    )
}

/// Reads the page from the store, as the proxy path does for the first request.
fn cached(index: &Index) {
    let served = index.served("docs.acme.test").unwrap();
    for accept_encoding in [None, Some(&b"br"[..])] {
        let headers = RequestHeaders {
            accept_encoding,
            ..RequestHeaders::GET
        };
        let page = origin::response(&served, "/", &headers);
        assert_eq!(page.status, 200);
    }
}

/// Starts an upstream on threads of its own. Its responses have a length, or chunks.
fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(read @ 1..) = stream.read(&mut buffer) {
                    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
                    let response: &[u8] = match &buffer[..read] {
                        [b'H', ..] => head,
                        get if get.starts_with(b"GET /chunks ") => {
                            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
                        }
                        _ => b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                    };
                    stream.write_all(response).unwrap();
                }
            });
        }
    });
    address
}

/// A site before an upstream.
fn site_before(upstream: SocketAddr) -> Arc<Site> {
    Arc::new(Site {
        domains: vec![Host::parse("app.acme.test").unwrap()],
        origin: Origin::Upstream(Upstream {
            scheme: Scheme::Http,
            host: upstream.ip().to_string().into(),
            port: upstream.port(),
            http: UpstreamHttp::One,
            host_header: HostHeader::Upstream,
            weight: 1,
            others: Box::default(),
            requests_max: None,
            copies: true,
            check: None,
        }),
        ..Site::new(ProjectId::parse("app").unwrap())
    })
}

/// A gateway that serves one site with one skill of some kilobytes, and one before an upstream.
fn gateway(directory: &Path) -> Arc<Gateway> {
    let service = Service::default();
    let site = Arc::new(Site {
        domains: vec![Host::parse("docs.acme.test").unwrap()],
        ..Site::new(ProjectId::parse("acme").unwrap())
    });
    let body = "Use the SDK to create an order, then follow it. ".repeat(50);
    let listed = Listed {
        slug: "sdk".into(),
        name: "sdk".into(),
        description: "Use the SDK.".into(),
        digest: Digest::of(body.as_bytes()),
        generated: false,
    };
    let material = Material {
        summary: Summary::new("Acme", "Documentation.", "1.0", vec![listed]),
        skills: vec![SkillFile::encoded(body.into(), Effort::Load)],
        promoted_at: 1_700_000_000,
        files: Some(Arc::new(files(&site, directory))),
    };
    let documents = Documents::compile(&site, &service, &material).unwrap();
    let index = Index::new(service);
    index.drop_hosts(index.put_sites([
        (site, State::Public(Arc::new(documents))),
        (site_before(upstream()), State::Unreleased),
    ]));
    cached(&index);
    let metrics = Arc::new(Metrics::new());
    Arc::new(Gateway {
        proxy_protocol: Vec::new(),
        index: Arc::new(index),
        access: Access::start(&Target::Off, metrics.access_lines_dropped.clone()).unwrap(),
        metrics: Arc::clone(&metrics),
        limits: Arc::new(Limits::default()),
        upstream: UpstreamLimits::default(),
        clients: Arc::new(Clients::new(
            ClientLimits::default(),
            TrustedPeers::default(),
            &metrics,
        )),
        open: Arc::default(),
        top: Arc::default(),
        pressure: Arc::default(),
        trusted: TrustedPeers::default(),
        fast_path: true,
        copies: None,
        admin: None,
        tls: Policy::default(),
        challenges: None,
        drain: Drain::new(),
        balancer: Arc::new(Balancer::new(
            UpstreamLimits::default(),
            Arc::clone(&metrics),
        )),
        resolver: Resolver::new(
            ["127.0.0.1".parse::<PrivateHost>().unwrap()]
                .into_iter()
                .collect(),
        ),
        clock: Clock::System,
    })
}

/// Sends requests one after the other; `counted` is called before and after the requests that
/// count.
fn request(
    address: SocketAddr,
    requests: &[&str],
    counted: &std::sync::mpsc::Sender<()>,
    go: &std::sync::mpsc::Receiver<()>,
) {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut buffer = vec![0; 64 << 10];
    let mut since = Instant::now();
    for round in 0.. {
        if round == WARM_UP {
            counted.send(()).unwrap();
            go.recv().unwrap();
            since = Instant::now();
        }
        if round >= WARM_UP + COUNTED && since.elapsed() >= COUNTED_FOR {
            break;
        }
        let request = requests[round % requests.len()];
        stream.write_all(request.as_bytes()).unwrap();
        let mut length = 0;
        let end = loop {
            length += stream.read(&mut buffer[length..]).unwrap();
            if let Some(end) = buffer[..length]
                .windows(4)
                .position(|window| window == b"\r\n\r\n")
            {
                break end + 4;
            }
        };
        let head = str::from_utf8(&buffer[..end]).unwrap();
        assert!(
            head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 304"),
            "{head}"
        );
        let field = head
            .lines()
            .find_map(|line| line.strip_prefix("Content-Length: "));
        let body = if request.starts_with("HEAD") {
            0
        } else if head.contains("chunked") {
            "5\r\nhello\r\n0\r\n\r\n".len()
        } else {
            field.map_or(0, |value| value.parse().unwrap())
        };
        while length < end + body {
            length += stream.read(&mut buffer[length..]).unwrap();
        }
    }
    counted.send(()).unwrap();
}

#[test]
fn a_fast_path_response_over_http_1_allocates_nothing() {
    assert_no_allocation(&[
        "GET /.well-known/agent-card.json HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        "GET /skill.md HTTP/1.1\r\nHost: acme.waypost.localhost:8080\r\nAccept-Encoding: gzip, br\r\n\r\n",
        "HEAD /.well-known/skills/sdk/SKILL.md HTTP/1.1\r\nHost: docs.acme.test\r\nUser-Agent: node\r\n\r\n",
        "GET /.well-known/agent-skills/index.json HTTP/1.1\r\nHost: docs.acme.test\r\nIf-None-Match: *\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: docs.acme.test\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: docs.acme.test\r\nAccept: text/html, */*;q=0.8\r\nAccept-Encoding: br\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: docs.acme.test\r\nIf-None-Match: *\r\n\r\n",
    ]);
}

#[test]
fn a_request_on_the_direct_path_allocates_nothing() {
    assert_no_allocation(&[
        "GET /a HTTP/1.1\r\nHost: app.acme.test\r\nUser-Agent: node\r\nAccept: */*\r\n\r\n",
        "GET /chunks HTTP/1.1\r\nHost: app.acme.test\r\nCookie: a=b\r\n\r\n",
        "HEAD /a?b HTTP/1.1\r\nHost: app.acme.test\r\nAccept-Encoding: gzip, br\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: app.acme.test\r\nContent-Length: 2\r\n\r\nok",
    ]);
}

/// Sends these requests again and again; once the buffers have grown, nothing may be allocated.
#[track_caller]
fn assert_no_allocation(requests: &'static [&'static str]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let gateway = gateway(directory.path());
    let (counted, turn) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel();
    let allocations = runtime.block_on(async {
        let handler =
            ConnectionHandler::new(Arc::clone(&gateway), &Arc::new(ServerConf::default()), None);
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = socket.local_addr().unwrap();
        let open = Listeners {
            http: vec![socket],
            https: Vec::new(),
        }
        .open()
        .unwrap();
        let listening = tokio::spawn(async move { handler.listen(open).await });
        let client = std::thread::spawn(move || request(address, requests, &counted, &wait));
        // The gateway continues to run while this waits for the client.
        let wait_for_turn = async || {
            while turn.try_recv().is_err() {
                tokio::task::yield_now().await;
            }
        };
        wait_for_turn().await;
        go.send(()).unwrap();
        let before = ALLOCATIONS.get();
        wait_for_turn().await;
        let after = ALLOCATIONS.get();
        client.join().unwrap();
        gateway.drain.enter(Phase::Draining);
        listening.await.unwrap();
        after - before
    });
    assert_eq!(
        allocations, 0,
        "{COUNTED} or more answers allocated {allocations} times"
    );
}
