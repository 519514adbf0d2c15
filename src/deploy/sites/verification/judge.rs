//! From what DNS says to a verdict, and from a verdict to the next state. No clock, no network.

use std::net::IpAddr;

use super::Config;
use super::lookup::Seen;
use crate::deploy::sites::names::is_apex;
use crate::deploy::sites::ownership::{Claim, Rules, agreement, challenge, value};
use crate::dns::Unanswered;
use crate::store::OwnershipState as State;

/// How many foreign values a sentence names.
const NAMED_MAX: usize = 3;
/// The longest foreign text in a sentence, in characters.
const QUOTED_MAX: usize = 80;

/// What a check means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) proof: Proof,
    pub(super) leads: Leads,
    /// What the owner has to correct.
    pub(super) in_the_way: Vec<String>,
}

/// Whether there is a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Proof {
    /// In the TXT record.
    Text,
    /// The alias has the token.
    Alias,
    /// DNS has no proof.
    None,
    /// The servers do not say.
    Unknown,
}

/// Where the domain leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leads {
    Here,
    Elsewhere,
    /// The servers do not say.
    Unknown,
}

impl Verdict {
    /// Judges the answers of DNS about a domain.
    pub(super) fn of(claim: &Claim, seen: &Seen, rules: &Rules) -> Self {
        let mut in_the_way = Vec::new();
        let target = rules.target(&claim.token);
        let first = seen.aliases.as_ref().map(|aliases| aliases.first());
        let has_text = seen.texts.as_ref().map(|texts| {
            let own = value(&claim.token);
            // A text behind an alias is one of somebody else.
            texts.alias.is_none() && texts.values.iter().any(|text| **text == own)
        });
        let has_alias = first.map(|first| first.is_some_and(|first| **first == *target));
        let proof = match (has_text, has_alias) {
            (Ok(true), _) => Proof::Text,
            (_, Ok(true)) => Proof::Alias,
            (Ok(false), Ok(false)) => Proof::None,
            _ => Proof::Unknown,
        };
        match proof {
            Proof::None => in_the_way.extend(no_proof(claim, seen, &target)),
            Proof::Unknown => {
                let errors = [seen.texts.as_ref().err(), seen.aliases.as_ref().err()];
                let mut errors: Vec<_> = errors.into_iter().flatten().collect();
                errors.dedup();
                in_the_way.extend(errors.into_iter().map(Unanswered::to_string));
            }
            Proof::Text | Proof::Alias => {}
        }
        let is_proven = matches!(proof, Proof::Text | Proof::Alias);
        let is_new = claim.state.is_some_and(|state| !state.is_served());
        if is_proven && is_new {
            let missing = claim.parents.iter().filter(|p| !seen.agreed.contains(p));
            in_the_way.extend(missing.map(|parent| agreement(parent, &claim.token)));
        }
        let (leads, why) = leads(claim, seen, rules, &target);
        if is_proven {
            in_the_way.extend(why);
        }
        Self {
            proof,
            leads,
            in_the_way,
        }
    }

    /// Returns the next state of a domain. `proven_at` is when the proof was last seen, and `now`
    /// the time of the check.
    pub(super) fn next(
        &self,
        state: Option<State>,
        since: u64,
        proven_at: u64,
        now: u64,
        config: &Config,
    ) -> Option<State> {
        let served = match self.leads {
            Leads::Here => State::Active,
            Leads::Elsewhere => State::Verified,
            Leads::Unknown => state
                .filter(|state| matches!(state, State::Active | State::Verified))
                .unwrap_or(State::Verified),
        };
        let is_over =
            |since: u64, limit: std::time::Duration| now.saturating_sub(since) >= limit.as_secs();
        match (self.proof, state) {
            (Proof::Text | Proof::Alias, _) => Some(served),
            (_, Some(State::Pending | State::Quarantined)) => state,
            (_, Some(State::Dangling)) => match is_over(since, config.dangling) {
                true => Some(State::Quarantined),
                false => state,
            },
            (Proof::None, Some(State::Verified | State::Active) | None) => Some(State::Dangling),
            (Proof::Unknown, Some(State::Verified | State::Active) | None) => {
                match is_over(proven_at, config.unanswered) {
                    true => Some(State::Dangling),
                    false => state,
                }
            }
        }
    }
}

/// Describes the records that DNS has in place of a proof.
fn no_proof(claim: &Claim, seen: &Seen, target: &str) -> Vec<String> {
    let host = &claim.host;
    let text = format!(
        "the TXT record {} with the value {}",
        challenge(host),
        value(&claim.token)
    );
    let mut sentences = Vec::new();
    let aliases = seen.aliases.as_deref().unwrap_or_default();
    let addresses = seen.addresses.as_deref().unwrap_or_default();
    sentences.push(match aliases {
        [first, rest @ ..] => match rest.iter().any(|name| **name == *target) {
            true => format!(
                "the CNAME of {host} points at {first}, which points at {target}: a chain proves nothing, it should point at {target}"
            ),
            false => format!("the CNAME of {host} points at {first}; it should point at {target}"),
        },
        [] if addresses.is_empty() && is_apex(host) => {
            format!("{host} has no address; create {text}, and its A or AAAA records")
        }
        [] if addresses.is_empty() => format!(
            "{host} has neither a CNAME nor an address; create the CNAME record {host} with the value {target}"
        ),
        [] if is_apex(host) => format!("{host} leads to {}; create {text}", listed(addresses)),
        [] => format!(
            "{host} leads to {} and has no CNAME; its CNAME should point at {target}, or create {text}",
            listed(addresses)
        ),
    });
    let texts = seen.texts.as_ref();
    if let Ok(Some(alias)) = texts.map(|texts| texts.alias.as_ref()) {
        sentences.push(format!(
            "{} is an alias of {alias}: create a TXT record of its own",
            challenge(host)
        ));
    } else if let Ok(texts) = texts
        && !texts.values.is_empty()
    {
        let found = texts.values.iter().take(NAMED_MAX);
        let found: Vec<_> = found.map(|text| quoted(text)).collect();
        sentences.push(format!(
            "the TXT record {} has the value {}; it should be {}",
            challenge(host),
            found.join(", "),
            value(&claim.token)
        ));
    }
    sentences
}

