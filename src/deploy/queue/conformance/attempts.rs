//! Leases, take-overs, retries, and dead letters.

use std::time::Duration;

use super::super::super::update::State;
use super::*;

#[test]
fn a_lease_ends_at_its_deadline_and_not_earlier() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        let former = claim(queue, 0);
        assert_eq!(queue.claim(&worker(), Owners::All, at(29)).unwrap(), None);

        let successor = claim(queue, 30);
        assert_eq!(successor.update.id, id);
        assert_eq!((former.epoch, successor.epoch), (1, 2));
        assert_eq!(successor.update.attempts, 2, "dying counts as an attempt");
        assert_eq!(successor.update.generation, former.update.generation);
    });
}

#[test]
fn a_heartbeat_extends_the_lease() {
    on_each(|queue| {
        enqueue(queue, "docs", 0);
        let claimed = claim(queue, 0);
        for seconds in [20, 40, 60] {
            let held = queue.heartbeat(&claimed, Progress::default(), at(seconds));
            assert_eq!(held.unwrap(), Held::Yes);
            assert_eq!(
                queue
                    .claim(&worker(), Owners::All, at(seconds + 9))
                    .unwrap(),
                None
            );
        }
        assert_eq!(claim(queue, 90).epoch, 2);
    });
}

#[test]
fn a_worker_without_its_lease_cannot_change_an_update() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        let mut former = claim(queue, 0);
        let successor = claim(queue, 31);
        let progress = Progress {
            lines: vec!["late".to_owned()],
            commit: None,
        };
        assert_eq!(
            queue.heartbeat(&former, progress, at(32)).unwrap(),
            Held::Lost
        );
        assert_eq!(queue.raise_generation(&mut former, 99).unwrap(), Held::Lost);
        for outcome in [
            published(),
            Outcome::Failure,
            Outcome::Retry,
            Outcome::LeaseReleased,
        ] {
            assert_eq!(
                queue.finish(&former, &outcome, "mine", at(33)).unwrap(),
                Held::Lost
            );
        }
        assert_eq!(status(queue, &id), Status::InProgress);
        assert!(record(queue, &id).logs.is_empty());

        assert_eq!(
            queue
                .finish(&successor, &published(), "done", at(34))
                .unwrap(),
            Held::Yes
        );
        assert_eq!(
            queue
                .finish(&former, &Outcome::Failure, "mine", at(35))
                .unwrap(),
            Held::Lost
        );
        assert_eq!(status(queue, &id), Status::Success);
    });
}

/// The answer to the first call may be lost.
#[test]
fn a_claim_that_has_ended_its_attempt_may_say_so_again() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        let first = claim(queue, 0);
        for seconds in [1, 2] {
            let ended = queue.finish(&first, &Outcome::LeaseReleased, "stop", at(seconds));
            assert_eq!(ended.unwrap(), Held::Yes);
        }
        let beat = queue.heartbeat(&first, Progress::default(), at(3));
        assert_eq!(beat.unwrap(), Held::Lost);
        let second = claim(queue, 4);
        for seconds in [5, 6] {
            let ended = queue.finish(&second, &published(), "done", at(seconds));
            assert_eq!(ended.unwrap(), Held::Yes);
        }
        let late = queue.finish(&first, &Outcome::Failure, "mine", at(7));
        assert_eq!(late.unwrap(), Held::Lost);
        let record = record(queue, &id);
        assert_eq!(record.status(), Status::Success);
        assert_eq!(record.update.ended_at(), Some(at(5)));
        let lines: Vec<_> = record.logs.iter().map(|line| &line[25..]).collect();
        assert_eq!(lines, ["stop", "done"]);
    });
}

#[test]
fn a_queued_update_supersedes_one_whose_worker_died() {
    on_each(|queue| {
        let first = enqueue(queue, "docs", 0).id;
        let _dead_worker = claim(queue, 0);
        let second = enqueue(queue, "docs", 10).id;

        let claimed = claim(queue, 31);
        assert_eq!(claimed.update.id, second, "the newer build covers both");
        assert_eq!(claimed.update.attempts, 1);
        assert_eq!(
            status(queue, &first),
            Status::InProgress,
            "it shows the status of the newer one"
        );

        let third = enqueue(queue, "docs", 32).id;
        let held = queue.finish(&claimed, &Outcome::Retry, "network", at(33));
        assert_eq!(held.unwrap(), Held::Yes);
        assert_eq!(status(queue, &first), Status::Queued);

        let claimed = claim(queue, 34);
        assert_eq!(claimed.update.id, third);
        let _ = queue
            .finish(&claimed, &published(), "done", at(35))
            .unwrap();
        for id in [&first, &second, &third] {
            assert_eq!(status(queue, id), Status::Success);
            assert_eq!(record(queue, id).release(), Some(release("one")));
        }
    });
}

