//! Imports and exports of a page: values and components.
//!
//! A snippet is a file of the documentation, or a component that a script exports and whose
//! body is only JSX. No script is run. An import whose value would need a script is reported
//! once.
//! Sources: MDX 3 (ESM); ECMA-262 §16.2.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    ArrowFunctionBody, BindingPattern, Declaration, ExportDefaultDeclarationKind, Expression,
    FormalParameters, Function, FunctionBody, Statement as Parsed, VariableDeclarator,
};
use oxc_span::{GetSpan as _, Span as Within};

use super::module::{self, Binding, Statement, StatementKind};
use super::scope::{Parameter, Parameters, Scope, Template};
use super::script;
use super::span::Origin;
use super::value::{Code, Value, bare};
use super::{Node, PAGE_BYTES_MAX, Place, Reader, Refused, clean, line_ends, lines, short};

/// How long a chain of imports may be.
const IMPORTS_MAX: usize = 8;
/// The last byte of a line for which a warning names the column.
const COLUMN_MAX: usize = 400;

/// How a file was reached.
#[derive(Clone, Copy, Debug)]
struct Reached {
    /// How many imports lead from one file to the next, up to here.
    imports: usize,
    /// Whether the file is a script, of which every statement is parsed.
    is_script: bool,
}

// === impl Reader ===

