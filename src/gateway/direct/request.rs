//! The head of a request as an upstream gets it.
//!
//! The rules are those of [`forward`]. The order of the fields and the
//! case of their names stay as the client sent them; `Host` comes first, and our own fields last.
//!
//! The head was read by [`Head::parse`](crate::gateway::head::Head::parse): each line ends in CRLF
//! and is a whole field.

use std::io::Write as _;
use std::net::IpAddr;

use crate::gateway::access::{write_address, write_number};
use crate::gateway::forward;
use crate::response::RequestHeaders;
use crate::response::trace::Made;
use crate::site::{HostHeader, Service, Upstream};

/// Fields that are for one connection only (RFC 9110 §7.6.1, RFC 9112 §6.1, RFC 7540 §3.2.1), and
/// `Host`, which is written anew. The proxy path removes the same.
const DROPPED: [&str; 11] = [
    "te",
    "host",
    "trailer",
    "upgrade",
    "connection",
    "keep-alive",
    "http2-settings",
    "proxy-connection",
    "transfer-encoding",
    "proxy-authenticate",
    "proxy-authorization",
];

/// The values of the forwarding fields.
#[derive(Debug)]
pub(super) struct Forwarded<'r> {
    pub(super) upstream: &'r Upstream,
    /// The host of the request, in normal form.
    pub(super) host: &'r str,
    pub(super) peer: IpAddr,
    pub(super) tls: bool,
    /// Whether the forwarding fields of the client are believed.
    pub(super) is_trusted: bool,
    pub(super) service: &'r Service,
    /// The version of HTTP that the request came over, as `Via` has it.
    pub(super) version: &'r str,
    /// The trace and the id that the upstream gets instead of the fields of the client.
    pub(super) made: Made,
}

/// Which fields a trusted peer has sent already, or that are continued.
#[derive(Debug, Default)]
struct SentFields {
    addresses: bool,
    forwarded: bool,
    via: bool,
    proto: bool,
    host: bool,
    real_ip: bool,
    cookie: bool,
}

