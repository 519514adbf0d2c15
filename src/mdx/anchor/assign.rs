//! Walks a page and assigns the anchors.
//!
//! The walk skips content that the HTML writer does not write: it gets no anchor.

use super::slug::{github, in_letters, of_name, slug};
use super::{Anchor, Anchors};
use crate::mdx::component::{self, parameter};
use crate::mdx::drawing;
use crate::mdx::node::{Element, Node, holds_expression, plain};
use crate::mdx::read_markdown;

/// The anchor of a place whose words have no character that an anchor may contain.
const UNNAMED: &str = "section";

/// How many bytes the path of a field may have that its aliases name: each of many fields would
/// repeat the long names around it.
const PATH_BYTES_MAX: usize = 200;

/// Assigns anchors in page order; aliases follow when all anchors are known.
struct Walk<'a> {
    anchors: &'a mut Anchors,
    /// The names of the fields that enclose the current field, from the outermost.
    fields: Vec<String>,
}

/// The beginning of the ids of footnotes.
const FOOTNOTE: &str = "fn-";

// === impl Anchors ===

impl Anchors {
    /// Assigns anchors to the places in some nodes.
    ///
    /// A second call continues with further nodes of the same page.
    pub fn assign(&mut self, nodes: &mut [Node]) {
        // First, so that no other place gets the id that a reference to a footnote names.
        each_footnote(nodes, &mut |label| {
            let id = of_footnote(label);
            let own = self.taken.take(&id);
            // References lead to the first of several footnotes with one label.
            if *own != *id
                && let Some(numbered) = own.strip_prefix(FOOTNOTE)
            {
                *label = numbered.to_owned();
            }
        });
        let mut walk = Walk {
            anchors: self,
            fields: Vec::new(),
        };
        walk.nodes(nodes);
        each_anchor(nodes, &mut |anchor| {
            anchor.aliases.retain(|alias| self.taken.claim(alias));
        });
        tooltips(nodes, &mut |anchor| {
            *anchor = Some(Box::new(Anchor {
                id: self.taken.take("tip"),
                aliases: Vec::new(),
            }));
        });
    }

    /// Makes the anchor of an element of HTML from its id. It has no other names: the element is
    /// written as its author wrote it.
    fn give_id(&mut self, written: &str) -> Option<Box<Anchor>> {
        let id = spaceless(written);
        (!id.is_empty()).then(|| {
            Box::new(Anchor {
                id: self.taken.take(&id),
                aliases: Vec::new(),
            })
        })
    }

    /// Makes the anchor of a place: from the id that its author wrote, or from its words.
    fn give(&mut self, written: Option<&str>, words: &str, aliases: Vec<String>) -> Box<Anchor> {
        let own = |name: String| match name.is_empty() {
            true => UNNAMED.to_owned(),
            false => name,
        };
        let written = written.map(spaceless).filter(|id| !id.is_empty());
        let id = match &written {
            Some(id) => self.taken.take(id),
            None => self.taken.take(&own(slug(words))),
        };
        let on_github = match written {
            Some(id) => self.github.take(&id),
            None => self.github.take(&own(github(words))),
        };
        Box::new(Anchor {
            id,
            aliases: std::iter::once(on_github)
                .chain(aliases.into_iter().map(String::into))
                .filter(|alias| !alias.is_empty())
                .collect(),
        })
    }
}

/// Makes the anchors of headings with these words, in page order, if their authors wrote no ids.
#[must_use]
pub fn of_headings<'w>(words: impl Iterator<Item = &'w str>) -> Vec<Anchor> {
    let mut anchors = Anchors::default();
    words
        .map(|words| *anchors.give(None, words, Vec::new()))
        .collect()
}

// === impl Walk ===

