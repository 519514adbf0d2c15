//! Memory pressure: the gateway closes connections before the kernel ends the process.
//!
//! | stage | above | what happens |
//! |---|---|---|
//! | [`Stage::Normal`] | | |
//! | [`Stage::NoKeepAlive`] | [`Config::no_keep_alive_percent`] | each response is the last of its connection; idle connections are closed |
//! | [`Stage::Refusing`] | [`Config::refuse_percent`] | new connections are closed too |
//!
//! If [`Config::bytes_max`] is set, it is the limit, and the anonymous memory of the process is
//! compared with it. Otherwise the control group sets the limit (version 2: the smaller of
//! `memory.high` and `memory.max`), and `memory.current` without the page cache is compared with
//! it, because the kernel can free the page cache. A process without a limit has no stages.
//!
//! A stage is left when [`STEP_BACK_PERCENT`] less is used than where it begins, so that it does
//! not flap.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use super::open::OpenConnections;
use crate::telemetry::Metrics;

/// How much less must be used before a stage is left, in percent of the bound.
pub const STEP_BACK_PERCENT: u64 = 5;
/// How often memory is read.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long a connection may be idle under pressure.
const IDLE_MAX: Duration = Duration::from_secs(1);
/// Where the control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// The bound on memory, and where the stages begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// How many bytes the process may use; 0: as many as its control group.
    pub bytes_max: u64,
    /// The directory of the control group. `None`: the control group of the process.
    pub cgroup: Option<PathBuf>,
    /// Where [`Stage::NoKeepAlive`] begins, in percent of the bound.
    pub no_keep_alive_percent: u8,
    /// Where [`Stage::Refusing`] begins, in percent of the bound.
    pub refuse_percent: u8,
}

/// How scarce memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// There is enough.
    Normal = 0,
    /// Connections are closed after their response.
    NoKeepAlive = 1,
    /// New connections are refused.
    Refusing = 2,
}

/// The current stage of a process.
#[derive(Debug, Default)]
pub struct Pressure(AtomicU8);

/// Reads how much memory is used.
#[derive(Debug)]
pub struct Reader {
    bound: u64,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Process,
    Cgroup(PathBuf),
}

// === impl Config ===

impl Default for Config {
    fn default() -> Self {
        Self {
            bytes_max: 0,
            cgroup: None,
            no_keep_alive_percent: 85,
            refuse_percent: 95,
        }
    }
}

// === impl Stage ===

impl Stage {
    /// Returns the stage after a reading.
    #[must_use]
    pub fn after(self, used: u64, bound: u64, config: &Config) -> Self {
        let percent = u128::from(used) * 100 / u128::from(bound.max(1));
        let begins = |stage: Self, at: u8| {
            let held = if self >= stage { STEP_BACK_PERCENT } else { 0 };
            percent >= u128::from(u64::from(at).saturating_sub(held))
        };
        if begins(Self::Refusing, config.refuse_percent) {
            Self::Refusing
        } else if begins(Self::NoKeepAlive, config.no_keep_alive_percent) {
            Self::NoKeepAlive
        } else {
            Self::Normal
        }
    }

    fn meaning(self) -> &'static str {
        match self {
            Self::Normal => "connections are kept open again",
            Self::NoKeepAlive => "each response is the last of its connection",
            Self::Refusing => "new connections are refused",
        }
    }
}

// === impl Pressure ===

impl Pressure {
    /// Returns the stage. Costs one atomic load.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match self.0.load(Ordering::Relaxed) {
            0 => Stage::Normal,
            1 => Stage::NoKeepAlive,
            _ => Stage::Refusing,
        }
    }

    /// Returns whether connections are closed after their response.
    #[must_use]
    pub fn is_scarce(&self) -> bool {
        self.stage() >= Stage::NoKeepAlive
    }

    fn set(&self, stage: Stage) {
        self.0.store(stage as u8, Ordering::Relaxed);
    }
}

// === impl Reader ===

