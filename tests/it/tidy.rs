//! The source tree follows its own rules.
//!
//! Every file is parsed. Rules about modules apply to the paths and `use` trees of its code, not to
//! its text. Code that is compiled only for tests is left out. Rules about words apply to all code
//! and all text of `src`, `tests` and `conf`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// Identifiers that say nothing about the thing that they name, and what to use.
const BANNED_IDENTIFIERS: &[(&str, &str)] = &[
    ("Answering", "Responder"),
    ("Circle", "Cycle"),
    ("Drawn", "GeneratedImage"),
    ("Facts", "the fields or the values that it has"),
    ("Finding", "Diagnostic"),
    ("Findings", "Diagnostics"),
    ("Hearing", "Listener"),
    ("Kept", "the state or the keys that it has"),
    ("Known", "the state of the thing"),
    ("Refusal", "Rejection"),
    ("Room", "ReservedSpace"),
    ("Shelf", "the copies or the entries of one owner"),
    ("Written", "the document or the file that it is"),
    ("away", "an error, by its name"),
    ("crumbs", "breadcrumbs"),
    ("in_turns", "interleave"),
    ("look", "check"),
    ("look_at", "check"),
    ("look_for_space", "check_space"),
    ("tell", "notify or report"),
    ("wait_for_look", "wait_for_check"),
];

/// Words that are not standard terms, in code or text, and what to use. They are compared in lower
/// case.
const BANNED_WORDS: &[(&str, &str)] = &[
    ("bury", "remove or reject"),
    ("buried", "removed or rejected"),
    ("crumbs", "breadcrumbs"),
    ("doomed", "to be removed"),
    ("findings", "diagnostics or problems"),
    ("patience", "timeout"),
    ("revive", "restart or restore"),
    ("revived", "restarted or restored"),
    ("shelf", "copies of a site"),
    ("shelves", "copies by site"),
];

/// A file of `src`.
pub(crate) struct Source {
    path: PathBuf,
    pub(crate) text: String,
    /// The module that the file is: `["gateway", "head"]`; empty for the root.
    module: Vec<String>,
    /// The names in the code of the file, without tests.
    names: Names,
}

/// The names in some code.
#[derive(Default)]
struct Names {
    /// The module of the code that is being visited.
    module: Vec<String>,
    /// Every path, from the root of its crate: `["crate", "index", "Index"]`, `["std", "fs"]`.
    paths: BTreeSet<Vec<String>>,
    has_async: bool,
    /// Modules that are compiled for tests alone.
    test_modules: Vec<Vec<String>>,
}

// === impl Names ===

impl Names {
    /// Adds a path as it is written, resolved by `self` and `super`.
    fn add(&mut self, written: &[String]) {
        let mut segments = written;
        let mut absolute = match segments.first().map(String::as_str) {
            Some("crate") => {
                segments = &segments[1..];
                vec!["crate".to_owned()]
            }
            Some("self" | "super") => {
                let mut module = self.module.clone();
                while let Some(first @ ("self" | "super")) = segments.first().map(String::as_str) {
                    if first == "super" {
                        module.pop();
                    }
                    segments = &segments[1..];
                }
                module.insert(0, "crate".to_owned());
                module
            }
            _ => Vec::new(),
        };
        absolute.extend_from_slice(segments);
        self.paths.insert(absolute);
    }

    fn add_tree(&mut self, before: &mut Vec<String>, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.add_tree(before, &path.tree);
                before.pop();
            }
            syn::UseTree::Name(name) => {
                before.push(name.ident.to_string());
                self.add(before);
                before.pop();
            }
            syn::UseTree::Rename(name) => {
                before.push(name.ident.to_string());
                self.add(before);
                before.pop();
            }
            syn::UseTree::Glob(_) => self.add(before),
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(before, tree);
                }
            }
        }
    }

    /// Adds the paths in the tokens of a macro, which are not parsed.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 && !path.is_empty() {
                        self.add(&std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    if !path.is_empty() {
                        self.add(&std::mem::take(&mut path));
                    }
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        if !path.is_empty() {
            self.add(&path);
        }
    }

    /// Returns the top-level modules of this crate that are named.
    fn modules(&self) -> BTreeSet<&str> {
        let in_crate = self.paths.iter().filter(|path| path[0] == "crate");
        in_crate
            .filter_map(|path| path.get(1).map(String::as_str))
            .collect()
    }

    /// Returns whether a path begins with these segments.
    fn has(&self, start: &[&str]) -> bool {
        self.paths.iter().any(|path| {
            path.len() >= start.len() && path.iter().zip(start).all(|(one, other)| one == other)
        })
    }

    /// Returns whether a path has this segment.
    fn has_segment(&self, segment: &str) -> bool {
        self.paths.iter().flatten().any(|one| one == segment)
    }
}

