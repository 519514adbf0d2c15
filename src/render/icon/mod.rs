//! Icons: the free icons of Font Awesome and all icons of Lucide, as inline SVG.
//!
//! A page holds only the icons that it uses, each as one path, and loads no font. `pack.mjs`
//! writes the packed table, which is unpacked when the first icon is looked up.
//!
//! A name is looked up in the requested style, then in the others: the paid styles of Font Awesome
//! fall back to the free ones.
//!
//! Sources: Font Awesome Free 7.3.1 (CC BY 4.0); Lucide 1.62.0 (ISC).

mod tabler;

use std::collections::{BTreeSet, HashMap};
use std::io::Read as _;
use std::sync::OnceLock;

use crate::diagnostic::{Diagnostic, closest};
use crate::markup::Html;

const PACKED: &[u8] = include_bytes!("icons.br");
/// The libraries of the table.
const BUNDLED: [&str; 2] = ["fontawesome", "lucide"];
/// The number of unknown names for which a similar name is searched.
const SUGGESTIONS_MAX: usize = 20;
/// The number of characters at the start that a suggestion must share with the name.
const SUGGESTED_BY_CHARS: usize = 1;

/// The set in which a name without a style is looked up first (`icons.library` of `docs.json`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Library {
    /// Font Awesome.
    #[default]
    FontAwesome,
    /// Lucide.
    Lucide,
    /// Tabler, which is not bundled; Lucide is the most similar set.
    Tabler,
}

/// An icon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icon {
    /// Its number in the table.
    number: usize,
    width: &'static str,
    height: &'static str,
    path: &'static str,
    /// Whether its path is stroked and not filled.
    is_outline: bool,
}

/// The icons that a document already contains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct EmittedIcons(BTreeSet<usize>);

#[derive(Debug)]
struct Table {
    /// By set and name.
    icons: HashMap<(&'static str, &'static str), Icon>,
}

fn table() -> &'static Table {
    static TEXT: OnceLock<String> = OnceLock::new();
    static TABLE: OnceLock<Table> = OnceLock::new();
    let text = TEXT.get_or_init(|| {
        let mut text = String::new();
        brotli::Decompressor::new(PACKED, 64 << 10)
            .read_to_string(&mut text)
            .expect("the table is part of this program");
        text
    });
    TABLE.get_or_init(|| Table::read(text))
}

/// Finds an icon by its name. `style` is the style that a page names; the name may contain
/// one, as in `fa-solid fa-house`, `lucide:house` or `brands/github`.
#[must_use]
pub fn find(name: &str, style: Option<&str>, library: Library) -> Option<Icon> {
    let (name, written) = spelled(name);
    let style = written.or(style).map(style_of);
    let icons = &table().icons;
    let drawn = |name: &str, style: Option<&'static str>| {
        let mut sets = style.into_iter().chain(library.sets());
        sets.find_map(|set| icons.get(&(set, name)).copied())
    };
    if library != Library::Tabler || written.is_some() {
        return drawn(&name, style);
    }
    let renamed = tabler::renamed(&name).unwrap_or(&name);
    drawn(renamed, style).or_else(|| match tabler::split_name(&name)? {
        (brand, Some(tabler::BRANDS)) => icons.get(&(tabler::BRANDS, brand)).copied(),
        (plain, set) => drawn(plain, set.or(style)),
    })
}

/// Returns the warning for a library whose icons are not bundled.
#[must_use]
pub fn unbundled(file: &str, library: &str) -> Option<Diagnostic> {
    if BUNDLED.contains(&library) {
        return None;
    }
    let message = format!(
        "the icons of `{library}` are not bundled; an icon is shown only if Font Awesome or Lucide has one of the same name"
    );
    let found = Diagnostic::warning("icon-library", file, message);
    Some(found.help("write `fontawesome` or `lucide`, and add other icons as files of the site"))
}

/// Returns the warning for an unknown icon, with a similar name.
///
/// The search for a similar name takes as long as rendering a page, so only the first warnings have
/// one. `reported_before` is the number of earlier warnings.
#[must_use]
pub fn unknown(file: &str, name: &str, reported_before: usize) -> Diagnostic {
    let found = Diagnostic::warning("icon", file, format!("there is no icon `{name}`"));
    let likely = (reported_before < SUGGESTIONS_MAX).then(|| suggestion(name));
    match likely.flatten() {
        Some(likely) => found.help(format!("did you mean `{likely}`?")),
        None => found,
    }
}

/// Returns whether an icon is the address of a file and not a name.
#[must_use]
pub fn is_address(icon: &str) -> bool {
    let has_extension = [
        ".svg", ".png", ".jpg", ".jpeg", ".webp", ".gif", ".avif", ".ico",
    ];
    icon.contains("://") || has_extension.iter().any(|end| icon.ends_with(end))
}

/// Returns the known name that is most similar.
fn suggestion(name: &str) -> Option<&'static str> {
    let (name, _) = spelled(name);
    let start = name.get(..SUGGESTED_BY_CHARS)?.to_owned();
    let mut names: Vec<_> = table().icons.keys().map(|(_, name)| *name).collect();
    names.retain(|known| known.starts_with(&start));
    names.sort_unstable();
    names.dedup();
    closest(&name, names)
}

/// Splits the name of an icon into bare name and style.
fn spelled(name: &str) -> (String, Option<&str>) {
    let mut style = None;
    let mut bare = name.trim();
    for word in name.split([' ', ':', '/']) {
        match word.strip_prefix("fa-").unwrap_or(word) {
            "" | "fa" | "fontawesome" => {}
            "solid" | "fas" | "regular" | "far" | "brands" | "brand" | "fab" | "lucide"
                if word.len() < name.trim().len() =>
            {
                style = Some(word);
            }
            last => bare = last,
        }
    }
    (bare.to_lowercase().replace('_', "-"), style)
}

