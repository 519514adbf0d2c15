//! The alerts and the dashboard in `conf/monitoring`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

fn read(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn each_alert_fires_when_it_must_and_not_before() {
    let root = env!("CARGO_MANIFEST_DIR");
    let directory = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        std::fs::copy(format!("{root}/{from}"), directory.path().join(to)).unwrap()
    };
    copy("conf/monitoring/alerts.yaml", "alerts.yaml");
    copy("tests/monitoring/alerts.yaml", "cases.yaml");
    for arguments in [
        ["check", "rules", "alerts.yaml"],
        ["test", "rules", "cases.yaml"],
    ] {
        let output = Command::new("promtool")
            .args(arguments)
            .current_dir(directory.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let alerts = read("conf/monitoring/alerts.yaml");
    let cases = read("tests/monitoring/alerts.yaml");
    for line in alerts.lines() {
        let Some(name) = line.trim().strip_prefix("- alert: ") else {
            continue;
        };
        assert!(cases.contains(name), "{name} has no case");
    }
}

#[test]
fn alerts_and_dashboard_name_metrics_that_exist() {
    let reference = read("conf/demo/docs/operate/reference/metrics.mdx");
    let known: BTreeSet<&str> = reference
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    assert!(known.len() > 20, "{known:?}");
    let dashboard: serde_json::Value =
        serde_json::from_str(&read("conf/monitoring/grafana.json")).unwrap();
    let mut used = BTreeSet::new();
    for text in [read("conf/monitoring/alerts.yaml"), dashboard.to_string()] {
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let prefixes = [
            "acme_", "gateway_", "deploy_", "domain_", "follow_", "index_", "process_", "store_",
            "tls_", "site_",
        ];
        let names = words.filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix)));
        used.extend(names.map(|name| name.trim_end_matches("_bucket").to_owned()));
    }
    assert!(used.len() > 10, "{used:?}");
    for name in used {
        assert!(
            known.contains(&name[..]),
            "{name} is not a metric of this program"
        );
    }
}
