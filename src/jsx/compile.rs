//! Compiles what authors write to plain JavaScript.
//!
//! `oxc` removes the types of TypeScript and turns JSX into calls. Each statement of a module is
//! then isolated: an import that does not exist, or a declaration that throws, breaks only the
//! parts of a page that use its name.
//!
//! Sources: ECMA-262 §16.2; JSX; TypeScript 5.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use oxc_allocator::Allocator;
use oxc_ast::ast::{
    BindingPattern, Declaration, ExportDefaultDeclarationKind, ImportDeclarationSpecifier, Program,
    Statement, VariableDeclaration,
};
use oxc_codegen::{Codegen, CodegenOptions};
use oxc_parser::Parser;
use oxc_semantic::SemanticBuilder;
use oxc_span::{GetSpan as _, SourceType, Span};
use oxc_transformer::{JsxOptions, JsxRuntime, TransformOptions, Transformer, TypeScriptOptions};

use super::script::{self, Broken};
use super::{RUNTIME, charge, unavailable};

/// An expression in plain JavaScript.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// Its code.
    pub code: String,
    /// The names that it uses and does not declare.
    pub free: BTreeSet<Box<str>>,
}

/// The statements of a module in plain JavaScript.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// The code of the statements.
    pub body: String,
    /// The names that they declare.
    pub names: BTreeSet<Box<str>>,
    /// The exported names, each with the code of its value.
    pub exports: Vec<(Box<str>, String)>,
    /// The sources of imports, as written, with the imported names.
    pub imports: Vec<(Box<str>, BTreeSet<Box<str>>)>,
}

/// Compiles an expression.
///
/// # Errors
///
/// [`Broken`] when it is none.
pub fn expression(source: &str) -> Result<Compiled, Broken> {
    let wrapped = format!("({source}\n)");
    let (code, free) = plain(&wrapped, SourceType::tsx())?;
    let code = code.trim_end().trim_end_matches(';').to_owned();
    Ok(Compiled { code, free })
}

/// Compiles statements and adds them to a module; `file` tells the kind of the source.
///
/// # Errors
///
/// [`Broken`] when they cannot be read; the module is then unchanged.
pub fn statements(source: &str, file: &str, module: &mut Module) -> Result<(), Broken> {
    let kind = match file.ends_with(".ts") {
        true => SourceType::ts(),
        false => SourceType::tsx(),
    };
    let (code, _) = plain(source, kind)?;
    let allocator = Allocator::default();
    let program = script::module(&allocator, &code, "plain.jsx")?;
    let mut writer = Writer {
        code: &code,
        module,
    };
    for statement in &program.body {
        writer.statement(statement);
    }
    Ok(())
}

// === impl Module ===

impl Module {
    /// Returns a module whose default export is a value, written as JSON.
    #[must_use]
    pub fn json(text: &str) -> Self {
        let text = serde_json::Value::from(text);
        Self {
            exports: vec![("default".into(), format!("JSON.parse({text})"))],
            ..Self::default()
        }
    }

    /// Returns the code of the module: a function that the engine calls once.
    #[must_use]
    pub fn code(&self) -> String {
        let mut code = format!("(function ({RUNTIME}, _m$, _i$) {{\n");
        let names = self.names.iter();
        let names: Vec<_> = names.map(|name| format!("{name}: () => {name}")).collect();
        let exports = self.exports.iter();
        let exports: Vec<_> = exports
            .map(|(name, value)| format!("{}: () => {value}", quoted(name)))
            .collect();
        let _ = writeln!(code, "{RUNTIME}.names(_m$, {{{}}});", names.join(", "));
        let _ = writeln!(code, "{RUNTIME}.exports(_m$, {{{}}});", exports.join(", "));
        code.push_str(&self.body);
        code.push_str("})");
        code
    }

    fn import(&mut self, from: &str, name: &str) {
        let known = self.imports.iter_mut().find(|(known, _)| **known == *from);
        match known {
            Some((_, names)) => {
                names.insert(name.into());
            }
            None => self
                .imports
                .push((from.into(), BTreeSet::from([name.into()]))),
        }
    }
}

/// Writes the statements of a module.
struct Writer<'w> {
    /// The plain code that was parsed.
    code: &'w str,
    module: &'w mut Module,
}

// === impl Writer ===

