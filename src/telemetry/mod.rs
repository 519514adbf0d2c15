//! What operators see of a running process: its log and its numbers.

pub mod logging;
mod metrics;

pub use metrics::{Metrics, Route};
