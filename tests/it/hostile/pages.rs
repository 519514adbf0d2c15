//! No page can stop a build, whatever its author wrote.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use waypost::mdx;
use waypost::render::article::{self, Source};
use waypost::render::link::Map;

/// Repeats a piece up to this many bytes.
fn repeat(piece: &str, bytes: usize) -> String {
    piece.repeat(bytes / piece.len())
}

/// Pages of about this many bytes that could make a reader slow or need much memory.
fn hostile(bytes: usize) -> Vec<(&'static str, String)> {
    let all = |piece| repeat(piece, bytes);
    let half = |piece| repeat(piece, bytes / 2);
    let numbered = |text: fn(usize) -> String, bytes: usize| {
        let mut out = String::new();
        for n in 0.. {
            out += &text(n);
            if out.len() >= bytes {
                break;
            }
        }
        out
    };
    let ring: String = (1..30)
        .map(|n| format!("export const v{n} = [v{}, v{}];\n", n - 1, n - 1))
        .collect();
    let twice = "export const Two = ({ children }) => <>{children}{children}</>\n\n";
    vec![
        ("images", all("![a](")),
        ("links", all("[a](")),
        ("links-whole", all("[a](b) ")),
        ("link-titles", format!("[a](b \"{}", all("a\n"))),
        ("link-titles-many", all("[a](b \"\n")),
        ("link-angles", all("[a](<")),
        ("brackets", all("[")),
        (
            "references",
            format!("[a]: /{}\n\n{}", half("x"), half("[a] ")),
        ),
        (
            "references-many",
            numbered(|n| format!("[a{n}]: /x\n"), bytes),
        ),
        (
            "footnotes",
            numbered(|n| format!("[^{n}]: a [^{n}]\n\n"), bytes),
        ),
        ("footnotes-in-each-other", all("[^a]: ")),
        ("quotations", format!("{}a{}", half("> "), half("\na"))),
        ("lists", format!("{}a{}", half("- "), half("\na"))),
        ("lists-blank", format!("{}a{}", half("1. "), half("\n"))),
        (
            "lists-indented",
            numbered(|n| format!("{}- a\n", "  ".repeat(n)), bytes),
        ),
        ("emphasis", all("*a **b _c ")),
        ("emphasis-runs", format!("{}a{}", half("*"), half("*"))),
        ("struck", all("~~a ")),
        ("backticks", numbered(|n| "`".repeat(n + 1) + " ", bytes)),
        ("fences", all("```\n")),
        ("fences-long", all("```js\nlet a = /* x\n")),
        // Expressions backtrack a little at each position of each line.
        (
            "fences-costly",
            numbered(
                |n| format!("```r\n{} {n}_0\n```\n\n", "a.".repeat(950)),
                4 * bytes,
            ),
        ),
        (
            "fences-long-line",
            format!("```js\n{}\n```\n", "a = 1; ".repeat(400)),
        ),
        ("fences-large", format!("```js\n{}```\n", all("a = 1;\n"))),
        ("columns", format!("|{}\n|{}\n", half("a|"), half("-|"))),
        (
            "rows-short",
            format!(
                "|{}\n|{}\n{}",
                repeat("a|", bytes / 4),
                repeat("-|", bytes / 4),
                half("|x\n")
            ),
        ),
        ("headings", all("## Same\n\n")),
        ("headings-numbered", all("## Same 1\n\n## Same\n\n")),
        ("tags", all("<a ")),
        ("tags-in-attributes", all("<a b={")),
        ("tags-quoted", all("<a b=\"")),
        ("tags-deep", all("<Note>\n")),
        ("tags-closed", all("</Note>\n")),
        ("tags-one-line", all("<b>x</b> ")),
        ("tags-unknown", numbered(|n| format!("<A{n}/>\n"), bytes)),
        (
            "attribute-huge",
            format!("<Card title=\"{}\" />\n", all("x")),
        ),
        (
            "attributes-many",
            format!("<Card {}/>\n", numbered(|n| format!("a{n}=\"b\" "), bytes)),
        ),
        (
            "html-in-a-text",
            format!(
                "<div dangerouslySetInnerHTML={{{{ __html: '{}' }}}} />\n",
                all("<div><td><p>")
            ),
        ),
        ("comments", all("<!--")),
        ("braces", all("{")),
        ("braces-closed", all("{a}\n")),
        (
            "expressions-deep",
            format!("{{{}{}}}", half("["), half("]")),
        ),
        ("expressions-jsx", all("{<b>")),
        ("expressions-list", format!("{{[{}]}}", all("<b/>,"))),
        ("expressions-sum", format!("{{\"a\"{}}}", all("+\"a\""))),
        ("expressions-choice", format!("{{{}c}}", all("a?b:"))),
        (
            "exports",
            numbered(|n| format!("export const a{n} = 1;\n\n"), bytes),
        ),
        ("exports-open", all("export const a = {\n\n")),
        ("exports-blank", format!("export const a ={}", all("\n"))),
        (
            "exports-components",
            numbered(|n| format!("export const A{n} = () => <b/>;\n\n"), bytes),
        ),
        (
            "exports-double",
            format!("export const v0 = \"xxxxxxxx\";\n{ring}\n{{v29}}\n"),
        ),
        (
            "exports-big",
            format!(
                "export const v = [\"{}\"];\n\n{}",
                half("x"),
                half("{v[0]}\n")
            ),
        ),
        (
            "children-double",
            format!("{twice}{}x{}", "<Two>".repeat(60), "</Two>".repeat(60)),
        ),
        ("imports", all("import a from 'b'\n\n")),
        ("imports-one-line", all("import a from 'b';")),
        ("formulas", all("$a ")),
        ("formulas-deep", format!("${}{}$", half("{"), half("}"))),
        ("formulas-display", all("$$\\frac{")),
        ("icons", all("<Icon icon=\"nope\" />\n")),
        (
            "icons-many",
            numbered(|n| format!("<Icon icon=\"nope{n}\" />\n"), bytes),
        ),
        ("entities", all("&amp;&#x26;&nope;")),
        ("addresses", all("http://a.b/(")),
        (
            "frontmatter",
            format!(
                "---\n{}---\n\nText\n",
                numbered(|n| format!("k{n}: v\n"), bytes)
            ),
        ),
        (
            "frontmatter-same",
            format!("---\n{}---\n\nText\n", all("k: v\n")),
        ),
        (
            "frontmatter-deep",
            format!("---\nk: {}\n---\n\nText\n", all("[")),
        ),
        ("frontmatter-open", format!("---\n{}", all("k: v\n"))),
    ]
}

