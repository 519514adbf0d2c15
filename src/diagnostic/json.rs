//! Diagnostics for programs: one JSON object that contains all diagnostics.
//!
//! `{"version": 1, "errors": 1, "warnings": 0, "diagnostics": [{severity, rule, file,
//! location: {line, column, length} or null, message, help, edit}]}`. New members may be
//! added; if the meaning of a member changes, `version` increases.

use serde::Serialize;

use super::Diagnostic;

#[derive(Serialize)]
struct Report<'d> {
    version: u32,
    errors: usize,
    warnings: usize,
    diagnostics: &'d [Diagnostic],
}

/// Writes diagnostics as one JSON object.
#[must_use]
pub fn render(found: &[Diagnostic]) -> String {
    let errors = found.iter().filter(|d| d.is_error()).count();
    let report = Report {
        version: 1,
        errors,
        warnings: found.len() - errors,
        diagnostics: found,
    };
    serde_json::to_string_pretty(&report).expect("texts and numbers are always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_warnings_are_counted() {
        let found = [
            Diagnostic::error("N1", "docs.json", "m").at(1, 2, 3),
            Diagnostic::warning("N3", "docs.json", "m"),
        ];
        let value: serde_json::Value = serde_json::from_str(&render(&found)).unwrap();
        assert_eq!(value["errors"], 1);
        assert_eq!(value["warnings"], 1);
        assert_eq!(value["diagnostics"][0]["location"]["column"], 2);
        assert_eq!(value["diagnostics"][1]["location"], serde_json::Value::Null);
    }
}
