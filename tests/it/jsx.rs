//! JSX gives the same result as in React and in browsers: compares the examples of
//! `tests/jsx/corpus.jsx` with react-dom/server, and the numbers, dates and orders of
//! `tests/jsx/locale.js` with Node.js, which has the engine and the locales of Chromium.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::edge::Setup;
use crate::presets::SUBDOMAIN;
use scraper::{ElementRef, Html, Selector};
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

/// Calls all groups of a file and prints their lines as JSON.
const CALL: &str = r#"
const { transformSync } = require('esbuild');
const { readFileSync } = require('node:fs');
const { code } = transformSync(readFileSync(process.argv[2], 'utf8'), { format: 'cjs' });
const module_ = { exports: {} };
new Function('module', 'exports', code)(module_, module_.exports);
const all = {};
for (const [name, group] of Object.entries(module_.exports.groups)) {
  all[name] = group();
}
console.log(JSON.stringify(all));
"#;

/// Set in a process that only compares dates, in the time zone of its environment.
const ZONE_SET: &str = "WAYPOST_TEST_ZONE";

/// Returns the output of a script of Node.js for a file, in UTC.
fn node<T: serde::de::DeserializeOwned>(name: &str, script: &str, file: &Path) -> T {
    let folder = crate::clients::client("react", "react-dom@19.3.1");
    let path = folder.join(name);
    fs::write(&path, script).unwrap();
    let output = Command::new(folder.join("node_modules/.bin/node"))
        .args([&path, file])
        .env("TZ", "UTC")
        .env("LC_ALL", "en_US.UTF-8")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the HTML of react-dom/server for each example.
fn react(corpus: &Path) -> BTreeMap<String, String> {
    node("render.cjs", RENDER, corpus)
}

/// The lines that the engine of the build makes of a group.
fn lines(name: &str) -> Vec<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jsx/locale.js");
    let mut module = compile::Module::default();
    compile::statements(&fs::read_to_string(file).unwrap(), "locale.js", &mut module).unwrap();
    let mut engine = Engine::start(["Card"].into_iter()).unwrap();
    engine.add("locale", &module.code(), &Map::new()).unwrap();
    let code =
        format!("(function ({RUNTIME}, {{ groups }}) {{ return groups.{name}().join('\\n'); }})");
    let result = engine.nodes("locale", &code).unwrap().result;
    let [Output::Text(text)] = &result[..] else {
        panic!("{name}: {result:?}");
    };
    text.lines().map(str::to_owned).collect()
}

/// Returns the output of the build's engine for an example.
fn built(module: &compile::Module, name: &str) -> Vec<Output> {
    let mut engine = Engine::start(["Card"].into_iter()).unwrap();
    let mut imports = Map::new();
    imports.insert("react".to_owned(), json!("react"));
    engine.add("corpus", &module.code(), &imports).unwrap();
    let code = format!(
        "(function ({RUNTIME}, {{ examples }}) {{ return {RUNTIME}.h(examples.{name}, null); }})"
    );
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

#[test]
fn numbers_dates_and_orders_are_those_of_browsers_or_an_error() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jsx/locale.js");
    let expected: BTreeMap<String, Vec<String>> = node("call.cjs", CALL, &file);
    let (mut answered, mut answerable) = (0, 0);
    for (name, expected) in &expected {
        let found = lines(name);
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, expected) in found.iter().zip(expected) {
            // An unsupported value throws an error. It never gives a different result.
            if !found.ends_with(" = !") {
                assert_eq!(found, expected, "{name}");
                answered += 1;
            }
            answerable += usize::from(!expected.ends_with(" = !"));
        }
    }
    assert!(answered * 2 > answerable, "{answered} of {answerable}");
}

#[test]
fn dates_do_not_depend_on_the_time_zone_of_the_machine() {
    let names = ["days", "styles", "methods", "texts", "values"];
    let all = || names.map(lines).concat().join("\n");
    if std::env::var_os(ZONE_SET).is_some() {
        println!("<{}>", waypost::digest::Digest::of(all().as_bytes()));
        return;
    }
    let expected = format!("<{}>", waypost::digest::Digest::of(all().as_bytes()));
    for zone in ["America/New_York", "Asia/Kolkata", "Europe/Paris"] {
        let test = "jsx::dates_do_not_depend_on_the_time_zone_of_the_machine";
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(ZONE_SET, "1")
            .env("TZ", zone)
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains(&expected), "{zone}: {printed}");
    }
}

