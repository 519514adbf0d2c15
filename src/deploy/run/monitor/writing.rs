//! Supervises the writer of a skill: its slot, its budget, its process and its connections.

use std::sync::Arc;
use std::time::Instant;

use super::super::job::{CommandJob, Order, Stopped};
use super::super::workspace::{SEARCH_INDEX, WRITER_INPUT, WRITER_OUTPUT};
use super::super::{blocking, generate, sandbox, until_set};
use super::{BuildMonitor, BuildResult, RECORD_INTERVAL};
use crate::deploy::queue::{Held, QueueError, Spending};
use crate::deploy::slots::Slot;
use crate::deploy::writer;

// === impl BuildMonitor ===

impl BuildMonitor<'_> {
    /// Runs the writer whose input the process of the build has written, and lets this process go
    /// on.
    pub(super) async fn run_writer(&mut self) -> Result<Option<BuildResult>, QueueError> {
        let _slot = match self.writer_slot().await? {
            Ok(slot) => slot,
            Err(end) => return Ok(Some(end)),
        };
        // Waiting does not count as work.
        self.step_since = Instant::now();
        match self.stages.generate.has_model() {
            true => self.run_model().await,
            false => self.run_command().await,
        }
    }

    /// Waits for a slot of a writer.
    async fn writer_slot(&mut self) -> Result<Result<Slot, BuildResult>, QueueError> {
        let (writers, owner) = (
            Arc::clone(&self.stages.writers),
            self.claim.update.owner.clone(),
        );
        let mut slot = std::pin::pin!(writers.take(&owner));
        let mut ticks = tokio::time::interval(RECORD_INTERVAL);
        loop {
            tokio::select! {
                biased;
                slot = &mut slot => return Ok(Ok(slot)),
                () = until_set(&mut self.stop) => return Ok(Err(BuildResult::ShuttingDown)),
                _ = ticks.tick() => {
                    if self.is_record_due() && self.record().await? == Held::Lost {
                        return Ok(Err(BuildResult::LeaseLost));
                    }
                    if self.is_superseded().await? {
                        let why = "a newer update waits".to_owned();
                        return Ok(Err(BuildResult::SkillStays(why)));
                    }
                }
            }
        }
    }

    /// Runs the model. Its budget is reserved before the run and settled after it.
    async fn run_model(&mut self) -> Result<Option<BuildResult>, QueueError> {
        let config = self.stages.generate.model.clone();
        let stays = |why: &str| Ok(Some(BuildResult::SkillStays(why.to_owned())));
        let key_file = config.key_file.clone();
        let key = match blocking(move || writer::Key::read(key_file.as_deref())).await {
            Ok(key) => key,
            Err(error) => {
                log::error!(target: "deploy", "{}", crate::error::chain(&error));
                return stays("the service has no key for the model");
            }
        };
        let spending = |budget: writer::Budget| Spending {
            tokens: budget.tokens,
            cost: budget.cost.0,
        };
        let (queue, owner) = (
            Arc::clone(&self.stages.queue),
            self.claim.update.owner.clone(),
        );
        let (requested, limit) = (spending(config.update), spending(config.owner_day));
        let begun = self.stages.now();
        let reserve = move || queue.reserve_spending(&owner, requested, limit, begun);
        let Some(reserved) = blocking(reserve).await? else {
            return stays("the owner has spent the budget of this day for the model");
        };
        let job = writer::Job {
            key,
            budget: writer::Budget {
                tokens: reserved.tokens,
                cost: writer::Price(reserved.cost),
            },
            material: self.workspace.file(WRITER_INPUT),
            index: self.workspace.file(SEARCH_INDEX),
            output: self.workspace.file(WRITER_OUTPUT),
            config,
        };
        let sandbox = sandbox::of_model(&job);
        self.model = generate::Running::of(&job.config);
        let result = self.help(Order::Model(Box::new(job)), sandbox).await;
        let spent = self.model.take().map(|model| model.spent);
        let spent = spent.unwrap_or_default();
        self.spent.add(spent);
        let used = Spending {
            tokens: spent.tokens(),
            cost: spent.cost.0,
        };
        let (queue, owner) = (
            Arc::clone(&self.stages.queue),
            self.claim.update.owner.clone(),
        );
        blocking(move || queue.settle_spending(&owner, reserved, used, begun)).await?;
        result
    }

    /// Opens a connection for the process of the model.
    pub(super) async fn connect(&mut self) -> Result<Option<BuildResult>, QueueError> {
        let socket = match self.model.take() {
            None => Err("this process needs no connection".to_owned()),
            Some(mut model) => {
                let connected = self.wait(model.connect()).await;
                self.model = Some(model);
                match connected? {
                    Ok(socket) => socket,
                    Err(end) => return Ok(Some(end)),
                }
            }
        };
        if let Some(running) = &mut self.running
            && let Err(error) = running.answer_with(socket).await
        {
            // The end of the process is the next event.
            log::debug!(target: "deploy", "give a connection to a process: {error}");
        }
        Ok(None)
    }

    /// Runs the command.
    async fn run_command(&mut self) -> Result<Option<BuildResult>, QueueError> {
        let user = self.stages.launcher.process.user;
        if let Err(error) = self.workspace.clear_home(user) {
            let stopped = Stopped::of_machine("make a directory for the command", &error);
            return Ok(Some(BuildResult::SkillStays(stopped.summary)));
        }
        let config = self.stages.generate.clone();
        let sandbox = sandbox::of_command(&config, self.workspace);
        let job = CommandJob {
            config,
            input: self.workspace.file(WRITER_INPUT),
            output: self.workspace.file(WRITER_OUTPUT),
            home: self.workspace.home(),
        };
        self.help(Order::Command(Box::new(job)), sandbox).await
    }
}
