//! Changes of the numbers in a store, and copies of them.

use super::document::{Document, InvalidDocument};
use crate::clock::Day;
use crate::error::chain;
use crate::site::ProjectId;
use crate::store::{FileError, Store};

/// Changes the document of a day. `act` returns whether it has changed something; it may run
/// several times. A damaged document begins again, and one of a newer program stays as it is.
pub(super) fn change(
    store: &Store,
    project: &ProjectId,
    day: Day,
    mut act: impl FnMut(&mut Document) -> bool + Send,
) -> Result<(), FileError> {
    let mut newer = None;
    let mut change = |before: Option<&[u8]>| {
        let mut document = match before.map(Document::parse) {
            None => Document::default(),
            Some(Ok(before)) => before,
            Some(Err(why @ InvalidDocument::Newer(_))) => {
                newer = Some(why);
                return None;
            }
            Some(Err(why)) => {
                log::error!(target: "numbers", project:%; "the numbers of {project} on {day} begin again: {}", chain(&why));
                Document::default()
            }
        };
        act(&mut document).then(|| document.to_bytes())
    };
    store.change_numbers(project, day, &mut change)?;
    if let Some(why) = newer {
        log::warn!(target: "numbers", project:%; "the numbers of {project} on {day} are not written: {why}");
    }
    Ok(())
}

/// Copies the numbers of all sites into another store. Returns how many days were written.
///
/// If both stores have numbers of a day, each count becomes the larger of the two. So a repeated
/// copy counts nothing twice.
///
/// # Errors
///
/// When one of the stores cannot be used. The target keeps the days that were copied before.
pub fn copy(from: &Store, to: &Store) -> Result<u64, FileError> {
    let mut written = 0;
    for (project, day) in from.numbered()? {
        for (_, bytes) in from.numbers(&project, day, day)? {
            let more = match Document::parse(&bytes) {
                Ok(more) => more,
                Err(why) => {
                    log::warn!(target: "numbers", project:%; "the numbers of {project} on {day} are not copied: {}", chain(&why));
                    continue;
                }
            };
            let mut is_changed = false;
            change(to, &project, day, |there| {
                let before = there.clone();
                there.raise(more.clone());
                is_changed = *there != before;
                is_changed
            })?;
            written += u64::from(is_changed);
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::document::Page;
    use crate::store::shared;

    fn votes(store: &Store, project: &ProjectId, day: Day) -> Option<(u64, u64)> {
        let days = store.numbers(project, day, day).unwrap();
        let document = Document::parse(&days.first()?.1).unwrap();
        let page = &document.pages["/guide"];
        Some((page.yes, page.no))
    }

    fn vote(store: &Store, project: &ProjectId, day: Day, yes: u64, no: u64) {
        change(store, project, day, |document| {
            let mut more = Document::default();
            let votes = Page {
                yes,
                no,
                ..Page::default()
            };
            more.pages.insert("/guide".into(), votes);
            document.add(more);
            true
        })
        .unwrap();
    }

    #[test]
    fn a_copy_that_is_repeated_counts_nothing_twice() {
        let [node, fleet] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let from = Store::open_directory(node.path().to_owned()).unwrap();
        let to = Store::Shared(shared::testing(fleet.path()));
        let acme = ProjectId::parse("acme").unwrap();
        let [first, second] = ["2026-11-22", "2026-11-23"].map(|day| Day::parse(day).unwrap());
        vote(&from, &acme, first, 2, 1);
        vote(&from, &acme, second, 5, 0);
        assert_eq!(copy(&from, &to).unwrap(), 2);
        assert_eq!(copy(&from, &to).unwrap(), 0);
        assert_eq!(votes(&to, &acme, first), Some((2, 1)));
        // Both count on: no count becomes smaller, and none is added twice.
        vote(&from, &acme, second, 0, 3);
        vote(&to, &acme, second, 1, 0);
        assert_eq!(copy(&from, &to).unwrap(), 1);
        assert_eq!(votes(&to, &acme, second), Some((6, 3)));
        assert_eq!(copy(&from, &to).unwrap(), 0);
        // And back.
        assert_eq!(copy(&to, &from).unwrap(), 1);
        assert_eq!(votes(&from, &acme, second), Some((6, 3)));
    }
}
