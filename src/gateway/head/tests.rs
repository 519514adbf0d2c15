//! Heads that are accepted, and heads that are rejected, each with the section of its rule.

use super::*;

fn parse(head: &str) -> Result<Head<'_>, Rejection> {
    Head::parse(head.as_bytes(), &Limits::default())
}

#[track_caller]
fn rejected(head: &str, status: u16) {
    match parse(head) {
        Ok(head) => panic!("accepted: {head:?}"),
        Err(rejection) => assert_eq!(rejection.status, status, "{head:?}: {}", rejection.detail),
    }
}

/// A request with these fields after the request line and `Host`.
fn with(fields: &str) -> String {
    format!("GET /skill.md HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

#[test]
fn a_plain_request_is_read_into_its_parts() {
    let head = "GET /a/b?c=d HTTP/1.1\r\nHost: docs.acme.com:8080\r\nAccept-Encoding: br\r\nIf-None-Match: \"x\"\r\nUser-Agent: node\r\n\r\n";
    let head = parse(head).unwrap();
    assert_eq!(
        (head.headers.method, head.headers.path, head.headers.host),
        ("GET", "/a/b", "docs.acme.com:8080")
    );
    assert_eq!(
        (
            head.form,
            head.framing,
            head.keep_alive,
            head.headers.user_agent
        ),
        (Form::Origin, Framing::None, true, "node")
    );
    assert_eq!(head.headers.query, Some("c=d"));
    assert_eq!(head.headers.accept_encoding, Some(&b"br"[..]));
    assert_eq!(head.headers.conditions.if_none_match, Some(&b"\"x\""[..]));
    assert!(head.is_fast_path_form());
}

#[test]
fn rfc_9112_3_2_a_request_has_exactly_one_valid_host() {
    rejected("GET / HTTP/1.1\r\n\r\n", 400);
    rejected("GET / HTTP/1.0\r\n\r\n", 400);
    rejected("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400);
    rejected("GET / HTTP/1.1\r\nHost: \u{e9}\r\n\r\n", 400);
}

#[test]
fn rfc_9112_3_2_2_an_absolute_target_names_the_same_host() {
    let head = "GET HTTP://Docs.acme.com/a?b HTTP/1.1\r\nHost: docs.acme.com\r\n\r\n";
    let head = parse(head).unwrap();
    assert_eq!(
        (head.form, head.headers.path),
        (Form::Absolute(Scheme::Http), "/a")
    );
    assert_eq!(
        parse("GET https://a HTTP/1.1\r\nHost: a\r\n\r\n")
            .unwrap()
            .headers
            .path,
        "/"
    );
    let head = parse("GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!((head.headers.path, head.headers.query), ("/", Some("b")));
    rejected("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    rejected("GET http://user@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    rejected("GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    rejected("GET skill.md HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    rejected("GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    rejected("GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400);
    assert_eq!(
        parse("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").unwrap().form,
        Form::Asterisk
    );
}

#[test]
fn rfc_3986_2_a_target_has_only_url_characters() {
    for target in [
        "/<", "/?>", "/`", "/?\"", "/a#b", "/a\\b", "/\u{e9}", "/a\u{0}b", "/a\u{7f}", "/a b",
    ] {
        rejected(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"), 400);
    }
    assert!(parse("GET /a|b^{c}\"[%00]?|^{}`[] HTTP/1.1\r\nHost: a\r\n\r\n").is_ok());
}

#[test]
fn rfc_9112_2_2_lines_end_in_crlf_and_nothing_else() {
    rejected("GET / HTTP/1.1\nHost: a\r\n\r\n", 400);
    rejected("GET / HTTP/1.1\r\nHost: a\n\r\n", 400);
    rejected("GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400);
}

#[test]
fn rfc_9112_5_fields_are_not_folded_and_have_valid_names_and_values() {
    for field in [
        "X : a\r\n",
        " X: a\r\n",
        "X: a\r\n b\r\n",
        "X\r\n",
        ": a\r\n",
        "X(: a\r\n",
        "X: a\u{0}b\r\n",
        "X: \u{7}\r\n",
    ] {
        rejected(&with(field), 400);
    }
}

#[test]
fn rfc_9112_6_the_length_of_a_request_has_one_meaning() {
    assert_eq!(
        parse(&with("Content-Length: 5\r\n")).unwrap().framing,
        Framing::Length(5)
    );
    assert_eq!(
        parse(&with("Content-Length: 0\r\n")).unwrap().framing,
        Framing::None
    );
    assert_eq!(
        parse(&with("Transfer-Encoding: Chunked\r\n"))
            .unwrap()
            .framing,
        Framing::Chunked
    );
    for fields in [
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: 5 5\r\n",
        "Content-Length:\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ] {
        rejected(&with(fields), 400);
    }
    for coding in [
        "gzip, chunked",
        "gzip",
        "identity",
        "chunked, gzip",
        "",
        "xchunked",
        "\u{b}chunked",
    ] {
        let head = with(&format!("Transfer-Encoding: {coding}\r\n"));
        let status = parse(&head).unwrap_err().status;
        assert!(matches!(status, 400 | 501), "{coding:?}: {status}");
    }
    rejected(
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        400,
    );
}

#[test]
fn rfc_9110_9_3_trace_and_connect_are_not_supported() {
    rejected("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 405);
    rejected("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 405);
    assert!(parse("PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n").is_ok());
}

#[test]
fn rfc_9112_2_3_other_versions_are_not_supported() {
    rejected("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505);
    rejected("PRI * HTTP/2.0\r\n\r\n", 505);
    rejected("GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505);
    rejected("GET / HTTP/11\r\nHost: a\r\n\r\n", 400);
    rejected("GET / http/1.1\r\nHost: a\r\n\r\n", 400);
    rejected("GET /\r\nHost: a\r\n\r\n", 400);
}

#[test]
fn rfc_9110_2_5_a_later_minor_version_is_read_as_http_1_1() {
    for minor in 2..=9 {
        let mut head = format!("GET / HTTP/1.{minor}\r\nHost: a\r\n\r\n").into_bytes();
        assert!(to_known_version(&mut head));
        assert_eq!(head, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for line in [
        "GET / HTTP/1.1",
        "GET / HTTP/2.2",
        "GET / HTTP/1.22",
        "GET /HTTP/1.2",
        "",
    ] {
        let mut head = format!("{line}\r\nHost: a\r\n\r\n").into_bytes();
        assert!(!to_known_version(&mut head), "{line}");
    }
}

#[test]
fn rfc_9110_10_1_1_an_http_1_0_request_expects_nothing() {
    for expectation in ["100-continue", "a-miracle"] {
        let head = format!("GET / HTTP/1.0\r\nHost: a\r\nExpect: {expectation}\r\n\r\n");
        assert!(parse(&head).is_ok(), "{expectation}");
    }
}

#[test]
fn rfc_9110_7_6_1_end_to_end_fields_cannot_be_nominated() {
    for name in [
        "host",
        "Content-Length",
        "transfer-encoding",
        "Authorization",
        "cookie",
    ] {
        rejected(&with(&format!("Connection: close, {name}\r\n")), 400);
    }
}

#[test]
fn each_length_limit_has_its_status() {
    rejected(
        &format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(8 << 10)),
        414,
    );
    rejected(&with(&"X: y\r\n".repeat(100)), 431);
    rejected(&with(&"X: y\r\n".repeat(FIELDS_MAX)), 431);
}

#[test]
fn the_connection_field_decides_persistence() {
    let keep_alive = |head: &str| parse(head).unwrap().keep_alive;
    assert!(!keep_alive(&with("Connection: Close\r\n")));
    assert!(keep_alive(&with("Connection: keep-alive\r\n")));
    assert!(!keep_alive("GET / HTTP/1.0\r\nHost: a\r\n\r\n"));
    assert!(keep_alive(
        "GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n"
    ));
}

#[test]
fn a_field_that_the_fast_path_does_not_read_leads_to_the_proxy_path() {
    for field in [
        "Content-Length: 0",
        "Transfer-Encoding: chunked",
        "TE: trailers",
        "Trailer: x",
        "Expect: 100-continue",
        "Upgrade: websocket",
        "HTTP2-Settings: x",
        "Range: bytes=0-1",
        "If-Range: x",
        "If-Match: *",
        "If-Unmodified-Since: x",
        "If-Modified-Since: x",
        "Connection: upgrade",
        "Connection: keep-alive, x",
        "Accept-Encoding: br\r\nAccept-Encoding: gzip",
        "If-None-Match: \"a\"\r\nIf-None-Match: \"b\"",
    ] {
        let head = with(&format!("{field}\r\n"));
        let head = parse(&head).unwrap();
        assert!(
            !head.is_fast_path_form() || !head.headers.is_simple_get(),
            "{field}"
        );
    }
    for field in ["", "If-None-Match: x\r\nIf-Modified-Since: y\r\n"] {
        let head = with(field);
        let head = parse(&head).unwrap();
        assert!(
            head.is_fast_path_form() && head.headers.is_simple_get(),
            "{field}"
        );
    }
    rejected(&with("Expect: a-miracle\r\n"), 417);
}

#[test]
fn an_invalid_beginning_is_rejected_at_once() {
    let early =
        |bytes: &[u8]| reject_early(bytes, &Limits::default()).map(|rejection| rejection.status);
    assert_eq!(early(b"\x16\x03\x01\x02\x00"), Some(400));
    assert_eq!(early(b"GET / HTTP/1.1\nHost: a\n\n"), Some(400));
    assert_eq!(early(&[b'a'; 9000]), Some(414));
    assert_eq!(
        early(&[b"GET / HTTP/1.1\r\nX: ".as_slice(), &[b'a'; 17000]].concat()),
        Some(431)
    );
    assert_eq!(early(b"GET / HTTP/1.1\r\nHost"), None);
    assert_eq!(early(b""), None);
}

#[test]
fn the_parsable_part_of_a_rejected_request_line_is_logged() {
    assert_eq!(request_line(b"GET /a?secret HTTP/9"), ("GET", "/a"));
    assert_eq!(request_line(b"GET /a#secret HTTP/1.1"), ("GET", "/a"));
    assert_eq!(
        request_line(b"GET http://user:secret@a/b HTTP/1.1"),
        ("GET", "/b")
    );
    assert_eq!(request_line(b"CONNECT user:secret@a:80"), ("CONNECT", ""));
    assert_eq!(request_line(b"\x16\x03\x01"), ("", ""));
    assert_eq!(request_line(b""), ("", ""));
}

#[test]
fn rfc_9112_3_2_1_an_absolute_target_becomes_the_path_it_names() {
    for (head, expected) in [
        (
            "GET http://a.test/b?c HTTP/1.1\r\nHost: a.test\r\n\r\n",
            "GET /b?c HTTP/1.1\r\nHost: a.test\r\n\r\n",
        ),
        ("GET http://a HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"),
        (
            "GET HTTPS://a?b=/c HTTP/1.1\r\n\r\n",
            "GET /?b=/c HTTP/1.1\r\n\r\n",
        ),
        (
            "OPTIONS http://a HTTP/1.1\r\n\r\n",
            "OPTIONS * HTTP/1.1\r\n\r\n",
        ),
        (
            "OPTIONS http://a/ HTTP/1.1\r\n\r\n",
            "OPTIONS / HTTP/1.1\r\n\r\n",
        ),
    ] {
        let mut inbox = BytesMut::from(format!("{head}GET ").as_bytes());
        let length = to_origin_form(&mut inbox, head.len());
        assert_eq!(&inbox[..length], expected.as_bytes());
        assert_eq!(&inbox[length..], b"GET ");
    }
}

#[test]
fn lengths_at_the_limits_are_accepted() {
    let limits = Limits {
        target_bytes_max: 40,
        fields_max: 3,
        head_bytes_max: 200,
        ..Limits::default()
    };
    let status = |head: &str| {
        let read = Head::parse(head.as_bytes(), &limits);
        read.err().map(|rejection| rejection.status)
    };
    let target = |length: usize| {
        let path = "x".repeat(length - 1);
        format!("GET /{path} HTTP/1.1\r\nHost: a\r\n\r\n")
    };
    assert_eq!(
        (status(&target(40)), status(&target(41))),
        (None, Some(414))
    );
    let fields = |count: usize| {
        let more = "X: y\r\n".repeat(count - 1);
        format!("GET / HTTP/1.1\r\nHost: a\r\n{more}\r\n")
    };
    assert_eq!((status(&fields(3)), status(&fields(4))), (None, Some(431)));
    let early = |bytes: Vec<u8>| reject_early(&bytes, &limits).map(|rejection| rejection.status);
    // There is room for a method beside the longest target.
    assert_eq!(early(vec![b'G'; 140]), None);
    assert_eq!(early(vec![b'G'; 141]), Some(414));
    let begun = |length: usize| {
        let mut head = b"GET / HTTP/1.1\r\nX: ".to_vec();
        head.resize(length, b'y');
        head
    };
    assert_eq!((early(begun(200)), early(begun(201))), (None, Some(431)));
}

#[test]
fn bytes_after_the_head_are_an_error() {
    rejected("GET / HTTP/1.1\r\nHost: a\r\n\r\nX", 400);
    rejected("GET / HTTP/1.1\r\nHost: a\r\n", 400);
}

#[test]
fn an_unknown_field_with_the_length_of_a_known_one_is_ignored() {
    let plain = with("");
    let plain = parse(&plain).unwrap();
    for length in 1..=24 {
        for value in ["x", "1", "close, host", "gzip"] {
            let field = format!("{}: {value}\r\nX: y\r\n", "Z".repeat(length));
            let head = with(&field);
            let head = parse(&head).unwrap();
            assert_eq!(
                format!("{:?}", head.headers),
                format!("{:?}", plain.headers),
                "{field}"
            );
            assert_eq!(
                (
                    head.framing,
                    head.keep_alive,
                    head.headers.host,
                    head.is_fast_path_form()
                ),
                (Framing::None, true, "a", plain.is_fast_path_form()),
                "{field}"
            );
        }
    }
}

#[test]
fn a_rejection_names_the_invalid_part_of_a_field() {
    let detail = |head: &str| parse(head).unwrap_err().detail;
    assert!(detail(&with("X Y: z\r\n")).contains("invalid name"));
    assert!(detail(&with("X: \u{1}\r\n")).contains("invalid value"));
}

#[test]
fn a_request_line_is_logged_up_to_its_line_end() {
    for end in ["\r", "\n", "\r\n", " HTTP/1.1\r\n"] {
        let line = format!("GET /a{end}Host: b");
        assert_eq!(request_line(line.as_bytes()), ("GET", "/a"), "{end:?}");
    }
    assert_eq!(request_line(b"CONNECT user@a:80 HTTP/1.1"), ("CONNECT", ""));
    assert_eq!(request_line(b"GET /@a HTTP/1.1"), ("GET", "/@a"));
    assert_eq!(request_line(b"GET a HTTP/1.1"), ("GET", "a"));
}
