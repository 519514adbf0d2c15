//! The kind of content of a response, which the numbers of a site count.

/// The kind of content of a response, for the numbers of a site. It is not sent. The path of the
/// request says which page, list or skill it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The HTML of a page.
    Html,
    /// The Markdown of a page.
    Markdown,
    /// A list of pages for agents.
    List,
    /// The entry of a site's skills.
    Entry,
    /// The manifest of skills.
    Manifest,
    /// The legacy index of skills.
    Legacy,
    /// The agent card.
    Card,
    /// The file of a skill.
    Skill,
}
