//! Formulas: converts LaTeX to MathML.
//!
//! A formula is first rewritten with the commands that the converter knows ([`tex`]). The converter
//! copies the text in a formula to its output, `<` included. So `<` and `>` are replaced first, and
//! the output is checked: if it has a tag or attribute that is not MathML, the source of the
//! formula is shown instead. A page has one warning for all of its formulas that cannot be read.
//!
//! Sources: MathML Core §2 (elements and attributes).

mod tex;

use pulldown_latex::config::{DisplayMode, RenderConfig};
use pulldown_latex::{Parser, Storage, push_mathml};

use super::Writer;
use crate::diagnostic::Diagnostic;
use crate::telemetry::panics;

/// The rule of the diagnostic for formulas that cannot be read.
const RULE: &str = "formula";
/// The help of the warning. A page has at most one.
const MORE: &str = "other formulas of this page cannot be read either";
/// How long a formula may be.
const BYTES_MAX: usize = 8 << 10;
/// The characters that replace `<` and `>` in the text of a formula.
const LESS: char = '\u{e010}';
const GREATER: char = '\u{e011}';

const ELEMENTS: [&str; 26] = [
    "math",
    "merror",
    "mfrac",
    "mi",
    "mmultiscripts",
    "mn",
    "mo",
    "mover",
    "mpadded",
    "mphantom",
    "mprescripts",
    "mroot",
    "mrow",
    "ms",
    "mspace",
    "msqrt",
    "mstyle",
    "msub",
    "msubsup",
    "msup",
    "mtable",
    "mtd",
    "mtext",
    "mtr",
    "munder",
    "munderover",
];
const ATTRIBUTES: [&str; 24] = [
    "accent",
    "class",
    "columnspan",
    "display",
    "displaystyle",
    "fence",
    "form",
    "height",
    "largeop",
    "linethickness",
    "lspace",
    "mathvariant",
    "maxsize",
    "minsize",
    "movablelimits",
    "rowspan",
    "rspace",
    "scriptlevel",
    "separator",
    "stretchy",
    "style",
    "symmetric",
    "voffset",
    "width",
];

// === impl Writer ===

impl Writer<'_> {
    pub(in crate::render) fn formula(&mut self, tex: &str, display: bool) {
        if let Some(mathml) = convert(tex, display) {
            self.out.escaped(&mathml);
            return;
        }
        let mut others = self.diagnostics.iter_mut();
        match others.find(|diagnostic| diagnostic.rule == RULE) {
            Some(first) => first.help = Some(MORE.into()),
            None => {
                let message = format!("the formula `{tex}` cannot be read; its source is shown");
                let diagnostic = Diagnostic::warning(RULE, self.file, message);
                self.diagnostics.push(diagnostic);
            }
        }
        self.out.markup("<code>").text(tex).markup("</code>");
    }
}

/// Converts a formula; `None` when it cannot be read.
fn convert(tex: &str, display: bool) -> Option<String> {
    if tex.len() > BYTES_MAX {
        return None;
    }
    let tex = tex::rewritten(tex)?;
    let tex = if tex.contains("\\text") {
        tex.replace('<', &LESS.to_string())
            .replace('>', &GREATER.to_string())
    } else {
        tex.replace('<', "\\lt ").replace('>', "\\gt ")
    };
    // LaTeX allows a new line outside of an environment, the converter does not.
    let lines = || {
        mathml(
            &format!("\\begin{{gathered}}{tex}\\end{{gathered}}"),
            display,
        )
    };
    let out = mathml(&tex, display).or_else(|| lines().filter(|_| tex.contains("\\\\")))?;
    let out = out
        .replace("><</mo>", ">&lt;</mo>")
        .replace(">></mo>", ">&gt;</mo>")
        .replace(LESS, "&lt;")
        .replace(GREATER, "&gt;");
    let out = tex::ESCAPED.iter().fold(out, |out, (character, stand_in)| {
        let character = match character {
            '&' => "&amp;".to_owned(),
            other => other.to_string(),
        };
        out.replace(*stand_in, &character)
    });
    is_mathml(&out).then_some(out)
}

/// Runs the converter.
fn mathml(tex: &str, display: bool) -> Option<String> {
    // The parser panics on a command whose name is a character of several bytes.
    let mut characters = tex.chars();
    while let Some(character) = characters.next() {
        if character == '\\' && characters.next().is_some_and(|name| !name.is_ascii()) {
            return None;
        }
    }
    let config = RenderConfig {
        display_mode: if display {
            DisplayMode::Block
        } else {
            DisplayMode::Inline
        },
        ..RenderConfig::default()
    };
    // Both panic on some formulas that LaTeX rejects too: `x^\\` has a new line as its exponent.
    panics::without_report(|| {
        let storage = Storage::new();
        let events: Result<Vec<_>, _> = Parser::new(tex, &storage).collect();
        let events = events.ok()?.into_iter();
        let mut out = String::new();
        let events = events.map(Ok::<_, std::convert::Infallible>);
        push_mathml(&mut out, events, config).ok()?;
        Some(out)
    })?
}

