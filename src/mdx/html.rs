//! HTML that authors write as a string, in `dangerouslySetInnerHTML`.
//!
//! It is parsed into the same nodes as the tags of a page, so the same elements, attributes and
//! addresses are allowed.
//!
//! **Limits.** An element that is nested too deep is replaced by its content.
//! Sources: WHATWG HTML §13.2.5 (tokens), §13.1.2.4 (optional tags).

use html5gum::{Token, Tokenizer};

use super::node::{Element, Node, Value, code_sample};
use super::region::VOID;

/// Elements whose content is not text of the page.
const HIDDEN: [&str; 7] = [
    "head", "noscript", "object", "script", "style", "template", "title",
];
/// Elements that the opening tag of one of the listed elements ends.
const ENDED_BY: [(&str, &[&str]); 7] = [
    ("li", &["li"]),
    ("dt", &["dt", "dd"]),
    ("dd", &["dt", "dd"]),
    ("td", &["td", "th", "tr"]),
    ("th", &["td", "th", "tr"]),
    ("tr", &["tr"]),
    (
        "p",
        &[
            "blockquote",
            "div",
            "dl",
            "h1",
            "h2",
            "h3",
            "h4",
            "h5",
            "h6",
            "hr",
            "ol",
            "p",
            "pre",
            "section",
            "table",
            "ul",
        ],
    ),
];

/// Parses HTML into nodes; `depth` is how deep elements may be nested.
pub(super) fn read(text: &str, depth: usize) -> Vec<Node> {
    let mut open: Vec<Element> = vec![Element::new("")];
    // How many open elements are hidden, and how many have no node of their own.
    let (mut hidden, mut deeper) = (0_usize, Vec::<Box<str>>::new());
    for token in Tokenizer::new(text).flatten() {
        match token {
            Token::String(text) if hidden == 0 => {
                let text = String::from_utf8_lossy(&text).into_owned();
                add(&mut open, Node::Text(text));
            }
            Token::StartTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                if HIDDEN.contains(&&*name) {
                    hidden += usize::from(!tag.self_closing);
                    continue;
                }
                if hidden > 0 {
                    continue;
                }
                let ends = |element: &Element| {
                    let mut all = ENDED_BY.iter();
                    all.any(|(ended, by)| *element.name == **ended && by.contains(&&*name))
                };
                while open.len() > 1 && open.last().is_some_and(ends) {
                    close(&mut open);
                }
                let mut element = Element::new(&name);
                for (name, value) in tag.attributes {
                    let name = String::from_utf8_lossy(&name).into_owned();
                    let value = String::from_utf8_lossy(&value).into_owned();
                    element.attributes.push((name.into(), Value::Text(value)));
                }
                if tag.self_closing || VOID.contains(&&*name) {
                    add(&mut open, Node::Element(element));
                } else if open.len() > depth {
                    deeper.push(name.into());
                } else {
                    open.push(element);
                }
            }
            Token::EndTag(tag) => {
                let name = String::from_utf8_lossy(&tag.name).into_owned();
                if HIDDEN.contains(&&*name) {
                    hidden = hidden.saturating_sub(1);
                } else if hidden > 0 {
                } else if let Some(at) = deeper.iter().rposition(|open| **open == *name) {
                    deeper.truncate(at);
                } else if let Some(at) = open.iter().rposition(|open| *open.name == *name)
                    && at > 0
                {
                    while open.len() > at {
                        close(&mut open);
                    }
                }
            }
            _ => {}
        }
    }
    while open.len() > 1 {
        close(&mut open);
    }
    open.pop().map(|root| root.children).unwrap_or_default()
}

/// Ends the innermost element.
fn close(open: &mut Vec<Element>) {
    if let Some(element) = open.pop() {
        let node = code_sample(&element).unwrap_or(Node::Element(element));
        add(open, node);
    }
}

fn add(open: &mut [Element], node: Node) {
    if let Some(inner) = open.last_mut() {
        inner.children.push(node);
    }
}
