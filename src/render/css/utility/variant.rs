//! Variants: prefixes of a utility class that say when it applies (`dark:`, `md:hover:`).

/// When a class applies.
#[derive(Clone, Debug, Default)]
pub(super) struct Condition {
    /// The position among all conditions. A later condition overrides an earlier one.
    pub(super) rank: u32,
    /// The media queries.
    pub(super) media: Vec<String>,
    /// The text before the selector of the class.
    pub(super) before: String,
    /// The text after it.
    pub(super) after: String,
    /// Whether the class applies in dark mode only.
    pub(super) is_dark: bool,
    /// Whether the element is generated and needs content.
    pub(super) is_generated: bool,
}

const SCREENS: [(&str, u16); 5] = [
    ("sm", 640),
    ("md", 768),
    ("lg", 1024),
    ("xl", 1280),
    ("2xl", 1536),
];
/// Pseudo-elements and pseudo-classes, with their selectors.
const STATES: [(&str, &str); 31] = [
    ("first-letter", "::first-letter"),
    ("first-line", "::first-line"),
    ("marker", "::marker"),
    ("selection", "::selection"),
    ("file", "::file-selector-button"),
    ("placeholder", "::placeholder"),
    ("before", "::before"),
    ("after", "::after"),
    ("first", ":first-child"),
    ("last", ":last-child"),
    ("only", ":only-child"),
    ("odd", ":nth-child(odd)"),
    ("even", ":nth-child(2n)"),
    ("first-of-type", ":first-of-type"),
    ("last-of-type", ":last-of-type"),
    ("visited", ":visited"),
    ("target", ":target"),
    ("open", "[open]"),
    ("checked", ":checked"),
    ("indeterminate", ":indeterminate"),
    ("required", ":required"),
    ("valid", ":valid"),
    ("invalid", ":invalid"),
    ("empty", ":empty"),
    ("focus-within", ":focus-within"),
    ("hover", ":hover"),
    ("focus", ":focus"),
    ("focus-visible", ":focus-visible"),
    ("active", ":active"),
    ("enabled", ":enabled"),
    ("disabled", ":disabled"),
];

// === impl Condition ===

impl Condition {
    /// Adds a variant; `None` if it is unknown.
    pub(super) fn add(&mut self, name: &str) -> Option<()> {
        if let Some(at) = SCREENS.iter().position(|(known, _)| *known == name) {
            self.rank |= 1 << (16 + at);
            self.media.push(format!("(min-width:{}px)", SCREENS[at].1));
            return Some(());
        }
        if let Some(name) = name.strip_prefix("max-") {
            let at = SCREENS.iter().position(|(known, _)| *known == name)?;
            self.rank |= 1 << 15;
            self.media
                .push(format!("not all and (min-width:{}px)", SCREENS[at].1));
            return Some(());
        }
        let state = |name: &str| STATES.iter().position(|(known, _)| *known == name);
        if let Some(at) = state(name) {
            self.rank += u32::try_from(at).ok()? + 1;
            self.is_generated |= matches!(name, "before" | "after");
            self.after += STATES[at].1;
            return Some(());
        }
        for (prefix, class, between) in [("group-", "group", " "), ("peer-", "peer", "~")] {
            let Some(rest) = name.strip_prefix(prefix) else {
                continue;
            };
            let (rest, label) = match rest.split_once('/') {
                Some((rest, label)) if is_word(label) => (rest, format!("\\/{label}")),
                Some(_) => return None,
                None => (rest, String::new()),
            };
            let at = state(rest).filter(|at| *at >= 8)?;
            self.rank += u32::try_from(at).ok()? + 1;
            self.before = format!(".{class}{label}{}{between}{}", STATES[at].1, self.before);
            return Some(());
        }
        match name {
            "dark" => {
                self.rank |= 1 << 24;
                self.is_dark = true;
            }
            "print" => {
                self.rank |= 1 << 25;
                self.media.push("print".to_owned());
            }
            "motion-safe" => self
                .media
                .push("(prefers-reduced-motion:no-preference)".to_owned()),
            "motion-reduce" => self
                .media
                .push("(prefers-reduced-motion:reduce)".to_owned()),
            "rtl" | "ltr" => self.before = format!(":where([dir={name}]) {}", self.before),
            _ => self.after += &arbitrary(name)?,
        }
        Some(())
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Returns the part after the class in a selector of the author: `[&>li]` is `>li`. It can only
/// match elements beside and inside the element.
fn arbitrary(name: &str) -> Option<String> {
    let selector = name
        .strip_prefix("[&")?
        .strip_suffix(']')?
        .replace('_', " ");
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || " >+~*.:-".contains(c);
    let is_plain = selector.chars().all(is_allowed) && selector.len() <= 64;
    let starts = selector.starts_with([' ', '>', '+', '~', ':', '.']);
    let ends = selector.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '*');
    let is_double = ["::", "..", ">>", "++", "~~", ":.", ".:", "-->"]
        .iter()
        .any(|s| selector.contains(s));
    (is_plain && starts && ends && !is_double).then_some(selector)
}
