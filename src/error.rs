//! Errors as text.

use std::iter::successors;

/// Joins an error and its sources into one line, with `: ` between them.
///
/// ```
/// use std::io;
///
/// #[derive(Debug, thiserror::Error)]
/// #[error("read the list")]
/// struct ReadError(#[source] io::Error);
///
/// let error = ReadError(io::Error::other("disk is on fire"));
/// assert_eq!(waypost::error::chain(&error), "read the list: disk is on fire");
/// ```
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let sources = successors(error.source(), |error| error.source());
    sources.fold(error.to_string(), |text, source| {
        format!("{text}: {source}")
    })
}
