//! Why a database is not used.

/// Why a database is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// Wrong user or password, no such database, a missing permission.
    #[error("the database refuses access: {0}")]
    Access(String),
    /// The certificate of the server does not prove who the server is.
    #[error(
        "the certificate of the server is refused: {why}; it must have the name of the server in \
         `{section}.url`, and be signed by an authority in `{section}.ca_file`"
    )]
    Certificate {
        /// The section of the configuration.
        section: &'static str,
        /// The reason.
        why: String,
    },
    /// The file with authorities cannot be used.
    #[error("`{section}.ca_file` cannot be used: {why}")]
    Authorities {
        /// The section of the configuration.
        section: &'static str,
        /// The reason.
        why: String,
    },
    /// The schema is missing.
    #[error("the database has no {holds}; `waypost {holds} init` makes it")]
    NoSchema {
        /// The kind of data, or the promises, that are missing.
        holds: &'static str,
    },
    /// The schema of that name is of another program.
    #[error("the database has a schema `{schema}` that Waypost did not make; use another database")]
    Foreign {
        /// The name of the schema.
        schema: &'static str,
    },
    /// The database has tables of another program.
    #[error(
        "the database has tables of another program, for example `{table}`; use a database without \
         other tables, or share it with `waypost {holds} init --shared`"
    )]
    OtherTables {
        /// One of them.
        table: String,
        /// The kind of data whose tables were to be made.
        holds: &'static str,
    },
    /// The tables are of another service.
    #[error(
        "the {holds} in the database belongs to the service {found}, not to {ours} (`service.domain`)"
    )]
    OtherService {
        /// The kind of data in the tables.
        holds: &'static str,
        /// The service of the tables.
        found: String,
        /// The service of this configuration.
        ours: String,
    },
    /// An older program made the schema.
    #[error(
        "the {holds} has schema {found}, and this program needs {known}; `waypost {holds} migrate` raises it"
    )]
    Older {
        /// The kind of data in the tables.
        holds: &'static str,
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
        "the server may lose acknowledged updates: {gaps}; change that, or set \
         `{section}.require_durable: false`"
    )]
    NotDurable {
        /// The kind of data, or the promises, that are missing.
        gaps: String,
        /// The section of the configuration.
        section: &'static str,
    },
}
