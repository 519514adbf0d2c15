//! Turns what the engine returns into nodes.
//!
//! They are the same kinds of nodes that the reader makes from Markdown and tags. So the writers
//! treat them in the same way: they write the same elements and attributes, and allow the same
//! addresses.

use crate::jsx::{Failure, Output, Value as Found};
use crate::mdx::node::{Element, Node, Value, code_block, code_sample, plain};
use crate::mdx::span::Span;
use crate::mdx::{DEPTH_MAX, Reader, component, control};

/// HTML elements whose text is not part of a page.
const HIDDEN: [&str; 5] = ["head", "noscript", "script", "style", "template"];

// === impl Reader ===

impl Reader<'_> {
    /// Turns a result into nodes; `site` is the place of the piece.
    pub(super) fn nodes_of(&mut self, found: Vec<Output>, site: usize, depth: usize) -> Vec<Node> {
        let mut nodes = Vec::with_capacity(found.len());
        for output in found {
            match output {
                Output::Text(text) => {
                    if self.charge(text.len()) {
                        nodes.push(Node::Text(text));
                    }
                }
                Output::Leaf(number) => nodes.extend(self.shell(number)),
                Output::Failed(failure) => nodes.extend(self.failure(failure, site, depth)),
                // Content that is nested deeper is shown without its elements.
                Output::Element { children, .. } if depth >= DEPTH_MAX => {
                    if !std::mem::replace(&mut self.evaluation.is_flattened, true) {
                        let message = format!(
                            "elements are nested more than {DEPTH_MAX} levels deep; deeper \
                             elements are shown as their text"
                        );
                        let line = self.evaluation.sites[site].line;
                        self.warn("mdx-script", line, message);
                    }
                    nodes.extend(self.nodes_of(children, site, depth));
                }
                Output::Element {
                    name,
                    shell,
                    attributes,
                    children,
                } => {
                    let children = self.nodes_of(children, site, depth + 1);
                    let kept = shell.map(|number| self.shell(number));
                    match kept {
                        Some(Some(Node::Element(kept))) => {
                            let attributes = self.attributes(attributes, site, depth);
                            let mut element = Element {
                                attributes,
                                children,
                                ..kept
                            };
                            if let Some(children) = self.inner_html(&mut element, depth) {
                                element.children = children;
                            }
                            code_block(&mut element);
                            let sample = code_sample(&element);
                            nodes.push(sample.unwrap_or(Node::Element(element)));
                        }
                        Some(Some(kept)) => nodes.extend(filled(kept, children)),
                        Some(None) => {}
                        None => {
                            let made = self.element_of(&name, attributes, children, site, depth);
                            nodes.extend(made);
                        }
                    }
                }
            }
        }
        nodes
    }

    /// Makes an element that a component returned.
    fn element_of(
        &mut self,
        name: &str,
        attributes: Vec<(Box<str>, Found)>,
        children: Vec<Node>,
        site: usize,
        depth: usize,
    ) -> Option<Node> {
        if HIDDEN.contains(&name) {
            return None;
        }
        let attributes = self.attributes(attributes, site, depth);
        let (line, span) = match self.evaluation.sites.get(site) {
            Some(site) => (site.line, site.span),
            None => (0, Span::NONE),
        };
        let mut element = Element {
            attributes,
            children,
            line,
            span,
            ..Element::new(name)
        };
        if let Some(children) = self.inner_html(&mut element, depth) {
            element.children = children;
        }
        if let Some(what) = component::left_out(name).filter(|_| !component::is_known(name)) {
            self.warn_of_element(name, what, site);
            control::show_words(&mut element);
        }
        code_block(&mut element);
        self.charge(size_of::<Element>() + name.len());
        Some(code_sample(&element).unwrap_or(Node::Element(element)))
    }

    /// Reports an element that pages cannot use; its component is named by the tag at the site.
    fn warn_of_element(&mut self, name: &str, what: &str, site: usize) {
        let Some(site) = self.evaluation.sites.get(site) else {
            return;
        };
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
        let tag = site.source.strip_prefix('<').unwrap_or_default();
        let message = match &tag[..tag.find(|c: char| !is_of_name(c)).unwrap_or(tag.len())] {
            "" => format!("pages cannot use the element `{name}`; {what}"),
            owner => format!("`{owner}` has the element `{name}`, which pages cannot use; {what}"),
        };
        let line = site.line;
        self.warn("mdx-component", line, message);
    }

    fn attributes(
        &mut self,
        found: Vec<(Box<str>, Found)>,
        site: usize,
        depth: usize,
    ) -> Vec<(Box<str>, Value)> {
        let mut attributes = Vec::with_capacity(found.len());
        for (name, value) in found {
            match self.value_from(value, site, depth) {
                Some(Value::Null) | None => {}
                Some(value) => attributes.push((name, value)),
            }
        }
        attributes
    }

    /// Turns the value of an attribute into one of a page; `None` if it failed.
    pub(super) fn value_from(&mut self, found: Found, site: usize, depth: usize) -> Option<Value> {
        Some(match found {
            Found::Null => Value::Null,
            Found::Boolean(truth) => Value::Boolean(truth),
            Found::Text(text) => {
                self.charge(text.len());
                Value::Text(text)
            }
            Found::List(list) => {
                let values = list.into_iter();
                let values = values.filter_map(|one| self.value_from(one, site, depth + 1));
                Value::List(values.collect())
            }
            Found::Object(entries) => {
                let mut values = Vec::with_capacity(entries.len());
                for (name, value) in entries {
                    if let Some(value) = self.value_from(value, site, depth + 1) {
                        values.push((name, value));
                    }
                }
                Value::Object(values)
            }
            // An attribute whose value failed is left out.
            Found::Nodes(found) if matches!(&found[..], [Output::Failed(_)]) => {
                for output in found {
                    if let Output::Failed(failure) = output {
                        let site = failure.site.or(Some(site));
                        self.report_failure(site, &failure.component, &failure.reason);
                    }
                }
                return None;
            }
            Found::Nodes(found) => {
                let nodes = self.nodes_of(found, site, depth + 1);
                match &nodes[..] {
                    [Node::Text(text)] => Value::Text(text.clone()),
                    _ => Value::Nodes(nodes),
                }
            }
        })
    }

    /// Returns the replacement of a component that failed: its children, or a note if it has none.
    fn failure(&mut self, failure: Failure, site: usize, depth: usize) -> Vec<Node> {
        let at = failure.site.unwrap_or(site);
        let rest = self.nodes_of(failure.children, at, depth + 1);
        if plain(&rest).trim().is_empty() {
            return vec![self.left_out(Some(at), &failure.component, &failure.reason)];
        }
        self.report_failure(Some(at), &failure.component, &failure.reason);
        rest
    }

    /// Returns a copy of a part that was handed to the engine.
    fn shell(&mut self, number: usize) -> Option<Node> {
        let bytes = self.evaluation.shells.get(number)?.bytes();
        let is_paid = self.charge(bytes);
        let node = self.evaluation.shells.get(number)?;
        is_paid.then(|| node.clone())
    }
}

