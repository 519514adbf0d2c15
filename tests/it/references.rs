//! The targets that comments, the README and the pages refer to are in the repository.
//!
//! A reader of the code has the code and the public internet. A reference to a document in neither
//! of them (a numbered section of a design paper, a path outside the repository) is useless for
//! that reader, so it is rejected here. A reference to a page of the bundled documentation
//! (`internals/decisions#hosts`), to a source file (`src/lib.rs`) or to a heading must have a
//! target.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const DOCS: &str = "conf/demo/docs";
/// Folders whose files are ours and are read. Files that a tool installed (`node_modules`) are not.
const FOLDERS: [&str; 7] = ["src", "tests", "benches", "fuzz", "conf", ".ci", "."];
/// The extensions of files with comments or prose.
const ENDINGS: [&str; 13] = [
    "rs", "md", "mdx", "yaml", "yml", "toml", "mjs", "js", "css", "sh", "py", "svg", "Makefile",
];
/// Words that, with a number after them, name a part of a document.
const PARTS: [&str; 8] = [
    "design",
    "decision",
    "decisions",
    "specification",
    "specifications",
    "section",
    "sections",
    "issue",
];
/// Words between a document and the number of its part.
const BETWEEN: [&str; 6] = ["section", "sections", "rule", "rules", "no", "number"];

/// Units of numbers that are quantities.
const UNITS: [&str; 8] = ["B", "KB", "MB", "GB", "MiB", "bytes", "ms", "lines"];

/// Every file of the repository with comments or prose, and its text.
fn files() -> Vec<(PathBuf, String)> {
    fn walk(directory: &Path, deep: bool, found: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                if deep && !matches!(&*name, "node_modules" | "target" | "corpus") {
                    walk(&path, true, found);
                }
            } else if ENDINGS
                .iter()
                .any(|ending| name == *ending || name.ends_with(&format!(".{ending}")))
                || directory.file_name().is_some_and(|name| name == ".ci")
            {
                // A file that is not text has no comments.
                if let Ok(text) = fs::read_to_string(&path) {
                    found.push((path, text));
                }
            }
        }
    }
    let mut found = Vec::new();
    for folder in FOLDERS {
        walk(Path::new(folder), folder != ".", &mut found);
    }
    found.sort();
    assert!(
        found.len() > 300,
        "the repository is not where it is looked for"
    );
    found
}

/// The lines of a file that people read: the comments of Rust files, all lines of other files.
fn prose(path: &Path, text: &str) -> Vec<(usize, String)> {
    let is_rust = path.extension().is_some_and(|ending| ending == "rs");
    let numbered = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    numbered
        .filter_map(|(at, line)| {
            if !is_rust {
                return Some((at, line.to_owned()));
            }
            let line = line.trim_start();
            let comment = match line.strip_prefix("//") {
                Some(comment) => comment.trim_start_matches(['/', '!']),
                None => line.split_once(" // ")?.1,
            };
            Some((at, comment.to_owned()))
        })
        .collect()
}

/// The forms of a number of a part of a document: `3`, `4.6`, `3,`, `§3`.
fn is_number(word: &str) -> bool {
    let word = word.trim_start_matches(['§', '(']);
    let word = word.trim_end_matches([',', '.', ';', ':', ')', '?', '!']);
    word.starts_with(|c: char| c.is_ascii_digit())
        && word.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Returns the words of a line that name a part of a document by number, unless a public document
/// is named before them.
fn numbered_part(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    (0..words.len()).find_map(|at| {
        let word = words[at].trim_start_matches(['(', '"']).to_lowercase();
        if !PARTS.contains(&&*word) {
            return None;
        }
        let mut next = at + 1;
        while words
            .get(next)
            .is_some_and(|w| BETWEEN.contains(&&*w.to_lowercase()))
        {
            next += 1;
        }
        let number = words.get(next).filter(|word| is_number(word))?;
        // "The longest specification has 12 MB" counts bytes.
        if words
            .get(next + 1)
            .is_some_and(|unit| UNITS.contains(&unit.trim_end_matches(['.', ',', ';', ')'])))
        {
            return None;
        }
        // "RFC 9110 section 15", "Agent Skills specification 1.0": the document is named.
        let before = words[..at].iter().rev().take(3);
        let is_public = before
            .filter(|word| !matches!(**word, "the" | "The" | "see" | "See" | "of"))
            .any(|word| {
                word.starts_with("RFC")
                    || word.chars().filter(|c| c.is_ascii_uppercase()).count() > 1
                    || word.starts_with("Skills")
            });
        (!is_public).then(|| format!("{} {number}", words[at]))
    })
}

/// Returns the anchors of a page: the anchors of its headings and its explicit `id` attributes.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut inside_code = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside_code = !inside_code;
        }
        let heading = line.trim_start_matches('#');
        if !inside_code && heading.len() < line.len() && heading.starts_with(' ') {
            let words = heading.trim().to_lowercase();
            let kept = words.chars().filter_map(|c| match c {
                ' ' | '-' => Some('-'),
                c if c.is_alphanumeric() || c == '_' => Some(c),
                _ => None,
            });
            found.insert(kept.collect());
        }
        if let Some((_, rest)) = line.split_once("id=\"") {
            found.extend(rest.split('"').next().map(str::to_owned));
        }
    }
    found
}

