//! A relay between the gateway and an authority: a test decides at which step of an order the
//! answer is held back or replaced.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Instant;

use rustls::{ClientConfig, ServerConfig, ServerConnection, StreamOwned};

use crate::http::TIMEOUT;
use crate::pebble::Settings;
use crate::tls;

/// The paths of pebble, by the steps of an order.
pub const DIRECTORY: &str = "/dir";
pub const PLACE: &str = "/order-plz";
pub const AUTHORIZATION: &str = "/authZ/";
pub const CHALLENGE: &str = "/chalZ/";
pub const FINALIZE: &str = "/finalize-order/";
pub const CERTIFICATE: &str = "/certZ/";
pub const RENEWAL_INFO: &str = "/draft-ietf-acme-ari";

/// A running relay.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    pebble: SocketAddr,
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How many requests of each step have succeeded.
    counts: HashMap<&'static str, usize>,
    requests: usize,
    /// The step whose next answer is held back.
    hold: Option<&'static str>,
    is_held: bool,
    /// Answers in place of those of the authority: once each, or always.
    answers: Vec<(&'static str, Vec<u8>, bool)>,
}

impl Relay {
    /// Starts one in front of the authority of these settings.
    pub fn start(settings: &Settings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            pebble: settings.address(),
            client: settings.authority.client(&["http/1.1"]),
            server: settings.authority.server(&["127.0.0.1"], &["http/1.1"]),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = Arc::clone(&serving);
                // Either side may go away at any time.
                std::thread::spawn(move || drop(shared.pass(stream.unwrap())));
            }
        });
        Self { address, shared }
    }

    /// The entry of `acme.authorities`.
    pub fn entry(&self, settings: &Settings) -> String {
        let direct = settings.address().to_string();
        settings.entry().replace(&direct, &self.address.to_string())
    }

    /// Answers each request for the directory with one that has these facts, and no renewal
    /// information.
    pub fn change_directory(&self, meta: &serde_json::Value) {
        let at = |path: &str| format!("https://{}{path}", self.address);
        let directory = serde_json::json!({
            "newNonce": at("/nonce-plz"), "newAccount": at("/sign-me-up"), "newOrder": at(PLACE),
            "revokeCert": at("/revoke-cert"), "keyChange": at("/rollover-account-key"),
            "meta": meta,
        });
        let answer = answer("200 OK", "application/json", &directory.to_string());
        self.answer_always(DIRECTORY, &answer);
    }

    /// Holds back the next answer to a step.
    pub fn hold(&self, step: &'static str) {
        self.shared.lock().hold = Some(step);
    }

    #[track_caller]
    pub fn wait_until_held(&self) {
        let since = Instant::now();
        let mut state = self.shared.lock();
        while !state.is_held {
            assert!(since.elapsed() < 2 * TIMEOUT, "the step does not come");
            state = self.shared.changed.wait_timeout(state, TIMEOUT).unwrap().0;
        }
    }

    /// Sends the answer that is held back.
    pub fn release(&self) {
        let mut state = self.shared.lock();
        (state.hold, state.is_held) = (None, false);
        self.shared.changed.notify_all();
    }

    /// Answers the next request of a step with these bytes.
    pub fn answer_once(&self, step: &'static str, bytes: &[u8]) {
        let mut state = self.shared.lock();
        state.answers.push((step, bytes.to_vec(), true));
    }

    /// Answers each request of a step with these bytes.
    pub fn answer_always(&self, step: &'static str, bytes: &[u8]) {
        let mut state = self.shared.lock();
        state.answers.push((step, bytes.to_vec(), false));
    }

    /// Lets the authority answer a step again.
    pub fn answer_never(&self, step: &'static str) {
        let mut state = self.shared.lock();
        state.answers.retain(|(of, ..)| *of != step);
    }

    /// Returns how many requests have come.
    pub fn requests(&self) -> usize {
        self.shared.lock().requests
    }

    /// Returns how many requests of a step have succeeded.
    pub fn count(&self, step: &'static str) -> usize {
        self.shared.lock().counts.get(step).copied().unwrap_or(0)
    }
}

impl Shared {
    fn pass(&self, stream: TcpStream) -> std::io::Result<()> {
        let session = ServerConnection::new(Arc::clone(&self.server)).unwrap();
        let mut stream = StreamOwned::new(session, stream);
        let request = read_request(&mut stream)?;
        self.lock().requests += 1;
        let step = step_of(&request);
        let own = step.and_then(|step| self.own(step));
        let answer = match own {
            Some(answer) => answer,
            None => self.ask(&request)?,
        };
        // Pebble refuses some requests, so that clients learn to repeat them.
        if let Some(step) = step.filter(|_| answer.starts_with(b"HTTP/1.1 2")) {
            self.wait(step);
        }
        stream.write_all(&answer)?;
        stream.conn.send_close_notify();
        stream.flush()
    }

    /// Returns the answer of the test to a request of a step.
    fn own(&self, step: &'static str) -> Option<Vec<u8>> {
        let mut state = self.lock();
        let at = state.answers.iter().position(|(of, ..)| *of == step)?;
        let (_, answer, is_once) = state.answers[at].clone();
        if is_once {
            state.answers.remove(at);
        }
        Some(answer)
    }

    /// Counts a step, and waits if its answer is to be held back.
    fn wait(&self, step: &'static str) {
        let mut state = self.lock();
        *state.counts.entry(step).or_default() += 1;
        if state.hold != Some(step) || state.is_held {
            return;
        }
        state.is_held = true;
        self.changed.notify_all();
        while state.is_held {
            state = self.changed.wait(state).unwrap();
        }
    }

    /// Asks the authority.
    fn ask(&self, request: &[u8]) -> std::io::Result<Vec<u8>> {
        let mut stream = tls::connect(self.pebble, "127.0.0.1", &self.client)?;
        let head = memchr::memmem::find(request, b"\r\n\r\n").unwrap();
        stream.write_all(&request[..head])?;
        stream.write_all(b"\r\nConnection: close")?;
        stream.write_all(&request[head..])?;
        let mut answer = Vec::new();
        // Some servers end without a word.
        match stream.read_to_end(&mut answer) {
            Err(error) if answer.is_empty() => Err(error),
            _ => Ok(answer),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

/// Makes an answer with a status and content.
pub fn answer(status: &str, kind: &str, content: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nReplay-Nonce: bm90IGEgbm9uY2U\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{content}",
        content.len()
    )
    .into_bytes()
}

fn step_of(request: &[u8]) -> Option<&'static str> {
    let line = request.split(|&b| b == b'\r').next()?;
    let path = line.split(|&b| b == b' ').nth(1)?;
    let steps = [
        DIRECTORY,
        PLACE,
        AUTHORIZATION,
        CHALLENGE,
        FINALIZE,
        CERTIFICATE,
        RENEWAL_INFO,
    ];
    let mut steps = steps.into_iter();
    steps.find(|step| path.starts_with(step.as_bytes()))
}

/// Reads a request with its content.
fn read_request(stream: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(head) = memchr::memmem::find(&request, b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&request[..head]).to_ascii_lowercase();
            let lengths = text
                .lines()
                .filter_map(|line| line.strip_prefix("content-length:"));
            let length: usize = lengths
                .map(|value| value.trim().parse::<usize>().unwrap())
                .sum();
            if request.len() >= head + 4 + length {
                return Ok(request);
            }
        }
        match stream.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            read => request.extend_from_slice(&piece[..read]),
        }
    }
}
