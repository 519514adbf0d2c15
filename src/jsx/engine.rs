//! Runs the JavaScript of one page.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rquickjs::{
    CatchResultExt as _, CaughtError, Context, Ctx, Function, Object, Persistent, Runtime,
};

use super::allocator::{Allocated, Counting};
use super::bytecode;
use super::output::{Output, Shown, Value};
use super::{
    ALLOCATED_BYTES_MAX, ALLOCATION_BYTES_MAX, DEPTH_MAX, EFFECT_RENDERS_MAX, JSON_DEPTH_MAX,
    MEMORY_BYTES_MAX, NODES_MAX, OUTPUT_CHARS_MAX, PIECE_ALLOCATED_BYTES_MAX, PIECE_STEPS_MAX,
    PIECE_WORK_MAX, PIECES_MAX, PROTOTYPES_MAX, PROXIES_MAX, RENDERS_MAX, STACK_BYTES_MAX,
    STEPS_MAX, TEXTS, TITLES, WORK_MAX,
};

/// The global names of ECMAScript that pages can use.
const GLOBALS: [&str; 43] = [
    "AggregateError",
    "Array",
    "Boolean",
    "Date",
    "Error",
    "EvalError",
    "Function",
    "Infinity",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Set",
    "String",
    "Symbol",
    "SyntaxError",
    "TypeError",
    "URIError",
    "WeakMap",
    "WeakSet",
    "atob",
    "btoa",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "globalThis",
    "isFinite",
    "isNaN",
    "parseFloat",
    "parseInt",
    "undefined",
    "unescape",
];
/// Further global names: what the prelude adds, and the names of React without an import.
const ADDED: [&str; 15] = [
    "BroadcastChannel",
    "Children",
    "Fragment",
    "Intl",
    "React",
    "cloneElement",
    "console",
    "createContext",
    "createElement",
    "forwardRef",
    "isValidElement",
    "localStorage",
    "memo",
    "sessionStorage",
    "structuredClone",
];

/// Returns whether a name has a value everywhere, unless a module declares it. Names of built-in
/// components are not among them.
#[must_use]
pub fn is_global(name: &str) -> bool {
    let is_hook = name
        .strip_prefix("use")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    is_hook || GLOBALS.contains(&name) || ADDED.contains(&name)
}

/// How many steps are between two calls of the interrupt handler; QuickJS-ng 0.16,
/// `JS_INTERRUPT_COUNTER_INIT`.
const STEPS_PER_INTERRUPT: u64 = 10_000;
/// How many bytes of stack the program needs besides the stack of the engine.
const OWN_STACK_BYTES: usize = 512 << 10;

/// Why a piece of a page has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failed {
    /// Over [`PIECES_MAX`].
    #[error("the page has more than {PIECES_MAX} expressions and components")]
    Pieces,
    /// Over [`PIECE_STEPS_MAX`] or [`STEPS_MAX`].
    #[error("it takes more than {PIECE_STEPS_MAX} steps, or the page more than {STEPS_MAX}")]
    Steps,
    /// Over [`PIECE_ALLOCATED_BYTES_MAX`] or [`ALLOCATED_BYTES_MAX`].
    #[error(
        "it requests more than {PIECE_ALLOCATED_BYTES_MAX} bytes of memory, or the page more than \
         {ALLOCATED_BYTES_MAX}"
    )]
    Allocated,
    /// Over [`ALLOCATION_BYTES_MAX`].
    #[error("it needs more than {ALLOCATION_BYTES_MAX} bytes of memory at once")]
    Large,
    /// Over [`MEMORY_BYTES_MAX`].
    #[error("it needs more than {MEMORY_BYTES_MAX} bytes of memory")]
    Memory,
    /// It threw an error.
    #[error("{0}")]
    Threw(String),
    /// The engine could not be started.
    #[error("the engine could not be started")]
    NotStarted,
}

#[cfg(test)]
thread_local! {
    static STARTED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
}

