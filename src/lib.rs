//! **Waypost**, the edge of a documentation platform.
//!
//! Customers keep documentation in git repositories. The platform builds each into a
//! *site* and serves it on a default subdomain and on the customer's own domains, where
//! coding agents find its skills, its agent card and its Markdown at well-known paths.
//! Waypost answers those paths from memory, takes the platform's deployment triggers,
//! builds what they ask for, and passes every other request on to the site's origin.
//!
//! # Two journeys
//!
//! An **update** travels once, left to right; a **request** travels often, and touches only
//! the end of that line:
//!
//! ```text
//!  POST /v1/project/update/{projectId}
//!    ▼
//!  gateway ─▶ deploy ─▶ source ─▶ build ─▶ release ─▶ store ─▶ index ─▶ (visible)
//!             keys       fetch     docs      immutable  put       compile
//!             queue      → Tree    skills    → id       promote   answers
//!             worker               render
//!
//!  GET docs.acme.com/.well-known/agent-card.json
//!    ▼
//!  gateway ── express lane ──▶ index ──▶ one write
//!          └─ proxy lane ────▶ route ─▶ discovery, admin, origin (ours or the customer's)
//! ```
//!
//! `store` is the joint: what is left of it may fail, be retried and take minutes; what is
//! right of it may not. The two sides share only values.
//!
//! # Layers
//!
//! The order of the lines below is the layering, bottom first: a module uses only what
//! stands above it. `tests/it/tidy.rs` holds it so.
//!
//! # Words
//!
//! | word | means |
//! |---|---|
//! | project | what a customer owns and an admin call names |
//! | site | a project as served: hosts, canonical domain, repository, visibility |
//! | host, domain | a normalised host name; one that the customer owns. The *default subdomain* is ours, the *canonical* domain is the one URLs are built on |
//! | tree | one commit of a repository, read-only |
//! | skill, slug | as in the agent-skills specification |
//! | manifest, legacy index, card | the 0.2.0 list of skills, the original list, the agent card |
//! | update, status id | one queued deployment and its public handle |
//! | build | the step from tree to release |
//! | release, inventory | the immutable result and its list of files |
//! | put, promote, current | store a release; make it the served one; that one |
//! | answer | a finished response not yet on a wire |
//! | front, express lane, proxy lane | see [`gateway`] |
//! | diagnostic, problem, error | the author's, the client's, the world's |
//!
//! # Invariants
//!
//! 1. `pingora` is named only in [`gateway`], `origin/service.rs`, `cli/serve`, and for the
//!    plain header value in [`answer`].
//! 2. [`docs`], [`skills`], [`discovery`], [`release`] and [`build`] are functions from values to
//!    values: no async, no files, no clock. The same tree gives the same release, byte for byte.
//! 3. There is no lock and no wait between routing and the first byte of a discovery answer.
//! 4. A release knows no domain, no base path and no visibility; those are the site's, so a
//!    change of them needs no build.
//! 5. Only a promotion, a site record or a certificate changes what anyone sees.
//! 6. [`discovery::paths`] is the one list of intercepted paths.
//! 7. What authors wrote and what we decided are two types, never one with `Option`s.

// Ground: values that everything stands on.
pub mod clock;
pub mod digest;
pub mod diagnostic;
pub mod yaml;
pub mod telemetry;
pub mod frontmatter;
pub mod answer;
pub mod site;

// Reading: what authors wrote.
pub mod source;
pub mod docs;
pub mod skills;

// Writing: what is made of it.
pub mod discovery;
pub mod render;
pub mod search;
pub mod release;
pub mod build;

// Publishing: what is kept.
pub mod store;

// Serving: what is live, in memory.
pub mod index;
pub mod origin;

// Deploying: keys, queue, worker.
pub mod deploy;

// Edge: the process.
pub mod gateway;
pub mod config;
pub mod cli;
