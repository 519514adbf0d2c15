//! Tests of a store in a directory: other processes, damage, other programs.

mod concurrent;
mod records;

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::super::{Store, Swept};
use super::pointers::copy_of;
use super::*;
use crate::release::{ReleaseFile, ReleasePath};
use crate::site::Host;
use crate::store::audit::{Entry, Filter, Who};
use crate::store::{SiteChange, SiteRecord};

fn config(directory: &tempfile::TempDir) -> Config {
    Config {
        path: directory.path().join("store"),
        retention: Retention::default(),
        ..Config::default()
    }
}

fn open(config: &Config) -> Store {
    Store::Local(Local::open(config, Clock::System).unwrap())
}

fn release(text: &str) -> Release {
    let mut builder = Release::builder();
    for (path, text) in [("own.md", text), ("shared.md", "shared")] {
        let file = ReleaseFile::new(text.as_bytes().to_vec(), "text/markdown");
        builder
            .insert(ReleasePath::parse(path).unwrap(), file)
            .unwrap();
    }
    builder.finish()
}

fn project(name: &str) -> ProjectId {
    ProjectId::parse(name).unwrap()
}

fn fence(generation: u64) -> Fence {
    Fence {
        generation,
        epoch: 0,
    }
}

fn much_later() -> SystemTime {
    Clock::System.now() + Duration::from_secs(48 * 60 * 60)
}

fn content_of(config: &Config, text: &str) -> PathBuf {
    let hex = Digest::of(text.as_bytes()).to_string();
    config.path.join("content").join(&hex[..2]).join(&hex[2..])
}

fn store_inventory(config: &Config, release: ReleaseId) -> PathBuf {
    let hex = release.digest().to_string();
    let shard = config.path.join("inventories").join(&hex[..2]);
    shard.join(format!("{}.json", &hex[2..]))
}

fn pointer_of(config: &Config, project: &ProjectId) -> PathBuf {
    let hex = Digest::of(project.as_str().as_bytes()).to_string();
    let shard = config.path.join("pointers").join(&hex[..2]);
    shard.join(format!("{project}.json"))
}

fn leftovers(config: &Config) -> usize {
    fs::read_dir(config.path.join("temp")).unwrap().count()
}

fn site_change(name: &str, domain: &str) -> SiteChange {
    let project = project(name);
    let record = serde_json::json!({ "subdomain": name, "domains": [domain] });
    let record = record.as_object().cloned();
    SiteChange {
        record: record.clone().map(|record| SiteRecord {
            project: project.clone(),
            changed_at: 7,
            record,
            ownership: std::collections::BTreeMap::new(),
        }),
        claimed: vec![Host::parse(domain).unwrap()],
        released: Vec::new(),
        quarantine: None,
        handovers: std::collections::BTreeMap::new(),
        entry: Entry {
            id: 0,
            at: 7000,
            who: Who::default(),
            what: "site.create".into(),
            project: name.into(),
            owner: name.into(),
            host: None,
            before: None,
            after: record,
        },
        project,
    }
}

#[test]
fn a_reopened_store_has_its_releases() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let id = open(&config).put(&release("one")).unwrap();
    let acme = project("acme");
    let pointer = open(&config).promote(&acme, id, fence(1)).unwrap();

    let store = open(&config);

    assert_eq!(store.current(&acme).unwrap(), Some(pointer));
    assert_eq!(&store.inventory(id).unwrap(), release("one").inventory());
    assert_eq!(leftovers(&config), 0);
}

#[test]
fn the_layout_is_the_documented_one() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    let id = store.put(&release("one")).unwrap().to_string();
    let acme = project("acme");
    store
        .promote(&acme, ReleaseId::parse(&id).unwrap(), fence(1))
        .unwrap();

    let format = fs::read_to_string(config.path.join("FORMAT")).unwrap();
    assert_eq!(format, "waypost store 1\n");
    assert_eq!(fs::read(content_of(&config, "one")).unwrap(), b"one");
    let inventories = config.path.join("inventories");
    let inventory = inventories
        .join(&id[..2])
        .join(format!("{}.json", &id[2..]));
    assert_eq!(
        fs::read(inventory).unwrap(),
        *release("one").inventory_bytes()
    );
    assert!(pointer_of(&config, &acme).exists());
    let local = store.directory().unwrap();
    assert_eq!(local.pointer_directories().count(), 256);
    assert!(local.pointer_directories().all(|shard| shard.is_dir()));
}