impl Reader<'_> {
    /// Adds the names that the statements of a file declare to its scope; `at` is where its
    /// text starts in the cleaned text of the file.
    pub(super) fn declare(
        &mut self,
        text: &str,
        at: usize,
        statements: &[Range<usize>],
        scope: Scope,
        depth: usize,
    ) {
        let reached = Reached {
            imports: 0,
            is_script: false,
        };
        self.declare_each(text, at, statements, scope, depth, reached);
    }

    fn declare_each(
        &mut self,
        text: &str,
        at: usize,
        statements: &[Range<usize>],
        scope: Scope,
        depth: usize,
        reached: Reached,
    ) {
        for range in statements {
            let code = Code {
                source: &text[range.clone()],
                at: at + range.start,
                scope,
                depth,
            };
            self.parse_statements(code, reached);
        }
    }

    /// Parses statements and adds the names that they declare.
    fn parse_statements(&mut self, code: Code<'_>, reached: Reached) {
        if !self.charge_script(code.source) {
            return;
        }
        let allocator = Allocator::default();
        match script::module(&allocator, code.source, &self.file) {
            Ok(program) => {
                for parsed in &program.body {
                    let span = parsed.span();
                    if let Some(kind) = StatementKind::of(parsed) {
                        self.keep(kind, code, span.start as usize..span.end as usize);
                    }
                    self.statement(parsed, code, reached);
                }
            }
            Err(broken) => {
                self.keep(StatementKind::Broken, code, 0..code.source.len());
                self.report_broken(&broken, code.at);
            }
        }
    }

    /// Adds a statement of the page itself to its list.
    fn keep(&mut self, kind: StatementKind, code: Code<'_>, range: Range<usize>) {
        if code.scope.is_page() {
            self.module.push(Statement {
                kind,
                source: code.source[range.clone()].into(),
                span: self.origin.span(code.at + range.start..code.at + range.end),
            });
        }
    }

    fn statement(&mut self, parsed: &Parsed<'_>, code: Code<'_>, reached: Reached) {
        match parsed {
            Parsed::ImportDeclaration(import) if import.import_kind.is_type() => {}
            Parsed::ImportDeclaration(import) => {
                if let Some(StatementKind::Import { from, names }) = StatementKind::of(parsed) {
                    let at = self.place(code, import.source.span);
                    self.import_names(&names, &from, at, code, reached.imports);
                }
            }
            Parsed::ExportFromDeclaration(export) if export.export_kind.is_type() => {}
            Parsed::ExportFromDeclaration(export) => {
                let names = export.specifiers.iter();
                let names = names.map(|one| Binding::new(&one.local.name(), &one.exported.name()));
                let names: Vec<_> = names.collect();
                let at = self.place(code, export.source.span);
                let from = export.source.value.as_str();
                self.import_names(&names, from, at, code, reached.imports);
            }
            Parsed::ExportNamedDeclaration(export) => {
                for one in &export.specifiers {
                    let (local, exported) = (one.local.name(), one.exported.name());
                    if local != exported {
                        self.alias(&local, &exported, code.scope);
                    }
                }
            }
            Parsed::ExportDeclaration(export) => {
                self.declaration(&export.declaration, code, reached, true);
            }
            Parsed::ExportDefaultDeclaration(export) => {
                self.default_export(&export.declaration, code, reached);
            }
            Parsed::ExportAllDeclaration(_) => {
                self.report_run(code, parsed.span(), reached);
            }
            other if reached.is_script => {
                if let Some(declaration) = other.as_declaration() {
                    self.declaration(declaration, code, reached, false);
                }
            }
            _ => {}
        }
    }

    fn declaration(
        &mut self,
        declaration: &Declaration<'_>,
        code: Code<'_>,
        reached: Reached,
        is_exported: bool,
    ) {
        match declaration {
            Declaration::VariableDeclaration(variables) => {
                for variable in &variables.declarations {
                    self.variable(variable, code, reached, is_exported);
                }
            }
            Declaration::FunctionDeclaration(function) => {
                let name = function.id.as_ref().map(|id| id.name.as_str());
                self.function(name.unwrap_or_default(), function, code, reached);
            }
            Declaration::ClassDeclaration(class) if is_exported => {
                self.report_run(code, class.span, reached);
            }
            // Types have no value.
            _ => {}
        }
    }

    fn variable(
        &mut self,
        variable: &VariableDeclarator<'_>,
        code: Code<'_>,
        reached: Reached,
        is_exported: bool,
    ) {
        let (BindingPattern::BindingIdentifier(id), Some(init)) = (&variable.id, &variable.init)
        else {
            if is_exported {
                self.report_run(code, variable.span, reached);
            }
            return;
        };
        let name = id.name.as_str();
        match bare(init) {
            Expression::ArrowFunctionExpression(arrow) => {
                let body = jsx_of_arrow(&arrow.body);
                self.component(name, &arrow.params, body, code, reached);
            }
            Expression::FunctionExpression(function) => {
                self.function(name, function, code, reached);
            }
            value => match self.value_of(code, value) {
                Ok(value) => self.scopes.set_value(code.scope, name, value),
                Err(_unsupported) if is_exported => {
                    let (source, at) = piece(code, value.span());
                    self.report_unsupported(source, at);
                }
                Err(_unsupported) => {}
            },
        }
    }

    fn default_export(
        &mut self,
        exported: &ExportDefaultDeclarationKind<'_>,
        code: Code<'_>,
        reached: Reached,
    ) {
        let name = "default";
        if let ExportDefaultDeclarationKind::FunctionDeclaration(function) = exported {
            let own = function.id.as_ref().map_or(name, |id| id.name.as_str());
            self.function(own, function, code, reached);
            return self.alias(own, name, code.scope);
        }
        match exported.as_expression().map(bare) {
            Some(Expression::Identifier(local)) => {
                self.alias(local.name.as_str(), name, code.scope);
            }
            Some(Expression::ArrowFunctionExpression(arrow)) => {
                let body = jsx_of_arrow(&arrow.body);
                self.component(name, &arrow.params, body, code, reached);
            }
            Some(Expression::FunctionExpression(function)) => {
                self.function(name, function, code, reached);
            }
            Some(value) => match self.value_of(code, value) {
                Ok(value) => self.scopes.set_value(code.scope, name, value),
                Err(_unsupported) => self.report_run(code, value.span(), reached),
            },
            None => self.report_run(code, exported.span(), reached),
        }
    }

    fn function(&mut self, name: &str, function: &Function<'_>, code: Code<'_>, reached: Reached) {
        let runs = function.generator || function.r#async;
        let body = function.body.as_ref().filter(|_| !runs);
        let body = body.and_then(|body| jsx_of_body(body));
        self.component(name, &function.params, body, code, reached);
    }

    /// Adds a component whose body is only JSX.
    fn component(
        &mut self,
        name: &str,
        parameters: &FormalParameters<'_>,
        body: Option<Within>,
        code: Code<'_>,
        reached: Reached,
    ) {
        let Some((body, parameters)) = body.zip(named(parameters, code)) else {
            if reached.imports == 0 {
                self.report_run_of(name, code.at);
            }
            return;
        };
        let (body, at) = piece(code, body);
        let template = Template {
            file: self.file.clone(),
            body: body.into(),
            origin: Arc::clone(&self.origin),
            at,
            parameters,
            scope: Some(code.scope),
        };
        self.scopes
            .set_component(code.scope, name, Arc::new(template));
    }

    /// Adds a second name of a value or a component.
    fn alias(&mut self, local: &str, exported: &str, scope: Scope) {
        if let Some(value) = self.scopes.value(scope, local) {
            let (bytes, value) = (value.bytes(), value.clone());
            if self.charge(bytes) {
                self.scopes.set_value(scope, exported, value);
            }
        } else if let Some(component) = self.scopes.component(scope, local) {
            let component = Arc::clone(component);
            self.scopes.set_component(scope, exported, component);
        }
    }

    /// Reports a statement that would have to be run. In an imported file it matters only if the
    /// page uses its name.
    fn report_run(&mut self, code: Code<'_>, span: Within, reached: Reached) {
        let (source, at) = piece(code, span);
        if reached.imports == 0 {
            self.report_run_of(source, at);
        }
    }

    fn report_run_of(&mut self, source: &str, at: usize) {
        let name = short(source);
        let message = format!("`{name}` would have to be run, and pages run no script");
        self.warn("mdx-script", self.line(at), message);
    }

    /// Returns the place of a text in quotes, without its quotes.
    fn place(&self, code: Code<'_>, quoted: Within) -> Place {
        let (start, end) = (quoted.start as usize + 1, quoted.end as usize - 1);
        let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let from = code
            .source
            .floor_char_boundary(start.saturating_sub(COLUMN_MAX));
        let before = &code.source[from..start];
        let line_start = before.rfind('\n').map(|end| end + 1);
        let line_start = line_start.or((from == 0).then_some(0));
        Place {
            line: self.line(code.at + start),
            column: line_start.map_or(1, |start| count(&before[start..]) + 1),
            length: line_start.map_or(0, |_| count(&code.source[start..end.max(start)])),
        }
    }

    /// Imports names of a file into a scope.
    pub(super) fn import(
        &mut self,
        names: &[Binding],
        from: &str,
        at: Place,
        scope: Scope,
        depth: usize,
    ) {
        let code = Code {
            source: "",
            at: 0,
            scope,
            depth,
        };
        self.import_names(names, from, at, code, 0);
    }

    fn import_names(
        &mut self,
        names: &[Binding],
        from: &str,
        at: Place,
        into: Code<'_>,
        imports: usize,
    ) {
        let Code { scope, depth, .. } = into;
        if imports >= IMPORTS_MAX {
            return self.warn_at(
                "mdx-import",
                at,
                format!("more than {IMPORTS_MAX} imports lead from one file to the next"),
            );
        }
        let Some(path) = resolve(&self.file, from) else {
            return self.warn_at(
                "mdx-import",
                at,
                format!("`{from}` is not a file of the documentation"),
            );
        };
        let Some(text) = (self.load)(&path).filter(|text| text.len() <= PAGE_BYTES_MAX) else {
            return self.warn_at("snippet", at, format!("there is no snippet `{from}`"));
        };
        if !self.charge_text(&text) {
            return;
        }
        let (head, body) = text.split_at(frontmatter_end(&text));
        let (body, shifts) = clean(body);
        let origin = Arc::new(Origin {
            file: self.number_of(&path),
            start: head.len(),
            shifts,
            line: 1 + lines(head),
            line_ends: line_ends(&body),
        });
        let outer = self.enter(path.as_str().into(), Arc::clone(&origin));
        let inner = self.scopes.add(None);
        let reached = Reached {
            imports: imports + 1,
            is_script: !path.ends_with(".mdx") && !path.ends_with(".md"),
        };
        if reached.is_script {
            let code = Code {
                source: &body,
                at: 0,
                scope: inner,
                depth,
            };
            self.parse_statements(code, reached);
        } else {
            match module::find(&body, &mut self.lookahead) {
                Ok(statements) => {
                    self.declare_each(&body, 0, &statements, inner, depth, reached);
                }
                Err(_exhausted) => self.refuse(Refused::Unclosed),
            }
        }
        self.leave(outer);
        let whole = names.iter().find(|one| &*one.name == "default");
        if let Some(one) = whole.filter(|_| !reached.is_script) {
            let template = Template {
                file: path.into(),
                body: body.into(),
                origin,
                at: 0,
                parameters: Parameters::Implicit,
                scope: None,
            };
            self.scopes
                .set_component(scope, &one.local, Arc::new(template));
        }
        for Binding { name, local } in names {
            match &**name {
                "default" if !reached.is_script => {}
                // Members of a namespace are not looked up.
                "*" => self.scopes.set_missing(scope, local),
                name => self.take(name, local, from, at, inner, scope),
            }
        }
    }

    /// Copies a name from the scope of an imported file.
    fn take(&mut self, name: &str, local: &str, from: &str, at: Place, inner: Scope, scope: Scope) {
        if let Some(value) = self.scopes.value(inner, name) {
            let (bytes, value) = (value.bytes(), value.clone());
            if self.charge(bytes) {
                self.scopes.set_value(scope, local, value);
            }
            return;
        }
        let mut component = self.scopes.component(inner, name);
        // A function may make the default export. Then the author means a component with the same
        // name, or any component.
        if name == "default" {
            let named = component.or_else(|| self.scopes.component(inner, local));
            component = named.or_else(|| self.scopes.first_component(inner));
        }
        match component.map(Arc::clone) {
            Some(component) => self.scopes.set_component(scope, local, component),
            None => {
                self.scopes.set_missing(scope, local);
                let name = if name == "default" { local } else { name };
                self.warn_at(
                    "mdx-import",
                    at,
                    format!("`{from}` exports no `{name}` that has a value without running it"),
                );
            }
        }
    }

    /// Shows a component with its props.
    pub(super) fn expand(
        &mut self,
        template: &Template,
        mut props: HashMap<Box<str>, Value>,
        depth: usize,
    ) -> Vec<Node> {
        if !self.charge_text(&template.body) {
            return Vec::new();
        }
        let count = self.scopes.len();
        let scope = self.scopes.add(template.scope);
        let outer = self.enter(template.file.clone(), Arc::clone(&template.origin));
        match &template.parameters {
            Parameters::Implicit => {
                let bytes = props.iter().map(|(name, value)| name.len() + value.bytes());
                if self.charge(bytes.sum()) {
                    let all = object(props.clone());
                    self.scopes.set_value(scope, "props", all);
                    for (name, value) in props {
                        self.scopes.set_value(scope, &name, value);
                    }
                }
            }
            Parameters::Whole(name) => self.scopes.set_value(scope, name, object(props)),
            Parameters::Named { names, rest } => {
                for parameter in names {
                    let mut value = props.remove(&parameter.prop);
                    if let (None, Some((source, at))) = (&value, &parameter.default) {
                        let code = Code {
                            source,
                            at: *at,
                            scope,
                            depth,
                        };
                        value = self.evaluate(code).ok();
                    }
                    let value = value.unwrap_or(Value::Null);
                    self.scopes.set_value(scope, &parameter.local, value);
                }
                if let Some(rest) = rest {
                    self.scopes.set_value(scope, rest, object(props));
                }
            }
        }
        let nodes = self.file(&template.body, template.at, scope, depth + 1);
        self.leave(outer);
        self.scopes.truncate(count);
        nodes
    }

    /// Makes another file the current one; returns the state that [`Reader::leave`] restores.
    fn enter(&mut self, file: Box<str>, origin: Arc<Origin>) -> (Box<str>, Arc<Origin>) {
        let file = std::mem::replace(&mut self.file, file);
        (file, std::mem::replace(&mut self.origin, origin))
    }

    fn leave(&mut self, (file, origin): (Box<str>, Arc<Origin>)) {
        self.file = file;
        self.origin = origin;
    }
}

