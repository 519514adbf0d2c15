//! What the build of an update leaves to the next one of the same repository.
//!
//! A file beside the mirror holds the articles of the last build and names its release, so
//! that an update renders and compresses what has changed and nothing else. It is a cache: a
//! file of another version of this program, a damaged one or none at all only makes the
//! next build slower, and a file over [`BYTES_MAX`] is not written. It is replaced by a
//! rename, so it is never half written.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::job::Job;
use crate::build::Articles;
use crate::digest::Digest;
use crate::release::ReleaseId;

/// The first bytes of the file.
const MAGIC: &[u8; 16] = b"waypost-cache-1\n";
/// How many bytes the file may have.
const BYTES_MAX: usize = 64 << 20;
/// How many bytes articles may have once they are decompressed.
const ARTICLES_BYTES_MAX: usize = 1 << 30;
/// A fast level: the file is written and read once an update.
const LEVEL: i32 = 1;
const DIGEST_BYTES: usize = 32;

/// What a build leaves to the next one.
#[derive(Debug)]
pub(super) struct BuildCache {
    /// The release that it made.
    pub(super) release: ReleaseId,
    /// Its articles.
    pub(super) articles: Articles,
}

// === impl BuildCache ===

impl BuildCache {
    /// Reads what the last build of a job left; `None` when there is nothing that can be used.
    pub(super) fn read(job: &Job) -> Option<Self> {
        let mut bytes = Vec::new();
        let file = File::open(path(job)).ok()?;
        let limit = BYTES_MAX as u64 + 1;
        file.take(limit).read_to_end(&mut bytes).ok()?;
        Self::parse(&bytes, &program()?)
    }

    /// Writes the file for the next build of the job.
    pub(super) fn write(&self, job: &Job) -> io::Result<()> {
        let Some(program) = program() else {
            return Ok(());
        };
        let bytes = self.to_bytes(&program)?;
        if bytes.len() > BYTES_MAX {
            return Ok(());
        }
        let path = path(job);
        // Builds of one project do not run at once; another's has another name.
        let temporary = path.with_extension("new");
        fs::write(&temporary, bytes)?;
        fs::rename(&temporary, &path)
    }

    /// `MAGIC`, then the digests of the program, of the release's inventory and of what
    /// follows, then the articles.
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

/// A project's repository, branch and directory name what is built from them.
fn path(job: &Job) -> PathBuf {
    let name = format!("{}\0{}\0{}", job.url, job.branch, job.directory);
    let digest = Digest::of(name.as_bytes()).to_string();
    job.git.mirrors.join(format!("{}.cache", &digest[..32]))
}

/// Identifies this program, because another version may render differently. Its digest would
/// take longer to compute than a build saves, so its file stands for it: a replaced or
/// rewritten file has another inode or time.
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
    fn a_cache_is_read_by_the_program_that_wrote_it_and_by_no_other() {
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
        // The release is looked up in the store; a wrong one is not found there.
        let release = MAGIC.len() + DIGEST_BYTES..MAGIC.len() + 2 * DIGEST_BYTES;
        for at in (0..bytes.len()).filter(|at| !release.contains(at)) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(BuildCache::parse(&damaged, &program).is_none(), "{at}");
            assert!(BuildCache::parse(&bytes[..at], &program).is_none(), "{at}");
        }
    }
}
