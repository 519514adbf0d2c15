//! The entries of a sidebar, written once for all pages of a directory.
//!
//! The sidebar of a page lists the pages around it, on a large site thousands of them. Their links
//! are relative, so pages of one directory have the same entries, except that the link to the page
//! itself is marked and that the groups around it are open. So the entries are written once without
//! both, and each page gets a copy with these insertions. Where they are is known from writing.
//!
//! The copy is also divided into segments, which are compressed once
//! ([`segments`](crate::response::segments)). Where a segment begins depends only on the entries
//! and not on which groups are open, so the same page always has the same segments.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::PageWriter;
use super::shared::Sidebar;
use crate::docs::navigation::tree::{Content, Entry, Group, PageId};
use crate::markup::Html;
use crate::render::icon::EmittedIcons;
use crate::response::segments::{COMMON_BYTES_MIN, Common, SEGMENT_BYTES, Segment};

/// Marks the link to the page itself.
pub(super) const CURRENT: &str = " aria-current=page";
/// Opens a group.
pub(super) const OPEN: &str = " open";

/// The space that is reserved for what follows the entries of a page.
const ARTICLE_BYTES: usize = 64 << 10;

/// The entries of sidebars, as far as pages have asked for them.
#[derive(Debug, Default)]
pub struct Sidebars {
    written: Mutex<HashMap<Key, Arc<OnceLock<Entries>>>>,
}

/// The input of the entries of a sidebar, besides the documentation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    /// The index of the sidebar in the layout.
    sidebar: usize,
    /// The directory of the page, to which links are relative.
    directory: Box<str>,
    /// The icons that the page has before its sidebar.
    icons: EmittedIcons,
}

/// The entries of a sidebar, for any page of a directory.
#[derive(Debug)]
struct Entries {
    common: Arc<Common>,
    /// Whether the text is long enough to be compressed in segments.
    is_long: bool,
    marks: Marks,
    /// The icons of a page after its sidebar.
    icons: EmittedIcons,
}

/// The places of insertions, noted while entries are written.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// Where links to each page are marked.
    links: HashMap<PageId, Vec<usize>>,
    /// Where the groups around each page are opened.
    groups: HashMap<PageId, Vec<usize>>,
    /// Where segments start.
    starts: Vec<usize>,
    /// The length that groups have because they are open on all pages.
    open: usize,
    /// The length without that, at the last start.
    last: usize,
}

/// A page, with the segments in which it is compressed; a page with a short sidebar and without
/// addresses of its own site has none.
#[derive(Debug)]
pub struct SegmentedPage {
    /// The HTML.
    pub html: String,
    /// The segments, which are all of the HTML, in order.
    pub segments: Vec<Segment>,
    /// Whether one of them is stored: the part with addresses of the site.
    pub is_addressed: bool,
}

// === impl Marks ===

impl Marks {
    /// Notes that the link to a page is marked here.
    pub(super) fn link(&mut self, page: PageId, at: usize) {
        self.links.entry(page).or_default().push(at);
    }

    /// Notes that a group is opened here for the pages in it.
    pub(super) fn group(&mut self, group: &Group, at: usize) {
        if let Some(root) = group.root {
            self.groups.entry(root).or_default().push(at);
        }
        for entry in &group.entries {
            match entry {
                Entry::Page(page) => self.groups.entry(*page).or_default().push(at),
                Entry::Group(group) => self.group(group, at),
            }
        }
    }

    /// Notes that a group here is open on all pages.
    pub(super) fn open(&mut self) {
        self.open += OPEN.len();
    }

    /// Starts a segment before an entry, if the one before it is long enough.
    pub(super) fn entry(&mut self, at: usize) {
        let length = at - self.open;
        if at == 0 || length >= self.last + SEGMENT_BYTES {
            self.starts.push(at);
            self.last = length;
        }
    }

    /// Returns the entries that are inserted for a page, in order.
    fn insertions(&self, page: Option<PageId>) -> Vec<(usize, &'static str)> {
        let of = |places: &HashMap<PageId, Vec<usize>>| {
            page.and_then(|page| places.get(&page))
                .cloned()
                .unwrap_or_default()
        };
        let (links, groups) = (of(&self.links).into_iter(), of(&self.groups).into_iter());
        let links = links.map(|at| (at, CURRENT));
        let mut all: Vec<_> = links.chain(groups.map(|at| (at, OPEN))).collect();
        all.sort_unstable();
        // A page may be twice in a group.
        all.dedup();
        all
    }
}

// === impl PageWriter ===

