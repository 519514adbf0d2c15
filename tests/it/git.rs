//! Repositories over every transport: how they are fetched, rejected and reported.
//!
//! HTTP is served by `git http-backend` behind a small server of the test, SSH by a real `sshd`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::backup::succeeds;
use crate::edge::{Edge, Setup};
use crate::ports::free_port;
use crate::presets::SKILL;
use crate::repository::{Repository, record, setup};

/// The token that the http server asks for.
const TOKEN: &str = "s3cr3t-t0k3n";

/// Triggers an update of the project `acme` on the command line and returns its final record.
#[track_caller]
fn deploy(setup: &Setup) -> serde_json::Value {
    let output = setup.run(&["update", "trigger", "acme", "--follow"]);
    let printed = String::from_utf8(output.stdout).unwrap();
    let id = printed.lines().next();
    record(
        setup,
        id.unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&output.stderr))),
    )
}

/// A setup with one attempt for each update, with these settings of git.
fn once(git: &str) -> Setup {
    let setup = setup();
    let root = setup.path("").display().to_string();
    setup
        .conf("git", &format!("{{ mirrors: {root}/mirrors, {git} }}"))
        .conf(
            "queue",
            &format!("{{ sqlite: {{ path: {root}/q.sqlite }}, attempts_max: 1 }}"),
        )
}

fn serve(setup: Setup, url: &str) -> Edge {
    let record = format!("repository: {{ url: \"{url}\", branch: main }}");
    setup.site("acme", &record).start()
}

/// Serves the repositories below `root` over smart http to clients with the token.
fn http_server(root: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let root = root.clone();
            std::thread::spawn(move || answer(stream, &root));
        }
    });
    address
}

/// Responds to one request with `git http-backend` (the part of RFC 3875 that it needs).
fn answer(stream: TcpStream, root: &Path) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        head.push(line.trim_end().to_owned());
    }
    let Some(request) = head.first() else { return };
    let field = |name: &str| {
        let mut fields = head.iter().filter_map(|line| line.split_once(": "));
        fields
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.to_owned())
    };
    let mut stream = stream;
    // `bot:` and the token in base 64.
    if field("authorization").as_deref() != Some("Basic Ym90OnMzY3IzdC10MGszbg==") {
        let unauthorized = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"git\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let _closed = stream.write_all(unauthorized.as_bytes());
        return;
    }
    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let length: usize = field("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", field("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", length.to_string())
        .env(
            "HTTP_CONTENT_ENCODING",
            field("content-encoding").unwrap_or_default(),
        )
        .env("GIT_PROTOCOL", field("git-protocol").unwrap_or_default())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    backend.stdin.take().unwrap().write_all(&body).unwrap();
    let output = backend.wait_with_output().unwrap().stdout;
    let end = output
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .unwrap();
    let fields = String::from_utf8_lossy(&output[..end]).into_owned();
    let status = fields
        .lines()
        .find_map(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    let head = format!("HTTP/1.1 {status}\r\n{fields}\r\nConnection: close\r\n\r\n");
    let _closed = stream
        .write_all(head.as_bytes())
        .and_then(|()| stream.write_all(&output[end + 4..]));
}

#[test]
fn http_credentials_come_from_a_file_and_are_in_no_record_or_log() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let address = http_server(setup.path(""));
    let root = setup.path("").display().to_string();
    let credentials = setup.path("credentials");
    fs::write(
        &credentials,
        format!("http://bot:{TOKEN}@127.0.0.1%3a{}\n", address.port()),
    )
    .unwrap();
    // A secret that others may read is rejected.
    fs::set_permissions(credentials, fs::Permissions::from_mode(0o600)).unwrap();
    let git = format!(
        "{{ mirrors: {root}/mirrors, allow_http: true, private_hosts: [127.0.0.1], credentials: [{{ host: 127.0.0.1, owners: [\"*\"], https: {root}/credentials }}] }}"
    );
    let edge = serve(
        setup.conf("git", &git),
        &format!("http://{address}/docs/.git"),
    );
    let update = deploy(&edge.setup);
    assert_eq!(update["status"], "success", "{update:#}");
    assert_eq!(
        edge.get("acme.waypost.localhost", "/skill.md").text(),
        SKILL
    );
    assert!(!update.to_string().contains(TOKEN));
    assert_eq!(edge.count_log(|line| line.to_string().contains(TOKEN)), 0);

    docs.push("Go on", &[("skill.md", &SKILL.replace("# SDK", "# More"))]);
    assert_eq!(deploy(&edge.setup)["commit"]["message"], "Go on");
}

