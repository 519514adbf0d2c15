//! Hooks: the names by which stylesheets of authors reach the parts of a page.
//!
//! Public repositories of this kind use these names. Our HTML does not contain these
//! names: a hook in a stylesheet is replaced by the selector of the part. So an element of a page
//! may have the same name (a heading "Footer" has the id `footer`), and our own names can change.

/// A part of a page that stylesheets of authors can name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hook {
    /// The name that authors write.
    name: &'static str,
    /// The selector of the part, and the name itself for elements of pages that have it.
    pub(super) selector: &'static str,
    /// Whether the part is outside of the content.
    pub(super) is_shell: bool,
}

const fn shell(name: &'static str, selector: &'static str) -> Hook {
    Hook {
        name,
        selector,
        is_shell: true,
    }
}

const fn content(name: &'static str, selector: &'static str) -> Hook {
    Hook {
        name,
        selector,
        is_shell: false,
    }
}

// === impl Hook ===

impl Hook {
    /// Returns whether the hook names `<main>` itself.
    pub(super) fn is_main(&self) -> bool {
        self.selector.contains("(main,") || self.selector.contains(", main)")
    }
}

/// Hooks that are ids: `#navbar`.
const IDS: &[Hook] = &[
    shell("almond-background-color", "body"),
    shell("background-color", "body"),
    shell("banner", ":is(#banner, .banner)"),
    shell("body-content", ":is(#body-content, .columns)"),
    content("content", ":is(#content, main)"),
    content("content-area", ":is(#content-area, main)"),
    shell("content-container", ":is(#content-container, .columns)"),
    shell(
        "content-side-layout",
        ":is(#content-side-layout, .contents)",
    ),
    shell("footer", ":is(#footer, .bottom)"),
    content("header", ":is(#header, .title)"),
    shell("localization-select-trigger", ".selector.at-end > summary"),
    shell("navbar", ":is(#navbar, .top)"),
    shell("navigation-items", ":is(#navigation-items, .sidebar)"),
    shell("page-context-menu", ".actions"),
    content("page-title", ":is(#page-title, .title h1)"),
    shell("pagination", ":is(#pagination, .neighbours)"),
    shell("search-bar-entry", ".search"),
    shell("search-bar-entry-mobile", ".search"),
    shell("search-input", ".finder input"),
    shell("sidebar", ":is(#sidebar, .sidebar)"),
    shell("sidebar-content", ":is(#sidebar-content, .sidebar)"),
    shell("sidebar-group", ".sidebar .group"),
    shell("table-of-contents", ":is(#table-of-contents, .contents)"),
    shell("table-of-contents-content", ".contents"),
    shell("table-of-contents-layout", ".contents"),
    shell("topbar-cta-button", ".links .primary"),
    shell("topbar-links", ".links"),
];

