//! Random histories: every store behaves as the rules S1 to S5 say.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

const RELEASES: usize = 6;
/// How many releases before the current one a project keeps.
const KEPT: usize = 1;

/// One step of a history that several callers may have made.
#[derive(Clone, Copy, Debug)]
enum Step {
    Put {
        release: usize,
    },
    Promote {
        project: &'static str,
        release: usize,
        fence: Fence,
    },
    /// Whether the retention time has passed for everything that was put before.
    Sweep {
        late: bool,
    },
    Forget {
        project: &'static str,
    },
}

/// The result of a step.
#[derive(Debug, PartialEq)]
enum Effect {
    Put(ReleaseId),
    Promoted(Vec<(ReleaseId, Fence)>),
    Unknown,
    Stale,
    Swept(Swept),
    Forgotten(bool),
}

/// The state that the rules prescribe after a history.
#[derive(Default)]
struct Model {
    put: BTreeSet<usize>,
    /// The promotions of each project that are kept, the latest first.
    pointers: BTreeMap<&'static str, Vec<(usize, Fence)>>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let project = || prop::sample::select(vec!["a", "b"]);
    let promote = (project(), 0..RELEASES, 0..8_u64, 0..2_u64);
    let step = prop_oneof![
        4 => (0..RELEASES).prop_map(|release| Step::Put { release }),
        4 => promote.prop_map(|(project, release, generation, epoch)| Step::Promote {
            project,
            release,
            fence: fence(generation, epoch),
        }),
        2 => any::<bool>().prop_map(|late| Step::Sweep { late }),
        1 => project().prop_map(|project| Step::Forget { project }),
    ];
    prop::collection::vec(step, 1..30)
}

impl Model {
    fn take(&mut self, step: Step) -> Effect {
        match step {
            Step::Put { release } => {
                self.put.insert(release);
                Effect::Put(numbered(release).id())
            }
            Step::Promote {
                project,
                release,
                fence,
            } => self.promote(project, release, fence),
            Step::Sweep { late: false } => Effect::Swept(Swept::default()),
            Step::Sweep { late: true } => Effect::Swept(self.sweep()),
            Step::Forget { project } => Effect::Forgotten(self.pointers.remove(project).is_some()),
        }
    }

    fn promote(&mut self, project: &'static str, release: usize, fence: Fence) -> Effect {
        let before = self.pointers.get(project).cloned().unwrap_or_default();
        match before.first() {
            Some((current, newest)) if (*current, *newest) == (release, fence) => {}
            Some((_, newest)) if *newest >= fence => return Effect::Stale,
            _ if !self.put.contains(&release) => return Effect::Unknown,
            _ => {
                let earlier = before.into_iter().filter(|(other, _)| *other != release);
                let promotions = [(release, fence)].into_iter().chain(earlier.take(KEPT));
                self.pointers.insert(project, promotions.collect());
            }
        }
        let promotions = self.pointers[project].iter();
        Effect::Promoted(
            promotions
                .map(|(n, fence)| (numbered(*n).id(), *fence))
                .collect(),
        )
    }

    /// Every release has a file of its own and shares another one with all.
    fn sweep(&mut self) -> Swept {
        let named: BTreeSet<usize> = self.pointers.values().flatten().map(|(n, _)| *n).collect();
        let removed: Vec<usize> = self.put.difference(&named).copied().collect();
        self.put.retain(|release| named.contains(release));
        let length = |release: &Release, path: &str| release.file(path).unwrap().bytes.len() as u64;
        let own = |n: &usize| length(&numbered(*n), "own.md");
        let shared_too = self.put.is_empty() && !removed.is_empty();
        Swept {
            releases: removed.len() as u64,
            files: removed.len() as u64 + u64::from(shared_too),
            bytes: removed.iter().map(own).sum::<u64>()
                + u64::from(shared_too) * length(&numbered(0), "shared.md"),
            leftovers: 0,
        }
    }
}

fn take(store: &Store, step: Step) -> Effect {
    match step {
        Step::Put { release } => Effect::Put(store.put(&numbered(release)).unwrap()),
        Step::Promote {
            project: name,
            release,
            fence,
        } => match store.promote(&project(name), numbered(release).id(), fence) {
            Ok(pointer) => {
                let promotions = pointer.promotions();
                Effect::Promoted(promotions.map(|p| (p.release, p.fence())).collect())
            }
            Err(PromoteError::UnknownRelease(_)) => Effect::Unknown,
            Err(PromoteError::Stale { .. }) => Effect::Stale,
            Err(error) => panic!("{error}"),
        },
        Step::Sweep { late } => {
            let now = if late {
                much_later()
            } else {
                Clock::System.now()
            };
            Effect::Swept(store.sweep(now).unwrap())
        }
        Step::Forget { project: name } => Effect::Forgotten(store.forget(&project(name)).unwrap()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn random_histories_follow_the_rules_and_lose_no_retained_release(steps in steps()) {
        let retention = Retention { releases: KEPT, ..Retention::default() };
        for (store, _directory) in stores(retention) {
            let mut model = Model::default();
            for step in &steps {
                prop_assert_eq!(take(&store, *step), model.take(*step), "{:?}", step);
                for release in model.put.iter().copied().map(numbered) {
                    is_whole(&store, &release);
                }
            }
        }
    }
}
