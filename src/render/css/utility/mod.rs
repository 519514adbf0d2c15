//! Utility classes: the classes of Tailwind CSS 3 that pages use without any stylesheet.
//!
//! A page gets a stylesheet of the classes that it uses, in the layer `utilities`. An unknown class
//! has no effect. The declarations come from tables in this module. The only text of an author that
//! is written is a value in brackets, after the same check as values of `style`.
//!
//! Source: the documentation of Tailwind CSS 3.4, whose names public pages use.

mod family;
mod fixed;
mod palette;
mod variant;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use self::family::Meaning;
use self::fixed::{ANIMATIONS, FIXED};
use self::variant::Condition;
use super::name;

/// How long a class may be, and how many variants it may have.
const CLASS_BYTES_MAX: usize = 128;
const VARIANTS_MAX: usize = 6;
/// Custom properties that classes of one element share. They must not reach its children.
const SHARED: &str = "main :where(*){--tw-translate-x:initial;--tw-translate-y:initial;\
    --tw-shadow:initial;--tw-ring-shadow:initial;--tw-ring-color:initial;\
    --tw-gradient-from:initial;--tw-gradient-to:initial;--tw-gradient-stops:initial}";

/// A rule of the sheet, without its condition on media.
type Rules = Vec<String>;

/// Returns the stylesheet for the classes of a page; empty if it needs none. The result depends
/// on the set of classes only.
#[must_use]
pub fn sheet<'c>(classes: impl IntoIterator<Item = &'c str>) -> String {
    // By rank of the condition, then media, then the place of the class, then its name.
    let mut rules: BTreeMap<(u32, String), BTreeMap<(usize, String), String>> = BTreeMap::new();
    let mut insert = |rank: u32, media: &str, order: usize, rule: String, class: &str| {
        let place = rules.entry((rank, media.to_owned())).or_default();
        place.insert((order, class.to_owned()), rule);
    };
    for class in classes {
        let Some((condition, meaning, is_important)) = read(class) else {
            continue;
        };
        let mut declarations = meaning.declarations;
        if condition.is_generated {
            declarations = format!("content:\"\";{declarations}");
        }
        if is_important {
            declarations = declarations.replace(';', "!important;") + "!important";
        }
        let own = format!(
            "{}.{}{}{}",
            condition.before,
            escaped(&name::class(class)),
            condition.after,
            meaning.suffix
        );
        let media = condition.media.join(" and ");
        let (rank, order) = (condition.rank, meaning.order);
        if condition.is_dark {
            insert(
                rank,
                &media,
                order,
                format!(".dark {own}{{{declarations}}}"),
                class,
            );
            // The class for dark mode is set by a script.
            let dark = [media.as_str(), "(prefers-color-scheme:dark)"];
            let dark: Vec<&str> = dark.into_iter().filter(|part| !part.is_empty()).collect();
            let rule = format!(":root:not(.js) {own}{{{declarations}}}");
            insert(rank, &dark.join(" and "), order, rule, class);
        } else {
            insert(
                rank,
                &media,
                order,
                format!("{own}{{{declarations}}}"),
                class,
            );
        }
    }
    if rules.is_empty() {
        return String::new();
    }
    let mut all = String::new();
    for ((_, media), rules) in rules {
        let rules: Rules = rules.into_values().collect();
        let rules = rules.concat();
        match media.is_empty() {
            true => all += &rules,
            false => write!(all, "@media {media}{{{rules}}}").expect("a String takes every text"),
        }
    }
    let shared = if all.contains("--tw-") { SHARED } else { "" };
    let named = ANIMATIONS.iter().filter(|(used, _)| all.contains(used));
    let frames: String = named.map(|(_, frames)| *frames).collect();
    format!("@layer utilities{{{shared}{all}{frames}}}\n")
}

/// Reads a class: when it applies, what it means, and whether it is important.
fn read(class: &str) -> Option<(Condition, Meaning, bool)> {
    if class.len() > CLASS_BYTES_MAX {
        return None;
    }
    let mut parts = split(class);
    let base = parts.pop()?;
    if parts.len() > VARIANTS_MAX {
        return None;
    }
    let (base, is_important) = match base.strip_prefix('!') {
        Some(base) => (base, true),
        None => (base, false),
    };
    let meaning = meaning(base)?;
    let mut condition = Condition::default();
    for variant in parts {
        condition.add(variant)?;
    }
    Some((condition, meaning, is_important))
}

fn meaning(base: &str) -> Option<Meaning> {
    if let Some(at) = FIXED.iter().position(|(name, _)| *name == base) {
        let (_, declarations) = FIXED[at];
        return (!declarations.is_empty()).then(|| Meaning {
            order: at,
            suffix: "",
            declarations: declarations.to_owned(),
        });
    }
    if base == "container" {
        return Some(Meaning {
            order: 0,
            suffix: "",
            declarations: "width:100%".to_owned(),
        });
    }
    let (base, is_negative) = match base.strip_prefix('-') {
        Some(base) => (base, true),
        None => (base, false),
    };
    let mut meaning = family::meaning(base, is_negative)?;
    meaning.order += FIXED.len();
    Some(meaning)
}

