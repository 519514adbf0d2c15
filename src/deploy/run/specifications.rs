//! The process that fetches the OpenAPI specifications that documentation names by URL.
//!
//! The process of the build has no network. It asks the parent, which starts this one.

use std::fs;

use super::child::Parent;
use super::job::{Event, SpecificationsJob, Stopped};
use crate::error::chain;
use crate::source::remote;

/// Fetches specifications and writes them to a file of the workspace.
///
/// A failure that the author must correct is in the file, and becomes an error of the build. A
/// failure of the network ends this attempt, if the job says so.
pub(super) fn fetch(job: &SpecificationsJob, parent: &mut Parent<'_>) {
    let fetched = remote::fetch(&job.config, &job.urls);
    for (url, file) in fetched.iter() {
        match file {
            Ok(bytes) => {
                let line = format!("read: {url}: {} bytes", bytes.len());
                parent.report(Event::Line(line));
            }
            Err(error) if error.is_transient() && job.stops => {
                let why = chain(error);
                return parent.report(Event::Stopped(Stopped {
                    summary: format!("the specification {url} could not be fetched: {why}"),
                    transient: true,
                }));
            }
            Err(_) => {}
        }
    }
    let last = match fs::write(&job.output, fetched.to_bytes()) {
        Ok(()) => Event::Done,
        Err(error) => Event::Stopped(Stopped::of_machine("write specifications", &error)),
    };
    parent.report(last);
}
