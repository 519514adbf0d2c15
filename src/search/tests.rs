//! Tests of whole indexes: written and searched.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// A page: path, title, text.
type Page = (&'static str, &'static str, &'static str);

const PAGES: [Page; 7] = [
    (
        "start",
        "Quickstart",
        "Install the program, then deploy it.",
    ),
    (
        "deploy",
        "Deploy a site",
        "A deployment takes seconds. See `max_tokens` too.",
    ),
    (
        "limits",
        "Limits",
        "How many words a model writes.\n\n## Tokens\n\nThe limit `max_tokens` counts tokens. Pass `--max-tokens 5`.\n\n\
         ## Errors\n\nThe code `E0308` says that a key is wrong.",
    ),
    (
        "keys",
        "API keys",
        "A key is a secret. Replace it each year.",
    ),
    (
        "webhooks",
        "Webhooks",
        "A webhook calls your server when a site changes.",
    ),
    (
        "words",
        "Max",
        "The maximum number of all tokens of every kind and of each.",
    ),
    ("about", "About", "We make software for documentation."),
];
const HEADINGS: [Heading<'static>; 2] = [
    Heading {
        anchor: "tokens",
        text: "Tokens",
    },
    Heading {
        anchor: "errors",
        text: "Errors",
    },
];

struct Site {
    file: Bytes,
    texts: Vec<(String, String)>,
}

impl Site {
    /// Makes an index of parts: language, version, whether it is a default, pages.
    fn new(parts: &[(&str, Option<&str>, bool, &[Page])]) -> Self {
        let mut texts = Vec::new();
        for (_, _, _, pages) in parts {
            for (path, title, text) in *pages {
                texts.push(((*path).to_owned(), format!("# {title}\n\n{text}\n")));
            }
        }
        let markdown = |path: &str| {
            let found = texts.iter().find(|(known, _)| known == path);
            found.map(|(_, text)| text.as_str()).unwrap()
        };
        let parts: Vec<_> = parts
            .iter()
            .map(|(language, version, is_default, pages)| {
                let document = |(path, title, _): &Page| Document {
                    path,
                    title,
                    markdown: markdown(path),
                    headings: HEADINGS.to_vec(),
                    ..Document::default()
                };
                Part {
                    language,
                    version: *version,
                    is_default: *is_default,
                    documents: pages.iter().map(document).collect(),
                }
            })
            .collect();
        let file = write(&parts).into();
        Self { file, texts }
    }

    fn english() -> Self {
        Self::new(&[("en", None, true, &PAGES)])
    }

    fn texts(&self) -> impl Texts + '_ {
        |path: &str, range: Range<u64>| {
            let (_, text) = self.texts.iter().find(|(known, _)| known == path)?;
            let place = |at: u64| usize::try_from(at).unwrap().min(text.len());
            Some(Bytes::copy_from_slice(
                &text.as_bytes()[place(range.start)..place(range.end)],
            ))
        }
    }

    fn ask(&self, question: &Question<'_>) -> SearchResult {
        let index = Index::open(&self.file).unwrap();
        index.search(&self.file, &self.texts(), question).unwrap()
    }

    /// Returns the paths that a question finds, the best first.
    fn paths(&self, text: &str) -> Vec<String> {
        let found = self.ask(&Question::new(text));
        found.hits.into_iter().map(|hit| hit.path).collect()
    }

    #[track_caller]
    fn finds_first(&self, text: &str, path: &str) {
        assert_eq!(
            self.paths(text).first().map(String::as_str),
            Some(path),
            "{text}"
        );
    }
}

#[test]
fn titles_stems_and_whole_identifiers_come_first() {
    let site = Site::english();
    site.finds_first("quickstart", "start");
    site.finds_first("how do I deploy a site", "deploy");
    site.finds_first("deploying", "deploy");
    site.finds_first("max_tokens", "limits");
    site.finds_first("--max-tokens", "limits");
    site.finds_first("maxTokens", "limits");
    site.finds_first("E0308", "limits");
    site.finds_first("api key", "keys");
}

