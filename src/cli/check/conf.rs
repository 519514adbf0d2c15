//! `waypost check --conf`: a configuration, the permissions of the secrets and the site records
//! that it names.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

use crate::cli::{secrets, settings};
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
    let secrets = secrets::exposed(&config).into_iter().map(|secret| {
        let message = secret.message();
        if secret.is_to_others() {
            Diagnostic::error(RULE, &name, message)
        } else {
            Diagnostic::warning(RULE, &name, message)
        }
    });
    let mut diagnostics: Vec<_> = secrets.collect();
    match settings::read_sites(&config) {
        Ok((_sites, changes)) => diagnostics.extend(changes.diagnostics),
        Err(error) => diagnostics.push(Diagnostic::error(RULE, &name, format!("{error:#}"))),
    }
    Ok(diagnostics)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

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

        let key = directory.path().join("key");
        fs::write(&key, "secret").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        let credential = format!(
            "{{ host: git.acme.test, owners: [acme], ssh_key: {} }}",
            key.display()
        );
        let text = format!(
            "git: {{ credentials: [{credential}] }}\nsites: {}\n",
            sites.display()
        );
        fs::write(&file, text).unwrap();
        let found = check(&file).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found[0].message.contains("has mode 0644"), "{}", found[0]);

        fs::write(&file, "listne: {}\nserver: 7\n").unwrap();
        assert_eq!(check(&file).unwrap().len(), 2);
        fs::write(&file, "sites: /nowhere\n").unwrap();
        assert_eq!(check(&file).unwrap().len(), 1);
    }
}
