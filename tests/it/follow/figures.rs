//! Figures of edges, printed: run with `WAYPOST_LONG_TESTS=1` and `--nocapture`, one at a time, and
//! with the program to be measured in `WAYPOST_MEASURED`. `WAYPOST_SITES` is the number of sites
//! that an edge starts with. Without, the same code runs with small numbers.

use std::time::Duration;

use super::*;

/// The ticks of a second in `/proc/…/stat` (proc(5), `sysconf(_SC_CLK_TCK)`).
const TICKS: f64 = 100.0;

/// How long a gateway with many sites may start or fill its cache: longer than any other test
/// waits.
const LOG_TIMEOUT: Duration = Duration::from_secs(1800);

/// Returns the long number of a measurement, or the short one.
fn count(long: usize, short: usize) -> usize {
    match std::env::var_os("WAYPOST_LONG_TESTS") {
        Some(_) => long,
        None => short,
    }
}

/// Returns a setup that starts the program to be measured.
fn measured(setup: Setup) -> Setup {
    match std::env::var_os("WAYPOST_MEASURED") {
        Some(binary) => setup.binary(binary),
        None => setup,
    }
}

/// Returns the processor time of a gateway so far, in seconds.
fn processor_time(edge: &Edge) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", edge.id())).unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS
}

/// Returns the share of one core that a gateway uses while nothing is asked of it.
fn idle_share(edge: &Edge, time: Duration) -> f64 {
    let (before, since) = (processor_time(edge), Instant::now());
    // The processor time of an idle gateway is measured, so the test has to wait.
    std::thread::sleep(time);
    (processor_time(edge) - before) / since.elapsed().as_secs_f64()
}

fn resident_megabytes(edge: &Edge) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", edge.id())).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

/// Writes the records of many sites. Returns their number, and a domain of the last one.
fn write_many(setup: &Setup) -> (usize, String) {
    let sites = match std::env::var("WAYPOST_SITES") {
        Ok(sites) => sites.parse().unwrap(),
        Err(_unset) => count(100_000, 200),
    };
    let records: String = (0..sites)
        .map(|n| format!("---\nproject: p{n}\nsubdomain: p{n}\ndomains: [d{n}.test]\n"))
        .collect();
    setup.write_records("many", &records);
    (sites, format!("d{}.test", sites - 1))
}

