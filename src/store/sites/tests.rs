//! The rules R1 to R5, with real files.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::site::{HostHeader, Origin, Scheme, Upstream, UpstreamHttp, Visibility};

/// A directory of records and the sites read from it.
struct Platform {
    directory: tempfile::TempDir,
    sites: Sites,
}

impl Platform {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let sites = Sites::new(
            Service::default(),
            ["10.0.0.0/8".parse().unwrap()].into_iter().collect(),
            directory.path().to_owned(),
            Clock::System,
        );
        Self { directory, sites }
    }

    /// Writes a file as careful programs do: it renames a new file to the name of the old one.
    fn write(&self, name: &str, text: &str) {
        let temp = self.directory.path().join(".new");
        fs::write(&temp, text).unwrap();
        fs::rename(temp, self.directory.path().join(name)).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.directory.path().join(name)).unwrap();
    }

    fn scan(&mut self) -> Changes {
        self.sites.scan(Removals::Guarded).unwrap()
    }

    /// Scans and returns the changes (`+acme` new or changed, `-acme` removed) and the diagnostics.
    fn changes(&mut self) -> (Vec<String>, Vec<String>) {
        let changes = self.scan();
        let upserted = changes.upserted.iter().map(|s| format!("+{}", s.project));
        let removed = changes.removed.iter().map(|p| format!("-{p}"));
        let mut all: Vec<_> = upserted.chain(removed).collect();
        all.sort();
        let diagnostics = changes.diagnostics.iter().map(ToString::to_string);
        (all, diagnostics.collect())
    }

    fn domains(&self, project: &str) -> Vec<String> {
        let project = ProjectId::parse(project).unwrap();
        let site = self.sites.get(&project);
        site.into_iter()
            .flat_map(|site| site.domains.iter().map(ToString::to_string))
            .collect()
    }
}

