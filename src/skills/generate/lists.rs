//! The lists of pages that the site serves: `llms.txt`, or the parts that it names.
//!
//! A long `llms.txt` names a list for each part of the site, and no pages. A skill then leads to the
//! list that holds the pages.

use std::collections::HashSet;

use crate::docs::navigation::tree::PageId;

use super::outline::Outline;
use super::text::plain;

/// How many lists are named.
const NAMED_MAX: usize = 10;

/// A list of pages that `llms.txt` names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageList {
    /// Its title: the label of the part of the navigation.
    pub title: String,
    /// Its path below the base URL of the site.
    pub path: String,
    /// Its pages.
    pub pages: HashSet<PageId>,
}

// === impl Outline ===

impl Outline {
    /// Returns words that follow "in": where the list of all pages is.
    pub(super) fn all_pages(&self, base_url: &str) -> String {
        let main = format!("[llms.txt]({base_url}/llms.txt)");
        match self.lists.is_empty() {
            true => main,
            false => format!("the lists that {main} names"),
        }
    }

    /// Returns links to the lists that hold these pages.
    pub(super) fn lists_of(&self, pages: &[PageId], base_url: &str) -> String {
        let holds = |list: &&PageList| pages.iter().any(|id| list.pages.contains(id));
        let found = self.lists.iter().filter(holds);
        let links: Vec<String> = found.map(|list| list.link(&list.path, base_url)).collect();
        match links.is_empty() || links.len() > NAMED_MAX {
            true => self.all_pages(base_url),
            false => links.join(", "),
        }
    }

    /// Names the list of each part; `None` if one list has all pages.
    pub(super) fn named_lists(&self, base_url: &str) -> Option<String> {
        let shown = self.lists.iter().take(NAMED_MAX);
        let links = shown.map(|list| list.link(&plain(&list.title), base_url));
        let links = links.collect::<Vec<_>>().join(", ");
        let more = match self.lists.len().saturating_sub(NAMED_MAX) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        (!links.is_empty()).then(|| format!("{links}{more}"))
    }
}

// === impl PageList ===

impl PageList {
    fn link(&self, words: &str, base_url: &str) -> String {
        format!("[{words}]({base_url}/{})", self.path)
    }
}
