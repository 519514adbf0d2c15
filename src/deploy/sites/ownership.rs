//! The ownership of domains, as callers see it and as the verification changes it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use aws_lc_rs::hmac;
use serde_json::{Map, json};

use super::names::{above, is_apex, rejection};
use super::verification::Check;
use super::{Caller, Domain, Refused, SiteAdmin, owner_of};
use crate::deploy::Timestamp;
use crate::deploy::keys::Role;
use crate::site::{Host, KeptIn, ProjectId, Service, Site, is_within};
use crate::store::audit::{Entry, Who};
use crate::store::{Ownership, OwnershipState as State, Quarantine, SiteChange, SiteRecord};

/// The label in front of a host under which its TXT record is.
const CHALLENGE: &str = "_waypost-challenge";
/// What the value of the TXT record begins with.
const VALUE: &str = "waypost=";
/// The user in the audit log.
const WHO: &str = "verification";
/// How many bytes of a code are in a token.
const TOKEN_BYTES: usize = 16;

/// What the proof of ownership needs to know.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The domain below which each token is a name of the edge.
    edge: Host,
    /// The addresses of the edge; empty: they are not known.
    addresses: Vec<IpAddr>,
    /// Whether names of closed networks can be domains.
    is_closed: bool,
    /// How long a host that its owner has lost stays in quarantine.
    quarantine: Duration,
    /// How long a caller waits between two checks that it asks for.
    pause: Duration,
    key: hmac::Key,
}

/// What a caller sees of the ownership of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The state.
    pub state: State,
    /// Since when, in seconds after the Unix epoch.
    pub since: u64,
    /// What the owner has to correct: sentences.
    pub in_the_way: Vec<String>,
    /// The records to create in DNS. One of those of a group is enough.
    pub records: Vec<Wanted>,
    /// When the domain was last checked, in seconds after the Unix epoch.
    pub checked_at: Option<u64>,
    /// When it is checked again.
    pub next_at: Option<u64>,
}

/// A record to create in DNS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// `CNAME`, `TXT`, `A` or `AAAA`.
    pub kind: &'static str,
    /// The name of the record.
    pub name: String,
    /// The value.
    pub value: String,
    /// What it is for.
    pub purpose: &'static str,
}

/// A domain to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) project: ProjectId,
    pub(super) host: Host,
    pub(super) owner: Box<str>,
    /// `None` for a domain that was added while no proof was needed.
    pub(super) state: Option<State>,
    pub(super) since: u64,
    pub(super) token: Box<str>,
    pub(super) handovers: u64,
    /// The default host of the site, which an alias may name too.
    pub(super) default: Option<Host>,
    /// The parent domains that belong to sites of other owners.
    pub(super) parents: Vec<Host>,
}

/// How a domain is proven.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Proven {
    /// By its TXT record, and not only by its alias.
    pub(super) by_text: bool,
    /// The parent domains whose owners agree.
    pub(super) agreed: Vec<Host>,
}

/// The result of a change of state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Settled {
    /// The domain has this state now.
    Changed,
    /// It had it before.
    Same,
    /// The site does not have the domain any more, or it was added again.
    Removed,
    /// It stays as it is, for this reason.
    Held(String),
}

// === impl Rules ===

impl Rules {
    /// Makes the rules, with the secret key for tokens.
    #[must_use]
    pub fn new(key: &[u8], service: &Service, config: &super::verification::Config) -> Self {
        Self {
            edge: config.edge(service),
            addresses: config.addresses.clone(),
            is_closed: !config.resolvers.is_empty(),
            quarantine: config.quarantine,
            pause: config.pause,
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
        }
    }

