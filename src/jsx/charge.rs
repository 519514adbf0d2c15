//! Marks the places where long texts do much work in one step of the interpreter.
//!
//! `a === b` reads two texts to their end, `+a` reads one, and `object[a]` hashes it. So each value
//! at such a place is passed to a function of the prelude that counts its length
//! ([`super::WORK_MAX`]), after converting an object that becomes a text. Literals and results that
//! are no texts are left as they are.

use std::cmp::Reverse;

use oxc_ast::AstKind;
use oxc_ast::ast::{Expression, PropertyKey};
use oxc_semantic::Semantic;
use oxc_span::{GetSpan as _, Span};

use super::RUNTIME;

/// Literals over this length are counted as other texts are.
const LITERAL_BYTES: u32 = 64;

/// What is done with a value: the name of a function of the prelude.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    /// It is compared.
    Compared,
    /// It is converted to a number.
    Number,
    /// It is the name of a property.
    Key,
}

/// Returns a source with the marks, or nothing if there is nothing to mark.
pub(super) fn charged(source: &str, semantic: &Semantic<'_>) -> Option<String> {
    let mut spans = Vec::new();
    // The value of a member of an enum has to stay a constant.
    let mut enums = Vec::new();
    for node in semantic.nodes().iter() {
        match node.kind() {
            AstKind::BinaryExpression(binary) => {
                let operator = binary.operator;
                let (left, right) = (&binary.left, &binary.right);
                if operator.is_equality() || operator.is_compare() {
                    // Comparing ends where the shorter text ends.
                    if is_text(left) && is_text(right) {
                        spans.push((left.span(), Use::Compared));
                    }
                } else if operator.is_in() {
                    spans.extend(is_text(left).then(|| (left.span(), Use::Key)));
                } else if operator.is_arithmetic() && operator.as_str() != "+"
                    || operator.is_bitwise()
                {
                    let texts = [left, right].into_iter().filter(|one| is_text(one));
                    spans.extend(texts.map(|one| (one.span(), Use::Number)));
                }
            }
            AstKind::UnaryExpression(unary) => {
                let converts = unary.operator.is_arithmetic() || unary.operator.is_bitwise();
                if converts && is_text(&unary.argument) {
                    spans.push((unary.argument.span(), Use::Number));
                }
            }
            AstKind::AssignmentExpression(assignment) => {
                let operator = assignment.operator.as_str();
                let converts = !matches!(operator, "=" | "+=" | "&&=" | "||=" | "??=");
                if converts && is_text(&assignment.right) {
                    spans.push((assignment.right.span(), Use::Number));
                }
            }
            AstKind::ComputedMemberExpression(member) if is_text(&member.expression) => {
                spans.push((member.expression.span(), Use::Key));
            }
            AstKind::SwitchStatement(switch) => {
                let tests = switch.cases.iter().filter_map(|case| case.test.as_ref());
                let tests = tests.filter(|test| is_text(test));
                spans.extend(tests.map(|test| (test.span(), Use::Compared)));
            }
            AstKind::ObjectProperty(property) if property.computed => {
                key(&property.key, &mut spans);
            }
            AstKind::BindingProperty(property) if property.computed => {
                key(&property.key, &mut spans);
            }
            AstKind::MethodDefinition(method) if method.computed => {
                key(&method.key, &mut spans);
            }
            AstKind::PropertyDefinition(property) if property.computed => {
                key(&property.key, &mut spans);
            }
            AstKind::TSEnumDeclaration(declaration) => enums.push(declaration.span),
            _ => {}
        }
    }
    spans.retain(|(span, _)| !enums.iter().any(|all: &Span| all.contains_inclusive(*span)));
    (!spans.is_empty()).then(|| marked(source, &spans))
}

fn key(key: &PropertyKey<'_>, spans: &mut Vec<(Span, Use)>) {
    spans.extend(
        key.as_expression()
            .filter(|key| is_text(key))
            .map(|key| (key.span(), Use::Key)),
    );
}

/// Returns whether a value may be a long text.
fn is_text(expression: &Expression<'_>) -> bool {
    match expression {
        Expression::StringLiteral(literal) => literal.span.size() > LITERAL_BYTES,
        Expression::ParenthesizedExpression(inner) => is_text(&inner.expression),
        Expression::BinaryExpression(binary) => binary.operator.as_str() == "+",
        Expression::Identifier(name) => name.name.as_str() != "undefined",
        Expression::NumericLiteral(_)
        | Expression::BooleanLiteral(_)
        | Expression::NullLiteral(_)
        | Expression::RegExpLiteral(_)
        | Expression::UnaryExpression(_)
        | Expression::UpdateExpression(_)
        | Expression::ArrowFunctionExpression(_)
        | Expression::FunctionExpression(_)
        | Expression::ClassExpression(_)
        | Expression::JSXElement(_)
        | Expression::JSXFragment(_) => false,
        _ => true,
    }
}

/// Writes the marks around the spans, which may contain each other.
fn marked(source: &str, spans: &[(Span, Use)]) -> String {
    // Where one span ends and another one starts, the end is written first. Of spans that start at the
    // same place, the longest is written first.
    let mut marks: Vec<(u32, bool, Reverse<u32>, Use)> = Vec::new();
    for (span, how) in spans {
        marks.push((span.start, true, Reverse(span.end), *how));
        marks.push((span.end, false, Reverse(0), *how));
    }
    marks.sort_unstable();
    let mut out = String::with_capacity(source.len() + 16 * spans.len());
    let mut at = 0;
    for (place, starts, _, how) in marks {
        let place = place as usize;
        out.push_str(&source[at..place]);
        at = place;
        // Two parentheses: a sequence is one value.
        match starts {
            true => {
                out.push_str(RUNTIME);
                out.push_str(match how {
                    Use::Compared => ".e((",
                    Use::Number => ".n((",
                    Use::Key => ".k((",
                });
            }
            false => out.push_str("))"),
        }
    }
    out.push_str(&source[at..]);
    out
}
