//! `waypost check --conf`: a configuration, and the site records that it names.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::cli::settings;
use crate::config::Config;
use crate::diagnostic::Diagnostic;

/// The rule for site records that cannot be listed at all.
const RULE: &str = "conf";

/// Checks a configuration and, if it has no errors, its site records.
///
/// # Errors
///
/// When the file cannot be read.
pub(super) fn check(file: &Path) -> anyhow::Result<Vec<Diagnostic>> {
    let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    let name = file.to_string_lossy();
    let config = match Config::parse(&name, &text) {
        Ok(config) => config,
        Err(diagnostics) => return Ok(diagnostics),
    };
    Ok(match settings::read_sites(&config) {
        Ok((_sites, changes)) => changes.diagnostics,
        Err(error) => vec![Diagnostic::error(RULE, &name, format!("{error:#}"))],
    })
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
        assert_eq!(check(&file).unwrap(), []);

        fs::write(
            sites.join("a.yaml"),
            "project: a\nsubdomain: a\ndomain: x\n",
        )
        .unwrap();
        let found = check(&file).unwrap();
        assert_eq!(found.len(), 1);
        assert!(found[0].message.contains("domain"), "{}", found[0]);

        fs::write(&file, "listne: {}\nserver: 7\n").unwrap();
        assert_eq!(check(&file).unwrap().len(), 2);
        fs::write(&file, "sites: /nowhere\n").unwrap();
        assert_eq!(check(&file).unwrap().len(), 1);
    }
}
