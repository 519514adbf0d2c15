//! A response that is collected while its client gets it.

use std::sync::Arc;

use super::Shared;
use super::file::Description;
use super::request::TargetKey;
use crate::response::Encoding;
use crate::site::{ProjectId, Site};

/// The first room for content, in bytes. It is doubled when it is full.
const ROOM_BYTES: usize = 4 << 10;

/// A response while its content is collected for a copy. If this value is dropped before the end of
/// the response, no copy is written.
#[derive(Debug)]
pub(in crate::gateway) struct Collecting {
    pub(super) shared: Arc<Shared>,
    pub(super) site: Arc<Site>,
    pub(super) key: (TargetKey, Encoding),
    /// How many bytes it counts for: the head, and the room in `content`. A response that is slow
    /// takes no room that others need.
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
    /// Adds a piece of the content. Returns `false` if the response is too long for a copy, or if
    /// too much is collected at the moment.
    pub(in crate::gateway) fn push(&mut self, piece: &[u8]) -> bool {
        let (length, room) = (self.content.len(), self.content.capacity());
        if piece.len() > self.content_bytes_max - length {
            return false;
        }
        let needed = length + piece.len();
        if needed > room {
            let room_next = (room * 2).max(ROOM_BYTES).min(self.content_bytes_max);
            let room_next = room_next.max(needed);
            let more = (room_next - room) as u64;
            if !self.shared.table().reserve(&self.site, more) {
                return false;
            }
            self.reserved += more;
            self.content.reserve_exact(room_next - length);
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
            site,
            description,
            fields,
            content,
            ..
        } = self;
        (&site.project, description, fields, content)
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        let mut table = self.shared.table();
        table.end(&self.site, &self.key, self.reserved);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::sync_channel;

    use super::*;
    use crate::clock::Clock;
    use crate::gateway::copies::table::Table;
    use crate::gateway::copies::{Asked, Config, Copies};
    use crate::gateway::reads::Reads;
    use crate::telemetry::Metrics;

    #[test]
    fn responses_that_are_slow_take_no_room_and_those_of_other_owners_are_collected() {
        let config = Config::default();
        let shared = Arc::new(Shared {
            table: Mutex::new(Table::new(config.response_bytes_max as u64)),
            config,
            directory: PathBuf::new(),
            is_active: AtomicBool::new(true),
            metrics: Arc::new(Metrics::new()),
        });
        let copies = Copies {
            shared,
            jobs: sync_channel(1).0,
            reads: Reads::default(),
            clock: Clock::System,
        };
        let begin = |site: &Arc<Site>, path: &str| {
            let fields = [(&b"accept"[..], &b"*/*"[..])];
            let (target, fields) = (path.as_bytes(), fields.into_iter());
            let asked = Asked::of(&[], "GET", false, "docs.test", target, false, fields);
            let head = [(&b"cache-control"[..], &b"max-age=60"[..])];
            copies.observe(&asked.unwrap(), site, 200, true, &head)
        };
        let site = |project: &str, owner: &str| {
            Arc::new(Site {
                owner: owner.into(),
                ..Site::new(ProjectId::parse(project).unwrap())
            })
        };
        let sites: Vec<_> = (0..8).map(|n| site(&format!("many-{n}"), "many")).collect();
        let mut slow = Vec::new();
        for site in &sites {
            for n in 0..100 {
                let mut collecting = begin(site, &format!("/{n}")).unwrap();
                assert!(collecting.push(b"a piece, and then nothing"));
                slow.push(collecting);
            }
        }
        let acme = site("acme", "acme");
        let mut collecting = begin(&acme, "/").unwrap();
        let piece = vec![b'x'; 100_000];
        for _ in 0..10 {
            assert!(collecting.push(&piece));
        }
        assert_eq!(collecting.content.len(), 1_000_000);
        assert!(!collecting.push(&piece), "it is too long");
    }
}