/// Returns whether all tags and attributes of a text are allowed in formulas.
fn is_mathml(text: &str) -> bool {
    let mut tags = text.split('<');
    tags.next() == Some("") && tags.all(is_tag)
}

/// Checks a tag, from the text after its `<` to the next `<`.
fn is_tag(tag: &str) -> bool {
    let Some((tag, _text)) = tag.split_once('>') else {
        return false;
    };
    let tag = tag.trim_start_matches('/').trim_end_matches('/').trim_end();
    let (name, mut attributes) = tag.split_once(' ').unwrap_or((tag, ""));
    while !attributes.trim_start().is_empty() {
        let Some((name, rest)) = attributes.trim_start().split_once("=\"") else {
            return false;
        };
        let Some((_value, rest)) = rest.split_once('"') else {
            return false;
        };
        if !ATTRIBUTES.contains(&name) {
            return false;
        }
        attributes = rest;
    }
    ELEMENTS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_are_formulas() {
        let formula = convert("a < b \\le c > d", false).unwrap();
        assert!(
            formula.contains(">&lt;</mo>") && formula.contains(">&gt;</mo>"),
            "{formula}"
        );
        let text = convert("\\text{a < b}", false).unwrap();
        assert!(text.contains("<mtext>a &lt; b</mtext>"), "{text}");
    }

    #[test]
    fn common_formulas_are_read() {
        for tex in [
            "\\frac{a}{b} + \\sqrt{x}",
            "\\sum_{i=0}^n x_i^2",
            "\\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}",
            "\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}",
            "\\left( \\int_0^1 f(x)\\,dx \\right)",
            "\\mathbb{R} \\to \\hat{y}",
        ] {
            assert!(convert(tex, true).is_some(), "{tex}");
        }
    }

    #[test]
    fn commands_that_the_converter_does_not_know_are_read() {
        for (tex, part) in [
            ("\\textbf{a b}", "<mtext>a b</mtext>"),
            (
                "\\text{50\\% of a\\_b \\& c}",
                "<mtext>50% of a_b &amp; c</mtext>",
            ),
            ("\\bm{x} + \\mathscr{A} + \\mathds{1}", "<mo"),
            ("\\boxed{x} \\tag{1}", "<mtext>1</mtext>"),
            ("\\sum_{\\substack{i \\\\ j}} \\label{sum}", "<mtable"),
            ("\\begin{eqnarray} a &=& b \\end{eqnarray}", "<mtable"),
            ("a \\\\ b", "<mtable"),
            ("\\argmax_x \\Large f(x) \\pod{3} \\mod 5", "argmax"),
        ] {
            let formula = convert(tex, true);
            let formula = formula.unwrap_or_else(|| panic!("{tex} is not read"));
            assert!(formula.contains(part), "{tex}: {formula}");
        }
    }

    #[test]
    fn a_command_that_is_not_ascii_is_shown_as_source() {
        for tex in ["\\é", "x \\\u{e000}", "\\\\é \\\u{2026}"] {
            assert_eq!(convert(tex, false), None, "{tex}");
        }
        // `\\\\` is a command of its own; any character may follow it.
        assert!(convert("é = x \\\\é", true).is_some());
    }

    #[test]
    fn a_formula_that_the_converter_panics_on_is_shown_as_source() {
        for tex in ["\\\\^\\", "x^\\\\", "x_\\\\ y"] {
            assert_eq!(convert(tex, true), None, "{tex}");
        }
        assert!(convert("x^2", true).is_some());
    }

    #[test]
    fn no_formula_overflows_the_stack() {
        let pieces = [
            "\\hat",
            "\\sqrt",
            "\\hat ",
            "{",
            "\\hat{",
            "x^{",
            "\\left(",
            "\\frac",
            "\\text{",
            "\\sqrt[",
            "\\begin{array}{l}",
            "^",
            "_{x}^",
        ];
        for piece in pieces {
            let _ = convert(&piece.repeat(BYTES_MAX / piece.len()), true);
            let closed = "}".repeat(900);
            let _ = convert(&format!("{}x{closed}", piece.repeat(900)), true);
        }
        assert!(convert("\\def\\a{\\a}\\a", true).is_none());
    }

    #[test]
    fn output_that_is_not_mathml_is_not_written() {
        for text in [
            "<math><script></math>",
            "<mi onclick=\"x\">x</mi>",
            "x",
            "<mi",
            "<mi x>",
        ] {
            assert!(!is_mathml(text), "{text}");
        }
    }
}
