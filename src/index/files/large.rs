//! Files that are too large for the cache: they are read from the store while they are sent.
//!
//! Nothing here holds a file in memory. The inventory has the length and the digest, so a `HEAD`,
//! a 304 and a range read nothing but what they send.
//!
//! **Digests.** The first request for a whole file checks the file: the digest is computed while
//! the pieces are sent, and the last piece is sent only if the digest is right. If the file is
//! damaged, this response is incomplete, and later requests are rejected until the file is put
//! again. This process checks each file only once ([`DigestCheck`]). A range of a file that was
//! never read whole is sent without a check: only the whole file has a digest, and clients could
//! keep a disk busy if one requested byte caused a read of the whole file.
//!
//! **Descriptors.** All readers of a file share one descriptor, and the number of files that are
//! open at once is bounded ([`OpenFiles`](super::opened::OpenFiles)).
//!
//! **Texts with the placeholder.** A text of this size that contains the placeholder of the base
//! URL ([`AddressedText`]) is read once to find the positions of the placeholder; the same reading
//! checks the digest. The positions are remembered. With them any range of the text can be read,
//! for any address.

use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::{Bytes, BytesMut};
use memchr::memmem;

use super::Cache;
use super::opened::OpenFile;
use crate::digest::{Digest, Hasher};
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::release::Item;
use crate::response::{Pieces, StoredContent};
use crate::store::{ContentFile, ReadError, Store};

/// How many bytes are read at once while a text is searched for the placeholder.
const SCAN_BYTES: usize = 64 << 10;

/// The result of checking the digest of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DigestCheck {
    /// The file has the bytes that were put.
    Whole,
    /// The file of this modification time is damaged. A file that is put again is checked again.
    Damaged(Option<SystemTime>),
}

/// A large file of a release.
#[derive(Debug)]
pub(super) struct LargeFile {
    pub(super) owner: Arc<str>,
    pub(super) store: Arc<Store>,
    pub(super) cache: Arc<Cache>,
    pub(super) item: Item,
}

/// A large text of a release, in which an address replaces the placeholder.
#[derive(Debug)]
pub(super) struct AddressedText {
    pub(super) file: LargeFile,
    pub(super) address: Box<str>,
    /// Where the placeholders begin, in ascending order.
    pub(super) places: Arc<[u64]>,
}

struct FilePieces {
    file: Arc<OpenFile>,
    left: Range<u64>,
    /// The digest so far, if it is to be checked.
    check: Option<Hasher>,
    item: Item,
    cache: Arc<Cache>,
}

struct AddressedPieces {
    file: Arc<OpenFile>,
    /// In bytes of the text with the address.
    left: Range<u64>,
    length: u64,
    address: Box<str>,
    places: Arc<[u64]>,
}

// === impl LargeFile ===

impl LargeFile {
    fn open_file(
        &self,
        client: Option<IpAddr>,
    ) -> io::Result<(Arc<OpenFile>, Option<DigestCheck>)> {
        let checked = self.cache.checked(&self.item.digest);
        let is_damaged = |file: &ContentFile| matches!(checked, Some(DigestCheck::Damaged(since)) if since == file.modified());
        // A slow reader may still have the damaged file open, although it was put again.
        let open = || self.store.open(&self.item);
        let file = self.cache.open.open(
            (&self.owner, client),
            self.item.digest,
            |file| !is_damaged(file),
            open,
        )?;
        match checked {
            Some(DigestCheck::Damaged(_)) if is_damaged(&file) => {
                Err(io::Error::other(damaged(&file)))
            }
            Some(DigestCheck::Damaged(_)) => Ok((file, None)),
            checked => Ok((file, checked)),
        }
    }

