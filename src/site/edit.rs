//! Links to the page where a browser edits a file of a repository.
//!
//! Each service that hosts repositories has its own form of address. The host name identifies
//! the service: the name of a public service, or a name that contains the product
//! (`gitlab.acme.com`). For any other host there is no link, because it might lead nowhere.
//!
//! Sources: the addresses behind the "edit" buttons of GitHub, GitLab, Bitbucket Cloud and
//! Gitea, tried in November 2026.

use super::Repository;
use super::percent::encode;

/// The address at which a file is edited, without the path of the file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct EditLink {
    before: Box<str>,
    after: Box<str>,
}

/// The service that hosts a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    GitHub,
    GitLab,
    Bitbucket,
    /// Also Forgejo, which Codeberg runs.
    Gitea,
}

// === impl EditLink ===

impl EditLink {
    /// Returns the address of a directory; paths of files are then relative to it.
    #[must_use]
    pub fn below(mut self, directory: &str) -> Self {
        let directory = directory.trim_matches('/');
        if !directory.is_empty() {
            self.before = format!("{}{directory}/", self.before).into();
        }
        self
    }

    /// Returns the address at which a file is edited.
    ///
    /// The path is relative to the root of the repository, or to the directory of [`Self::below`].
    #[must_use]
    pub fn of(&self, file: &str) -> String {
        let mut out = self.before.to_string();
        for byte in file.bytes() {
            // RFC 3986 §3.3: the characters that a segment may contain unencoded.
            if byte.is_ascii_alphanumeric() || b"-._~/!$'()*,;=:@".contains(&byte) {
                out.push(char::from(byte));
            } else {
                out.push_str(&format!("%{byte:02X}"));
            }
        }
        out + &self.after
    }
}

// === impl Repository ===

impl Repository {
    /// Returns where the files of the repository are edited, if the service is known.
    ///
    /// ```
    /// use waypost::site::Repository;
    ///
    /// let repository = Repository {
    ///     url: "git@github.com:acme/docs.git".into(),
    ///     branch: "main".into(),
    ///     directory: "".into(),
    /// };
    /// let edit = repository.edit_link().unwrap();
    /// let address = edit.of("guides/start.mdx");
    /// assert_eq!(address, "https://github.com/acme/docs/edit/main/guides/start.mdx");
    /// ```
    #[must_use]
    pub fn edit_link(&self) -> Option<EditLink> {
        let (origin, host, path) = place(&self.url)?;
        let path = path.trim_matches('/').trim_end_matches(".git");
        if path.is_empty() {
            return None;
        }
        let branch = encode(&self.branch);
        let (way, after) = match Service::of(host)? {
            Service::GitHub => (format!("edit/{branch}"), ""),
            Service::GitLab => (format!("-/edit/{branch}"), ""),
            Service::Bitbucket => (format!("src/{branch}"), "?mode=edit"),
            Service::Gitea => (format!("_edit/{branch}"), ""),
        };
        Some(EditLink {
            before: format!("{origin}/{path}/{way}/").into(),
            after: after.into(),
        })
    }
}

// === impl Service ===

impl Service {
    fn of(host: &str) -> Option<Self> {
        let names = |product: &str| host.split('.').any(|label| label == product);
        Some(match host {
            _ if names("github") => Self::GitHub,
            _ if names("gitlab") => Self::GitLab,
            "bitbucket.org" => Self::Bitbucket,
            _ if names("gitea") || names("forgejo") || names("codeberg") => Self::Gitea,
            _ => return None,
        })
    }
}

/// Splits the URL of a repository: the origin of its pages, its host and its path.
///
/// Only git uses the user name, and the port of `ssh`.
fn place(url: &str) -> Option<(String, &str, &str)> {
    let (scheme, (authority, path)) = match url.split_once("://") {
        Some((scheme @ ("https" | "http" | "ssh"), rest)) => (scheme, rest.split_once('/')?),
        Some(_) => return None,
        // The short form of git: `git@host:path`.
        None => {
            let place = url.split_once(':');
            ("ssh", place.filter(|(host, _)| !host.contains('/'))?)
        }
    };
    let authority = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
    let is_host = !host.is_empty() && host.chars().all(is_name);
    let is_port = port.chars().all(|c| c.is_ascii_digit());
    let origin = match scheme {
        "ssh" => format!("https://{host}"),
        scheme => format!("{scheme}://{authority}"),
    };
    (is_host && is_port).then_some((origin, host, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(url: &str, expected: Option<&str>) {
        let repository = Repository {
            url: url.into(),
            branch: "main".into(),
            directory: "".into(),
        };
        let link = repository.edit_link().map(|link| link.of("docs/a b.mdx"));
        assert_eq!(link.as_deref(), expected, "{url}");
    }

    #[test]
    fn each_service_has_its_own_form_of_address() {
        check(
            "https://github.com/acme/docs.git",
            Some("https://github.com/acme/docs/edit/main/docs/a%20b.mdx"),
        );
        check(
            "ssh://git@gitlab.acme.com:2222/group/sub/docs.git",
            Some("https://gitlab.acme.com/group/sub/docs/-/edit/main/docs/a%20b.mdx"),
        );
        check(
            "https://gitlab.acme.com:8443/group/docs.git",
            Some("https://gitlab.acme.com:8443/group/docs/-/edit/main/docs/a%20b.mdx"),
        );
        check(
            "http://gitea.acme.com:3000/acme/docs.git",
            Some("http://gitea.acme.com:3000/acme/docs/_edit/main/docs/a%20b.mdx"),
        );
        check(
            "https://user@bitbucket.org/acme/docs",
            Some("https://bitbucket.org/acme/docs/src/main/docs/a%20b.mdx?mode=edit"),
        );
        check(
            "git@codeberg.org:acme/docs.git",
            Some("https://codeberg.org/acme/docs/_edit/main/docs/a%20b.mdx"),
        );
    }

    #[test]
    fn an_unknown_host_has_no_edit_link() {
        for url in [
            "https://git.example/acme/docs.git",
            "https://notgithub.example/acme/docs.git",
            "file:///srv/git/github/docs.git",
            "/srv/git/docs.git",
            "https://github.com/",
            "https://git hub.com/acme/docs",
        ] {
            check(url, None);
        }
    }
}
