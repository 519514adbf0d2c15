//! Kinds of readers, by the name of a product in `User-Agent`.
//!
//! The list is closed, so that no client can make it grow: an agent that is not in it is one of
//! [`OTHER`]. A client chooses its name, and nothing proves it.
//!
//! To look for the names in the text of a browser takes 0.7 us, as long as a tenth of a request. Few
//! texts come often, so each thread remembers some.
//!
//! Sources: RFC 9110 §10.1.5 (`product/version`, comments); the pages on which the operators of
//! these agents name them.

use std::cell::RefCell;
use std::hash::BuildHasher as _;

use foldhash::fast::RandomState;

/// The name of all agents that are not in the list.
pub(super) const OTHER: &str = "other agents";
/// The name of all browsers.
pub(super) const BROWSERS: &str = "browsers";

/// How many kinds there are.
pub(super) const COUNT: usize = NAMES.len();

/// The kinds, with their names. The first two have no product; the others are sorted by their first
/// letter.
const NAMES: [&str; 43] = [
    BROWSERS,
    OTHER,
    "Amazonbot",
    "Applebot",
    "Applebot-Extended",
    "Bingbot",
    "Bytespider",
    "CCBot",
    "ChatGPT-User",
    "Claude-Code",
    "Claude-SearchBot",
    "Claude-User",
    "ClaudeBot",
    "Codex",
    "Cohere-AI",
    "Cursor",
    "Devin",
    "Diffbot",
    "DuckAssistBot",
    "DuckDuckBot",
    "FacebookBot",
    "Gemini-CLI",
    "Google-CloudVertexBot",
    "Google-Extended",
    "Google-NotebookLM",
    "GoogleAgent-Mariner",
    "Googlebot",
    "GoogleOther",
    "GPTBot",
    "Kagibot",
    "Meta-ExternalAgent",
    "Meta-ExternalFetcher",
    "MistralAI-User",
    "OAI-SearchBot",
    "opencode",
    "Perplexity-User",
    "PerplexityBot",
    "PetalBot",
    "Sourcegraph",
    "Timpibot",
    "Windsurf",
    "YandexBot",
    "YouBot",
];
/// For each letter, where in [`NAMES`] the names are that begin with it: the first one, and the one
/// after the last.
const PLACES: [[usize; 2]; 26] = {
    let mut places = [[0; 2]; 26];
    let mut at = 2;
    while at < NAMES.len() {
        let letter = letter(NAMES[at].as_bytes()[0]).expect("a name begins with a letter");
        let place = &mut places[letter];
        if place[1] == 0 {
            place[0] = at;
        }
        assert!(place[0] == at || place[1] == at, "names are sorted");
        place[1] = at + 1;
        at += 1;
    }
    places
};
/// Products that only programs for people have.
const BROWSER_PRODUCTS: [&str; 5] = ["chrome", "crios", "firefox", "fxios", "safari"];
/// Words in the products of programs that are not for people.
const ROBOT_WORDS: [&str; 6] = ["bot", "crawl", "spider", "fetch", "headless", "preview"];

/// How many texts a thread remembers.
const REMEMBERED: usize = 64;
/// The longest text that it remembers, in bytes.
const REMEMBERED_BYTES_MAX: usize = 256;

/// A kind of readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader(u8);

/// The texts that a thread has seen last, each in the place that its hash chooses, with their kinds.
struct Remembered {
    hasher: RandomState,
    places: [(String, Reader); REMEMBERED],
}

// === impl Reader ===

impl Reader {
    /// Finds the kind of a client by its `User-Agent`. Nothing is allocated once the thread has
    /// seen some texts.
    #[must_use]
    pub fn of(user_agent: &str) -> Self {
        thread_local! {
            static REMEMBERED: RefCell<Remembered> = RefCell::default();
        }
        match user_agent.len() {
            1..=REMEMBERED_BYTES_MAX => REMEMBERED.with_borrow_mut(|seen| seen.find(user_agent)),
            _ => Self::find(user_agent),
        }
    }

    fn find(user_agent: &str) -> Self {
        let is_name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
        let mut words = user_agent
            .as_bytes()
            .split(|b| !is_name(*b))
            .filter(|word| word.len() > 3);
        let (mut is_browser, mut is_robot) = (false, false);
        for word in &mut words {
            if let Some(known) = known(word) {
                return known;
            }
            is_browser |= BROWSER_PRODUCTS
                .iter()
                .any(|product| word.eq_ignore_ascii_case(product.as_bytes()));
            is_robot |= word.eq_ignore_ascii_case(b"compatible")
                || ROBOT_WORDS
                    .iter()
                    .any(|robot| contains(word, robot.as_bytes()));
        }
        Self(u8::from(!is_browser || is_robot))
    }

