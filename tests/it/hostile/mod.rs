//! What hostile clients, authors and neighbours cannot do: the list of promises.
//!
//! Each test attacks the real binary as a stranger would, with small limits from the
//! configuration, and states in its name what the attacker does not get.
//!
//! | module | promise |
//! |---|---|
//! | `broken` | what is broken leaves what is served: a bad commit, a broken queue, a damaged store |
//! | `clients` | no client takes connections, processor time, memory or descriptors from another |
//! | `requests` | a request has one meaning and costs a bounded amount, in every version of HTTP |
//! | `start` | the process has no more privileges than it says, and only its operator changes it |
//! | `upstreams` | a site's own server reads nothing private, and harms only its own readers |
//! | `pages` | no page stalls a build: each costs a bounded amount of work and is shown |

mod broken;
mod clients;
mod requests;
mod start;
mod upstreams;
mod pages;
