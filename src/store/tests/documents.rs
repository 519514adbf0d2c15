//! Guarantees of documents in a directory and in a database. Documents in a database have more: a
//! fenced leader, a copy on each machine, and one key file for all machines.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::shared::{config, node, of};
use super::*;
use crate::database::testing::psql;
use crate::error::chain;
use crate::store::documents::{Change, Documents, Kind, KnownKeys, LocalDocuments, SealKey};
use crate::store::shared::{
    Config, Mirror, MirroredDocuments, SealError, SharedDocuments, SharedTicketKeys, TICKET_KEYS,
};
use crate::store::ticket_keys::{TicketSource as _, to_text};

const BEGIN: u64 = 1_700_000_000;
const HOUR: u64 = 3600;

/// The documents of a database, for each of two machines.
struct Machines {
    config: Config,
    one: SharedDocuments,
    two: SharedDocuments,
    root: tempfile::TempDir,
}

fn machines() -> Machines {
    let root = tempfile::tempdir().unwrap();
    let config = config(root.path(), Retention::default());
    let documents = |cache: &str| of(&node(&config, root.path(), cache)).documents();
    let (one, two) = (documents("one"), documents("two"));
    Machines {
        config,
        one,
        two,
        root,
    }
}

/// Runs a check over two handles of the same documents, of each kind of place.
fn with_both(check: impl Fn(&dyn Documents, &dyn Documents)) {
    let root = tempfile::tempdir().unwrap();
    let open = || LocalDocuments::open(root.path(), Clock::System).unwrap();
    check(&open(), &open());
    let machines = machines();
    check(&machines.one, &machines.two);
}

/// Waits until something is so: the end of a lease is written by a thread.
#[track_caller]
fn wait_for<T>(mut found: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(since.elapsed() < Duration::from_secs(20), "in time");
        std::thread::yield_now();
    }
}

#[test]
fn a_reader_sees_what_was_put_and_removed() {
    with_both(|writer, reader| {
        for kind in [Kind::Certificate, Kind::Request] {
            let mut known = KnownKeys::default();
            writer.put(kind, "docs.acme.com~1", b"one").unwrap();
            assert_eq!(
                reader.changes(kind, &mut known).unwrap(),
                [Change::Added("docs.acme.com~1".into())]
            );
            writer.put(kind, "docs.acme.com~2", b"two").unwrap();
            writer.remove(kind, "docs.acme.com~1").unwrap();
            writer.remove(kind, "docs.acme.com~1").unwrap();
            let changes = reader.changes(kind, &mut known).unwrap();
            assert_eq!(changes.len(), 2, "{changes:?}");
            let read = |key| reader.get(kind, key).unwrap();
            assert_eq!(read("docs.acme.com~2").unwrap(), b"two");
            assert_eq!(read("docs.acme.com~1"), None);
            // Other bytes under a known key are no change of the keys.
            writer.put(kind, "docs.acme.com~2", b"other").unwrap();
            assert_eq!(reader.changes(kind, &mut known).unwrap(), []);
            assert_eq!(read("docs.acme.com~2").unwrap(), b"other");
        }
    });
}

#[test]
fn the_records_of_a_name_are_found_and_those_of_a_longer_name_are_not() {
    with_both(|writer, reader| {
        for key in ["docs.acme.com~1", "docs.acme.com~2", "docs.acme.com.au~1"] {
            writer.put(Kind::Certificate, key, b"record").unwrap();
        }
        let mut keys = reader.keys_of(Kind::Certificate, "docs.acme.com").unwrap();
        keys.sort();
        let expected: [Box<str>; 2] = ["docs.acme.com~1".into(), "docs.acme.com~2".into()];
        assert_eq!(keys, expected);
    });
}

#[test]
fn one_process_leads_and_another_one_after_it() {
    with_both(|one, two| {
        let first = one.lead().unwrap().unwrap();
        assert!(first.holds() && two.lead().unwrap().is_none());
        drop(first);
        let second = wait_for(|| two.lead().unwrap());
        assert!(second.holds() && one.lead().unwrap().is_none());
    });
}

