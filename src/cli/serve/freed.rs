//! Gives freed memory back to the system.
//!
//! The allocator returns memory only while threads allocate. After many connections have closed, an
//! idle process allocates nothing. Without this thread it would keep their memory, which counts
//! against its bound.

use std::time::Duration;

use crate::telemetry::panics;

/// How often freed memory is looked for.
const INTERVAL: Duration = Duration::from_secs(5);

/// Starts the thread. It is never joined: it can be stopped at any point.
///
/// # Errors
///
/// When the system starts no more threads.
pub(super) fn start() -> std::io::Result<()> {
    let work = || loop {
        std::thread::sleep(INTERVAL);
        give_back();
    };
    panics::essential_thread("freed-memory", work).map(drop)
}

#[expect(
    unsafe_code,
    reason = "a function of the allocator, which is written in C"
)]
fn give_back() {
    // SAFETY: it takes no pointer, and any thread may call it at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
