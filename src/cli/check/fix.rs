//! `check --fix`: makes the edits that diagnostics have.
//!
//! An edit is made for a mistake that has only one correction. The edit can still be wrong, because
//! the author may have meant something else. So the changed files are checked before they are
//! written, and a file whose changes would add errors is not changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Edit, apply};
use crate::source::{Tree, TreePath};

/// How the names of the files end that diagnostics correct.
const EXTENSIONS: [&str; 5] = [".json", ".md", ".mdx", ".yaml", ".yml"];

/// A file that edits change.
struct Changed<'d> {
    name: &'d str,
    /// Its path in the tree, with links resolved.
    path: TreePath,
    before: String,
    after: String,
    edits: Vec<Edit>,
}

/// A file with corrected mistakes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Fixed {
    /// Its path below the root of the repository.
    pub(super) path: String,
    /// Its new text.
    pub(super) text: String,
    /// The changed lines, for people.
    pub(super) difference: String,
}

/// Makes the edits in a tree. Returns the new tree, and what happens to each file: its new text, or
/// a sentence that says why it is not changed.
///
/// `errors` counts the errors of a tree.
///
/// # Errors
///
/// If a file cannot be read.
pub(super) fn fix(
    tree: Tree,
    diagnostics: &[Diagnostic],
    errors: &dyn Fn(&Tree) -> anyhow::Result<usize>,
) -> anyhow::Result<(Tree, Vec<Result<Fixed, String>>)> {
    let files = changed_files(&tree, diagnostics)?;
    let (mut tree, mut count) = (tree, errors_of(diagnostics));
    let mut outcomes = Vec::new();
    for file in files {
        let fixed = tree.with_changed([(file.path.clone(), file.after.clone().into())]);
        let fixed_count = errors(&fixed)?;
        if fixed_count > count {
            let Changed { path, before, .. } = file;
            outcomes.push(Err(format!(
                "{}: not changed, because the changes would make {} new errors\n",
                file.name,
                fixed_count - count
            )));
            tree = fixed.with_changed([(path, before.into())]);
            continue;
        }
        (tree, count) = (fixed, fixed_count);
        outcomes.push(Ok(Fixed {
            difference: difference(file.name, &file.before, &file.edits),
            path: file.path.as_str().to_owned(),
            text: file.after,
        }));
    }
    Ok((tree, outcomes))
}

/// Writes a corrected file.
///
/// The process that corrected it has read content that is not trusted. So this function writes only
/// files of documentation that exist, and follows no link out of the repository.
///
/// # Errors
///
/// If the file cannot be written.
pub(super) fn write(root: &Path, fixed: &Fixed) -> anyhow::Result<()> {
    let found = TreePath::parse(&fixed.path)?;
    let (name, path) = (found.as_str(), root.join(found.as_str()));
    let is_text = EXTENSIONS.iter().any(|extension| name.ends_with(extension));
    let is_of_git = found.segments().any(|segment| segment == ".git");
    // Nothing on the way is a link.
    let is_inside = path.canonicalize().is_ok_and(|real| real == path);
    if !is_text || is_of_git || !is_inside || !path.is_file() {
        bail!("{name} is not a file of documentation, so it is not written");
    }
    fs::write(&path, &fixed.text).with_context(|| format!("write {name}"))
}

/// Counts the errors among some diagnostics.
fn errors_of(diagnostics: &[Diagnostic]) -> usize {
    diagnostics.iter().filter(|d| d.is_error()).count()
}

fn changed_files<'d>(
    tree: &Tree,
    diagnostics: &'d [Diagnostic],
) -> anyhow::Result<Vec<Changed<'d>>> {
    let mut edits: BTreeMap<&str, Vec<Edit>> = BTreeMap::new();
    for diagnostic in diagnostics {
        if let Some(edit) = &diagnostic.edit {
            let edits = edits.entry(&diagnostic.file).or_default();
            edits.push((**edit).clone());
        }
    }
    let changed = edits.into_iter().map(|(name, edits)| {
        // The tree resolves links itself, inside the repository only.
        let path = tree.lookup(&TreePath::parse(name)?)?.path;
        let bytes = tree.read(&path).with_context(|| format!("read {name}"))?;
        let before = String::from_utf8(bytes.into()).with_context(|| format!("read {name}"))?;
        let (after, _) = apply(&before, &edits);
        Ok(Changed {
            name,
            path,
            before,
            after,
            edits,
        })
    });
    changed.collect()
}

/// Shows the lines that edits change.
fn difference(file: &str, before: &str, edits: &[Edit]) -> String {
    let mut edits = edits.to_vec();
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut out = format!("--- {file}\n+++ {file}\n");
    let mut rest = edits.as_slice();
    while let Some(first) = rest.first() {
        let start = before[..first.range.start]
            .rfind('\n')
            .map_or(0, |at| at + 1);
        let mut end = line_end(before, first);
        let mut count = 1;
        while let Some(next) = rest.get(count).filter(|next| next.range.start < end) {
            end = end.max(line_end(before, next));
            count += 1;
        }
        let shifted: Vec<_> = rest[..count]
            .iter()
            .map(|edit| Edit {
                range: edit.range.start - start..edit.range.end - start,
                replacement: edit.replacement.clone(),
            })
            .collect();
        let old = &before[start..end];
        let (new, _) = apply(old, &shifted);
        let number = before[..start].matches('\n').count() + 1;
        out.push_str(&format!("@@ {number} @@\n"));
        for (sign, lines) in [('-', old), ('+', &*new)] {
            for line in lines.lines() {
                out.push_str(&format!("{sign}{line}\n"));
            }
        }
        rest = &rest[count..];
    }
    out
}

/// Returns where the last line ends that an edit changes, its line break included.
fn line_end(text: &str, edit: &Edit) -> usize {
    let end = edit.range.end;
    if end > edit.range.start && text[..end].ends_with('\n') {
        return end;
    }
    text[end..]
        .find('\n')
        .map_or(text.len(), |length| end + length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(range: std::ops::Range<usize>, replacement: &str) -> Edit {
        Edit {
            range,
            replacement: replacement.into(),
        }
    }

    #[test]
    fn only_changed_lines_are_shown() {
        assert_eq!(
            difference(
                "docs.json",
                "a\nb,,\nc\n",
                &[edit(3..4, ""), edit(4..5, "")]
            ),
            "--- docs.json\n+++ docs.json\n@@ 2 @@\n-b,,\n+b\n"
        );
        assert_eq!(
            difference("f", "a\n// b\nc\nd", &[edit(2..7, ""), edit(9..10, "e")]),
            "--- f\n+++ f\n@@ 2 @@\n-// b\n@@ 4 @@\n-d\n+e\n"
        );
    }
}
