//! Diagnostics as annotations of a pull request: workflow commands on standard output.
//!
//! Sources: GitHub Actions, "Workflow commands": `::error file=…,line=…::message`; `%`,
//! CR and LF are escaped in messages, `:` and `,` in properties too.

use super::{Diagnostic, Location};

/// Writes diagnostics as one workflow command each.
#[must_use]
pub fn render(found: &[Diagnostic]) -> String {
    found.iter().map(command).collect()
}

fn command(diagnostic: &Diagnostic) -> String {
    let mut line = format!(
        "::{} file={},title={}",
        diagnostic.severity,
        property(&diagnostic.file),
        property(diagnostic.rule)
    );
    if let Some(Location {
        line: row,
        column,
        length,
    }) = diagnostic.location
    {
        let end = column + length.max(1) - 1;
        line.push_str(&format!(",line={row},col={column},endColumn={end}"));
    }
    line.push_str("::");
    line.push_str(&message(&diagnostic.message));
    if let Some(help) = &diagnostic.help {
        line.push_str("%0A");
        line.push_str(&message(help));
    }
    line.push('\n');
    line
}

fn message(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

fn property(text: &str) -> String {
    message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_end_a_command_are_escaped() {
        let found = Diagnostic::error("N2", "a,b:c.json", "50% of\nthe children").at(4, 9, 5);
        assert_eq!(
            render(&[found]),
            "::error file=a%2Cb%3Ac.json,title=N2,line=4,col=9,endColumn=13::50%25 of%0Athe children\n"
        );
    }
}
