//! Whether the owner of a name lets an authority issue certificates for it, to our account.
//!
//! An authority reads these records itself and refuses. A lookup before the order costs no order,
//! and the reason can name the record. So a lookup that fails stops nothing.
//!
//! The records of the name count, else those of the name above, up to the registrable domain:
//! registries have none.
//!
//! Sources: RFC 8659; RFC 8657 §3 (the account).

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

/// Who wants to issue a certificate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Issuer<'a> {
    /// The names of the authority; empty: they are not known, so nothing is checked.
    pub(super) identities: &'a [Box<str>],
    /// The address of our account at the authority.
    pub(super) account: &'a str,
}

/// Reads the records of a name, and fails if they forbid the issuer.
pub(super) async fn permit(
    client: &Client,
    name: &str,
    issuer: &Issuer<'_>,
) -> Result<(), Failure> {
    if issuer.identities.is_empty() {
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
            return match forbidden(at, &found.records, is_wildcard, issuer) {
                Some(why) => Err(Failure::new(Cause::Forbidden, why)),
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
    issuer: &Issuer<'_>,
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
        match &**tag {
            "issue" => issue.push(&**value),
            "issuewild" => issue_wild.push(&**value),
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
    if named.is_empty() {
        return None;
    }
    let mut others = Vec::new();
    let mut is_for_another_account = false;
    for value in named {
        // RFC 8659 §4.2: parameters follow the name of the authority.
        let mut parts = value.split(';').map(str::trim);
        let authority = parts.next().unwrap_or_default();
        let mut identities = issuer.identities.iter();
        if !identities.any(|identity| identity.eq_ignore_ascii_case(authority)) {
            others.push(authority);
            continue;
        }
        let mut accounts = parts.filter_map(|parameter| {
            let (tag, value) = parameter.split_once('=')?;
            let is_account = tag.trim().eq_ignore_ascii_case("accounturi");
            is_account.then_some(value.trim())
        });
        // RFC 8657 §3: a record with two of them allows nobody.
        match (accounts.next(), accounts.next()) {
            (None, _) => return None,
            (Some(account), None) if account == issuer.account => return None,
            _ => is_for_another_account = true,
        }
    }
    let ours = issuer.identities.first().map_or("", |identity| &**identity);
    if is_for_another_account {
        let account = issuer.account;
        return Some(format!(
            "the CAA record of {name} lets {ours} issue certificates to another account only: add a CAA record with the value \"{ours}; accounturi={account}\""
        ));
    }
    others.retain(|other| !other.is_empty());
    let others: Vec<String> = others
        .iter()
        .map(|other| super::failure::shortened(other))
        .collect();
    let allowed = match others.is_empty() {
        true => "no authority".to_owned(),
        false => format!("only {}", others.join(", ")),
    };
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
        let issuer = Issuer {
            identities: &[Box::from("letsencrypt.org"), Box::from("second.test")],
            account: "https://ca.test/account/7",
        };
        let why = forbidden("acme.com", records, is_wildcard, &issuer);
        match expected {
            None => assert_eq!(why, None),
            Some(expected) => {
                let why = why.unwrap();
                assert!(why.contains(expected), "{why}");
            }
        }
    }

    #[test]
    fn a_record_that_names_an_account_allows_that_account_only() {
        let issue = |value| caa(false, "issue", value);
        let ours = issue("letsencrypt.org; accounturi=https://ca.test/account/7");
        let other = issue(
            "letsencrypt.org; validationmethods=http-01; AccountURI = https://ca.test/account/8",
        );
        let twice = issue(
            "letsencrypt.org;accounturi=https://ca.test/account/7;accounturi=https://ca.test/account/8",
        );
        let why = Some("letsencrypt.org; accounturi=https://ca.test/account/7");
        check(std::slice::from_ref(&ours), false, None);
        check(std::slice::from_ref(&other), false, why);
        check(&[twice], false, why);
        check(&[other.clone(), ours], false, None);
        check(&[other, issue("letsencrypt.org")], false, None);
        // The account of another authority says nothing about ours.
        check(
            &[issue("other.test; accounturi=https://ca.test/account/7")],
            false,
            Some("allows only other.test"),
        );
        let wild = caa(false, "issuewild", "letsencrypt.org; accounturi=x");
        check(&[issue("letsencrypt.org"), wild], true, why);
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
