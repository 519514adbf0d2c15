//! The changes that readers follow: which projects have changed after a revision, and what they
//! have now.

use std::time::{Duration, Instant};

use std::sync::PoisonError;

use super::records::{invalid_pointer, parse_record};
use super::{Life, Shared, store_error};
use crate::database::{Cells, DatabaseError, Link, READ, Repeat, Value};
use crate::site::ProjectId;
use crate::store::{Pointer, Promotion, ReadError, SiteRecord};

/// How often followers ask for a new revision without a `NOTIFY`.
const POLL: Duration = Duration::from_millis(200);
/// How many changes are read at once.
const CHANGES_MAX: u64 = 1000;

/// The current state of a project.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The revision of its last change.
    pub revision: u64,
    /// The project.
    pub project: ProjectId,
    /// Its site record; `None` if the store has none.
    pub record: Option<SiteRecord>,
    /// Its current release; `None` if it has none.
    pub current: Option<Promotion>,
}

/// The place of a reader in the changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// It has all changes up to this revision.
    pub revision: u64,
    /// The mark of that change, a random text. After a restore of the database to an earlier state,
    /// another change has the same number, and another mark. `None` before the first change.
    pub mark: Option<String>,
}

/// The changes after a revision, or everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Changes {
    /// Which store and which life of it.
    pub life: Life,
    /// The place of a reader that has applied them.
    pub place: Place,
    /// The newest revision.
    pub latest: u64,
    /// The changed projects, in the order of the revisions.
    pub changes: Vec<Change>,
}

/// A row, before it is parsed.
type Row = (String, u64, Option<String>, Option<String>);

/// The number of the last change, and its mark.
const LATEST: &str =
    "SELECT n, (SELECT mark FROM changes WHERE changes.revision = n) FROM revision";

impl Shared {
    /// Returns the changes after a place; `None` if they are not kept any more, or the database has
    /// not, or not any more, the change with this number and mark: then everything must be compared.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn changes(&self, after: &Place) -> Result<Option<Changes>, ReadError> {
        self.changes_if(after.revision, |mark| {
            let is_other = mark.is_some() && *mark != after.mark;
            if is_other && after.mark.is_some() {
                log::error!(target: "store", "the database of the store was restored to a state before revision {}: what it acknowledged last may be lost", after.revision);
            }
            *mark == after.mark
        })
    }

    /// Returns the changes after a revision; `None` if they are not kept any more. Nothing tells
    /// whether the database was restored since then.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn changes_since(&self, revision: u64) -> Result<Option<Changes>, ReadError> {
        self.changes_if(revision, |_mark| true)
    }

    /// Returns the changes after a revision if its mark is the right one.
    fn changes_if(
        &self,
        after: u64,
        is_right: impl Fn(&Option<String>) -> bool + Send + Sync,
    ) -> Result<Option<Changes>, ReadError> {
        const STATE: &str = "SELECT n, (SELECT min(revision) FROM changes), \
             (SELECT max(revision) FROM changes), \
             (SELECT mark FROM changes WHERE revision = ?1) FROM revision";
        const MARK: &str = "SELECT mark FROM changes WHERE revision = ?1";
        const ROWS: &str = "SELECT c.project, c.revision, p.pointer, s.record FROM \
             (SELECT project, max(revision) AS revision FROM changes WHERE revision > ?1 \
             GROUP BY project ORDER BY 2 LIMIT ?2) AS c \
             LEFT JOIN pointers p ON p.project = c.project \
             LEFT JOIN sites s ON s.project = c.project ORDER BY c.revision";
        let read = self.database.transact(READ, Repeat::Always, |link, _now| {
            let mut state = link.one(STATE, &[after.into()])?;
            let latest = state.number()?;
            let (first, last) = (state.next_number()?, state.next_number()?);
            let mark = state.next_text()?;
            let is_kept = match first {
                Some(first) => after + 1 >= first && last == Some(latest),
                None => after == latest,
            };
            // Every history begins with the same state, so revision 0 needs no mark.
            let is_right = after == 0 || is_right(&mark);
            if after > latest || after < latest && !is_kept || !is_right {
                return Ok(None);
            }
            if after == latest {
                let revision = after;
                return Ok(Some((Place { revision, mark }, latest, Vec::new())));
            }
            let rows = link.rows(ROWS, &[after.into(), CHANGES_MAX.into()])?;
            let rows: Vec<Row> = rows.into_iter().map(row).collect::<Result<_, _>>()?;
            let is_all = (rows.len() as u64) < CHANGES_MAX;
            let revision = match rows.last() {
                Some((_, revision, ..)) if !is_all => *revision,
                _ => latest,
            };
            let mark = link.one(MARK, &[revision.into()])?.next_text()?;
            Ok(Some((Place { revision, mark }, latest, rows)))
        });
        let Some((place, latest, rows)) = read.map_err(store_error)? else {
            return Ok(None);
        };
        Ok(Some(Changes {
            life: self.database.life().map_err(store_error)?,
            place,
            latest,
            changes: parsed(rows, false)?,
        }))
    }

    /// Returns everything.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn snapshot(&self) -> Result<Changes, ReadError> {
        const ALL: &str = "SELECT coalesce(p.project, s.project), 0::bigint, p.pointer, s.record \
             FROM pointers p FULL JOIN sites s ON s.project = p.project";
        let read = self.database.transact(READ, Repeat::Always, |link, _now| {
            let place = place(link)?;
            let rows = link.rows(ALL, &[])?.into_iter().map(row);
            Ok((place, rows.collect::<Result<Vec<Row>, _>>()?))
        });
        let (place, mut rows) = read.map_err(store_error)?;
        let latest = place.revision;
        for (_, revision, ..) in &mut rows {
            *revision = latest;
        }
        Ok(Changes {
            life: self.database.life().map_err(store_error)?,
            place,
            latest,
            changes: parsed(rows, true)?,
        })
    }

    /// Returns which store this is, and which life of it.
    ///
    /// # Errors
    ///
    /// When the database cannot be reached, and never could.
    pub fn life(&self) -> Result<Life, ReadError> {
        Ok(self.database.life().map_err(store_error)?)
    }

    /// Waits until the last change is another one, at most for this time.
    ///
    /// # Errors
    ///
    /// When the database cannot be read.
    pub fn wait_for_change(&self, after: &Place, wait: Duration) -> Result<(), ReadError> {
        let deadline = Instant::now() + wait;
        loop {
            let seen = self.hints.count();
            let latest = self
                .database
                .transact(READ, Repeat::Always, |link, _now| place(link));
            let left = deadline.saturating_duration_since(Instant::now());
            if latest.map_err(store_error)? != *after || left.is_zero() {
                return Ok(());
            }
            self.hints.wait(seen, POLL.min(left));
        }
    }

    /// Says that this process has followed up to a revision. From the first call on, writes wait a
    /// moment until they are served here.
    pub fn has_followed(&self, revision: u64) {
        let mut followed = self.followed.lock().unwrap_or_else(PoisonError::into_inner);
        followed.is_on = true;
        followed.revision = revision;
        drop(followed);
        self.moved.notify_all();
    }
}