fn object(entries: impl IntoIterator<Item = (Box<str>, Value)>) -> Value {
    let mut entries: Vec<_> = entries.into_iter().collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Value::Object(entries)
}

/// Returns the byte at which the text of a snippet starts, after its frontmatter.
fn frontmatter_end(text: &str) -> usize {
    match crate::frontmatter::read(text) {
        Ok(Some(found)) => found.body_offset,
        _ => 0,
    }
}

/// Returns a piece of a source, and where it starts in the cleaned text of its file.
fn piece<'s>(code: Code<'s>, span: Within) -> (&'s str, usize) {
    let (start, end) = (span.start as usize, span.end as usize);
    (&code.source[start..end], code.at + start)
}

/// Returns the JSX of an arrow function that only returns JSX.
fn jsx_of_arrow(body: &ArrowFunctionBody<'_>) -> Option<Within> {
    match body {
        ArrowFunctionBody::FunctionBody(body) => jsx_of_body(body),
        body => jsx(body.as_expression()?),
    }
}

/// Returns the JSX of a function that only returns JSX.
fn jsx_of_body(body: &FunctionBody<'_>) -> Option<Within> {
    match &body.statements[..] {
        [Parsed::ReturnStatement(returned)] => jsx(returned.argument.as_ref()?),
        _ => None,
    }
}

