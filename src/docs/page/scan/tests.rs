//! What a scan finds, and what it must not take for text.

use proptest::prelude::*;

use super::*;

#[track_caller]
fn check(text: &str, expected: &[(ReferenceKind, &str)]) {
    let scan = Scan::of(text, 0);
    let found: Vec<_> = scan
        .references
        .iter()
        .map(|r| (r.kind, &*r.target))
        .collect();
    assert_eq!(found, expected, "{text}");
    for reference in &scan.references {
        assert_eq!(&text[reference.range.clone()], &*reference.target);
    }
}

use ReferenceKind::{Image, Link, Snippet};

#[test]
fn links_and_images_are_found_with_their_places() {
    check(
        "é [a](/b \"t\") ![c](d(1).png) [e](<f g>)",
        &[(Link, "/b"), (Image, "d(1).png"), (Link, "f g")],
    );
    check("[![alt](i.png)](/x)", &[(Image, "i.png"), (Link, "/x")]);
    check(
        "[a]: https://x.y 'T'\n[^1]: note\n[b]: <c>\n",
        &[(Link, "https://x.y"), (Link, "c")],
    );
    check("[unclosed](/b", &[]);
}

#[test]
fn attributes_refer_too() {
    check(
        "<Card title=\"A\" href=\"/a\" /> <img src='i.png'/> <a href={\"/b\"}>",
        &[(Link, "/a"), (Image, "i.png"), (Link, "/b")],
    );
    check("<Snippet file=\"x.mdx\" />", &[(Snippet, "x.mdx")]);
    check("<A file=\"x.mdx\" href={url} />", &[]);
}

#[test]
fn imports_of_files_are_snippets_and_imports_of_packages_are_not() {
    check(
        "import A from '/snippets/a.mdx'\nimport { b } from \"./b.jsx\";\nimport c from 'react'\n\n[x](/y)",
        &[
            (Snippet, "/snippets/a.mdx"),
            (Snippet, "./b.jsx"),
            (Link, "/y"),
        ],
    );
}

#[test]
fn code_and_comments_are_no_text() {
    check("```md\n[a](/b)\n````\n[c](/d)", &[(Link, "/d")]);
    check("````\n```\n[a](/b)\n````\n[e](/f)", &[(Link, "/f")]);
    check("`[a](/b)` ``[c`](/d)`` [e](/f)", &[(Link, "/f")]);
    check(
        "{/* [a](/b)\n[c](/d) */} [e](/f) <!-- [g](/h) -->",
        &[(Link, "/f")],
    );
    check(
        "export const x = {\n  href: \"[a](/b)\"\n}\n\n[c](/d)",
        &[(Link, "/d")],
    );
    check("\\[a](/b", &[]);
}

#[test]
fn headings_have_the_anchors_that_links_to_them_use() {
    let text =
        "# One `two` [three](/x)!\n## One\n## One\n### Named {#id}\n#no\n## C++ & *Rust* ##\n";
    let scan = Scan::of(text, 0);
    let anchors: Vec<_> = scan
        .headings
        .iter()
        .map(|h| (h.level, &*h.anchor))
        .collect();
    assert_eq!(
        anchors,
        [
            (1, "one-two-three"),
            (2, "one"),
            (2, "one-1"),
            (3, "id"),
            (2, "c--rust")
        ]
    );
}

#[test]
fn components_can_be_linked_to_by_what_they_say() {
    let scan = Scan::of(
        "<Step title=\"First step\">\n<ParamField body=\"user_id\">\n<a id=\"here\"/>",
        0,
    );
    for anchor in ["first-step", "param-user_id", "here"] {
        assert!(scan.has_anchor(anchor), "{anchor}");
    }
}

proptest! {
    #[test]
    fn any_text_is_scanned(text in "[\\[\\]()!`~{}/*<>#=\"'é\\\\a \n-]{0,80}") {
        let scan = Scan::of(&text, 0);
        for reference in &scan.references {
            prop_assert_eq!(&text[reference.range.clone()], &*reference.target);
        }
    }
}
