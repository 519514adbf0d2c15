//! One suite over all stores: the rules S1 to S7.

mod documents;
mod histories;
pub(crate) mod shared;

use std::time::{Duration, SystemTime};

use super::*;
use crate::clock::Clock;
use crate::release::{ReleaseFile, ReleasePath};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn release(files: &[(&str, &str)]) -> Release {
    let mut builder = Release::builder();
    for (path, text) in files {
        let path = ReleasePath::parse(path).unwrap();
        let file = ReleaseFile::new(text.as_bytes().to_vec(), "text/markdown");
        builder.insert(path, file).unwrap();
    }
    builder.finish()
}

fn numbered(number: usize) -> Release {
    release(&[
        ("shared.md", "in every release"),
        ("own.md", &format!("release {number}")),
    ])
}

fn project(name: &str) -> ProjectId {
    ProjectId::parse(name).unwrap()
}

fn fence(generation: u64, epoch: u64) -> Fence {
    Fence { generation, epoch }
}

fn much_later() -> SystemTime {
    Clock::System.now() + DAY + DAY
}

/// An empty store of each kind. The directory must outlive the store.
fn stores(retention: Retention) -> Vec<(Store, tempfile::TempDir)> {
    let directory = tempfile::tempdir().unwrap();
    let config = local::Config {
        path: directory.path().join("store"),
        retention,
        ..local::Config::default()
    };
    let local = Local::open(&config, Clock::System).unwrap();
    vec![(Store::Local(local), directory), shared::store(retention)]
}

fn with_each(check: impl Fn(&Store)) {
    for (store, _directory) in stores(Retention::default()) {
        check(&store);
    }
}

#[track_caller]
fn is_whole(store: &Store, release: &Release) {
    let inventory = store.inventory(release.id()).unwrap();
    assert_eq!(&inventory, release.inventory());
    for (path, item) in inventory.iter() {
        let file = release.file(path.as_str()).unwrap();
        assert_eq!(store.read(item).unwrap(), file.bytes);
    }
}

#[test]
fn a_release_reads_back_completely() {
    with_each(|store| {
        let release = release(&[("a", ""), ("b/c", "text"), ("b/d", "text")]);
        assert_eq!(store.put(&release).unwrap(), release.id());
        is_whole(store, &release);
    });
}

#[test]
fn put_is_idempotent() {
    with_each(|store| {
        store.put(&numbered(1)).unwrap();
        store.put(&numbered(1)).unwrap();
        is_whole(store, &numbered(1));
    });
}

#[test]
fn a_release_is_current_only_when_promoted() {
    with_each(|store| {
        let acme = project("acme");
        let id = store.put(&numbered(1)).unwrap();
        assert_eq!(store.current(&acme).unwrap(), None);
        assert_eq!(store.pointers().unwrap(), []);

        let pointer = store.promote(&acme, id, fence(1, 0)).unwrap();

        assert_eq!(pointer.current.release, id);
        assert_eq!(store.current(&acme).unwrap(), Some(pointer));
        assert_eq!(store.pointers().unwrap(), [acme]);
    });
}

#[test]
fn a_release_that_was_not_put_is_not_promoted() {
    with_each(|store| {
        let error = store
            .promote(&project("acme"), numbered(1).id(), fence(1, 0))
            .unwrap_err();
        assert!(matches!(error, PromoteError::UnknownRelease(_)), "{error}");
        assert_eq!(store.current(&project("acme")).unwrap(), None);
    });
}

#[test]
fn an_older_promotion_never_replaces_a_newer_one() {
    with_each(|store| {
        let acme = project("acme");
        let one = store.put(&numbered(1)).unwrap();
        let two = store.put(&numbered(2)).unwrap();
        let newest = store.promote(&acme, two, fence(5, 3)).unwrap();
        for older in [fence(5, 3), fence(5, 2), fence(4, 9), fence(0, 0)] {
            let error = store.promote(&acme, one, older).unwrap_err();
            assert!(
                matches!(error, PromoteError::Stale { current, offered }
                    if current == fence(5, 3) && offered == older),
                "{error}"
            );
        }
        assert_eq!(store.current(&acme).unwrap(), Some(newest));
        store.promote(&acme, one, fence(5, 4)).unwrap();
        store.promote(&acme, two, fence(6, 0)).unwrap();
    });
}

#[test]
fn promote_is_idempotent() {
    with_each(|store| {
        let acme = project("acme");
        let id = store.put(&numbered(1)).unwrap();
        let first = store.promote(&acme, id, fence(1, 1)).unwrap();
        assert_eq!(store.promote(&acme, id, fence(1, 1)).unwrap(), first);
        assert_eq!(store.current(&acme).unwrap(), Some(first));
    });
}

#[test]
fn the_next_fence_is_greater_than_those_of_queue_and_store() {
    with_each(|store| {
        let acme = project("acme");
        assert_eq!(store.next_fence(&acme, 0).unwrap(), fence(1, 0));
        assert_eq!(store.next_fence(&acme, 7).unwrap(), fence(8, 0));
        let id = store.put(&numbered(1)).unwrap();
        store.promote(&acme, id, fence(40, 2)).unwrap();
        assert_eq!(store.next_fence(&acme, 7).unwrap(), fence(41, 0));
        assert_eq!(store.next_fence(&acme, 99).unwrap(), fence(100, 0));
    });
}

