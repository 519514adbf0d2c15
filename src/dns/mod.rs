//! What DNS says about a name, with every step in sight.
//!
//! A [`Client`] asks in one of two ways:
//!
//! * the servers of the zone, without recursion ([`Client::new`] without resolvers): no cache is in
//!   between, so an answer is as new as the zone. The resolvers of the machine only say which
//!   servers these are. They are connected to only if their addresses are public or the operator
//!   lists them.
//! * only the resolvers that the operator lists, for networks that reach no others.
//!
//! A [`Lookup`] is the work for one name: it has a deadline and a number of questions, so names
//! that never answer, answer with other names or form a cycle end with an error. Aliases are
//! followed one by one and are part of the result. What the servers of others say is data: nothing
//! in it is trusted apart from what they may say about their own names.
//!
//! Sources: RFC 1034, RFC 1035, RFC 2181 §5.4.1 (what to believe), RFC 5452 (against forged
//! answers), RFC 6891 (EDNS), RFC 7766 (TCP), RFC 8659 (CAA).

mod exchange;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::time::Instant;

use crate::site::PrivateHosts;
use exchange::Failed;

/// The port of name servers.
const PORT: u16 = 53;
/// How many aliases are followed.
const ALIASES_MAX: usize = 8;
/// How many questions one lookup may ask.
const QUESTIONS_MAX: usize = 80;
/// How many records of an answer are read.
const RECORDS_MAX: usize = 100;
/// How many bytes of a text are read.
const TEXT_BYTES_MAX: usize = 1024;
/// How many servers of a zone are asked for, and how many addresses of them are used.
const SERVERS_MAX: usize = 4;
const ADDRESSES_MAX: usize = 6;
/// How long one server may take for one answer.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// The kinds of records that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// IPv4 addresses.
    A,
    /// IPv6 addresses.
    Aaaa,
    /// Texts.
    Txt,
    /// The authorities that may issue certificates (RFC 8659).
    Caa,
    /// The servers of a zone.
    Ns,
}

/// The content of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// An address.
    Address(IpAddr),
    /// The name of a server.
    Server(Box<str>),
    /// A text: the strings of one record, joined.
    Text(Box<str>),
    /// Who may issue certificates.
    Caa {
        /// Whether an authority that does not know the tag must refuse.
        is_critical: bool,
        /// The tag, in lower case.
        tag: Box<str>,
        /// The value.
        value: Box<str>,
    },
}

/// The answer to a question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookupResult {
    /// The aliases that were followed, from the first to the last target.
    pub aliases: Vec<Box<str>>,
    /// The records of the name, or of the last alias.
    pub records: Vec<Data>,
    /// Whether the name, or the last alias, exists with records of any kind.
    pub exists: bool,
}

/// Why there is no answer. Each is a sentence for the owner of the name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unanswered {
    /// No server answered in time.
    #[error("the name servers for {0} do not answer in time")]
    Silent(Box<str>),
    /// A server cannot be reached.
    #[error("the name servers for {0} cannot be reached: {1}")]
    Unreachable(Box<str>, Box<str>),
    /// A server answered that it failed.
    #[error("the name servers for {0} answer {1}")]
    Failed(Box<str>, Box<str>),
    /// A server answered with something else than a DNS message, or to another question.
    #[error("the name servers for {0} answer with something that is no answer to the question")]
    Nonsense(Box<str>),
    /// The servers of the zone do not have the zone.
    #[error("the name servers for {0} do not have its zone")]
    Lame(Box<str>),
    /// No server of the zone has an address that may be connected to.
    #[error("the name servers of {0} have no public address")]
    NoServers(Box<str>),
    /// The aliases form a cycle.
    #[error("the aliases (CNAME) of {0} form a cycle: {1} was there before")]
    Cycle(Box<str>, Box<str>),
    /// There are too many aliases.
    #[error("{0} leads through more than {ALIASES_MAX} aliases (CNAME)")]
    Chain(Box<str>),
    /// The answer has too many records.
    #[error("{0} has more than {RECORDS_MAX} records")]
    TooMany(Box<str>),
    /// The lookup takes too long.
    #[error("the lookup of {0} takes too long")]
    TooLong(Box<str>),
    /// The name is too long for DNS, or has other characters.
    #[error("{0} is not a name in DNS")]
    Name(Box<str>),
}

