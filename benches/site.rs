//! How long does a build take, of a whole site and after one changed page?
//!
//! The site has 1,100 generated pages of 4 KB (prose, tables, code in seven languages,
//! components, links, images) and 24 specifications of 10 endpoints, each with a page. A build
//! is everything from the tree to the release: check, render, compress, digests. The same is
//! measured as a new process that writes a release, beside mdBook and Zensical with the same pages.

#![expect(clippy::print_stdout, reason = "its figures are its purpose")]

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod repository;

use std::convert::Infallible;
use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use repository::{PAGES, repository};
use waypost::build::{
    self, Articles, Built, Input, Options, Preview, PreviewCache, Previous, PreviousRelease,
};
use waypost::docs::{self, Fetched, Needs};
use waypost::release::{Item, ReleaseFile};
use waypost::source::Tree;

/// Two methods of each of five paths in each of 24 specifications.
const ENDPOINTS: usize = 5;

/// Samples of code in languages that are common in documentation.
const FENCES: [(&str, &str); 7] = [
    (
        "bash",
        "curl -X POST https://api.example.com/v1/things/{n} \\\n  -H \"Authorization: Bearer $TOKEN\" \\\n  -d '{\"name\": \"thing\", \"count\": {n}}'\n",
    ),
    (
        "json",
        "{\n  \"id\": \"thing_{n}\",\n  \"tags\": [\"a\", \"b\"],\n  \"nested\": {\"count\": {n}, \"done\": false}\n}\n",
    ),
    (
        "python",
        "import acme\n\nclient = acme.Client(token=\"t_{n}\")\nfor thing in client.things(limit={n}):\n    # Print each of them.\n    print(f\"{thing.name}: {thing.count}\")\n",
    ),
    (
        "typescript",
        "import { Client } from \"acme\";\n\nconst client = new Client({ token: process.env.TOKEN ?? \"t_{n}\" });\nexport async function main(): Promise<void> {\n  const things = await client.things.list({ limit: {n} });\n  things.forEach((thing) => console.log(thing.name));\n}\n",
    ),
    (
        "go",
        "package main\n\nimport \"fmt\"\n\nfunc main() {\n\tfor i := 0; i < {n}; i++ {\n\t\tfmt.Println(\"thing\", i)\n\t}\n}\n",
    ),
    (
        "yaml",
        "service:\n  name: thing-{n}\n  ports: [8080, {n}]\n  # How often.\n  retries: 3\n",
    ),
    (
        "rust",
        "fn main() -> Result<(), Error> {\n    let client = Client::new(\"t_{n}\")?;\n    println!(\"{:?}\", client.thing({n})?);\n    Ok(())\n}\n",
    ),
];

fn page(number: usize) -> String {
    let next = (number + 1) % PAGES;
    let mut text = format!(
        "---\ntitle: Page {number}\ndescription: About {number}\nicon: star\n---\n\nimport Note from \"/snippets/note.mdx\"\n\n<Note />\n\n"
    );
    for (section, (language, code)) in FENCES.iter().enumerate() {
        // Most code differs from page to page; some is the same on many pages.
        let code = code.replace("{n}", &(number + section % 2).to_string());
        let _ = write!(
            text,
            "## Section {section}\n\nSee [the next](/guides/page-{next}#section-{section}) and [here](#section-0), \
             with `code` and **words** that fill the line, as prose does that explains how thing {number} is made, \
             what it is for, when to use it and what happens otherwise. It goes on for a while, so that pages are \
             as long as real ones.\n\n- First, look at `thing {section}`.\n- Then do it.\n\n```{language} title=\"Example\"\n{code}```\n\n"
        );
        text += match section {
            0 => "<Tip>Keys are shown **once**.</Tip>\n\n",
            1 => {
                "| Field | Type | Meaning |\n|---|---|---|\n| `id` | text | Which |\n| `count` | number | How many |\n| `done` | yes or no | Whether |\n\n"
            }
            2 => {
                "<CardGroup cols={2}>\n  <Card title=\"One\" icon=\"star\" href=\"/guides/page-1\">First.</Card>\n  <Card title=\"Two\" href=\"/guides/page-2\">Second.</Card>\n</CardGroup>\n\n"
            }
            3 => {
                "<Steps>\n  <Step title=\"Install\">Run it.</Step>\n  <Step title=\"Use\">Call it.</Step>\n</Steps>\n\n"
            }
            4 => {
                "<Tabs>\n  <Tab title=\"A\">In a tab.</Tab>\n  <Tab title=\"B\">In another.</Tab>\n</Tabs>\n\n"
            }
            5 => "<ParamField path=\"id\" type=\"string\" required>Which thing.</ParamField>\n\n",
            _ => "![image](/images/one.png)\n\n<Accordion title=\"Why?\">Because.</Accordion>\n\n",
        };
    }
    text
}

