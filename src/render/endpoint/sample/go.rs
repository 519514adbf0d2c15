//! A request as a program in Go.

use super::literal::string;
use super::{Credential, Request};

// === impl Request ===

impl Request<'_> {
    pub(super) fn go(&self) -> String {
        let text = self.text();
        let mut imports = vec!["io", "log", "net/http", "os"];
        imports.extend(text.is_some().then_some("strings"));
        let imports = imports.iter().map(|name| format!("\t\"{name}\"\n"));
        let mut code = format!(
            "package main\n\nimport (\n{})\n\nfunc main() {{\n",
            imports.collect::<String>()
        );
        let body = match &text {
            Some(text) if text.contains('`') => format!("strings.NewReader({})", string(text)),
            Some(text) => format!("strings.NewReader(`{text}`)"),
            None => "nil".to_owned(),
        };
        let url = string(&self.url);
        code += &format!(
            "\trequest, err := http.NewRequest(\"{}\", {url}, {body})\n\tif err != nil {{\n\t\tlog.Fatal(err)\n\t}}\n",
            self.method
        );
        match &self.credential {
            Some(Credential::Basic) => {
                code += "\trequest.SetBasicAuth(os.Getenv(\"USER\"), os.Getenv(\"PASSWORD\"))\n";
            }
            Some(Credential::Bearer) => {
                code +=
                    "\trequest.Header.Set(\"Authorization\", \"Bearer \"+os.Getenv(\"TOKEN\"))\n";
            }
            Some(Credential::Header(header, name)) => {
                let (header, name) = (string(header), string(name));
                code += &format!("\trequest.Header.Set({header}, os.Getenv({name}))\n");
            }
            None => {}
        }
        if let Some(kind) = self.kind {
            code += &format!("\trequest.Header.Set(\"Content-Type\", {})\n", string(kind));
        }
        code + "\tresponse, err := http.DefaultClient.Do(request)\n\tif err != nil {\n\t\tlog.Fatal(err)\n\t}\n\
             \tdefer response.Body.Close()\n\tio.Copy(os.Stdout, response.Body)\n}"
    }
}
