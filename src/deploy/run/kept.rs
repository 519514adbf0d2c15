//! What the build of an update leaves to the next one of the same repository.
//!
//! A file beside the mirror holds the articles of the last build and names its release, so
//! that an update renders and compresses what has changed and nothing else. It is a cache:
//! what another program wrote, is damaged or is not there is as good as nothing, and a file
//! over [`BYTES_MAX`] is not written. It appears whole or not at all, by a rename.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::job::Job;
use crate::build::Articles;
use crate::digest::Digest;
use crate::release::ReleaseId;

/// What the file begins with.
const MAGIC: &[u8; 16] = b"waypost-kept-01\n";
/// How many bytes the file may have.
const BYTES_MAX: usize = 64 << 20;
/// How many bytes articles may have once they are decompressed.
const ARTICLES_BYTES_MAX: usize = 1 << 30;
/// Fast: a text is written and read once an update.
const LEVEL: i32 = 1;
const DIGEST_BYTES: usize = 32;

/// What a build leaves.
#[derive(Debug)]
pub(super) struct Kept {
    /// The release that it made.
    pub(super) release: ReleaseId,
    /// Its articles.
    pub(super) articles: Articles,
}

// === impl Kept ===

impl Kept {
    /// Reads what the last build of a job left; `None` when there is nothing of use.
    pub(super) fn read(job: &Job) -> Option<Self> {
        let mut bytes = Vec::new();
        let file = File::open(path(job)).ok()?;
        let limit = BYTES_MAX as u64 + 1;
        file.take(limit).read_to_end(&mut bytes).ok()?;
        Self::parse(&bytes, &program()?)
    }

    /// Keeps it for the next build of the job.
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
    job.git.mirrors.join(format!("{}.kept", &digest[..32]))
}

/// Names this program: another may render otherwise. Reading all of it would take longer
/// than what it is asked for, so its file tells: replaced or rewritten, it is another.
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
    use crate::build::{Before, Options, build_after};
    use crate::source::{Tree, TreePath};

    fn kept() -> Kept {
        let file =
            |path: &str, text: &str| (TreePath::parse(path).unwrap(), text.to_owned().into());
        let config = r#"{"name": "A", "navigation": {"pages": ["index"]}}"#;
        let tree = Tree::from_files([file("docs.json", config), file("index.mdx", "Text.")], []);
        let (built, articles) = build_after(&tree, &Options::default(), &Before::default());
        Kept {
            release: built.release.id(),
            articles,
        }
    }

    #[test]
    fn what_was_written_is_read_back_by_the_same_program_alone() {
        let kept = kept();
        let program = Digest::of(b"this");
        let bytes = kept.to_bytes(&program).unwrap();
        let read = Kept::parse(&bytes, &program).unwrap();
        assert_eq!(read.release, kept.release);
        assert_eq!(read.articles.len(), 1);
        assert!(Kept::parse(&bytes, &Digest::of(b"another")).is_none());
    }

    #[test]
    fn a_file_with_any_bit_changed_or_missing_is_nothing() {
        let program = Digest::of(b"this");
        let bytes = kept().to_bytes(&program).unwrap();
        // What names the release is looked up in the store, which has it or not.
        let release = MAGIC.len() + DIGEST_BYTES..MAGIC.len() + 2 * DIGEST_BYTES;
        for at in (0..bytes.len()).filter(|at| !release.contains(at)) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(Kept::parse(&damaged, &program).is_none(), "{at}");
            assert!(Kept::parse(&bytes[..at], &program).is_none(), "{at}");
        }
    }
}