fn record(project: &str, domains: &str) -> String {
    format!("project: {project}\nsubdomain: {project}\ndomains: [{domains}]\n")
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn every_key_of_a_record_is_read() {
    let mut platform = Platform::new();
    platform.write(
        "acme.yaml",
        "project: acme\nowner: org_1\nsubdomain: Acme\n\
         domains: [docs.acme.com, DOCS.acme.dev.]\nbase_path: /docs\nvisibility: private\n\
         repository: { url: \"https://git.example/acme.git\", branch: trunk, directory: docs/ }\nlenient: true\nallow_empty: true\n\
         origin: { url: \"https://origin.acme.internal:8443\", host: upstream, http: 2 }\n",
    );
    platform.write("bare.yaml", "project: bare\nsubdomain: bare\n");

    assert_eq!(
        platform.changes(),
        (vec!["+acme".into(), "+bare".into()], none())
    );

    let acme = platform
        .sites
        .get(&ProjectId::parse("acme").unwrap())
        .unwrap();
    assert_eq!(&*acme.owner, "org_1");
    assert_eq!(&*acme.subdomain, "acme");
    assert_eq!(platform.domains("acme"), ["docs.acme.com", "docs.acme.dev"]);
    assert_eq!(acme.base_path.as_str(), "/docs");
    assert_eq!(acme.visibility, Visibility::Private);
    let repository = acme.repository.as_ref().unwrap();
    assert_eq!(
        (&*repository.branch, &*repository.directory),
        ("trunk", "docs")
    );
    assert!(acme.lenient && acme.allow_empty);
    let upstream = Upstream {
        http: UpstreamHttp::Two,
        host_header: HostHeader::Upstream,
        ..Upstream::new(Scheme::Https, "origin.acme.internal", 8443)
    };
    assert_eq!(acme.origin, Origin::Upstream(upstream));
    let bare = platform
        .sites
        .get(&ProjectId::parse("bare").unwrap())
        .unwrap();
    assert_eq!(&*bare.owner, "bare");
    assert_eq!(bare.origin, Origin::Embedded);
    assert_eq!(bare.repository, None);
    assert!(!bare.lenient && !bare.allow_empty);
}

#[test]
fn every_mistake_of_a_file_is_found_with_its_place() {
    let mut platform = Platform::new();
    platform.write(
        "a.yaml",
        "# two records\nproject: a b\nsubdomain: x.y\ndomain: [a.com]\n\
         domains:\n  - not a host\n  - api.waypost.localhost\n  - x.waypost.localhost\n\
         base_path: docs\nrepository: { branch: -x, directory: ../up }\n\
         --- \nproject: b\nsubdomain: b\norigin: { url: \"https://u:p@h/\", http: 3 }\n",
    );
    let found = platform.scan().diagnostics;
    let expected = [
        "a.yaml:2:10: error[site]: `project` is \"a b\", expected other text: a project id",
        "a.yaml:3:12: error[site]: `subdomain` is \"x.y\", expected a label",
        "a.yaml:4:1: error[site]: `domain` is not a known key (did you mean `domains`?)",
        "a.yaml:6:5: error[site]: `domains` is \"not a host\", expected other text",
        "a.yaml:7:5: error[site]: `domains` is \"api.waypost.localhost\", expected another host",
        "a.yaml:8:5: error[site]: `domains` is \"x.waypost.localhost\", expected a domain",
        "a.yaml:9:12: error[site]: `base_path` is \"docs\", expected other text: a base path",
        "a.yaml:10:13: error[site]: `repository.url` is missing",
        "a.yaml:10:23: error[site]: `repository.branch` is \"-x\", expected a branch",
        "a.yaml:10:38: error[site]: `repository.directory` is \"../up\", expected a path",
        "a.yaml:14:16: error[site]: `origin.url` is \"https://u:p@h/\", expected other text: cred",
        "a.yaml:14:40: error[site]: `origin.http` is 3, expected `auto`, \"1.1\" or \"2\"",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(
            found.to_string().starts_with(expected),
            "{found}\n{expected}"
        );
    }
}

#[test]
fn the_port_of_an_origin_is_at_most_65535() {
    let mut platform = Platform::new();
    for port in ["99999", "65536", "0", ""] {
        let url = format!("https://origin.acme.com:{port}");
        let record = format!("project: a\nsubdomain: a\norigin: {{ url: \"{url}\" }}\n");
        platform.write("a.yaml", &record);
        let (changes, diagnostics) = platform.changes();
        assert_eq!(changes.len(), 0, "{port}");
        assert!(
            diagnostics[0].contains("from 1 to 65535"),
            "{diagnostics:?}"
        );
    }
}

#[test]
fn an_origin_has_a_public_address_or_one_that_the_operator_allows() {
    let mut platform = Platform::new();
    for (n, (host, is_allowed)) in [
        ("1.1.1.1", true),
        ("10.1.2.3:8080", true),
        ("localhost", true),
        ("127.0.0.1:9080", false),
        ("169.254.169.254", false),
        ("[::1]", false),
        ("[::ffff:127.0.0.1]", false),
        ("[64:ff9b::7f00:1]:80", false),
        ("[2606:4700::1]:80", true),
    ]
    .into_iter()
    .enumerate()
    {
        let record =
            format!("project: p{n}\nsubdomain: p{n}\norigin: {{ url: \"http://{host}\" }}\n");
        platform.write(&format!("{n}.yaml"), &record);
        let (changes, diagnostics) = platform.changes();
        assert_eq!(
            changes.len(),
            usize::from(is_allowed),
            "{host}: {diagnostics:?}"
        );
        if !is_allowed {
            assert!(
                diagnostics[0].starts_with(&format!("{n}.yaml:3:16: error[site]: "))
                    && diagnostics[0].contains("upstream.private_hosts"),
                "{diagnostics:?}"
            );
        }
    }
}

#[test]
fn a_site_that_allows_no_reader_is_served_with_a_warning() {
    let mut platform = Platform::new();
    platform.write("a.yaml", "project: a\nsubdomain: a\nvisibility: private\n");
    let (changes, diagnostics) = platform.changes();
    assert_eq!(changes, ["+a"]);
    assert!(
        diagnostics[0].starts_with("a.yaml:1:1: warning[site]: "),
        "{diagnostics:?}"
    );
}

#[test]
fn a_diagnostic_is_reported_once() {
    let mut platform = Platform::new();
    platform.write("a.yaml", "project: a\nsubdomain: a.b\n");
    platform.write("b.yaml", "\u{0}");
    platform.write("c.yaml", &record("c", "x.com"));
    platform.write("d.yaml", &record("d", "x.com"));
    assert_eq!(platform.scan().diagnostics.len(), 3);
    assert_eq!(platform.changes(), (none(), none()));
    platform.write("a.yaml", "project: a\nsubdomain: a.b\n");
    platform.write("e.yaml", &record("e", ""));
    assert_eq!(platform.changes(), (vec!["+e".into()], none()));
}

#[test]
fn a_broken_record_changes_no_site() {
    let mut platform = Platform::new();
    let file = |b: &str| {
        format!(
            "{}---\n{b}---\n{}",
            record("a", "a.com"),
            record("c", "c.com")
        )
    };
    platform.write("all.yaml", &file(&record("b", "b.com")));
    platform.scan();

    // Its project can still be read.
    platform.write("all.yaml", &file("project: b\nsubdomain: [\"b\"]\n"));
    assert_eq!(platform.changes().0, none());
    platform.write("all.yaml", &file("project: [b\n"));
    let (changes, diagnostics) = platform.changes();
    assert_eq!(changes, none());
    assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
    assert_eq!(platform.domains("b"), ["b.com"]);
    // It is corrected.
    platform.write("all.yaml", &file(&record("b", "b.org")));
    assert_eq!(platform.changes(), (vec!["+b".into()], none()));
    // The file is broken and then removed.
    platform.write("all.yaml", &file("{"));
    assert_eq!(platform.changes().0, none());
    platform.write("all.yaml", &file(""));
    assert_eq!(platform.changes(), (vec!["-b".into()], none()));
}

#[test]
fn an_unreadable_file_changes_no_site() {
    let mut platform = Platform::new();
    platform.write("a.yaml", &record("a", "a.com"));
    platform.scan();
    fs::write(platform.directory.path().join("a.yaml"), b"project: \xff\n").unwrap();
    let (changes, diagnostics) = platform.changes();
    assert_eq!(changes, none());
    assert_eq!(diagnostics, ["a.yaml: error[site]: byte 9 is not UTF-8"]);
    assert_eq!(platform.changes(), (none(), none()));
    platform.write("a.yaml", &record("a", "a.org"));
    assert_eq!(platform.changes(), (vec!["+a".into()], none()));
}

#[test]
fn a_host_belongs_to_its_first_site() {
    let mut platform = Platform::new();
    platform.write("b.yaml", &record("b", "docs.com"));
    platform.scan();
    platform.write("a.yaml", &record("a", "a.com, docs.com"));
    platform.write("c.yaml", "project: c\nsubdomain: b\n");

    assert_eq!(
        platform.changes(),
        (
            none(),
            vec![
                "a.yaml:3:18: error[site]: docs.com is a host of project b already (b.yaml:1)".into(),
                "c.yaml:2:12: error[site]: b.waypost.localhost is a host of project b already (b.yaml:1)"
                    .into(),
            ]
        )
    );
    assert_eq!(platform.sites.len(), 1);

    // A rejected record gets the host when it becomes free, although its file has not changed.
    platform.remove("b.yaml");
    let (changes, diagnostics) = platform.changes();
    assert_eq!(changes, ["+a", "+c", "-b"]);
    assert_eq!(diagnostics, none());
}

#[test]
fn a_rejected_change_keeps_the_previous_state() {
    let mut platform = Platform::new();
    platform.write("a.yaml", &record("a", "a.com"));
    platform.write("b.yaml", &record("b", "b.com"));
    platform.scan();
    platform.write("a.yaml", &record("a", "new.com, b.com"));
    assert_eq!(platform.changes().0, none());
    assert_eq!(platform.domains("a"), ["a.com"]);
    platform.write("b.yaml", &record("b", "c.com"));
    assert_eq!(platform.changes().0, ["+a", "+b"]);
    assert_eq!(platform.domains("a"), ["new.com", "b.com"]);
}

#[test]
fn sites_can_exchange_hosts_in_one_scan() {
    let mut platform = Platform::new();
    for (name, domain) in [("a", "a.com"), ("b", "b.com"), ("c", "c.com")] {
        platform.write(&format!("{name}.yaml"), &record(name, domain));
    }
    platform.scan();
    for (name, domain) in [("a", "b.com"), ("b", "c.com"), ("c", "a.com")] {
        platform.write(&format!("{name}.yaml"), &record(name, domain));
    }
    assert_eq!(
        platform.changes(),
        (vec!["+a".into(), "+b".into(), "+c".into()], none())
    );
    assert_eq!(platform.domains("c"), ["a.com"]);
}

#[test]
fn a_site_that_falls_back_gets_its_hosts_back() {
    let mut platform = Platform::new();
    for name in ["a", "b", "z"] {
        platform.write(
            &format!("{name}.yaml"),
            &record(name, &format!("{name}.com")),
        );
    }
    platform.scan();
    // `a` takes over what `b` gives up, but `b` wants what `z` keeps.
    platform.write("a.yaml", &record("a", "b.com"));
    platform.write("b.yaml", &record("b", "z.com"));
    let (changes, diagnostics) = platform.changes();
    assert_eq!(changes, none());
    assert_eq!(diagnostics.len(), 2, "{diagnostics:?}");
    assert_eq!(platform.domains("a"), ["a.com"]);
    assert_eq!(platform.domains("b"), ["b.com"]);
}

#[test]
fn a_project_has_one_record() {
    let mut platform = Platform::new();
    platform.write("a.yaml", &format!("{0}---\n{0}", record("p", "a.com")));
    platform.write("b.yaml", &record("p", "b.com"));
    let (changes, diagnostics) = platform.changes();
    assert_eq!(changes, ["+p"]);
    assert_eq!(
        diagnostics,
        [
            "a.yaml:5:10: error[site]: project p is defined in a.yaml:1 already",
            "b.yaml:1:10: error[site]: project p is defined in a.yaml:1 already",
        ]
    );
    platform.write("c.yaml", &record("other", ""));
    assert_eq!(platform.changes(), (vec!["+other".into()], none()));
    assert_eq!(platform.domains("p"), ["a.com"]);
    platform.remove("a.yaml");
    assert_eq!(platform.changes(), (vec!["+p".into()], none()));
    assert_eq!(platform.domains("p"), ["b.com"]);
}

#[test]
fn a_renamed_file_keeps_its_sites() {
    let mut platform = Platform::new();
    platform.write("a.yaml", &record("a", "a.com"));
    platform.scan();
    let path = platform.directory.path();
    fs::rename(path.join("a.yaml"), path.join("b.yaml")).unwrap();
    // Only the name of the file changes, which messages about the site contain.
    assert_eq!(platform.changes(), (vec!["+a".into()], none()));
    assert_eq!(platform.domains("a"), ["a.com"]);
    platform.remove("b.yaml");
    assert_eq!(platform.changes(), (vec!["-a".into()], none()));
}

#[test]
fn a_replaced_mounted_directory_is_noticed() {
    let mut platform = Platform::new();
    let path = platform.directory.path().to_owned();
    for (version, domain) in [("..1", "a.com"), ("..2", "a.org")] {
        fs::create_dir(path.join(version)).unwrap();
        fs::write(path.join(version).join("a.yaml"), record("a", domain)).unwrap();
    }
    std::os::unix::fs::symlink("..1", path.join("..data")).unwrap();
    std::os::unix::fs::symlink("..data/a.yaml", path.join("a.yaml")).unwrap();
    assert_eq!(platform.changes().0, ["+a"]);

    std::os::unix::fs::symlink("..2", path.join("..data_tmp")).unwrap();
    fs::rename(path.join("..data_tmp"), path.join("..data")).unwrap();

    assert_eq!(platform.changes(), (vec!["+a".into()], none()));
    assert_eq!(platform.domains("a"), ["a.org"]);
}

#[test]
fn the_removal_of_many_sites_needs_confirmation() {
    let mut platform = Platform::new();
    for n in 0..30 {
        platform.write(&format!("{n}.yaml"), &record(&format!("p{n}"), ""));
    }
    platform.scan();
    for n in 0..10 {
        platform.remove(&format!("{n}.yaml"));
    }
    platform.write("new.yaml", &record("new", ""));
    let error = platform.sites.scan(Removals::Guarded).unwrap_err();
    assert!(
        matches!(
            error,
            ScanError::Removals {
                removed: 10,
                served: 30
            }
        ),
        "{error}"
    );
    assert_eq!(platform.sites.len(), 30);

    let changes = platform.sites.scan(Removals::Accepted).unwrap();
    assert_eq!((changes.upserted.len(), changes.removed.len()), (1, 10));

    fs::remove_dir_all(platform.directory.path()).unwrap();
    let error = platform.sites.scan(Removals::Guarded).unwrap_err();
    assert!(matches!(error, ScanError::Missing { .. }), "{error}");
    assert_eq!(platform.sites.len(), 21);
    let changes = platform.sites.scan(Removals::Accepted).unwrap();
    assert_eq!(changes.removed.len(), 21);
}

#[test]
fn a_few_sites_may_always_be_removed() {
    let mut platform = Platform::new();
    for n in 0..9 {
        platform.write(&format!("{n}.yaml"), &record(&format!("p{n}"), ""));
    }
    platform.scan();
    for n in 0..9 {
        platform.remove(&format!("{n}.yaml"));
    }
    assert_eq!(platform.scan().removed.len(), 9);
}

#[test]
fn one_file_may_hold_all_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("sites.yaml");
    fs::write(
        &path,
        format!("{}---\n{}", record("a", ""), record("b", "")),
    )
    .unwrap();
    let mut sites = Sites::new(
        Service::default(),
        PrivateHosts::default(),
        path.clone(),
        Clock::System,
    );
    assert_eq!(sites.scan(Removals::Guarded).unwrap().upserted.len(), 2);
    fs::write(&path, record("b", "")).unwrap();
    assert_eq!(sites.scan(Removals::Guarded).unwrap().removed.len(), 1);
}