    /// Returns the text that proves a host for an owner, after so many handovers of the host between
    /// owners. Nobody can compute it without the key of the store.
    fn token(&self, owner: &str, host: &Host, handovers: u64) -> Box<str> {
        // A host has no slash, and the host of a domain is not a number.
        let text = match handovers {
            0 => format!("{host}/{owner}"),
            _ => format!("{handovers}/{host}/{owner}"),
        };
        let tag = hmac::sign(&self.key, text.as_bytes());
        hex::encode(&tag.as_ref()[..TOKEN_BYTES]).into()
    }

    /// Returns the name that an alias has to name.
    pub(super) fn target(&self, token: &str) -> String {
        format!("{token}.{}", self.edge)
    }

    /// Returns whether a name is one of the edge.
    pub(super) fn is_of_edge(&self, name: &str) -> bool {
        is_within(name, self.edge.as_str())
    }

    /// Returns the end of the quarantine of a host that was just lost.
    pub(super) fn quarantine_ends(&self, now: u64) -> u64 {
        now.saturating_add(self.quarantine.as_secs())
    }

    pub(super) fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// Returns the ownership of a domain that was just added.
    pub(super) fn added(&self, owner: &str, host: &Host, handovers: u64, now: u64) -> Ownership {
        Ownership {
            state: State::Pending,
            since: now,
            token: self.token(owner, host, handovers),
            handovers,
        }
    }

    /// Returns why nobody can add a host.
    pub(super) fn rejection(&self, host: &Host, service: &Service) -> Option<String> {
        rejection(host, service, self.is_closed)
    }

    /// Returns the records that prove a host and lead it here.
    fn wanted(&self, host: &Host, token: &str) -> Vec<Wanted> {
        let text = Wanted {
            kind: "TXT",
            name: challenge(host),
            value: value(token),
            purpose: "proves that the domain is yours",
        };
        let addresses = self.addresses.iter().map(|address| Wanted {
            kind: if address.is_ipv4() { "A" } else { "AAAA" },
            name: host.to_string(),
            value: address.to_string(),
            purpose: "leads the domain here",
        });
        // DNS allows no alias at the top of a zone (RFC 1034 §3.6.2).
        if is_apex(host) {
            return addresses.chain([text]).collect();
        }
        let alias = Wanted {
            kind: "CNAME",
            name: host.to_string(),
            value: self.target(token),
            purpose: "leads the domain here, and proves that it is yours",
        };
        let text = Wanted {
            purpose: "proves that the domain is yours before it leads here; not needed with the CNAME",
            ..text
        };
        vec![alias, text]
    }
}

/// Returns the name of the TXT record of a host.
pub(super) fn challenge(host: &Host) -> String {
    format!("{CHALLENGE}.{host}")
}

/// Returns the value of the TXT record.
pub(super) fn value(token: &str) -> String {
    format!("{VALUE}{token}")
}

// === impl SiteAdmin ===

impl SiteAdmin {
    /// Returns what a caller sees of the ownership of a domain; `None` if no proof is needed.
    pub(super) fn shown(&self, record: &SiteRecord, host: &Host) -> Option<Shown> {
        let rules = self.rules.as_ref()?;
        let known = self.current_ownership(rules, record, host);
        // If the claim cannot be read, the record is shown as it is.
        let known = known.unwrap_or_else(|_| record.ownership.get(host).cloned());
        let check = Check::read(&self.store, &record.project, host, known.as_ref());
        let ownership = known.unwrap_or_else(|| {
            let owner = owner_of(record);
            let handovers = self.handovers(host, &owner).unwrap_or(0);
            Ownership {
                state: State::Dangling,
                ..rules.added(&owner, host, handovers, record.changed_at)
            }
        });
        let now = self.clock.unix_seconds();
        let mut in_the_way = Vec::new();
        match &check {
            Some(check) => {
                let age = now.saturating_sub(check.checked_at);
                let sentences = check.in_the_way.iter();
                in_the_way.extend(sentences.map(|why| format!("{why}; checked {age} s ago")));
            }
            None => in_the_way.push(format!("{host} has not been checked yet")),
        }
        Some(Shown {
            state: ownership.state,
            since: ownership.since,
            in_the_way,
            records: rules.wanted(host, &ownership.token),
            checked_at: check.as_ref().map(|check| check.checked_at),
            next_at: check.as_ref().map(|check| check.next_at),
        })
    }

