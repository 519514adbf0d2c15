//! Any bytes as the head of an HTTP/1.1 request.
//!
//! A head that is accepted has one meaning: a simple reader that splits lines finds the same host,
//! the same length and the same target. A head that is accepted is not rejected while it is still
//! incomplete, and the head that is given to pingora is accepted too.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use waypost::gateway::Limits;
use waypost::gateway::head::{self, Form, Framing, Head};

fuzz_target!(|data: &[u8]| {
    let limits = Limits::default();
    // The log reads the request line of any bytes.
    let (method, path) = head::request_line(data);
    assert!(method.len() + path.len() <= data.len());

    // The connection's loop ignores empty lines before a request (RFC 9112 §2.2).
    let mut bytes = data;
    while let Some(rest) = bytes.strip_prefix(b"\r\n") {
        bytes = rest;
    }
    let mut bytes = bytes.to_vec();
    if head::to_known_version(&mut bytes) {
        assert!(
            !head::to_known_version(&mut bytes),
            "the version is known now"
        );
    }
    let accepted = match Head::parse(&bytes, &limits) {
        Ok(accepted) => accepted,
        Err(rejection) => {
            assert!((400..600).contains(&rejection.status));
            assert_eq!(rejection.response().status, rejection.status);
            return;
        }
    };
    if bytes.len() <= limits.head_bytes_max {
        for length in 0..=bytes.len() {
            assert_eq!(head::reject_early(&bytes[..length], &limits), None);
        }
    }

    let text = &bytes[..bytes.len() - 4];
    let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    let (first, fields) = lines.split_first().expect("a head has a first line");
    let values = |name: &str| {
        let fields = fields.iter().filter_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let (found, value) = line.split_at(colon);
            found
                .eq_ignore_ascii_case(name.as_bytes())
                .then(|| value[1..].trim_ascii())
        });
        fields.collect::<Vec<_>>()
    };
    assert_eq!(values("host"), [accepted.headers.host.as_bytes()]);
    let lengths = values("content-length");
    match accepted.framing {
        Framing::Chunked => assert!(lengths.is_empty() && values("transfer-encoding").len() == 1),
        Framing::None => assert!(
            lengths
                .iter()
                .all(|length| length.iter().all(|b| *b == b'0'))
        ),
        Framing::Length(length) => {
            let sent: u64 = str::from_utf8(lengths[0]).unwrap().parse().unwrap();
            assert_eq!((lengths.len(), sent), (1, length));
        }
    }
    let target = first.split(|&byte| byte == b' ').nth(1).unwrap();
    let path = accepted.headers.path.as_bytes();
    match accepted.form {
        Form::Absolute(_) => {
            let mut inbox = BytesMut::from(&bytes[..]);
            let length = head::to_origin_form(&mut inbox, bytes.len());
            let rewritten = Head::parse(&inbox[..length], &limits).expect("its path is a target");
            assert_eq!(rewritten.headers.query, accepted.headers.query);
            assert_eq!(rewritten.headers.host, accepted.headers.host);
            assert_eq!(rewritten.framing, accepted.framing);
            if rewritten.form == Form::Origin {
                assert_eq!(rewritten.headers.path, accepted.headers.path);
            }
        }
        Form::Origin => assert!(target.starts_with(path)),
        Form::Asterisk => assert_eq!(target, b"*"),
    }
});
