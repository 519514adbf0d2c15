//! The draft of a model, and the file that is written from it.

use serde::{Deserialize, Serialize};

use super::super::generate::{installable, quoted, version_and_title};
use super::super::material::Material;

/// The sections of a draft: its key, and the heading in the file.
pub const SECTIONS: [(&str, &str); 5] = [
    ("capabilities", "Capabilities"),
    ("skills", "Skills"),
    ("workflows", "Workflows"),
    ("integration", "Integration"),
    ("context", "Context"),
];
/// The longest label of a link, in characters.
const LABEL_CHARACTERS_MAX: usize = 80;

/// A skill as a model proposes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Draft {
    /// When an agent uses the skill.
    pub description: Statement,
    /// A description of the product.
    pub about: Statement,
    /// The features of the product, and the decisions to take first.
    pub capabilities: Vec<Item>,
    /// Specific actions, with the first working call and the entry points of the reference.
    pub skills: Vec<Item>,
    /// Procedures, step by step.
    pub workflows: Vec<Item>,
    /// Tools and services that work with the product.
    pub integration: Vec<Item>,
    /// Facts to know before use: limits, mistakes, and when not to use the product.
    pub context: Vec<Item>,
}

/// A statement, and the page that supports it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The statement: one line of words, emphasis and code.
    pub text: String,
    /// The path of the page.
    #[serde(default)]
    pub page: String,
    /// Words of this page.
    #[serde(default)]
    pub quote: String,
}

/// A part of a section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The kind of part.
    pub kind: Kind,
    /// Its text, or the code.
    pub text: String,
    /// The language of code.
    #[serde(default)]
    pub language: String,
    /// The path of the page that it is from. A heading has none.
    #[serde(default)]
    pub page: String,
    /// Words of this page. Code and headings have none.
    #[serde(default)]
    pub quote: String,
}

/// The kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A heading below that of the section.
    Heading,
    /// A paragraph.
    Text,
    /// An entry of a list.
    Bullet,
    /// A step of a procedure; steps that follow each other are numbered.
    Step,
    /// A block of code.
    Code,
}

// === impl Draft ===

impl Draft {
    /// Returns the sections in their order, each with its key.
    #[must_use]
    pub fn sections(&self) -> [(&'static str, &[Item]); 5] {
        let items: [&[Item]; 5] = [
            &self.capabilities,
            &self.skills,
            &self.workflows,
            &self.integration,
            &self.context,
        ];
        let mut sections = [("", &[][..]); 5];
        for ((section, (key, _)), items) in sections.iter_mut().zip(SECTIONS).zip(items) {
            *section = (key, items);
        }
        sections
    }

    /// Writes the file. The draft was checked.
    pub(super) fn write(&self, material: &Material) -> String {
        let (title, version) = version_and_title(&material.skill);
        let mut out = String::new();
        let mut line = |text: &str| {
            out.push_str(text.trim_end());
            out.push('\n');
        };
        line("---");
        line(&format!("name: {}", quoted(&material.name)));
        line(&format!(
            "description: {}",
            quoted(self.description.text.trim())
        ));
        line("metadata:");
        line(&format!("  project: {}", quoted(&title)));
        line(&format!("  version: {}", quoted(&version)));
        line(&installable(&material.name));
        line("---");
        line("");
        line(&format!("# {}", label(&title)));
        line("");
        line(&cited(&self.about.text, &self.about.page, material));
        for ((_, items), (_, heading)) in self.sections().into_iter().zip(SECTIONS) {
            line("");
            line(&format!("## {heading}"));
            let mut before = None;
            let mut step = 0;
            for item in items {
                let is_list = matches!(item.kind, Kind::Bullet | Kind::Step);
                if !(is_list && before == Some(item.kind)) {
                    line("");
                }
                // Code between two steps belongs to the first of them.
                step = match item.kind {
                    Kind::Step => step + 1,
                    Kind::Code => step,
                    _ => 0,
                };
                let text = || cited(&item.text, &item.page, material);
                match item.kind {
                    Kind::Heading => line(&format!("### {}", item.text.trim())),
                    Kind::Text => line(&text()),
                    Kind::Bullet => line(&format!("- {}", text())),
                    Kind::Step => line(&format!("{step}. {}", text())),
                    Kind::Code => {
                        let fence = fence(&item.text);
                        line(&format!("{fence}{}", item.language));
                        let code = item.text.trim_end();
                        for code in code.lines().skip_while(|line| line.trim().is_empty()) {
                            line(code);
                        }
                        line(&fence);
                        line("");
                        line(&format!("From {}.", link(&item.page, material)));
                    }
                }
                before = Some(item.kind);
            }
        }
        out
    }
}

/// Returns a statement with a link to its page.
fn cited(text: &str, page: &str, material: &Material) -> String {
    format!("{} ({})", text.trim(), link(page, material))
}

fn link(page: &str, material: &Material) -> String {
    let Some(page) = material.page(page) else {
        return String::new();
    };
    let title = label(&page.title);
    let title = if title.is_empty() { "page" } else { &title };
    format!("[{title}]({}{})", material.base_url, page.path)
}

/// Makes the label of a link from a title.
fn label(title: &str) -> String {
    let kept = title.chars().filter(|c| {
        !matches!(
            c,
            '[' | ']' | '<' | '>' | '`' | '*' | '_' | '\\' | '#' | '|'
        )
    });
    let plain: String = kept.collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ").chars().take(LABEL_CHARACTERS_MAX).collect()
}

/// Returns backticks that the code does not have.
fn fence(code: &str) -> String {
    let longest = code
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    "`".repeat(3.max(longest + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fence_is_longer_than_backticks_in_the_code() {
        assert_eq!(fence("a"), "```");
        assert_eq!(fence("a ``` b `"), "````");
        assert_eq!(fence("`````"), "``````");
    }
}
