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
            .markup("</h1>\n");
        writer.question(SEARCH_QUERY_PLACEHOLDER);
        writer
            .out
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

// === impl PageWriter ===

impl PageWriter<'_> {
    /// Writes a form that asks the search.
    pub(super) fn question(&mut self, value: &str) {
        let messages = self.messages;
        let action = self.start.to(SEARCH);
        self.out
            .markup("<form role=search class=asked")
            .attribute("action", &action)
            .markup("><input type=search name=q maxlength=200")
            .attribute("aria-label", messages.search)
            .attribute("value", value)
            .markup(">");
        if self.beside.is_some() {
            let language = self.layout.language_tag(self.beside);
            self.out
                .markup("<input type=hidden name=language")
                .attribute("value", language)
                .markup(">");
        }
        self.out
            .markup("<button>")
            .text(messages.search)
            .markup("</button></form>\n");
    }
}
