//! A request as a program in Go.

use super::literal::{after_text, string};
use super::{Credential, Piece, Request};

/// Ends the program after an error.
const CHECK: &str = "\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n";
// === impl Request ===

impl Request<'_> {
    pub(super) fn go(&self) -> String {
        let text = self.text();
        let query = |credential: &Credential<'_>| matches!(credential, Credential::Query { .. });
        let imports = [
            ("io", true),
            ("log", true),
            ("net/http", true),
            ("net/url", self.credentials.iter().any(query)),
            ("os", true),
            ("strings", text.is_some()),
        ];
        let imports = imports.iter().filter(|(_, is_used)| *is_used);
        let imports = imports.map(|(name, _)| format!("\t\"{name}\"\n"));
        let mut code = format!(
            "package main\n\nimport (\n{})\n\nfunc main() {{\n",
            imports.collect::<String>()
        );
        let body = match &text {
            Some(text) if text.contains('`') => format!("strings.NewReader({})", string(text)),
            Some(text) => format!("strings.NewReader(`{text}`)"),
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
        if let Some(kind) = self.kind {
            code += &header("Content-Type", &string(kind));
        }
        code += "\tresponse, err := http.DefaultClient.Do(request)\n";
        code += CHECK;
        code += "\tdefer response.Body.Close()\n\tio.Copy(os.Stdout, response.Body)\n}";
        code
    }
}
