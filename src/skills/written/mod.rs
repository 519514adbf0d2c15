//! A skill that a language model wrote, and the rules that it must keep before it is published.
//!
//! The model does not write the file. It proposes a [`Draft`]: statements, steps and code, each
//! with the page that it is taken from. [`check()`] verifies every part against the pages and
//! writes the file itself, so frontmatter, sections and links are never the model's.
//!
//! | part | rule |
//! |---|---|
//! | every statement, also the description | names a page, and quotes at least [`QUOTE_WORDS_MIN`] words that are on it |
//! | its text | is one paragraph of words, emphasis and code; shares a word with the quote; its numbers, its code, its addresses and names of files, and its commands that install something are on the page |
//! | a heading | has few words and no mark; its longer words are on some page |
//! | code | is a part of one block of code of the page that it names, line for line |
//! | a link to another site | is named by a page |
//! | sections | all five have an entry |
//! | the whole file | keeps the rules of [`accept`](super::accept()): sizes, links, no secrets, nothing hidden, no instructions against the user |
//! | the [`Checklist`] | has everything that the generated skill has |
//!
//! A program cannot check the meaning of a text: a statement may still misread its quote. So each
//! statement names its page, and the record of the update shows every change.

mod checklist;
mod draft;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::address::{addresses, has_word, installations};
use super::material::{Content, Material, SourceText, Sources, words, words_of_markdown};
use super::{Age, Generated, accept};

pub use checklist::Checklist;
pub use draft::{Draft, Item, Kind, SECTIONS, Statement};

/// The least number of words of a quote.
pub const QUOTE_WORDS_MIN: usize = 3;
/// The longest text of a part, in characters.
const TEXT_CHARACTERS_MAX: usize = 600;
/// The longest heading, in characters and in words.
const HEADING_CHARACTERS_MAX: usize = 60;
const HEADING_WORDS_MAX: usize = 7;
/// The shortest word of a heading that must be on some page, in characters.
const HEADING_WORD_MIN: usize = 4;
/// Words of headings of every skill.
const HEADING_WORDS: [&str; 16] = [
    "call",
    "calls",
    "common",
    "entry",
    "errors",
    "first",
    "limits",
    "mistakes",
    "more",
    "overview",
    "points",
    "quick",
    "reference",
    "start",
    "steps",
    "working",
];
/// The most parts of a draft.
const ITEMS_MAX: usize = 300;
/// How many problems are reported at once.
const PROBLEMS_MAX: usize = 24;
/// How many letters at the beginning of two words make them the same word.
const STEM_LETTERS: usize = 4;

/// A draft that has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrittenSkill {
    /// The skill.
    pub skill: Generated,
    /// The parts that the skill covers.
    pub covers: Checklist,
    /// The parts that the generated skill covers.
    pub generated_covers: Checklist,
    /// How many statements have a quote that was found.
    pub statements: usize,
    /// How many blocks of code were found on their pages.
    pub code_blocks: usize,
}

/// Checks a draft and writes the file.
///
/// # Errors
///
/// The problems of a draft, each with its part, for the model to correct.
pub fn check(material: &Material, draft: &Draft) -> Result<WrittenSkill, Vec<String>> {
    let mut checker = Checker {
        sources: Sources::new(material),
        problems: Vec::new(),
        statements: 0,
        code_blocks: 0,
    };
    checker.draft(draft);
    let Checker {
        mut problems,
        statements,
        code_blocks,
        ..
    } = checker;
    if !problems.is_empty() {
        let more = problems.len().saturating_sub(PROBLEMS_MAX);
        problems.truncate(PROBLEMS_MAX);
        if more > 0 {
            problems.push(format!("and {more} more problems"));
        }
        return Err(problems);
    }
    let text = draft.write(material);
    let skill = accept(material, text.as_bytes(), Age::Now)
        .map_err(|rejected| vec![format!("the file: {rejected}")])?;
    let covers = Checklist::of(&text);
    let generated_covers = Checklist::of(&material.skill);
    let missing = generated_covers.without(covers);
    if !missing.is_empty() {
        return Err(vec![format!(
            "the file covers less than the generated skill: add {}",
            missing.join(", ")
        )]);
    }
    Ok(WrittenSkill {
        skill,
        covers,
        generated_covers,
        statements,
        code_blocks,
    })
}

