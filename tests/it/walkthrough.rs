//! The walkthroughs of the bundled documentation, word for word: from a push to an installed skill,
//! and a first site. The messages of the page about troubleshooting are those of the program.
//!
//! One shell runs every line of the last console block that begins with `$ `. The test prepares
//! what the page requires: the addresses of a running gateway, a clone of the repository that it
//! builds, and `waypost` in `PATH`. `npx` starts the `skills` tool that `make test` has installed,
//! with a resolver that resolves `*.localhost` to loopback.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::clients::{client, resolver};
use crate::presets::SKILL;
use crate::repository::{Repository, setup};

const PAGE: &str = include_str!("../../conf/demo/docs/operate/deploy.mdx");
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
