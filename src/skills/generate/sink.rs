//! Lines that are written within a budget.

/// The longest address of a site with which a generated text keeps its limits, in characters: a build
/// does not know the address.
pub const ADDRESS_CHARACTERS_MAX: usize = 70;

/// The part of its longest size that a section may have, in percent. A large documentation has
/// much of everything, and every section must have its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share(pub(super) usize);

impl Share {
    /// Returns this part of a limit.
    pub(super) fn of(self, max: usize) -> usize {
        max * self.0 / 100
    }

    /// Returns the share of what an agent needs most: it gets smaller last.
    pub(super) fn of_essential(self) -> Self {
        Self((self.0 + 50).min(100))
    }
}

/// The lines of a section, and how many more it may have.
#[derive(Debug)]
pub(super) struct Sink<'b> {
    pub(super) lines: Vec<String>,
    base_url: &'b str,
    lines_left: usize,
    characters_left: usize,
}

// === impl Sink ===

impl<'b> Sink<'b> {
    pub(super) fn new(base_url: &'b str, lines_max: usize, characters_max: usize) -> Self {
        Self {
            lines: Vec::new(),
            base_url,
            lines_left: lines_max,
            characters_left: characters_max,
        }
    }

    /// Adds lines if all of them fit; returns whether they did.
    pub(super) fn add(&mut self, lines: &[String]) -> bool {
        let count: usize = lines.iter().map(|line| line.lines().count().max(1)).sum();
        let cost: usize = lines.iter().map(|line| cost(line, self.base_url)).sum();
        if count > self.lines_left || cost > self.characters_left {
            return false;
        }
        self.lines_left -= count;
        self.characters_left -= cost;
        self.lines.extend_from_slice(lines);
        true
    }

    /// Adds a heading before the lines that follow, or nothing if there are none.
    pub(super) fn add_under(&mut self, heading: &str, lines: Vec<String>) -> bool {
        if lines.is_empty() {
            return false;
        }
        let space = (!self.lines.is_empty()).then(String::new);
        let head = [format!("### {heading}"), String::new()];
        let all: Vec<String> = space.into_iter().chain(head).chain(lines).collect();
        self.add(&all)
    }
}

/// Returns how many characters a line needs if the address of the site is the longest one.
pub(super) fn cost(line: &str, base_url: &str) -> usize {
    let spare = ADDRESS_CHARACTERS_MAX.saturating_sub(base_url.len());
    line.chars().count() + 1 + line.matches(base_url).count() * spare
}