#[test]
fn a_leader_that_was_stopped_for_long_changes_nothing() {
    let Machines {
        config, one, two, ..
    } = machines();
    let late = one.lead().unwrap().unwrap();
    one.put(Kind::Order, "docs.acme.com", b"first").unwrap();
    // The time of its lease passes while it is stopped.
    psql(
        &config.database,
        "UPDATE waypost_store.leases SET ends_at = 0 WHERE name = 'certificates'",
    );
    let _leader = two.lead().unwrap().unwrap();
    two.put(Kind::Order, "docs.acme.com", b"second").unwrap();
    let refused = one.put(Kind::Order, "docs.acme.com", b"late").unwrap_err();
    let text = chain(&refused);
    assert!(
        text.contains("does not order certificates any more"),
        "{text}"
    );
    assert!(one.remove(Kind::Order, "docs.acme.com").is_err());
    assert_eq!(
        two.get(Kind::Order, "docs.acme.com").unwrap().unwrap(),
        b"second"
    );
    // Everybody may ask for another certificate.
    one.put(Kind::Request, "docs.acme.com", b"request").unwrap();
    drop(late);
    assert!(one.put(Kind::Order, "docs.acme.com", b"late").is_err());
}

#[test]
fn removals_that_are_not_kept_any_more_are_found_by_a_comparison() {
    let Machines {
        config,
        one,
        two,
        root,
    } = machines();
    let mut known = KnownKeys::default();
    for key in ["a", "b"] {
        one.put(Kind::Request, key, b"1").unwrap();
    }
    assert_eq!(two.changes(Kind::Request, &mut known).unwrap().len(), 2);
    let copy = root.path().join("copy");
    let (mirror, local) = mirror(&two, root.path(), &copy);
    one.put(Kind::Challenge, "tls~a", b"1").unwrap();
    mirror.sync().unwrap();
    one.remove(Kind::Request, "a").unwrap();
    one.remove(Kind::Challenge, "tls~a").unwrap();
    let old = "UPDATE waypost_store.documents SET changed_at = 0 WHERE content IS NULL";
    psql(&config.database, old);
    node(&config, root.path(), "sweeper")
        .sweep(Clock::System.now())
        .unwrap();
    let rows = "SELECT count(*) FROM waypost_store.documents";
    assert_eq!(psql(&config.database, rows), "1", "the rows are gone");
    assert_eq!(
        two.changes(Kind::Request, &mut known).unwrap(),
        [Change::Removed("a".into())]
    );
    mirror.sync().unwrap();
    assert_eq!(local.get(Kind::Challenge, "tls~a").unwrap(), None);
}

#[test]
fn another_change_with_the_same_number_is_found_by_a_comparison() {
    let Machines {
        config,
        one,
        two,
        root,
    } = machines();
    let (copy, mut known) = (root.path().join("copy"), KnownKeys::default());
    let (before, _) = mirror(&two, root.path(), &copy);
    let put = |key: &str, bytes: &[u8]| {
        one.change_in("admin-keys", key, |_before| Some(bytes.to_vec()))
            .unwrap();
    };
    put("0123", b"valid");
    one.put(Kind::Request, "lost", b"1").unwrap();
    assert_eq!(two.changes(Kind::Request, &mut known).unwrap().len(), 1);
    before.sync().unwrap();
    // The state after the first change is restored, and the number is used again.
    psql(
        &config.database,
        "SET search_path = waypost_store; DELETE FROM documents WHERE revision = 2; \
         DELETE FROM document_marks WHERE revision = 2; UPDATE documents_revision SET n = 1",
    );
    put("0123", b"revoked");
    assert_eq!(
        two.changes(Kind::Request, &mut known).unwrap(),
        [Change::Removed("lost".into())]
    );
    let read = || fs::read(copy.join("admin-keys/0123.json")).unwrap();
    assert_eq!(read(), b"valid");
    // Also by the next process of this machine.
    let (after, _) = mirror(&two, root.path(), &copy);
    after.sync().unwrap();
    assert_eq!(read(), b"revoked");
}

#[test]
fn marks_of_changes_of_documents_are_removed_but_for_the_last_one() {
    let Machines {
        config,
        one,
        two,
        root,
    } = machines();
    let mut known = KnownKeys::default();
    for key in ["a", "b", "c"] {
        one.put(Kind::Request, key, b"1").unwrap();
    }
    assert_eq!(two.changes(Kind::Request, &mut known).unwrap().len(), 3);
    psql(
        &config.database,
        "UPDATE waypost_store.document_marks SET at = 0",
    );
    node(&config, root.path(), "sweeper")
        .sweep(Clock::System.now())
        .unwrap();
    let kept = "SELECT revision FROM waypost_store.document_marks";
    assert_eq!(psql(&config.database, kept), "3");
    assert_eq!(two.changes(Kind::Request, &mut known).unwrap(), []);
}