impl Writer<'_> {
    fn text(&self, span: Span) -> &str {
        &self.code[span.start as usize..span.end as usize]
    }

    fn line(&mut self, line: &str) {
        self.module.body.push_str(line);
        self.module.body.push('\n');
    }

    fn statement(&mut self, statement: &Statement<'_>) {
        match statement {
            Statement::ImportDeclaration(import) => {
                let from = import.source.value.as_str();
                for specifier in import.specifiers.iter().flatten() {
                    let local = specifier.local().name.as_str();
                    let name = match specifier {
                        ImportDeclarationSpecifier::ImportSpecifier(one) => one.imported.name(),
                        ImportDeclarationSpecifier::ImportDefaultSpecifier(_) => "default".into(),
                        ImportDeclarationSpecifier::ImportNamespaceSpecifier(_) => "*".into(),
                    };
                    self.line(&format!("var {local} = {};", imported(from, &name)));
                    self.module.names.insert(local.into());
                    self.module.import(from, &name);
                }
            }
            Statement::ExportFromDeclaration(export) => {
                let from = export.source.value.as_str();
                for one in &export.specifiers {
                    let (local, exported) = (one.local.name(), one.exported.name());
                    let value = imported(from, &local);
                    self.module.import(from, &local);
                    self.module.exports.push((exported.as_str().into(), value));
                }
            }
            Statement::ExportAllDeclaration(export) => {
                let from = export.source.value.as_str();
                let all = imported(from, "*");
                self.module.import(from, "*");
                match &export.exported {
                    Some(name) => {
                        let name = name.name().as_str().into();
                        self.module.exports.push((name, all));
                    }
                    None => self.line(&format!("{RUNTIME}.star(_m$, {all});")),
                }
            }
            Statement::ExportNamedDeclaration(export) => {
                for one in &export.specifiers {
                    let (local, exported) = (one.local.name(), one.exported.name());
                    let (exported, local) = (exported.as_str().into(), local.to_string());
                    self.module.exports.push((exported, local));
                }
            }
            Statement::ExportDeclaration(export) => {
                let names = self.declaration(&export.declaration);
                let exports = names.into_iter().map(|name| (name.clone(), name.into()));
                self.module.exports.extend(exports);
            }
            Statement::ExportDefaultDeclaration(export) => {
                let name: String = match &export.declaration {
                    ExportDefaultDeclarationKind::FunctionDeclaration(function)
                        if function.id.is_some() =>
                    {
                        let text = self.text(function.span).to_owned();
                        self.line(&text);
                        function.id.as_ref().map(|id| id.name.to_string())
                    }
                    ExportDefaultDeclarationKind::ClassDeclaration(class) => {
                        class.id.as_ref().map(|id| {
                            self.tried(&[id.name.as_str().into()], id.name.as_str(), class.span);
                            id.name.to_string()
                        })
                    }
                    _ => None,
                }
                .unwrap_or_else(|| {
                    let name = "_default$";
                    self.tried(&[name.into()], name, export.declaration.span());
                    name.to_owned()
                });
                if name != "_default$" {
                    self.module.names.insert(name.as_str().into());
                }
                self.module.exports.push(("default".into(), name));
            }
            other => match other.as_declaration() {
                Some(declaration) => {
                    self.declaration(declaration);
                }
                None => {
                    let text = self.text(other.span()).to_owned();
                    self.line(&format!("try {{ {text}\n}} catch {{}}"));
                }
            },
        }
    }

    /// Writes a declaration; returns the names that it declares.
    fn declaration(&mut self, declaration: &Declaration<'_>) -> Vec<Box<str>> {
        let names = match declaration {
            Declaration::VariableDeclaration(variables) => self.variables(variables),
            Declaration::FunctionDeclaration(function) => {
                let text = self.text(function.span).to_owned();
                self.line(&text);
                let id = function.id.iter();
                id.map(|id| id.name.as_str().into()).collect()
            }
            Declaration::ClassDeclaration(class) => {
                let id = class.id.iter();
                let names: Vec<Box<str>> = id.map(|id| id.name.as_str().into()).collect();
                if let [name] = &names[..] {
                    self.tried(&names, &name.clone(), class.span);
                }
                names
            }
            _ => Vec::new(),
        };
        self.module.names.extend(names.iter().cloned());
        names
    }

    fn variables(&mut self, variables: &VariableDeclaration<'_>) -> Vec<Box<str>> {
        let mut all = Vec::new();
        for variable in &variables.declarations {
            let mut names = Vec::new();
            bound(&variable.id, &mut names);
            match &variable.init {
                Some(init) => {
                    let target = self.text(variable.id.span()).to_owned();
                    self.tried(&names, &target, init.span());
                }
                None => self.line(&format!("var {};", names.join(", "))),
            }
            all.extend(names);
        }
        all
    }

    /// Writes `target = value` so that an error affects only these names.
    fn tried(&mut self, names: &[Box<str>], target: &str, value: Span) {
        let value = self.text(value).trim_end().trim_end_matches(';').to_owned();
        let list = names.join(", ");
        let fails: String = names.iter().map(|name| format!("{name} = ")).collect();
        let declares = if list.is_empty() {
            String::new()
        } else {
            format!("var {list}; ")
        };
        // A single name is assigned directly, because a function gets its name from this
        // assignment.
        let assigns = match target.starts_with(['{', '[']) {
            true => format!("({target} = {value}\n);"),
            false => format!("{target} = {value}\n;"),
        };
        self.line(&format!(
            "{declares}try {{ {assigns} }} catch (_e$) {{ {fails}{RUNTIME}.failed(_e$); }}"
        ));
    }
}