#[test]
fn hidden_files_and_other_extensions_are_no_records() {
    let mut platform = Platform::new();
    platform.write("a.yaml", &record("a", ""));
    platform.write("b.yml", &record("b", ""));
    for name in [".hidden.yaml", "notes.txt", "c.yaml.new", "yaml"] {
        platform.write(name, "project: [");
    }
    let (changes, diagnostics) = platform.changes();
    assert_eq!(changes, ["+a", "+b"]);
    assert_eq!(diagnostics, none());
}

#[test]
fn only_the_changed_record_of_a_large_file_is_read_again() {
    let mut platform = Platform::new();
    let file = |changed: &str| -> String {
        let others = (0..200).map(|n| format!("---\n{}", record(&format!("p{n}"), "")));
        record("first", changed) + &others.collect::<String>()
    };
    platform.write("all.yaml", &file(""));
    assert_eq!(platform.scan().upserted.len(), 201);
    let project = ProjectId::parse("p7").unwrap();
    let before = Arc::clone(platform.sites.get(&project).unwrap());

    platform.write("all.yaml", &format!("# a line more\n{}", file("a.com")));

    assert_eq!(platform.changes(), (vec!["+first".into()], none()));
    assert!(Arc::ptr_eq(&before, platform.sites.get(&project).unwrap()));
    // The line numbers are those of the current file.
    platform.write("b.yaml", &record("p7", ""));
    let (_, diagnostics) = platform.changes();
    assert_eq!(
        diagnostics,
        ["b.yaml:1:10: error[site]: project p7 is defined in all.yaml:34 already"]
    );
}

