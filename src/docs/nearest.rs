//! "Did you mean": the nearest of the names there are.

/// How long a name may be to be compared; the cost grows with the square.
const LENGTH_MAX: usize = 200;

/// Finds the name nearest to what was written, if one is near enough to be meant.
///
/// Names that differ in case or in separators only are nearest; otherwise a third of the
/// letters may differ.
#[must_use]
pub(super) fn nearest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    if written.len() > LENGTH_MAX {
        return None;
    }
    let plain = simplified(written);
    let allowed = (written.chars().count() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for name in names {
        if name == written || name.len() > LENGTH_MAX || name.is_empty() {
            continue;
        }
        // The distance is at least the difference in length.
        if name.len().abs_diff(written.len()) > allowed * 4 {
            continue;
        }
        let distance = if simplified(name) == plain {
            0
        } else {
            strsim::osa_distance(written, name)
        };
        if distance <= allowed && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

fn simplified(name: &str) -> String {
    name.chars()
        .filter(|c| c.is_alphanumeric() || *c == '/')
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let names = ["pages", "groups", "openapi"];
        assert_eq!(nearest("page", names), Some("pages"));
        assert_eq!(nearest("gruops", names), Some("groups"));
        assert_eq!(nearest("openApi", names), Some("openapi"));
        assert_eq!(nearest("colour", names), None);
    }

    #[test]
    fn case_and_separators_count_for_nothing() {
        assert_eq!(
            nearest("get_started/Quick-Start", ["get-started/quickstart"]),
            Some("get-started/quickstart")
        );
    }
}
