//! How long does a check take?
//!
//! It is measured twice: with generated documentation that has every feature of the navigation
//! (1,100 pages of 3 KB with links, anchors, images and code, 24 specifications of 60 endpoints, in
//! JSON and YAML), and with a `docs.json` of 2.3 MB alone, with the shape of the largest real one
//! (languages, versions, tabs, nested groups). Neither may have diagnostics: otherwise writing them
//! would be measured too.

mod repository;

use std::fmt::Write as _;
use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use serde_json::json;
use waypost::docs::{self, Extent, Options};
use waypost::source::Tree;

use repository::{PAGES, SPECIFICATIONS, path, repository};

const ENDPOINTS: usize = 60;

fn page(number: usize) -> String {
    let next = (number + 1) % PAGES;
    let mut text = format!(
        "---\ntitle: Page {number}\ndescription: About {number}\nicon: star\n---\n\nimport Note from \"/snippets/note.mdx\"\n\n"
    );
    for section in 0..8 {
        let _ = write!(
            text,
            "## Section {section}\n\nSee [the next](/guides/page-{next}#section-{section}) and [here](#section-0), \
             with `code [not](a-link)` and **words** that fill the line.\n\n\
             ![image](/images/one.png)\n\n<Card title=\"Card {section}\" href=\"/guides/page-{next}\" />\n\n\
             ```bash\ncurl https://api.example.com/v1/things # [not](a-link)\n```\n\n"
        );
    }
    text
}

/// A `docs.json` of 2.3 MB.
fn large() -> Tree {
    let version = |language: usize, version: usize| {
        let tabs: Vec<_> = (0..6)
            .map(|tab| {
                let groups: Vec<_> = (0..12)
                    .map(|group| {
                        let pages: Vec<_> = (0..12)
                            .map(|page| format!("l{language}/v{version}/t{tab}/g{group}/quite-a-long-name-{page}"))
                            .collect();
                        json!({"group": format!("Group {group}"), "icon": "star", "pages": [{"group": "Nested", "pages": pages}]})
                    })
                    .collect();
                json!({"tab": format!("Tab {tab}"), "icon": "book", "groups": groups})
            })
            .collect();
        json!({"version": format!("v{version}"), "tabs": tabs})
    };
    let languages: Vec<_> = ["en", "fr", "ko", "pt-BR"]
        .iter()
        .enumerate()
        .map(|(at, code)| {
            let versions: Vec<_> = (0..10).map(|n| version(at, n)).collect();
            json!({"language": code, "versions": versions})
        })
        .collect();
    let config = json!({"name": "Acme", "navigation": {"languages": languages}});
    let text = serde_json::to_string_pretty(&config).expect("values are JSON");
    assert!(text.len() > 2_300_000, "{} bytes", text.len());
    Tree::from_files([(path("docs.json"), Bytes::from(text))], [])
}

fn benches(criterion: &mut Criterion) {
    let tree = repository(page, ENDPOINTS, None);
    criterion.bench_function("check/1100_pages_24_specifications", |bencher| {
        bencher.iter(|| {
            let (docs, found) = docs::read(&tree, &Options::default());
            let links = waypost::build::check::check(&docs, &tree);
            assert_eq!((found.len(), links.len()), (0, 0), "{found:?} {links:?}");
            assert_eq!(
                docs.navigation.pages.len(),
                PAGES + SPECIFICATIONS * ENDPOINTS * 2
            );
            black_box(docs)
        });
    });
    let tree = large();
    let options = Options {
        extent: Extent::Config,
        ..Options::default()
    };
    criterion.bench_function("check/docs_json_of_2_3_megabytes", |bencher| {
        bencher.iter(|| {
            let (docs, found) = docs::read(&tree, &options);
            assert_eq!(found.len(), 0, "{found:?}");
            black_box(docs)
        });
    });
}

criterion_group! {
    name = check;
    config = Criterion::default().sample_size(10);
    targets = benches
}
criterion_main!(check);
