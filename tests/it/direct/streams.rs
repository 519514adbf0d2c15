//! Streams of HTTP/2 on both paths: generated requests go over the direct path and the proxy path,
//! and the requests at the upstream and the answers at the client must be equal.

use std::cell::RefCell;

use tokio::runtime::{Builder, Runtime};

use super::*;
use crate::certificates::Authority;
use crate::http2::Client;
use crate::tls::encrypted;

/// What a client of HTTP/2 does not send (RFC 9113 §8.2.2).
const CONNECTION_FIELDS: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "upgrade",
    "transfer-encoding",
];

/// The answer, as a client of HTTP/2 gets it; `None` if the stream was reset.
type Answered = Option<(u16, Vec<(String, String)>, Vec<u8>)>;

/// A client of one gateway.
struct Streams<'g> {
    edge: &'g Edge,
    authority: &'g Authority,
    runtime: &'g Runtime,
    client: RefCell<Option<Client>>,
}

impl Streams<'_> {
    fn send(&self, case: &Case, n: usize, gateway: usize) -> Answered {
        let target = format!("https://{DOMAIN}/{n}?gateway={gateway}{}", case.query);
        let mut request = http::Request::builder().method(case.method).uri(target);
        for field in &case.fields {
            let (name, value) = field.split_once(':').unwrap();
            let name = name.to_lowercase();
            let value = http::HeaderValue::from_bytes(&latin1(value.trim()));
            if let (false, Ok(value)) = (CONNECTION_FIELDS.contains(&&*name), value) {
                request = request.header(name, value);
            }
        }
        let request = request.body(()).unwrap();
        self.runtime.block_on(async {
            let open = self
                .client
                .take()
                .filter(|client| !client.end.is_finished());
            let mut client = match open {
                Some(client) => client,
                None => {
                    let config = self.authority.client(&["h2"]);
                    Client::open(self.edge.https.unwrap(), DOMAIN, config).await
                }
            };
            let response = client.request(request).await;
            self.client.replace(Some(client));
            let response = response.ok()?;
            let mut fields = response.fields;
            fields.retain(|(name, _)| name != "date");
            fields.sort();
            Some((response.status, fields, response.body))
        })
    }
}

#[test]
fn streams_get_the_same_on_the_direct_path_and_on_the_proxy_path() {
    let script = Arc::new(Script::default());
    let origin = upstream(&script);
    let authority = Authority::new();
    let setup = encrypted(&authority, Setup::new()).acme(&origin.record());
    let faults = "stream_faults_max: 1000000";
    let setup = setup
        .conf("connections", &format!("{{ {faults} }}"))
        // The ids are random.
        .conf(
            "upstream",
            &format!("{{ create_request_id: false, {LOCAL_UPSTREAMS} }}"),
        );
    let proxied = format!("{{ fast_path: false, {faults} }}");
    let other = encrypted(&authority, setup.beside()).conf("connections", &proxied);
    let gateways = [setup.start(), other.start()];
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let clients = [0, 1].map(|gateway| Streams {
        edge: &gateways[gateway],
        authority: &authority,
        runtime: &runtime,
        client: RefCell::default(),
    });
    let run = runner(cases() / 2).run(&any_case(), |case| {
        let case = Case {
            content: None,
            ..case
        };
        let ([direct, proxy], all) =
            script.observe(&case, |n, gateway| clients[gateway].send(&case, n, gateway));
        // The fields of HTTP/2 have lower-case names.
        let of = |gateway| {
            let (method, query, fields, body) = received(&all, gateway)?;
            let mut fields: Vec<_> = fields.iter().map(|field| field.to_lowercase()).collect();
            fields.sort();
            Some((method, query, fields, body))
        };
        prop_assert_eq!(of(0), of(1));
        if direct.is_some() && proxy.is_some() || !case.may_be_cut_unseen() {
            prop_assert_eq!(direct, proxy);
        }
        Ok(())
    });
    if let Err(failure) = run {
        panic!("{failure}");
    }
    // If the direct path took no stream, nothing was compared.
    let [opened, reused] = used(&gateways[0]);
    assert!(
        opened + reused > f64::from(cases()) / 5.0,
        "{opened} {reused}"
    );
    assert!(reused > f64::from(cases()) / 200.0, "{opened} {reused}");
}