/// Asks name servers.
#[derive(Clone, Debug)]
pub struct Client {
    resolvers: Arc<[SocketAddr]>,
    /// Whether the resolvers are the only servers that are asked.
    is_closed: bool,
    /// The servers of zones that may have a private address.
    private_hosts: PrivateHosts,
    /// The port of the servers of zones.
    port: u16,
    time: Duration,
}

/// The work for one name.
#[derive(Debug)]
pub struct Lookup<'c> {
    client: &'c Client,
    ends_at: Instant,
    questions_left: usize,
    /// The servers of zones that were found.
    zones: HashMap<String, Arc<[SocketAddr]>>,
}

// === impl Client ===

impl Client {
    /// Makes a client. Without `resolvers`, the servers of zones are asked, which the resolvers of
    /// the machine (`resolv.conf`) name. `time` is the longest time of a [`Lookup`].
    #[must_use]
    pub fn new(resolvers: &[SocketAddr], private_hosts: PrivateHosts, time: Duration) -> Self {
        let is_closed = !resolvers.is_empty();
        Self {
            resolvers: match is_closed {
                true => resolvers.into(),
                false => of_machine().into(),
            },
            is_closed,
            private_hosts,
            port: PORT,
            time,
        }
    }

    /// Begins the work for one name.
    #[must_use]
    pub fn lookup(&self) -> Lookup<'_> {
        Lookup {
            client: self,
            ends_at: Instant::now() + self.time,
            questions_left: QUESTIONS_MAX,
            zones: HashMap::new(),
        }
    }
}

/// Returns the resolvers of the machine. As in the C library, it is this machine if none is named.
fn of_machine() -> Vec<SocketAddr> {
    let text = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let mut resolvers = resolvers_in(&text);
    if resolvers.is_empty() {
        resolvers.push(SocketAddr::from(([127, 0, 0, 1], PORT)));
    }
    resolvers
}

/// Reads the resolvers of `resolv.conf(5)`.
fn resolvers_in(text: &str) -> Vec<SocketAddr> {
    let servers = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = words.next().filter(|word| *word == "nameserver");
        address.and_then(|_| words.next()?.parse::<IpAddr>().ok())
    });
    servers
        .map(|address| SocketAddr::new(address, PORT))
        .collect()
}

// === impl Lookup ===

