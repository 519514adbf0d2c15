//! The settings of the deploying side: queue, git, worker and admin API.

use super::Queue;
use super::read::{DAY_SECONDS, Section, address_or_off, path, within};
use crate::deploy::api::{self, Rate};
use crate::deploy::queue::{Policy, PostgresConfig};
use crate::deploy::writer::{self, Price, ServerAddress};
use crate::deploy::{run, worker};
use crate::isolation::Mode;
use crate::site::PrivateHost;
use crate::source::git::{self, Credential};
use crate::source::remote;
use crate::syntax::strict::{self, Expected, Report, boolean, number, one_of, parsed, seconds};
use crate::syntax::{Data, Value};

const GIB: u64 = 1 << 30;

/// The least address space with which a build can start: the allocator reserves a gibibyte at once,
/// and each thread a stack.
const BUILD_MEMORY_MIN: u64 = 2 * GIB;

pub(super) fn read_queue(
    section: Section<'_, '_, '_>,
    queue: &mut Queue,
    policy: &mut Policy,
    report: &Report<'_>,
) {
    let Queue { sqlite, postgres } = queue;
    let Policy {
        lease,
        attempts_max,
        retry_delay,
        retry_delay_max,
        waiting_max,
        retention,
        logs_max,
        idempotency,
    } = policy;
    within(section, "sqlite", |section| {
        section.set("path", sqlite, path)
    });
    within(section, "postgres", |section| {
        read_postgres(section, postgres, "queue.postgres", report);
    });
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
    section.set("keep_logs", logs_max, number(1..=1_000_000));
    section.set(
        "idempotency_seconds",
        idempotency,
        seconds(60..=30 * DAY_SECONDS),
    );
}

pub(super) fn read_postgres(
    section: Section<'_, '_, '_>,
    postgres: &mut PostgresConfig,
    name: &str,
    report: &Report<'_>,
) {
    let PostgresConfig {
        url,
        password_file,
        tls,
        ca_file,
        connections_max,
        statement,
        require_durable,
        require_standby,
    } = postgres;
    section.set("url", url, |value| {
        if value.is_null() {
            return Ok(None);
        }
        let text = strict::text(value)?;
        PostgresConfig::check(&text).map_err(Expected::from)?;
        Ok(Some(text))
    });
    let file = |value: &Value| match value.is_null() {
        true => Ok(None),
        false => path(value).map(Some),
    };
    section.set("password_file", password_file, file);
    section.set("tls", tls, boolean);
    section.set("ca_file", ca_file, file);
    section.set("connections_max", connections_max, number(2..=64));
    section.set("statement_seconds", statement, seconds(1..=300));
    section.set("require_durable", require_durable, boolean);
    section.set("require_standby", require_standby, boolean);
    if ca_file.is_some() && !*tls {
        let why = format!("`{name}.ca_file` has no effect without `{name}.tls`");
        report.error(section.value(), why);
    }
}

