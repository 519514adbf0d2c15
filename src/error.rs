//! Errors as text.

use std::iter::successors;

/// Joins an error and its sources into one line, with `: ` between them. A source with which the
/// text ends already is left out: the errors of some libraries contain their sources.
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
        let source = source.to_string();
        match text.ends_with(&source) {
            true => text,
            false => format!("{text}: {source}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("write the object: {0}")]
    struct Repeating(#[source] io::Error);

    #[test]
    fn a_cause_that_an_error_repeats_is_there_once() {
        let error = Repeating(io::Error::other(Repeating(io::Error::other("no network"))));
        assert_eq!(
            chain(&error),
            "write the object: write the object: no network"
        );
    }
}