/// Pages that exceed a limit. Their source is shown instead, or code without colours.
const OVER_A_LIMIT: [&str; 10] = [
    "fences-costly",
    "fences-large",
    "fences-long-line",
    "exports-big",
    "exports-double",
    "expressions-jsx",
    "link-titles",
    "lists",
    "quotations",
    "tags-deep",
];

#[test]
fn a_build_shows_hostile_pages_and_leaves_the_others_unchanged() {
    let directory = TempDir::new().unwrap();
    let docs = directory.path().join("docs");
    fs::create_dir(&docs).unwrap();
    let mut pages = hostile(100_000);
    // Frontmatter over its limit, or that cannot be read, is an error of its own.
    pages.retain(|(name, _)| !name.starts_with("frontmatter"));
    pages.push(("honest", "Whales *sing*.".into()));
    let names: Vec<_> = pages
        .iter()
        .map(|(name, _)| format!("\"{name}\""))
        .collect();
    let config = format!(
        "{{\"name\": \"Acme\", \"lenient\": true, \"navigation\": {{\"pages\": [{}]}}}}",
        names.join(",")
    );
    fs::write(docs.join("docs.json"), config).unwrap();
    for (name, text) in &pages {
        fs::write(docs.join(format!("{name}.mdx")), text).unwrap();
    }
    let out = directory.path().join("out");
    let output = Command::new("timeout")
        .args(["240", env!("CARGO_BIN_EXE_waypost"), "build", "--out"])
        .arg(&out)
        .arg(&docs)
        .output()
        .unwrap();
    let messages = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    let limits = |line: &&str| line.contains("error") || line.contains("page-limit");
    let limits: Vec<_> = messages.lines().filter(limits).collect();
    assert!(output.status.success(), "{:?}: {limits:#?}", output.status);
    let inventory = fs::read_to_string(out.join("inventory.json")).unwrap();
    for (name, _) in &pages {
        assert!(inventory.contains(name), "{name} is missing");
    }
    for name in OVER_A_LIMIT {
        let is_named = limits
            .iter()
            .any(|line| line.starts_with(&format!("{name}.mdx")));
        assert!(is_named, "{name}: {limits:#?}");
    }
}

