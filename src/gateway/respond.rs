//! Writing a [`Response`] to a pingora session.

use http::Version;
use pingora::proxy::Session;
use pingora::{Error, Result};

use super::request::logged;
use crate::response::{PIECE_BYTES, Response};

/// Writes a response to the client; with HTTP/1.1 pingora adds `Date` and `Connection`, with
/// HTTP/2 `Date`.
///
/// The content is in memory: files are sent without pingora
/// ([`FileResponse`](super::file_response::FileResponse)).
pub(super) async fn write(session: &mut Session, response: &Response) -> Result<()> {
    let content = logged(session.req_header()).content();
    let length = response.body_bytes(content);
    let mut body = response.body.memory().cloned().unwrap_or_default();
    body.truncate(length);
    let version: Version = session.req_header().version;
    let header = Box::new(response.response_header(version));
    let written = session.write_response_header(header, body.is_empty()).await;
    written.map_err(Error::into_down)?;
    while !body.is_empty() {
        let piece = body.split_to(body.len().min(PIECE_BYTES));
        let written = session.write_response_body(Some(piece), body.is_empty());
        // The client has closed the connection or the stream, or is too slow.
        written.await.map_err(Error::into_down)?;
    }
    Ok(())
}
