//! Tests of a store in a directory: other processes, damage, other programs.

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
    for damage in ["", "on", "ONE", "one and more"] {
        fs::write(content_of(&config, "one"), damage).unwrap();
        let error = store.read(item).unwrap_err();
        assert!(
            matches!(error, ReadError::Damaged { .. }),
            "{damage}: {error}"
        );
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
fn the_greatest_fence_of_many_promoters_wins() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let acme = project("acme");
    let ids: Vec<_> = (0..4)
        .map(|n| open(&config).put(&release(&n.to_string())).unwrap())
        .collect();
    // Each thread opens its own store, like a process: `flock` locks open files against each other.
    let wins: u64 = thread::scope(|scope| {
        let promoters: Vec<_> = (0..4_u64)
            .map(|nth| {
                let (config, acme, ids) = (&config, &acme, &ids);
                scope.spawn(move || {
                    let store = open(config);
                    let mut wins = 0;
                    for round in 0..50 {
                        let generation = round * 4 + nth + 1;
                        let id = ids[usize::try_from(nth).unwrap()];
                        match store.promote(acme, id, fence(generation)) {
                            Ok(pointer) => {
                                assert_eq!(pointer.current.generation, generation);
                                wins += 1;
                            }
                            Err(PromoteError::Stale { current, .. }) => {
                                assert!(current.generation > generation);
                            }
                            Err(error) => panic!("{error}"),
                        }
                    }
                    wins
                })
            })
            .collect();
        promoters.into_iter().map(|p| p.join().unwrap()).sum()
    });
    let last = open(&config).current(&acme).unwrap().unwrap();
    assert_eq!(last.current.generation, 200);
    assert_eq!(last.current.release, ids[3]);
    assert!(wins >= 50, "{wins}");
}

#[test]
fn exactly_one_of_equal_fences_wins() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let acme = project("acme");
    let ids: Vec<_> = (0..4)
        .map(|n| open(&config).put(&release(&n.to_string())).unwrap())
        .collect();
    for generation in 1..=20 {
        let winners: Vec<_> = thread::scope(|scope| {
            let promoters: Vec<_> = ids
                .iter()
                .map(|id| {
                    let (config, acme) = (&config, &acme);
                    scope.spawn(move || open(config).promote(acme, *id, fence(generation)))
                })
                .collect();
            promoters
                .into_iter()
                .filter_map(|p| p.join().unwrap().ok())
                .collect()
        });
        assert_eq!(winners.len(), 1);
        assert_eq!(
            open(&config).current(&acme).unwrap().unwrap().current,
            winners[0].current
        );
    }
}

/// Sweeps with a retention of a twentieth of a second race with publishers until enough
/// was swept; a release that is named must stay whole throughout.
#[test]
fn a_sweep_never_removes_a_file_that_a_publisher_reuses() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = config(&directory);
    config.retention = Retention {
        releases: 1,
        unnamed_seconds: 0,
    };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for name in ["a", "b"] {
            let (config, done) = (&config, &done);
            scope.spawn(move || publish_until(done, config, &project(name)));
        }
        let store = open(&config);
        let swept = sweep_files(&store, 100);
        // This is also set after a failure; otherwise the publishers would never end.
        done.store(true, Ordering::Relaxed);
        swept.unwrap();
    });
}

fn sweep_files(store: &Store, count: u64) -> Result<(), ReadError> {
    let mut files = 0;
    while files < count {
        let now = Clock::System.now() - Duration::from_millis(50);
        files += store.sweep(now)?.files;
    }
    Ok(())
}