/// The time of reading and showing a page: the best of three.
fn takes(text: &str) -> Duration {
    let once = || {
        let since = Instant::now();
        let source = mdx::Source::new("guides/page.mdx", text);
        let read = mdx::read(&source, &|_| None);
        let _article = article::render(&Source::alone(&source, &read), &Map::default());
        since.elapsed()
    };
    (0..3).map(|_| once()).min().unwrap()
}

#[test]
#[ignore = "`make soak` runs it: it measures time, and needs a quiet machine"]
fn a_page_of_four_times_the_length_takes_about_four_times_as_long() {
    let longer = hostile(640_000).into_iter();
    for ((name, short), (_, long)) in hostile(160_000).into_iter().zip(longer) {
        let (short, long) = (takes(&short), takes(&long));
        let most = short * 12 + Duration::from_millis(500);
        assert!(long < most, "{name}: {short:?}, then {long:?}");
    }
}

/// Runs `waypost check` on a `docs.json`, which has to end within a minute.
fn check(directory: &TempDir, config: &str) -> Command {
    fs::write(directory.path().join("docs.json"), config).unwrap();
    fs::write(directory.path().join("a.mdx"), "Whales sing.").unwrap();
    let mut command = Command::new("timeout");
    command.args(["60", env!("CARGO_BIN_EXE_waypost"), "check"]);
    command.arg(directory.path());
    command
}

#[test]
fn many_entries_for_the_same_page_take_no_quadratic_time() {
    let entries = vec!["\"a\""; 150_000].join(",");
    let config = format!("{{\"name\": \"Acme\", \"navigation\": {{\"pages\": [{entries}]}}}}");
    let directory = TempDir::new().unwrap();
    let output = check(&directory, &config).output().unwrap();
    // 124 is the exit code of `timeout`.
    assert_ne!(output.status.code(), Some(124));
    let messages = [output.stdout, output.stderr].concat();
    let messages = String::from_utf8_lossy(&messages);
    assert!(messages.contains("page-duplicate"), "{}", messages.len());
}

#[test]
fn a_reader_that_leaves_early_is_no_error_of_check() {
    let links: String = (0..20_000).map(|n| format!("\"b{n}\",")).collect();
    let config = format!("{{\"name\": \"Acme\", \"navigation\": {{\"pages\": [{links}\"a\"]}}}}");
    let directory = TempDir::new().unwrap();
    let mut child = check(&directory, &config)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The diagnostics have more bytes than a pipe holds, so `check` is still writing.
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !said.contains("panicked") && !said.contains("Broken pipe"),
        "{said}"
    );
}