/// Returns where a domain leads, and what the owner has to correct.
fn leads(claim: &Claim, seen: &Seen, rules: &Rules, target: &str) -> (Leads, Option<String>) {
    let host = &claim.host;
    let error = |error: &Unanswered| (Leads::Unknown, Some(error.to_string()));
    let aliases = match &seen.aliases {
        Ok(aliases) => aliases,
        Err(unanswered) => return error(unanswered),
    };
    let is_ours = |name: &str| {
        rules.is_of_edge(name)
            || claim
                .default
                .as_ref()
                .is_some_and(|default| default.as_str() == name)
    };
    if aliases.iter().any(|alias| is_ours(alias)) {
        return (Leads::Here, None);
    }
    let addresses = match &seen.addresses {
        Ok(addresses) => addresses,
        Err(unanswered) => return error(unanswered),
    };
    let ours = rules.addresses();
    let others: Vec<IpAddr> = addresses
        .iter()
        .filter(|address| !ours.is_empty() && !ours.contains(address))
        .copied()
        .collect();
    if !addresses.is_empty() && others.is_empty() {
        return (Leads::Here, None);
    }
    let should = match is_apex(host) && !ours.is_empty() {
        true => format!("it should lead to {}", listed(ours)),
        false => format!("its CNAME should point at {target}"),
    };
    let sentence = match (&aliases[..], &others[..]) {
        ([], []) => format!("{host} has no address; {should}"),
        ([first, ..], []) => {
            format!("the CNAME of {host} points at {first}, which has no address; {should}")
        }
        ([first, ..], _) => format!("the CNAME of {host} points at {first}; {should}"),
        ([], others) => format!(
            "{host} leads to {}, which is not here; {should}",
            listed(others)
        ),
    };
    (Leads::Elsewhere, Some(sentence))
}

fn listed(addresses: &[IpAddr]) -> String {
    let named = addresses.iter().take(NAMED_MAX).map(ToString::to_string);
    let text = named.collect::<Vec<_>>().join(", ");
    match addresses.len() > NAMED_MAX {
        true => format!("{text}, …"),
        false => text,
    }
}

/// Quotes a text of somebody else.
fn quoted(text: &str) -> String {
    let short: String = text.chars().take(QUOTED_MAX).collect();
    format!("{short:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_000_000_000;

    /// The next state of a domain that has its state for so many seconds, with a proof that was
    /// last seen at that time.
    fn next(state: Option<State>, seconds: u64, proof: Proof, leads: Leads) -> Option<State> {
        let verdict = Verdict {
            proof,
            leads,
            in_the_way: Vec::new(),
        };
        let since = NOW - seconds;
        verdict.next(state, since, since, NOW, &Config::default())
    }

    #[test]
    fn a_proof_makes_a_domain_verified_and_its_way_here_active() {
        for state in [None].into_iter().chain(State::ALL.map(Some)) {
            for proof in [Proof::Text, Proof::Alias] {
                assert_eq!(next(state, 1, proof, Leads::Here), Some(State::Active));
                assert_eq!(
                    next(state, 1, proof, Leads::Elsewhere),
                    Some(State::Verified)
                );
            }
        }
        // Where it leads is not known: what was known stays.
        let unknown = |state| next(Some(state), 1, Proof::Text, Leads::Unknown);
        assert_eq!(unknown(State::Active), Some(State::Active));
        assert_eq!(unknown(State::Pending), Some(State::Verified));
    }

    #[test]
    fn only_a_clear_answer_or_a_long_silence_takes_a_proof_away() {
        let day = 86_400;
        for state in [None, Some(State::Verified), Some(State::Active)] {
            let after = |seconds, proof| next(state, seconds, proof, Leads::Unknown);
            assert_eq!(after(1, Proof::None), Some(State::Dangling));
            assert_eq!(after(2 * day, Proof::Unknown), state);
            assert_eq!(after(3 * day, Proof::Unknown), Some(State::Dangling));
        }
        let dangling = |seconds, proof| next(Some(State::Dangling), seconds, proof, Leads::Unknown);
        for proof in [Proof::None, Proof::Unknown] {
            assert_eq!(dangling(29 * day, proof), Some(State::Dangling));
            assert_eq!(dangling(30 * day, proof), Some(State::Quarantined));
            for state in [State::Pending, State::Quarantined] {
                assert_eq!(
                    next(Some(state), 999 * day, proof, Leads::Here),
                    Some(state)
                );
            }
        }
    }
}
