//! Origins: who answers what is not discovery.
//!
//! A site's record names its origin: a customer's own server, whose address the
//! [`Resolver`] knows, or *embedded*, which is us, from the release that the site serves.

mod negotiation;
mod resolve;
mod service;

pub use negotiation::prefers_markdown;
pub use resolve::{Resolver, UnresolvedUpstream};
pub use service::{respond_from_memory, response};
