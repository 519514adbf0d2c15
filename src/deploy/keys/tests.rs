//! Tests of the form of keys, of their files, and of the keys that a gateway accepts.

use std::sync::Arc;

use super::*;
use crate::clock::Clock;

const NOON: u64 = 1_800_000_000;

fn noon() -> Timestamp {
    Timestamp::from_millis(NOON * 1000)
}

fn project(name: &str) -> ProjectId {
    ProjectId::parse(name).unwrap()
}

/// A directory of keys and a cache over it.
fn cache() -> (tempfile::TempDir, Directory, KeyCache) {
    let root = tempfile::tempdir().unwrap();
    let directory = Directory::open(&root.path().join("keys")).unwrap();
    let cache = KeyCache::load(directory.clone(), "waypost", Clock::fixed_at(NOON)).unwrap();
    (root, directory, cache)
}

fn create(directory: &Directory, expires_at: Option<Timestamp>) -> (Key, Secret) {
    let new = NewKey {
        owner: "acme",
        label: "ci",
        expires_at,
        ..NewKey::default()
    };
    let keys = Keys::Directory(directory.clone());
    keys.create("waypost", &new, noon()).unwrap()
}

#[test]
fn a_key_has_the_prefix_and_72_digits_and_parses_back() {
    let secret = Secret::generate("waypost").unwrap();
    let digits = secret.reveal().strip_prefix("waypost_").unwrap();
    assert_eq!(digits.len(), 72);
    assert!(Secret::parse(secret.reveal(), "waypost").is_some());
    assert!(Secret::parse(secret.reveal(), "other").is_none());
}

#[test]
fn a_changed_digit_breaks_the_checksum() {
    let secret = Secret::generate("waypost").unwrap();
    let text = secret.reveal();
    for at in "waypost_".len()..text.len() {
        let other = if &text[at..=at] == "0" { "1" } else { "0" };
        let typo = format!("{}{other}{}", &text[..at], &text[at + 1..]);
        assert!(Secret::parse(&typo, "waypost").is_none(), "{at}");
    }
    assert!(Secret::parse(&text.to_uppercase(), "WAYPOST").is_none());
    assert!(Secret::parse("waypost_", "waypost").is_none());
    assert!(Secret::parse("", "waypost").is_none());
}

#[test]
fn no_debug_output_shows_a_secret() {
    let (_root, directory, _ring) = cache();
    let (key, secret) = create(&directory, None);
    let shown = format!("{secret:?} {key:?}");
    assert!(!shown.contains(&secret.reveal()[8..20]), "{shown}");
}

#[test]
fn no_file_contains_a_secret() {
    let (root, directory, _ring) = cache();
    let (key, secret) = create(&directory, None);
    let file = root.path().join(format!("keys/{}.json", key.id()));
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.contains(&key.digest.to_string()));
    assert!(!text.contains(&secret.reveal()[8..]));
}

#[test]
fn a_new_key_is_accepted_and_a_revoked_one_rejected_without_a_restart() {
    let (_root, directory, cache) = cache();
    let (key, secret) = create(&directory, None);
    assert_eq!(*cache.verify(secret.reveal()).unwrap(), key);

    directory.revoke(&key.id(), noon()).unwrap().unwrap();
    cache.refresh().unwrap();
    assert_eq!(
        cache.verify(secret.reveal()).unwrap_err(),
        InvalidKey::Revoked
    );
}

#[test]
fn wrong_keys_are_looked_for_some_times_a_second_only() {
    let (_root, directory, cache) = cache();
    for _ in 0..100 {
        let wrong = Secret::generate("waypost").unwrap();
        let rejected = cache.verify(wrong.reveal()).unwrap_err();
        assert_eq!(rejected, InvalidKey::Unknown);
    }
    // The second does not pass, so nothing is looked for any more.
    let (_, secret) = create(&directory, None);
    let rejected = cache.verify(secret.reveal()).unwrap_err();
    assert_eq!(rejected, InvalidKey::Unknown);
    cache.refresh().unwrap();
    assert!(cache.verify(secret.reveal()).is_ok());
}

