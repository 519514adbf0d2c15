//! A request as a program in Python.

use super::literal::{PYTHON_WORDS, after_text, string, write_literal};
use super::{Credential, Request};

// === impl Request ===

impl Request<'_> {
    pub(super) fn python(&self) -> String {
        let variable = |name: &str| format!("os.environ[{}]", string(name));
        let mut headers = Vec::new();
        let mut query = Vec::new();
        let mut arguments = Vec::new();
        for credential in &self.credentials {
            match credential {
                Credential::Basic => arguments.push(format!(
                    "auth=({}, {})",
                    variable("USER"),
                    variable("PASSWORD")
                )),
                Credential::Bearer => headers.push(format!(
                    "\"Authorization\": \"Bearer \" + {}",
                    variable("TOKEN")
                )),
                Credential::Header {
                    name,
                    before,
                    variable: key,
                } => {
                    let value = after_text(before, " + ", &variable(key));
                    headers.push(format!("{}: {value}", string(name)));
                }
                Credential::Query {
                    name,
                    variable: key,
                } => query.push(format!("{}: {}", string(name), variable(key))),
            }
        }
        let fields = self.headers.iter();
        headers.extend(fields.map(|(name, value)| format!("{}: {}", string(name), string(value))));
        if !query.is_empty() {
            arguments.push(format!("params={{{}}}", query.join(", ")));
        }
        match self.body.as_deref() {
            Some(body) if self.has_json() => {
                let mut literal = String::new();
                write_literal(body, 1, &PYTHON_WORDS, &mut literal);
                arguments.push(format!("json={literal}"));
            }
            body => {
                headers.extend(
                    self.kind
                        .map(|kind| format!("\"Content-Type\": {}", string(kind))),
                );
                if body.is_some() {
                    let text = self.text().unwrap_or_default();
                    arguments.push(format!("data={}", string(&text)));
                }
            }
        }
        if !headers.is_empty() {
            arguments.insert(0, format!("headers={{{}}}", headers.join(", ")));
        }
        let method = self.method.to_string().to_lowercase();
        let mut code = String::new();
        if !self.credentials.is_empty() {
            code += "import os\n\n";
        }
        code += "import requests\n\n";
        code += &format!(
            "response = requests.{method}(\n    {},\n",
            string(&self.url)
        );
        for argument in arguments {
            code += &format!("    {argument},\n");
        }
        code + ")\nresponse.raise_for_status()\nprint(response.text)"
    }
}