/// Returns the text of a page of the bundled documentation.
fn page(path: &str) -> Option<String> {
    let direct = format!("{DOCS}/{path}.mdx");
    let index = format!("{DOCS}/{path}/index.mdx");
    fs::read_to_string(direct)
        .or_else(|_| fs::read_to_string(index))
        .ok()
}

/// The texts between backticks.
fn code_spans(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

#[test]
fn no_comment_names_a_part_of_a_document_that_a_reader_does_not_have() {
    let mut wrong = Vec::new();
    for (path, text) in files() {
        for (at, line) in prose(&path, &text) {
            if let Some(part) = numbered_part(&line) {
                wrong.push(format!("{}:{at}: {part}", path.display()));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "say the reason in words, or name a public document or a page of {DOCS}: {wrong:#?}"
    );
}

#[test]
fn numbers_of_unnamed_documents_are_seen() {
    for line in [
        "Design section 3: an address selects no site.",
        "Sources: site decisions 10 and 11; RFC 8288",
        "Specification 4.2. 307, because",
        "as specification 2.2 says",
        "design sections 2 and 6",
        "see section 3",
        "the issue 9 asks",
    ] {
        assert!(numbered_part(line).is_some(), "{line}");
    }
    for line in [
        "RFC 9110 section 15",
        "the specification has 2 parts",
        "Sources: RFC 9110 §15.4.8 (307)",
        "the longest real specification 12 MB",
    ] {
        assert_eq!(numbered_part(line), None, "{line}");
    }
}

#[test]
fn references_in_comments_exist_in_the_bundled_documentation() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (path, text) in files() {
        for (at, line) in prose(&path, &text) {
            for span in code_spans(&line) {
                let Some(rest) = span.strip_prefix("internals/") else {
                    continue;
                };
                seen += 1;
                let (name, anchor) = rest.split_once('#').unwrap_or((rest, ""));
                // The form itself is explained on a page.
                if anchor == "section" {
                    continue;
                }
                let found = page(&format!("internals/{name}"))
                    .is_some_and(|text| anchor.is_empty() || anchors(&text).contains(anchor));
                if !found {
                    wrong.push(format!("{}:{at}: {span}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "not in {DOCS}: {wrong:#?}");
    assert!(seen > 10, "only {seen} references were found");
}

#[test]
fn every_page_of_the_bundled_documentation_has_a_title() {
    let is_page = |path: &Path| {
        let is_snippet = path.components().any(|part| part.as_os_str() == "snippets");
        path.extension().is_some_and(|ending| ending == "mdx") && !is_snippet
    };
    let pages = files().into_iter().filter(|(path, _)| is_page(path));
    let mut read = 0;
    for (path, text) in pages.filter(|(path, _)| path.starts_with(DOCS)) {
        let frontmatter = text
            .strip_prefix("---\n")
            .and_then(|rest| rest.split_once("\n---\n"))
            .map_or("", |(frontmatter, _)| frontmatter);
        let has_title = frontmatter.lines().any(|line| line.starts_with("title: "));
        assert!(has_title, "{} has no title", path.display());
        read += 1;
    }
    assert!(read > 50, "{read} pages");
}

#[test]
fn the_files_that_comments_name_are_there() {
    let all = files();
    let is_there =
        |span: &str| Path::new(span).exists() || all.iter().any(|(path, _)| path.ends_with(span));
    let mut wrong = Vec::new();
    for (path, text) in &all {
        for (at, line) in prose(path, text) {
            for span in code_spans(&line) {
                let is_source = span.ends_with(".rs") && span.contains('/');
                let is_ours = ["src/", "tests/", "benches/", "fuzz/", "conf/", ".ci/"]
                    .iter()
                    .any(|folder| span.starts_with(folder))
                    // Pages also name files that belong to the operator.
                    && !(span.starts_with("conf/") && path.starts_with(DOCS));
                let is_path = span
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
                if (is_source || is_ours) && is_path && !is_there(span) {
                    wrong.push(format!("{}:{at}: {span}", path.display()));
                }
                if span.starts_with("../") && span.ends_with(".md") && !path.starts_with("src") {
                    wrong.push(format!("{}:{at}: {span}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "not in the repository: {wrong:#?}");
}

#[test]
fn the_links_of_the_root_documents_exist() {
    let mut wrong = Vec::new();
    for (path, text) in files() {
        let is_markdown = path.extension().is_some_and(|ending| ending == "md");
        if !is_markdown || path.starts_with("tests") || path.starts_with("conf") {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            for target in line.split("](").skip(1) {
                let target = target.split([')', ' ']).next().unwrap_or_default();
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                let file = match file {
                    "" => path.clone(),
                    file => path.parent().unwrap().join(file),
                };
                let found = match fs::read_to_string(&file) {
                    Ok(text) => anchor.is_empty() || anchors(&text).contains(anchor),
                    Err(_) => file.is_dir() && anchor.is_empty(),
                };
                if !found {
                    wrong.push(format!("{}:{}: {target}", path.display(), at + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these links lead nowhere: {wrong:#?}");
}

#[test]
fn the_tests_that_the_makefile_names_are_there() {
    let makefile = fs::read_to_string("Makefile").unwrap();
    let named: Vec<&str> = makefile
        .split_whitespace()
        .filter_map(|word| word.strip_suffix("::"))
        .collect();
    assert!(named.contains(&"reference"), "{named:?}");
    for module in named {
        let there = Path::new("tests/it").join(module);
        assert!(
            there.is_dir() || there.with_extension("rs").is_file(),
            "the Makefile names {module}::, which is no module of tests/it"
        );
    }
}

/// Returns the numbered rules at the top of a source file: `R3` of `//! * R3: …`, `//! * **R3** …`
/// and `//! | **R3** | …`.
fn numbered_rules(source: &str) -> Vec<String> {
    let lines = source.lines().filter_map(|line| line.strip_prefix("//! "));
    let rules = lines.filter_map(|line| {
        let rule = line
            .strip_prefix("* ")
            .or_else(|| line.strip_prefix("| "))?;
        let rule = rule.strip_prefix("**").unwrap_or(rule);
        let name = rule.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
        let number = name.strip_prefix(|c: char| c.is_ascii_uppercase())?;
        number.parse::<u8>().ok()?;
        Some(name.to_owned())
    });
    rules.collect()
}

#[test]
fn the_table_of_numbered_rules_names_every_module_and_every_rule() {
    let page = fs::read_to_string(format!("{DOCS}/internals/architecture.mdx")).unwrap();
    let (_, table) = page.split_once("## Numbered rules in the code").unwrap();
    let mut listed = BTreeSet::new();
    for row in table
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains(" to "))
    {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let (range, module) = (cells[1], cells[2].trim_matches('`'));
        let (first, last) = range.split_once(" to ").unwrap();
        assert_eq!(&first[1..], "1", "{row}");
        let rules = (1..=last[1..].parse::<u8>().unwrap()).map(|n| format!("{}{n}", &first[..1]));
        listed.insert((module.to_owned(), rules.collect::<Vec<_>>()));
    }
    let mut written = BTreeSet::new();
    for (path, text) in files() {
        let Ok(module) = path
            .strip_prefix("./src")
            .or_else(|_| path.strip_prefix("src"))
        else {
            continue;
        };
        let rules = numbered_rules(&text);
        if rules.is_empty() || path.extension().is_none_or(|ending| ending != "rs") {
            continue;
        }
        let module = module.with_extension("");
        let module = module.to_string_lossy().replace('/', "::");
        let module = module.strip_suffix("::mod").unwrap_or(&module);
        written.insert((module.to_owned(), rules));
    }
    assert!(written.len() > 10, "{written:?}");
    assert_eq!(listed, written);
}
