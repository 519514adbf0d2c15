//! Writing a [`Response`] to a pingora session.

use http::Version;
use pingora::proxy::Session;
use pingora::{Error, ErrorType, Result};

use super::reads::Reads;
use super::request::logged;
use crate::response::{Problem, Response};

/// Writes a response to the client; with HTTP/1.1 pingora adds `Date` and `Connection`, with
/// HTTP/2 `Date`.
///
/// A file is opened before the header is written, so that a file that cannot be read is a 503.
/// The next piece is read when the client has taken the previous piece.
pub(super) async fn write(session: &mut Session, response: &Response, reads: &Reads) -> Result<()> {
    let content = logged(session.req_header()).content();
    if response.body_bytes(content) == 0 {
        return write_header(session, response, true).await;
    }
    let opened = reads.open(&response.body).await;
    let mut sending = match opened {
        Ok(sending) => {
            write_header(session, response, false).await?;
            sending
        }
        Err(error) => {
            log::error!(target: "origin", "read a file of the release: {error}");
            let problem = Problem::new(503, "this file cannot be read at the moment").response();
            write_header(session, &problem, false).await?;
            reads.open(&problem.body).await.map_err(unread)?
        }
    };
    while !sending.is_done() {
        let piece = reads.next(&mut sending).await.map_err(unread)?;
        let written = session.write_response_body(Some(piece), sending.is_done());
        // The client has closed the connection or the stream, or is too slow.
        written.await.map_err(Error::into_down)?;
    }
    Ok(())
}

async fn write_header(session: &mut Session, response: &Response, is_all: bool) -> Result<()> {
    let version: Version = session.req_header().version;
    let header = Box::new(response.response_header(version));
    let written = session.write_response_header(header, is_all).await;
    written.map_err(Error::into_down)
}

fn unread(error: std::io::Error) -> Box<Error> {
    Error::because(
        ErrorType::FileReadError,
        "read a file of the release",
        error,
    )
}
