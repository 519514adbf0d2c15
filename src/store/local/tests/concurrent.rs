//! Several threads that publish, promote and sweep at the same time.

use super::*;

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
