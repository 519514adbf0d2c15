//! Renewal information: asks authorities when to renew certificates (RFC 9773).

use std::sync::Arc;
use std::time::Duration;

use instant_acme::CertificateIdentifier;

use super::{Done, Manager};
use crate::acme::authority::Authority;
use crate::acme::failure::{Cause, Failure};
use crate::acme::queue::Lane;
use crate::acme::schedule::Window;
use crate::acme::transport::{EXCHANGE, Exchange};
use crate::telemetry::panics;

/// How many questions for renewal information run at the same time.
const QUESTIONS_MAX: usize = 8;
/// RFC 9773 §4.3.2: shorter waits are taken for a minute, longer ones for a day.
const QUESTION_SECONDS: std::ops::RangeInclusive<u64> = 60..=86_400;

// === impl Manager ===

impl Manager {
    /// Asks authorities for the times of renewals.
    pub(super) fn begin_questions(&mut self, now: u64) {
        while self.questions < QUESTIONS_MAX {
            let Some((at, name)) = self.state.asks.first().cloned() else {
                return;
            };
            if at > now {
                return;
            }
            self.state.asks.pop_first();
            let held = self.ordered.exactly(&name);
            let Some(entry) = self.state.entries.get_mut(&name) else {
                continue;
            };
            entry.ask_at = None;
            let Some(held) = held else { continue };
            let authority = self.authorities.at(&held.authority).cloned();
            let id = held.leaf().and_then(|leaf| leaf.renewal_id);
            let (Some(authority), Some(id)) = (authority, id) else {
                // No authority can be asked.
                continue;
            };
            if !authority.budget().is_usable(now, Lane::Uncounted) {
                self.ask_again(
                    &name,
                    now + authority.budget().paused_until().saturating_sub(now).max(1),
                );
                continue;
            }
            self.questions += 1;
            self.running.spawn(async move {
                let exchange = Arc::new(Exchange::default());
                let asking = EXCHANGE.scope(Arc::clone(&exchange), ask(&authority, id, &exchange));
                let outcome = panics::caught(asking)
                    .await
                    .unwrap_or_else(|_panic| Err(Failure::new(Cause::Authority, "a panic")));
                Done::Question(name, held.id.clone(), outcome)
            });
        }
    }

    pub(super) fn answered(
        &mut self,
        name: &Arc<str>,
        id: &str,
        outcome: Result<(Window, Duration), Failure>,
        now: u64,
    ) {
        let longest = self.shared.config.renewal_info.as_secs();
        let result = match &outcome {
            Ok(_) => "answered",
            Err(_) => "failed",
        };
        self.metrics.renewal_info.with_label_values(&[result]).inc();
        let wait = match outcome {
            Ok((window, wait)) => {
                let is_same = self
                    .ordered
                    .exactly(name)
                    .is_some_and(|held| *held.id == *id);
                if is_same && let Some(entry) = self.state.entries.get_mut(name) {
                    entry.window = Some(window);
                }
                let wait = wait.as_secs();
                wait.clamp(*QUESTION_SECONDS.start(), *QUESTION_SECONDS.end())
            }
            Err(failure) => {
                log::debug!(target: "acme", name:% = &**name; "ask when to renew the certificate of {name}: {failure}");
                longest
            }
        };
        self.ask_again(name, now + wait.min(longest).max(1));
        self.reschedule(name);
    }

    fn ask_again(&mut self, name: &Arc<str>, at: u64) {
        if let Some(entry) = self.state.entries.get_mut(name) {
            if let Some(before) = entry.ask_at.replace(at) {
                self.state.asks.remove(&(before, Arc::clone(name)));
            }
            self.state.asks.insert((at, Arc::clone(name)));
        }
    }
}

/// Asks an authority when to renew a certificate.
async fn ask(
    authority: &Authority,
    (authority_key, serial): (String, String),
    exchange: &Exchange,
) -> Result<(Window, Duration), Failure> {
    let account = authority.account().await?;
    let id = CertificateIdentifier {
        authority_key_identifier: authority_key.into(),
        serial: serial.into(),
    };
    let asked = account.renewal_info(&id).await;
    let (info, wait) = asked.map_err(|error| Failure::of("ask when to renew", &error, exchange))?;
    let seconds = |time: i64| u64::try_from(time).unwrap_or(0);
    let window = Window {
        start: seconds(info.suggested_window.start.unix_timestamp()),
        end: seconds(info.suggested_window.end.unix_timestamp()),
    };
    Ok((window, wait))
}
