//! What pingora gets for one request and must give back.
//!
//! pingora owns the connection or the stream of a request while it works on it. If it panics, it
//! drops what it owns, and the client would see the end of the connection instead of a response.
//! So what is lent has a [`Home`]: it returns there when it is dropped, whatever the reason.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

/// The place that a lent value returns to.
pub(super) struct Home<T>(Arc<Mutex<Option<T>>>);

/// A value that returns to its home when it is dropped.
#[derive(Debug)]
pub(super) struct Lent<T> {
    /// `None` only while it is dropped.
    value: Option<T>,
    home: Home<T>,
}

// === impl Home ===

impl<T> Home<T> {
    /// Makes an empty place.
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

impl<T> Clone for Home<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Home<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Home")
    }
}

// === impl Lent ===

impl<T> Lent<T> {
    /// Lends a value.
    pub(super) fn new(value: T, home: Home<T>) -> Self {
        Self {
            value: Some(value),
            home,
        }
    }
}

impl<T> Deref for Lent<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("a value that is lent")
    }
}

impl<T> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("a value that is lent")
    }
}

impl<T> Drop for Lent<T> {
    fn drop(&mut self) {
        if let Some(value) = self.value.take() {
            self.home.put(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lent_value_comes_back_also_after_a_panic() {
        let home = Home::new();
        drop(Lent::new(1, home.clone()));
        assert_eq!((home.take(), home.take()), (Some(1), None));
        let lent = Lent::new(2, home.clone());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
            assert_eq!(*lent, 3, "a panic");
        }));
        assert!(panicked.is_err());
        assert_eq!(home.take(), Some(2));
    }
}
