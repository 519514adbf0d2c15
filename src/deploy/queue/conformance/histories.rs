//! Random histories: every back end behaves as the model does.

use std::time::Duration;

use proptest::prelude::*;

use super::model::Model;
use super::*;

/// A step that the back end and the model take.
#[derive(Clone, Debug)]
enum Step {
    Enqueue {
        project: u8,
        key: Option<u8>,
        /// Whether the project has moved to another owner.
        moved: bool,
    },
    Claim {
        idle: bool,
    },
    /// Claims with a clock that is ahead.
    ClaimAhead {
        seconds: u64,
    },
    CorrectTimes,
    EndLeases,
    Heartbeat {
        claim: usize,
    },
    RaiseGeneration {
        claim: usize,
        at_least: u64,
    },
    Finish {
        claim: usize,
        outcome: u8,
    },
    Wait {
        seconds: u64,
    },
    Requeue {
        project: u8,
    },
    Cancel {
        project: u8,
    },
    Served {
        claim: usize,
    },
    Sweep,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0..4u8, proptest::option::of(0..3u8), proptest::bool::weighted(0.2))
            .prop_map(|(project, key, moved)| Step::Enqueue { project, key, moved }),
        4 => any::<bool>().prop_map(|idle| Step::Claim { idle }),
        1 => (0..7200u64).prop_map(|seconds| Step::ClaimAhead { seconds }),
        1 => Just(Step::CorrectTimes),
        1 => Just(Step::EndLeases),
        2 => (0..8usize).prop_map(|claim| Step::Heartbeat { claim }),
        1 => (0..8usize, 0..9u64)
            .prop_map(|(claim, at_least)| Step::RaiseGeneration { claim, at_least }),
        4 => (0..8usize, 0..5u8).prop_map(|(claim, outcome)| Step::Finish { claim, outcome }),
        3 => (1..60u64).prop_map(|seconds| Step::Wait { seconds }),
        1 => (0..4u8).prop_map(|project| Step::Requeue { project }),
        1 => (0..4u8).prop_map(|project| Step::Cancel { project }),
        1 => (0..8usize).prop_map(|claim| Step::Served { claim }),
        1 => Just(Step::Sweep),
    ]
}

/// The queue under test, or the model.
#[derive(Clone, Copy)]
enum Subject<'q> {
    Queue(&'q Queue),
    Model(&'q Model),
}

/// Calls the same method of the queue or of the model.
macro_rules! call {
    ($run:expr, $method:ident ( $($argument:expr),* )) => {
        match $run.subject {
            Subject::Queue(queue) => queue.$method($($argument),*),
            Subject::Model(model) => model.$method($($argument),*),
        }
    };
}

/// One subject, its claims, and its ids in the order in which they were made: the random
/// ids of two subjects differ, their order does not.
struct Run<'q> {
    subject: Subject<'q>,
    ids: Vec<StatusId>,
    claims: Vec<Claim>,
}

/// The values that a caller and an operator can read after a step, with ids by number.
#[derive(Debug, PartialEq)]
struct Readable {
    /// `None` when the record was swept.
    records: Vec<Option<ReadableRecord>>,
    dead_letters: Vec<usize>,
    recent: Vec<Vec<usize>>,
    generations: Vec<u64>,
    depth: Depth,
}

#[derive(Debug, PartialEq)]
struct ReadableRecord {
    status: Status,
    attempts: u32,
    ended_at: Option<Timestamp>,
    visible_at: Option<Timestamp>,
    log_lines: usize,
}

impl<'q> Run<'q> {
    fn of(subject: Subject<'q>) -> Self {
        Self {
            subject,
            ids: Vec::new(),
            claims: Vec::new(),
        }
    }

