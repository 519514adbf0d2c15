//! Backups: a node that was lost is restored, and nothing that it promised is lost with it.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::certificates::Authority;
use crate::edge::Setup;
use crate::http::TIMEOUT;
use crate::presets::{DOMAIN, SKILL, SUBDOMAIN};
use crate::repository::{API, Repository, follow, key, queue, setup};

/// Runs the program without a configuration of the test.
fn waypost(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waypost"));
    command.args(arguments).output().unwrap()
}

#[track_caller]
pub fn succeeds(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn fails(output: &Output, code: i32, why: &str) {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let text = format!("{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.contains(why), "{text}");
}

/// The directory of backups and the key, which are not on the node.
struct Elsewhere(tempfile::TempDir);

impl Elsewhere {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn directory(&self) -> String {
        self.0.path().join("backups").display().to_string()
    }

    fn key(&self) -> String {
        self.0.path().join("key").display().to_string()
    }

    #[track_caller]
    fn backup(&self, setup: &Setup) -> String {
        let output = setup.run(&["backup", &self.directory(), "--key-file", &self.key()]);
        let text = succeeds(&output);
        let name = text.strip_prefix("backup ").unwrap();
        name.split_once(':').unwrap().0.to_owned()
    }

    fn restore(&self, more: &[&str]) -> Output {
        let (directory, key) = (self.directory(), self.key());
        let arguments = ["restore", &directory, "--key-file", &key];
        waypost(&[&arguments[..], more].concat())
    }
}

/// Removes everything that a node has, but its repository.
fn lose(setup: &Setup) {
    for directory in ["store", "sites", "tls"] {
        let _not_there = fs::remove_dir_all(setup.path(directory));
    }
    for file in [
        "updates.sqlite",
        "updates.sqlite-wal",
        "updates.sqlite-shm",
        "waypost.yaml",
        "model.key",
    ] {
        let _not_there = fs::remove_file(setup.path(file));
    }
}

fn skill(number: u32) -> String {
    format!("{SKILL}\nNumber {number}.\n")
}

/// Makes a file old.
fn age(path: &Path) {
    let hour = std::time::Duration::from_secs(3600);
    let open = File::options().write(true).open(path).unwrap();
    open.set_modified(waypost::clock::Clock::System.now() - hour)
        .unwrap();
}

/// Returns all files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

#[test]
fn a_lost_node_serves_the_same_and_builds_what_it_has_acknowledged() {
    let elsewhere = Elsewhere::new();
    let setup = setup();
    let key_of_model = setup.path("model.key");
    fs::write(&key_of_model, "the key of the model\n").unwrap();
    fs::set_permissions(&key_of_model, fs::Permissions::from_mode(0o600)).unwrap();
    let model = format!("{{ model: {{ key_file: {} }} }}", key_of_model.display());
    let setup = setup
        .conf("generate", &model)
        .conf("worker", "{ embedded: false }");
    let docs = Repository::new(&setup, "docs");
    docs.push("Begin", &[("skill.md", &skill(3))]);
    let edge = setup.acme(&docs.record()).start();
    let owner = key(&edge.setup, "acme");
    // A site of the API, with its entry in the audit log.
    let record = edge.setup.path("record.json");
    let text = r#"{"owner":"acme","subdomain":"second"}"#;
    fs::write(&record, text).unwrap();
    succeeds(
        &edge
            .setup
            .run(&["site", "set", "second", record.to_str().unwrap()]),
    );
    // An update that waits, and a release of a greater generation than it has.
    let waiting = queue(&edge.setup, "acme");
    let first = edge.publish("acme", &[("skill.md", &skill(1))]);
    let second = edge.publish("acme", &[("skill.md", &skill(2))]);
    let served = edge.get(DOMAIN, "/skill.md");
    assert!(served.text().contains("Number 2."), "{}", served.text());
    let releases = succeeds(&edge.setup.run(&["releases", "acme"]));
    let audit = succeeds(&edge.setup.run(&["site", "audit"]));

    elsewhere.backup(&edge.setup);
    edge.signal("KILL");
    let setup = edge.ended();
    lose(&setup);
    let text = succeeds(&elsewhere.restore(&[]));
    assert!(
        text.contains("is restored: 1 projects, 2 releases"),
        "{text}"
    );

    // The key of the model is where it was, for its owner only.
    assert_eq!(
        fs::read_to_string(&key_of_model).unwrap(),
        "the key of the model\n"
    );
    let mode = fs::metadata(&key_of_model).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let edge = setup.start();
    let after = edge.get(DOMAIN, "/skill.md");
    assert_eq!((after.status, &after.body), (200, &served.body));
    assert_eq!(after.field("etag"), served.field("etag"));
    assert_eq!(succeeds(&edge.setup.run(&["releases", "acme"])), releases);
    assert_eq!(succeeds(&edge.setup.run(&["site", "audit"])), audit);
    let authorization = format!("Bearer {owner}");
    let fields = [("Authorization", &*authorization)];
    let known = crate::http::request(edge.http, "GET", API, "/v1/sites/second", &fields);
    assert_eq!(known.status, 200, "{}", known.text());

    // A rollback is newer than everything before.
    let back = edge.promote("acme", &first.release);
    assert!(back.generation > second.generation);
    let now = edge.get(DOMAIN, "/skill.md");
    assert!(now.text().contains("Number 1."), "{}", now.text());

    // The acknowledged update is built from what the repository has now, over all of that.
    edge.signal("TERM");
    let setup = edge.ended().conf("worker", "{}");
    let edge = setup.start();
    let record = follow(&edge.setup, &waiting);
    assert_eq!(record["status"], "success", "{record:#}");
    edge.wait_for_log(|line| {
        line["project"] == "acme"
            && line["generation"]
                .as_u64()
                .is_some_and(|g| g > back.generation)
    });
    let now = edge.get(DOMAIN, "/skill.md");
    assert!(now.text().contains("Number 3."), "{}", now.text());
}

#[test]
fn a_backup_is_taken_while_releases_come_and_go() {
    let elsewhere = Elsewhere::new();
    let setup = Setup::new();
    let store = setup.path("store").display().to_string();
    let setup = setup
        .conf(
            "store",
            &format!(
                "{{ local: {{ path: {store}, keep_releases: 0, keep_unnamed_seconds: 60 }} }}"
            ),
        )
        .acme("");
    setup.publish("acme", &[("skill.md", SKILL)]);
    let is_over = AtomicBool::new(false);
    let names = std::thread::scope(|scope| {
        let publishing = scope.spawn(|| {
            let mut count = 0;
            while !is_over.load(Ordering::Relaxed) {
                setup.publish("acme", &[("skill.md", &skill(count))]);
                // What no pointer names is old enough to be removed.
                for file in files(&setup.path("store/inventories")) {
                    age(&file);
                }
                for file in files(&setup.path("store/content")) {
                    age(&file);
                }
                succeeds(&setup.run(&["store", "check", "--repair"]));
                count += 1;
            }
            count
        });
        let names: Vec<_> = (0..6).map(|_| elsewhere.backup(&setup)).collect();
        is_over.store(true, Ordering::Relaxed);
        assert!(publishing.join().unwrap() > 1);
        names
    });
    for name in &names {
        let text = succeeds(&elsewhere.restore(&["--check", "--backup", name]));
        assert!(text.contains("is whole: 1 projects"), "{text}");
    }
    let listed = succeeds(&elsewhere.restore(&["--list"]));
    assert_eq!(listed.lines().count(), names.len(), "{listed}");
}

#[test]
fn secrets_are_encrypted_and_the_key_is_needed() {
    let elsewhere = Elsewhere::new();
    let setup = Setup::new().acme("");
    let tls = setup.path("tls");
    fs::create_dir_all(tls.join("docs.acme.test")).unwrap();
    let private = tls.join("docs.acme.test/privkey.pem");
    fs::write(&private, "-----BEGIN PRIVATE KEY-----\nsecret\n").unwrap();
    let setup = setup.conf("tls", &format!("{{ directory: {} }}", tls.display()));
    setup.publish("acme", &[("skill.md", SKILL)]);
    let admin = key(&setup, "acme");
    elsewhere.backup(&setup);
    let digest_of_key = fs::read_dir(setup.path("store/keys")).unwrap().count();
    assert!(digest_of_key > 0 && !admin.is_empty());
    for path in files(elsewhere.directory().as_ref()) {
        let bytes = fs::read(&path).unwrap();
        for secret in [&b"PRIVATE KEY"[..], b"subdomain", b"store: {"] {
            let found = bytes.windows(secret.len()).any(|window| window == secret);
            assert!(!found, "{}", path.display());
        }
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} {mode:o}", path.display());
    }
    lose(&setup);
    let other = elsewhere.0.path().join("other");
    fs::write(&other, format!("{}\n", "ab".repeat(32))).unwrap();
    let (directory, other) = (elsewhere.directory(), other.display().to_string());
    let output = waypost(&["restore", &directory, "--key-file", &other]);
    fails(&output, 2, "which the key file does not hold");
    fails(&waypost(&["restore", &directory]), 2, "--key-file FILE");
    assert!(!setup.path("store").exists() && !private.exists());
    succeeds(&elsewhere.restore(&[]));
    assert!(private.exists());
    // Without its key no further backup is made beside those that have one.
    fs::remove_file(elsewhere.key()).unwrap();
    let output = setup.run(&["backup", &directory, "--key-file", &elsewhere.key()]);
    fails(&output, 2, "has backups that are encrypted with it");
}

#[test]
fn a_backup_that_was_killed_leaves_the_one_before() {
    let elsewhere = Elsewhere::new();
    let setup = Setup::new().acme("");
    setup.publish("acme", &[("skill.md", SKILL)]);
    let good = elsewhere.backup(&setup);
    setup.publish("acme", &[("skill.md", &skill(2))]);
    // It stops where it needs the lock of site records.
    let lock = File::create(setup.path("store/sites.lock")).unwrap();
    lock.lock().unwrap();
    setup.write_conf();
    let mut killed = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["backup", &elsewhere.directory(), "--key-file"])
        .arg(elsewhere.key())
        .arg("--conf")
        .arg(setup.path("waypost.yaml"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let backups = PathBuf::from(elsewhere.directory()).join("backups");
    let since = Instant::now();
    while fs::read_dir(&backups).unwrap().count() < 2 {
        assert!(since.elapsed() < TIMEOUT);
        crate::http::pause();
    }
    // Another one does not disturb it.
    let beside = setup.run(&[
        "backup",
        &elsewhere.directory(),
        "--key-file",
        &elsewhere.key(),
    ]);
    fails(&beside, 2, "another process makes a backup");
    killed.kill().unwrap();
    killed.wait().unwrap();
    drop(lock);
    let text = succeeds(&elsewhere.restore(&["--check"]));
    assert!(text.contains(&good), "{text}");
    let next = elsewhere.backup(&setup);
    assert!(next > good);
    let mut names: Vec<_> = fs::read_dir(&backups)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [good, next]);
}

#[test]
fn damage_is_found_before_anything_is_written() {
    let elsewhere = Elsewhere::new();
    let setup = Setup::new().acme("");
    setup.publish("acme", &[("skill.md", &skill(2))]);
    elsewhere.backup(&setup);
    lose(&setup);
    let content = PathBuf::from(elsewhere.directory()).join("releases/content");
    let file = files(&content).pop().unwrap();
    let good = fs::read(&file).unwrap();
    let mut bad = good.clone();
    bad[0] ^= 1;
    fs::write(&file, &bad).unwrap();
    fails(&elsewhere.restore(&[]), 1, "its digest is not its name");
    assert!(!setup.path("store").exists());
    fs::write(&file, &good).unwrap();
    let archive = files(&PathBuf::from(elsewhere.directory()).join("backups"));
    let archive = archive.iter().find(|path| path.ends_with("archive"));
    let archive = archive.unwrap();
    let text = fs::read_to_string(archive).unwrap();
    fs::write(archive, text.replacen("\"text\":\"", "\"text\":\"AAAA", 1)).unwrap();
    fails(&elsewhere.restore(&[]), 2, "its secret is damaged");
    assert!(!setup.path("store").exists());
    fs::write(archive, text).unwrap();
    succeeds(&elsewhere.restore(&[]));
    // A file that is missing in the directory is copied again.
    fs::remove_file(&file).unwrap();
    fails(&elsewhere.restore(&["--check"]), 1, "is not in the store");
    elsewhere.backup(&setup);
    succeeds(&elsewhere.restore(&["--check"]));
}

#[test]
fn a_restore_replaces_nothing_unless_it_is_asked_to() {
    let elsewhere = Elsewhere::new();
    let edge = Setup::new().acme("").start();
    let one = edge.publish("acme", &[("skill.md", SKILL)]);
    elsewhere.backup(&edge.setup);
    edge.publish("acme", &[("skill.md", &skill(2))]);
    fails(
        &elsewhere.restore(&["--replace"]),
        2,
        "a gateway runs with this store",
    );
    edge.signal("TERM");
    let setup = edge.ended();
    let conf = setup.path("waypost.yaml").display().to_string();
    let output = elsewhere.restore(&[]);
    let store = setup.path("store").display().to_string();
    fails(&output, 2, &format!("{store} is not empty"));
    fails(&output, 2, "nothing was written");
    let text = succeeds(&elsewhere.restore(&["--replace", "--conf", &conf]));
    assert!(
        text.contains(&format!("moved {store} to {store}.before-")),
        "{text}"
    );
    assert!(
        text.contains("not restored, because configuration"),
        "{text}"
    );
    let releases = succeeds(&setup.run(&["releases", "acme"]));
    assert_eq!(releases.lines().count(), 1, "{releases}");
    assert!(releases.contains(&one.release[..12]), "{releases}");
}

#[test]
fn an_interrupted_restore_is_noticed_and_repeated() {
    let elsewhere = Elsewhere::new();
    let setup = Setup::new().acme("");
    setup.publish("acme", &[("skill.md", SKILL)]);
    // It cannot write the queue, after it has begun.
    let blocked = setup.path("updates.sqlite.restoring");
    queue(&setup, "acme");
    elsewhere.backup(&setup);
    lose(&setup);
    fs::create_dir(&blocked).unwrap();
    fails(&elsewhere.restore(&[]), 2, "updates.sqlite");
    fails(
        &setup.run(&["releases", "acme"]),
        2,
        "run `waypost restore` again",
    );
    let (status, text) = setup.start_expecting_failure();
    assert_eq!(status.code(), Some(2));
    assert!(text.contains("run `waypost restore` again"), "{text}");
    fs::remove_dir(&blocked).unwrap();
    succeeds(&elsewhere.restore(&[]));
    succeeds(&setup.run(&["releases", "acme"]));
}

#[test]
fn a_backup_of_a_newer_program_is_refused() {
    let elsewhere = Elsewhere::new();
    let setup = Setup::new().acme("");
    elsewhere.backup(&setup);
    let directory = PathBuf::from(elsewhere.directory());
    let manifest = files(&directory.join("backups"));
    let manifest = manifest
        .iter()
        .find(|path| path.ends_with("manifest.json"))
        .unwrap();
    let text = fs::read_to_string(manifest).unwrap();
    fs::write(manifest, "{\"version\":2,\"other\":7}").unwrap();
    fails(
        &elsewhere.restore(&[]),
        2,
        "has version 2, of a newer program",
    );
    fs::write(manifest, text).unwrap();
    fs::write(directory.join("FORMAT"), "waypost backup 2\n").unwrap();
    fails(
        &elsewhere.restore(&[]),
        2,
        "has version 2, of a newer program",
    );
    let again = setup.run(&[
        "backup",
        &elsewhere.directory(),
        "--key-file",
        &elsewhere.key(),
    ]);
    fails(&again, 2, "has version 2, of a newer program");
}

#[test]
fn old_backups_and_their_releases_are_removed() {
    let elsewhere = Elsewhere::new();
    let setup = Setup::new();
    let store = setup.path("store").display().to_string();
    let setup = setup
        .conf(
            "store",
            &format!("{{ local: {{ path: {store}, keep_releases: 0 }} }}"),
        )
        .conf(
            "backup",
            &format!("{{ keep: 2, key_file: {} }}", elsewhere.key()),
        )
        .acme("");
    let mut counts = Vec::new();
    for count in 0..4 {
        setup.publish("acme", &[("skill.md", &skill(count))]);
        succeeds(&setup.run(&["backup", &elsewhere.directory()]));
        let inventories = PathBuf::from(elsewhere.directory()).join("releases/inventories");
        counts.push(files(&inventories).len());
    }
    assert_eq!(counts, [1, 2, 2, 2]);
    let listed = succeeds(&elsewhere.restore(&["--list"]));
    assert_eq!(listed.lines().count(), 2, "{listed}");
    for line in listed.lines() {
        let name = line.split_once(':').unwrap().0;
        succeeds(&elsewhere.restore(&["--check", "--backup", name]));
    }
    let inside = setup.path("store/backups").display().to_string();
    fails(&setup.run(&["backup", &inside]), 2, "is inside the store");
}

#[test]
fn a_restore_of_another_backup_than_the_interrupted_one_mixes_nothing() {
    let elsewhere = Elsewhere::new();
    let setup = Setup::new().acme("");
    setup.write_site("second", "");
    for project in ["acme", "second"] {
        setup.publish(project, &[("skill.md", SKILL)]);
    }
    queue(&setup, "acme");
    let first = elsewhere.backup(&setup);
    // The second backup is of a node without the second project.
    for path in files(&setup.path("store/pointers")) {
        if path.to_string_lossy().contains("second") {
            fs::remove_file(path).unwrap();
        }
    }
    let second = elsewhere.backup(&setup);
    lose(&setup);
    let blocked = setup.path("updates.sqlite.restoring");
    fs::create_dir(&blocked).unwrap();
    fails(
        &elsewhere.restore(&["--backup", &first]),
        2,
        "updates.sqlite",
    );
    fs::remove_dir(&blocked).unwrap();
    fails(
        &elsewhere.restore(&["--backup", &second]),
        2,
        "is not empty",
    );
    succeeds(&elsewhere.restore(&["--backup", &second, "--replace"]));
    let kept = files(&setup.path("store/pointers"));
    let of_second = |path: &PathBuf| path.to_string_lossy().contains("second");
    assert!(!kept.iter().any(of_second), "{kept:?}");
    succeeds(&setup.run(&["releases", "acme"]));
    // Nothing says any more that a restore runs.
    assert!(!setup.path("store/FORMAT.backup").exists());
}

#[test]
fn a_backup_copies_only_site_records_while_it_locks_them() {
    let elsewhere = Elsewhere::new();
    let setup = Setup::new().acme("");
    setup.publish("acme", &[("skill.md", SKILL)]);
    // Bytes that cannot be compressed.
    let noise: Vec<u8> = (0..1 << 16_u32)
        .flat_map(|n: u32| *waypost::digest::Digest::of(&n.to_le_bytes()).as_bytes())
        .collect();
    let numbers = setup.path("store/numbers");
    fs::create_dir_all(&numbers).unwrap();
    fs::write(numbers.join("noise"), &noise).unwrap();
    std::thread::scope(|threads| {
        let lock = File::create(setup.path("store/sites.lock")).unwrap();
        lock.lock().unwrap();
        let backup = threads.spawn(|| elsewhere.backup(&setup));
        let written = || -> u64 {
            let directory = PathBuf::from(elsewhere.directory());
            let found = directory.is_dir().then(|| files(&directory));
            // A temporary file may be gone again.
            let lengths = found.into_iter().flatten().map(fs::metadata);
            lengths.filter_map(Result::ok).map(|file| file.len()).sum()
        };
        let since = Instant::now();
        while written() < noise.len() as u64 {
            assert!(since.elapsed() < TIMEOUT, "the numbers in time");
        }
        drop(lock);
        backup.join().unwrap();
    });
    succeeds(&elsewhere.restore(&["--check"]));
}

#[test]
fn a_node_whose_sites_are_all_kept_by_the_api_starts_after_a_restore() {
    let elsewhere = Elsewhere::new();
    let setup = Setup::new();
    let tls = setup.path("tls");
    fs::create_dir(&tls).unwrap();
    let setup = setup.conf("tls", &format!("{{ directory: {} }}", tls.display()));
    let record = setup.path("record.json");
    fs::write(&record, r#"{"owner":"acme","subdomain":"acme"}"#).unwrap();
    succeeds(&setup.run(&["site", "set", "acme", record.to_str().unwrap()]));
    setup.publish("acme", &[("skill.md", SKILL)]);
    assert_eq!(files(&setup.path("sites")), Vec::<PathBuf>::new());
    elsewhere.backup(&setup);
    lose(&setup);
    succeeds(&elsewhere.restore(&[]));
    let edge = setup.start();
    assert_eq!(edge.get(SUBDOMAIN, "/skill.md").text(), SKILL);
}

#[test]
fn named_files_that_are_no_secrets_are_restored_too() {
    let elsewhere = Elsewhere::new();
    let setup = setup();
    let authority = Authority::new();
    let (certificate, key) = (setup.path("edges.crt"), setup.path("edges.key"));
    let pair = authority.issue(&["localhost"]);
    fs::write(&certificate, pair.certificate.pem()).unwrap();
    fs::write(&key, pair.key.serialize_pem()).unwrap();
    let (own, known) = (setup.path("authority.pem"), setup.path("known_hosts"));
    authority.write(&own);
    fs::write(&known, "git.acme.test ssh-ed25519 AAAA\n").unwrap();
    let login = setup.path("login.key");
    fs::write(&login, "key\n").unwrap();
    for secret in [&key, &login] {
        fs::set_permissions(secret, fs::Permissions::from_mode(0o600)).unwrap();
    }
    let named = [&certificate, &key, &own, &known, &login];
    let path = |path: &Path| path.display().to_string();
    let setup = setup
        .conf(
            "edges",
            &format!(
                "{{ listen: \"127.0.0.1:0\", certificate: {}, key: {} }}",
                path(&certificate),
                path(&key)
            ),
        )
        .conf(
            "acme",
            &format!(
                "{{ authorities: [{{ directory: \"https://127.0.0.1:1/directory\", ca_file: {} }}], \
                 agree_to_terms: true, key_file: {} }}",
                path(&own),
                path(&path_of(&elsewhere, "acme.key"))
            ),
        )
        .conf(
            "listen",
            "{ http: [\"127.0.0.1:0\"], https: [\"127.0.0.1:0\"], operator: \"127.0.0.1:0\" }",
        )
        .conf(
            "git",
            &format!(
                "{{ mirrors: {}, credentials: [{{ host: git.acme.test, owners: [acme], \
                 ssh_key: {}, ssh_known_hosts: {} }}] }}",
                path(&path_of(&elsewhere, "mirrors")),
                path(&login),
                path(&known)
            ),
        )
        .acme("");
    let before = named.map(|path| fs::read(path).unwrap());
    elsewhere.backup(&setup);
    lose(&setup);
    for file in named {
        fs::remove_file(file).unwrap();
    }
    // The authorities of a machine are there before its gateway.
    fs::write(&known, "others\n").unwrap();
    let text = succeeds(&elsewhere.restore(&[]));
    let stays = format!("{} is there already, and stays as it is", known.display());
    assert!(text.contains(&stays), "{text}");
    assert_eq!(fs::read_to_string(&known).unwrap(), "others\n");
    fs::remove_file(&known).unwrap();
    succeeds(&elsewhere.restore(&["--replace"]));
    for (path, before) in named.into_iter().zip(before) {
        assert!(fs::read(path).unwrap() == before, "{}", path.display());
    }
    setup.start();
}

/// Returns a path that is not on the node.
fn path_of(elsewhere: &Elsewhere, name: &str) -> PathBuf {
    elsewhere.0.path().join(name)
}
