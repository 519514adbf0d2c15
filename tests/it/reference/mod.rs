//! The reference pages of the bundled documentation, generated from the program itself.
//!
//! A page is generated from the program's own data: the shipped configuration, the command line,
//! the table of `docs.json`, the rules, the metrics. The tests compare; with `UPDATE_GOLDEN=1`
//! (`make reference`) they write the pages. The text before the marker in a page is written by hand
//! and is not changed.

mod figures;
mod metrics;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use clap::{ArgAction, CommandFactory as _};
use serde_json::Value;
use waypost::cli::Cli;
use waypost::config::Config;
use waypost::diagnostic::rules::RULES;
use waypost::docs::schema::json_schema::json_schema;

const DOCS: &str = "conf/demo/docs";
const SHIPPED: &str = include_str!("../../../conf/waypost.yaml");
/// A site record with every key.
const RECORD: &str = include_str!("../../../conf/site.yaml");
/// The line between the introduction of a page, which is written by hand, and the rest.
const MARKER: &str = "{/* Written by `make reference` from here on. */}";

/// Compares the text of a page below the marker, or writes it.
#[track_caller]
fn assert_page(page: &str, generated: &str) {
    let path = Path::new(DOCS).join(page);
    let text = fs::read_to_string(&path).unwrap();
    let (introduction, _) = text
        .split_once(MARKER)
        .unwrap_or_else(|| panic!("{page} has the line {MARKER}"));
    assert_file(&path, &format!("{introduction}{MARKER}\n\n{generated}"));
}

/// Compares a file with its expected content, or writes it.
#[track_caller]
fn assert_file(path: &Path, expected: &str) {
    let expected = format!("{}\n", expected.trim_end());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(path, expected).unwrap();
        return;
    }
    let text = fs::read_to_string(path).unwrap();
    let differs = text
        .lines()
        .zip(expected.lines())
        .position(|(is, should)| is != should);
    assert!(
        text == expected,
        "{} is not what the program says (from line {}); run `make reference`",
        path.display(),
        differs.map_or(0, |line| line + 1),
    );
}

/// Writes text as MDX, in which braces, angle brackets and emphasis have a meaning. Text between
/// backticks is not changed.
fn prose(text: &str) -> String {
    let mut out = String::new();
    for (at, part) in text.split('`').enumerate() {
        if at > 0 {
            out.push('`');
        }
        for c in part.chars() {
            if at % 2 == 0 && matches!(c, '{' | '}' | '<' | '*' | '_' | '[') {
                out.push('\\');
            }
            if c == '|' {
                out.push('\\');
            }
            out.push(c);
        }
    }
    out
}

/// Writes text as code inside a table.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

/// A sentence: first letter in upper case, full stop at the end.
fn sentence(text: &str) -> String {
    let mut chars = text.trim().chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    let text = format!("{}{}", first.unwrap_or_default(), chars.as_str());
    match text.chars().last() {
        Some('.' | '?' | ':') | None => text,
        Some(_) => format!("{text}."),
    }
}

// === Commented YAML ===

/// A key of a commented YAML file.
#[derive(Debug, Default)]
struct Key {
    /// The keys that lead to it, and its own key.
    path: Vec<String>,
    /// The comment above it.
    comment: String,
    /// Its value, as it is written; empty for a key with keys below it.
    value: Option<String>,
}

/// Reads the keys of one of our YAML files: mappings, each key with a comment above it; values on
/// one line, or lists of texts.
fn keys_of(text: &str) -> Vec<Key> {
    let mut keys: Vec<Key> = Vec::new();
    let mut comment: Vec<&str> = Vec::new();
    let mut above: Vec<String> = Vec::new();
    for line in text.lines() {
        let bare = line.trim_start();
        let depth = (line.len() - bare.len()) / 2;
        if let Some(words) = bare.strip_prefix('#') {
            comment.push(words.trim());
        } else if bare.is_empty() {
            comment.clear();
        } else if let Some(entry) = bare.strip_prefix("- ") {
            let value = &mut keys.last_mut().expect("a key before its list").value;
            let before = value
                .take()
                .map_or_else(String::new, |list| format!("{list} "));
            *value = Some(format!("{before}{entry}"));
        } else {
            let (key, value) = bare.split_once(':').expect("a line is a key");
            above.truncate(depth);
            above.push(key.to_owned());
            keys.push(Key {
                path: above.clone(),
                comment: comment.join(" "),
                value: Some(value.trim().to_owned()).filter(|value| !value.is_empty()),
            });
            comment.clear();
        }
    }
    keys
}

