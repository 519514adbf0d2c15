//! Which sites may be shown inside of pages.
//!
//! A frame shows what its author cannot vouch for, so only hosts of a list are framed, in a
//! sandbox, over `https`; of all others a page links the address. By default the list has
//! the players and drawing boards that public documentation embeds.
//!
//! **Limits.** Renderer and policy take any list; the configuration has no key for it yet.
//!
//! Sources: CSP Level 3 §6.2.3 (`frame-src`), §6.7.2.6 (matching hosts).

/// What public documentation embeds: players, sandboxes, drawing boards.
pub const DEFAULT_HOSTS: [&str; 14] = [
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

/// Hosts whose pages may be shown in frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frames(Box<[Box<str>]>);

/// A host of the list cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a host, or `*.` and one")]
pub struct InvalidFrameHost(Box<str>);

// === impl Frames ===

impl Frames {
    /// Makes a list of hosts; `*.example.com` is every host below that one.
    ///
    /// # Errors
    ///
    /// [`InvalidFrameHost`] names the first entry that is no host: it would stand in a policy.
    pub fn new<'h>(hosts: impl IntoIterator<Item = &'h str>) -> Result<Self, InvalidFrameHost> {
        let host = |host: &'h str| {
            let name = host.strip_prefix("*.").unwrap_or(host);
            let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
            match name.contains('.') && name.chars().all(is_part) {
                true => Ok(host.to_ascii_lowercase().into()),
                false => Err(InvalidFrameHost(host.into())),
            }
        };
        Ok(Self(hosts.into_iter().map(host).collect::<Result<_, _>>()?))
    }

    /// Returns whether an address may be shown in a frame.
    ///
    /// ```
    /// use waypost::render::frame::Frames;
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
        self.0.iter().any(|known| match known.strip_prefix("*.") {
            Some(below) => host
                .strip_suffix(below)
                .is_some_and(|name| name.ends_with('.')),
            None => host == **known,
        })
    }

    /// Returns the list as it stands in a policy.
    #[must_use]
    pub fn sources(&self) -> String {
        let sources = self.0.iter().map(|host| format!("https://{host}"));
        sources.collect::<Vec<_>>().join(" ")
    }
}

impl Default for Frames {
    fn default() -> Self {
        Self(DEFAULT_HOSTS.map(Into::into).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_the_hosts_below_it() {
        let frames = Frames::new(["*.acme.test"]).unwrap();
        assert!(frames.allow("https://a.acme.test/x") && frames.allow("https://a.b.acme.test"));
        assert!(!frames.allow("https://acme.test/x") && !frames.allow("https://xacme.test"));
        assert_eq!(frames.sources(), "https://*.acme.test");
    }

    #[test]
    fn nothing_but_a_host_can_stand_in_a_policy() {
        for host in [
            "*",
            "a b.test",
            "x.test; script-src *",
            "https://x.test",
            "",
            "'self'",
        ] {
            assert!(Frames::new([host]).is_err(), "{host}");
        }
    }
}
