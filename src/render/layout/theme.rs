//! The effect of `theme` in `docs.json`.
//!
//! There are three layouts, which share all parts and all colours. The name of the theme selects
//! one, gives it a character, and sets the defaults of two settings:
//!
//! | `theme` | layout | character | `styling.eyebrows` | `interaction.drilldown` |
//! |---|---|---|---|---|
//! | `mint`, any other name, or none | bar | | `section` | `false` |
//! | `palm` | bar | small corners | `breadcrumbs` | `false` |
//! | `maple` | panel | | `section` | `false` |
//! | `aspen` | panel | small corners | `breadcrumbs` | `false` |
//! | `willow` | panel | no fill behind the sidebar | `section` | `true` |
//! | `sequoia` | panel | light headings, large titles | `breadcrumbs` | `false` |
//! | `almond` | card | | `breadcrumbs` | `false` |
//! | `linden` | card | headings in the font of code, square corners | `section` | `true` |
//! | `luma` | card | round corners | `section` | `false` |
//!
//! * **bar**: a header across the page with a line below it.
//! * **panel**: the sidebar is a filled panel from the edge of the window to the article.
//! * **card**: the article is a card on a filled page.
//!
//! Source: `internals/decisions#themes`.

use crate::docs::config::{Codeblocks, Config, Eyebrows};

const PANEL: &str = include_str!("styles/panel.css");
const CARD: &str = include_str!("styles/card.css");

/// Returns the styles of a site's theme: its layout, then its character.
pub(super) fn styles(config: &Config) -> String {
    let theme = config.theme.as_deref().unwrap_or_default();
    let layout = match theme {
        "maple" | "aspen" | "willow" | "sequoia" => PANEL,
        "almond" | "linden" | "luma" => CARD,
        _ => "",
    };
    let character = match theme {
        "palm" | "aspen" => ":root { --radius: .35rem; }\n",
        "willow" => ":root { --panel: var(--background); }\n",
        "sequoia" => ":root { --heading-weight: 500; }\nh1 { letter-spacing: -.03em; }\n",
        "linden" => ":root { --radius: .15rem; --heading: var(--mono); --heading-weight: 500; }\n",
        "luma" => ":root { --radius: 1rem; }\n",
        _ => "",
    };
    let codeblocks = match config.styling.codeblocks {
        Some(Codeblocks::Dark) => ".code, .codes { color-scheme: dark; }\n",
        Some(Codeblocks::System) | None => "",
    };
    [layout, character, codeblocks].concat()
}

/// Returns the kind of text above the title of a page.
pub(super) fn eyebrows(config: &Config) -> Eyebrows {
    config
        .styling
        .eyebrows
        .unwrap_or(match config.theme.as_deref() {
            Some("palm" | "almond" | "aspen" | "sequoia") => Eyebrows::Breadcrumbs,
            _ => Eyebrows::Section,
        })
}

/// Returns whether the title of a group without a root opens the group's first page.
pub(super) fn drilldown(config: &Config) -> bool {
    let theme = config.theme.as_deref();
    let by_theme = || matches!(theme, Some("willow" | "linden"));
    config.interaction.drilldown.unwrap_or_else(by_theme)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::config::{Interaction, Styling};

    #[test]
    fn each_name_selects_a_layout() {
        let of = |theme: &str| {
            styles(&Config {
                theme: Some(theme.into()),
                ..Config::default()
            })
        };
        assert_eq!(of("mint"), "");
        assert_eq!(of("unknown"), "");
        for theme in ["maple", "aspen", "willow", "sequoia"] {
            assert!(of(theme).starts_with(PANEL), "{theme}");
        }
        for theme in ["almond", "linden", "luma"] {
            assert!(of(theme).starts_with(CARD), "{theme}");
        }
        assert!(of("linden").contains("--heading: var(--mono)"));
    }

    #[test]
    fn a_setting_of_the_site_overrides_its_theme() {
        let config = |theme: &str, eyebrows, drilldown| Config {
            theme: Some(theme.into()),
            styling: Styling {
                eyebrows,
                ..Styling::default()
            },
            interaction: Interaction { drilldown },
            ..Config::default()
        };
        assert_eq!(
            eyebrows(&config("aspen", None, None)),
            Eyebrows::Breadcrumbs
        );
        assert_eq!(eyebrows(&config("plain", None, None)), Eyebrows::Section);
        let own = config("aspen", Some(Eyebrows::Section), None);
        assert_eq!(eyebrows(&own), Eyebrows::Section);
        assert!(drilldown(&config("willow", None, None)));
        assert!(!drilldown(&config("mint", None, None)));
        assert!(!drilldown(&config("willow", None, Some(false))));
    }
}
