//! A request as a program in Python.

use super::body::{Body, FILE};
use super::literal::{PYTHON, after_text, member, string, write_literal};
use super::{Credential, Request};

// === impl Request ===

impl Request<'_> {
    pub(super) fn python(&self) -> String {
        let variable = |name: &str| format!("os.environ[{}]", string(name));
        let file = format!("open({}, \"rb\")", string(FILE));
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
                    headers.push(member(name, &after_text(before, " + ", &variable(key))));
                }
                Credential::Query {
                    name,
                    variable: key,
                } => query.push(member(name, &variable(key))),
            }
        }
        let fields = self.headers.iter();
        headers.extend(fields.map(|(name, value)| member(name, &string(value))));
        // The library adds the usual type of JSON.
        let is_json = matches!(self.body, Some(Body::Json(_)));
        let kind = self
            .kind
            .filter(|kind| !is_json || *kind != "application/json");
        headers.extend(kind.map(|kind| format!("\"Content-Type\": {}", string(kind))));
        if !query.is_empty() {
            arguments.push(format!("params={{{}}}", query.join(", ")));
        }
        match &self.body {
            Some(Body::Json(value)) => {
                let mut literal = String::new();
                write_literal(value, 1, &PYTHON, &mut literal);
                arguments.push(format!("json={literal}"));
            }
            Some(Body::Text(text)) => arguments.push(format!("data={}", string(text))),
            Some(Body::File) => arguments.push(format!("data={file}")),
            Some(Body::Parts(fields)) => {
                let fields = fields.iter().map(|part| {
                    let content = match &part.text {
                        // A part that is no file has no file name.
                        Some(text) => format!("(None, {})", string(text)),
                        None => file.clone(),
                    };
                    format!("        ({}, {content}),\n", string(&part.name))
                });
                let fields: String = fields.collect();
                arguments.push(format!("files=[\n{fields}    ]"));
            }
            None => {}
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