/// Waits until an edge has the last site, and everything else.
fn wait_until_filled(edge: &Edge, last: &str) {
    let since = Instant::now();
    while !(knows(edge, last) && readiness(edge)["status"] == "ready") {
        assert!(since.elapsed() < LOG_TIMEOUT);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_release_is_on_four_edges_in_a_moment() {
    let listen = free_address();
    let setup = measured(source(listen)).with_skill();
    let (sites, last) = write_many(&setup);
    let source = setup.timeout(LOG_TIMEOUT).start();
    let edges = ["paris", "tokyo", "lima", "oslo"].map(|name| {
        let setup = edge_of(&source.setup, &url(listen), name, "");
        let edge = measured(setup).timeout(LOG_TIMEOUT).start();
        wait_until_filled(&edge, &last);
        edge
    });
    edges.iter().for_each(|edge| wait_until_serves(edge, SKILL));
    let mut times = Vec::new();
    for round in 1..=count(100, 3) {
        let text = skill(round);
        let published = source.publish("acme", &[("skill.md", &*text)]);
        let since = Instant::now();
        for edge in &edges {
            edge.wait_until_served("acme", published.generation);
        }
        times.push(since.elapsed());
        assert!(edges.iter().all(|edge| served(edge, DOMAIN) == text));
    }
    times.sort();
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("promoted → served by four edges of {sites} sites: p50 {p50:?}, p99 {p99:?}");
    let time = Duration::from_secs(count(20, 1) as u64);
    let share = 100.0 * idle_share(&edges[0], time);
    println!("an idle edge: {share:.2} % of a core");
    let share = 100.0 * idle_share(&source, time);
    println!("an idle source of four edges: {share:.2} % of a core");
}

#[test]
fn many_long_polls_wait_and_are_answered_together() {
    let listen = free_address();
    let source = measured(source(listen)).with_skill().start();
    let token = output(&source.setup, &["edge", "add", "paris"]);
    let state = || http::request(source.operator, "GET", "localhost", "/edges", &[]).json();
    wait_until("a release", || state()["revision"].as_u64() > Some(0));
    let state = state();
    let (identity, revision) = (state["identity"].as_str().unwrap(), &state["revision"]);
    let request = format!(
        "GET /v1/follow/changes?identity={identity}&after={revision}&wait=60 HTTP/1.1\r\n\
         Authorization: Bearer {token}\r\n\r\n"
    );
    let many = count(500, 20);
    let mut polls: Vec<TcpStream> = (0..many)
        .map(|_| {
            let mut stream = TcpStream::connect(listen).unwrap();
            stream.set_read_timeout(Some(TIMEOUT)).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream
        })
        .collect();
    let share = 100.0 * idle_share(&source, Duration::from_secs(count(20, 1) as u64));
    println!("{many} long polls that wait: {share:.2} % of a core");
    let before = processor_time(&source);
    let published = source.publish("acme", &[("skill.md", PAY)]);
    source.wait_until_served("acme", published.generation);
    let since = Instant::now();
    for poll in &mut polls {
        let mut status = [0; 12];
        poll.read_exact(&mut status).unwrap();
        assert_eq!(&status, b"HTTP/1.1 200");
    }
    let (took, used) = (since.elapsed(), processor_time(&source) - before);
    println!("{many} long polls answered in {took:?}, with {used:.2} s of processor time");
}

#[test]
fn an_edge_starts_from_a_cache_of_many_sites() {
    let listen = free_address();
    let setup = measured(source(listen)).with_skill();
    let (sites, last) = write_many(&setup);
    let source = setup.timeout(LOG_TIMEOUT).start();
    let setup = measured(edge_of(&source.setup, &url(listen), "paris", "")).timeout(LOG_TIMEOUT);
    let since = Instant::now();
    let edge = setup.start();
    wait_until_filled(&edge, &last);
    println!(
        "{sites} sites: the cache is filled in {:?}",
        since.elapsed()
    );
    let made = source.wait_for_log(|line| {
        let message = line["message"].as_str();
        message.is_some_and(|message| message.starts_with("made a snapshot"))
    });
    println!(
        "{sites} sites: a snapshot of {} bytes is made in {} ms",
        made["bytes"], made["took_ms"]
    );
    let _source = kill(source);
    let setup = kill(edge).conf("rescan_seconds", "10");
    let since = Instant::now();
    let edge = setup.start();
    assert!(knows(&edge, &last));
    println!(
        "{sites} sites: started from the cache in {:?}, with {} MB",
        since.elapsed(),
        resident_megabytes(&edge)
    );
    let share = 100.0 * idle_share(&edge, Duration::from_secs(count(20, 1) as u64));
    println!(
        "{sites} sites: an idle edge whose source is away, and that compares everything each 10 \
         seconds: {share:.2} % of a core"
    );
}

#[test]
fn many_edges_start_again_together() {
    let listen = free_address();
    let sites = count(1000, 20);
    let setup = measured(source(listen)).with_skill();
    let records: String = (0..sites)
        .map(|n| format!("---\nproject: p{n}\nsubdomain: p{n}\n"))
        .collect();
    setup.write_records("many", &records);
    let source = setup.start();
    let many = count(100, 4);
    let last = format!("p{}.waypost.localhost", sites - 1);
    // The caches are filled a few at a time.
    let mut edges: Vec<Edge> = Vec::new();
    for number in 0..many {
        let setup = edge_of(&source.setup, &url(listen), &format!("e{number}"), "");
        let edge = measured(setup).start();
        wait_until("filled", || knows(&edge, &last));
        edges.push(edge);
    }
    let setups: Vec<Setup> = edges.into_iter().map(kill).collect();
    source.publish("acme", &[("skill.md", PAY)]);
    let before = processor_time(&source);
    let since = Instant::now();
    let starting: Vec<_> = setups
        .into_iter()
        .map(|setup| std::thread::spawn(move || setup.start()))
        .collect();
    let edges: Vec<Edge> = starting
        .into_iter()
        .map(|start| start.join().unwrap())
        .collect();
    let started = since.elapsed();
    for edge in &edges {
        while served(edge, DOMAIN) != PAY {
            assert!(since.elapsed() < Duration::from_secs(300));
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let used = processor_time(&source) - before;
    println!(
        "{many} edges of {sites} sites: started in {started:?}, current after {:?}; the source used \
         {used:.2} s of processor time",
        since.elapsed()
    );
}
