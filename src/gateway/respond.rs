//! Writing a [`Response`] to a pingora session.

use pingora::Result;
use pingora::proxy::Session;

use super::request::logged;
use crate::response::Response;

/// Writes a response to the client; with HTTP/1.1 pingora adds `Date` and `Connection`, with
/// HTTP/2 `Date`.
pub(super) async fn write(session: &mut Session, response: &Response) -> Result<()> {
    let content = logged(session.req_header()).content();
    let is_whole = response.body_bytes(content) == 0;
    session
        .write_response_header(
            Box::new(response.response_header(session.req_header().version)),
            is_whole,
        )
        .await?;
    if !is_whole {
        session
            .write_response_body(Some(response.body.clone()), true)
            .await?;
    }
    Ok(())
}
