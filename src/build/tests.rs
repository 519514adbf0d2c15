//! Releases of small trees, and their reports.

use bytes::Bytes;

use super::*;
use crate::source::{Tree, TreePath};

fn tree(files: &[(&str, &str)]) -> Tree {
    let file = |(path, text): &(&str, &str)| {
        let path = TreePath::parse(path).unwrap();
        (path, Bytes::from((*text).to_owned()))
    };
    Tree::from_files(files.iter().map(file), [])
}

const SKILL: &str = "---\nname: pay\ndescription: Use when asked to pay.\n---\nPay.\n";

fn skill(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: Use when asked for {name}.\n---\n{body}")
}

fn built(files: &[(&str, &str)]) -> Built {
    let options = Options::default();
    build(&Input::read(tree(files), &options), &options)
}

fn paths(release: &Release) -> Vec<&str> {
    release.files().map(|(path, _)| path.as_str()).collect()
}

#[test]
fn a_release_has_the_authors_bytes_and_their_digest() {
    let text = skill("pay", "\u{feff}Ünchanged\r\n\0");
    let Built {
        release, report, ..
    } = built(&[
        (
            "docs.json",
            r#"{"name": "Acme", "navigation": {"pages": ["index"]}}"#,
        ),
        ("index.mdx", "# Welcome"),
        (".waypost/skills/x/SKILL.md", &text),
    ]);
    let listed = paths(&release);
    // Names below `static/` contain a digest; the tests of the site follow links to them.
    let plain = listed.iter().filter(|path| !path.starts_with("static/"));
    let plain: Vec<&str> = plain.copied().collect();
    assert_eq!(
        plain,
        [
            "404.html",
            "discovery.json",
            "navigation.json",
            "pages/index.html",
            "pages/index.html.br",
            "pages/index.md",
            "search.html",
            "search.index",
            "search/en.html",
            "site.json",
            "skills/pay/SKILL.md",
            "texts/_waypost/openapi.json",
            "texts/_waypost/pages",
            "texts/api-catalog",
            "texts/llms-agents.txt",
            "texts/llms-full.txt",
            "texts/llms.txt",
            "texts/robots.txt",
            "texts/sitemap.xml",
        ]
    );
    let navigation = release.file("navigation.json").unwrap();
    let navigation: serde_json::Value = serde_json::from_slice(&navigation.bytes).unwrap();
    assert_eq!(navigation["pages"][0]["url"], "/");
    let served = release.file("skills/pay/SKILL.md").unwrap();
    assert_eq!(served.bytes, text);
    assert_eq!(&*served.media_type, "text/markdown; charset=utf-8");

    let summary = Summary::parse(&release.file("discovery.json").unwrap().bytes).unwrap();
    assert_eq!(
        (&*summary.title, &*summary.description),
        ("Acme", "Documentation of Acme.")
    );
    let [listed] = &summary.skills[..] else {
        panic!("{summary:?}");
    };
    assert_eq!(listed.digest, Digest::of(text.as_bytes()));
    assert_eq!(&*listed.description, "Use when asked for pay.");
    report.publishable().unwrap();
}

#[test]
fn a_file_has_encoded_variants_that_are_a_fifth_smaller() {
    let long = skill("long", &"Call the endpoint, then wait. ".repeat(100));
    let short = skill("short", "Call the endpoint.");
    let Built { release, .. } = built(&[
        (".waypost/skills/long/SKILL.md", &long),
        (".waypost/skills/short/SKILL.md", &short),
    ]);
    assert_eq!(
        paths(&release),
        [
            "discovery.json",
            "skills/long/SKILL.md",
            "skills/long/SKILL.md.br",
            "skills/long/SKILL.md.gz",
            "skills/long/SKILL.md.zst",
            "skills/short/SKILL.md",
        ]
    );
    let zstd = &release.file("skills/long/SKILL.md.zst").unwrap().bytes;
    assert_eq!(zstd::decode_all(&zstd[..]).unwrap(), long.as_bytes());
}

