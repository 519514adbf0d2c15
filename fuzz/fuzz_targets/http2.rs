//! Any text as the head of an HTTP/2 request.
//!
//! The parts are separated by zero bytes: method, target, host, then fields as `name:value`. A
//! head that is accepted over HTTP/2 is accepted over HTTP/1.1 too, where the same rules hold.

#![no_main]

use libfuzzer_sys::fuzz_target;
use waypost::gateway::Limits;
use waypost::gateway::head::{Head, check_http2};

/// Fields that the HTTP/2 library rejects, or that only HTTP/1.1 has.
const OF_HTTP_1: [&str; 6] = [
    "connection",
    "host",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

fuzz_target!(|data: &[u8]| {
    let mut parts = data.split(|&byte| byte == 0);
    let (Some(method), Some(target), Some(host)) = (parts.next(), parts.next(), parts.next())
    else {
        return;
    };
    let Ok(host) = str::from_utf8(host) else {
        return;
    };
    let Ok(authority) = http::uri::Authority::try_from(host) else {
        return;
    };
    let Ok(path) = http::uri::PathAndQuery::try_from(target) else {
        return;
    };
    // The library has already cut a fragment off (`rules`).
    let target = path.as_str().to_owned();
    let uri = http::Uri::builder().scheme("https").authority(authority);
    let Ok(uri) = uri.path_and_query(path).build() else {
        return;
    };
    let mut request = http::Request::builder().method(method).uri(uri);
    let mut fields = Vec::new();
    for field in parts {
        let Some(colon) = field.iter().position(|&byte| byte == b':') else {
            continue;
        };
        let (name, value) = (&field[..colon], &field[colon + 1..]);
        request = request.header(name, value);
        fields.extend_from_slice(&[name, b": ", value, b"\r\n"].concat());
    }
    let Ok(request) = request.body(()) else {
        return;
    };
    let (head, ()) = request.into_parts();
    let limits = Limits::default();
    if let Err(rejection) = check_http2(&head, &limits) {
        assert_eq!(rejection.response().status, rejection.status);
        return;
    }
    let is_of_http_1 = |name: &http::HeaderName| OF_HTTP_1.contains(&name.as_str());
    if head.headers.keys().any(is_of_http_1) || waypost::site::normalise(host).is_err() {
        return;
    }
    let mut text = format!("{} {target} HTTP/1.1\r\nHost: {host}\r\n", head.method).into_bytes();
    text.extend_from_slice(&fields);
    text.extend_from_slice(b"\r\n");
    // One field more than over HTTP/2: the host.
    if head.headers.len() < limits.fields_max
        && let Err(rejection) = Head::parse(&text, &limits)
    {
        panic!("{rejection:?}: {}", text.escape_ascii());
    }
});
