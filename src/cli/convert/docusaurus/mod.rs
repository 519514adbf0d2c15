//! A Docusaurus site: `docusaurus.config.*` and its sidebars, both read as data.

mod excluded;
mod settings;
mod sidebar;

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json};

use super::Converted;
use super::notes::{Notes, object, resolve, set};
use super::pages::{self, Foreign};
use crate::docs::page;
use crate::source::TreePath;
use crate::syntax::{Data, Value};

use excluded::Excluded;
use sidebar::Sidebars;

/// Syntax of Docusaurus that is not read.
const FOREIGN: [Foreign; 4] = [
    Foreign {
        is: |line| {
            let kind = line.trim_start_matches(':');
            line.starts_with(":::") && kind.starts_with(|letter: char| letter.is_alphabetic())
        },
        name: "an admonition (`:::`)",
        instead: "write `<Note>` … `</Note>`",
    },
    Foreign {
        is: |line| line.starts_with("<TabItem"),
        name: "`<TabItem>`",
        instead: "write `<Tab title=\"…\">`",
    },
    Foreign {
        is: |line| line.starts_with("import ") && line.contains("@theme/"),
        name: "an import from the theme",
        instead: "remove it: components need no import",
    },
    Foreign {
        is: |line| line.starts_with("import ") && line.contains("@site/"),
        name: "an import by `@site`",
        instead: "write the path from the root of the documentation, such as /src/components/a.jsx",
    },
];

/// One set of pages with its sidebars: an instance of the plugin for docs.
struct Instance<'v> {
    /// The id of the plugin; `None` for the one of the preset.
    id: Option<String>,
    path: TreePath,
    /// The first part of the addresses, without slashes.
    route: String,
    /// The file with the sidebars; `None` if they follow the directories.
    sidebars: Option<&'v Value>,
    excluded: Excluded,
}

/// Converts a Docusaurus site.
pub(super) fn convert(
    mut notes: Notes<'_>,
    path: &TreePath,
    write_pages: bool,
) -> anyhow::Result<Converted> {
    let config = notes.read(path)?;
    anyhow::ensure!(config.is_map(), "{path} exports no object");
    let directory = path.parent().unwrap_or_default();
    let instances = instances(&mut notes, &config, &directory);
    anyhow::ensure!(
        !instances.is_empty(),
        "{path} has no preset or plugin with docs"
    );
    let root = instances
        .iter()
        .fold(directory.clone(), |root, one| common(&root, &one.path));
    let mut out = settings::convert(&mut notes, &config, &directory, &root);
    let (mut divisions, mut all_pages, mut moved) = (Vec::new(), Vec::new(), Vec::new());
    let mut unpublished = Vec::new();
    for instance in &instances {
        let mut sidebars = Sidebars::read(&mut notes, instance, &root);
        let children = sidebars.convert(&mut notes, &directory, instance, &config);
        divisions.extend(children);
        moved.extend(sidebars.moved(instance));
        unpublished.append(&mut sidebars.unpublished);
        all_pages.extend(sidebars.into_pages());
    }
    let urls: BTreeSet<String> = all_pages.iter().map(|one| page::url(&one.slug)).collect();
    let mut redirects = match out.remove("redirects") {
        Some(Json::Array(redirects)) => redirects,
        _ => Vec::new(),
    };
    let mut sources = BTreeSet::new();
    for (from, to) in moved {
        let is_pattern = from.contains([':', '*']);
        if from != to && !urls.contains(&from) && !is_pattern && sources.insert(from.clone()) {
            let redirect = object([("source", from.into()), ("destination", to.into())]);
            redirects.push(redirect.into());
        }
    }
    set(&mut out, "redirects", redirects);
    let navigation = match divisions.len() {
        0 | 1 => divisions.pop().map(|(_, children)| children),
        _ => {
            let tabs: Vec<_> = divisions
                .into_iter()
                .map(|(label, children)| {
                    let mut tab = object([("tab", label.into())]);
                    tab.extend(children);
                    Json::from(tab)
                })
                .collect();
            Some(object([("tabs", tabs.into())]))
        }
    };
    let navigation = navigation.unwrap_or_else(|| super::mkdocs::of_entries(Vec::new()));
    out.insert("navigation".to_owned(), navigation.into());
    let changed = pages::titles(&mut notes, &mut all_pages, write_pages);
    pages::syntax(&mut notes, &all_pages, &FOREIGN);
    let mut ignored = ignored(&notes, &directory, &root, &instances);
    ignored.append(&mut unpublished);
    Ok(notes.finish(root, out, ignored, changed))
}

