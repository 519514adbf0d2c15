//! How long does a build take, of everything and of one changed page?
//!
//! Over 1,100 generated pages of 6 KB (prose, tables, seven languages of code, components,
//! links, images) and 24 specifications of 10 endpoints with a page each. Everything that an
//! update does from the tree to the release is in it: check, render, compress, digests.

mod repository;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use bytes::Bytes;
use repository::{PAGES, page_path, repository};
use waypost::build::{self, Options};
use waypost::source::Tree;

/// Two methods of each of five paths in each of 24 specifications.
const ENDPOINTS: usize = 5;

/// Code in the languages that documentation has.
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
        // Most fences of a site are its own; some stand on many pages.
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

fn timed<T>(what: &str, rounds: usize, mut act: impl FnMut() -> T) -> Duration {
    let mut times: Vec<Duration> = (0..rounds)
        .map(|_| {
            let since = Instant::now();
            std::hint::black_box(act());
            since.elapsed()
        })
        .collect();
    times.sort();
    let median = times[rounds / 2];
    println!(
        "{what:<40} {median:>9.0?}   ({:.0?} to {:.0?})",
        times[0],
        times[rounds - 1]
    );
    median
}

fn main() {
    let tree = repository(page, ENDPOINTS);
    let options = Options::default();
    let bytes: usize = (0..PAGES).map(|n| page(n).len()).sum();
    println!("{PAGES} pages of {} bytes", bytes / PAGES);
    let built = build::build(&tree, &options);
    assert!(built.report.diagnostics.is_empty(), "{}", built.report);
    println!(
        "{} files of {} bytes",
        built.report.files, built.report.bytes
    );
    timed("build, everything", 5, || build::build(&tree, &options));
    let _ = (page_path(0), Bytes::new(), Tree::docs_root(&tree));
}
