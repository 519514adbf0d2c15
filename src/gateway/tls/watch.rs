//! Watches the directory of certificates.
//!
//! A program that renews certificates replaces several files and links one after the other. So
//! the directory is read only when it has not changed for a short time. It is also read at
//! intervals, because network file systems send no events.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use notify::{RecursiveMode, Watcher as _};

use super::Certificates;
use crate::telemetry::Metrics;

/// The directory is read when it has not changed for this time.
const QUIET_TIME: Duration = Duration::from_millis(200);

/// Reads the directory when it changes, and every `rescan`. It never returns.
pub fn watch(certificates: &Certificates, metrics: &Metrics, rescan: Duration) {
    let (sender, events) = channel();
    let watcher = notify::recommended_watcher(move |event| {
        // The receiver lives as long as this thread does.
        let _closed = sender.send(event);
    });
    // The watcher follows links: ACME clients store the files elsewhere.
    let watcher = watcher.and_then(|mut watcher| {
        watcher.watch(certificates.directory(), RecursiveMode::Recursive)?;
        Ok(watcher)
    });
    if let Err(error) = &watcher {
        log::warn!(target: "tls", "cannot watch {}: {error}", certificates.directory().display());
    }
    loop {
        match events.recv_timeout(rescan) {
            Ok(_) => while events.recv_timeout(QUIET_TIME).is_ok() {},
            Err(RecvTimeoutError::Timeout) => {}
            // Without a watcher, the directory is read at intervals only.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(rescan),
        }
        match certificates.read() {
            Ok(report) => report.record(metrics),
            Err(error) => {
                log::error!(target: "tls", "the previous certificates stay in use: {error}")
            }
        }
    }
}
