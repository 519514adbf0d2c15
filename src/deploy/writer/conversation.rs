//! The loop: a request, the calls of the model, their results, the next request.
//!
//! ```text
//! read … read ─▶ submit_plan ─▶ read … ─▶ submit_draft ─▶ problems ─▶ submit_draft ─▶ passed
//! ```
//!
//! It ends with a draft that has passed, or with the reason why there is none. Wrong calls are
//! answered with its mistakes, and counted: a model that makes too many is not asked on.

use bytes::Bytes;

use super::budget::{Budget, Ledger, Spent};
use super::client::{Client, Link};
use super::tool::{self, Library, SUBMIT_DRAFT, SUBMIT_PLAN};
use super::wire::{Call, End, Format, Message, Reply, Request, ToolResult};
use super::{Config, Failed, Key, Outcome, evaluation, prompt};
use crate::skills::Material;
use crate::skills::written::{self, Draft};

/// How many answers after each other may be useless: without a call, cut, or only with calls that are
/// wrong.
const USELESS_MAX: u32 = 4;
/// The most calls in one answer.
const CALLS_MAX: usize = 32;
/// How many problems of a draft the record shows.
const PROBLEMS_SHOWN: usize = 5;
/// The longest problem in the record, in characters.
const PROBLEM_CHARACTERS_MAX: usize = 240;

/// How a conversation ended, and what it cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The draft, or why there is none.
    pub outcome: Outcome,
    /// The tokens and the money that it cost.
    pub spent: Spent,
}

struct Conversation<'a> {
    material: &'a Material,
    config: &'a Config,
    library: Library<'a>,
    messages: Vec<Message>,
    /// The tasks of the plan; empty until there is one.
    tasks: Vec<String>,
    /// The file of the draft that has passed.
    file: String,
    drafts: u32,
    useless: u32,
    /// The problems of the last draft.
    problems: Vec<String>,
}

/// Runs a conversation in which the model writes a skill.
#[must_use]
pub fn converse(
    config: &Config,
    key: &Key,
    budget: Budget,
    material: &Material,
    index: Bytes,
    link: &mut dyn Link,
) -> Report {
    let mut ledger = Ledger::new(config, budget);
    let mut conversation = Conversation {
        material,
        config,
        library: Library::new(material, index, config.limits.read_bytes),
        messages: vec![Message::User(prompt::task(material))],
        tasks: Vec::new(),
        file: String::new(),
        drafts: 0,
        useless: 0,
        problems: Vec::new(),
    };
    let written = conversation.run(key, &mut ledger, link);
    let uses = conversation.library.uses;
    link.line(format!(
        "generate: the model read {} parts of pages and {} operations, and searched {} times",
        uses.pages, uses.operations, uses.searches
    ));
    if written.is_ok() {
        let judged = (conversation.file.as_str(), conversation.tasks.as_slice());
        evaluation::evaluate(config, key, judged, &mut ledger, link);
    }
    let outcome = match written {
        Ok(draft) => Outcome::Draft(Box::new(draft)),
        Err(failed) => Outcome::Failed(failed),
    };
    Report {
        outcome,
        spent: ledger.spent(),
    }
}

// === impl Conversation ===

