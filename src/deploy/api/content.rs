//! The content of a request: a JSON object.

use serde_json::{Map, Number, Value};

use super::{ErrorResponse, Request, error_response};
use crate::response::{Problem, is_media_type};
use crate::syntax::{Data, Diagnostics, json};

/// The media type of records.
const RECORD: &str = "application/json";
/// RFC 7396: the media type of patches.
const PATCH: &str = "application/merge-patch+json";

/// Reads the content of a request: a record, or a patch of one. All mistakes of the text are in the
/// response.
pub(super) fn object(
    request: &Request<'_>,
    is_patch: bool,
) -> Result<Map<String, Value>, ErrorResponse> {
    let wanted = match is_patch {
        true => PATCH,
        false => RECORD,
    };
    let sent = request.content_type.unwrap_or_default();
    if !is_media_type(sent, wanted) {
        let sent = String::from_utf8_lossy(sent);
        let detail = format!("the content of this call is {wanted}, not {sent:?}");
        return Err(error_response(415, &detail));
    }
    let text = str::from_utf8(&request.content)
        .map_err(|_not_text| error_response(400, "the content is not UTF-8"))?;
    let mut diagnostics = Diagnostics::default();
    let file = diagnostics.files.add("content", text.into());
    let value = json::read(file, &mut diagnostics);
    let mistakes: Vec<String> = diagnostics
        .finish()
        .into_iter()
        .filter(crate::diagnostic::Diagnostic::is_error)
        .map(|diagnostic| match diagnostic.location {
            Some(at) => format!(
                "line {}, column {}: {}",
                at.line, at.column, diagnostic.message
            ),
            None => diagnostic.message.to_string(),
        })
        .collect();
    if !mistakes.is_empty() {
        return Err(Box::new(Problem::of_mistakes(400, mistakes).response()));
    }
    match value.map(|value| plain(&value.data)) {
        Some(Value::Object(members)) => Ok(members),
        _ => Err(error_response(400, "the content is not a JSON object")),
    }
}

/// Converts a value that was read without a mistake.
fn plain(data: &Data) -> Value {
    match data {
        Data::Null | Data::Unresolved => Value::Null,
        Data::Flag(flag) => (*flag).into(),
        Data::Number(text) => {
            let number: Option<Number> = text.parse().ok();
            number.map_or(Value::Null, Value::Number)
        }
        Data::Text(text) => (**text).into(),
        Data::List(items) => items.iter().map(|item| plain(&item.data)).collect(),
        Data::Map(members) => members
            .iter()
            .map(|member| (member.key.to_string(), plain(&member.value.data)))
            .collect(),
    }
}
