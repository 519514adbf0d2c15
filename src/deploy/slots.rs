//! Slots: how many updates a worker builds at once, shared fairly between owners.
//!
//! An owner may hold several slots as long as no other owner needs one. When an owner without a
//! slot waits and none is free, the youngest slot of the owner that holds the most is *revoked*:
//! its update goes back to the queue and its attempt does not count. So an owner with a slow host
//! and many projects keeps one slot, however many projects it has.
//!
//! A free slot goes to the waiting owner that holds the fewest slots. If several hold equally few,
//! it goes to the update that has waited longest.
//!
//! **Heavy owners.** An owner is *heavy* from the moment that it has held a slot for longer than
//! [`Shares::light`], until [`HEAVY_FOR`] after it has given that slot back. It is heavy as long
//! after its work was killed or ran out of time. All heavy owners together get at most
//! [`Shares::heavy_max`] slots, so the others find a free slot and do not wait for long work.
//!
//! The first long work of an owner begins like any other. If an owner that is not heavy waits while
//! heavy owners hold more slots than they may get, a slot is revoked: the youngest of those that
//! were granted before their owner became heavy. A slot that was granted to a heavy owner is never
//! revoked for this reason, and a heavy owner that waits stays heavy. So long work is stopped at
//! most once, starts again as the work of a heavy owner, and ends.
//!
//! **Limits:** an owner whose work always takes a little less than [`Shares::light`] is not heavy,
//! and the others wait for slots. With a single slot, all owners wait for each other.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// How long an owner stays heavy after it has given a slot back that it had for long.
pub const HEAVY_FOR: Duration = Duration::from_secs(30 * 60);

/// For how long after an owner that is not heavy got a slot the work of heavy owners steps back.
const YIELD_FOR: Duration = Duration::from_secs(60);

/// How many slots there are, and for whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// How many slots there are.
    pub count: usize,
    /// How long an owner may hold a slot without becoming heavy.
    pub light: Duration,
}

/// The slots of a worker.
#[derive(Debug)]
pub struct Slots {
    shares: Shares,
    state: Mutex<State>,
}

/// A slot that is held until this is dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Slots>,
    number: u64,
    revoked: watch::Receiver<Option<Revoked>>,
}

/// Why a slot is revoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoked {
    /// Its owner has other slots, and another owner has none.
    Several,
    /// Its owner has become heavy, and an owner that is not heavy has none.
    Heavy,
}

#[derive(Debug, Default)]
struct State {
    /// In the order in which they were taken.
    held: Vec<HeldSlot>,
    waiting: VecDeque<Waiting>,
    /// Until when owners are heavy that have given back a slot.
    heavy: HashMap<Box<str>, Instant>,
    /// When owners that are not heavy got their last slot, if that was a short time ago.
    light: HashMap<Box<str>, Instant>,
    next: u64,
}

#[derive(Debug)]
struct HeldSlot {
    number: u64,
    owner: Box<str>,
    since: Instant,
    /// Whether its owner was heavy when it was granted.
    is_heavy: bool,
    revoke: watch::Sender<Option<Revoked>>,
}

#[derive(Debug)]
struct Waiting {
    owner: Box<str>,
    /// Whether its owner was heavy when it came.
    is_heavy: bool,
    grant: oneshot::Sender<Slot>,
}

// === impl Shares ===

impl Shares {
    /// Returns how many slots all heavy owners together may get: half of them, rounded up.
    #[must_use]
    pub fn heavy_max(&self) -> usize {
        self.count.div_ceil(2)
    }
}

// === impl Slots ===

impl Slots {
    /// Makes free slots.
    #[must_use]
    pub fn new(shares: Shares) -> Arc<Self> {
        Arc::new(Self {
            shares,
            state: Mutex::default(),
        })
    }

