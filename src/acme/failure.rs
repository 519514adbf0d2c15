//! Why an order failed, and who can correct it.

use std::fmt;
use std::time::Duration;

use instant_acme::{Error, Problem};

use super::transport::Exchange;

/// The longest text of an authority in a message, in characters.
const TEXT_CHARACTERS_MAX: usize = 400;
/// The prefix of the types of problems (RFC 8555 §6.7).
const PROBLEM: &str = "urn:ietf:params:acme:error:";

/// A failed order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Who has caused it.
    pub(super) cause: Cause,
    /// A sentence for the operator.
    pub(super) text: String,
    /// How long the authority asks to wait.
    pub(super) wait: Option<Duration>,
}

/// Who has caused a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The authority: it is down, or its answers make no sense. Another one may work.
    Authority,
    /// The account is not known to the authority any more.
    Account,
    /// A limit of the authority.
    Limit,
    /// No new order may begin now, so that the limits of the authority are kept.
    Budget,
    /// The authority has issued as many certificates for the domain or the name as it does in some
    /// days.
    Quota,
    /// The name: it does not lead here, or may not have a certificate.
    Name,
    /// The owner of the name does not let this authority issue certificates for it.
    Forbidden,
    /// The authority knows the certificate that the order replaces as replaced already.
    Replaced,
    /// The command of the operator, which sets the records of DNS-01.
    Command,
    /// This machine: its disk is full, or a secret cannot be encrypted.
    Ourselves,
}

// === impl Failure ===

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Failure {
    pub(super) fn new(cause: Cause, text: impl Into<String>) -> Self {
        Self {
            cause,
            text: text.into(),
            wait: None,
        }
    }

    /// Makes a failure that this machine has caused.
    pub(super) fn ours(text: impl Into<String>) -> Self {
        Self::new(Cause::Ourselves, text)
    }

    /// Returns whether the same may work later.
    pub(super) fn is_passing(&self) -> bool {
        !matches!(self.cause, Cause::Name | Cause::Forbidden | Cause::Replaced)
    }

    /// Converts an error, with the last answer of the authority.
    pub(super) fn of(act: &str, error: &Error, exchange: &Exchange) -> Self {
        let answered = exchange.last();
        let (cause, text) = match error {
            Error::Api(problem) => (cause_of(problem, answered.status), sentence_of(problem)),
            Error::Timeout(_) => (Cause::Authority, "it did not finish in time".to_owned()),
            Error::Unsupported(what) => (Cause::Authority, format!("it does not support {what}")),
            Error::Json(_) | Error::Str(_) => {
                let status = match answered.status {
                    0 => String::new(),
                    status => format!(" with status {status}"),
                };
                let text = format!(
                    "its answer{status} is not one of RFC 8555: {error}{}",
                    quoted(&answered.start)
                );
                (cause_of_status(answered.status), text)
            }
            error => (Cause::Authority, shortened(&error.to_string())),
        };
        Self {
            cause,
            text: format!("{act}: {text}"),
            wait: answered.wait,
        }
    }
}

/// Returns whether an authority reports an internal error (RFC 8555 §6.7).
pub(super) fn is_internal(error: &Error) -> bool {
    matches!(error, Error::Api(problem) if kind_of(problem) == "serverInternal")
}

/// Returns the name of a problem of RFC 8555; an empty text for others.
fn kind_of(problem: &Problem) -> &str {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    kind.strip_prefix(PROBLEM).unwrap_or_default()
}

fn cause_of_status(status: u16) -> Cause {
    match status {
        429 => Cause::Limit,
        _ => Cause::Authority,
    }
}

fn cause_of(problem: &Problem, status: u16) -> Cause {
    match kind_of(problem) {
        "rateLimited" => Cause::Limit,
        "accountDoesNotExist" => Cause::Account,
        "alreadyReplaced" => Cause::Replaced,
        "serverInternal"
        | "badNonce"
        | "badSignatureAlgorithm"
        | "userActionRequired"
        | "externalAccountRequired"
        | "invalidProfile"
        | "orderNotReady" => Cause::Authority,
        // The account was deactivated, if it comes with this status.
        "unauthorized" if status == 401 => Cause::Account,
        "" => match status {
            429 => Cause::Limit,
            0 | 500.. => Cause::Authority,
            _ => Cause::Name,
        },
        _ => Cause::Name,
    }
}

/// Returns the details of a problem and of its parts.
pub(super) fn sentence_of(problem: &Problem) -> String {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    let kind = kind.strip_prefix(PROBLEM).unwrap_or(kind);
    let mut text = problem.detail.clone().unwrap_or_default();
    for part in &problem.subproblems {
        text.push_str("; ");
        text.push_str(&part.to_string());
    }
    match (text.is_empty(), kind.is_empty()) {
        (true, true) => "it refused without a reason".to_owned(),
        (true, false) => kind.to_owned(),
        (false, true) => shortened(&text),
        (false, false) => format!("{} ({kind})", shortened(&text)),
    }
}

/// Returns a text without control characters, and not longer than a line of a log should be.
pub(super) fn shortened(text: &str) -> String {
    let characters = text.chars().take(TEXT_CHARACTERS_MAX);
    characters
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn quoted(start: &str) -> String {
    match start.is_empty() {
        true => String::new(),
        false => format!(", it begins with {:?}", shortened(start)),
    }
}
