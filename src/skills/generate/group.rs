//! The code of a page in groups: the same code in several languages or for several tools.

use crate::mdx::{Element, Node};

use super::code::{Block, Kind};
use super::text::{plain, words};
use super::wrong::{self, Verdict};

/// How many calls of each tab are read.
const CALLS_OF_TAB_MAX: usize = 8;

/// The same code in several languages or for several tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group<'d> {
    /// The heading or step above it.
    pub(super) heading: String,
    pub(super) blocks: Vec<Block<'d>>,
    /// The labels of all code beside it, also of code of another kind, but not of output.
    pub(super) labels: Vec<String>,
    pub(super) kind: Kind,
}

// === impl Group ===

impl<'d> Group<'d> {
    fn new(heading: &str, blocks: Vec<Block<'d>>) -> Self {
        let kinds: Vec<Kind> = blocks.iter().map(Block::kind).collect();
        let order = [Kind::Install, Kind::Access, Kind::Call];
        let kind = order.into_iter().find(|kind| kinds.contains(kind));
        let kind = kind.unwrap_or(Kind::Other);
        let all = blocks.iter().zip(&kinds);
        // Code that shows two ways at once is still an alternative.
        let used = all.filter(|(block, kind)| **kind != Kind::Other || block.is_program());
        let labels = used.map(|(block, _)| block.label.clone()).collect();
        let blocks = blocks.into_iter().zip(kinds);
        Self {
            heading: heading.to_owned(),
            labels,
            // Other code of a group, such as output beside a request, is left out.
            blocks: blocks
                .filter(|(_, of)| *of == kind)
                .map(|(block, _)| block)
                .collect(),
            kind,
        }
    }
}

/// Lists the code of a page in order, without samples that the page shows as wrong.
pub(super) fn groups(nodes: &[Node]) -> Vec<Group<'_>> {
    let mut reader = Reader::default();
    reader.nodes(nodes, "");
    reader.found
}

#[derive(Default)]
struct Reader<'d> {
    found: Vec<Group<'d>>,
    heading: String,
    verdict: Verdict,
}

impl<'d> Reader<'d> {
    fn nodes(&mut self, nodes: &'d [Node], label: &str) {
        for node in nodes {
            match node {
                Node::Heading { children, .. } => {
                    self.heading = words(children);
                    self.verdict.heading(&self.heading);
                }
                Node::Paragraph(line) => self.verdict.line(&words(line)),
                Node::Fence { info, code } => {
                    let block = Block::of(info, code, label);
                    if !self.verdict.is_wrong(&block) {
                        self.found.push(Group::new(&self.heading, vec![block]));
                    }
                }
                Node::Element(element) => self.element(element, label),
                node => node.each_children(&mut |children| self.nodes(children, label)),
            }
        }
    }

    fn element(&mut self, element: &'d Element, label: &str) {
        let title = element.text("title").map(plain).unwrap_or_default();
        if wrong::is_wrong(&title) {
            return;
        }
        match &*element.name {
            "CodeGroup" | "RequestExample" => {
                let mut blocks = Vec::new();
                fences(&element.children, label, &mut blocks);
                blocks.retain(|block| !self.verdict.is_wrong(block));
                if !blocks.is_empty() {
                    self.found.push(Group::new(&self.heading, blocks));
                }
            }
            "Tabs" => self.tabs(element),
            "Step" => {
                let outer = std::mem::replace(&mut self.heading, title);
                self.nodes(&element.children, label);
                self.heading = outer;
            }
            "ResponseExample" => {}
            _ => self.nodes(&element.children, label),
        }
    }

    /// Reads tabs: the first code of every tab is one group. There is a group for each call.
    fn tabs(&mut self, tabs: &'d Element) {
        let mut columns: Vec<Vec<Group<'d>>> = Vec::new();
        let mut labels = Vec::new();
        for child in &tabs.children {
            if let Node::Element(tab) = child {
                let title = tab.text("title").map(plain).unwrap_or_default();
                if wrong::is_wrong(&title) {
                    continue;
                }
                let mut inner = Self {
                    found: Vec::new(),
                    heading: self.heading.clone(),
                    verdict: self.verdict,
                };
                inner.nodes(&tab.children, &title);
                for block in inner.found.iter_mut().flat_map(|group| &mut group.blocks) {
                    if block.label.is_empty() {
                        block.label.clone_from(&title);
                    }
                }
                // A tab without code is no alternative of code.
                if inner.found.iter().any(|group| group.kind != Kind::Other) {
                    labels.push(title);
                }
                columns.push(inner.found);
            }
        }
        let calls = (0..CALLS_OF_TAB_MAX).map(|nth| (Kind::Call, nth));
        for (kind, nth) in [(Kind::Install, 0), (Kind::Access, 0)]
            .into_iter()
            .chain(calls)
        {
            let of_row = columns.iter().filter_map(|column| {
                let mut groups = column.iter().filter(|group| group.kind == kind);
                groups.nth(nth)?.blocks.first().cloned()
            });
            let blocks: Vec<Block<'d>> = of_row.collect();
            if !blocks.is_empty() {
                self.found.push(Group {
                    heading: self.heading.clone(),
                    blocks,
                    labels: labels.clone(),
                    kind,
                });
            }
        }
    }
}

fn fences<'d>(nodes: &'d [Node], label: &str, out: &mut Vec<Block<'d>>) {
    for node in nodes {
        match node {
            Node::Fence { info, code } => out.push(Block::of(info, code, label)),
            node => node.each_children(&mut |children| fences(children, label, out)),
        }
    }
}
