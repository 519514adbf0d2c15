//! The outline of the documentation: its pages by group, in the default language and version.

use std::collections::HashSet;

use crate::docs::Docs;
use crate::docs::navigation::tree::{
    Content, DivisionKind, Divisions, Entry as Node, Group, Page, PageId,
};
use crate::docs::openapi::{Endpoint, Operation, Specification};
use crate::mdx::Node as MdxNode;
use crate::site::percent::encode;
use crate::syntax::Value;

use super::about::{is_meta, repeats};
use super::lists::PageList;
use super::role::{Role, normal};
use super::text::{self, plain, shorten};

/// The most required values that the row of an endpoint names.
const REQUIRED_NAMED: usize = 6;
/// The label for pages that are in no group.
const UNGROUPED: &str = "Documentation";

/// The pages that the skill uses.
#[derive(Debug, Default)]
pub(super) struct Outline {
    /// Groups in the order of the navigation; none is empty.
    pub(super) categories: Vec<Category>,
    /// The labels of the default versions: each part of a site may have its own.
    default_versions: Vec<Box<str>>,
    /// The versions of the first part that has any, the default first.
    pub(super) versions: Vec<Box<str>>,
    /// All languages, the default first.
    pub(super) languages: Vec<Box<str>>,
    /// The parts of `llms.txt`; empty if it has all pages itself.
    pub(super) lists: Vec<PageList>,
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
    /// The label of the group that contains it; empty at the top level.
    pub(super) parent: String,
}

/// A page of a group.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) page: PageId,
    pub(super) title: String,
    pub(super) role: Role,
}

// === impl Outline ===

impl Outline {
    /// Walks the navigation through its default versions and languages (rule G3).
    pub(super) fn of(docs: &Docs) -> Self {
        let mut outline = Self::default();
        if let Some(content) = &docs.navigation.content {
            outline.content(docs, content, None);
        }
        // A changelog is often the first page of a group; an agent needs the others first.
        for category in &mut outline.categories {
            let entries = &mut category.entries;
            // The page of a package often has no content of its own.
            let is_package = |entry: &Entry| entry.title.trim_matches('`') == "__init__";
            entries.sort_by_key(|entry| (entry.role >= Role::Community, is_package(entry)));
        }
        outline
    }

    /// Returns the page that introduces the site: a visitor sees it first.
    pub(super) fn home(&self, docs: &Docs) -> Option<PageId> {
        let first = docs.navigation.first();
        let first = first.filter(|id| is_shown(docs.navigation.page(*id)));
        first.or_else(|| self.pages().next())
    }

    /// Returns the version that the skill describes; `None` if its parts have several, or if no
    /// label names a version.
    pub(super) fn version(&self) -> Option<&str> {
        let mut versions = self.default_versions.iter().map(|label| version_of(label));
        let first = versions.next()??;
        versions.all(|other| other == Some(first)).then_some(first)
    }

    /// Returns the pages with their roles, in order.
    pub(super) fn entries_of(&self, role: impl Fn(Role) -> bool) -> impl Iterator<Item = &Entry> {
        let entries = self
            .categories
            .iter()
            .flat_map(|category| &category.entries);
        entries.filter(move |entry| role(entry.role))
    }

