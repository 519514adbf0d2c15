//! Languages: the codes of `docs.json`, and the BCP 47 tag of each.
//!
//! `docs.json` has its own list of codes; two are country codes (`cn`, `jp`). `lang`
//! and `hreflang` need a BCP 47 tag. Real files also use other spellings; these are read
//! with a warning that names the listed code.
//!
//! Source: BCP 47 (RFC 5646) §2.1.

/// A language of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Language {
    /// Its code, as it is written in `languages`.
    pub code: Box<str>,
    /// Its BCP 47 tag, for `lang` and `hreflang`.
    pub tag: Box<str>,
    /// Its name in its own language, for the selector.
    pub name: &'static str,
}

/// A text that is read as a language code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// A listed code.
    Listed(Language),
    /// Another spelling of the listed code.
    Alias(Language, &'static str),
    /// Not a language code.
    Unknown,
}

/// Code, BCP 47 tag, name.
const LANGUAGES: [(&str, &str, &str); 30] = [
    ("ar", "ar", "العربية"),
    ("ca", "ca", "Català"),
    ("cs", "cs", "Čeština"),
    ("cn", "zh-Hans", "简体中文"),
    ("zh-Hant", "zh-Hant", "繁體中文"),
    ("da", "da", "Dansk"),
    ("nl", "nl", "Nederlands"),
    ("en", "en", "English"),
    ("fi", "fi", "Suomi"),
    ("fr", "fr", "Français"),
    ("de", "de", "Deutsch"),
    ("he", "he", "עברית"),
    ("hi", "hi", "हिन्दी"),
    ("hu", "hu", "Magyar"),
    ("id", "id", "Bahasa Indonesia"),
    ("it", "it", "Italiano"),
    ("jp", "ja", "日本語"),
    ("ko", "ko", "한국어"),
    ("lv", "lv", "Latviešu"),
    ("no", "no", "Norsk"),
    ("pl", "pl", "Polski"),
    ("pt-BR", "pt-BR", "Português (Brasil)"),
    ("ro", "ro", "Română"),
    ("ru", "ru", "Русский"),
    ("es", "es", "Español"),
    ("sv", "sv", "Svenska"),
    ("tr", "tr", "Türkçe"),
    ("uk", "uk", "Українська"),
    ("uz", "uz", "Oʻzbekcha"),
    ("vi", "vi", "Tiếng Việt"),
];

/// Other spellings: the spelling in lower case, the listed code, the intended tag.
const ALIASES: [(&str, &str, &str); 10] = [
    ("ja", "jp", "ja"),
    ("ja-jp", "jp", "ja"),
    ("zh", "cn", "zh-Hans"),
    ("zh-hans", "cn", "zh-Hans"),
    ("zh-cn", "cn", "zh-Hans"),
    ("zh-tw", "zh-Hant", "zh-Hant"),
    ("zh-hk", "zh-Hant", "zh-Hant"),
    ("pt", "pt-BR", "pt"),
    ("pt-pt", "pt-BR", "pt-PT"),
    ("nb", "no", "nb"),
];

/// Returns the listed codes.
pub fn codes() -> impl Iterator<Item = &'static str> {
    LANGUAGES.iter().map(|(code, _, _)| *code)
}

/// Returns a regular expression, in the syntax of JSON Schema, that matches the texts that
/// [`parse`] accepts.
#[must_use]
pub fn pattern() -> String {
    let any_case = |text: &str| {
        let letter = |c: char| match c.is_ascii_alphabetic() {
            true => format!("[{}{}]", c.to_ascii_lowercase(), c.to_ascii_uppercase()),
            false => c.to_string(),
        };
        text.chars().map(letter).collect::<String>()
    };
    let (with_region, without): (Vec<_>, Vec<_>) = codes().partition(|code| code.contains('-'));
    let join = |codes: &mut dyn Iterator<Item = &str>| {
        let codes: Vec<_> = codes.map(any_case).collect();
        codes.join("|")
    };
    let plain = join(&mut without.into_iter());
    let others = join(
        &mut with_region
            .into_iter()
            .chain(ALIASES.iter().map(|(alias, ..)| *alias)),
    );
    format!("^(?:(?:{plain})(?:[-_][A-Za-z]{{2}})?|{others})$")
}

/// Reads a language code.
///
/// ```
/// use waypost::docs::navigation::language::{Code, parse};
///
/// assert!(matches!(parse("jp"), Code::Listed(language) if &*language.tag == "ja"));
/// assert!(matches!(parse("zh-CN"), Code::Alias(_, "cn")));
/// assert_eq!(parse("klingon"), Code::Unknown);
/// ```
#[must_use]
pub fn parse(text: &str) -> Code {
    if let Some(found) = LANGUAGES.iter().find(|(code, _, _)| *code == text) {
        return Code::Listed(language(text, found.1, found));
    }
    let lower = text.to_ascii_lowercase();
    let listed = |code: &str| {
        LANGUAGES
            .iter()
            .find(|(c, _, _)| c.eq_ignore_ascii_case(code))
    };
    if let Some((_, code, tag)) = ALIASES.iter().find(|(alias, _, _)| *alias == lower)
        && let Some(found) = listed(code)
    {
        return Code::Alias(language(text, tag, found), found.0);
    }
    if let Some(found) = listed(&lower) {
        return Code::Alias(language(text, found.1, found), found.0);
    }
    // RFC 5646 §2.1: a region is two letters; `fr-CA` is French.
    if let Some((primary, region)) = text.split_once(['-', '_'])
        && region.len() == 2
        && region.bytes().all(|byte| byte.is_ascii_alphabetic())
        && let Some(found) = listed(primary)
    {
        let tag = format!("{}-{}", found.1, region.to_ascii_uppercase());
        return Code::Alias(language(text, &tag, found), found.0);
    }
    Code::Unknown
}

fn language(code: &str, tag: &str, found: &(&str, &str, &'static str)) -> Language {
    Language {
        code: code.into(),
        tag: tag.into(),
        name: found.2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_code_is_read_as_itself() {
        for code in codes() {
            assert!(
                matches!(parse(code), Code::Listed(l) if &*l.code == code),
                "{code}"
            );
        }
    }

    #[test]
    fn an_alias_names_the_listed_code() {
        for (alias, code, tag) in [
            ("ja", "jp", "ja"),
            ("zh", "cn", "zh-Hans"),
            ("zh-Hans", "cn", "zh-Hans"),
            ("zh-TW", "zh-Hant", "zh-Hant"),
            ("pt", "pt-BR", "pt"),
            ("fr-CA", "fr", "fr-CA"),
            ("fr-ca", "fr", "fr-CA"),
            ("EN", "en", "en"),
            ("en-US", "en", "en-US"),
            ("pt-br", "pt-BR", "pt-BR"),
        ] {
            let Code::Alias(language, listed) = parse(alias) else {
                panic!("{alias} is an alias");
            };
            assert_eq!((listed, &*language.tag), (code, tag), "{alias}");
        }
    }

    #[test]
    fn unknown_codes_are_rejected() {
        for text in ["", "xx", "english", "en-", "en-1234", "jp-", "-"] {
            assert_eq!(parse(text), Code::Unknown, "{text:?}");
        }
    }
}
