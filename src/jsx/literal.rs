//! Data that is written in JavaScript, read without running it.
//!
//! A module such as `module.exports = {…}` or `export default {…}` is read as a [`Value`], with the
//! places of its parts. Literals, constants of the module, spreads, templates and imported files
//! have values. Whatever only a program can compute is [`Data::Unresolved`] at its place.
//!
//! **Limits.** Values are nested at most [`DEPTH_MAX`] deep, and a module has at most
//! [`VALUES_MAX`] of them, those that constants repeat included. A value over a limit is
//! unresolved.
//!
//! Sources: ECMA-262 §13.2 (literals), §16.2 (modules); `CommonJS` (`module.exports`).

use std::collections::HashMap;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrayExpressionElement, ArrowFunctionBody, BindingPattern, CallExpression, Declaration,
    ExportDefaultDeclarationKind, Expression, ImportDeclarationSpecifier, ObjectPropertyKind,
    Statement, TemplateLiteral, VariableDeclaration,
};
use oxc_span::GetSpan as _;

use super::script::{self, Broken};
use crate::syntax::{Data, FileId, Member, Span, Value};

/// How deep values, and constants in constants, may be nested.
pub const DEPTH_MAX: usize = 100;
/// How many values one module may have.
pub const VALUES_MAX: usize = 200_000;

/// Returns what an imported file exports; `None` if it is not known.
pub type Load<'l> = dyn FnMut(&str) -> Option<Value> + 'l;

/// Reads what a module exports by default; `None` if it exports nothing so.
///
/// `name` is the name of the file: `.ts` is the only kind without JSX.
///
/// # Errors
///
/// [`Broken`] when the text is not a module.
pub fn module(
    file: FileId,
    name: &str,
    text: &str,
    load: &mut Load<'_>,
) -> Result<Option<Value>, Broken> {
    let allocator = Allocator::default();
    let program = script::module(&allocator, text, name)?;
    let mut reader = Reader {
        file,
        text,
        names: HashMap::new(),
        load,
        values: 0,
    };
    reader.declare(&program.body);
    Ok(reader.exported(&program.body))
}

/// The meaning of a name.
#[derive(Clone, Copy)]
enum Named<'p, 'a> {
    /// The value of a constant.
    Constant(&'p Expression<'a>),
    /// The statements of a function.
    Function(&'p [Statement<'a>]),
    /// An export of another file; `default` for the default one.
    Import { from: &'p str, name: &'p str },
}

struct Reader<'p, 'a, 'l, 'f> {
    file: FileId,
    text: &'p str,
    names: HashMap<&'p str, Named<'p, 'a>>,
    load: &'l mut Load<'f>,
    values: usize,
}

// === impl Reader ===