#[test]
fn history_lists_distinct_releases_newest_first() {
    let retention = Retention {
        releases: 2,
        ..Retention::default()
    };
    for (store, _directory) in stores(retention) {
        let acme = project("acme");
        let ids: Vec<_> = (0..4).map(|n| store.put(&numbered(n)).unwrap()).collect();
        for (generation, id) in (1..).zip([0, 1, 0, 2, 3].map(|n| ids[n])) {
            store.promote(&acme, id, fence(generation, 0)).unwrap();
        }
        let kept: Vec<_> = store.releases(&acme).unwrap();
        let names: Vec<_> = kept.iter().map(|p| p.release).collect();
        assert_eq!(names, [ids[3], ids[2], ids[0]]);
        assert_eq!(kept[0].fence(), fence(5, 0));
    }
}

#[test]
fn rolling_back_is_a_new_promotion() {
    with_each(|store| {
        let acme = project("acme");
        let one = store.put(&numbered(1)).unwrap();
        let two = store.put(&numbered(2)).unwrap();
        store.promote(&acme, one, fence(1, 0)).unwrap();
        store.promote(&acme, two, fence(2, 0)).unwrap();
        store.sweep(much_later()).unwrap();

        let next = store.next_fence(&acme, 0).unwrap();
        let back = store.promote(&acme, one, next).unwrap();

        assert_eq!(back.current.release, one);
        assert_eq!(back.history.len(), 1);
        is_whole(store, &numbered(1));
    });
}

#[test]
fn a_sweep_removes_unreferenced_files_that_are_old() {
    with_each(|store| {
        let acme = project("acme");
        let named = store.put(&numbered(1)).unwrap();
        store.promote(&acme, named, fence(1, 0)).unwrap();
        let unnamed = store.put(&numbered(2)).unwrap();

        let early = store.sweep(Clock::System.now()).unwrap();
        assert_eq!(early, Swept::default());
        is_whole(store, &numbered(2));

        let late = store.sweep(much_later()).unwrap();
        assert_eq!((late.releases, late.files, late.bytes), (1, 1, 9));
        assert!(store.inventory(unnamed).is_err());
        is_whole(store, &numbered(1));
    });
}

#[test]
fn the_sweep_removes_the_releases_of_a_forgotten_project() {
    with_each(|store| {
        let acme = project("acme");
        let id = store.put(&numbered(1)).unwrap();
        store.promote(&acme, id, fence(9, 0)).unwrap();
        assert!(store.forget(&acme).unwrap());
        assert!(!store.forget(&acme).unwrap());
        assert_eq!(store.current(&acme).unwrap(), None);
        assert_eq!(store.sweep(much_later()).unwrap().releases, 1);
        assert!(store.inventory(id).is_err());
    });
}

#[test]
fn content_that_does_not_match_the_inventory_is_an_error() {
    with_each(|store| {
        let release = release(&[("a", "text")]);
        store.put(&release).unwrap();
        let item = release.inventory().get("a").unwrap();
        for length in [0, 3, 5] {
            let wrong = Item {
                length,
                ..item.clone()
            };
            assert!(matches!(store.read(&wrong), Err(ReadError::Damaged { .. })));
        }
        let unknown = Item {
            digest: Digest::of(b"never put"),
            ..item.clone()
        };
        assert!(matches!(
            store.read(&unknown),
            Err(ReadError::UnknownContent(_))
        ));
    });
}

#[test]
fn numbers_of_several_writers_add_up_and_go_with_their_site() {
    with_each(|store| {
        let acme = project("acme");
        let day = |text: &str| crate::clock::Day::parse(text).unwrap();
        let add = |project: &ProjectId, on: &str| {
            let mut add = |before: Option<&[u8]>| {
                let before = before.map_or("", |before| str::from_utf8(before).unwrap());
                Some(format!("{before}x").into_bytes())
            };
            store.change_numbers(project, day(on), &mut add).unwrap();
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10).for_each(|_| add(&acme, "2026-11-22")));
            }
        });
        add(&acme, "2026-10-01");
        add(&project("other"), "2026-11-22");
        let read = |project: &ProjectId, first: &str, last: &str| {
            let days = store.numbers(project, day(first), day(last)).unwrap();
            let lengths = days
                .iter()
                .map(|(day, bytes)| (day.to_string(), bytes.len()));
            lengths.collect::<Vec<_>>()
        };
        let dated = |day: &str, length| (day.to_owned(), length);
        let november = [dated("2026-11-22", 40)];
        assert_eq!(read(&acme, "2026-11-22", "2026-11-22"), november);
        let all = read(&acme, "2026-01-01", "2026-12-31");
        assert_eq!(all, [dated("2026-10-01", 1), dated("2026-11-22", 40)]);
        let mut nothing = |_before: Option<&[u8]>| None;
        store
            .change_numbers(&acme, day("2026-11-23"), &mut nothing)
            .unwrap();
        assert_eq!(store.sweep_numbers(day("2026-11-01")).unwrap(), 1);
        assert_eq!(read(&acme, "2026-01-01", "2026-12-31"), november);
        let listed = |project: &ProjectId| (project.clone(), day("2026-11-22"));
        let both = [listed(&acme), listed(&project("other"))];
        assert_eq!(store.numbered().unwrap(), both);
        store.remove_numbers(&acme).unwrap();
        store.remove_numbers(&acme).unwrap();
        assert!(read(&acme, "2026-01-01", "2026-12-31").is_empty());
        assert_eq!(read(&project("other"), "2026-01-01", "2026-12-31").len(), 1);
    });
}
