//! Why a database is not used.

/// Why a database is not used as a queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Wrong user or password, no such database, a missing permission.
    #[error("the database refuses access: {0}")]
    Access(String),
    /// The file with authorities cannot be used.
    #[error("`queue.postgres.ca_file` cannot be used: {0}")]
    Authorities(String),
    /// The schema is missing.
    #[error("the database has no queue; `waypost queue init` makes it")]
    NoSchema,
    /// The schema of that name is of another program.
    #[error(
        "the database has a schema `waypost_queue` that Waypost did not make; use another database"
    )]
    Foreign,
    /// The database has tables of another program.
    #[error(
        "the database has tables of another program, for example `{0}`; use a database without \
         other tables, or share it with `waypost queue init --shared`"
    )]
    OtherTables(String),
    /// The queue is of another service.
    #[error(
        "the queue in the database belongs to the service {found}, not to {ours} (`service.domain`)"
    )]
    OtherService {
        /// The service of the queue.
        found: String,
        /// The service of this configuration.
        ours: String,
    },
    /// An older program made the schema.
    #[error(
        "the queue has schema {found}, and this program needs {known}; `waypost queue migrate` raises it"
    )]
    Older {
        /// The version of the schema.
        found: u32,
        /// The version that this program needs.
        known: u32,
    },
    /// The server is too old.
    #[error("the server has PostgreSQL {0}; 14 or newer is needed")]
    OldServer(u64),
    /// The server cannot be written.
    #[error("the server is a standby, which cannot be written; name the primary, or all servers")]
    Standby,
    /// Acknowledged updates may be lost.
    #[error(
        "the server may lose acknowledged updates: {0}; change that, or set \
         `queue.postgres.require_durable: false`"
    )]
    NotDurable(String),
}