#[test]
fn each_retry_waits_longer_and_the_last_becomes_a_dead_letter() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        let mut now = 0;
        let mut waits = Vec::new();
        for attempt in 1..=5 {
            let claimed = claim(queue, now);
            assert_eq!(claimed.update.attempts, attempt);
            let held = queue.finish(&claimed, &Outcome::Retry, "no route to host", at(now));
            assert_eq!(held.unwrap(), Held::Yes);
            if attempt < 5 {
                let began = now;
                while queue
                    .claim(&worker(), Owners::All, at(now))
                    .unwrap()
                    .is_none()
                {
                    now += 1;
                }
                waits.push(now - began);
                // The claim above only finds the moment. An attempt whose lease is released is not
                // counted.
                let probe = record(queue, &id).update;
                let State::InProgress(holder) = probe.state.clone() else {
                    panic!("claimed above");
                };
                let probe = Claim {
                    update: probe,
                    epoch: holder.epoch,
                    commit_before: None,
                };
                let _ = queue
                    .finish(&probe, &Outcome::LeaseReleased, "stop", at(now))
                    .unwrap();
            }
        }
        assert!(
            waits
                .iter()
                .zip([5, 20, 80, 320])
                .all(|(wait, delay)| { (delay * 8 / 10..=delay * 12 / 10 + 1).contains(wait) }),
            "{waits:?}"
        );
        let record = record(queue, &id);
        assert_eq!(record.status(), Status::Failure);
        assert_eq!(
            record.summary(),
            "gave up after 5 attempts: no route to host"
        );
        assert_eq!(queue.dead_letters(10).unwrap(), [record.update]);
        assert_eq!(queue.depth().unwrap().dead_letters, 1);
    });
}

#[test]
fn a_build_that_always_kills_its_worker_becomes_a_dead_letter() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        for round in 0..5 {
            claim(queue, round * 31);
        }
        assert_eq!(
            queue.claim(&worker(), Owners::All, at(5 * 31)).unwrap(),
            None
        );
        assert_eq!(status(queue, &id), Status::Failure);
        assert_eq!(queue.dead_letters(10).unwrap().len(), 1);
    });
}

#[test]
fn a_failure_of_the_author_is_not_retried() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        let claimed = claim(queue, 0);
        let _ = queue
            .finish(&claimed, &Outcome::Failure, "docs.json:3:1: error", at(1))
            .unwrap();
        assert_eq!(status(queue, &id), Status::Failure);
        assert_eq!(queue.claim(&worker(), Owners::All, at(9999)).unwrap(), None);
        assert!(queue.dead_letters(10).unwrap().is_empty());
        let logs = record(queue, &id).logs;
        assert_eq!(logs.len(), 1);
        assert!(logs[0].ends_with("docs.json:3:1: error"));
    });
}

#[test]
fn requeueing_creates_a_new_update() {
    on_each(|queue| {
        assert_eq!(queue.requeue(&project("docs"), at(0)).unwrap(), None);
        let old = enqueue(queue, "docs", 0).id;
        for round in 0..6 {
            let _ = queue.claim(&worker(), Owners::All, at(round * 31)).unwrap();
        }
        let requeued = queue.requeue(&project("docs"), at(300)).unwrap().unwrap();
        assert_ne!(requeued.id, old);
        assert_eq!(status(queue, &old), Status::Failure);
        assert!(queue.dead_letters(10).unwrap().is_empty());
        assert_eq!(claim(queue, 300).update.source, Source::Internal);
    });
}

#[test]
fn a_trigger_makes_a_waiting_retry_due() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        let claimed = claim(queue, 0);
        let _ = queue
            .finish(&claimed, &Outcome::Retry, "network", at(0))
            .unwrap();
        assert_eq!(queue.claim(&worker(), Owners::All, at(1)).unwrap(), None);
        assert_eq!(enqueue(queue, "docs", 1).id, id);
        assert_eq!(claim(queue, 1).update.attempts, 2);
    });
}

#[test]
fn a_released_lease_is_due_at_once_and_counts_no_attempt() {
    on_each(|queue| {
        enqueue(queue, "docs", 0);
        let claimed = claim(queue, 0);
        let _ = queue
            .finish(&claimed, &Outcome::LeaseReleased, "shutting down", at(1))
            .unwrap();
        assert_eq!(claim(queue, 1).update.attempts, 1);
    });
}

#[test]
fn the_next_generation_is_greater_than_a_raised_one() {
    on_each(|queue| {
        enqueue(queue, "docs", 0);
        let mut claimed = claim(queue, 0);
        assert_eq!(queue.raise_generation(&mut claimed, 41).unwrap(), Held::Yes);
        assert_eq!(claimed.update.generation, 41);
        assert_eq!(queue.raise_generation(&mut claimed, 3).unwrap(), Held::Yes);
        assert_eq!(claimed.update.generation, 41);
        let _ = queue.finish(&claimed, &published(), "done", at(1)).unwrap();
        assert_eq!(queue.generation(&project("docs")).unwrap(), 41);
        assert_eq!(queue.generation(&project("blog")).unwrap(), 0);
        enqueue(queue, "docs", 2);
        assert_eq!(claim(queue, 2).update.generation, 42);
    });
}

