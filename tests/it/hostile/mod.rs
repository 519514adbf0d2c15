//! What hostile clients, authors and neighbours cannot do: the list of promises.
//!
//! Each test attacks the real binary as a stranger would, with small limits from the
//! configuration, and states in its name what the attacker does not get.
//!
//! | module | promise |
//! |---|---|
//! | `broken` | what is broken leaves what is served: a bad commit, a broken queue, a damaged store |
//! | `requests` | a request has one meaning and costs a bounded amount, in every version of HTTP |
//! | `upstreams` | a site's own server reads nothing private, and harms only its own readers |

mod broken;
mod requests;
mod upstreams;
