//! What the paths of links mean, wherever they are written.

/// The rule that a link without its page breaks.
pub const LINK: &str = "link";

/// Returns the path of a page without its extension and a slash at its end.
#[must_use]
pub fn without_ending(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    let bare = path
        .strip_suffix(".mdx")
        .or_else(|| path.strip_suffix(".md"));
    bare.unwrap_or(path)
}

/// Paths that the service answers beside pages.
#[must_use]
pub fn is_service_path(path: &str) -> bool {
    matches!(
        path,
        "llms.txt" | "llms-full.txt" | "skill.md" | "sitemap.xml" | "robots.txt" | "mcp"
    ) || path.starts_with(".well-known/")
}