impl Conversation<'_> {
    fn run(
        &mut self,
        key: &Key,
        ledger: &mut Ledger<'_>,
        link: &mut dyn Link,
    ) -> Result<Draft, Failed> {
        let client = Client::new(self.config, key)?;
        let format = Format::of(self.config);
        let (system, tools) = (prompt::system(), tool::tools());
        loop {
            let request = |output_tokens| Request {
                system: &system,
                tools: &tools,
                messages: &self.messages,
                output_tokens,
            };
            // The length does not depend on the limit, apart from some digits.
            let length = format.body(request(self.config.limits.output_tokens)).len();
            let output_tokens = ledger
                .begin(length)
                .map_err(|failed| self.explain(self.unfinished(failed)))?;
            let body = format.body(request(output_tokens));
            let reply = client.ask(&body, ledger, link)?;
            if let Some(draft) = self.take(reply, &ledger.left_in_words(), link)? {
                return Ok(draft);
            }
            if ledger.left().is_zero() {
                return Err(self.explain(ledger.late()));
            }
        }
    }

    /// Takes an answer; the model is told what is `left`. Returns the draft if it has passed.
    fn take(
        &mut self,
        reply: Reply,
        left: &str,
        link: &mut dyn Link,
    ) -> Result<Option<Draft>, Failed> {
        match reply.end {
            End::Refused => return Err(Failed::last("the model declined to write")),
            End::Full => {
                let why = "the conversation is longer than the model can read";
                return Err(self.explain(Failed::last(why)));
            }
            End::Cut => {
                // An incomplete call cannot be answered, so nothing of it stays.
                self.count_useless("answers that are too long")?;
                self.say(prompt::CUT);
                return Ok(None);
            }
            End::Paused if reply.calls.is_empty() => {
                self.count_useless("pauses")?;
                self.messages.push(Message::Model(reply.raw));
                return Ok(None);
            }
            End::Paused | End::Done => {}
        }
        if reply.calls.is_empty() {
            self.count_useless("answers without a call")?;
            let is_empty = reply.raw.as_array().is_some_and(Vec::is_empty);
            if !is_empty {
                self.messages.push(Message::Model(reply.raw));
            }
            self.say(prompt::CALL_A_TOOL);
            return Ok(None);
        }
        let mut results = Vec::new();
        let mut is_useful = false;
        for (at, call) in reply.calls.into_iter().enumerate() {
            let id = call.id.clone();
            let answer = match at < CALLS_MAX {
                true => self.call(call, link)?,
                false => Err(format!("more than {CALLS_MAX} calls in one answer")),
            };
            let (text, is_error) = match answer {
                Ok(CallResult::Draft(draft)) => return Ok(Some(*draft)),
                Ok(CallResult::Text(text)) => (text, false),
                Err(why) => (why, true),
            };
            is_useful |= !is_error;
            results.push(ToolResult { id, text, is_error });
        }
        if let Some(last) = results.last_mut() {
            let corrections = self.config.limits.corrections.saturating_sub(self.drafts);
            last.text
                .push_str(&format!("\n\n(Left: {left}, {corrections} corrections.)"));
        }
        self.messages.push(Message::Model(reply.raw));
        self.messages.push(Message::Results(results));
        if is_useful {
            self.useless = 0;
        } else {
            self.count_useless("answers with only wrong calls")?;
        }
        Ok(None)
    }

    /// Adds a text of ours. Two texts that follow each other become one, because some servers want
    /// the sides to alternate.
    fn say(&mut self, text: &str) {
        match self.messages.last_mut() {
            Some(Message::User(last)) if last.ends_with(text) => {}
            Some(Message::User(last)) => {
                last.push_str("\n\n");
                last.push_str(text);
            }
            Some(Message::Results(results)) => {
                if let Some(last) = results.last_mut()
                    && !last.text.ends_with(text)
                {
                    last.text.push_str("\n\n");
                    last.text.push_str(text);
                }
            }
            _ => self.messages.push(Message::User(text.to_owned())),
        }
    }

    fn count_useless(&mut self, what: &str) -> Result<(), Failed> {
        self.useless += 1;
        if self.useless > USELESS_MAX {
            let why = format!("the model gave too many {what}");
            return Err(self.explain(Failed::last(why)));
        }
        Ok(())
    }

    fn call(
        &mut self,
        call: Call,
        link: &mut dyn Link,
    ) -> Result<Result<CallResult, String>, Failed> {
        let input = match call.input {
            Ok(input) => input,
            Err(why) => return Ok(Err(why)),
        };
        Ok(match call.name.as_str() {
            SUBMIT_PLAN => tool::plan(self.material, input).map(|plan| {
                self.tasks.clone_from(&plan.tasks);
                link.line(format!(
                    "generate: the model plans {} tasks from {} pages",
                    plan.tasks.len(),
                    plan.pages.len()
                ));
                CallResult::Text("The plan is noted. Write the draft.".to_owned())
            }),
            SUBMIT_DRAFT if self.tasks.is_empty() => {
                Err("submit the plan first, with `submit_plan`".to_owned())
            }
            SUBMIT_DRAFT => match tool::draft(input) {
                Ok(draft) => self.submit(draft, link)?,
                Err(why) => Err(why),
            },
            name => self.library.call(name, &input).map(CallResult::Text),
        })
    }

    /// Checks a draft.
    fn submit(
        &mut self,
        draft: Draft,
        link: &mut dyn Link,
    ) -> Result<Result<CallResult, String>, Failed> {
        self.drafts += 1;
        let problems = match written::check(self.material, &draft) {
            Ok(written) => {
                self.file = written.skill.text;
                return Ok(Ok(CallResult::Draft(Box::new(draft))));
            }
            Err(problems) => problems,
        };
        link.line(format!(
            "generate: draft {} is rejected: {}",
            self.drafts,
            shown(&problems)
        ));
        let text = format!(
            "The draft is rejected. Correct these problems and submit the whole draft again:\n- {}",
            problems.join("\n- ")
        );
        self.problems = problems;
        let allowed = self.config.limits.corrections;
        if self.drafts > allowed {
            let why = format!("no draft passed after {allowed} corrections");
            return Err(self.explain(Failed::last(why)));
        }
        // A rejected draft is an answer, not a wrong call.
        Ok(Ok(CallResult::Text(text)))
    }

    /// Makes a used budget no final failure if the model could still correct its draft: a later update
    /// asks again.
    fn unfinished(&self, failed: Failed) -> Failed {
        let may_correct = (1..=self.config.limits.corrections).contains(&self.drafts);
        Failed {
            is_final: failed.is_final && !may_correct,
            ..failed
        }
    }

    /// Adds the problems of the last draft to the reason of a failure.
    fn explain(&self, failed: Failed) -> Failed {
        if self.problems.is_empty() {
            return failed;
        }
        Failed {
            why: format!("{}; the last draft: {}", failed.why, shown(&self.problems)),
            ..failed
        }
    }
}

/// The result of a call.
enum CallResult {
    Text(String),
    /// The draft has passed.
    Draft(Box<Draft>),
}

/// Returns problems as one line of the record.
fn shown(problems: &[String]) -> String {
    let short =
        |problem: &String| -> String { problem.chars().take(PROBLEM_CHARACTERS_MAX).collect() };
    let mut shown: Vec<String> = problems.iter().take(PROBLEMS_SHOWN).map(short).collect();
    let more = problems.len().saturating_sub(PROBLEMS_SHOWN);
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    shown.join("; ")
}