#[test]
fn a_store_of_a_newer_program_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    open(&config);
    fs::write(config.path.join("FORMAT"), "waypost store 2\n").unwrap();

    let error = Local::open(&config, Clock::System).unwrap_err();

    assert!(
        matches!(error, OpenError::Newer { version: 2, .. }),
        "{error}"
    );
    assert!(
        error.to_string().contains("reads formats up to 1"),
        "{error}"
    );
}

#[test]
fn a_directory_with_other_files_does_not_become_a_store() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    fs::create_dir(&config.path).unwrap();
    fs::write(config.path.join("thesis.tex"), "").unwrap();
    let error = Local::open(&config, Clock::System).unwrap_err();
    assert!(error.to_string().contains("thesis.tex"), "{error}");
    assert_eq!(fs::read_dir(&config.path).unwrap().count(), 1);

    fs::write(config.path.join("FORMAT"), "something else\n").unwrap();
    let error = Local::open(&config, Clock::System).unwrap_err();
    assert!(matches!(error, OpenError::NotAStore { .. }), "{error}");
}

#[test]
fn a_store_that_another_process_completes_meanwhile_is_opened() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    open(&config);
    let (format, hidden) = (config.path.join("FORMAT"), directory.path().join("hidden"));
    let written = config.path.join("edges-life");
    let begin = Barrier::new(2);
    for _ in 0..5_000 {
        fs::rename(&format, &hidden).unwrap();
        thread::scope(|scope| {
            // The other process writes `FORMAT`, and then files of its own.
            scope.spawn(|| {
                begin.wait();
                fs::rename(&hidden, &format).unwrap();
                fs::write(&written, "1").unwrap();
            });
            begin.wait();
            Local::open_to_read(&config, Clock::System).unwrap();
        });
        fs::remove_file(&written).unwrap();
    }
}

#[test]
fn an_incomplete_store_is_completed() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    fs::create_dir_all(config.path.join("content/00")).unwrap();
    fs::create_dir_all(config.path.join("temp")).unwrap();
    fs::write(config.path.join("temp/1-0"), "waypost st").unwrap();

    let store = open(&config);

    assert!(config.path.join("FORMAT").exists());
    let swept = store.sweep(Clock::System.now()).unwrap();
    assert_eq!(
        swept,
        Swept {
            leftovers: 1,
            ..Swept::default()
        }
    );
}

#[test]
fn damaged_content_is_never_read_and_the_next_put_repairs_it() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    store.put(&release("one")).unwrap();
    let one = release("one");
    let item = one.inventory().get("own.md").unwrap();
    for (damage, reason) in [
        ("", "it has fewer than 3 bytes"),
        ("on", "it has fewer than 3 bytes"),
        ("ONE", "its digest is not its name"),
        ("one and more", "it has more than 3 bytes"),
    ] {
        fs::write(content_of(&config, "one"), damage).unwrap();
        let Err(ReadError::Damaged { why, .. }) = store.read(item) else {
            panic!("{damage}: it is not noticed");
        };
        assert_eq!(why, reason, "{damage}");
        store.put(&one).unwrap();
        assert_eq!(store.read(item).unwrap(), "one");
    }
}

#[test]
fn a_damaged_inventory_is_never_read() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    let id = store.put(&release("one")).unwrap();
    let hex = id.to_string();
    let inventories = config.path.join("inventories");
    let path = inventories
        .join(&hex[..2])
        .join(format!("{}.json", &hex[2..]));
    fs::write(path, r#"{"version":1,"files":{}}"#).unwrap();
    assert!(matches!(
        store.inventory(id),
        Err(ReadError::Damaged { .. })
    ));
}

