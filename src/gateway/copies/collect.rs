//! A response that is collected while its client gets it.

use std::sync::Arc;

use super::Shared;
use super::file::Description;
use super::request::TargetKey;
use crate::response::Encoding;
use crate::site::ProjectId;

/// A response while its content is collected for a copy. If this value is dropped before the end of
/// the response, no copy is written.
#[derive(Debug)]
pub(in crate::gateway) struct Collecting {
    pub(super) shared: Arc<Shared>,
    pub(super) project: ProjectId,
    pub(super) key: (TargetKey, Encoding),
    /// How many bytes it counts for.
    pub(super) reserved: u64,
    pub(super) description: Description,
    /// The length that the response has named.
    pub(super) length: Option<u64>,
    /// The longest content.
    pub(super) content_bytes_max: usize,
    pub(super) fields: Vec<u8>,
    pub(super) content: Vec<u8>,
}

impl Collecting {
    /// Adds a piece of the content. Returns `false` if the response is too long for a copy.
    pub(in crate::gateway) fn push(&mut self, piece: &[u8]) -> bool {
        if piece.len() > self.content_bytes_max - self.content.len() {
            return false;
        }
        self.content.extend_from_slice(piece);
        true
    }

    /// Returns whether the content has the length that the response has named.
    pub(super) fn is_whole(&self) -> bool {
        self.length
            .is_none_or(|length| length == self.content.len() as u64)
    }

    /// Returns the parts of the file.
    pub(super) fn parts(&mut self) -> (&ProjectId, &mut Description, &[u8], &[u8]) {
        let Self {
            project,
            description,
            fields,
            content,
            ..
        } = self;
        (project, description, fields, content)
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        let mut table = self.shared.table();
        table.end(&self.project, &self.key, self.reserved);
    }
}
