//! Panics are events: each is logged with its backtrace and counted.
//!
//! A panic in a request ends that request. A panic in work that others need, such as the thread
//! that loads releases, ends the process, so that its supervisor starts it again. Otherwise it
//! would serve old sites for ever, without an error. Such work is started with
//! [`essential_thread`] or [`essential`].
//!
//! One panic is not an event: that of a library which panics on some texts of authors. Such a
//! library is called with [`without_report`].

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;
use std::thread::JoinHandle;

use futures_util::FutureExt as _;
use prometheus::IntCounter;

/// The exit code of a process that a panic has ended; a panic of the main thread has the same.
pub const EXIT_CODE: i32 = 101;

/// Logs and counts every panic of the process from now on.
pub fn report(count: IntCounter) {
    std::panic::set_hook(Box::new(move |panic| {
        count.inc();
        log_panic(panic);
    }));
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let name = thread.name().unwrap_or("unnamed");
    let message = message(panic.payload());
    let place = panic
        .location()
        .map_or_else(String::new, ToString::to_string);
    let backtrace = Backtrace::force_capture();
    log::error!(
        target: "panic", thread = name, place = place.as_str(), backtrace:%;
        "a panic in the thread `{name}` at {place}: {message}"
    );
}

thread_local! {
    /// Whether this thread runs work whose panics are not reported.
    static IS_SILENT: Cell<bool> = const { Cell::new(false) };
}

/// Runs work that may panic because of its input, on this thread; a panic gives `None`, and is
/// neither logged nor counted. The work must not leave anything half changed.
pub fn without_report<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !IS_SILENT.get() {
                report(panic);
            }
        }));
    });
    IS_SILENT.set(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_SILENT.set(false);
    done.ok()
}

/// Returns the text of a panic.
#[must_use]
pub fn message(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("(no text)")
}

/// Starts a thread that others need: if it panics, the process ends with [`EXIT_CODE`].
///
/// # Errors
///
/// When the system starts no more threads.
pub fn essential_thread(
    name: &'static str,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            if catch_unwind(AssertUnwindSafe(work)).is_err() {
                end(name);
            }
        })
}

/// Runs work that others need: if it panics, the process ends with [`EXIT_CODE`].
pub async fn essential<T>(name: &'static str, work: impl Future<Output = T>) -> T {
    match caught(work).await {
        Ok(done) => done,
        Err(_panic) => end(name),
    }
}

/// Ends the process after a panic that left something unusable, which `name` names.
pub fn end(name: &str) -> ! {
    log::error!(
        target: "panic", name;
        "`{name}` cannot continue after a panic; this process ends, so that it is started again"
    );
    log::logger().flush();
    std::process::exit(EXIT_CODE)
}

/// Runs a future; a panic in it becomes an error, and does not go further.
///
/// After a panic, values that the future borrowed may be half changed; the caller drops them.
///
/// # Errors
///
/// The panic.
///
/// It is not an `async fn`: that would have the memory of the future twice.
pub fn caught<T>(work: impl Future<Output = T>) -> impl Future<Output = std::thread::Result<T>> {
    AssertUnwindSafe(work).catch_unwind()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::logging;

    #[tokio::test]
    async fn a_panic_in_a_future_is_an_error_also_after_it_has_waited() {
        assert_eq!(caught(async { 7 }).await.unwrap(), 7);
        let late = caught(async {
            tokio::task::yield_now().await;
            panic!("{}", "late")
        });
        let panic: Box<dyn std::any::Any + Send> = late.await.unwrap_err();
        assert_eq!(message(&*panic), "late");
    }

    /// Runs in a process of its own, whose panics are reported.
    #[test]
    fn a_panic_is_logged_with_its_backtrace_and_counted() {
        const CHILD: &str = "WAYPOST_TEST_REPORT";
        const NAME: &str =
            "telemetry::panics::tests::a_panic_is_logged_with_its_backtrace_and_counted";
        if std::env::var_os(CHILD).is_some() {
            let config = logging::Config {
                format: logging::Format::Json,
                ..logging::Config::default()
            };
            logging::start(&config).unwrap();
            let count = IntCounter::new("panics", "Panics.").unwrap();
            report(count.clone());
            let thread = std::thread::Builder::new().name("tester".to_owned());
            let thread = thread.spawn(|| panic!("broken")).unwrap();
            assert!(thread.join().is_err());
            assert!(without_report(|| panic!("of a text")).is_none());
            std::process::exit(i32::try_from(count.get()).unwrap());
        }
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let lines = String::from_utf8(output.stderr).unwrap();
        assert!(!lines.contains("of a text"), "{lines}");
        let line = lines.lines().find(|line| line.contains("a panic in"));
        let line: serde_json::Value = serde_json::from_str(line.unwrap()).unwrap();
        assert_eq!(
            (&line["level"], &line["thread"]),
            (&"error".into(), &"tester".into())
        );
        assert!(
            line["message"].as_str().unwrap().ends_with(": broken"),
            "{line}"
        );
        assert!(
            line["backtrace"]
                .as_str()
                .unwrap()
                .contains("panics::tests"),
            "{line}"
        );
    }

    /// Runs in a process of its own, which it ends.
    #[test]
    fn an_essential_thread_that_panics_ends_the_process() {
        const CHILD: &str = "WAYPOST_TEST_ESSENTIAL";
        const NAME: &str =
            "telemetry::panics::tests::an_essential_thread_that_panics_ends_the_process";
        if std::env::var_os(CHILD).is_some() {
            let thread = essential_thread("reload", || panic!("broken")).unwrap();
            let _never = thread.join();
            std::process::exit(0);
        }
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", NAME, "--nocapture"])
            .env(CHILD, "1")
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(EXIT_CODE));
    }
}
