//! The HTTP client of the object store: `ureq`, as for all other requests of this program.

use std::io;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use ureq::Agent;

use crate::source::remote::client_settings;

/// How many connections are kept for further requests.
const CONNECTIONS_IDLE_MAX: usize = 32;
/// How long a connection may take, unless the options say less.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long a request may take beside the transfer of its bodies.
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// How long the transfer of one body may take.
const BODY_TIME: Duration = Duration::from_secs(300);

/// Makes clients: one for the objects, and others for the credentials of the machine. The servers
/// of metadata have no TLS, so the options of each client say what it may do.
#[derive(Debug)]
pub(super) struct Connector;

/// The client.
#[derive(Debug)]
struct Client(Agent);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let allow_http = options.get_config_value(&ClientConfigKey::AllowHttp);
        let settings = client_settings("store")
            .https_only(allow_http.as_deref() != Some("true"))
            .timeout_connect(Some(connect_time(options)))
            .timeout_recv_response(Some(ANSWER_TIME))
            .timeout_send_body(Some(BODY_TIME))
            .timeout_recv_body(Some(BODY_TIME))
            .max_idle_connections(CONNECTIONS_IDLE_MAX)
            .max_idle_connections_per_host(CONNECTIONS_IDLE_MAX)
            .build();
        Ok(HttpClient::new(Client(settings.new_agent())))
    }
}

/// Returns how long a connection may take. The text of the options is `1s`.
fn connect_time(options: &ClientOptions) -> Duration {
    let text = options.get_config_value(&ClientConfigKey::ConnectTimeout);
    let time = text.and_then(|text| humantime::parse_duration(&text).ok());
    time.map_or(CONNECT_TIME, |time| time.min(CONNECT_TIME))
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let agent = self.0.clone();
        let call = move || -> Result<_, ureq::Error> {
            // Those without a body have no content length either.
            let response = match body.is_empty() && parts.method != http::Method::PUT {
                true => agent.run(http::Request::from_parts(parts, ()))?,
                false => agent.run(http::Request::from_parts(parts, &body[..]))?,
            };
            let (parts, body) = response.into_parts();
            let body = body.into_with_config().limit(u64::MAX).read_to_vec()?;
            Ok((parts, body))
        };
        let answer = tokio::task::spawn_blocking(call).await;
        let answer = answer.map_err(|panic| HttpError::new(HttpErrorKind::Unknown, panic))?;
        let (parts, body) = answer.map_err(failed)?;
        Ok(http::Response::from_parts(parts, body.into()))
    }
}

/// Says whether the request may be repeated.
fn failed(error: ureq::Error) -> HttpError {
    let kind = match &error {
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => HttpErrorKind::Connect,
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            HttpErrorKind::Connect
        }
        ureq::Error::Io(_) | ureq::Error::Protocol(_) => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_say_how_long_a_connection_may_take() {
        let options = ClientOptions::new();
        let second = options.clone().with_connect_timeout(Duration::from_secs(1));
        assert_eq!(connect_time(&second), Duration::from_secs(1));
        let hour = options.with_connect_timeout(Duration::from_secs(3600));
        assert_eq!(connect_time(&hour), CONNECT_TIME);
    }
}