#[test]
fn a_file_is_split_where_documents_begin() {
    let cut = |text| -> Vec<(u32, String)> {
        record::documents(text)
            .iter()
            .map(|document| (document.lines_before, document.text.to_owned()))
            .collect()
    };
    assert_eq!(cut(""), [(0, String::new())]);
    assert_eq!(
        cut("# head\n---\na: 1\n--- # b\na: 2\n---x\n"),
        [
            (0, "# head\n---\na: 1\n".to_owned()),
            (3, "--- # b\na: 2\n---x\n".to_owned()),
        ]
    );
    assert_eq!(
        cut("%YAML 1.2\n---\na: |\n  ---\n---\r\n---\n"),
        [
            (0, "%YAML 1.2\n---\na: |\n  ---\n".to_owned()),
            (4, "---\r\n".to_owned()),
            (5, "---\n".to_owned()),
        ]
    );
}

/// A file, and the records to write into it as (project, domains); `None` writes a broken file.
type Rewrite = (usize, Option<Vec<(usize, Vec<usize>)>>);

fn rewrites() -> impl Strategy<Value = Vec<Vec<Rewrite>>> {
    let one = (0..5_usize, prop::collection::vec(0..5_usize, 0..3));
    let file = prop::option::weighted(0.85, prop::collection::vec(one, 0..3));
    prop::collection::vec(prop::collection::vec((0..4_usize, file), 1..4), 1..8)
}

