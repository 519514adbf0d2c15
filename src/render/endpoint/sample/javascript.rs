//! A request as a program in JavaScript, for Node.js.

use super::literal::{after_text, string};
use super::{Credential, Piece, Request};

// === impl Request ===

impl Request<'_> {
    pub(super) fn javascript(&self) -> String {
        let variable = |name: &str| format!("process.env[{}]", string(name));
        let mut headers = Vec::new();
        for credential in &self.credentials {
            match credential {
                Credential::Basic => headers.push(
                    "Authorization: \"Basic \" + btoa(`${process.env.USER}:${process.env.PASSWORD}`)"
                        .to_owned(),
                ),
                Credential::Bearer => {
                    headers.push("Authorization: `Bearer ${process.env.TOKEN}`".to_owned());
                }
                Credential::Header {
                    name,
                    before,
                    variable: key,
                } => {
                    let value = after_text(before, " + ", &variable(key));
                    headers.push(format!("{}: {value}", string(name)));
                }
                Credential::Query { .. } => {}
            }
        }
        let fields = self.headers.iter();
        headers.extend(fields.map(|(name, value)| format!("{}: {}", string(name), string(value))));
        headers.extend(
            self.kind
                .map(|kind| format!("\"Content-Type\": {}", string(kind))),
        );
        let address = self.address();
        let address = address.iter().map(|piece| match piece {
            Piece::Text(text) => string(text),
            Piece::Variable(name) => format!("encodeURIComponent({})", variable(name)),
        });
        let address = address.collect::<Vec<_>>().join(" + ");
        let mut code = format!("const response = await fetch({address}, {{\n");
        code += &format!("  method: \"{}\",\n", self.method);
        if !headers.is_empty() {
            let lines = headers.iter().map(|header| format!("    {header},\n"));
            code += &format!("  headers: {{\n{}  }},\n", lines.collect::<String>());
        }
        if let Some(text) = self.text() {
            let body = match self.has_json() {
                true => format!("JSON.stringify({})", text.replace('\n', "\n  ")),
                false => string(&text),
            };
            code += &format!("  body: {body},\n");
        }
        code + "});\nif (!response.ok) throw new Error(response.status);\nconsole.log(await response.text());"
    }
}
