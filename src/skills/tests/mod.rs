//! Tests of collecting skills, with small trees.

mod names;

use super::*;
use crate::diagnostic::Diagnostic;
use crate::source::Tree;

const SOUND: &str = "---\nname: acme\ndescription: Use when paying people.\n---\n# Acme\n";

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

/// Makes a tree of these files; a text that starts with `->` makes a link.
fn tree(files: &[(&str, &str)]) -> Tree {
    let (links, files): (Vec<_>, Vec<_>) = files
        .iter()
        .map(|(name, text)| (path(name), (*text).to_owned()))
        .partition(|(_, text)| text.starts_with("->"));
    Tree::from_files(
        files.into_iter().map(|(path, text)| (path, text.into())),
        links
            .into_iter()
            .map(|(path, text)| (path, text[2..].into())),
    )
}

fn collected(files: &[(&str, &str)]) -> (Vec<Skill>, Vec<Diagnostic>) {
    collect(&tree(files), "waypost")
}

fn slugs(skills: &[Skill]) -> Vec<&str> {
    skills.iter().map(|skill| skill.slug.as_str()).collect()
}

fn rules(diagnostics: &[Diagnostic]) -> Vec<&str> {
    diagnostics
        .iter()
        .map(|diagnostic| diagnostic.rule)
        .collect()
}

/// Returns the skill of one file in a directory of skills, and its diagnostics.
#[track_caller]
fn one(text: &str) -> (Skill, Vec<String>) {
    let (mut skills, diagnostics) = collected(&[(".waypost/skills/pay/SKILL.md", text)]);
    assert_eq!(skills.len(), 1, "{diagnostics:?}");
    assert_eq!(skills[0].bytes, text, "the author's bytes");
    let diagnostics = diagnostics.iter().map(ToString::to_string).collect();
    (skills.remove(0), diagnostics)
}

/// Checks that a file is left out, while a correct skill beside it is served.
#[track_caller]
fn left_out(text: impl Into<Bytes>, rule: &str, place: Option<(u32, u32)>) {
    let tree = Tree::from_files(
        [
            (path(".waypost/skills/a/SKILL.md"), text.into()),
            (path(".waypost/skills/acme/SKILL.md"), SOUND.into()),
        ],
        [],
    );
    let (skills, diagnostics) = collect(&tree, "waypost");
    assert_eq!(slugs(&skills), ["acme"]);
    let [diagnostic] = &diagnostics[..] else {
        panic!("{diagnostics:?}");
    };
    assert_eq!(diagnostic.rule, rule, "{diagnostic}");
    assert_eq!(&*diagnostic.file, ".waypost/skills/a/SKILL.md");
    assert!(!diagnostic.is_error(), "{diagnostic}");
    let at = diagnostic.location.map(|at| (at.line, at.column));
    assert_eq!(at, place, "{diagnostic}");
}

// === where skills come from ===

#[test]
fn a_root_file_and_directories_are_collected_together_sorted_by_slug() {
    let other = SOUND.replace("acme", "zeta");
    let (skills, diagnostics) = collected(&[
        ("skill.md", &other),
        (".waypost/skills/acme/SKILL.md", SOUND),
        (".waypost/skills/README.md", "# About these"),
        (".other/skills/a/SKILL.md", SOUND),
    ]);
    assert_eq!(slugs(&skills), ["acme", "zeta"]);
    assert_eq!(skills[0].path.as_str(), ".waypost/skills/acme/SKILL.md");
    assert_eq!(diagnostics, []);
}

#[test]
fn skills_belong_to_the_documentation_root() {
    let tree = tree(&[
        ("skill.md", SOUND),
        ("docs/skill.md", &SOUND.replace("acme", "docs")),
    ]);
    let (skills, _) = collect(&tree.with_docs_root(path("docs")), "waypost");
    assert_eq!(slugs(&skills), ["docs"]);
}

#[test]
fn a_tree_without_skills_has_no_diagnostics() {
    assert_eq!(collected(&[("index.mdx", "# Hi")]), (vec![], vec![]));
}

