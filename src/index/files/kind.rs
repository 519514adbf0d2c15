//! The media types of files in a release, as constants for responses.

/// The type of a file that a browser saves instead of showing.
const UNKNOWN: &str = "application/octet-stream";

/// The most frequent types come first.
const KNOWN: [&str; 28] = [
    "text/html; charset=utf-8",
    "text/markdown; charset=utf-8",
    "text/css; charset=utf-8",
    "text/javascript; charset=utf-8",
    "image/png",
    "image/svg+xml",
    "application/json",
    "application/speculationrules+json",
    "image/webp",
    "image/jpeg",
    "image/gif",
    "image/avif",
    "image/x-icon",
    "font/woff2",
    "font/woff",
    "text/plain; charset=utf-8",
    "application/xml; charset=utf-8",
    "application/rss+xml; charset=utf-8",
    "application/pdf",
    "application/yaml",
    "application/zip",
    "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\"",
    "audio/mpeg",
    "audio/wav",
    "text/csv; charset=utf-8",
    "video/mp4",
    "video/quicktime",
    "video/webm",
];

/// Returns the constant that is equal to the media type in a release.
pub(super) fn known(media_type: &str) -> &'static str {
    let mut known = KNOWN.into_iter();
    known.find(|known| *known == media_type).unwrap_or(UNKNOWN)
}