#[test]
fn a_release_has_no_trace_of_private_content() {
    let private =
        "---\nname: vault\ndescription: Where the keys are.\ngroups: [admin]\n---\nSECRET\n";
    let public = skill("pay", "");
    let with = built(&[
        (".waypost/skills/a/SKILL.md", &public),
        ("skill.md", private),
    ]);
    let without = built(&[(".waypost/skills/a/SKILL.md", &public)]);
    assert_eq!(with.release.id(), without.release.id());
    for (path, file) in with.release.files() {
        let bytes = String::from_utf8_lossy(&file.bytes);
        assert!(
            !bytes.contains("SECRET") && !bytes.contains("vault"),
            "{path}"
        );
    }
}

#[test]
fn a_tree_without_documentation_and_skills_is_an_error_unless_that_is_meant() {
    let Built { report, .. } = built(&[]);
    let error = report.publishable().unwrap_err();
    assert_eq!(
        error.first.to_string(),
        "docs.json: error[config]: there is no `docs.json`, so nothing would be served (write a `docs.json` with `name` and `navigation`, or name the directory that has one)"
    );

    let options = Options {
        allow_empty: true,
        ..Options::default()
    };
    let Built {
        release, report, ..
    } = build(&Input::read(tree(&[]), &options), &options);
    assert_eq!(paths(&release), ["discovery.json"]);
    assert_eq!(report.diagnostics, []);
}

#[test]
fn a_configuration_in_the_older_format_alone_is_an_error_that_says_what_to_do() {
    let Built { report, .. } = built(&[("mint.json", "{}"), ("skill.md", &skill("pay", ""))]);
    let error = report.publishable().unwrap_err();
    assert_eq!(error.first.rule, "config");
    assert!(error.first.to_string().contains("waypost convert"));
}