/// Replaces the children of a piece of Markdown.
fn filled(mut node: Node, children: Vec<Node>) -> Vec<Node> {
    match &mut node {
        Node::Paragraph(inner) => {
            let is_space = |node: &Node| matches!(node, Node::Text(text) if text.trim().is_empty());
            // A paragraph that holds only blocks is replaced by them.
            if children.iter().any(Node::is_block)
                && children
                    .iter()
                    .all(|node| node.is_block() || is_space(node))
            {
                return children;
            }
            *inner = children;
        }
        Node::List { items, .. } => {
            let all = children.into_iter().filter_map(|node| match node {
                Node::Element(element) if &*element.name == "li" => Some(element.children),
                _ => None,
            });
            for (item, children) in items.iter_mut().zip(all) {
                item.children = children;
            }
        }
        Node::Table(table) => {
            let all = children.into_iter().filter_map(|node| match node {
                Node::Element(element) if &*element.name == "td" => Some(element.children),
                _ => None,
            });
            let cells = table.head.iter_mut().chain(table.rows.iter_mut().flatten());
            for (cell, children) in cells.zip(all) {
                *cell = children;
            }
        }
        node => {
            let mut children = Some(children);
            node.each_children_mut(&mut |inner| {
                if let Some(children) = children.take() {
                    *inner = children;
                }
            });
        }
    }
    vec![node]
}
