//! A request as a `curl` command.

use super::body::{Body, FILE};
use super::literal::json;
use super::{Credential, Piece, Request};
use crate::docs::openapi::Method;

// === impl Request ===

impl Request<'_> {
    pub(super) fn curl(&self) -> String {
        let method = match self.method {
            // With `-X HEAD`, curl waits for a body that never comes.
            Method::Head => "--head".to_owned(),
            method => format!("-X {method}"),
        };
        let mut parts = vec![format!("curl {method} {}", quoted(&self.address()))];
        let header = |name: &str, value: &str, variable: Option<&str>| {
            let mut pieces = vec![Piece::Text(format!("{name}: {value}"))];
            pieces.extend(variable.map(|variable| Piece::Variable(variable.to_owned())));
            format!("-H {}", quoted(&pieces))
        };
        parts.extend(self.credentials.iter().filter_map(|credential| {
            Some(match credential {
                Credential::Basic => "-u \"$USER:$PASSWORD\"".to_owned(),
                Credential::Bearer => header("Authorization", "Bearer ", Some("TOKEN")),
                Credential::Header {
                    name,
                    before,
                    variable,
                } => header(name, before, Some(variable.as_str())),
                Credential::Query { .. } => return None,
            })
        }));
        let headers = self.headers.iter();
        parts.extend(headers.map(|(name, value)| header(name, value, None)));
        parts.extend(self.kind.map(|kind| header("Content-Type", kind, None)));
        match &self.body {
            Some(Body::Json(value)) => parts.push(format!("-d {}", single_quoted(&json(value)))),
            Some(Body::Text(text)) => parts.push(format!("-d {}", single_quoted(text))),
            Some(Body::File) => parts.push(format!("--data-binary '@{FILE}'")),
            Some(Body::Parts(fields)) => parts.extend(fields.iter().map(|part| match &part.text {
                // `-F` reads a file of a text that begins with `@`, and a type after `;`.
                Some(text) => {
                    let field = format!("{}={text}", part.name);
                    format!("--form-string {}", single_quoted(&field))
                }
                None => format!("-F {}", single_quoted(&format!("{}=@{FILE}", part.name))),
            })),
            None => {}
        }
        parts.join(" \\\n  ")
    }
}

/// Quotes a word for a shell, in which variables stay variables.
///
/// Double quotes keep the meaning of some characters (POSIX.1-2024 XCU §2.2.3; interactive shells
/// also expand `!`), so a text with one of them is in single quotes.
fn quoted(pieces: &[Piece]) -> String {
    let is_expanded = |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains(['$', '`', '"', '\\', '!']));
    let is_plain = !pieces.iter().any(is_expanded);
    let words = pieces.iter().map(|piece| match piece {
        Piece::Text(text) if is_plain => text.clone(),
        Piece::Text(text) => single_quoted(text),
        Piece::Variable(name) if is_plain => format!("${name}"),
        Piece::Variable(name) => format!("\"${name}\""),
    });
    let word: String = words.collect();
    match is_plain {
        true => format!("\"{word}\""),
        false => word,
    }
}

fn single_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