/// Returns the code that imports a name.
fn imported(from: &str, name: &str) -> String {
    format!("_i$({}, {})", quoted(from), quoted(name))
}

/// Returns a text as a literal of JavaScript.
#[must_use]
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Returns a text as the name of a property in an object literal. `__proto__` would be the prototype
/// of the object, except as a computed name.
#[must_use]
pub fn property(name: &str) -> String {
    match name {
        "__proto__" => r#"["__proto__"]"#.to_owned(),
        _ => quoted(name),
    }
}

/// Finds the names that a pattern declares.
fn bound(pattern: &BindingPattern<'_>, names: &mut Vec<Box<str>>) {
    for id in pattern.get_binding_identifiers() {
        names.push(id.name.as_str().into());
    }
}

/// Removes types and JSX, and marks what has to be counted; returns the code, and the names that it
/// uses and does not declare.
fn plain(source: &str, kind: SourceType) -> Result<(String, BTreeSet<Box<str>>), Broken> {
    let (code, free) = transformed(source, kind)?;
    let marked = script::within_stack(&code, || {
        let allocator = Allocator::default();
        let parsed = Parser::new(&allocator, &code, SourceType::mjs()).parse();
        if let Some(broken) = Broken::of(&parsed) {
            return Err(broken);
        }
        let built = SemanticBuilder::new()
            .with_build_nodes(true)
            .build(&parsed.program);
        Ok(charge::charged(&code, &built.semantic))
    })?;
    Ok((marked.unwrap_or(code), free))
}

fn transformed(source: &str, kind: SourceType) -> Result<(String, BTreeSet<Box<str>>), Broken> {
    script::within_stack(source, || {
        let allocator = Allocator::default();
        let parsed = Parser::new(&allocator, source, kind).parse();
        if let Some(broken) = Broken::of(&parsed) {
            return Err(broken);
        }
        let mut program: Program<'_> = parsed.program;
        let built = SemanticBuilder::new()
            .with_build_nodes(true)
            .with_enum_eval(true)
            .build(&program);
        let semantic = built.semantic;
        if let Some(broken) = unavailable::first(&semantic) {
            return Err(broken);
        }
        let free = semantic.scoping().root_unresolved_references();
        let free = free.keys().map(|name| name.as_str().into()).collect();
        let options = TransformOptions {
            typescript: TypeScriptOptions {
                only_remove_type_imports: true,
                jsx_pragma: format!("{RUNTIME}.h").into(),
                jsx_pragma_frag: format!("{RUNTIME}.F").into(),
                ..TypeScriptOptions::default()
            },
            jsx: JsxOptions {
                runtime: JsxRuntime::Classic,
                pure: false,
                display_name_plugin: false,
                throw_if_namespace: false,
                pragma: Some(format!("{RUNTIME}.h")),
                pragma_frag: Some(format!("{RUNTIME}.F")),
                ..JsxOptions::enable()
            },
            ..TransformOptions::default()
        };
        let scoping = semantic.into_scoping();
        let transformer = Transformer::new(&allocator, Path::new("page.tsx"), &options);
        let transformed = transformer.build_with_scoping(scoping, &mut program);
        if let Some(first) = transformed.diagnostics.first() {
            return Err(Broken {
                message: first.message.to_string(),
                at: 0,
            });
        }
        let code = Codegen::new()
            .with_options(CodegenOptions {
                comments: oxc_codegen::CommentOptions::disabled(),
                ..CodegenOptions::default()
            })
            .build(&program)
            .code;
        Ok((code, free))
    })
}