/// Hooks that are classes: `.card`. As names of elements (`card`) they mean the same, unless
/// HTML has that element.
const CLASSES: &[Hook] = &[
    content("accordion", ":is(.accordion, .x-accordion)"),
    content("accordion-group", ":is(.accordions, .accordion-group)"),
    shell("advanced-footer", ".bottom"),
    content("breadcrumb-item", ".eyebrow li"),
    content("breadcrumb-list", ".eyebrow ol"),
    content("callout", ":is(.callout, .x-callout)"),
    content("card", ":is(.card, .x-card)"),
    content("card-group", ":is(.cards, .card-group)"),
    content("check", ":is(.check, .x-check)"),
    content("code-block", ":is(.code, .code-block)"),
    content("code-group", ":is(.codes, .code-group)"),
    content("color", ":is(.color, .x-color)"),
    content("color-item", ".color"),
    content("color-row", ":is(.color-row, .x-color-row)"),
    content("columns", ":is(.cards, .x-columns)"),
    content("danger", ":is(.danger, .x-danger)"),
    content("expandable", ":is(.field .accordion, .expandable)"),
    content("eyebrow", ":is(.eyebrow, .x-eyebrow)"),
    content("field", ":is(.field, .x-field)"),
    shell("footer", ":is(.bottom, .footer)"),
    content("frame", ":is(.frame, .x-frame)"),
    content("icon", ":is(.icon, .x-icon)"),
    content("info", ":is(.info, .x-info)"),
    content("link", "main a[href]"),
    content("mdx-content", ":is(article, .mdx-content)"),
    content("mermaid", ":is(.diagram, .mermaid)"),
    shell("method-nav-pill", ".method"),
    shell("mobile-nav-tabs-item", ".sections a"),
    shell("nav-anchor", ".anchors a"),
    shell("nav-anchors", ".anchors"),
    shell("nav-dropdown-content", ".selector > ul"),
    shell("nav-dropdown-item", ".selector li a"),
    shell("nav-dropdown-trigger", ".selector > summary"),
    shell("nav-logo", ".logo :is(img, svg)"),
    shell("nav-tabs", ".sections"),
    shell("nav-tabs-item", ".sections a"),
    shell("nav-tag-pill", ".sidebar .badge"),
    shell("navbar", ":is(.navbar, .top)"),
    shell("navbar-link", ":is(.navbar-link, .links a)"),
    content("note", ":is(.note, .x-note)"),
    shell("pagination-next", ".next a"),
    shell("pagination-prev", ".previous a"),
    content("panel", ":is(.panel, .x-panel)"),
    content("prose", ":is(article, .prose)"),
    shell("sidebar-group", ".sidebar .group ul"),
    shell("sidebar-group-header", ".group-title"),
    shell("sidebar-title", ".group-title"),
    content("step", ":is(.step, .x-step)"),
    content("steps", ":is(.steps, .x-steps)"),
    content("tabs", ":is(.tabs, .x-tabs)"),
    content("tile", ":is(.tile, .x-tile)"),
    content("tip", ":is(.tip, .x-tip)"),
    shell("toc", ":is(.contents, .toc)"),
    shell("toc-item", ".contents li"),
    content("tooltip", ":is(.tooltip, .x-tooltip)"),
    shell("topbar-right-container", ".links"),
    content("tree", ":is(.tree, .x-tree)"),
    content("update", ":is(.update, .x-update)"),
    content("warning", ":is(.warning, .x-warning)"),
];

/// Elements that a page has once, in its shell. If the content of a page has such an element, it is
/// written as a `<div>` with a class.
const ELEMENTS: &[Hook] = &[
    content("article", ":is(article, .x-article)"),
    shell("footer", ":is(.bottom, .x-footer)"),
    shell("header", ":is(.top, .x-header)"),
    content("main", ":is(main, .x-main)"),
    shell("nav", ":is(nav, .x-nav)"),
];

/// The names of [`CLASSES`] that are elements of HTML or SVG.
const HTML: [&str; 2] = ["footer", "link"];

/// Finds the hook that an id names.
pub(super) fn id(name: &str) -> Option<&'static Hook> {
    IDS.iter().find(|hook| hook.name == name)
}

/// Finds the hook that a class names.
pub(super) fn class(name: &str) -> Option<&'static Hook> {
    CLASSES.iter().find(|hook| hook.name == name)
}

/// Finds the hook that an element names.
pub(super) fn element(name: &str) -> Option<&'static Hook> {
    let own = ELEMENTS.iter().find(|hook| hook.name == name);
    own.or_else(|| class(name).filter(|hook| !HTML.contains(&hook.name)))
}

/// Returns the selectors of all parts.
pub(super) fn selectors() -> impl Iterator<Item = &'static str> {
    let all = IDS.iter().chain(CLASSES).chain(ELEMENTS);
    all.map(|hook| hook.selector)
}

/// Returns the names of all hooks as authors write them, for the documentation.
#[cfg(test)]
pub(super) fn documented() -> impl Iterator<Item = String> {
    let ids = IDS.iter().map(|hook| format!("#{}", hook.name));
    ids.chain(CLASSES.iter().map(|hook| format!(".{}", hook.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_are_sorted_and_have_classes_that_we_write() {
        for hooks in [IDS, CLASSES, ELEMENTS] {
            assert!(hooks.is_sorted_by(|a, b| a.name < b.name));
        }
        let styles = crate::render::layout::STYLES.concat() + crate::render::html::STYLES;
        for hook in IDS.iter().chain(CLASSES).chain(ELEMENTS) {
            for class in hook.selector.split('.').skip(1) {
                let end = class.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
                let class = &class[..end.unwrap_or(class.len())];
                let is_authors = class == hook.name || class.starts_with("x-");
                // These two have no style of their own.
                let is_unstyled = matches!(class, "previous" | "title");
                let is_ours = is_unstyled || styles.contains(&format!(".{class}"));
                assert!(is_authors || is_ours, "{} {class}", hook.name);
            }
        }
    }

    #[test]
    fn the_documentation_lists_every_hook() {
        let page = include_str!("../../../conf/demo/docs/write/stylesheets.mdx");
        for name in documented() {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
