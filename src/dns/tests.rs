//! Tests of lookups at real servers on this machine: a resolver, and the servers of a zone.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicUsize, Ordering};

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::rdata::{A, CNAME, NS};

use super::*;

/// A server that answers questions with a function; `None`: it says nothing.
fn serve(
    answer: impl Fn(&str, RecordType, Message) -> Option<Message> + Send + 'static,
) -> (SocketAddr, Arc<AtomicUsize>) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    std::thread::spawn({
        let count = Arc::clone(&count);
        move || {
            let mut buffer = [0; 4096];
            while let Ok((length, client)) = socket.recv_from(&mut buffer) {
                count.fetch_add(1, Ordering::Relaxed);
                let question = Message::from_vec(&buffer[..length]).unwrap();
                let query = question.queries[0].clone();
                let id = question.metadata.id;
                let mut empty = Message::response(id, question.metadata.op_code);
                empty.metadata.authoritative = !question.metadata.recursion_desired;
                empty.add_query(query.clone());
                let name = text_of(query.name());
                if let Some(message) = answer(&name, query.query_type(), empty) {
                    socket.send_to(&message.to_vec().unwrap(), client).unwrap();
                }
            }
        }
    });
    (address, count)
}

fn name(text: &str) -> Name {
    Name::from_ascii(format!("{text}.")).unwrap()
}

fn record(owner: &str, data: RData) -> Record {
    Record::from_rdata(name(owner), 60, data)
}

fn address(owner: &str, last: u8) -> Record {
    record(owner, RData::A(A::new(127, 0, 0, last)))
}

/// A client that asks the servers of zones, which a resolver names.
fn client(resolver: SocketAddr, port: u16) -> Client {
    Client {
        resolvers: [resolver].into(),
        is_closed: false,
        private_hosts: std::iter::once("127.0.0.1".parse().unwrap()).collect(),
        port,
        time: Duration::from_secs(5),
    }
}

#[tokio::test]
async fn the_servers_of_the_zone_are_asked_and_their_word_counts() {
    let (zone, _) = serve(|name, kind, mut answer| {
        // A server must not be believed about the names of others.
        answer.add_answer(address("docs.other.com", 66));
        match (name, kind) {
            ("docs.acme.com", RecordType::A) => {
                answer.add_answer(record(
                    name,
                    RData::CNAME(CNAME(super::tests::name("docs.other.com"))),
                ));
            }
            ("docs.other.com", RecordType::A) => {
                answer.answers.clear();
                answer.add_answer(address("docs.other.com", 7));
            }
            _ => {}
        }
        Some(answer)
    });
    let (resolver, _) = serve(|name, kind, mut answer| {
        match (name, kind) {
            ("acme.com" | "other.com", RecordType::NS) => {
                let server = super::tests::name("ns.provider.com");
                answer.add_answer(record(name, RData::NS(NS(server))));
            }
            ("ns.provider.com", RecordType::A) => {
                answer.add_answer(address(name, 1));
            }
            // What a cache has is not asked for.
            (_, RecordType::A) => {
                answer.add_answer(address(name, 99));
            }
            ("gone.com", _) => answer.metadata.response_code = ResponseCode::NXDomain,
            _ => {}
        }
        Some(answer)
    });
    let client = client(resolver, zone.port());
    let found = client
        .lookup()
        .follow("docs.acme.com", Kind::A)
        .await
        .unwrap();
    assert_eq!(found.aliases, ["docs.other.com".into()]);
    assert_eq!(found.records, [Data::Address([127, 0, 0, 7].into())]);
    let found = client.lookup().follow("docs.gone.com", Kind::A).await;
    assert_eq!(found, Ok(LookupResult::default()));
}

#[tokio::test]
async fn servers_with_a_private_address_are_not_asked() {
    let (zone, asked) = serve(|_, _, answer| Some(answer));
    let (resolver, _) = serve(|name, kind, mut answer| {
        match kind {
            RecordType::NS => {
                let server = super::tests::name("ns.evil.com");
                answer.add_answer(record(name, RData::NS(NS(server))));
            }
            RecordType::A => {
                answer.add_answer(address(name, 2));
            }
            _ => {}
        }
        Some(answer)
    });
    let client = client(resolver, zone.port());
    let found = client.lookup().follow("evil.com", Kind::A).await;
    assert_eq!(found, Err(Unanswered::NoServers("evil.com".into())));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_server_without_the_zone_is_named() {
    let (zone, _) = serve(|_, _, mut answer| {
        answer.metadata.authoritative = false;
        Some(answer)
    });
    let (resolver, _) = serve(|name, kind, mut answer| {
        match kind {
            RecordType::NS => {
                let server = super::tests::name("ns.acme.com");
                answer.add_answer(record(name, RData::NS(NS(server))));
            }
            RecordType::A => {
                answer.add_answer(address(name, 1));
            }
            _ => {}
        }
        Some(answer)
    });
    let client = client(resolver, zone.port());
    let found = client.lookup().follow("acme.com", Kind::A).await;
    assert_eq!(found, Err(Unanswered::Lame("acme.com".into())));
}

#[tokio::test]
async fn a_lookup_ends_also_if_nobody_answers() {
    let (silent, _) = serve(|_, _, _| None);
    let time = Duration::from_millis(300);
    let client = Client::new(&[silent], PrivateHosts::default(), time);
    let mut lookup = client.lookup();
    let found = lookup.follow("acme.com", Kind::Txt).await;
    assert_eq!(found, Err(Unanswered::TooLong("acme.com".into())));
    let found = lookup.follow("acme.com", Kind::A).await;
    assert_eq!(found, Err(Unanswered::TooLong("acme.com".into())));
}

#[test]
fn the_resolvers_of_the_machine_are_read() {
    let text = "# comment\nsearch acme.com\nnameserver 10.0.0.1\nnameserver\t2001:db8::1\nnameserver x\noptions ndots:2\n";
    let expected = ["10.0.0.1:53", "[2001:db8::1]:53"].map(|address| address.parse().unwrap());
    assert_eq!(resolvers_in(text), expected);
}