    /// Returns the pages with such a role and their content, in order and each of them once.
    /// Pages without content are left out.
    pub(super) fn contents<'o>(
        &'o self,
        docs: &'o Docs,
        role: impl Fn(Role) -> bool,
    ) -> impl Iterator<Item = (&'o Entry, &'o Page, &'o [MdxNode])> {
        let mut seen = HashSet::new();
        self.entries_of(role).filter_map(move |entry| {
            let page = docs.navigation.page(entry.page);
            let nodes = content(docs, page)?;
            seen.insert(entry.page).then_some((entry, page, nodes))
        })
    }

    fn content(&mut self, docs: &Docs, content: &Content, part: Option<&str>) {
        match content {
            Content::Entries(entries) => {
                let entries: Vec<&Node> = entries.iter().collect();
                self.list(docs, &entries, part, part.unwrap_or(UNGROUPED), None);
            }
            Content::Groups(groups) => {
                for group in groups {
                    self.group(docs, group, part, None);
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
                self.default_versions
                    .extend(default.map(|default| default.label.clone()));
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

    fn group(&mut self, docs: &Docs, group: &Group, part: Option<&str>, parent: Option<&str>) {
        if group.hidden {
            return;
        }
        let root = group.root.map(Node::Page);
        let entries: Vec<&Node> = root.iter().chain(&group.entries).collect();
        self.list(
            docs,
            &entries,
            part,
            &group.label,
            Some(parent.unwrap_or_default()),
        );
    }

    /// Adds a group's own pages, then the groups in it. `parent` is the label of the group around
    /// it; `None` for the list of a part, which is no group.
    fn list(
        &mut self,
        docs: &Docs,
        nodes: &[&Node],
        part: Option<&str>,
        label: &str,
        parent: Option<&str>,
    ) {
        let (own_part, own_label) = (plain(part.unwrap_or(label)), plain(label));
        let own_parent = plain(parent.unwrap_or_default());
        let page = |node: &&Node| match node {
            Node::Page(id) => Some(*id),
            Node::Group(_) => None,
        };
        let shown = nodes
            .iter()
            .filter_map(page)
            .filter(|id| is_shown(docs.navigation.page(*id)));
        let entries: Vec<Entry> = shown
            .map(|id| {
                let page = docs.navigation.page(id);
                Entry {
                    page: id,
                    title: plain(&page.title),
                    role: Role::of(page, &[&own_part, &own_label, &own_parent]),
                }
            })
            .collect();
        if !entries.is_empty() {
            self.add(own_part, own_label, own_parent, entries);
        }
        for node in nodes {
            if let Node::Group(group) = node {
                // The groups in the list of a part are at the top.
                let inside = parent.map(|_| label);
                self.group(docs, group, Some(part.unwrap_or(label)), inside);
            }
        }
    }

    /// Adds pages to the category of their group. If another group of the part has the same label,
    /// the label of the enclosing group distinguishes them.
    fn add(&mut self, part: String, mut label: String, parent: String, entries: Vec<Entry>) {
        let same = |other: &Category, label: &str| other.part == part && other.label == label;
        if self
            .categories
            .iter()
            .any(|other| same(other, &label) && other.parent != parent)
            && !parent.is_empty()
        {
            label = format!("{parent}: {label}");
        }
        match self.categories.iter_mut().find(|other| same(other, &label)) {
            Some(category) => category.entries.extend(entries),
            None => self.categories.push(Category {
                part,
                label,
                entries,
                parent,
            }),
        }
    }

    /// Returns the categories that do not come after all others.
    pub(super) fn early(&self) -> impl Iterator<Item = &Category> {
        let categories = self.categories.iter();
        categories.filter(|category| !category.is_late())
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

/// Returns the path of a link to the site itself: a path, or an address below the canonical one
/// that `seo.metatags` declares. There is no `#` and no `?` in it.
pub(super) fn path_on_site<'h>(docs: &Docs, href: &'h str) -> Option<&'h str> {
    let tags = docs.config.seo.tags("");
    let canonical = tags.iter().find(|(name, _)| *name == "canonical");
    let path = match canonical {
        _ if href.starts_with('/') => href,
        Some((_, address)) => {
            let rest = href.strip_prefix(address.trim_end_matches('/'))?;
            rest.starts_with('/').then_some(rest)?
        }
        None => return None,
    };
    path.split(['#', '?']).next()
}

/// Returns the description of a page, else its first paragraph.
pub(super) fn words(docs: &Docs, page: &Page) -> String {
    if let Some(description) = &page.description {
        return shorten(&without_announcement(plain(description)));
    }
    let nodes = content(docs, page).unwrap_or_default();
    let words = first_paragraph(nodes).or_else(|| first_heading(nodes));
    shorten(&without_announcement(words.unwrap_or_default()))
}

/// Removes a last sentence that announces a list or an example: it has no meaning without that.
fn without_announcement(words: String) -> String {
    match text::sentences(&words).split_last() {
        Some((last, before)) if last.ends_with(':') => before.join(" "),
        _ => words,
    }
}

/// Returns the subject of a page: its description. If the description is about the page itself ("This
/// document …"), or only repeats the title, returns the first paragraph that does neither.
pub(super) fn purpose(docs: &Docs, page: &Page) -> String {
    let described = words(docs, page);
    let is_repeated = |text: &str| repeats(text, &page.title, &docs.config.name);
    if !is_meta(&described) && !is_repeated(&described) {
        return described;
    }
    let nodes = content(docs, page).unwrap_or_default();
    let paragraph = first_paragraph(nodes).map(without_announcement);
    let says = |paragraph: &String| !paragraph.is_empty() && !is_repeated(paragraph);
    match paragraph.filter(says) {
        Some(paragraph) => shorten(&paragraph),
        None if is_repeated(&described) => String::new(),
        None => described,
    }
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
            let says_something = |words: &String| {
                let is_label =
                    words.contains(char::is_uppercase) && !words.contains(char::is_lowercase);
                let first = text::sentences(words).first().copied().unwrap_or_default();
                // A question to the reader is about something else.
                let asks = first.ends_with('?');
                let is_remark = asks || is_meta(words) || text::says_version(words);
                words.chars().any(char::is_alphanumeric) && !is_label && !is_remark
            };
            Some(text::words(line)).filter(says_something)
        }
        // Titles and cells are not sentences.
        MdxNode::Heading { .. } | MdxNode::Table(_) => None,
        MdxNode::Element(element) if text::is_silent(&element.name) => None,
        node if is_callout(node) => None,
        node => {
            let mut found = None;
            node.each_children(&mut |children| {
                found = found.take().or_else(|| first_paragraph(children));
            });
            found
        }
    })
}

