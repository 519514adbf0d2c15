//! `skill`: the skills, for clients that know only tools.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::arguments::Arguments;
use super::{BytesLeft, Called, Failure, Result, tokens_schema};
use crate::diagnostic::closest;
use crate::digest::Digest;
use crate::mcp::server::uri;
use crate::mcp::{Call, shortened};

/// How many tokens an answer has if the client does not say.
const TOKENS: usize = 10_000;
/// The room for the members of an answer beside the text: name, address, digest and positions.
const FRAME_BYTES: usize = 320;
/// How much text an answer has at least, in bytes.
const TEXT_BYTES_MIN: usize = 64;

pub(super) fn definition() -> (&'static str, &'static str, Value, Value) {
    (
        "Read a skill",
        "Returns a skill of {site}: instructions that tell how to do a task with it. Without a \
         name, lists the skills.",
        json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "The name of a skill."},
                "start": {"type": "integer", "minimum": 0, "description": "Where to begin, in bytes: `next` of an earlier answer."},
                "max_tokens": tokens_schema(TOKENS),
            },
        }),
        json!({
            "type": "object",
            "properties": {
                "skills": {"type": "array", "items": {"type": "object"}, "description": "All skills, as resources; without `name`."},
                "left_out": {"type": "integer", "description": "How many skills did not fit: raise `max_tokens`."},
                "name": {"type": "string"},
                "uri": {"type": "string"},
                "digest": {"type": "string", "description": "SHA-256 of the whole file."},
                "text": {"type": "string", "description": "Markdown."},
                "start": {"type": "integer"},
                "end": {"type": "integer"},
                "length": {"type": "integer"},
                "next": {"type": "integer", "description": "The `start` of the next part, if there is more."},
            },
        }),
    )
}

pub(super) fn call(call: &Call<'_>, arguments: &Arguments<'_>) -> Result<Called> {
    let budget = arguments.budget(TOKENS)?;
    let start = arguments.number("start", 0, 0..=usize::MAX)?;
    let name = arguments.text("name", 200)?.map(str::trim);
    let Some(name) = name.filter(|name| !name.is_empty()) else {
        return Ok(listed(call, budget));
    };
    let Some(skill) = call.server.skill(name) else {
        let names = call.server.skills.iter().map(|skill| skill.slug);
        return Err(Failure::Input(match closest(name, names.clone()) {
            Some(similar) => format!(
                "There is no skill {}. Did you mean {similar}?",
                shortened(name)
            ),
            None => format!(
                "There is no skill {}. There are: {}.",
                shortened(name),
                names.take(50).collect::<Vec<_>>().join(", ")
            ),
        }));
    };
    let text = String::from_utf8_lossy(skill.file);
    if start > text.len() {
        return Err(Failure::Input(format!(
            "`start` is {start}, but the skill has {} bytes.",
            text.len()
        )));
    }
    let start = text.floor_char_boundary(start);
    // The structured form is the longer one.
    let room = budget.saturating_sub(FRAME_BYTES).max(TEXT_BYTES_MIN);
    let fits = super::excerpt::fits_as_json(&text[start..], room);
    let part = super::excerpt::part(&text, start, fits);
    let shown = &text[part.clone()];
    let mut structured = json!({
        "name": skill.slug,
        "uri": uri(skill.slug),
        "digest": format!("sha256:{}", Digest::of(skill.file)),
        "text": shown,
        "start": part.start,
        "end": part.end,
        "length": text.len(),
    });
    let mut out = shown.to_owned();
    if part.end < text.len() {
        structured["next"] = json!(part.end);
        write!(
            out,
            "\n\n[For the rest, call skill with start = {}.]",
            part.end
        )
        .expect("a String takes every character");
    }
    Ok(Called::new(out, structured))
}

fn listed(call: &Call<'_>, budget: usize) -> Called {
    let mut room = BytesLeft::of(budget, FRAME_BYTES);
    let mut text = String::new();
    let mut skills = Vec::new();
    for skill in &call.server.skills {
        let described = skill.described();
        let description = described.get("description").and_then(Value::as_str);
        let description = description.unwrap_or_default().replace('\n', " ");
        let line = format!("- {}: {description}\n", skill.slug);
        if !room.take_or_fill(line.len(), described.to_string().len(), skills.is_empty()) {
            break;
        }
        text += &line;
        skills.push(described);
    }
    let left_out = call.server.skills.len() - skills.len();
    let mut structured = json!({ "skills": skills });
    if left_out > 0 {
        writeln!(text, "{left_out} more did not fit: raise max_tokens.")
            .expect("a String takes every character");
        structured["left_out"] = json!(left_out);
    }
    Called::new(text, structured)
}