    /// Finds the placeholders, and checks the digest.
    pub(super) fn find_places(&self) -> Result<Arc<[u64]>, ReadError> {
        let file = self.store.open(&self.item)?;
        let finder = memmem::Finder::new(BASE_URL_PLACEHOLDER);
        // A placeholder may begin in one read and end in the next.
        let overlap = BASE_URL_PLACEHOLDER.len() - 1;
        let mut hasher = Hasher::default();
        let mut places = Vec::new();
        let mut window = Vec::with_capacity(SCAN_BYTES + overlap);
        let mut at = 0;
        while at < self.item.length {
            let kept = window.len().min(overlap);
            window.drain(..window.len() - kept);
            let wanted = piece_length(at..self.item.length, SCAN_BYTES);
            window.resize(kept + wanted, 0);
            file.read_at(&mut window[kept..], at)?;
            hasher.update(&window[kept..]);
            let start = at - kept as u64;
            places.extend(finder.find_iter(&window).map(|found| start + found as u64));
            at += wanted as u64;
        }
        self.cache
            .put_checked(self.item.digest, checked(hasher, &self.item.digest, &file));
        match self.cache.checked(&self.item.digest) {
            Some(DigestCheck::Damaged(_)) => {
                let error = damaged(&file);
                self.cache.damage.add(&self.item, &error);
                Err(error)
            }
            _ => Ok(places.into()),
        }
    }
}

impl StoredContent for LargeFile {
    fn length(&self) -> u64 {
        self.item.length
    }

    fn open(&self, range: Range<u64>, client: Option<IpAddr>) -> io::Result<Box<dyn Pieces>> {
        let (file, checked) = self.open_file(client)?;
        let is_whole = range == (0..self.item.length);
        Ok(Box::new(FilePieces {
            file,
            left: range,
            check: (is_whole && checked.is_none()).then(Hasher::default),
            item: self.item.clone(),
            cache: Arc::clone(&self.cache),
        }))
    }
}

// === impl FilePieces ===

impl Pieces for FilePieces {
    fn next(&mut self, bytes_max: usize) -> io::Result<Bytes> {
        let length = piece_length(self.left.clone(), bytes_max);
        let mut piece = BytesMut::zeroed(length);
        let read = self.file.read_at(&mut piece, self.left.start);
        read.map_err(io::Error::other)?;
        self.left.start += length as u64;
        if let Some(hasher) = &mut self.check {
            hasher.update(&piece);
        }
        if self.left.is_empty()
            && let Some(hasher) = self.check.take()
        {
            let checked = checked(hasher, &self.item.digest, &self.file);
            self.cache.put_checked(self.item.digest, checked);
            if checked != DigestCheck::Whole {
                let error = damaged(&self.file);
                self.cache.damage.add(&self.item, &error);
                return Err(io::Error::other(error));
            }
        }
        Ok(piece.freeze())
    }
}

// === impl AddressedText ===

impl AddressedText {
    /// Returns the length of the text with the address.
    pub(super) fn addressed_length(&self) -> u64 {
        let (removed, added) = (BASE_URL_PLACEHOLDER.len(), self.address.len());
        let places = self.places.len() as u64;
        self.file.item.length - places * removed as u64 + places * added as u64
    }
}

impl StoredContent for AddressedText {
    fn length(&self) -> u64 {
        self.addressed_length()
    }

    fn open(&self, range: Range<u64>, client: Option<IpAddr>) -> io::Result<Box<dyn Pieces>> {
        let (file, _checked) = self.file.open_file(client)?;
        Ok(Box::new(AddressedPieces {
            file,
            left: range,
            length: self.file.item.length,
            address: self.address.clone(),
            places: Arc::clone(&self.places),
        }))
    }
}

// === impl AddressedPieces ===

impl AddressedPieces {
    /// Returns the position of the address that replaces the placeholder with this number.
    fn address_at(&self, number: usize) -> u64 {
        let number_before = number as u64;
        self.places[number] + number_before * self.address.len() as u64
            - number_before * BASE_URL_PLACEHOLDER.len() as u64
    }
}

