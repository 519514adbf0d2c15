//! Owners are served round-robin, however many updates each has.

use super::*;

/// Queues one update for each of this many projects, one per second.
fn enqueue_many(queue: &Queue, owner: &str, projects: u64, seconds: u64) {
    for n in 0..projects {
        let trigger = trigger_of(owner, &format!("{owner}-{n}"));
        queue.enqueue(&trigger, at(seconds + n)).unwrap();
    }
}

fn owners(claims: &[Claim]) -> Vec<&str> {
    claims.iter().map(|claim| &*claim.update.owner).collect()
}

#[test]
fn an_owner_with_many_projects_does_not_delay_another() {
    on_each(|queue| {
        enqueue_many(queue, "big", 50, 0);
        enqueue_many(queue, "small", 2, 10);
        enqueue_many(queue, "new", 1, 20);
        let claims: Vec<_> = (0..8).map(|_| claim(queue, 60)).collect();
        assert_eq!(
            owners(&claims),
            ["big", "small", "new", "big", "small", "big", "big", "big"]
        );
        // Among the updates of one owner, the update that has waited longest comes first.
        assert_eq!(claims[1].project().as_str(), "small-0");
        assert_eq!(claims[4].project().as_str(), "small-1");
    });
}

#[test]
fn frequent_triggers_do_not_move_an_owner_forward() {
    on_each(|queue| {
        enqueue_many(queue, "big", 20, 0);
        let mut claims = Vec::new();
        for second in 1..9 {
            // Each time, no other update of this owner waits or runs.
            enqueue_many(queue, "again", 1, second);
            let claimed = claim(queue, second);
            let _ = queue
                .finish(&claimed, &published(), "done", at(second))
                .unwrap();
            claims.push(claimed);
        }
        assert_eq!(
            owners(&claims),
            [
                "big", "again", "big", "again", "big", "again", "big", "again"
            ]
        );
    });
}

#[test]
fn an_owner_without_due_updates_delays_no_other() {
    on_each(|queue| {
        enqueue_many(queue, "failing", 1, 0);
        let failing = claim(queue, 0);
        enqueue_many(queue, "other", 3, 0);
        let _ = queue
            .finish(&failing, &Outcome::Retry, "no network", at(1))
            .unwrap();
        let claims: Vec<_> = (0..3).map(|_| claim(queue, 3)).collect();
        assert_eq!(owners(&claims), ["other", "other", "other"]);
        assert_eq!(queue.claim(&worker(), Owners::All, at(3)).unwrap(), None);
        assert_eq!(claim(queue, 20).id(), failing.id());
    });
}

#[test]
fn of_one_owner_one_update_runs_while_another_owner_waits() {
    on_each(|queue| {
        enqueue_many(queue, "big", 50, 0);
        let first = claim(queue, 60);
        // The owner would be next in the line again.
        enqueue_many(queue, "small", 2, 61);
        let claims: Vec<_> = (0..2).map(|_| claim(queue, 70)).collect();
        assert_eq!(owners(&claims), ["small", "big"]);
        let _ = queue.finish(&first, &published(), "done", at(71)).unwrap();
        let _ = queue
            .finish(&claims[1], &published(), "done", at(71))
            .unwrap();
        // No update of `big` runs, one of `small` does.
        assert_eq!(owners(&[claim(queue, 72)]), ["big"]);
        assert_eq!(owners(&[claim(queue, 72)]), ["small"]);
    });
}

#[test]
fn a_busy_worker_claims_only_for_owners_of_which_no_update_runs() {
    on_each(|queue| {
        enqueue_many(queue, "big", 3, 0);
        enqueue_many(queue, "small", 2, 0);
        let idle = |seconds| queue.claim(&worker(), Owners::Idle, at(seconds)).unwrap();
        let claims: Vec<_> = std::iter::from_fn(|| idle(10)).collect();
        assert_eq!(owners(&claims), ["big", "small"]);
        // An update whose lease has ended does not count as running.
        let again = idle(50).expect("the lease has ended");
        assert_eq!(again.project().as_str(), "big-1");
    });
}