/// Returns the allowed values of a key: the end of the message about a value that does not fit.
fn expected_type(messages: &[String], name: &str) -> Option<String> {
    let about = messages
        .iter()
        .find(|message| message.contains(&format!("`{name}` is ")))?;
    let (_, expected_type) = about.split_once(", expected ")?;
    Some(expected_type.to_owned())
}

/// Writes a section of the configuration: its keys with default, values and meaning.
fn section(out: &mut String, title: &str, about: &str, keys: &[(&Key, String)]) {
    let _ = writeln!(out, "## {title}\n\n{}\n", prose(about));
    let _ = writeln!(
        out,
        "| Key | Default | Values | Meaning |\n| --- | --- | --- | --- |"
    );
    for (key, expected_type) in keys {
        let default = key.value.as_deref().unwrap_or_default();
        // The items of a list of texts are shown one by one.
        let default = match default {
            "[]" | "{}" | "null" | "\"\"" => "none".to_owned(),
            list if list.contains(' ') && !list.starts_with(['[', '"', '{']) => {
                list.split(' ').map(code).collect::<Vec<_>>().join(" ")
            }
            value => code(value.trim_matches('"')),
        };
        let _ = writeln!(
            out,
            "| {} | {default} | {} | {} |",
            code(&key.path.join(".")),
            prose(expected_type),
            prose(&key.comment),
        );
    }
    out.push('\n');
}

/// Asks the program for the allowed values of a key, by giving it a mapping, which no key accepts.
fn values_of_setting(path: &[String]) -> String {
    let mut text = String::new();
    for (depth, key) in path.iter().enumerate() {
        let _ = writeln!(text, "{}{key}:", "  ".repeat(depth));
    }
    let _ = writeln!(text, "{}zzz: [zzz]", "  ".repeat(path.len()));
    let found = Config::parse("conf", &text).err().unwrap_or_default();
    let messages: Vec<String> = found.iter().map(|one| one.message.to_string()).collect();
    expected_type(&messages, &path.join(".")).unwrap_or_default()
}

#[test]
fn every_key_of_the_configuration_is_on_its_page() {
    let keys = keys_of(SHIPPED);
    assert!(keys.len() > 80, "{} keys", keys.len());
    let mut out = String::new();
    let is_leaf = |key: &&Key| key.value.is_some();
    let alone: Vec<_> = keys
        .iter()
        .filter(|key| key.path.len() == 1 && key.value.is_some())
        .map(|key| (key, values_of_setting(&key.path)))
        .collect();
    for top in keys
        .iter()
        .filter(|key| key.path.len() == 1 && key.value.is_none())
    {
        let below: Vec<_> = keys
            .iter()
            .filter(is_leaf)
            .filter(|key| key.path[0] == top.path[0])
            .map(|key| (key, values_of_setting(&key.path)))
            .collect();
        section(&mut out, &top.path[0], &top.comment, &below);
    }
    section(
        &mut out,
        "Other keys",
        "These keys stand at the top of the file.",
        &alone,
    );
    for key in keys.iter().filter(is_leaf) {
        assert!(
            !key.comment.is_empty(),
            "{} has no comment",
            key.path.join(".")
        );
    }
    assert_page("operate/reference/configuration.mdx", &out);
}

// === Commands ===