fn with_spelling(records: &[(usize, Vec<usize>)]) -> String {
    let one = |(project, domains): &(usize, Vec<usize>)| {
        let mut domains = domains.clone();
        domains.sort_unstable();
        domains.dedup();
        let domains: Vec<_> = domains.iter().map(|n| format!("h{n}.com")).collect();
        record(&format!("p{project}"), &domains.join(", "))
    };
    records.iter().map(one).collect::<Vec<_>>().join("---\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// For any files, no host is served for two projects, the returned changes lead from each state
    /// to the next, and all records without conflicts are served.
    #[test]
    fn the_served_sites_are_always_consistent(rounds in rewrites()) {
        let mut platform = Platform::new();
        let mut model = BTreeMap::new();
        for round in rounds {
            for (file, records) in round {
                let name = format!("{file}.yaml");
                platform.write(&name, &records.map_or("project: [".to_owned(), |r| with_spelling(&r)));
            }
            apply(&mut platform, &mut model)?;
        }
        // Every file is corrected: each project occurs once, with its own host.
        for file in 0..4 {
            let records = [(file, vec![(file + 1) % 4])];
            platform.write(&format!("{file}.yaml"), &with_spelling(&records));
        }
        apply(&mut platform, &mut model)?;
        for file in 0..4 {
            let domains = platform.domains(&format!("p{file}"));
            prop_assert_eq!(domains, [format!("h{}.com", (file + 1) % 4)]);
        }
        prop_assert_eq!(platform.sites.len(), 4);
    }
}

fn apply(
    platform: &mut Platform,
    model: &mut BTreeMap<ProjectId, Arc<Site>>,
) -> Result<(), TestCaseError> {
    let changes = platform.scan();
    for project in &changes.removed {
        prop_assert!(model.remove(project).is_some());
    }
    for site in changes.upserted {
        let before = model.insert(site.project.clone(), Arc::clone(&site));
        prop_assert_ne!(before, Some(site));
    }
    let served: BTreeMap<_, _> = platform
        .sites
        .iter()
        .map(|site| (site.project.clone(), Arc::clone(site)))
        .collect();
    prop_assert_eq!(&served, model);
    let mut hosts = HashSet::new();
    for site in served.values() {
        for domain in &site.domains {
            prop_assert!(hosts.insert(domain.clone()), "{} is served twice", domain);
        }
    }
    Ok(())
}

#[test]
fn a_record_of_the_store_is_read_again_after_a_change_or_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("store");
    let store = Arc::new(Store::open_directory(root.clone()).unwrap());
    let put = |domain: Option<&str>| {
        let project = ProjectId::parse("acme").unwrap();
        let record = domain.map(|domain| {
            let domains = serde_json::json!({ "subdomain": "acme", "domains": [domain] });
            SiteRecord {
                project: project.clone(),
                changed_at: 1,
                ownership: std::collections::BTreeMap::new(),
                record: serde_json::from_value(domains).unwrap(),
            }
        });
        store.replace_site_records(&[(project, record)]).unwrap();
    };
    put(Some("a.test"));
    // At this time the directories have not just changed.
    let later = Clock::System.now() + std::time::Duration::from_secs(60);
    let mut platform = Platform::new();
    platform.sites = Sites::new(
        Service::default(),
        PrivateHosts::default(),
        directory.path().to_owned(),
        Clock::Fixed(later),
    )
    .with_store(Arc::clone(&store))
    .without_files();
    assert_eq!(platform.changes(), (vec!["+acme".to_owned()], none()));
    assert_eq!(platform.changes(), (none(), none()));
    put(Some("b.test"));
    assert_eq!(platform.changes(), (vec!["+acme".to_owned()], none()));
    assert_eq!(platform.domains("acme"), ["b.test"]);

    // The disk returns other bytes for a while, and no name has changed.
    let shard = format!(
        "sites/{:02x}/acme.json",
        crate::store::shards::shard_of("acme")
    );
    let file = root.join(shard);
    let good = fs::read(&file).unwrap();
    put(Some("c.test"));
    let newest = fs::read(&file).unwrap();
    fs::write(&file, &good[1..]).unwrap();
    let (changed, diagnostics) = platform.changes();
    assert!(
        changed.is_empty() && diagnostics.len() == 1,
        "{diagnostics:?}"
    );
    fs::write(&file, &newest).unwrap();
    assert_eq!(platform.changes(), (vec!["+acme".to_owned()], none()));
    assert_eq!(platform.domains("acme"), ["c.test"]);

    put(None);
    assert_eq!(platform.changes(), (vec!["-acme".to_owned()], none()));
}
