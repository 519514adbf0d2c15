//! Marks the places that cost more than the steps of the interpreter show.
//!
//! The interpreter counts calls of functions and jumps back. So a page could do much work in one
//! step. These places call a function of the prelude:
//!
//! | code | what the function does |
//! |---|---|
//! | `a === b`, `+a`, `object[a]` | A text is read to its end, so its length counts. An object that becomes a text is converted first. Literals and results that are no texts are left as they are. |
//! | functions and loops with many parts | Their parts count each time they run. |
//! | `new F`, `class A extends B`, `{ __proto__: a }` | Looking up a property reads one prototype after the other, so their number has a limit ([`super::PROTOTYPES_MAX`]). |
//!
//! An object gets its prototype when it is made, and the prelude lets no page change it afterwards.
//! So the third row, with the checks of `Object.create` and `Reflect.construct` in the prelude, is
//! complete. A page must not reach an object before the check. `new F` is checked where the body of
//! `F` starts, and [`super::unavailable`] rejects the code that could run earlier.
//!
//! The code that is marked is plain JavaScript: without types, and with calls instead of JSX.

use std::cmp::Reverse;

use oxc_ast::AstKind;
use oxc_ast::ast::{
    ArrowFunctionBody, Class, ClassElement, Expression, Function, FunctionBody, PropertyKey,
    PropertyKind, Statement,
};
use oxc_semantic::{NodeId, Semantic};
use oxc_span::{GetSpan as _, Span};

use super::RUNTIME;

/// Literals over this length are counted as other texts are.
const LITERAL_BYTES: u32 = 64;
/// The parts of functions and loops that have more than this are counted.
const PARTS_MIN: u32 = 24;

/// What is done with a value: the name of a function of the prelude.
#[derive(Clone, Copy)]
enum Use {
    /// It is compared.
    Compared,
    /// It is converted to a number.
    Number,
    /// It is the name of a property.
    Key,
    /// It becomes a prototype.
    Prototype,
}

/// Text to add to the code. At the same place, ends come before statements, and statements before
/// starts; of spans that start together, the longest starts first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Insertion {
    place: u32,
    kind: Kind,
    end: Reverse<u32>,
    text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    End,
    Statement,
    Start,
}

/// The marks of one code.
struct Marks<'c, 'a> {
    code: &'c str,
    semantic: &'c Semantic<'a>,
    /// How many parts run when a node runs, by the number of the node.
    parts: Vec<u32>,
    insertions: Vec<Insertion>,
}

/// Returns code with the marks, or nothing if there is nothing to mark.
pub(super) fn charged(code: &str, semantic: &Semantic<'_>) -> Option<String> {
    let mut marks = Marks {
        code,
        semantic,
        parts: parts(semantic),
        insertions: Vec::new(),
    };
    for node in semantic.nodes().iter() {
        marks.texts(node.kind());
        marks.parts_and_prototypes(node.id(), node.kind());
    }
    (!marks.insertions.is_empty()).then(|| marks.written())
}

/// Counts the parts that run when a node runs. What runs at another time, such as a function, is one
/// part of the node that contains it.
fn parts(semantic: &Semantic<'_>) -> Vec<u32> {
    let nodes = semantic.nodes();
    let mut parts = vec![1_u32; nodes.len()];
    // A node comes before the nodes that it contains.
    for at in (0..nodes.len()).rev() {
        let id = NodeId::new(at);
        let runs_later = match nodes.kind(id) {
            AstKind::Function(_) | AstKind::ArrowFunctionExpression(_) => true,
            AstKind::PropertyDefinition(field) => !field.r#static,
            _ => false,
        };
        let parent = nodes.parent_id(id).index();
        if parent != at {
            parts[parent] += if runs_later { 1 } else { parts[at] };
        }
    }
    parts
}

// === impl Marks ===

