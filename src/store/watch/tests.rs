//! Tests of the events after real changes of files, and of the changes that they become.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::release::Release;
use crate::store::Fence;

/// This interval is so long that a test reaches it, and fails, only if an event was lost.
const LONG: Duration = Duration::from_secs(20);

struct Watched {
    directory: tempfile::TempDir,
    store: Store,
    watch: Watch,
}

fn watched(sites: &str) -> Watched {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("sites")).unwrap();
    watched_in(directory, sites)
}

fn watched_in(directory: tempfile::TempDir, sites: &str) -> Watched {
    let store = Store::open_directory(directory.path().join("store")).unwrap();
    let watch = Watch::start(&store, &directory.path().join(sites), LONG);
    Watched {
        directory,
        store,
        watch,
    }
}

fn sorter(waiting: &Arc<Waiting>) -> Sorter {
    waiting.pending().rescanned = Some(Instant::now());
    Sorter {
        waiting: Arc::clone(waiting),
        sites: "/sites".into(),
        sites_parent: "/".into(),
        pointers: BTreeSet::from(["/pointers/00".into()]),
        records: BTreeSet::from(["/records/00".into()]),
    }
}

impl Watched {
    fn promote(&self, project: &ProjectId) {
        let id = self.store.put(&Release::builder().finish()).unwrap();
        let fence: Fence = self.store.next_fence(project, 0).unwrap();
        self.store.promote(project, id, fence).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}

fn project(name: &str) -> ProjectId {
    ProjectId::parse(name).unwrap()
}

#[test]
fn a_promotion_names_its_project() {
    let watched = watched("sites");
    for name in ["acme", "other"] {
        watched.promote(&project(name));
        let change = watched.watch.next();
        assert_eq!(change, Some(Change::Pointer(project(name))));
    }
    watched.store.forget(&project("acme")).unwrap();
    let change = watched.watch.next();
    assert_eq!(change, Some(Change::Pointer(project("acme"))));
}

#[test]
fn promotions_of_one_project_are_coalesced() {
    let watched = watched("sites");
    for _ in 0..20 {
        watched.promote(&project("a"));
    }
    watched.promote(&project("b"));
    // Events arrive in order: after the event of `b`, all events of `a` have arrived.
    while !watched
        .watch
        .waiting
        .pending()
        .pointers
        .contains(&project("b"))
    {
        std::thread::yield_now();
    }
    let next = || watched.watch.next();
    assert_eq!(next(), Some(Change::Pointer(project("a"))));
    assert_eq!(next(), Some(Change::Pointer(project("b"))));
    assert!(watched.watch.waiting.pending().pointers.is_empty());
}

#[test]
fn added_changed_and_removed_records_are_changes() {
    let watched = watched("sites");
    let record = watched.path("sites/a.yaml");
    fs::write(&record, "project: a").unwrap();
    assert_eq!(watched.watch.next(), Some(Change::Sites));
    fs::write(&record, "project: b").unwrap();
    assert_eq!(watched.watch.next(), Some(Change::Sites));
    fs::remove_file(&record).unwrap();
    assert_eq!(watched.watch.next(), Some(Change::Sites));
}

#[test]
fn changes_of_records_are_coalesced() {
    let waiting = Arc::new(Waiting::default());
    let sorter = sorter(&waiting);
    for n in 0..50 {
        let path = PathBuf::from(format!("/sites/{n}.yaml"));
        sorter.sort(Ok(Event::new(EventKind::Any).add_path(path)));
    }
    assert_eq!(waiting.next(LONG), Some((Change::Sites, false)));
    assert_eq!(waiting.pending().sites, None);
}

#[test]
fn reading_a_record_is_not_a_change() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("sites")).unwrap();
    let record = directory.path().join("sites/a.yaml");
    fs::write(&record, "project: a").unwrap();
    let watched = watched_in(directory, "sites");
    fs::read(&record).unwrap();
    // Events come in order: once the pointer is there, the reading was.
    watched.promote(&project("acme"));
    let change = watched.watch.next();
    assert_eq!(change, Some(Change::Pointer(project("acme"))));
    assert_eq!(watched.watch.waiting.pending().sites, None);
}

#[test]
fn a_changed_link_among_the_records_is_a_change() {
    let watched = watched("sites");
    symlink("..1", watched.path("sites/..data_tmp")).unwrap();
    fs::rename(
        watched.path("sites/..data_tmp"),
        watched.path("sites/..data"),
    )
    .unwrap();
    assert_eq!(watched.watch.next(), Some(Change::Sites));
}

