//! The parts of a page that must be evaluated: expressions and components.
//!
//! An expression without a plain value, and each use of a component, becomes a *piece*: plain
//! JavaScript that the [`Engine`] calls. A piece inside the content of a component is part of the
//! piece of that component, so that the component gets its children, as in React. Each element and
//! each piece of Markdown in the content is passed to the engine as a numbered *shell*; the engine
//! returns the number.
//!
//! The engine starts with the first piece, so a page without one starts none. Its modules are the
//! page and the files that it imports. A part that fails is replaced by a note in the page, and
//! causes a warning.

mod convert;
mod emit;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use super::import::{frontmatter_end, resolve};
use super::module;
use super::node::{Expression, Node, Value};
use super::scope::Scope;
use super::span::{Origin, Span};
use super::value::Code;
use super::{
    DEPTH_MAX, PAGE_BYTES_MAX, Reader, Rejected, clean, component, line_ends, lines, short,
};
use crate::jsx::{self, Engine, MODULES_MAX, RUNTIME, Shown, compile};

/// How many compiled files one thread caches for the next pages.
const COMPILED_MAX: usize = 64;

/// How many characters of the reason of a failure are in its warning.
const REASON_CHARS_MAX: usize = 200;

/// A part of a page that must be evaluated.
#[derive(Clone, Debug, Default)]
pub(super) struct Piece {
    /// Its code: an expression of JavaScript.
    pub code: String,
    /// The names that it uses.
    pub free: BTreeSet<Box<str>>,
    /// Its place, by its number.
    pub site: usize,
}

/// The place of a piece.
#[derive(Clone, Debug)]
struct Site {
    file: Box<str>,
    line: u32,
    source: Box<str>,
    span: Span,
}

/// The state of the evaluation of a page.
#[derive(Debug, Default)]
pub(super) struct Evaluation {
    engine: Option<Engine>,
    /// Whether the engine could not be started.
    is_unavailable: bool,
    /// The modules that the engine has.
    modules: HashSet<Box<str>>,
    /// The names of the modules of Markdown files and of the page.
    names: HashMap<Box<str>, Rc<BTreeSet<Box<str>>>>,
    /// How many components are open whose content is being read.
    pub inside: usize,
    pieces: Vec<Piece>,
    sites: Vec<Site>,
    shells: Vec<Node>,
    /// The components that are shown only with their first render.
    pub interactive: BTreeSet<Box<str>>,
    /// Whether the current Markdown file is used as a component whose props are not known yet.
    is_showing_file: bool,
    /// Whether a result was deeper than a page may be, which is reported once.
    is_flattened: bool,
}

/// A file that was compiled.
#[derive(Debug)]
struct Compiled {
    path: Box<str>,
    text: Arc<str>,
    module: Rc<compile::Module>,
    code: Rc<str>,
}

thread_local! {
    /// Scripts are the same for all pages that import them, so each thread compiles one only once.
    static COMPILED: RefCell<Vec<Compiled>> = const { RefCell::new(Vec::new()) };
}

// === impl Evaluation ===

impl Evaluation {
    pub(super) fn add_site(&mut self, file: &str, line: u32, source: &str, span: Span) -> usize {
        self.sites.push(Site {
            file: file.into(),
            line,
            source: source.into(),
            span,
        });
        self.sites.len() - 1
    }

    fn add_shell(&mut self, node: Node) -> usize {
        self.shells.push(node);
        self.shells.len() - 1
    }
}

// === impl Reader ===