#[test]
fn a_section_is_found_with_its_anchor_and_an_excerpt() {
    let found = Site::english().ask(&Question::new("e0308"));
    let section = &found.hits[0].sections[0];
    assert_eq!(section.anchor.as_deref(), Some("errors"));
    assert_eq!(section.heading.as_deref(), Some("Errors"));
    assert_eq!(
        section.excerpt.text,
        "The code E0308 says that a key is wrong."
    );
    assert_eq!(
        section.excerpt.marks.as_slice(),
        std::slice::from_ref(&(9..14))
    );
}

#[test]
fn one_letter_is_forgiven_in_long_words_and_nothing_else_is_found() {
    let site = Site::english();
    site.finds_first("deplyment", "deploy");
    site.finds_first("webhoks", "webhooks");
    site.finds_first("documentaton", "about");
    for nothing in ["kubernetes helm", "zzzz", "kye", "?!", ""] {
        let found = site.ask(&Question::new(nothing));
        assert_eq!(found, SearchResult::default(), "{nothing}");
    }
}

#[test]
fn a_word_of_every_page_finds_only_the_pages_that_a_rare_word_finds() {
    let documents = (0..300).map(|nth| Document {
        title: "Widget",
        markdown: match nth % 100 {
            7 | 8 => "# Widget\n\nA widget for each zebra.\n",
            _ => "# Widget\n\nA widget.\n",
        },
        ..Document::default()
    });
    let paths: Vec<String> = (0..300).map(|nth| format!("p{nth}")).collect();
    let documents = documents.zip(&paths);
    let documents = documents.map(|(document, path)| Document { path, ..document });
    let part = Part {
        language: "en",
        version: None,
        is_default: true,
        documents: documents.collect(),
    };
    let file = Bytes::from(write(&[part]));
    let index = Index::open(&file).unwrap();
    let ask = |text: &str| {
        let texts = |_: &str, _: Range<u64>| None;
        index.search(&file, &texts, &Question::new(text)).unwrap()
    };
    assert_eq!(ask("widget").total, 300);
    let rare = ask("zebra");
    assert_eq!(rare.total, 6);
    let both = ask("widget zebra");
    assert_eq!(both.total, 6);
    // The word counts in the pages that are found.
    assert!(both.hits[0].score > rare.hits[0].score);
    assert_eq!(ask("zebra widget").total, 6);
}

#[test]
fn a_beginning_finds_its_word_only_while_it_is_typed() {
    let site = Site::english();
    let typing = |text: &'static str| Question {
        is_typing: true,
        ..Question::new(text)
    };
    for (typed, path) in [("quick", "start"), ("webh", "webhooks"), ("api ke", "keys")] {
        assert_eq!(site.ask(&typing(typed)).hits[0].path, path, "{typed}");
    }
    assert_eq!(site.paths("webh"), Vec::<String>::new());
}

#[test]
fn each_beginning_of_a_word_finds_the_page_that_the_word_finds() {
    // `certifi` is the stem of `certify`, and the beginning of a word that is more frequent.
    const OTHERS: [Page; 6] = [
        ("verbs", "Verbs", "Authorities certify names."),
        ("a", "One", "A certificate."),
        ("b", "Two", "A certificate."),
        ("c", "Three", "A certificate."),
        ("d", "Four", "A certificate."),
        ("e", "Five", "A certificate."),
    ];
    const WORDS: [Page; 8] = [
        (
            "certificate",
            "Certificates",
            "What `certificate_problem` means.",
        ),
        ("navigation", "Navigation", "Read `navigation_bar` first."),
        ("deployment", "Deployments", "A deployment takes seconds."),
        (
            "replication",
            "Replication",
            "Replication copies each write.",
        ),
        ("authentication", "Authentication", "Send a key."),
        (
            "initialization",
            "Initialization",
            "Begin with an empty store.",
        ),
        (
            "repositories",
            "Repositories",
            "Each repository has a branch.",
        ),
        (
            "internationalization",
            "Internationalization",
            "Pages in other languages.",
        ),
    ];
    let pages = [&WORDS[..], &OTHERS[..]].concat();
    let site = Site::new(&[("en", None, true, &pages)]);
    for (word, ..) in WORDS {
        for end in 4..=word.len() {
            let typed = &word[..end];
            let found = site.ask(&Question {
                is_typing: true,
                ..Question::new(typed)
            });
            let first = found.hits.first().map(|hit| hit.path.as_str());
            assert_eq!(first, Some(word), "{typed}");
        }
    }
}

