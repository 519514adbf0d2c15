//! The sites that are served, in files and in the store, for the checks of a change.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Changed;
use crate::error::chain;
use crate::index::Index;
use crate::site::{Host, ProjectId, Site};
use crate::store::sites::Sites;

/// The sites that are served.
pub trait ServedSites: Send + Sync {
    /// Returns the site of a project.
    fn site(&self, project: &ProjectId) -> Option<Arc<Site>>;

    /// Returns the site that has a host.
    fn at(&self, host: &Host) -> Option<Arc<Site>>;

    /// Returns all sites, in no particular order.
    fn all(&self) -> Vec<Arc<Site>>;
}

impl ServedSites for Index {
    fn site(&self, project: &ProjectId) -> Option<Arc<Site>> {
        Some(Arc::clone(&self.served_by(project)?.site))
    }

    fn at(&self, host: &Host) -> Option<Arc<Site>> {
        self.with(host.as_str(), |served| Arc::clone(&served.site))
    }

    fn all(&self) -> Vec<Arc<Site>> {
        self.sites()
    }
}

impl ServedSites for Mutex<Sites> {
    fn site(&self, project: &ProjectId) -> Option<Arc<Site>> {
        lock(self).get(project).map(Arc::clone)
    }

    fn at(&self, host: &Host) -> Option<Arc<Site>> {
        lock(self).at(host).map(Arc::clone)
    }

    fn all(&self) -> Vec<Arc<Site>> {
        lock(self).iter().map(Arc::clone).collect()
    }
}

/// Returns a function that reads the record of a changed project again.
pub fn reading_again(sites: &Arc<Mutex<Sites>>) -> Changed {
    let sites = Arc::clone(sites);
    Arc::new(move |project| {
        if let Err(error) = lock(&sites).scan_records(std::slice::from_ref(project)) {
            log::error!(target: "sites", "cannot read the site record of {project}: {}", chain(&error));
        }
    })
}

fn lock(sites: &Mutex<Sites>) -> MutexGuard<'_, Sites> {
    sites.lock().unwrap_or_else(PoisonError::into_inner)
}
