//! What the server promises: its version, whether acknowledged updates survive a power cut, and
//! whose tables it has.

use std::fmt;

use prometheus::IntGauge;

use super::link::Link;
use super::{Config, DatabaseError, Rejection, Schema};

/// The oldest version that is supported, as `server_version_num`.
const SERVER_MIN: u64 = 140_000;

/// The life of a database: it changes when a standby takes over, and when a dump or a backup to a
/// point in time is restored. A copy of all files of the server has the same life, and goes on from
/// an earlier state: the marks of single changes show that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// `None` if the user may not read it.
    history: Option<History>,
    /// The number of the database in its server. A database that is dropped and made again has
    /// another one.
    database: u64,
    /// The number of the table `identity`; 0 without tables. Tables that are dropped and restored
    /// in the same database have another one.
    tables: u64,
}

/// The history of a server: it changes when a standby takes over, and when a backup to a point in
/// time is restored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct History {
    system: String,
    timeline: u32,
}

/// What a server promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Promises {
    pub(crate) life: Life,
    version: u64,
    /// Why acknowledged updates may be lost; empty if they are durable.
    pub(crate) gaps: Vec<&'static str>,
    has_standby: bool,
}

// === impl Promises ===

impl Promises {
    /// Asks the server, and makes every commit of this session durable.
    ///
    /// # Errors
    ///
    /// [`Rejection`], if the server must not be used.
    pub(crate) fn ask(
        link: &Link,
        config: &Config,
        schema: &Schema,
    ) -> Result<Self, DatabaseError> {
        const SETTINGS: &str = "SELECT current_setting('server_version_num')::bigint, \
             pg_is_in_recovery(), current_setting('fsync'), current_setting('full_page_writes'), \
             current_setting('synchronous_commit'), current_setting('synchronous_standby_names')";
        let mut row = link.one(SETTINGS, &[])?;
        let version = row.number()?;
        if version < SERVER_MIN {
            return Err(Rejection::OldServer(version / 10_000).into());
        }
        if row.number()? != 0 {
            return Err(Rejection::Standby.into());
        }
        let (fsync, full_pages) = (row.text()?, row.text()?);
        let (commit, standbys) = (row.text()?, row.text()?);
        // Any session may set this one, so it is no reason to refuse.
        if !["on", "remote_apply"].contains(&&*commit) {
            link.batch("SET synchronous_commit = on")?;
        }
        let has_standby = !standbys.trim().is_empty();
        let mut gaps = Vec::new();
        if fsync != "on" {
            gaps.push("`fsync` is off");
        }
        if full_pages != "on" {
            gaps.push("`full_page_writes` is off");
        }
        if config.require_standby && !has_standby {
            gaps.push("`synchronous_standby_names` is empty, so it waits for no standby");
        }
        if config.require_durable && !gaps.is_empty() {
            let (gaps, section) = (gaps.join(", "), schema.section);
            return Err(Rejection::NotDurable { gaps, section }.into());
        }
        Ok(Self {
            life: Life::ask(link, schema)?,
            version,
            gaps,
            has_standby,
        })
    }

    /// Asks the server, and checks the tables, for a connection that is used. `durable` becomes 0 if
    /// the server is refused because it is not durable.
    ///
    /// # Errors
    ///
    /// If the server or its tables must not be used.
    pub(crate) fn confirmed(
        link: &Link,
        config: &Config,
        schema: &Schema,
        service: &str,
        durable: Option<&IntGauge>,
    ) -> Result<Self, DatabaseError> {
        let promises = Self::ask(link, config, schema).inspect_err(|error| {
            let is_refused = matches!(error, DatabaseError::Rejected(Rejection::NotDurable { .. }));
            if let (true, Some(durable)) = (is_refused, durable) {
                durable.set(0);
            }
        })?;
        check_schema(link, schema, service)?;
        Ok(promises)
    }

    /// Returns the timeline of the server; 0 if the user may not read it.
    pub(crate) fn timeline(&self) -> u32 {
        let history = self.life.history.as_ref();
        history.map_or(0, |history| history.timeline)
    }

    /// Returns whether a line about them is a warning.
    pub(crate) fn is_weak(&self) -> bool {
        !self.gaps.is_empty() || self.life.history.is_none()
    }
}

impl fmt::Display for Promises {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            life,
            version,
            gaps,
            has_standby,
        } = self;
        write!(f, "PostgreSQL {}", version / 10_000)?;
        match &life.history {
            Some(History { system, timeline }) => {
                write!(f, ", system {system}, timeline {timeline}")?;
            }
            None => f.write_str(
                ", a fail-over cannot be noticed: this user may call neither pg_control_system() \
                 nor pg_walfile_name()",
            )?,
        }
        f.write_str(match has_standby {
            true => ", waits for a standby",
            false => ", waits for no standby",
        })?;
        match gaps.is_empty() {
            true => f.write_str(", acknowledged updates are durable"),
            false => write!(f, ", ACKNOWLEDGED UPDATES MAY BE LOST: {}", gaps.join(", ")),
        }
    }
}

// === impl Life ===

impl Life {
    fn ask(link: &Link, schema: &Schema) -> Result<Self, DatabaseError> {
        let name = schema.name;
        let numbers = format!(
            "SELECT (SELECT oid::bigint FROM pg_database WHERE datname = current_database()), \
             coalesce(to_regclass('{name}.identity')::oid::bigint, 0)"
        );
        let mut row = link.one(&numbers, &[])?;
        Ok(Self {
            database: row.number()?,
            tables: row.number()?,
            history: History::ask(link)?,
        })
    }
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(History { system, timeline }) = &self.history {
            write!(f, "{system}/{timeline}/")?;
        }
        write!(f, "{}/{}", self.database, self.tables)
    }
}

