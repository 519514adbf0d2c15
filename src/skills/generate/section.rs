//! Procedures that are made of headings: numbered ones, or the instructions of a page about the
//! start.
//!
//! Headings that differ only in the way ("Install on Linux", "Install on macOS") are one step. A
//! heading that begins something else after the start, such as "Upgrade" or "Uninstall", is no
//! step: the text below it is read as a separate procedure.

use std::collections::HashSet;

use crate::mdx::{Element, Node};

use super::role::{Role, is_explanation, normal};
use super::step::{Step, step};
use super::text::words;
use super::words::{is_instruction, number, without_number};
use super::workflow::STEPS_MIN;

/// The fewest headings of a procedure without numbers.
const HEADINGS_MIN: usize = 3;
/// The fewest headings that can be variants of a few actions.
const VARIANTS_MIN: usize = 4;
/// First words of headings that begin a separate procedure.
const APART: [&str; 8] = [
    "upgrade",
    "upgrading",
    "uninstall",
    "uninstalling",
    "downgrade",
    "downgrading",
    "rollback",
    "troubleshoot",
];
/// Words before the way in which a step is done.
const WAYS: [&str; 5] = [" on ", " with ", " using ", " via ", " through "];

/// A procedure of headings, and the sections that are not its steps.
#[derive(Debug, Default)]
pub(super) struct Sections<'d> {
    pub(super) steps: Vec<Step<'d>>,
    /// Each begins with its heading.
    pub(super) apart: Vec<&'d [Node]>,
}

/// A heading of the first level of a page, and the nodes below it.
struct Section<'d> {
    title: String,
    /// The heading, and everything below it.
    whole: &'d [Node],
    /// The content below it, up to the next heading. That heading begins a part of the step, often
    /// one of several ways to do it.
    content: &'d [Node],
}

// === impl Sections ===

impl<'d> Sections<'d> {
    /// Reads the sections of a page; there are no steps if the page is no procedure of headings.
    pub(super) fn of(nodes: &'d [Node], role: Role) -> Self {
        let (mut numbered, mut named): (Vec<Section<'d>>, Vec<Section<'d>>) = Default::default();
        for section in sections(nodes) {
            if number(&section.title) == Some(numbered.len() + 1) {
                numbered.push(section);
            } else if is_instruction(&section.title) && !is_explanation(&section.title) {
                named.push(section);
            }
        }
        if numbered.len() >= STEPS_MIN {
            return Self {
                steps: numbered.iter().map(|one| one.step(&one.title)).collect(),
                apart: Vec::new(),
            };
        }
        let has_steps = nodes
            .iter()
            .any(|node| matches!(node, Node::Element(Element { name, .. }) if **name == *"Steps"));
        if role > Role::Install || named.len() < HEADINGS_MIN || has_steps {
            return Self::default();
        }
        let (apart, named): (Vec<_>, Vec<_>) = named.into_iter().partition(Section::is_apart);
        let mut ways: Vec<Vec<Section<'d>>> = Vec::new();
        for section in named {
            match ways.last_mut() {
                Some(ways) if section.is_way_of(&ways[0]) => ways.push(section),
                _ => ways.push(vec![section]),
            }
        }
        if ways.len() < STEPS_MIN || are_variants(&ways) {
            return Self::default();
        }
        let step = |ways: &Vec<Section<'d>>| {
            let others = ways[1..].iter().filter_map(|other| split_way(&other.title));
            let others: Vec<&str> = others.map(|(_, way)| way).collect();
            let first = &ways[0];
            match others.is_empty() {
                true => first.step(&first.title),
                false => first.step(&format!("{} (or {})", first.title, others.join(", "))),
            }
        };
        Self {
            steps: ways.iter().map(step).collect(),
            apart: apart.into_iter().map(|section| section.whole).collect(),
        }
    }
}

// === impl Section ===

impl<'d> Section<'d> {
    fn step(&self, title: &str) -> Step<'d> {
        step(without_number(title), self.content, false)
    }

    fn is_apart(&self) -> bool {
        let words = normal(&self.title);
        let first = words.trim_start().split(' ').next().unwrap_or_default();
        APART.contains(&first) || words.starts_with(" roll back ")
    }

    /// Returns whether it says how to do the same in another way.
    fn is_way_of(&self, other: &Self) -> bool {
        match (split_way(&self.title), split_way(&other.title)) {
            (Some((own, _)), Some((other, _))) => normal(own) == normal(other),
            _ => false,
        }
    }
}

