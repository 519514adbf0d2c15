//! `Strict-Transport-Security` of a site: for how long browsers use only TLS for its hosts.
//!
//! Source: RFC 6797; `preload` is a convention of the list that browsers ship
//! (hstspreload.org).

use std::fmt;

/// The longest time that can be set, in seconds: two years.
pub const HSTS_SECONDS_MAX: u32 = 2 * 365 * 86_400;
/// The shortest time that the list of browsers accepts, in seconds.
const PRELOAD_SECONDS_MIN: u32 = 365 * 86_400;

/// The value of `Strict-Transport-Security`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hsts {
    /// For how long browsers use only TLS, in seconds; 0: they forget an earlier value.
    pub seconds: u32,
    /// Whether it also holds for all names below the host.
    pub subdomains: bool,
    /// Whether the host may be added to the list that browsers ship.
    pub preload: bool,
}

// === impl Hsts ===

impl Hsts {
    /// Returns why the value contradicts itself, if it does.
    #[must_use]
    pub fn contradiction(self) -> Option<&'static str> {
        let may_preload = self.subdomains && self.seconds >= PRELOAD_SECONDS_MIN;
        (self.preload && !may_preload)
            .then_some("`preload` needs `subdomains: true` and `seconds` of at least 31536000")
    }
}

impl fmt::Display for Hsts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "max-age={}", self.seconds)?;
        if self.subdomains {
            f.write_str("; includeSubDomains")?;
        }
        if self.preload {
            f.write_str("; preload")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_as_the_field_has_it() {
        let mut hsts = Hsts {
            seconds: 600,
            ..Hsts::default()
        };
        assert_eq!(hsts.to_string(), "max-age=600");
        hsts.subdomains = true;
        assert_eq!(hsts.to_string(), "max-age=600; includeSubDomains");
        hsts.preload = true;
        assert!(hsts.contradiction().is_some());
        hsts.seconds = 31_536_000;
        assert_eq!(hsts.contradiction(), None);
        assert!(hsts.to_string().ends_with("; includeSubDomains; preload"));
        hsts.subdomains = false;
        assert!(hsts.contradiction().is_some());
    }
}
