//! The build cache: data that a build saves for the next build of the same repository.
//!
//! A file beside the mirrors holds the articles of the last build and the id of its release. With
//! it, an update renders and compresses only the articles that have changed. It is only a cache:
//! if the file is missing, damaged or written by another version of this program, the next build
//! is slower and nothing else happens. A file larger than [`BYTES_MAX`] is not written.
//!
//! The build writes the file in its workspace, and the parent moves it to its place. Each project
//! has its own, so no project takes anything from the build of another. A project has one cache, for
//! its present repository. Caches count against the same limit as mirrors. If space is needed, the
//! caches with the oldest last write are removed first.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::build::Articles;
use crate::digest::Digest;
use crate::release::ReleaseId;
use crate::source::git;

/// The first bytes of the file.
const MAGIC: &[u8; 16] = b"waypost-cache-1\n";
/// The largest size of the file.
const BYTES_MAX: usize = 64 << 20;
/// The largest size of the decompressed articles.
const ARTICLES_BYTES_MAX: usize = 1 << 30;
/// A fast compression level: each update writes and reads the file only once.
const LEVEL: i32 = 1;
const DIGEST_BYTES: usize = 32;

/// The data that a build saves for the next build.
#[derive(Debug)]
pub(super) struct BuildCache {
    /// The release that the build made.
    pub(super) release: ReleaseId,
    /// The articles of the release.
    pub(super) articles: Articles,
}

// === impl BuildCache ===

impl BuildCache {
    /// Reads the cache of the last build; `None` if there is none, or it cannot be used.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let mut bytes = Vec::new();
        let file = File::open(path).ok()?;
        let limit = BYTES_MAX as u64 + 1;
        file.take(limit).read_to_end(&mut bytes).ok()?;
        Self::parse(&bytes, &program()?)
    }

    /// Reads only the id of the release.
    pub(super) fn release_of(path: &Path) -> Option<ReleaseId> {
        let mut head = [0; MAGIC.len() + 2 * DIGEST_BYTES];
        File::open(path).ok()?.read_exact(&mut head).ok()?;
        let rest = head.strip_prefix(MAGIC)?;
        let (writer, release) = rest.split_first_chunk::<DIGEST_BYTES>()?;
        let release = release.first_chunk::<DIGEST_BYTES>()?;
        let is_ours = writer == program()?.as_bytes();
        is_ours.then(|| ReleaseId::of(Digest::from_bytes(*release)))
    }

    /// Writes the cache into an existing file.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let Some(program) = program() else {
            return Ok(());
        };
        let bytes = self.to_bytes(&program)?;
        if bytes.len() > BYTES_MAX {
            return Ok(());
        }
        fs::write(path, bytes)
    }

    /// The format: `MAGIC`, then three digests (of the program, of the release's inventory, of
    /// the compressed articles), then the compressed articles.
    fn to_bytes(&self, program: &Digest) -> io::Result<Vec<u8>> {
        let articles = zstd::bulk::compress(&self.articles.to_bytes(), LEVEL)?;
        let mut bytes = MAGIC.to_vec();
        for digest in [program, self.release.digest(), &Digest::of(&articles)] {
            bytes.extend_from_slice(digest.as_bytes());
        }
        bytes.extend_from_slice(&articles);
        Ok(bytes)
    }

    fn parse(bytes: &[u8], program: &Digest) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (writer, rest) = rest.split_first_chunk::<DIGEST_BYTES>()?;
        let (release, rest) = rest.split_first_chunk::<DIGEST_BYTES>()?;
        let (digest, articles) = rest.split_first_chunk::<DIGEST_BYTES>()?;
        let is_whole = writer == program.as_bytes()
            && Digest::of(articles).as_bytes() == digest
            && bytes.len() <= BYTES_MAX;
        if !is_whole {
            return None;
        }
        let articles = zstd::bulk::decompress(articles, ARTICLES_BYTES_MAX).ok()?;
        Some(Self {
            release: ReleaseId::of(Digest::from_bytes(*release)),
            articles: Articles::from_bytes(&articles)?,
        })
    }
}

/// Returns the place of the cache of a project's documentation, in the directory of the mirrors.
pub(super) fn path(
    mirrors: &Path,
    project: &str,
    url: &str,
    branch: &str,
    directory: &str,
) -> PathBuf {
    let name = format!("{url}\0{branch}\0{directory}");
    let digest = Digest::of(name.as_bytes()).to_string();
    mirrors.join(format!("{}{}.cache", git::prefix(project), &digest[..32]))
}

/// Identifies this program, because another version may render differently.
///
/// A digest of the program would take longer to compute than the cache saves. So the metadata of
/// its file are used: a replaced or rewritten file has another inode or modification time.
fn program() -> Option<Digest> {
    let file = fs::metadata(Path::new("/proc/self/exe"))
        .or_else(|_| fs::metadata(std::env::current_exe()?))
        .ok()?;
    let text = format!(
        "{} {} {} {}.{}",
        env!("CARGO_PKG_VERSION"),
        file.ino(),
        file.len(),
        file.mtime(),
        file.mtime_nsec()
    );
    Some(Digest::of(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Input, Options, build};
    use crate::source::{Tree, TreePath};

    fn cache() -> BuildCache {
        let file =
            |path: &str, text: &str| (TreePath::parse(path).unwrap(), text.to_owned().into());
        let config = r#"{"name": "A", "navigation": {"pages": ["index"]}}"#;
        let tree = Tree::from_files([file("docs.json", config), file("index.mdx", "Text.")], []);
        let built = build(&Input::read(tree, &Options::default()), &Options::default());
        BuildCache {
            release: built.release.id(),
            articles: built.articles,
        }
    }

    #[test]
    fn a_project_has_one_cache_however_often_its_repository_changes() {
        let mirrors = tempfile::tempdir().unwrap();
        let of = |project: &str, branch: &str| path(mirrors.path(), project, "u", branch, "");
        fs::write(of("other", "0"), "other").unwrap();
        for branch in ["1", "2", "3", "3"] {
            let cache = of("acme", branch);
            git::remove_earlier(&cache).unwrap();
            fs::write(cache, branch).unwrap();
        }
        let names = fs::read_dir(mirrors.path()).unwrap();
        let texts = names.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap());
        let mut texts: Vec<_> = texts.collect();
        texts.sort();
        assert_eq!(texts, ["3", "other"]);
    }

    #[test]
    fn a_cache_of_another_program_is_not_read() {
        let cache = cache();
        let program = Digest::of(b"this");
        let bytes = cache.to_bytes(&program).unwrap();
        let read = BuildCache::parse(&bytes, &program).unwrap();
        assert_eq!(read.release, cache.release);
        assert_eq!(read.articles.len(), 1);
        assert!(BuildCache::parse(&bytes, &Digest::of(b"another")).is_none());
    }

    #[test]
    fn a_cache_with_any_bit_changed_or_missing_is_not_used() {
        let program = Digest::of(b"this");
        let bytes = cache().to_bytes(&program).unwrap();
        // A damaged release id is not detected here: the store has no such release.
        let release = MAGIC.len() + DIGEST_BYTES..MAGIC.len() + 2 * DIGEST_BYTES;
        for at in (0..bytes.len()).filter(|at| !release.contains(at)) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(BuildCache::parse(&damaged, &program).is_none(), "{at}");
            assert!(BuildCache::parse(&bytes[..at], &program).is_none(), "{at}");
        }
    }
}