#[test]
fn a_link_may_lead_to_a_skill_anywhere_in_the_repository() {
    let other = SOUND.replace("acme", "other");
    let tree = tree(&[
        ("agents/skills/acme/SKILL.md", SOUND),
        ("agents/skills/other", "->../../packages/other"),
        ("packages/other/SKILL.md", "->./text.md"),
        ("packages/other/text.md", &other),
        ("docs/.waypost/skills", "->../../agents/skills"),
    ]);
    let (skills, diagnostics) = collect(&tree.with_docs_root(path("docs")), "waypost");
    assert_eq!(slugs(&skills), ["acme", "other"]);
    assert_eq!(
        skills[1].path.as_str(),
        "docs/.waypost/skills/other/SKILL.md"
    );
    assert_eq!(skills[1].bytes, other);
    assert_eq!(diagnostics, []);
}

#[test]
fn a_dangling_link_does_not_affect_other_skills() {
    let (skills, diagnostics) = collected(&[
        ("skill.md", "->/etc/passwd"),
        (".waypost/skills/a", "->../../../outside"),
        (".waypost/skills/b", "->b"),
        (".waypost/skills/c", "->missing"),
        (".waypost/skills/d/SKILL.md", "->nothing.md"),
        (".waypost/skills/acme/SKILL.md", SOUND),
    ]);
    assert_eq!(slugs(&skills), ["acme"]);
    let expected = [
        "link-outside",
        "link-outside",
        "link-loop",
        "link-dangling",
        "link-dangling",
    ];
    assert_eq!(rules(&diagnostics), expected);
    let (skills, diagnostics) =
        collected(&[(".waypost/skills", "->../nowhere"), ("skill.md", SOUND)]);
    assert_eq!(slugs(&skills), ["acme"]);
    assert_eq!(rules(&diagnostics), ["link-dangling"]);
}

#[test]
fn a_file_that_is_reached_twice_is_one_skill() {
    let (skills, diagnostics) = collected(&[
        ("skill.md", "->.waypost/skills/a/SKILL.md"),
        (".waypost/skills/a/SKILL.md", SOUND),
        (".waypost/skills/b", "->a"),
    ]);
    assert_eq!(skills.len(), 1);
    assert_eq!(skills[0].path.as_str(), "skill.md");
    assert_eq!(diagnostics, []);
}

#[test]
fn another_spelling_of_the_file_name_is_reported_and_not_read() {
    for (file, wanted) in [
        ("SKILL.md", "`skill.md`"),
        (".waypost/skills/a/skill.md", "`SKILL.md`"),
        (".waypost/skills/acme.md", "`SKILL.md`"),
        (".waypost/skills/SKILL.md", "`SKILL.md`"),
    ] {
        let (skills, diagnostics) = collected(&[(file, SOUND)]);
        assert_eq!(skills, [], "{file}");
        assert_eq!(rules(&diagnostics), ["skill-file", "skill-none"], "{file}");
        assert_eq!(&*diagnostics[0].file, file);
        assert!(
            diagnostics[0].message.contains(wanted),
            "{}",
            diagnostics[0]
        );
    }
}

#[test]
fn a_directory_without_a_skill_file_is_a_warning() {
    let (skills, diagnostics) = collected(&[(".waypost/skills/a/notes.txt", "")]);
    assert_eq!(skills, []);
    assert_eq!(rules(&diagnostics), ["skill-file"]);
}

#[test]
fn a_directory_in_place_of_a_file_is_reported() {
    let (_, diagnostics) = collected(&[("skill.md/x", ""), (".waypost/skills", "not a directory")]);
    assert_eq!(
        rules(&diagnostics),
        ["skill-file", "path-missing", "skill-none"]
    );
}

// === what is left out ===

