//! Any text as the source of a redirect, a path and a destination.
//!
//! The parts are separated by zero bytes. A source without variable segments matches only itself,
//! and a filled destination is not longer than its values allow.

#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost::site::redirect::{captures, is_pattern};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = str::from_utf8(data) else {
        return;
    };
    let mut parts = text.splitn(3, '\0');
    let (Some(source), Some(path)) = (parts.next(), parts.next()) else {
        return;
    };
    let destination = parts.next().unwrap_or_default();
    let found = captures(source, path);
    if !is_pattern(source) {
        assert_eq!(found.is_some(), source == path);
    }
    if let Some(found) = found {
        let filled = found.fill(destination);
        let segments = destination.split('/').count();
        assert!(filled.len() <= destination.len() + segments * path.len());
        // Without a variable, nothing is replaced.
        if !is_pattern(source) {
            assert_eq!(filled, destination);
        }
    }
});
