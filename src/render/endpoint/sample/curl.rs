//! A request as a `curl` command.

use super::{Credential, Request};

// === impl Request ===

impl Request<'_> {
    pub(super) fn curl(&self) -> String {
        let mut parts = vec![format!("curl -X {} {}", self.method, quoted(&self.url))];
        match &self.credential {
            Some(Credential::Basic) => parts.push("-u \"$USER:$PASSWORD\"".to_owned()),
            Some(Credential::Bearer) => {
                parts.push(format!("-H {}", quoted("Authorization: Bearer $TOKEN")));
            }
            Some(Credential::Header(header, variable)) => {
                parts.push(format!("-H {}", quoted(&format!("{header}: ${variable}"))));
            }
            None => {}
        }
        if let Some(kind) = self.kind {
            parts.push(format!("-H {}", quoted(&format!("Content-Type: {kind}"))));
        }
        if let Some(body) = self.text() {
            parts.push(format!("-d {}", single_quoted(&body)));
        }
        parts.join(" \\\n  ")
    }
}

/// Quotes a word for a shell; `$TOKEN` in it stays a variable.
fn quoted(word: &str) -> String {
    format!(
        "\"{}\"",
        word.replace('\\', "\\\\")
            .replace('"', "\\\"")
            .replace('`', "\\`")
    )
}

fn single_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
