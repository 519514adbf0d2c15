//! Matches opening and closing tags.
//!
//! Sources: WHATWG HTML §13.1.2 (void elements).

use std::ops::Range;

use super::text::Region;
use crate::mdx::component;
use crate::mdx::scan::TokenKind;
use crate::mdx::{ATTRIBUTES_MAX, DEPTH_MAX, Reader, Rejected, short};

/// HTML elements that are always empty.
pub(in crate::mdx) const VOID: [&str; 8] =
    ["br", "hr", "img", "input", "wbr", "col", "source", "track"];
/// A token that is not text, with the pieces in it.
pub(super) enum Piece {
    Element {
        token: usize,
        inner: Range<usize>,
        end: usize,
        pieces: Vec<Piece>,
    },
    Expression {
        range: Range<usize>,
        inner: Range<usize>,
    },
    Comment {
        range: Range<usize>,
    },
    /// A tag without a partner at the start of a line.
    Text {
        range: Range<usize>,
    },
}

// === impl Reader ===

impl Reader<'_> {
    /// Matches opening and closing tags; a tag without a partner stays text.
    pub(super) fn match_tags(&mut self, region: &Region<'_>, depth: usize) -> Vec<Piece> {
        let text = region.text;
        let mut open: Vec<(usize, Vec<Piece>)> = Vec::new();
        let mut pieces: Vec<Piece> = Vec::new();
        for (at, token) in region.scanned.tokens.iter().enumerate() {
            let range = token.range.clone();
            if let TokenKind::Open { name, .. } | TokenKind::Close { name } = &token.kind
                && self.is_plain
                && (!component::is_known(&text[name.clone()]) || text[name.clone()] == *"Snippet")
                && !component::is_unseen(&text[name.clone()])
            {
                continue;
            }
            match &token.kind {
                TokenKind::Comment => pieces.push(Piece::Comment { range }),
                TokenKind::Expression { inner } => pieces.push(Piece::Expression {
                    range,
                    inner: inner.clone(),
                }),
                TokenKind::Open {
                    name,
                    attributes,
                    closes_itself,
                } => {
                    if attributes.len() > ATTRIBUTES_MAX {
                        self.too_many_attributes(region, range.start, &text[name.clone()]);
                    }
                    if *closes_itself || VOID.contains(&&text[name.clone()]) {
                        pieces.push(Piece::Element {
                            token: at,
                            inner: range.end..range.end,
                            end: range.end,
                            pieces: Vec::new(),
                        });
                    } else if open.len() + depth >= DEPTH_MAX {
                        self.reject(Rejected::TooDeep);
                        return Vec::new();
                    } else {
                        open.push((at, std::mem::take(&mut pieces)));
                    }
                }
                // `<br></br>`: an element that is always empty is closed already.
                TokenKind::Close { name } if VOID.contains(&&text[name.clone()]) => {
                    pieces.push(Piece::Comment { range });
                }
                TokenKind::Close { name } => {
                    let is_partner =
                        |(opened, _): &(usize, _)| match &region.scanned.tokens[*opened].kind {
                            TokenKind::Open { name: other, .. } => {
                                text[other.clone()] == text[name.clone()]
                            }
                            _ => false,
                        };
                    let Some(partner) = open.iter().rposition(is_partner) else {
                        self.stray(region, range, "closes a tag that is not open", &mut pieces);
                        continue;
                    };
                    while open.len() > partner + 1 {
                        self.unclosed(region, &mut open, &mut pieces);
                    }
                    if let Some((token, outer)) = open.pop() {
                        let inner = std::mem::replace(&mut pieces, outer);
                        pieces.push(Piece::Element {
                            token,
                            inner: region.scanned.tokens[token].range.end..range.start,
                            end: range.end,
                            pieces: inner,
                        });
                    }
                }
            }
        }
        while !open.is_empty() {
            self.unclosed(region, &mut open, &mut pieces);
        }
        pieces
    }

    fn too_many_attributes(&mut self, region: &Region<'_>, at: usize, name: &str) {
        let message =
            format!("`{name}` has more than {ATTRIBUTES_MAX} attributes; the others are left out");
        self.warn("page-limit", region.line_of(at), message);
    }

    fn unclosed(
        &mut self,
        region: &Region<'_>,
        open: &mut Vec<(usize, Vec<Piece>)>,
        pieces: &mut Vec<Piece>,
    ) {
        let Some((token, mut outer)) = open.pop() else {
            return;
        };
        let range = region.scanned.tokens[token].range.clone();
        self.stray(region, range, "is never closed", &mut outer);
        outer.append(pieces);
        *pieces = outer;
    }

    /// Reports a tag without a partner.
    ///
    /// At the start of a line the Markdown parser would take it for HTML, which goes on until a
    /// blank line.
    fn stray(
        &mut self,
        region: &Region<'_>,
        range: Range<usize>,
        what: &str,
        pieces: &mut Vec<Piece>,
    ) {
        if region.starts_line(range.start, 0) {
            pieces.push(Piece::Text {
                range: range.clone(),
            });
        }
        let line = region.line_of(range.start);
        let tag = short(&region.text[range]);
        self.warn(
            "mdx-tag",
            line,
            format!("`{tag}` {what}; it is shown as text"),
        );
    }
}