#[test]
fn keys_are_the_same_in_a_directory_and_in_a_database() {
    let (root, directory, _cache) = cache();
    let database = crate::store::shared::testing(root.path());
    for keys in [
        Keys::Directory(directory),
        Keys::Shared(database.documents()),
    ] {
        let new = NewKey {
            owner: "acme",
            label: "ci",
            ..NewKey::default()
        };
        let (key, secret) = keys.create("waypost", &new, noon()).unwrap();
        assert_eq!(key.digest, secret.digest());
        let listed = keys.list().unwrap();
        assert_eq!((listed.len(), &listed[0].key), (1, &key));
        let later = noon().after(std::time::Duration::from_secs(1));
        let revoked = keys.revoke(&key.id(), later).unwrap().unwrap();
        assert_eq!(revoked.revoked_at, Some(later));
        // A second one changes nothing, and neither does an older copy of the key.
        let again = later.after(std::time::Duration::from_secs(1));
        assert_eq!(
            keys.revoke(&key.id(), again).unwrap(),
            Some(revoked.clone())
        );
        assert_eq!(keys.add(std::slice::from_ref(&key)).unwrap(), 0);
        assert_eq!(keys.list().unwrap()[0].key, revoked);
        let unknown = KeyId::parse("0123456789abcdef").unwrap();
        assert_eq!(keys.revoke(&unknown, later).unwrap(), None);
    }
    // A revocation is copied.
    let (other_root, other, _cache) = self::cache();
    let (key, _) = create(&other, None);
    let shared = Keys::Shared(database.documents());
    assert_eq!(shared.add(std::slice::from_ref(&key)).unwrap(), 1);
    let revoked = other.revoke(&key.id(), noon()).unwrap().unwrap();
    assert_eq!(shared.add(&[revoked]).unwrap(), 1);
    let mut listed = shared.list().unwrap().into_iter();
    let found = listed
        .find(|listed| listed.key.digest == key.digest)
        .unwrap();
    assert_eq!(found.key.revoked_at, Some(noon()));
    drop(other_root);
}

#[test]
fn a_removed_file_removes_its_key() {
    let (root, directory, cache) = cache();
    let (key, secret) = create(&directory, None);
    cache.refresh().unwrap();
    std::fs::remove_file(root.path().join(format!("keys/{}.json", key.id()))).unwrap();
    cache.refresh().unwrap();
    assert_eq!(
        cache.verify(secret.reveal()).unwrap_err(),
        InvalidKey::Unknown
    );
}

#[test]
fn a_broken_file_changes_no_loaded_key() {
    let (root, directory, cache) = cache();
    let (key, secret) = create(&directory, None);
    let (_, other) = create(&directory, None);
    cache.refresh().unwrap();
    std::fs::write(root.path().join(format!("keys/{}.json", key.id())), "{").unwrap();
    std::fs::write(root.path().join("keys/0000000000000000.json"), "[]").unwrap();
    cache.refresh().unwrap();
    assert!(cache.verify(secret.reveal()).is_ok());
    assert!(cache.verify(other.reveal()).is_ok());
}

#[test]
fn a_key_is_rejected_from_the_moment_it_expires() {
    let (_root, directory, cache) = cache();
    let (_, over) = create(&directory, Some(noon()));
    let millisecond = std::time::Duration::from_millis(1);
    let (_, good) = create(&directory, Some(noon().after(millisecond)));
    cache.refresh().unwrap();
    assert_eq!(
        cache.verify(over.reveal()).unwrap_err(),
        InvalidKey::Expired
    );
    assert!(cache.verify(good.reveal()).is_ok());
}

#[test]
fn the_last_use_is_written_later() {
    let (_root, directory, cache) = cache();
    let (key, secret) = create(&directory, None);
    cache.refresh().unwrap();
    cache.verify(secret.reveal()).unwrap();
    cache
        .verify(Secret::generate("waypost").unwrap().reveal())
        .unwrap_err();
    assert_eq!(directory.list().unwrap()[0].used_at, None);
    cache.write_uses();
    let listed = directory.list().unwrap();
    assert_eq!((listed.len(), listed[0].used_at), (1, Some(noon())));
    assert_eq!(listed[0].key, key);
}

#[test]
fn a_key_covers_the_projects_of_its_scope() {
    let (_root, directory, _ring) = cache();
    let docs = [project("docs")];
    let new = NewKey {
        owner: "acme",
        projects: &docs,
        ..NewKey::default()
    };
    let keys = Keys::Directory(directory.clone());
    let (key, _) = keys.create("waypost", &new, noon()).unwrap();
    assert!(key.covers(&project("docs")) && !key.covers(&project("blog")));
    assert!(create(&directory, None).0.covers(&project("blog")));
}

#[test]
fn an_id_cannot_name_a_file_outside_the_directory() {
    for text in [
        "",
        "../../etc/passwd",
        "0123456789abcdeF",
        "0123456789abcdef0",
    ] {
        assert_eq!(KeyId::parse(text), Err(InvalidKeyId), "{text}");
    }
    let (_root, directory, _ring) = cache();
    let unknown = KeyId::parse("0123456789abcdef").unwrap();
    assert!(directory.revoke(&unknown, noon()).unwrap().is_none());
}

#[test]
fn a_watched_cache_follows_its_directory_until_the_watch_ends() {
    let (_root, directory, _) = cache();
    let cache = KeyCache::load(directory.clone(), "waypost", Clock::System).unwrap();
    let cache = Arc::new(cache);
    let watch = cache.watch().unwrap();
    let (_, secret) = create(&directory, None);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(5);
    while cache.verify(secret.reveal()).is_err() {
        assert!(
            std::time::Instant::now() < deadline,
            "not seen within five seconds"
        );
        std::thread::yield_now();
    }
    drop(watch);
    assert!(
        directory.list().unwrap()[0].used_at.is_some(),
        "flushed at the end"
    );
}
