//! The meaning of link paths.

/// The rule about links to missing pages.
pub const LINK: &str = "link";

/// Returns the path of a page without its extension and without slashes at its end.
#[must_use]
pub fn without_ending(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let bare = path
        .strip_suffix(".mdx")
        .or_else(|| path.strip_suffix(".md"));
    bare.unwrap_or(path)
}

/// Returns whether the service itself serves this path.
#[must_use]
pub fn is_service_path(path: &str) -> bool {
    matches!(
        path,
        "llms.txt" | "llms-full.txt" | "skill.md" | "sitemap.xml" | "robots.txt" | "mcp"
    ) || path.starts_with(".well-known/")
}
