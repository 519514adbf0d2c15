//! `check --fix`: the edits that findings carry, made in the files.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};

use anyhow::Context as _;

use crate::cli::Documentation;
use crate::diagnostic::{Diagnostic, Edit, apply};
use crate::source::{Tree, TreePath, directory};

/// Makes the edits, showing each changed line on standard error; returns how many.
///
/// # Errors
///
/// When a file cannot be read or written.
pub(super) fn mend(
    documentation: &Documentation,
    tree: &Tree,
    found: &[Diagnostic],
) -> anyhow::Result<usize> {
    let (root, _) = directory::locate(&documentation.path, documentation.root.as_deref())?;
    let mut edits: BTreeMap<&str, Vec<Edit>> = BTreeMap::new();
    for finding in found {
        if let Some(edit) = &finding.edit {
            edits
                .entry(&finding.file)
                .or_default()
                .push((**edit).clone());
        }
    }
    let mut made = 0;
    for (file, edits) in edits {
        // The tree resolves links itself, inside the repository only.
        let path = tree.lookup(&TreePath::parse(file)?)?.path;
        let path = root.join(path.as_str());
        let text = fs::read_to_string(&path).with_context(|| format!("read {file}"))?;
        let (mended, count) = apply(&text, &edits);
        write!(io::stderr(), "{}", difference(file, &text, &mended))?;
        fs::write(&path, mended).with_context(|| format!("write {file}"))?;
        made += count;
    }
    Ok(made)
}

/// Shows the lines that differ; edits change lines but never their number.
fn difference(file: &str, before: &str, after: &str) -> String {
    let mut out = format!("--- {file}\n+++ {file}\n");
    for (number, (old, new)) in (1..).zip(before.lines().zip(after.lines())) {
        if old != new {
            out.push_str(&format!("@@ {number} @@\n-{old}\n+{new}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_lines_are_shown() {
        assert_eq!(
            difference("docs.json", "a\nb,\nc", "a\nb\nc"),
            "--- docs.json\n+++ docs.json\n@@ 2 @@\n-b,\n+b\n"
        );
    }
}
