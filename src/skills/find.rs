//! Finds the skill files of a tree.

use std::collections::HashSet;

use crate::diagnostic::Diagnostic;
use crate::source::{EntryKind, Kind, LookupError, Tree, TreePath};

/// The file in the documentation root.
const ROOT_FILE: &str = "skill.md";
/// The file in each directory of skills.
const FILE: &str = "SKILL.md";
/// The name of a skill in the documentation root that has no `name`.
const ROOT_NAME: &str = "skill";

/// A skill file that has not been read yet.
#[derive(Debug)]
pub(super) struct Candidate {
    /// Its path before symbolic links are followed.
    pub path: TreePath,
    /// The name of a skill without `name`: the name of its directory.
    pub fallback_name: Box<str>,
    /// Whether it has its own directory: the file of the documentation root does not.
    pub in_directory: bool,
    /// The other entries of its directory.
    pub companions: Vec<(Box<str>, EntryKind)>,
}

/// The result of a search.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The file of the root, then the others by name of the directory; each real file once.
    pub candidates: Vec<Candidate>,
    /// The number of files that look like skills but cannot be used.
    pub unusable: usize,
    /// The diagnostics.
    pub diagnostics: Vec<Diagnostic>,
}

/// Finds every skill file of a tree.
pub(super) fn search(tree: &Tree, service_name: &str) -> Search {
    let mut search = Search::default();
    let mut seen = HashSet::new();
    if let Some((candidate, real)) = search.root(tree) {
        seen.insert(real);
        search.candidates.push(candidate);
    }
    for directory in search.directories(tree, service_name) {
        if let Some((candidate, real)) = search.directory(tree, directory)
            && seen.insert(real)
        {
            search.candidates.push(candidate);
        }
    }
    search
}

// === impl Search ===

impl Search {
    fn root(&mut self, tree: &Tree) -> Option<(Candidate, TreePath)> {
        let root = tree.docs_root();
        let path = root.join(ROOT_FILE).expect("a constant segment");
        let real = self.file(tree, root, path.clone())?;
        let candidate = Candidate {
            path,
            fallback_name: ROOT_NAME.into(),
            in_directory: false,
            companions: Vec::new(),
        };
        Some((candidate, real))
    }

    /// Lists the entries of the skills directory that are directories or links to directories.
    fn directories(&mut self, tree: &Tree, service_name: &str) -> Vec<TreePath> {
        let Ok(skills) = tree.docs_root().join(&format!(".{service_name}/skills")) else {
            return Vec::new();
        };
        let entries = match tree.list(&skills) {
            Ok(entries) => entries,
            Err(LookupError::NotFound { .. }) => return Vec::new(),
            Err(error) => {
                self.report_dangling_link(&skills, &error);
                return Vec::new();
            }
        };
        let mut directories = Vec::new();
        for (name, _) in entries {
            let path = skills.join(&name).expect("a listed name is a segment");
            match tree.lookup(&path).map(|found| found.kind) {
                Ok(Kind::Directory) => directories.push(path),
                Ok(Kind::File) => self.report_misplaced(&path),
                Ok(Kind::Submodule) => {
                    self.misplaced(
                        &path,
                        "is a submodule; its files are not in this repository",
                    );
                }
                Err(error) => self.report_dangling_link(&path, &error),
            }
        }
        directories
    }

    fn directory(&mut self, tree: &Tree, directory: TreePath) -> Option<(Candidate, TreePath)> {
        self.report_nested(tree, &directory);
        let path = directory.join(FILE).expect("a constant segment");
        let real = self.file(tree, &directory, path.clone())?;
        let mut companions = tree.list(&directory).unwrap_or_default();
        companions.retain(|(name, _)| **name != *FILE);
        let candidate = Candidate {
            path,
            fallback_name: directory.name().into(),
            in_directory: true,
            companions,
        };
        Some((candidate, real))
    }

    /// Returns the real path of a skill file, or reports why there is none.
    fn file(&mut self, tree: &Tree, directory: &TreePath, path: TreePath) -> Option<TreePath> {
        match tree.lookup(&path) {
            Ok(found) if found.kind == Kind::File => return Some(found.path),
            Ok(_) => self.misplaced(&path, "is not a file"),
            Err(LookupError::NotFound { .. }) => self.report_spelling(tree, directory, &path),
            Err(error) => self.report_dangling_link(&path, &error),
        }
        None
    }

    fn report_dangling_link(&mut self, path: &TreePath, error: &LookupError) {
        self.unusable += 1;
        let message = error.to_string();
        self.diagnostics
            .push(Diagnostic::warning(error.rule(), path.as_str(), message));
    }

    fn misplaced(&mut self, path: &TreePath, what: &str) {
        self.unusable += 1;
        let message = format!("this {what}");
        self.diagnostics
            .push(Diagnostic::warning("skill-file", path.as_str(), message));
    }

    /// Reports a Markdown file in the skills directory, where directories are expected.
    fn report_misplaced(&mut self, path: &TreePath) {
        let name = path.name().to_ascii_lowercase();
        if !name.ends_with(".md") || name == "readme.md" {
            return;
        }
        let message = "a skill is a directory that holds `SKILL.md`; this file is not served";
        let diagnostic = Diagnostic::warning("skill-file", path.as_str(), message);
        self.diagnostics
            .push(diagnostic.help("move it to a directory of its own"));
        self.unusable += 1;
    }

    /// Reports skills in directories below the directory of a skill: clients install each directory
    /// of the skills directory as one skill.
    fn report_nested(&mut self, tree: &Tree, directory: &TreePath) {
        for (name, kind) in tree.list(directory).unwrap_or_default() {
            let below = directory.join(&name).and_then(|inner| inner.join(FILE));
            let Ok(path) = below else {
                continue;
            };
            let is_nested = kind == EntryKind::Directory
                && tree
                    .lookup(&path)
                    .is_ok_and(|found| found.kind == Kind::File);
            if is_nested {
                let message = "this skill is not served: its directory is inside another one";
                let diagnostic = Diagnostic::warning("skill-file", path.as_str(), message);
                let help = format!(
                    "move the directory `{name}` up, beside `{}`",
                    directory.name()
                );
                self.diagnostics.push(diagnostic.help(help));
                self.unusable += 1;
            }
        }
    }

    /// Reports a missing skill file, or a file whose name differs only in letter case.
    fn report_spelling(&mut self, tree: &Tree, directory: &TreePath, path: &TreePath) {
        let wanted = path.name();
        let entries = tree.list(directory).unwrap_or_default();
        let other = entries
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted));
        if let Some((name, _)) = other {
            let found = directory.join(name).expect("a listed name is a segment");
            let message = format!("this file is ignored: its name must be `{wanted}`");
            self.diagnostics
                .push(Diagnostic::warning("skill-file", found.as_str(), message));
            self.unusable += 1;
        } else if wanted == FILE {
            let message = "this directory of the skills directory holds no `SKILL.md`";
            let directory = directory.as_str();
            self.diagnostics
                .push(Diagnostic::warning("skill-file", directory, message));
        }
    }
}
