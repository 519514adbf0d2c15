//! The navigation, case by case: `tests/navigation/*.case`.
//!
//! A case has three parts, separated by lines `----`: the files, the expected navigation, and the
//! expected diagnostics. A line `== path ==` begins a file; text before the first such line is
//! `docs.json`. If a case has no other file, every page that `docs.json` lists exists.
//! `UPDATE_GOLDEN=1` writes the last two parts.

mod fields;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::Value;
use waypost::diagnostic::Diagnostic;
use waypost::diagnostic::rules;
use waypost::docs::navigation::tree::{Content, Entry, Group, Open, Page, PageId, Subject};
use waypost::docs::{self, Docs, Extent, Options};
use waypost::source::{Tree, TreePath};

const DIRECTORY: &str = "tests/navigation";
const LINE: &str = "----\n";

/// The files of a case, and the settings for reading them.
struct Case {
    tree: Tree,
    options: Options,
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

/// Reads the first part of a case.
fn case(input: &str) -> Case {
    let (named, rest) = match input.strip_prefix("== ") {
        Some(_) => ("", input),
        None => {
            let end = input.find("\n== ").map_or(input.len(), |end| end + 1);
            input.split_at(end)
        }
    };
    let mut files: Vec<(TreePath, Bytes)> = Vec::new();
    if !named.is_empty() {
        files.push((path("docs.json"), Bytes::from(named.to_owned())));
    }
    for file in rest.split("== ").skip(1) {
        let (name, text) = file.split_once(" ==\n").unwrap();
        files.push((path(name), Bytes::from(text.to_owned())));
    }
    let only_config = files.len() == 1;
    Case {
        tree: Tree::from_files(files, []),
        options: Options {
            extent: match only_config {
                true => Extent::Config,
                false => Extent::Everything,
            },
            ..Options::default()
        },
    }
}

fn read(case: &Case) -> (Docs, Vec<Diagnostic>) {
    let (docs, mut found) = docs::read(&case.tree, &case.options);
    if case.options.extent == Extent::Everything {
        found.extend(waypost::build::check::references(&docs, &case.tree));
    }
    (docs, found)
}

/// Writes a navigation as an outline.
struct Outline<'d> {
    docs: &'d Docs,
    out: String,
}

impl Outline<'_> {
    fn of(docs: &Docs) -> String {
        let mut outline = Outline {
            docs,
            out: String::new(),
        };
        for anchor in &docs.navigation.global {
            writeln!(
                outline.out,
                "everywhere: {} → {}",
                anchor.label, anchor.href
            )
            .unwrap();
        }
        if let Some(content) = &docs.navigation.content {
            outline.content(content, 0);
        }
        for redirect in docs.redirects.list() {
            let until = if redirect.permanent { "" } else { " for now" };
            let (source, destination) = (&redirect.source, &redirect.destination);
            writeln!(outline.out, "redirect{until}: {source} → {destination}").unwrap();
        }
        for page in docs
            .navigation
            .pages
            .iter()
            .filter(|page| page.place.is_none())
        {
            let subject = outline.subject(page);
            writeln!(outline.out, "unlisted: {}{subject}", page.url).unwrap();
        }
        outline.out
    }

    fn line(&mut self, depth: usize, text: &str) {
        writeln!(self.out, "{}{}", "  ".repeat(depth), text.trim_end()).unwrap();
    }

    fn content(&mut self, content: &Content, depth: usize) {
        match content {
            Content::Entries(entries) => self.entries(entries, depth),
            Content::Groups(groups) => {
                for group in groups {
                    self.group(group, depth);
                }
            }
            Content::Divisions(divisions) => {
                for (at, division) in divisions.list.iter().enumerate() {
                    let mut text = format!("{} {}", divisions.kind.key(), division.label);
                    if at == divisions.default {
                        text.push_str(" [default]");
                    }
                    for (name, value) in [
                        ("icon", &division.icon),
                        ("tag", &division.tag),
                        ("description", &division.description),
                    ] {
                        if let Some(value) = value {
                            write!(text, " {name}={value}").unwrap();
                        }
                    }
                    if division.hidden {
                        text.push_str(" hidden");
                    }
                    if let Some(parts) = &division.language {
                        write!(text, " {}={}", parts.language.code, parts.language.tag).unwrap();
                        let own = [
                            ("banner", parts.banner.is_some()),
                            ("footer", parts.footer.is_some()),
                            ("navbar", parts.navbar.is_some()),
                        ];
                        for (name, _) in own.into_iter().filter(|(_, is_own)| *is_own) {
                            write!(text, " {name}").unwrap();
                        }
                    }
                    for anchor in &division.global {
                        write!(text, " everywhere: {} → {}", anchor.label, anchor.href).unwrap();
                    }
                    self.line(depth, &text);
                    self.content(&division.content, depth + 1);
                }
            }
            Content::Link(href) => self.line(depth, &format!("→ {href}")),
        }
    }

    fn group(&mut self, group: &Group, depth: usize) {
        let mut text = format!("group {} ({})", group.label, group.open.as_str());
        if let Some(root) = group.root {
            write!(text, " root={}", self.docs.navigation.page(root).url).unwrap();
        }
        if group.listing().as_str() != "none" {
            write!(text, " lists={}", group.listing().as_str()).unwrap();
        }
        for (name, value) in [("icon", &group.icon), ("tag", &group.tag)] {
            if let Some(value) = value {
                write!(text, " {name}={value}").unwrap();
            }
        }
        if group.hidden {
            text.push_str(" hidden");
        }
        self.line(depth, &text);
        self.entries(&group.entries, depth + 1);
    }

    fn entries(&mut self, entries: &[Entry], depth: usize) {
        for entry in entries {
            match entry {
                Entry::Page(id) => self.page(*id, depth),
                Entry::Group(group) => self.group(group, depth),
            }
        }
    }

    fn page(&mut self, id: PageId, depth: usize) {
        let page = self.docs.navigation.page(id);
        let mut text = format!("{} {:?}", page.url, page.title);
        if page.hidden {
            text.push_str(" hidden");
        }
        match (page.searchable, page.hidden) {
            (true, true) => text.push_str(" searchable"),
            (false, false) => text.push_str(" not searchable"),
            _ => {}
        }
        if let Some(boost) = page.boost {
            write!(text, " boost={boost}").unwrap();
        }
        text.push_str(&self.subject(page));
        self.line(depth, &text);
    }

    /// Returns the part of a specification that a page shows; the outline has it after ` = `.
    fn subject(&self, page: &Page) -> String {
        match &page.subject {
            None => String::new(),
            Some(Subject::Endpoint(id)) => {
                let specification = &self.docs.specifications[id.specification];
                let endpoint = &specification.endpoints[id.endpoint];
                format!(" = {} {}", endpoint.method, endpoint.path)
            }
            Some(Subject::Unresolved { method, path }) => format!(" = {method} {path}, not read"),
            Some(Subject::Schema(id)) => {
                let specification = &self.docs.specifications[id.specification];
                format!(" = {} of {}", id.name, specification.path)
            }
        }
    }
}

