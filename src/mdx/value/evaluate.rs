//! Evaluates parsed expressions without running them.
//!
//! The evaluator knows literals (texts, numbers, truth values, lists, objects, templates), names of
//! exports and props that have such a value, their members, and choices between them:
//! `{props.title}` or `{wide ? "2" : "1"}`. A page whose expressions are all of these kinds starts
//! no engine. JSX, arithmetic, calls and functions are [`Unsupported`]: the engine evaluates them.
//!
//! A number is stored as its text, so expressions that must distinguish a number from a text are
//! unsupported too.
//!
//! **Invariant:** each copy of a value, and each text that grows, is subtracted from the
//! page's expansion limit, so that values which refer to each other cannot grow without bound.
//!
//! Sources: ECMA-262 §7.1.2 (truth), §7.2.14 (equality), §13.2 to §13.14 (expressions).

use std::borrow::Cow;
use std::collections::HashSet;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrayExpressionElement, BinaryOperator, ChainElement, Expression, LogicalOperator,
    ObjectPropertyKind, PropertyKey, TemplateLiteral, UnaryOperator,
};

use super::Value;
use crate::jsx::script::{self, Broken};
use crate::mdx::Reader;
use crate::mdx::scope::Scope;

/// How deep an expression may be nested that is evaluated.
const DEPTH_MAX: usize = 24;

/// The expression would have to be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::mdx) struct Unsupported;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::mdx) enum NoValue {
    /// It would have to be run.
    Unsupported,
    /// It is not an expression.
    Broken(Broken),
}

/// A source whose expressions are evaluated.
#[derive(Clone, Copy, Debug)]
pub(in crate::mdx) struct Code<'s> {
    /// The text that was parsed.
    pub source: &'s str,
    /// The byte of the cleaned text of its file at which it starts.
    pub at: usize,
    /// The names that it can use.
    pub scope: Scope,
    /// How deep the element is nested that contains it.
    pub depth: usize,
}

// === impl Reader ===

impl Reader<'_> {
    /// Parses and evaluates an expression; reports an expression that cannot be parsed.
    pub(in crate::mdx) fn evaluate(&mut self, code: Code<'_>) -> Result<Value, NoValue> {
        let allocator = Allocator::default();
        let parsed = match self.charge_script(code.source) {
            true => script::expression(&allocator, code.source).map_err(NoValue::Broken),
            false => Err(NoValue::Unsupported),
        };
        let found = parsed.and_then(|parsed| {
            let value = self.value_of(code, &parsed);
            value.map_err(|Unsupported| NoValue::Unsupported)
        });
        if let Err(NoValue::Broken(broken)) = &found {
            self.report_broken(broken, code.at);
        }
        found
    }

    /// Evaluates an expression of a source that was parsed.
    pub(in crate::mdx) fn value_of(
        &mut self,
        code: Code<'_>,
        expression: &Expression<'_>,
    ) -> Result<Value, Unsupported> {
        let mut evaluator = Evaluator { reader: self, code };
        evaluator.value(expression, 0)
    }

    pub(in crate::mdx) fn report_broken(&mut self, broken: &Broken, at: usize) {
        let message = format!("JavaScript cannot be read here: {}", broken.message);
        self.warn("mdx-syntax", self.line(at + broken.at), message);
    }
}

struct Evaluator<'e, 'l> {
    reader: &'e mut Reader<'l>,
    code: Code<'e>,
}

// === impl Evaluator ===

impl Evaluator<'_, '_> {
    fn value(&mut self, expression: &Expression<'_>, depth: usize) -> Result<Value, Unsupported> {
        if depth > DEPTH_MAX || self.reader.rejected.is_some() {
            return Err(Unsupported);
        }
        match bare(expression) {
            Expression::StringLiteral(text) => Ok(Value::Text(text.value.as_str().to_owned())),
            Expression::NumericLiteral(number) => Ok(Value::Text(shown(number.value)?)),
            Expression::BooleanLiteral(truth) => Ok(Value::Boolean(truth.value)),
            Expression::NullLiteral(_) => Ok(Value::Null),
            Expression::TemplateLiteral(template) => self.template(template, depth),
            Expression::ArrayExpression(array) => {
                let mut items = Vec::with_capacity(array.elements.len());
                for element in &array.elements {
                    match element {
                        ArrayExpressionElement::Elision(_) => items.push(Value::Null),
                        ArrayExpressionElement::SpreadElement(spread) => {
                            match self.value(&spread.argument, depth + 1)? {
                                Value::List(more) => items.extend(more),
                                _ => return Err(Unsupported),
                            }
                        }
                        element => {
                            let element = element.as_expression().ok_or(Unsupported)?;
                            items.push(self.value(element, depth + 1)?);
                        }
                    }
                }
                Ok(Value::List(items))
            }
            Expression::ObjectExpression(object) => self.object(&object.properties, depth),
            Expression::ConditionalExpression(choice) => {
                let branch = match self.is_true(&choice.test, depth + 1)? {
                    true => &choice.consequent,
                    false => &choice.alternate,
                };
                self.value(branch, depth + 1)
            }
            Expression::UnaryExpression(unary) => match (unary.operator, bare(&unary.argument)) {
                (UnaryOperator::LogicalNot, argument) => {
                    Ok(Value::Boolean(!self.is_true(argument, depth + 1)?))
                }
                (UnaryOperator::UnaryNegation, Expression::NumericLiteral(number)) => {
                    Ok(Value::Text(shown(-number.value)?))
                }
                _ => Err(Unsupported),
            },
            logical @ Expression::LogicalExpression(_) => self.logical(logical, depth),
            binary @ Expression::BinaryExpression(_) => self.binary(binary, depth),
            path if is_path(path) => {
                let left = self.reader.expandable;
                let (bytes, copy) = self.path(path, depth, &mut |value| {
                    let bytes = value.bytes();
                    Ok((bytes, (bytes <= left).then(|| value.clone())))
                })?;
                let is_paid = self.reader.charge(bytes);
                copy.filter(|_| is_paid).ok_or(Unsupported)
            }
            _ => Err(Unsupported),
        }
    }

