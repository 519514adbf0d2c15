//! Who asks for a change, and on which condition.

use super::Refused;
use crate::deploy::keys::Role;
use crate::response::{Conditions, ETag, Outcome};
use crate::site::ProjectId;
use crate::store::audit::Who;

/// Who asks for something.
#[derive(Clone, Debug)]
pub struct Caller {
    /// The role, which decides what the caller may do.
    pub role: Role,
    /// The owner whose sites the caller may see; an operator sees all.
    pub owner: Box<str>,
    /// The projects of this owner that the caller may change; `None` for all.
    pub projects: Option<Vec<Box<str>>>,
    /// The caller in the audit log.
    pub who: Who,
}

impl Caller {
    /// Returns whether the caller may act on this project of its owner.
    #[must_use]
    pub fn covers(&self, project: &str) -> bool {
        self.role == Role::Operator
            || self
                .projects
                .as_ref()
                .is_none_or(|projects| projects.iter().any(|covered| **covered == *project))
    }

    pub(super) fn check(&self, owner: &str, project: &ProjectId) -> Result<(), Refused> {
        if self.role != Role::Operator && *self.owner != *owner {
            return Err(Refused::NoSite);
        }
        match self.covers(project.as_str()) {
            true => Ok(()),
            false => Err(Refused::Forbidden(
                "the admin key does not cover this project",
            )),
        }
    }
}

/// The condition of a change: the fields `If-Match` and `If-None-Match` as they were sent.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// `If-Match`.
    pub if_match: Option<Vec<u8>>,
    /// `If-None-Match`.
    pub if_none_match: Option<Vec<u8>>,
    /// Whether a change of what exists needs one of them.
    pub is_required: bool,
}

impl Condition {
    /// Checks the condition against the entity tag of what exists.
    pub(super) fn check(&self, current: Option<&ETag>) -> Result<(), Refused> {
        let holds = |conditions: Conditions<'_>, etag: &ETag| {
            conditions.evaluate(etag, None) == Outcome::Send
        };
        if self.if_match.is_some() {
            let condition = || Conditions {
                if_match: self.if_match.as_deref(),
                ..Conditions::default()
            };
            if !current.is_some_and(|etag| holds(condition(), etag)) {
                return Err(Refused::Changed);
            }
        }
        let condition = || Conditions {
            if_none_match: self.if_none_match.as_deref(),
            ..Conditions::default()
        };
        if current.is_some_and(|etag| !holds(condition(), etag)) {
            return Err(Refused::Exists);
        }
        let is_absent = self.if_match.is_none() && self.if_none_match.is_none();
        match self.is_required && is_absent && current.is_some() {
            true => Err(Refused::Unconditional),
            false => Ok(()),
        }
    }
}
