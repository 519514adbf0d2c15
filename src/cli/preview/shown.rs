//! The site that a preview shows now, and its diagnostics.

use std::sync::Arc;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use tokio::sync::watch;

use super::panel;
use crate::build::Preview;
use crate::clock::Clock;
use crate::diagnostic::Diagnostic;
use crate::index::{Documents, Files, Index, LiveFiles, Material, Served, SkillFile, State};
use crate::markup::Html;
use crate::release::site::SiteDescription;
use crate::site::{Host, ProjectId, Scheme, Service, Site};

/// The state that a preview shows.
#[derive(Debug)]
pub(super) struct Shown {
    /// Makes the responses of discovery; it holds no site itself.
    pub(super) index: Index,
    /// The last site that could be shown.
    served: ArcSwapOption<Served>,
    panel: ArcSwap<Html>,
    /// The version that browsers are notified of.
    state: watch::Sender<Version>,
}

/// The version of the site, and how often its diagnostics have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Version {
    /// The number of the site. It grows, also from one process to the next: a page of an earlier
    /// process is never taken for a current one.
    pub(super) site: u64,
    /// The number of the list of diagnostics.
    pub(super) diagnostics: u64,
}

// === impl Version ===

impl Version {
    /// Returns the version before the first site of this process.
    fn first() -> Self {
        let seconds = Clock::System.unix_seconds();
        let process = u64::from(std::process::id()) & 0x003f_ffff;
        Self {
            // Room for 4,096 sites before the numbers of a process that starts in the same second.
            site: seconds << 34 | process << 12,
            diagnostics: 0,
        }
    }
}

// === impl Shown ===

impl Shown {
    pub(super) fn new(port: u16) -> Self {
        let service = Service {
            domain: host(),
            scheme: Scheme::Http,
            port,
            ..Service::default()
        };
        Self {
            index: Index::new(service),
            served: ArcSwapOption::empty(),
            panel: ArcSwap::from_pointee(Html::default()),
            state: watch::Sender::new(Version::first()),
        }
    }

    /// Replaces the preview that is shown. If the new one has no site, the old one stays: a missing
    /// comma in `docs.json` must not remove the page.
    pub(super) fn show(&self, preview: Arc<Preview>) -> Arc<Served> {
        let has_site = preview.input().has_site();
        let served = Arc::new(self.serve(preview));
        if has_site || self.served.load().is_none() {
            self.served.store(Some(Arc::clone(&served)));
            self.state.send_modify(|version| version.site += 1);
        }
        served
    }

    fn serve(&self, preview: Arc<Preview>) -> Served {
        let site = site();
        let service = self.index.service();
        let now = Clock::System.unix_seconds();
        let (summary, skills) = preview.skills();
        let skill = |identity: &Bytes| SkillFile {
            identity: identity.clone(),
            ..SkillFile::default()
        };
        let mut material = Material {
            summary: summary.clone(),
            skills: skills.iter().map(skill).collect(),
            promoted_at: now,
            files: None,
        };
        let address = service.site_url(&host(), &site.base_path);
        material.files = Some(Arc::new(Files::live(preview, &address, now)));
        let documents = Documents::compile(&site, service, &material)
            .expect("a preview lists the digests of its own skills, and is far from 4 GiB");
        Served {
            numbers: None,
            site: Arc::new(site),
            state: State::Public(Arc::new(documents)),
        }
    }

    /// Shows diagnostics in every open page; `failure` is why nothing could be read.
    pub(super) fn report(&self, found: &[Diagnostic], failure: Option<&str>) {
        self.panel.store(Arc::new(panel::write(found, failure)));
        self.state.send_modify(|version| version.diagnostics += 1);
    }

    /// Returns the site that is served, once there is one.
    pub(super) fn served(&self) -> Option<Arc<Served>> {
        self.served.load_full()
    }

    pub(super) fn panel(&self) -> Arc<Html> {
        self.panel.load_full()
    }

    /// Subscribes to the versions.
    pub(super) fn versions(&self) -> watch::Receiver<Version> {
        self.state.subscribe()
    }
}

// === impl LiveFiles ===

impl LiveFiles for Preview {
    fn description(&self) -> &SiteDescription {
        self.description()
    }

    fn has(&self, path: &str) -> bool {
        self.has(path)
    }

    fn file(&self, path: &str) -> Option<(Bytes, &'static str)> {
        self.file(path)
    }
}

fn host() -> Host {
    Host::parse("localhost").expect("a constant host name")
}

fn site() -> Site {
    let project = ProjectId::parse("preview").expect("a constant id");
    Site {
        domains: vec![host()],
        // The server of the preview answers browsers only.
        mcp: false,
        ..Site::new(project)
    }
}
