//! A name server for one test: it has the records that the test sets, and may misbehave.
//!
//! It answers over UDP and TCP on one port of this machine, as a resolver does: with the aliases of
//! a name and the records behind them.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex};

use hickory_proto::op::{Message, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, CAA, CNAME, TXT};
use hickory_proto::rr::{Name, RData, Record, RecordType};

/// A running name server.
#[derive(Clone)]
pub struct Names {
    pub address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
}

/// How questions for a name are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Not at all.
    Silent,
    /// With a failure of the server.
    Failing,
    /// With the number of another question.
    Lying,
    /// With bytes that are no message.
    Garbled,
}

#[derive(Default)]
struct Zone {
    records: HashMap<String, Vec<RData>>,
    manners: HashMap<String, Manner>,
}

impl Names {
    pub fn start() -> Self {
        let (listener, socket) = loop {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            // The port may be taken for UDP.
            if let Ok(socket) = UdpSocket::bind(address) {
                break (listener, socket);
            }
        };
        let names = Self {
            address: listener.local_addr().unwrap(),
            zone: Arc::default(),
        };
        std::thread::spawn({
            let names = names.clone();
            move || {
                let mut buffer = [0; 4096];
                while let Ok((length, client)) = socket.recv_from(&mut buffer) {
                    if let Some(answer) = names.answer(&buffer[..length], true) {
                        let _gone = socket.send_to(&answer, client);
                    }
                }
            }
        });
        std::thread::spawn({
            let names = names.clone();
            move || {
                for stream in listener.incoming() {
                    let mut stream = stream.unwrap();
                    let mut length = [0; 2];
                    let mut question = Vec::new();
                    if stream.read_exact(&mut length).is_ok() {
                        question.resize(usize::from(u16::from_be_bytes(length)), 0);
                    }
                    if stream.read_exact(&mut question).is_err() {
                        continue;
                    }
                    if let Some(answer) = names.answer(&question, false) {
                        let length = u16::try_from(answer.len()).unwrap();
                        let framed = [&length.to_be_bytes()[..], &answer].concat();
                        let _gone = stream.write_all(&framed);
                    }
                }
            }
        });
        names
    }

    /// The setting of a gateway that asks only this server.
    pub fn resolvers(&self) -> String {
        format!("resolvers: [\"{}\"]", self.address)
    }

    /// Replaces all records of a name.
    fn set(&self, name: &str, records: Vec<RData>) {
        let mut zone = self.zone.lock().unwrap();
        zone.records.insert(name.to_owned(), records);
    }

    pub fn text(&self, name: &str, texts: &[&str]) {
        let texts = texts.iter();
        self.set(
            name,
            texts
                .map(|text| RData::TXT(TXT::new(vec![(*text).to_owned()])))
                .collect(),
        );
    }

    pub fn alias(&self, name: &str, target: &str) {
        let target = Name::from_ascii(format!("{target}.")).unwrap();
        self.set(name, vec![RData::CNAME(CNAME(target))]);
    }

    pub fn addresses(&self, name: &str, addresses: &[&str]) {
        let record = |address: &&str| match address.parse().unwrap() {
            IpAddr::V4(address) => RData::A(A(address)),
            IpAddr::V6(address) => RData::AAAA(AAAA(address)),
        };
        self.set(name, addresses.iter().map(record).collect());
    }

    /// Lets only this authority issue certificates for a name; an empty name lets none.
    pub fn authority(&self, name: &str, authority: &str) {
        let authority = match authority {
            "" => None,
            authority => Some(Name::from_ascii(authority).unwrap()),
        };
        self.set(
            name,
            vec![RData::CAA(CAA::new_issue(false, authority, Vec::new()))],
        );
    }

    pub fn remove(&self, name: &str) {
        self.zone.lock().unwrap().records.remove(name);
    }

    /// Sets how questions for a name are answered; `None`: with its records.
    pub fn misbehave(&self, name: &str, manner: Option<Manner>) {
        let mut zone = self.zone.lock().unwrap();
        match manner {
            Some(manner) => zone.manners.insert(name.to_owned(), manner),
            None => zone.manners.remove(name),
        };
    }

    fn answer(&self, question: &[u8], is_short: bool) -> Option<Vec<u8>> {
        let question = Message::from_vec(question).ok()?;
        let query = question.queries.first()?.clone();
        let zone = self.zone.lock().unwrap();
        let name = text(query.name());
        let mut id = question.metadata.id;
        let mut code = ResponseCode::NoError;
        match zone.manners.get(&name) {
            Some(Manner::Silent) => return None,
            Some(Manner::Garbled) => return Some(vec![0xff; 40]),
            Some(Manner::Failing) => code = ResponseCode::ServFail,
            Some(Manner::Lying) => id = id.wrapping_add(1),
            None => {}
        }
        let mut answer = Message::response(id, question.metadata.op_code);
        answer.add_query(query.clone());
        let mut at = name;
        for _ in 0..20 {
            let Some(records) = zone.find(&at) else {
                if answer.answers.is_empty() && code == ResponseCode::NoError {
                    code = ResponseCode::NXDomain;
                }
                break;
            };
            let owner = Name::from_ascii(format!("{at}.")).unwrap();
            let alias = records.iter().find_map(|record| match record {
                RData::CNAME(target) => Some(text(&target.0)),
                _ => None,
            });
            for record in &records {
                let kind = record.record_type();
                if kind == query.query_type() || kind == RecordType::CNAME {
                    answer.add_answer(Record::from_rdata(owner.clone(), 1, record.clone()));
                }
            }
            match alias {
                Some(target) => at = target,
                None => break,
            }
        }
        answer.metadata.response_code = code;
        let bytes = answer.to_vec().unwrap();
        if is_short && bytes.len() > 1232 {
            let mut short = answer.truncate();
            short.metadata.truncation = true;
            return Some(short.to_vec().unwrap());
        }
        Some(bytes)
    }
}

impl Zone {
    /// RFC 4592: a wildcard has the names below that do not exist.
    fn find(&self, name: &str) -> Option<Vec<RData>> {
        if let Some(records) = self.records.get(name) {
            return Some(records.clone());
        }
        let mut above = name;
        while let Some((_, rest)) = above.split_once('.') {
            if let Some(records) = self.records.get(&format!("*.{rest}")) {
                return Some(records.clone());
            }
            above = rest;
        }
        None
    }
}

fn text(name: &Name) -> String {
    name.to_ascii()
        .to_ascii_lowercase()
        .trim_end_matches('.')
        .to_owned()
}
