//! How long does an update take, from the branch to the release in the store?
//!
//! The process that a worker starts for each update (`waypost build-child`) fetches a git
//! repository of this machine, reads, builds and stores 1,100 generated pages of 1.7 KB and 24
//! specifications of 10 endpoints. The bench measures the first build, one changed page and all
//! pages changed. It measures each twice: once with the default configuration, and once with
//! specifications by URL allowed and a command for the `skill.md`, because both have a cost even if
//! nothing is fetched and the command writes nothing.
//!
//! `WAYPOST=PATH` measures another binary: two commits are compared on the same repository by
//! running this twice, in turn.

#![expect(clippy::print_stdout, reason = "its figures are its purpose")]

mod repository;

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use repository::{PAGES, path, repository};
use serde_json::{Value, json};
use waypost::clock::Clock;
use waypost::deploy::run::child::SUBCOMMAND;
use waypost::deploy::run::{Job, Limits, generate};
use waypost::release::ReleaseId;
use waypost::site::{Frames, ProjectId};
use waypost::source::{git, remote};
use waypost::store::{Local, Retention, Store, local};

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
    job: Job,
}

impl Service {
    fn new(is_rich: bool) -> Self {
        let directory = tempfile::TempDir::new().expect("make a directory");
        let docs = directory.path().join("docs");
        let tree = repository(page, ENDPOINTS, None);
        for file in tree.files() {
            let target = docs.join(file.as_str());
            let parent = target.parent().expect("below the docs");
            std::fs::create_dir_all(parent).expect("make a directory");
            std::fs::write(target, tree.read(file).expect("in memory")).expect("write");
        }
        let program = std::env::var_os("WAYPOST").map(PathBuf::from);
        let job = Job {
            project: "acme".into(),
            url: format!("file://{}", docs.display()).into(),
            branch: "main".into(),
            directory: "".into(),
            commit_before: None,
            service_name: "waypost".into(),
            git: git::Config {
                local: vec![directory.path().to_owned()],
                ..git::Config::default()
            },
            specifications: remote::Config::default(),
            frames: Frames::default(),
            store: PathBuf::new(),
            generate: None,
            lenient: false,
            allow_empty: false,
        };
        let mut service = Self {
            program: program.unwrap_or_else(|| env!("CARGO_BIN_EXE_waypost").into()),
            directory,
            job,
        };
        if is_rich {
            let host = "specifications.example.com".parse();
            service.job.specifications.hosts = vec![host.expect("the pattern of a host")];
            service.job.generate = Some(generate::Config {
                command: vec!["true".into()],
                ..generate::Config::default()
            });
        }
        service.git(&["init", "--quiet", "--initial-branch=main"]);
        service.commit();
        service.forget();
        service
    }

    /// Begins with an empty store and no mirror, as for a new project.
    fn forget(&mut self) {
        let beside = |name: &str| self.directory.path().join(name);
        for name in ["mirrors", "store"] {
            if beside(name).exists() {
                std::fs::remove_dir_all(beside(name)).expect("remove what the last round made");
            }
        }
        std::fs::create_dir(beside("mirrors")).expect("make a directory");
        self.job.git.mirrors = beside("mirrors");
        self.job.store = beside("store");
        self.store();
    }

    fn store(&self) -> Store {
        let config = local::Config {
            path: self.job.store.clone(),
            retention: Retention::default(),
        };
        Store::Local(Local::open(&config, Clock::System).expect("open the store"))
    }

    fn git(&self, arguments: &[&str]) {
        let run = Command::new("git")
            .current_dir(self.docs())
            .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com"])
            .args(arguments)
            .status();
        assert!(run.expect("run git").success(), "git {arguments:?}");
    }

    fn docs(&self) -> PathBuf {
        self.directory.path().join("docs")
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
            std::fs::write(self.docs().join(file.as_str()), text).expect("write a page");
        }
        self.commit();
    }

    /// Runs the process of an update; returns the release that it has stored.
    fn update(&self) -> ReleaseId {
        let mut child = Command::new(&self.program)
            .arg(SUBCOMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .expect("start the process of a build");
        let order = json!({"job": self.job, "limits": Limits::default()}).to_string();
        // The process ends itself when its input is closed.
        let mut input = child.stdin.take().expect("a pipe");
        input
            .write_all(format!("{order}\n").as_bytes())
            .expect("write the order");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut release = None;
        for line in output.lines() {
            let line = line.expect("read an event");
            let event: Value = serde_json::from_str(&line).expect("an event");
            // Not read as an `Event`: another commit may have other ones beside these.
            assert!(event.get("stopped").is_none(), "{event}");
            if let Some(prepared) = event.get("prepared") {
                let id = prepared["release"].as_str().expect("the id of a release");
                release = Some(ReleaseId::parse(id).expect("the id of a release"));
            }
        }
        assert!(child.wait().expect("wait for the process").success());
        release.expect("a release")
    }

    /// Makes a release the current one, as a worker does after the process.
    fn promote(&self, release: ReleaseId) {
        let project = ProjectId::parse(&self.job.project).expect("a constant id");
        let store = self.store();
        let fence = store.next_fence(&project, 0).expect("read the pointer");
        store
            .promote(&project, release, fence)
            .expect("promote what was just stored");
    }
}

/// Measures several updates, each prepared by `before`, and prints median and range of wall and
/// processor time.
fn measure(what: &str, service: &mut Service, before: impl Fn(&mut Service, usize)) {
    let (mut wall, mut processor) = (Vec::new(), Vec::new());
    for round in 1..=ROUNDS {
        before(service, round);
        let (since, used) = (Instant::now(), processor_time());
        let release = service.update();
        wall.push(since.elapsed());
        processor.push(processor_time() - used);
        service.promote(release);
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
        let mut service = Service::new(is_rich);
        measure(
            &format!("{how}: first build"),
            &mut service,
            |service, _| {
                service.forget();
            },
        );
        measure(
            &format!("{how}: one page changed"),
            &mut service,
            |service, round| service.edit(550..551, round),
        );
        measure(
            &format!("{how}: all pages changed"),
            &mut service,
            |service, round| service.edit(0..PAGES, round),
        );
    }
}