    /// Asks for a check of a domain now, and returns the domain as it is.
    ///
    /// # Errors
    ///
    /// [`Refused`]: among others, when it was checked a moment ago.
    pub fn check_domain(
        &self,
        caller: &Caller,
        project: &ProjectId,
        host: &Host,
    ) -> Result<Domain, Refused> {
        let domain = self.domain(caller, project, host)?;
        if caller.role == Role::Deploy {
            return Err(Refused::Forbidden(
                "this admin key may only deploy: checking domains needs a key with the role owner or operator",
            ));
        }
        let Some((rules, shown)) = self.rules.as_ref().zip(domain.ownership.as_ref()) else {
            let why = format!("{host} needs no proof of ownership, so there is nothing to check");
            return Err(Refused::Conflict(vec![why]));
        };
        let now = self.clock.unix_seconds();
        if let Some(checked_at) = shown.checked_at {
            let next = checked_at.saturating_add(rules.pause.as_secs());
            if next > now {
                return Err(Refused::TooSoon(Duration::from_secs(next - now)));
            }
        }
        let requested = self.store.request_domain_check(project, host);
        requested.map_err(|error| Refused::Store(error.into()))?;
        Ok(domain)
    }

    /// Returns the domains of a project that are to be checked; none if a file of the operator
    /// has the project.
    pub(super) fn claims(&self, project: &ProjectId) -> Result<Vec<Claim>, Refused> {
        let Some(rules) = &self.rules else {
            return Ok(Vec::new());
        };
        if self.in_file(project).is_some() {
            return Ok(Vec::new());
        }
        let Some(record) = self.store.site_record(project)? else {
            return Ok(Vec::new());
        };
        let Some(site) = self.read(&record) else {
            return Ok(Vec::new());
        };
        let claim = |host: &Host| -> Result<Claim, Refused> {
            let known = self.current_ownership(rules, &record, host)?;
            let state = known.as_ref().map(|known| known.state);
            let ownership = match known {
                Some(known) => known,
                None => {
                    let handovers = self.handovers(host, &site.owner)?;
                    rules.added(&site.owner, host, handovers, 0)
                }
            };
            Ok(Claim {
                project: project.clone(),
                host: host.clone(),
                owner: site.owner.clone(),
                state,
                since: ownership.since,
                token: ownership.token,
                handovers: ownership.handovers,
                default: site.default_host(&self.service).ok(),
                parents: Vec::new(),
            })
        };
        site.domains.iter().map(claim).collect()
    }

    /// Returns the ownership of a domain; `None` for a domain that was added while no proof was
    /// needed. If another owner has had the host since the token of a waiting domain was made, the
    /// domain needs another token: the records in DNS may be from before.
    fn current_ownership(
        &self,
        rules: &Rules,
        record: &SiteRecord,
        host: &Host,
    ) -> Result<Option<Ownership>, Refused> {
        let Some(known) = record.ownership.get(host).cloned() else {
            return Ok(None);
        };
        if known.state.is_served() {
            return Ok(Some(known));
        }
        let owner = owner_of(record);
        let handovers = self.handovers(host, &owner)?;
        Ok(Some(match handovers == known.handovers {
            true => known,
            false => Ownership {
                token: rules.token(&owner, host, handovers),
                handovers,
                ..known
            },
        }))
    }

    /// Returns whether the site still has the domain of a claim, in the state of the claim.
    pub(super) fn has(&self, claim: &Claim) -> Result<bool, Refused> {
        match self.store.site_record(&claim.project)? {
            Some(record) => self.is_current(&record, claim),
            None => Ok(false),
        }
    }

