//! The text of a skill while it is written, and the space that is left in it.

use std::collections::HashSet;

use super::sink::cost;
use super::text::{plain, quoted};
use super::{CHARACTERS_MAX, LINES_MAX, installable};
use crate::skills::Slug;

/// How many characters the headings of sections and the lines about all other pages need.
const REST_CHARACTERS: usize = 720;

/// How many lines and characters a list may still use.
#[derive(Clone, Copy)]
pub(super) struct Rest {
    pub(super) lines: usize,
    pub(super) characters: usize,
}

// === impl Rest ===

impl Rest {
    /// Uses some of it; returns `false` when too little is left.
    pub(super) fn take(&mut self, characters: usize, lines: usize) -> bool {
        if characters > self.characters || lines > self.lines {
            return false;
        }
        self.characters -= characters;
        self.lines -= lines;
        true
    }
}

/// The text that is being written.
pub(super) struct Page {
    pub(super) text: String,
    /// The headings so far, in lower case.
    headings: HashSet<String>,
}

// === impl Page ===

impl Page {
    pub(super) fn new() -> Self {
        Self {
            text: String::new(),
            headings: HashSet::new(),
        }
    }

    pub(super) fn frontmatter(
        &mut self,
        slug: &Slug,
        description: &str,
        title: &str,
        version: &str,
    ) {
        self.line("---");
        // A slug may be `0`, `1e3` or `null`: without quotes YAML does not read these as texts.
        self.line(&format!("name: {}", quoted(slug.as_str())));
        self.line(&format!("description: {}", quoted(description)));
        self.line("metadata:");
        self.line(&format!("  project: {}", quoted(title)));
        self.line(&format!("  version: {}", quoted(&plain(version))));
        self.line(&installable(slug.as_str()));
        self.line("---");
        self.line("");
    }

    pub(super) fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds a section. A heading in it that the text has already gets the name of the section.
    pub(super) fn section(&mut self, title: &str, lines: &[String]) {
        if !self.text.ends_with("\n\n") {
            self.line("");
        }
        self.line(&format!("## {title}"));
        self.line("");
        let mut fence: Option<&str> = None;
        let mut is_blank = true;
        for line in lines {
            if fence.is_none() && is_blank && line.is_empty() {
                continue;
            }
            is_blank = line.is_empty();
            let mark = line.trim_start();
            let is_fence = mark.starts_with("```");
            let backticks = &mark[..mark.len() - mark.trim_start_matches('`').len()];
            fence = match fence {
                Some(open) if mark == open => None,
                None if is_fence => Some(backticks),
                fence => fence,
            };
            let heading = line.strip_prefix("### ").filter(|_| fence.is_none());
            match heading {
                Some(heading) => {
                    let heading = self.unused(heading, title);
                    self.line(&format!("### {heading}"));
                }
                None => self.line(line),
            }
        }
    }

    /// Makes a heading that the text does not have.
    fn unused(&mut self, heading: &str, section: &str) -> String {
        let numbered = (2..).map(|nth| format!("{heading} ({nth})"));
        let names = [
            heading.to_owned(),
            format!("{heading} ({})", section.to_lowercase()),
        ];
        let free = names.into_iter().chain(numbered);
        let mut free = free.filter(|name| self.headings.insert(name.to_lowercase()));
        free.next().expect("there are more numbers than headings")
    }

    /// Returns the free budget that remains after these lines.
    pub(super) fn rest(&self, others: &[&Vec<String>], base_url: &str) -> Rest {
        let others = others.iter().flat_map(|lines| lines.iter());
        let after: usize = others.clone().map(|line| cost(line, base_url)).sum();
        let lines: usize = others.map(|line| line.lines().count().max(1)).sum();
        let used: usize = self.text.lines().map(|line| cost(line, base_url)).sum();
        Rest {
            lines: LINES_MAX.saturating_sub(lines + self.text.lines().count() + 30),
            characters: CHARACTERS_MAX.saturating_sub(used + after + REST_CHARACTERS),
        }
    }
}