impl Lookup<'_> {
    /// Returns the records of a name, of the name that it is an alias of, and so on.
    ///
    /// # Errors
    ///
    /// [`Unanswered`]: the servers say neither that there are records nor that there are none.
    pub async fn follow(&mut self, name: &str, kind: Kind) -> Result<LookupResult, Unanswered> {
        let mut found = LookupResult::default();
        let mut seen = HashSet::from([name.to_owned()]);
        let mut at = name.to_owned();
        loop {
            let Some(answer) = self.ask(&at, kind).await? else {
                found.exists = false;
                return Ok(found);
            };
            found.exists = true;
            // A resolver also answers for the names behind aliases.
            loop {
                let records = records_of(&answer, &at, kind)?;
                if !records.is_empty() {
                    found.records = records;
                    return Ok(found);
                }
                let Some(target) = alias_of(&answer, &at) else {
                    break;
                };
                if !seen.insert(target.clone()) {
                    return Err(Unanswered::Cycle(name.into(), target.into()));
                }
                if found.aliases.len() == ALIASES_MAX {
                    return Err(Unanswered::Chain(name.into()));
                }
                found.aliases.push(target.as_str().into());
                at = target;
                if !self.client.is_closed {
                    break;
                }
            }
            let is_new = found.aliases.last().is_some_and(|last| **last == *at);
            let was_asked = answer
                .queries
                .iter()
                .any(|query| text_of(query.name()) == at);
            // The answer ended at this name, without records of it.
            if !is_new || was_asked {
                return Ok(found);
            }
        }
    }

    /// Returns the records of a name itself. The target is returned if the name is an alias.
    ///
    /// # Errors
    ///
    /// As [`Lookup::follow`].
    pub async fn exactly(&mut self, name: &str, kind: Kind) -> Result<LookupResult, Unanswered> {
        let Some(answer) = self.ask(name, kind).await? else {
            return Ok(LookupResult::default());
        };
        let alias = alias_of(&answer, name);
        let records = match alias {
            Some(_) => Vec::new(),
            None => records_of(&answer, name, kind)?,
        };
        Ok(LookupResult {
            aliases: alias.into_iter().map(Into::into).collect(),
            records,
            exists: true,
        })
    }

    /// Asks the servers that know a name; `None` if the name does not exist.
    async fn ask(&mut self, name: &str, kind: Kind) -> Result<Option<Message>, Unanswered> {
        if self.client.is_closed {
            let resolvers = Arc::clone(&self.client.resolvers);
            return self.ask_any(&resolvers, name, kind, true).await;
        }
        match self.servers_of(name).await? {
            Some(servers) => self.ask_any(&servers, name, kind, false).await,
            None => Ok(None),
        }
    }

    /// Finds the servers of the zone of a name; `None` if the name does not exist.
    async fn servers_of(&mut self, name: &str) -> Result<Option<Arc<[SocketAddr]>>, Unanswered> {
        let resolvers = Arc::clone(&self.client.resolvers);
        let top = psl::domain_str(name).unwrap_or(name);
        let mut zone = name;
        loop {
            if let Some(known) = self.zones.get(zone) {
                return Ok(Some(Arc::clone(known)));
            }
            let answer = self.ask_any(&resolvers, zone, Kind::Ns, true).await?;
            if let Some(answer) = answer {
                let servers = records_of(&answer, zone, Kind::Ns)?;
                if !servers.is_empty() {
                    return self.addresses_of(zone, &servers).await.map(Some);
                }
            } else if zone == top {
                return Ok(None);
            }
            // Names above the registrable domain belong to registries.
            match zone.split_once('.') {
                Some((_, above)) if zone != top && !above.is_empty() => zone = above,
                _ => return Err(Unanswered::NoServers(zone.into())),
            }
        }
    }

    /// Finds the addresses of the servers of a zone.
    async fn addresses_of(
        &mut self,
        zone: &str,
        servers: &[Data],
    ) -> Result<Arc<[SocketAddr]>, Unanswered> {
        let resolvers = Arc::clone(&self.client.resolvers);
        let mut addresses = Vec::new();
        for server in servers.iter().take(SERVERS_MAX) {
            let Data::Server(server) = server else {
                continue;
            };
            for kind in [Kind::A, Kind::Aaaa] {
                // One server of several may not be found.
                let answer = self.ask_any(&resolvers, server, kind, true).await;
                let Ok(Some(answer)) = answer else { continue };
                for record in records_of(&answer, server, kind)? {
                    let Data::Address(address) = record else {
                        continue;
                    };
                    // The zone's owner chooses the name, so only listed networks count.
                    if self.client.private_hosts.allow("", address) {
                        addresses.push(SocketAddr::new(address, self.client.port));
                    }
                }
            }
            if addresses.len() >= ADDRESSES_MAX {
                break;
            }
        }
        if addresses.is_empty() {
            return Err(Unanswered::NoServers(zone.into()));
        }
        addresses.truncate(ADDRESSES_MAX);
        let addresses: Arc<[SocketAddr]> = addresses.into();
        self.zones.insert(zone.to_owned(), Arc::clone(&addresses));
        Ok(addresses)
    }

    /// Asks servers one after the other, twice, until one answers; `None` if the name does not
    /// exist.
    async fn ask_any(
        &mut self,
        servers: &[SocketAddr],
        name: &str,
        kind: Kind,
        is_recursive: bool,
    ) -> Result<Option<Message>, Unanswered> {
        let wanted = Name::from_ascii(format!("{name}."));
        let Ok(wanted) = wanted else {
            return Err(Unanswered::Name(name.into()));
        };
        let mut last = Unanswered::Silent(name.into());
        for server in servers.iter().chain(servers) {
            if self.questions_left == 0 || Instant::now() >= self.ends_at {
                return Err(Unanswered::TooLong(name.into()));
            }
            self.questions_left -= 1;
            let ends_at = self.ends_at.min(Instant::now() + ANSWER_TIME);
            let record_type = kind.record_type();
            let asked = exchange::ask(*server, &wanted, record_type, is_recursive, ends_at);
            let answer = match asked.await {
                Ok(answer) => answer,
                Err(failed) => {
                    last = match failed {
                        Failed::Silent => Unanswered::Silent(name.into()),
                        Failed::Nonsense => Unanswered::Nonsense(name.into()),
                        Failed::File(error) => {
                            Unanswered::Unreachable(name.into(), error.to_string().into())
                        }
                    };
                    continue;
                }
            };
            if answer.answers.len() > RECORDS_MAX {
                return Err(Unanswered::TooMany(name.into()));
            }
            let code = answer.metadata.response_code;
            let is_answer = matches!(code, ResponseCode::NoError | ResponseCode::NXDomain);
            // RFC 1034 §4.3.1: only an authoritative answer is the word of the zone.
            if is_answer && !is_recursive && !answer.metadata.authoritative {
                last = Unanswered::Lame(name.into());
                continue;
            }
            match code {
                ResponseCode::NoError => {}
                // RFC 2308 §2.1: with an alias, it is the last name that does not exist.
                ResponseCode::NXDomain if answer.answers.is_empty() => return Ok(None),
                ResponseCode::NXDomain => {}
                code => {
                    last = Unanswered::Failed(name.into(), code.to_str().into());
                    continue;
                }
            }
            return Ok(Some(answer));
        }
        Err(last)
    }
}

