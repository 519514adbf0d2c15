//! The result of a trigger, and its stored values.

use super::*;

#[test]
fn a_trigger_coalesces_only_with_a_build_that_has_not_begun() {
    on_each(|queue| {
        let first = enqueue(queue, "docs", 0);
        assert!(!first.coalesced, "nothing queued, nothing running");
        assert_eq!(enqueue(queue, "docs", 1).id, first.id, "one queued");

        let running = claim(queue, 2);
        let second = enqueue(queue, "docs", 3);
        assert!(
            !second.coalesced,
            "one running may have read the branch already"
        );
        assert_ne!(second.id, first.id);

        let third = enqueue(queue, "docs", 4);
        assert_eq!(
            (third.id, third.coalesced),
            (second.id.clone(), true),
            "one of each"
        );
        assert_eq!(
            queue.claim(&worker(), Owners::All, at(5)).unwrap(),
            None,
            "one build per project"
        );

        assert_eq!(
            queue.finish(&running, &published(), "done", at(6)).unwrap(),
            Held::Yes
        );
        assert_eq!(claim(queue, 7).update.id, second.id);
        assert_eq!(status(queue, &first.id), Status::Success);
    });
}

#[test]
fn generations_and_epochs_only_increase() {
    on_each(|queue| {
        let mut fences = Vec::new();
        for round in 0..4 {
            enqueue(queue, "docs", round * 10);
            let claim = claim(queue, round * 10);
            fences.push((claim.update.generation, claim.epoch));
            let _ = queue
                .finish(&claim, &published(), "done", at(round * 10))
                .unwrap();
        }
        assert_eq!(fences, [(1, 1), (2, 2), (3, 3), (4, 4)]);
    });
}

#[test]
fn projects_are_built_in_the_order_in_which_they_became_due() {
    on_each(|queue| {
        for (seconds, name) in ["b", "c", "a"].into_iter().enumerate() {
            enqueue(queue, name, seconds as u64);
        }
        let order: Vec<_> = (0..3)
            .map(|_| claim(queue, 9).project().to_string())
            .collect();
        assert_eq!(order, ["b", "c", "a"]);
        assert_eq!(queue.claim(&worker(), Owners::All, at(9)).unwrap(), None);
    });
}

#[test]
fn an_idempotency_key_repeats_the_response_for_a_day() {
    on_each(|queue| {
        let keyed = |name: &str| Trigger {
            idempotency: Some(Digest::of(b"push-17")),
            ..trigger(name)
        };
        let first = queue.enqueue(&keyed("docs"), at(0)).unwrap().id;
        let claimed = claim(queue, 1);
        let _ = queue.finish(&claimed, &published(), "done", at(2)).unwrap();

        let day = 24 * 60 * 60;
        let again = queue.enqueue(&keyed("docs"), at(day - 1)).unwrap();
        assert_eq!(
            (again.id, again.coalesced),
            (first.clone(), true),
            "even when it has ended"
        );
        let other = queue.enqueue(&keyed("blog"), at(3));
        assert!(matches!(other, Err(QueueError::KeyReused)), "{other:?}");
        let foreign = Trigger {
            owner: "globex".into(),
            ..keyed("blog")
        };
        assert!(
            !queue.enqueue(&foreign, at(3)).unwrap().coalesced,
            "keys are the owner's own"
        );

        assert_ne!(queue.enqueue(&keyed("docs"), at(day)).unwrap().id, first);
    });
}

#[test]
fn a_full_queue_rejects_new_updates_and_still_coalesces() {
    let policy = Policy {
        waiting_max: 2,
        ..Policy::default()
    };
    for (queue, _directory) in queues(&policy) {
        enqueue(&queue, "a", 0);
        let b = enqueue(&queue, "b", 0).id;
        let full = queue.enqueue(&trigger("c"), at(0));
        assert!(
            matches!(full, Err(QueueError::Full { limit: 2 })),
            "{full:?}"
        );
        assert_eq!(enqueue(&queue, "b", 0).id, b);
        claim(&queue, 1);
        enqueue(&queue, "c", 1);
    }
}

