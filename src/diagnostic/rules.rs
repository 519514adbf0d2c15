//! The rules that diagnostics name, for `check --explain` and SARIF.
//!
//! Every rule that any command can print is in this table; a test compares it with the source.

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name in diagnostics.
    pub id: &'static str,
    /// The rule in one sentence.
    pub title: &'static str,
    /// Its reason, and the consequence of breaking it.
    pub text: &'static str,
}

/// All rules: the numbered ones of the navigation, then the others by name.
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
            The listing is shown on the root page of a group, so it has no effect where no group has a \
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
            Without any `METHOD /path` entry below, every endpoint has a page, in groups by tag. With \
            one such entry, only listed endpoints have pages.\n\n\
            In `docs.json`, a specification that does not exist, an endpoint that it does not have, or \
            an endpoint where no specification applies is an error. A remote specification is fetched \
            if the configuration allows its host. If not, it is a warning, and nothing is generated \
            from it.\n\n\
            A page that names an endpoint (`openapi` in the frontmatter) which no specification has, or \
            whose specification is missing or was not fetched, shows its text with method and path only. \
            That is a warning, and so is an `openapi-schema` that names nothing.",
    },
    Rule {
        id: "N7",
        title: "one version is the default",
        text: "The first entry of `versions` (and of `languages`) is shown first, unless an entry says \
            `\"default\": true`. If two entries say so, the first one is used.",
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
        text: "An anchor is made from the words of a heading: in lower case, with `-` between \
            the words, without punctuation. The anchor that GitHub makes for the same heading \
            works too. `## Title {#id}` sets one.",
    },
    Rule {
        id: "canonical",
        title: "`canonical` is a page or a URL",
        text: "The address that search engines are asked to index instead of the page: a path of \
            this site, like `/guides/start`, or a URL. Any other value is left out.",
    },
    Rule {
        id: "conf",
        title: "the configuration of the gateway is valid",
        text: "Every key of `waypost.yaml` is known and its value is in the documented range. The \
            process does not start while there is an error, and `waypost upgrade` keeps the \
            running one.",
    },
    Rule {
        id: "config",
        title: "the documentation has a docs.json",
        text: "It is in the directory that is checked (the `directory` of the site's repository). \
            `mint.json`, the older format, is not read: `waypost convert` writes a `docs.json` \
            from it.\n\n\
            A tree without it may hold skills only. An update whose tree has neither, or that \
            would remove all pages of a site, fails, and the current release stays served. \
            `allow_empty: true` in the site's record and `waypost publish --allow-empty` \
            publish it anyway.",
    },
    Rule {
        id: "convert-computed",
        title: "the configuration of the other tool is data",
        text: "`waypost convert` runs no JavaScript. It reads literals, constants and imported \
            files; a value that a function computes is left out. Write it into docs.json.",
    },
    Rule {
        id: "convert-entry",
        title: "entries of the navigation name pages",
        text: "The entry of the sidebar or of `nav` was left out, because its page does not exist, \
            or because a sidebar here has pages and groups only.",
    },
    Rule {
        id: "convert-setting",
        title: "settings have a counterpart",
        text: "docs.json has nothing for this setting of the other tool, so it was left out.",
    },
    Rule {
        id: "convert-syntax",
        title: "pages use syntax that is read here",
        text: "The page has syntax of the other tool that would be shown as text. The note names \
            the first place in each page; `waypost convert` does not change the body of a page.",
    },
    Rule {
        id: "convert-title",
        title: "titles and labels are in the frontmatter",
        text: "The other tool takes the title of a page from its first heading, or the label from \
            its navigation. Here both are in the frontmatter, as `title` and `sidebarTitle`. \
            `waypost convert --pages` writes them.",
    },
    Rule {
        id: "drawn-image",
        title: "logo, icon and background can be drawn",
        text: "The images of previews and the icons of apps are drawn with the `logo`, the `favicon` \
            and `thumbnails.background` of docs.json: SVG, PNG or JPEG files of the site. An SVG \
            has at most 128 KiB, and no filters, patterns, images, markers, text on paths or dashed \
            lines. Without one that can be drawn, previews show the name of the site, and there are no icons.",
    },
    Rule {
        id: "duplicate-key",
        title: "a key is not repeated in its object",
        text: "Programs differ in which of the two values they use; keep one.",
    },
    Rule {
        id: "duplicate-label",
        title: "sibling labels are different",
        text: "Readers cannot tell two entries of the same name apart.",
    },
    Rule {
        id: "empty",
        title: "no element is empty",
        text: "A group or division without pages is left out of the site.",
    },
    Rule {
        id: "encoding",
        title: "files are UTF-8",
        text: "JSON, YAML and Markdown are read as UTF-8 only (RFC 8259 §8.1).",
    },
    Rule {
        id: "formula",
        title: "formulas are TeX that can be converted",
        text: "The formula is written in a part of TeX that is not supported, or has a mistake. Its \
            source is shown.",
    },
    Rule {
        id: "frame-host",
        title: "frames show allowed hosts",
        text: "An `<iframe>` of a host that pages may not embed is shown as a link to its address.",
    },
    Rule {
        id: "frontmatter",
        title: "frontmatter is YAML between two lines `---`",
        text: "It starts in the first line of the file. Frontmatter that cannot be read is an error, \
            because what it restricts must not be published; a value of the wrong kind is left out.",
    },
    Rule {
        id: "icon",
        title: "icons exist",
        text: "The name of an icon of the library, or the path of a file of the site. Without it \
            no icon is shown.",
    },
    Rule {
        id: "icon-library",
        title: "`icons.library` names a bundled library",
        text: "Font Awesome and Lucide are bundled. An icon of another library is drawn if one of \
            the two has an icon of the same name.",
    },
    Rule {
        id: "image",
        title: "images exist",
        text: "A path that starts with `/` starts at the documentation's root, another at the page's \
            own directory.",
    },
    Rule {
        id: "image-tag",
        title: "images of previews exist",
        text: "`og:image` and `twitter:image` in the frontmatter of a page name a file of the site, \
            like `/images/start.png`, or a URL that begins with `https://`. Any other value is \
            left out.",
    },
    Rule {
        id: "json-syntax",
        title: "JSON files are valid JSON",
        text: "No comments, no comma after the last entry, double quotes (RFC 8259). `check --fix` corrects \
            mistakes that have one right answer.",
    },
    Rule {
        id: "language",
        title: "languages are named by the listed codes",
        text: "ar ca cs cn zh-Hant da nl en fi fr de he hi hu id it jp ko lv no pl pt-BR ro ru es sv tr \
            uk uz vi. Other spellings (ja, zh, zh-CN, en-US) are read with a warning.",
    },
    Rule {
        id: "limit",
        title: "files stay within the limits",
        text: "Nesting, the number of values, references and pages are bounded, so that no repository \
            can exhaust the service. The message names the limit.",
    },
    Rule {
        id: "link",
        title: "links lead to pages",
        text: "A link without `https://` leads into the site: to a page, a file of the repository, or \
            the source of a redirect.",
    },
    Rule {
        id: "link-dangling",
        title: "symbolic links lead to a file",
        text: "A symbolic link whose target does not exist is left out.",
    },
    Rule {
        id: "link-loop",
        title: "symbolic links form no cycle",
        text: "Symbolic links that lead to each other are left out.",
    },
    Rule {
        id: "link-outside",
        title: "symbolic links stay inside the repository",
        text: "A symbolic link whose target is outside of the repository is left out.",
    },
    Rule {
        id: "link-scheme",
        title: "links have a safe scheme",
        text: "A link starts with `https:`, `http:`, `mailto:` or `tel:`, or leads into the site. \
            Any other link, like `javascript:`, is not written.",
    },
    Rule {
        id: "mdx-component",
        title: "components are known",
        text: "The component is neither built in nor imported, or the element is one that pages cannot \
            use. Its content is shown.",
    },
    Rule {
        id: "mdx-import",
        title: "imports name files of the documentation",
        text: "An import from a package or of a file that does not exist has no effect.",
    },
    Rule {
        id: "mdx-script",
        title: "JSX can be evaluated when the site is built",
        text: "An expression or a component failed, is over a limit, or needs what a build does not \
            have: a browser, the network, the time, or a package. A note is shown in its place, \
            and the content of the component. A component may test for a browser with \
            `typeof window === \"undefined\"`.",
    },
    Rule {
        id: "mdx-syntax",
        title: "JavaScript can be read",
        text: "An expression in braces, an import or an export is not valid JavaScript. An expression \
            is shown as text; an import or export has no effect. Braces that are meant as text \
            are written `\\{`.",
    },
    Rule {
        id: "mdx-tag",
        title: "tags are closed",
        text: "A tag that is not closed, or not opened, is shown as text.",
    },
    Rule {
        id: "no-day",
        title: "with `metadata.timestamp`, every page has the day of its last change",
        text: "The days come from the commits of the branch, along first parents. A page has no day if \
            its last change is not among the newest 10,000 commits, or if the clone has only a part of \
            the history, as `actions/checkout` makes it. Such pages are shown without a day.\n\n\
            Fetch all commits (`git fetch --unshallow`, or `fetch-depth: 0` in a workflow), or write \
            `lastUpdatedDate` in the frontmatter. An update fetches the history by itself.",
    },
    Rule {
        id: "no-effect",
        title: "settings have an effect",
        text: "The key belongs to another tool; this service does nothing with it.",
    },
    Rule {
        id: "no-page",
        title: "the documentation has a page",
        text: "A release without any page would remove all pages of the site. The update fails, \
            and the current release stays served. `allow_empty: true` in the site's record and \
            `waypost publish --allow-empty` publish it anyway.",
    },
    Rule {
        id: "openapi",
        title: "specifications are OpenAPI 3.0 or 3.1",
        text: "JSON or YAML, in one file. References that lead nowhere are a warning.",
    },
    Rule {
        id: "page",
        title: "a page is a readable file with a path of its own",
        text: "`a.md` beside `a.mdx` would be the same page. `a/index.mdx` beside `a.mdx` has the \
               same URL and is left out, with a warning.",
    },
    Rule {
        id: "page-duplicate",
        title: "a page is listed once in its language and version",
        text: "Its first place gives breadcrumb, previous and next page; the others only link to it.",
    },
    Rule {
        id: "page-languages",
        title: "each language has pages of its own",
        text: "If two languages list the same page, it belongs to the first.",
    },
    Rule {
        id: "page-limit",
        title: "a page stays within the limits",
        text: "If the page is too large or its parts are nested too deep, its source is shown. Of a tag \
               with more than 256 attributes, the others are left out. Code with more than 64 KiB, or \
               with a line of more than 2,000 bytes, is shown without colours; so is code that costs \
               too much work to colour, which only a build finds. The pages of a specification share \
               128 MiB of texts; a page shows at most 1 MiB of them, and its other fields and \
               examples are left out.",
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
        id: "page-removed",
        title: "a page that moves leaves a redirect",
        text: "Links and search results still lead to where a page was. `check --since REF` finds the \
            pages that a commit had and that now are neither pages nor redirected; an update \
            compares with the current release.",
    },
    Rule {
        id: "path-missing",
        title: "paths exist",
        text: "The path, or a directory of it, does not exist.",
    },
    Rule {
        id: "redirect",
        title: "redirects are valid",
        text: "A cycle is an error, and so is a name in the destination that the source does not have. \
            A source that is a page, or that no request can match, is a warning.",
    },
    Rule {
        id: "reference",
        title: "`$ref` names a JSON file of the documentation",
        text: "Relative to the file that contains it, inside the documentation's root, without a cycle. Keys \
            beside it override the keys of the file.",
    },
    Rule {
        id: "required",
        title: "required keys are present",
        text: "A label must not be missing or empty, and a redirect needs a destination.",
    },
    Rule {
        id: "shape",
        title: "values have the right type",
        text: "A value of the wrong type counts as absent.",
    },
    Rule {
        id: "site",
        title: "site records are valid",
        text: "Every key of a record is known and its value fits. A record with an error does not \
            replace the one that is served.",
    },
    Rule {
        id: "skill-companion",
        title: "a skill is one file",
        text: "Only `SKILL.md` is served. A text that refers to the files beside it sends agents to \
            files that they cannot get.",
    },
    Rule {
        id: "skill-count",
        title: "there are at most 1000 skills",
        text: "Further skills are left out.",
    },
    Rule {
        id: "skill-description",
        title: "a skill has a short description",
        text: "`description` is a text that lists show; clients drop a skill without it.",
    },
    Rule {
        id: "skill-empty",
        title: "no skill file is empty",
        text: "An empty skill file is left out.",
    },
    Rule {
        id: "skill-encoding",
        title: "skills are UTF-8",
        text: "A file in another encoding is left out.",
    },
    Rule {
        id: "skill-file",
        title: "skill files are in a known place",
        text: "A skill is the file `SKILL.md` in a directory of its own, or `skill.md` in the root \
            of the documentation.",
    },
    Rule {
        id: "skill-frontmatter",
        title: "a skill has frontmatter that can be read",
        text: "A skill starts with YAML between two lines `---`. Texts that contain `: ` or ` #` \
            need quotes.",
    },
    Rule {
        id: "skill-groups",
        title: "a skill without `groups` is public",
        text: "A skill that names `groups` is not served.",
    },
    Rule {
        id: "skill-internal",
        title: "`metadata.internal` hides a skill from installers",
        text: "The `skills` tool does not list it; it is still served.",
    },
    Rule {
        id: "skill-meta",
        title: "the metadata of a skill has the right types",
        text: "A value of the wrong type is left out of descriptions. The file is served as it is.",
    },
    Rule {
        id: "skill-name",
        title: "a skill has the name of its directory",
        text: "`name` has lower-case letters, digits and hyphens, and is the same as the name of \
            the directory. Clients drop a skill without a name, and some drop one with another \
            name than its directory.",
    },
    Rule {
        id: "skill-none",
        title: "a skill file can be used",
        text: "There are skill files, but none of them can be served; the other messages say why. \
            The pages are still published, and the site serves a generated skill.",
    },
    Rule {
        id: "skill-size",
        title: "skills stay within the limits",
        text: "A skill file has at most 1 MiB, and all skill files together have at most 16 MiB. A file \
            above a limit is left out.",
    },
    Rule {
        id: "skill-slug",
        title: "skills have different names",
        text: "Two skills with the same slug cannot have the same address; the second gets a \
            number.",
    },
    Rule {
        id: "skill-unsafe",
        title: "no page instructs agents against their users",
        text: "A sentence that tells an agent to ignore its instructions, to give away data of its user, or to keep \
            something from the user is not used in the generated skill.",
    },
    Rule {
        id: "snippet",
        title: "imported snippets exist",
        text: "A path that starts with `/` starts at the documentation's root.",
    },
    Rule {
        id: "source-index",
        title: "the index of git can be read",
        text: "Without it, files that git ignores are left out even if they are recorded.",
    },
    Rule {
        id: "source-lfs",
        title: "files are in the repository itself",
        text: "A file that Git LFS stores elsewhere is only a pointer here, and is left out.",
    },
    Rule {
        id: "source-name",
        title: "file names can be paths of URLs",
        text: "A file whose name is not UTF-8 or contains control characters is left out.",
    },
    Rule {
        id: "source-read",
        title: "files can be read",
        text: "The file is in the repository but could not be read. Try again; if the error \
            stays, the storage is broken.",
    },
    Rule {
        id: "stylesheet",
        title: "stylesheets change the content and documented parts of a page",
        text: "Every `.css` file of the documentation applies to all pages. Rules that would \
            load a file from another server (`@import`, `url()`), rules that could cover the \
            parts around the content, and text that is not CSS are left out. The other rules of \
            the file apply.",
    },
    Rule {
        id: "unknown-key",
        title: "keys are known",
        text: "Unknown keys are ignored; for a likely misspelling the message names the known key.",
    },
    Rule {
        id: "variable",
        title: "names in double braces are spelled right",
        text: "`{{name}}` in a page is replaced by the value of `name` in `variables` of `docs.json`. \
            A name that is not there stays as it is; this one is similar to a variable.",
    },
    Rule {
        id: "yaml-syntax",
        title: "YAML files are valid YAML",
        text: "The file cannot be read from here on (YAML 1.2).",
    },
];

