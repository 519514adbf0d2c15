//! Patterns of redirects: which paths a source matches.
//!
//! A source is a path whose segments may be `:name` (one segment), `:name*` or `*` (the rest
//! of the path, possibly empty), or hold one `*` (`beta-*`: any text within the segment). Paths
//! and sources have no slash at either end.
//!
//! [`Patterns`] finds the source for a path among thousands. Sources without variable segments
//! are in a map. The others are grouped by their *shape*: which of their segments are variable.
//! The literal segments of all sources of one shape are the keys of a map, so a path needs one
//! lookup for each shape. The number of shapes, and the length of a source, are limited: the cost
//! of a request for a path that does not exist does not grow with the number of redirects.

use std::collections::HashMap;

use super::percent::{encode, encode_component};

/// The characters that end a name in a destination.
pub const NAME_ENDS: [char; 5] = ['/', '?', '#', '&', '='];
/// How many segments a source may have.
pub const SEGMENTS_MAX: usize = 32;
/// How long a source may be, in bytes.
pub const SOURCE_BYTES_MAX: usize = 1024;
/// How long a destination may be, in bytes.
pub const DESTINATION_BYTES_MAX: usize = 4096;
/// How many different shapes the sources of a site may have.
pub const SHAPES_MAX: usize = 128;

/// The variable segments of a source and their values in one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captures<'p>(Vec<(&'p str, &'p str)>);

/// The sources of a site, numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns {
    exact: HashMap<Box<str>, usize>,
    /// In the order of their first sources.
    shapes: Vec<Sources>,
}

/// The sources of one shape.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sources {
    shape: Shape,
    first: usize,
    /// Sources by their literal segments, each with a slash behind it. If sources are equal, the
    /// first one is used.
    literals: HashMap<Box<str>, usize>,
}

/// Which segments of a source are variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    segments: Box<[Segment]>,
    /// Whether the source ends with the rest of the path.
    has_rest: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Segment {
    Literal,
    /// One segment that is not empty.
    Any,
    /// A segment with this beginning and this end.
    Between(Box<str>, Box<str>),
}

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
        if is_rest(segment) {
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

// === impl Patterns ===

impl Patterns {
    /// Collects sources. Sources beyond the limits match nothing.
    #[must_use]
    pub fn new<'s>(sources: impl IntoIterator<Item = &'s str>) -> Self {
        let mut patterns = Self::default();
        let mut numbers: HashMap<Shape, usize> = HashMap::new();
        for (number, source) in sources.into_iter().enumerate() {
            let source = source.trim_matches('/');
            if source.len() > SOURCE_BYTES_MAX {
                continue;
            }
            patterns.exact.entry(source.into()).or_insert(number);
            if !is_pattern(source) {
                continue;
            }
            let (shape, literals) = Shape::of(source);
            if shape.segments.len() > SEGMENTS_MAX {
                continue;
            }
            let shapes = &mut patterns.shapes;
            let at = match numbers.get(&shape) {
                Some(at) => *at,
                None if shapes.len() == SHAPES_MAX => continue,
                None => {
                    numbers.insert(shape.clone(), shapes.len());
                    shapes.push(Sources {
                        shape,
                        first: number,
                        literals: HashMap::new(),
                    });
                    shapes.len() - 1
                }
            };
            shapes[at].literals.entry(literals.into()).or_insert(number);
        }
        patterns
    }

    /// Returns the number of the source for a path: the source that is equal to it, else the
    /// first that matches it.
    ///
    /// ```
    /// use waypost::site::redirect::Patterns;
    ///
    /// let patterns = Patterns::new(["/a/:x", "/a/*", "/a/b"]);
    /// assert_eq!(patterns.find("a/b"), Some(2));
    /// assert_eq!(patterns.find("a/c"), Some(0));
    /// assert_eq!(patterns.find("a/c/d"), Some(1));
    /// assert_eq!(patterns.find("b"), None);
    /// ```
    #[must_use]
    pub fn find(&self, path: &str) -> Option<usize> {
        if let Some(exact) = self.exact.get(path) {
            return Some(*exact);
        }
        // One more than any source has shows that the path is longer.
        let segments: Vec<&str> = path.splitn(SEGMENTS_MAX + 1, '/').collect();
        let mut literals = String::new();
        let mut best: Option<usize> = None;
        for sources in &self.shapes {
            if best.is_some_and(|best| best < sources.first) {
                break;
            }
            if sources.shape.literals_of(&segments, &mut literals)
                && let Some(found) = sources.literals.get(literals.as_str())
            {
                best = Some(best.map_or(*found, |best| best.min(*found)));
            }
        }
        best
    }
}

