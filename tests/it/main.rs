//! Integration tests: the real binary, real sockets, real files, real clients.
//!
//! One binary, so that everything is linked once. A module for each promise:
//!
//! | module | promise |
//! |---|---|
//! | `browser` | what readers see of the bundled example, in a browser |
//! | `building` | a release is the same with one thread and with many |
//! | `clients` | the `skills` tool installs, the A2A SDKs resolve the card |
//! | `deploy` | from a push to what agents fetch |
//! | `description` | every answer of the admin API is as its description says |
//! | `discovery` | documents, headers, methods, conditionals, codings, on every host |
//! | `drain` | who leaves, leaves nobody behind |
//! | `durability` | what is acknowledged is kept, whatever happens to the process |
//! | `full` | a disk without room keeps what it has acknowledged |
//! | `generated` | the skill of a documentation whose authors wrote none |
//! | `git` | repositories over every transport, and what is refused |
//! | `heads` | a request has one meaning, or is refused, on both paths |
//! | `both_paths` | whatever the fast path answers, the proxy path answers the same |
//! | `navigation` | what `docs.json` means, and what is wrong with it, case by case |
//! | `operator` | health, numbers, a line for every request |
//! | `pages` | a site's own pages, as a browser gets them |
//! | `preview` | what an author saves is shown at once, with what is wrong with it |
//! | `publishing` | a kill or a full disk at any step leaves the old or the new release |
//! | `recipe` | the proxy that the documentation shows, run by nginx |
//! | `rendering` | what a page becomes, case by case; whatever it says, nothing in it runs |
//! | `reference` | the reference pages of the documentation are what the program says |
//! | `references` | what comments and pages refer to is in the repository |
//! | `reload` | under load, every answer is whole and of one release |
//! | `sites` | records and releases change under a running gateway; broken ones change nothing |
//! | `specifications` | those behind a URL: who is asked, and what stays when nothing comes |
//! | `start` | what cannot be served is refused at the start, all of it at once |
//! | `tidy` | the layers of the source tree |
//! | `tls` | certificates by name, HTTP/1.1 and HTTP/2 by ALPN, limits of both |
//! | `toolchain` | the oldest Rust that we name is enough for every dependency |
//! | `upstream` | what a site's own server is sent, and what of it comes back |
//! | `walkthrough` | the commands of the walkthrough do what it says |
//! | `worker` | a worker without listeners, beside a gateway or alone |
//!
//! [`edge`] starts a gateway of its own for each test, on ports that the system chooses, in
//! a directory that goes with it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(
    unreachable_pub,
    reason = "`pub` is what a module offers to the others"
)]

// What tests stand on.
mod certificates;
mod edge;
mod faults;
mod http;
mod http2;
mod origin;
mod repository;

// What is promised.
mod browser;
mod building;
mod clients;
mod deploy;
mod description;
mod discovery;
mod drain;
mod durability;
mod full;
mod generated;
mod git;
mod heads;
mod both_paths;
mod navigation;
mod operator;
mod pages;
mod preview;
mod publishing;
mod recipe;
mod reference;
mod references;
mod reload;
mod rendering;
mod sites;
mod specifications;
mod start;
mod tidy;
mod tls;
mod toolchain;
mod upstream;
mod walkthrough;
mod worker;
