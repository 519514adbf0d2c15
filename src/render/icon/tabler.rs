//! The names of Tabler's icons in the bundled sets.
//!
//! Tabler has thousands of icons and is not bundled. Its style is similar to Lucide's, and most of
//! its plain names are also names in one of the sets. Others have a spelling of their own
//! (`brand-github`, `star-filled`, `book-2`), and some frequent ones have another name here. An
//! icon that no bundled set has is a warning, like any unknown icon.

/// The set of brands: only a name with `brand-` is looked up there.
pub(super) const BRANDS: &str = "brands";
/// Names of Tabler with the name of the same icon in the sets. A few are also names in the
/// sets, of a different icon: Lucide's `bolt` is a screw, Tabler's a flash.
const OTHERS: [(&str, &str); 38] = [
    ("adjustments", "sliders-horizontal"),
    ("affiliate", "share-2"),
    ("api", "webhook"),
    ("arrows-exchange", "arrow-left-right"),
    ("bolt", "zap"),
    ("building-store", "store"),
    ("bulb", "lightbulb"),
    ("cash", "banknote"),
    ("chart-dots", "chart-scatter"),
    ("cpu-2", "cpu"),
    ("device-desktop", "monitor"),
    ("device-floppy", "save"),
    ("device-laptop", "laptop"),
    ("device-mobile", "smartphone"),
    ("dots", "ellipsis"),
    ("dots-vertical", "ellipsis-vertical"),
    ("help", "circle-question-mark"),
    ("hierarchy", "network"),
    ("history-toggle", "history"),
    ("login", "log-in"),
    ("logout", "log-out"),
    ("mood-smile", "smile"),
    ("photo", "image"),
    ("player-pause", "pause"),
    ("player-play", "play"),
    ("player-stop", "square"),
    ("plug-connected", "plug-zap"),
    ("prompt", "terminal"),
    ("robot-face", "bot"),
    ("schema", "workflow"),
    ("school", "graduation-cap"),
    ("selector", "chevrons-up-down"),
    ("stack", "layers"),
    ("stack-2", "layers"),
    ("tool", "wrench"),
    ("transform", "shapes"),
    ("world", "globe"),
    ("writing", "pen-line"),
];

/// Returns the bundled name of an icon that has another name in the bundled sets.
pub(super) fn renamed(name: &str) -> Option<&'static str> {
    let other = OTHERS.iter().find(|(tablers, _)| *tablers == name);
    other.map(|(_, other)| *other)
}

/// Removes a prefix or suffix that only Tabler uses from the name of an icon.
///
/// Returns the remaining name, and the set in which it is looked up first.
pub(super) fn split_name(name: &str) -> Option<(&str, Option<&'static str>)> {
    if let Some(brand) = name.strip_prefix("brand-") {
        return Some((brand, Some(BRANDS)));
    }
    if let Some(plain) = name.strip_suffix("-filled") {
        return Some((renamed(plain).unwrap_or(plain), Some("solid")));
    }
    // A number at the end is another drawing of the same icon.
    let (plain, number) = name.rsplit_once('-')?;
    let is_number = number.bytes().all(|b| b.is_ascii_digit());
    is_number.then(|| (renamed(plain).unwrap_or(plain), None))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::icon::{Library, find};

    #[test]
    fn a_tabler_name_finds_the_bundled_icon() {
        let lucide = |name: &str| find(name, None, Library::Lucide).unwrap();
        let tabler = |name: &str| find(name, None, Library::Tabler);
        for (name, same) in [
            ("rocket", "rocket"),
            ("book-2", "book"),
            ("player-play", "play"),
            ("brand-github", "brands/github"),
            ("star-filled", "solid/star"),
            ("bulb-filled", "solid/lightbulb"),
            ("school", "graduation-cap"),
            ("lucide:school", "school"),
        ] {
            assert_eq!(tabler(name), Some(lucide(same)), "{name}");
        }
        for nobodys in ["brand-rocket", "brand-", "-filled", "-2", "no-such-icon"] {
            assert_eq!(tabler(nobodys), None, "{nobodys}");
        }
    }

    #[test]
    fn every_renamed_icon_is_bundled_under_its_new_name() {
        for (name, other) in OTHERS {
            let drawn = find(other, None, Library::Lucide);
            assert!(drawn.is_some(), "{other}");
            assert_ne!(find(name, None, Library::Lucide), drawn, "{name}");
        }
    }
}
