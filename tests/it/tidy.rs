//! The source tree keeps its own rules.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Every Rust file below `src`, with its text.
fn sources() -> Vec<(PathBuf, String)> {
    fn walk(directory: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    walk(Path::new("src"), &mut found);
    assert!(
        found.len() > 50,
        "the source tree is not where it is looked for"
    );
    found
}

/// The modules in the order of their layers, bottom first.
fn layers() -> Vec<String> {
    let lib = fs::read_to_string("src/lib.rs").unwrap();
    let name = |line: &str| Some(line.strip_prefix("pub mod ")?.strip_suffix(';')?.to_owned());
    lib.lines().filter_map(name).collect()
}

/// Returns the top-level module a file belongs to.
fn module_of(path: &Path) -> String {
    let first = path
        .strip_prefix("src")
        .unwrap()
        .components()
        .next()
        .unwrap();
    first
        .as_os_str()
        .to_str()
        .unwrap()
        .trim_end_matches(".rs")
        .to_owned()
}

/// The code of a file: comments, strings of documentation and its unit tests left out.
fn code(text: &str) -> String {
    let without_tests = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    without_tests
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| {
        matches!(
            part.as_os_str().to_str(),
            Some("tests.rs" | "tests" | "testing.rs")
        )
    })
}

#[test]
fn a_module_uses_only_what_stands_above_it_in_lib_rs() {
    let layers = layers();
    let rank = |name: &str| layers.iter().position(|layer| layer == name);
    let mut wrong = BTreeSet::new();
    for (path, text) in sources() {
        let own = module_of(&path);
        let Some(own_rank) = rank(&own) else { continue };
        if is_test(&path) {
            continue;
        }
        for used in code(&text).split("crate::").skip(1) {
            let names: Vec<&str> = match used.strip_prefix('{') {
                Some(group) => group
                    .split('}')
                    .next()
                    .unwrap()
                    .split(',')
                    .map(str::trim)
                    .collect(),
                None => vec![used],
            };
            for name in names {
                let name: String = name
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
                    .collect();
                if rank(&name).is_some_and(|rank| rank > own_rank) {
                    wrong.insert(format!(
                        "{} uses {name}, which stands below {own}",
                        path.display()
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn pingora_is_named_only_where_the_edge_is() {
    let may = |path: &Path| {
        let path = path.strip_prefix("src").unwrap();
        path.starts_with("gateway")
            || path.starts_with("cli/serve")
            || [Path::new("origin/service.rs"), Path::new("response/mod.rs")].contains(&path)
    };
    let named: Vec<_> = sources()
        .into_iter()
        .filter(|(path, text)| !may(path) && code(text).contains("pingora::"))
        .map(|(path, _)| path)
        .collect();
    assert!(named.is_empty(), "{named:?}");
}

#[test]
fn pure_modules_have_no_async_no_files_and_no_clock() {
    let pure = [
        "mdx",
        "docs",
        "skills",
        "discovery",
        "render",
        "release",
        "build",
    ];
    let banned = [
        "async fn",
        "std::fs",
        "tokio::",
        "SystemTime",
        "Clock",
        "Instant",
    ];
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        if pure.contains(&module_of(&path).as_str()) && !is_test(&path) {
            let code = code(&text);
            wrong.extend(
                banned
                    .iter()
                    .filter(|word| code.contains(**word))
                    .map(|word| format!("{}: {word}", path.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_file_is_named_after_nothing_and_none_says_todo() {
    let names = [
        "util.rs",
        "utils.rs",
        "helper.rs",
        "helpers.rs",
        "common.rs",
        "misc.rs",
        "types.rs",
        "prelude.rs",
    ];
    for (path, text) in sources() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(!names.contains(&name), "{}", path.display());
        let left = ["TODO", "FIXME", "XXX"]
            .iter()
            .find(|word| text.contains(**word));
        assert!(left.is_none(), "{}: {left:?}", path.display());
        assert!(
            text.starts_with("//!"),
            "{} does not say what it is for",
            path.display()
        );
    }
}

#[test]
fn every_intercepted_path_is_in_the_readme() {
    let readme = fs::read_to_string("README.md").unwrap();
    for pattern in waypost::discovery::paths::PATTERNS {
        let path = pattern.split(" (").next().unwrap();
        assert!(
            readme.contains(path.trim_end_matches("/…")) || path.contains('('),
            "README.md does not list {path}"
        );
    }
}
