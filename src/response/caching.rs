//! Who may keep a response, and for how long.
//!
//! A handler picks a name; nobody writes the field by hand. All policies carry
//! `no-transform` (RFC 9111 §5.2.2.6): a manifest holds the digest of a skill file, and a
//! proxy that minifies the file would make every client drop the skill.

/// The value of a `Cache-Control` field.
pub type Policy = &'static str;

/// Manifests, cards and the redirect at the entry point: a new release is seen everywhere
/// within a minute, and a popular domain costs its edge one request a minute and cache.
pub const DISCOVERY: Policy = "public, max-age=60, no-transform";

/// Skill files, for the same minute: they change together with their manifest, and a
/// client that finds the two apart drops the skill.
pub const SKILL: Policy = DISCOVERY;

/// What is not there, or not public: long enough to take the sting out of a scanner,
/// short enough that a site made public is found.
pub const ABSENT: Policy = "public, max-age=10, no-transform";

/// Content whose name is its digest.
pub const IMMUTABLE: Policy = "public, max-age=31536000, immutable, no-transform";

/// Refusals, failures, admin answers, and a site that has no release yet.
pub const NEVER: Policy = "no-store, no-transform";
