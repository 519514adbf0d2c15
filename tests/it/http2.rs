//! HTTP/2 for tests: a client of the gateway, and an origin behind it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use h2::client::SendRequest;
use h2::{RecvStream, SendStream};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::http::{Response, TIMEOUT};

/// A connection to a gateway.
#[derive(Debug)]
pub struct Client {
    pub send: SendRequest<Bytes>,
    /// How the connection ended.
    pub end: JoinHandle<Result<(), h2::Error>>,
}

/// A request that has been sent at least in part.
pub struct Exchange {
    pub response: h2::client::ResponseFuture,
    pub body: SendStream<Bytes>,
}

impl Client {
    pub async fn open(address: SocketAddr, name: &str, config: Arc<ClientConfig>) -> Self {
        Self::open_with(address, name, config, h2::client::Builder::new()).await
    }

    pub async fn open_with(
        address: SocketAddr,
        name: &str,
        config: Arc<ClientConfig>,
        settings: h2::client::Builder,
    ) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let stream = TlsConnector::from(config)
            .connect(name, stream)
            .await
            .unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let (send, connection) = settings.handshake(stream).await.unwrap();
        Self {
            send,
            end: tokio::spawn(connection),
        }
    }

    /// Waits until the gateway has closed the connection in an orderly way.
    pub async fn ended(self) {
        let ended = tokio::time::timeout(TIMEOUT, self.end).await;
        match ended.expect("closed in time").unwrap() {
            Ok(()) => {}
            // Our last frame came after the gateway had finished and closed the connection.
            Err(error) => assert!(error.is_io(), "{error}"),
        }
    }

    /// Begins a request; its body is still to be sent unless `is_whole`.
    pub async fn begin(
        &mut self,
        request: http::Request<()>,
        is_whole: bool,
    ) -> Result<Exchange, h2::Error> {
        self.send = self.send.clone().ready().await?;
        let (response, body) = self.send.send_request(request, is_whole)?;
        Ok(Exchange { response, body })
    }

    pub async fn request(&mut self, request: http::Request<()>) -> Result<Response, h2::Error> {
        let exchange = self.begin(request, true).await?;
        receive(exchange.response).await
    }

    pub async fn get(&mut self, host: &str, path: &str) -> Result<Response, h2::Error> {
        self.request(get(host, path)).await
    }
}

/// Makes a `GET` request.
pub fn get(host: &str, path: &str) -> http::Request<()> {
    http::Request::get(format!("https://{host}{path}"))
        .body(())
        .unwrap()
}

/// Reads a complete response.
pub async fn receive(response: h2::client::ResponseFuture) -> Result<Response, h2::Error> {
    let all = async {
        let (head, mut body) = response.await?.into_parts();
        let fields = head.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        });
        Ok(Response {
            status: head.status.as_u16(),
            fields: fields.collect(),
            body: gather(&mut body).await?,
        })
    };
    tokio::time::timeout(TIMEOUT, all)
        .await
        .expect("a response in time")
}

async fn gather(body: &mut RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut bytes = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece?;
        bytes.extend_from_slice(&piece);
        body.flow_control().release_capacity(piece.len())?;
    }
    Ok(bytes)
}

/// A site's own server that speaks only HTTP/2. Its responses hold the method, the path and the
/// length of the body of the request.
#[derive(Debug)]
pub struct Origin {
    pub address: SocketAddr,
    received: Arc<Mutex<Vec<http::Request<Vec<u8>>>>>,
}

impl Origin {
    /// Starts one, with prior knowledge or behind TLS. It lives as long as the runtime.
    pub async fn start(tls: Option<Arc<ServerConfig>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Arc::new(Mutex::default());
        tokio::spawn({
            let received = Arc::clone(&received);
            async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let received = Arc::clone(&received);
                    match tls.clone().map(TlsAcceptor::from) {
                        Some(tls) => tokio::spawn(async move {
                            // The handshake fails if the client does not trust us.
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, &received).await;
                            }
                        }),
                        None => tokio::spawn(async move { serve(stream, &received).await }),
                    };
                }
            }
        });
        Self { address, received }
    }

    pub fn received(&self) -> Vec<http::Request<Vec<u8>>> {
        self.received.lock().unwrap().clone()
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    received: &Mutex<Vec<http::Request<Vec<u8>>>>,
) {
    let Ok(mut connection) = h2::server::handshake(stream).await else {
        return;
    };
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (head, mut body) = request.into_parts();
        let answer = async {
            let body = gather(&mut body).await.unwrap_or_default();
            let page = format!("{} {} {}", head.method, head.uri.path(), body.len());
            received
                .lock()
                .unwrap()
                .push(http::Request::from_parts(head, body));
            let mut stream = respond.send_response(http::Response::new(()), false)?;
            stream.send_data(page.into(), true)
        };
        // The connection must be polled; otherwise the body does not arrive.
        tokio::select! {
            answered = answer => if answered.is_err() { return },
            _ = std::future::poll_fn(|cx| connection.poll_closed(cx)) => return,
        }
    }
}
