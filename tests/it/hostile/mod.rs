//! Tests of hostile clients, authors and neighbours: the list of promises.
//!
//! Each test attacks the real binary from outside, with small limits from the
//! configuration. Its name says what the attacker cannot do.
//!
//! | module | promise |
//! |---|---|
//! | `broken` | a bad commit, a broken queue or a damaged store changes no served site |
//! | `builds` | a build reads no file of the service, reaches no machine, leaves no process and fills no disk |
//! | `commands` | a hostile repository cannot harm the author who reads it: the commands read it in a sandbox |
//! | `copies` | no client gets the page of another, no site fills the disk, no full disk harms a response |
//! | `credentials` | only their owner can use credentials, no host can remove them, and records show nothing about the network |
//! | `models` | the text of a language model is published only if it passes the checks; it costs no more than configured and delays no other update |
//! | `neighbours` | no owner can keep the worker from building the sites of another owner |
//! | `clients` | no client takes connections, processor time, memory or descriptors from another |
//! | `descriptors` | no client uses up the descriptors of the process |
//! | `files` | slow readers and large files cost little, no redirect leaves its host, a private host is not found |
//! | `requests` | a request has one meaning and costs a bounded amount, in every version of HTTP |
//! | `start` | the process has only the privileges that it reports, and only its operator can change its state |
//! | `upstreams` | a site's own server reads nothing private, and harms only its own readers |
//! | `pages` | no page can stop a build: each costs a bounded amount of work, and is shown |

mod broken;
mod builds;
mod commands;
mod copies;
mod credentials;
mod clients;
mod descriptors;
mod files;
pub(crate) mod models;
mod requests;
mod start;
mod upstreams;
mod pages;
mod neighbours;