#[test]
fn an_update_that_runs_out_of_time_has_two_attempts() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        for seconds in [0, 100] {
            let claimed = claim(queue, seconds);
            let summary = "build: the update took longer than 600 s";
            let _ = queue
                .finish(&claimed, &Outcome::RetryOnce, summary, at(seconds))
                .unwrap();
        }
        let record = record(queue, &id);
        assert_eq!(record.status(), Status::Failure);
        assert_eq!(
            record.summary(),
            "gave up after 2 attempts: build: the update took longer than 600 s"
        );
        assert_eq!(queue.dead_letters(10).unwrap(), [record.update]);
    });
}

#[test]
fn the_leases_of_a_worker_that_has_ended_end_at_once() {
    on_each(|queue| {
        let (dead, alive) = (WorkerId::new("dead"), WorkerId::new("alive"));
        let one = enqueue(queue, "one", 0).id;
        let _killed = queue.claim(&dead, Owners::All, at(0)).unwrap().unwrap();
        enqueue(queue, "two", 0);
        let held = queue.claim(&alive, Owners::All, at(0)).unwrap().unwrap();
        assert_eq!(
            queue.end_leases(|worker| *worker == dead, at(1)).unwrap(),
            1
        );
        let taken = claim(queue, 1);
        assert_eq!((&taken.update.id, taken.update.attempts), (&one, 2));
        let heartbeat = queue.heartbeat(&held, Progress::default(), at(2));
        assert_eq!(heartbeat.unwrap(), Held::Yes);
    });
}

#[test]
fn times_of_a_clock_that_was_an_hour_ahead_are_corrected() {
    on_each(|queue| {
        let running = enqueue(queue, "running", 3600).id;
        let _killed = claim(queue, 3600);
        let waiting = enqueue(queue, "waiting", 3600).id;
        assert_eq!(queue.claim(&worker(), Owners::All, at(0)).unwrap(), None);

        assert_eq!(queue.correct_times(at(0)).unwrap(), 2);
        let claims = [claim(queue, 0), claim(queue, 0)];
        let ids = claims.each_ref().map(|claim| claim.id().clone());
        assert!(ids.contains(&running) && ids.contains(&waiting), "{ids:?}");
        // A lease that begins at this moment does not come from a wrong clock.
        assert_eq!(queue.correct_times(at(0)).unwrap(), 0);
    });
}

#[test]
fn a_lease_that_ends_more_than_twice_its_length_ahead_is_corrected() {
    let lease = Policy::default().lease.as_secs();
    for (back, corrected) in [(lease, 0), (lease + 1, 1)] {
        on_each(|queue| {
            enqueue(queue, "docs", 3600);
            let _held = claim(queue, 3600);
            let now = at(3600 - back);
            assert_eq!(queue.correct_times(now).unwrap(), corrected, "{back}");
        });
    }
}

#[test]
fn a_trigger_that_is_more_than_a_lease_ahead_is_corrected() {
    let lease = Policy::default().lease.as_secs();
    for (ahead, corrected) in [(lease, 0), (lease + 1, 1)] {
        on_each(|queue| {
            enqueue(queue, "docs", ahead);
            assert_eq!(queue.correct_times(at(0)).unwrap(), corrected, "{ahead}");
        });
    }
}

#[test]
fn a_retry_that_is_more_than_twice_the_longest_delay_ahead_is_corrected() {
    // The second lease is longer than twice the longest delay.
    for (lease, delay_max) in [(30, 100), (100, 30)] {
        let policy = Policy {
            lease: Duration::from_secs(lease),
            retry_delay: Duration::from_secs(delay_max),
            retry_delay_max: Duration::from_secs(delay_max),
            ..Policy::default()
        };
        for (ahead, corrected) in [(0, 0), (1, 1)] {
            for (queue, _directory) in queues(&policy) {
                enqueue(&queue, "docs", 0);
                let claim = claim(&queue, 0);
                let held = queue.finish(&claim, &Outcome::Retry, "", at(0));
                assert_eq!(held.unwrap(), Held::Yes);
                let State::Queued { ready_at } = record(&queue, claim.id()).update.state else {
                    panic!("the update is tried again");
                };
                let limit = Duration::from_secs(2 * delay_max);
                let now = ready_at.before(limit + Duration::from_millis(ahead));
                assert_eq!(
                    queue.correct_times(now).unwrap(),
                    corrected,
                    "{lease} {ahead}"
                );
            }
        }
    }
}
