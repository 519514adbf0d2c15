//! The outline of a documentation: its pages by group, in the default language and version.

use crate::docs::Docs;
use crate::docs::navigation::tree::{
    Content, DivisionKind, Divisions, Entry as Node, Group, Page, PageId,
};
use crate::docs::openapi::{Endpoint, Operation, Specification};
use crate::mdx::Node as MdxNode;
use crate::syntax::Value;

use super::text::{self, plain, short, shorten};

/// The most required values that the line of an endpoint names.
const REQUIRED_NAMED: usize = 6;
/// The label for pages that are in no group.
const UNGROUPED: &str = "Documentation";

/// The pages that the skill uses.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// Groups in the order of the navigation; none is empty.
    pub(super) categories: Vec<Category>,
    /// The label of the default version.
    pub(super) version: Option<Box<str>>,
    /// All versions, the default first.
    pub(super) versions: Vec<Box<str>>,
    /// All languages, the default first.
    pub(super) languages: Vec<Box<str>>,
}

/// A group of pages.
#[derive(Debug)]
pub(super) struct Category {
    /// The label of the tab, product or outermost group that contains it, else its own label.
    pub(super) part: String,
    /// Its label.
    pub(super) label: String,
    /// Its pages.
    pub(super) entries: Vec<Entry>,
}

/// A page of a group.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) page: PageId,
    pub(super) title: String,
}

// === impl Outline ===

impl Outline {
    /// Walks the navigation through its default versions and languages (rule G3).
    pub(super) fn of(docs: &Docs) -> Self {
        let mut outline = Self::default();
        if let Some(content) = &docs.navigation.content {
            outline.content(docs, content, None);
        }
        outline
    }

    fn content(&mut self, docs: &Docs, content: &Content, part: Option<&str>) {
        match content {
            Content::Entries(entries) => self.entries(docs, entries, part, UNGROUPED),
            Content::Groups(groups) => {
                for group in groups {
                    self.group(docs, group, part);
                }
            }
            Content::Divisions(divisions) => self.divisions(docs, divisions, part),
            Content::Link(_) => {}
        }
    }

    fn divisions(&mut self, docs: &Docs, divisions: &Divisions, part: Option<&str>) {
        let default = divisions.list.get(divisions.default);
        let first = default.into_iter();
        let others = divisions
            .list
            .iter()
            .enumerate()
            .filter(|(nth, _)| *nth != divisions.default);
        let labels = || {
            first
                .chain(others.map(|(_, other)| other))
                .map(|division| division.label.clone())
        };
        match divisions.kind {
            DivisionKind::Versions => {
                self.version = self.version.take().or_else(|| Some(default?.label.clone()));
                if self.versions.is_empty() {
                    self.versions = labels().collect();
                }
            }
            DivisionKind::Languages if self.languages.is_empty() => {
                self.languages = labels().collect();
            }
            _ => {}
        }
        if matches!(
            divisions.kind,
            DivisionKind::Versions | DivisionKind::Languages
        ) {
            if let Some(default) = default {
                self.content(docs, &default.content, part);
            }
            return;
        }
        for division in divisions.list.iter().filter(|division| !division.hidden) {
            self.content(
                docs,
                &division.content,
                Some(part.unwrap_or(&division.label)),
            );
        }
    }

    fn group(&mut self, docs: &Docs, group: &Group, part: Option<&str>) {
        if group.hidden {
            return;
        }
        let root = group.root.map(Node::Page);
        let entries: Vec<&Node> = root.iter().chain(&group.entries).collect();
        self.list(docs, &entries, part, &group.label);
    }

    fn entries(&mut self, docs: &Docs, entries: &[Node], part: Option<&str>, label: &str) {
        self.list(docs, &entries.iter().collect::<Vec<_>>(), part, label);
    }

    /// Adds a group's own pages, then the groups in it.
    fn list(&mut self, docs: &Docs, nodes: &[&Node], part: Option<&str>, label: &str) {
        let page = |node: &&Node| match node {
            Node::Page(id) => Some(*id),
            Node::Group(_) => None,
        };
        let shown = nodes
            .iter()
            .filter_map(page)
            .filter(|id| is_shown(docs.navigation.page(*id)));
        let entries: Vec<Entry> = shown
            .map(|page| Entry {
                page,
                title: plain(&docs.navigation.page(page).title),
            })
            .collect();
        if !entries.is_empty() {
            self.categories.push(Category {
                part: plain(part.unwrap_or(label)),
                label: plain(label),
                entries,
            });
        }
        for node in nodes {
            if let Node::Group(group) = node {
                self.group(docs, group, Some(part.unwrap_or(label)));
            }
        }
    }