impl Marks<'_, '_> {
    /// Marks the values whose length is counted.
    fn texts(&mut self, kind: AstKind<'_>) {
        match kind {
            AstKind::BinaryExpression(binary) => {
                let operator = binary.operator;
                let (left, right) = (&binary.left, &binary.right);
                if operator.is_equality() || operator.is_compare() {
                    // Comparing ends where the shorter text ends.
                    if is_text(left) && is_text(right) {
                        self.value(left.span(), Use::Compared);
                    }
                } else if operator.is_in() {
                    self.text(left, Use::Key);
                } else if operator.is_arithmetic() && operator.as_str() != "+"
                    || operator.is_bitwise()
                {
                    self.text(left, Use::Number);
                    self.text(right, Use::Number);
                }
            }
            AstKind::UnaryExpression(unary)
                if unary.operator.is_arithmetic() || unary.operator.is_bitwise() =>
            {
                self.text(&unary.argument, Use::Number);
            }
            AstKind::AssignmentExpression(assignment) => {
                let operator = assignment.operator.as_str();
                if !matches!(operator, "=" | "+=" | "&&=" | "||=" | "??=") {
                    self.text(&assignment.right, Use::Number);
                }
            }
            AstKind::ComputedMemberExpression(member) => self.text(&member.expression, Use::Key),
            AstKind::SwitchStatement(switch) => {
                for test in switch.cases.iter().filter_map(|case| case.test.as_ref()) {
                    self.text(test, Use::Compared);
                }
            }
            AstKind::ObjectProperty(property) if property.computed => self.key(&property.key),
            AstKind::BindingProperty(property) if property.computed => self.key(&property.key),
            AstKind::MethodDefinition(method) if method.computed => self.key(&method.key),
            AstKind::PropertyDefinition(property) if property.computed => self.key(&property.key),
            _ => {}
        }
    }

    /// Marks what counts its parts, and what makes objects with a prototype of the page.
    fn parts_and_prototypes(&mut self, id: NodeId, kind: AstKind<'_>) {
        let parts = self.parts[id.index()];
        match kind {
            AstKind::Function(function) => self.function(id, function, parts),
            AstKind::ArrowFunctionExpression(arrow) => match &arrow.body {
                ArrowFunctionBody::FunctionBody(body) => self.body(body, &counted(parts)),
                value if parts > PARTS_MIN => {
                    let span = value.span();
                    self.around(span, format!("({RUNTIME}.w({parts}),("), "))");
                }
                _ => {}
            },
            AstKind::Class(class) => self.class(class),
            AstKind::ForStatement(one) => self.repeated(&one.body, parts),
            AstKind::ForInStatement(one) => self.repeated(&one.body, parts),
            AstKind::ForOfStatement(one) => self.repeated(&one.body, parts),
            AstKind::WhileStatement(one) => self.repeated(&one.body, parts),
            AstKind::DoWhileStatement(one) => self.repeated(&one.body, parts),
            // The engine (QuickJS-ng 0.16) would take the arguments of the outer `new` for those of a call
            // of the inner object.
            AstKind::NewExpression(new) if self.starts_with_new(new.callee.span()) => {
                self.around(new.callee.span(), "(".to_owned(), ")");
            }
            AstKind::ObjectProperty(property) => {
                let sets = !property.computed && !property.shorthand && !property.method;
                if sets && property.key.is_specific_static_name("__proto__") {
                    self.value(property.value.span(), Use::Prototype);
                }
            }
            _ => {}
        }
    }

    fn starts_with_new(&self, span: Span) -> bool {
        let code = &self.code[span.start as usize..span.end as usize];
        code.starts_with("new ")
    }

    fn function(&mut self, id: NodeId, function: &Function<'_>, parts: u32) {
        let Some(body) = &function.body else { return };
        let mut text = counted(parts);
        if can_construct(self.semantic, id, function) {
            text.push_str(&format!("new.target&&{RUNTIME}.i(new.target);"));
        }
        self.body(body, &text);
    }

