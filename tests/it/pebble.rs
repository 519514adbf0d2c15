//! A certificate authority for one test: pebble, the test server of Let's Encrypt, with a DNS
//! server in which every name leads to this machine.
//!
//! `.ci/install test` unpacks it. Its keys are new at each start.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;

use crate::certificates::Authority;
use crate::http::TIMEOUT;
use crate::ports::free_port;

/// A running authority.
pub struct Pebble {
    settings: Settings,
    processes: Vec<Child>,
}

/// How an authority is started.
pub struct Settings {
    directory: TempDir,
    pub authority: Authority,
    /// The port that it connects to for HTTP-01.
    pub http: u16,
    /// The port that it connects to for TLS-ALPN-01.
    pub tls: u16,
    acme: u16,
    management: u16,
    dns: u16,
    /// The port on which the records of the DNS server are changed.
    names: u16,
    /// Names that it refuses.
    blocked: Vec<String>,
    /// Whether an account needs an external account.
    external: bool,
    /// How long certificates are valid, in seconds.
    life: u64,
    /// The directory of the program below `target/clients`.
    program: &'static str,
    /// The profiles, with the lives of their certificates in seconds.
    profiles: Vec<(&'static str, u64)>,
}

impl Settings {
    pub fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            authority: Authority::new(),
            http: free_port(),
            tls: free_port(),
            acme: free_port(),
            management: free_port(),
            dns: free_port(),
            names: free_port(),
            blocked: Vec::new(),
            external: false,
            life: 90 * 86_400,
            program: "pebble",
            profiles: Vec::new(),
        }
    }

    /// Lets the authority refuse a name.
    pub fn blocking(mut self, name: &str) -> Self {
        self.blocked.push(name.to_owned());
        self
    }

    /// Lets the authority refuse accounts without an external account.
    pub fn external(mut self) -> Self {
        self.external = true;
        self
    }

    /// Lets certificates be valid for so many seconds.
    pub fn life(mut self, seconds: u64) -> Self {
        self.life = seconds;
        self
    }

    /// Starts a newer version, which has profiles with these lives in seconds, and whose renewal
    /// information can be set. Only long tests install it.
    pub fn with_profiles(mut self, profiles: &[(&'static str, u64)]) -> Self {
        self.program = "pebble-2.10";
        self.profiles = profiles.to_vec();
        self
    }

    /// The address of the authority.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.acme))
    }

    /// The port on which the records of the DNS server are changed.
    pub fn names(&self) -> u16 {
        self.names
    }

    /// The address of the directory.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}/dir", self.acme)
    }

    /// The entry of `acme.authorities`.
    pub fn entry(&self) -> String {
        let ca_file = self.path("authority.pem");
        self.authority.write(&ca_file);
        format!(
            "{{ directory: \"{}\", ca_file: {} }}",
            self.url(),
            ca_file.display()
        )
    }

    /// The addresses of a gateway that this authority connects to.
    pub fn listen(&self) -> String {
        format!(
            "{{ http: [\"127.0.0.1:{}\"], https: [\"127.0.0.1:{}\"], operator: \"127.0.0.1:0\" }}",
            self.http, self.tls
        )
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn start(self) -> Pebble {
        let pair = self.authority.issue(&["localhost", "127.0.0.1"]);
        pair.write(self.directory.path(), "server");
        let mut pebble = Pebble {
            settings: self,
            processes: Vec::new(),
        };
        pebble.run();
        pebble
    }

    fn write(&self) {
        let mut conf = serde_json::json!({ "pebble": {
            "listenAddress": format!("127.0.0.1:{}", self.acme),
            "managementListenAddress": format!("127.0.0.1:{}", self.management),
            "certificate": self.path("server/fullchain.pem"),
            "privateKey": self.path("server/privkey.pem"),
            "httpPort": self.http,
            "tlsPort": self.tls,
            "ocspResponderURL": "",
            "externalAccountBindingRequired": self.external,
            "externalAccountMACKeys": { "kid-1": "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W" },
            "domainBlocklist": self.blocked,
            "retryAfter": { "authz": 1, "order": 1 },
            "certificateValidityPeriod": self.life,
        }});
        if !self.profiles.is_empty() {
            let profiles = self.profiles.iter().map(|(name, seconds)| {
                let profile = serde_json::json!({ "description": name, "validityPeriod": seconds });
                ((*name).to_owned(), profile)
            });
            conf["pebble"]["profiles"] = serde_json::Value::Object(profiles.collect());
        }
        fs::write(self.path("pebble.json"), conf.to_string()).unwrap();
    }
}

