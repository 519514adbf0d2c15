//! The mode of a page: how much of the layout it has.

/// Which parts of the layout a page has, by the `mode` of its frontmatter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Sidebar, title, article, list of headings.
    #[default]
    Default,
    /// Without the list of headings.
    Wide,
    /// Without sidebar and list.
    Center,
    /// The article alone, below the header.
    Custom,
    /// The article alone, beside the sidebar.
    Frame,
}

// === impl Mode ===

impl Mode {
    /// Reads the `mode` of a page's frontmatter.
    #[must_use]
    pub fn parse(mode: &str) -> Option<Self> {
        Some(match mode {
            "default" => Self::Default,
            "wide" => Self::Wide,
            "center" => Self::Center,
            "custom" => Self::Custom,
            "frame" => Self::Frame,
            _ => return None,
        })
    }

    /// Returns whether the title of a page is shown above its article. If not, the article has a
    /// heading of the first level itself.
    #[must_use]
    pub fn has_title(self) -> bool {
        matches!(self, Self::Default | Self::Wide | Self::Center)
    }
}