    fn class(&mut self, class: &Class<'_>) {
        let fields = class.body.body.iter().filter_map(|element| match element {
            ClassElement::PropertyDefinition(field) if !field.r#static => {
                Some(self.parts[field.node_id.get().index()])
            }
            _ => None,
        });
        let fields: u32 = fields.sum();
        let mut text = String::new();
        if class.heritage.is_some() {
            text.push_str(&format!("static{{{RUNTIME}.d(this);}}"));
        }
        if fields > PARTS_MIN {
            text.push_str(&format!("#{RUNTIME}={RUNTIME}.w({fields});"));
        }
        self.statement(class.body.span.start + 1, text);
    }

    /// Marks the body of a loop.
    fn repeated(&mut self, body: &Statement<'_>, parts: u32) {
        let text = counted(parts);
        match body {
            _ if text.is_empty() => {}
            Statement::BlockStatement(block) => self.statement(block.span.start + 1, text),
            other => self.around(other.span(), format!("{{{text}"), "}"),
        }
    }

    /// Adds statements at the start of a body.
    fn body(&mut self, body: &FunctionBody<'_>, text: &str) {
        let directives = body.directives.last().map(|last| last.span.end);
        let place = directives.unwrap_or(body.span.start + 1);
        self.statement(place, text.to_owned());
    }

    fn statement(&mut self, place: u32, text: String) {
        if !text.is_empty() {
            self.insertions.push(Insertion {
                place,
                kind: Kind::Statement,
                end: Reverse(0),
                text,
            });
        }
    }

    fn key(&mut self, key: &PropertyKey<'_>) {
        if let Some(key) = key.as_expression() {
            self.text(key, Use::Key);
        }
    }

    /// Marks an expression if its value may be a long text.
    fn text(&mut self, expression: &Expression<'_>, how: Use) {
        if is_text(expression) {
            self.value(expression.span(), how);
        }
    }

    fn value(&mut self, span: Span, how: Use) {
        let name = match how {
            Use::Compared => 'e',
            Use::Number => 'n',
            Use::Key => 'k',
            Use::Prototype => 'p',
        };
        // Two parentheses: a sequence is one value.
        self.around(span, format!("{RUNTIME}.{name}(("), "))");
    }

    fn around(&mut self, span: Span, before: String, after: &str) {
        self.insertions.push(Insertion {
            place: span.start,
            kind: Kind::Start,
            end: Reverse(span.end),
            text: before,
        });
        self.insertions.push(Insertion {
            place: span.end,
            kind: Kind::End,
            end: Reverse(0),
            text: after.to_owned(),
        });
    }

    /// Writes the code with the marks.
    fn written(mut self) -> String {
        self.insertions.sort_unstable();
        let added: usize = self.insertions.iter().map(|one| one.text.len()).sum();
        let mut out = String::with_capacity(self.code.len() + added);
        let mut at = 0;
        for Insertion { place, text, .. } in &self.insertions {
            let place = *place as usize;
            out.push_str(&self.code[at..place]);
            out.push_str(text);
            at = place;
        }
        out.push_str(&self.code[at..]);
        out
    }
}

/// Returns the statement that counts parts; nothing for few.
fn counted(parts: u32) -> String {
    match parts > PARTS_MIN {
        true => format!("{RUNTIME}.w({parts});"),
        false => String::new(),
    }
}

/// Returns whether `new` can call a function.
pub(super) fn can_construct(semantic: &Semantic<'_>, id: NodeId, function: &Function<'_>) -> bool {
    let is_method = match semantic.nodes().parent_kind(id) {
        AstKind::ObjectProperty(property) => property.method || property.kind != PropertyKind::Init,
        AstKind::MethodDefinition(method) => !method.kind.is_constructor(),
        _ => false,
    };
    !is_method && !function.r#async && !function.generator
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
        | Expression::ClassExpression(_) => false,
        _ => true,
    }
}