impl Reader {
    /// Finds the bound of this process; `None` if it has none.
    ///
    /// # Errors
    ///
    /// When a configured control group, or the process's own memory, cannot be read.
    pub fn open(config: &Config) -> io::Result<Option<Self>> {
        if config.bytes_max > 0 {
            let reader = Self {
                bound: config.bytes_max,
                source: Source::Process,
            };
            reader.used()?;
            return Ok(Some(reader));
        }
        let directory = match &config.cgroup {
            Some(directory) => directory.clone(),
            None => match own_cgroup() {
                Some(directory) => directory,
                None => return Ok(None),
            },
        };
        let limit = |name: &str| match fs::read_to_string(directory.join(name)) {
            Ok(text) => Ok(text.trim().parse::<u64>().ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let limits = [limit("memory.max")?, limit("memory.high")?];
        let Some(bound) = limits.into_iter().flatten().min() else {
            return Ok(None);
        };
        let reader = Self {
            bound,
            source: Source::Cgroup(directory),
        };
        reader.used()?;
        Ok(Some(reader))
    }

    /// Returns the bound, in bytes.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Reads how many bytes count against the bound.
    ///
    /// # Errors
    ///
    /// When the files cannot be read.
    pub fn used(&self) -> io::Result<u64> {
        match &self.source {
            Source::Process => {
                let status = fs::read_to_string("/proc/self/status")?;
                let line = status
                    .lines()
                    .find_map(|line| line.strip_prefix("RssAnon:"));
                let kib = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
                Ok(kib.ok_or(io::ErrorKind::InvalidData)? * 1024)
            }
            Source::Cgroup(directory) => {
                let current = fs::read_to_string(directory.join("memory.current"))?;
                let current: u64 = current
                    .trim()
                    .parse()
                    .map_err(|_not_a_number| io::ErrorKind::InvalidData)?;
                Ok(current.saturating_sub(page_cache(directory)))
            }
        }
    }
}

/// Returns how much of a control group's memory is page cache; 0 if the file has no such line.
fn page_cache(directory: &Path) -> u64 {
    let stat = fs::read_to_string(directory.join("memory.stat")).unwrap_or_default();
    let of = |name: &str| {
        let number = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        stat.lines().find_map(number).unwrap_or(0_u64)
    };
    of("inactive_file") + of("active_file")
}

/// Finds the control group of this process (cgroups(7): the line that begins with `0::`).
fn own_cgroup() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let directory = Path::new(MOUNT).join(path);
    // In a container without its own mount, the group is the root of the visible tree.
    let candidates = [directory, PathBuf::from(MOUNT)];
    candidates
        .into_iter()
        .find(|directory| directory.join("memory.current").exists())
}

/// Keeps the stage up to date. It never returns.
pub fn watch(
    reader: &Reader,
    config: &Config,
    pressure: &Pressure,
    open: &Arc<OpenConnections>,
    metrics: &Metrics,
) {
    loop {
        match reader.used() {
            Ok(used) => {
                let stage = pressure.stage();
                let next = stage.after(used, reader.bound, config);
                metrics
                    .memory_used
                    .set(i64::try_from(used).unwrap_or(i64::MAX));
                if next != stage {
                    pressure.set(next);
                    log_stage(next, used, reader.bound, metrics);
                }
                if next > Stage::Normal {
                    let closed = open.evict_idle_for(IDLE_MAX);
                    let shed = metrics.connections_shed.with_label_values(&["memory"]);
                    shed.inc_by(closed as u64);
                }
            }
            Err(error) => {
                log::warn!(target: "memory", "cannot read how much memory is used: {error}")
            }
        }
        std::thread::sleep(INTERVAL);
    }
}

/// Counts and logs that a stage begins.
fn log_stage(stage: Stage, used: u64, bound: u64, metrics: &Metrics) {
    let number = stage as i64;
    metrics.memory_stage.set(number);
    metrics
        .memory_stages
        .with_label_values(&[number.to_string()])
        .inc();
    let meaning = stage.meaning();
    if stage == Stage::Normal {
        log::info!(target: "memory", stage = number, used, bound; "memory: {used} of {bound} bytes are used: {meaning}");
    } else {
        log::warn!(target: "memory", stage = number, used, bound; "memory: {used} of {bound} bytes are used: {meaning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_ends_below_the_level_at_which_it_begins() {
        let config = Config::default();
        let mut stage = Stage::Normal;
        for (used, expected) in [
            (84, Stage::Normal),
            (85, Stage::NoKeepAlive),
            (81, Stage::NoKeepAlive),
            (95, Stage::Refusing),
            (90, Stage::Refusing),
            (89, Stage::NoKeepAlive),
            (79, Stage::Normal),
            (100, Stage::Refusing),
            (0, Stage::Normal),
        ] {
            stage = stage.after(used, 100, &config);
            assert_eq!(stage, expected, "{used}");
        }
    }

    #[test]
    fn the_page_cache_does_not_count() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write("memory.max", "max\n");
        let config = Config {
            cgroup: Some(directory.path().to_owned()),
            ..Config::default()
        };
        assert!(Reader::open(&config).unwrap().is_none());
        write("memory.high", "1000\n");
        write("memory.max", "2000\n");
        write("memory.current", "900\n");
        write(
            "memory.stat",
            "anon 100\ninactive_file 300\nactive_file 200\n",
        );
        let reader = Reader::open(&config).unwrap().unwrap();
        assert_eq!((reader.bound(), reader.used().unwrap()), (1000, 400));
    }

    #[test]
    fn the_memory_of_the_process_can_be_read() {
        let config = Config {
            bytes_max: 1 << 40,
            ..Config::default()
        };
        let reader = Reader::open(&config).unwrap().unwrap();
        assert!(reader.used().unwrap() > 10_000);
    }
}