impl Reader<'_> {
    /// Returns the nodes of an expression that has no plain value; `None` if it cannot be read.
    pub(super) fn expression(&mut self, code: Code<'_>, span: Span) -> Vec<Node> {
        if let Some(name) = self.unknown_names(code) {
            let message = format!("`{name}` is not defined; `{{{name}}}` is shown as text");
            self.warn("mdx-script", self.line(code.at), message);
            return vec![Node::Text(format!("{{{}}}", code.source))];
        }
        match self.piece_of(code, span) {
            Some(piece) => self.shown_or_kept(code.scope, piece, span, code.depth),
            None => Vec::new(),
        }
    }

    /// Returns the source of an expression that is only a name that nothing declares, or several
    /// with `|` between them: `{userId}` or `{draft | final}` in a sentence.
    fn unknown_names<'c>(&self, code: Code<'c>) -> Option<&'c str> {
        let is_letter = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let is_unknown = |name: &str| {
            let name = name.trim();
            !name.is_empty()
                && name.chars().all(is_letter)
                && !name.starts_with(|c: char| c.is_numeric())
                && name != "this"
                && !is_known(name)
                && !self.scopes.is_declared(code.scope, name)
        };
        let source = code.source.trim();
        let is_text = source.split('|').all(is_unknown)
            && self.scopes.props(code.scope).is_none()
            && !self.evaluation.is_showing_file;
        is_text.then_some(source)
    }

    /// Makes a piece of an expression.
    pub(super) fn piece_of(&mut self, code: Code<'_>, span: Span) -> Option<Piece> {
        let compiled = self.compiled(code)?;
        let line = self.line(code.at + code.source.len() - code.source.trim_start().len());
        let file = self.file.clone();
        let site = self
            .evaluation
            .add_site(&file, line, code.source.trim(), span);
        Some(Piece {
            code: format!("{RUNTIME}.t({site}, () => {})", compiled.code),
            free: compiled.free,
            site,
        })
    }

    /// Compiles an expression; reports it if it cannot be read.
    pub(super) fn compiled(&mut self, code: Code<'_>) -> Option<compile::Compiled> {
        if !self.charge_script(code.source) {
            return None;
        }
        let source = code.source.trim_end().trim_end_matches(';');
        match compile::expression(source) {
            Ok(compiled) => Some(compiled),
            Err(mut broken) => {
                broken.at = broken.at.saturating_sub(1);
                self.report_broken(&broken, code.at);
                None
            }
        }
    }

    /// Evaluates a piece, or stores it for the component that contains it.
    pub(super) fn shown_or_kept(
        &mut self,
        scope: Scope,
        piece: Piece,
        span: Span,
        depth: usize,
    ) -> Vec<Node> {
        if self.evaluation.inside > 0 {
            let source = self.evaluation.sites[piece.site].source.clone();
            return vec![Node::Expression(Expression {
                source,
                span,
                piece: Some(self.keep_piece(piece)),
            })];
        }
        let site = piece.site;
        match self.run(scope, piece, Engine::nodes) {
            Ok(result) => self.nodes_of(result, site, depth),
            // All pieces over this limit are left out, with one warning.
            Err(failed @ jsx::Failed::Pieces) => {
                let line = self.evaluation.sites[site].line;
                self.warn("mdx-script", line, failed.to_string());
                Vec::new()
            }
            Err(failed) => vec![self.left_out(Some(site), "", &failed.to_string())],
        }
    }

    /// Runs a piece in the engine, and notes the components that need a browser.
    fn run<T>(
        &mut self,
        scope: Scope,
        piece: Piece,
        call: impl FnOnce(&mut Engine, &str, &str) -> Result<Shown<T>, jsx::Failed>,
    ) -> Result<T, jsx::Failed> {
        let code = self.function(scope, piece);
        let module = self.file.clone();
        let engine = self.engine(&module).ok_or(jsx::Failed::NotStarted)?;
        let shown = call(engine, &module, &code)?;
        self.evaluation.interactive.extend(shown.interactive);
        Ok(shown.result)
    }

    /// Stores a piece for the component that contains it; returns its number.
    pub(super) fn keep_piece(&mut self, piece: Piece) -> usize {
        self.evaluation.pieces.push(piece);
        self.evaluation.pieces.len() - 1
    }

    /// Evaluates the value of an attribute; `None` if that fails.
    pub(super) fn attribute_value(
        &mut self,
        scope: Scope,
        piece: Piece,
        depth: usize,
    ) -> Option<Value> {
        let site = piece.site;
        match self.run(scope, piece, Engine::value) {
            Ok(result) => self.value_from(result, site, depth),
            Err(failed) => {
                self.report_failure(Some(site), "", &failed.to_string());
                None
            }
        }
    }

    /// Returns the code of a piece as a function of the names that it uses.
    fn function(&mut self, scope: Scope, piece: Piece) -> String {
        let module = self.file.clone();
        self.load_module(&module, false);
        let names = self.names_of(&module);
        let (used, others): (Vec<_>, Vec<_>) = piece
            .free
            .into_iter()
            .filter(|name| names.contains(name) || !is_known(name))
            .partition(|name| names.contains(name));
        let mut code = format!("(function ({RUNTIME}, {{ {} }}) {{\n", used.join(", "));
        if let Some(props) = self.scopes.props(scope) {
            let props = Value::Object(props.to_vec());
            let props = self.literal(props);
            code += &format!("const props = {props};\n");
            code += &from_props(&others);
        }
        code += &format!("return {};\n}})", piece.code);
        code
    }

    /// Returns the engine, started and with a module; `None` if it cannot be started.
    fn engine(&mut self, module: &str) -> Option<&mut Engine> {
        self.load_module(module, false);
        self.start_engine()
    }

    fn start_engine(&mut self) -> Option<&mut Engine> {
        let evaluation = &mut self.evaluation;
        if evaluation.engine.is_none() && !evaluation.is_unavailable {
            evaluation.engine = Engine::start(component::components()).ok();
            evaluation.is_unavailable = evaluation.engine.is_none();
        }
        evaluation.engine.as_mut()
    }

    fn names_of(&self, module: &str) -> Rc<BTreeSet<Box<str>>> {
        let known = self.evaluation.names.get(module);
        known.map(Rc::clone).unwrap_or_default()
    }

    /// Gives a module and all that it imports to the engine; `shows` tells whether the text of a
    /// Markdown file is used as a component.
    fn load_module(&mut self, path: &str, shows: bool) {
        let mut waiting: Vec<(Box<str>, bool)> = vec![(path.into(), shows)];
        while let Some((path, shows)) = waiting.pop() {
            let is_file = is_markdown(&path);
            if self.evaluation.modules.contains(&path) && !(shows && is_file) {
                continue;
            }
            // A file whose text is shown is another module for the engine.
            let key = match shows && is_file {
                true => shown_key(&path),
                false => path.clone(),
            };
            if self.evaluation.modules.len() >= MODULES_MAX
                || !self.evaluation.modules.insert(key.clone())
            {
                continue;
            }
            let Some((module, code)) = self.compiled_file(&path, shows) else {
                continue;
            };
            let mut imports = serde_json::Map::new();
            for (from, names) in &module.imports {
                if &**from == "react" {
                    imports.insert(from.to_string(), "react".into());
                    continue;
                }
                let Some(file) = resolve(&path, from, self.load) else {
                    continue;
                };
                let shows =
                    is_markdown(&file) && (names.contains("default") || names.contains("*"));
                let key = match shows {
                    true => shown_key(&file),
                    false => file.as_str().into(),
                };
                imports.insert(from.to_string(), key.to_string().into());
                waiting.push((file.into(), shows));
            }
            self.evaluation
                .names
                .insert(key.clone(), Rc::new(module.names.clone()));
            let added = match self.start_engine() {
                Some(engine) => engine.add(&key, &code, &imports),
                None => return,
            };
            if let Err(failed) = added {
                let message = format!("`{path}` cannot be evaluated: {failed}");
                self.warn("mdx-script", 1, message);
            }
        }
    }

    /// Compiles a file; `None` if there is none.
    fn compiled_file(&mut self, path: &str, shows: bool) -> Option<(Rc<compile::Module>, Rc<str>)> {
        if *path == *self.files[0] {
            let mut module = compile::Module::default();
            let statements: Vec<_> = self.module.iter().map(|one| one.source.clone()).collect();
            for source in statements {
                if self.charge_script(&source) {
                    // Statements that cannot be read were reported when the page was read.
                    let _is_broken = compile::statements(&source, "page.tsx", &mut module);
                }
            }
            let code = module.code().into();
            return Some((Rc::new(module), code));
        }
        let text = (self.load)(path).filter(|text| text.len() <= PAGE_BYTES_MAX)?;
        if !self.charge_script(&text) {
            return None;
        }
        if !is_markdown(path) {
            return Some(self.compiled_script(path, &text));
        }
        let (head, body) = text.split_at(frontmatter_end(&text));
        let (body, shifts) = clean(body);
        let origin = Arc::new(Origin {
            file: self.number_of(path),
            start: head.len(),
            shifts,
            line: 1 + lines(head),
            line_ends: line_ends(&body),
        });
        let Ok(statements) = module::find(&body, &mut self.lookahead) else {
            self.reject(Rejected::Unclosed);
            return None;
        };
        let mut module = compile::Module::default();
        for range in &statements {
            let _is_broken = compile::statements(&body[range.clone()], "page.tsx", &mut module);
        }
        if shows {
            let outer = self.enter(path.into(), origin);
            let count = self.scopes.len();
            let scope = self.scopes.add(None);
            self.evaluation.inside += 1;
            let outside = std::mem::replace(&mut self.evaluation.is_showing_file, true);
            let nodes = self.file(&body, 0, scope, DEPTH_MAX / 2);
            self.evaluation.is_showing_file = outside;
            self.evaluation.inside -= 1;
            let mut free = BTreeSet::new();
            let parts = self.parts(nodes, 0, &mut free);
            self.leave(outer);
            self.scopes.truncate(count);
            free.retain(|name| !module.names.contains(name) && !is_known(name));
            let names: Vec<_> = free.into_iter().collect();
            module.body += &format!(
                "function _content$(props) {{\n{}return [{}];\n}}\n",
                from_props(&names),
                parts.join(",\n")
            );
            module.exports.push(("default".into(), "_content$".into()));
        }
        let code = module.code().into();
        Some((Rc::new(module), code))
    }

    /// Compiles a script, unless this thread has already done it for another page.
    fn compiled_script(&mut self, path: &str, text: &Arc<str>) -> (Rc<compile::Module>, Rc<str>) {
        let known = COMPILED.with_borrow(|compiled| {
            let found = compiled
                .iter()
                .find(|one| *one.path == *path && one.text == *text);
            found.map(|one| (Rc::clone(&one.module), Rc::clone(&one.code)))
        });
        if let Some(known) = known {
            return known;
        }
        let mut module = compile::Module::default();
        if path.ends_with(".json") {
            module = compile::Module::json(text);
        } else if let Err(broken) = compile::statements(text, path, &mut module) {
            let at = text.floor_char_boundary(broken.at);
            let outer = self.enter(path.into(), Arc::clone(&self.origin));
            let message = format!("JavaScript cannot be read here: {}", broken.message);
            self.warn("mdx-syntax", 1 + lines(&text[..at]), message);
            self.leave(outer);
            return (Rc::new(module.clone()), module.code().into());
        }
        let code: Rc<str> = module.code().into();
        let module = Rc::new(module);
        COMPILED.with_borrow_mut(|compiled| {
            if compiled.len() >= COMPILED_MAX {
                compiled.remove(0);
            }
            compiled.push(Compiled {
                path: path.into(),
                text: Arc::clone(text),
                module: Rc::clone(&module),
                code: Rc::clone(&code),
            });
        });
        (module, code)
    }

    /// Reports a part that failed.
    fn report_failure(&mut self, site: Option<usize>, component: &str, reason: &str) {
        let site = site
            .and_then(|site| self.evaluation.sites.get(site))
            .cloned();
        let (file, line, source) = match site {
            Some(site) => (site.file, site.line, site.source),
            None => (self.file.clone(), 1, "".into()),
        };
        let what = match component.is_empty() {
            true => format!("`{}`", short(&source)),
            false => format!("the component `{component}`"),
        };
        let reason = reason.trim().trim_end_matches('.');
        let reason = reason.lines().next().unwrap_or_default();
        let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
        let message = format!("{what} cannot be evaluated: {reason}");
        let outer = std::mem::replace(&mut self.file, file);
        self.warn("mdx-script", line, message);
        self.file = outer;
    }

    /// Reports a part that failed; returns the note in its place.
    pub(super) fn left_out(&mut self, site: Option<usize>, component: &str, reason: &str) -> Node {
        self.report_failure(site, component, reason);
        let site = site.and_then(|site| self.evaluation.sites.get(site));
        Node::Expression(Expression {
            source: site.map(|site| site.source.clone()).unwrap_or_default(),
            span: site.map_or(Span::NONE, |site| site.span),
            piece: None,
        })
    }
}

/// Returns the declaration of names that a Markdown file takes from its props.
fn from_props(names: &[Box<str>]) -> String {
    let names: Vec<_> = names.iter().filter(|name| &***name != "props").collect();
    match names.is_empty() {
        true => String::new(),
        false => {
            let list: Vec<&str> = names.iter().map(|name| &***name).collect();
            format!("const {{ {} }} = props;\n", list.join(", "))
        }
    }
}

/// Returns whether a name has a value without a module.
fn is_known(name: &str) -> bool {
    jsx::is_global(name) || component::components().any(|known| known == name) || name == "Tree"
}

/// Returns the name of the module whose default export shows a Markdown file.
fn shown_key(path: &str) -> Box<str> {
    format!("{path}#shown").into()
}

/// Returns whether a file is Markdown and not a script.
pub(super) fn is_markdown(path: &str) -> bool {
    path.ends_with(".mdx") || path.ends_with(".md")
}