#[test]
fn a_pointer_that_is_damaged_with_its_copy_stops_only_promotion_and_sweep() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    let id = store.put(&release("one")).unwrap();
    let (acme, other) = (project("acme"), project("other"));
    for project in [&acme, &other] {
        store.promote(project, id, fence(1)).unwrap();
    }
    for (damage, newer) in [
        ("", false),
        ("{\"version\":1,\"project\":\"acme\"", false),
        ("{\"version\":2,\"project\":\"acme\",\"tags\":[]}", true),
    ] {
        let pointer = pointer_of(&config, &acme);
        fs::write(&pointer, damage).unwrap();
        if !newer {
            let copied = store.current(&acme).unwrap().unwrap();
            assert_eq!(copied.current.release, id, "its copy is read");
        }
        let copy = fs::read(pointer.with_extension("copy")).unwrap();
        fs::write(pointer.with_extension("copy"), damage).unwrap();
        let error = store.current(&acme).unwrap_err();
        assert_eq!(matches!(error, ReadError::Newer { .. }), newer, "{error}");
        assert!(error.to_string().contains("acme.json"), "{error}");
        assert!(store.promote(&acme, id, fence(2)).is_err());
        assert!(store.sweep(much_later()).is_err());
        assert!(store.current(&other).unwrap().is_some());
        fs::write(pointer.with_extension("copy"), copy).unwrap();
    }
    assert!(store.inventory(id).is_ok());
}

#[test]
fn the_pointer_of_another_project_is_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    let id = store.put(&release("one")).unwrap();
    let (acme, other) = (project("acme"), project("Acme"));
    store.promote(&acme, id, fence(1)).unwrap();
    // A file system that ignores case would give this file.
    fs::copy(pointer_of(&config, &acme), pointer_of(&config, &other)).unwrap();
    assert!(matches!(
        store.current(&other),
        Err(ReadError::Damaged { .. })
    ));
}

#[test]
fn a_release_that_lost_a_file_is_not_promoted() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(&directory);
    // With this retention the promotion cannot rely on the age of the inventory.
    config.retention.unnamed_seconds = 0;
    let store = open(&config);
    let id = store.put(&release("one")).unwrap();
    fs::remove_file(content_of(&config, "one")).unwrap();
    let error = store.promote(&project("acme"), id, fence(1)).unwrap_err();
    assert!(matches!(error, PromoteError::UnknownRelease(_)), "{error}");
}

#[test]
fn a_check_counts_what_pointers_name_and_a_repair_uses_the_history() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    let acme = project("acme");
    let [one, two] = ["one", "second"].map(|text| store.put(&release(text)).unwrap());
    store.promote(&acme, one, fence(1)).unwrap();
    let current = store.promote(&acme, two, fence(2)).unwrap().current;
    let orphan = store.put(&release("orphan")).unwrap();
    assert!(orphan != one && orphan != two);

    let now = Clock::System.now();
    let whole = store.check(false, now).unwrap();
    assert_eq!((whole.projects, whole.releases), (1, 2));
    // The shared file is read once.
    assert_eq!((whole.files, whole.bytes), (3, 3 + 6 + 6));
    // The content and the inventory of the release that was not promoted.
    assert_eq!(whole.orphans, 2);
    let inventory = fs::metadata(store_inventory(&config, orphan))
        .unwrap()
        .len();
    assert_eq!(whole.orphan_bytes, 6 + inventory);
    assert_eq!(whole.damages, vec![]);

    fs::write(content_of(&config, "second"), "damage").unwrap();
    let found = store.check(false, now).unwrap().damages;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found.iter().all(|damage| damage.repaired.is_none()),
        "{found:?}"
    );
    assert_eq!(store.current(&acme).unwrap().unwrap().current, current);

    let repaired = store.check(true, now).unwrap().damages;
    assert_eq!(
        repaired
            .iter()
            .filter(|damage| damage.repaired.is_some())
            .count(),
        1
    );
    assert_eq!(store.current(&acme).unwrap().unwrap().current.release, one);

    // The shared file is damaged: no release is whole.
    fs::write(content_of(&config, "shared"), "damage").unwrap();
    let found = store.check(true, now).unwrap().damages;
    assert!(
        found.iter().all(|damage| damage.repaired.is_none()),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|damage| damage.what.contains("no release of its history is intact")),
        "{found:?}"
    );
    assert_eq!(store.current(&acme).unwrap().unwrap().current.release, one);
}