/// Returns whether headings are variants of a few actions, not steps: "Upload a file", "Upload a
/// directory", "Download a file", "Download a directory".
fn are_variants(ways: &[Vec<Section<'_>>]) -> bool {
    let verbs = ways.iter().map(|ways| {
        let words = normal(&ways[0].title);
        words
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    });
    let verbs: HashSet<String> = verbs.collect();
    ways.len() >= VARIANTS_MIN && verbs.len() * 2 <= ways.len()
}

/// Splits "Deploy the site with npm" before its way.
fn split_way(title: &str) -> Option<(&str, &str)> {
    let at = WAYS.iter().filter_map(|way| title.find(way)).min()?;
    Some((&title[..at], title[at..].trim_start()))
}

/// Reads the procedure of numbered headings that begins with the first of these nodes, at any level
/// below a heading. Returns its steps and how many nodes it has.
pub(super) fn numbered(nodes: &[Node]) -> Option<(Vec<Step<'_>>, usize)> {
    let Some(Node::Heading {
        level: own,
        children,
        ..
    }) = nodes.first()
    else {
        return None;
    };
    if number(&words(children)) != Some(1) {
        return None;
    }
    let mut starts = Vec::new();
    let mut end = nodes.len();
    for (at, node) in nodes.iter().enumerate() {
        let Node::Heading {
            level, children, ..
        } = node
        else {
            continue;
        };
        if level > own {
            continue;
        }
        let title = words(children);
        if level < own || number(&title) != Some(starts.len() + 1) {
            end = at;
            break;
        }
        starts.push((at, title));
    }
    // Numbers may also order variants or parts of a subject.
    let tells = |title: &&(usize, String)| {
        title.1.to_lowercase().starts_with("step ") || is_instruction(&title.1)
    };
    if starts.len() < STEPS_MIN || starts.iter().filter(tells).count() * 2 < starts.len() {
        return None;
    }
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let steps = starts.iter().zip(ends).map(|((at, title), end)| {
        let content = content(&nodes[at + 1..end]);
        step(without_number(title), content, false)
    });
    Some((steps.collect(), end))
}

/// Returns the content below a heading up to the next heading.
fn content(below: &[Node]) -> &[Node] {
    let is_heading = |node: &Node| matches!(node, Node::Heading { .. });
    let inner = below.iter().position(is_heading);
    &below[..inner.filter(|at| *at > 0).unwrap_or(below.len())]
}

/// Returns the sections of the level of the first heading.
fn sections(nodes: &[Node]) -> Vec<Section<'_>> {
    let first = nodes.iter().find_map(|node| match node {
        Node::Heading { level, .. } => Some(*level),
        _ => None,
    });
    let Some(first) = first else {
        return Vec::new();
    };
    let headings = nodes
        .iter()
        .enumerate()
        .filter_map(|(at, node)| match node {
            Node::Heading {
                level, children, ..
            } if *level == first => Some((at, words(children))),
            _ => None,
        });
    let section = |(at, title): (usize, String)| {
        let rest = &nodes[at + 1..];
        let is_end = |node: &Node| matches!(node, Node::Heading { level, .. } if *level <= first);
        let end = rest.iter().position(is_end).unwrap_or(rest.len());
        let below = &rest[..end];
        Section {
            title,
            whole: &nodes[at..=at + end],
            content: content(below),
        }
    };
    headings.map(section).collect()
}

#[cfg(test)]
mod tests {
    use crate::docs;
    use crate::source::{Tree, TreePath};