fn command(out: &mut String, name: &str, command: &mut clap::Command) {
    let about = command.get_long_about().or(command.get_about());
    let about = about.map(ToString::to_string).unwrap_or_default();
    let _ = writeln!(out, "## {name}\n");
    for paragraph in about.split("\n\n") {
        let _ = writeln!(out, "{}\n", sentence(&prose(paragraph)));
    }
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ").replace('\n', "\n  ");
    // clap has only the name of the subcommand; people type the whole command.
    let last = name.rsplit(' ').next().unwrap_or(name);
    let usage = match usage.strip_prefix("waypost") {
        Some(_) => usage,
        None => format!("{name}{}", usage.strip_prefix(last).unwrap_or(&usage)),
    };
    let _ = writeln!(out, "```text\n{usage}\n```\n");
    let arguments: Vec<_> = command
        .get_arguments()
        .filter(|argument| !argument.is_hide_set())
        .filter(|argument| {
            !matches!(
                argument.get_action(),
                ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
            )
        })
        .collect();
    if !arguments.is_empty() {
        let _ = writeln!(out, "| Argument | Default | Meaning |\n| --- | --- | --- |");
    }
    for argument in &arguments {
        let value = argument
            .get_value_names()
            .filter(|_| argument.get_action().takes_values())
            .map(|names| format!("<{}>", names.join("> <")));
        let shown = match (argument.get_long(), value) {
            (Some(long), Some(value)) => format!("--{long} {value}"),
            (Some(long), None) => format!("--{long}"),
            (None, value) => value.unwrap_or_else(|| argument.get_id().to_string()),
        };
        let defaults = argument.get_default_values();
        let default = defaults
            .iter()
            .map(|value| value.to_string_lossy())
            .filter(|value| !value.is_empty() && argument.get_action().takes_values())
            .map(|value| code(&value))
            .collect::<Vec<_>>()
            .join(" ");
        let help = argument
            .get_help()
            .map(ToString::to_string)
            .unwrap_or_default();
        let possible = argument.get_possible_values();
        let mut help = sentence(&prose(&help));
        if argument.get_action().takes_values() && !possible.is_empty() {
            let each: Vec<_> = possible
                .iter()
                .map(|value| match value.get_help() {
                    Some(about) => {
                        format!("{} ({})", code(value.get_name()), prose(&about.to_string()))
                    }
                    None => code(value.get_name()),
                })
                .collect();
            let _ = write!(help, " One of: {}.", each.join(", "));
        }
        let _ = writeln!(out, "| {} | {default} | {help} |", code(&shown));
    }
    if !arguments.is_empty() {
        out.push('\n');
    }
    let below: Vec<String> = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
        .map(|sub| sub.get_name().to_owned())
        .collect();
    for sub in below {
        let full = format!("{name} {sub}");
        let sub = command
            .find_subcommand_mut(&sub)
            .expect("it was just named");
        self::command(out, &full, sub);
    }
}

#[test]
fn every_command_is_on_its_page() {
    let mut cli = Cli::command();
    cli.build();
    let mut out = String::new();
    let below: Vec<String> = cli
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help")
        .map(|sub| sub.get_name().to_owned())
        .collect();
    assert!(below.len() > 10, "{below:?}");
    for name in below {
        let sub = cli.find_subcommand_mut(&name).expect("it was just named");
        command(&mut out, &format!("waypost {name}"), sub);
    }
    assert_page("operate/reference/commands.mdx", &out);
}

// === Site records ===