/// Checks the file of another program as far as it can be compared with the pages.
///
/// Each of its blocks of code is code of a page or of the generated skill, and it covers what the
/// generated skill covers. Returns what is wrong.
#[must_use]
pub fn check_file(material: &Material, skill: &str) -> Vec<String> {
    let mut sources = Sources::new(material);
    let own = Content::of(&material.skill);
    let mut problems = Vec::new();
    for (line, code) in Content::blocks(skill) {
        if !sources.any_has_code(&code) && !own.has_code(&code) {
            problems.push(format!("line {line} has code that no page has"));
        }
    }
    let missing = Checklist::of(&material.skill).without(Checklist::of(skill));
    if !missing.is_empty() {
        problems.push(format!(
            "it covers less than the generated skill: add {}",
            missing.join(", ")
        ));
    }
    problems.truncate(PROBLEMS_MAX);
    problems
}

struct Checker<'m> {
    sources: Sources<'m>,
    problems: Vec<String>,
    statements: usize,
    code_blocks: usize,
}

// === impl Checker ===

impl Checker<'_> {
    fn draft(&mut self, draft: &Draft) {
        self.statement("description", &draft.description);
        self.statement("about", &draft.about);
        let items: usize = draft.sections().iter().map(|(_, items)| items.len()).sum();
        if items > ITEMS_MAX {
            self.find(
                "the draft",
                &format!("{items} parts; {ITEMS_MAX} are allowed"),
            );
            return;
        }
        for (name, items) in draft.sections() {
            let is_said = items.iter().any(|item| item.kind != Kind::Heading);
            if !is_said {
                self.find(name, "the section is empty");
            }
            for (at, item) in items.iter().enumerate() {
                self.item(&format!("{name}[{at}]"), item);
            }
        }
    }

    fn find(&mut self, place: &str, what: &str) {
        self.problems.push(format!("{place}: {what}"));
    }

    fn item(&mut self, place: &str, item: &Item) {
        match item.kind {
            Kind::Heading => {
                if let Err(what) = self.heading(&item.text) {
                    self.find(place, &what);
                }
            }
            Kind::Code => self.code(place, item),
            Kind::Text | Kind::Bullet | Kind::Step => {
                let statement = Statement {
                    text: item.text.clone(),
                    page: item.page.clone(),
                    quote: item.quote.clone(),
                };
                self.statement(place, &statement);
            }
        }
    }

    /// Checks a heading: it has no page of its own, so it may only name what follows.
    fn heading(&mut self, text: &str) -> Result<(), String> {
        let inline = Inline::of(text)?;
        if text.chars().count() > HEADING_CHARACTERS_MAX || inline.words.len() > HEADING_WORDS_MAX {
            return Err(format!(
                "a heading has at most {HEADING_CHARACTERS_MAX} characters and {HEADING_WORDS_MAX} words"
            ));
        }
        let marks = ['*', '_', '#', ':', '/', '@', '.', '!', '?'];
        if !inline.codes.is_empty() || text.contains(marks) || addresses(text).next().is_some() {
            return Err("a heading has only words".to_owned());
        }
        let is_long = |word: &&String| word.chars().count() >= HEADING_WORD_MIN;
        for word in inline.words.iter().filter(is_long) {
            if !HEADING_WORDS.contains(&&**word) && !self.sources.any_has(word) {
                return Err(format!("{word:?} is on no page"));
            }
        }
        Ok(())
    }

    fn code(&mut self, place: &str, item: &Item) {
        let language = &item.language;
        if language.len() > 20
            || !language
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+#-".contains(c))
        {
            self.find(place, "`language` is not the name of a language");
        }
        let found = self.sources.get(&item.page);
        let what = match found {
            None => Some(no_page(&item.page)),
            Some((page, content)) if !content.has_code(&item.text) => Some(format!(
                "{} has no block of code with exactly these lines",
                page.path
            )),
            Some(_) => None,
        };
        match what {
            Some(what) => self.find(place, &what),
            None => self.code_blocks += 1,
        }
    }

    fn statement(&mut self, place: &str, statement: &Statement) {
        let inline = match Inline::of(&statement.text) {
            Ok(inline) => inline,
            Err(what) => return self.find(place, &what),
        };
        let what = match self.sources.get(&statement.page) {
            None => vec![no_page(&statement.page)],
            Some((page, content)) => inline.unsupported(page, content, &statement.quote),
        };
        if what.is_empty() {
            self.statements += 1;
        }
        for what in what {
            self.find(place, &what);
        }
    }
}

