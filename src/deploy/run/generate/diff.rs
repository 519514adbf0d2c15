//! The difference between the old and the new skill, for the record of the update.

/// How many changed lines are shown.
const SHOWN_MAX: usize = 60;
/// The longest line that is shown, in characters.
const CHARACTERS_MAX: usize = 200;
/// The most lines of a text that are compared.
const LINES_MAX: usize = 2000;

/// Returns the changes from one text to another as lines: `-` for a removed line, `+` for a new
/// one. `base_url` is left out of links.
pub(super) fn lines(before: &str, after: &str, base_url: &str) -> Vec<String> {
    let read = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let lines = lines.map(|line| line.replace(base_url, ""));
        lines.take(LINES_MAX).collect()
    };
    let (before, after) = (read(before), read(after));
    let changes = changes(&before, &after);
    let count = |sign: char| changes.iter().filter(|(is, _)| *is == sign).count();
    let mut lines = vec![format!(
        "generate: {} lines are new, {} are gone",
        count('+'),
        count('-')
    )];
    let shown = changes.iter().take(SHOWN_MAX);
    lines.extend(shown.map(|(sign, line)| {
        let line: String = line.chars().take(CHARACTERS_MAX).collect();
        format!("generate: {sign} {line}")
    }));
    let more = changes.len().saturating_sub(SHOWN_MAX);
    if more > 0 {
        lines.push(format!("generate: and {more} more changed lines"));
    }
    lines
}

/// Finds the fewest changed lines (longest common subsequence).
fn changes<'t>(before: &'t [String], after: &'t [String]) -> Vec<(char, &'t str)> {
    let width = after.len() + 1;
    let mut common = vec![0_u32; (before.len() + 1) * width];
    for (row, old) in before.iter().enumerate().rev() {
        for (column, new) in after.iter().enumerate().rev() {
            let at = row * width + column;
            common[at] = match old == new {
                true => common[at + width + 1] + 1,
                false => common[at + width].max(common[at + 1]),
            };
        }
    }
    let mut changes = Vec::new();
    let (mut row, mut column) = (0, 0);
    while row < before.len() || column < after.len() {
        let (old, new) = (before.get(row), after.get(column));
        match (old, new) {
            (Some(old), Some(new)) if old == new => {
                row += 1;
                column += 1;
            }
            (Some(old), new) => {
                let at = row * width + column;
                if new.is_none() || common[at + width] >= common[at + 1] {
                    changes.push(('-', &**old));
                    row += 1;
                } else {
                    changes.push(('+', &*after[column]));
                    column += 1;
                }
            }
            (None, Some(new)) => {
                changes.push(('+', &**new));
                column += 1;
            }
            (None, None) => break,
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn changed_lines_are_shown_and_equal_ones_are_not() {
        let before = "# A\n\none\ntwo\nthree\n";
        let after = "# A\n\ntwo\nfour [x](https://base.test/x)\nthree\n";
        assert_eq!(
            lines(before, after, "https://base.test"),
            [
                "generate: 1 lines are new, 1 are gone",
                "generate: - one",
                "generate: + four [x](/x)",
            ]
        );
        assert_eq!(lines("a\n", "a\n\n", "x").len(), 1);
        let long: String = (0..100).map(|line| format!("{line}\n")).collect();
        assert_eq!(lines("", &long, "x").len(), 62);
    }
}
