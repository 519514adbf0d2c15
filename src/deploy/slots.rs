//! Slots: how many updates a worker builds at once, shared fairly between owners.
//!
//! An owner may hold several slots as long as no other owner needs one. When an owner without a
//! slot waits and none is free, the youngest slot of the owner that holds the most is *revoked*:
//! its update goes back to the queue and its attempt does not count. So an owner with a slow host
//! and many projects keeps one slot, however many projects it has.
//!
//! A free slot goes to the waiting owner that holds the fewest slots. If several hold equally few,
//! it goes to the one that has waited longest.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{oneshot, watch};

/// The slots of a worker.
#[derive(Debug)]
pub struct Slots {
    count: usize,
    state: Mutex<State>,
}

/// A slot that is held until this is dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Slots>,
    number: u64,
    revoked: watch::Receiver<bool>,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they were taken.
    held: Vec<Held>,
    waiting: VecDeque<Waiting>,
    next: u64,
}

#[derive(Debug)]
struct Held {
    number: u64,
    owner: Box<str>,
    revoke: watch::Sender<bool>,
}

#[derive(Debug)]
struct Waiting {
    owner: Box<str>,
    grant: oneshot::Sender<Slot>,
}

// === impl Slots ===

impl Slots {
    /// Makes this many free slots.
    #[must_use]
    pub fn new(count: usize) -> Arc<Self> {
        Arc::new(Self {
            count,
            state: Mutex::default(),
        })
    }

    /// Waits for a slot. Safe to cancel.
    pub async fn take(self: &Arc<Self>, owner: &str) -> Slot {
        let (grant, granted) = oneshot::channel();
        self.state().waiting.push_back(Waiting {
            owner: owner.into(),
            grant,
        });
        self.balance();
        match granted.await {
            Ok(slot) => slot,
            // Every waiting entry is either granted or was cancelled with this future.
            Err(_closed) => std::future::pending().await,
        }
    }

    /// Each change of the state is complete before the lock is released.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grants free slots, and revokes slots for owners that have none.
    fn balance(self: &Arc<Self>) {
        loop {
            let mut state = self.state();
            state.waiting.retain(|waiting| !waiting.grant.is_closed());
            if state.held.len() >= self.count {
                state.revoke();
                return;
            }
            let Some((grant, slot)) = state.grant(self) else {
                return;
            };
            drop(state);
            // A caller that was cancelled in between gives its slot back here, without the lock.
            drop(grant.send(slot));
        }
    }
}

// === impl State ===

impl State {
    fn count(&self, owner: &str) -> usize {
        self.held
            .iter()
            .filter(|held| &*held.owner == owner)
            .count()
    }

    /// Takes a free slot for the owner that is next.
    fn grant(&mut self, slots: &Arc<Slots>) -> Option<(oneshot::Sender<Slot>, Slot)> {
        let counts = self
            .waiting
            .iter()
            .map(|waiting| self.count(&waiting.owner));
        let (at, _) = counts.enumerate().min_by_key(|(_, count)| *count)?;
        let Waiting { owner, grant } = self.waiting.remove(at)?;
        let (revoke, revoked) = watch::channel(false);
        let number = self.next;
        self.next += 1;
        self.held.push(Held {
            number,
            owner,
            revoke,
        });
        let slots = Arc::clone(slots);
        Some((
            grant,
            Slot {
                slots,
                number,
                revoked,
            },
        ))
    }

    /// Revokes a slot for each waiting owner that has none, as long as some owner keeps another.
    fn revoke(&mut self) {
        let mut without: Vec<&str> = self
            .waiting
            .iter()
            .map(|waiting| &*waiting.owner)
            .filter(|owner| self.count(owner) == 0)
            .collect();
        without.sort_unstable();
        without.dedup();
        let is_revoked = |held: &&Held| *held.revoke.borrow();
        let coming = self.held.iter().filter(is_revoked).count();
        for _ in coming..without.len() {
            let kept = |owner: &str| {
                let kept = self.held.iter().filter(|held| !is_revoked(held));
                kept.filter(|held| &*held.owner == owner).count()
            };
            let youngest = self
                .held
                .iter()
                .filter(|held| !is_revoked(held) && kept(&held.owner) > 1)
                .max_by_key(|held| (kept(&held.owner), held.number));
            let Some(youngest) = youngest else {
                return;
            };
            youngest.revoke.send_replace(true);
        }
    }
}

// === impl Slot ===

impl Slot {
    /// Returns when another owner needs the slot: then the work stops and the slot is dropped. It
    /// does not return after the slot was given back.
    pub fn revoked(&self) -> impl Future<Output = ()> + use<> {
        let mut revoked = self.revoked.clone();
        async move {
            if revoked.wait_for(|revoked| *revoked).await.is_err() {
                // The sender lives as long as the slot is held.
                std::future::pending().await
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let number = self.number;
        self.slots.state().held.retain(|held| held.number != number);
        self.slots.balance();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Returns the result of a future if it has one now.
    fn now<F: Future>(future: Pin<&mut F>) -> Option<F::Output> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(result) => Some(result),
            Poll::Pending => None,
        }
    }

    fn is_revoked(slot: &Slot) -> bool {
        now(pin!(slot.revoked())).is_some()
    }

    #[tokio::test]
    async fn one_owner_uses_all_slots_while_no_other_waits() {
        let slots = Slots::new(2);
        let held = [slots.take("big").await, slots.take("big").await];
        assert!(now(pin!(slots.take("big"))).is_none());
        assert!(held.iter().all(|slot| !is_revoked(slot)));
    }

    #[tokio::test]
    async fn the_youngest_slot_of_the_largest_owner_is_revoked_for_another() {
        let slots = Slots::new(3);
        let (one, two) = (slots.take("big").await, slots.take("big").await);
        let other = slots.take("other").await;
        let mut third = pin!(slots.take("new"));
        assert!(now(third.as_mut()).is_none());
        assert_eq!([&one, &two, &other].map(is_revoked), [false, true, false]);

        // Every owner keeps its last slot.
        let mut fourth = pin!(slots.take("newer"));
        assert!(now(fourth.as_mut()).is_none());
        assert_eq!([&one, &other].map(is_revoked), [false, false]);

        drop(two);
        let _third = third.await;
        drop(one);
        let _fourth = fourth.await;
    }

    #[tokio::test]
    async fn a_free_slot_goes_to_the_owner_that_holds_the_fewest() {
        let slots = Slots::new(2);
        let (one, _two) = (slots.take("big").await, slots.take("other").await);
        let mut again = pin!(slots.take("other"));
        let mut new = pin!(slots.take("new"));
        assert!(now(again.as_mut()).is_none());
        assert!(now(new.as_mut()).is_none());
        drop(one);
        assert!(now(again.as_mut()).is_none());
        let _new = now(new).unwrap();
    }

    #[tokio::test]
    async fn a_caller_that_stops_waiting_takes_no_slot() {
        let slots = Slots::new(1);
        let held = slots.take("one").await;
        {
            let mut given_up = pin!(slots.take("two"));
            assert!(now(given_up.as_mut()).is_none());
        }
        let mut third = pin!(slots.take("three"));
        assert!(now(third.as_mut()).is_none());
        drop(held);
        let _third = now(third).unwrap();
    }
}