/// Returns whether code has the attribute `#[cfg(test)]`.
pub(crate) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|condition| condition == "test")
    })
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Enum(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        } else if let syn::Item::Mod(item) = item {
            let mut module = self.module.clone();
            module.push(item.ident.to_string());
            self.test_modules.push(module);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.add_tree(&mut Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments = path.segments.iter();
        let segments: Vec<String> = segments.map(|one| one.ident.to_string()).collect();
        self.add(&segments);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.add_tokens(item.tokens.clone());
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.has_async |= signature.asyncness.is_some();
        visit::visit_signature(self, signature);
    }

    fn visit_expr_async(&mut self, block: &'ast syn::ExprAsync) {
        self.has_async = true;
        visit::visit_expr_async(self, block);
    }
}

/// Returns the module that a file of `src` is.
fn module_of(path: &Path) -> Vec<String> {
    let path = path.strip_prefix("src").unwrap().with_extension("");
    let mut module: Vec<String> = path
        .iter()
        .map(|part| part.to_str().unwrap().to_owned())
        .collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "lib")) {
        module.pop();
    }
    module
}

fn read(path: PathBuf) -> Source {
    let text = fs::read_to_string(&path).unwrap();
    let parsed =
        syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let module = module_of(&path);
    let mut names = Names {
        module: module.clone(),
        ..Names::default()
    };
    names.visit_file(&parsed);
    Source {
        path,
        text,
        module,
        names,
    }
}

