//! Whether the owner of a site has proven that a domain belongs to it.
//!
//! ```text
//!            proof            leads here
//!  pending ────────▶ verified ──────────▶ active
//!     ▲                 │  ▲                │
//!     │                 ▼  │ proof          ▼
//!     │               dangling ◀─────────────   the proof is gone: still served
//!     │                 │ after `verification.dangling_seconds`
//!     │                 ▼
//!     └── added ── quarantined                  not served; a proof makes it verified again
//! ```
//!
//! If the site gets another owner, a domain that is served is dangling, and another one is pending.
//!
//! The state is kept in the record of the site. A domain without a state was added while
//! `verification.required` was false: it is served until its first check.

use serde::{Deserialize, Serialize};

/// The state of the ownership of a domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ownership {
    /// The state.
    pub state: OwnershipState,
    /// Since when, in seconds after the Unix epoch.
    pub since: u64,
    /// The text that DNS has to show. It is made for one owner and one host.
    pub token: Box<str>,
    /// How often the host had gone from one owner to another when the token was made
    /// ([`HostClaim::handovers`](super::HostClaim::handovers)).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub handovers: u64,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The states of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnershipState {
    /// Not proven yet: not served.
    Pending,
    /// Proven, but DNS does not lead here: served, without a new certificate.
    Verified,
    /// Proven, and DNS leads here.
    Active,
    /// The proof is gone: served for a while, without a new certificate.
    Dangling,
    /// The proof was gone for too long, or another owner has proven the domain: not served.
    Quarantined,
}

// === impl OwnershipState ===

impl OwnershipState {
    /// All states.
    pub const ALL: [Self; 5] = [
        Self::Pending,
        Self::Verified,
        Self::Active,
        Self::Dangling,
        Self::Quarantined,
    ];

    /// Returns the name of the state, as the API and the metrics have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Verified => "verified",
            Self::Active => "active",
            Self::Dangling => "dangling",
            Self::Quarantined => "quarantined",
        }
    }

    /// Returns whether the site is served at the domain.
    #[must_use]
    pub fn is_served(self) -> bool {
        matches!(self, Self::Verified | Self::Active | Self::Dangling)
    }
}

impl std::fmt::Display for OwnershipState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