    /// Returns the names above a host that sites of other owners have.
    pub(super) fn parents_of_others(&self, host: &Host, owner: &str) -> Vec<Host> {
        let mut above = above(host);
        above.retain(|above| {
            let other = self.served.at(above);
            other.is_some_and(|other| *other.owner != *owner && other.domains.contains(above))
        });
        above
    }

    /// Gives a domain another state, under the lock of all writers. `proven` is how it was proven,
    /// if the state needs that.
    pub(super) fn settle(
        &self,
        claim: &Claim,
        state: State,
        proven: Option<&Proven>,
    ) -> Result<Settled, Refused> {
        let Some(rules) = &self.rules else {
            return Ok(Settled::Removed);
        };
        if claim.state == Some(state) {
            return Ok(Settled::Same);
        }
        let lock = self.store.lock_sites()?;
        let Some(record) = self.store.site_record(&claim.project)? else {
            return Ok(Settled::Removed);
        };
        if !self.is_current(&record, claim)? {
            return Ok(Settled::Removed);
        }
        let was_served = claim.state.is_none_or(State::is_served);
        let mut others = Vec::new();
        if state.is_served() && !was_served {
            let Some(proven) = proven else {
                return Ok(Settled::Same);
            };
            match self.holder(claim, proven)? {
                Ok(Some(other)) => {
                    // The other owner's proof is gone, so the first new proof counts.
                    self.suspend(&lock, rules, &other, &claim.host)?;
                    others.push(other);
                }
                Ok(None) => {}
                Err(why) => return Ok(Settled::Held(why)),
            }
        }
        self.write_state(&lock, rules, record, claim, state)?;
        drop(lock);
        for project in others.iter().chain([&claim.project]) {
            (self.changed)(project);
        }
        Ok(Settled::Changed)
    }

    /// Returns whether the record still has the domain of a claim, in the state of the claim.
    fn is_current(&self, record: &SiteRecord, claim: &Claim) -> Result<bool, Refused> {
        let known = match &self.rules {
            Some(rules) => self.current_ownership(rules, record, &claim.host)?,
            None => record.ownership.get(&claim.host).cloned(),
        };
        let is_same = match (known, claim.state) {
            (None, None) => true,
            (Some(now), Some(state)) => {
                now.state == state && now.since == claim.since && now.token == claim.token
            }
            _ => false,
        };
        let site = self.read(record);
        Ok(is_same
            && self.in_file(&claim.project).is_none()
            && site.is_some_and(|site| site.domains.contains(&claim.host)))
    }

    /// Finds who else has a host: a project that loses it to this proof, or the reason why the
    /// claim has to wait.
    fn holder(
        &self,
        claim: &Claim,
        proven: &Proven,
    ) -> Result<Result<Option<ProjectId>, String>, Refused> {
        let Claim {
            project,
            host,
            owner,
            ..
        } = claim;
        for parent in self.parents_of_others(host, owner) {
            if !proven.agreed.contains(&parent) {
                return Ok(Err(agreement(&parent, &claim.token)));
            }
        }
        let in_file = self.served.at(host);
        if in_file.is_some_and(|site| matches!(site.kept_in, KeptIn::File(_))) {
            return Ok(Err(format!("{host} is a host of another site")));
        }
        let Some(held) = self.store.host_claim(host)? else {
            return Ok(Ok(None));
        };
        if let Some(Quarantine {
            owner: before,
            until,
        }) = &held.quarantine
        {
            let is_over = *until <= self.clock.unix_seconds();
            return Ok(match is_over || before == owner || proven.by_text {
                true => Ok(None),
                false => Err(format!(
                    "another owner had {host} a short time ago, so its CNAME is not enough: create the TXT record {} with the value {}",
                    challenge(host),
                    value(&claim.token)
                )),
            });
        }
        let other = self.claimed_by(host)?.filter(|other| other != project);
        let Some(other) = other else {
            return Ok(Ok(None));
        };
        let record = self.store.site_record(&other)?;
        let state = record.and_then(|record| record.ownership_of(host));
        Ok(match state {
            Some(State::Dangling) => Ok(Some(other)),
            _ => Err(format!(
                "another site of this service has {host} and its owner has proven it"
            )),
        })
    }