impl Walk<'_> {
    fn nodes(&mut self, nodes: &mut [Node]) {
        for node in nodes {
            match node {
                Node::Heading {
                    id,
                    children,
                    anchor,
                    ..
                } => {
                    let id = id.as_deref();
                    *anchor = Some(self.heading(id, children, Vec::new()));
                }
                Node::Paragraph(children)
                | Node::Quote(children)
                | Node::Emphasis(children)
                | Node::Strong(children)
                | Node::Struck(children)
                | Node::Footnote { children, .. }
                | Node::Link { children, .. } => self.nodes(children),
                Node::List { items, .. } => {
                    for item in items {
                        self.nodes(&mut item.children);
                    }
                }
                Node::Table(table) => {
                    for cell in table.head.iter_mut().chain(table.rows.iter_mut().flatten()) {
                        self.nodes(cell);
                    }
                }
                Node::Element(element) => self.element(element),
                Node::Text(_)
                | Node::Code(_)
                | Node::Formula { .. }
                | Node::Break
                | Node::Image { .. }
                | Node::FootnoteReference(_)
                | Node::Fence { .. }
                | Node::Expression(_)
                | Node::Rule => {}
            }
        }
    }

    fn heading(
        &mut self,
        id: Option<&str>,
        children: &mut [Node],
        aliases: Vec<String>,
    ) -> Box<Anchor> {
        self.anchors.has_unknown |= id.is_none() && holds_expression(children);
        let words = plain(children);
        let anchor = self.anchors.give(id, &words, aliases);
        if shows_elements(children) {
            self.nodes(children);
        }
        anchor
    }

    fn element(&mut self, element: &mut Element) {
        let id = element.text("id").map(str::to_owned);
        let id = id.as_deref();
        self.anchors.has_unknown |= element.is_unevaluated("id");
        match &*element.name {
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                element.anchor = Some(self.heading(id, &mut element.children, Vec::new()));
                return;
            }
            "Tab" => element.anchor = Some(self.titled(element, "title", Some("Tab"))),
            "View" => element.anchor = Some(self.titled(element, "title", Some("View"))),
            "Accordion" | "Expandable" => {
                element.anchor = Some(self.titled(element, "title", Some("Details")));
            }
            "Step" if element.words("title").is_some() => {
                element.anchor = Some(self.titled(element, "title", None));
            }
            "Step" => self.anchors.has_unknown |= element.is_unevaluated("title"),
            "Update" => element.anchor = Some(self.titled(element, "label", None)),
            "ParamField" | "Param" | "ResponseField" | "Response" => return self.field(element),
            "picture" if !element.is_picture() => {}
            "a" => {
                let name = id.or_else(|| element.text("name"));
                element.anchor = name.and_then(|name| self.anchors.give_id(name));
            }
            name if component::html(name).is_some() => {
                let has_place = !matches!(name, "img" | "picture" | "iframe" | "br" | "wbr" | "hr");
                let id = id.filter(|_| has_place);
                element.anchor = id.and_then(|id| self.anchors.give_id(id));
            }
            // The ids in a drawing are used by the drawing: they are reserved and not changed.
            "svg" => {
                let taken = &mut self.anchors.taken;
                drawing::each_id(element, &mut |id| _ = taken.claim(id));
            }
            _ => {}
        }
        if !hides_content(element) {
            self.nodes(&mut element.children);
        }
    }

    /// Makes the anchor of an element from its title.
    fn titled(&mut self, element: &Element, key: &str, unnamed: Option<&str>) -> Box<Anchor> {
        self.anchors.has_unknown |= element.is_unevaluated(key);
        let written = element.text("id");
        let title = element.words(key);
        let title = title.as_deref().or(unnamed).unwrap_or_default();
        let words = visible(title);
        let aliases = vec![
            github(written.unwrap_or(title)),
            in_letters(written.unwrap_or(&words)),
        ];
        self.anchors.give(written, &words, aliases)
    }

    fn field(&mut self, element: &mut Element) {
        self.anchors.has_unknown |= ["path", "query", "body", "header", "name"]
            .into_iter()
            .any(|key| element.is_unevaluated(key));
        let named = parameter(element).map(|(_, name)| name);
        let name = match named {
            Some(name) => name.into(),
            None => element.words("name").unwrap_or_default(),
        };
        let name = &*name.into_owned();
        let written = element.text("id").map(str::to_owned);
        if let Some(id) = written {
            element.anchor = Some(self.anchors.give(Some(&id), "", vec![github(&id)]));
            self.fields.push(id);
            self.nodes(&mut element.children);
            self.fields.pop();
            return;
        }
        let own = format!("param-{}", of_name(name));
        self.fields.push(name.to_owned());
        let mut aliases = vec![
            format!("field-{}", github(name)),
            format!("param-{name}"),
            format!("param-{}", name.to_lowercase()),
        ];
        if self.fields.iter().map(String::len).sum::<usize>() <= PATH_BYTES_MAX {
            let path = self.fields.join("-");
            aliases.push(format!("param-{path}"));
            aliases.push(format!("param-{}", of_name(&path)));
            // The part of an endpoint that has the field: `body` or `response`.
            if let Some(part) = element.text("part") {
                aliases.push(format!("{part}-{path}"));
                aliases.push(format!("{part}-{}", of_name(&path)));
            }
        }
        aliases.retain(|alias| !alias.contains(char::is_whitespace));
        element.anchor = Some(self.anchors.give(Some(&own), "", aliases));
        self.nodes(&mut element.children);
        self.fields.pop();
    }
}

