//! Whether the owner of a name lets our authorities issue certificates for it.
//!
//! An authority reads these records itself and refuses. A lookup before the order costs no order,
//! and the reason can name the record. So a lookup that fails stops nothing.
//!
//! The records of the name count, else those of the name above, up to the registrable domain:
//! registries have none.
//!
//! Source: RFC 8659.

use super::failure::{Cause, Failure};
use crate::dns::{Client, Data, Kind};

/// The tags that authorities know (RFC 8659 §4, RFC 9495, and the registry of IANA).
const KNOWN_TAGS: [&str; 7] = [
    "issue",
    "issuewild",
    "iodef",
    "issuemail",
    "issuevmc",
    "contactemail",
    "contactphone",
];

/// Reads the records of a name, and fails if they forbid authorities with these identities.
pub(super) async fn permit(
    client: &Client,
    name: &str,
    identities: &[Box<str>],
) -> Result<(), Failure> {
    if identities.is_empty() {
        return Ok(());
    }
    let (host, is_wildcard) = match name.strip_prefix("*.") {
        Some(host) => (host, true),
        None => (name, false),
    };
    let top = psl::domain_str(host).unwrap_or(host);
    let mut lookup = client.lookup();
    let mut at = host;
    loop {
        let found = match lookup.follow(at, Kind::Caa).await {
            Ok(found) => found,
            Err(error) => {
                log::debug!(target: "acme", name; "look up the CAA records of {name}: {error}");
                return Ok(());
            }
        };
        if !found.records.is_empty() {
            return match forbidden(at, &found.records, is_wildcard, identities) {
                Some(why) => Err(Failure::new(Cause::Name, why)),
                None => Ok(()),
            };
        }
        match at.split_once('.') {
            Some((_, above)) if at != top => at = above,
            _ => return Ok(()),
        }
    }
}

/// Returns why the records of a name forbid a certificate.
fn forbidden(
    name: &str,
    records: &[Data],
    is_wildcard: bool,
    identities: &[Box<str>],
) -> Option<String> {
    let mut issue = Vec::new();
    let mut issue_wild = Vec::new();
    for record in records {
        let Data::Caa {
            is_critical,
            tag,
            value,
        } = record
        else {
            continue;
        };
        // RFC 8659 §4.2: parameters follow the name of the authority.
        let authority = value.split(';').next().unwrap_or_default().trim();
        match &**tag {
            "issue" => issue.push(authority),
            "issuewild" => issue_wild.push(authority),
            tag if *is_critical && !KNOWN_TAGS.contains(&tag) => {
                return Some(format!(
                    "the CAA record of {name} has the critical tag {tag:?}, which authorities do not know"
                ));
            }
            _ => {}
        }
    }
    let named = match is_wildcard && !issue_wild.is_empty() {
        true => issue_wild,
        false => issue,
    };
    let is_ours = |authority: &&str| {
        identities
            .iter()
            .any(|identity| identity.eq_ignore_ascii_case(authority))
    };
    if named.is_empty() || named.iter().any(is_ours) {
        return None;
    }
    let others: Vec<_> = named.iter().filter(|other| !other.is_empty()).collect();
    let others: Vec<String> = others
        .iter()
        .map(|other| super::failure::shortened(other))
        .collect();
    let allowed = match others.is_empty() {
        true => "no authority".to_owned(),
        false => format!("only {}", others.join(", ")),
    };
    let ours = identities.first().map_or("", |identity| &**identity);
    Some(format!(
        "the CAA record of {name} allows {allowed} to issue certificates: add a CAA record for {ours}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caa(is_critical: bool, tag: &str, value: &str) -> Data {
        Data::Caa {
            is_critical,
            tag: tag.into(),
            value: value.into(),
        }
    }

    #[track_caller]
    fn check(records: &[Data], is_wildcard: bool, expected: Option<&str>) {
        let identities = [Box::from("letsencrypt.org"), Box::from("second.test")];
        let why = forbidden("acme.com", records, is_wildcard, &identities);
        match expected {
            None => assert_eq!(why, None),
            Some(expected) => {
                let why = why.unwrap();
                assert!(why.contains(expected), "{why}");
            }
        }
    }

    #[test]
    fn the_records_of_a_name_say_who_may_issue() {
        let ours = caa(false, "issue", "LetsEncrypt.org; validationmethods=http-01");
        let other = caa(false, "issue", "other.test");
        let nobody = caa(false, "issue", ";");
        check(std::slice::from_ref(&ours), false, None);
        check(&[other.clone(), ours.clone()], false, None);
        check(&[caa(false, "issue", "second.test")], false, None);
        check(
            std::slice::from_ref(&other),
            false,
            Some("allows only other.test"),
        );
        check(&[nobody], false, Some("allows no authority"));
        // Without a record about issuing, everybody may (RFC 8659 §4.1).
        check(&[caa(false, "iodef", "mailto:a@acme.com")], false, None);
        check(&[caa(true, "iodef", "mailto:a@acme.com")], false, None);
        check(
            &[caa(true, "future", "x"), ours.clone()],
            false,
            Some("critical tag \"future\""),
        );
        check(&[caa(false, "future", "x"), ours.clone()], false, None);
        // Wildcards have records of their own, if there are any (§4.3).
        let wild = caa(false, "issuewild", "other.test");
        check(
            &[ours.clone(), wild.clone()],
            true,
            Some("allows only other.test"),
        );
        check(&[ours.clone(), wild], false, None);
        check(&[ours], true, None);
    }
}
