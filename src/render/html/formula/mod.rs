//! Formulas: LaTeX as MathML.
//!
//! The converter writes text of formulas as it is, `<` included. So a formula reaches it
//! without `<` and `>`, and what it returns is looked through: a tag or attribute that is
//! not MathML's makes the formula be shown as its source.
//!
//! Sources: MathML Core §2 (elements and attributes).

use pulldown_latex::config::{DisplayMode, RenderConfig};
use pulldown_latex::{Parser, Storage, push_mathml};

use super::Writer;
use crate::diagnostic::Diagnostic;

/// How long a formula may be.
const BYTES_MAX: usize = 8 << 10;
/// Stand for `<` and `>` in text of a formula.
const LESS: char = '\u{e010}';
const GREATER: char = '\u{e011}';
/// Where a formula holds text and not symbols.
const TEXTS: [&str; 3] = ["\\text", "\\mbox", "\\hbox"];

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
            self.out.mathml(&mathml);
            return;
        }
        let message = format!("the formula `{tex}` cannot be read; its source is shown");
        let found = Diagnostic::warning("formula", self.file, message);
        self.diagnostics.push(found);
        self.out.markup("<code>").text(tex).markup("</code>");
    }
}

/// Converts a formula; `None` when it cannot be read.
fn convert(tex: &str, display: bool) -> Option<String> {
    if tex.len() > BYTES_MAX {
        return None;
    }
    let tex = if TEXTS.iter().any(|text| tex.contains(text)) {
        tex.replace('<', &LESS.to_string())
            .replace('>', &GREATER.to_string())
    } else {
        tex.replace('<', "\\lt ").replace('>', "\\gt ")
    };
    let storage = Storage::new();
    let events: Result<Vec<_>, _> = Parser::new(&tex, &storage).collect();
    let config = RenderConfig {
        display_mode: if display {
            DisplayMode::Block
        } else {
            DisplayMode::Inline
        },
        ..RenderConfig::default()
    };
    let mut out = String::new();
    let events = events.ok()?;
    let events = events.into_iter().map(Ok::<_, std::convert::Infallible>);
    push_mathml(&mut out, events, config).ok()?;
    let out = out
        .replace("><</mo>", ">&lt;</mo>")
        .replace(">></mo>", ">&gt;</mo>")
        .replace(LESS, "&lt;")
        .replace(GREATER, "&gt;");
    is_mathml(&out).then_some(out)
}

/// Returns whether a text has no tags and attributes but those of formulas.
fn is_mathml(text: &str) -> bool {
    let mut tags = text.split('<');
    tags.next() == Some("") && tags.all(is_tag)
}

/// Looks at a tag from behind its `<` to before the next.
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
    fn what_is_not_mathml_is_not_passed_on() {
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