/// Returns whether a node is a remark beside the text: an element, or a quotation that begins as a
/// callout (`[!WARNING]`, `Note:`).
pub(super) fn is_callout(node: &MdxNode) -> bool {
    const ELEMENTS: [&str; 11] = [
        "Note",
        "Warning",
        "Info",
        "Tip",
        "Check",
        "Danger",
        "Callout",
        "Caution",
        "Error",
        "Important",
        "Success",
    ];
    const STARTS: [&str; 6] = ["note", "warning", "caution", "danger", "important", "tip"];
    match node {
        MdxNode::Element(element) => ELEMENTS.contains(&&*element.name),
        MdxNode::Quote(children) => {
            let Some(MdxNode::Paragraph(first)) = children.first() else {
                return false;
            };
            let words = text::words(first);
            let word = words.split_once(':').map_or(&*words, |(word, _)| word);
            words.starts_with("[!") || STARTS.contains(&normal(word).trim())
        }
        _ => false,
    }
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

/// Returns the version that a label names: `Version 2026-07-28 (latest)` names `2026-07-28`.
fn version_of(label: &str) -> Option<&str> {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+' | '_');
    label.split(|c| !inside(c)).find_map(|word| {
        let version = word.strip_prefix(['v', 'V']).unwrap_or(word);
        version
            .starts_with(|c: char| c.is_ascii_digit())
            .then_some(version)
    })
}

// === impl Category ===

impl Category {
    /// Returns whether more than half of its pages come after all others.
    pub(super) fn is_late(&self) -> bool {
        let late = self.entries.iter().filter(|entry| entry.role.is_late());
        late.count() * 2 > self.entries.len()
    }
}

// === impl Entry ===

impl Entry {
    /// Writes a link to the page.
    pub(super) fn link(&self, docs: &Docs, base_url: &str) -> String {
        link(&self.title, docs.navigation.page(self.page), base_url)
    }

    /// Writes the line of the page: link, description.
    pub(super) fn line(&self, docs: &Docs, base_url: &str) -> String {
        let about = words(docs, docs.navigation.page(self.page));
        let link = self.link(docs, base_url);
        if about.is_empty() || about == self.title {
            format!("- {link}")
        } else {
            format!("- {link}: {about}")
        }
    }
}

/// Writes a link to a page. A title in code keeps its brackets; others have none (see `plain`).
pub(super) fn link(title: &str, page: &Page, base_url: &str) -> String {
    let title = if title.is_empty() { &page.url } else { title };
    format!("[{title}]({base_url}{})", encode(&page.url))
}

/// Writes a link to a page under its own title.
pub(super) fn link_to(docs: &Docs, id: PageId, base_url: &str) -> String {
    let page = docs.navigation.page(id);
    link(&plain(&page.title), page, base_url)
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
pub(super) fn required(specification: &Specification, endpoint: &Endpoint) -> String {
    let Some(operation) = specification.operation(endpoint) else {
        return String::new();
    };
    let mut names: Vec<String> = Vec::new();
    for parameter in operation
        .parameters()
        .iter()
        // The path of the endpoint already shows these parameters.
        .filter(|parameter| parameter.required && parameter.place != "path")
    {
        names.push(format!("`{}` ({})", parameter.name, parameter.place));
    }
    names.extend(
        body_fields(&operation)
            .into_iter()
            .map(|name| format!("`{name}`")),
    );
    let more = if names.len() > REQUIRED_NAMED {
        ", …"
    } else {
        ""
    };
    names.truncate(REQUIRED_NAMED);
    format!("{}{more}", names.join(", "))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_what_a_label_names() {
        assert_eq!(
            version_of("Version 2026-07-28 (latest)"),
            Some("2026-07-28")
        );
        assert_eq!(version_of("v0.4.x"), Some("0.4.x"));
        assert_eq!(version_of("2"), Some("2"));
        assert_eq!(version_of("Latest"), None);
    }
}
