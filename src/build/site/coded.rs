//! Files with their encoded variants.

use crate::build::previous::PreviousRelease;
use crate::release::ReleaseFile;
use crate::response::Encoding;

/// Returns a file with each encoded variant that is smaller than the file.
pub(super) fn coded(
    path: &str,
    identity: ReleaseFile,
    previous: Option<&PreviousRelease<'_>>,
    codings: &[Encoding],
    encode: impl Fn(Encoding, &[u8]) -> Option<Vec<u8>>,
) -> Vec<(String, ReleaseFile)> {
    let previous = previous.filter(|previous| previous.has(path, &identity));
    let mut files = Vec::with_capacity(1 + codings.len());
    for &encoding in codings {
        let path = format!("{path}{}", encoding.suffix());
        let taken = previous.and_then(|previous| previous.take(&path));
        let coded = match taken {
            Some(taken) => taken,
            None => {
                let coded = encode(encoding, &identity.bytes);
                coded.map(|coded| ReleaseFile::new(coded, &identity.media_type))
            }
        };
        files.extend(coded.map(|coded| (path, coded)));
    }
    files.push((path.to_owned(), identity));
    files
}
