//! Named presets: the site `acme`, the files that it publishes, and where they are served.

use crate::edge::Setup;
use crate::origin::Origin;

/// The customer's own domain of the site `acme`.
pub const DOMAIN: &str = "docs.acme.test";
/// The default subdomain of the site `acme`.
pub const SUBDOMAIN: &str = "acme.waypost.localhost";

/// The path of the list of skills.
pub const MANIFEST: &str = "/.well-known/agent-skills/index.json";
/// The path of the list of skills in the legacy format (0.1).
pub const LEGACY: &str = "/.well-known/skills/index.json";
/// The path of the agent card.
pub const CARD: &str = "/.well-known/agent-card.json";

/// A skill file that every client accepts.
pub const SKILL: &str = "---\nname: sdk\ndescription: Use the SDK.\n---\n\n# SDK\n";
/// A second skill file; its name is not a slug yet.
pub const PAY: &str = "---\nname: Pay & Refund\ndescription: Take payments.\n---\n\n# Pay\n";

impl Setup {
    /// Adds the site `acme` on [`DOMAIN`], with more lines of its record.
    pub fn acme(self, record: &str) -> Self {
        self.site("acme", &format!("domains: [{DOMAIN}]\n{record}"))
    }

    /// Publishes [`SKILL`] as the site `acme`.
    #[track_caller]
    pub fn with_skill(self) -> Self {
        self.publish("acme", &[("skill.md", SKILL)]);
        self
    }

    /// Adds the site `acme` with [`SKILL`]; all its other paths are served by an origin.
    #[track_caller]
    pub fn acme_before(self, origin: &Origin) -> Self {
        self.acme(&origin.record()).with_skill()
    }
}
