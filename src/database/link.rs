//! A connection to the database, and the tables behind it.
//!
//! Every wait has a limit: the server's for a statement and for a lock, and one of our own that is
//! longer, for a server that has stopped or cannot be reached.

use std::cell::{Cell as Flag, RefCell};
use std::collections::HashMap;
use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::TlsStream;
use tokio_postgres::types::{IsNull, ToSql, Type, private::BytesMut, to_sql_checked};
use tokio_postgres::{AsyncMessage, Client, Connection, NoTls, Row, SimpleQueryMessage, Statement};

use super::tls::Tls;
use super::{Cell, Cells, Config, DatabaseError, Rejection, Schema, Value};

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take longer than the server allows.
const GRACE: Duration = Duration::from_secs(5);
/// The time of the server in milliseconds since 1970.
const CLOCK: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/// A connection.
pub(crate) struct Link {
    runtime: Runtime,
    client: Client,
    statements: RefCell<HashMap<String, Statement>>,
    limit: Duration,
    /// Wakes the waiting thread when a `NOTIFY` arrives.
    notified: Arc<Notify>,
    /// An answer did not come in time. It may still come, so nothing else can be asked.
    is_late: Flag<bool>,
}

/// The database did not answer in time.
#[derive(Debug, thiserror::Error)]
#[error("the database does not answer")]
struct NoAnswer;

// === impl Link ===

impl Link {
    /// Connects, and sets the limits of the session.
    pub(crate) fn open(config: &Config, schema: &Schema) -> Result<Self, DatabaseError> {
        let mut server = config.server()?;
        server
            .application_name("waypost")
            .connect_timeout(CONNECT)
            .tcp_user_timeout(config.statement + GRACE);
        let tls = match config.tls {
            true => Some(Tls::new(config.ca_file.as_deref()).map_err(|error| {
                Rejection::Authorities {
                    section: schema.section,
                    why: error.to_string(),
                }
            })?),
            false => None,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(DatabaseError::unavailable)?;
        let notified = Arc::new(Notify::new());
        let hint = Arc::clone(&notified);
        let connecting = async {
            // The other end of the client: it runs while this runtime waits for an answer.
            Ok(match tls {
                Some(tls) => {
                    let (client, connection) = server.connect(tls).await?;
                    tokio::spawn(drive(connection, hint));
                    client
                }
                None => {
                    let (client, connection) = server.connect(NoTls).await?;
                    tokio::spawn(drive(connection, hint));
                    client
                }
            })
        };
        let client = runtime.block_on(async { tokio::time::timeout(CONNECT, connecting).await });
        let client = client
            .map_err(|_late| DatabaseError::unavailable(NoAnswer))?
            .map_err(|error| match certificate_error(&error) {
                Some(why) => Rejection::Certificate {
                    section: schema.section,
                    why,
                }
                .into(),
                None => failed(error),
            })?;
        let link = Self {
            runtime,
            client,
            statements: RefCell::default(),
            limit: config.statement + GRACE,
            notified,
            is_late: Flag::new(false),
        };
        let millis = config.statement.as_millis();
        link.batch(&format!(
            "SET search_path = {}; SET statement_timeout = {millis}; \
             SET lock_timeout = {millis}; SET idle_in_transaction_session_timeout = {millis}; \
             SET timezone = 'UTC'",
            schema.name
        ))?;
        Ok(link)
    }

    /// Returns whether nothing more can be asked.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_late.get() || self.client.is_closed()
    }

    fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, DatabaseError> {
        let answered = async { tokio::time::timeout(self.limit, answer).await };
        match self.runtime.block_on(answered) {
            Ok(answer) => answer.map_err(failed),
            Err(_late) => {
                self.is_late.set(true);
                Err(DatabaseError::unavailable(NoAnswer))
            }
        }
    }

    /// Waits until a `NOTIFY` arrives that this connection listens to, at most for a time. Returns
    /// whether one has arrived. Several that arrived before count as one.
    pub(crate) fn wait_for_notify(&self, time: Duration) -> bool {
        let notified = async { tokio::time::timeout(time, self.notified.notified()).await };
        self.runtime.block_on(notified).is_ok()
    }

