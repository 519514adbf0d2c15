//! `waypost check --conf`: a configuration, the permissions of the secrets and the site records
//! that it names.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use super::start::{self, Unused};
use crate::cli::{deploying, secrets, settings};
use crate::config::Config;
use crate::diagnostic::Diagnostic;
use crate::error::chain;
use crate::isolation::InForce;
use crate::site::Site;
use crate::source::git::Address;
use crate::store::sites::Removals;
use crate::store::{Shared, Store};

/// The rule for site records that cannot be listed at all.
pub(super) const RULE: &str = "conf";

/// Returns an error about a configuration.
pub(super) fn error(file: &Path, message: &str) -> Diagnostic {
    Diagnostic::error(RULE, &file.to_string_lossy(), message.to_owned())
}

/// Checks a configuration and, if it has no errors, its site records and what it names on this
/// machine.
///
/// # Errors
///
/// When the file cannot be read.
pub(super) fn check(file: &Path, is_offline: bool) -> anyhow::Result<Vec<Diagnostic>> {
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
    let service = config.service.domain.as_str();
    let shared = config.store.shared().filter(|_| !is_offline);
    let database = shared.map(|shared| Shared::check_database(&shared.config, service));
    let is_database_used = matches!(database, Some(Ok(())));
    let objects =
        shared.map(|shared| Shared::check_objects(&shared.config, service, is_database_used));
    let mut sites = settings::unread_sites(&config);
    match settings::store_to_read(&config) {
        Ok(Some(store)) if !is_shared(&store) || is_database_used => {
            sites = sites.with_store(Arc::new(store));
        }
        // There is no store yet, or its database is not asked: the records in files are checked.
        Ok(_) => {}
        Err(error) => diagnostics.push(Diagnostic::error(RULE, &name, format!("{error:#}"))),
    }
    let changes = sites.scan(Removals::Guarded);
    let known = changes.is_ok().then_some(&sites);
    let unused = Unused {
        database: database.and_then(Result::err),
        objects: objects.and_then(Result::err),
    };
    let found = start::check((&name, &text), &config, known, &unused, is_offline);
    diagnostics.extend(found);
    match changes {
        Ok(changes) => {
            diagnostics.extend(changes.diagnostics);
            let mut rejected: Vec<_> = sites
                .iter()
                .filter_map(|site| rejected(site, &config))
                .collect();
            rejected.sort_unstable();
            let errors = rejected.into_iter();
            diagnostics.extend(errors.map(|message| Diagnostic::error(RULE, &name, message)));
        }
        Err(error) => diagnostics.push(Diagnostic::error(RULE, &name, chain(&error))),
    }
    Ok(diagnostics)
}

fn is_shared(store: &Store) -> bool {
    matches!(store, Store::Shared(_))
}

/// Returns why the repository of a site would never be fetched.
fn rejected(site: &Site, config: &Config) -> Option<String> {
    let repository = site.repository.as_ref()?;
    let rejected = Address::parse(&repository.url, &repository.branch, &config.git).err()?;
    Some(format!("the repository of {}: {rejected}", site.project))
}

/// Starts a process as a build would be started, and returns which restrictions are in force.
///
/// # Errors
///
/// When the file cannot be read or has errors, no process can be started, or a restriction is
/// required and the kernel lacks it.
pub(super) fn isolation(file: &Path) -> anyhow::Result<InForce> {
    let text = fs::read_to_string(file).with_context(|| format!("read {}", file.display()))?;
    let config = Config::parse(&file.to_string_lossy(), &text);
    let config = config.map_err(|_reported| anyhow::anyhow!("the configuration has errors"))?;
    Ok(deploying::launcher(&config, None)?.probe()?)
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
        assert_eq!(check(&file, true).unwrap(), []);

        fs::write(
            sites.join("a.yaml"),
            "project: a\nsubdomain: a\ndomain: x\n",
        )
        .unwrap();
        let found = check(&file, true).unwrap();
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
        let found = check(&file, true).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found[0].message.contains("has mode 0644"), "{}", found[0]);

        fs::write(&file, "listne: {}\nserver: 7\n").unwrap();
        assert_eq!(check(&file, true).unwrap().len(), 2);
        fs::write(&file, "sites: /nowhere\n").unwrap();
        assert_eq!(check(&file, true).unwrap().len(), 1);
    }
}
