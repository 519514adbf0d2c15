//! The parts that an agent needs in a skill, as far as a program can detect them.

use std::sync::LazyLock;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use regex::Regex;

use super::super::generate::INSTALLS;

/// Words of texts about credentials.
const CREDENTIALS: [&str; 13] = [
    "api key",
    "api_key",
    "api-key",
    "apikey",
    "token",
    "authorization",
    "authenticat",
    "bearer",
    "oauth",
    "credential",
    "log in",
    "login",
    "sign in",
];
/// Words of texts about limits.
const LIMITS: [&str; 12] = [
    "limit",
    "maximum",
    "at most",
    "quota",
    "timeout",
    "time out",
    "expire",
    "not supported",
    "unsupported",
    "cannot",
    "must not",
    "429",
];
/// Languages of code that calls nothing.
const DATA: [&str; 6] = ["json", "yaml", "yml", "toml", "text", "txt"];

/// An operation: `POST /v1/charges`.
static OPERATION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(GET|POST|PUT|PATCH|DELETE|HEAD|QUERY)\b[`|*\s]*/[A-Za-z0-9{]")
        .expect("a constant expression")
});

/// The parts that a skill covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checklist {
    /// A command that installs something.
    pub install: bool,
    /// How to authenticate.
    pub authenticate: bool,
    /// Code that calls the product.
    pub first_call: bool,
    /// Operations of an API, with method and path.
    pub entry_points: bool,
    /// Limits: things that do not work, or only so often.
    pub limits: bool,
}

// === impl Checklist ===

impl Checklist {
    /// Reads what a skill covers.
    #[must_use]
    pub fn of(skill: &str) -> Self {
        let body = skill.split_once("\n---").map_or(skill, |(_, body)| body);
        let mut list = Self {
            entry_points: OPERATION.is_match(body),
            ..Self::default()
        };
        let (mut code, mut is_heading) = (None, false);
        let mut prose = String::new();
        for event in Parser::new_ext(body, Options::ENABLE_TABLES) {
            match event {
                Event::Start(Tag::Heading { .. }) => is_heading = true,
                Event::End(TagEnd::Heading(_)) => is_heading = false,
                Event::Start(Tag::CodeBlock(kind)) => {
                    let language = match &kind {
                        CodeBlockKind::Fenced(info) => info.split_whitespace().next(),
                        CodeBlockKind::Indented => None,
                    };
                    let language = language.unwrap_or_default().to_lowercase();
                    code = Some((language, String::new()));
                }
                Event::End(TagEnd::CodeBlock) => {
                    if let Some((language, code)) = code.take() {
                        list.add_code(&language, &code);
                        prose.push_str(&code.to_lowercase());
                    }
                }
                Event::Code(text) => {
                    list.install |= installs(&text);
                    prose.push_str(&text.to_lowercase());
                }
                Event::Text(text) => match &mut code {
                    Some((_, code)) => code.push_str(&text),
                    None if !is_heading => prose.push_str(&text.to_lowercase()),
                    None => {}
                },
                Event::SoftBreak | Event::HardBreak | Event::End(_) => prose.push('\n'),
                _ => {}
            }
        }
        list.authenticate = CREDENTIALS.iter().any(|word| prose.contains(word));
        list.limits = LIMITS.iter().any(|word| prose.contains(word));
        list
    }

    fn add_code(&mut self, language: &str, code: &str) {
        self.install |= code.lines().any(installs);
        let calls = code
            .lines()
            .any(|line| !line.trim().is_empty() && !installs(line));
        self.first_call |= calls && !DATA.contains(&language);
    }

    /// Returns the points and whether each is covered.
    #[must_use]
    pub fn points(self) -> [(&'static str, bool); 5] {
        [
            ("install", self.install),
            ("authenticate", self.authenticate),
            ("first call", self.first_call),
            ("entry points", self.entry_points),
            ("limits", self.limits),
        ]
    }

    /// Returns the points of this list that another list lacks.
    #[must_use]
    pub fn without(self, other: Self) -> Vec<&'static str> {
        let both = self.points().into_iter().zip(other.points());
        both.filter(|((_, here), (_, there))| *here && !*there)
            .map(|((point, _), _)| point)
            .collect()
    }
}

impl std::fmt::Display for Checklist {
    /// A list for people: `install, first call; not: limits`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let points = |is: bool| {
            let points = self.points().into_iter().filter(|point| point.1 == is);
            let names: Vec<_> = points.map(|(name, _)| name).collect();
            match names.is_empty() {
                true => "nothing".to_owned(),
                false => names.join(", "),
            }
        };
        write!(f, "{}; not covered: {}", points(true), points(false))
    }
}

fn installs(line: &str) -> bool {
    // Some entries end with a space.
    let line = format!("{} ", line.trim().to_lowercase());
    INSTALLS.iter().any(|command| line.contains(command))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checklist_lists_what_is_covered_and_what_is_not() {
        let list = Checklist {
            install: true,
            limits: true,
            ..Checklist::default()
        };
        let not_covered = "not covered: authenticate, first call, entry points";
        assert_eq!(list.to_string(), format!("install, limits; {not_covered}"));
        let nothing = Checklist::default();
        assert!(
            nothing
                .to_string()
                .starts_with("nothing; not covered: install, ")
        );
        assert_eq!(list.without(nothing), ["install", "limits"]);
        assert_eq!(list.without(list), [""; 0]);
        assert_eq!(nothing.without(list), [""; 0]);
    }
}
