//! The settings of certificates by ACME.

use super::Listen;
use super::read::{DAY_SECONDS, Section, path};
use crate::acme::{Authority, ChallengeKind, Config, Name};
use crate::site::Host;
use crate::syntax::Value;
use crate::syntax::strict::{Expected, Report, boolean, number, one_of, parsed, seconds, text};

pub(super) fn read(
    section: Section<'_, '_, '_>,
    acme: &mut Config,
    listen: &Listen,
    report: &Report<'_>,
) {
    let Config {
        authorities,
        contacts,
        agree_to_terms,
        caa_identities,
        names,
        challenges,
        dns_command,
        dns_time,
        directory,
        key_file,
        orders_max,
        orders_window,
        orders_owner_max,
        domain_certificates_max,
        name_certificates_max,
        certificates_window,
        parallel_max,
        request_time,
        order_time,
        retries,
        renewal_info,
        release,
    } = &mut *acme;
    if let Some(list) = section.list("authorities", authority) {
        *authorities = list;
    }
    if let Some(list) = section.list("contacts", contact) {
        *contacts = list;
    }
    section.set("agree_to_terms", agree_to_terms, boolean);
    let identity = parsed(|text| Host::parse(text).map(|host| host.as_str().into()));
    if let Some(list) = section.list("caa_identities", identity) {
        *caa_identities = list;
    }
    if let Some(list) = section.list("names", parsed(Name::parse)) {
        *names = list;
    }
    if let Some(list) = section.list("challenges", one_of(&ChallengeKind::NAMES)) {
        *challenges = list;
    }
    if let Some(words) = section.list("dns_command", text) {
        *dns_command = words;
    }
    section.set("dns_seconds", dns_time, seconds(1..=3600));
    section.set("directory", directory, |value| path(value).map(Some));
    section.set("key_file", key_file, |value| path(value).map(Some));
    section.set("orders_max", orders_max, number(1..=10_000_000));
    section.set(
        "orders_seconds",
        orders_window,
        seconds(1..=365 * DAY_SECONDS),
    );
    section.set("orders_owner_max", orders_owner_max, number(1..=10_000_000));
    section.set(
        "domain_certificates_max",
        domain_certificates_max,
        number(1..=10_000_000),
    );
    section.set(
        "name_certificates_max",
        name_certificates_max,
        number(1..=10_000_000),
    );
    section.set(
        "certificates_seconds",
        certificates_window,
        seconds(1..=365 * DAY_SECONDS),
    );
    section.set("parallel_max", parallel_max, number(1..=1000));
    section.set("request_seconds", request_time, seconds(1..=600));
    section.set("order_seconds", order_time, seconds(1..=DAY_SECONDS));
    if let Some(waits) = section.list("retry_seconds", seconds(1..=30 * DAY_SECONDS)) {
        *retries = waits;
    }
    section.set(
        "renewal_info_seconds",
        renewal_info,
        seconds(1..=30 * DAY_SECONDS),
    );
    section.set("release_seconds", release, seconds(1..=365 * DAY_SECONDS));
    if acme.is_on() {
        for why in contradictions(acme, listen) {
            report.error(section.value(), why);
        }
    }
}

/// Returns what does not fit together, if certificates are ordered.
fn contradictions(acme: &Config, listen: &Listen) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut add = |why: &str| wrong.push(why.to_owned());
    if !acme.agree_to_terms {
        add("`acme.agree_to_terms: true` is needed: the authorities ask for it");
    }
    if acme.key_file.is_none() {
        add("`acme.key_file` is needed: it encrypts the private keys of certificates");
    }
    if listen.https.is_empty() {
        add("`acme.authorities` needs an address in `listen.https`, where certificates are used");
    }
    if acme.challenges.is_empty() {
        add("`acme.challenges` names no kind of challenge");
    }
    let has = |kind| acme.challenges.contains(&kind);
    if has(ChallengeKind::Http) && listen.http.is_empty() {
        add("`acme.challenges: [http-01]` needs an address in `listen.http`");
    }
    if has(ChallengeKind::Dns) && acme.dns_command.is_empty() {
        add("`acme.challenges: [dns-01]` needs `acme.dns_command`");
    }
    if acme.retries.is_empty() {
        add("`acme.retry_seconds` is empty");
    }
    for name in &acme.names {
        if acme.kinds(name.as_str()).is_empty() {
            wrong.push(format!(
                "`acme.names` has the wildcard {name}, which needs `dns-01` in `acme.challenges`"
            ));
        }
    }
    for (at, authority) in acme.authorities.iter().enumerate() {
        let earlier = &acme.authorities[..at];
        if earlier
            .iter()
            .any(|other| other.directory == authority.directory)
        {
            let directory = &authority.directory;
            wrong.push(format!("`acme.authorities` names {directory} twice"));
        }
    }
    wrong
}

/// Reads an authority: the address of its directory, and how its server and the account are known.
fn authority(value: &Value) -> Result<Authority, Expected> {
    let wanted = || {
        Expected::from(
            "{ directory: \"https://…\", ca_file: FILE, eab_id: TEXT, eab_key_file: FILE, \
             profile: TEXT }",
        )
    };
    let mut authority = Authority::default();
    for member in value.members() {
        let value = &member.value;
        match &*member.key {
            "directory" => authority.directory = address(value)?,
            "ca_file" => authority.ca_file = Some(path(value)?),
            "eab_id" => authority.eab_id = Some(text(value)?),
            "eab_key_file" => authority.eab_key_file = Some(path(value)?),
            "profile" => authority.profile = Some(text(value)?),
            _ => return Err(wanted()),
        }
    }
    if authority.directory.is_empty() {
        return Err(wanted());
    }
    if authority.eab_id.is_some() != authority.eab_key_file.is_some() {
        return Err("`eab_id` and `eab_key_file` together, or neither".into());
    }
    Ok(authority)
}

/// Reads the address of a directory.
fn address(value: &Value) -> Result<Box<str>, Expected> {
    let text = text(value)?;
    let is_https = text
        .parse::<http::Uri>()
        .is_ok_and(|uri| uri.scheme_str() == Some("https") && uri.authority().is_some());
    match is_https {
        true => Ok(text),
        false => Err("an authority whose directory is an https address".into()),
    }
}

fn contact(value: &Value) -> Result<Box<str>, Expected> {
    let text = text(value)?;
    match text.strip_prefix("mailto:") {
        Some(address) if address.contains('@') => Ok(text),
        _ => Err("an address like \"mailto:operator@acme.com\"".into()),
    }
}