#[test]
fn a_documentation_without_any_page_is_an_error() {
    for navigation in [
        r#"{"pages": ["gone"]}"#,
        r#"{"groups": [{"group": "A", "pages": []}]}"#,
    ] {
        let config = format!(r#"{{"name": "A", "navigation": {navigation}}}"#);
        let Built { report, .. } = built(&[("docs.json", &config), ("skill.md", SKILL)]);
        let errors: Vec<_> = report.diagnostics.iter().filter(|d| d.is_error()).collect();
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(errors[0].rule, "no-page");
    }
}

#[test]
fn skills_alone_make_a_release_where_no_pages_were_before() {
    let options = Options::default();
    let input = Input::read(tree(&[("skill.md", SKILL)]), &options);
    let only_skills = build(&input, &options);
    only_skills.report.publishable().unwrap();

    let with_pages = built(&[
        (
            "docs.json",
            r#"{"name": "A", "navigation": {"pages": ["index"]}}"#,
        ),
        ("index.mdx", "# A"),
    ]);
    let before = with_pages.release.file(NAVIGATION_PATH).unwrap();
    let removed = only_skills.removed_pages(&input, &before.bytes);
    assert_eq!(removed.len(), 1);
    assert_eq!((removed[0].rule, removed[0].is_error()), ("config", true));
}

#[test]
fn a_skill_that_cannot_be_used_holds_no_page_back_and_a_generated_one_is_served() {
    for (path, text) in [
        (
            "skill.md",
            "---\nname: a\ndescription: Use when: asked\n---\n",
        ),
        ("SKILL.md", SKILL),
        (
            "skill.md",
            "---\nname: a\ndescription: b\ngroups: [x]\n---\n",
        ),
    ] {
        let built = built(&[
            (
                "docs.json",
                r#"{"name": "A", "navigation": {"pages": ["index"]}}"#,
            ),
            ("index.mdx", "# A"),
            (path, text),
        ]);
        built.report.publishable().unwrap();
        assert!(!built.report.diagnostics.is_empty());
        assert!(built.generated().is_some(), "{path}");
        assert!(built.release.file("pages/index.md").is_some());
    }
}

#[test]
fn the_order_of_files_does_not_change_the_release() {
    let text = skill("pay", &"Call the endpoint, then wait. ".repeat(100));
    let other = skill("refund", "");
    let files = [
        ("docs.json", "{}"),
        (".waypost/skills/a/SKILL.md", &text),
        ("skill.md", &other),
    ];
    let mut reversed = files;
    reversed.reverse();
    assert_eq!(built(&files).release.id(), built(&reversed).release.id());
}

#[test]
fn one_changed_byte_changes_the_release() {
    let one = built(&[("skill.md", &skill("pay", "a"))]).release.id();
    let other = built(&[("skill.md", &skill("pay", "b"))]).release.id();
    assert_ne!(one, other);
}

#[test]
fn errors_prevent_publication_and_warnings_do_not() {
    let Built { report, .. } = built(&[("skill.md", "# No frontmatter")]);
    assert_eq!((report.tally().errors, report.tally().warnings), (0, 1));
    report.publishable().unwrap();

    let Built { report, .. } = built(&[("skill.md", ""), ("docs.json", "[]")]);
    let error = report.publishable().unwrap_err();
    assert_eq!(error.tally, report.tally());
    let expected = "cannot be published: 1 error in 1 file, the first is docs.json:1:1: error";
    assert!(error.to_string().starts_with(expected), "{error}");
    let last = report.to_string().lines().last().map(str::to_owned);
    assert_eq!(
        last.as_deref(),
        Some("cannot be published: 1 error in 1 file")
    );
}

#[test]
fn a_report_has_diagnostics_by_file_and_then_the_release() {
    let Built {
        release, report, ..
    } = built(&[
        ("skill.md", &skill("Pay People", "")),
        (".waypost/skills/a/SKILL.md", ""),
    ]);
    let bytes: usize = release.files().map(|(_, file)| file.bytes.len()).sum();
    assert_eq!(
        report.to_string(),
        format!(
            ".waypost/skills/a/SKILL.md: warning[skill-empty]: the file is empty\n\
             skill.md:2:1: warning[skill-name]: `Pay People` is not a slug; the skill is served as `pay-people`\n\
             skill pay-people from skill.md\n\
             release {}: 1 skill, 2 files, {bytes} bytes; 0 errors, 2 warnings",
            release.id()
        )
    );
}

/// A repository on disk: skills inside and outside of the documentation, by link and as files,
/// beside files that git ignores.
fn repository() -> tempfile::TempDir {
    use std::fs;
    use std::os::unix::fs::symlink;

    let directory = tempfile::TempDir::new().unwrap();
    let root = directory.path();
    let long = skill("long", &"Call the endpoint, then wait. ".repeat(100));
    for (file, text) in [
        (".gitignore", "node_modules/\n"),
        (
            "docs/docs.json",
            r#"{"name": "Acme", "description": "How to pay.", "navigation": {"pages": ["index"]}}"#,
        ),
        ("docs/index.md", "# Welcome"),
        ("docs/skill.md", &skill("root", "")),
        ("agents/pay/SKILL.md", &skill("pay", "Unchanged\r\n")),
        ("packages/sdk/SKILL.md", &long),
        ("node_modules/x/SKILL.md", &skill("x", "")),
    ] {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), text).unwrap();
    }
    fs::create_dir(root.join("docs/.waypost")).unwrap();
    fs::create_dir(root.join("agents/empty")).unwrap();
    symlink("../../agents", root.join("docs/.waypost/skills")).unwrap();
    symlink("../packages/sdk", root.join("agents/sdk")).unwrap();
    symlink("../node_modules/x", root.join("agents/ignored")).unwrap();
    symlink("/etc", root.join("agents/outside")).unwrap();
    directory
}