impl<'p, 'a> Reader<'p, 'a, '_, '_> {
    /// Notes the names that statements declare.
    fn declare(&mut self, statements: &'p [Statement<'a>]) {
        for statement in statements {
            match statement {
                Statement::ImportDeclaration(import) => {
                    let from = import.source.value.as_str();
                    for specifier in import.specifiers.iter().flatten() {
                        let (local, name) = match specifier {
                            ImportDeclarationSpecifier::ImportSpecifier(one) => {
                                let local = one.local.name.as_str();
                                (local, local)
                            }
                            ImportDeclarationSpecifier::ImportDefaultSpecifier(one) => {
                                (one.local.name.as_str(), "default")
                            }
                            ImportDeclarationSpecifier::ImportNamespaceSpecifier(one) => {
                                (one.local.name.as_str(), "default")
                            }
                        };
                        self.names.insert(local, Named::Import { from, name });
                    }
                }
                Statement::ExportDeclaration(export) => self.declaration(&export.declaration),
                other => {
                    if let Some(declaration) = other.as_declaration() {
                        self.declaration(declaration);
                    }
                }
            }
        }
    }

    fn declaration(&mut self, declaration: &'p Declaration<'a>) {
        match declaration {
            Declaration::VariableDeclaration(variables) => self.variables(variables),
            Declaration::FunctionDeclaration(function) => {
                if let (Some(id), Some(body)) = (&function.id, &function.body) {
                    let statements = Named::Function(&body.statements);
                    self.names.insert(id.name.as_str(), statements);
                }
            }
            _ => {}
        }
    }

    fn variables(&mut self, variables: &'p VariableDeclaration<'a>) {
        for one in &variables.declarations {
            if let (BindingPattern::BindingIdentifier(id), Some(value)) = (&one.id, &one.init) {
                self.names.insert(id.name.as_str(), Named::Constant(value));
            }
        }
    }

    /// Returns the value that statements export by default.
    fn exported(&mut self, statements: &'p [Statement<'a>]) -> Option<Value> {
        let mut exported = None;
        for statement in statements {
            match statement {
                Statement::ExportDefaultDeclaration(export) => {
                    exported = Some(match &export.declaration {
                        ExportDefaultDeclarationKind::FunctionDeclaration(function) => {
                            let span = self.span(function.span);
                            match &function.body {
                                Some(body) => self.returned(&body.statements, span, 0),
                                None => unresolved(span),
                            }
                        }
                        other => match other.as_expression() {
                            Some(expression) => self.value(expression, 0),
                            None => unresolved(self.span(export.span)),
                        },
                    });
                }
                Statement::ExpressionStatement(one) => {
                    let Expression::AssignmentExpression(assigned) = &one.expression else {
                        continue;
                    };
                    let left = assigned.left.span();
                    let left = &self.text[left.start as usize..left.end as usize];
                    if left == "module.exports" {
                        exported = Some(self.value(&assigned.right, 0));
                    } else if let Some(key) = left
                        .strip_prefix("module.exports.")
                        .or_else(|| left.strip_prefix("exports."))
                    {
                        let span = self.span(assigned.left.span());
                        let value = self.value(&assigned.right, 1);
                        let whole = exported.get_or_insert(Value {
                            span,
                            data: Data::Map(Vec::new()),
                        });
                        if let Data::Map(members) = &mut whole.data {
                            put(members, key.into(), span, value);
                        }
                    }
                }
                _ => {}
            }
        }
        exported
    }

    /// Returns what a function returns at its end.
    fn returned(&mut self, statements: &'p [Statement<'a>], span: Span, depth: usize) -> Value {
        self.declare(statements);
        let returned = statements
            .iter()
            .rev()
            .find_map(|statement| match statement {
                Statement::ReturnStatement(returned) => returned.argument.as_ref(),
                _ => None,
            });
        match returned {
            Some(returned) => self.value(returned, depth + 1),
            None => unresolved(span),
        }
    }

    fn span(&self, span: oxc_span::Span) -> Span {
        Span {
            file: self.file,
            start: span.start,
            end: span.end,
        }
    }

    fn value(&mut self, expression: &'p Expression<'a>, depth: usize) -> Value {
        let span = self.span(expression.span());
        self.values += 1;
        if depth > DEPTH_MAX || self.values > VALUES_MAX {
            return unresolved(span);
        }
        let below = depth + 1;
        let data = match expression {
            Expression::NullLiteral(_) => Data::Null,
            Expression::BooleanLiteral(flag) => Data::Flag(flag.value),
            Expression::NumericLiteral(number) => Data::Number(number.value.to_string().into()),
            Expression::StringLiteral(text) => Data::Text(text.value.as_str().into()),
            Expression::TemplateLiteral(template) => self.template(template, below),
            Expression::ParenthesizedExpression(inner) => {
                return self.value(&inner.expression, below);
            }
            Expression::TSAsExpression(inner) => return self.value(&inner.expression, below),
            Expression::TSSatisfiesExpression(inner) => {
                return self.value(&inner.expression, below);
            }
            Expression::TSNonNullExpression(inner) => return self.value(&inner.expression, below),
            Expression::AwaitExpression(inner) => return self.value(&inner.argument, below),
            Expression::ArrayExpression(array) => {
                let mut items = Vec::new();
                for element in &array.elements {
                    match element {
                        ArrayExpressionElement::SpreadElement(spread) => {
                            let value = self.value(&spread.argument, below);
                            match value.data {
                                Data::List(spread) => items.extend(spread),
                                _ => items.push(unresolved(self.span(spread.span))),
                            }
                        }
                        other => {
                            let one = other.as_expression();
                            items.extend(one.map(|one| self.value(one, below)));
                        }
                    }
                }
                Data::List(items)
            }
            Expression::ObjectExpression(object) => {
                let mut members = Vec::new();
                for property in &object.properties {
                    match property {
                        ObjectPropertyKind::SpreadProperty(spread) => {
                            let value = self.value(&spread.argument, below);
                            if let Data::Map(spread) = value.data {
                                for one in spread {
                                    put(&mut members, one.key, one.span, one.value);
                                }
                            }
                        }
                        ObjectPropertyKind::ObjectProperty(property) => {
                            let at = self.span(property.key.span());
                            let Some(key) = property.key.static_name() else {
                                continue;
                            };
                            let value = match property.method {
                                true => unresolved(self.span(property.span)),
                                false => self.value(&property.value, below),
                            };
                            put(&mut members, key.as_ref().into(), at, value);
                        }
                    }
                }
                Data::Map(members)
            }
            Expression::Identifier(name) => return self.named(name.name.as_str(), span, below),
            Expression::StaticMemberExpression(member) => {
                let object = self.value(&member.object, below);
                match object.get(member.property.name.as_str()) {
                    Some(value) => return value.clone(),
                    None => Data::Unresolved,
                }
            }
            Expression::LogicalExpression(either) => {
                // `process.env.NAME || "default"`: the environment is not known.
                let left = self.value(&either.left, below);
                let is_and = either.operator.is_and();
                match left.data {
                    Data::Unresolved | Data::Null | Data::Flag(false) if !is_and => {
                        return self.value(&either.right, below);
                    }
                    _ if is_and => Data::Unresolved,
                    data => data,
                }
            }
            Expression::BinaryExpression(sum) if sum.operator.as_str() == "+" => {
                let (left, right) = (self.value(&sum.left, below), self.value(&sum.right, below));
                match (left.text(), right.text()) {
                    (Some(left), Some(right)) => Data::Text(format!("{left}{right}").into()),
                    _ => Data::Unresolved,
                }
            }
            Expression::CallExpression(call) => self.call(call, below),
            // A configuration may be the result of a function.
            Expression::ArrowFunctionExpression(arrow) if depth == 0 => match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => {
                    return self.returned(&body.statements, span, depth);
                }
                other => match other.as_expression() {
                    Some(expression) => return self.value(expression, below),
                    None => Data::Unresolved,
                },
            },
            Expression::FunctionExpression(function) if depth == 0 => {
                if let Some(body) = &function.body {
                    return self.returned(&body.statements, span, depth);
                }
                Data::Unresolved
            }
            _ => Data::Unresolved,
        };
        Value { span, data }
    }

    fn named(&mut self, name: &str, span: Span, depth: usize) -> Value {
        match self.names.get(name).copied() {
            Some(Named::Constant(value)) => self.value(value, depth),
            // Only the export of the module is a function whose result counts.
            Some(Named::Function(statements)) if depth == 1 => {
                self.returned(statements, span, depth)
            }
            Some(Named::Import { from, name }) => {
                let exported = self.imported(from);
                let value = match name {
                    "default" => exported,
                    _ => exported.and_then(|exported| exported.get(name).cloned()),
                };
                value.unwrap_or(unresolved(span))
            }
            _ if name == "__dirname" => Value {
                span,
                data: Data::Text(".".into()),
            },
            _ if name == "undefined" => Value {
                span,
                data: Data::Null,
            },
            _ => unresolved(span),
        }
    }

    /// Returns what a file exports; its values count as those of this module.
    fn imported(&mut self, from: &str) -> Option<Value> {
        let exported = (self.load)(from)?;
        self.values += exported.count();
        (self.values <= VALUES_MAX).then_some(exported)
    }

    fn template(&mut self, template: &'p TemplateLiteral<'a>, depth: usize) -> Data {
        let mut text = String::new();
        for (at, quasi) in template.quasis.iter().enumerate() {
            let Some(cooked) = &quasi.value.cooked else {
                return Data::Unresolved;
            };
            text.push_str(cooked.as_str());
            if let Some(expression) = template.expressions.get(at) {
                let value = self.value(expression, depth);
                let Some(scalar) = value.scalar() else {
                    return Data::Unresolved;
                };
                text.push_str(scalar);
            }
        }
        Data::Text(text.into())
    }

    /// `require("./file")`, `require.resolve("./file")`, `path.join(__dirname, "directory")`.
    fn call(&mut self, call: &'p CallExpression<'a>, depth: usize) -> Data {
        let callee = call.callee.span();
        let callee = &self.text[callee.start as usize..callee.end as usize];
        let mut texts = Vec::new();
        for argument in &call.arguments {
            let value = argument
                .as_expression()
                .map(|argument| self.value(argument, depth));
            match value.as_ref().and_then(Value::text) {
                Some(text) => texts.push(text.to_owned()),
                None => return Data::Unresolved,
            }
        }
        match (callee, texts.as_slice()) {
            ("require", [from]) => self
                .imported(from)
                .map_or(Data::Unresolved, |exported| exported.data),
            ("require.resolve", [from]) => Data::Text(from.as_str().into()),
            ("path.join" | "path.resolve" | "join" | "resolve", [_, ..]) => {
                Data::Text(texts.join("/").into())
            }
            _ => Data::Unresolved,
        }
    }
}