fn jsx(expression: &Expression<'_>) -> Option<Within> {
    match bare(expression) {
        element @ (Expression::JSXElement(_) | Expression::JSXFragment(_)) => Some(element.span()),
        _ => None,
    }
}

/// Reads how a component names its props; `None` for a way that is not supported.
fn named(parameters: &FormalParameters<'_>, code: Code<'_>) -> Option<Parameters> {
    let Some(first) = parameters.items.first() else {
        return Some(Parameters::Named {
            names: Vec::new(),
            rest: None,
        });
    };
    let pattern = match &first.pattern {
        BindingPattern::BindingIdentifier(id) => {
            return Some(Parameters::Whole(id.name.as_str().into()));
        }
        BindingPattern::ObjectPattern(pattern) => pattern,
        _ => return None,
    };
    let mut names = Vec::with_capacity(pattern.properties.len());
    for property in &pattern.properties {
        let (local, default) = match &property.value {
            BindingPattern::BindingIdentifier(id) => (id, None),
            BindingPattern::AssignmentPattern(assigned) => match &assigned.left {
                BindingPattern::BindingIdentifier(id) => {
                    let (source, at) = piece(code, assigned.right.span());
                    (id, Some((source.into(), at)))
                }
                _ => return None,
            },
            _ => return None,
        };
        names.push(Parameter {
            prop: property.key.static_name()?.into(),
            local: local.name.as_str().into(),
            default,
        });
    }
    let rest = match pattern.rest.as_ref().map(|rest| &rest.argument) {
        None => None,
        Some(BindingPattern::BindingIdentifier(id)) => Some(id.name.as_str().into()),
        Some(_) => return None,
    };
    Some(Parameters::Named { names, rest })
}

/// Finds the file that an import in `file` names, as a path from the root of the docs;
/// `None` if the import is a package or leads outside the root.
fn resolve(file: &str, from: &str) -> Option<String> {
    let mut segments: Vec<&str> = match from.strip_prefix('/') {
        Some(_) => Vec::new(),
        None if from.starts_with('.') => file.split('/').rev().skip(1).collect(),
        None => return None,
    };
    if !from.starts_with('/') {
        segments.reverse();
    }
    for segment in from.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop()?;
            }
            other => segments.push(other),
        }
    }
    let path = segments.join("/");
    let has_extension = [".mdx", ".md", ".jsx", ".tsx", ".js", ".ts"]
        .iter()
        .any(|end| path.ends_with(end));
    Some(if has_extension {
        path
    } else {
        format!("{path}.mdx")
    })
}
