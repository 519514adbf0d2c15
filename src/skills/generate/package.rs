//! The packages of the product: an agent sees their names in the code of its task.
//!
//! Pages show commands that install packages. A package belongs to the product if its name contains
//! a word of the product's name (`@acme/boxes` for Acme), or if that word begins with a part of it
//! (`comfy-cli` for `ComfyUI`).

use std::collections::{HashMap, HashSet};

use crate::docs::Docs;
use crate::mdx::Node;

use super::about::product_words;
use super::code::{INSTALLS, bare_command};
use super::outline::Outline;
use super::role::{Role, has, normal};

/// The most packages that are named.
const PACKAGES_MAX: usize = 4;
/// The longest name of a package, in bytes.
const NAME_MAX: usize = 50;
/// The shortest part of a package with which a word of the product's name must begin, in bytes.
const PART_MIN: usize = 4;
/// Words of titles of pages about tools of the product itself.
const OWN_TOOLS: [&str; 5] = ["sdk", "sdks", "cli", "client libraries", "command line"];
/// Commands that install programs on a machine, which no code imports.
const SYSTEM: [&str; 6] = [
    "apt install",
    "apt-get install",
    "brew install",
    "helm install",
    "helm repo add",
    "winget install",
];

/// Returns the packages of the product that most pages install, the most frequent one first.
pub(super) fn packages(docs: &Docs, outline: &Outline, product: &str) -> Vec<String> {
    let names = found(docs, outline, product).into_iter();
    names
        .take(PACKAGES_MAX)
        .map(|package| package.name)
        .collect()
}

/// Returns these packages as a description names them: several of one scope as `@acme/*`. A package
/// that only pages about integrations install is one of others, unless there is nothing else.
pub(super) fn described(docs: &Docs, outline: &Outline, product: &str) -> Vec<String> {
    let mut all = found(docs, outline, product);
    if all.iter().any(|package| !package.is_of_others) {
        all.retain(|package| !package.is_of_others);
    }
    let scope = |name: &str| {
        let (scope, _) = name.split_once('/')?;
        scope.starts_with('@').then(|| scope.to_owned())
    };
    let scopes: Vec<String> = all.iter().filter_map(|one| scope(&one.name)).collect();
    let mut names: Vec<String> = Vec::new();
    for Package { name, .. } in all {
        let own = scope(&name).filter(|own| scopes.iter().filter(|one| *one == own).count() > 1);
        let name = own.map_or(name, |own| format!("{own}/*"));
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.truncate(PACKAGES_MAX);
    names
}

/// A package of the product.
struct Package {
    name: String,
    /// How many pages install it.
    pages: usize,
    /// Whether all of these are about integrations.
    is_of_others: bool,
}

/// Finds the packages, the most frequent one first.
fn found(docs: &Docs, outline: &Outline, product: &str) -> Vec<Package> {
    let words = product_words(product);
    let mut names: Vec<Package> = Vec::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    for (entry, page, nodes) in outline.contents(docs, |role| role < Role::Community) {
        // The SDK and the command line are the product's own.
        let place = page
            .place
            .as_ref()
            .map_or(&[][..], |place| &place.breadcrumb);
        let mut titles = place.iter().map(|label| &**label).chain([&*page.title]);
        let is_own_tool = titles.any(|title| has(&normal(title), &OWN_TOOLS));
        let is_of_others = entry.role == Role::Integration && !is_own_tool;
        let mut found = Vec::new();
        of_nodes(nodes, &mut found);
        // A page counts once for a package.
        let mut seen = HashSet::new();
        found.retain(|name| seen.insert(*name) && is_own(name, &words));
        for name in found {
            let next = names.len();
            let at = *numbers.entry(name.to_owned()).or_insert(next);
            if at == next {
                names.push(Package {
                    name: name.to_owned(),
                    pages: 0,
                    is_of_others: true,
                });
            }
            names[at].pages += 1;
            names[at].is_of_others &= is_of_others;
        }
    }
    // The sort is stable: of equal ones, the first in the navigation is first.
    names.sort_by_key(|package| std::cmp::Reverse(package.pages));
    names
}

/// Collects the packages of a page in the order of its code.
fn of_nodes<'d>(nodes: &'d [Node], out: &mut Vec<&'d str>) {
    for node in nodes {
        match node {
            Node::Fence { code, .. } => out.extend(code.lines().flat_map(installed)),
            node => node.each_children(&mut |children| of_nodes(children, out)),
        }
    }
}

