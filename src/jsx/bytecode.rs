//! The compiled script that prepares an engine for the JavaScript of a page.
//!
//! Each page has an engine of its own. Compiling the script takes most of the start of an engine, so
//! a process compiles it once and keeps the bytecode. The first engine loads the bytecode as all
//! others do. So every engine has requested the same memory when its page begins, and the limits of
//! memory stop a page at the same point wherever it is built.

use std::sync::OnceLock;

use rquickjs::module::WriteOptions;
use rquickjs::{Context, Ctx, Function, Module, Runtime};

use super::STACK_BYTES_MAX;

const NAME: &str = "prelude";
const SOURCE: &str = include_str!("prelude.js");

/// Loads the script and returns its function.
///
/// # Errors
///
/// When there is no memory for it.
pub(super) fn prelude<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Function<'js>> {
    static BYTECODE: OnceLock<Vec<u8>> = OnceLock::new();
    let bytecode = match BYTECODE.get() {
        Some(bytecode) => bytecode,
        None => {
            let compiled = compile()?;
            BYTECODE.get_or_init(|| compiled)
        }
    };
    #[expect(
        unsafe_code,
        reason = "the engine, which is written in C, trusts the bytecode that it loads"
    )]
    // SAFETY: `compile` has made it in this process, with the same engine.
    let module = unsafe { Module::load(ctx.clone(), bytecode)? };
    // The script has no `await`, so it has already ended.
    let (module, _ended) = module.eval()?;
    module.get("default")
}

/// Compiles the script in an engine of its own, which does not run it.
fn compile() -> rquickjs::Result<Vec<u8>> {
    let runtime = Runtime::new()?;
    runtime.set_max_stack_size(STACK_BYTES_MAX);
    let options = WriteOptions {
        strip_source: true,
        strip_debug: true,
        ..WriteOptions::default()
    };
    Context::full(&runtime)?.with(|ctx| Module::declare(ctx, NAME, SOURCE)?.write(options))
}
