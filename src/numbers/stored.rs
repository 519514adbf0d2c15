//! Changes of the numbers in a store.

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
