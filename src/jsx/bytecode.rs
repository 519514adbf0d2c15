//! The compiled script that prepares an engine for the JavaScript of a page.
//!
//! Each page has an engine of its own. Reading the text of the script took most of the time in
//! which an engine starts, so a process reads it once, in an engine that runs nothing, and keeps
//! the bytecode. All engines load the same bytes, so the memory that a page may still request is
//! the same for every page.

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
    // The script awaits nothing, so it has ended.
    let (module, _ended) = module.eval()?;
    module.get("default")
}

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
