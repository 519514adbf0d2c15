//! A request as a program in JavaScript, for Node.js.

use super::literal::string;
use super::{Credential, Request};

// === impl Request ===

impl Request<'_> {
    pub(super) fn javascript(&self) -> String {
        let mut headers = Vec::new();
        match &self.credential {
            Some(Credential::Basic) => headers.push(
                "Authorization: \"Basic \" + btoa(`${process.env.USER}:${process.env.PASSWORD}`)"
                    .to_owned(),
            ),
            Some(Credential::Bearer) => {
                headers.push("Authorization: `Bearer ${process.env.TOKEN}`".to_owned());
            }
            Some(Credential::Header(header, name)) => {
                headers.push(format!("{}: process.env[{}]", string(header), string(name)));
            }
            None => {}
        }
        headers.extend(
            self.kind
                .map(|kind| format!("\"Content-Type\": {}", string(kind))),
        );
        let mut code = format!("const response = await fetch({}, {{\n", string(&self.url));
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
