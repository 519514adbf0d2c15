//! Tests of the limits and rules; an integration test compares the example's golden file.

use proptest::prelude::*;

use super::*;
use crate::docs;
use crate::source::{Tree, TreePath};

const BASE: &str = "https://docs.acme.test";

/// Reads documentation from these files.
fn docs(files: &[(&str, &str)]) -> Docs {
    let files = files
        .iter()
        .map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_string().into()));
    docs::read(&Tree::from_files(files, []), &docs::Options::default()).0
}

fn text(files: &[(&str, &str)]) -> String {
    generate(&docs(files), "Acme", "Pays.", BASE).unwrap().text
}

#[test]
fn g2_a_large_documentation_is_cut_by_importance() {
    let pages: Vec<String> = (0..2000)
        .map(|n| format!("part{}/page{n}", n / 100))
        .collect();
    let groups: Vec<String> = (0..20)
        .map(|part| {
            let of_part = pages[part * 100..][..100]
                .iter()
                .map(|page| format!("\"{page}\""));
            let list = of_part.collect::<Vec<_>>().join(",");
            format!("{{\"group\":\"Part {part}\",\"pages\":[{list}]}}")
        })
        .collect();
    let config = format!(
        "{{\"name\":\"x\",\"navigation\":{{\"groups\":[{}]}}}}",
        groups.join(",")
    );
    let body = "Words about it. ".repeat(30);
    let steps = format!("{body}\n\n1. One {body}\n2. Two {body}\n");
    let paths: Vec<String> = pages.iter().map(|page| format!("{page}.mdx")).collect();
    let mut files: Vec<(&str, &str)> = paths.iter().map(|path| (&**path, &*steps)).collect();
    files.push(("docs.json", &config));

    let text = text(&files);
    assert!(
        text.lines().count() <= LINES_MAX,
        "{} lines",
        text.lines().count()
    );
    assert!(
        text.chars().count() <= CHARACTERS_MAX,
        "{} characters",
        text.chars().count()
    );
    for part in 0..20 {
        assert!(
            text.contains(&format!("### Part {part}\n")),
            "every group is there: {part}"
        );
        assert!(
            text.contains(&format!("/part{part}/page{})", part * 100)),
            "and its first page"
        );
    }
    assert!(text.contains("more pages"));
}

#[test]
fn g3_other_versions_languages_and_hidden_pages_are_not_used() {
    let config = r#"{"name":"x","navigation":{"languages":[
        {"language":"de","pages":["de"]},
        {"language":"en","default":true,"versions":[
            {"version":"1","pages":["old"]},
            {"version":"2","default":true,"pages":["new","secret","away"]}]}]}}"#;
    let files = [
        ("docs.json", config),
        ("de.mdx", "# Deutsch"),
        ("old.mdx", "# Old"),
        ("new.mdx", "# New"),
        ("secret.mdx", "---\ngroups: [staff]\n---\n# Secret"),
        ("away.mdx", "---\nhidden: true\n---\n# Away"),
    ];
    let text = text(&files);
    assert!(text.contains(&format!("]({BASE}/new)")), "{text}");
    for other in ["/de)", "/old)", "/secret)", "/away)"] {
        assert!(!text.contains(other), "{other}: {text}");
    }
    assert!(text.contains("version: \"2\""));
    assert!(text.contains("- Versions: 2, 1"));
}

#[test]
fn a_documentation_without_pages_has_no_skill() {
    let empty = [("docs.json", r#"{"name":"x","navigation":{"pages":[]}}"#)];
    assert_eq!(generate(&docs(&empty), "x", "", BASE), None);
}

#[test]
fn a_name_in_any_script_has_a_slug() {
    let files = [
        (
            "docs.json",
            r#"{"name":"x","navigation":{"pages":["index"]}}"#,
        ),
        ("index.mdx", "# x"),
    ];
    let docs = docs(&files);
    let slug = |title: &str| generate(&docs, title, "", BASE).unwrap().slug;
    assert_eq!(slug("Ärger & Söhne").as_str(), "arger-sohne");
    assert_eq!(slug("---").as_str(), "documentation");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn g4_the_frontmatter_is_always_readable(
        title in "\\PC{0,40}", about in "\\PC{0,200}", page in "\\PC{0,300}", label in "\\PC{1,20}",
    ) {
        let label = serde_json::to_string(&label).unwrap();
        let config = format!("{{\"name\":\"x\",\"navigation\":{{\"groups\":[{{\"group\":{label},\"pages\":[\"index\"]}}]}}}}");
        let docs = docs(&[("docs.json", &config), ("index.mdx", &page)]);
        if let Some(generated) = generate(&docs, &title, &about, BASE) {
            let read = crate::frontmatter::read(&generated.text).unwrap().unwrap();
            let text = |key: &str| read.mapping.get(key).and_then(|value| value.text().map(str::to_owned));
            prop_assert_eq!(text("name"), Some(generated.slug.as_str().to_owned()));
            prop_assert_eq!(text("description"), Some(generated.description.clone()));
            prop_assert!(!generated.description.is_empty() && !generated.description.contains("---"));
        }
    }
}

#[test]
fn neither_imports_nor_exports_nor_attributes_get_into_the_skill() {
    let page = r#"import Hint, { note } from "/snippets/hint-file.mdx";
export const price = "five euros";
export const Wrapper = ({ children }) => <div className="wrapped">{children}</div>;

<Card title="Card title" icon="bolt" href="/other" horizontal className="glow">
  An order costs {price}.
</Card>

<Hint tone="loud-tone" />

## Pay an order

<Steps>
  <Step title="Create an order" icon="rocket" stepNumber={7}>
    Call <Badge color="purple-shade">the API</Badge>.
  </Step>
  <Step title="Confirm it" id="confirm-anchor">Wait for the {/* hidden words */} receipt.</Step>
</Steps>
"#;
    let text = text(&[
        (
            "docs.json",
            r#"{"name": "x", "navigation": {"groups": [{"group": "Orders", "pages": ["index", "pay"]}]}}"#,
        ),
        ("index.mdx", page),
        ("pay.mdx", page),
        ("snippets/hint-file.mdx", "A hint for orders."),
    ]);
    for shown in [
        "An order costs five euros.",
        "Create an order",
        "Confirm it",
    ] {
        assert!(text.contains(shown), "{shown}\n{text}");
    }
    for hidden in [
        "import ",
        "export ",
        "hint-file",
        "const ",
        "Wrapper",
        "wrapped",
        "className",
        "bolt",
        "glow",
        "loud-tone",
        "rocket",
        "stepNumber",
        "purple-shade",
        "confirm-anchor",
        "hidden words",
        "{",
        "=>",
    ] {
        assert!(!text.contains(hidden), "{hidden}\n{text}");
    }
}