/// Returns the program's messages about a site record.
fn messages_about(record: &str) -> Vec<String> {
    let setup = crate::edge::Setup::new();
    setup.write_records("one.yaml", record);
    let output = setup.run(&["check", "--format", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    fn texts(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => found.push(text.clone()),
            Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
            Value::Object(values) => values.values().for_each(|value| texts(value, found)),
            _ => {}
        }
    }
    let mut all = Vec::new();
    texts(&found, &mut all);
    all
}

#[test]
fn every_key_of_a_site_record_is_on_its_page() {
    let keys = keys_of(RECORD);
    // The program accepts the bundled record.
    let about = messages_about(RECORD);
    assert!(
        !about.iter().any(|text| text.contains("is not a key")),
        "{about:?}"
    );
    // The program lists the known keys when it finds an unknown one.
    for parent in ["", "repository", "origin", "origin.check"] {
        let start = "project: acme\nsubdomain: acme\n";
        let record = match parent {
            "" => format!("{start}zzzzzzzzzz: 1\n"),
            "origin.check" => format!(
                "{start}origin:\n  url: https://acme.test\n  check: {{ path: /a, zzzzzzzzzz: 1 }}\n"
            ),
            parent => format!("{start}{parent}:\n  url: https://acme.test\n  zzzzzzzzzz: 1\n"),
        };
        let messages = messages_about(&record);
        let known = messages
            .iter()
            .find_map(|text| text.strip_prefix("known keys: "))
            .unwrap_or_else(|| panic!("{messages:?}"));
        for key in known.split(", ") {
            let path: Vec<&str> = match parent {
                "" => vec![key],
                parent => parent.split('.').chain([key]).collect(),
            };
            assert!(
                keys.iter().any(|known| known.path == path),
                "conf/site.yaml does not show {path:?}"
            );
        }
    }
    let mut out = String::new();
    let _ = writeln!(out, "| Key | Value here | Meaning |\n| --- | --- | --- |");
    for key in &keys {
        assert!(!key.comment.is_empty(), "{:?} has no comment", key.path);
        let value = key.value.as_deref().unwrap_or_default();
        let value = if value.is_empty() {
            String::new()
        } else {
            code(value)
        };
        let _ = writeln!(
            out,
            "| {} | {value} | {} |",
            code(&key.path.join(".")),
            prose(&key.comment)
        );
    }
    assert_page("operate/reference/site-records.mdx", &out);
}

// === docs.json ===

/// Describes a value of the JSON Schema in words.
fn kind_of(schema: &Value) -> String {
    let link = |reference: &str| {
        let name = reference.rsplit('/').next().unwrap_or_default();
        format!(
            "[{name}](#{})",
            name.to_lowercase()
                .replace(['.', '`'], "")
                .replace(' ', "-")
        )
    };
    // Any object and list may be in its own file, and languages have other spellings.
    if schema["$ref"] == "#/definitions/file" || schema.get("pattern").is_some() {
        return String::new();
    }
    if let Some(reference) = schema["$ref"].as_str() {
        return link(reference);
    }
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().filter_map(Value::as_str).map(code).collect();
        return values.join(", ");
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(parts) = schema[key].as_array() {
            let mut kinds: Vec<String> = Vec::new();
            for kind in parts.iter().map(kind_of).filter(|kind| !kind.is_empty()) {
                if !kinds.contains(&kind) {
                    kinds.push(kind);
                }
            }
            return kinds.join(" or ");
        }
    }
    match schema["type"].as_str() {
        Some("array") => match kind_of(&schema["items"]) {
            items if items.is_empty() => "list".to_owned(),
            items => format!("list of {items}"),
        },
        Some("string") => "text".to_owned(),
        Some("boolean") => "`true` or `false`".to_owned(),
        Some(other) => other.to_owned(),
        None => String::new(),
    }
}

#[test]
fn every_key_of_docs_json_is_on_its_page() {
    let schema = json_schema();
    let definitions = schema["definitions"].as_object().unwrap();
    let first = schema["else"]["$ref"].as_str().unwrap();
    let first = first.rsplit('/').next().unwrap();
    // Lenient sites have the same keys.
    let is_shown = |name: &&String| *name != "file" && !name.ends_with("(lenient)");
    let mut names: Vec<&String> = definitions.keys().filter(is_shown).collect();
    names.sort_by_key(|name| (*name != first, *name != "navigation", name.to_lowercase()));
    let mut out = String::new();
    for name in names {
        let definition = &definitions[name];
        let object = definition["anyOf"]
            .as_array()
            .and_then(|parts| parts.iter().find(|part| part.get("properties").is_some()))
            .unwrap_or(definition);
        let required: Vec<_> = object["required"]
            .as_array()
            .into_iter()
            .flatten()
            .collect();
        let about = object["description"].as_str().unwrap_or_default();
        let _ = writeln!(out, "## {name}\n\n{}\n", sentence(&prose(about)));
        let _ = writeln!(out, "| Key | Value | Meaning |\n| --- | --- | --- |");
        for (key, value) in object["properties"].as_object().into_iter().flatten() {
            let is_required = required.iter().any(|name| name.as_str() == Some(key));
            let needed = if is_required { " Required." } else { "" };
            let about = value["description"].as_str().unwrap_or_default();
            let _ = writeln!(
                out,
                "| {} | {} | {}{needed} |",
                code(key),
                kind_of(value),
                sentence(&prose(about)),
            );
        }
        out.push('\n');
    }
    assert_page("write/reference/docs-json.mdx", &out);
}

