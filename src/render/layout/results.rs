//! The page of search results, for browsers without scripts.
//!
//! It is a file of the release, one for each language, into which the origin inserts the question
//! and the results.

use std::collections::BTreeMap;

use super::{Layout, Mode, PageWriter};
use crate::docs::navigation::tree::PageId;
use crate::release::site::{
    SEARCH, SEARCH_QUERY_PLACEHOLDER, SEARCH_RESULTS_END, SEARCH_RESULTS_START,
};

// === impl Layout ===

impl<'d> Layout<'d> {
    /// Returns the languages of the listed pages, each with its first page.
    #[must_use]
    pub fn languages(&self) -> BTreeMap<&'d str, PageId> {
        let mut languages = BTreeMap::new();
        for (id, page) in self.navigation().pages() {
            if page.is_listed() {
                languages.entry(self.language_tag(Some(id))).or_insert(id);
            }
        }
        languages
    }

    /// Writes the page of results with the language and sidebar of the page `beside`, or else of
    /// the first page of the site. Its links begin with the placeholder of the base path.
    #[must_use]
    pub fn results(&self, beside: Option<PageId>) -> String {
        let mut writer = PageWriter::anywhere(self, beside);
        let messages = writer.messages;
        writer.head(messages.search, None, false);
        writer.top(true);
        writer.out.markup(Mode::Wide.columns());
        writer.sidebar(true);
        writer
            .out
            .markup("<main id=_content><article class=found><h1>")
            .text(messages.search)
            .markup("</h1>\n<form role=search class=asked");
        let action = writer.start.to(SEARCH);
        writer.out.attribute("action", &action);
        writer
            .out
            .markup("><input type=search name=q maxlength=200");
        writer
            .out
            .attribute("aria-label", messages.search)
            .attribute("value", SEARCH_QUERY_PLACEHOLDER)
            .markup(">");
        if beside.is_some() {
            writer.out.markup("<input type=hidden name=language");
            writer
                .out
                .attribute("value", self.language_tag(beside))
                .markup(">");
        }
        writer
            .out
            .markup("<button>")
            .text(messages.search)
            .markup("</button></form>\n")
            .markup(SEARCH_RESULTS_START)
            .text(messages.script.nothing_found)
            .text(". ")
            .text(messages.script.search_help)
            .markup("|")
            .text(messages.next)
            .markup(SEARCH_RESULTS_END)
            .markup("</article></main></div>\n");
        writer.bottom();
        writer.out.into_string()
    }
}
