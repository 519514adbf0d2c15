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
//!             queue      → Tree    skills    → id       promote   responses
//!             worker               render
//!
//!  GET docs.acme.com/.well-known/agent-card.json
//!    ▼
//!  gateway ── fast path ─────▶ index ──▶ one write
//!          └─ proxy path ────▶ route ─▶ discovery, admin, origin (ours or the customer's)
//! ```
//!
//! On the left of `store` a step may fail, be repeated and take minutes. On its right
//! nothing may fail: when a release cannot be loaded, the one before it stays. The two sides
//! share only values.
//!
//! The bundled documentation has the same at length, with the reasons: `internals/architecture`
//! and `internals/decisions`, in `conf/demo/docs`.
//!
//! # Layers
//!
//! The order of the lines below is the layering, bottom first: a module uses only what
//! stands above it. `tests/it/tidy.rs` checks it.
//!
//! # Words
//!
//! | word | means |
//! |---|---|
//! | project | what a customer owns and an admin call names |
//! | site | a project as it is served: hosts, canonical domain, repository, visibility |
//! | host, domain | a normalised host name; one that the customer owns. The *default subdomain* is ours; URLs are built on the *canonical* domain |
//! | tree | one commit of a repository, read-only |
//! | skill, slug | as in the Agent Skills specification |
//! | manifest, legacy index, card | the list of skills of Agent Skills Discovery 0.2.0, the one of 0.1, the agent card |
//! | update, status id | one queued deployment and its public name |
//! | build | the step from a tree to a release |
//! | release, inventory | the immutable result and its list of files |
//! | site description | `site.json` in a release: what the names of its files do not say |
//! | put, promote, current | store a release; make it the one that is served; that one |
//! | response | a finished HTTP response that is not sent yet |
//! | connection handler, fast path, proxy path | see [`gateway`] |
//! | diagnostic, problem, error | what is told to an author, to an HTTP client, and to the operator |
//!
//! # Invariants
//!
//! 1. `pingora` is named only in [`gateway`] and `cli/serve`, and for the plain header value
//!    in [`response`].
//! 2. [`mdx`], [`docs`], [`skills`], [`discovery`], [`render`], [`release`] and [`build`] are
//!    functions from values to values: no async, no files, no clock. The same tree gives the same
//!    release, byte for byte.
//! 3. There is no lock and no waiting between routing and the first byte of a discovery
//!    response.
//! 4. A release knows no domain, no base path and no visibility. Those belong to the site, so
//!    a change of them needs no build.
//! 5. Only a promotion, a site record or a certificate changes what readers see.
//! 6. [`discovery::paths`] is the one list of intercepted paths.
//! 7. What authors wrote and what we made of it are two types, never one with `Option`s.
//! 8. [`store`], [`index`] and [`origin`] name neither [`build`] nor [`render`]. What both sides
//!    need is in [`release`].

// Base: values that every layer uses.
pub mod error;
pub mod clock;
pub mod digest;
pub mod diagnostic;
pub mod syntax;
pub mod telemetry;
pub mod frontmatter;
pub mod response;
pub mod site;

// Reading: what authors wrote.
pub mod mdx;
pub mod source;
pub mod docs;
pub mod skills;

// Writing: what is made of it.
pub mod discovery;
pub mod release;
pub mod render;
pub mod search;
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
