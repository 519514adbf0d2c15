//! One question to one server.
//!
//! RFC 5452: the question has a random number and comes from a random port, and an answer counts
//! only if it has both and repeats the question. Other messages are ignored until the time is over.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query};
use hickory_proto::rr::{Name, RecordType};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::{Instant, timeout_at};

/// RFC 6891 §6.2.5: an answer of this size is not fragmented.
const PAYLOAD_BYTES: u16 = 1232;
/// How many messages that are no answer are read.
const OTHERS_MAX: usize = 16;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Failed {
    /// The server cannot be reached.
    File(io::Error),
    /// Nothing came in time.
    Silent,
    /// What came is no answer.
    Nonsense,
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

/// Asks a server, over UDP, and over TCP if the answer is too long for UDP.
pub(super) async fn ask(
    server: SocketAddr,
    name: &Name,
    kind: RecordType,
    is_recursive: bool,
    ends_at: Instant,
) -> Result<Message, Failed> {
    let mut id = [0; 2];
    getrandom::fill(&mut id).map_err(|error| Failed::File(io::Error::other(error)))?;
    let mut question = Message::new(u16::from_ne_bytes(id), MessageType::Query, OpCode::Query);
    question.metadata.recursion_desired = is_recursive;
    question.add_query(Query::query(name.clone(), kind));
    let mut edns = Edns::new();
    edns.set_max_payload(PAYLOAD_BYTES);
    question.set_edns(edns);
    let bytes = question.to_vec().map_err(|_invalid| Failed::Nonsense)?;
    let answer = over_udp(server, &question, &bytes, ends_at).await?;
    match answer.metadata.truncation {
        true => timeout_at(ends_at, over_tcp(server, &question, &bytes))
            .await
            .map_err(|_elapsed| Failed::Silent)?,
        false => Ok(answer),
    }
}

async fn over_udp(
    server: SocketAddr,
    question: &Message,
    bytes: &[u8],
    ends_at: Instant,
) -> Result<Message, Failed> {
    let any = match server {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).await?;
    // The kernel drops messages of others.
    socket.connect(server).await?;
    socket.send(bytes).await?;
    let mut buffer = vec![0; usize::from(u16::MAX)];
    for others in 0..OTHERS_MAX {
        let received = timeout_at(ends_at, socket.recv(&mut buffer)).await;
        let length = match received {
            Ok(length) => length?,
            Err(_elapsed) if others == 0 => return Err(Failed::Silent),
            Err(_elapsed) => return Err(Failed::Nonsense),
        };
        if let Some(answer) = answer(&buffer[..length], question) {
            return Ok(answer);
        }
    }
    Err(Failed::Nonsense)
}

async fn over_tcp(server: SocketAddr, question: &Message, bytes: &[u8]) -> Result<Message, Failed> {
    let mut stream = TcpStream::connect(server).await?;
    // RFC 1035 §4.2.2: two bytes with the length come first.
    let length = u16::try_from(bytes.len()).map_err(|_long| Failed::Nonsense)?;
    let framed = [&length.to_be_bytes(), bytes].concat();
    stream.write_all(&framed).await?;
    let length = stream.read_u16().await?;
    let mut buffer = vec![0; usize::from(length)];
    stream.read_exact(&mut buffer).await?;
    answer(&buffer, question).ok_or(Failed::Nonsense)
}

/// Parses the answer to a question; `None` if it is none.
fn answer(bytes: &[u8], question: &Message) -> Option<Message> {
    let answer = Message::from_vec(bytes).ok()?;
    let is_ours = answer.metadata.id == question.metadata.id
        && answer.metadata.message_type == MessageType::Response
        && answer.queries.len() == 1
        && answer
            .queries
            .iter()
            .zip(&question.queries)
            .all(|(one, other)| {
                one.name() == other.name()
                    && one.query_type() == other.query_type()
                    && one.query_class() == other.query_class()
            });
    is_ours.then_some(answer)
}