/// Pages whose JSX runs without end, or tries to leave the engine. Each page is shown without that
/// part.
const JSX: [(&str, &str); 43] = [
    (
        "loop",
        "{(() => { for (;;) { try { for (;;) {} } catch {} } })()}",
    ),
    (
        "memory",
        "{(() => { const a = []; for (;;) a.push(new Array(1000).fill(0)); })()}",
    ),
    ("text", "{(() => { let s = 'x'; for (;;) s += s; })()}"),
    ("recursion", "export const f = () => f();\n\n{f()}"),
    (
        "components",
        "export const X = () => <><X/><X/></>;\n\n<X/>",
    ),
    ("elements", "{Array.from({ length: 3e6 }, () => <b>x</b>)}"),
    (
        "expression",
        "{/(a+)+$/.test('a'.repeat(50) + 'b') ? 1 : 2}",
    ),
    ("proxy", "{new Proxy({}, { get() { for (;;) {} } })}"),
    ("getter", "{({ get $$typeof() { for (;;) {} } })}"),
    (
        "prototype",
        "export const a = (Array.prototype.toJSON = () => 1, Object.prototype.x = 1);\n\n{[a].map(x => { for (;;) {} })}",
    ),
    ("constructor", "{(() => {}).constructor('return this')().x}"),
    ("string", "{'x'.repeat(2 ** 28).length}"),
    ("text", "{'<b>x'.repeat(2e6)}"),
    (
        "number",
        "{Array.from({ length: 2e6 }, () => (1e20).toLocaleString()).length}",
    ),
    (
        "array",
        "{Array.prototype.indexOf.call({ length: 2 ** 53 }, 1)}",
    ),
    (
        "effect",
        "export const X = () => { const [n, set] = useState(0); set(n + 1); return n; };\n\n<X/>",
    ),
    // Each step of these does much work, and no function of the page does it.
    (
        "work-apply",
        "{(() => { const a = new Array(6e4).fill(1); let n = 0; for (let j = 0; j < 1e6; j++) n += Math.max(...a); return n; })()}",
    ),
    (
        "work-compare",
        "{(() => { const s = 'x'.repeat(1e7), t = 'x'.repeat(1e7); let n = 0; for (let j = 0; j < 1e6; j++) n += s === t; return n; })()}",
    ),
    (
        "work-concat",
        "{(() => { const s = 'x'.repeat(1e7); let n = 0; for (let j = 0; j < 1e6; j++) n += (s + j).charCodeAt(5); return n; })()}",
    ),
    (
        "work-encode",
        "{(() => { const s='é'.repeat(1e6); let n=0; for (let j = 0; j < 1e5; j++) { n += encodeURIComponent(s).length; } return n; })()}",
    ),
    (
        "work-forin",
        "{(() => { const o = {}; for (let i = 0; i < 1e5; i++) o['k' + i] = 1; let n = 0; for (let j = 0; j < 1e5; j++) for (const k in o) { n++; break; } return n; })()}",
    ),
    (
        "work-freeze",
        "{(() => { const o = {}; for (let i = 0; i < 1e5; i++) o['k' + i] = 1; let n = 0; for (let j = 0; j < 1e5; j++) { Object.freeze(o); n++; } return n; })()}",
    ),
    (
        "work-iterstr",
        "{(() => { const s='1'.repeat(1e6); let n=0; for (let j = 0; j < 1e5; j++) { n += [...s].length; } return n; })()}",
    ),
    (
        "work-keys",
        "{(() => { const o = {}; for (let i = 0; i < 1e5; i++) o['k' + i] = 1; let n = 0; for (let j = 0; j < 1e5; j++) n += Object.keys(o).length; return n; })()}",
    ),
    (
        "work-mapkey",
        "{(() => { const m = new Map(); const a=new Array(1e6).fill([1,1]); let n = 0; for (let j = 0; j < 1e5; j++) n += new Map(a).size; return n; })()}",
    ),
    (
        "work-number",
        "{(() => { const s='1'.repeat(1e7); let n=0; for (let j = 0; j < 1e6; j++) { n += Number(s) + parseInt(s); } return n; })()}",
    ),
    (
        "work-objspread",
        "{(() => { const o = {}; for (let i = 0; i < 1e5; i++) o['k' + i] = 1; let n = 0; for (let j = 0; j < 1e5; j++) n += ({...o}).k1; return n; })()}",
    ),
    (
        "work-ownkeys",
        "{(() => { const o = {}; for (let i = 0; i < 1e5; i++) o['k' + i] = 1; let n = 0; for (let j = 0; j < 1e5; j++) { n += Reflect.ownKeys(o).length; } return n; })()}",
    ),
    (
        "work-set",
        "{(() => { const a = new Array(1e6).fill(1); let n = 0; for (let j = 0; j < 1e5; j++) n += new Set(a).size; return n; })()}",
    ),
    (
        "work-spread",
        "{(() => { const a = new Array(1e6).fill(1); let n = 0; for (let j = 0; j < 1e5; j++) n += [...a].length; return n; })()}",
    ),
    (
        "work-stringify",
        "{(() => { const a = new Array(1e5).fill(1); let n = 0; for (let j = 0; j < 1e5; j++) n += JSON.stringify(a).length; return n; })()}",
    ),
    (
        "work-strkey",
        "{(() => { const o = {}; let n = 0; const s='x'.repeat(1e6); for (let j = 0; j < 1e6; j++) { o[s + (j % 2)] = 1; } return n; })()}",
    ),
    // One call of these does work that its arguments do not show.
    (
        "work-search",
        "{'a'.repeat(8e6).indexOf('a'.repeat(4e6) + 'b')}",
    ),
    (
        "work-replace",
        "{'a'.repeat(2e6).replaceAll('a'.repeat(1e6) + 'b', 'c').length}",
    ),
    (
        "work-length",
        "{(() => { let n = 0; const o = { get length() { return n++ ? 2 ** 53 - 1 : 0; } }; return Array.prototype.reverse.call(o); })()}",
    ),
    (
        "work-spreadable",
        "{(() => { const a = [1], b = []; Object.defineProperty(a, 0, { get() { b.length = 4e9; } }); return a.concat(b).length; })()}",
    ),
    (
        "work-flat",
        "{(() => { let a = []; for (let i = 0; i < 40; i++) a = [a, a]; return a.flat(Infinity).length; })()}",
    ),
    (
        "work-shared",
        "{(() => { let a = {}; for (let i = 0; i < 40; i++) a = { a, b: a }; return JSON.stringify(a).length; })()}",
    ),
    (
        "work-drop",
        "{(() => { const a = [], values = a.values(); a.length = 4e9; return values.drop(4e9).next().done; })()}",
    ),
    (
        "work-names",
        "{JSON.stringify({}, Array.from({ length: 1e6 }, (_, i) => 'k' + i)).length}",
    ),
    (
        "work-marks",
        "{('a' + '\\u0301\\u0316'.repeat(1e6)).normalize('NFD').length}",
    ),
    (
        "work-prototypes",
        "{(() => { let o = {}; for (let i = 0; i < 3e5; i++) o = Object.create(o); let n = 0; for (let j = 0; j < 5e6; j++) n += o.x ? 1 : 0; return n; })()}",
    ),
    (
        "work-proxies",
        "{(() => { let p = { x: 1 }; for (let i = 0; i < 60; i++) p = new Proxy(p, p); return p.x; })()}",
    ),
];

