//! Integration tests: the real binary, real sockets, real files, real clients.
//!
//! There is one binary, so that everything is linked once. It has a module for each promise:
//!
//! | module | promise |
//! |---|---|
//! | `backup` | a lost node is restored, and nothing that it has promised is lost with it |
//! | `balance` | several servers of one site share its requests; if one fails, the others respond |
//! | `acme` | certificates are ordered, renewed and replaced, whatever authorities and disks do |
//! | `browser` | the bundled example, in a browser |
//! | `building` | a release is the same with one thread and with many |
//! | `checked` | what would fail at the start or at the first request is found before |
//! | `clients` | the `skills` tool installs, the A2A SDKs resolve the card |
//! | `deploy` | an update, from a push to what agents fetch |
//! | `description` | every response of the admin API matches its OpenAPI description |
//! | `direct` | the direct path and the proxy path forward the same, whatever an upstream sends |
//! | `discovery` | documents, headers, methods, conditionals, codings, on every host |
//! | `drain` | a gateway that stops finishes every request that it has begun |
//! | `durability` | an acknowledged update survives a kill at any moment |
//! | `endings` | each access line says how its request ended and how long it waited |
//! | `follow` | edges serve what the node that they follow serves, also while it is away |
//! | `formats` | a node that an earlier version wrote goes on |
//! | `full` | an acknowledged update survives a full disk |
//! | `generated` | the generated skill of a site whose authors wrote none |
//! | `git` | repositories over every transport, and rejected repositories |
//! | `heads` | an ambiguous request head is rejected, on both paths |
//! | `both_paths` | the fast path and the proxy path respond the same |
//! | `hostile` | no client, author or other owner can harm anybody else |
//! | `links` | a link that the check accepts works in the HTML, and a link that it warns about does not |
//! | `monitoring` | alerts fire when they must, and name metrics that exist |
//! | `navigation` | the navigation and the diagnostics of `docs.json`, case by case |
//! | `mcp` | agents list, read and call the MCP server of a site |
//! | `models` | models that write skills are asked over TLS, through proxies and in streams |
//! | `numbers` | owners see counts of requests, searches and votes; no personal data is kept |
//! | `operator` | health, metrics, a log line for every request |
//! | `ownership` | the gateway serves a domain only after its owner has proven it; no owner can take the domain of another |
//! | `packages` | what packages contain beside the program |
//! | `pages` | the pages of a site, over HTTP |
//! | `proxy_protocol` | a load balancer names its clients, and nobody else does |
//! | `preview` | a saved file is shown at once, with its diagnostics |
//! | `queue_postgres` | workers on several machines: a killed worker or server loses no acknowledged update |
//! | `publishing` | a kill or a full disk at any step leaves the old or the new release |
//! | `recipe` | the nginx configuration of the documentation works |
//! | `rendering` | pages as HTML and Markdown, case by case; no script of a page runs |
//! | `reference` | the reference pages of the documentation agree with the program |
//! | `references` | the targets of references in comments and pages are in the repository |
//! | `reload` | under load, every response is complete and of one release |
//! | `seeing` | an operator sees the state of a gateway, its heaviest clients, its logs and traces |
//! | `sites_api` | sites and domains that the API and the command line write are served, and no change is lost |
//! | `sites` | site records and releases change while the gateway runs; broken ones change nothing |
//! | `convert` | configurations of Mintlify, Docusaurus and `MkDocs` become a `docs.json` that passes `check` |
//! | `copies` | copies of responses, for the time in which a site's own server fails |
//! | `specifications` | OpenAPI files by URL: which hosts are allowed, and the result when none responds |
//! | `start` | every mistake in the configuration is reported at the start |
//! | `store_documents` | gateways of one database share certificates, challenges, ticket keys, admin keys |
//! | `store_faults` | an object store that fails, hangs or lies, and two gateways that get the triggers of one project |
//! | `store_servers` | a database server proves who it is; one that lost commits is noticed |
//! | `store_postgres` | several machines share releases and records, and serve alone while those are away |
//! | `tidy` | the layers of the source tree |
//! | `tls` | certificates by name, HTTP/1.1 and HTTP/2 by ALPN, limits of both |
//! | `toolchain` | the oldest Rust that we name is enough for every dependency |
//! | `upgrade` | another process takes the place of a gateway, and clients see nothing of it |
//! | `upstream` | requests to a site's own server, and its responses |
//! | `walkthrough` | the commands of the walkthrough work |
//! | `worker` | a worker without listeners, beside a gateway or alone |
//!
//! [`edge`] starts a gateway for each test, in a temporary directory and on ports that the system
//! chooses. [`ports`] returns free ports, for programs whose port the test must choose. [`presets`]
//! names the sites and files that most tests use.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(
    unreachable_pub,
    reason = "`pub` is what a module offers to the others"
)]

// The harness.
mod certificates;
#[path = "../../src/database/cluster.rs"]
mod cluster;
mod edge;
mod faults;
mod namespace;
mod pebble;
mod ports;
mod relay;
mod http;
mod http2;
mod origin;
mod presets;
mod repository;
mod servers;

// The promises.
mod backup;
mod balance;
mod acme;
mod browser;
mod building;
mod checked;
mod clients;
mod convert;
mod copies;
mod database_faults;
mod deploy;
mod description;
mod direct;
mod discovery;
mod drain;
mod durability;
mod endings;
mod follow;
mod formats;
mod full;
mod generated;
mod git;
mod heads;
mod both_paths;
mod hostile;
mod http2_frames;
mod https_only;
mod jsx;
mod links;
mod mcp;
mod models;
mod monitoring;
mod names;
mod navigation;
mod numbers;
mod operator;
mod ownership;
mod packages;
mod pages;
mod preview;
mod proxy_protocol;
mod publishing;
mod queue_postgres;
mod recipe;
mod reference;
mod references;
mod reload;
mod seeing;
mod rendering;
mod search;
mod sites;
mod sites_api;
mod specifications;
mod start;
mod store_documents;
mod store_faults;
mod store_postgres;
mod store_servers;
mod tidy;
mod tls;
mod toolchain;
mod upgrade;
mod upstream;
mod walkthrough;
mod worker;
