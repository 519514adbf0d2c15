//! Values of statements and of rows.

use super::DatabaseError;

/// A value of a statement.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Text(&'a str),
    Bytes(&'a [u8]),
}

/// A value of a row.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Null,
    Integer(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// The values of a row, taken from the first to the last.
#[derive(Debug)]
pub(crate) struct Cells(std::vec::IntoIter<Cell>);

// === impl Value ===

impl From<Option<i64>> for Value<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Self::Null, Self::Integer)
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Self::Null, Self::Text)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Self::Integer(stored(number))
    }
}

// === impl Cells ===

impl Cells {
    pub(crate) fn new(cells: Vec<Cell>) -> Self {
        Self(cells.into_iter())
    }

    pub(crate) fn next_text(&mut self) -> Result<Option<String>, DatabaseError> {
        match self.0.next() {
            Some(Cell::Text(text)) => Ok(Some(text)),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected("text", other.as_ref())),
        }
    }

    pub(crate) fn next_number(&mut self) -> Result<Option<u64>, DatabaseError> {
        match self.0.next() {
            Some(Cell::Integer(number)) => u64::try_from(number)
                .map(Some)
                .map_err(|_negative| DatabaseError::Corrupt(format!("the number {number}"))),
            Some(Cell::Null) => Ok(None),
            other => Err(unexpected("a number", other.as_ref())),
        }
    }

    pub(crate) fn text(&mut self) -> Result<String, DatabaseError> {
        let text = self.next_text()?;
        text.ok_or_else(|| unexpected("text", Some(&Cell::Null)))
    }

    pub(crate) fn number(&mut self) -> Result<u64, DatabaseError> {
        let number = self.next_number()?;
        number.ok_or_else(|| unexpected("a number", Some(&Cell::Null)))
    }

    pub(crate) fn bytes(&mut self) -> Result<Vec<u8>, DatabaseError> {
        match self.0.next() {
            Some(Cell::Bytes(bytes)) => Ok(bytes),
            other => Err(unexpected("bytes", other.as_ref())),
        }
    }
}

fn unexpected(expected: &str, found: Option<&Cell>) -> DatabaseError {
    let found = match found {
        Some(Cell::Bytes(_)) => "bytes".to_owned(),
        found => format!("{found:?}"),
    };
    DatabaseError::Corrupt(format!("{found} where {expected} is expected"))
}

/// Converts a number for SQL, whose integers are signed; a larger one becomes the largest.
pub(crate) fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
