//! How long does an update take, from the branch to the release in the store?
//!
//! Each round queues an update of a git repository of this machine, starts `waypost worker`, and
//! waits for the end of the update: from the start of the worker, which takes some 50 ms, until the
//! release is promoted. The repository has 1,100 generated pages of 1.7 KB and 24 specifications of
//! 10 endpoints. The bench measures the first build, one changed page and all pages changed. It
//! measures each twice: once with the default configuration, and once with specifications by URL
//! allowed and a command for the `skill.md`, because both have a cost even if nothing is fetched
//! and the command writes nothing. The processor time counts the worker and its processes.
//!
//! `WAYPOST=PATH` measures another binary: to compare two commits, run this bench alternately for
//! both, on the same repository.

#![expect(clippy::print_stdout, reason = "its figures are its purpose")]

mod repository;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use repository::{PAGES, path, repository};
use serde_json::Value;
use waypost::clock::Clock;
use waypost::deploy::Timestamp;

/// Two methods of each of five paths in each specification.
const ENDPOINTS: usize = 5;
/// How often each kind of update is measured.
const ROUNDS: usize = 7;

/// A page of prose, lists, a table and code.
fn page(number: usize) -> String {
    let next = (number + 1) % PAGES;
    let mut text = format!("---\ntitle: Page {number}\ndescription: About {number}\n---\n\n");
    for section in 0..4 {
        let _ = write!(
            text,
            "## Section {section}\n\nSee [the next](/guides/page-{next}#section-{section}), with `code` \
             and **words** that fill the line, as prose does that explains how thing {number} is made, \
             what it is for, when to use it and what happens otherwise.\n\n- First, look at `thing {section}`.\n\
             - Then do it.\n\n```bash\ncurl https://api.example.com/v1/things/{number}\n```\n\n"
        );
    }
    text + "| Field | Meaning |\n|---|---|\n| `id` | Which |\n| `count` | How many |\n\n<Tip>Keys are shown **once**.</Tip>\n"
}

/// A repository that is pushed to, and the directories of the service that builds it.
struct Service {
    directory: tempfile::TempDir,
    program: PathBuf,
}

