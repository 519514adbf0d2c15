//! Host names in normal form.
//!
//! Clients send a host in many spellings: `Docs.Example.com`, `docs.example.com.`,
//! `docs.example.com:443`. The index uses the normal form. [`Host::parse`] is the only way to
//! make a [`Host`], so equal hosts are equal bytes and a lookup is a map access.
//!
//! Internationalised names are accepted in their ASCII form only (`xn--…`); clients that
//! follow the URL standard send this form. The error for another form names it. IP literals name a
//! machine, not a site, and are rejected. Underscores are accepted, because names in customers' DNS
//! contain them.
//!
//! Sources: RFC 9110 §7.2 (the `Host` field), RFC 3986 §3.2.2 (its syntax),
//! RFC 1034 §3.1 (length, the trailing dot).

use std::borrow::{Borrow, Cow};
use std::fmt;

/// RFC 1034 §3.1: 255 octets on the wire are 253 in text, without the dot.
pub const LENGTH_MAX: usize = 253;
/// RFC 1034 §3.1: a label's length is six bits and never zero.
const LABEL_LENGTH_MAX: usize = 63;

/// A host name: lower case, no port, no trailing dot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host(Box<str>);

/// Why a text is not a host name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidHost {
    /// The text is empty without port and dot.
    #[error("host is empty")]
    Empty,
    /// Longer than DNS allows.
    #[error("host is longer than {LENGTH_MAX} octets")]
    TooLong,
    /// Not a letter, digit, hyphen, underscore or dot.
    #[error("host contains {0:?}")]
    Character(char),
    /// An internationalised name that is not in its ASCII form (RFC 5890 §2.3.2.1).
    #[error("host has other letters than those of ASCII: use {ascii}")]
    International {
        /// The ASCII form.
        ascii: Box<str>,
    },
    /// Two dots in a row, a dot in front, or a label DNS cannot carry.
    #[error("host has an empty label or one longer than {LABEL_LENGTH_MAX} octets")]
    Label,
    /// An IPv4 or IPv6 literal.
    #[error("host is an IP address")]
    Address,
    /// The text after the colon is not a port.
    #[error("host is followed by something that is not a port")]
    Port,
}

// === impl Host ===

