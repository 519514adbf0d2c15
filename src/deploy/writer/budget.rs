//! The budget of a conversation: requests, tokens, money and time.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Failed;
use super::config::{Config, MILLIONTHS, Price};
use super::wire::Usage;

/// The fewest tokens of an answer with which asking makes sense.
const OUTPUT_TOKENS_MIN: u64 = 512;
/// How many bytes a token of a request has at least, in an estimate before the request.
const BYTES_OF_TOKEN_MIN: u64 = 3;
/// How many bytes a token has at most: a server that reports fewer tokens is not believed.
const BYTES_OF_TOKEN_MAX: u64 = 12;

/// Tokens and money that may be spent. An amount of 0 is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Tokens of input and output together; 0: any number.
    pub tokens: u64,
    /// Money; 0: any amount.
    pub cost: Price,
}

/// The tokens and the money that were spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Requests that were answered.
    pub requests: u64,
    /// Tokens of input.
    pub input: u64,
    /// Tokens of output.
    pub output: u64,
    /// Money.
    pub cost: Price,
}

/// The budget of a running conversation.
#[derive(Debug)]
pub(super) struct Ledger<'c> {
    config: &'c Config,
    budget: Budget,
    spent: Spent,
    steps: u32,
    deadline: Instant,
}

// === impl Spent ===

impl Spent {
    /// Returns the tokens of input and output.
    #[must_use]
    pub fn tokens(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds what another conversation spent.
    pub fn add(&mut self, other: Self) {
        self.requests = self.requests.saturating_add(other.requests);
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cost = Price(self.cost.0.saturating_add(other.cost.0));
    }
}

impl std::fmt::Display for Spent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            requests,
            input,
            output,
            cost,
        } = self;
        write!(
            f,
            "{requests} requests, {input} tokens in, {output} tokens out, cost {cost}"
        )
    }
}

// === impl Ledger ===

impl<'c> Ledger<'c> {
    pub(super) fn new(config: &'c Config, budget: Budget) -> Self {
        Self {
            config,
            budget,
            spent: Spent::default(),
            steps: 0,
            deadline: Instant::now() + config.limits.total,
        }
    }

    pub(super) fn spent(&self) -> Spent {
        self.spent
    }

    /// Returns the failure of a used budget. With less than an update usually may spend, another
    /// day may be enough.
    fn used_up(&self) -> Failed {
        let why = format!("the budget is used up: {}", self.spent);
        match self.budget == self.config.update {
            true => Failed::last(why),
            false => Failed::now(why),
        }
    }

    /// Returns how long the conversation may still take.
    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Says how much is left, for the model.
    pub(super) fn left_in_words(&self) -> String {
        let requests = self.config.limits.steps.saturating_sub(self.steps);
        let mut words = format!("{requests} requests");
        if self.budget.tokens > 0 {
            let tokens = self.budget.tokens.saturating_sub(self.spent.tokens());
            words.push_str(&format!(", {tokens} tokens of requests and answers"));
        }
        if self.budget.cost.0 > 0 {
            let used = u128::from(self.spent.cost.0) * 100 / u128::from(self.budget.cost.0);
            words.push_str(&format!(
                ", {}% of the money",
                100_u128.saturating_sub(used)
            ));
        }
        words
    }

    /// Begins a request of this many bytes. Returns how many tokens the answer may have.
    pub(super) fn begin(&mut self, request_bytes: usize) -> Result<u64, Failed> {
        let limits = &self.config.limits;
        if self.steps >= limits.steps {
            let why = format!("the model needed more than {} requests", limits.steps);
            return Err(Failed::last(why));
        }
        if self.left().is_zero() {
            return Err(self.late());
        }
        self.steps += 1;
        let input = (request_bytes as u64) / BYTES_OF_TOKEN_MIN;
        let mut output = limits.output_tokens;
        if self.budget.tokens > 0 {
            let left = self.budget.tokens.saturating_sub(self.spent.tokens());
            output = output.min(left.saturating_sub(input));
        }
        if self.budget.cost.0 > 0 {
            let left = self.budget.cost.0.saturating_sub(self.spent.cost.0);
            let left = left.saturating_sub(cost(input, self.config.price_input));
            if let Some(tokens) = u128::from(left)
                .saturating_mul(u128::from(MILLIONTHS))
                .checked_div(u128::from(self.config.price_output.0))
            {
                output = output.min(u64::try_from(tokens).unwrap_or(u64::MAX));
            }
        }
        if output < OUTPUT_TOKENS_MIN.min(limits.output_tokens) {
            return Err(self.used_up());
        }
        Ok(output)
    }

    /// Adds an answer.
    pub(super) fn add(&mut self, usage: Usage, request_bytes: usize, answer_bytes: usize) {
        let least = |bytes: usize| (bytes as u64) / BYTES_OF_TOKEN_MAX;
        let input = usage.input.max(least(request_bytes));
        let output = usage.output.max(least(answer_bytes));
        let price = |tokens, price| cost(tokens, price);
        let cost = price(input, self.config.price_input)
            .saturating_add(price(output, self.config.price_output));
        self.spent.requests += 1;
        self.spent.input = self.spent.input.saturating_add(input);
        self.spent.output = self.spent.output.saturating_add(output);
        self.spent.cost = Price(self.spent.cost.0.saturating_add(cost));
    }

    pub(super) fn late(&self) -> Failed {
        let seconds = self.config.limits.total.as_secs();
        Failed::last(format!("the model did not finish within {seconds} s"))
    }
}

/// Returns what tokens cost, in millionths, rounded up.
fn cost(tokens: u64, price: Price) -> u64 {
    let cost = u128::from(tokens) * u128::from(price.0);
    u64::try_from(cost.div_ceil(u128::from(MILLIONTHS))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> Config {
        Config {
            price_input: Price(3_000_000),
            price_output: Price(15_000_000),
            ..Config::default()
        }
    }

    #[test]
    fn an_answer_is_as_long_as_the_budget_pays() {
        let budget = Budget {
            tokens: 0,
            cost: Price(20_000),
        };
        let config = Config {
            update: budget,
            ..config()
        };
        let mut ledger = Ledger::new(&config, budget);
        // A thousand tokens of input cost 0.003; what is left pays 1133 tokens of output.
        assert_eq!(ledger.begin(3000), Ok(1133));
        let usage = Usage {
            input: 1000,
            output: 600,
        };
        ledger.add(usage, 3000, 100);
        assert_eq!(ledger.spent().cost, Price(12_000));
        let left = ledger.left_in_words();
        assert!(left.ends_with(" requests, 40% of the money"), "{left}");
        let refused = ledger.begin(3000).unwrap_err();
        assert!(refused.is_final && refused.why.starts_with("the budget is used up: 1 requests"));
    }

    #[test]
    fn a_server_that_reports_no_tokens_is_not_free() {
        let config = config();
        let budget = Budget {
            tokens: 2000,
            cost: Price(0),
        };
        let mut ledger = Ledger::new(&config, budget);
        assert_eq!(ledger.begin(3000), Ok(1000));
        ledger.add(Usage::default(), 12_000, 1200);
        let spent = ledger.spent();
        assert_eq!((spent.input, spent.output), (1000, 100));
        // An update may usually spend more.
        assert!(!ledger.begin(3000).unwrap_err().is_final);
    }
}