    /// Returns the generated skill of a documentation with one page.
    fn skill(path: &str, text: &str) -> String {
        let config = format!(r#"{{"name":"Acme","navigation":{{"pages":["{path}"]}}}}"#);
        let file = |path: &str, text: &str| {
            let path = TreePath::parse(path).unwrap();
            (path, text.to_owned().into())
        };
        let files = [
            file("docs.json", &config),
            file(&format!("{path}.mdx"), text),
        ];
        let (docs, _) = docs::read(&Tree::from_files(files, []), &docs::Options::default());
        let skill =
            crate::skills::generate(&docs, ("Acme", "Pays."), "https://acme.test", Vec::new());
        skill.unwrap().text
    }

    fn workflows(title: &str, text: &str) -> String {
        let skill = skill("page", &format!("---\ntitle: {title}\n---\n\n{text}"));
        let (_, rest) = skill.split_once("\n## Workflows\n\n").unwrap();
        rest.split("\n## ").next().unwrap().to_owned()
    }

    const LIST: &str = "1. Run the installer.\n2. Restart the host.\n\n";

    #[test]
    fn each_heading_with_steps_is_a_workflow_with_its_own_link() {
        let page = format!(
            "## Install\n\n{LIST}## Upgrade\n\n<Steps>\n<Step title=\"Stop it\">\nStop the host first.\n</Step>\n\
             <Step title=\"Replace it\">\nCopy the new file.\n</Step>\n</Steps>\n\n## Remove\n\n### Linux\n\n\
             1. Stop the host.\n2. Delete the file.\n"
        );
        let found = workflows("Operate hosts", &page);
        for wanted in [
            "### Operate hosts: Install\n\n1. Run the installer.\n2. Restart the host.\n\nDetails: [Operate hosts](https://acme.test/page#install)\n",
            "Details: [Operate hosts](https://acme.test/page#install)",
            "### Operate hosts: Upgrade\n\n1. Stop it. Stop the host first.\n2. Replace it.",
            "Details: [Operate hosts](https://acme.test/page#upgrade)",
            "### Operate hosts: Remove: Linux\n\n1. Stop the host.",
            "Details: [Operate hosts](https://acme.test/page#linux)",
        ] {
            assert!(found.contains(wanted), "{wanted}: {found}");
        }
    }

    #[test]
    fn an_upgrade_is_no_step_of_an_installation_and_ways_are_one_step() {
        let code = |code: &str| format!("```bash\n{code}\n```\n\n");
        let page = [
            "## Install on Linux\n\n".to_owned(),
            code("apt install acme"),
            "## Install on macOS\n\n".to_owned(),
            code("brew install acme"),
            "## Configure the host\n\n".to_owned(),
            code("acme init"),
            "## Run it\n\n".to_owned(),
            code("acme run"),
            format!("## Upgrade\n\n{LIST}"),
            "## Uninstall\n\n".to_owned(),
            code("apt remove acme"),
        ];
        let found = workflows("Quickstart", &page.concat());
        assert!(
            found.contains("1. Install on Linux (or on macOS)"),
            "{found}"
        );
        assert!(found.contains("2. Configure the host"), "{found}");
        assert!(found.contains("3. Run it"), "{found}");
        assert!(
            found.contains("### Quickstart: Upgrade\n\n1. Run the installer"),
            "{found}"
        );
        assert!(!found.contains("apt remove"), "{found}");
    }

    #[test]
    fn a_workflow_has_no_sample_that_its_page_shows_as_wrong() {
        let page = "## Add a charge\n\n1. Create a client. Do not do this:\n\n   ```js\n   new Acme(null)\n   ```\n\n   \
            Do this:\n\n   ```js\n   new Acme(key)\n   ```\n\n2. Send the charge.\n\n   ```js\n   // Bad: no amount\n   \
            acme.charge()\n   ```\n\n   ```js\n   acme.charge(5)\n   ```\n\n## ❌ The wrong way\n\n\
            1. Open the console.\n2. Copy the charge.\n";
        let found = workflows("Charge cards", page);
        assert!(
            found.contains("1. Create a client: `new Acme(key)`\n"),
            "{found}"
        );
        for wrong in [
            "Do not do this",
            "new Acme(null)",
            "acme.charge()",
            "Open the console",
        ] {
            assert!(!found.contains(wrong), "{wrong}: {found}");
        }
    }

    #[test]
    fn the_first_call_is_not_the_one_that_its_page_shows_as_wrong() {
        let page = "```bash\nnpm install acme\n```\n\n<CodeGroup>\n```js ❌ Wrong\nimport { Acme } from 'acme';\n\
            await Acme.pay({ amount: 'much', to: 'everyone', acme: true });\n```\n```js ✅ Right\nimport { Acme } from 'acme';\n\
            await Acme.pay(5);\n```\n</CodeGroup>\n";
        let skill = skill("quickstart", page);
        assert!(skill.contains("await Acme.pay(5);"), "{skill}");
        assert!(!skill.contains("everyone"), "{skill}");
    }
}
