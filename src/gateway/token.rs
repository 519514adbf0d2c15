//! The token of the operator's listener, which allows changes of the state of a running gateway.
//!
//! It is a file that only the gateway's user can read. The gateway makes it at its first start
//! with 256 random bits; `waypost reload` reads it and sends it as a bearer token (RFC 6750
//! §2.1). An operator may also write it.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use subtle::ConstantTimeEq as _;

/// The number of random bytes of a new token.
const RANDOM_BYTES: usize = 32;
/// The shortest token that is accepted, in characters.
const LENGTH_MIN: usize = 16;

/// A token.
#[derive(Clone)]
pub struct Token(String);

// === impl Token ===

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Reads the token in a file.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or holds no line of visible ASCII characters that is long
    /// enough.
    pub fn read(path: &Path) -> io::Result<Self> {
        let text = fs::read_to_string(path)?;
        let token = text.trim();
        if token.len() < LENGTH_MIN || !token.bytes().all(|b| b.is_ascii_graphic()) {
            let wanted = format!("a token is at least {LENGTH_MIN} visible ASCII characters");
            return Err(io::Error::new(io::ErrorKind::InvalidData, wanted));
        }
        Ok(Self(token.to_owned()))
    }

    /// Reads the token in a file; if there is no file, makes it with a new token.
    ///
    /// # Errors
    ///
    /// As [`Token::read`], and when the file cannot be written.
    pub fn read_or_create(path: &Path) -> io::Result<Self> {
        match Self::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => return read,
        }
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        // Another gateway of the same store may do the same now: the first link is kept.
        let partial = path.with_extension(format!("partial-{}", std::process::id()));
        let written = write_private(&partial, &hex::encode(random));
        let linked = written.and_then(|()| fs::hard_link(&partial, path));
        let _absent = fs::remove_file(&partial);
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Self::read(path),
        }
    }

    /// Returns the value of an `Authorization` field with this token.
    #[must_use]
    pub fn authorization(&self) -> String {
        format!("Bearer {}", self.0)
    }

    /// Returns whether the value of an `Authorization` field has this token, in constant time.
    #[must_use]
    pub fn is_in(&self, authorization: &[u8]) -> bool {
        let Some((scheme, given)) = authorization.split_at_checked(7) else {
            return false;
        };
        scheme.eq_ignore_ascii_case(b"bearer ")
            && bool::from(given.trim_ascii().ct_eq(self.0.as_bytes()))
    }
}

fn write_private(path: &Path, token: &str) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    writeln!(file, "{token}")?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_made_once_and_only_its_user_can_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        let made = Token::read_or_create(&path).unwrap();
        let again = Token::read_or_create(&path).unwrap();
        assert_eq!(made.0, again.0);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(again.is_in(made.authorization().as_bytes()));
        let other = format!("Bearer {}", "0".repeat(64));
        for wrong in ["", "Bearer", "Bearer ", &made.0, &other] {
            assert!(!made.is_in(wrong.as_bytes()), "{wrong}");
        }
        assert_eq!(format!("{made:?}"), "Token(…)");
    }

    #[test]
    fn a_short_token_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("token");
        for wrong in ["", "secret\n", "sixteen characters and spaces"] {
            fs::write(&path, wrong).unwrap();
            assert!(Token::read(&path).is_err(), "{wrong}");
        }
    }
}