#[test]
fn rejected_credentials_and_a_missing_repository_are_final_and_named() {
    let address = http_server(PathBuf::from("/nonexistent"));
    let edge = serve(
        once("allow_http: true, private_hosts: [127.0.0.1]"),
        &format!("http://{address}/docs.git"),
    );
    let update = deploy(&edge.setup);
    assert_eq!(
        (&update["status"], &update["attempts"]),
        (&"failure".into(), &1.into())
    );
    let summary = update["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("the repository does not exist, or the service may not read it"),
        "{summary}"
    );
}

#[test]
fn forbidden_repositories_are_rejected_before_a_command_runs() {
    for (url, why) in [
        (
            "ext::true",
            "this service does not fetch repositories over ext",
        ),
        (
            "/etc",
            "repositories of this machine are fetched only from the configured directories",
        ),
        (
            "http://127.0.0.1:1/docs.git",
            "this service does not fetch repositories over http",
        ),
        (
            "https://u:p4ssw0rd@127.0.0.1/docs.git",
            "the repository's URL contains a password",
        ),
    ] {
        let edge = serve(once("local: []"), url);
        let update = deploy(&edge.setup);
        assert_eq!(update["status"], "failure", "{url}");
        assert!(
            update["summary"].as_str().unwrap().starts_with(why),
            "{url}: {update:#}"
        );
        assert!(!update.to_string().contains("p4ssw0rd"));
    }
}

#[test]
fn a_repository_of_fifty_thousand_files_is_built() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    // Git makes the tree, because writing the files would take longer than the test.
    let blob = docs.git(&["hash-object", "-w", "skill.md"]);
    let lines: String = (0..50_000)
        .map(|n| format!("100644 blob {blob}\tdata/{}/{n}.txt\n", n % 500))
        .collect();
    fs::write(setup.path("index"), lines).unwrap();
    docs.git_reading(&["update-index", "--index-info"], &setup.path("index"));
    docs.git(&["commit", "--quiet", "--message", "Grow"]);
    let edge = setup.site("acme", &docs.record()).start();
    let update = deploy(&edge.setup);
    assert_eq!(update["status"], "success", "{update:#}");
    assert!(
        update["logs"].to_string().contains("read: 50001 files"),
        "{update:#}"
    );
}

/// An `sshd` with its own key, which accepts one other key.
struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        // It may have ended already.
        let _ended = self.0.kill();
        let _reaped = self.0.wait();
    }
}

#[test]
fn ssh_checks_the_host_key_and_reads_our_key_from_a_file() {
    assert!(
        Path::new("/usr/sbin/sshd").exists(),
        "sshd is not installed; `make test` installs openssh-server"
    );
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", SKILL)]);
    let path = |name: &str| setup.path(name).display().to_string();
    for name in ["host", "ours", "other"] {
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-f", &path(name)])
            .status();
        assert!(made.unwrap().success());
    }
    fs::copy(path("ours.pub"), path("authorized")).unwrap();
    fs::set_permissions(path("authorized"), fs::Permissions::from_mode(0o600)).unwrap();
    let port = free_port();
    let conf = format!(
        "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
         PasswordAuthentication no\nPermitRootLogin prohibit-password\nUsePAM no\n",
        path("host"),
        path("authorized")
    );
    fs::write(path("sshd_config"), conf).unwrap();
    // sshd needs this directory for its process without privileges. Only root can create it;
    // without it, sshd reports an error.
    let _made = fs::create_dir_all("/run/sshd");
    let sshd = Command::new("/usr/sbin/sshd")
        .args(["-D", "-e", "-f", &path("sshd_config")])
        .stderr(Stdio::piped())
        .spawn();
    let mut sshd = Sshd(sshd.unwrap());
    let log = BufReader::new(sshd.0.stderr.take().unwrap());
    let mut lines = log.lines().map_while(Result::ok);
    let mut before = Vec::new();
    let is_listening = |line: String| {
        before.push(line);
        before
            .last()
            .is_some_and(|line| line.contains("Server listening"))
    };
    assert!(lines.any(is_listening), "sshd does not start: {before:#?}");
    std::thread::spawn(move || lines.count());
    let known = |key: &str| {
        let key = fs::read_to_string(path(key)).unwrap();
        fs::write(path("known"), format!("[127.0.0.1]:{port} {key}")).unwrap();
    };
    known("host.pub");
    let user = String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
    let url = format!("ssh://{}@127.0.0.1:{port}{}", user.trim(), path("docs"));
    let git = |key: &str| {
        format!(
            "{{ mirrors: {}, private_hosts: [127.0.0.1], credentials: [{{ host: 127.0.0.1, owners: [\"*\"], ssh_key: {}, ssh_known_hosts: {} }}] }}",
            path("mirrors"),
            path(key),
            path("known")
        )
    };
    let (ours, other) = (git("ours"), git("other"));
    let (pubkey, queue) = (
        "other.pub".to_owned(),
        format!("{{ sqlite: {{ path: {} }}, attempts_max: 1 }}", path("q")),
    );
    let wrong_host = fs::read_to_string(path(&pubkey)).unwrap();
    let known_file = path("known");

    let edge = serve(setup.conf("git", &ours).conf("queue", &queue), &url);
    let update = deploy(&edge.setup);
    assert_eq!(update["status"], "success", "{update:#}");

    fs::write(&known_file, format!("[127.0.0.1]:{port} {wrong_host}")).unwrap();
    let update = deploy(&edge.setup);
    assert!(
        update["summary"]
            .as_str()
            .unwrap()
            .contains("another ssh key than before (SHA256:"),
        "{update:#}"
    );

    edge.signal("TERM");
    let edge = edge.ended().conf("git", &other).start();
    fs::write(
        &known_file,
        format!(
            "[127.0.0.1]:{port} {}",
            fs::read_to_string(edge.setup.path("host.pub")).unwrap()
        ),
    )
    .unwrap();
    let update = deploy(&edge.setup);
    assert!(
        update["summary"]
            .as_str()
            .unwrap()
            .contains("or the service may not read it"),
        "{update:#}"
    );
}

