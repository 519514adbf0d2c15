//! The settings of the deploying side: queue, git, worker and admin API.

use super::Queue;
use super::read::{DAY_SECONDS, Section, address_or_off, path, within};
use crate::deploy::api::{self, Rate};
use crate::deploy::queue::Policy;
use crate::deploy::{run, worker};
use crate::source::git::{self, Credential};
use crate::source::remote;
use crate::syntax::Value;
use crate::syntax::strict::{self, Expected, boolean, number, parsed, seconds};

const GIB: u64 = 1 << 30;

/// The least address space with which a build can start: the allocator reserves a gibibyte at once,
/// and each thread a stack.
const BUILD_MEMORY_MIN: u64 = 2 * GIB;

pub(super) fn read_queue(section: Section<'_, '_, '_>, queue: &mut Queue, policy: &mut Policy) {
    let Queue::Sqlite { path: place } = queue;
    let Policy {
        lease,
        attempts_max,
        retry_delay,
        retry_delay_max,
        waiting_max,
        retention,
        idempotency,
    } = policy;
    within(section, "sqlite", |sqlite| sqlite.set("path", place, path));
    section.set("lease_seconds", lease, seconds(5..=3600));
    section.set("attempts_max", attempts_max, number(1..=100));
    section.set("retry_seconds", retry_delay, seconds(1..=DAY_SECONDS));
    section.set(
        "retry_seconds_max",
        retry_delay_max,
        seconds(1..=DAY_SECONDS),
    );
    section.set("waiting_max", waiting_max, number(1..=100_000_000));
    section.set("keep_seconds", retention, seconds(60..=3650 * DAY_SECONDS));
    section.set(
        "idempotency_seconds",
        idempotency,
        seconds(60..=30 * DAY_SECONDS),
    );
}

pub(super) fn read_git(section: Section<'_, '_, '_>, git: &mut git::Config) {
    let git::Config {
        mirrors,
        program,
        local,
        plaintext,
        credentials,
        entries_max,
        file_bytes_max,
    } = git;
    section.set("mirrors", mirrors, path);
    section.set("program", program, path);
    if let Some(directories) = section.list("local", path) {
        *local = directories;
    }
    section.set("allow_http", plaintext, boolean);
    if let Some(known) = section.list("credentials", credential) {
        *credentials = known;
    }
    section.set("files_max", entries_max, number(1..=10_000_000));
    section.set("file_bytes_max", file_bytes_max, number(1024..=4 * GIB));
}

pub(super) fn read_specifications(
    section: Section<'_, '_, '_>,
    specifications: &mut remote::Config,
) {
    let remote::Config {
        hosts,
        private_hosts,
        bytes_max,
        time,
    } = specifications;
    if let Some(patterns) = section.list("hosts", parsed(str::parse)) {
        *hosts = patterns;
    }
    if let Some(patterns) = section.list("private_hosts", parsed(str::parse)) {
        *private_hosts = patterns;
    }
    section.set("bytes_max", bytes_max, number(1024..=32 << 20));
    section.set("fetch_seconds", time, seconds(1..=3600));
}

pub(super) fn read_worker(
    section: Section<'_, '_, '_>,
    worker: &mut worker::Config,
    builds: &mut run::Limits,
) {
    let worker::Config {
        builds_max,
        grace,
        operator,
    } = worker;
    let run::Limits {
        memory_bytes,
        file_bytes,
        open_files,
        fetch,
        total,
    } = builds;
    section.set("builds_max", builds_max, number(1..=1024));
    section.set("grace_seconds", grace, seconds(0..=3600));
    section.set("operator", operator, address_or_off);
    section.set(
        "memory_bytes_max",
        memory_bytes,
        number(BUILD_MEMORY_MIN..=1024 * GIB),
    );
    section.set("file_bytes_max", file_bytes, number(1 << 20..=1024 * GIB));
    section.set("open_files_max", open_files, number(64..=1_000_000));
    section.set("fetch_seconds", fetch, seconds(1..=DAY_SECONDS));
    section.set("build_seconds", total, seconds(1..=DAY_SECONDS));
}

pub(super) fn read_generate(section: Section<'_, '_, '_>, generate: &mut run::generate::Config) {
    let run::generate::Config {
        command,
        time,
        input_bytes_max,
        output_bytes_max,
    } = generate;
    if let Some(words) = section.list("command", strict::text) {
        *command = words;
    }
    section.set("seconds", time, seconds(1..=DAY_SECONDS));
    section.set("input_bytes_max", input_bytes_max, number(0..=1 << 30));
    section.set("output_bytes_max", output_bytes_max, number(1024..=1 << 24));
}

pub(super) fn read_admin(section: Section<'_, '_, '_>, admin: &mut api::Config) {
    let api::Config {
        rate: Rate { calls, window },
        allow_plaintext,
    } = admin;
    section.set("allow_plaintext", allow_plaintext, boolean);
    section.set("triggers_max", calls, number(1..=1_000_000));
    section.set("triggers_seconds", window, seconds(1..=3600));
}

/// Reads a host and the files that hold the credentials for it.
fn credential(value: &Value) -> Result<Credential, Expected> {
    let wanted =
        || Expected::from("{ host: NAME, https: FILE, ssh_key: FILE, ssh_known_hosts: FILE }");
    let mut credential = Credential::default();
    for member in value.members() {
        let value = &member.value;
        match &*member.key {
            "host" => credential.host = strict::text(value)?,
            "https" => credential.https = Some(path(value)?),
            "ssh_key" => credential.ssh_key = Some(path(value)?),
            "ssh_known_hosts" => credential.ssh_known_hosts = Some(path(value)?),
            _ => return Err(wanted()),
        }
    }
    if credential.host.is_empty() {
        return Err(wanted());
    }
    Ok(credential)
}