/// Finds the sets of pages: of the preset, and of further plugins.
fn instances<'v>(
    notes: &mut Notes<'_>,
    config: &'v Value,
    directory: &TreePath,
) -> Vec<Instance<'v>> {
    let mut instances = Vec::new();
    let listed = |key: &str| config.get(key).map_or(&[][..], Value::items).iter();
    let entries = listed("presets").map(|entry| (true, entry));
    for (is_preset, entry) in entries.chain(listed("plugins").map(|entry| (false, entry))) {
        let (name, options) = match &entry.data {
            Data::List(items) => (items.first().and_then(Value::text), items.get(1)),
            _ => (entry.text(), None),
        };
        let Some(name) = name else {
            if entry.data == Data::Unresolved || matches!(entry.data, Data::List(_)) {
                notes.computed(entry.span);
            }
            continue;
        };
        let docs = match (is_preset, name) {
            (true, name) => {
                let docs = options.and_then(|options| options.get("docs"));
                if docs.is_none() && !name.contains("classic") {
                    let message = format!("the preset {name:?} has no counterpart");
                    notes.setting(entry.span, message);
                    None
                } else if docs.and_then(Value::flag) == Some(false) {
                    None
                } else {
                    Some(docs)
                }
            }
            (false, name) if name.contains("plugin-content-docs") => Some(options),
            (false, name) if name.contains("client-redirects") => None,
            (false, _) => {
                let message = format!("the plugin {name:?} has no counterpart");
                notes.setting(entry.span, message);
                None
            }
        };
        let Some(docs) = docs else { continue };
        let text =
            |notes: &mut Notes<'_>, key: &str| notes.text(docs.and_then(|docs| docs.get(key)));
        let below = text(notes, "path").unwrap_or_else(|| "docs".to_owned());
        let id = text(notes, "id");
        let route = text(notes, "routeBasePath");
        let route = route.unwrap_or_else(|| "docs".to_owned());
        let path = resolve(directory, &below).filter(|path| notes.tree.list(path).is_ok());
        let Some(path) = path else {
            let help = "name the directory in docs.json by hand";
            let message = format!("there is no directory {below:?} with pages");
            notes.entry(entry.span, message, help);
            continue;
        };
        instances.push(Instance {
            id,
            path,
            route: route.trim_matches('/').to_owned(),
            sidebars: docs.and_then(|docs| docs.get("sidebarPath")),
            excluded: Excluded::of(docs.and_then(|docs| docs.get("exclude"))),
        });
    }
    instances
}

/// Returns the directory that contains two directories.
fn common(one: &TreePath, other: &TreePath) -> TreePath {
    let mut common = one.clone();
    while other != &common && other.strip_prefix(&common).is_none() {
        match common.parent() {
            Some(parent) => common = parent,
            None => break,
        }
    }
    common
}

/// Returns the patterns of files below the root that are no pages of the documentation.
fn ignored(
    notes: &Notes<'_>,
    directory: &TreePath,
    root: &TreePath,
    instances: &[Instance<'_>],
) -> Vec<String> {
    let mut ignored = Vec::new();
    let below = |path: &TreePath| path.strip_prefix(root).unwrap_or_default().to_owned();
    let here = below(directory);
    if !here.is_empty() {
        // The root is above the site: other directories of the repository are no documentation.
        ignored.push("/*".to_owned());
        let directories = instances.iter().map(|one| below(&one.path));
        let first = |path: &str| path.split('/').next().unwrap_or_default().to_owned();
        let kept = directories.chain([here.clone()]).map(|path| first(&path));
        let kept: BTreeSet<String> = kept.filter(|name| !name.is_empty()).collect();
        ignored.extend(kept.into_iter().map(|name| format!("!/{name}/")));
    }
    let others = [
        "src",
        "blog",
        "i18n",
        "versioned_docs",
        "versioned_sidebars",
        "build",
        ".docusaurus",
    ];
    for name in others {
        let Ok(path) = directory.join(name) else {
            continue;
        };
        let is_used = |one: &Instance<'_>| one.path.strip_prefix(&path).is_some();
        if notes.tree.list(&path).is_ok() && !instances.iter().any(is_used) {
            ignored.push(format!("/{}/", below(&path)));
        }
    }
    ignored
}

/// Makes words of an id: `tutorialSidebar` becomes "Tutorial".
fn words(id: &str) -> String {
    let id = id
        .strip_suffix("Sidebar")
        .filter(|id| !id.is_empty())
        .unwrap_or(id);
    let mut words = String::new();
    for letter in id.chars() {
        if letter.is_uppercase() && words.ends_with(char::is_lowercase) {
            words.push(' ');
        }
        words.push(letter);
    }
    page::title_of(&words.to_lowercase()).into()
}

/// Returns the items of the navbar.
fn navbar_items(config: &Value) -> &[Value] {
    let theme = config.get("themeConfig");
    let navbar = theme.and_then(|theme| theme.get("navbar"));
    let items = navbar.and_then(|navbar| navbar.get("items"));
    items.map_or(&[], Value::items)
}

/// The children of a division of the navigation, with its label.
type Labelled = (String, Map<String, Json>);
