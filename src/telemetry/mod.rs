//! The process log and the metrics.

mod health;
pub mod logging;
mod metrics;

pub use health::{Health, Part};
pub use metrics::{Metrics, Route};