    /// Waits for a slot. Safe to cancel.
    pub async fn take(self: &Arc<Self>, owner: &str) -> Slot {
        let (grant, mut granted) = oneshot::channel();
        {
            let mut state = self.state();
            let is_heavy = state.is_heavy(owner, self.shares.light, Instant::now());
            state.waiting.push_back(Waiting {
                owner: owner.into(),
                is_heavy,
                grant,
            });
        }
        loop {
            let next_heavy = self.balance();
            tokio::select! {
                slot = &mut granted => match slot {
                    Ok(slot) => return slot,
                    // Every waiting entry is either granted or was cancelled with this future.
                    Err(_closed) => std::future::pending().await,
                },
                // Another owner becomes heavy: its slot may be revoked for this one.
                () = until(next_heavy) => {}
            }
        }
    }

    /// Makes an owner heavy whose work was killed or ran out of time.
    pub fn mark_heavy(&self, owner: &str) {
        let until = Instant::now() + HEAVY_FOR;
        self.state().heavy.insert(owner.into(), until);
    }

    /// Returns whether the work of an owner must step back: the owner is heavy, and another one
    /// that is not heavy got a slot a short time ago.
    #[must_use]
    pub fn steps_back(&self, owner: &str) -> bool {
        let (state, now) = (self.state(), Instant::now());
        let mut others = state.light.iter().filter(|(other, _)| ***other != *owner);
        state.is_heavy(owner, self.shares.light, now)
            && others.any(|(_, at)| now.duration_since(*at) < YIELD_FOR)
    }

