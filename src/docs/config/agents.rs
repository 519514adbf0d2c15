//! What agents read around a page: `markdown`.

use crate::docs::schema::kind::{Lines, OrDefault};
use crate::docs::schema::{self, Field, object};
use crate::syntax::{Diagnostics, SpanDiagnostic, Value};

object! {
    /// What agents read in the Markdown of pages.
    pub struct ForAgents = "`markdown`" {
        /// Instructions for agents, below the Markdown of every page: a text, or a list of lines.
        "instructions" => instructions: OrDefault<Lines>,
    }
    also {
        Field::accepted(
            "schema",
            &["boolean"],
            "Whether the Markdown of an endpoint has its whole specification; no effect here, it has \
             the fields of the endpoint",
        ),
    }
}

/// How many bytes the instructions have at most, because every page has them.
const INSTRUCTIONS_BYTES_MAX: usize = 4_000;

// === impl ForAgents ===

impl ForAgents {
    /// Returns the lines of the instructions; none if they have more than
    /// [`INSTRUCTIONS_BYTES_MAX`] bytes.
    #[must_use]
    pub fn lines(&self) -> &[Box<str>] {
        match self.bytes() {
            0..=INSTRUCTIONS_BYTES_MAX => &self.instructions,
            _ => &[],
        }
    }

    /// Returns how many bytes the instructions have, with the ends of lines.
    fn bytes(&self) -> usize {
        self.instructions.iter().map(|line| line.len() + 1).sum()
    }

    /// Reports instructions that are too long.
    pub(super) fn check(&self, root: &Value, diagnostics: &mut Diagnostics) {
        let written = root.get("markdown").and_then(|of| of.get("instructions"));
        let bytes = self.bytes();
        if let Some(written) = written.filter(|_| bytes > INSTRUCTIONS_BYTES_MAX) {
            let message = format!(
                "`instructions` has {bytes} bytes, and {INSTRUCTIONS_BYTES_MAX} are allowed; it is \
                 left out"
            );
            let help = "every page has this text: write it on a page, and name that page here";
            let found = SpanDiagnostic::warning(schema::NO_EFFECT, written.span, message);
            diagnostics.push(found.help(help));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::docs::config::Config;
    use crate::syntax::{Diagnostics, json};

    fn read(instructions: &str) -> (Vec<Box<str>>, usize) {
        let text = format!(
            r#"{{"name": "A", "navigation": {{}}, "markdown": {{"instructions": {instructions}}}}}"#
        );
        let mut diagnostics = Diagnostics::default();
        let file = diagnostics.files.add("docs.json", text.into());
        let root = json::read(file, &mut diagnostics).unwrap();
        let config = Config::of(&root, &mut diagnostics);
        (config.markdown.lines().to_vec(), diagnostics.finish().len())
    }

    #[test]
    fn instructions_are_a_text_or_lines_and_too_long_ones_are_left_out() {
        let lines = |lines: &[&str]| lines.iter().map(|line| Box::from(*line)).collect();
        assert_eq!(
            read(r#""Use v2.\nNever v1.""#),
            (lines(&["Use v2.", "Never v1."]), 0)
        );
        assert_eq!(
            read(r#"["Use v2.", "Never v1."]"#),
            (lines(&["Use v2.", "Never v1."]), 0)
        );
        assert_eq!(read("7"), (Vec::new(), 0));
        let long = format!("\"{}\"", "a".repeat(4_000));
        assert_eq!(read(&long), (Vec::new(), 1));
    }
}
