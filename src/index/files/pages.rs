//! The list of the pages of a site. It is read once, then the cache has it.

use std::sync::Arc;

use super::cache::PageList;
use super::{List, Open, ReadFileError, Reading};
use crate::release::pages::{PAGES_FILE, Pages};

// === impl Open ===

impl Open<'_> {
    /// Returns the list of pages. A release without one has no pages.
    ///
    /// # Errors
    ///
    /// [`ReadFileError`] when the list exists and cannot be read.
    pub fn pages(&self) -> Result<Arc<Pages>, ReadFileError> {
        let (stored, item) = match &self.list {
            List::Live(files) => {
                let file = files.file(PAGES_FILE);
                let pages = file.map(|(bytes, _)| Pages::parse(&bytes)).transpose();
                let pages = pages.map_err(ReadFileError::Pages)?;
                return Ok(Arc::new(pages.unwrap_or_default()));
            }
            List::Release(stored, listing) => match listing.get(PAGES_FILE) {
                None => return Ok(Arc::default()),
                Some(item) => (stored, item),
            },
        };
        if let Some(pages) = stored.cache.pages(&item.digest) {
            return Ok(pages);
        }
        if self.reading == Reading::Cached {
            return Err(ReadFileError::NotCached);
        }
        let bytes = stored.read_item(item)?;
        let pages = Arc::new(Pages::parse(&bytes).map_err(ReadFileError::Pages)?);
        let list = PageList {
            pages: Arc::clone(&pages),
            bytes: bytes.len(),
        };
        stored.cache.put_pages(item.digest, list);
        Ok(pages)
    }
}