#[test]
fn the_next_build_gets_the_commit_of_the_last_success() {
    on_each(|queue| {
        let commit = Commit {
            sha: "c0ffee".into(),
            branch: "main".into(),
            message: "Say hello".into(),
            author: "Ada".into(),
            files_changed: FilesChanged::default(),
        };
        let id = enqueue(queue, "docs", 0).id;
        let first = claim(queue, 0);
        assert_eq!(first.commit_before, None);
        let progress = Progress {
            lines: vec!["fetched c0ffee".to_owned()],
            commit: Some(commit.clone()),
        };
        assert_eq!(queue.heartbeat(&first, progress, at(1)).unwrap(), Held::Yes);
        let _ = queue.finish(&first, &published(), "done", at(2)).unwrap();
        let record = record(queue, &id);
        assert_eq!(record.update.commit, Some(commit));
        let lines: Vec<_> = record.logs.iter().map(|line| &line[25..]).collect();
        assert_eq!(lines, ["fetched c0ffee", "done"]);

        enqueue(queue, "docs", 3);
        assert_eq!(claim(queue, 3).commit_before.as_deref(), Some("c0ffee"));
    });
}

#[test]
fn a_log_is_bounded_in_lines_and_bytes() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        let claimed = claim(queue, 0);
        let progress = Progress {
            lines: vec!["é".repeat(LOG_LINE_BYTES_MAX); LOG_LINES_MAX + 10],
            commit: None,
        };
        assert_eq!(
            queue.heartbeat(&claimed, progress, at(1)).unwrap(),
            Held::Yes
        );
        let logs = record(queue, &id).logs;
        assert_eq!(logs.len(), LOG_LINES_MAX);
        assert!(logs[0].len() <= LOG_LINE_BYTES_MAX + 25);
    });
}

#[test]
fn the_updates_of_a_former_owner_end_with_a_trigger_of_the_new_one() {
    on_each(|queue| {
        let of_former = |name, seconds| queue.enqueue(&trigger_of("acme", name), at(seconds));
        let first = of_former("docs", 0).unwrap().id;
        let superseded = claim(queue, 0);
        let second = of_former("docs", 1).unwrap().id;
        let released = queue.finish(&superseded, &Outcome::LeaseReleased, "stop", at(2));
        assert_eq!(released.unwrap(), Held::Yes);
        let running = claim(queue, 3);
        let third = of_former("docs", 4).unwrap().id;
        let other = of_former("other", 4).unwrap().id;

        let own = queue.enqueue(&trigger_of("globex", "docs"), at(5)).unwrap();
        assert!(!own.coalesced);
        assert_eq!(&*record(queue, &own.id).update.owner, "globex");
        let beat = queue.heartbeat(&running, Progress::default(), at(6));
        assert_eq!(
            beat.unwrap(),
            Held::Lost,
            "the build of the former owner stops"
        );
        let taken = queue.claim(&worker(), Owners::All, at(6)).unwrap().unwrap();
        let taken = match *taken.id() == other {
            true => claim(queue, 6),
            false => taken,
        };
        assert_eq!(*taken.id(), own.id, "it need not wait for the former owner");
        let progress = Progress {
            lines: vec!["a secret of globex".to_owned()],
            commit: None,
        };
        assert_eq!(queue.heartbeat(&taken, progress, at(7)).unwrap(), Held::Yes);
        let ended = queue.finish(&taken, &published(), "done", at(8));
        assert_eq!(ended.unwrap(), Held::Yes);
        for id in [&first, &second, &third] {
            let record = record(queue, id);
            assert_eq!(record.status(), Status::Failure);
            assert_eq!(
                record.summary(),
                "cancelled: the site has another owner now"
            );
            let logs = record.logs.concat();
            assert!(!logs.contains("globex"), "{logs}");
        }
        assert!(!status(queue, &other).is_final());
    });
}