const OLD: [Page; 1] = [("v1/deploy", "Deploy", "Deploy with the old command.")];
const FRENCH: [Page; 1] = [(
    "fr/deploy",
    "Déployer",
    "Un déploiement prend quelques secondes.",
)];
const CHINESE: [Page; 1] = [("cn/deploy", "部署", "如何部署文档网站。")];

#[test]
fn versions_and_languages_are_searched_apart_and_the_others_if_there_is_nothing() {
    let site = Site::new(&[
        ("en", Some("v2"), true, &PAGES),
        ("en", Some("v1"), false, &OLD),
        ("fr", None, true, &FRENCH),
        ("zh-Hans", None, true, &CHINESE),
    ]);
    let ask = |text: &str, version: Option<&str>, language: Option<&str>| {
        let found = site.ask(&Question {
            version,
            language,
            ..Question::new(text)
        });
        let paths: Vec<_> = found.hits.into_iter().map(|hit| hit.path).collect();
        (
            paths.first().cloned().unwrap_or_default(),
            found.is_elsewhere,
        )
    };
    let is = |path: &str, elsewhere| (path.to_owned(), elsewhere);
    assert_eq!(ask("deploy", None, None), is("deploy", false));
    assert_eq!(ask("deploy", Some("v1"), None), is("v1/deploy", false));
    assert_eq!(ask("deploy", Some("none"), None), is("deploy", true));
    assert_eq!(ask("deploy", None, Some("xx")), is("deploy", true));
    assert_eq!(
        ask("deploiement", Some("v1"), Some("fr")),
        is("fr/deploy", false)
    );
    assert_eq!(ask("webhook", Some("v1"), None), is("webhooks", true));
    assert_eq!(ask("deploiement", None, Some("fr")), is("fr/deploy", false));
    assert_eq!(ask("déployer", None, Some("fr-CA")), is("fr/deploy", false));
    assert_eq!(ask("部署", None, Some("zh-Hans")), is("cn/deploy", false));
    assert_eq!(ask("文档", None, None), is("cn/deploy", true));
}

#[test]
fn an_author_can_raise_a_page_and_give_it_words() {
    let page = |path: &'static str, boost, keywords| Document {
        path,
        title: "Same",
        markdown: "# Same\n\nThe same words.",
        boost,
        keywords,
        ..Document::default()
    };
    let documents = vec![
        page("a", None, vec![]),
        page("b", Some(2.0), vec![]),
        page("c", Some(0.5), vec!["billing"]),
    ];
    let part = Part {
        language: "en",
        version: None,
        is_default: true,
        documents,
    };
    let file = Bytes::from(write(&[part]));
    let index = Index::open(&file).unwrap();
    let paths = |text: &str| {
        let texts = |_: &str, _: Range<u64>| None;
        let found = index.search(&file, &texts, &Question::new(text)).unwrap();
        found
            .hits
            .into_iter()
            .map(|hit| hit.path)
            .collect::<Vec<_>>()
    };
    assert_eq!(paths("words"), ["b", "a", "c"]);
    assert_eq!(paths("billing"), ["c"]);
}

#[test]
fn pages_of_results_do_not_overlap() {
    const TEXT: &str = "Words to be found.";
    let pages: Vec<Page> = (0..40)
        .map(|n: u32| (&*Box::leak(format!("p{n}").into_boxed_str()), "Page", TEXT))
        .collect();
    let site = Site::new(&[("en", None, true, &pages)]);
    let mut seen = Vec::new();
    for skip in (0..40).step_by(7) {
        let found = site.ask(&Question {
            skip,
            limit: 7,
            ..Question::new("words found")
        });
        assert_eq!(found.total, 40);
        // Each page that is shown has its section, however far behind it is.
        assert!(
            found.hits.iter().all(|hit| hit.sections.len() == 1),
            "{skip}"
        );
        seen.extend(found.hits.into_iter().map(|hit| hit.path));
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 40);
}