/// Splits a class at the colons outside of brackets.
fn split(class: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, c) in class.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ':' if depth == 0 => {
                parts.push(&class[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&class[start..]);
    parts
}

/// Writes a class as an identifier of CSS (CSSOM §2.1).
fn escaped(class: &str) -> String {
    let mut out = String::with_capacity(class.len() + 8);
    for (at, c) in class.chars().enumerate() {
        let is_plain = c.is_ascii_alphanumeric() && !(at == 0 && c.is_ascii_digit());
        if is_plain || matches!(c, '-' | '_') && class.len() > 1 || !c.is_ascii() {
            out.push(c);
        } else if c.is_ascii_digit() {
            write!(out, "\\3{c} ").expect("a String takes every text");
        } else if c.is_ascii_graphic() {
            out.push('\\');
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(classes: &[&str]) -> String {
        let sheet = sheet(classes.iter().copied());
        let inner = sheet.strip_prefix("@layer utilities{");
        inner
            .and_then(|rest| rest.strip_suffix("}\n"))
            .unwrap_or_default()
            .to_owned()
    }

    #[test]
    fn classes_have_the_meaning_of_tailwind() {
        for (class, expected) in [
            ("flex", ".flex{display:flex}"),
            ("table", ".x-table{display:table}"),
            ("px-4", ".px-4{padding-left:1rem;padding-right:1rem}"),
            ("p-2.5", ".p-2\\.5{padding:0.625rem}"),
            ("-mt-2", ".-mt-2{margin-top:calc(0.5rem*-1)}"),
            ("w-1/2", ".w-1\\/2{width:calc(100%*1/2)}"),
            ("w-[12px]", ".w-\\[12px\\]{width:12px}"),
            ("max-w-2xl", ".max-w-2xl{max-width:42rem}"),
            ("text-gray-600", ".text-gray-600{color:#4b5563}"),
            ("text-sm", ".text-sm{font-size:.875rem;line-height:1.25rem}"),
            ("text-[10px]", ".text-\\[10px\\]{font-size:10px}"),
            ("text-[#fff]", ".text-\\[\\#fff\\]{color:#fff}"),
            (
                "bg-black/50",
                ".bg-black\\/50{background-color:rgb(0 0 0 / 50%)}",
            ),
            ("rounded", ".rounded{border-radius:.25rem}"),
            (
                "rounded-t-lg",
                ".rounded-t-lg{border-top-left-radius:.5rem;border-top-right-radius:.5rem}",
            ),
            ("border", ".border{border:1px solid var(--line)}"),
            (
                "border-b-2",
                ".border-b-2{border-bottom:2px solid var(--line)}",
            ),
            ("border-gray-200", ".border-gray-200{border-color:#e5e7eb}"),
            (
                "grid-cols-3",
                ".grid-cols-3{grid-template-columns:repeat(3,minmax(0,1fr))}",
            ),
            (
                "space-y-2",
                ".space-y-2>:not([hidden])~:not([hidden]){margin-top:0.5rem;margin-bottom:0}",
            ),
            (
                "hover:underline",
                ".hover\\:underline:hover{text-decoration-line:underline}",
            ),
            (
                "!no-underline",
                ".\\!no-underline{text-decoration-line:none!important}",
            ),
            (
                "md:grid-cols-2",
                "@media (min-width:768px){.md\\:grid-cols-2{grid-template-columns:repeat(2,minmax(0,1fr))}}",
            ),
            (
                "group-hover:block",
                ".group:hover .group-hover\\:block{display:block}",
            ),
            (
                "before:block",
                ".before\\:block::before{content:\"\";display:block}",
            ),
            ("[&>li]:mt-0", ".\\[\\&\\>li\\]\\:mt-0>li{margin-top:0px}"),
        ] {
            assert_eq!(of(&[class]), expected, "{class}");
        }
    }

    #[test]
    fn dark_classes_work_with_and_without_scripts() {
        assert_eq!(
            of(&["dark:flex"]),
            ".dark .dark\\:flex{display:flex}@media (prefers-color-scheme:dark)\
             {:root:not(.js) .dark\\:flex{display:flex}}"
        );
    }

    #[test]
    fn an_unknown_class_does_nothing() {
        for class in [
            "",
            ":",
            "flexx",
            "w-",
            "w-13",
            "w-7/3",
            "text-gray-601",
            "hoover:flex",
            "w-[]",
            "bg-[url(https://x.test)]",
            "bg-[#fff;color:red]",
            "w-[calc(1px]",
            "w-[12px}]",
            "[&_x]{}:flex",
            "[&{}]:flex",
            "[&</style>]:flex",
            "content-['x']",
            "prose",
            "-flex",
            "-p-4",
            "w-[expression(1)]",
            "text-[</style>]",
            "z-99999",
        ] {
            assert_eq!(of(&[class]), "", "{class}");
        }
    }

    #[test]
    fn narrower_classes_follow_wider_ones_whatever_their_order() {
        let all = [
            "md:p-2",
            "pt-1",
            "dark:p-3",
            "p-4",
            "px-2",
            "hover:p-1",
            "sm:p-3",
        ];
        let forwards = of(&all);
        let mut turned = all;
        turned.reverse();
        assert_eq!(forwards, of(&turned));
        let at = |text: &str| forwards.find(text).unwrap();
        let order = [
            ".p-4",
            ".px-2",
            ".pt-1",
            ".hover\\:p-1",
            ".sm\\:p-3",
            ".md\\:p-2",
            ".dark\\:p-3",
        ];
        assert!(order.map(at).is_sorted(), "{forwards}");
    }

    #[test]
    fn names_are_known_once() {
        for (at, (name, _)) in FIXED.iter().enumerate() {
            assert!(
                !FIXED[..at].iter().any(|(other, _)| other == name),
                "{name}"
            );
        }
    }
}