impl Pieces for AddressedPieces {
    fn next(&mut self, bytes_max: usize) -> io::Result<Bytes> {
        let wanted = piece_length(self.left.clone(), bytes_max);
        let address_length = self.address.len() as u64;
        let at = self.left.start;
        // The number of the first address that does not end before this piece.
        let mut number = {
            let numbers: std::ops::Range<usize> = 0..self.places.len();
            partition(numbers, |n| self.address_at(n) + address_length <= at)
        };
        let replaced = number as u64;
        let mut piece = BytesMut::with_capacity(wanted);
        // A piece may begin inside an address.
        let is_inside = number < self.places.len() && self.address_at(number) <= at;
        let mut source = if is_inside {
            let skipped = usize::try_from(at - self.address_at(number)).unwrap_or(usize::MAX);
            let rest = &self.address.as_bytes()[skipped..];
            piece.extend_from_slice(&rest[..rest.len().min(wanted)]);
            let source = self.places[number] + BASE_URL_PLACEHOLDER.len() as u64;
            number += 1;
            source
        } else {
            at - replaced * address_length + replaced * BASE_URL_PLACEHOLDER.len() as u64
        };
        // One read, whose bytes are copied between the addresses.
        let mut window = vec![0; piece_length(source..self.length, wanted - piece.len())];
        let read = self.file.read_at(&mut window, source);
        read.map_err(io::Error::other)?;
        let window_start = source;
        let window_end = window_start + window.len() as u64;
        while piece.len() < wanted && source < window_end {
            let next_place = self.places.get(number).copied();
            let end = next_place.map_or(window_end, |place| place.min(window_end));
            let text = &window[index(source - window_start)..index(end - window_start)];
            let text = &text[..text.len().min(wanted - piece.len())];
            piece.extend_from_slice(text);
            source += text.len() as u64;
            if next_place == Some(source) && piece.len() < wanted {
                let address = self.address.as_bytes();
                piece.extend_from_slice(&address[..address.len().min(wanted - piece.len())]);
                source += BASE_URL_PLACEHOLDER.len() as u64;
                number += 1;
            }
        }
        self.left.start += piece.len() as u64;
        Ok(piece.freeze())
    }
}

/// Returns the first number for which `is_before` is false. It must be true up to some number,
/// and false from there on.
fn partition(mut numbers: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    while !numbers.is_empty() {
        let middle = numbers.start + numbers.len() / 2;
        if is_before(middle) {
            numbers.start = middle + 1;
        } else {
            numbers.end = middle;
        }
    }
    numbers.start
}

fn piece_length(left: Range<u64>, bytes_max: usize) -> usize {
    let left = left.end.saturating_sub(left.start);
    usize::try_from(left).unwrap_or(usize::MAX).min(bytes_max)
}

/// Converts an offset inside a piece.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

fn checked(hasher: Hasher, digest: &Digest, file: &ContentFile) -> DigestCheck {
    if hasher.finish() == *digest {
        DigestCheck::Whole
    } else {
        DigestCheck::Damaged(file.modified())
    }
}

