//! The effect of `theme` in `docs.json`.
//!
//! There is one design for all themes. The name of the theme only sets the defaults of two
//! settings:
//!
//! | `theme` | `styling.eyebrows` | `interaction.drilldown` |
//! |---|---|---|
//! | `palm`, `almond`, `aspen`, `sequoia` | `breadcrumbs` | `false` |
//! | `willow`, `linden` | `section` | `true` |
//! | any other name, or none | `section` | `false` |
//!
//! Source: `internals/decisions#themes`.

use crate::docs::config::{Config, Eyebrows};

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
    fn a_setting_of_the_site_overrides_its_theme() {
        let config = |theme: &str, eyebrows, drilldown| Config {
            theme: Some(theme.into()),
            styling: Styling { eyebrows },
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
