//! The process log and the metrics.

pub mod logging;
mod metrics;

pub use metrics::{Metrics, Route};