impl Pebble {
    fn run(&mut self) {
        let settings = &self.settings;
        settings.write();
        let dns = format!("127.0.0.1:{}", settings.dns);
        let spawn = |name: &str, arguments: &[&str]| {
            let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/target/clients");
            // Another version of the DNS server has other options.
            let folder = match name {
                "pebble" => settings.program,
                _ => "pebble",
            };
            let program = format!("{clients}/{folder}/usr/bin/{name}");
            Command::new(&program)
                .args(arguments)
                .env("PEBBLE_VA_NOSLEEP", "1")
                .stdin(Stdio::null())
                .stdout(fs::File::create(settings.path(&format!("{name}.log"))).unwrap())
                .stderr(Stdio::null())
                .spawn()
                .unwrap_or_else(|error| panic!("{program}: {error}; run `.ci/install test`"))
        };
        let management = format!("127.0.0.1:{}", settings.names);
        let names = [
            "-dns01",
            &dns,
            "-http01",
            "",
            "-https01",
            "",
            "-tlsalpn01",
            "",
            "-doh",
            "",
            "-management",
            &management,
            "-defaultIPv6",
            "",
        ];
        let conf = settings.path("pebble.json").display().to_string();
        self.processes = vec![
            spawn("pebble-challtestsrv", &names),
            spawn("pebble", &["-config", &conf, "-dnsserver", &dns]),
        ];
        for port in [settings.dns, settings.acme, settings.management] {
            let since = Instant::now();
            while TcpStream::connect(("127.0.0.1", port)).is_err() {
                assert!(
                    since.elapsed() < TIMEOUT,
                    "pebble does not listen on {port}"
                );
                crate::http::pause();
            }
        }
    }

    /// Stops it; [`Pebble::again`] starts it with new keys and without accounts.
    pub fn stop(&mut self) {
        for process in &mut self.processes {
            process.kill().unwrap();
            process.wait().unwrap();
        }
        self.processes.clear();
    }

    pub fn again(&mut self) {
        self.run();
    }

    /// The same, with certificates that are valid for so many seconds.
    pub fn again_with_life(&mut self, seconds: u64) {
        self.settings.life = seconds;
        self.run();
    }

    /// Returns how it was started.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns a TLS client that trusts certificates of this authority.
    pub fn client(&self, alpn: &[&str]) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.root()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Arc::new(config)
    }

    fn root(&self) -> CertificateDer<'static> {
        let pem = self.management("/roots/0");
        fs::write(self.settings.path("root.pem"), &pem).unwrap();
        CertificateDer::from_pem_slice(&pem).unwrap()
    }

    /// The file with the root certificate.
    pub fn root_file(&self) -> PathBuf {
        let _written = self.root();
        self.settings.path("root.pem")
    }

    /// Returns an answer of its management listener.
    pub fn management(&self, path: &str) -> Vec<u8> {
        let address = format!("https://127.0.0.1:{}{path}", self.settings.management);
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--cacert"])
            .arg(self.settings.path("authority.pem"))
            .arg(address)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }

    /// Sends content to its management listener.
    pub fn manage(&self, path: &str, content: &str) {
        let address = format!("https://127.0.0.1:{}{path}", self.settings.management);
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--cacert"])
            .arg(self.settings.path("authority.pem"))
            .args(["--data", content])
            .arg(address)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.settings.path("pebble.log")).unwrap()
    }

    /// Waits until it has accepted an order that replaces a certificate.
    ///
    /// Pebble 2.6 does not find a certificate whose serial number has a first byte of zero in DER
    /// (one of 256), and answers with an internal error. Then the gateway orders without naming it,
    /// and the next certificate is replaced.
    pub fn wait_for_replacement(&self) {
        let since = Instant::now();
        while !self.log().contains("is a replacement of") {
            assert!(since.elapsed() < TIMEOUT, "{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ended = process.kill();
            let _reaped = process.wait();
        }
    }
}