/// Documentation that shows the days of its last changes.
const DATED: &str = r#"{"name": "Acme", "metadata": {"timestamp": true},
    "navigation": {"pages": ["index", "guide"]}}"#;

#[test]
fn a_branch_and_its_clone_show_the_same_days_and_a_clone_without_history_says_so_once() {
    let setup = setup();
    let docs = Repository::new(&setup, "docs");
    let files = [
        ("docs.json", DATED),
        ("index.mdx", "Hi."),
        ("guide.mdx", "a"),
    ];
    docs.push("Begin", &files);
    docs.push("Change", &[("guide.mdx", "b")]);
    // The first commit is of the second day of 2026, the second one of the third day.
    let amend = "GIT_COMMITTER_DATE=2026-01-0$(($(git rev-list --count HEAD) + 1))T12:00:00Z \
        git -c user.name=Ada -c user.email=ada@acme.test commit --quiet --amend --no-edit";
    docs.git(&["rebase", "--quiet", "--root", "--exec", amend]);

    let edge = setup.site("acme", &docs.record()).start();
    let updated = deploy(&edge.setup);
    assert_eq!(updated["status"], "success", "{updated}");
    for (page, day) in [("/", "2026-01-02"), ("/guide", "2026-01-03")] {
        let shown = edge.get("acme.waypost.localhost", page);
        let time = format!("<time datetime=\"{day}\">");
        assert!(shown.text().contains(&time), "{updated}");
    }
    let served = succeeds(&edge.setup.run(&["releases", "acme"]));

    let clone = |name: &str, more: &[&str]| {
        let (to, from) = (edge.setup.path(name), edge.setup.path("docs"));
        let url = format!("file://{}", from.display());
        docs.git(&[&["clone", "--quiet"], more, &[&url, to.to_str().unwrap()]].concat());
        to
    };
    let run = |arguments: &[&str], directory: &Path| {
        let mut waypost = Command::new(env!("CARGO_BIN_EXE_waypost"));
        succeeds(&waypost.args(arguments).arg(directory).output().unwrap())
    };
    let whole = clone("whole", &[]);
    let out = edge.setup.path("out");
    let built = run(&["build", "--out", out.to_str().unwrap()], &whole);
    let release = built
        .split("release ")
        .nth(1)
        .unwrap()
        .split(':')
        .next()
        .unwrap();
    assert!(served.contains(release), "{served} {built}");
    assert!(!run(&["check"], &whole).contains("no-day"));

    let checked = run(&["check"], &clone("shallow", &["--depth=1"]));
    assert_eq!(checked.matches("no-day").count(), 1, "{checked}");
    assert!(checked.contains("2 pages have no day"), "{checked}");
}