#[test]
fn jsx_that_works_without_end_costs_only_its_own_part() {
    let directory = TempDir::new().unwrap();
    let names: Vec<_> = JSX.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    let config = format!(
        "{{\"name\": \"Acme\", \"navigation\": {{\"pages\": [{},\"honest\"]}}}}",
        names.join(",")
    );
    fs::write(directory.path().join("docs.json"), config).unwrap();
    for (name, jsx) in JSX {
        let text = format!("Before.\n\n{jsx}\n\n## After\n\n{{1 + 1}} whales.\n");
        fs::write(directory.path().join(format!("{name}.mdx")), text).unwrap();
    }
    let honest = "{['Whales', 'sing'].map(word => <b key={word}>{word}</b>)}\n";
    fs::write(directory.path().join("honest.mdx"), honest).unwrap();
    let releases = TempDir::new().unwrap();
    let run = |command: &str| {
        let out = releases.path().join(command);
        let mut waypost = Command::new("timeout");
        waypost.args(["240", env!("CARGO_BIN_EXE_waypost"), command]);
        if command == "check" {
            waypost.arg("--all");
        }
        if command == "build" {
            waypost.arg("--out").arg(&out);
        }
        let output = waypost.arg(directory.path()).output().unwrap();
        assert!(output.status.success(), "{:?}", output.status);
        let said = [output.stdout, output.stderr].concat();
        (out, String::from_utf8_lossy(&said).into_owned())
    };
    let (out, built) = run("build");
    let page =
        |name: &str| fs::read_to_string(out.join(format!("files/pages/{name}.html"))).unwrap();
    let (_, checked) = run("check");
    for (name, _) in JSX {
        let html = page(name);
        assert!(
            html.contains("Before.") && html.contains("id=\"after\""),
            "{name}"
        );
        assert!(html.contains("class=left-out"), "{name}: {html}");
        for said in [&built, &checked] {
            assert!(said.contains(&format!("{name}.mdx:")), "{name}: {said}");
        }
    }
    // Other pages, and other parts of the page, are evaluated.
    assert!(page("honest").contains("<b>Whales</b><b>sing</b>"));
    assert!(page("constructor").contains("2 whales."));
}