#[test]
fn files_that_are_not_utf_8_are_left_out() {
    left_out(
        &b"---\nname: a\n---\n\xff"[..],
        "skill-encoding",
        Some((4, 1)),
    );
    left_out("", "skill-empty", None);
    left_out("\u{feff}\n \r\n", "skill-empty", None);
    left_out(vec![b'a'; 1_048_577], "skill-size", None);
}

#[test]
fn frontmatter_that_cannot_be_read_is_left_out_with_its_place() {
    let broken = "---\nname: a\ndescription: Use when: asked\n---\n";
    left_out(broken, "skill-frontmatter", Some((3, 22)));
    left_out(
        "---\nname:\n\t- a\n---\n",
        "skill-frontmatter",
        Some((3, 2)),
    );
    left_out("--- \nname: a\n---\n", "skill-frontmatter", Some((1, 1)));
    left_out("---\nname: a\n", "skill-frontmatter", Some((1, 1)));
    left_out("---\n- name\n---\n", "skill-frontmatter", Some((2, 1)));
}

#[test]
fn groups_in_any_form_make_a_skill_private() {
    for groups in ["[admin]", "admin", "", "[]", "false", "\n  - admin"] {
        let text = format!("---\nname: a\ndescription: b\ngroups: {groups}\n---\n");
        left_out(text, "skill-groups", Some((4, 1)));
    }
    left_out(
        "---\nGroups: [admin]\n---\nbody",
        "skill-groups",
        Some((2, 1)),
    );
    left_out(
        "---\nname: a\n'groups ': x\n---\n",
        "skill-groups",
        Some((3, 1)),
    );
}

#[test]
fn a_private_skill_alone_is_not_a_failure() {
    let private = "---\nname: a\ndescription: b\ngroups: [admin]\n---\n";
    let (skills, diagnostics) =
        collected(&[("skill.md", private), (".waypost/skills/x/SKILL.md", "")]);
    assert_eq!(skills, []);
    assert_eq!(rules(&diagnostics), ["skill-groups", "skill-empty"]);
}

#[test]
fn when_no_file_can_be_used_a_warning_says_what_is_served() {
    let (skills, diagnostics) = collected(&[("skill.md", ""), (".waypost/skills/x", "->/x")]);
    assert_eq!(skills, []);
    let last = diagnostics.last().unwrap();
    assert_eq!(
        last.to_string(),
        ".waypost/skills/x: warning[skill-none]: none of the 2 skill files can be used (the other messages give the reasons; the pages are still published, and the site serves a generated skill)"
    );
}

#[test]
fn skills_over_the_limit_are_left_out_by_name() {
    let names: Vec<_> = (0..COUNT_MAX + 2)
        .map(|n| format!(".waypost/skills/s{n:04}/SKILL.md"))
        .collect();
    let texts: Vec<_> = (0..names.len())
        .map(|n| format!("---\nname: s{n:04}\ndescription: d\n---\n"))
        .collect();
    let files: Vec<_> = names
        .iter()
        .map(|n| &**n)
        .zip(texts.iter().map(|t| &**t))
        .collect();
    let (skills, diagnostics) = collected(&files);
    assert_eq!(skills.len(), COUNT_MAX);
    assert_eq!(rules(&diagnostics), ["skill-count"]);
    assert_eq!(&*diagnostics[0].file, names[COUNT_MAX]);
}

#[test]
fn skills_over_the_limit_of_all_together_are_left_out() {
    let body = "x".repeat(1_048_500);
    let text = |n: usize| format!("---\nname: s{n:02}\ndescription: d\n---\n{body}");
    let files: Vec<_> = (0..18)
        .map(|n| (format!(".waypost/skills/s{n:02}/SKILL.md"), text(n)))
        .collect();
    let files: Vec<_> = files
        .iter()
        .map(|(path, text)| (&**path, &**text))
        .collect();
    let (skills, diagnostics) = collected(&files);
    assert_eq!(skills.len(), 16);
    assert_eq!(rules(&diagnostics), ["skill-size", "skill-size"]);
}

// === shapes of real files ===