impl Host {
    /// Reads a host as a `Host` field or a site record spells it.
    ///
    /// ```
    /// use waypost::site::Host;
    ///
    /// let host = Host::parse("Docs.Example.com.:443")?;
    /// assert_eq!(host.as_str(), "docs.example.com");
    /// # Ok::<(), waypost::site::InvalidHost>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Says why the text is not a host name, and the ASCII form of an internationalised one.
    pub fn parse(text: &str) -> Result<Self, InvalidHost> {
        match normalise(text) {
            Ok(name) => Ok(Self(name.into())),
            Err(error @ InvalidHost::Character(found)) if !found.is_ascii() => {
                Err(ascii_form(text).map_or(error, |ascii| InvalidHost::International { ascii }))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Borrow<str> for Host {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Returns whether a name is another one or below it; both are in normal form.
#[must_use]
pub fn is_within(name: &str, top: &str) -> bool {
    let above = name.strip_suffix(top);
    above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
}

/// Returns the ASCII form of an internationalised name, if it has one.
fn ascii_form(text: &str) -> Option<Box<str>> {
    let ascii = idna::domain_to_ascii(text).ok()?;
    Some(normalise(&ascii).ok()?.into())
}

/// Brings a `Host` field into the normal form of [`Host`].
///
/// A name that is already in normal form is borrowed: this function runs for every request and
/// allocates nothing for the names that usual clients send.
///
/// # Errors
///
/// Says why the text is not a host name.
pub fn normalise(text: &str) -> Result<Cow<'_, str>, InvalidHost> {
    if text.starts_with('[') {
        return Err(InvalidHost::Address);
    }
    let name = match memchr::memchr(b':', text.as_bytes()) {
        None => text,
        Some(end) => {
            let (name, port) = (&text[..end], &text[end + 1..]);
            if port.len() > 5 || !port.bytes().all(|b| b.is_ascii_digit()) {
                return Err(InvalidHost::Port);
            }
            name
        }
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        return Err(InvalidHost::Empty);
    }
    if name.len() > LENGTH_MAX {
        return Err(InvalidHost::TooLong);
    }
    let (mut label, mut last_is_number) = (0, true);
    let (mut is_divided, mut is_lower) = (true, true);
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'-' | b'_' => last_is_number = false,
            b'0'..=b'9' => {}
            b'A'..=b'Z' => (last_is_number, is_lower) = (false, false),
            b'.' => {
                is_divided &= (1..=LABEL_LENGTH_MAX).contains(&label);
                (label, last_is_number) = (0, true);
                continue;
            }
            _ => {
                // What precedes it is ASCII.
                let invalid = name[at..].chars().next().unwrap_or_default();
                return Err(InvalidHost::Character(invalid));
            }
        }
        label += 1;
    }
    if !is_divided || !(1..=LABEL_LENGTH_MAX).contains(&label) {
        return Err(InvalidHost::Label);
    }
    // WHATWG URL §3.5: a name whose last label is a number is an IPv4 address.
    if last_is_number {
        return Err(InvalidHost::Address);
    }
    if !is_lower {
        return Ok(Cow::Owned(name.to_ascii_lowercase()));
    }
    Ok(Cow::Borrowed(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_host_are_equal() {
        let expected = Host::parse("docs.acme.com").unwrap();
        for spelling in [
            "DOCS.acme.com",
            "docs.acme.com.",
            "docs.acme.com:443",
            "Docs.Acme.Com.:8080",
            "docs.acme.com:",
        ] {
            assert_eq!(Host::parse(spelling), Ok(expected.clone()), "{spelling}");
        }
    }

    #[test]
    fn a_host_in_normal_form_is_not_copied() {
        assert!(matches!(
            normalise("docs.acme.com:8080"),
            Ok(Cow::Borrowed("docs.acme.com"))
        ));
    }

    #[test]
    fn an_invalid_host_name_is_explained() {
        let long_label = format!("{}.com", "a".repeat(64));
        let long = vec!["a".repeat(60); 5].join(".");
        for (text, why) in [
            ("", InvalidHost::Empty),
            (".", InvalidHost::Empty),
            (":80", InvalidHost::Empty),
            ("a..b", InvalidHost::Label),
            (".a", InvalidHost::Label),
            ("a.com..", InvalidHost::Label),
            ("a..1", InvalidHost::Label),
            ("a..b c", InvalidHost::Character(' ')),
            ("a.1", InvalidHost::Address),
            (long_label.as_str(), InvalidHost::Label),
            (long.as_str(), InvalidHost::TooLong),
            ("a b", InvalidHost::Character(' ')),
            ("a,b", InvalidHost::Character(',')),
            ("user@a", InvalidHost::Character('@')),
            ("a\u{202E}b", InvalidHost::Character('\u{202E}')),
            ("a:b", InvalidHost::Port),
            ("a:80:80", InvalidHost::Port),
            ("a:123456", InvalidHost::Port),
            ("127.0.0.1", InvalidHost::Address),
            ("127.1:80", InvalidHost::Address),
            ("[::1]:80", InvalidHost::Address),
        ] {
            assert_eq!(Host::parse(text), Err(why), "{text:?}");
        }
    }

    #[test]
    fn the_ascii_form_of_an_internationalised_name_is_told() {
        for (text, expected) in [
            ("bücher.example", "xn--bcher-kva.example"),
            ("DOCS.Bücher.Example.:443", "docs.xn--bcher-kva.example"),
            ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
        ] {
            let ascii = expected.into();
            let expected = InvalidHost::International { ascii };
            assert_eq!(Host::parse(text), Err(expected), "{text}");
        }
    }

    #[test]
    fn underscores_and_a_labels_are_hosts() {
        for text in ["my_docs.acme.com", "xn--bcher-kva.example", "localhost"] {
            assert_eq!(Host::parse(text).unwrap().as_str(), text);
        }
    }
}
