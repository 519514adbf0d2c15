//! The process log, the metrics, the health of the parts of a process, and its panics.

mod health;
pub mod log_file;
pub mod logging;
mod metrics;
pub mod panics;
mod repeats;

pub use health::{Health, Part};
pub use metrics::{Family, Metrics, Route};