    /// Each change of the state is complete before the lock is released.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grants free slots, and revokes slots for owners that have none. Returns when the next holder
    /// of a slot becomes heavy.
    fn balance(self: &Arc<Self>) -> Option<Instant> {
        loop {
            let now = Instant::now();
            let mut state = self.state();
            state.waiting.retain(|waiting| !waiting.grant.is_closed());
            state.find_heavy(self.shares.light, now);
            if state.held.len() >= self.shares.count {
                state.revoke(&self.shares, now);
                return state.next_heavy(self.shares.light, now);
            }
            let (grant, slot) = state.grant(self, now)?;
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

    fn is_heavy(&self, owner: &str, light: Duration, now: Instant) -> bool {
        let mut held = self.held.iter().filter(|held| &*held.owner == owner);
        held.any(|held| held.is_heavy || now.duration_since(held.since) > light)
            || self.heavy.get(owner).is_some_and(|until| *until > now)
    }

    /// Finds the owners that have become heavy while they wait, by another slot.
    fn find_heavy(&mut self, light: Duration, now: Instant) {
        let found: Vec<_> = self
            .waiting
            .iter()
            .map(|waiting| waiting.is_heavy || self.is_heavy(&waiting.owner, light, now))
            .collect();
        for (waiting, is_heavy) in self.waiting.iter_mut().zip(found) {
            waiting.is_heavy = is_heavy;
        }
    }

    /// Returns when the next holder of a slot becomes heavy.
    fn next_heavy(&self, light: Duration, now: Instant) -> Option<Instant> {
        let ends = self.held.iter().map(|held| held.since + light);
        // An owner is heavy after this time, not at it.
        let ends = ends.map(|end| end + Duration::from_millis(1));
        ends.filter(|end| *end > now).min()
    }

    /// Counts the slots that heavy owners hold.
    fn count_heavy(&self, light: Duration, now: Instant) -> usize {
        let is_heavy = |held: &&HeldSlot| held.is_heavy || self.is_heavy(&held.owner, light, now);
        self.held.iter().filter(is_heavy).count()
    }

    /// Takes a free slot for the owner that is next.
    fn grant(&mut self, slots: &Arc<Slots>, now: Instant) -> Option<(oneshot::Sender<Slot>, Slot)> {
        let shares = &slots.shares;
        let may_be_heavy = self.count_heavy(shares.light, now) < shares.heavy_max();
        let allowed = self
            .waiting
            .iter()
            .enumerate()
            .filter(|(_, waiting)| may_be_heavy || !waiting.is_heavy);
        let (at, _) = allowed.min_by_key(|(_, waiting)| self.count(&waiting.owner))?;
        let Waiting {
            owner,
            is_heavy,
            grant,
        } = self.waiting.remove(at)?;
        let (revoke, revoked) = watch::channel(None);
        if !is_heavy {
            self.light
                .retain(|_, at| now.duration_since(*at) < YIELD_FOR);
            self.light.insert(owner.clone(), now);
        }
        let number = self.next;
        self.next += 1;
        self.held.push(HeldSlot {
            number,
            owner,
            since: now,
            is_heavy,
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

    /// Revokes a slot for each waiting owner that has none, as long as some owner keeps another, or
    /// heavy owners hold more than their share.
    fn revoke(&mut self, shares: &Shares, now: Instant) {
        let mut without: Vec<_> = self
            .waiting
            .iter()
            .filter(|waiting| self.count(&waiting.owner) == 0)
            .map(|waiting| (&*waiting.owner, waiting.is_heavy))
            .collect();
        without.sort_unstable();
        without.dedup_by_key(|(owner, _)| *owner);
        let is_revoked = |held: &&HeldSlot| held.revoke.borrow().is_some();
        let coming = self.held.iter().filter(is_revoked).count();
        for _ in coming..without.len() {
            let Some(youngest) = self.youngest_of_several() else {
                break;
            };
            youngest.revoke.send_replace(Some(Revoked::Several));
        }
        let light = without.iter().filter(|(_, is_heavy)| !is_heavy).count();
        let coming = self.held.iter().filter(is_revoked).count();
        let heavy = self.count_heavy(shares.light, now).saturating_sub(coming);
        let excess = heavy.saturating_sub(shares.heavy_max());
        for _ in coming..light.min(coming + excess) {
            let mut granted_before = self.held.iter().rev().filter(|held| {
                let is_kept = held.is_heavy || is_revoked(held);
                !is_kept && self.is_heavy(&held.owner, shares.light, now)
            });
            let Some(youngest) = granted_before.next() else {
                return;
            };
            youngest.revoke.send_replace(Some(Revoked::Heavy));
        }
    }

    /// Returns the youngest slot of the owner that keeps the most, if it keeps another one.
    fn youngest_of_several(&self) -> Option<&HeldSlot> {
        let kept = || {
            self.held
                .iter()
                .filter(|held| held.revoke.borrow().is_none())
        };
        let count = |owner: &str| kept().filter(|held| &*held.owner == owner).count();
        kept()
            .filter(|held| count(&held.owner) > 1)
            .max_by_key(|held| (count(&held.owner), held.number))
    }

    /// Takes a slot back from its holder.
    fn release(&mut self, number: u64, light: Duration, now: Instant) {
        let Some(at) = self.held.iter().position(|held| held.number == number) else {
            return;
        };
        let held = self.held.remove(at);
        self.heavy.retain(|_, until| *until > now);
        if now.duration_since(held.since) > light {
            self.heavy.insert(held.owner, now + HEAVY_FOR);
        }
    }
}

// === impl Slot ===

impl Slot {
    /// Returns why the slot is revoked, when another owner needs it: then the work stops and the
    /// slot is dropped. It does not return after the slot was given back.
    pub fn revoked(&self) -> impl Future<Output = Revoked> + use<> {
        let mut revoked = self.revoked.clone();
        async move {
            loop {
                if let Some(why) = *revoked.borrow_and_update() {
                    return why;
                }
                if revoked.changed().await.is_err() {
                    // The sender lives as long as the slot is held.
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let light = self.slots.shares.light;
        let now = Instant::now();
        self.slots.state().release(self.number, light, now);
        self.slots.balance();
    }
}

/// Waits until a time, if there is one.
async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
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

    /// Slots that can be held for a second.
    fn slots(count: usize) -> Arc<Slots> {
        let light = Duration::from_secs(1);
        Slots::new(Shares { count, light })
    }

    async fn work(seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    #[tokio::test]
    async fn one_owner_uses_all_slots_while_no_other_waits() {
        let slots = slots(2);
        let held = [slots.take("big").await, slots.take("big").await];
        assert!(now(pin!(slots.take("big"))).is_none());
        assert!(held.iter().all(|slot| !is_revoked(slot)));
    }

    #[tokio::test]
    async fn the_youngest_slot_of_the_largest_owner_is_revoked_for_another() {
        let slots = slots(3);
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
        let slots = slots(2);
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
        let slots = slots(1);
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

    #[tokio::test(start_paused = true)]
    async fn heavy_owners_leave_a_slot_for_the_others() {
        let slots = slots(2);
        let one = slots.take("heavy").await;
        work(2).await;
        drop(one);
        let another = slots.take("long").await;
        work(2).await;
        drop(another);

        let _one = slots.take("heavy").await;
        let mut other = pin!(slots.take("long"));
        assert!(now(other.as_mut()).is_none());
        for _ in 0..3 {
            let light = now(pin!(slots.take("light"))).unwrap();
            assert!(!is_revoked(&light));
        }
        assert!(now(other).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn long_work_is_stopped_once_for_an_owner_that_is_not_heavy() {
        let slots = slots(2);
        let (one, two) = (slots.take("one").await, slots.take("two").await);
        let since = Instant::now();
        let mut third = pin!(slots.take("light"));
        assert!(now(third.as_mut()).is_none());
        // They are known to be heavy only after this.
        let why = tokio::select! {
            _third = &mut third => None,
            why = two.revoked() => Some(why),
        };
        assert_eq!((why, is_revoked(&one)), (Some(Revoked::Heavy), false));
        assert!(since.elapsed() < Duration::from_millis(1100));
        drop(two);
        let light = third.await;

        // It starts again when the other heavy owner has ended, and is not stopped then.
        let mut again = pin!(slots.take("two"));
        assert!(now(again.as_mut()).is_none());
        drop(light);
        assert!(now(again.as_mut()).is_none());
        drop(one);
        let again = again.await;
        let _other = slots.take("other").await;
        let mut light = pin!(slots.take("light"));
        assert!(now(light.as_mut()).is_none());
        let stopped = async {
            tokio::select! {
                _light = &mut light => "got a slot",
                _why = again.revoked() => "revoked",
            }
        };
        let stopped = tokio::time::timeout(Duration::from_secs(600), stopped).await;
        assert!(stopped.is_err(), "{stopped:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_heavy_owner_is_not_heavy_for_ever_and_waits_for_no_light_one() {
        let slots = slots(3);
        let one = slots.take("heavy").await;
        work(2).await;
        drop(one);
        slots.mark_heavy("killed");
        let is_heavy = |owner: &str| {
            let light = slots.shares.light;
            slots.state().is_heavy(owner, light, Instant::now())
        };
        assert!(is_heavy("heavy") && is_heavy("killed"));
        // It has the processors for itself until another owner works.
        assert!(!slots.steps_back("heavy"));
        // It is next, although lighter ones wait too.
        let held = [slots.take("a").await, slots.take("b").await];
        let third = slots.take("c").await;
        assert!(slots.steps_back("heavy") && !slots.steps_back("a"));
        let mut heavy = pin!(slots.take("heavy"));
        let mut light = pin!(slots.take("d"));
        assert!(now(heavy.as_mut()).is_none());
        assert!(now(light.as_mut()).is_none());
        drop(third);
        drop(now(heavy).unwrap());
        drop(now(light).unwrap());
        drop(held);
        work(HEAVY_FOR.as_secs()).await;
        assert!(!is_heavy("heavy") && !is_heavy("killed"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_single_slot_is_for_all_owners() {
        let slots = slots(1);
        let heavy = slots.take("heavy").await;
        work(2).await;
        let mut light = pin!(slots.take("light"));
        assert!(now(light.as_mut()).is_none());
        assert!(!is_revoked(&heavy));
        drop(heavy);
        drop(light.await);
        let _heavy = slots.take("heavy").await;
    }
}
