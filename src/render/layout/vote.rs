//! The question below an article: was this page helpful?
//!
//! It is a form, so it works without scripts: the answer leads back to the page, with the thanks as
//! the target of its address.

use super::PageWriter;
use crate::release::site::{HELPFUL, THANKED};

// === impl PageWriter ===

impl PageWriter<'_> {
    /// Asks whether the page was helpful, if `feedback.thumbs` says so.
    pub(super) fn vote(&mut self) {
        if !self.layout.config().feedback.thumbs || self.id.is_none() {
            return;
        }
        let action = self.start.to(HELPFUL);
        self.out
            .markup("<form class=helpful method=post aria-labelledby=_helpful")
            .attribute("action", &action)
            .markup("><input type=hidden name=page")
            .attribute("value", self.path)
            .markup("><p id=_helpful>")
            .text(self.messages.helpful)
            .markup("</p>");
        for (vote, word) in [("yes", self.messages.yes), ("no", self.messages.no)] {
            self.out
                .markup("<button name=vote")
                .attribute("value", vote)
                .markup(">")
                .text(word)
                .markup("</button>");
        }
        self.out
            .markup("</form>\n<p role=status tabindex=-1")
            .attribute("id", THANKED)
            .markup(">")
            .text(self.messages.thanks)
            .markup("</p>\n");
    }
}
