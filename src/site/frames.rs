//! The hosts that pages may show in frames.
//!
//! The author of a page does not control the content of a frame. So a page shows only hosts of
//! a list in frames, in a sandbox, over `https`; it links to any other address. The operator's
//! list is `service.frame_hosts`; by default it contains the video players, code sandboxes and
//! drawing boards that public documentation embeds.
//!
//! The list is used twice: a build writes a frame or a link, and the server sends the list as
//! the page's policy. **Invariant:** the policy decides, because a browser obeys it whatever the
//! page contains. So a host that is removed from the list is shown nowhere as soon as the
//! configuration is read; a host that is added is shown in each site after its next build.
//!
//! Sources: CSP Level 3 §6.2.3 (`frame-src`), §6.7.2.6 (matching hosts).

use http::HeaderValue;
use serde::{Deserialize, Serialize};

use super::{Host, InvalidHost};

/// The hosts that public documentation embeds: video players, code sandboxes, drawing boards.
const DEFAULT_HOSTS: [&str; 14] = [
    "www.youtube.com",
    "www.youtube-nocookie.com",
    "player.vimeo.com",
    "www.loom.com",
    "fast.wistia.net",
    "fast.wistia.com",
    "codesandbox.io",
    "stackblitz.com",
    "codepen.io",
    "www.figma.com",
    "embed.figma.com",
    "app.supademo.com",
    "demo.arcade.software",
    "share.descript.com",
];

/// Hosts that may be shown in frames, and the policy that allows them in browsers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<FrameHost>", into = "Vec<FrameHost>")]
pub struct Frames {
    hosts: Vec<FrameHost>,
    policy: HeaderValue,
}

/// A host of the list; with `*.` in front, every host below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct FrameHost(Box<str>);

/// Why a text is not a host whose pages can be framed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidFrameHost {
    /// The text is not a host.
    #[error(transparent)]
    Host(#[from] InvalidHost),
    /// The text has a scheme, a port, a path or a dot at the end.
    #[error("more than a host, or `*.` and one")]
    More,
    /// The host has a single label: with `*.` it would cover a whole top-level domain.
    #[error("host without a dot")]
    Label,
    /// The host has a `_`: CSP Level 3 §2.3.1 allows letters, digits and hyphens only.
    #[error("host with `_`, which no policy can name")]
    Underscore,
}

// === impl Frames ===

impl Frames {
    /// Makes a list of hosts. An empty list allows no frames of other hosts.
    #[must_use]
    pub fn new(hosts: impl IntoIterator<Item = FrameHost>) -> Self {
        let hosts: Vec<_> = hosts.into_iter().collect();
        let policy = policy(&hosts);
        Self { hosts, policy }
    }

    /// Returns whether an address may be shown in a frame.
    ///
    /// ```
    /// use waypost::site::Frames;
    ///
    /// let frames = Frames::default();
    /// assert!(frames.allow("https://www.youtube.com/embed/x"));
    /// assert!(!frames.allow("http://www.youtube.com/embed/x"));
    /// assert!(!frames.allow("https://www.youtube.com.evil.test/"));
    /// assert!(!frames.allow("https://www.youtube.com@evil.test/"));
    /// ```
    #[must_use]
    pub fn allow(&self, url: &str) -> bool {
        let Some(rest) = url.strip_prefix("https://") else {
            return false;
        };
        // WHATWG URL: a browser reads a backslash as a slash.
        let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
        let host = rest[..end].to_ascii_lowercase();
        self.hosts.iter().any(|known| known.covers(&host))
    }

    /// Returns the policy of pages: what they may load, and which hosts they may frame.
    #[must_use]
    pub fn page_policy(&self) -> &HeaderValue {
        &self.policy
    }
}

impl Default for Frames {
    fn default() -> Self {
        let host = |name| FrameHost::parse(name).expect("a constant host name");
        Self::new(DEFAULT_HOSTS.map(host))
    }
}

impl From<Vec<FrameHost>> for Frames {
    fn from(hosts: Vec<FrameHost>) -> Self {
        Self::new(hosts)
    }
}

impl From<Frames> for Vec<FrameHost> {
    fn from(frames: Frames) -> Self {
        frames.hosts
    }
}

// === impl FrameHost ===

impl FrameHost {
    /// Reads a host or a pattern.
    ///
    /// # Errors
    ///
    /// [`InvalidFrameHost`]: another text could add directives to the policy.
    pub fn parse(text: &str) -> Result<Self, InvalidFrameHost> {
        let name = text.strip_prefix("*.").unwrap_or(text);
        let host = Host::parse(name)?;
        if !host.as_str().eq_ignore_ascii_case(name) {
            return Err(InvalidFrameHost::More);
        }
        if !name.contains('.') {
            return Err(InvalidFrameHost::Label);
        }
        if name.contains('_') {
            return Err(InvalidFrameHost::Underscore);
        }
        Ok(Self(text.to_ascii_lowercase().into()))
    }

    /// Returns whether this allows a host; `*.` matches one or more labels (CSP Level 3 §6.7.2.6).
    fn covers(&self, host: &str) -> bool {
        match self.0.strip_prefix("*.") {
            Some(below) => host
                .strip_suffix(below)
                .is_some_and(|name| name.ends_with('.')),
            None => host == &*self.0,
        }
    }
}

impl TryFrom<String> for FrameHost {
    type Error = InvalidFrameHost;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<FrameHost> for String {
    fn from(host: FrameHost) -> Self {
        host.0.into()
    }
}

/// Makes the policy: a page may load files of its site, images and media of any host, and
/// frames of the hosts of a list.
fn policy(hosts: &[FrameHost]) -> HeaderValue {
    let frames: String = hosts
        .iter()
        .map(|host| format!(" https://{}", host.0))
        .collect();
    let policy = format!(
        "default-src 'none'; script-src 'self'; \
         style-src 'self'; img-src 'self' https: data:; \
         media-src 'self' https:; font-src 'self'; connect-src 'self'; \
         manifest-src 'self'; frame-src 'self'{frames}; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    );
    HeaderValue::from_str(&policy).expect("hosts are letters, digits, hyphens and dots")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_the_hosts_below_it() {
        let frames = Frames::new([FrameHost::parse("*.Acme.test").unwrap()]);
        assert!(frames.allow("https://a.acme.test/x") && frames.allow("https://a.b.acme.test"));
        assert!(!frames.allow("https://acme.test/x") && !frames.allow("https://xacme.test"));
        let policy = frames.page_policy().to_str().unwrap();
        assert!(policy.contains("frame-src 'self' https://*.acme.test;"));
    }

    #[test]
    fn an_empty_list_allows_only_our_own_frames() {
        let frames = Frames::new([]);
        assert!(!frames.allow("https://www.youtube.com/embed/x"));
        let policy = frames.page_policy().to_str().unwrap();
        assert!(policy.contains("frame-src 'self';"), "{policy}");
    }

    #[test]
    fn only_hosts_are_accepted_in_a_policy() {
        for host in [
            "*",
            "*.",
            "*.*.test",
            "a b.test",
            "x.test; script-src *",
            "https://x.test",
            "x.test:8443",
            "x.test/path",
            "x.test.",
            "x..test",
            "com",
            "*.com",
            "127.0.0.1",
            "a_b.test",
            "",
            "'self'",
        ] {
            assert!(FrameHost::parse(host).is_err(), "{host}");
        }
    }
}
