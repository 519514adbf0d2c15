//! Any bytes as a chunked body, in pieces of any size.
//!
//! The first byte is the size of the pieces. How the bytes arrive does not matter, and a reader
//! that has the whole body finds the same end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost::gateway::chunked::{Malformed, Scanner};

fuzz_target!(|data: &[u8]| {
    let Some((&size, body)) = data.split_first() else {
        return;
    };
    let whole = scan(body, usize::MAX);
    assert_eq!(scan(body, usize::from(size).max(1)), whole);
    let found = match whole {
        Ok((length, true)) => Some(length),
        Ok((_, false)) | Err(Malformed) => None,
    };
    // Longer bodies may have lines above the limit.
    if body.len() < 4096 {
        assert_eq!(found, end_of(body));
    }
});

/// Returns how many bytes belong to the body, and whether it has ended.
fn scan(body: &[u8], size: usize) -> Result<(usize, bool), Malformed> {
    let mut scanner = Scanner::new();
    let mut taken = 0;
    for piece in body.chunks(size) {
        taken += scanner.advance(piece)?;
    }
    Ok((taken, scanner.is_done()))
}

/// Returns where a body ends; `None` if it does not end or is malformed (RFC 9112 §7.1).
fn end_of(body: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let (text, next) = line(body, at)?;
        at = next;
        let digits = text.split(|&byte| byte == b';').next()?;
        if !(1..=15).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        let size = u64::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
        if size == 0 {
            break;
        }
        at = at.checked_add(usize::try_from(size).ok()?)?;
        if body.get(at..at.checked_add(2)?)? != b"\r\n" {
            return None;
        }
        at += 2;
    }
    loop {
        let (text, next) = line(body, at)?;
        at = next;
        if text.is_empty() {
            return Some(at);
        }
    }
}

/// Returns the line at a position without its end, and the position after it. A line has no
/// control characters but tabs.
fn line(body: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = body.get(at..)?;
    let end = rest.windows(2).position(|pair| pair == b"\r\n")?;
    let text = &rest[..end];
    let is_text = |byte: &u8| *byte == b'\t' || *byte >= b' ' && *byte != 0x7f;
    text.iter().all(is_text).then_some((text, at + end + 2))
}