    fn template(
        &mut self,
        template: &TemplateLiteral<'_>,
        depth: usize,
    ) -> Result<Value, Unsupported> {
        let mut out = String::new();
        let mut holes = template.expressions.iter();
        for text in &template.quasis {
            out.push_str(text.value.cooked.as_ref().ok_or(Unsupported)?);
            if let Some(hole) = holes.next() {
                match self.value(hole, depth + 1)? {
                    Value::Text(text) => out.push_str(&text),
                    Value::Boolean(truth) => out.push_str(if truth { "true" } else { "false" }),
                    _ => return Err(Unsupported),
                }
            }
        }
        Ok(Value::Text(out))
    }

    fn object(
        &mut self,
        properties: &[ObjectPropertyKind<'_>],
        depth: usize,
    ) -> Result<Value, Unsupported> {
        let mut entries: Vec<(Box<str>, Value)> = Vec::with_capacity(properties.len());
        for property in properties {
            match property {
                ObjectPropertyKind::SpreadProperty(spread) => {
                    match self.value(&spread.argument, depth + 1)? {
                        Value::Object(more) => entries.extend(more),
                        Value::Null => {}
                        _ => return Err(Unsupported),
                    }
                }
                ObjectPropertyKind::ObjectProperty(property) => {
                    let key: Box<str> = match &property.key {
                        PropertyKey::StaticIdentifier(name) => name.name.as_str().into(),
                        key => {
                            let key = key.as_expression().ok_or(Unsupported)?;
                            match self.value(key, depth + 1)? {
                                Value::Text(key) => key.into(),
                                _ => return Err(Unsupported),
                            }
                        }
                    };
                    entries.push((key, self.value(&property.value, depth + 1)?));
                }
            }
        }
        // If two values have the same key, the last one is used.
        let mut seen: HashSet<Box<str>> = HashSet::with_capacity(entries.len());
        let repeats = entries.iter().any(|(key, _)| !seen.insert(key.clone()));
        if repeats {
            seen.clear();
            entries.reverse();
            entries.retain(|(key, _)| seen.insert(key.clone()));
            entries.reverse();
        }
        Ok(Value::Object(entries))
    }

    /// Evaluates `a && b || c`; the parser nests the operands from the left.
    fn logical(&mut self, expression: &Expression<'_>, depth: usize) -> Result<Value, Unsupported> {
        let mut first = bare(expression);
        let mut others = Vec::new();
        while let Expression::LogicalExpression(logical) = first {
            others.push((logical.operator, &logical.right));
            first = bare(&logical.left);
        }
        let mut current = first;
        // The value of `current`. The value of a name is borrowed, not copied.
        let mut value = self.unless_path(current, depth)?;
        while let Some((operator, right)) = others.pop() {
            let mut goes_on = |value: &Value| {
                Ok(match operator {
                    LogicalOperator::And => truth(value)?,
                    LogicalOperator::Or => !truth(value)?,
                    LogicalOperator::Coalesce => *value == Value::Null,
                })
            };
            let goes_on = match &value {
                Some(value) => goes_on(value)?,
                None => self.path(current, depth + 1, &mut goes_on)?,
            };
            if goes_on {
                current = bare(right);
                value = self.unless_path(current, depth)?;
            }
        }
        match value {
            Some(value) => Ok(value),
            None => self.value(current, depth + 1),
        }
    }

    fn unless_path(
        &mut self,
        expression: &Expression<'_>,
        depth: usize,
    ) -> Result<Option<Value>, Unsupported> {
        match is_path(expression) {
            true => Ok(None),
            false => self.value(expression, depth + 1).map(Some),
        }
    }

    /// Evaluates `a + b + c` and comparisons; the parser nests the operands from the left.
    fn binary(&mut self, expression: &Expression<'_>, depth: usize) -> Result<Value, Unsupported> {
        let mut first = bare(expression);
        let mut others = Vec::new();
        while let Expression::BinaryExpression(binary) = first {
            others.push((binary.operator, &binary.right));
            first = bare(&binary.left);
        }
        let mut left = self.value(first, depth + 1)?;
        while let Some((operator, right)) = others.pop() {
            let right = self.value(right, depth + 1)?;
            left = match operator {
                BinaryOperator::StrictEquality => Value::Boolean(same(&left, &right)?),
                BinaryOperator::StrictInequality => Value::Boolean(!same(&left, &right)?),
                BinaryOperator::Addition => Value::Text(joined(left, &right)?),
                _ => return Err(Unsupported),
            };
        }
        Ok(left)
    }

    fn is_true(&mut self, expression: &Expression<'_>, depth: usize) -> Result<bool, Unsupported> {
        match bare(expression) {
            path if is_path(path) => self.path(path, depth, &mut truth),
            other => truth(&self.value(other, depth)?),
        }
    }

    /// Reads the value of `name`, `name.key`, `name["key"]` or `name?.key`.
    fn path<R>(
        &mut self,
        expression: &Expression<'_>,
        depth: usize,
        see: &mut dyn FnMut(&Value) -> Result<R, Unsupported>,
    ) -> Result<R, Unsupported> {
        let mut keys: Vec<Cow<'_, str>> = Vec::new();
        let mut rest = bare(expression);
        loop {
            let (object, key) = match rest {
                Expression::StaticMemberExpression(member) => {
                    (&member.object, Cow::Borrowed(member.property.name.as_str()))
                }
                Expression::ComputedMemberExpression(member) => {
                    match self.value(&member.expression, depth + 1)? {
                        Value::Text(key) => (&member.object, Cow::Owned(key)),
                        _ => return Err(Unsupported),
                    }
                }
                Expression::ChainExpression(chain) => match &chain.expression {
                    ChainElement::StaticMemberExpression(member) => {
                        (&member.object, Cow::Borrowed(member.property.name.as_str()))
                    }
                    ChainElement::ComputedMemberExpression(member) => {
                        match self.value(&member.expression, depth + 1)? {
                            Value::Text(key) => (&member.object, Cow::Owned(key)),
                            _ => return Err(Unsupported),
                        }
                    }
                    _ => return Err(Unsupported),
                },
                _ => break,
            };
            keys.push(key);
            rest = bare(object);
        }
        let owned;
        let mut found = match rest {
            Expression::Identifier(name) => {
                let name = name.name.as_str();
                let known = self.reader.scopes.value(self.code.scope, name);
                known
                    .or((name == "undefined").then_some(&Value::Null))
                    .ok_or(Unsupported)?
            }
            other => {
                owned = self.value(other, depth + 1)?;
                &owned
            }
        };
        for key in keys.iter().rev() {
            found = found.member(key).ok_or(Unsupported)?;
        }
        see(found)
    }
}

/// Returns whether an expression is a name, or a member of something.
fn is_path(expression: &Expression<'_>) -> bool {
    matches!(
        expression,
        Expression::Identifier(_)
            | Expression::StaticMemberExpression(_)
            | Expression::ComputedMemberExpression(_)
            | Expression::ChainExpression(_)
    )
}

/// Removes parentheses and types, which do not change a value.
pub(in crate::mdx) fn bare<'b, 'a>(expression: &'b Expression<'a>) -> &'b Expression<'a> {
    let mut inner = expression;
    loop {
        inner = match inner {
            Expression::ParenthesizedExpression(around) => &around.expression,
            Expression::TSAsExpression(around) => &around.expression,
            Expression::TSSatisfiesExpression(around) => &around.expression,
            Expression::TSNonNullExpression(around) => &around.expression,
            other => return other,
        };
    }
}

/// Joins two texts. A number is stored as its text, so the sum of two numbers is not supported.
fn joined(left: Value, right: &Value) -> Result<String, Unsupported> {
    let (Value::Text(mut left), Value::Text(right)) = (left, right) else {
        return Err(Unsupported);
    };
    if is_number(&left) && is_number(right) {
        return Err(Unsupported);
    }
    left.push_str(right);
    Ok(left)
}

/// Returns whether a value is true (ECMA-262 §7.1.2). `0` is not supported, because it could be a
/// text.
fn truth(value: &Value) -> Result<bool, Unsupported> {
    match value {
        Value::Null | Value::Boolean(false) => Ok(false),
        Value::Text(text) if text.is_empty() => Ok(false),
        Value::Text(text) if is_number(text) => Err(Unsupported),
        _ => Ok(true),
    }
}

/// Returns whether two texts or truth values are the same. Texts that could be numbers are not
/// supported.
fn same(left: &Value, right: &Value) -> Result<bool, Unsupported> {
    match (left, right) {
        (Value::Text(left), Value::Text(right)) if !is_number(left) && !is_number(right) => {
            Ok(left == right)
        }
        (Value::Boolean(left), Value::Boolean(right)) => Ok(left == right),
        _ => Err(Unsupported),
    }
}

/// Returns whether a text could be a number that is kept as its text.
pub(in crate::mdx) fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// Returns a number as JavaScript shows it. Rust writes numbers that are not very long in the same
/// way.
fn shown(number: f64) -> Result<String, Unsupported> {
    let is_short = number == 0.0 || (1e-6..1e21).contains(&number.abs());
    is_short.then(|| number.to_string()).ok_or(Unsupported)
}
