//! Owners are served round-robin, however many updates each has.

use super::*;

/// Queues an update of each of so many projects, one a second.
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
        // Of one owner, the update that has waited longest comes first.
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
        assert_eq!(queue.claim(&worker(), at(3)).unwrap(), None);
        assert_eq!(claim(queue, 20).id(), failing.id());
    });
}
