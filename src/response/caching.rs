//! Cache policies: which caches may store a response, and for how long.
//!
//! A handler picks a policy by name. All of them carry `no-transform` (RFC 9111 §5.2.2.6): a
//! manifest holds the digest of a skill file, and if a proxy minified the file, every client
//! would drop the skill.

/// The value of a `Cache-Control` field.
pub type Policy = &'static str;

/// Manifests, cards and the redirect of `/skill.md`: a new release is seen everywhere within a
/// minute, and a cache sends at most one request a minute.
pub const DISCOVERY: Policy = "public, max-age=60, no-transform";

/// Skill files, as long as manifests: if a file and the digest in its manifest differ, a client
/// drops the skill.
pub const SKILL: Policy = DISCOVERY;

/// 404, also of a private site: long enough to absorb a scanner, short enough that a site that
/// is made public is found soon.
pub const ABSENT: Policy = "public, max-age=10, no-transform";

/// Files that have the digest of their bytes in their name.
pub const IMMUTABLE: Policy = "public, max-age=31536000, immutable, no-transform";

/// Errors, responses of the admin API, and a site that has no release yet.
pub const NEVER: Policy = "no-store, no-transform";

/// No `Cache-Control` of ours: the response has that of another server, or none.
pub const OWN: Policy = "";