pub(super) fn read_git(section: Section<'_, '_, '_>, git: &mut git::Config) {
    let git::Config {
        mirrors,
        program,
        local,
        private_hosts,
        plaintext,
        credentials,
        entries_max,
        file_bytes_max,
        mirror_bytes_max,
        mirrors_bytes_max,
        free_bytes_min,
    } = git;
    section.set("mirrors", mirrors, path);
    section.set("program", program, path);
    if let Some(directories) = section.list("local", path) {
        *local = directories;
    }
    if let Some(entries) = section.list("private_hosts", parsed(str::parse::<PrivateHost>)) {
        *private_hosts = entries.into_iter().collect();
    }
    section.set("allow_http", plaintext, boolean);
    if let Some(known) = section.list("credentials", credential) {
        *credentials = known;
    }
    section.set("files_max", entries_max, number(1..=10_000_000));
    section.set("file_bytes_max", file_bytes_max, number(1024..=4 * GIB));
    let bytes = || number(1 << 20..=1 << 50);
    section.set("mirror_bytes_max", mirror_bytes_max, bytes());
    section.set("mirrors_bytes_max", mirrors_bytes_max, bytes());
    section.set("free_bytes_min", free_bytes_min, number(0..=1 << 50));
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
    isolation: &mut run::Isolation,
) {
    let worker::Config {
        embedded,
        fetches_max,
        builds_max,
        light,
        grace,
        operator,
    } = worker;
    let run::Limits {
        memory_bytes,
        file_bytes,
        output_bytes,
        open_files,
        processes,
        fetch,
        fetch_rate_min,
        fetch_grace,
        page,
        total,
    } = builds;
    let run::Isolation {
        mode,
        user,
        directory,
    } = isolation;
    section.set("embedded", embedded, boolean);
    section.set("fetches_max", fetches_max, number(1..=1024));
    section.set("builds_max", builds_max, number(1..=1024));
    section.set("light_seconds", light, seconds(1..=3600));
    section.set("grace_seconds", grace, seconds(0..=3600));
    section.set("operator", operator, address_or_off);
    section.set(
        "memory_bytes_max",
        memory_bytes,
        number(BUILD_MEMORY_MIN..=1024 * GIB),
    );
    section.set("file_bytes_max", file_bytes, number(1 << 20..=1024 * GIB));
    section.set(
        "output_bytes_max",
        output_bytes,
        number(1 << 20..=1024 * GIB),
    );
    section.set("open_files_max", open_files, number(64..=1_000_000));
    section.set("processes_max", processes, number(32..=1_000_000));
    section.set("isolation", mode, one_of(&Mode::NAMES));
    section.set("user", user, user_name);
    section.set("directory", directory, path);
    section.set("fetch_seconds", fetch, seconds(1..=DAY_SECONDS));
    section.set("fetch_rate_min", fetch_rate_min, number(0..=1 << 40));
    section.set("fetch_grace_seconds", fetch_grace, seconds(0..=DAY_SECONDS));
    section.set("page_seconds", page, seconds(1..=DAY_SECONDS));
    section.set("build_seconds", total, seconds(1..=DAY_SECONDS));
}

pub(super) fn read_generate(
    section: Section<'_, '_, '_>,
    generate: &mut run::generate::Config,
    report: &Report<'_>,
) {
    let run::generate::Config {
        command,
        time,
        input_bytes_max,
        output_bytes_max,
        network,
        read,
        write,
        model,
        runs_max,
        approve,
    } = generate;
    if let Some(words) = section.list("command", strict::text) {
        *command = words;
    }
    section.set("seconds", time, seconds(1..=DAY_SECONDS));
    section.set("input_bytes_max", input_bytes_max, number(0..=1 << 30));
    section.set("output_bytes_max", output_bytes_max, number(1024..=1 << 24));
    section.set("network", network, boolean);
    if let Some(paths) = section.list("read", path) {
        *read = paths;
    }
    if let Some(paths) = section.list("write", path) {
        *write = paths;
    }
    within(section, "model", |section| {
        read_model(section, model, report)
    });
    section.set("runs_max", runs_max, number(1..=1024));
    section.set("approve", approve, boolean);
    if model.url.is_some() && !command.is_empty() {
        let why = "`generate.command` and `generate.model.url` exclude each other";
        report.error(section.value(), why);
    }
}