impl Service {
    fn new(is_rich: bool) -> Self {
        let program = std::env::var_os("WAYPOST").map(PathBuf::from);
        let service = Self {
            directory: tempfile::TempDir::new().expect("make a directory"),
            program: program.unwrap_or_else(|| env!("CARGO_BIN_EXE_waypost").into()),
        };
        let tree = repository(page, ENDPOINTS, None);
        for file in tree.files() {
            let target = service.path("docs").join(file.as_str());
            let parent = target.parent().expect("below the docs");
            std::fs::create_dir_all(parent).expect("make a directory");
            std::fs::write(target, tree.read(file).expect("in memory")).expect("write");
        }
        service.configure(is_rich);
        service.git(&["init", "--quiet", "--initial-branch=main"]);
        service.commit();
        service
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn configure(&self, is_rich: bool) {
        let root = self.directory.path().display();
        let mut conf = format!(
            "service: {{ domain: waypost.test, api_host: api.waypost.test }}\n\
             sites: {root}/sites\n\
             store: {{ local: {{ path: {root}/state/store }} }}\n\
             queue: {{ sqlite: {{ path: {root}/state/updates.sqlite }} }}\n\
             git: {{ mirrors: {root}/state/mirrors, local: [{root}] }}\n"
        );
        if is_rich {
            conf += "specifications: { hosts: [specifications.example.com] }\n\
                     generate: { command: [\"true\"] }\n";
        }
        let record = format!(
            "project: acme\nsubdomain: acme\nowner: acme\n\
             repository: {{ url: \"file://{root}/docs\", branch: main }}\n"
        );
        std::fs::create_dir(self.path("sites")).expect("make a directory");
        std::fs::write(self.path("sites/acme.yaml"), record).expect("write the site record");
        std::fs::write(self.path("waypost.yaml"), conf).expect("write the configuration");
        std::fs::create_dir(self.path("state")).expect("make a directory");
    }

    /// Begins with an empty store and no mirror, as for a new project.
    fn forget(&self) {
        std::fs::remove_dir_all(self.path("state")).expect("remove what the last round made");
        std::fs::create_dir(self.path("state")).expect("make a directory");
    }

    fn git(&self, arguments: &[&str]) {
        let run = Command::new("git")
            .current_dir(self.path("docs"))
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
            .args(arguments)
            .status();
        assert!(run.expect("run git").success(), "git {arguments:?}");
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "Edit"]);
    }

    /// Edits pages and commits them.
    fn edit(&self, pages: std::ops::Range<usize>, round: usize) {
        for number in pages {
            let file = path(&format!("guides/page-{number}.mdx"));
            let text = format!("{}\nEdited {round} times.\n", page(number));
            std::fs::write(self.path("docs").join(file.as_str()), text).expect("write a page");
        }
        self.commit();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .arg("--conf")
            .arg(self.path("waypost.yaml"))
            .stderr(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, .. } = self.command(arguments).output().expect("run");
        assert!(status.success(), "{arguments:?}: {status}");
        String::from_utf8(stdout).expect("UTF-8")
    }

    /// Runs one update; returns its wall time and its processor time.
    fn update(&self) -> (Duration, Duration) {
        let id = self.run(&["update", "trigger", "acme"]).trim().to_owned();
        let began = Timestamp::of(Clock::System.now());
        let mut worker = self.command(&["worker"]).spawn().expect("start a worker");
        // It fails if the update fails.
        self.run(&["update", "status", &id, "--follow"]);
        let record: Value =
            serde_json::from_str(&self.run(&["update", "status", &id])).expect("a record");
        let ended = record["endedAt"].as_str().expect("the end of the update");
        let ended = Timestamp::parse(ended).expect("a time");
        // The commands above have ended, so what is added now is the worker's.
        let before = processor_time();
        let process = rustix::process::Pid::from_child(&worker);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("stop it");
        worker.wait().expect("wait for the worker");
        let wall = Duration::from_millis(ended.millis() - began.millis());
        (wall, processor_time() - before)
    }
}

/// Measures several updates, each prepared by `before`, and prints median and range of wall and
/// processor time.
fn measure(what: &str, service: &Service, before: impl Fn(&Service, usize)) {
    let (mut wall, mut processor) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        before(service, round);
        let (time, used) = service.update();
        wall.push(time);
        processor.push(used);
    }
    let row = |mut times: Vec<Duration>| {
        times.sort();
        let (least, median, most) = (times[0], times[ROUNDS / 2], times[ROUNDS - 1]);
        format!("{median:>8.2?} ({least:.2?} to {most:.2?})")
    };
    println!(
        "{what:<36} wall {}; processor {}",
        row(wall),
        row(processor)
    );
}

/// Returns the processor time of all ended child processes.
///
/// Source: proc(5), fields 16 and 17 of the state, in hundredths of a second.
fn processor_time() -> Duration {
    let state = std::fs::read_to_string(Path::new("/proc/self/stat")).expect("Linux");
    let (_, numbers) = state.rsplit_once(')').expect("a name in parentheses");
    let used = numbers.split_whitespace().skip(13).take(2);
    let used = used.map(|ticks| ticks.parse::<u64>().expect("a number"));
    Duration::from_millis(10 * used.sum::<u64>())
}

fn main() {
    for (is_rich, how) in [(false, "default"), (true, "URLs and a command")] {
        let service = Service::new(is_rich);
        measure(&format!("{how}: first build"), &service, |service, _| {
            service.forget();
        });
        measure(
            &format!("{how}: one page changed"),
            &service,
            |service, round| service.edit(550..551, round),
        );
        measure(
            &format!("{how}: all pages changed"),
            &service,
            |service, round| service.edit(0..PAGES, round),
        );
    }
}