/// Takes the next revision for a change of a project. It is the last step of a transaction: the
/// revision is locked until its commit, so revisions become visible in order.
pub(super) fn next(link: &Link, project: &ProjectId, now: u64) -> Result<u64, DatabaseError> {
    const NEXT: &str = "WITH next AS (UPDATE revision SET n = n + 1 RETURNING n) \
         INSERT INTO changes (revision, project, at) SELECT n, ?1, ?2 FROM next RETURNING revision";
    link.one(NEXT, &[Value::Text(project.as_str()), now.into()])?
        .number()
}

/// Returns the place after the last change.
fn place(link: &Link) -> Result<Place, DatabaseError> {
    let mut latest = link.one(LATEST, &[])?;
    Ok(Place {
        revision: latest.number()?,
        mark: latest.next_text()?,
    })
}

fn row(mut row: Cells) -> Result<Row, DatabaseError> {
    Ok((
        row.text()?,
        row.number()?,
        row.next_text()?,
        row.next_text()?,
    ))
}

/// A change that cannot be read is left out, with a line in the log: the previous value stays in
/// use. Everything must be readable, because a project that is missing in the answer is removed.
fn parsed(rows: Vec<Row>, is_everything: bool) -> Result<Vec<Change>, ReadError> {
    let mut changes = Vec::with_capacity(rows.len());
    for (name, revision, pointer, record) in rows {
        let Ok(project) = ProjectId::parse(&name) else {
            log::error!(target: "store", "the database has a row of {name:?}, which is no project");
            continue;
        };
        let read = || -> Result<_, ReadError> {
            let pointer = pointer.map(|text| {
                Pointer::parse(text.as_bytes(), &project)
                    .map_err(|why| invalid_pointer(&project, why))
            });
            let record = record.map(|text| parse_record(&text, &project));
            Ok((record.transpose()?, pointer.transpose()?))
        };
        match read() {
            Ok((record, pointer)) => changes.push(Change {
                revision,
                record,
                current: pointer.map(|pointer| pointer.current),
                project,
            }),
            Err(error) if is_everything => return Err(error),
            Err(error) => {
                log::error!(target: "store", project:%; "{project} stays as it is: {}", crate::error::chain(&error));
            }
        }
    }
    Ok(changes)
}