fn cases() -> Vec<PathBuf> {
    let entries = fs::read_dir(DIRECTORY).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(
        paths.len() > 50,
        "the cases are not where they are looked for"
    );
    paths
}

fn input_of(text: &str) -> &str {
    text.split(LINE).next().unwrap()
}

#[test]
fn every_case_has_the_expected_result() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    for file in cases() {
        let text = fs::read_to_string(&file).unwrap();
        let case = case(input_of(&text));
        let (docs, found) = read(&case);
        let found: Vec<_> = found.iter().map(|found| format!("{found}\n")).collect();
        let is = format!(
            "{}{LINE}{}{LINE}{}",
            input_of(&text),
            Outline::of(&docs),
            found.concat()
        );
        if update {
            fs::write(&file, &is).unwrap();
        } else if is != text {
            wrong.push(format!("{}:\n{is}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_case_that_breaks_it_and_no_case_names_another() {
    let texts = cases()
        .into_iter()
        .map(|file| fs::read_to_string(file).unwrap());
    let mut broken = BTreeSet::new();
    for text in texts {
        broken.extend(
            read(&case(input_of(&text)))
                .1
                .into_iter()
                .map(|found| found.rule),
        );
    }
    let named: BTreeSet<_> = rules::RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(
        broken.difference(&named).collect::<Vec<_>>(),
        Vec::<&&str>::new()
    );
    // No case can break these rules; the modules that check them have the tests.
    let elsewhere = BTreeSet::from([
        "canonical",
        "conf",
        "drawn-image",
        "encoding",
        "formula",
        "frame-host",
        "icon",
        "icon-library",
        "image-tag",
        "link-dangling",
        "link-loop",
        "link-outside",
        "no-day",
        "no-page",
        "page-removed",
        "page-limit",
        "path-missing",
        "site",
        "stylesheet",
    ]);
    let is_elsewhere = |id: &str| {
        let prefixes = ["convert-", "mdx-", "skill-", "source-"];
        elsewhere.contains(id) || prefixes.iter().any(|prefix| id.starts_with(prefix))
    };
    let missing: Vec<_> = named
        .difference(&broken)
        .filter(|id| !is_elsewhere(id))
        .collect();
    assert_eq!(missing, Vec::<&&str>::new());
}

/// Asserts the rules that hold for every compiled tree, whatever `docs.json` contains.
fn assert_follows_rules(docs: &Docs) {
    fn content(docs: &Docs, content_of: &Content) {
        match content_of {
            Content::Entries(list) => entries(docs, list, Open::Always),
            Content::Groups(groups) => groups.iter().for_each(|g| group(docs, g, Open::Always)),
            Content::Divisions(divisions) => {
                assert!(divisions.default < divisions.list.len(), "N7");
                for division in &divisions.list {
                    assert!(!division.label.trim().is_empty());
                    content(docs, &division.content);
                }
            }
            Content::Link(href) => assert!(!href.is_empty()),
        }
    }
    fn group(docs: &Docs, of: &Group, level: Open) {
        assert_eq!(
            of.open == Open::Always,
            level == Open::Always,
            "N5: {}",
            of.label
        );
        assert!(
            of.root.is_some() || of.listing().as_str() == "none",
            "N4: {}",
            of.label
        );
        assert!(of.root.is_some() || !of.entries.is_empty());
        entries(docs, &of.entries, Open::Collapsed);
    }
    fn entries(docs: &Docs, list: &[Entry], level: Open) {
        for entry in list {
            match entry {
                Entry::Page(id) => {
                    let page = docs.navigation.page(*id);
                    assert!(page.url.starts_with('/'));
                    assert!(page.place.is_some());
                }
                Entry::Group(of) => group(docs, of, level),
            }
        }
    }
    if let Some(of) = &docs.navigation.content {
        content(docs, of);
    }
    let urls: BTreeSet<_> = docs.navigation.pages.iter().map(|page| &page.url).collect();
    assert_eq!(urls.len(), docs.navigation.pages.len(), "a URL is one page");
    let json: Value = serde_json::from_slice(&docs::navigation::to_json(&docs.navigation)).unwrap();
    assert_eq!(json["version"], 1);
}

const KEYS: &[&str] = &[
    "pages",
    "groups",
    "tabs",
    "anchors",
    "dropdowns",
    "products",
    "versions",
    "languages",
    "menu",
    "global",
    "directory",
    "openapi",
    "group",
    "tab",
    "item",
    "anchor",
    "dropdown",
    "product",
    "version",
    "language",
    "icon",
    "tag",
    "root",
    "expanded",
    "href",
    "hidden",
    "default",
    "description",
    "banner",
    "footer",
    "navbar",
    "colour",
];

fn any_value() -> impl Strategy<Value = Value> {
    let word = prop_oneof![
        Just("a"),
        Just("b/index"),
        Just("/c.mdx"),
        Just("en"),
        Just("ja"),
        Just("card"),
        Just(""),
        Just("GET /x"),
        Just("../x"),
        Just("api.json"),
        Just("https://x.y")
    ];
    let leaf = prop_oneof![
        word.prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
        Just(Value::from(7)),
    ];
    leaf.prop_recursive(6, 80, 5, |inner| {
        let object = prop::collection::btree_map(prop::sample::select(KEYS), inner.clone(), 0..5);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::from),
            object.prop_map(|map| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    })
}

/// Generates elements of a navigation, most of them valid.
fn any_navigation() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        prop::sample::select(vec!["a", "b", "b/index", "absent"]).prop_map(Value::from),
        any_value(),
    ];
    leaf.prop_recursive(5, 60, 4, |inner| {
        let label = prop::sample::select(&KEYS[12..20]);
        let kind = prop::sample::select(&KEYS[..9]);
        let children = prop::collection::vec(inner.clone(), 0..4);
        let more = prop::collection::btree_map(prop::sample::select(&KEYS[9..]), inner, 0..2);
        (label, kind, children, more).prop_map(|(label, kind, children, more)| {
            let mut object: serde_json::Map<_, _> = more
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect();
            object.insert(label.to_owned(), "en".into());
            object.insert(kind.to_owned(), children.into());
            Value::Object(object)
        })
    })
}

fn with_pages(config: &str) -> Case {
    let api = r#"{"openapi": "3.1.0", "paths": {"/x": {"get": {}}}}"#;
    let page = "# A";
    let names = [
        ("docs.json", config),
        ("a.mdx", page),
        ("b/index.mdx", page),
        ("api.json", api),
    ];
    let files = names.map(|(name, text)| (path(name), Bytes::from(text.to_owned())));
    Case {
        tree: Tree::from_files(files, []),
        options: Options::default(),
    }
}

/// Returns the value with the keys of every object in reverse order.
fn with_reversed_keys(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(with_reversed_keys).collect(),
        Value::Object(members) => {
            let members: Vec<_> = members.iter().collect();
            members
                .into_iter()
                .rev()
                .map(|(key, value)| (key.clone(), with_reversed_keys(value)))
                .collect()
        }
        scalar => scalar.clone(),
    }
}

proptest! {
    #[test]
    fn every_compiled_tree_follows_the_rules(
        navigation in any_navigation(),
        rest in any_value(),
    ) {
        let config = serde_json::json!({"name": "A", "navigation": navigation, "api": rest});
        let (docs, _) = read(&with_pages(&config.to_string()));
        assert_follows_rules(&docs);
    }

    #[test]
    fn the_order_of_keys_changes_nothing(navigation in any_navigation()) {
        let config = serde_json::json!({"name": "A", "lenient": true, "navigation": navigation});
        let read = |config: &Value| {
            let (docs, found) = read(&with_pages(&config.to_string()));
            let mut diagnostics: Vec<_> = found.into_iter().map(|d| (d.rule, d.message, d.help)).collect();
            diagnostics.sort();
            (docs::navigation::to_json(&docs.navigation), diagnostics)
        };
        prop_assert_eq!(read(&config), read(&with_reversed_keys(&config)));
    }
}