/// Returns how many engines this thread has started.
#[cfg(test)]
pub(crate) fn engines_started() -> u32 {
    STARTED.get()
}

/// The counts of steps.
#[derive(Debug, Default)]
struct Steps {
    /// Interrupts since the page started.
    page: AtomicU64,
    /// Interrupts since the current piece started.
    piece: AtomicU64,
    is_over: AtomicBool,
}

/// Runs the JavaScript of one page.
pub struct Engine {
    // Values of the engine are dropped before it.
    run: Persistent<Function<'static>>,
    add: Persistent<Function<'static>>,
    context: Context,
    steps: Arc<Steps>,
    allocated: Arc<Allocated>,
    pieces: u32,
}

// === impl Steps ===

impl Steps {
    /// Counts an interrupt; returns whether a limit is exceeded.
    fn count(&self) -> bool {
        let page = 1 + self.page.fetch_add(1, Ordering::Relaxed);
        let piece = 1 + self.piece.fetch_add(1, Ordering::Relaxed);
        let is_over =
            page * STEPS_PER_INTERRUPT > STEPS_MAX || piece * STEPS_PER_INTERRUPT > PIECE_STEPS_MAX;
        if is_over {
            self.is_over.store(true, Ordering::Relaxed);
        }
        is_over
    }
}

