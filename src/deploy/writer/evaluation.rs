//! A model evaluates a written skill. The evaluation is shown in the record of the update. The
//! skill is published whatever it says.
//!
//! The model gets the file and the tasks of the plan, and says for each task whether the file is
//! enough to carry it out. It gets one request, with the rest of the budget.

use serde::Deserialize;
use serde_json::json;

use super::budget::Ledger;
use super::client::{Client, Link};
use super::wire::{Format, Message, Request, Tool};
use super::{Config, Key, prompt};

const SUBMIT_EVALUATION: &str = "submit_evaluation";
/// The longest answer, in tokens.
const OUTPUT_TOKENS_MAX: u64 = 4000;
/// How many missing things the record shows.
const MISSING_SHOWN: usize = 5;
/// The longest text of the model in the record, in characters.
const CHARACTERS_MAX: usize = 200;

/// The judgement of a model.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct Evaluation {
    /// From 0 to 10.
    score: u8,
    tasks: Vec<TaskJudged>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
struct TaskJudged {
    is_enough: bool,
    #[serde(default)]
    missing: String,
}

/// Asks the configured model, if there is one, and adds its evaluation to the record.
pub(super) fn evaluate(
    config: &Config,
    key: &Key,
    (skill, tasks): (&str, &[String]),
    ledger: &mut Ledger<'_>,
    link: &mut dyn Link,
) {
    if config.evaluation_model.is_empty() {
        return;
    }
    let config = Config {
        model: config.evaluation_model.clone(),
        ..config.clone()
    };
    let line = match ask(&config, key, (skill, tasks), ledger, link) {
        Ok(evaluation) => evaluation.to_string(),
        Err(why) => format!("there is none: {why}"),
    };
    link.line(format!("generate: evaluation by {}: {line}", config.model));
}

fn ask(
    config: &Config,
    key: &Key,
    (skill, tasks): (&str, &[String]),
    ledger: &mut Ledger<'_>,
    link: &mut dyn Link,
) -> Result<Evaluation, String> {
    let client = Client::new(config, key).map_err(|failed| failed.why)?;
    let format = Format::of(config);
    let tools = [tool()];
    let messages = [Message::User(prompt::evaluation(skill, tasks))];
    let request = |output_tokens| Request {
        system: prompt::EVALUATION,
        tools: &tools,
        messages: &messages,
        output_tokens,
    };
    let length = format.body(request(OUTPUT_TOKENS_MAX)).len();
    let allowed = ledger.begin(length).map_err(|failed| failed.why)?;
    let body = format.body(request(allowed.min(OUTPUT_TOKENS_MAX)));
    let reply = client
        .ask(&body, ledger, link)
        .map_err(|failed| failed.why)?;
    let mut calls = reply.calls.into_iter();
    let call = calls.find(|call| call.name == SUBMIT_EVALUATION);
    let input = call.ok_or("the model submitted none")?.input?;
    let evaluation: Evaluation =
        serde_json::from_value(input).map_err(|_error| "the model submitted a wrong one")?;
    match evaluation.score {
        0..=10 => Ok(evaluation),
        _ => Err("the model submitted a wrong one".to_owned()),
    }
}

fn tool() -> Tool {
    let task = json!({
        "type": "object",
        "properties": {
            "is_enough": { "type": "boolean", "description": "Whether an agent can carry out the task with this file alone." },
            "missing": { "type": "string", "description": "What is missing, in a few words; empty if nothing is." },
        },
        "required": ["is_enough", "missing"],
    });
    Tool {
        name: SUBMIT_EVALUATION,
        description: "Submits the judgement. Call it once.",
        schema: json!({
            "type": "object",
            "properties": {
                "score": { "type": "integer", "minimum": 0, "maximum": 10, "description": "How useful the file is for an agent." },
                "tasks": { "type": "array", "items": task, "description": "One for each task, in their order." },
            },
            "required": ["score", "tasks"],
        }),
    }
}

// === impl Evaluation ===

impl std::fmt::Display for Evaluation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let enough = self.tasks.iter().filter(|task| task.is_enough).count();
        write!(
            f,
            "{} of 10; the file is enough for {enough} of {} tasks",
            self.score,
            self.tasks.len()
        )?;
        let missing = self.tasks.iter().map(|task| task.missing.trim());
        let missing: Vec<String> = missing
            .filter(|missing| !missing.is_empty())
            .take(MISSING_SHOWN)
            .map(|missing| missing.chars().take(CHARACTERS_MAX).collect())
            .collect();
        match missing.is_empty() {
            true => Ok(()),
            false => write!(f, "; missing: {}", missing.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn a_judgement_is_one_line() {
        let read = |value: Value| serde_json::from_value::<Evaluation>(value);
        let evaluation = read(json!({ "score": 7, "tasks": [
            { "is_enough": true, "missing": "" },
            { "is_enough": false, "missing": "how to refund" },
        ] }));
        assert_eq!(
            evaluation.unwrap().to_string(),
            "7 of 10; the file is enough for 1 of 2 tasks; missing: how to refund"
        );
        assert!(read(json!({ "score": -1, "tasks": [] })).is_err());
        assert!(read(json!({ "score": 3 })).is_err());
    }
}