fn publish_until(done: &AtomicBool, config: &Config, project: &ProjectId) {
    let store = open(config);
    for generation in 1.. {
        // Texts repeat, so that a put finds content that the sweep is about to remove.
        let release = release(&format!("{project} {}", generation % 50));
        loop {
            let id = store.put(&release).unwrap();
            match store.promote(project, id, fence(generation)) {
                Ok(_) => break,
                // The put was longer ago than the retention time.
                Err(PromoteError::UnknownRelease(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
        for kept in store.releases(project).unwrap() {
            let inventory = store.inventory(kept.release).unwrap();
            for (_, item) in inventory.iter() {
                store.read(item).unwrap();
            }
        }
        if done.load(Ordering::Relaxed) {
            return;
        }
    }
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

fn change(store: &Store, change: &SiteChange) {
    let lock = store.lock_sites().unwrap();
    store.change_site(&lock, change).unwrap();
}

fn audit_of(store: &Store) -> Vec<(u64, String)> {
    let filter = Filter {
        limit: 100,
        ..Filter::default()
    };
    let entries = store.audit(&filter).unwrap().into_iter();
    entries
        .map(|entry| (entry.id, entry.project.into()))
        .collect()
}

#[test]
fn a_site_change_that_was_killed_at_any_step_is_completed_by_the_next_writer() {
    // Every file that a complete change writes, and the journal that it begins with.
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    change(&store, &site_change("one", "docs.one.com"));
    let wanted = site_change("two", "docs.two.com");
    let audit = config.path.join("audit/00000000000000000001.jsonl");
    let written = || {
        let local = store.directory().unwrap();
        let record = local.layout.site_record(&wanted.project);
        let claim = local.layout.host_claim(&wanted.claimed[0]);
        [copy_of(&record), record, claim, audit.clone()]
    };
    let before: Vec<_> = written().iter().map(|path| fs::read(path).ok()).collect();
    // The journal of a change whose journal could not be renamed: nothing of it is applied.
    fs::rename(&audit, config.path.join("kept")).unwrap();
    fs::create_dir(&audit).unwrap();
    let lock = store.lock_sites().unwrap();
    store.change_site(&lock, &wanted).unwrap_err();
    drop(lock);
    // The number of the entry could not be read, so nothing was begun.
    assert!(!config.path.join("sites.journal").exists());
    fs::remove_dir(&audit).unwrap();
    fs::rename(config.path.join("kept"), &audit).unwrap();

    let journal = journal_of(&store, &wanted, 2);
    for steps in 0..=written().len() {
        for (path, bytes) in written().iter().zip(&before) {
            match bytes {
                Some(bytes) => fs::write(path, bytes).unwrap(),
                None => drop(fs::remove_file(path)),
            }
        }
        fs::write(config.path.join("sites.journal"), &journal).unwrap();
        // The first steps of the change were made by the killed process.
        for path in written().iter().take(steps) {
            let bytes = match path == &audit {
                // A part of a line.
                true => [before[3].clone().unwrap(), b"{\"id\":2,\"at".to_vec()].concat(),
                false => journal_file(&journal, path, &config.path),
            };
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        drop(store.lock_sites().unwrap());
        assert_eq!(store.site_record(&wanted.project).unwrap(), wanted.record);
        let claim = store.host_claim(&wanted.claimed[0]).unwrap().unwrap();
        assert_eq!(claim.project, wanted.project);
        assert_eq!(audit_of(&store), [(2, "two".into()), (1, "one".into())]);
        assert!(!config.path.join("sites.journal").exists());
    }
}

#[test]
fn records_without_a_change_need_no_disk_that_can_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    // Nobody can lock this store as a writer.
    fs::remove_file(config.path.join("lock")).unwrap();
    fs::create_dir(config.path.join("lock")).unwrap();
    store.replace_site_records(&[]).unwrap();
    let removed = (project("acme"), None);
    store.replace_site_records(&[removed]).unwrap();
}

#[test]
fn a_sweep_removes_no_file_that_is_being_written() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    let sweeping = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let swept = scope.spawn(|| {
            let other = open(&config);
            while sweeping.load(Ordering::Relaxed) {
                other.sweep(Clock::System.now()).unwrap();
            }
        });
        let acme = project("acme");
        let host = Host::parse("docs.acme.com").unwrap();
        for round in 0..100 {
            let wanted = site_change("acme", &format!("docs-{round}.acme.com"));
            let changed = store.change_site(&store.lock_sites().unwrap(), &wanted);
            let checked = store.put_domain_check(&acme, &host, Some(b"{}"));
            let asked = store.request_domain_check(&acme, &host);
            let key = store.replace_verification_key(&[7; 32]);
            // The scope waits for the thread of the sweep, so the thread ends first.
            if changed.is_err() || checked.is_err() || asked.is_err() || key.is_err() {
                sweeping.store(false, Ordering::Relaxed);
                panic!("{round}: {changed:?} {checked:?} {asked:?} {key:?}");
            }
        }
        sweeping.store(false, Ordering::Relaxed);
        swept.join().unwrap();
    });
}

#[test]
fn a_check_finds_and_repairs_damaged_site_records_and_claims() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    for name in ["one", "two", "three"] {
        change(&store, &site_change(name, &format!("docs.{name}.com")));
    }
    let local = store.directory().unwrap();
    let record = |name: &str| local.layout.site_record(&project(name));
    let host = Host::parse("docs.one.com").unwrap();
    fs::write(record("one"), "{").unwrap();
    fs::write(copy_of(&record("two")), "").unwrap();
    fs::write(local.layout.host_claim(&host), "damaged").unwrap();
    fs::write(record("three"), "{").unwrap();
    fs::write(copy_of(&record("three")), "{").unwrap();
    let now = Clock::System.now();
    let found = |repair: bool| {
        let damages = store.check(repair, now).unwrap().damages.into_iter();
        damages
            .map(|damage| damage.repaired.is_some())
            .collect::<Vec<_>>()
    };
    assert_eq!(found(false), [false; 4]);
    let mut repaired = found(true);
    repaired.sort_unstable();
    assert_eq!(repaired, [false, true, true, true]);
    // What no copy has cannot be repaired; the rest is whole again.
    let left = store.check(false, now).unwrap().damages;
    let [left] = &left[..] else {
        panic!("{left:?}")
    };
    assert!(left.what.contains("waypost site set three"), "{left:?}");
    let claim = store.host_claim(&host).unwrap().unwrap();
    assert_eq!(claim.project, project("one"));
    assert!(store.site_record(&project("one")).unwrap().is_some());
}

#[test]
fn the_oldest_entries_of_the_audit_log_make_room() {
    let directory = tempfile::tempdir().unwrap();
    let limited = Config {
        audit_bytes_max: 16_000,
        ..config(&directory)
    };
    let store = open(&limited);
    let bytes = || -> u64 {
        let files = fs::read_dir(limited.path.join("audit")).unwrap();
        files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum()
    };
    for nth in 0..200 {
        change(&store, &site_change("one", &format!("d{nth}.one.com")));
        assert!(bytes() <= limited.audit_bytes_max, "{nth}: {}", bytes());
    }
    let filter = Filter {
        limit: 1000,
        ..Filter::default()
    };
    let entries = store.audit(&filter).unwrap();
    let ids: Vec<u64> = entries.iter().map(|entry| entry.id).collect();
    assert!((20..150).contains(&ids.len()), "{}", ids.len());
    let newest = (1..=200).rev().take(ids.len());
    assert_eq!(ids, newest.collect::<Vec<_>>());
    // The numbers go on after a start.
    change(&open(&limited), &site_change("one", "last.one.com"));
    assert_eq!(store.audit(&filter).unwrap()[0].id, 201);
}

/// Returns the journal that a change begins with.
fn journal_of(store: &Store, change: &SiteChange, id: u64) -> Vec<u8> {
    let local = store.directory().unwrap();
    let mut change = change.clone();
    change.entry.id = id;
    serde_json::to_vec(&local.journal(&change)).unwrap()
}

/// Returns what a journal writes into a file.
fn journal_file(journal: &[u8], path: &Path, root: &Path) -> Vec<u8> {
    let journal: serde_json::Value = serde_json::from_slice(journal).unwrap();
    let name = path.strip_prefix(root).unwrap().to_str().unwrap();
    let files = journal["files"].as_array().unwrap();
    let file = files.iter().find(|file| file[0] == name).unwrap();
    file[1].as_str().unwrap().as_bytes().to_vec()
}

#[test]
fn a_damaged_site_record_is_read_from_its_copy_and_a_newer_one_is_not_touched() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    let wanted = site_change("one", "docs.one.com");
    change(&store, &wanted);
    let local = store.directory().unwrap();
    let path = local.layout.site_record(&wanted.project);
    fs::write(&path, "{").unwrap();
    assert_eq!(store.site_record(&wanted.project).unwrap(), wanted.record);
    fs::write(&path, "{\"version\": 2, \"shape\": \"new\"}").unwrap();
    let error = store.site_record(&wanted.project).unwrap_err();
    assert!(matches!(error, ReadError::Newer { .. }), "{error}");
}

#[test]
fn the_audit_log_goes_on_in_another_file() {
    let directory = tempfile::tempdir().unwrap();
    let config = config(&directory);
    let store = open(&config);
    let mut large = site_change("one", "docs.one.com");
    let text = "x".repeat(3 << 20);
    if let Some(after) = &mut large.entry.after {
        after.insert("owner".into(), text.into());
    }
    for _ in 0..4 {
        change(&store, &large);
    }
    change(&store, &site_change("two", "docs.two.com"));
    let files = fs::read_dir(config.path.join("audit")).unwrap().count();
    assert_eq!(files, 3);
    let ids: Vec<_> = audit_of(&store).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, [5, 4, 3, 2, 1]);
    let filter = Filter {
        project: Some("one".into()),
        before: Some(4),
        limit: 2,
        ..Filter::default()
    };
    let found = store.audit(&filter).unwrap();
    assert_eq!(
        found.iter().map(|entry| entry.id).collect::<Vec<_>>(),
        [3, 2]
    );
}
