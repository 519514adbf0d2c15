//! The sandboxed process that reads the documentation and serves it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::server;
use super::shown::Shown;
use super::watch::Watch;
use crate::build::{Input, Preview, PreviewCache};
use crate::cli::check::draw;
use crate::cli::{Documentation, sandboxed};
use crate::diagnostic::Tally;
use crate::diagnostic::text::{Colour, Folding};
use crate::docs::{Fetched, Needs};
use crate::isolation::process::{self, Parent};
use crate::site::Service;
use crate::source::TreePath;
use crate::source::history::History;
use crate::source::remote::Remote;

/// The subcommand that starts this process.
pub const SUBCOMMAND: &str = "preview-child";
/// How often to check for a directory that cannot be read.
const REPLACED_INTERVAL: Duration = Duration::from_millis(100);

/// The documentation to show, and the form of the report.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// The documentation, with absolute paths.
    pub(super) documentation: Documentation,
    /// The address on which the parent listens.
    pub(super) listen: IpAddr,
    /// Whether diagnostics have colours in the terminal.
    pub(super) colour: Colour,
    /// The file for fetched specifications; `None` if none are fetched.
    pub(super) specifications: Option<PathBuf>,
}

/// The events that the process reports.
pub(super) type Event = sandboxed::Event<Showing>;

/// The events of a preview only.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Showing {
    /// Text for the terminal.
    Text(String),
    /// The last event: the directory was replaced by another one.
    Replaced,
}

/// The device and the number of a directory.
type Identity = (u64, u64);

// === impl Order ===

impl Order {
    /// Identifies the root of the repository; `None` while there is none.
    fn root(&self) -> Option<Identity> {
        let root = fs::metadata(self.documentation.root.as_ref()?).ok()?;
        Some((root.dev(), root.ino()))
    }
}

/// Shows documentation in a sandbox, to browsers that connect to the socket of the parent.
///
/// # Errors
///
/// As [`process::serve_with_listener`].
pub fn serve() -> io::Result<()> {
    process::serve_with_listener(|order: Order, listener, parent| {
        let last = match show(&order, listener, parent) {
            Ok(()) => Event::Own(Showing::Replaced),
            Err(error) => Event::Failed(format!("{error:#}")),
        };
        parent.report(last);
    })
}

fn show(
    order: &Order,
    listener: TcpListener,
    parent: &mut Parent<'_, Event>,
) -> anyhow::Result<()> {
    let root = order.root().context("the directory has been removed")?;
    let watch = Watch::start(&order.documentation.path).context("watch the documentation")?;
    let port = listener.local_addr().context("read the address")?.port();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let shown = Arc::new(Shown::new(port));
    listener.set_nonblocking(true).context("use the socket")?;
    let entered = runtime.enter();
    let listener = tokio::net::TcpListener::from_std(listener).context("use the socket")?;
    runtime.spawn(server::serve(listener, Arc::clone(&shown), order.listen));
    drop(entered);
    let follower = Follower {
        order,
        parent,
        shown,
        cache: PreviewCache::default(),
        fetched: HashMap::new(),
        history: None,
    };
    follower.follow(&watch, root);
    Ok(())
}

/// Reads the documentation again after each change.
struct Follower<'p, 'r> {
    order: &'p Order,
    parent: &'p mut Parent<'r, Event>,
    shown: Arc<Shown>,
    /// The state that one reading passes to the next.
    cache: PreviewCache,
    /// The specifications that were fetched so far, by URL. They are not fetched again after every
    /// change; a failed fetch is repeated.
    fetched: HashMap<Box<str>, Bytes>,
    /// The days of the last changes, and the files for which they were read. They are read again
    /// when files appear or disappear. A changed text has no new day before it is committed.
    history: Option<(Vec<TreePath>, History)>,
}

// === impl Follower ===

impl Follower<'_, '_> {
    /// Returns when the directory of the documentation was replaced by another one.
    fn follow(mut self, watch: &Watch, root: Identity) {
        loop {
            if let Err(error) = self.read(watch) {
                self.shown.report(&[], Some(&format!("{error:#}")));
                // A directory that is being replaced will exist again in a moment. Only a new
                // process can read it then, because a sandbox names files, not paths.
                while !watch.has_changed() {
                    if self.order.root().is_some_and(|now| now != root) {
                        return;
                    }
                    std::thread::sleep(REPLACED_INTERVAL);
                }
            }
            watch.wait();
        }
    }

    /// Shows the files as they are now, then checks them.
    fn read(&mut self, watch: &Watch) -> anyhow::Result<()> {
        let (tree, mut found) = self.order.documentation.open()?;
        let options = self.order.documentation.options(&Service::default());
        let PreviewCache { pages, articles } = std::mem::take(&mut self.cache);
        let fetch = |needs: &Needs| {
            Ok::<_, Infallible>(Fetched {
                remote: (!needs.urls.is_empty())
                    .then(|| self.fetch(&needs.urls))
                    .flatten(),
                history: self.history(needs),
            })
        };
        let input = match Input::fetch(tree, &options, &pages, fetch) {
            Ok(input) => input,
            Err(never) => match never {},
        };
        let preview = Arc::new(Preview::new(input, &options, articles));
        self.shown.show(Arc::clone(&preview));
        if watch.has_changed() {
            // It will be read again at once, so a check now would be wasted.
            self.cache = preview.cache();
            return Ok(());
        }
        found.extend(preview.check());
        self.cache = preview.cache();
        self.shown.report(&found, None);
        let mut text = draw(
            &preview.input().tree,
            &found,
            self.order.colour,
            Folding::Folded,
        );
        let tally = Tally::of(&found);
        let _infallible = writeln!(text, "{tally}");
        if let Some(error_summary) = tally.error_summary() {
            let _infallible = writeln!(text, "{error_summary}");
        }
        self.parent.report(Event::Own(Showing::Text(text)));
        Ok(())
    }

    /// Returns the days on which pages were last changed, if they are needed.
    fn history(&mut self, needs: &Needs) -> Option<History> {
        if needs.undated.is_empty() {
            return None;
        }
        let known = self
            .history
            .take()
            .filter(|(files, _)| *files == needs.undated);
        let (files, history) = match known {
            Some(known) => known,
            None => {
                let history = self.order.documentation.history(needs)?;
                (needs.undated.clone(), history)
            }
        };
        self.history = Some((files, history.clone()));
        Some(history)
    }

    /// Returns the specifications that URLs name: those fetched before, and the
    /// others from the hosts that the command line names.
    fn fetch(&mut self, urls: &[Box<str>]) -> Option<Remote> {
        let urls = urls.iter();
        let new = urls.filter(|url| !self.fetched.contains_key(*url));
        let new: Vec<Box<str>> = new.cloned().collect();
        let fetched = match new.is_empty() {
            true => Remote::default(),
            false => {
                let file = self.order.specifications.as_ref()?;
                self.parent.ask(Event::Specifications(new));
                Remote::from_bytes(&fs::read(file).ok()?)?
            }
        };
        for (url, file) in fetched.iter() {
            if let Ok(bytes) = file {
                self.fetched.insert(url.into(), bytes.clone());
            }
        }
        let known = self.fetched.iter();
        let known = known.map(|(url, bytes)| (url.clone(), bytes.clone()));
        Some(fetched.with(known))
    }
}
