//! The settings of the model that writes skills.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use http::Uri;
use serde::{Deserialize, Serialize};

use crate::site::address;

/// Millionths of the currency of the configuration in one unit of it.
pub(super) const MILLIONTHS: u64 = 1_000_000;

/// The model, and what it may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config {
    /// The format of requests.
    pub provider: Provider,
    /// The address below which the API is; `None`: no model writes skills.
    pub url: Option<ServerAddress>,
    /// The name of the model.
    pub model: Box<str>,
    /// The name of the model that judges a written skill; empty: none does.
    pub evaluation_model: Box<str>,
    /// Whether answers come as streams of events.
    pub stream: bool,
    /// The file with the key; `None` for a server that needs none.
    pub key_file: Option<PathBuf>,
    /// The proxy through which the API is reached, with CONNECT.
    pub proxy: Option<ServerAddress>,
    /// The limits of one request and of one conversation.
    pub limits: StepLimits,
    /// The price of a million input tokens.
    pub price_input: Price,
    /// The price of a million output tokens.
    pub price_output: Price,
    /// The limit for one update.
    pub update: super::Budget,
    /// The limit for all updates of an owner in a day (UTC).
    pub owner_day: super::Budget,
}

/// The limits of one conversation, besides tokens and money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepLimits {
    /// How many requests it may have.
    pub steps: u32,
    /// How often a draft may be corrected.
    pub corrections: u32,
    /// How long it may take.
    pub total: Duration,
    /// How long one request may take.
    pub request: Duration,
    /// How often one request is repeated after a failure that may end.
    pub retries: u32,
    /// How many tokens the model may write in one answer.
    pub output_tokens: u64,
    /// How many bytes of pages and results the tools give in all.
    pub read_bytes: usize,
    /// The longest answer of the server, in bytes.
    pub answer_bytes: u64,
}

/// The format of requests and answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    /// Anthropic's Messages: `{url}/v1/messages`.
    #[default]
    Anthropic,
    /// The Chat Completions of `OpenAI`: `{url}/chat/completions`.
    #[serde(rename = "openai")]
    OpenAi,
}

/// An amount of money in millionths of the currency of the configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Price(pub u64);

/// An address of a server: scheme, host, port and path.
///
/// It may contain a user name and a password for a proxy, so it is shown without them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerAddress {
    text: String,
    host: String,
    port: u16,
    is_https: bool,
}

/// Why a text is no address of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an address like https://host/path, without query")]
pub struct InvalidAddress;

// === impl Provider ===

impl Provider {
    /// All providers with their names in the configuration.
    pub const NAMES: [(&'static str, Self); 2] =
        [("anthropic", Self::Anthropic), ("openai", Self::OpenAi)];
}

// === impl Config ===

impl Default for Config {
    /// No model.
    fn default() -> Self {
        Self {
            provider: Provider::default(),
            url: None,
            model: "".into(),
            evaluation_model: "".into(),
            stream: false,
            key_file: None,
            proxy: None,
            limits: StepLimits::default(),
            price_input: Price(0),
            price_output: Price(0),
            update: super::Budget {
                tokens: 600_000,
                cost: Price(0),
            },
            owner_day: super::Budget {
                tokens: 6_000_000,
                cost: Price(0),
            },
        }
    }
}

impl Default for StepLimits {
    fn default() -> Self {
        Self {
            steps: 40,
            corrections: 4,
            total: Duration::from_secs(900),
            request: Duration::from_secs(300),
            retries: 4,
            output_tokens: 12_000,
            read_bytes: 400_000,
            answer_bytes: 4 << 20,
        }
    }
}

// === impl Price ===

impl Price {
    /// Returns the amount in the currency of the configuration, rounded.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    pub fn amount(self) -> f64 {
        self.0 as f64 / MILLIONTHS as f64
    }
}

impl FromStr for Price {
    type Err = &'static str;

    /// Reads an amount with at most six decimals, such as `0.25`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WANTED: &str = "an amount like 3 or 0.25, with at most six decimals";
        let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(decimals) || decimals.len() > 6 {
            return Err(WANTED);
        }
        let whole: u64 = whole.parse().map_err(|_too_long| WANTED)?;
        let decimals = format!("{decimals:0<6}").parse::<u64>();
        let decimals = decimals.map_err(|_not_reached| WANTED)?;
        let whole = whole.checked_mul(MILLIONTHS).ok_or(WANTED)?;
        whole.checked_add(decimals).map(Self).ok_or(WANTED)
    }
}

impl fmt::Display for Price {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / MILLIONTHS, self.0 % MILLIONTHS)
    }
}

// === impl ServerAddress ===

impl ServerAddress {
    /// Returns the address without a slash at its end.
    pub(super) fn as_str(&self) -> &str {
        self.text.trim_end_matches('/')
    }

    /// Returns the name or the IP address of the host.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether what is sent there can be read by others on the way: without TLS, to
    /// another machine that is not in a private network.
    #[must_use]
    pub fn is_exposed(&self) -> bool {
        let is_near = match self.host.parse::<IpAddr>() {
            Ok(ip) => !address::is_public(ip),
            Err(_name) => self.host.eq_ignore_ascii_case("localhost"),
        };
        !self.is_https && !is_near
    }
}

impl FromStr for ServerAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let url: Uri = text.parse().map_err(|_invalid| InvalidAddress)?;
        let is_https = match url.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(InvalidAddress),
        };
        let host = url.host().filter(|host| !host.is_empty());
        let host = host.ok_or(InvalidAddress)?;
        if url.query().is_some() || text.contains('#') {
            return Err(InvalidAddress);
        }
        let usual = if is_https { 443 } else { 80 };
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: url.port_u16().unwrap_or(usual),
            is_https,
            text: text.to_owned(),
        })
    }
}

impl TryFrom<String> for ServerAddress {
    type Error = InvalidAddress;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ServerAddress> for String {
    fn from(address: ServerAddress) -> Self {
        address.text
    }
}

impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_exactly() {
        let read = |text: &str| text.parse::<Price>().ok().map(|price| price.0);
        assert_eq!(read("3"), Some(3_000_000));
        assert_eq!(read("0.25"), Some(250_000));
        assert_eq!(read("0.000001"), Some(1));
        for text in ["", ".5", "-1", "1e3", "0.0000001", "99999999999999"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(Price(1_250_000).to_string(), "1.250000");
    }

    #[test]
    fn an_address_shows_no_password_and_knows_where_keys_can_be_read() {
        let address: ServerAddress = "http://me:secret@proxy.acme.test:3128".parse().unwrap();
        assert_eq!(format!("{address:?}"), "proxy.acme.test:3128");
        assert!(address.is_exposed());
        for text in [
            "http://127.0.0.1:1/v1",
            "http://[::1]/",
            "http://localhost",
            "https://a.test",
        ] {
            assert!(
                !text.parse::<ServerAddress>().unwrap().is_exposed(),
                "{text}"
            );
        }
        for text in [
            "",
            "a.test",
            "ftp://a.test",
            "https://a.test?x=1",
            "/v1",
            "https://",
        ] {
            assert!(text.parse::<ServerAddress>().is_err(), "{text}");
        }
    }
}
