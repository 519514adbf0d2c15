//! Site records, claims and the audit log.

use super::*;

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

#[test]
fn an_owner_with_many_changes_removes_no_entry_of_another_owner() {
    let directory = tempfile::tempdir().unwrap();
    let limited = Config {
        audit_bytes_max: 16_000,
        ..config(&directory)
    };
    let store = open(&limited);
    let owned = |owner: &str| {
        let filter = Filter {
            owner: Some(owner.into()),
            limit: 1000,
            ..Filter::default()
        };
        let entries = store.audit(&filter).unwrap();
        entries.iter().map(|entry| entry.id).collect::<Vec<_>>()
    };
    for nth in 0..1000 {
        if nth % 100 == 0 {
            let host = format!("d{nth}.quiet.com");
            change(&store, &site_change("quiet", &host));
        }
        change(&store, &site_change("many", &format!("d{nth}.many.com")));
    }
    let quiet: Vec<u64> = (0..10).rev().map(|nth| nth * 101 + 1).collect();
    assert_eq!(owned("quiet"), quiet);
    let many = owned("many");
    assert!((20..150).contains(&many.len()), "{}", many.len());
    assert!(many.iter().rev().is_sorted() && many[0] == 1010);
    let files: Vec<_> = fs::read_dir(limited.path.join("audit")).unwrap().collect();
    assert!(files.len() <= 10, "{}", files.len());
    let bytes = files
        .into_iter()
        .map(|file| file.unwrap().metadata().unwrap().len());
    assert!(bytes.sum::<u64>() <= limited.audit_bytes_max);
}

#[test]
fn a_file_of_the_audit_log_that_was_put_together_and_not_removed_shows_nothing_twice() {
    let directory = tempfile::tempdir().unwrap();
    let limited = Config {
        audit_bytes_max: 16_000,
        ..config(&directory)
    };
    let store = open(&limited);
    for nth in 0..15 {
        change(&store, &site_change("one", &format!("d{nth}.one.com")));
    }
    let audit = limited.path.join("audit");
    let mut files: Vec<_> = fs::read_dir(&audit).unwrap().collect();
    files.sort_by_key(|file| file.as_ref().unwrap().path());
    let paths: Vec<_> = files.into_iter().map(|file| file.unwrap().path()).collect();
    let together = [&paths[0], &paths[1]].map(|path| fs::read(path).unwrap());
    fs::write(&paths[0], together.concat()).unwrap();
    let ids: Vec<_> = audit_of(&store).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, (1..=15).rev().collect::<Vec<_>>());
}

#[test]
fn a_call_reads_a_part_of_the_audit_log_and_the_next_ones_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let limited = Config {
        audit_bytes_max: 40_000,
        ..config(&directory)
    };
    let store = open(&limited);
    for nth in 0..100 {
        change(&store, &site_change("one", &format!("d{nth}.one.com")));
    }
    let files = fs::read_dir(limited.path.join("audit")).unwrap().count();
    assert!(files > 2, "{files}");
    let mut filter = Filter {
        owner: Some("other".into()),
        limit: 10,
        bytes_max: 1,
        ..Filter::default()
    };
    let mut calls = 1;
    while let Some(before) = store.audit_page(&filter).unwrap().before {
        assert!(filter.before.is_none_or(|last| before < last));
        filter.before = Some(before);
        calls += 1;
    }
    assert_eq!(calls, files);
    // What is found is the same with and without a bound.
    let mut found = Vec::new();
    let mut filter = Filter {
        limit: 1000,
        bytes_max: 1,
        ..Filter::default()
    };
    loop {
        let page = store.audit_page(&filter).unwrap();
        found.extend(page.entries);
        filter.before = page.before;
        if page.before.is_none() {
            break;
        }
    }
    let all = Filter {
        limit: 1000,
        ..Filter::default()
    };
    assert_eq!(found, store.audit(&all).unwrap());
    assert_eq!(found.len(), 100);
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