/// Every Rust file below `src`.
fn sources() -> Vec<Source> {
    fn walk(directory: &Path, found: &mut Vec<Source>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(read(path));
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

/// Every file below `src` whose code is not compiled for tests alone.
pub(crate) fn program() -> Vec<Source> {
    let mut sources = sources();
    let tests: Vec<Vec<String>> = sources
        .iter()
        .flat_map(|source| source.names.test_modules.iter().cloned())
        .collect();
    sources.retain(|source| !tests.iter().any(|test| source.module.starts_with(test)));
    sources
}

/// The modules in the order of their layers, bottom first.
fn layers() -> Vec<String> {
    let root = syn::parse_file(&fs::read_to_string("src/lib.rs").unwrap()).unwrap();
    let name = |item: &syn::Item| match item {
        syn::Item::Mod(item) => Some(item.ident.to_string()),
        _ => None,
    };
    root.items.iter().filter_map(name).collect()
}

/// Lists, by file, the modules that code names but may not name.
fn against(sources: &[Source], may: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources {
        let Some(own) = source.module.first() else {
            continue;
        };
        for name in source.names.modules() {
            if !may(own, name) {
                wrong.push(format!("{} names {name}", source.path.display()));
            }
        }
    }
    wrong
}

#[test]
fn a_module_uses_only_modules_above_it_in_lib_rs() {
    let layers = layers();
    let rank = |name: &str| layers.iter().position(|layer| layer == name);
    let wrong = against(&program(), |own, name| {
        rank(own).is_none() || rank(name) <= rank(own)
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn serving_names_neither_build_nor_render() {
    let wrong = against(&program(), |own, name| {
        !matches!(own, "index" | "origin" | "release" | "store")
            || !matches!(name, "build" | "render")
    });
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn pingora_is_named_only_where_the_edge_is() {
    let may = |source: &Source| {
        let path = source.path.strip_prefix("src").unwrap();
        path.starts_with("gateway")
            || path.starts_with("cli/serve")
            || path == Path::new("response/fields.rs")
    };
    let named: Vec<_> = program()
        .into_iter()
        .filter(|source| !may(source) && source.names.has(&["pingora"]))
        .map(|source| source.path)
        .collect();
    assert!(named.is_empty(), "{named:?}");
}

#[test]
fn percent_encoding_is_decoded_in_one_module() {
    let named: Vec<_> = program()
        .into_iter()
        .filter(|source| source.names.has(&["percent_encoding"]))
        .map(|source| source.path)
        .collect();
    assert_eq!(named, [Path::new("src/site/percent.rs")]);
}

#[test]
fn pure_modules_have_no_async_no_files_and_no_clock() {
    let pure = [
        "jsx",
        "mdx",
        "docs",
        "skills",
        "discovery",
        "release",
        "render",
        "build",
    ];
    let mut wrong = Vec::new();
    for source in program() {
        let Some(own) = source.module.first() else {
            continue;
        };
        if !pure.contains(&own.as_str()) {
            continue;
        }
        let names = &source.names;
        let banned = [
            ("async", names.has_async),
            ("std::fs", names.has(&["std", "fs"])),
            ("tokio", names.has(&["tokio"])),
            ("SystemTime", names.has_segment("SystemTime")),
            ("Clock", names.has_segment("Clock")),
            ("Instant", names.has_segment("Instant")),
        ];
        for (what, _) in banned.iter().filter(|(_, is_there)| *is_there) {
            wrong.push(format!("{}: {what}", source.path.display()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Tasks and threads that are not [essential](waypost::telemetry::panics): how many a file starts,
/// and why a panic in them stops nothing that others need.
const PANICS_END_ALONE: &[(&str, usize, &str)] = &[
    ("cli/preview/server.rs", 1, "it serves one connection"),
    (
        "cli/serve/freed.rs",
        1,
        "another one does its work in the next interval",
    ),
    (
        "database/link.rs",
        2,
        "its connection ends, and another one is opened",
    ),
    ("gateway/balance/check.rs", 1, "each check is caught"),
    ("gateway/followers.rs", 1, "it serves one connection"),
    ("gateway/handler.rs", 1, "it serves one connection"),
    ("gateway/http2.rs", 3, "it serves one stream"),
    ("gateway/operator.rs", 1, "it serves one connection"),
    (
        "index/files/stored.rs",
        1,
        "its permit is dropped, and another text is encoded",
    ),
    (
        "isolation/mod.rs",
        1,
        "its panic is the result that it is joined for",
    ),
    (
        "isolation/process/child.rs",
        1,
        "it runs in a process of one update",
    ),
    (
        "origin/resolve.rs",
        1,
        "its lookup ends, and nobody waits for it",
    ),
    (
        "source/git/program.rs",
        2,
        "it runs in a process of one update",
    ),
    (
        "telemetry/panics.rs",
        1,
        "it is the thread that ends the process",
    ),
    (
        "telemetry/repeats.rs",
        1,
        "numbers are logged with the next line instead",
    ),
    ("watchdog.rs", 1, "it runs in a process of one update"),
];

#[test]
fn a_panic_in_a_task_that_others_need_ends_the_process() {
    let mut wrong = Vec::new();
    for source in program() {
        let path = source.path.strip_prefix("src").unwrap();
        let path = path.to_str().unwrap();
        let code = source
            .text
            .split("#[cfg(test)]\nmod tests {")
            .next()
            .unwrap();
        let starts = ["tokio::spawn(", "thread::spawn(", "thread::Builder::new()"];
        let lines = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let started = lines.filter(|line| starts.iter().any(|start| line.contains(start)));
        let found = started
            .filter(|line| !line.contains("panics::essential"))
            .count();
        let known = PANICS_END_ALONE.iter().find(|(known, ..)| *known == path);
        let expected = known.map_or(0, |(_, count, _)| *count);
        if found != expected {
            wrong.push(format!(
                "{path}: {found} tasks or threads, {expected} are known"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn names_are_read_from_use_trees_paths_and_macros_and_not_from_tests() {
    let code = "
        use crate::{build, index::{Index, self}};
        use super::super::render::Html as Text;
        mod inner { fn f() { super::g(); super::super::store::h() } }
        fn g() { println!(\"{}\", crate::deploy::x(pingora::y)); }
        #[cfg(test)] mod tests { use crate::cli; }
        #[cfg(test)] fn t() { crate::config::x() }
        // crate::gateway
    ";
    let mut names = Names {
        module: vec!["origin".to_owned(), "service".to_owned()],
        ..Names::default()
    };
    names.visit_file(&syn::parse_file(code).unwrap());
    let expected = ["build", "deploy", "index", "origin", "render"];
    assert_eq!(names.modules(), expected.into());
    assert!(names.has(&["crate", "origin", "store"]) && names.has(&["pingora"]));
    assert_eq!(names.test_modules, [["origin", "service", "tests"]]);
}

#[test]
fn no_file_has_a_vague_name_or_a_todo() {
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
    for Source { path, text, .. } in sources() {
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

/// Adds the identifiers in tokens, and in their groups.
fn add_identifiers(tokens: TokenStream, found: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(identifier) => drop(found.insert(identifier.to_string())),
            TokenTree::Group(group) => add_identifiers(group.stream(), found),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Returns the banned identifiers in Rust code, each with what to use.
fn banned_identifiers(code: &str) -> Vec<String> {
    let mut found = BTreeSet::new();
    add_identifiers(code.parse().unwrap(), &mut found);
    let banned = BANNED_IDENTIFIERS.iter();
    banned
        .filter(|(name, _)| found.contains(*name))
        .map(|(name, better)| format!("`{name}`: use {better}"))
        .collect()
}

/// Returns the banned words in a text or in code, each with what to use. An identifier such as
/// `take_doomed` consists of several words.
fn banned_words(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let words: BTreeSet<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
    let banned = BANNED_WORDS.iter();
    banned
        .filter(|(word, _)| words.contains(word))
        .map(|(word, better)| format!("\"{word}\": use {better}"))
        .collect()
}

#[test]
fn banned_identifiers_and_words_are_found_in_code_and_text() {
    let code = "struct Shelf; /// Known\nfn known() { f(\"Kept\", [Facts::new()]) }";
    assert_eq!(
        banned_identifiers(code),
        [
            "`Facts`: use the fields or the values that it has",
            "`Shelf`: use the copies or the entries of one owner"
        ]
    );
    assert_eq!(
        banned_words("take_doomed(); // The Shelves of shelving"),
        [
            "\"doomed\": use to be removed",
            "\"shelves\": use copies by site"
        ]
    );
}

#[test]
fn code_and_text_have_no_banned_identifier_and_no_banned_word() {
    fn walk(directory: &Path, wrong: &mut Vec<String>, files: &mut u32) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let extension = path.extension().and_then(|extension| extension.to_str());
            if path.is_dir() {
                walk(&path, wrong, files);
            } else if path != Path::new(file!())
                && matches!(extension, Some("rs" | "md" | "mdx" | "yaml" | "sql"))
            {
                let text = fs::read_to_string(&path).unwrap();
                let mut banned = banned_words(&text);
                if extension == Some("rs") {
                    banned.extend(banned_identifiers(&text));
                }
                *files += 1;
                wrong.extend(
                    banned
                        .iter()
                        .map(|what| format!("{}: {what}", path.display())),
                );
            }
        }
    }
    let (mut wrong, mut files) = (Vec::new(), 0);
    for directory in ["src", "tests", "conf"] {
        walk(Path::new(directory), &mut wrong, &mut files);
    }
    assert!(files > 500, "only {files} files were read");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_intercepted_path_is_in_the_readme() {
    let readme = fs::read_to_string("README.md").unwrap();
    for path in waypost::discovery::paths::PATTERNS {
        assert!(
            readme.contains(&format!("`{{b}}{path}`")),
            "README.md does not list {path}"
        );
    }
}
