//! Tests of the allowed moves; every other move is an error.

use super::*;
use crate::digest::Digest;

fn update() -> Update {
    let trigger = Trigger {
        project: ProjectId::parse("acme").unwrap(),
        owner: "acme".into(),
        subdomain: "acme".into(),
        source: Source::Api,
        idempotency: None,
    };
    Update::queued(
        id("upd_00000000000000000000000007"),
        &trigger,
        1,
        Timestamp::default(),
    )
}

fn id(text: &str) -> StatusId {
    StatusId::parse(text).unwrap()
}

fn holder(epoch: u64) -> Holder {
    Holder {
        worker: WorkerId::new("one"),
        epoch,
        lease_until: Timestamp::from_millis(100),
    }
}

fn success() -> State {
    State::Success {
        ended_at: Timestamp::from_millis(9),
        release: ReleaseId::parse(&Digest::of(b"release").to_string()).unwrap(),
        epoch: 1,
        visible_at: None,
    }
}

fn failure() -> State {
    State::Failure {
        ended_at: Timestamp::from_millis(9),
        dead_letter: false,
    }
}

#[test]
fn u1_a_queued_update_cannot_succeed_without_an_attempt() {
    let moved = update().end(success(), "");
    assert_eq!(
        moved.unwrap_err().to_string(),
        "update upd_00000000000000000000000007 cannot go from queued to success"
    );
    assert!(update().end(failure(), "cancelled").is_ok());
}

#[test]
fn u2_a_final_state_never_changes() {
    for last in [success(), failure()] {
        let mut update = update();
        update.claim(holder(1), "token".into()).unwrap();
        update.end(last.clone(), "done").unwrap();
        assert!(update.claim(holder(2), "token".into()).is_err());
        assert!(update.renew(Timestamp::default()).is_err());
        assert!(update.reschedule(Timestamp::default(), "").is_err());
        assert!(
            update
                .mark_superseded(&id("upd_00000000000000000000000008"))
                .is_err()
        );
        assert!(update.end(success(), "").is_err());
        assert!(update.end(failure(), "").is_err());
        assert_eq!(update.state, last);
    }
}

#[test]
fn u3_taking_over_counts_an_attempt() {
    let mut update = update();
    update.claim(holder(1), "token".into()).unwrap();
    update.claim(holder(2), "token".into()).unwrap();
    assert_eq!(update.attempts, 2);
    assert!(update.is_held_by(2) && !update.is_held_by(1));
}

#[test]
fn u4_a_superseded_update_has_the_outcome_of_the_newer_one() {
    let mut update = update();
    update.claim(holder(1), "token".into()).unwrap();
    update
        .mark_superseded(&id("upd_00000000000000000000000008"))
        .unwrap();
    assert_eq!(update.status(), Status::Queued);
    update.end(success(), "published").unwrap();
    assert_eq!(update.status(), Status::Success);
}

#[test]
fn a_summary_is_cut_between_characters() {
    assert_eq!(cut("aéé", 2), "a");
    assert_eq!(cut("aéé", 3), "aé");
    assert_eq!(cut("a", 9), "a");
}
