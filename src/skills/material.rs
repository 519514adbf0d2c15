//! The material for another writer of a skill; its text is checked against the same material.
//!
//! A writer is a program of the operator or a language model. It gets the pages as agents read
//! them, and never the source files. The same value is the measure of its text: which addresses
//! are pages of the site, which words a page contains, and which code.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};

use super::address::has_word;
use super::generate::source_pages;
use crate::docs::Docs;
use crate::docs::published::Published;

/// Paths that every site serves beside its pages.
const OVERVIEWS: [&str; 3] = ["/", "/llms.txt", "/llms-full.txt"];

/// The documentation, as a writer of skills sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Material {
    /// The prefix that every link must have.
    pub base_url: String,
    /// The name of the skill, which a writer must keep.
    pub name: String,
    /// The generated skill.
    pub skill: String,
    /// The public pages of the default language and version, in the order of the navigation.
    pub pages: Vec<SourceText>,
    /// The paths of all public pages, also of other languages and versions.
    pub paths: BTreeSet<String>,
    /// The paths of published specifications, without leading slash.
    pub files: BTreeSet<String>,
}

/// A page that a writer may use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceText {
    /// Its path below the base URL, with a leading slash.
    pub path: String,
    /// The label of its group.
    pub group: String,
    /// Its title, as one plain line.
    pub title: String,
    /// Its description or first paragraph, in a sentence.
    pub about: String,
    /// Method and path of the endpoint that it describes, if it describes one.
    pub endpoint: Option<String>,
    /// The page as agents get it, in Markdown.
    pub text: String,
}

/// The words and the code of pages, read once for each page.
#[derive(Debug)]
pub(super) struct Sources<'m> {
    material: &'m Material,
    read: BTreeMap<&'m str, Content>,
}

/// The content of a page.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Its words in lower case, each between spaces.
    words: String,
    /// The lines of each block of code.
    code: Vec<Vec<String>>,
}

// === impl Material ===

impl Material {
    /// Gathers what the documentation has. `skill` is the generated file `name`; `texts` are the
    /// pages in Markdown, by their paths without leading slash.
    #[must_use]
    pub fn of(
        docs: &Docs,
        (name, skill): (&str, &str),
        texts: &HashMap<&str, &str>,
        base_url: &str,
    ) -> Self {
        let text = |path: &str| {
            let path = path.trim_start_matches('/');
            texts.get(path).copied().unwrap_or_default()
        };
        let pages = source_pages(docs).into_iter().map(|page| SourceText {
            path: page.url.to_owned(),
            group: page.group,
            title: page.title,
            about: page.about,
            endpoint: page.endpoint,
            text: text(page.url).to_owned(),
        });
        let public = docs.navigation.pages.iter();
        let public = public.filter(|page| page.public && !page.hidden && page.link.is_none());
        let files = docs.published.iter().filter_map(Published::file);
        Self {
            base_url: base_url.to_owned(),
            name: name.to_owned(),
            skill: skill.to_owned(),
            pages: pages.collect(),
            paths: public.map(|page| page.url.to_string()).collect(),
            files: files.map(str::to_owned).collect(),
        }
    }

    /// Returns everything that comes from the documentation: all of it but the generated skill.
    #[must_use]
    pub fn documentation(&self) -> impl Serialize {
        (&self.name, &self.pages, &self.paths, &self.files)
    }

    /// Returns the page that a path or an address means: `/pay`, `pay`, `/pay.md`, or a link of
    /// the skill.
    #[must_use]
    pub fn page(&self, path: &str) -> Option<&SourceText> {
        let path = path.trim();
        let path = path.strip_prefix(&self.base_url).unwrap_or(path);
        let path = path.split(['#', '?']).next().unwrap_or_default();
        let path = path.strip_suffix(".md").unwrap_or(path);
        let path = path.trim_matches('/');
        let is_it = |page: &&SourceText| page.path.trim_matches('/') == path;
        let found = self.pages.iter().find(is_it);
        match (found, path) {
            (None, "index") => self.pages.iter().find(|page| page.path == "/"),
            _ => found,
        }
    }