fn unresolved(span: Span) -> Value {
    Value {
        span,
        data: Data::Unresolved,
    }
}

/// Sets a key; the last one of a name counts.
fn put(members: &mut Vec<Member>, key: Box<str>, span: Span, value: Value) {
    match members.iter_mut().find(|member| member.key == key) {
        Some(member) => (member.span, member.value) = (span, value),
        None => members.push(Member { key, span, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Value {
        let mut load = |from: &str| {
            (from == "./other").then(|| Value {
                span: Span::default(),
                data: Data::Text("imported".into()),
            })
        };
        let value = module(FileId::default(), "a.ts", text, &mut load);
        value.unwrap().unwrap()
    }

    fn shown(value: &Value) -> String {
        match &value.data {
            Data::Null => "null".to_owned(),
            Data::Unresolved => "?".to_owned(),
            Data::List(items) => {
                let items: Vec<_> = items.iter().map(shown).collect();
                format!("[{}]", items.join(" "))
            }
            Data::Map(members) => {
                let members = members.iter();
                let members: Vec<_> = members
                    .map(|one| format!("{}:{}", one.key, shown(&one.value)))
                    .collect();
                format!("{{{}}}", members.join(" "))
            }
            _ => value.scalar().unwrap().to_owned(),
        }
    }

    #[test]
    fn data_is_read_and_programs_are_not_run() {
        let cases = [
            (
                "export default {a: 1, 'b-c': [true, null]};",
                "{a:1 b-c:[true null]}",
            ),
            ("const x: X = {a: 'b'}; export default x;", "{a:b}"),
            ("export default {a: 1} satisfies Config;", "{a:1}"),
            (
                "module.exports = {a: `x${'y'}`, b: 'c' + 'd'};",
                "{a:xy b:cd}",
            ),
            (
                "const l = ['a']; module.exports = {l: [...l, 'b', ...m()]};",
                "{l:[a b ?]}",
            ),
            (
                "const o = {a: 1, b: 2}; module.exports = {...o, b: 3};",
                "{a:1 b:3}",
            ),
            (
                "export default {a: f(), b() {}, c: () => 1};",
                "{a:? b:? c:?}",
            ),
            (
                "import o from './other'; export default {a: o};",
                "{a:imported}",
            ),
            (
                "module.exports = {a: require('./other'), b: require('./no')};",
                "{a:imported b:?}",
            ),
            (
                "module.exports = async () => { const t = 'x'; return {t}; };",
                "{t:x}",
            ),
            (
                "export default async function f() { return {a: 1}; }",
                "{a:1}",
            ),
            (
                "function f() { return {a: 1}; } module.exports = f;",
                "{a:1}",
            ),
            (
                "export default {a: process.env.A || '/', b: p.c ?? 'd'};",
                "{a:/ b:d}",
            ),
            ("exports.a = 1; module.exports.b = [2];", "{a:1 b:[2]}"),
            (
                "module.exports = {p: path.resolve(__dirname, 'docs')};",
                "{p:./docs}",
            ),
        ];
        for (text, value) in cases {
            assert_eq!(shown(&read(text)), value, "{text}");
        }
    }

    #[test]
    fn names_that_use_each_other_have_limits() {
        assert!(shown(&read("const a = [a]; export default a;")).contains('?'));
        let mut text = String::from("const a0 = [1, 1];\n");
        for at in 1..40 {
            text.push_str(&format!("const a{at} = [a{0}, a{0}];\n", at - 1));
        }
        let value = read(&format!("{text} export default a39;"));
        assert!(value.count() <= 2 * VALUES_MAX);
    }

    #[test]
    fn places_are_those_of_the_file() {
        let text = "export default {\n  a: f(),\n};";
        let value = read(text);
        assert_eq!(&text[value.get("a").unwrap().span.range()], "f()");
    }
}