// === Frontmatter ===

#[test]
fn every_key_of_frontmatter_is_on_its_page() {
    let source = fs::read_to_string("src/docs/page/meta.rs").unwrap();
    // `reader.text("title")` or `mapping.get("related")`: each key is read by a method.
    let calls = source.split("reader").chain(source.split("mapping"));
    let keys = calls.filter_map(|rest| {
        let (method, key) = rest.trim_start().strip_prefix('.')?.split_once("(\"")?;
        let is_call = method.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        key.split('"').next().filter(|_| is_call).map(str::to_owned)
    });
    let mut read: Vec<String> = keys.collect();
    // The names of tags have only their beginning in common.
    let (_, tags) = source.split_once("const TAGS: [&str; 3] = [").unwrap();
    let tags = tags.split(']').next().unwrap().split(',');
    read.extend(tags.map(|tag| format!("{}…", tag.trim().trim_matches('"'))));
    read.sort_unstable();
    read.dedup();
    assert!(read.len() > 10, "{read:?}");
    let page = fs::read_to_string(format!("{DOCS}/write/pages.mdx")).unwrap();
    let (_, table) = page.split_once("## Frontmatter").unwrap();
    let table = table.split("\n## ").next().unwrap();
    let mut shown: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|line| line.split(" |").next())
        .flat_map(|cell| cell.split('`').step_by(2))
        .filter(|key| !key.is_empty() && *key != ", ")
        .collect();
    shown.sort_unstable();
    assert_eq!(
        shown, read,
        "the table of write/pages.mdx, and what the program reads"
    );
}

// === Rules, licences ===

#[test]
fn every_rule_is_on_its_page() {
    let mut out = String::new();
    for rule in RULES {
        let _ = writeln!(
            out,
            "## {}\n\n**{}**\n",
            rule.id,
            sentence(&prose(rule.title))
        );
        for paragraph in rule.text.split("\n\n") {
            let _ = writeln!(out, "{}\n", prose(paragraph));
        }
    }
    assert_page("write/reference/rules.mdx", &out);
}

#[test]
fn the_licences_of_bundled_syntaxes_are_in_the_repository() {
    let listing = two_face::acknowledgement::listing().to_md();
    assert_file(Path::new("licenses/syntaxes.md"), &listing);
}

// === Components ===

#[test]
fn every_component_is_on_one_of_its_pages() {
    let pages = ["callouts", "code", "layout", "reference"]
        .map(|page| fs::read_to_string(format!("{DOCS}/write/components/{page}.mdx")).unwrap());
    let source = fs::read_to_string("src/mdx/component.rs").unwrap();
    let list = |name: &str| {
        let (_, list) = source.split_once(&format!("const {name}: [")).unwrap();
        let (_, list) = list.split_once("= [").unwrap();
        let names = list.split("];").next().unwrap().split('"').skip(1);
        names.step_by(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let names = [list("INLINE"), list("BLOCK")].concat();
    assert!(names.len() > 40, "{names:?}");
    // Other names of components that are on a page.
    let other = ["Error", "Param", "Response"];
    let missing: Vec<_> = names
        .iter()
        .filter(|name| !other.contains(&name.as_str()))
        .filter(|name| {
            let shown = [
                format!("`{name}`"),
                format!("<{name} "),
                format!("<{name}>"),
            ];
            !pages
                .iter()
                .any(|page| shown.iter().any(|shown| page.contains(shown)))
        })
        .collect();
    assert!(missing.is_empty(), "not documented: {missing:?}");
}