// === impl History ===

impl History {
    fn ask(link: &Link) -> Result<Option<Self>, DatabaseError> {
        const LIFE: &str = "SELECT (SELECT system_identifier::text FROM pg_control_system()), \
             substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)";
        let mut row = match link.one(LIFE, &[]) {
            Ok(row) => row,
            // Some providers do not let a user call these functions.
            Err(DatabaseError::Rejected(Rejection::Access(_))) => return Ok(None),
            Err(error) => return Err(error),
        };
        let system = row.text()?;
        let timeline = row.text()?;
        let timeline = u32::from_str_radix(&timeline, 16)
            .map_err(|_invalid| DatabaseError::Corrupt(format!("the timeline {timeline:?}")))?;
        Ok(Some(Self { system, timeline }))
    }
}

/// Checks that the schema is ours, is of this service, and can be used by this program.
pub(crate) fn check_schema(
    link: &Link,
    schema: &Schema,
    service: &str,
) -> Result<(), DatabaseError> {
    let (holds, known) = (schema.holds, schema.version);
    match found_version(link, schema, service)? {
        None => Err(Rejection::NoSchema { holds }.into()),
        Some((found, _)) if found < known => Err(Rejection::Older {
            holds,
            found,
            known,
        }
        .into()),
        Some((found, compatible)) if compatible > known => Err(DatabaseError::Newer {
            holds,
            found,
            known,
        }),
        Some(_) => Ok(()),
    }
}

/// Returns the version of the schema and the lowest version whose programs may use it; `None`
/// without a schema.
fn found_version(
    link: &Link,
    schema: &Schema,
    service: &str,
) -> Result<Option<(u32, u32)>, DatabaseError> {
    let name = schema.name;
    let mut found = link.one(
        &format!(
            "SELECT to_regnamespace('{name}') IS NOT NULL, \
             to_regclass('{name}.identity') IS NOT NULL"
        ),
        &[],
    )?;
    let (has_schema, has_identity) = (found.number()? != 0, found.number()? != 0);
    match (has_schema, has_identity) {
        (false, _) => return Ok(None),
        (true, false) => return Err(Rejection::Foreign { schema: name }.into()),
        (true, true) => {}
    }
    let identity = format!("SELECT service, version, compatible FROM {name}.identity");
    let mut identity = link.one(&identity, &[])?;
    let owner = identity.text()?;
    if owner != service {
        return Err(Rejection::OtherService {
            holds: schema.holds,
            found: owner,
            ours: service.to_owned(),
        }
        .into());
    }
    let mut version = || -> Result<u32, DatabaseError> {
        let version = identity.number()?;
        u32::try_from(version)
            .map_err(|_large| DatabaseError::Corrupt(format!("the schema version {version}")))
    };
    Ok(Some((version()?, version()?)))
}

/// Raises the schema to the version of this program, in one transaction. Returns that version.
pub(crate) fn migrate(link: &Link, schema: &Schema, service: &str) -> Result<u32, DatabaseError> {
    let (holds, known) = (schema.holds, schema.version);
    // If two programs migrate at once, the second one waits, and finds the tables raised.
    link.batch("BEGIN")?;
    if found_version(link, schema, service)?.is_some() {
        link.batch(&format!(
            "LOCK TABLE {}.identity IN EXCLUSIVE MODE",
            schema.name
        ))?;
    }
    let found = match found_version(link, schema, service)? {
        Some((found, _)) if (1..known).contains(&found) => found,
        _ => {
            link.batch("ROLLBACK")?;
            return check_schema(link, schema, service).map(|()| known);
        }
    };
    let raised = usize::try_from(found - 1).unwrap_or(usize::MAX);
    for script in schema.raises.iter().skip(raised) {
        link.batch(script)?;
    }
    link.execute(
        "UPDATE identity SET version = ?1, compatible = ?2",
        &[u64::from(known).into(), u64::from(schema.compatible).into()],
    )?;
    link.batch("COMMIT")?;
    log::info!(target: "database", "the {holds} was raised from schema {found} to {known}");
    Ok(known)
}

/// Makes the schema. Returns `false` if the database has it already. A database with tables of
/// other programs is refused unless it is `shared`. `fill` writes the row of `identity`.
pub(crate) fn init(
    link: &Link,
    schema: &Schema,
    service: &str,
    shared: bool,
    fill: impl FnOnce(&Link) -> Result<(), DatabaseError>,
) -> Result<bool, DatabaseError> {
    const OTHERS: &str = "SELECT n.nspname || '.' || c.relname FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'p') \
         AND n.nspname !~ '^(pg_|waypost_queue_before_)' \
         AND n.nspname NOT IN ('information_schema', 'waypost_queue', 'waypost_store') \
         ORDER BY 1 LIMIT 1";
    if found_version(link, schema, service)?.is_some() {
        check_schema(link, schema, service)?;
        return Ok(false);
    }
    if let (false, Some(mut other)) = (shared, link.rows(OTHERS, &[])?.into_iter().next()) {
        return Err(Rejection::OtherTables {
            table: other.text()?,
            holds: schema.holds,
        }
        .into());
    }
    link.batch("BEGIN")?;
    link.batch(schema.script)?;
    fill(link)?;
    link.batch("COMMIT")?;
    Ok(true)
}