#[test]
fn a_long_question_is_cut_and_the_excerpt_is_bounded() {
    let site = Site::english();
    let long = "deploy ".repeat(10_000);
    assert_eq!(site.paths(&long)[0], "deploy");
    let found = site.ask(&Question {
        excerpt_bytes: 20,
        ..Question::new("max_tokens")
    });
    for hit in &found.hits {
        for section in &hit.sections {
            let Excerpt { text, marks } = &section.excerpt;
            assert!(text.len() <= 20 + "… ".len() + " …".len(), "{text}");
            assert!(marks.iter().all(|mark| text.get(mark.clone()).is_some()));
        }
    }
}

#[test]
fn the_same_pages_give_the_same_bytes_with_any_number_of_threads() {
    let pages: Vec<Page> = PAGES.iter().copied().cycle().take(200).collect();
    let parts: [(_, _, _, &[Page]); 1] = [("en", None, true, &pages)];
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.unwrap().install(|| Site::new(&parts).file)
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn no_prefix_of_an_index_makes_the_reader_panic() {
    let site = Site::english();
    for length in 0..site.file.len() {
        let cut = site.file.slice(..length);
        if let Ok(index) = Index::open(&cut) {
            let asked = index.search(&cut, &site.texts(), &Question::new("max_tokens keys"));
            assert!(asked.is_err() || length > site.file.len() / 2, "{length}");
        }
    }
}

proptest! {
    #[test]
    fn no_damage_makes_the_reader_panic(
        damage in prop::collection::vec((0_usize..4000, any::<u8>()), 1..8),
        text in "[a-z_]{1,12}( [a-z]{1,8}){0,3}",
    ) {
        let site = Site::english();
        let mut bytes = site.file.to_vec();
        for (at, byte) in damage {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        let file = Bytes::from(bytes);
        if let Ok(index) = Index::open(&file) {
            let question = Question { is_typing: true, ..Question::new(&text) };
            let _answer = index.search(&file, &site.texts(), &question);
        }
    }

    #[test]
    fn any_question_gets_an_answer(text in "\\PC{0,80}") {
        let found = Site::english().ask(&Question::new(&text));
        prop_assert!(found.hits.len() <= LIMIT_DEFAULT);
    }
}

/// An index file that keeps decoded parts, and counts the bytes that are read.
struct Keeping<'f> {
    file: &'f Bytes,
    read: Cell<u64>,
    kept: RefCell<HashMap<u64, Decoded>>,
}

impl Storage for Keeping<'_> {
    fn length(&self) -> u64 {
        self.file.length()
    }

    fn read(&self, range: Range<u64>) -> io::Result<Bytes> {
        self.read.set(self.read.get() + range.end - range.start);
        self.file.read(range)
    }

    fn decoded(&self, place: u64) -> Option<Decoded> {
        self.kept.borrow().get(&place).cloned()
    }

    fn keep(&self, place: u64, decoded: Decoded) {
        assert!(decoded.bytes() > 0);
        self.kept.borrow_mut().insert(place, decoded);
    }
}

#[test]
fn what_is_kept_is_not_read_again_and_gives_the_same_answers() {
    let pages: Vec<Page> = (0..200)
        .map(|n| {
            let path: &str = format!("page-{n}").leak();
            let text: &str = format!("The token of number {n} is a token.").leak();
            (path, "Numbers", text)
        })
        .collect();
    let site = Site::new(&[("en", None, true, &pages)]);
    let file = Keeping {
        file: &site.file,
        read: Cell::new(0),
        kept: RefCell::default(),
    };
    let index = Index::open(&file).unwrap();
    for text in ["token", "token number", "token number 7"] {
        let question = Question::new(text);
        let ask = || {
            let before = file.read.get();
            let found = index.search(&file, &site.texts(), &question).unwrap();
            (found, file.read.get() - before)
        };
        let (first, read) = ask();
        let (second, read_again) = ask();
        assert_eq!(first, second);
        assert_eq!(first, site.ask(&question), "without keeping");
        assert!(
            read_again * 2 < read || text != "token",
            "{read_again} of {read}"
        );
    }
}

