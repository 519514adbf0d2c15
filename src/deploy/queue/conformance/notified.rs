//! A queue notifies the worker that waits for it, and only when there is something to claim.

use std::pin::pin;
use std::task::{Context, Waker};

use super::*;

/// Returns whether the queue has notified since the last call.
fn is_notified(queue: &Queue) -> bool {
    let mut context = Context::from_waker(Waker::noop());
    pin!(queue.notified()).poll(&mut context).is_ready()
}

#[test]
fn what_makes_an_update_due_notifies() {
    on_each(|queue| {
        assert!(!is_notified(queue));
        enqueue(queue, "docs", 0);
        assert!(is_notified(queue));
        assert!(!is_notified(queue), "one change notifies once");

        let _lost = claim(queue, 0);
        assert_eq!(queue.end_leases(|_worker| true, at(1)).unwrap(), 1);
        assert!(is_notified(queue));

        let held = claim(queue, 1);
        let finished = queue.finish(&held, &published(), "", at(2));
        assert_eq!(finished.unwrap(), Held::Yes);
        assert!(is_notified(queue));

        enqueue(queue, "docs", 3600);
        assert!(is_notified(queue));
        assert_eq!(queue.correct_times(at(2)).unwrap(), 1);
        assert!(is_notified(queue));
    });
}

#[test]
fn what_changes_nothing_does_not_notify() {
    on_each(|queue| {
        enqueue(queue, "docs", 0);
        assert!(is_notified(queue));
        let _held = claim(queue, 0);
        assert_eq!(queue.end_leases(|_worker| false, at(1)).unwrap(), 0);
        assert_eq!(queue.correct_times(at(1)).unwrap(), 0);
        assert!(!is_notified(queue));
    });
}
