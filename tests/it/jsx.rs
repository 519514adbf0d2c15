//! JSX gives the same result as in React: compares the examples of `tests/jsx/corpus.jsx` with
//! react-dom/server.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use scraper::{ElementRef, Html};
use serde_json::{Map, json};
use waypost::jsx::{Engine, Output, RUNTIME, Value, compile};

/// Renders all examples of a file with react-dom/server and prints them as JSON.
const RENDER: &str = r#"
const { transformSync } = require('esbuild');
const { renderToStaticMarkup } = require('react-dom/server');
const { readFileSync } = require('node:fs');
const { code } = transformSync(readFileSync(process.argv[2], 'utf8'), {
  loader: 'jsx', format: 'cjs', jsx: 'transform',
});
const module_ = { exports: {} };
new Function('require', 'module', 'exports', code)(require, module_, module_.exports);
const all = {};
const { createElement } = require('react');
for (const [name, example] of Object.entries(module_.exports.examples)) {
  all[name] = renderToStaticMarkup(createElement(example));
}
console.log(JSON.stringify(all));
"#;

/// Returns the HTML of react-dom/server for each example.
fn react(corpus: &Path) -> BTreeMap<String, String> {
    let folder = crate::clients::client("react", "react-dom@19.3.1");
    let script = folder.join("render.cjs");
    fs::write(&script, RENDER).unwrap();
    let output = Command::new(folder.join("node_modules/.bin/node"))
        .args([&script, corpus])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the output of the build's engine for an example.
fn built(module: &compile::Module, name: &str) -> Vec<Output> {
    let mut engine = Engine::start(["Card"].into_iter()).unwrap();
    let mut imports = Map::new();
    imports.insert("react".to_owned(), json!("react"));
    engine.add("corpus", &module.code(), &imports).unwrap();
    let code =
        format!("(function (_, {{ examples }}) {{ return {RUNTIME}.h(examples.{name}, null); }})");
    engine.nodes("corpus", &code).unwrap().result
}

/// Writes a result in the form that [`canonical`] gives the HTML of React.
fn written(outputs: &[Output], out: &mut String) {
    for output in outputs {
        match output {
            Output::Text(text) => out.push_str(text),
            Output::Element {
                name,
                attributes,
                children,
                ..
            } => {
                let attributes = attributes.iter().map(|(name, value)| {
                    let name = match &**name {
                        "className" => "class".to_owned(),
                        name => name.to_ascii_lowercase(),
                    };
                    let Value::Text(value) = value else {
                        panic!("{name}: {value:?}");
                    };
                    (name, value.clone())
                });
                element(name, attributes.collect(), out);
                written(children, out);
                write!(out, "</{name}>").unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
}

fn element(name: &str, attributes: BTreeMap<String, String>, out: &mut String) {
    write!(out, "<{name}{attributes:?}>").unwrap();
}

/// Writes HTML with its attributes in order and without character references.
fn canonical(html: &str) -> String {
    fn content(parent: ElementRef<'_>, out: &mut String) {
        for child in parent.children() {
            if let Some(text) = child.value().as_text() {
                out.push_str(text);
            } else if let Some(found) = ElementRef::wrap(child) {
                let name = found.value().name();
                let attributes = found.value().attrs();
                let attributes = attributes.map(|(name, value)| (name.into(), value.into()));
                element(name, attributes.collect(), out);
                content(found, out);
                write!(out, "</{name}>").unwrap();
            }
        }
    }
    let mut out = String::new();
    content(Html::parse_fragment(html).root_element(), &mut out);
    out
}

#[test]
fn the_engine_shows_what_react_shows() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jsx/corpus.jsx");
    let source = fs::read_to_string(&corpus).unwrap();
    let mut module = compile::Module::default();
    compile::statements(&source, "corpus.jsx", &mut module).unwrap();
    let expected = react(&corpus);
    assert!(expected.len() > 40, "{} examples", expected.len());
    for (name, html) in &expected {
        let mut found = String::new();
        written(&built(&module, name), &mut found);
        assert_eq!(found, canonical(html), "{name}: {html}");
    }
}
