//! Messages over HTTP/2: one that has wholly arrived is answered without pingora, any other is
//! answered too.

use bytes::Bytes;
use serde_json::{Value, json};

use super::documentation;
use crate::certificates::Authority;
use crate::edge::{Edge, Setup};
use crate::http2::{Client, Exchange, receive};
use crate::presets::DOMAIN;
use crate::tls::encrypted;

const PATH: &str = "/guides/start";

fn serving(authority: &Authority, fast_path: bool) -> Edge {
    let edge = encrypted(authority, Setup::new())
        .conf("connections", &format!("{{ fast_path: {fast_path} }}"))
        .conf("clients", "{ mcp_requests_per_second: 0 }")
        .acme("")
        .start();
    edge.publish("acme", &documentation());
    edge
}

fn message(padding: usize) -> String {
    let message = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "y".repeat(padding)},
    });
    message.to_string()
}

/// Begins to send a message of this length.
async fn begin(client: &mut Client, length: usize) -> Exchange {
    let request = http::Request::post(format!("https://{DOMAIN}/mcp"))
        .header("Content-Type", "application/json")
        .header("Content-Length", length)
        .body(())
        .unwrap();
    client.begin(request, false).await.unwrap()
}

/// Sends a message in pieces; the gateway has each piece before the next one is sent.
async fn ask(client: &mut Client, pieces: &[&str]) -> Value {
    let length = pieces.iter().map(|piece| piece.len()).sum();
    let mut exchange = begin(client, length).await;
    for (nth, piece) in pieces.iter().enumerate() {
        if nth > 0 {
            // Frames of a connection are read in their order.
            client.get(DOMAIN, PATH).await.unwrap();
        }
        let piece = Bytes::copy_from_slice(piece.as_bytes());
        exchange
            .body
            .send_data(piece, nth + 1 == pieces.len())
            .unwrap();
    }
    let response = receive(exchange.response).await.unwrap();
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()
}

fn taken(edge: &Edge) -> f64 {
    edge.metric("gateway_request_duration_seconds_count{route=\"fast_path\"}")
}

#[test]
fn a_message_over_http_2_that_has_arrived_is_answered_without_pingora() {
    let authority = Authority::new();
    let [fast, proxy] = [true, false].map(|fast_path| serving(&authority, fast_path));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = async |edge: &Edge| {
            Client::open(edge.https.unwrap(), DOMAIN, authority.client(&["h2"])).await
        };
        let (mut first, mut second) = (client(&fast).await, client(&proxy).await);
        let expected = ask(&mut second, &[&message(0)]).await;
        assert_eq!(expected["result"]["tools"][0]["name"], "search");
        // The head and the message leave in one write.
        const COUNT: u32 = 40;
        for _ in 0..COUNT {
            assert_eq!(ask(&mut first, &[&message(0)]).await, expected);
        }
        let at_once = taken(&fast);
        assert!(at_once >= f64::from(COUNT / 2), "{at_once}");
        // As long as the fast path reads, and longer.
        for padding in [16_200, 16_400, 60_000] {
            assert_eq!(ask(&mut first, &[&message(padding)]).await, expected);
        }
        // Messages that come later than their head, and in pieces. The pages between are on the
        // fast path.
        let text = message(100);
        let (start, end) = text.split_at(50);
        for pieces in [&["", &text][..], &[start, end], &[start, "", end]] {
            assert_eq!(ask(&mut first, pieces).await, expected, "{pieces:?}");
            assert_eq!(ask(&mut second, pieces).await, expected, "{pieces:?}");
        }
        // A message that its client gives up, and one that is too long.
        let mut dropped = begin(&mut first, 100).await;
        dropped
            .body
            .send_data(Bytes::from_static(b"{"), false)
            .unwrap();
        dropped.body.send_reset(h2::Reason::CANCEL);
        drop(dropped);
        let long = begin(&mut first, 70_000).await;
        let response = receive(long.response).await.unwrap();
        assert_eq!(response.status, 413);
        assert_eq!(ask(&mut first, &[&text]).await, expected);
    });
    assert!(taken(&proxy) < 0.5);
}
