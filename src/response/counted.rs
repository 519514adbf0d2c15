//! The kind of content of a response, which the numbers of a site count.

/// The kind of content of a response, for the numbers of a site. It is not sent. The path of the
/// request says which page or file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The HTML of a page.
    Html,
    /// The Markdown of a page.
    Markdown,
    /// A list of pages for agents.
    List,
    /// A document of discovery.
    Document,
}