// === impl Engine ===

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts an engine that knows these built-in components.
    ///
    /// # Errors
    ///
    /// [`Failed::NotStarted`] when there is no memory for it.
    pub fn start<'n>(components: impl Iterator<Item = &'n str>) -> Result<Self, Failed> {
        #[cfg(test)]
        STARTED.set(STARTED.get() + 1);
        let names: Vec<&str> = components.collect();
        let limits = serde_json::json!({
            "work": WORK_MAX,
            "pieceWork": PIECE_WORK_MAX,
            "allocation": ALLOCATION_BYTES_MAX,
            "memory": MEMORY_BYTES_MAX,
            "nodes": NODES_MAX,
            "depth": DEPTH_MAX,
            "jsonDepth": JSON_DEPTH_MAX,
            "prototypes": PROTOTYPES_MAX,
            "proxies": PROXIES_MAX,
            "bytes": OUTPUT_CHARS_MAX,
            "renders": RENDERS_MAX,
            "effectRenders": EFFECT_RENDERS_MAX,
            "titles": TITLES,
            "texts": TEXTS,
        });
        let (names, globals) = (serde_json::json!(names), serde_json::json!(&GLOBALS[..]));
        on_large_stack(|| {
            let not_started = |_: rquickjs::Error| Failed::NotStarted;
            let allocated = Arc::new(Allocated::default());
            let allocator = Counting(Arc::clone(&allocated));
            let runtime = Runtime::new_with_alloc(allocator).map_err(not_started)?;
            runtime.set_memory_limit(MEMORY_BYTES_MAX);
            runtime.set_max_stack_size(STACK_BYTES_MAX);
            let context = Context::full(&runtime).map_err(not_started)?;
            let steps = Arc::new(Steps::default());
            let (run, add) = context
                .with(|ctx| {
                    let value = |json: serde_json::Value| ctx.json_parse(json.to_string());
                    let arguments = (value(limits)?, value(names)?, value(globals)?);
                    let made: Object<'_> = bytecode::prelude(&ctx)?.call(arguments)?;
                    let run: Function<'_> = made.get("run")?;
                    let add: Function<'_> = made.get("add")?;
                    Ok((Persistent::save(&ctx, run), Persistent::save(&ctx, add)))
                })
                .map_err(not_started)?;
            let counted = (Arc::clone(&steps), Arc::clone(&allocated));
            let is_over = move || counted.0.count() || counted.1.is_over();
            runtime.set_interrupt_handler(Some(Box::new(is_over)));
            Ok(Self {
                run,
                add,
                context,
                steps,
                allocated,
                pieces: 0,
            })
        })
    }

    /// Adds a module. Its code runs when another module or a piece first uses it.
    ///
    /// # Errors
    ///
    /// When its code cannot be read.
    pub fn add(
        &mut self,
        path: &str,
        code: &str,
        imports: &serde_json::Map<String, serde_json::Value>,
    ) -> Result<(), Failed> {
        self.with(|ctx, engine| {
            let factory: Function<'_> = ctx.eval(code)?;
            let add = engine.add.clone().restore(ctx)?;
            let imports = serde_json::Value::from(imports.clone()).to_string();
            add.call::<_, ()>((path, factory, imports))
        })
    }

    /// Calls a piece of a page, which uses the names of a module, and returns what it shows. The code
    /// is a function of [`RUNTIME`](super::RUNTIME) and of an object with these names.
    ///
    /// # Errors
    ///
    /// When it fails as a whole.
    pub fn nodes(&mut self, module: &str, code: &str) -> Result<Shown<Vec<Output>>, Failed> {
        let json = self.call(module, code, false)?;
        on_large_stack(|| Shown::read(&json, Output::list)).ok_or_else(Failed::form)
    }

    /// Calls a piece of a page and returns its value, as the value of an attribute.
    ///
    /// # Errors
    ///
    /// When it fails as a whole.
    pub fn value(&mut self, module: &str, code: &str) -> Result<Shown<Value>, Failed> {
        let json = self.call(module, code, true)?;
        on_large_stack(|| Shown::read(&json, Value::read)).ok_or_else(Failed::form)
    }

    fn call(&mut self, module: &str, code: &str, is_value: bool) -> Result<String, Failed> {
        self.pieces += 1;
        if self.pieces > PIECES_MAX {
            return Err(Failed::Pieces);
        }
        self.with(|ctx, engine| {
            let piece: Function<'_> = ctx.eval(code)?;
            let run = engine.run.clone().restore(ctx)?;
            run.call::<_, String>((module, piece, is_value))
        })
    }

    fn with<T>(
        &mut self,
        call: impl FnOnce(&Ctx<'_>, &Self) -> rquickjs::Result<T>,
    ) -> Result<T, Failed> {
        self.steps.piece.store(0, Ordering::Relaxed);
        self.steps.is_over.store(false, Ordering::Relaxed);
        if self.steps.page.load(Ordering::Relaxed) * STEPS_PER_INTERRUPT > STEPS_MAX {
            return Err(Failed::Steps);
        }
        if !self.allocated.start_piece() {
            return Err(Failed::Allocated);
        }
        on_large_stack(|| {
            self.context.with(|ctx| {
                let result = call(&ctx, self).catch(&ctx);
                result.map_err(|caught| self.failed(&caught))
            })
        })
    }

    fn failed(&self, caught: &CaughtError<'_>) -> Failed {
        if self.steps.is_over.load(Ordering::Relaxed) {
            return Failed::Steps;
        }
        if self.allocated.is_over() {
            return Failed::Allocated;
        }
        let message = match caught {
            CaughtError::Exception(exception) => exception.message().unwrap_or_default(),
            CaughtError::Value(value) => match value.as_string().map(rquickjs::String::to_string) {
                Some(Ok(text)) => text,
                _ => "an error without a message".to_owned(),
            },
            CaughtError::Error(error) => error.to_string(),
        };
        match &*message {
            "out of memory" if self.allocated.is_large() => Failed::Large,
            "out of memory" => Failed::Memory,
            _ => Failed::Threw(message.chars().take(200).collect()),
        }
    }
}

// === impl Failed ===

impl Failed {
    /// The error for a result of another form: the page has changed values that the prelude needs.
    fn form() -> Self {
        Self::Threw("its result cannot be read".to_owned())
    }
}

fn on_large_stack<T>(call: impl FnOnce() -> T) -> T {
    let bytes = STACK_BYTES_MAX + OWN_STACK_BYTES;
    stacker::maybe_grow(bytes, bytes, call)
}
