//! `waypost preview`: shows a documentation as it will be published, while it is written.
//!
//! ```text
//!  files ──watch──▶ Preview ──▶ Shown ──▶ server ──▶ browser
//!                       └─check─▶ diagnostics ─┴─▶ terminal, panel
//! ```
//!
//! A change is shown before the documentation is checked: a page is rendered when a browser
//! requests it. The responses are made by the code of the gateway, discovery included. Only the
//! panel with the diagnostics and the script that reloads are added, and the browser must not cache
//! anything.
//!
//! **Invariant:** a documentation that cannot be read never ends a preview. The last site
//! that could be shown stays, with the diagnostics.

mod panel;
mod server;
mod shown;
mod watch;

use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use bytes::Bytes;

use super::Documentation;
use super::check::draw;
use crate::build::{Input, Preview, PreviewCache};
use crate::diagnostic::Tally;
use crate::diagnostic::text::Folding;
use crate::site::Service;
use crate::source::directory;
use crate::source::remote::{self, Remote};

use shown::Shown;
use watch::Watch;

/// Show documentation while you write it
///
/// Serves the documentation on this machine, reloads the page when you save a file, and shows
/// diagnostics in the page and in the terminal.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// What to show.
    #[command(flatten)]
    pub documentation: Documentation,
    /// The port to listen on; 0 for a free one
    #[arg(long, default_value_t = 3000)]
    pub port: u16,
    /// The address to listen on; everybody who can reach it can read the documentation
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub listen: IpAddr,
}

/// Serves a preview until a signal stops the process.
///
/// # Errors
///
/// When the documentation cannot be opened at all, or the port is taken.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    runtime.block_on(serve(args))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(args: &Args) -> anyhow::Result<()> {
    let address = SocketAddr::new(args.listen, args.port);
    let listener = tokio::net::TcpListener::bind(address)
        .await
        .with_context(|| format!("listen on {address}"))?;
    let port = listener.local_addr().context("read the address")?.port();
    // Wrong arguments are an error of the command, not a message in the page.
    directory::locate(&args.documentation.path, args.documentation.root.as_deref())?;
    let watch = Watch::start(&args.documentation.path).context("watch the documentation")?;
    let shown = Arc::new(Shown::new(port));
    let follower = Follower {
        documentation: args.documentation.clone(),
        shown: Arc::clone(&shown),
        cache: PreviewCache::default(),
        fetched: HashMap::new(),
    };
    std::thread::Builder::new()
        .name("preview".to_owned())
        .spawn(move || follower.follow(&watch))
        .context("start to follow changes")?;
    let name = match args.listen.is_loopback() {
        true => "localhost".to_owned(),
        false => SocketAddr::new(args.listen, 0).ip().to_string(),
    };
    print_line(&format!("preview on http://{name}:{port}/"))?;
    let serving = server::serve(listener, shown, args.listen);
    tokio::select! {
        () = serving => Ok(()),
        stopped = tokio::signal::ctrl_c() => stopped.context("wait to be stopped"),
    }
}

fn print_line(line: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").context("print")?;
    out.flush().context("print")
}

/// Reads the documentation again after each change.
struct Follower {
    documentation: Documentation,
    shown: Arc<Shown>,
    /// The state that one reading passes to the next.
    cache: PreviewCache,
    /// The specifications that were fetched so far, by URL. They are not fetched again after every
    /// change; a failed fetch is repeated.
    fetched: HashMap<Box<str>, Bytes>,
}

// === impl Follower ===

impl Follower {
    fn follow(mut self, watch: &Watch) -> ! {
        loop {
            if let Err(error) = self.read(watch) {
                // A directory that is being replaced will exist again in a moment.
                self.shown.report(&[], Some(&format!("{error:#}")));
            }
            watch.wait();
        }
    }

    /// Shows the files as they are now, then checks them.
    fn read(&mut self, watch: &Watch) -> anyhow::Result<()> {
        let (tree, mut found) = self.documentation.open()?;
        let options = self.documentation.options(&Service::default());
        let PreviewCache { pages, articles } = std::mem::take(&mut self.cache);
        let fetch = |urls: &[Box<str>]| Ok::<_, Infallible>(self.fetch(urls));
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
        let mut text = Vec::new();
        draw(&mut text, &preview.input().tree, &found, Folding::Folded)?;
        let tally = Tally::of(&found);
        let mut out = io::stdout().lock();
        out.write_all(&text)?;
        writeln!(out, "{tally}")?;
        if let Some(error_summary) = tally.error_summary() {
            writeln!(out, "{error_summary}")?;
        }
        Ok(out.flush()?)
    }

    /// Returns the specifications that URLs name: those that were fetched before, and the
    /// others from the hosts that the command line names.
    fn fetch(&mut self, urls: &[Box<str>]) -> Option<Remote> {
        let urls = urls.iter();
        let new = urls.filter(|url| !self.fetched.contains_key(*url));
        let new: Vec<Box<str>> = new.cloned().collect();
        let fetched = match new.is_empty() {
            true => Remote::default(),
            false => self.documentation.fetch(&new, &remote::Config::default())?,
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