// === impl Shape ===

impl Shape {
    /// Returns the shape of a source, and its literal segments.
    #[must_use]
    pub fn of(source: &str) -> (Self, String) {
        let mut segments = Vec::new();
        let mut literals = String::new();
        let mut has_rest = false;
        for segment in source.trim_matches('/').split('/') {
            if is_rest(segment) {
                has_rest = true;
                break;
            }
            segments.push(match segment.split_once('*') {
                Some((before, after)) => Segment::Between(before.into(), after.into()),
                None if segment.starts_with(':') => Segment::Any,
                None => {
                    literals.push_str(segment);
                    literals.push('/');
                    Segment::Literal
                }
            });
        }
        let segments = segments.into();
        (Self { segments, has_rest }, literals)
    }

    /// Collects the segments of a path that are literal in this shape. Returns whether the path
    /// can match.
    fn literals_of(&self, path: &[&str], literals: &mut String) -> bool {
        literals.clear();
        let fits = match self.has_rest {
            true => path.len() >= self.segments.len(),
            false => path.len() == self.segments.len(),
        };
        fits && self
            .segments
            .iter()
            .zip(path)
            .all(|(segment, part)| match segment {
                Segment::Literal => {
                    literals.push_str(part);
                    literals.push('/');
                    literals.len() <= SOURCE_BYTES_MAX
                }
                Segment::Any => !part.is_empty(),
                Segment::Between(before, after) => part
                    .strip_prefix(&**before)
                    .is_some_and(|rest| rest.ends_with(&**after)),
            })
    }
}

/// Returns whether a segment of a source matches the rest of the path.
fn is_rest(segment: &str) -> bool {
    segment.ends_with('*') && (segment.len() == 1 || segment.starts_with(':'))
}

// === impl Captures ===

impl Captures<'_> {
    /// Returns a destination in which the captured values replace the names. A name begins at the
    /// start of a segment, or of a value in the query or the fragment; `*` may be a part of a segment.
    ///
    /// The path was decoded, and a destination is written as in a URL, so the values are encoded
    /// (RFC 3986 §2.4: nothing is decoded twice).
    #[must_use]
    pub fn fill(&self, destination: &str) -> String {
        let mut filled = String::with_capacity(destination.len());
        let mut is_query = false;
        for piece in destination.split_inclusive(NAME_ENDS) {
            let (part, end) = match piece.char_indices().next_back() {
                Some((at, last)) if NAME_ENDS.contains(&last) => piece.split_at(at),
                _ => (piece, ""),
            };
            match self.value_of(part) {
                Some((before, value, after)) => {
                    let value = if is_query {
                        encode_component(value)
                    } else {
                        encode(value)
                    };
                    filled.extend([before, &*value, after]);
                }
                None => filled.push_str(part),
            }
            filled.push_str(end);
            is_query = is_query && end != "#" || end == "?";
        }
        filled
    }

    /// Returns the value that replaces a part of a destination, and what stays around it.
    fn value_of<'d>(&self, part: &'d str) -> Option<(&'d str, &str, &'d str)> {
        let value = |is_wanted: &dyn Fn(&str) -> bool| {
            let found = self.0.iter().find(|(name, _)| is_wanted(name));
            found.map(|(_, value)| *value)
        };
        if let Some(name) = name_of(part) {
            return Some(("", value(&|known| name_of(known) == Some(name))?, ""));
        }
        let (before, after) = part.split_once('*')?;
        Some((before, value(&|known| known == "*")?, after))
    }
}

