//! `waypost check --conf`: a configuration, and the site records that it names.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::cli::settings;
use crate::config::Config;
use crate::diagnostic::Diagnostic;

/// The rule of records that cannot be listed at all.
const RULE: &str = "config";

/// Finds what is wrong with a configuration; with one that is right, also with its site
/// records.
///
/// # Errors
///
/// When the file cannot be read.
pub(super) fn find(file: &Path) -> anyhow::Result<Vec<Diagnostic>> {
    let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    let name = file.to_string_lossy();
    let config = match Config::parse(&name, &text) {
        Ok(config) => config,
        Err(found) => return Ok(found),
    };
    let mut found = Vec::new();
    match settings::read_sites(&config) {
        Ok((_sites, changes)) => found.extend(changes.findings),
        Err(error) => found.push(Diagnostic::error(RULE, &name, format!("{error:#}"))),
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_checked_with_its_records() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("waypost.yaml");
        let sites = directory.path().join("sites");
        fs::create_dir(&sites).unwrap();
        fs::write(&file, format!("sites: {}\n", sites.display())).unwrap();
        assert_eq!(find(&file).unwrap(), []);

        fs::write(
            sites.join("a.yaml"),
            "project: a\nsubdomain: a\ndomain: x\n",
        )
        .unwrap();
        let found = find(&file).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("domain"), "{}", found[0]);

        fs::write(&file, "listne: {}\nserver: 7\n").unwrap();
        assert_eq!(find(&file).unwrap().len(), 2);
        fs::write(&file, "sites: /nowhere\n").unwrap();
        assert_eq!(find(&file).unwrap().len(), 1);
    }
}