#[test]
fn a_removed_project_has_its_waiting_update_cancelled() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        assert!(
            queue
                .cancel(&project("docs"), "the site was removed", at(1))
                .unwrap()
        );
        assert!(
            !queue
                .cancel(&project("docs"), "the site was removed", at(1))
                .unwrap()
        );
        assert_eq!(status(queue, &id), Status::Failure);
        let logs = record(queue, &id).logs;
        assert!(logs[0].ends_with(" the site was removed"), "{logs:?}");
        assert_eq!(queue.claim(&worker(), Owners::All, at(2)).unwrap(), None);
    });
}

#[test]
fn ended_updates_and_old_keys_are_removed_and_queued_ones_are_not() {
    on_each(|queue| {
        let keyed = Trigger {
            idempotency: Some(Digest::of(b"key")),
            ..trigger("docs")
        };
        let old = queue.enqueue(&keyed, at(0)).unwrap().id;
        let claimed = claim(queue, 0);
        let _ = queue.finish(&claimed, &published(), "done", at(0)).unwrap();
        let waiting = enqueue(queue, "blog", 0).id;

        let month = 30 * 24 * 60 * 60;
        assert_eq!(queue.sweep(at(3600)).unwrap(), Swept::default());
        let swept = queue.sweep(at(month + 1)).unwrap();
        assert_eq!((swept.updates, swept.idempotency_keys), (1, 1));
        assert_eq!(queue.record(&old).unwrap(), None);
        assert_eq!(status(queue, &waiting), Status::Queued);
        enqueue(queue, "docs", month + 2);
        claim(queue, month + 2);
        assert_eq!(
            claim(queue, month + 2).update.generation,
            2,
            "counters outlive records"
        );
    });
}

#[test]
fn the_newest_updates_of_a_project_keep_their_log() {
    let policy = Policy {
        logs_max: 2,
        ..Policy::default()
    };
    for (queue, _directory) in queues(&policy) {
        let other = enqueue(&queue, "other", 0).id;
        let claimed = claim(&queue, 0);
        let _ = queue.finish(&claimed, &published(), "done", at(0)).unwrap();
        let mut ids = Vec::new();
        for second in 1..6 {
            ids.push(enqueue(&queue, "docs", second).id);
            let claimed = claim(&queue, second);
            let progress = Progress {
                lines: vec!["a long diagnostic".to_owned()],
                commit: None,
            };
            let _ = queue.heartbeat(&claimed, progress, at(second)).unwrap();
            let outcome = Outcome::Failure;
            let _ = queue
                .finish(&claimed, &outcome, "wrong", at(second))
                .unwrap();
        }
        let lines = ids.iter().map(|id| record(&queue, id).logs.len());
        assert_eq!(lines.collect::<Vec<_>>(), [0, 0, 0, 2, 2]);
        // The rest of the record stays, and so do the logs of other projects.
        assert_eq!(&*record(&queue, &ids[0]).update.summary, "wrong");
        assert_eq!(record(&queue, &other).logs.len(), 1);
    }
}

#[test]
fn an_unknown_id_has_no_record() {
    on_each(|queue| {
        let id = StatusId::generate(at(0)).unwrap();
        assert_eq!(queue.record(&id).unwrap(), None);
    });
}

#[test]
fn triggers_at_once_share_one_update_or_get_their_own() {
    on_each(|queue| {
        let ids: Vec<Enqueued> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..32)
                .map(|n| scope.spawn(move || enqueue(queue, &format!("p{}", n % 4), 0)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(ids.iter().filter(|enqueued| !enqueued.coalesced).count(), 4);
        assert_eq!(queue.depth().unwrap().queued, 4);
    });
}