/// Returns the name of a variable segment, such as `slug` of `:slug*`.
#[must_use]
pub fn name_of(segment: &str) -> Option<&str> {
    let name = segment.strip_prefix(':')?.trim_end_matches(['*', '+', '?']);
    (!name.is_empty()).then_some(name)
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

    /// Sources of every kind, and paths that match some of them.
    const SOURCES: [&str; 14] = [
        "a/:x",
        "a/:x*",
        "a/*",
        "a/b-*",
        "a/b*b",
        "a",
        "b/:x/c/:y",
        "b/:x/*",
        ":x/b",
        ":x",
        "*",
        "b/*/c",
        "c/:x",
        "c/d",
    ];
    const PATHS: [&str; 18] = [
        "", "a", "a/", "a/b", "a/b/c", "a/b-1", "a/bb", "a/b", "b/1/c/2", "b/1/c", "b//c/2", "x/b",
        "x", "c/d", "c/e", "c/e/f", "a//", "b/x/c",
    ];

    #[test]
    fn the_source_that_is_found_is_the_first_that_matches() {
        // Every rotation, so that each source is the first once.
        for shift in 0..SOURCES.len() {
            let mut sources = SOURCES;
            sources.rotate_left(shift);
            let patterns = Patterns::new(sources);
            for path in PATHS {
                let exact = sources.iter().position(|source| *source == path);
                let first = || {
                    sources
                        .iter()
                        .position(|source| captures(source, path).is_some())
                };
                assert_eq!(
                    patterns.find(path),
                    exact.or_else(first),
                    "{path} {sources:?}"
                );
            }
        }
    }

    #[test]
    fn thousands_of_long_sources_are_not_tried_one_by_one() {
        let long = "a/".repeat(SEGMENTS_MAX - 2);
        let sources: Vec<String> = (0..20_000).map(|n| format!("{long}:x/{n}")).collect();
        let patterns = Patterns::new(sources.iter().map(String::as_str));
        assert_eq!(patterns.shapes.len(), 1);
        assert_eq!(patterns.find(&format!("{long}y/19999")), Some(19_999));
        assert_eq!(patterns.find(&format!("{long}y/20000")), None);
    }

    #[test]
    fn sources_beyond_the_limits_match_nothing() {
        let segments = "a/".repeat(SEGMENTS_MAX) + ":x/b";
        let bytes = "a".repeat(SOURCE_BYTES_MAX) + "/:x";
        let mut sources = vec![segments.clone(), bytes.clone()];
        sources.extend((0..=SHAPES_MAX).map(|n| format!("{n}-*")));
        let patterns = Patterns::new(sources.iter().map(String::as_str));
        assert_eq!(patterns.find(&segments.replace(":x", "y")), None);
        assert_eq!(patterns.find(&bytes.replace(":x", "y")), None);
        assert_eq!(
            patterns.find(&format!("{}-x", SHAPES_MAX - 1)),
            Some(2 + SHAPES_MAX - 1)
        );
        assert_eq!(patterns.find(&format!("{SHAPES_MAX}-x")), None);
    }

    #[test]
    fn a_source_of_the_longest_length_matches_paths_of_its_length_only() {
        let source = "a/".repeat(SEGMENTS_MAX - 1) + ":x";
        let patterns = Patterns::new([source.as_str()]);
        let path = source.replace(":x", "y");
        assert_eq!(patterns.find(&path), Some(0));
        assert_eq!(patterns.find(&format!("{path}/z")), None);
        let bytes = "a".repeat(SOURCE_BYTES_MAX);
        assert_eq!(Patterns::new([bytes.as_str()]).find(&bytes), Some(0));
        let bytes = bytes + "a";
        assert_eq!(Patterns::new([bytes.as_str()]).find(&bytes), None);
    }

    #[test]
    fn a_captured_value_is_encoded_once() {
        let captures = captures("docs/:slug*", "docs/%2Fevil.example/a b?").unwrap();
        assert_eq!(captures.fill("/:slug*"), "/%252Fevil.example/a%20b%3F");
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
        for (source, destination, filled) in [
            ("beta-:x", "/a", None),
            ("beta-*", "/v2-*", Some("/v2-b c")),
            ("beta-*", "/v2", Some("/v2")),
        ] {
            let filled = filled.map(|filled| filled.replace(' ', "%20"));
            assert_eq!(to(source, destination, "beta-b c"), filled, "{source}");
        }
        for (source, destination, filled) in [
            ("o/:s", "/new/:s?from=old", "/new/a&b?from=old"),
            ("o/:s", "/new?s=:s&t=1#:s", "/new?s=a%26b&t=1#a&b"),
            ("o/:s*", "/n/:s", "/n/a&b"),
            ("o/:s", "/n/:s*", "/n/a&b"),
            ("o/:s", "/n/a:s", "/n/a:s"),
        ] {
            assert_eq!(to(source, destination, "o/a&b").as_deref(), Some(filled));
        }
    }
}