    /// Takes a host from a project whose proof is gone.
    fn suspend(
        &self,
        lock: &crate::store::SitesLock,
        rules: &Rules,
        project: &ProjectId,
        host: &Host,
    ) -> Result<(), Refused> {
        let Some(record) = self.store.site_record(project)? else {
            return Ok(());
        };
        let Some(ownership) = record.ownership.get(host).cloned() else {
            return Ok(());
        };
        let claim = Claim {
            project: project.clone(),
            host: host.clone(),
            owner: owner_of(&record),
            state: Some(ownership.state),
            since: ownership.since,
            token: ownership.token,
            handovers: ownership.handovers,
            default: None,
            parents: Vec::new(),
        };
        self.write_state(lock, rules, record, &claim, State::Quarantined)
    }

    /// Writes the state of a domain, the claim of its host, and the entry of the audit log.
    fn write_state(
        &self,
        lock: &crate::store::SitesLock,
        rules: &Rules,
        mut record: SiteRecord,
        claim: &Claim,
        state: State,
    ) -> Result<(), Refused> {
        let Claim {
            project,
            host,
            owner,
            token,
            handovers,
            ..
        } = claim;
        let now = self.clock.unix_seconds();
        let ownership = Ownership {
            state,
            since: now,
            token: token.clone(),
            handovers: *handovers,
        };
        record.ownership.insert(host.clone(), ownership);
        let was_served = claim.state.is_none_or(State::is_served);
        let (is_gained, is_lost) = (
            state.is_served() && !was_served,
            !state.is_served() && was_served,
        );
        let quarantine = Quarantine {
            owner: owner.clone(),
            until: rules.quarantine_ends(now),
        };
        let of_state = |state: Option<State>| {
            let mut members = Map::new();
            members.insert("ownership".to_owned(), json!(state.map(State::as_str)));
            members
        };
        let entry = Entry {
            id: 0,
            at: Timestamp::of(self.clock.now()).millis(),
            who: Who {
                user: Some(WHO.into()),
                ..Who::default()
            },
            what: format!("domain.{state}").into(),
            project: project.as_str().into(),
            owner: owner.clone(),
            host: Some(host.as_str().into()),
            before: Some(of_state(claim.state)),
            after: Some(of_state(Some(state))),
        };
        let hosts =
            |is_there: bool| -> Vec<Host> { is_there.then(|| host.clone()).into_iter().collect() };
        let is_ours = self.is_claimed(project, host);
        let handovers = BTreeMap::from([(host.clone(), self.handovers(host, owner)?)]);
        let change = SiteChange {
            project: project.clone(),
            record: Some(record),
            claimed: hosts(is_gained),
            released: hosts(is_lost && is_ours),
            quarantine: is_lost.then(|| (vec![host.clone()], quarantine)),
            handovers,
            entry,
        };
        self.store.change_site(lock, &change)?;
        let before = claim.state.map_or("unproven", State::as_str);
        log::info!(
            target: "audit", project:%, host:%, before, state = state.as_str();
            "the domain {host} of {project} is {state}"
        );
        Ok(())
    }

    /// Returns the site of a record; `None` if the record has mistakes.
    fn read(&self, record: &SiteRecord) -> Option<std::sync::Arc<Site>> {
        crate::store::sites::read_record(record, &self.service, &self.private_hosts).ok()
    }
}

/// Returns what the owner of a name above has to create.
pub(super) fn agreement(parent: &Host, token: &str) -> String {
    format!(
        "{parent} belongs to another owner on this service, who has to agree with the TXT record {} with the value {}",
        challenge(parent),
        value(token)
    )
}
