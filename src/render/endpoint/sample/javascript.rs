//! A request as a program in JavaScript, for Node.js.

use super::body::{Body, FILE};
use super::literal::{after_text, json, member, string};
use super::{Credential, Piece, Request};

// === impl Request ===

impl Request<'_> {
    pub(super) fn javascript(&self) -> String {
        let variable = |name: &str| format!("process.env[{}]", string(name));
        let file = format!("await readFile({})", string(FILE));
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
                    headers.push(member(name, &after_text(before, " + ", &variable(key))));
                }
                Credential::Query { .. } => {}
            }
        }
        let fields = self.headers.iter();
        headers.extend(fields.map(|(name, value)| member(name, &string(value))));
        headers.extend(
            self.kind
                .map(|kind| format!("\"Content-Type\": {}", string(kind))),
        );
        let mut code = String::new();
        if self.body.as_ref().is_some_and(Body::has_file) {
            code += "import { readFile } from \"node:fs/promises\";\n\n";
        }
        let body = match &self.body {
            Some(Body::Json(value)) => {
                let text = json(value).replace('\n', "\n  ");
                Some(format!("body: JSON.stringify({text})"))
            }
            Some(Body::Text(text)) => Some(format!("body: {}", string(text))),
            Some(Body::File) => Some(format!("body: {file}")),
            Some(Body::Parts(fields)) => {
                code += "const body = new FormData();\n";
                for part in fields {
                    let content = match &part.text {
                        Some(text) => string(text),
                        None => format!("new Blob([{file}]), \"file\""),
                    };
                    code += &format!("body.append({}, {content});\n", string(&part.name));
                }
                Some("body".to_owned())
            }
            None => None,
        };
        let address = self.address();
        let address = address.iter().map(|piece| match piece {
            Piece::Text(text) => string(text),
            Piece::Variable(name) => format!("encodeURIComponent({})", variable(name)),
        });
        let address = address.collect::<Vec<_>>().join(" + ");
        code += &format!("const response = await fetch({address}, {{\n");
        code += &format!("  method: \"{}\",\n", self.method);
        if !headers.is_empty() {
            let lines = headers.iter().map(|header| format!("    {header},\n"));
            code += &format!("  headers: {{\n{}  }},\n", lines.collect::<String>());
        }
        if let Some(body) = body {
            code += &format!("  {body},\n");
        }
        code + "});\nif (!response.ok) throw new Error(response.status);\nconsole.log(await response.text());"
    }
}