    /// Takes a step and returns its result as text, with ids by number.
    fn take(&mut self, step: &Step, now: u64) -> String {
        match step {
            Step::Enqueue {
                project,
                key,
                moved,
            } => {
                // Two owners with two projects each.
                let owner = ["acme", "globex"][usize::from((project + u8::from(*moved)) % 2)];
                let trigger = Trigger {
                    idempotency: key.map(|key| Digest::of(&[key])),
                    ..trigger_of(owner, numbered(*project).as_str())
                };
                let enqueued = call!(self, enqueue(&trigger, at(now)));
                self.enqueued(enqueued.map(Some))
            }
            Step::Requeue { project } => {
                let enqueued = call!(self, requeue(&numbered(*project), at(now)));
                self.enqueued(enqueued)
            }
            Step::Cancel { project } => {
                let cancelled = call!(self, cancel(&numbered(*project), "cancelled", at(now)));
                format!("{:?}", cancelled.unwrap())
            }
            Step::Claim { .. } | Step::ClaimAhead { .. } => {
                let (owners, ahead) = match step {
                    Step::ClaimAhead { seconds } => (Owners::All, *seconds),
                    Step::Claim { idle: true } => (Owners::Idle, 0),
                    _ => (Owners::All, 0),
                };
                let claim = call!(self, claim(&worker(), owners, at(now + ahead))).unwrap();
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
            Step::Served { claim } => {
                if let Some(claim) = self.claims.get(*claim) {
                    let fence = Fence {
                        generation: claim.update.generation,
                        epoch: claim.epoch,
                    };
                    call!(self, record_served(claim.project(), fence, at(now))).unwrap();
                }
                format!("{:?}", call!(self, not_yet_visible()).unwrap())
            }
            Step::CorrectTimes => format!("{:?}", call!(self, correct_times(at(now))).unwrap()),
            Step::EndLeases => {
                let all_have_ended = |_: &WorkerId| true;
                format!(
                    "{:?}",
                    call!(self, end_leases(all_have_ended, at(now))).unwrap()
                )
            }
            Step::Sweep => format!("{:?}", call!(self, sweep(at(now))).unwrap()),
            Step::Wait { .. } => String::new(),
            Step::Heartbeat { claim }
            | Step::RaiseGeneration { claim, .. }
            | Step::Finish { claim, .. } => match self.claims.get(*claim).cloned() {
                Some(claim) => format!("{:?}", self.hold(step, claim, now)),
                None => String::new(),
            },
        }
    }

    /// Takes a step of a claim's holder.
    fn hold(&self, step: &Step, mut claim: Claim, now: u64) -> Held {
        let held = match step {
            Step::RaiseGeneration { at_least, .. } => {
                call!(self, raise_generation(&mut claim, *at_least))
            }
            Step::Finish { outcome, .. } => {
                let outcome = match outcome {
                    0 => published(),
                    1 => Outcome::Failure,
                    2 => Outcome::Retry,
                    3 => Outcome::RetryOnce,
                    _ => Outcome::LeaseReleased,
                };
                call!(self, finish(&claim, &outcome, "end", at(now)))
            }
            _ => call!(self, heartbeat(&claim, Progress::default(), at(now))),
        };
        held.unwrap()
    }

    fn enqueued(&mut self, enqueued: Result<Option<Enqueued>, QueueError>) -> String {
        match enqueued {
            Ok(Some(enqueued)) => {
                if !self.ids.contains(&enqueued.id) {
                    self.ids.push(enqueued.id.clone());
                }
                format!("{} {}", self.number(&enqueued.id), enqueued.coalesced)
            }
            Ok(None) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    fn number(&self, id: &StatusId) -> usize {
        self.ids.iter().position(|made| made == id).unwrap()
    }

    fn read(&self) -> Readable {
        let numbers = |updates: Vec<Update>| -> Vec<usize> {
            let ids = updates.iter().map(|update| self.number(&update.id));
            ids.collect()
        };
        let projects = || (0..4).map(numbered);
        Readable {
            records: self.ids.iter().map(|id| self.record(id)).collect(),
            dead_letters: numbers(call!(self, dead_letters(100)).unwrap()),
            recent: projects()
                .map(|project| numbers(call!(self, recent(&project, 100)).unwrap()))
                .collect(),
            generations: projects()
                .map(|project| call!(self, generation(&project)).unwrap())
                .collect(),
            depth: call!(self, depth()).unwrap(),
        }
    }

    fn record(&self, id: &StatusId) -> Option<ReadableRecord> {
        let record = call!(self, record(id)).unwrap()?;
        let shown = record.newer.as_deref().unwrap_or(&record.update);
        Some(ReadableRecord {
            status: record.status(),
            attempts: shown.attempts,
            ended_at: shown.ended_at(),
            visible_at: record.visible_at(),
            log_lines: record.logs.len(),
        })
    }
}

fn numbered(project_number: u8) -> ProjectId {
    project(&format!("p{project_number}"))
}

/// Takes the steps with a queue and with the model, and compares what can be read after each.
fn compare(
    open: impl Fn(&Policy) -> (Queue, tempfile::TempDir),
    steps: &[Step],
) -> Result<(), TestCaseError> {
    let policy = Policy {
        waiting_max: 3,
        attempts_max: 2,
        // The id decides up to a fifth of the delay, and the ids of the two subjects differ.
        // With every id this delay ends after one second and before two.
        retry_delay_max: Duration::from_millis(1400),
        retention: Duration::from_secs(120),
        logs_max: 2,
        idempotency: Duration::from_secs(60),
        ..Policy::default()
    };
    let (queue, _directory) = open(&policy);
    let model = Model::new(policy);
    let mut runs = [
        Run::of(Subject::Queue(&queue)),
        Run::of(Subject::Model(&model)),
    ];
    let mut now = 0;
    let mut ended: Vec<Option<Status>> = Vec::new();
    for step in steps {
        if let Step::Wait { seconds } = step {
            now += seconds;
        }
        // Ids of one millisecond sort at random; time moves so that they do not.
        now += 1;
        let results = runs.each_mut().map(|run| run.take(step, now));
        prop_assert_eq!(&results[0], &results[1], "{:?}", step);
        let read = runs[0].read();
        prop_assert_eq!(&read, &runs[1].read(), "{:?}", step);
        // U2: an update that has ended keeps its status.
        let statuses = read
            .records
            .iter()
            .map(|record| Some(record.as_ref()?.status));
        let statuses: Vec<_> = statuses.collect();
        for (before, after) in ended.iter().zip(&statuses) {
            if let (Some(before), Some(after)) = (before, after) {
                prop_assert_eq!(before, after);
            }
        }
        ended = statuses
            .into_iter()
            .map(|status| status.filter(|status| status.is_final()))
            .collect();
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    // Reading everything after each step takes longer from a server.
    #[test]
    fn postgres_behaves_like_the_model(steps in prop::collection::vec(step(), 20..60)) {
        compare(|policy| (database::queue(policy), tempfile::tempdir().unwrap()), &steps)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sqlite_behaves_like_the_model(steps in prop::collection::vec(step(), 1..60)) {
        compare(sqlite, &steps)?;
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