    /// Returns every page, in order.
    pub(super) fn pages(&self) -> impl Iterator<Item = PageId> {
        let entries = self
            .categories
            .iter()
            .flat_map(|category| &category.entries);
        entries.map(|entry| entry.page)
    }
}

/// Returns the description of a page, else its first paragraph.
pub(super) fn words(docs: &Docs, page: &Page) -> String {
    if let Some(description) = &page.description {
        return short(description);
    }
    let nodes = content(docs, page).unwrap_or_default();
    let words = first_paragraph(nodes).or_else(|| first_heading(nodes));
    shorten(&words.unwrap_or_default())
}

/// Returns the content of a page; `None` if it is generated or could not be read.
pub(super) fn content<'d>(docs: &'d Docs, page: &Page) -> Option<&'d [MdxNode]> {
    let written = docs.pages.get(&page.slug)?;
    Some(&written.read.as_ref().ok()?.nodes)
}

/// Returns the first paragraph that says something, at any depth.
fn first_paragraph(nodes: &[MdxNode]) -> Option<String> {
    nodes.iter().find_map(|node| match node {
        MdxNode::Paragraph(line) => {
            Some(text::words(line)).filter(|words| words.chars().any(char::is_alphanumeric))
        }
        // Titles and cells are no sentences.
        MdxNode::Heading { .. } | MdxNode::Table(_) => None,
        node => {
            let mut found = None;
            node.each_children(&mut |children| {
                found = found.take().or_else(|| first_paragraph(children));
            });
            found
        }
    })
}

fn first_heading(nodes: &[MdxNode]) -> Option<String> {
    nodes.iter().find_map(|node| match node {
        MdxNode::Heading { children, .. } => {
            Some(text::words(children)).filter(|words| !words.is_empty())
        }
        _ => None,
    })
}

fn is_shown(page: &Page) -> bool {
    page.is_indexed() && !page.deprecated && page.link.is_none()
}

// === impl Entry ===

impl Entry {
    /// Writes the line of the page: endpoint, link, description, required values.
    pub(super) fn line(&self, docs: &Docs, base_url: &str) -> String {
        let page = docs.navigation.page(self.page);
        let link = format!("[{}]({base_url}{})", self.title, page.url);
        if let Some((specification, endpoint)) = endpoint(docs, page) {
            let about = endpoint.summary.as_deref().map(short).unwrap_or_default();
            let about = if about.is_empty() || about == self.title {
                String::new()
            } else {
                format!(": {about}")
            };
            let required = required(specification, endpoint);
            return format!(
                "- `{} {}` {link}{about}{required}",
                endpoint.method, endpoint.path
            );
        }
        let about = words(docs, page);
        if about.is_empty() || about == self.title {
            format!("- {link}")
        } else {
            format!("- {link}: {about}")
        }
    }
}

/// Returns the endpoint that a page describes.
pub(super) fn endpoint<'d>(
    docs: &'d Docs,
    page: &Page,
) -> Option<(&'d Specification, &'d Endpoint)> {
    let id = page.endpoint()?;
    let specification = docs.specifications.get(id.specification)?;
    Some((specification, specification.endpoints.get(id.endpoint)?))
}

/// Names the values that a request requires, so that an agent need not open the page.
fn required(specification: &Specification, endpoint: &Endpoint) -> String {
    let Some(operation) = specification.operation(endpoint) else {
        return String::new();
    };
    let mut names: Vec<String> = Vec::new();
    for parameter in operation
        .parameters()
        .iter()
        .filter(|parameter| parameter.required)
    {
        names.push(format!("`{}` ({})", parameter.name, parameter.place));
    }
    names.extend(
        body_fields(&operation)
            .into_iter()
            .map(|name| format!("`{name}`")),
    );
    if names.is_empty() {
        return String::new();
    }
    let more = if names.len() > REQUIRED_NAMED {
        ", …"
    } else {
        ""
    };
    names.truncate(REQUIRED_NAMED);
    format!("; requires {}{more}", names.join(", "))
}

fn body_fields<'s>(operation: &Operation<'s>) -> Vec<&'s str> {
    let content = operation
        .body()
        .map(|body| body.content)
        .unwrap_or_default();
    let schema = content.first().and_then(|media| media.schema);
    let required = schema.and_then(|schema| schema.value.get("required"));
    required
        .map_or(&[][..], Value::items)
        .iter()
        .filter_map(Value::text)
        .collect()
}