/// A site whose pages have evaluated components.
const SITE: [(&str, &str); 4] = [
    (
        "docs.json",
        r#"{"name": "Acme", "navigation": {"pages": ["index", "plans"]}}"#,
    ),
    (
        "index.mdx",
        "See [plans](/plans), [all plans](/plans#all-2-plans) and [none](/plans#all-3-plans).\n",
    ),
    (
        "snippets/price.jsx",
        "export const Price = ({ amount }) => <b>{amount.toLocaleString()} coins</b>;\n",
    ),
    (
        "plans.mdx",
        "---\ntitle: Plans\n---\nimport { Price } from '/snippets/price.jsx';\n\n\
         export const plans = [{ name: 'Sparrow', price: 1234 }, { name: 'Heron', price: 5 }];\n\n\
         {/* A remark. */}\n\n\
         <Columns cols={2}>\n  {plans.map(plan => <Card key={plan.name} title={plan.name} className=\"p-4\">\
         <Price amount={plan.price} /></Card>)}\n</Columns>\n\n\
         ## All {plans.length} plans\n\n\
         <Price amount={window.amount} />\n\n\
         <div style={{ color: 'red' }} onClick={() => plans.pop()}>Styled.</div>\n\n\
         <Unknown title=\"Kestrel\">Hovers.</Unknown>\n",
    ),
];

#[test]
fn texts_for_agents_and_search_have_the_evaluated_page() {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in SITE {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let out = directory.path().join("out");
    let output = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .args(["build", "--out"])
        .args([&out, directory.path()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let mut texts = BTreeMap::new();
    let mut waiting = vec![out.clone()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
                continue;
            }
            let name = path.strip_prefix(&out).unwrap().display().to_string();
            let bytes = fs::read(&path).unwrap();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let is_text = [".md", ".txt", ".index"]
                .iter()
                .any(|end| name.ends_with(end));
            if is_text {
                texts.insert(name, text);
            }
        }
    }
    for raw in [
        "className",
        "plan.",
        "=>",
        "<Card",
        "<Price",
        "A remark",
        "color:",
        "window",
        "{plans",
    ] {
        for (name, text) in texts.iter().filter(|(name, _)| !name.ends_with(".index")) {
            assert!(!text.contains(raw), "{name}: {raw}: {text}");
        }
    }
    let shown = [
        "Sparrow",
        "1,234 coins",
        "All 2 plans",
        "Styled.",
        "Kestrel",
        "Hovers.",
    ];
    for end in ["plans.md", "llms-full.txt"] {
        let (name, text) = texts.iter().find(|(name, _)| name.ends_with(end)).unwrap();
        for shown in shown {
            assert!(text.contains(shown), "{name}: {shown}: {text}");
        }
    }
    let said = said + &String::from_utf8_lossy(&output.stdout);
    let anchors: Vec<&str> = said
        .lines()
        .filter(|line| line.contains("[anchor]"))
        .collect();
    assert!(
        matches!(anchors[..], [only] if only.contains("#all-3-plans")),
        "{said}"
    );
}

#[test]
fn readers_find_and_reach_what_components_show() {
    let edge = Setup::new().site("acme", "origin: embedded").start();
    edge.publish("acme", &SITE);
    let found = edge.get(SUBDOMAIN, "/_waypost/search?q=Sparrow").json();
    assert_eq!(found["results"][0]["title"], "Plans", "{found}");
    let page = edge.get(SUBDOMAIN, "/plans");
    let heading = Html::parse_document(page.text());
    let heading = heading
        .select(&Selector::parse("#all-2-plans").unwrap())
        .next();
    let heading = heading.unwrap().text().collect::<String>();
    assert!(heading.contains("All 2 plans"), "{heading}");
    let skill = edge.get(SUBDOMAIN, "/skill.md");
    let skill = skill.text();
    assert!(
        skill.contains("Plans") && skill.contains("/plans"),
        "{skill}"
    );
    for raw in ["className", "=>", "{plans", "<Price"] {
        assert!(!skill.contains(raw), "{raw}: {skill}");
    }
}