fn damaged(file: &ContentFile) -> ReadError {
    file.damaged("its digest is not its name")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::release::{Builder, ReleaseFile, ReleasePath};
    use crate::response::{Body, Stored};

    /// A store with one file.
    struct One {
        directory: tempfile::TempDir,
        release: crate::release::Release,
        store: Arc<Store>,
        cache: Arc<Cache>,
    }

    impl One {
        fn new(bytes: impl Into<Bytes>) -> Self {
            let mut builder = Builder::default();
            let file = ReleaseFile::new(bytes.into(), "text/plain");
            builder
                .insert(ReleasePath::parse("a").unwrap(), file)
                .unwrap();
            let release = builder.finish();
            let directory = tempfile::tempdir().unwrap();
            let store = Store::open_directory(directory.path().join("store")).unwrap();
            store.put(&release).unwrap();
            Self {
                directory,
                release,
                store: Arc::new(store),
                cache: Arc::default(),
            }
        }

        fn file(&self) -> LargeFile {
            LargeFile {
                owner: "acme".into(),
                store: Arc::clone(&self.store),
                cache: Arc::clone(&self.cache),
                item: self.release.inventory().get("a").unwrap().clone(),
            }
        }

        fn path(&self) -> std::path::PathBuf {
            let digest = self.file().item.digest.to_string();
            let (shard, rest) = digest.split_at(2);
            self.directory
                .path()
                .join("store/content")
                .join(shard)
                .join(rest)
        }
    }

    /// Reads a range in pieces of a length.
    fn read(
        content: &impl StoredContent,
        range: Range<u64>,
        bytes_max: usize,
    ) -> io::Result<Vec<u8>> {
        let mut pieces = content.open(range, None)?;
        let mut all = Vec::new();
        loop {
            let piece = pieces.next(bytes_max)?;
            if piece.is_empty() {
                return Ok(all);
            }
            assert!(piece.len() <= bytes_max);
            all.extend_from_slice(&piece);
        }
    }

    #[test]
    fn every_part_of_a_text_has_the_address_in_the_place_of_the_placeholder() {
        let mark = BASE_URL_PLACEHOLDER;
        for text in [
            format!("{mark}/a {mark}{mark}/b\nc {mark}"),
            format!("a{mark}b"),
            "no address".to_owned(),
        ] {
            let one = One::new(text.clone());
            for address in ["", "x", "https://docs.acme.test/with/a/longer/base/path"] {
                let file = one.file();
                let places = file.find_places().unwrap();
                let addressed = AddressedText {
                    file,
                    address: address.into(),
                    places,
                };
                let whole = text.replace(mark, address);
                assert_eq!(addressed.length(), whole.len() as u64);
                for start in 0..whole.len() {
                    for bytes_max in [1, 2, 7, 30, 1000] {
                        let range = start as u64..whole.len() as u64;
                        let part = read(&addressed, range, bytes_max).unwrap();
                        assert_eq!(String::from_utf8(part).unwrap(), whole[start..]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_placeholder_between_two_reads_is_found() {
        let mark = BASE_URL_PLACEHOLDER;
        for before in SCAN_BYTES - mark.len() - 1..=SCAN_BYTES + 1 {
            let one = One::new("a".repeat(before) + mark + "b" + mark);
            let places = one.file().find_places().unwrap();
            let second = before + mark.len() + 1;
            assert_eq!(*places, [before as u64, second as u64]);
        }
    }

    #[test]
    fn a_damaged_file_is_cut_before_its_end_then_rejected_until_it_is_put_again() {
        let text = "All is well. ".repeat(1000);
        let one = One::new(text.clone());
        let whole = 0..text.len() as u64;
        let damaged = text.replacen('A', "B", 1);
        std::fs::write(one.path(), &damaged).unwrap();
        let mut pieces = one.file().open(whole.clone(), None).unwrap();
        let mut got = 0;
        let cut = loop {
            match pieces.next(4096) {
                Ok(piece) => got += piece.len(),
                Err(error) => break error,
            }
        };
        assert!(
            got < text.len() && cut.to_string().contains("damaged"),
            "{got} {cut}"
        );
        for range in [whole.clone(), 0..1] {
            assert!(one.file().open(range, None).is_err());
        }
        let file = std::fs::File::options()
            .write(true)
            .open(one.path())
            .unwrap();
        std::fs::write(one.path(), &text).unwrap();
        let later = Clock::System.now() + std::time::Duration::from_secs(2);
        file.set_modified(later).unwrap();
        let body = Body::Stored(Stored::whole(Arc::new(one.file())));
        assert_eq!(body.read_all().unwrap(), text.as_bytes());
        assert_eq!(
            one.cache.checked(&one.file().item.digest),
            Some(DigestCheck::Whole)
        );
    }
}