#[test]
fn a_machine_that_listens_is_told_of_the_changes_of_others() {
    let root = tempfile::tempdir().unwrap();
    let config = config(root.path(), Retention::default());
    let one = node(&config, root.path(), "one");
    let two = Arc::new(node(&config, root.path(), "two"));
    let listening = Arc::clone(&two);
    // It ends with the process.
    std::thread::spawn(move || of(&listening).listen());
    let hint_count = || of(&two).hint_count();
    wait_for(|| (hint_count() > 0).then_some(()));
    let before = hint_count();
    of(&one)
        .documents()
        .put(Kind::Request, "docs.acme.com", b"1")
        .unwrap();
    wait_for(|| (hint_count() > before).then_some(()));
    let id = one.put(&numbered(1)).unwrap();
    let before = hint_count();
    one.promote(&project("acme"), id, fence(1, 0)).unwrap();
    wait_for(|| (hint_count() > before).then_some(()));
}

/// Returns a copy of one set of the documents of a machine.
fn copying(
    documents: &SharedDocuments,
    machine: &str,
    set: &'static str,
    copy: &Path,
    store: &Path,
) -> Mirror {
    fs::create_dir_all(store.join("temp")).unwrap();
    let mirror = Mirror::new(documents.clone(), machine, copy, store.to_owned()).unwrap();
    mirror.with_files(set, copy.join(set), ".json")
}

/// Returns a copy of the documents of a machine, its certificates among them.
fn mirror(documents: &SharedDocuments, root: &Path, copy: &Path) -> (Mirror, Arc<LocalDocuments>) {
    copying(documents, "machine", "admin-keys", copy, root)
        .with_certificates(&copy.join("certificates"), Clock::System)
        .unwrap()
}

#[test]
fn a_complete_copy_needs_no_disk_that_can_be_written() {
    let Machines {
        config: _config,
        one,
        two,
        root,
    } = machines();
    let copy = root.path().join("copy");
    one.change_in("admin-keys", "0123", |_before| Some(b"{}".to_vec()))
        .unwrap();
    let (before, _) = mirror(&two, root.path(), &copy);
    let revision = before.sync().unwrap();
    // Nobody can lock this directory as a writer.
    let lock = root.path().join("lock");
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    let (after, _) = mirror(&two, root.path(), &copy);
    assert_eq!(after.sync().unwrap(), revision);
}

#[test]
fn a_copy_has_what_the_database_has_and_goes_on_after_a_restart() {
    let Machines {
        config,
        one,
        two,
        root,
    } = machines();
    let copy = root.path().join("copy");
    let file = copy.join("admin-keys/0123.json");
    let put = |key: &str, bytes: &[u8]| {
        one.change_in("admin-keys", key, |_before| Some(bytes.to_vec()))
            .unwrap();
    };
    put("0123", b"{}");
    one.put(Kind::Certificate, "docs.acme.com~1", b"record")
        .unwrap();
    {
        let (mirror, local) = mirror(&two, root.path(), &copy);
        mirror.sync().unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"{}");
        let record = local.get(Kind::Certificate, "docs.acme.com~1").unwrap();
        assert_eq!(record.unwrap(), b"record");
    }
    // Meanwhile this machine is off.
    put("0123", b"{\"revoked\":true}");
    assert!(one.remove_in("admin-keys", "0123").unwrap());
    assert!(!one.remove_in("admin-keys", "0123").unwrap());
    put("4567", b"{}");
    // A key that is a path is not written, and others are.
    put("../../outside", b"{}");
    let (mirror, local) = mirror(&two, root.path(), &copy);
    mirror.sync().unwrap();
    assert!(!file.exists() && copy.join("admin-keys/4567.json").exists());
    assert!(!root.path().join("outside.json").exists());
    // A process reads its own writes at once; the leader has all documents.
    let mirrored = MirroredDocuments::new(Arc::new(mirror), Arc::clone(&local));
    mirrored.put(Kind::Challenge, "tls~a", b"answer").unwrap();
    assert_eq!(
        local.get(Kind::Challenge, "tls~a").unwrap().unwrap(),
        b"answer"
    );
    one.put(Kind::Certificate, "docs.acme.com~2", b"newer")
        .unwrap();
    let _lead = mirrored.lead().unwrap().unwrap();
    assert_eq!(
        mirrored
            .keys_of(Kind::Certificate, "docs.acme.com")
            .unwrap()
            .len(),
        2
    );
    // Another life of the database: everything is compared.
    psql(
        &config.database,
        "DELETE FROM waypost_store.documents WHERE kind = 'certificates'; \
         UPDATE waypost_store.identity SET store = 'restored'",
    );
    let restored = of(&node(&config, root.path(), "restored")).documents();
    let (mirror, local) = self::mirror(&restored, root.path(), &copy);
    mirror.sync().unwrap();
    let left = local.keys_of(Kind::Certificate, "docs.acme.com").unwrap();
    assert_eq!(left, []);
}

