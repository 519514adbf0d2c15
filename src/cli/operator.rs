//! Requests to the operator's listener of a running process.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, bail};
use http::StatusCode;
use ureq::Agent;

use crate::config::Config;
use crate::gateway::token::Token;

/// How long the process may take to respond.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest response that is read.
const BYTES_MAX: u64 = 64 << 20;

/// The operator's listener of a running process.
#[derive(Debug)]
pub(super) struct Operator {
    agent: Agent,
    address: SocketAddr,
}

// === impl Operator ===

impl Operator {
    /// Names the listener of a configuration.
    ///
    /// # Errors
    ///
    /// When the configuration has none.
    pub(super) fn of(config: &Config) -> anyhow::Result<Self> {
        let address = config.listen.operator;
        let mut address = address.context("`listen.operator` is false, so nobody can be asked")?;
        // A listener on all addresses is reached on this machine.
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip([127, 0, 0, 1].into()),
            IpAddr::V6(ip) if ip.is_unspecified() => {
                address.set_ip(std::net::Ipv6Addr::LOCALHOST.into());
            }
            _ => {}
        }
        let agent = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            // The listener may close a connection while the next request is on its way.
            .max_idle_connections(0)
            .http_status_as_error(false)
            .max_redirects(0)
            // The listener is local: never use a proxy from the environment.
            .proxy(None)
            .build()
            .into();
        Ok(Self { agent, address })
    }

    /// Returns the address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Reads a page.
    ///
    /// # Errors
    ///
    /// When nothing responds there.
    pub(super) fn get(&self, page: &str) -> anyhow::Result<(StatusCode, String)> {
        let address = self.address;
        let response = self.agent.get(format!("http://{address}{page}")).call();
        self.read(page, response)
    }

    /// Asks for a change; returns the status and the text of the response.
    ///
    /// # Errors
    ///
    /// When nothing responds there.
    pub(super) fn post(&self, page: &str, token: &Token) -> anyhow::Result<(StatusCode, String)> {
        let request = self.agent.post(format!("http://{}{page}", self.address));
        let request = request.header("Authorization", token.authorization());
        self.read(page, request.send_empty())
    }

    fn read(
        &self,
        page: &str,
        response: Result<http::Response<ureq::Body>, ureq::Error>,
    ) -> anyhow::Result<(StatusCode, String)> {
        let address = self.address;
        let mut response = response.with_context(|| format!("nothing responds on {address}"))?;
        let status = response.status();
        let body = response.body_mut().with_config().limit(BYTES_MAX);
        let text = body
            .read_to_string()
            .with_context(|| format!("read {page} of {address}"))?;
        Ok((status, text))
    }

    /// Reads a page of JSON. Its status does not matter.
    ///
    /// # Errors
    ///
    /// When nothing responds there, or another program does.
    pub(super) fn json(&self, page: &str) -> anyhow::Result<serde_json::Value> {
        let (status, text) = self.get(page)?;
        match serde_json::from_str(&text) {
            Ok(value) => Ok(value),
            Err(_not_ours) => bail!(
                "{} responds to {page} with {status} and no JSON: is it another program, or an \
                 older version?",
                self.address
            ),
        }
    }
}
