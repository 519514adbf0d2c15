//! A million hosts: the memory of the index, the time of a lookup and of a promotion.
//!
//! ```text
//! cargo bench --bench million -- SITES DOMAINS      # default: 1,000,000 sites of one domain
//! ```
//!
//! Prints one figure per line, and asserts the responses that it times. Every site has a skill
//! of 2 KB with different words, in every encoding that makes it smaller.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on fails")]
#![expect(clippy::print_stdout, reason = "its figures are its purpose")]

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use waypost::digest::Digest;
use waypost::discovery::paths::{Document, find};
use waypost::discovery::{Listed, Summary};
use waypost::index::{Documents, Index, Material, SkillFile, State};
use waypost::response::RequestHeaders;
use waypost::response::encoding::Effort;
use waypost::site::{Host, ProjectId, Service, Site};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SKILL_BYTES: usize = 2048;
const LOOKUPS: usize = 2_000_000;
const PROMOTIONS: usize = 2_000;
/// Words for a text that compresses about as well as prose.
const WORDS: [&str; 32] = [
    "create",
    "order",
    "the",
    "client",
    "token",
    "and",
    "read",
    "webhook",
    "a",
    "signature",
    "before",
    "you",
    "retry",
    "request",
    "when",
    "status",
    "is",
    "pending",
    "call",
    "endpoint",
    "with",
    "key",
    "header",
    "for",
    "each",
    "customer",
    "refund",
    "amount",
    "in",
    "cents",
    "never",
    "log",
];

/// A random number generator with a fixed seed, so that every run does the same work.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap()
    }
}

fn site(number: usize, domains: usize) -> Site {
    let project = ProjectId::parse(&format!("site-{number}")).unwrap();
    Site {
        domains: (0..domains)
            .map(|domain| Host::parse(&format!("docs{domain}.customer-{number}.example")).unwrap())
            .collect(),
        ..Site::new(project)
    }
}

fn material(number: usize) -> Material {
    let mut numbers = Numbers(number as u64);
    let mut body =
        format!("---\nname: site-{number}\ndescription: Use the API of site {number}.\n---\n\n");
    while body.len() < SKILL_BYTES {
        body += WORDS[numbers.next() % WORDS.len()];
        body += if numbers.next().is_multiple_of(12) {
            ".\n"
        } else {
            " "
        };
    }
    let listed = Listed {
        slug: format!("site-{number}").into(),
        name: format!("site-{number}").into(),
        description: format!("Use the API of site {number}.").into(),
        digest: Digest::of(body.as_bytes()),
        generated: false,
    };
    Material {
        summary: Summary::new(
            &format!("Site {number}"),
            "Documentation of a customer.",
            "1.0",
            vec![listed],
        ),
        skills: vec![SkillFile::encoded(body.into(), Effort::Load)],
        promoted_at: 1_700_000_000,
        files: None,
    }
}

fn filled(sites: usize, domains: usize) -> (Index, usize) {
    let service = Service::default();
    let index = Index::new(service.clone());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bodies = std::thread::scope(|scope| {
        let fill = |thread: usize| {
            let (index, service) = (&index, &service);
            scope.spawn(move || {
                let mut bytes = 0;
                let numbers: Vec<usize> = (thread..sites).step_by(threads).collect();
                for batch in numbers.chunks(512) {
                    let compiled: Vec<_> = batch
                        .iter()
                        .map(|&number| {
                            let site = Arc::new(site(number, domains));
                            let documents =
                                Documents::compile(&site, service, &material(number)).unwrap();
                            bytes += documents.bytes();
                            (site, State::Public(Arc::new(documents)))
                        })
                        .collect();
                    index.drop_hosts(index.put_sites(compiled));
                }
                bytes
            })
        };
        let threads: Vec<_> = (0..threads).map(fill).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    (index, bodies)
}

fn resident_bytes() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim()
        .trim_end_matches(" kB")
        .parse::<usize>()
        .unwrap()
        * 1024
}

/// Times one lookup: from the host and path of a request to its response.
fn lookup(index: &Index, hosts: &[String]) -> Duration {
    let mut numbers = Numbers(7);
    let since = Instant::now();
    for _ in 0..LOOKUPS {
        let host = &hosts[numbers.next() % hosts.len()];
        let response = index.with(host, |served| {
            let document = find(
                black_box("/.well-known/agent-card.json"),
                &served.site.base_path,
            )
            .unwrap();
            index.response(served, host, document, &RequestHeaders::GET)
        });
        assert_eq!(response.unwrap().status, 200);
    }
    since.elapsed() / u32::try_from(LOOKUPS).unwrap()
}

fn main() {
    let numbers: Vec<usize> = std::env::args()
        .filter_map(|argument| argument.parse().ok())
        .collect();
    let (sites, domains) = match numbers[..] {
        [sites, domains] => (sites, domains),
        _ => (1_000_000, 1),
    };
    let one = filled(1, 1).0;
    let lookup_one = lookup(&one, &["docs0.customer-0.example".to_owned()]);

    let before = resident_bytes();
    let since = Instant::now();
    let (index, bodies) = filled(sites, domains);
    let took = since.elapsed();
    let used = resident_bytes() - before;
    let (_, hosts) = index.size();
    assert_eq!(hosts, sites * (domains + 1));
    println!(
        "{sites} sites x {domains} domains, {hosts} hosts with the default subdomains; filled in {took:.1?}"
    );
    println!(
        "resident: {:.2} GiB, of which bodies {:.2} GiB",
        gib(used),
        gib(bodies)
    );
    println!(
        "memory beyond the bodies: {} bytes a host",
        used.saturating_sub(bodies) / hosts
    );

    let every = sites.div_ceil(50_000);
    let names: Vec<String> = (0..sites)
        .step_by(every)
        .map(|number| format!("docs0.customer-{number}.example"))
        .collect();
    let lookup_all = lookup(&index, &names);
    println!(
        "lookup to answer: {lookup_one:.0?} with one site, {lookup_all:.0?} with all, on {} random hosts",
        names.len()
    );

    let mut took: Vec<Duration> = (0..PROMOTIONS)
        .map(|number| {
            let number = number * (sites / PROMOTIONS).max(1) % sites;
            let (site, material) = (site(number, domains), material(number + 1));
            let since = Instant::now();
            let documents = Documents::compile(&site, index.service(), &material).unwrap();
            assert!(index.promote(&site.project, State::Public(Arc::new(documents))));
            let took = since.elapsed();
            let host = format!("docs0.customer-{number}.example");
            let served = index.with(&host, |served| {
                index
                    .response(
                        served,
                        &host,
                        Document::Skill(&format!("site-{}", number + 1)),
                        &RequestHeaders::GET,
                    )
                    .status
            });
            assert_eq!(served, Some(200));
            took
        })
        .collect();
    took.sort();
    println!(
        "promotion, from release in memory to served: median {:.0?}, p99 {:.0?}",
        took[PROMOTIONS / 2],
        took[PROMOTIONS * 99 / 100]
    );
}

fn gib(bytes: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a figure for people")]
    let bytes = bytes as f64;
    bytes / f64::from(1 << 30)
}