#[test]
fn machines_with_different_key_files_are_told_so() {
    let Machines { one, two, root, .. } = machines();
    let file = |name: &str| root.path().join(name);
    let first = one.open_seal(&file("first")).unwrap();
    // The file of another machine is a copy of it.
    fs::copy(file("first"), file("copy")).unwrap();
    two.open_seal(&file("copy")).unwrap();
    assert!(matches!(
        two.open_seal(&file("missing")),
        Err(SealError::Missing(_))
    ));
    assert!(!file("missing").exists(), "no key is made");
    SealKey::create(&file("other")).unwrap();
    let error = two.open_seal(&file("other")).unwrap_err();
    let text = chain(&error);
    assert!(text.contains("is not that of the other gateways"), "{text}");
    // A new key before the old one, on one machine after the other; then the old one goes.
    let (new, old) = (
        fs::read_to_string(file("other")).unwrap(),
        fs::read_to_string(file("first")).unwrap(),
    );
    fs::write(file("both"), format!("{new}{old}")).unwrap();
    two.open_seal(&file("both")).unwrap();
    two.open_seal(&file("other")).unwrap();
    drop(first);
}

#[test]
fn the_first_machine_makes_a_ticket_key_and_the_others_adopt_it() {
    let Machines {
        config,
        one,
        two,
        root,
    } = machines();
    let file = root.path().join("key");
    let seal = Arc::new(one.open_seal(&file).unwrap());
    let source = |documents: &SharedDocuments, name: &str| {
        let copy = root.path().join(name);
        let mirror = copying(documents, name, TICKET_KEYS, &copy, root.path());
        let copy = copy.join(TICKET_KEYS);
        let keys = SharedTicketKeys::new(documents.clone(), Arc::clone(&seal), &copy);
        (mirror, keys)
    };
    let ((of_one, one), (of_two, two)) = (source(&one, "one"), source(&two, "two"));
    let first = one.current(BEGIN).unwrap();
    assert_eq!((first.len(), &first), (1, &two.current(BEGIN).unwrap()));
    // It is in the database, and not in clear.
    let stored = "SELECT convert_from(content, 'UTF8') FROM waypost_store.documents \
                  WHERE kind = 'ticket-keys'";
    let stored = psql(&config.database, stored);
    assert!(stored.contains("AES-256-GCM") && !stored.contains(&hex::encode(first[0].key)));
    // The next one is made once, before it encrypts.
    of_one.sync().unwrap();
    of_two.sync().unwrap();
    let both = two.current(BEGIN + 6 * HOUR - 600).unwrap();
    assert_eq!(both.len(), 2);
    of_one.sync().unwrap();
    assert_eq!(both, one.current(BEGIN + 6 * HOUR - 599).unwrap());

    // A document of a newer program stays as it is, and so does one that another key encrypts.
    let newer = to_text(&both).replacen("\"version\":1", "\"version\":2", 1);
    let sealed = seal.seal(newer.as_bytes(), "the keys of session tickets of the store");
    let sealed = serde_json::to_string(&sealed.unwrap()).unwrap();
    let write = |content: &str| {
        psql(
            &config.database,
            &format!(
                "UPDATE waypost_store.documents_revision SET n = n + 1; \
                 UPDATE waypost_store.documents SET content = convert_to('{content}', 'UTF8'), \
                 revision = (SELECT n FROM waypost_store.documents_revision) \
                 WHERE kind = 'ticket-keys'"
            ),
        )
    };
    let other = root.path().join("other");
    SealKey::create(&other).unwrap();
    let other = SealKey::read(&other).unwrap().unwrap().seal(b"{}", "x");
    let other = serde_json::to_string(&other.unwrap()).unwrap();
    for (content, expected) in [(sealed, "has version 2"), (other, "does not hold")] {
        write(&content);
        of_one.sync().unwrap();
        let error = one.current(BEGIN + 6 * HOUR).unwrap_err();
        let text = chain(&error);
        assert!(text.contains(expected), "{text}");
        let stored = "SELECT convert_from(content, 'UTF8') FROM waypost_store.documents \
                      WHERE kind = 'ticket-keys'";
        assert_eq!(psql(&config.database, stored), content);
    }
}
