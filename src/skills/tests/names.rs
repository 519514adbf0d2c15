//! Names, slugs and descriptions.

use super::*;

// === names and slugs ===

#[test]
fn a_name_that_is_not_a_slug_gets_a_slug() {
    let (skill, diagnostics) = one("---\nname: Broken Authentication\ndescription: d\n---\n");
    assert_eq!(skill.slug.as_str(), "broken-authentication");
    assert_eq!(&*skill.name, "Broken Authentication");
    assert_eq!(
        diagnostics,
        [
            ".waypost/skills/pay/SKILL.md:2:1: warning[skill-name]: `Broken Authentication` is not a slug; the skill is served as `broken-authentication`"
        ]
    );
}

#[test]
fn a_name_that_differs_from_the_directory_is_a_warning() {
    let (skill, diagnostics) = one("---\nname: paying\ndescription: d\n---\n");
    assert_eq!(skill.slug.as_str(), "paying");
    assert_eq!(
        diagnostics,
        [
            ".waypost/skills/pay/SKILL.md:2:1: warning[skill-name]: the skill `paying` is in the directory `pay` (give both the same name: some clients drop the skill otherwise)"
        ]
    );
    // The file in the documentation root does not have its own directory.
    let (_, diagnostics) = collected(&[("skill.md", SOUND)]);
    assert_eq!(diagnostics, []);
}

#[test]
fn a_missing_name_is_the_directorys() {
    for head in [
        "description: d",
        "name:\ndescription: d",
        "name: '  '\ndescription: d",
    ] {
        let (skill, diagnostics) = one(&format!("---\n{head}\n---\n"));
        assert_eq!((skill.slug.as_str(), &*skill.name), ("pay", "pay"));
        assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
        assert!(
            diagnostics[0].contains("skill-name") && diagnostics[0].contains("drops"),
            "{diagnostics:?}"
        );
    }
    let (skills, _) = collected(&[("skill.md", "---\ndescription: d\n---\n")]);
    assert_eq!(slugs(&skills), ["skill"]);
}

#[test]
fn a_name_that_cannot_be_written_in_letters_gets_the_directorys_slug() {
    let (skill, diagnostics) = one("---\nname: '!!'\ndescription: d\n---\n");
    assert_eq!((skill.slug.as_str(), &*skill.name), ("pay", "!!"));
    assert_eq!(diagnostics.len(), 1);
}

#[test]
fn a_numeric_name_is_accepted_with_a_warning() {
    let (skill, diagnostics) = one("---\nname: 365\ndescription: true\n---\n");
    assert_eq!(skill.slug.as_str(), "365");
    assert_eq!(&*skill.description, "true");
    assert_eq!(diagnostics.len(), 2);
    assert!(
        diagnostics
            .iter()
            .all(|diagnostic| diagnostic.contains("drops this skill"))
    );
}

#[test]
fn the_first_of_two_skills_keeps_the_slug() {
    let named = |name: &str| SOUND.replace("acme", name);
    let (skills, diagnostics) = collected(&[
        ("skill.md", SOUND),
        (".waypost/skills/billing/SKILL.md", &named("ACME")),
        (".waypost/skills/acme/SKILL.md", &named("Acme!")),
        (".waypost/skills/zzz/SKILL.md", &named("acme-2")),
    ]);
    let mut by_path: Vec<_> = skills
        .iter()
        .map(|skill| (skill.path.as_str(), skill.slug.as_str()))
        .collect();
    by_path.sort_unstable();
    assert_eq!(
        by_path,
        [
            // The slug of its directory is taken; another skill has `acme-2` by its name.
            (".waypost/skills/acme/SKILL.md", "acme-3"),
            (".waypost/skills/billing/SKILL.md", "billing"),
            (".waypost/skills/zzz/SKILL.md", "acme-2"),
            ("skill.md", "acme"),
        ]
    );
    assert_eq!(
        diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.rule == "skill-slug")
            .count(),
        2
    );
}

// === descriptions ===

#[test]
fn a_description_is_listed_without_the_end_of_its_block() {
    let (skill, diagnostics) = one("---\nname: pay\ndescription: >\n  Use when\n  paying.\n---\n");
    assert_eq!(&*skill.description, "Use when paying.");
    assert_eq!(diagnostics, [""; 0]);
}

#[test]
fn a_long_description_is_cut_for_lists_only() {
    let long = "🚀".repeat(600);
    let (skill, diagnostics) = one(&format!("---\nname: pay\ndescription: {long}\n---\n"));
    assert_eq!(skill.description.encode_utf16().count(), 1024);
    assert_eq!(
        diagnostics,
        [
            ".waypost/skills/pay/SKILL.md:3:1: warning[skill-description]: `description` is 1200 UTF-16 code units long; lists show the first 1024"
        ]
    );
}

#[test]
fn a_missing_description_is_made_from_the_body() {
    for (text, description) in [
        (
            "---\nname: pay\n---\n# Pay\n\nPays people.\n",
            "Pays people.",
        ),
        ("---\nname: pay\ndescription: ''\n---\n# Pay\n", "Pay"),
        ("---\nname: pay\ndescription: [a]\n---\n", "The pay skill."),
    ] {
        let (skill, diagnostics) = one(text);
        assert_eq!(&*skill.description, description);
        assert_eq!(diagnostics.len(), 1, "{diagnostics:?}");
        assert!(
            diagnostics[0].contains("skill-description"),
            "{diagnostics:?}"
        );
    }
}
