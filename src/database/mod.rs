//! PostgreSQL: connections with limits, what a server promises, and schemas with versions.
//!
//! A [`Schema`] is a set of tables of this program in a schema of the database, with the service
//! that it belongs to. A [`Link`] is one connection; a [`Session`] is a connection that is made
//! again when it is lost, with transactions that are repeated where that is right.
//!
//! Everything here blocks.
//!
//! Sources: PostgreSQL, "Explicit Locking", "Transaction Isolation", "Reliability".

#[cfg(test)]
pub(crate) mod cluster;
mod config;
mod error;
mod link;
mod promises;
mod rejection;
mod session;
#[cfg(test)]
pub(crate) mod testing;
mod tls;
mod value;

pub use config::Config;
pub use error::DatabaseError;
pub(crate) use link::{Link, was_in_the_way};
pub(crate) use promises::{Promises, check_schema, init, migrate};
pub use rejection::Rejection;
pub(crate) use session::{Connect, Failure, READ, Repeat, Session, WRITE};
pub(crate) use value::{Cell, Cells, Value, stored};

/// Tables of this program in a schema of the database.
#[derive(Debug)]
pub struct Schema {
    /// The name of the schema in the database.
    pub name: &'static str,
    /// What it holds, for messages: `queue` or `store`.
    pub holds: &'static str,
    /// The section of the configuration.
    pub section: &'static str,
    /// The version of the tables that this program writes.
    pub version: u32,
    /// The lowest version whose programs may use these tables.
    pub compatible: u32,
    /// The statements that make the tables.
    pub script: &'static str,
    /// The statements that raise older tables by one version each, from version 1 on.
    pub raises: &'static [&'static str],
}