#[test]
fn a_directory_and_a_tree_in_memory_make_the_same_release() {
    let directory = repository();
    let docs = TreePath::parse("docs").unwrap();
    let limits = crate::source::directory::Limits::default();
    let (on_disk, reported) =
        crate::source::directory::open(directory.path(), &docs, limits).unwrap();
    assert_eq!(reported, []);

    let path = |text: &str| TreePath::parse(text).unwrap();
    let files: Vec<_> = on_disk.files().cloned().collect();
    let in_memory = Tree::from_files(
        files.into_iter().map(|file| {
            let bytes = on_disk.read(&file).unwrap();
            (file, bytes)
        }),
        [
            (path("docs/.waypost/skills"), "../../agents".into()),
            (path("agents/sdk"), "../packages/sdk".into()),
            (path("agents/ignored"), "../node_modules/x".into()),
            (path("agents/outside"), "/etc".into()),
        ],
    )
    .with_docs_root(docs);

    let options = Options::default();
    let built = |tree| build(&Input::read(tree, &options), &options);
    let (one, other) = (built(on_disk), built(in_memory));
    assert_eq!(one.release.id(), other.release.id());
    assert_eq!(one.report.to_string(), other.report.to_string());
    assert_eq!(
        one.report.to_string(),
        format!(
            "docs/.waypost/skills/ignored: warning[link-dangling]: link agents/ignored leads to ../node_modules/x, which does not exist\n\
             docs/.waypost/skills/outside: warning[link-outside]: link agents/outside leads out of the repository, to /etc\n\
             docs/.waypost/skills/sdk/SKILL.md:2:1: warning[skill-name]: the skill `long` is in the directory `sdk` (give both the same name: some clients drop the skill otherwise)\n\
             skill long from docs/.waypost/skills/sdk/SKILL.md\n\
             skill pay from docs/.waypost/skills/pay/SKILL.md\n\
             skill root from docs/skill.md\n\
             release {}: 3 skills, {} files, {} bytes; 0 errors, 3 warnings",
            one.release.id(),
            paths(&one.release).len(),
            one.report.bytes,
        )
    );
}

/// The entry of the only skill of a release.
fn only(release: &Release) -> Listed {
    let summary = Summary::parse(&release.file(SUMMARY_PATH).unwrap().bytes).unwrap();
    let [listed] = &summary.skills[..] else {
        panic!("{summary:?}");
    };
    listed.clone()
}

fn generated(slug: &str, description: &str, text: &str) -> Generated {
    Generated {
        slug: skills::Slug::from_name(slug).unwrap(),
        description: description.to_owned(),
        text: text.to_owned(),
        warnings: Vec::new(),
    }
}

#[test]
fn replacing_the_generated_skill_changes_two_files_and_no_diagnostic() {
    let before = built(&[
        (
            "docs.json",
            r#"{"name": "Acme", "navigation": {"pages": ["index", "missing"]}}"#,
        ),
        ("index.mdx", "# Welcome"),
    ]);
    let (was, ours) = (only(&before.release), before.generated().unwrap());
    let ours = generated(&was.slug, &was.description, ours);
    // A skill of an author of this length would be encoded.
    let text = skill("pay", &"Pay with care. ".repeat(500));
    let after = before
        .clone()
        .with_skill(generated("pay", "Use it to pay.", &text));

    let rest = |release: &Release, slug: &str| -> Vec<_> {
        let changed = [
            skill_path(slug, Encoding::Identity),
            SUMMARY_PATH.to_owned(),
        ];
        let files = release
            .files()
            .map(|(path, file)| (path.clone(), file.clone()));
        files
            .filter(|(path, _)| !changed.iter().any(|changed| changed == path.as_str()))
            .collect()
    };
    assert_eq!(rest(&after.release, "pay"), rest(&before.release, "acme"));
    let served = after.release.file("skills/pay/SKILL.md").unwrap();
    assert_eq!(served, &ReleaseFile::new(text.clone(), MARKDOWN));
    assert_eq!(after.generated(), Some(&*text));
    let listed = only(&after.release);
    assert_eq!((&*listed.slug, &*listed.name), ("pay", "pay"));
    assert_eq!(&*listed.description, "Use it to pay.");
    assert_eq!(listed.digest, Digest::of(text.as_bytes()));
    assert!(listed.generated);

    let report = &after.report;
    assert_eq!(report.release, after.release.id());
    assert_eq!(&*report.skills[0].slug, "pay");
    assert_eq!(report.files, before.report.files);
    assert!(!report.diagnostics.is_empty());
    assert_eq!(report.diagnostics, before.report.diagnostics);

    // The release is the one of a build with this skill.
    let again = after.with_skill(ours);
    assert_eq!(again.release.id(), before.release.id());
    assert_eq!(again.report.to_string(), before.report.to_string());
}

#[test]
fn a_skill_of_an_author_is_never_replaced() {
    let before = built(&[("skill.md", &skill("pay", "Pay."))]);
    assert_eq!(before.generated(), None);
    let after = before
        .clone()
        .with_skill(generated("other", "Use it.", "Other."));
    assert_eq!(after.release.id(), before.release.id());
}