/// Does something several times and prints the median of wall and processor time.
fn timed<T>(what: &str, rounds: usize, mut act: impl FnMut(usize) -> T) -> Duration {
    let used = processor_time();
    let mut times: Vec<Duration> = (0..rounds)
        .map(|round| {
            let since = Instant::now();
            std::hint::black_box(act(round));
            since.elapsed()
        })
        .collect();
    let used = (processor_time() - used) / u32::try_from(rounds).expect("a few rounds");
    times.sort();
    let (least, median, most) = (times[0], times[rounds / 2], times[rounds - 1]);
    println!("{what:<44} {median:>8.1?}  ({least:.1?} to {most:.1?}; processor time {used:.1?})");
    median
}

/// Returns the processor time of this process and of its ended children, by proc(5): the 14th
/// to 17th number of its state, in hundredths of a second.
fn processor_time() -> Duration {
    let state = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let (_, numbers) = state.rsplit_once(')').expect("a name in parentheses");
    let used = numbers.split_whitespace().skip(11).take(4);
    let used = used.map(|ticks| ticks.parse::<u64>().expect("a number"));
    Duration::from_millis(10 * used.sum::<u64>())
}

/// Returns the documentation with a different text on one page.
fn edited(round: usize, title: &str) -> Tree {
    let changed = page(550).replace("title: Page 550", &format!("title: {title}"));
    let changed = format!("{changed}\n\nEdited {round} times.\n");
    repository(page, ENDPOINTS, Some((550, changed)))
}

/// Builds again as a new process does, which reads the articles of the previous build from disk.
fn update(round: usize, title: &str, before: &(Built, Vec<u8>)) -> Built {
    let tree = edited(round, title);
    // This is done as in an update, whose process does not read the store.
    let file = |item: &Item| Some(ReleaseFile::stored(item));
    let previous = Previous {
        articles: Articles::from_bytes(&before.1).expect("written by this program"),
        release: Some(PreviousRelease {
            inventory: before.0.release.inventory(),
            file: &file,
        }),
    };
    let options = Options::default();
    let built = build::build_after(&Input::read(tree, &options), &options, &previous);
    std::hint::black_box(built.articles.to_bytes());
    built
}

/// Saves a page and requests it, as in a preview.
fn preview(round: usize, cache: &mut PreviewCache) {
    let tree = edited(round, "Page 550");
    let options = Options::default();
    let PreviewCache { pages, articles } = std::mem::take(cache);
    let nothing = |_needs: &Needs| Ok::<_, Infallible>(Fetched::default());
    let input = Input::fetch(tree, &options, &pages, nothing).expect("nothing is fetched");
    let preview = Preview::new(input, &options, articles);
    let (page, _) = preview.file("pages/guides/page-550.html").expect("a page");
    let text = format!("Edited {round} times.");
    assert!(memchr::memmem::find(&page, text.as_bytes()).is_some());
    *cache = preview.cache();
}

/// Creates a directory in a file system in memory if there is one. Otherwise the bench would
/// measure the disk.
fn directory() -> tempfile::TempDir {
    tempfile::TempDir::new_in("/dev/shm")
        .or_else(|_| tempfile::TempDir::new())
        .expect("make a directory")
}

/// Measures `waypost build`, from a directory to a directory, and as an edit makes it necessary.
fn process(tree: &Tree, rounds: usize) -> Duration {
    let directory = directory();
    let docs = directory.path().join("docs");
    for path in tree.files() {
        let file = docs.join(path.as_str());
        std::fs::create_dir_all(file.parent().expect("below the docs")).expect("make a directory");
        std::fs::write(file, tree.read(path).expect("in memory")).expect("write");
    }
    let build = || {
        let built = Command::new(env!("CARGO_BIN_EXE_waypost"))
            .args(["build", "--out"])
            .arg(directory.path().join("release"))
            .arg(&docs)
            .output();
        assert!(built.expect("run ourselves").status.success());
    };
    let all = timed("waypost build, the process", rounds, |_| build());
    // `waypost build` keeps nothing between two runs, so this is a build of everything too.
    timed("one page changed, as a process", rounds, |round| {
        let changed = format!("{}\n\nEdited {round} times.\n", page(550));
        std::fs::write(docs.join("guides/page-550.mdx"), changed).expect("write");
        build();
    });
    all
}

