//! **Waypost**, the edge gateway of a documentation platform.
//!
//! Customers keep documentation in git repositories. The platform builds each repository into a
//! *site* and serves it on a default subdomain and on the customer's own domains, where coding
//! agents find its skills, its agent card and its Markdown at well-known paths. Waypost serves
//! these paths from memory, accepts the platform's deployment triggers, builds the repositories
//! that they name, and passes every other request on to the site's origin.
//!
//! # An update and a request
//!
//! An **update** goes through all steps once, from left to right. A **request** is frequent, and
//! needs only the last step:
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
//!  gateway ─┬─ fast path ────▶ index ──▶ one write
//!           ├─ direct path ──▶ the customer's own server
//!           └─ proxy path ───▶ route ─▶ discovery, admin, origin (ours or the customer's)
//! ```
//!
//! The steps before `store` may fail, may be repeated and may take minutes. The steps after it must
//! not fail: if a release cannot be loaded, the previous release stays served. The two sides share
//! only values.
//!
//! The bundled documentation describes this in detail, with the reasons: `internals/architecture`
//! and `internals/decisions`, in `conf/demo/docs`.
//!
//! # Layers
//!
//! The order of the lines below is the layering, bottom first: a module uses only modules above it.
//! `tests/it/tidy.rs` checks it.
//!
//! # Words
//!
//! | word | means |
//! |---|---|
//! | project | the unit that a customer owns and that a call of the admin API names |
//! | site | a project as it is served: hosts, canonical domain, repository, visibility |
//! | host, domain | a normalised host name; a host name that the customer owns. The *default subdomain* is ours; URLs are built on the *canonical* domain |
//! | tree | one commit of a repository, read-only |
//! | skill, slug | as in the Agent Skills specification |
//! | manifest, legacy index, card | the list of skills of Agent Skills Discovery 0.2.0, the list of 0.1, the agent card |
//! | update, status id | one queued deployment, and its public identifier |
//! | build | the step from a tree to a release |
//! | release, inventory | the immutable result and its list of files |
//! | site description | `site.json` in a release: the facts that the names of its files do not show |
//! | put, promote, current | store a release; make it the served release; the served release |
//! | response | a finished HTTP response that is not sent yet |
//! | connection handler, fast path, direct path, proxy path | see [`gateway`] |
//! | diagnostic, problem, error | a message to an author, to an HTTP client, to the operator |
//!
//! # Invariants
//!
//! 1. `pingora` is named only in [`gateway`] and `cli/serve`, and for the plain header value
//!    in [`response`].
//! 2. [`jsx`], [`mdx`], [`docs`], [`skills`], [`discovery`], [`render`], [`release`] and [`build`]
//!    are pure functions: no async, no files, no clock. The same tree gives the same release, byte
//!    for byte.
//! 3. There is no lock and no waiting between routing and the first byte of a discovery
//!    response.
//! 4. A release knows no domain, no base path and no visibility. Those belong to the site, so
//!    a change of them needs no build.
//! 5. Only a promotion, a site record or a certificate changes what readers see.
//! 6. [`discovery::paths`] is the only list of intercepted paths.
//! 7. The text of an author and the value that the program makes of it have two types. No type with
//!    optional fields is used for both.
//! 8. [`store`], [`index`] and [`origin`] use neither [`build`] nor [`render`]. Names and types
//!    that both sides need are in [`release`].

// Base: values that every layer uses.
pub mod error;
pub mod clock;
pub mod jitter;
pub mod parallel;
pub mod watchdog;
pub mod digest;
pub mod version;
pub mod diagnostic;
pub mod syntax;
pub mod telemetry;
pub mod database;
pub mod isolation;
pub mod frontmatter;
pub mod markup;
pub mod response;
pub mod site;

// Reading: the files of authors.
pub mod jsx;
pub mod mdx;
pub mod source;
pub mod docs;
pub mod skills;

// Writing: the output of a build.
pub mod discovery;
pub mod release;
pub mod render;
pub mod search;
pub mod mcp;
pub mod build;

// Publishing: stored releases.
pub mod store;

// Counting: numbers for the owners of sites.
pub mod numbers;

// Serving: the live state, in memory.
pub mod index;
pub mod origin;

// Names: what DNS says about them.
pub mod dns;
// Deploying: keys, queue, worker.
pub mod deploy;

// Following: what a node tells its edges, and the cache of an edge.
pub mod follow;

// Certificates: orders, renewals, challenges.
pub mod acme;

// Copies of all state.
pub mod backup;

// Edge: the process.
pub mod gateway;
pub mod config;
pub mod cli;
