//! The rules a documentation is checked against, for `check --explain`.
//!
//! Every diagnostic names one of them; a test holds that each has a golden case.

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name in diagnostics.
    pub id: &'static str,
    /// What it asks for.
    pub title: &'static str,
    /// Why, and what is done about what breaks it.
    pub text: &'static str,
}

/// All of them: the numbered rules of the navigation, then the others by name.
pub const RULES: &[Rule] = &[
    Rule {
        id: "N1",
        title: "`navigation` has one primary pattern",
        text: "The root of `navigation` has exactly one of `pages`, `groups`, `tabs`, `anchors`, \
            `dropdowns`, `products`, `versions` and `languages`. Two of them would compete for the \
            same place on the page; nest one inside the other.\n\n\
            Error. With `\"lenient\": true` in docs.json two patterns are a warning and one is kept, \
            in this order: products, languages, versions, tabs, dropdowns, anchors, groups, pages.",
    },
    Rule {
        id: "N2",
        title: "an element has one kind of children",
        text: "A tab may hold anchors that hold groups; it cannot hold anchors and groups side by \
            side. A link (`href`) has no children at all.\n\n\
            Error; a warning with `\"lenient\": true`, which keeps `href`, else the first of products, \
            languages, versions, tabs, dropdowns, anchors, groups, pages, menu. Children that the \
            specification does not list for an element (tabs in a product, versions in a dropdown) are \
            accepted with a warning.",
    },
    Rule {
        id: "N3",
        title: "`root` names the page a group's title opens",
        text: "`root` is the path of a page, at any level. The page need not be listed among the \
            group's pages; when it is, that entry is left out, because the title already leads there.",
    },
    Rule {
        id: "N4",
        title: "`directory` lists a group's children on its root page",
        text: "`accordion`, `card` or `none`. All groups below inherit it unless they set their own. \
            The listing stands on the root page of a group, so it has no effect where no group has a \
            `root`.",
    },
    Rule {
        id: "N5",
        title: "`expanded` affects nested groups only",
        text: "Top-level groups are always open and cannot be closed; `expanded` on one has no effect.",
    },
    Rule {
        id: "N6",
        title: "`openapi` is inherited, and endpoints are generated or listed",
        text: "`openapi` names a specification for an element and all below it, until one sets its own. \
            Without any `METHOD /path` entry below, there is a page for every endpoint: in a group \
            among its own pages, in another element as groups by tag. With one such entry, only listed \
            endpoints have pages.\n\n\
            A specification that is not there, an endpoint it does not have, or an endpoint where no \
            specification applies is an error. A remote specification is fetched where the \
            configuration names its host; elsewhere it is a warning and nothing is \
            generated from it.",
    },
    Rule {
        id: "N7",
        title: "one version is the default",
        text: "The first entry of `versions` (and of `languages`) is shown first, unless an entry says \
            `\"default\": true`. Of two such entries the first counts.",
    },
    Rule {
        id: "N8",
        title: "a language may have its own banner, footer and navbar",
        text: "`banner` has `content` and `dismissible`; `footer` has `socials` and `links`; `navbar` \
            has `links` and `primary`. Each replaces the site's as a whole.",
    },
    Rule {
        id: "anchor",
        title: "a link's `#anchor` names a heading of its page",
        text: "Anchors are made of headings as GitHub makes them: lower case, spaces as `-`, punctuation \
            gone. `## Title {#id}` sets one.",
    },
    Rule {
        id: "config",
        title: "a documentation has a docs.json",
        text: "It lies in the directory that is checked (the `directory` of the site's repository).",
    },
    Rule {
        id: "duplicate-key",
        title: "a key stands once in its object",
        text: "Which of two values counts differs between readers; keep one.",
    },
    Rule {
        id: "duplicate-label",
        title: "labels side by side differ",
        text: "Readers cannot tell two entries of the same name apart.",
    },
    Rule {
        id: "empty",
        title: "an element has something in it",
        text: "A group or division without pages is left out of the site.",
    },
    Rule {
        id: "encoding",
        title: "files are UTF-8",
        text: "JSON, YAML and Markdown are read as UTF-8 only (RFC 8259 §8.1).",
    },
    Rule {
        id: "frontmatter",
        title: "frontmatter is YAML between two lines `---`",
        text: "It starts in the first line of the file. Frontmatter that cannot be read is an error, \
            because what it restricts must not be published; a value of the wrong kind is left out.",
    },
    Rule {
        id: "image",
        title: "images are there",
        text: "A path that starts with `/` starts at the documentation's root, another at the page's \
            own directory.",
    },
    Rule {
        id: "json-syntax",
        title: "JSON is JSON",
        text: "No comments, no comma after the last entry, double quotes (RFC 8259). `check --fix` mends \
            what has one right answer.",
    },
    Rule {
        id: "language",
        title: "languages are named by the listed codes",
        text: "ar ca cs cn zh-Hant da nl en fi fr de he hi hu id it jp ko lv no pl pt-BR ro ru es sv tr \
            uk uz vi. Other spellings of these (ja, zh, zh-CN, en-US) are read with a warning.",
    },
    Rule {
        id: "limit",
        title: "files stay within the limits",
        text: "Nesting, the number of values, references and pages are bounded, so that no repository \
            can exhaust the service.",
    },
    Rule {
        id: "link",
        title: "links lead to pages",
        text: "A link without `https://` leads into the site: to a page, a file of the repository, or \
            the source of a redirect.",
    },
    Rule {
        id: "no-effect",
        title: "settings have an effect",
        text: "The key belongs to another tool; this service does nothing with it.",
    },
    Rule {
        id: "openapi",
        title: "specifications are OpenAPI 3.0 or 3.1",
        text: "JSON or YAML, in one file. References that lead nowhere are a warning.",
    },
    Rule {
        id: "page",
        title: "a page is a readable file with a path of its own",
        text: "`a.md` beside `a.mdx` would be the same page.",
    },
    Rule {
        id: "page-duplicate",
        title: "a page is listed once in its language and version",
        text: "Its first place gives breadcrumb, previous and next page; the others only link to it.",
    },
    Rule {
        id: "page-gone",
        title: "a page that moves leaves a redirect",
        text: "Links and search results still lead to where a page was. `check --since REF` finds the \
            pages that a commit had and that now are neither pages nor redirected; an update finds \
            those of the release before it.",
    },
    Rule {
        id: "page-languages",
        title: "each language has pages of its own",
        text: "A page has one language; listed in two, it belongs to the first.",
    },
    Rule {
        id: "page-missing",
        title: "entries of `pages` name pages",
        text: "An entry without its page is left out. A page that `.waypostignore` ignores counts as \
            missing, and the message names the pattern.",
    },
    Rule {
        id: "page-path",
        title: "pages are named by path without extension",
        text: "From the documentation's root, without leading or trailing slash. Other spellings are \
            read with a warning; a path out of the root is an error.",
    },
    Rule {
        id: "redirect",
        title: "redirects lead somewhere",
        text: "Circles and names that the source does not have are errors; a source that is a page, or \
            that no request can have, is a warning.",
    },
    Rule {
        id: "reference",
        title: "`$ref` names a JSON file of the documentation",
        text: "Relative to the file it stands in, inside the documentation's root, not in a circle. Keys \
            beside it override those of the file.",
    },
    Rule {
        id: "required",
        title: "what is required is there",
        text: "A label that is missing or empty, a redirect without destination.",
    },
    Rule {
        id: "shape",
        title: "values have the right type",
        text: "A value of the wrong type counts as absent.",
    },
    Rule {
        id: "snippet",
        title: "imported snippets are there",
        text: "A path that starts with `/` starts at the documentation's root.",
    },
    Rule {
        id: "unknown-key",
        title: "keys are known",
        text: "Unknown keys are passed over; a likely misspelling names what was meant.",
    },
    Rule {
        id: "yaml-syntax",
        title: "YAML is YAML",
        text: "The file cannot be read from here on (YAML 1.2).",
    },
];

/// Returns a rule by its name, in any case.
#[must_use]
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.id.eq_ignore_ascii_case(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_by_name() {
        assert_eq!(find("n2").map(|rule| rule.id), Some("N2"));
        assert!(find("N9").is_none());
    }

    #[test]
    fn names_are_in_order_and_stand_once() {
        let named: Vec<_> = RULES[8..].iter().map(|rule| rule.id).collect();
        assert!(named.is_sorted_by(|a, b| a < b), "{named:?}");
    }
}