// === impl Kind ===

impl Kind {
    fn record_type(self) -> RecordType {
        match self {
            Self::A => RecordType::A,
            Self::Aaaa => RecordType::AAAA,
            Self::Txt => RecordType::TXT,
            Self::Caa => RecordType::CAA,
            Self::Ns => RecordType::NS,
        }
    }
}

/// Returns the records of a kind that an answer has for a name.
fn records_of(answer: &Message, name: &str, kind: Kind) -> Result<Vec<Data>, Unanswered> {
    let of_name = answer.answers.iter().filter(|r| text_of(&r.name) == name);
    let records: Vec<Data> = of_name.filter_map(|record| data_of(record, kind)).collect();
    match records.len() > RECORDS_MAX {
        true => Err(Unanswered::TooMany(name.into())),
        false => Ok(records),
    }
}

fn data_of(record: &Record, kind: Kind) -> Option<Data> {
    Some(match (&record.data, kind) {
        (RData::A(address), Kind::A) => Data::Address(IpAddr::V4(address.0)),
        (RData::AAAA(address), Kind::Aaaa) => Data::Address(IpAddr::V6(address.0)),
        (RData::NS(server), Kind::Ns) => Data::Server(text_of(&server.0).into()),
        (RData::TXT(text), Kind::Txt) => {
            let mut bytes = text.txt_data.concat();
            bytes.truncate(TEXT_BYTES_MAX);
            Data::Text(String::from_utf8_lossy(&bytes).into())
        }
        (RData::CAA(caa), Kind::Caa) => Data::Caa {
            is_critical: caa.issuer_critical,
            tag: caa.tag.to_ascii_lowercase().into(),
            value: String::from_utf8_lossy(&caa.value).into(),
        },
        _ => return None,
    })
}

/// Returns the name that a name is an alias of.
fn alias_of(answer: &Message, name: &str) -> Option<String> {
    answer.answers.iter().find_map(|record| match &record.data {
        RData::CNAME(target) if text_of(&record.name) == name => Some(text_of(&target.0)),
        _ => None,
    })
}

/// Returns a name in lower case, without the dot at its end.
fn text_of(name: &Name) -> String {
    let mut text = name.to_ascii().to_ascii_lowercase();
    if text.len() > 1 && text.ends_with('.') {
        text.pop();
    }
    text
}
