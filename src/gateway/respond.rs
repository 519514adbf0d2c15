//! Putting an [`Answer`] on a pingora session.

use pingora::Result;
use pingora::proxy::Session;

use crate::answer::Answer;

/// Writes an answer to the client; with HTTP/1.1 pingora adds `Date` and `Connection`, with
/// HTTP/2 `Date`.
pub(super) async fn write(session: &mut Session, answer: &Answer) -> Result<()> {
    let content = super::express::content_of(session.req_header().method.as_str());
    let is_whole = answer.body_bytes(content) == 0;
    session
        .write_response_header(
            Box::new(answer.response_header(session.req_header().version)),
            is_whole,
        )
        .await?;
    if !is_whole {
        session
            .write_response_body(Some(answer.body.clone()), true)
            .await?;
    }
    Ok(())
}