/// Returns the packages that a line of shell code installs.
pub(super) fn installed(line: &str) -> Vec<&str> {
    let line = bare_command(line);
    let libraries = INSTALLS.iter().map(|command| command.trim_end());
    let mut libraries = libraries.filter(|command| !SYSTEM.contains(command));
    let after = libraries.find_map(|command| {
        let after = line.strip_prefix(command)?;
        after.starts_with(' ').then_some(after)
    });
    let words = after.unwrap_or_default().split_whitespace();
    let words = words.take_while(|word| !word.starts_with(['#', '&', '|', ';', '>']));
    // `dotnet add package NAME`.
    let names = words.filter(|word| *word != "package");
    names.filter_map(name_of).collect()
}

/// Returns the name of a package without its version and its optional parts; `None` for options,
/// paths and placeholders.
fn name_of(word: &str) -> Option<&str> {
    let word = word.trim_matches(['"', '\'', ';', ',']);
    // `@scope/name@1.2`, `name==1.2`, `name[extra]`, `name>=1`.
    let scope = usize::from(word.starts_with('@'));
    let end = word[scope..].find(['@', '=', '[', '<', '>', '~', '^', '!', ':', ';']);
    let name = &word[..end.map_or(word.len(), |end| scope + end)];
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "@/._-".contains(c);
    let is_name = !name.starts_with(['-', '.', '/'])
        && name.chars().all(is_allowed)
        && name.contains(|c: char| c.is_ascii_alphabetic())
        && name.len() <= NAME_MAX
        && !name.contains("--");
    // A colon or an angle bracket at the beginning is a placeholder or a URL.
    let is_cut_short = word[name.len()..].starts_with([':', '<', '>']) && !word.contains(">=");
    (is_name && !is_cut_short).then_some(name)
}

/// Returns whether a package belongs to a product whose name has these words.
fn is_own(package: &str, product: &[String]) -> bool {
    let parts = normal(package);
    let joined: String = parts.split_whitespace().collect();
    let begins = |word: &str, part: &str| part.len() >= PART_MIN && word.starts_with(part);
    product.iter().any(|word| {
        joined.contains(&**word) || parts.split_whitespace().any(|part| begins(word, part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_read_from_commands_that_install_them() {
        let cases: [(&str, &[&str]); 10] = [
            ("npm install @acme/boxes", &["@acme/boxes"]),
            ("$ npm i -g @acme/cli@1.2 acme@^3", &["@acme/cli", "acme"]),
            ("pip install 'acme[async]==1.2' # the SDK", &["acme"]),
            ("uv pip install \"acme>=2\" && acme login", &["acme"]),
            (
                "go get github.com/acme/acme-go@latest",
                &["github.com/acme/acme-go"],
            ),
            ("dotnet add package Acme.Boxes", &["Acme.Boxes"]),
            ("npm install", &[]),
            ("npm installer acme", &[]),
            (
                "pip install -r ./requirements.txt <package> https://acme.test/a.whl",
                &[],
            ),
            ("Run npm install acme", &[]),
        ];
        for (line, expected) in cases {
            assert_eq!(installed(line), expected, "{line}");
        }
    }

    #[test]
    fn packages_of_others_are_not_those_of_the_product() {
        for (package, product, expected) in [
            ("@acme/boxes", "acme", true),
            ("github.com/acme/acme-go", "acme cloud", true),
            ("comfy-cli", "comfyui", true),
            ("com-tool", "comfyui", false),
            ("react", "acme", false),
        ] {
            let words = product_words(product);
            assert_eq!(is_own(package, &words), expected, "{package} of {product}");
        }
    }
}