    /// Returns the name that the numbers have.
    #[must_use]
    pub(super) fn name(self) -> &'static str {
        NAMES[usize::from(self.0)]
    }

    pub(super) fn index(self) -> usize {
        usize::from(self.0)
    }

    pub(super) fn all() -> impl Iterator<Item = &'static str> {
        NAMES.into_iter()
    }
}

// === impl Remembered ===

impl Remembered {
    fn find(&mut self, user_agent: &str) -> Reader {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "any bits of a hash will do"
        )]
        let at = self.hasher.hash_one(user_agent) as usize % REMEMBERED;
        let (text, reader) = &mut self.places[at];
        if text != user_agent {
            *reader = Reader::find(user_agent);
            text.clear();
            text.push_str(user_agent);
        }
        *reader
    }
}

impl Default for Remembered {
    fn default() -> Self {
        Self {
            hasher: RandomState::default(),
            places: std::array::from_fn(|_| (String::new(), Reader::find(""))),
        }
    }
}

/// Finds the kind that has this name.
fn known(word: &[u8]) -> Option<Reader> {
    let [from, to] = PLACES[letter(word[0])?];
    let is_same = |at: &usize| NAMES[*at].as_bytes().eq_ignore_ascii_case(word);
    let at = (from..to).find(is_same)?;
    u8::try_from(at).ok().map(Reader)
}

/// Returns the number of a letter, in any case: 0 for `a`.
const fn letter(byte: u8) -> Option<usize> {
    match byte.to_ascii_lowercase() {
        lower @ b'a'..=b'z' => Some((lower - b'a') as usize),
        _ => None,
    }
}

/// Returns whether a word has lower-case letters in it, in any case.
fn contains(word: &[u8], letters: &[u8]) -> bool {
    word.windows(letters.len()).any(|part| {
        part[0].to_ascii_lowercase() == letters[0] && part.eq_ignore_ascii_case(letters)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_is_known_by_the_product_that_it_names() {
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
                      Chrome/140.0.0.0 Safari/537.36";
        for (agent, name) in [
            (chrome, BROWSERS),
            (
                "Mozilla/5.0 (Windows NT 10.0; rv:140.0) Gecko/20100101 Firefox/140.0",
                BROWSERS,
            ),
            (
                "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)",
                "GPTBot",
            ),
            (
                "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko); compatible; ChatGPT-User/1.0; +https://openai.com/bot",
                "ChatGPT-User",
            ),
            (
                "Mozilla/5.0 (compatible; claudebot/1.0; +claudebot@anthropic.com)",
                "ClaudeBot",
            ),
            (
                "Mozilla/5.0 (compatible; bingbot/2.0) Chrome/116.0.0.0 Safari/537.36",
                "Bingbot",
            ),
            (
                "Mozilla/5.0 (compatible; NewBot/2.0) Chrome/116.0.0.0 Safari/537.36",
                OTHER,
            ),
            ("Mozilla/5.0 HeadlessChrome/140.0 Safari/537.36", OTHER),
            ("claude-code/2.0.1 (cli)", "Claude-Code"),
            ("curl/8.5.0", OTHER),
            ("", OTHER),
            ("GPTBotany/1.0", OTHER),
        ] {
            assert_eq!(Reader::of(agent).name(), name, "{agent}");
        }
    }

    #[test]
    fn a_remembered_text_has_its_own_kind() {
        for number in (0..200).chain(0..200) {
            for agent in [
                format!("GPTBot/{number}"),
                format!("Firefox/{number}"),
                format!("program/{number}"),
                format!("{}Firefox/{number}", " ".repeat(REMEMBERED_BYTES_MAX)),
            ] {
                assert_eq!(Reader::of(&agent), Reader::find(&agent), "{agent}");
            }
        }
    }

    #[test]
    fn names_are_in_order_and_unique() {
        let lower: Vec<_> = NAMES[2..].iter().map(|n| n.to_ascii_lowercase()).collect();
        assert!(lower.is_sorted_by(|a, b| a < b), "{lower:?}");
        assert!(NAMES[2..].iter().all(|name| name.len() > 3));
    }
}