/// Returns a rule by its name, in any letter case.
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

    /// Returns the literals that follow one of some texts in a source file, without its tests.
    fn literals_after<'s>(source: &'s str, starts: &[&str]) -> Vec<&'s str> {
        let source = source.split("#[cfg(test)]").next().unwrap();
        let after = |start: &&str| {
            let parts: Vec<_> = source.split(*start).skip(1).collect();
            parts.into_iter()
        };
        let literals = starts.iter().flat_map(after).filter_map(|rest| {
            let literal = rest.trim_start().strip_prefix('"')?;
            literal.split('"').next()
        });
        literals.collect()
    }

    fn sources(directory: &std::path::Path, out: &mut Vec<String>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() && name != "tests" {
                sources(&path, out);
            } else if name.ends_with(".rs") && name != "tests.rs" {
                out.push(std::fs::read_to_string(&path).unwrap());
            }
        }
    }

    #[test]
    fn the_table_has_exactly_the_rules_that_the_source_names() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = Vec::new();
        sources(&root, &mut files);
        let mut named = std::collections::BTreeSet::new();
        for source in &files {
            let calls = [
                "Diagnostic::error(",
                "Diagnostic::warning(",
                "self.warn(",
                "reader.diagnostic(",
                "dropped_by_clients(",
                ".rule(",
            ];
            named.extend(literals_after(source, &calls));
            // `self.text_of(head, "name", "skill-name")` and functions that return a rule.
            let others = [
                "\"name\", ",
                "\"description\", ",
                "{ .. } => ",
                "SpanDiagnostic, ",
            ];
            let is_rule =
                |id: &&str| id.contains("skill-") || id.contains("link-") || id.contains("path-");
            named.extend(literals_after(source, &others).into_iter().filter(is_rule));
            // A constant whose comment says that it is a rule.
            for (at, line) in source.lines().enumerate() {
                let Some((declared, value)) = line.split_once(": &str = \"") else {
                    continue;
                };
                let comment = source.lines().nth(at.saturating_sub(1)).unwrap_or_default();
                if declared.contains("const ") && comment.to_lowercase().contains("rule") {
                    named.extend(value.split('"').next());
                }
            }
        }
        // The comment of the media type of speculation rules looks the same.
        named.retain(|id| !id.contains('/'));
        let table: std::collections::BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(named.difference(&table).collect::<Vec<_>>(), [&""; 0]);
        // Other sources than this one report each rule of the table.
        let others = files
            .iter()
            .filter(|source| !source.contains("pub const RULES"))
            .collect::<Vec<_>>();
        let is_unused = |id: &&&str| {
            let literal = format!("\"{id}\"");
            !others.iter().any(|source| source.contains(&literal))
        };
        let unused: Vec<_> = table.iter().filter(is_unused).collect();
        assert_eq!(unused, [&""; 0]);
    }

    #[test]
    fn names_are_sorted_and_unique() {
        let named: Vec<_> = RULES[8..].iter().map(|rule| rule.id).collect();
        assert!(named.is_sorted_by(|a, b| a < b), "{named:?}");
    }
}
