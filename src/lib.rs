//! **Waypost**, the edge of a documentation platform.

pub mod clock;
pub mod digest;
pub mod diagnostic;
pub mod yaml;
pub mod telemetry;
pub mod frontmatter;
pub mod answer;
pub mod site;

pub mod source;
pub mod docs;
pub mod skills;

pub mod discovery;
pub mod render;
pub mod release;
pub mod build;

pub mod store;

pub mod index;
pub mod origin;

pub mod deploy;

pub mod gateway;
pub mod config;
pub mod cli;
