//! The questions to DNS about one domain.

use std::net::IpAddr;

use crate::deploy::sites::ownership::{Claim, Proven, challenge, value};
use crate::dns::{Client, Data, Kind, Lookup, LookupResult, Unanswered};
use crate::site::{Host, LENGTH_MAX};

/// What DNS says about a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// The texts of its TXT record.
    pub(super) texts: Result<Texts, Unanswered>,
    /// Its aliases, from the first to the last.
    pub(super) aliases: Result<Vec<Box<str>>, Unanswered>,
    /// The addresses that it leads to.
    pub(super) addresses: Result<Vec<IpAddr>, Unanswered>,
    /// The parent domains that belong to sites of other owners, where the owner agrees.
    pub(super) agreed: Vec<Host>,
}

/// The TXT record of a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Texts {
    /// The name that the record is an alias of. Its texts are those of somebody else.
    pub(super) alias: Option<Box<str>>,
    /// The texts.
    pub(super) values: Vec<Box<str>>,
}

impl Seen {
    /// Looks a domain up.
    pub(super) async fn look_up(client: &Client, claim: &Claim) -> Self {
        let mut lookup = client.lookup();
        let texts = texts(&mut lookup, &claim.host).await;
        let mut agreed = Vec::new();
        for parent in &claim.parents {
            // Without an answer there is no agreement.
            let texts = texts_of(&mut lookup, parent).await;
            if texts.is_ok_and(|texts| {
                texts
                    .values
                    .iter()
                    .any(|text| **text == value(&claim.token))
            }) {
                agreed.push(parent.clone());
            }
        }
        let v4 = lookup.follow(claim.host.as_str(), Kind::A).await;
        let v6 = match &v4 {
            // The servers would not answer this either.
            Err(_) => Ok(LookupResult::default()),
            Ok(_) => lookup.follow(claim.host.as_str(), Kind::Aaaa).await,
        };
        let aliases = v4.as_ref().map(|found| found.aliases.clone());
        let addresses = match (&v4, &v6) {
            (Err(error), _) | (_, Err(error)) => Err(error.clone()),
            (Ok(v4), Ok(v6)) => Ok(addresses_of(v4).chain(addresses_of(v6)).collect()),
        };
        Self {
            texts,
            aliases: aliases.map_err(Clone::clone),
            addresses,
            agreed,
        }
    }

    /// Returns how the domain is proven, if it is.
    pub(super) fn proven(&self, by_text: bool) -> Proven {
        Proven {
            by_text,
            agreed: self.agreed.clone(),
        }
    }
}

async fn texts(lookup: &mut Lookup<'_>, host: &Host) -> Result<Texts, Unanswered> {
    // Such a host can be proven by its alias only.
    if challenge(host).len() > LENGTH_MAX {
        return Ok(Texts::default());
    }
    texts_of(lookup, host).await
}

async fn texts_of(lookup: &mut Lookup<'_>, host: &Host) -> Result<Texts, Unanswered> {
    let found = lookup.exactly(&challenge(host), Kind::Txt).await?;
    let values = found.records.into_iter().filter_map(|record| match record {
        Data::Text(text) => Some(text.trim().into()),
        _ => None,
    });
    Ok(Texts {
        values: values.collect(),
        alias: found.aliases.into_iter().next(),
    })
}

fn addresses_of(found: &LookupResult) -> impl Iterator<Item = IpAddr> {
    found.records.iter().filter_map(|record| match record {
        Data::Address(address) => Some(*address),
        _ => None,
    })
}
