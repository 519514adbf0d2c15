//! Random histories: every backend shows the same of each.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// A step that both backends take.
#[derive(Clone, Debug)]
enum Step {
    Enqueue { project: u8, key: Option<u8> },
    Claim,
    Heartbeat { claim: usize },
    Finish { claim: usize, outcome: u8 },
    Wait { seconds: u64 },
    Revive { project: u8 },
    Cancel { project: u8 },
    Served { claim: usize },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4u8, proptest::option::of(0..3u8))
            .prop_map(|(project, key)| Step::Enqueue { project, key }),
        4 => Just(Step::Claim),
        2 => (0..8usize).prop_map(|claim| Step::Heartbeat { claim }),
        4 => (0..8usize, 0..4u8).prop_map(|(claim, outcome)| Step::Finish { claim, outcome }),
        3 => (1..60u64).prop_map(|seconds| Step::Wait { seconds }),
        1 => (0..4u8).prop_map(|project| Step::Revive { project }),
        1 => (0..4u8).prop_map(|project| Step::Cancel { project }),
        1 => (0..8usize).prop_map(|claim| Step::Served { claim }),
    ]
}

/// One backend, its claims, and its ids in the order in which they were made: the random
/// ids of two backends differ, their order does not.
struct Run<'q> {
    queue: &'q Queue,
    ids: Vec<StatusId>,
    claims: Vec<Claim>,
}

impl Run<'_> {
    /// Takes a step and says what could be seen of it, with ids by number.
    fn take(&mut self, step: &Step, now: u64) -> String {
        let name = |project: u8| format!("p{project}");
        match step {
            Step::Enqueue { project, key } => {
                // Two owners with two projects each.
                let owner = ["acme", "globex"][usize::from(project % 2)];
                let trigger = Trigger {
                    idempotency: key.map(|key| Digest::of(&[key])),
                    ..trigger_of(owner, &name(*project))
                };
                let enqueued = self.queue.enqueue(&trigger, at(now));
                match enqueued {
                    Ok(enqueued) => self.seen(&enqueued),
                    Err(error) => error.to_string(),
                }
            }
            Step::Revive { project } => {
                let revived = self.queue.revive(&super::project(&name(*project)), at(now));
                match revived {
                    Ok(Some(enqueued)) => self.seen(&enqueued),
                    Ok(None) => String::new(),
                    Err(error) => error.to_string(),
                }
            }
            Step::Cancel { project } => {
                let project = super::project(&name(*project));
                format!(
                    "{:?}",
                    self.queue.cancel(&project, "cancelled", at(now)).unwrap()
                )
            }
            Step::Claim => {
                let claim = self.queue.claim(&worker(), at(now)).unwrap();
                let text = claim.as_ref().map(|claim| {
                    let number = self.number(claim.id());
                    let update = &claim.update;
                    format!(
                        "{number} {} {} {}",
                        update.generation, claim.epoch, update.attempts
                    )
                });
                self.claims.extend(claim);
                format!("{text:?}")
            }
            Step::Heartbeat { claim } => match self.claims.get(*claim) {
                Some(claim) => {
                    format!(
                        "{:?}",
                        self.queue
                            .heartbeat(claim, Progress::default(), at(now))
                            .unwrap()
                    )
                }
                None => String::new(),
            },
            Step::Finish { claim, outcome } => match self.claims.get(*claim) {
                Some(claim) => {
                    let outcome = match outcome {
                        0 => published(),
                        1 => Outcome::Failure,
                        2 => Outcome::Retry,
                        _ => Outcome::GiveBack,
                    };
                    format!(
                        "{:?}",
                        self.queue.finish(claim, &outcome, "end", at(now)).unwrap()
                    )
                }
                None => String::new(),
            },
            Step::Served { claim } => {
                if let Some(claim) = self.claims.get(*claim) {
                    let fence = Fence {
                        generation: claim.update.generation,
                        epoch: claim.epoch,
                    };
                    let served = self.queue.served(claim.project(), fence, at(now));
                    served.unwrap();
                }
                format!("{:?}", self.queue.unseen().unwrap())
            }
            Step::Wait { .. } => String::new(),
        }
    }

    fn seen(&mut self, enqueued: &Enqueued) -> String {
        if !self.ids.contains(&enqueued.id) {
            self.ids.push(enqueued.id.clone());
        }
        format!("{} {}", self.number(&enqueued.id), enqueued.coalesced)
    }

    fn number(&self, id: &StatusId) -> usize {
        self.ids.iter().position(|known| known == id).unwrap()
    }

    /// What a caller can read of all updates.
    fn records(&self) -> Vec<(Status, u32, [Option<Timestamp>; 2], usize)> {
        let read = |id| {
            let record = record(self.queue, id);
            let shown = record.leader.as_deref().unwrap_or(&record.update).clone();
            (
                record.status(),
                shown.attempts,
                [shown.ended_at(), record.visible_at()],
                record.logs.len(),
            )
        };
        self.ids.iter().map(read).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_backend_behaves_as_the_model_does(steps in prop::collection::vec(step(), 1..60)) {
        let queues = queues(&Policy {
            waiting_max: 3,
            attempts_max: 2,
            // How much earlier or later is drawn from the id, and the backends' ids differ:
            // with a fifth more or less it is still after one second and before two.
            retry_delay_max: Duration::from_millis(1400),
            ..Policy::default()
        });
        let mut runs: Vec<_> = queues
            .iter()
            .map(|(queue, _)| Run { queue, ids: Vec::new(), claims: Vec::new() })
            .collect();
        let mut now = 0;
        let mut finals: Vec<(usize, Status)> = Vec::new();
        for step in &steps {
            if let Step::Wait { seconds } = step {
                now += seconds;
            }
            // Ids of one millisecond sort at random; time moves so that they do not.
            now += 1;
            let seen: Vec<_> = runs.iter_mut().map(|run| run.take(step, now)).collect();
            prop_assert_eq!(&seen[0], &seen[1], "{:?}", step);
            let records = runs[0].records();
            prop_assert_eq!(&records, &runs[1].records(), "{:?}", step);
            // U2: what has ended stays as it ended.
            for (number, status) in &finals {
                prop_assert_eq!(records[*number].0, *status);
            }
            finals = records.iter().map(|record| record.0).enumerate()
                .filter(|(_, status)| status.is_final()).collect();
        }
    }

    #[test]
    fn a_retry_delay_stays_within_a_fifth_of_its_schedule(attempts in 1u32..40, millis in 0u64..1 << 40) {
        let policy = Policy::default();
        let id = StatusId::generate(Timestamp::from_millis(millis)).unwrap();
        let delay = policy.retry_delay(&id, attempts);
        let plain = Duration::from_secs(5).saturating_mul(4u32.saturating_pow(attempts - 1))
            .min(policy.retry_delay_max);
        prop_assert!(delay >= plain * 8 / 10 && delay <= plain * 12 / 10);
    }
}