impl PageWriter<'_> {
    /// Writes the groups and pages of a sidebar, from a copy if there is one.
    pub(super) fn sidebar_entries(&mut self, sidebar: &Sidebar<'_>) {
        let (Some(sidebars), Some(id)) = (self.sidebars, self.id) else {
            self.new_entries(sidebar);
            return;
        };
        let directory = self
            .path
            .rsplit_once('/')
            .map_or("", |(directory, _)| directory);
        let key = Key {
            sidebar: self.layout.sidebar_number(Some(id)),
            directory: directory.into(),
            icons: self.emitted_icons.clone(),
        };
        let written = {
            let all = sidebars.written.lock();
            let mut all = all.unwrap_or_else(PoisonError::into_inner);
            Arc::clone(all.entry(key).or_default())
        };
        let entries = written.get_or_init(|| self.entries_of_directory(sidebar));
        self.copy(entries);
    }

    /// Writes the groups and pages of a sidebar.
    fn new_entries(&mut self, sidebar: &Sidebar<'_>) {
        match sidebar.content {
            Some(Content::Groups(groups)) => {
                for group in groups.iter().filter(|group| !group.hidden) {
                    self.top_group(group);
                }
            }
            Some(Content::Entries(entries)) => self.top_entries(entries),
            _ => {}
        }
    }

    /// Writes them for no page in particular.
    fn entries_of_directory(&self, sidebar: &Sidebar<'_>) -> Entries {
        let mut writer = PageWriter {
            id: None,
            sidebars: None,
            marks: Some(Marks::default()),
            segments: Vec::new(),
            form: None,
            emitted_icons: self.emitted_icons.clone(),
            out: Html::default(),
            ..*self
        };
        writer.new_entries(sidebar);
        let mut marks = writer.marks.unwrap_or_default();
        let text = writer.out.into_string();
        if marks.starts.is_empty() {
            marks.starts.push(0);
        }
        Entries {
            is_long: text.len() - marks.open >= COMMON_BYTES_MIN,
            common: Arc::new(Common::new(text, std::mem::take(&mut marks.starts))),
            marks,
            icons: writer.emitted_icons,
        }
    }

    /// Copies entries, with the insertions for this page.
    fn copy(&mut self, entries: &Entries) {
        let insertions = entries.marks.insertions(self.id);
        // With space for the article too, or a long page would be copied several times.
        self.out
            .reserve(entries.common.text().len() + ARTICLE_BYTES);
        let mut left = &insertions[..];
        let mut follows = false;
        if entries.is_long {
            self.segments
                .push(Segment::own(0..self.out.as_str().len(), false));
        }
        let mut is_before_same = true;
        for (index, range) in entries.common.segments().enumerate() {
            let in_segment = left.partition_point(|(at, _)| *at < range.end);
            let (here, rest) = left.split_at(in_segment);
            left = rest;
            let start = self.out.as_str().len();
            self.copy_range(entries, range, here);
            // The text after an insertion of this page alone does not refer to it.
            let is_current = here.iter().any(|(_, what)| *what == CURRENT);
            let is_same = here.is_empty() && (!follows || is_before_same);
            if entries.is_long {
                self.segments.push(Segment {
                    range: start..self.out.as_str().len(),
                    follows,
                    same: is_same.then(|| (Arc::clone(&entries.common), index)),
                    stored: false,
                });
            }
            is_before_same = here.is_empty();
            follows = !is_current;
        }
        self.emitted_icons = entries.icons.clone();
    }

    fn copy_range(
        &mut self,
        entries: &Entries,
        range: Range<usize>,
        insertions: &[(usize, &'static str)],
    ) {
        let text = entries.common.text();
        let mut from = range.start;
        for (at, insertion) in insertions {
            self.out.escaped(&text[from..*at]).markup(insertion);
            from = *at;
        }
        self.out.escaped(&text[from..range.end]);
    }

    /// Returns the page. What follows the sidebar is its last segment.
    pub(super) fn finish(mut self) -> SegmentedPage {
        let html = self.out.into_string();
        if let Some(last) = self.segments.last() {
            self.segments
                .push(Segment::own(last.range.end..html.len(), true));
        }
        if let Some((start, end)) = self.addressed {
            if self.segments.is_empty() {
                self.segments.push(Segment::own(0..html.len(), false));
            }
            // The head is in the first segment. The text after the addresses does not refer to
            // them.
            let first = self.segments[0].range.clone();
            let parts = [
                Segment::own(0..start, false),
                Segment::stored(start..end),
                Segment::own(end..first.end, false),
            ];
            self.segments.splice(..1, parts);
        }
        SegmentedPage {
            html,
            segments: self.segments,
            is_addressed: self.addressed.is_some(),
        }
    }
}