fn style_of(style: &str) -> &'static str {
    match style.strip_prefix("fa-").unwrap_or(style) {
        "regular" | "far" | "light" | "thin" | "sharp-regular" => "regular",
        "brands" | "brand" | "fab" => "brands",
        "lucide" => "lucide",
        _ => "solid",
    }
}

// === impl Library ===

impl Library {
    /// Reads the name of a library; an unknown one is the default.
    #[must_use]
    pub fn parse(name: Option<&str>) -> Self {
        match name {
            Some("lucide") => Self::Lucide,
            Some("tabler") => Self::Tabler,
            _ => Self::FontAwesome,
        }
    }

    fn sets(self) -> [&'static str; 4] {
        match self {
            Self::FontAwesome => ["solid", "brands", "regular", "lucide"],
            Self::Lucide | Self::Tabler => ["lucide", "solid", "brands", "regular"],
        }
    }
}

// === impl Table ===

impl Table {
    fn read(text: &'static str) -> Self {
        let mut icons = HashMap::new();
        let mut others = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let mut cells = line.split('\t');
            let mut cell = || cells.next().unwrap_or_default();
            let (set, name, also) = (cell(), cell(), cell());
            let icon = Icon {
                number,
                width: cell(),
                height: cell(),
                path: cell(),
                is_outline: set == "lucide",
            };
            icons.insert((set, name), icon);
            others.extend(also.split_whitespace().map(|other| ((set, other), icon)));
        }
        // A former name never replaces a current one.
        for (other, icon) in others {
            icons.entry(other).or_insert(icon);
        }
        Self { icons }
    }
}

// === impl Html ===

impl Html {
    /// Draws an icon; `class` is one of the classes that a stylesheet was given.
    pub fn icon(&mut self, icon: Icon, class: Option<&str>) -> &mut Self {
        self.frame(icon, class).markup("<path");
        self.attribute("d", icon.path).markup("/></svg>")
    }

    /// Writes an icon in full the first time, and as a reference to that one later.
    ///
    /// Hundreds of entries of a sidebar may have the same icon.
    pub fn icon_once(&mut self, icon: Icon, emitted: &mut EmittedIcons) -> &mut Self {
        // No heading has a colon in its id.
        let id = format!("icon:{}", icon.number);
        match emitted.0.insert(icon.number) {
            true => self
                .frame(icon, None)
                .markup("<path")
                .attribute("id", &id)
                .attribute("d", icon.path),
            false => self
                .frame(icon, None)
                .markup("<use")
                .attribute("href", &format!("#{id}")),
        }
        .markup("/></svg>")
    }

    /// Begins an icon: its size, and how its shapes are painted.
    fn frame(&mut self, icon: Icon, class: Option<&str>) -> &mut Self {
        let view = format!("0 0 {} {}", icon.width, icon.height);
        let class = class.map_or_else(|| "icon".to_owned(), |class| format!("icon {class}"));
        self.markup("<svg").attribute("class", &class);
        self.attribute("viewBox", &view).markup(if icon.is_outline {
            " fill=none stroke=currentColor stroke-width=2 stroke-linecap=round stroke-linejoin=round"
        } else {
            " fill=currentColor"
        });
        self.markup(" aria-hidden=true>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str, style: Option<&str>) -> Option<Icon> {
        super::find(name, style, Library::default())
    }

    #[test]
    fn every_spelling_of_an_icon_finds_it() {
        let house = find("house", None).unwrap();
        for spelling in [
            "house",
            "fa-house",
            "fa-solid fa-house",
            "home",
            "House",
            "solid:house",
        ] {
            assert_eq!(find(spelling, None), Some(house), "{spelling}");
        }
        assert_ne!(find("bell", Some("regular")), find("bell", Some("solid")));
        assert_eq!(find("bell", Some("duotone")), find("bell", None));
        assert!(find("github", None).is_some());
        assert!(find("a-arrow-down", None).is_some_and(|icon| icon.is_outline));
        assert!(find("lucide:house", None).is_some_and(|icon| icon.is_outline));
    }

    #[test]
    fn a_name_is_looked_for_in_the_library_of_the_site_first() {
        let of = |library| super::find("bell", None, Library::parse(library)).unwrap();
        assert!(of(Some("lucide")).is_outline && !of(None).is_outline);
        assert_eq!(of(Some("nobodys")), of(Some("fontawesome")));
        let brand = super::find("github", None, Library::Lucide);
        assert!(brand.is_some_and(|icon| !icon.is_outline));
        let found_icon = super::find("bell", Some("solid"), Library::Lucide);
        assert!(found_icon.is_some_and(|icon| !icon.is_outline));
    }

    #[test]
    fn an_unknown_icon_is_reported_with_a_suggestion() {
        assert_eq!(find("hosue", None), None);
        assert_eq!(suggestion("rockett"), Some("rocket"));
        assert_eq!(find("", None), None);
        assert_eq!(suggestion(""), None);
    }

    #[test]
    fn an_icon_has_one_path() {
        for icon in table().icons.values() {
            let harmless = |c: char| c.is_ascii_alphanumeric() || " .,-+".contains(c);
            assert!(icon.path.chars().all(harmless), "{icon:?}");
        }
        let mut html = Html::default();
        html.icon(find("check", None).unwrap(), Some("x"));
        assert!(
            html.as_str()
                .starts_with("<svg class=\"icon x\" viewBox=\"0 0 "),
            "{html:?}"
        );
    }
}
