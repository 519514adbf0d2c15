//! Pages of lists: the parameters of a query, and the address of the next page.

use super::{ErrorResponse, error_response};
use crate::site::percent::{decode_utf8, encode_component};

/// How many items a page has if the query does not say.
const LIMIT: usize = 100;
/// The most items of a page.
const LIMIT_MAX: usize = 1000;
/// The longest value of a parameter, in bytes.
const VALUE_BYTES_MAX: usize = 256;
/// The longest name of a project.
const PROJECT_BYTES_MAX: usize = 128;

/// The parameters of a query.
#[derive(Debug)]
pub(super) struct Query {
    values: Vec<(String, String)>,
}

// === impl Query ===

impl Query {
    /// Reads a query: `name=value`, several joined by `&`.
    pub(super) fn parse(query: Option<&str>) -> Result<Self, ErrorResponse> {
        let mut values: Vec<(String, String)> = Vec::new();
        let parts = query.unwrap_or_default().split('&');
        for part in parts.filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let decoded = |text: &str| {
                let text = decode_utf8(text)?;
                (text.len() <= VALUE_BYTES_MAX).then(|| text.into_owned())
            };
            let (Some(name), Some(value)) = (decoded(name), decoded(value)) else {
                return Err(error_response(
                    400,
                    "a parameter of the query is too long or not UTF-8",
                ));
            };
            if values.iter().any(|(known, _)| *known == name) {
                let detail = format!("the parameter {name:?} of the query is repeated");
                return Err(error_response(400, &detail));
            }
            values.push((name, value));
        }
        Ok(Self { values })
    }

    /// Returns a parameter.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.values.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns a parameter that is the name of a project.
    pub(super) fn project(&self, name: &str) -> Result<Option<&str>, ErrorResponse> {
        match self.get(name) {
            Some(project) if project.len() > PROJECT_BYTES_MAX => {
                let detail = format!("the parameter {name:?} of the query is too long");
                Err(error_response(400, &detail))
            }
            project => Ok(project),
        }
    }

    /// Returns a parameter that is a number up to a limit.
    pub(super) fn number(&self, name: &str, max: u64) -> Result<Option<u64>, ErrorResponse> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let number = value.parse().ok().filter(|number| *number <= max);
        number.map(Some).ok_or_else(|| {
            let detail = format!("the parameter {name:?} of the query is not 0 to {max}");
            error_response(400, &detail)
        })
    }

    /// Returns how many items the page has.
    pub(super) fn limit(&self) -> Result<usize, ErrorResponse> {
        let limit = self.number("limit", u64::MAX)?.map(usize::try_from);
        match limit {
            None => Ok(LIMIT),
            Some(Ok(limit)) if (1..=LIMIT_MAX).contains(&limit) => Ok(limit),
            Some(_) => {
                let detail =
                    format!("the parameter \"limit\" of the query is not 1 to {LIMIT_MAX}");
                Err(error_response(400, &detail))
            }
        }
    }

    /// Returns how many items come before the page: the parameter `after`, up to a limit.
    pub(super) fn skip(&self, max: u64) -> Result<usize, ErrorResponse> {
        let skip = self.number("after", max)?.map_or(Ok(0), usize::try_from);
        Ok(skip.unwrap_or(usize::MAX))
    }

    /// Returns the address of the page after an item: the same query with another `cursor`.
    pub(super) fn next(&self, path: &str, cursor: &str, after: &str) -> String {
        let others = self.values.iter().filter(|(name, _)| name != cursor);
        let mut parts: Vec<String> = others
            .map(|(name, value)| format!("{}={}", encode_component(name), encode_component(value)))
            .collect();
        parts.push(format!("{cursor}={}", encode_component(after)));
        format!("{path}?{}", parts.join("&"))
    }
}
