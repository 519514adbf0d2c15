//! What packages contain, apart from the program: units of systemd, manual pages, completions.

use std::process::Command;

use crate::edge::Setup;

const UNITS: [&str; 3] = [
    "waypost.service",
    "waypost@.service",
    "worker/waypost-worker.service",
];

fn unit(name: &str) -> String {
    format!("{}/packaging/systemd/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// `systemd-analyze security` rates what a service could do to the machine, from 0 to 10.
#[test]
fn the_services_have_few_rights() {
    for (name, most) in UNITS.into_iter().zip(["15", "15", "30"]) {
        let output = Command::new("systemd-analyze")
            .args([
                "security",
                "--offline=true",
                "--no-pager",
                "--threshold",
                most,
            ])
            .arg(unit(name))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {text}");
        assert!(text.contains("Overall exposure level"), "{name}: {text}");
        // systemd ignores a line that it does not know, and the service has less than it needs.
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("nknown"), "{name}: {said}");
    }
}

/// The two units that share the sockets have the rights of the other one, and systemd finds no
/// mistake in them.
#[test]
fn two_gateways_may_share_the_sockets() {
    let read = |name: &str| std::fs::read_to_string(unit(name)).unwrap();
    let (one, shared) = (read("waypost.service"), read("waypost@.service"));
    let differing = |text: &str, other: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let only = lines.filter(|line| !other.lines().any(|one| one == *line));
        only.map(str::to_owned).collect()
    };
    assert_eq!(
        differing(&shared, &one),
        [
            "Description=Waypost gateway (%i)",
            "Sockets=waypost.socket",
            "ExecStart=/usr/bin/waypost serve --conf /etc/waypost/%i.yaml",
        ]
    );
    assert_eq!(
        differing(&one, &shared),
        [
            "Description=Waypost gateway",
            "ExecStart=/usr/bin/waypost serve --conf /etc/waypost/waypost.yaml",
            "Also=waypost.socket",
        ]
    );
    let setup = Setup::new();
    let directory = setup.path("");
    // The program of the package is not on this machine.
    for name in ["waypost.socket", "waypost.service", "waypost@.service"] {
        let text = read(name).replace("/usr/bin/waypost", env!("CARGO_BIN_EXE_waypost"));
        std::fs::write(directory.join(name), text).unwrap();
    }
    for name in [
        "waypost.socket",
        "waypost@blue.service",
        "waypost@green.service",
    ] {
        let output = Command::new("systemd-analyze")
            .args(["verify", "--man=no"])
            .arg(directory.join(name))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.is_empty(), "{name}: {said}");
    }
}

/// The commands of the units exist, and each key of the configuration is known.
#[test]
fn the_configuration_of_the_package_has_no_mistakes() {
    let root = env!("CARGO_MANIFEST_DIR");
    let conf = std::fs::read_to_string(format!("{root}/packaging/debian/waypost.yaml")).unwrap();
    let setup = Setup::new();
    // The same keys, with paths that exist on this machine.
    let here = setup.path("").display().to_string();
    let conf = conf
        .replace("/var/lib/waypost", &here)
        .replace("/etc/waypost", &here)
        .replace("[::]:80", "127.0.0.1:0")
        .replace("127.0.0.1:9080", "127.0.0.1:0");
    std::fs::write(setup.path("packaged.yaml"), conf).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["check", "--conf"])
        .arg(setup.path("packaged.yaml"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn the_program_writes_its_manual_pages_and_completions() {
    let setup = Setup::new();
    let waypost = || Command::new(env!("CARGO_BIN_EXE_waypost"));
    let pages = setup.path("man");
    std::fs::create_dir(&pages).unwrap();
    let status = waypost().arg("man").arg(&pages).status().unwrap();
    assert!(status.success());
    let serve = std::fs::read_to_string(pages.join("waypost-serve.1")).unwrap();
    assert!(serve.contains("Serve all sites"), "{serve}");
    assert!(!serve.contains("successor"), "a private argument");
    for shell in ["bash", "zsh", "fish"] {
        let output = waypost().args(["completions", shell]).output().unwrap();
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("publish"), "{shell}: {script}");
    }
}
