//! Reads tags and pairs of brackets.
//!
//! Sources: MDX 3, "Syntax"; JSX (attributes); ECMA-262 §12.9.4 (strings).

use super::{Attribute, AttributeValue, TokenKind};

/// Finds the end of the braces, brackets, parentheses or template that open at `start`.
///
/// Brackets in strings, templates and comments do not count. `Err` holds the byte at which
/// the search stopped.
pub(in crate::mdx) fn balanced(bytes: &[u8], start: usize) -> Result<usize, usize> {
    let mut depth = 0_usize;
    // The depth inside of each open `${`.
    let mut templates: Vec<usize> = Vec::new();
    let mut at = start;
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'(' | b'[' => depth += 1,
            b'}' if templates.last() == Some(&depth) => {
                templates.pop();
                depth -= 1;
                at = template_end(bytes, at, &mut depth, &mut templates);
            }
            b'}' | b')' | b']' => depth = depth.checked_sub(1).ok_or(at)?,
            quote @ (b'"' | b'\'') => at = string_end(bytes, at, quote),
            b'`' => at = template_end(bytes, at, &mut depth, &mut templates),
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                let end = memchr::memmem::find(&bytes[at + 2..], b"*/").ok_or(bytes.len())?;
                at += 3 + end;
            }
            b'/' => at = expression_end(bytes, start, at),
            _ => {}
        }
        if depth == 0 && at < bytes.len() {
            return Ok(at + 1);
        }
        at += 1;
    }
    Err(bytes.len())
}

/// Returns the last byte of a regular expression that starts at `at`.
///
/// Returns `at` if there is none: after a value `/` divides, and after `<` it closes a tag.
///
/// Source: ECMA-262 §12.9.5.
fn expression_end(bytes: &[u8], start: usize, at: usize) -> usize {
    let before = &bytes[start..at];
    let before = before.iter().rev().find(|b| !b.is_ascii_whitespace());
    if !before.is_some_and(|b| b"{([,;=:?!&|+-*%~^".contains(b)) {
        return at;
    }
    let (mut end, mut in_class) = (at + 1, false);
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'\\' => end += 1,
            b'\n' => return at,
            b'[' => in_class = true,
            b']' => in_class = false,
            b'/' if !in_class && end == at + 1 => return at,
            b'/' if !in_class => return end,
            _ => {}
        }
        end += 1;
    }
    at
}

/// Returns the last byte of a string.
///
/// Returns `at` if the line ends first: then the quote is an apostrophe in a text.
pub(in crate::mdx) fn string_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut end = at + 1;
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 2,
            b'\n' => return at,
            b if b == quote => return end,
            _ => end += 1,
        }
    }
    at
}

/// Returns the last byte of the text of a template that goes on after `at`: its closing
/// backtick, or the brace of its next `${`, which is then open.
fn template_end(bytes: &[u8], at: usize, depth: &mut usize, templates: &mut Vec<usize>) -> usize {
    let mut end = at + 1;
    while end < bytes.len() {
        match bytes[end] {
            b'\\' => end += 2,
            b'`' => return end,
            b'$' if bytes.get(end + 1) == Some(&b'{') => {
                *depth += 1;
                templates.push(*depth);
                return end + 1;
            }
            _ => end += 1,
        }
    }
    bytes.len()
}

/// Reads the tag that starts at `start`; `Err` holds the byte at which reading stopped.
pub(super) fn read_tag(bytes: &[u8], start: usize) -> Result<(usize, TokenKind), usize> {
    let mut at = start + 1;
    let closes = bytes.get(at) == Some(&b'/');
    if closes {
        // JSX allows space after the slash: `</ Note>`.
        at = space_end(bytes, at + 1);
    }
    let name = at..name_end(bytes, at);
    at = name.end;
    if closes {
        at = space_end(bytes, at);
        return match bytes.get(at) {
            Some(b'>') => Ok((at + 1, TokenKind::Close { name })),
            _ => Err(at),
        };
    }
    let mut attributes = Vec::new();
    loop {
        let after_space = space_end(bytes, at);
        let spaced = after_space > at;
        at = after_space;
        let closes_itself = match (bytes.get(at), bytes.get(at + 1)) {
            (Some(b'>'), _) => false,
            (Some(b'/'), Some(b'>')) => true,
            // A tag without a name can only be a fragment, `<>`.
            _ if name.is_empty() || !spaced && attributes.is_empty() => return Err(at),
            _ => {
                let (end, attribute) = read_attribute(bytes, at)?;
                attributes.push(attribute);
                at = end;
                continue;
            }
        };
        let kind = TokenKind::Open {
            name,
            attributes,
            closes_itself,
        };
        return Ok((at + 1 + usize::from(closes_itself), kind));
    }
}

fn read_attribute(bytes: &[u8], at: usize) -> Result<(usize, Attribute), usize> {
    if bytes.get(at) == Some(&b'{') {
        let end = balanced(bytes, at)?;
        let value = AttributeValue::Expression(at + 1..end - 1);
        return Ok((
            end,
            Attribute {
                name: at..at,
                value,
            },
        ));
    }
    let name = at..name_end(bytes, at);
    if name.is_empty() {
        return Err(at);
    }
    let equals = space_end(bytes, name.end);
    if bytes.get(equals) != Some(&b'=') {
        let value = AttributeValue::True;
        return Ok((name.end, Attribute { name, value }));
    }
    let at = space_end(bytes, equals + 1);
    let (end, value) = match bytes.get(at) {
        Some(quote @ (b'"' | b'\'')) => {
            let length = memchr::memchr(*quote, &bytes[at + 1..]).ok_or(bytes.len())?;
            let text = at + 1..at + 1 + length;
            (text.end + 1, AttributeValue::Text(text))
        }
        Some(b'{') => {
            let end = balanced(bytes, at)?;
            (end, AttributeValue::Expression(at + 1..end - 1))
        }
        _ => return Err(at),
    };
    Ok((end, Attribute { name, value }))
}

pub(super) fn name_end(bytes: &[u8], start: usize) -> usize {
    if !bytes.get(start).is_some_and(u8::is_ascii_alphabetic) {
        return start;
    }
    let rest = &bytes[start..];
    let is_name = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':');
    start + rest.iter().take_while(is_name).count()
}

fn space_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    start + rest.iter().take_while(|b| b.is_ascii_whitespace()).count()
}

/// Returns the end of the element that opens at `start`, or the end of the text if the
/// element is never closed.
pub(in crate::mdx) fn element_end(bytes: &[u8], start: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = start;
    while let Some(n) = bytes[at..].iter().position(|b| matches!(b, b'<' | b'{')) {
        at += n;
        if bytes[at] == b'{' {
            at = balanced(bytes, at).unwrap_or(at + 1);
            continue;
        }
        match read_tag(bytes, at) {
            Ok((end, TokenKind::Close { .. })) => {
                depth = depth.saturating_sub(1);
                at = end;
            }
            Ok((end, TokenKind::Open { closes_itself, .. })) => {
                depth += usize::from(!closes_itself);
                at = end;
            }
            Ok((end, _)) => at = end,
            Err(_) => {
                at += 1;
                continue;
            }
        }
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}
