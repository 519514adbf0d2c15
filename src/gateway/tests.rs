//! Panics in pingora, where no phase of ours can catch them, over real sockets.

use std::net::SocketAddr;

use bytes::Bytes;
use pingora::server::configuration::ServerConf;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::http1::Http1;
use super::testing::gateway;
use super::*;

/// Serves each connection to the returned address, with HTTP/2 if the client knows it before.
async fn serve(gateway: &Arc<Gateway>, is_http2: bool) -> SocketAddr {
    let handler =
        ConnectionHandler::new(Arc::clone(gateway), &Arc::new(ServerConf::default()), None);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let gateway = Arc::clone(gateway);
    tokio::spawn(async move {
        loop {
            let (stream, peer) = listener.accept().await.unwrap();
            let (connection, activity) = testing::connection(&gateway, stream, peer);
            let handler = Arc::clone(&handler);
            tokio::spawn(async move {
                match is_http2 {
                    true => http2::serve(handler, connection, activity).await,
                    false => Http1::new(handler, connection, activity).run().await,
                }
            });
        }
    });
    address
}

/// Sends one request, which panics in a phase, and reads until the connection is closed.
async fn exchange(address: SocketAddr, method: &str, phase: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "{method} /a HTTP/1.1\r\nHost: docs.acme.test\r\nX-Test-Panic: {phase}\r\n\
         Content-Length: 2\r\n\r\nab"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

fn rejected(gateway: &Gateway) -> u64 {
    let text = String::from_utf8(gateway.metrics.to_text()).unwrap();
    let of_500 = |line: &&str| line.starts_with("gateway_requests_total") && line.contains("500");
    let line = text.lines().find(of_500);
    line.map_or(0, |line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
}

#[tokio::test]
async fn a_panic_before_the_response_is_a_500_over_http_1() {
    let gateway = gateway();
    let address = serve(&gateway, false).await;
    let response = exchange(address, "POST", "early_request_filter").await;
    assert!(response.starts_with("HTTP/1.1 500 "), "{response}");
    assert!(response.contains("\r\nConnection: close\r\n"), "{response}");
    let body = response.split_once("\r\n\r\n").unwrap().1;
    let problem: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["detail"], GATEWAY_FAILED);
    let response = exchange(address, "HEAD", "early_request_filter").await;
    assert!(response.starts_with("HTTP/1.1 500 "), "{response}");
    assert!(response.ends_with("\r\n\r\n"), "{response}");
    assert_eq!(rejected(&gateway), 2);
    // The next connection is served.
    let response = exchange(address, "POST", "none").await;
    assert!(response.starts_with("HTTP/1.1 404 "), "{response}");
}

#[tokio::test]
async fn a_panic_after_the_response_adds_nothing_to_it() {
    let gateway = gateway();
    let address = serve(&gateway, false).await;
    let response = exchange(address, "POST", "logging").await;
    assert!(response.starts_with("HTTP/1.1 404 "), "{response}");
    assert_eq!(response.matches("HTTP/1.1").count(), 1, "{response}");
    assert_eq!(rejected(&gateway), 0);
}

#[tokio::test]
async fn a_panic_over_http_2_is_a_500_and_the_other_streams_go_on() {
    let gateway = gateway();
    let address = serve(&gateway, true).await;
    let stream = TcpStream::connect(address).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    for (phase, status) in [
        ("early_request_filter", 500),
        // No site has this host.
        ("none", 421),
        ("logging", 421),
        ("early_request_filter", 500),
    ] {
        let request = http::Request::post("http://docs.acme.test/a")
            .header("x-test-panic", phase)
            .body(())
            .unwrap();
        let mut client = client.clone().ready().await.unwrap();
        let (response, mut body) = client.send_request(request, false).unwrap();
        body.send_data(Bytes::from_static(b"ab"), true).unwrap();
        let (head, mut content) = response.await.unwrap().into_parts();
        assert_eq!(head.status, status, "{phase}");
        let mut length = 0;
        while let Some(data) = content.data().await {
            length += data.unwrap().len();
        }
        let announced = head.headers["content-length"].to_str().unwrap();
        assert_eq!(announced, length.to_string(), "{phase}");
    }
    assert_eq!(rejected(&gateway), 2);
}