#[test]
fn a_replaced_directory_of_records_is_watched_again() {
    let watched = watched("sites");
    fs::create_dir(watched.path("next")).unwrap();
    fs::rename(watched.path("sites"), watched.path("old")).unwrap();
    fs::rename(watched.path("next"), watched.path("sites")).unwrap();
    assert_eq!(watched.watch.next(), Some(Change::Sites));
    fs::write(watched.path("sites/a.yaml"), "project: a").unwrap();
    assert_eq!(watched.watch.next(), Some(Change::Sites));
}

#[test]
fn records_may_be_behind_a_link_that_changes() {
    let watched = watched("current");
    fs::create_dir(watched.path("v2")).unwrap();
    for target in ["sites", "v2"] {
        symlink(target, watched.path("new")).unwrap();
        fs::rename(watched.path("new"), watched.path("current")).unwrap();
        assert_eq!(watched.watch.next(), Some(Change::Sites), "{target}");
        fs::write(watched.path(target).join("a.yaml"), "project: a").unwrap();
        assert_eq!(watched.watch.next(), Some(Change::Sites), "in {target}");
    }
}

#[test]
fn one_file_of_records_is_watched_by_its_name() {
    let watched = watched("sites.yaml");
    fs::write(watched.path("other.yaml"), "").unwrap();
    fs::write(watched.path("sites.yaml.tmp"), "project: a").unwrap();
    fs::rename(watched.path("sites.yaml.tmp"), watched.path("sites.yaml")).unwrap();
    assert_eq!(watched.watch.next(), Some(Change::Sites));
}

#[test]
fn a_full_comparison_is_made_periodically_and_after_lost_events() {
    let waiting = Waiting::default();
    waiting.pending().rescanned = Some(Instant::now());
    waiting.pending().pointers.insert(project("acme"));
    let next = waiting.next(Duration::ZERO);
    assert_eq!(next, Some((Change::Rescan, true)));
    // The rescan includes the waiting changes.
    assert!(waiting.pending().pointers.is_empty());
    waiting.pending().rescan = true;
    assert_eq!(waiting.next(LONG), Some((Change::Rescan, true)));
}

#[test]
fn too_many_waiting_projects_become_a_full_comparison() {
    let waiting = Arc::new(Waiting::default());
    let sorter = sorter(&waiting);
    for n in 0..=POINTERS_MAX {
        let path = PathBuf::from(format!("/pointers/00/p{n}.json"));
        sorter.sort(Ok(Event::new(EventKind::Any).add_path(path)));
    }
    assert_eq!(waiting.next(LONG), Some((Change::Rescan, true)));
}

#[test]
fn site_records_that_wait_are_reported_together() {
    let waiting = Arc::new(Waiting::default());
    let sorter = sorter(&waiting);
    for _twice in 0..2 {
        for n in 0..=RECORDS_MAX {
            let path = PathBuf::from(format!("/records/00/p{n}.json"));
            sorter.sort(Ok(Event::new(EventKind::Any).add_path(path)));
        }
    }
    let counts = [(); 2].map(|()| match waiting.next(LONG) {
        Some((Change::Records(projects), _)) => projects.len(),
        other => panic!("{other:?}"),
    });
    assert_eq!(counts, [RECORDS_MAX, 1]);
}

#[test]
fn closing_a_watch_wakes_its_waiters() {
    let watched = watched("sites");
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| watched.watch.next());
        watched.watch.close();
        assert_eq!(waiter.join().unwrap(), None);
    });
}

#[test]
fn what_a_follower_has_written_is_reported_once_after_its_changes() {
    let watched = watched("sites");
    let written = |revision, name: &str| Followed {
        id: "a/1".to_owned(),
        revision,
        records: BTreeSet::from([project(name)]),
        ..Followed::default()
    };
    watched.promote(&project("acme"));
    watched
        .watch
        .waiting
        .pending()
        .pointers
        .insert(project("acme"));
    watched.watch.followed(written(1, "one"));
    watched.watch.followed(written(2, "two"));
    assert_eq!(watched.watch.next(), Some(Change::Pointer(project("acme"))));
    let both = Followed {
        records: BTreeSet::from([project("one"), project("two")]),
        ..written(2, "one")
    };
    let next = std::iter::from_fn(|| watched.watch.next());
    let mut next = next.filter(|change| !matches!(change, Change::Pointer(_)));
    assert_eq!(next.next(), Some(Change::Followed(both)));
    // A comparison of everything does not replace the report.
    watched.watch.followed(written(3, "one"));
    watched.watch.rescan();
    assert_eq!(next.next(), Some(Change::Rescan));
    assert_eq!(next.next(), Some(Change::Followed(written(3, "one"))));
}
