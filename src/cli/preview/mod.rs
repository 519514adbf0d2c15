//! `waypost preview`: shows documentation as it will be published, while it is written.
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
//! All of this happens in one sandboxed process ([`child`]), which stays while the preview runs,
//! because it remembers the pages that have not changed. This process listens, prints, and starts
//! that process again when it has ended.
//!
//! **Invariant:** documentation that cannot be read never ends a preview. The last site that could
//! be shown stays, with the diagnostics.

mod child;
mod panel;
mod server;
mod shown;
mod watch;

use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::check::colour;
use super::{Documentation, sandboxed};
use crate::deploy::run::{DocsDirectory, Limits, Session};
use crate::isolation::Mode;
use crate::source::remote;

use child::{Event, Order, Showing};
use watch::Watch;

pub use child::{SUBCOMMAND, serve};

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

/// Why the process of a preview has ended.
enum PreviewEnd {
    /// The directory was replaced, and the sandbox still names the earlier one.
    Replaced,
    /// It was killed or has failed, as this sentence says.
    Died(String),
}

/// Serves a preview until a signal stops the process.
///
/// # Errors
///
/// When the documentation cannot be opened at all, or the port is taken.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let address = SocketAddr::new(args.listen, args.port);
    let listener = TcpListener::bind(address).with_context(|| format!("listen on {address}"))?;
    let port = listener.local_addr().context("read the address")?.port();
    // Wrong arguments are an error of the command, not a message in the page.
    args.documentation.place()?;
    let name = match args.listen.is_loopback() {
        true => "localhost".to_owned(),
        false => SocketAddr::new(args.listen, 0).ip().to_string(),
    };
    print(&format!("preview on http://{name}:{port}/\n"))?;
    let specifications = args
        .documentation
        .specifications(&remote::Config::default());
    let (mode, limits) = (Mode::default(), Limits::default());
    let act = async |session: &Session| loop {
        let place = args.documentation.place()?;
        match show(args, &place, session, &listener).await? {
            PreviewEnd::Replaced => {}
            PreviewEnd::Died(how) => {
                writeln!(
                    io::stderr(),
                    "waypost: {how}; the preview goes on after the next change"
                )?;
                let watch = Watch::start(&place.path).context("watch the documentation")?;
                tokio::task::spawn_blocking(move || watch.wait()).await?;
            }
        }
    };
    match sandboxed::run(mode, &limits, specifications, act) {
        Err(error) if error.is::<sandboxed::Stopped>() => Ok(ExitCode::SUCCESS),
        ended => ended,
    }
}

/// Shows the documentation in a sandboxed process, until this process ends.
async fn show(
    args: &Args,
    place: &DocsDirectory,
    session: &Session,
    listener: &TcpListener,
) -> anyhow::Result<PreviewEnd> {
    let order = Order {
        documentation: args.documentation.at(place),
        listen: args.listen,
        colour: colour(),
        specifications: session
            .has_specifications()
            .then(|| session.specifications()),
    };
    let sandbox = session.sandbox(place);
    let started = session.start(SUBCOMMAND, &order, sandbox, Some(listener));
    let mut running = started.await.context("start a sandboxed process")?;
    loop {
        match running.event().await {
            Ok(Some(Event::InForce(in_force))) => sandboxed::report_missing(in_force)?,
            Ok(Some(Event::Specifications(urls))) => {
                session.fetch(urls).await?;
                // If it has ended, there is no further event.
                let _answered = running.answer().await;
            }
            Ok(Some(Event::Own(Showing::Text(text)))) => print(&text)?,
            Ok(Some(Event::Own(Showing::Replaced))) => return Ok(PreviewEnd::Replaced),
            Ok(Some(Event::Failed(why))) => bail!("{why}"),
            Ok(None) => return Ok(PreviewEnd::Died(running.ended().await)),
            Err(error) => return Ok(PreviewEnd::Died(error.to_string())),
        }
    }
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).context("print")?;
    out.flush().context("print")
}
