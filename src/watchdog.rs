//! A watchdog: names the page that takes too long.
//!
//! What a page may cost is counted in steps and bytes, so that the same page gives the same result on
//! every machine. These counts cannot know each slow case of a parser or of the engine of JavaScript.
//! So a process that reads documentation of strangers watches the time too. A page that is over the
//! limit ends the process, and the author learns which page it was. A clock only ends a build; it never
//! changes what a build makes.
//!
//! ```text
//!  thread that reads ──working_on──▶ list of pages ◀──each second── thread of the watchdog
//! ```
//!
//! The watchdog counts its own seconds and reads no clock: a machine that sleeps meanwhile does not
//! make a page late.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// How often the watchdog counts.
const INTERVAL: Duration = Duration::from_secs(1);

/// The pages that this process works on.
static PAGES: Mutex<Pages> = Mutex::new(Pages {
    next: 0,
    pages: Vec::new(),
});

/// Pages, in the order in which their work began.
#[derive(Debug)]
struct Pages {
    /// The number of the next page.
    next: u64,
    pages: Vec<Page>,
}

#[derive(Debug)]
struct Page {
    number: u64,
    name: Box<str>,
    /// How many intervals the work takes already.
    intervals: u64,
}

/// The work on a page, until it is dropped.
#[derive(Debug)]
#[must_use = "the work ends when this is dropped"]
pub struct Working {
    number: u64,
}

/// Says that this thread works on a page.
pub fn working_on(name: &str) -> Working {
    with(|pages| pages.begin(name))
}

/// Starts a thread that reports the first page whose work takes longer than a limit of whole seconds.
///
/// # Errors
///
/// The system has no thread for it.
pub fn start(limit: Duration, report: impl FnOnce(&str) + Send + 'static) -> io::Result<()> {
    let intervals = limit.as_secs();
    let watch = move || {
        loop {
            thread::sleep(INTERVAL);
            if let Some(name) = with(|pages| pages.count(intervals)) {
                return report(&name);
            }
        }
    };
    thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(watch)?;
    Ok(())
}

fn with<T>(act: impl FnOnce(&mut Pages) -> T) -> T {
    act(&mut PAGES.lock().unwrap_or_else(PoisonError::into_inner))
}

// === impl Pages ===

impl Pages {
    fn begin(&mut self, name: &str) -> Working {
        let number = self.next;
        self.next += 1;
        self.pages.push(Page {
            number,
            name: name.into(),
            intervals: 0,
        });
        Working { number }
    }

    fn end(&mut self, number: u64) {
        self.pages.retain(|page| page.number != number);
    }

    /// Counts one interval for each page; returns the first page that is over the limit.
    fn count(&mut self, limit: u64) -> Option<Box<str>> {
        for page in &mut self.pages {
            page.intervals += 1;
        }
        let late = self.pages.iter().find(|page| page.intervals > limit)?;
        Some(late.name.clone())
    }
}

// === impl Working ===

impl Drop for Working {
    fn drop(&mut self) {
        with(|pages| pages.end(self.number));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_page_is_late_when_its_own_work_is_over_the_limit() {
        let mut pages = Pages {
            next: 0,
            pages: Vec::new(),
        };
        let begin = |pages: &mut Pages, name| {
            // Dropping the value would remove a page from the list of the whole process. This test has
            // its own list.
            std::mem::ManuallyDrop::new(pages.begin(name)).number
        };
        let first = begin(&mut pages, "first");
        assert_eq!(pages.count(2), None);
        begin(&mut pages, "second");
        assert_eq!(pages.count(2), None);
        pages.end(first);
        assert_eq!(pages.count(2), None, "the first one has ended");
        assert_eq!(pages.count(2).as_deref(), Some("second"));
    }

    #[test]
    fn the_page_that_takes_too_long_is_reported() {
        let (send, receive) = mpsc::channel();
        let working = working_on("a page of this test");
        start(Duration::ZERO, move |name| {
            let _received = send.send(name.to_owned());
        })
        .unwrap();
        // Tests of other pages may run at the same time, and be late too.
        assert!(receive.recv_timeout(Duration::from_secs(20)).is_ok());
        drop(working);
        assert!(with(|pages| !pages
            .pages
            .iter()
            .any(|page| &*page.name == "a page of this test")));
    }
}
