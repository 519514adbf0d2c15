//! Values that pingora gets for one request, and that return after it.
//!
//! pingora owns the connection or the stream of a request while it works on it. If it panics, it
//! drops what it owns, and the client would see the end of the connection instead of a response.
//! Such a value has a [`ReturnSlot`]: it returns there when it is dropped, for any reason.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// The slot to which a value returns.
pub(super) struct ReturnSlot<T>(Arc<Mutex<Option<T>>>);

/// A value that returns to its slot when it is dropped.
#[derive(Debug)]
pub(super) struct Returned<T> {
    /// `None` only while it is dropped.
    value: Option<T>,
    slot: ReturnSlot<T>,
}

// === impl ReturnSlot ===

impl<T> ReturnSlot<T> {
    /// Makes an empty slot.
    pub(super) fn new() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }

    /// Brings a value back.
    pub(super) fn put(&self, value: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
    }

    /// Returns the value if it has come back.
    pub(super) fn take(&self) -> Option<T> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        place.take()
    }
}

impl<T> Clone for ReturnSlot<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for ReturnSlot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReturnSlot")
    }
}

// === impl Returned ===

impl<T> Returned<T> {
    /// Wraps a value.
    pub(super) fn new(value: T, slot: ReturnSlot<T>) -> Self {
        Self {
            value: Some(value),
            slot,
        }
    }
}

impl<T> Deref for Returned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("a value that is not dropped")
    }
}

impl<T> DerefMut for Returned<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("a value that is not dropped")
    }
}

impl<T> Drop for Returned<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.slot.put(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_returns_also_after_a_panic() {
        let slot = ReturnSlot::new();
        drop(Returned::new(1, slot.clone()));
        assert_eq!((slot.take(), slot.take()), (Some(1), None));
        let returned = Returned::new(2, slot.clone());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            assert_eq!(*returned, 3, "a panic");
        }));
        assert!(panicked.is_err());
        assert_eq!(slot.take(), Some(2));
    }
}