    /// Returns whether a link leads to a path of the site, whether or not there is a page.
    #[must_use]
    pub fn is_of_site(&self, target: &str) -> bool {
        let rest = target.strip_prefix(&self.base_url);
        rest.is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns whether a link leads to a heading of the skill itself or to a public file of the
    /// site.
    #[must_use]
    pub fn serves(&self, target: &str) -> bool {
        if target.starts_with('#') {
            return true;
        }
        let Some(path) = target.strip_prefix(&self.base_url) else {
            return false;
        };
        let path = path.split_once('#').map_or(path, |(path, _place)| path);
        let page = match path.strip_suffix(".md") {
            Some("/index") => "/",
            Some(page) => page,
            None => path,
        };
        let is_file = path
            .strip_prefix('/')
            .is_some_and(|path| self.files.contains(path));
        is_file || path.is_empty() || OVERVIEWS.contains(&path) || self.paths.contains(page)
    }

    /// Returns whether a page names an address of another site, whole: `https://a.test` is not
    /// named by `https://a.test.evil.example`, and is named by `https://a.test/v1`.
    #[must_use]
    pub fn names(&self, address: &str) -> bool {
        let address = address.trim_end_matches('/');
        let is_web = ["http://", "https://"]
            .iter()
            .any(|scheme| address.len() > scheme.len() && address.starts_with(scheme));
        is_web && self.pages.iter().any(|page| is_whole(&page.text, address))
    }

    /// Returns whether the documentation has a word of running text that looks like an address, a
    /// path or a file: a page, a title or the generated skill has it whole.
    #[must_use]
    pub fn mentions(&self, word: &str) -> bool {
        let mut pages = self.pages.iter();
        has_word(&self.skill, word)
            || pages.any(|page| has_word(&page.text, word) || has_word(&page.title, word))
    }

    /// Returns whether a page contains this text, byte for byte.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        self.pages.iter().any(|page| page.text.contains(text))
    }
}

/// Returns whether a text has an address that does not go on.
fn is_whole(text: &str, address: &str) -> bool {
    text.match_indices(address).any(|(at, _)| {
        let mut rest = text[at + address.len()..].chars();
        match rest.next() {
            None => true,
            // The end of a sentence.
            Some('.' | ',' | ':' | ';' | '!') => rest.next().is_none_or(char::is_whitespace),
            Some(next) => {
                next.is_whitespace()
                    || matches!(
                        next,
                        '/' | '?'
                            | '#'
                            | '"'
                            | '\''
                            | '<'
                            | '>'
                            | '('
                            | ')'
                            | '['
                            | ']'
                            | '{'
                            | '}'
                            | '|'
                            | '`'
                            | '\\'
                            | '*'
                    )
            }
        }
    })
}

// === impl Sources ===

impl<'m> Sources<'m> {
    pub(super) fn new(material: &'m Material) -> Self {
        Self {
            material,
            read: BTreeMap::new(),
        }
    }

    /// Returns the page that a path means, and its content.
    pub(super) fn get(&mut self, path: &str) -> Option<(&'m SourceText, &Content)> {
        let page = self.material.page(path)?;
        let content = self
            .read
            .entry(&page.path)
            .or_insert_with(|| Content::of(&page.text));
        Some((page, content))
    }

    /// Returns whether some page has this word.
    pub(super) fn any_has(&mut self, word: &str) -> bool {
        let word = [word.to_owned()];
        self.any(|content| content.has_words(&word))
    }

    /// Returns whether some page has this code.
    pub(super) fn any_has_code(&mut self, code: &str) -> bool {
        self.any(|content| content.has_code(code))
    }

    fn any(&mut self, is_it: impl Fn(&Content) -> bool) -> bool {
        self.material.pages.iter().any(|page| {
            let content = self.read.entry(&page.path);
            is_it(content.or_insert_with(|| Content::of(&page.text)))
        })
    }
}

// === impl Content ===

impl Content {
    /// Returns the fenced blocks of code of a text, each with the number of its first line.
    pub(super) fn blocks(markdown: &str) -> Vec<(usize, String)> {
        let mut blocks: Vec<(usize, String)> = Vec::new();
        let mut is_inside = false;
        for (event, range) in Parser::new_ext(markdown, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::CodeBlock(_)) => {
                    is_inside = true;
                    let line = markdown[..range.start].matches('\n').count() + 1;
                    blocks.push((line, String::new()));
                }
                Event::End(TagEnd::CodeBlock) => is_inside = false,
                Event::Text(text) if is_inside => {
                    if let Some((_, block)) = blocks.last_mut() {
                        block.push_str(&text);
                    }
                }
                _ => {}
            }
        }
        blocks
    }

    pub(super) fn of(markdown: &str) -> Self {
        let mut content = Self::default();
        let mut prose = String::new();
        let mut code: Option<String> = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        for event in Parser::new_ext(markdown, options) {
            match event {
                Event::Start(Tag::CodeBlock(_)) => code = Some(String::new()),
                Event::End(TagEnd::CodeBlock) => {
                    let block = code.take().unwrap_or_default();
                    prose.push_str(&block);
                    prose.push('\n');
                    content.code.push(lines(&block));
                }
                Event::Text(text) | Event::Code(text) => match &mut code {
                    Some(block) => block.push_str(&text),
                    None => prose.push_str(&text),
                },
                Event::SoftBreak | Event::HardBreak => prose.push(' '),
                Event::End(end) if is_block(&end) => prose.push('\n'),
                _ => {}
            }
        }
        content.words = spaced(&words(&prose));
        content
    }

    /// Returns whether these words are there, one after the other.
    pub(super) fn has_words(&self, words: &[String]) -> bool {
        self.words.contains(&spaced(words))
    }

    /// Returns whether these lines are a part of one block of code. Only the indentation of the
    /// whole, and white space at the end of lines, may differ.
    pub(super) fn has_code(&self, code: &str) -> bool {
        let code = lines(code);
        let wanted = dedented(&code);
        !wanted.is_empty()
            && self
                .code
                .iter()
                .flat_map(|block| block.windows(wanted.len()))
                .any(|window| dedented(window) == wanted)
    }
}

