//! Articles that an earlier build has made.

use super::*;

/// Texts that depend on other pages, on snippets, on images and on nothing.
const TEXTS: [&str; 7] = [
    "Plain.",
    "---\ntitle: Titled\n---\n\nSee [b](/b) and [c](./c#x).",
    "![](/images/x.svg) ![](/images/y.png)",
    "import S from \"/snippets/s.mdx\"\n\n<S />\n\nAfter.",
    "---\nhidden: true\n---\n\n## A\n\n```rust\nfn a() {}\n```\n",
    "---\ngroups: [staff]\n---\n\nSecret.",
    "<Unknown>{1 +}</Unknown>",
];

fn tree(pages: &[Option<usize>], snippet: Option<&str>, image: bool) -> Tree {
    let path = |text: &str| TreePath::parse(text).unwrap();
    let config = r#"{"name": "A", "navigation": {"pages": ["a", "b", "c", "d"]}}"#;
    let mut files = vec![(path("docs.json"), config.into())];
    for (name, text) in ["a", "b", "c", "d"].iter().zip(pages) {
        let long = "Words to compress. ".repeat(100);
        let text = text.map(|text| format!("{}\n\n{long}", TEXTS[text]));
        files.extend(text.map(|text| (path(&format!("{name}.mdx")), text.into())));
    }
    files.extend(snippet.map(|text| (path("snippets/s.mdx"), text.to_owned().into())));
    files.extend(image.then(|| (path("images/x.svg"), "<svg/>".into())));
    Tree::from_files(files, [])
}

fn edits() -> impl Strategy<Value = Tree> {
    let page = proptest::option::weighted(0.9, 0..TEXTS.len());
    let pages = proptest::collection::vec(page, 4);
    let snippet = proptest::option::of(proptest::sample::select(vec!["One.", "Two."]));
    (pages, snippet, any::<bool>()).prop_map(|(pages, snippet, image)| tree(&pages, snippet, image))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn cached_articles_never_change_the_release(
        trees in proptest::collection::vec(edits(), 2..4)
    ) {
        let options = Options::default();
        let mut before: Option<Built> = None;
        for tree in trees {
            let input = input(tree);
            let alone = build(&input, &options);
            let read = |item: &Item| {
                let release = &before.as_ref()?.release;
                let mut files = release.files();
                let (_, file) = files.find(|(_, file)| file.digest() == item.digest)?;
                Some(file.clone())
            };
            let previous = Previous {
                // The articles are read as the next process reads them.
                articles: before.as_ref().map_or_else(Articles::default, |built| {
                    Articles::from_bytes(&built.articles.to_bytes()).unwrap()
                }),
                release: before.as_ref().map(|built| PreviousRelease {
                    inventory: built.release.inventory(),
                    file: &read,
                }),
            };
            let after = build_after(&input, &options, &previous);
            prop_assert_eq!(after.release.id(), alone.release.id());
            prop_assert_eq!(&after.report.diagnostics, &alone.report.diagnostics);
            before = Some(after);
        }
    }
}

#[test]
fn an_article_is_reused_unless_its_page_or_snippet_changed() {
    let render = |snippet, articles| {
        let input = input(tree(&[Some(0), Some(3), None, None], Some(snippet), false));
        let previous = Previous {
            articles,
            release: None,
        };
        build_after(&input, &Options::default(), &previous).articles
    };
    let first = render("One.", Articles::default());
    let again = render("One.", first.clone());
    let other = render("Two.", first.clone());
    assert_eq!(first.shared(&again), 2);
    assert_eq!(first.shared(&other), 1);
}