/// Returns the visible words of a title, which may contain Markdown.
fn visible(title: &str) -> String {
    match title.contains(['`', '*', '_', '[', '<', '&', '\\', '~']) {
        true => read_markdown(title).map_or_else(|_| title.to_owned(), |nodes| plain(&nodes)),
        false => title.to_owned(),
    }
}

/// Replaces white space, which an id must not contain (WHATWG HTML §3.2.6).
fn spaceless(id: &str) -> String {
    id.split_whitespace().collect::<Vec<_>>().join("-")
}

/// Returns the id of a footnote.
#[must_use]
pub fn of_footnote(label: &str) -> String {
    format!("{FOOTNOTE}{}", github(label))
}

/// Returns whether HTML shows nothing of the content of an element, or shows it as text or as a
/// picture.
fn hides_content(element: &Element) -> bool {
    match &*element.name {
        "Visibility" => element.text("for") == Some("agents"),
        "Prompt" | "Latex" | "Mermaid" | "Icon" | "Tree.File" | "Color.Item" | "img" | "iframe"
        | "br" | "wbr" | "hr" | "source" | "video" | "audio" | "col" | "svg" => true,
        "picture" => element.is_picture(),
        // Parts of a drawing are not shown outside of one.
        name => drawing::is_part(name),
    }
}

/// Visits the labels of the footnotes that are shown, in their order.
fn each_footnote(nodes: &mut [Node], visit: &mut dyn FnMut(&mut String)) {
    each_shown(nodes, &mut |node| {
        if let Node::Footnote { label, .. } = node {
            visit(label);
        }
    });
}

/// Visits the anchors of some nodes, in their order.
fn each_anchor(nodes: &mut [Node], visit: &mut dyn FnMut(&mut Anchor)) {
    each(nodes, &mut |node| {
        let anchor = match node {
            Node::Heading { anchor, .. } => anchor,
            Node::Element(Element { anchor, .. }) => anchor,
            _ => return,
        };
        if let Some(anchor) = anchor {
            anchor.aliases.retain(|alias| *alias != anchor.id);
            visit(anchor);
        }
    });
}

/// Visits the tooltips with a text that are shown; the text of each tooltip needs an id.
fn tooltips(nodes: &mut [Node], visit: &mut dyn FnMut(&mut Option<Box<Anchor>>)) {
    each_shown(nodes, &mut |node| {
        if let Node::Element(element) = node
            && *element.name == *"Tooltip"
            && ["tip", "headline"]
                .iter()
                .any(|name| element.words(name).is_some_and(|text| !text.is_empty()))
        {
            visit(&mut element.anchor);
        }
    });
}

fn each(nodes: &mut [Node], visit: &mut dyn FnMut(&mut Node)) {
    for node in nodes {
        visit(node);
        node.each_children_mut(&mut |children| each(children, visit));
    }
}

/// Visits the nodes that are shown.
fn each_shown(nodes: &mut [Node], visit: &mut dyn FnMut(&mut Node)) {
    for node in nodes {
        visit(node);
        let shows_content = match node {
            Node::Heading { children, .. } => shows_elements(children),
            Node::Element(element) => match &*element.name {
                "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => shows_elements(&element.children),
                _ => !hides_content(element),
            },
            _ => true,
        };
        if shows_content {
            node.each_children_mut(&mut |children| each_shown(children, visit));
        }
    }
}

/// Returns whether the elements in a heading are shown. Of a heading that holds blocks, only the
/// words are.
fn shows_elements(children: &[Node]) -> bool {
    !children.iter().any(Node::is_or_holds_block)
}
