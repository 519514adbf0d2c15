//! Origins: the servers that respond to every path that is not a discovery path.
//!
//! A site record names the origin of the site: the customer's own server, whose addresses the
//! [`Resolver`] finds, or `embedded`. The embedded origin is this program: it serves pages from
//! the current release of the site.

mod mcp;
mod negotiation;
mod resolve;
mod service;

pub use mcp::{find_mcp, mcp_announcement, mcp_rejection, mcp_response};
pub use negotiation::prefers_markdown;
pub use resolve::{Resolved, Resolver, UnresolvedUpstream};
pub use service::{
    VOTE_BYTES_MAX, is_search, is_vote, reject_vote, respond_from_memory, response, vote,
};