fn read_model(section: Section<'_, '_, '_>, model: &mut writer::Config, report: &Report<'_>) {
    let writer::Config {
        provider,
        url,
        model: name,
        evaluation_model,
        stream,
        key_file,
        proxy,
        limits,
        price_input,
        price_output,
        update,
        owner_day,
    } = model;
    let writer::StepLimits {
        steps,
        corrections,
        total,
        request,
        retries,
        output_tokens,
        read_bytes,
        answer_bytes,
    } = limits;
    section.set("provider", provider, one_of(&writer::Provider::NAMES));
    section.set("url", url, |value| server(value).map(Some));
    section.set("model", name, strict::text);
    section.set("evaluation_model", evaluation_model, strict::text);
    section.set("stream", stream, boolean);
    section.set("key_file", key_file, |value| path(value).map(Some));
    section.set("proxy", proxy, |value| server(value).map(Some));
    section.set("steps_max", steps, number(1..=1000));
    section.set("corrections_max", corrections, number(0..=100));
    section.set("seconds", total, seconds(1..=DAY_SECONDS));
    section.set("request_seconds", request, seconds(1..=3600));
    section.set("retries_max", retries, number(0..=20));
    section.set("output_tokens_max", output_tokens, number(256..=1_000_000));
    section.set("read_bytes_max", read_bytes, number(1024..=1 << 30));
    section.set("answer_bytes_max", answer_bytes, number(1024..=1 << 28));
    section.set("price_input", price_input, amount);
    section.set("price_output", price_output, amount);
    section.set("tokens_max", &mut update.tokens, number(0..=1 << 50));
    section.set("cost_max", &mut update.cost, amount);
    section.set(
        "owner_tokens_per_day",
        &mut owner_day.tokens,
        number(0..=1 << 50),
    );
    section.set("owner_cost_per_day", &mut owner_day.cost, amount);
    let Some(url) = url else {
        return;
    };
    if name.is_empty() {
        report.error(
            section.value(),
            "`generate.model.model` is needed with `url`",
        );
    }
    if key_file.is_some() && url.is_exposed() {
        let why = "`generate.model.key_file` would be sent without TLS to another machine";
        report.error(section.value(), why);
    }
    let has_price = price_input.0 > 0 || price_output.0 > 0;
    if (update.cost.0 > 0 || owner_day.cost.0 > 0) && !has_price {
        let why = "`generate.model.cost_max` and `owner_cost_per_day` need `price_input` and `price_output`";
        report.error(section.value(), why);
    }
}

/// Reads the address of a server.
fn server(value: &Value) -> Result<ServerAddress, Expected> {
    let text = strict::text(value)?;
    // The text may contain a password.
    text.parse()
        .map_err(|invalid: writer::InvalidAddress| Expected::from(invalid.to_string()))
}

/// Reads an amount of money: a number or a text, with at most six decimals.
fn amount(value: &Value) -> Result<Price, Expected> {
    let text = match &value.data {
        Data::Text(text) => text.to_string(),
        Data::Number(number) => number.to_string(),
        _ => return Err("an amount like 3 or 0.25".into()),
    };
    text.parse::<Price>().map_err(Expected::from)
}

pub(super) fn read_admin(section: Section<'_, '_, '_>, admin: &mut api::Config) {
    let api::Config {
        rate: Rate { calls, window },
        allow_plaintext,
        owners_add_domains,
    } = admin;
    section.set("allow_plaintext", allow_plaintext, boolean);
    section.set("owners_add_domains", owners_add_domains, boolean);
    section.set("triggers_max", calls, number(1..=1_000_000));
    section.set("triggers_seconds", window, seconds(1..=3600));
}

/// Reads the name of a user; `null` for the user of the service.
fn user_name(value: &Value) -> Result<Option<Box<str>>, Expected> {
    if value.is_null() {
        return Ok(None);
    }
    let name = strict::text(value)?;
    match name.is_empty() || name.contains(':') {
        true => Err("the name of a user, or null".into()),
        false => Ok(Some(name)),
    }
}

/// Reads a host or a part of it, the files that hold the credentials for it, and the owners that
/// may use them.
fn credential(value: &Value) -> Result<Credential, Expected> {
    let wanted = || {
        Expected::from(
            "{ host: NAME, owners: [OWNER, …] or [\"*\"] for all, path: PREFIX, https: FILE, \
             ssh_key: FILE, ssh_known_hosts: FILE }",
        )
    };
    let mut credential = Credential::default();
    for member in value.members() {
        let value = &member.value;
        match &*member.key {
            "host" => credential.host = strict::text(value)?,
            "path" => credential.path = strict::text(value)?,
            "owner" => credential.owners.push(strict::text(value)?),
            "owners" => {
                for owner in value.items() {
                    credential.owners.push(strict::text(owner)?);
                }
            }
            "https" => credential.https = Some(path(value)?),
            "ssh_key" => credential.ssh_key = Some(path(value)?),
            "ssh_known_hosts" => credential.ssh_known_hosts = Some(path(value)?),
            _ => return Err(wanted()),
        }
    }
    if credential.host.is_empty() || credential.owners.is_empty() {
        return Err(wanted());
    }
    Ok(credential)
}
