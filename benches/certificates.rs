//! Figures for many certificates by ACME: memory of each, start, one that is replaced, and what it
//! costs to know when each has to be renewed.
//!
//! `cargo bench --bench certificates -- 100000`

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on fails")]
#![expect(clippy::print_stdout, reason = "it prints its figures")]
#![expect(clippy::cast_precision_loss, reason = "figures have three digits")]

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use waypost::acme::{
    Authorities, Authority, Challenges, Config, Manager, Metrics, Names, Ordered, Record, Vault,
};
use waypost::clock::Clock;
use waypost::dns::Client;
use waypost::site::PrivateHosts;
use waypost::store::documents::Kind;
use waypost::telemetry;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let count = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .next();
    let count: usize = count.unwrap_or(10_000);
    let memory = Path::new("/dev/shm");
    let root = match memory.is_dir() {
        true => tempfile::tempdir_in(memory),
        false => tempfile::tempdir(),
    };
    let root = root.unwrap();
    let open = || {
        let key = root.path().join("key");
        Vault::open(&root.path().join("certificates"), &key, Clock::System).unwrap()
    };
    let vault = open();
    let authority = authority();
    let since = Instant::now();
    for n in 0..count {
        put(
            &vault,
            &authority,
            &format!("docs.customer-{n}.example"),
            1_000,
        );
    }
    println!("{count} records written in {:.1?}", since.elapsed());

    let before = resident();
    let since = Instant::now();
    let ordered = Ordered::new(open(), Clock::System);
    let read = ordered.refresh().unwrap();
    assert!(read.failures.is_empty() && ordered.len() == count);
    drop(read);
    let took = since.elapsed();
    let each = (resident() - before) as f64 / count as f64;
    println!(
        "start: {took:.2?}, {:.1} µs each",
        took.as_secs_f64() * 1e6 / count as f64
    );
    println!("memory: {each:.0} bytes each");

    let since = Instant::now();
    let replaced = 100;
    for n in 0..replaced {
        put(
            &vault,
            &authority,
            &format!("docs.customer-{n}.example"),
            2_000,
        );
        let changed = ordered.refresh().unwrap().names;
        assert_eq!(changed.len(), 1);
    }
    let each = since.elapsed() / replaced;
    println!("one replaced, written and read: {each:.1?}");

    let since = Instant::now();
    let looks = 200;
    for _ in 0..looks {
        assert!(ordered.refresh().unwrap().names.is_empty());
    }
    println!("a look for changes: {:.1?}", since.elapsed() / looks);

    let since = Instant::now();
    let found = (0..1_000_000).filter(|n| {
        let name = "docs.customer-7.example";
        ordered.find(name).is_some() && *n > 0
    });
    let found = found.count();
    println!(
        "a lookup: {:.0} ns",
        since.elapsed().as_nanos() as f64 / found as f64
    );
    drop(ordered);
    scheduler(open(), count);
}

/// The names of all records.
struct All(usize);

impl Names for All {
    fn generation(&self) -> u64 {
        0
    }

    fn wanted(&self) -> HashMap<Box<str>, Option<Arc<str>>> {
        let owner: Arc<str> = "acme".into();
        let names = (0..self.0).map(|n| format!("docs.customer-{n}.example").into());
        names.map(|name| (name, Some(Arc::clone(&owner)))).collect()
    }

    fn serves(&self, _name: &str) -> bool {
        true
    }
}

/// Runs the loop that orders, while nothing has to be ordered, for a bit more than a minute: it
/// compares all names once a minute.
fn scheduler(vault: Vault, count: usize) {
    let config = Config {
        // The certificates are of another one, so nobody is asked about them.
        authorities: vec![Authority {
            directory: "https://other.example/dir".into(),
            ..Authority::default()
        }],
        ..Config::default()
    };
    let ordered = Arc::new(Ordered::new(vault.clone(), Clock::System));
    ordered.refresh().unwrap();
    let authorities = Authorities::new(&config, &vault, Clock::System).unwrap();
    let challenges = Arc::new(Challenges::new(Arc::clone(&vault.documents)));
    let client = Client::new(&[], PrivateHosts::default(), Duration::from_secs(1));
    let metrics = telemetry::Metrics::new();
    let manager = Manager::new(
        config,
        vault,
        authorities,
        ordered,
        challenges,
        Box::new(All(count)),
        client,
        Metrics::new(&metrics),
        telemetry::Health::new(Clock::System).part("certificates"),
        Clock::System,
    );
    let (stop, stopped) = tokio::sync::watch::channel(false);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let before = (resident(), processor_time());
    let thread = std::thread::spawn(move || runtime.block_on(manager.run(stopped)));
    std::thread::sleep(Duration::from_secs(5));
    let begun = (resident(), processor_time());
    println!(
        "scheduler: begins in {:.0?} of processor time, {:.0} bytes each",
        begun.1 - before.1,
        begun.0.saturating_sub(before.0) as f64 / count as f64
    );
    std::thread::sleep(Duration::from_secs(60));
    let minute = processor_time() - begun.1;
    println!("scheduler: {minute:.0?} of processor time a minute");
    stop.send_replace(true);
    thread.join().unwrap();
}

/// Returns the processor time that the process has used.
fn processor_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let times = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = times.map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    // Linux counts hundredths of a second.
    Duration::from_millis(ticks * 10)
}

/// Writes a certificate of two, with its key.
fn put(
    vault: &Vault,
    (issuer, chain): &(Issuer<'static, KeyPair>, String),
    name: &str,
    issued: u64,
) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let pem = params.signed_by(&key, issuer).unwrap().pem() + chain;
    let now = Clock::System.unix_seconds() + issued;
    let record = Record::new(
        name,
        "https://ca.example/dir",
        now,
        &pem,
        &key.serialize_der(),
        &vault.seal,
    );
    let record = record.unwrap();
    vault
        .documents
        .put(Kind::Certificate, &record.key(), &record.to_bytes())
        .unwrap();
}

fn authority() -> (Issuer<'static, KeyPair>, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    (Issuer::new(params, key), certificate.pem())
}

/// Returns how many bytes of memory the process has.
fn resident() -> usize {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
