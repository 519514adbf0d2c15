//! Patterns of redirects: which paths a source matches.
//!
//! A source is a path whose segments may be `:name` (one segment), `:name*` or `*` (the rest
//! of the path, possibly empty), or hold one `*` (`beta-*`: any text within the segment). Paths
//! and sources have no slash at either end.

/// The variable segments of a source and their values in one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captures<'p>(Vec<(&'p str, &'p str)>);

/// Returns whether a source can match more than one path.
#[must_use]
pub fn is_pattern(source: &str) -> bool {
    source.contains('*') || source.split('/').any(|segment| segment.starts_with(':'))
}

/// Matches a path with a source; returns `None` if they do not match.
///
/// ```
/// use waypost::site::redirect::captures;
///
/// let captures = captures("old/:page*", "old/a/b").unwrap();
/// assert_eq!(captures.fill("/new/:page*"), "/new/a/b");
/// ```
#[must_use]
pub fn captures<'p>(source: &'p str, path: &'p str) -> Option<Captures<'p>> {
    let mut found = Vec::new();
    let mut rest = Some(path);
    for segment in source.split('/') {
        if segment.ends_with('*') && (segment.len() == 1 || segment.starts_with(':')) {
            found.push((segment, rest.unwrap_or_default()));
            return Some(Captures(found));
        }
        let (part, after) = match rest?.split_once('/') {
            Some((part, after)) => (part, Some(after)),
            None => (rest?, None),
        };
        rest = after;
        match segment.split_once('*') {
            Some((before, after)) => {
                let inside = part.strip_prefix(before)?.strip_suffix(after)?;
                found.push(("*", inside));
            }
            None if segment.starts_with(':') && !part.is_empty() => found.push((segment, part)),
            None if segment == part => {}
            None => return None,
        }
    }
    rest.is_none().then_some(Captures(found))
}

// === impl Captures ===

impl Captures<'_> {
    /// Returns a destination in which the captured values replace the names.
    #[must_use]
    pub fn fill(&self, destination: &str) -> String {
        let segment = |segment: &str| {
            let found = self.0.iter().find(|(name, _)| *name == segment);
            found.map_or_else(|| segment.to_owned(), |(_, value)| (*value).to_owned())
        };
        let filled: Vec<String> = destination.split('/').map(segment).collect();
        filled.join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_matches_the_paths_of_its_segments() {
        for (source, path, expected) in [
            ("a/:x", "a/b", true),
            ("a/:x", "a/b/c", false),
            ("a/:x", "a/", false),
            ("a/:x*", "a/b/c", true),
            ("a/:x*", "a", true),
            ("a/*", "a/b", true),
            ("a/b-*", "a/b-1", true),
            ("a/b*b", "a/b", false),
            ("a", "a", true),
            ("a", "b", false),
            ("a", "a/b", false),
        ] {
            assert_eq!(
                captures(source, path).is_some(),
                expected,
                "{source} {path}"
            );
        }
    }

    #[test]
    fn captured_segments_fill_the_destination() {
        let to = |source: &str, destination: &str, path: &str| {
            captures(source, path).map(|captures| captures.fill(destination))
        };
        let two = |path| to("a/:x/c/*", "/z/*/:x", path);
        assert_eq!(two("a/1/c/2/3").as_deref(), Some("/z/2/3/1"));
        assert_eq!(two("a/1/d/2"), None);
        assert_eq!(two("a"), None);
        assert_eq!(to("beta-*", "/v2-*", "beta-x").as_deref(), Some("/v2-*"));
    }
}