/// Returns whether words on both sides of this end are of different blocks.
fn is_block(end: &TagEnd) -> bool {
    !matches!(
        end,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Link
            | TagEnd::Image
            | TagEnd::Superscript
            | TagEnd::Subscript
    )
}

/// Returns the lines of code without white space at their ends, and without empty lines at both
/// ends of the whole.
fn lines(code: &str) -> Vec<String> {
    let lines: Vec<String> = code
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    let is_said = |line: &String| !line.is_empty();
    let start = lines.iter().position(is_said).unwrap_or(lines.len());
    let end = lines.iter().rposition(is_said).map_or(start, |at| at + 1);
    lines[start..end].to_vec()
}

/// Removes the white space that all lines begin with.
fn dedented(lines: &[String]) -> Vec<&str> {
    let said = lines.iter().filter(|line| !line.is_empty());
    let indent = said
        .map(|line| line.len() - line.trim_start_matches([' ', '\t']).len())
        .min()
        .unwrap_or(0);
    let cut = |line: &'_ String| -> usize { indent.min(line.len()) };
    lines.iter().map(|line| &line[cut(line)..]).collect()
}

/// Returns the words of plain text, in lower case. A character of a script without spaces is a
/// word of its own.
pub(super) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    for c in text.chars() {
        let has_no_spaces = matches!(
            c,
            '\u{2e80}'..='\u{9fff}'
                | '\u{f900}'..='\u{faff}'
                | '\u{20000}'..='\u{3ffff}'
                | '\u{e00}'..='\u{eff}'
        );
        if c.is_alphanumeric() && !has_no_spaces {
            word.extend(c.to_lowercase());
            continue;
        }
        if !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if has_no_spaces && c.is_alphanumeric() {
            words.push(c.to_string());
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Returns the words of inline Markdown.
pub(super) fn words_of_markdown(markdown: &str) -> Vec<String> {
    let mut plain = String::new();
    for event in Parser::new_ext(markdown, Options::ENABLE_STRIKETHROUGH) {
        match event {
            Event::Text(text) | Event::Code(text) => plain.push_str(&text),
            Event::SoftBreak | Event::HardBreak => plain.push(' '),
            Event::End(end) if is_block(&end) => plain.push('\n'),
            _ => {}
        }
    }
    words(&plain)
}

fn spaced(words: &[String]) -> String {
    format!(" {} ", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn material(text: &str) -> Material {
        Material {
            base_url: "https://base.test".to_owned(),
            pages: vec![SourceText {
                path: "/guides/pay".to_owned(),
                text: text.to_owned(),
                ..SourceText::default()
            }],
            ..Material::default()
        }
    }

    #[test]
    fn a_page_is_found_by_each_of_its_spellings() {
        let material = material("");
        for path in [
            "/guides/pay",
            "guides/pay",
            "/guides/pay.md",
            "https://base.test/guides/pay#now",
            " /guides/pay/ ",
        ] {
            assert!(material.page(path).is_some(), "{path}");
        }
        assert!(material.page("/guides").is_none());
    }

    #[test]
    fn an_address_is_named_only_whole() {
        let material = material("Call `https://api.acme.test/v1`, see https://acme.test.");
        for address in [
            "https://api.acme.test/v1",
            "https://api.acme.test",
            "https://acme.test/",
        ] {
            assert!(material.names(address), "{address}");
        }
        for address in [
            "https://api.acme",
            "https://acme.test.evil.test",
            "https://api.acme.test/v",
            "https://",
            "api.acme.test",
        ] {
            assert!(!material.names(address), "{address}");
        }
    }

    #[test]
    fn words_are_found_across_marks_and_lines_and_not_across_others() {
        let content = Content::of(
            "A **char**ge costs\n`five` [euros](https://x.test/a b).\n\n上限は100件です\n",
        );
        let has = |text: &str| content.has_words(&words_of_markdown(text));
        for text in [
            "charge costs five euros",
            "Costs *five* EUROS",
            "上限は100件",
        ] {
            assert!(has(text), "{text}");
        }
        for text in ["charge five", "harge costs", "上限100"] {
            assert!(!has(text), "{text}");
        }
    }

    #[test]
    fn code_is_the_same_lines_of_one_block_with_any_indentation_of_the_whole() {
        let content = Content::of("- One\n\n  ```sh\n  a \n    b\n  c\n  ```\n\n```\nd\n```\n");
        for code in ["a\n  b\nc", "  a\n    b", "b\n", "\nd\n"] {
            assert!(content.has_code(code), "{code:?}");
        }
        for code in ["a\nb", "a\nc", "c\nd", "", "\n", "a b"] {
            assert!(!content.has_code(code), "{code:?}");
        }
    }
}