impl Forwarded<'_> {
    /// Writes the head; `false` if the proxy path has to forward the request. `out` is not
    /// complete then.
    pub(super) fn write(
        &self,
        head: &[u8],
        headers: &RequestHeaders<'_>,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some((target, fields)) = split(head, headers.method) else {
            return false;
        };
        out.extend_from_slice(headers.method.as_bytes());
        out.push(b' ');
        out.extend_from_slice(target);
        out.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        match self.upstream.host_header {
            HostHeader::Upstream => write_text(out, format_args!("{}", self.upstream.authority())),
            HostHeader::Preserve => self.write_host(out),
        }
        out.extend_from_slice(b"\r\n");
        let mut sent = SentFields::default();
        for (name, value) in lines(fields) {
            match self.keeps(name, value, &mut sent) {
                Some(true) => write_field(out, name, value),
                Some(false) => {}
                None => return false,
            }
        }
        self.write_own(fields, &sent, out);
        out.extend_from_slice(b"\r\n");
        true
    }

    /// Returns whether a field is forwarded as it is; `None` if the proxy path has to decide.
    fn keeps(&self, name: &[u8], value: &[u8], sent: &mut SentFields) -> Option<bool> {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        // Some servers read `_` as `-`.
        if memchr::memchr(b'_', name).is_some() {
            return None;
        }
        let is_kept = match name.len() {
            3 if is("via") => {
                if forward::names_us(value, self.service.domain.as_str()) {
                    return None;
                }
                sent.via = true;
                false
            }
            5 if is("proxy") => false,
            // HTTP/1.1 servers read the first only; the proxy path joins them.
            6 if is("cookie") => {
                if std::mem::replace(&mut sent.cookie, true) {
                    return None;
                }
                true
            }
            _ if is_dropped(name) => false,
            _ if self.replaces(name) => false,
            _ if !forward::is_claim(name) => true,
            _ if !self.is_trusted => false,
            15 if is("x-forwarded-for") => {
                sent.addresses = true;
                false
            }
            9 if is("forwarded") => {
                sent.forwarded = true;
                false
            }
            17 if is("x-forwarded-proto") => {
                sent.proto = true;
                true
            }
            16 if is("x-forwarded-host") => {
                sent.host = true;
                true
            }
            9 if is("x-real-ip") => {
                sent.real_ip = true;
                true
            }
            _ => true,
        };
        Some(is_kept)
    }

    /// Returns whether a field is written anew.
    fn replaces(&self, name: &[u8]) -> bool {
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        match name.len() {
            10 => self.made.trace.is_some() && is("tracestate"),
            11 => self.made.trace.is_some() && is("traceparent"),
            12 => self.made.request_id.is_some() && is("x-request-id"),
            _ => false,
        }
    }

    /// Writes our own fields; those that are lists continue what is there.
    fn write_own(&self, fields: &[u8], sent: &SentFields, out: &mut Vec<u8>) {
        let peer = self.peer.to_canonical();
        let proto = if self.tls { "https" } else { "http" };
        let list = |out: &mut Vec<u8>, name: &str, is_continued: bool| {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            let lines = lines(fields).filter(|_| is_continued);
            for (_, value) in lines.filter(|(field, _)| field.eq_ignore_ascii_case(name.as_bytes()))
            {
                out.extend_from_slice(value);
                out.extend_from_slice(b", ");
            }
        };
        list(out, "X-Forwarded-For", sent.addresses);
        write_address(out, peer);
        out.extend_from_slice(b"\r\n");
        list(out, "Forwarded", sent.forwarded);
        // RFC 7239 §6: an IPv6 address is quoted and in brackets.
        let (before, after): (&[u8], &[u8]) = match peer {
            IpAddr::V4(_) => (b"for=", b";host=\""),
            IpAddr::V6(_) => (b"for=\"[", b"]\";host=\""),
        };
        out.extend_from_slice(before);
        write_address(out, peer);
        out.extend_from_slice(after);
        self.write_host(out);
        out.extend_from_slice(b"\";proto=");
        out.extend_from_slice(proto.as_bytes());
        out.extend_from_slice(b"\r\n");
        list(out, "Via", sent.via);
        out.extend_from_slice(self.version.as_bytes());
        out.push(b' ');
        out.extend_from_slice(self.service.domain.as_str().as_bytes());
        out.extend_from_slice(b"\r\n");
        // A trusted load balancer terminated TLS and knows the host that the client requested.
        if !sent.proto {
            write_field(out, b"X-Forwarded-Proto", proto.as_bytes());
        }
        if !sent.host {
            out.extend_from_slice(b"X-Forwarded-Host: ");
            self.write_host(out);
            out.extend_from_slice(b"\r\n");
        }
        if !sent.real_ip {
            out.extend_from_slice(b"X-Real-IP: ");
            write_address(out, peer);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(trace) = self.made.trace {
            out.extend_from_slice(b"traceparent: ");
            trace.write(out);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(id) = self.made.request_id {
            out.extend_from_slice(b"X-Request-Id: ");
            id.write(out);
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Upstreams compare hosts byte by byte: they get one spelling, and no port but our own.
    fn write_host(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.host.as_bytes());
        if self.service.port != 0 {
            out.push(b':');
            write_number(out, self.service.port.into());
        }
    }
}

fn is_dropped(name: &[u8]) -> bool {
    let is =
        |known: &&str| known.len() == name.len() && known.as_bytes().eq_ignore_ascii_case(name);
    DROPPED.iter().any(is)
}

fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

fn write_text(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a Vec takes every byte");
}

/// Splits a head into the target of the request and the field lines.
pub(super) fn split<'h>(head: &'h [u8], method: &str) -> Option<(&'h [u8], &'h [u8])> {
    let line = memchr::memchr(b'\n', head).map_or(0, |end| end + 1);
    let (line, fields) = head.split_at(line);
    let target = line.strip_suffix(b" HTTP/1.1\r\n")?;
    Some((target.get(method.len() + 1..)?, fields))
}

/// Walks over the fields of a head.
pub(super) fn lines(fields: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = fields;
    std::iter::from_fn(move || {
        let end = memchr::memchr(b'\n', rest)?;
        let (line, after) = rest.split_at(end + 1);
        rest = after;
        // The empty line at the end has no colon.
        let colon = memchr::memchr(b':', line)?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::Limits;
    use crate::gateway::head::Head;
    use crate::response::trace::{RequestId, TraceContext};
    use crate::site::{Scheme, UpstreamHttp};

    /// Returns what the upstream gets; `None` if the proxy path has to forward the request.
    fn forwarded(fields: &str, peer: &str, is_trusted: bool) -> Option<String> {
        traced(fields, peer, is_trusted, Made::default())
    }

    /// Returns the same with this trace and id.
    fn traced(fields: &str, peer: &str, is_trusted: bool, made: Made) -> Option<String> {
        let upstream = Upstream {
            http: UpstreamHttp::One,
            ..Upstream::new(Scheme::Http, "origin.test", 8080)
        };
        let service = Service::default();
        let forwarded = Forwarded {
            upstream: &upstream,
            host: "docs.acme.test",
            peer: peer.parse().unwrap(),
            tls: true,
            is_trusted,
            service: &service,
            version: "1.1",
            made,
        };
        let head = format!("GET /a?b=%20 HTTP/1.1\r\nHost: docs.acme.test\r\n{fields}\r\n");
        let parsed = Head::parse(head.as_bytes(), &Limits::default()).unwrap();
        let mut out = Vec::new();
        forwarded
            .write(head.as_bytes(), &parsed.headers, &mut out)
            .then(|| String::from_utf8(out).unwrap())
    }

    fn host() -> String {
        match Service::default().port {
            0 => "docs.acme.test".to_owned(),
            port => format!("docs.acme.test:{port}"),
        }
    }

    #[test]
    fn fields_of_the_connection_and_claims_are_removed_and_ours_are_added() {
        let fields = "Accept: a\r\nConnection: keep-alive\r\nX-Forwarded-For: 1.2.3.4\r\n\
            X-FORWARDED-Ssl: on\r\nProxy: x\r\nVia: 1.0 fred\r\nKeep-Alive: a\r\nX-Empty:\r\n\
            proxy-authorization: b\r\nX-Own:  a b \t\r\n";
        let (host, domain) = (host(), Service::default().domain);
        let expected = format!(
            "GET /a?b=%20 HTTP/1.1\r\nHost: {host}\r\nAccept: a\r\nX-Empty: \r\nX-Own: a b\r\n\
             X-Forwarded-For: 192.0.2.7\r\n\
             Forwarded: for=192.0.2.7;host=\"{host}\";proto=https\r\n\
             Via: 1.0 fred, 1.1 {}\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: {host}\r\n\
             X-Real-IP: 192.0.2.7\r\n\r\n",
            domain.as_str()
        );
        let written = forwarded(fields, "::ffff:192.0.2.7", false).unwrap();
        assert_eq!(written, expected);
    }

    #[test]
    fn fields_of_a_trusted_peer_are_continued() {
        let fields = "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 2.3.4.5\r\nX-Real-IP: 1.2.3.4\r\n\
            Forwarded: for=1.2.3.4\r\nX-Forwarded-Proto: http\r\nX-Client-IP: 1.2.3.4\r\n";
        let written = forwarded(fields, "2001:db8::1", true).unwrap();
        let host = host();
        for line in [
            "X-Forwarded-For: 1.2.3.4, 2.3.4.5, 2001:db8::1",
            &format!("Forwarded: for=1.2.3.4, for=\"[2001:db8::1]\";host=\"{host}\";proto=https"),
            "X-Real-IP: 1.2.3.4",
            "X-Client-IP: 1.2.3.4",
            "X-Forwarded-Proto: http",
        ] {
            assert!(written.contains(&format!("\r\n{line}\r\n")), "{written}");
        }
        assert_eq!(written.matches("X-Forwarded-For").count(), 1);
        assert_eq!(written.matches("X-Real-IP").count(), 1);
    }

    #[test]
    fn what_the_proxy_path_has_to_decide_is_left_to_it() {
        let ours = Service::default().domain;
        let via = format!("Via: 1.1 a, 1.1 {}\r\n", ours.as_str());
        for fields in ["X_Own: a\r\n", "Cookie: a\r\nCookie: b\r\n", &via] {
            assert_eq!(forwarded(fields, "192.0.2.7", false), None, "{fields}");
        }
    }

    #[test]
    fn each_field_of_a_trusted_peer_is_sent_once() {
        let host = host();
        let ours = forwarded("", "192.0.2.7", true).unwrap();
        let claims = "X-Forwarded-Proto: http\r\nX-Forwarded-Host: a.test\r\nX-Real-IP: 1.2.3.4\r\n\
            X-Forwarded-For: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\nVia: 1.0 fred\r\n";
        let trusted = forwarded(claims, "192.0.2.7", true).unwrap();
        let names = [
            "X-Forwarded-Proto",
            "X-Forwarded-Host",
            "X-Real-IP",
            "X-Forwarded-For",
            "Forwarded",
            "Via",
        ];
        for name in names {
            for written in [&ours, &trusted] {
                let count = written.matches(&format!("\r\n{name}: ")).count();
                assert_eq!(count, 1, "{name}: {written}");
            }
        }
        let line = |text: &str| format!("\r\n{text}\r\n");
        for (line_of_ours, line_of_peer) in [
            ("X-Forwarded-Proto: https", "X-Forwarded-Proto: http"),
            (
                &*format!("X-Forwarded-Host: {host}"),
                "X-Forwarded-Host: a.test",
            ),
            ("X-Real-IP: 192.0.2.7", "X-Real-IP: 1.2.3.4"),
            (
                "X-Forwarded-For: 192.0.2.7",
                "X-Forwarded-For: 1.2.3.4, 192.0.2.7",
            ),
        ] {
            assert!(ours.contains(&line(line_of_ours)), "{ours}");
            assert!(trusted.contains(&line(line_of_peer)), "{trusted}");
        }
    }

    #[test]
    fn other_fields_with_the_length_of_a_special_one_stay() {
        let fields = "abc: 1\r\nabcde: 2\r\nabcdef: 3\r\nabcdef: 4\r\nabcdefghi: 5\r\n\
            abcdefghij: 6\r\nabcdefghijk: 7\r\nabcdefghijkl: 8\r\nabcdefghijklmno: 9\r\n\
            abcdefghijklmnop: 10\r\nabcdefghijklmnopq: 11\r\n";
        let made = Made {
            trace: Some(TraceContext::random()),
            request_id: Some(RequestId::of(None)),
        };
        for is_trusted in [false, true] {
            let written = traced(fields, "192.0.2.7", is_trusted, made).unwrap();
            assert!(written.contains(fields), "{written}");
        }
    }

    #[test]
    fn the_fields_of_a_trace_are_replaced_only_where_they_have_to_be() {
        let fields = "traceparent: a\r\ntracestate: b\r\nX-Request-Id: c\r\n";
        let (context, made_id) = (TraceContext::random(), RequestId::of(None));
        let text = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut text = Vec::new();
            write(&mut text);
            String::from_utf8(text).unwrap()
        };
        let parent = format!("traceparent: {}\r\n", text(&|out| context.write(out)));
        let id = format!("X-Request-Id: {}\r\n", text(&|out| made_id.write(out)));
        for (is_new, sets_request_id) in
            [(false, false), (false, true), (true, false), (true, true)]
        {
            let made = Made {
                trace: is_new.then_some(context),
                request_id: sets_request_id.then_some(made_id),
            };
            let written = traced(fields, "192.0.2.7", false, made).unwrap();
            for field in ["traceparent: a\r\n", "tracestate: b\r\n"] {
                assert_eq!(written.contains(field), !is_new, "{written}");
            }
            assert_eq!(written.contains(&parent), is_new, "{written}");
            assert_eq!(written.contains("X-Request-Id: c\r\n"), !sets_request_id);
            assert_eq!(written.contains(&id), sets_request_id, "{written}");
        }
        let untraced = forwarded(fields, "192.0.2.7", false).unwrap();
        assert!(untraced.contains(fields), "{untraced}");
    }

    #[test]
    fn other_claims_of_a_trusted_peer_stay_and_those_of_a_client_are_removed() {
        // They are as long as the claims that are continued.
        let claims = "X-Forwarded-Ssl: on\r\nClient-IP: 1.2.3.4\r\nCF-Connecting-IP: 1.2.3.4\r\n";
        for is_trusted in [false, true] {
            let written = forwarded(claims, "192.0.2.7", is_trusted).unwrap();
            assert_eq!(written.contains(claims), is_trusted, "{written}");
            assert!(is_trusted || !written.contains("1.2.3.4"), "{written}");
        }
    }
}