/// Measures mdBook with the same Markdown. mdBook renders and highlights less of it; `None` if
/// it is not installed.
fn mdbook(rounds: usize) -> Option<Duration> {
    let beside =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/clients/mdbook/bin/mdbook");
    let program = if beside.exists() {
        beside
    } else {
        "mdbook".into()
    };
    Command::new(&program).arg("--version").output().ok()?;
    let book = directory();
    let source = book.path().join("src");
    std::fs::create_dir(&source).expect("make a directory");
    std::fs::write(book.path().join("book.toml"), "[book]\ntitle = \"Acme\"\n").expect("write");
    let mut summary = String::from("# Summary\n\n");
    for number in 0..PAGES {
        std::fs::write(source.join(format!("page-{number}.md")), page(number)).expect("write");
        let _ = writeln!(summary, "- [Page {number}](page-{number}.md)");
    }
    std::fs::write(source.join("SUMMARY.md"), summary).expect("write");
    Some(timed("mdbook build, the same pages", rounds, |_| {
        let built = Command::new(&program)
            .arg("build")
            .arg(book.path())
            .output();
        assert!(built.expect("run mdbook").status.success());
    }))
}

/// Measures Zensical with the same Markdown, without the results of an earlier build. It highlights
/// code and renders less of the rest; `None` if it is not installed.
fn zensical(rounds: usize) -> Option<Duration> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = root.join("target/clients/zensical/bin/zensical");
    Command::new(&program).arg("--version").output().ok()?;
    let project = directory();
    let source = project.path().join("docs");
    std::fs::create_dir(&source).expect("make a directory");
    let config = "[project]\nsite_name = \"Acme\"\n";
    std::fs::write(project.path().join("zensical.toml"), config).expect("write");
    std::fs::write(source.join("index.md"), "# Acme\n").expect("write");
    for number in 0..PAGES {
        // It takes the icon of a page for the path of a file.
        let page = page(number).replace("icon: star\n", "");
        std::fs::write(source.join(format!("page-{number}.md")), page).expect("write");
    }
    Some(timed("zensical build, the same pages", rounds, |_| {
        let built = Command::new(&program)
            .args(["build", "--clean"])
            .current_dir(project.path())
            .output();
        assert!(built.expect("run zensical").status.success());
    }))
}

fn main() {
    let tree = repository(page, ENDPOINTS, None);
    let options = Options::default();
    let bytes: usize = (0..PAGES).map(|n| page(n).len()).sum();
    let built = build::build(
        &Input::read(repository(page, ENDPOINTS, None), &options),
        &options,
    );
    assert!(built.report.diagnostics.is_empty(), "{}", built.report);
    println!(
        "{PAGES} pages of {} bytes, {} articles; {} files of {} bytes",
        bytes / PAGES,
        built.articles.len(),
        built.report.files,
        built.report.bytes
    );
    timed("check, of all that is built below", 5, |_| {
        let (docs, found) = docs::read(&tree, &docs::Options::default());
        (build::check::check(&docs, &tree), found)
    });
    let mut trees: Vec<Tree> = (0..5).map(|_| repository(page, ENDPOINTS, None)).collect();
    timed("build, everything", 5, |_| {
        let tree = trees.pop().expect("one for each round");
        build::build(&Input::read(tree, &options), &options)
    });
    let kept = built.articles.to_bytes();
    println!("what is kept for the next build: {} bytes", kept.len());
    let before = (built, kept);
    timed("build, one page changed", 5, |round| {
        update(round, "Page 550", &before)
    });
    timed("build, one title changed", 5, |round| {
        update(round, &format!("Title {round}"), &before)
    });
    // The first request reads everything, as a preview does when it starts.
    let mut cache = PreviewCache::default();
    preview(0, &mut cache);
    timed("preview, a page saved and made again", 9, |round| {
        preview(round, &mut cache);
    });
    let ours = process(&tree, 5);
    for (name, theirs) in [("mdbook", mdbook(5)), ("zensical", zensical(3))] {
        match theirs {
            Some(theirs) => println!(
                "waypost/{name}: {:.2} of its time",
                ours.as_secs_f64() / theirs.as_secs_f64()
            ),
            None => println!("{name} is not installed"),
        }
    }
}
