//! The time when a release became visible, reported by any process at any time.

use super::*;

fn fence(claim: &Claim) -> Fence {
    Fence {
        generation: claim.update.generation,
        epoch: claim.epoch,
    }
}

#[track_caller]
fn finish(queue: &Queue, claim: &Claim, seconds: u64) {
    let held = queue.finish(claim, &published(), "done", at(seconds));
    assert_eq!(held.unwrap(), Held::Yes);
}

fn visible_at(queue: &Queue, id: &StatusId) -> Option<Timestamp> {
    record(queue, id).visible_at()
}

#[test]
fn u6_a_report_before_the_end_is_in_the_final_record() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        let claimed = claim(queue, 1);
        queue
            .record_served(&project("docs"), fence(&claimed), at(2))
            .unwrap();
        assert_eq!(visible_at(queue, &id), None, "not while it may still fail");
        finish(queue, &claimed, 3);
        assert_eq!(visible_at(queue, &id), Some(at(2)));
        assert_eq!(queue.not_yet_visible().unwrap(), []);
    });
}

#[test]
fn u6_a_report_after_the_end_is_added_once() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        let claimed = claim(queue, 1);
        finish(queue, &claimed, 2);
        assert_eq!(visible_at(queue, &id), None);
        assert_eq!(queue.not_yet_visible().unwrap(), [project("docs")]);
        for seconds in [5, 9] {
            queue
                .record_served(&project("docs"), fence(&claimed), at(seconds))
                .unwrap();
        }
        assert_eq!(visible_at(queue, &id), Some(at(5)));
        assert_eq!(queue.not_yet_visible().unwrap(), []);
        let ended = record(queue, &id).update.ended_at();
        assert_eq!((status(queue, &id), ended), (Status::Success, Some(at(2))));
    });
}

#[test]
fn u6_an_older_promotion_makes_nothing_visible_and_a_newer_one_does() {
    on_each(|queue| {
        enqueue(queue, "docs", 0);
        let first = claim(queue, 0);
        finish(queue, &first, 0);
        let id = enqueue(queue, "docs", 1).id;
        let second = claim(queue, 1);
        finish(queue, &second, 2);
        queue
            .record_served(&project("docs"), fence(&first), at(3))
            .unwrap();
        assert_eq!(visible_at(queue, &id), None);
        // A release was published by hand since.
        let newer = Fence {
            generation: second.update.generation + 1,
            epoch: 0,
        };
        queue.record_served(&project("docs"), newer, at(4)).unwrap();
        assert_eq!(visible_at(queue, &id), Some(at(4)));
    });
}

#[test]
fn u6_an_update_that_promotes_twice_is_visible_since_its_first_promotion() {
    on_each(|queue| {
        let id = enqueue(queue, "docs", 0).id;
        let mut claimed = claim(queue, 0);
        let first = fence(&claimed);
        let generation = claimed.update.generation + 1;
        assert_eq!(
            queue.raise_generation(&mut claimed, generation).unwrap(),
            Held::Yes
        );
        queue.record_served(&project("docs"), first, at(1)).unwrap();
        queue
            .record_served(&project("docs"), fence(&claimed), at(5))
            .unwrap();
        finish(queue, &claimed, 6);
        assert_eq!(visible_at(queue, &id), Some(at(1)));

        // The second promotion did not happen, but its generation is used.
        let id = enqueue(queue, "docs", 10).id;
        let mut claimed = claim(queue, 10);
        let first = fence(&claimed);
        let generation = claimed.update.generation + 1;
        assert_eq!(
            queue.raise_generation(&mut claimed, generation).unwrap(),
            Held::Yes
        );
        finish(queue, &claimed, 12);
        queue
            .record_served(&project("docs"), first, at(13))
            .unwrap();
        assert_eq!(visible_at(queue, &id), Some(at(13)));
    });
}

#[test]
fn u6_a_report_of_a_project_that_was_never_queued_is_ignored() {
    on_each(|queue| {
        let by_hand = Fence {
            generation: 4,
            epoch: 0,
        };
        queue
            .record_served(&project("docs"), by_hand, at(0))
            .unwrap();
        assert_eq!(queue.generation(&project("docs")).unwrap(), 0);
    });
}
