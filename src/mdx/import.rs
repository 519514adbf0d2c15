//! Imports and exports of a page: values and components.
//!
//! A snippet is a file of the documentation, or a component that a script exports and whose
//! body is only JSX. No script is run. An import whose value would need a script is reported
//! once.
//! Sources: MDX 3 (ESM).

use std::collections::HashMap;
use std::sync::Arc;

use super::module::{self, Statement};
use super::span::Origin;
use super::value::{Parameters, Scope, Template, Value};
use super::{Node, PAGE_BYTES_MAX, Place, Position, Reader, clean, lines, short};

/// How long a chain of imports may be.
const IMPORTS_MAX: usize = 8;

// === impl Reader ===

impl Reader<'_> {
    /// Adds the names that a file imports and exports to its scope.
    pub(super) fn declare(
        &mut self,
        text: &str,
        at: Position,
        statements: &[(usize, Statement<'_>)],
        scope: &mut Scope,
        imports: usize,
    ) {
        for (offset, statement) in statements {
            let line = at.plus(&text[..*offset]).line;
            match statement {
                Statement::Import {
                    default,
                    names,
                    from,
                } => {
                    let place = place_of(text, at.line, from);
                    self.import(*default, names, from, place, scope, imports);
                }
                Statement::Value { name, source } => {
                    let value = self.evaluate(source, position_of(text, at, source), scope, 0);
                    if let Some(value) = value {
                        scope.values.insert((*name).into(), value);
                    }
                }
                Statement::Component {
                    name,
                    parameters,
                    body,
                } => {
                    let template = Template {
                        file: self.file.clone(),
                        body: (*body).into(),
                        origin: Arc::clone(&self.origin),
                        at: position_of(text, at, body),
                        parameters: parameters.clone(),
                        scope: scope.clone(),
                    };
                    scope.components.insert((*name).into(), Arc::new(template));
                }
                // A statement that would have to be run matters only if the page uses its name.
                Statement::Other { .. } if imports > 0 => {}
                Statement::Other { name } => self.warn(
                    "mdx-script",
                    line,
                    format!(
                        "`{}` would have to be run, and pages run no script",
                        short(name)
                    ),
                ),
            }
        }
    }

    pub(super) fn import(
        &mut self,
        default: Option<&str>,
        names: &[(&str, &str)],
        from: &str,
        at: Place,
        scope: &mut Scope,
        imports: usize,
    ) {
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
        if !self.pay_for(&text) {
            return;
        }
        let (head, body) = text.split_at(frontmatter_end(&text));
        let (body, shifts) = clean(body);
        let start = Position {
            offset: 0,
            line: 1 + lines(head),
        };
        let origin = Arc::new(Origin {
            file: self.number_of(&path),
            start: head.len(),
            shifts,
        });
        let outer = self.enter(path.as_str().into(), Arc::clone(&origin));
        let (_, statements) = module::split(&body);
        let mut inner = Scope::default();
        self.declare(&body, start, &statements, &mut inner, imports + 1);
        self.leave(outer);
        // The default export of a script is one of its components, not the whole file.
        let is_script = !path.ends_with(".mdx") && !path.ends_with(".md");
        if let Some(name) = default.filter(|_| is_script) {
            let first = || {
                inner
                    .components
                    .iter()
                    .min_by_key(|(name, _)| (*name).clone())
            };
            let named = inner.components.get_key_value(name);
            let exported = named.or_else(first).map(|(_, component)| component);
            match exported {
                Some(component) => {
                    scope.components.insert(name.into(), Arc::clone(component));
                }
                None => self.without_value(name, from, at, scope),
            }
        } else if let Some(name) = default {
            let template = Template {
                file: path.into(),
                body: body.into(),
                origin,
                at: start,
                parameters: Parameters::Implicit,
                scope: Scope::default(),
            };
            scope.components.insert(name.into(), Arc::new(template));
        }
        for (name, local) in names {
            if let Some(value) = inner.values.get(*name) {
                scope.values.insert((*local).into(), value.clone());
            } else if let Some(component) = inner.components.get(*name) {
                scope
                    .components
                    .insert((*local).into(), Arc::clone(component));
            } else {
                self.without_value(name, from, at, scope);
            }
        }
    }

    /// Reports once that an imported name has no value, and records the name as missing.
    fn without_value(&mut self, name: &str, from: &str, at: Place, scope: &mut Scope) {
        scope.missing.insert(name.into());
        self.warn_at(
            "mdx-import",
            at,
            format!("`{from}` exports no `{name}` that has a value without running it"),
        );
    }

    /// Shows a component with its props.
    pub(super) fn expand(
        &mut self,
        template: &Template,
        mut props: HashMap<Box<str>, Value>,
        depth: usize,
    ) -> Vec<Node> {
        if !self.pay_for(&template.body) {
            return Vec::new();
        }
        let mut scope = template.scope.clone();
        let outer = self.enter(template.file.clone(), Arc::clone(&template.origin));
        match &template.parameters {
            Parameters::Implicit => {
                let all = props.iter().map(|(k, v)| (k.clone(), v.clone()));
                scope.values.insert("props".into(), object(all));
                scope.values.extend(props);
            }
            Parameters::Whole(name) => {
                scope.values.insert(name.clone(), object(props));
            }
            Parameters::Named(names) => {
                for (name, default) in names {
                    let value = props.remove(name).or_else(|| {
                        self.evaluate(default.as_deref()?, template.at, &template.scope, depth)
                    });
                    scope
                        .values
                        .insert(name.clone(), value.unwrap_or(Value::Null));
                }
            }
        }
        let nodes = self.file(&template.body, template.at, scope, depth + 1);
        self.leave(outer);
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

/// Returns the position of `piece`, a slice of `text`, when `text` starts at `at`.
fn position_of(text: &str, at: Position, piece: &str) -> Position {
    let offset = piece.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    at.plus(text.get(..offset).unwrap_or_default())
}

/// Returns the place of `piece`, a slice of `text`, when `text` starts at column 1 of `line`.
fn place_of(text: &str, line: u32, piece: &str) -> Place {
    let position = position_of(text, Position { offset: 0, line }, piece);
    let before = &text[..position.offset];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
    Place {
        line: position.line,
        column: count(&before[start..]) + 1,
        length: count(piece),
    }
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
