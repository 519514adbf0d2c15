//! A request as a program in Go.

use super::body::{Body, FILE};
use super::literal::{after_text, json, string};
use super::{Credential, Piece, Request};

/// Ends the program after an error.
const CHECK: &str = "\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n";
/// The function that adds a file to a form.
const ADD_FILE: &str = "\n\nfunc addFile(form *multipart.Writer, name, path string) {\n\
     \tfile, err := os.Open(path)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\tdefer file.Close()\n\
     \tpart, err := form.CreateFormFile(name, filepath.Base(path))\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\
     \tio.Copy(part, file)\n}";

// === impl Request ===

impl Request<'_> {
    pub(super) fn go(&self) -> String {
        let is_form = matches!(self.body, Some(Body::Parts(_)));
        let adds_file = is_form && self.body.as_ref().is_some_and(Body::has_file);
        let has_text = matches!(self.body, Some(Body::Json(_) | Body::Text(_)));
        let query = |credential: &Credential<'_>| matches!(credential, Credential::Query { .. });
        let imports = [
            ("bytes", is_form),
            ("io", true),
            ("log", true),
            ("mime/multipart", is_form),
            ("net/http", true),
            ("net/url", self.credentials.iter().any(query)),
            ("os", true),
            ("path/filepath", adds_file),
            ("strings", has_text),
        ];
        let imports = imports.iter().filter(|(_, is_used)| *is_used);
        let imports = imports.map(|(name, _)| format!("\t\"{name}\"\n"));
        let mut code = format!(
            "package main\n\nimport (\n{})\n\nfunc main() {{\n",
            imports.collect::<String>()
        );
        let literal = |text: String| match text.contains('`') {
            true => format!("strings.NewReader({})", string(&text)),
            false => format!("strings.NewReader(`{text}`)"),
        };
        let body = match &self.body {
            Some(Body::Json(value)) => literal(json(value)),
            Some(Body::Text(text)) => literal(text.clone()),
            Some(Body::File) => {
                code += &format!("\tbody, err := os.Open({})\n{CHECK}", string(FILE));
                "body".to_owned()
            }
            Some(Body::Parts(fields)) => {
                code += "\tvar body bytes.Buffer\n\tform := multipart.NewWriter(&body)\n";
                for part in fields {
                    let name = string(&part.name);
                    code += &match &part.text {
                        Some(text) => format!("\tform.WriteField({name}, {})\n", string(text)),
                        None => format!("\taddFile(form, {name}, {})\n", string(FILE)),
                    };
                }
                code += "\tform.Close()\n";
                "&body".to_owned()
            }
            None => "nil".to_owned(),
        };
        let variable = |name: &str| format!("os.Getenv({})", string(name));
        let address = self.address();
        let address = address.iter().map(|piece| match piece {
            Piece::Text(text) => string(text),
            Piece::Variable(name) => format!("url.QueryEscape({})", variable(name)),
        });
        let address = address.collect::<Vec<_>>().join("+");
        code += &format!(
            "\trequest, err := http.NewRequest(\"{}\", {address}, {body})\n{CHECK}",
            self.method
        );
        let header =
            |name: &str, value: &str| format!("\trequest.Header.Set({}, {value})\n", string(name));
        for credential in &self.credentials {
            code += &match credential {
                Credential::Basic => {
                    let (user, password) = (variable("USER"), variable("PASSWORD"));
                    format!("\trequest.SetBasicAuth({user}, {password})\n")
                }
                Credential::Bearer => header("Authorization", "\"Bearer \"+os.Getenv(\"TOKEN\")"),
                Credential::Header {
                    name,
                    before,
                    variable: key,
                } => header(name, &after_text(before, "+", &variable(key))),
                Credential::Query { .. } => continue,
            };
        }
        for (name, value) in &self.headers {
            code += &header(name, &string(value));
        }
        if is_form {
            code += &header("Content-Type", "form.FormDataContentType()");
        } else if let Some(kind) = self.kind {
            code += &header("Content-Type", &string(kind));
        }
        code += "\tresponse, err := http.DefaultClient.Do(request)\n";
        code += CHECK;
        code += "\tdefer response.Body.Close()\n\tio.Copy(os.Stdout, response.Body)\n}";
        if adds_file {
            code += ADD_FILE;
        }
        code
    }
}