#[test]
fn a_question_of_one_word_reads_only_the_texts_that_it_shows() {
    let pages: Vec<Page> = (0..40)
        .map(|n| {
            (
                &*format!("page-{n}").leak(),
                "Numbers",
                "A token of a number.",
            )
        })
        .collect();
    let site = Site::new(&[("en", None, true, &pages)]);
    let index = Index::open(&site.file).unwrap();
    let count = |text: &str| {
        let read = Cell::new(0);
        let texts = site.texts();
        let counting = |path: &str, range: Range<u64>| {
            read.set(read.get() + 1);
            texts.markdown(path, range)
        };
        let question = Question {
            limit: 3,
            ..Question::new(text)
        };
        let found = index.search(&site.file, &counting, &question).unwrap();
        assert_eq!(found.hits.len(), 3);
        read.get()
    };
    assert_eq!(count("token"), 3);
    // The words of several pages are compared by their nearness.
    assert!(count("token number") > 3);
}

#[test]
fn all_pages_that_are_counted_can_be_reached() {
    let names: Vec<String> = (0..150).map(|nth| format!("p{nth}")).collect();
    let documents = names.iter().map(|name| Document {
        path: name,
        title: "Widget",
        markdown: "# Widget\n\nA widget.\n",
        ..Document::default()
    });
    let part = Part {
        language: "en",
        version: None,
        is_default: true,
        documents: documents.collect(),
    };
    let file = Bytes::from(write(&[part]));
    let index = Index::open(&file).unwrap();
    let none = |_: &str, _: Range<u64>| None;
    let mut seen = std::collections::BTreeSet::new();
    for skip in (0..200).step_by(40) {
        let question = Question {
            skip,
            limit: 40,
            ..Question::new("widget")
        };
        let found = index.search(&file, &none, &question).unwrap();
        assert_eq!(found.total, 150);
        for hit in found.hits {
            assert!(seen.insert(hit.path));
        }
    }
    assert_eq!(seen.len(), 150);
}

#[test]
fn a_wrong_first_letter_is_forgiven_in_long_words() {
    let site = Site::english();
    for (text, path) in [
        ("ebhooks", "webhooks"),
        ("ewbhooks", "webhooks"),
        ("qebhooks", "webhooks"),
        ("xwebhooks", "webhooks"),
        ("eployment", "deploy"),
        ("odcumentation", "about"),
    ] {
        site.finds_first(text, path);
    }
    assert!(site.paths("imit").is_empty());
}

#[test]
fn a_sentence_of_a_script_without_spaces_finds_the_page_about_its_subject() {
    let pages = [
        ("variables", "环境变量", "在这里配置环境变量。"),
        ("polite", "问候", "请问您需要什么?"),
        ("deploy", "部署", "自动部署文档, 见环境变量。"),
        ("build", "构建", "构建文档, 见环境变量。"),
        ("start", "开始", "先看环境变量。"),
        ("limits", "限制", "环境变量有限制。"),
        ("errors", "错误", "缺少环境变量。"),
        ("about", "关于", "没有别的。"),
    ];
    let site = Site::new(&[("zh", None, true, &pages)]);
    site.finds_first(
        "怎样才能够为我们公司的新项目正确地配置环境变量呢",
        "variables",
    );
    let asked = "请问如何在项目中配置自动部署的环境变量";
    assert_eq!(site.paths(asked), ["deploy", "variables", "polite"]);
    assert_eq!(
        site.paths("怎样才能够为我们公司正确地配置环境变量呢").len(),
        6
    );
    assert_eq!(site.paths("明天天气怎么样"), [""; 0]);
}

#[test]
fn one_character_of_a_script_without_spaces_finds_the_pairs_that_begin_with_it() {
    let pages = [("a", "部署", "如何部署文档"), ("b", "票据", "发票")];
    let site = Site::new(&[("zh", None, true, &pages)]);
    site.finds_first("部", "a");
    site.finds_first("票", "b");
    site.finds_first("文", "a");
}