    /// Runs statements without values.
    pub(crate) fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        self.wait(self.client.batch_execute(sql))
    }

    /// Begins a transaction and returns the time of the server, in milliseconds since 1970.
    pub(crate) fn begin(&self, begin: &str) -> Result<u64, DatabaseError> {
        let messages = self.wait(self.client.simple_query(&format!("{begin}; {CLOCK}")))?;
        let time = messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0)?.parse().ok(),
            _ => None,
        });
        time.ok_or_else(|| DatabaseError::Corrupt("the server's time is missing".to_owned()))
    }

    fn statement(&self, sql: &str) -> Result<Statement, DatabaseError> {
        if let Some(prepared) = self.statements.borrow().get(sql) {
            return Ok(prepared.clone());
        }
        let prepared = self.wait(self.client.prepare(&sql.replace('?', "$")))?;
        let mut statements = self.statements.borrow_mut();
        statements.insert(sql.to_owned(), prepared.clone());
        Ok(prepared)
    }

    /// Runs a statement and returns how many rows it changed. `?1` is the first value.
    pub(crate) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<usize, DatabaseError> {
        let statement = self.statement(sql)?;
        let changed = self.wait(self.client.execute_raw(&statement, values.iter()))?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    /// Runs a statement and returns its rows.
    pub(crate) fn rows(
        &self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Cells>, DatabaseError> {
        let statement = self.statement(sql)?;
        let values: Vec<_> = values
            .iter()
            .map(|value| value as &(dyn ToSql + Sync))
            .collect();
        let rows = self.wait(self.client.query(&statement, &values))?;
        rows.iter().map(|row| cells(row).map_err(failed)).collect()
    }

    /// Runs a statement that returns one row.
    pub(crate) fn one(&self, sql: &str, values: &[Value<'_>]) -> Result<Cells, DatabaseError> {
        let missing = || DatabaseError::Corrupt("a row is missing".to_owned());
        self.rows(sql, values)?
            .into_iter()
            .next()
            .ok_or_else(missing)
    }
}

/// Runs the connection of a client until it ends. Each `NOTIFY` wakes the waiting thread.
async fn drive<S, T>(mut connection: Connection<S, T>, notified: Arc<Notify>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: TlsStream + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
        if let AsyncMessage::Notification(_) = message {
            notified.notify_one();
        }
    }
    // The waiting thread wakes, and finds that the connection has ended.
    notified.notify_one();
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match *self {
            Self::Null => Ok(IsNull::Yes),
            Self::Integer(number) if *kind == Type::INT4 => {
                i32::try_from(number)?.to_sql(kind, out)
            }
            Self::Integer(number) => number.to_sql(kind, out),
            // PostgreSQL stores no NUL in a text, and a log may contain one.
            Self::Text(text) if text.contains('\0') => {
                text.replace('\0', "\u{fffd}").to_sql(kind, out)
            }
            Self::Text(text) => text.to_sql(kind, out),
            Self::Bytes(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT4, Type::INT8, Type::TEXT, Type::BYTEA].contains(kind)
    }

    to_sql_checked!();
}

fn cells(row: &Row) -> Result<Cells, tokio_postgres::Error> {
    let cell = |(column, description): (usize, &tokio_postgres::Column)| {
        let kind = description.type_();
        let cell = if *kind == Type::INT8 {
            row.try_get::<_, Option<i64>>(column)?.map(Cell::Integer)
        } else if *kind == Type::INT4 {
            let number = row.try_get::<_, Option<i32>>(column)?;
            number.map(|number| Cell::Integer(number.into()))
        } else if *kind == Type::BOOL {
            let flag = row.try_get::<_, Option<bool>>(column)?;
            flag.map(|flag| Cell::Integer(flag.into()))
        } else if *kind == Type::BYTEA {
            row.try_get::<_, Option<Vec<u8>>>(column)?.map(Cell::Bytes)
        } else {
            row.try_get::<_, Option<String>>(column)?.map(Cell::Text)
        };
        Ok(cell.unwrap_or(Cell::Null))
    };
    let cells = row.columns().iter().enumerate().map(cell);
    Ok(Cells::new(cells.collect::<Result<_, _>>()?))
}

/// Returns an error of the server as one of ours.
fn failed(error: tokio_postgres::Error) -> DatabaseError {
    let rejection = match error.code() {
        Some(code)
            if *code == SqlState::INVALID_PASSWORD
                || *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION
                || *code == SqlState::INSUFFICIENT_PRIVILEGE
                || *code == SqlState::INVALID_CATALOG_NAME =>
        {
            error.as_db_error().map(|found| found.message().to_owned())
        }
        _ => None,
    };
    match rejection {
        Some(message) => Rejection::Access(message).into(),
        None => DatabaseError::unavailable(error),
    }
}

/// Returns why the certificate of the server was not accepted; `None` for another error.
fn certificate_error(error: &tokio_postgres::Error) -> Option<String> {
    let tls = error.source()?.downcast_ref::<std::io::Error>()?;
    match tls.get_ref()?.downcast_ref()? {
        rustls::Error::InvalidCertificate(why) => Some(why.to_string()),
        _ => None,
    }
}

/// Returns whether another transaction was in the way, so that the same one may succeed now.
pub(crate) fn was_in_the_way(error: &DatabaseError) -> bool {
    let DatabaseError::Unavailable(source) = error else {
        return false;
    };
    let code = source
        .downcast_ref::<tokio_postgres::Error>()
        .and_then(tokio_postgres::Error::code);
    code.is_some_and(|code| {
        [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ]
        .contains(code)
    })
}