#[test]
fn a_file_without_frontmatter_is_served_and_reported_once() {
    let (skill, diagnostics) = one("\u{feff}# Acme Network\n\n## Description\n\nPays people.\n");
    assert_eq!(skill.slug.as_str(), "pay");
    assert_eq!(&*skill.description, "Pays people.");
    assert_eq!(diagnostics.len(), 1);
    assert!(
        diagnostics[0].contains("no frontmatter; the `skills` tool drops"),
        "{diagnostics:?}"
    );
}

#[test]
fn a_repeated_key_is_reported_and_the_first_value_is_used() {
    let (skill, diagnostics) = one("---\nname: pay\ndescription: one\ndescription: two\n---\n");
    assert_eq!(&*skill.description, "one");
    assert!(
        diagnostics[0].contains(":4:1: warning[skill-frontmatter]"),
        "{diagnostics:?}"
    );
}

#[test]
fn line_ends_marks_quotes_and_other_scripts_are_read() {
    let text = "\u{feff}---\r\nname: 'pay'\r\ndescription: \"Zahlt \\\"Menschen\\\" aus — 支付\"\r\n---\r\n";
    let (skill, diagnostics) = one(text);
    assert_eq!(&*skill.description, "Zahlt \"Menschen\" aus — 支付");
    assert_eq!(diagnostics, [""; 0]);
}

#[test]
fn unknown_keys_are_ignored() {
    let text = "---\nname: pay\ndescription: d\nversion: 1.0.0\nuser-invocable: false\n\
                argument-hint: '<n>'\narguments:\n  - name: idea\nmetadata:\n  {\"x\": \"y\"}\n---\n";
    assert_eq!(one(text).1, [""; 0]);
}

#[test]
fn files_beside_a_skill_are_reported_only_when_its_text_names_them() {
    let text = format!("{SOUND}See [rules](references/rules.md).\n");
    let (_, diagnostics) = collected(&[
        (".waypost/skills/acme/SKILL.md", &text),
        (".waypost/skills/acme/references/rules.md", ""),
        (".waypost/skills/acme/scripts/run.sh", ""),
    ]);
    assert_eq!(rules(&diagnostics), ["skill-companion"]);
    assert!(
        diagnostics[0].message.contains("`references`")
            && !diagnostics[0].message.contains("scripts")
    );
}

#[test]
fn the_same_tree_gives_the_same_skills_and_diagnostics() {
    let files = [
        (".waypost/skills/b/SKILL.md", SOUND),
        (".waypost/skills/a/SKILL.md", SOUND),
        ("skill.md", "---\nname: [x]\n---\n"),
    ];
    let mut reversed = files;
    reversed.reverse();
    assert_eq!(collected(&files), collected(&reversed));
}

#[test]
fn a_skill_inside_the_directory_of_another_is_reported() {
    let (skills, found) = collected(&[
        (".waypost/skills/acme/SKILL.md", SOUND),
        (".waypost/skills/acme/more/SKILL.md", SOUND),
        (".waypost/skills/outer/inner/SKILL.md", SOUND),
    ]);
    assert_eq!(slugs(&skills), ["acme"]);
    let nested: Vec<&str> = found
        .iter()
        .filter(|found| found.message.contains("inside another"))
        .map(|found| &*found.file)
        .collect();
    let wanted = [
        ".waypost/skills/acme/more/SKILL.md",
        ".waypost/skills/outer/inner/SKILL.md",
    ];
    assert_eq!(nested, wanted);
}

#[test]
fn the_explanations_of_the_rules_have_the_limits() {
    let explained = |id| {
        let rule = crate::diagnostic::rules::find(id).unwrap();
        format!("{} {}", rule.title, rule.text)
    };
    let size = explained("skill-size");
    for bytes in [BYTES_MAX, TOTAL_BYTES_MAX as u64] {
        let limit = format!(" {} MiB", bytes >> 20);
        assert!(size.contains(&limit), "{limit}: {size}");
    }
    let count = explained("skill-count");
    assert!(count.contains(&COUNT_MAX.to_string()), "{count}");
}
