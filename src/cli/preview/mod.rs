//! `waypost preview`: a documentation as it will be published, while it is written.
//!
//! ```text
//!  files ──watch──▶ Draft ──▶ Shown ──▶ server ──▶ browser
//!                     └─check─▶ findings ─┴─▶ terminal, panel
//! ```
//!
//! A change is read and shown before anything is checked or any other page rendered: the
//! draft makes the page that is looked at when it is asked for. What answers is what answers
//! on the edge, discovery included; only the panel with the findings and the script that
//! reloads are added, and nothing may be kept by the browser.
//!
//! **Invariant:** what cannot be read never ends a preview; the last site that could be
//! shown stays, beside the findings.

mod panel;
mod server;
mod shown;
mod watch;

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;

use super::Documentation;
use super::check::{count, draw};
use crate::build::{Draft, Known, Options};
use crate::diagnostic::text::Folding;
use crate::source::directory;

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

/// Serves a preview until the process is told to stop.
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
    // Says now what is wrong with the arguments, and not in the page.
    directory::locate(&args.documentation.path, args.documentation.root.as_deref())?;
    let watch = Watch::start(&args.documentation.path).context("watch the documentation")?;
    let shown = Arc::new(Shown::new(port));
    let follower = Follower {
        documentation: args.documentation.clone(),
        shown: Arc::clone(&shown),
        known: Known::default(),
    };
    std::thread::Builder::new()
        .name("preview".to_owned())
        .spawn(move || follower.follow(&watch))
        .context("start to follow changes")?;
    let name = match args.listen.is_loopback() {
        true => "localhost".to_owned(),
        false => SocketAddr::new(args.listen, 0).ip().to_string(),
    };
    say(&format!("preview on http://{name}:{port}/"))?;
    let serving = server::serve(listener, shown, args.listen);
    tokio::select! {
        () = serving => Ok(()),
        stopped = tokio::signal::ctrl_c() => stopped.context("wait to be stopped"),
    }
}

fn say(line: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").context("print")?;
    out.flush().context("print")
}

/// Brings changes of the documentation to what is shown.
struct Follower {
    documentation: Documentation,
    shown: Arc<Shown>,
    /// What was read and rendered so far.
    known: Known,
}

// === impl Follower ===

impl Follower {
    fn follow(mut self, watch: &Watch) -> ! {
        loop {
            if let Err(error) = self.read(watch) {
                // A directory that is being replaced is there again in a moment.
                self.shown.tell(&[], Some(&format!("{error:#}")));
            }
            watch.wait();
        }
    }

    /// Shows what is written now, and then says what is wrong with it.
    fn read(&mut self, watch: &Watch) -> anyhow::Result<()> {
        let (tree, mut found) = self.documentation.open()?;
        let mut options = Options::default();
        if let Some(name) = &self.documentation.service_name {
            options.service_name = name.as_str().into();
        }
        let draft = Arc::new(Draft::new(tree, &options, std::mem::take(&mut self.known)));
        self.shown.show(Arc::clone(&draft));
        if watch.has_changed() {
            // What is about to be read again is not worth a check.
            self.known = draft.known();
            return Ok(());
        }
        found.extend(draft.check());
        self.known = draft.known();
        self.shown.tell(&found, None);
        let mut text = Vec::new();
        draw(&mut text, draft.tree(), &found, Folding::Folded)?;
        let errors = found.iter().filter(|found| found.is_error()).count();
        let mut out = io::stdout().lock();
        out.write_all(&text)?;
        writeln!(
            out,
            "{}, {}",
            count(errors, "error"),
            count(found.len() - errors, "warning")
        )?;
        Ok(out.flush()?)
    }
}