fn no_page(path: &str) -> String {
    let path: String = path.chars().take(120).collect();
    format!("{path:?} is no page of the documentation")
}

/// The text of a statement: words, and code between them.
struct Inline {
    words: Vec<String>,
    codes: Vec<String>,
    /// The words and the code in their order; `true` marks code.
    parts: Vec<(bool, String)>,
}

// === impl Inline ===

impl Inline {
    fn of(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("`text` is empty".to_owned());
        }
        let characters = text.chars().count();
        if characters > TEXT_CHARACTERS_MAX {
            return Err(format!(
                "`text` has {characters} characters; {TEXT_CHARACTERS_MAX} are allowed"
            ));
        }
        let mut plain = String::new();
        let mut codes = Vec::new();
        let mut parts: Vec<(bool, String)> = Vec::new();
        let mut paragraphs = 0;
        for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Paragraph) => paragraphs += 1,
                Event::Text(text) => {
                    plain.push_str(&text);
                    match parts.last_mut() {
                        // Emphasis may begin inside a word.
                        Some((false, before)) => before.push_str(&text),
                        _ => parts.push((false, text.into_string())),
                    }
                }
                Event::Code(code) => {
                    plain.push(' ');
                    parts.push((true, code.to_string()));
                    codes.push(code.into_string());
                }
                Event::Start(Tag::Emphasis | Tag::Strong)
                | Event::End(TagEnd::Paragraph | TagEnd::Emphasis | TagEnd::Strong) => {}
                _ => paragraphs = usize::MAX / 2,
            }
        }
        if paragraphs != 1 {
            let what = "`text` may be one line of words, **bold**, *emphasis* and `code`; links are added from `page`";
            return Err(what.to_owned());
        }
        Ok(Self {
            words: words(&plain),
            codes,
            parts,
        })
    }

    /// Returns why a page does not support this text.
    fn unsupported(&self, page: &SourceText, content: &Content, quote: &str) -> Vec<String> {
        let path = &page.path;
        let quoted = words_of_markdown(quote);
        if quoted.len() < QUOTE_WORDS_MIN {
            return vec![format!("`quote` has less than {QUOTE_WORDS_MIN} words")];
        }
        if !content.has_words(&quoted) {
            return vec![format!("the words of `quote` are not on {path}")];
        }
        let mut found = Vec::new();
        let stems = |words: &[String]| -> Vec<String> {
            let long = words
                .iter()
                .filter(|word| word.chars().count() >= STEM_LETTERS);
            long.map(|word| word.chars().take(STEM_LETTERS).collect())
                .collect()
        };
        let (of_text, of_quote) = (stems(&self.words), stems(&quoted));
        let shares = of_text.iter().any(|stem| of_quote.contains(stem));
        let codes = self.codes.iter().flat_map(|code| words(code));
        let shares_code = codes.into_iter().any(|word| quoted.contains(&word));
        if of_text.len() > 1 && !of_quote.is_empty() && !shares && !shares_code {
            found.push("`quote` and `text` have no word in common".to_owned());
        }
        for code in &self.codes {
            if !page.text.contains(code.as_str()) {
                found.push(format!("`{code}` is not on {path}"));
            }
        }
        // An agent opens what looks like an address or a file, also without a scheme.
        for (_, part) in &self.parts {
            for word in addresses(part).filter(|word| !has_word(&page.text, word)) {
                let finding = format!("{word:?} is not on {path}");
                if !found.contains(&finding) {
                    found.push(finding);
                }
            }
        }
        for command in installations(&self.parts) {
            if !content.has_words(&words(&command)) {
                found.push(format!(
                    "the command {command:?} is not on {path}; write commands as `code`"
                ));
            }
        }
        let has_digit = |word: &&String| word.chars().any(|c| c.is_ascii_digit());
        for number in self.words.iter().filter(has_digit) {
            if !content.has_words(std::slice::from_ref(number)) {
                found.push(format!("{number:?} is not on {path}"));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests;