#[test]
fn a_repair_keeps_a_release_that_is_promoted_while_it_waits() {
    use std::os::unix::fs::MetadataExt as _;

    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    let acme = project("acme");
    let [one, two] = ["one", "two"].map(|text| store.put(&release(text)).unwrap());
    let pointer = pointer_of(&config, &acme);
    let [former, newer] = [(one, 1), (two, 2)].map(|(id, generation)| {
        store.promote(&acme, id, fence(generation)).unwrap();
        fs::read(&pointer).unwrap()
    });
    for (damaged_copy, set_aside) in [(former.as_slice(), false), (b"damage", true)] {
        fs::write(&pointer, "damage").unwrap();
        fs::write(copy_of(&pointer), damaged_copy).unwrap();
        // As a promotion, which holds the lock while it writes both files.
        let shard = fs::File::open(pointer.parent().unwrap()).unwrap();
        shard.lock().unwrap();
        let inode = shard.metadata().unwrap().ino().to_string();
        let repaired = thread::scope(|scope| {
            let repair = scope.spawn(|| open(&config).check(true, Clock::System.now()).unwrap());
            let waits = |line: &str| line.contains("-> FLOCK") && line.contains(&inode);
            while !fs::read_to_string("/proc/locks")
                .unwrap()
                .lines()
                .any(waits)
            {
                assert!(!repair.is_finished(), "the repair takes the lock");
                thread::yield_now();
            }
            for file in [copy_of(&pointer), pointer.clone()] {
                fs::write(file, &newer).unwrap();
            }
            shard.unlock().unwrap();
            repair.join().unwrap()
        });
        let served = store.current(&acme).unwrap().map(|it| it.current.release);
        assert_eq!(served, Some(two), "{set_aside}");
        assert_eq!(repaired.damages.len(), 1, "{repaired:?}");
        assert!(repaired.damages[0].repaired.is_some(), "{repaired:?}");
    }
}

#[test]
fn a_failed_put_leaves_no_visible_release() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    let path = content_of(&config, "one");
    // Nothing can be renamed to a directory with something in it, not even by root.
    fs::create_dir_all(path.join("in the way")).unwrap();

    let error = store.put(&release("one")).unwrap_err();

    assert!(error.is_transient());
    assert!(store.inventory(release("one").id()).is_err());
    assert_eq!(leftovers(&config), 0);
}

#[test]
fn reusing_content_renews_its_modification_time() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    store.put(&release("one")).unwrap();
    let shared = content_of(&config, "shared");
    let days_ago = Clock::System.now() - Duration::from_secs(3 * 24 * 60 * 60);
    for path in [&shared, &content_of(&config, "one")] {
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(days_ago).unwrap();
    }

    store.put(&release("two")).unwrap();

    assert!(fs::metadata(&shared).unwrap().modified().unwrap() > days_ago);
}

#[test]
fn a_put_leaves_free_space() {
    let directory = tempfile::tempdir().unwrap();
    let config = |free_bytes_min| Config {
        free_bytes_min,
        ..config(&directory)
    };
    let full = Local::open(&config(u64::MAX), Clock::System).unwrap();
    let refused = full.put(&release("own")).unwrap_err();
    assert!(matches!(refused, PutError::Full { least: u64::MAX }));
    // No file of it was written.
    assert!(!content_of(&config(0), "own").exists());
    // Without a limit, the disk itself says when it is full.
    let open = Local::open(&config(0), Clock::System).unwrap();
    assert!(open.check_space(u64::MAX).is_ok());
    open.put(&release("own")).unwrap();
}

#[test]
fn the_releases_of_an_owner_are_stored_by_one_process_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let (one, other) = (open(&config), open(&config));
    let lock = |store: &Store, owner| store.lock_owner(owner, Duration::ZERO).unwrap();
    let held = lock(&one, "acme");
    assert!(held.is_some());
    assert!(lock(&other, "acme").is_none());
    assert!(lock(&other, "second").is_some());
    drop(held);
    assert!(lock(&other, "acme").is_some());
}
