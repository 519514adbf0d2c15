//! The walkthroughs of the bundled documentation, word for word: from a push to an installed skill,
//! a first site, and a control node with two edges. The program has each message of
//! the page about troubleshooting.
//!
//! One shell runs every line of the last console block that begins with `$ `. The test prepares
//! what the page requires: the addresses of a running gateway, a clone of the repository that it
//! builds, and `waypost` in `PATH`. `npx` starts the `skills` tool that `make test` has installed,
//! with a resolver that resolves `*.localhost` to loopback.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::clients::{client, resolver};
use crate::ports::free_port;
use crate::presets::SKILL;
use crate::queue_postgres::wait_until;
use crate::repository::{Repository, setup};
use crate::store_postgres::{cluster, private};

const PAGE: &str = include_str!("../../conf/demo/docs/operate/deploy.mdx");
const SHARED_STORE: &str = include_str!("../../conf/demo/docs/operate/shared-store.mdx");
const EDGES: &str = include_str!("../../conf/demo/docs/operate/edges.mdx");
const HEADING: &str = "## Example";

/// Returns the commands of the section's last console block.
fn commands() -> String {
    let (_, section) = PAGE.split_once(HEADING).expect("the page has it");
    let section = section.split("\n## ").next().unwrap_or_default();
    let (_, block) = section
        .rsplit_once("```console\n")
        .expect("a console block");
    let (block, _) = block.split_once("```").expect("it ends");
    let lines = block.lines().filter_map(|line| line.strip_prefix("$ "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_walkthrough_ends_with_an_installed_skill() {
    let setup = setup();
    let docs = Repository::new(&setup, "seed");
    docs.push("Begin", &[("skill.md", SKILL)]);
    docs.git(&["clone", "--quiet", "--bare", ".", "../docs.git"]);
    docs.git(&["clone", "--quiet", "../docs.git", "../docs"]);
    let url = format!("file://{}", setup.path("docs.git").display());
    let record = format!(
        "owner: acme\ndomains: [docs.acme.localhost]\nrepository: {{ url: \"{url}\", branch: main }}"
    );
    let edge = setup.site("acme", &record).start();

    let tools = edge.setup.path("bin");
    fs::create_dir(&tools).unwrap();
    let folder = client("skills", "skills@1.7.4");
    let (node, hook) = (folder.join("node_modules/.bin/node"), resolver(&edge));
    let cli = folder.join("node_modules/skills/bin/cli.mjs");
    let npx = format!(
        "#!/bin/sh\ntest \"$1\" = skills && shift && exec '{}' --require '{}' '{}' \"$@\"\n",
        node.display(),
        hook.display(),
        cli.display()
    );
    fs::write(tools.join("npx"), npx).unwrap();
    fs::set_permissions(tools.join("npx"), fs::Permissions::from_mode(0o755)).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_waypost")).parent().unwrap();
    let system = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{system}", tools.display(), program.display());
    let port = edge.http.port();

    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &commands()])
        .current_dir(edge.setup.path("."))
        .env("PATH", path)
        .env("HOME", edge.setup.path("."))
        .env("CONF", edge.setup.path("waypost.yaml"))
        .env("API", format!("http://api.waypost.localhost:{port}"))
        .env("SITE", format!("http://docs.acme.localhost:{port}"))
        .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_COMMITTER_NAME", "Ada")])
        .envs([
            ("GIT_AUTHOR_EMAIL", "a@b.test"),
            ("GIT_COMMITTER_EMAIL", "a@b.test"),
        ])
        .envs([("CI", "1"), ("NO_COLOR", "1")])
        // The tool must not send usage data.
        .envs([("DISABLE_TELEMETRY", "1"), ("DO_NOT_TRACK", "1")])
        .output()
        .unwrap();

    assert!(output.status.success(), "{output:?}");
    let installed = edge.setup.path(".claude/skills/sdk/SKILL.md");
    let installed =
        fs::read_to_string(installed).unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let pushed = fs::read_to_string(edge.setup.path("docs/skill.md")).unwrap();
    assert_ne!(pushed, SKILL, "the walkthrough changes the skill");
    assert_eq!(installed, pushed);
}

const FIRST_SITE: &str = include_str!("../../conf/demo/docs/first-site.mdx");

#[test]
fn the_commands_of_the_first_site_work() {
    let setup = setup().site("acme", "domains: [docs.acme.localhost]");
    let edge = setup.start();
    let lines = FIRST_SITE
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("$ "));
    let commands: Vec<_> = lines.collect();
    assert!(commands.len() > 6, "{commands:?}");
    let program = Path::new(env!("CARGO_BIN_EXE_waypost")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let port = edge.http.port();
    let output = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &commands.join("\n")])
        .current_dir(edge.setup.path("."))
        .env("PATH", path)
        .env("HOME", edge.setup.path("."))
        .env("CONF", edge.setup.path("waypost.yaml"))
        .env("SITE", format!("http://docs.acme.localhost:{port}"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["0 errors", "This is the first page.", "Welcome"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

/// A shell that runs the blocks of a walkthrough in a directory. The programs that they start end
/// with it.
struct Shell {
    process: Child,
    output: PathBuf,
    blocks: usize,
}

impl Shell {
    fn start(directory: &Path) -> Self {
        let output = directory.join("output");
        let to = fs::File::create(&output).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_waypost")).parent().unwrap();
        let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
        let process = Command::new("bash")
            .current_dir(directory)
            .env("PATH", path)
            .env("HOME", directory)
            .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_COMMITTER_NAME", "Ada")])
            .envs([
                ("GIT_AUTHOR_EMAIL", "a@b.test"),
                ("GIT_COMMITTER_EMAIL", "a@b.test"),
            ])
            .stdin(Stdio::piped())
            .stdout(to.try_clone().unwrap())
            .stderr(to)
            .process_group(0)
            .spawn()
            .unwrap();
        Self {
            process,
            output,
            blocks: 0,
        }
    }

    /// Runs a block. Returns whether it succeeded, and its output.
    fn run(&mut self, block: &str) -> (bool, String) {
        self.blocks += 1;
        let end = format!("block {} ended with ", self.blocks);
        let before = fs::read_to_string(&self.output).unwrap().len();
        let script = format!("( set -eu\n{block}\n)\necho \"{end}$?.\"\n");
        let stdin = self.process.stdin.as_mut().unwrap();
        stdin.write_all(script.as_bytes()).unwrap();
        let mut printed = String::new();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !printed
            .split_once(&end)
            .is_some_and(|(_, rest)| rest.contains('.'))
        {
            assert!(Instant::now() < deadline, "{block}\n{printed}");
            std::thread::sleep(Duration::from_millis(20));
            printed = fs::read_to_string(&self.output).unwrap()[before..].to_owned();
        }
        (printed.contains(&format!("{end}0.")), printed)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let group = format!("-{}", self.process.id());
        let _ended = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _reaped = self.process.wait();
    }
}

#[test]
fn the_commands_of_a_shared_store_work() {
    let (_, section) = SHARED_STORE
        .split_once("## Walkthrough")
        .expect("the page has it");
    let mut section = section.to_owned();
    let mut cluster = cluster();
    section = section.replace(
        "postgres://waypost@127.0.0.1:5432/waypost",
        &cluster.url("waypost"),
    );
    // Every other port is one of this machine that is free.
    let free: Vec<u16> = (0..7).map(|_| free_port()).collect();
    let port = |nth: usize| free[nth].to_string();
    for (nth, of_page) in ["8080", "9080", "9443"].into_iter().enumerate() {
        section = section.replace(of_page, &port(nth));
    }
    let of_edge = |first: usize| {
        format!(
            "127.0.0.1:$([ $n = 1 ] && echo {} || echo {})",
            port(first),
            port(first + 1)
        )
    };
    section = section
        .replace("127.0.0.1:808$n", &of_edge(3))
        .replace("127.0.0.1:908$n", &of_edge(5))
        .replace("8081", &port(3))
        .replace("8082", &port(4));
    let setup = setup();
    let password = setup.path("password");
    fs::copy(cluster.password_file(), &password).unwrap();
    private(&password);
    let mut shell = Shell::start(&setup.path("."));
    let mut blocks = section.split("```sh\n").skip(1);
    let mut next = || {
        blocks
            .next()
            .unwrap()
            .split("```")
            .next()
            .unwrap()
            .to_owned()
    };

    let mut succeeds = |block: &str| {
        let (is_success, printed) = shell.run(block);
        assert!(is_success, "{block}\n{printed}");
        printed
    };
    succeeds(&next());
    assert!(succeeds(&next()).contains("published"));
    succeeds(&next());
    let pages = next();
    let both = |shell: &mut Shell, text: &str| {
        let (_, printed) = shell.run(&pages);
        printed.matches(text).count() == 2 && printed.matches("following").count() == 2
    };
    wait_until("both edges serve the page", || both(&mut shell, "First."));
    cluster.stop();
    let (is_success, printed) = shell.run(&next());
    assert!(!is_success, "{printed}");
    assert_eq!(printed.matches("First.").count(), 2, "{printed}");
    assert!(printed.contains("cannot be reached"), "{printed}");
    cluster.restart();
    let (is_success, printed) = shell.run(&next());
    assert!(is_success && printed.contains("published"), "{printed}");
    wait_until("both edges serve the change", || {
        both(&mut shell, "Second.")
    });
}

/// Ends the gateway that runs in a directory with a configuration.
fn end_gateway(directory: &Path, conf: &str) {
    let directory = directory.canonicalize().unwrap();
    let is_it = |process: &Path| {
        let command = fs::read(process.join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        fs::read_link(process.join("cwd")).is_ok_and(|place| place == directory)
            && command.contains(&format!("waypost serve --conf {conf} "))
    };
    let processes = fs::read_dir("/proc").unwrap();
    let process = processes
        .map(|entry| entry.unwrap().path())
        .find(|one| is_it(one));
    let process = process.expect("it runs");
    let id = process.file_name().unwrap();
    let ended = Command::new("kill").arg(id).status().unwrap();
    assert!(ended.success());
    wait_until("the gateway does not end", || !is_it(&process));
}

#[test]
fn the_commands_of_a_node_with_two_edges_work() {
    let (_, section) = EDGES.split_once("## Walkthrough").expect("the page has it");
    let mut section = section.split("\n## ").next().unwrap().to_owned();
    // Every port is one of this machine that is free.
    let free: Vec<u16> = (0..7).map(|_| free_port()).collect();
    let of_edge = |first: usize| {
        let (one, two) = (free[first], free[first + 1]);
        format!("127.0.0.1:$([ $port = 1 ] && echo {one} || echo {two})")
    };
    for (nth, of_page) in ["8080", "9080", "9443", "8081", "8082", "9081"]
        .iter()
        .enumerate()
    {
        assert!(section.contains(of_page), "{of_page}");
        section = section.replace(of_page, &free[nth].to_string());
    }
    section = section
        .replace("127.0.0.1:808$port", &of_edge(3))
        .replace("127.0.0.1:908$port", &of_edge(5));
    let block = |kind: &str, nth: usize| {
        let begins = format!("```{kind}\n");
        let block = section.split(&begins).nth(nth + 1).expect("a block");
        block.split("```").next().unwrap().to_owned()
    };
    let setup = setup();
    let directory = setup.path(".");
    fs::write(directory.join("node.yaml"), block("yaml", 0)).unwrap();
    let mut shell = Shell::start(&directory);
    let succeeds = |shell: &mut Shell, block: &str| {
        let (is_success, printed) = shell.run(block);
        assert!(is_success, "{block}\n{printed}");
        printed
    };
    assert!(succeeds(&mut shell, &block("bash", 0)).contains("promoted"));
    succeeds(&mut shell, &block("bash", 1));
    let follow = |shell: &mut Shell, count: usize, text: &str| {
        let (is_success, printed) = shell.run(&block("bash", 2));
        is_success
            && printed.matches("following  0 behind").count() == count
            && printed.contains(text)
    };
    wait_until("both edges follow", || follow(&mut shell, 2, "First."));
    let change = block("bash", 3);
    assert!(succeeds(&mut shell, &change).contains("promoted"));
    let (_, ask_the_second) = change.trim_end().rsplit_once('\n').unwrap();
    assert!(ask_the_second.starts_with("curl "), "{ask_the_second}");
    let serves = |shell: &mut Shell| shell.run(ask_the_second).1.contains("Second.");
    wait_until("the second edge serves the change", || serves(&mut shell));
    wait_until("the first edge serves the change", || {
        follow(&mut shell, 2, "Second.")
    });

    // The outage.
    let (_, outage) = section
        .rsplit_once("The outage: ")
        .expect("the page has it");
    let command = |begin: &str| {
        let command = outage.split('`').find(|part| part.starts_with(begin));
        command
            .unwrap_or_else(|| panic!("{begin} is in the page"))
            .to_owned()
    };
    end_gateway(&directory, "node.yaml");
    end_gateway(&directory, "one.yaml");
    assert!(serves(&mut shell));
    succeeds(&mut shell, "waypost serve --conf one.yaml &");
    let readiness = command("curl ");
    wait_until("the edge says that the node is away", || {
        let (_, printed) = shell.run(&readiness);
        printed.contains("\"degraded\"") && printed.contains("\"age_seconds\"")
    });
    let ask_the_first = block("bash", 2);
    let (_, ask_the_first) = ask_the_first.trim_end().rsplit_once('\n').unwrap();
    assert!(shell.run(ask_the_first).1.contains("Second."));
    succeeds(&mut shell, "waypost serve --conf node.yaml &");
    let fleet = command("waypost fleet ");
    wait_until("both edges follow again", || {
        shell.run(&fleet).1.matches("following  0 behind").count() == 2
    });
}

/// Adds the text of all source files, with texts that continue on the next line joined.
fn sources(directory: &Path, out: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if path.is_dir() && name != "tests" {
            sources(&path, out);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = fs::read_to_string(&path).unwrap();
            let mut lines = text.split("\\\n");
            out.push_str(lines.next().unwrap_or_default());
            lines.for_each(|line| out.push_str(line.trim_start()));
        }
    }
}

#[test]
fn every_message_of_the_page_about_troubleshooting_is_in_the_program() {
    let page = include_str!("../../conf/demo/docs/troubleshooting.mdx");
    let mut program = String::new();
    sources(Path::new("src"), &mut program);
    // Names of constants stand in the place of their values.
    let program = program
        .replace("{CONFIG}", "docs.json")
        .replace("\\\"", "\"");
    let titles = page.lines().filter_map(|line| line.strip_prefix("### "));
    // A message with a backtick is between two of them.
    let message = |title: &'static str| {
        let long = title
            .strip_prefix("`` ")
            .and_then(|title| title.strip_suffix(" ``"));
        long.unwrap_or_else(|| title.trim_matches('`'))
    };
    let titles: Vec<_> = titles.map(message).collect();
    assert!(titles.len() > 10, "{titles:?}");
    let absent: Vec<_> = titles
        .iter()
        .filter(|title| !program.contains(**title))
        .collect();
    assert!(absent.is_empty(), "no message has {absent:?}");
}
