//! Procedures that authors wrote: `<Steps>`, numbered lists, numbered headings.
//!
//! Only pages that tell how to do something have procedures (see [`Role::has_procedures`]). A
//! numbered list there is one if its items are instructions and if the heading above it does not
//! announce an explanation: the steps of an attacker, or the internal steps of a server, are not a
//! procedure for the reader.

use std::collections::{HashMap, HashSet};

use crate::docs::Docs;
use crate::docs::navigation::tree::Page;
use crate::mdx::{Element, Node};

use super::about::{is_generic_part, is_generic_title};
use super::code::{Block, Kind};
use super::group::groups;
use super::interleave::interleave;
use super::outline::{Outline, content, link, path_on_site};
use super::quickstart;
use super::role::{Role, has, is_about_repair, is_explanation, is_named_start, normal};
use super::sample::choose;
use super::section::{Sections, numbered};
use super::sink::{Share, Sink};
use super::step::{Step, is_appendix, step};
use super::text::{plain, sentences, words};
use super::words::{is_instruction, without_number};
use super::wrong;

/// The most lines and characters of the section.
const LINES_MAX: usize = 150;
const CHARACTERS_MAX: usize = 4600;
/// The most steps of one procedure that are listed.
const STEPS_MAX: usize = 12;
/// The fewest steps of a procedure.
pub(super) const STEPS_MIN: usize = 2;
/// Ends of steps whose content only the page shows.
const SEE: &str = " (see the page)";
const CODE_IS_ELSEWHERE: &str = " (the code is on the page)";
const MORE_IS_ABOVE: &str = " (more code in the first working call)";
const MORE_CODE: &str = " (more code on the page)";
const CODE_IS_ABOVE: &str = " (the code is in the first working call)";
/// Elements whose titles are above their content, as headings are.
const TITLED: [&str; 3] = ["Tab", "Accordion", "View"];
/// Headings of lists of things that the reader has to have.
const PREREQUISITES: [&str; 5] = [
    "prerequisite",
    "prerequisites",
    "requirements",
    "before you begin",
    "before you start",
];

/// The page that the link of a step leads to.
struct Target<'d> {
    /// A link to it.
    link: String,
    /// The command of its first installation, if it has one line.
    install: Option<&'d str>,
}

/// A procedure of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Workflow<'d> {
    /// The heading above it; before a heading that is no instruction, also the one above that.
    pub(super) heading: String,
    /// The anchor of the heading.
    pub(super) anchor: Option<&'d str>,
    /// The steps, in order.
    pub(super) steps: Vec<Step<'d>>,
}

/// Collects procedures: the first procedure of every page before any second one, and pages about
/// the start first. Code that `shown` contains is not repeated.
pub(super) fn workflows(
    docs: &Docs,
    outline: &Outline,
    shown: &HashSet<&str>,
    share: Share,
    base_url: &str,
) -> Vec<String> {
    let mut seen = HashSet::new();
    // An agent needs one quickstart of several for languages or platforms.
    let others = quickstart::others(docs, outline);
    let mut pages: Vec<(Role, &Page)> = outline
        .entries_of(Role::has_procedures)
        .filter(|entry| seen.insert(entry.page) && !others.contains(&entry.page))
        .filter(|entry| !is_about_repair(docs.navigation.page(entry.page)))
        .map(|entry| (entry.role, docs.navigation.page(entry.page)))
        .collect();
    pages.sort_by_key(|(role, _)| match role {
        Role::Start => 0,
        Role::Install | Role::Access => 1,
        _ => 2,
    });
    let mut found: Vec<_> = pages
        .into_iter()
        .filter_map(|(role, page)| {
            Some((
                role,
                page,
                read(content(docs, page)?, role, is_english(page)),
            ))
        })
        .collect();
    // An agent can run commands; a procedure in a window comes after them.
    found.sort_by_key(|(role, page, workflows)| {
        let steps = workflows
            .first()
            .map_or(&[][..], |workflow| &workflow.steps);
        let has_code = steps.iter().any(|step| !step.code.is_empty());
        // The group of a page says less about it than its code.
        let is_start = *role == Role::Start && (has_code || is_named_start(page));
        (!is_start, !has_code)
    });
    let listed: HashMap<&str, &Page> = outline
        .pages()
        .map(|id| docs.navigation.page(id))
        .map(|page| (&*page.url, page))
        .collect();
    let target = |href: &str| {
        let path = path_on_site(docs, href)?;
        let page = *listed.get(path.trim_end_matches('/'))?;
        Some(Target {
            link: link(&plain(&page.title), page, base_url),
            install: content(docs, page).and_then(installation),
        })
    };
    let mut said = HashSet::new();
    let of_pages = found.iter().map(|(_, page, workflows)| {
        let workflows = workflows.iter();
        workflows.map(move |workflow| (*page, workflow))
    });
    let mut sink = Sink::new(base_url, LINES_MAX, share.of(CHARACTERS_MAX));
    let mut misses = 0;
    for (page, workflow) in interleave(of_pages) {
        // Pages about similar things begin with the same steps.
        if !said.insert(workflow.key()) {
            continue;
        }
        let own = plain(&page.title);
        // Every part of a site may have a page with such a title.
        let part = page
            .place
            .as_ref()
            .and_then(|place| place.breadcrumb.first());
        let title = match part {
            Some(part) if is_generic_title(&own) && !is_generic_part(part) => {
                format!("{}: {own}", plain(part))
            }
            _ => own.clone(),
        };
        let heading = match &*workflow.heading {
            "" => title.clone(),
            heading if heading == own => title.clone(),
            heading => format!("{title}: {}", heading.trim_end_matches(':')),
        };
        let link = link(&own, page, base_url);
        // A procedure whose code does not fit is written without it.
        let details = match workflow.anchor {
            Some(anchor) => format!("[{own}]({base_url}{}#{anchor})", page.url),
            None => link.clone(),
        };
        let lines = |has_code| {
            let lines = workflow.lines((&link, &details), shown, &target, has_code);
            // Half of a procedure is none; the page is in the list of guides.
            if is_told(&lines) { lines } else { Vec::new() }
        };
        let all = lines(true);
        if all.is_empty() {
            continue;
        }
        if !sink.add_under(&heading, all) && !sink.add_under(&heading, lines(false)) {
            misses += 1;
            if misses == 8 {
                return sink.lines;
            }
        }
    }
    sink.lines
}

/// Returns whether more than half of the steps of a written procedure have their content.
fn is_told(lines: &[String]) -> bool {
    let is_step = |line: &&String| {
        let number = line.split_once(". ").map_or("", |(number, _)| number);
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    };
    let is_missing = |line: &&String| line.ends_with(SEE) || line.ends_with(CODE_IS_ELSEWHERE);
    let steps: Vec<&String> = lines.iter().filter(is_step).collect();
    steps.iter().filter(|line| is_missing(line)).count() * 2 < steps.len()
}

/// Returns a text without its sentences about what only the page shows; `None` if there are no others.
fn without_references(text: &str) -> Option<String> {
    let refers = |sentence: &&str| has(&normal(sentence), &["following", "below"]);
    let kept: Vec<&str> = sentences(text)
        .into_iter()
        .filter(|one| !refers(one))
        .collect();
    (!kept.is_empty()).then(|| kept.join(" ").trim_end_matches('.').to_owned())
}

/// Returns the command of the first installation on a page, if it has one line.
fn installation(nodes: &[Node]) -> Option<&str> {
    let groups = groups(nodes);
    let first = groups.iter().find(|group| group.kind == Kind::Install)?;
    first.blocks.first()?.one_line()
}

/// Returns whether a page is in English, so that its instructions can be recognised.
fn is_english(page: &Page) -> bool {
    let language = page
        .place
        .as_ref()
        .and_then(|place| place.language.as_deref());
    language.is_none_or(|code| code == "en" || code.starts_with("en-"))
}

impl Workflow<'_> {
    /// Returns the common part of two similar procedures.
    fn key(&self) -> Vec<(String, Vec<&str>)> {
        let mut key = Vec::new();
        for step in &self.steps {
            let codes = step.code.iter().map(|code| code.code);
            key.push((normal(&step.words), codes.collect()));
        }
        key
    }

    fn lines<'t>(
        &self,
        (link, details): (&str, &str),
        shown: &HashSet<&str>,
        target: &dyn Fn(&str) -> Option<Target<'t>>,
        has_code: bool,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        for (number, step) in (1..).zip(self.steps.iter().take(STEPS_MAX)) {
            let text = step.words.trim_end_matches([':', ' ']);
            // The text refers to something that only the page shows.
            let is_without_code = step.code.is_empty();
            let refers = has(&normal(text), &["following", "below"]) && is_without_code;
            let see = if refers { SEE } else { "" };
            let said = if refers {
                without_references(text)
            } else {
                None
            };
            let text = said.as_deref().unwrap_or(text);
            let (known, new): (Vec<&Block<'_>>, Vec<&Block<'_>>) =
                step.code.iter().partition(|code| shown.contains(code.code));
            let more = match (step.has_more, known.is_empty() || new.is_empty()) {
                (true, _) => MORE_CODE,
                (false, true) => "",
                (false, false) => MORE_IS_ABOVE,
            };
            let one_lines: Option<Vec<&str>> = new.iter().map(|code| code.one_line()).collect();
            match one_lines {
                _ if new.is_empty() && !known.is_empty() => {
                    lines.push(format!("{number}. {text}{CODE_IS_ABOVE}{more}"));
                }
                _ if is_without_code && step.has_more => {
                    lines.push(format!("{number}. {text}{CODE_IS_ELSEWHERE}"));
                }
                Some(commands) if !commands.is_empty() => {
                    let is_new = |line: &&str| !text.contains(&format!("`{line}`"));
                    let new = commands.into_iter().filter(is_new);
                    let new: Vec<String> = new.map(|line| format!("`{line}`")).collect();
                    let end = match new.is_empty() {
                        true => String::new(),
                        false => format!(": {}", new.join(", then ")),
                    };
                    let text = match new.is_empty() {
                        true => text,
                        false => text.trim_end_matches('.'),
                    };
                    lines.push(format!("{number}. {text}{end}{more}"));
                }
                None if has_code => {
                    let text = text.trim_end_matches('.');
                    lines.push(format!("{number}. {text}{more}:"));
                    lines.push(String::new());
                    for code in new {
                        lines.extend(code.fence("   "));
                        lines.push(String::new());
                    }
                }
                None => lines.push(format!("{number}. {text}{CODE_IS_ELSEWHERE}")),
                Some(_) => match step.link.and_then(target).filter(|to| to.link != link) {
                    Some(to) => {
                        // The page that a step about an installation names has its command.
                        let command = to.install.filter(|_| has(&normal(text), &["install"]));
                        let end = match command {
                            Some(command) if shown.contains(command) => CODE_IS_ABOVE.to_owned(),
                            Some(command) => format!(": `{command}`"),
                            None => String::new(),
                        };
                        let text = match command {
                            Some(_) => text.trim_end_matches('.'),
                            None => text,
                        };
                        lines.push(format!("{number}. {text}{end} – {}", to.link));
                    }
                    None => lines.push(format!("{number}. {text}{see}")),
                },
            }
        }
        if lines.last().is_none_or(|last| !last.is_empty()) {
            lines.push(String::new());
        }
        lines.push(match self.steps.len().saturating_sub(STEPS_MAX) {
            0 => format!("Details: {details}"),
            more => format!("{more} more steps: {details}"),
        });
        lines
    }
}

/// Finds the procedures of a page.
struct Reader<'d> {
    found: Vec<Workflow<'d>>,
    /// The headings above, from the outermost one.
    headings: Vec<Heading<'d>>,
    /// The paragraph before.
    before: String,
    is_english: bool,
}

/// A heading, or the title of an element.
#[derive(Clone, Debug)]
struct Heading<'d> {
    level: u8,
    title: String,
    anchor: Option<&'d str>,
    /// Whether it is the label of an element: the headings inside are below it, whatever their
    /// level.
    is_label: bool,
}

/// Finds the procedures in the content of a page.
pub(super) fn read(nodes: &[Node], role: Role, is_english: bool) -> Vec<Workflow<'_>> {
    let mut reader = Reader {
        found: Vec::new(),
        headings: Vec::new(),
        before: String::new(),
        is_english,
    };
    let Sections { steps, apart } = Sections::of(nodes, role);
    // Lists below the headings of a procedure are its parts.
    if steps.is_empty() {
        reader.nodes(nodes);
    } else {
        reader.add(steps, false);
        for section in apart {
            reader.nodes(section);
        }
    }
    reader.found
}

// === impl Reader ===

impl<'d> Reader<'d> {
    fn nodes(&mut self, nodes: &'d [Node]) {
        let mut at = 0;
        while let Some(node) = nodes.get(at) {
            if let (Node::Heading { level, .. }, Some((steps, count))) =
                (node, numbered(&nodes[at..]))
            {
                // Lists and `<Steps>` below the headings are parts of these steps.
                self.leave(*level);
                self.before.clear();
                self.add(steps, false);
                at += count;
                continue;
            }
            at += 1;
            match node {
                Node::Heading {
                    level,
                    children,
                    anchor,
                    ..
                } => {
                    self.leave(*level);
                    let anchor = anchor.as_ref().map(|anchor| &*anchor.id);
                    self.heading(*level, words(children), anchor, false);
                }
                Node::Paragraph(line) => self.before = words(line),
                Node::List {
                    start: Some(_),
                    items,
                } if !explains(&self.before) => {
                    let steps = items.iter().map(|item| step("", &item.children, false));
                    self.add(steps.collect(), true);
                }
                Node::Element(element) if *element.name == *"Steps" => self.steps(element),
                Node::Element(element) => self.element(element),
                _ => {}
            }
        }
    }

    /// Forgets the headings that a heading of this level ends.
    fn leave(&mut self, level: u8) {
        let label = self.headings.iter().rposition(|above| above.is_label);
        let inside = label.map_or(0, |label| label + 1);
        let mut below = self.headings.split_off(inside);
        below.retain(|above| above.level < level);
        self.headings.append(&mut below);
    }

    fn heading(&mut self, level: u8, title: String, anchor: Option<&'d str>, is_label: bool) {
        self.before.clear();
        self.headings.push(Heading {
            level,
            title,
            anchor,
            is_label,
        });
    }

    fn element(&mut self, element: &'d Element) {
        let title = element.text("title").map(plain).unwrap_or_default();
        if !TITLED.contains(&&*element.name) || title.is_empty() {
            return self.nodes(&element.children);
        }
        let outer = self.headings.clone();
        let anchor = outer.last().and_then(|heading| heading.anchor);
        self.heading(0, title, anchor, true);
        self.nodes(&element.children);
        self.headings = outer;
    }

    fn steps(&mut self, steps: &'d Element) {
        let steps = steps.children.iter().filter_map(|child| match child {
            Node::Element(child) if *child.name == *"Step" => {
                let title = child.text("title").map(plain).unwrap_or_default();
                Some(step(without_number(&title), &child.children, true))
            }
            _ => None,
        });
        self.add(steps.collect(), false);
    }

    /// Adds a procedure. The items of a list must be instructions.
    fn add(&mut self, mut steps: Vec<Step<'d>>, is_list: bool) {
        steps.retain(|step| !step.words.is_empty() && !is_appendix(&step.words));
        let own = self.headings.last();
        let heading = own.map(|own| &*own.title).unwrap_or_default();
        if steps.len() < STEPS_MIN || is_explanation(heading) {
            return;
        }
        if self
            .headings
            .iter()
            .any(|above| wrong::is_wrong(&above.title))
        {
            return;
        }
        if is_list && has(&normal(heading), &PREREQUISITES) {
            return;
        }
        // Titles alone do not tell what to do; the page is in the list of guides.
        let bare = steps.iter().filter(|step| step.is_bare).count();
        if !is_list && bare * 2 > steps.len() {
            return;
        }
        let instructions = steps.iter().filter(|step| is_instruction(&step.words));
        if is_list && self.is_english && instructions.count() * 3 < steps.len() * 2 {
            return;
        }
        choose(&mut steps);
        if is_in_window(&steps) {
            return;
        }
        let heading = without_number(heading);
        // The label of a tab says for which language or platform the procedure is.
        let mut above = self.headings.iter().rev().skip(1);
        let label = above.clone().find(|above| above.is_label);
        let above = label.or_else(|| above.next().filter(|_| !is_instruction(heading)));
        self.found.push(Workflow {
            heading: match above {
                Some(above) => format!("{}: {heading}", without_number(&above.title)),
                None => heading.to_owned(),
            },
            anchor: own.and_then(|own| own.anchor),
            steps,
        });
    }
}

/// Returns whether all steps are done in windows, which an agent does not have.
fn is_in_window(steps: &[Step<'_>]) -> bool {
    const WINDOW: [&str; 18] = [
        "browser",
        "button",
        "click",
        "console",
        "dashboard",
        "dropdown",
        "icon",
        "log in",
        "menu",
        "navigate",
        "select",
        "settings",
        "sidebar",
        "sign in",
        "sign up",
        "tab",
        "toggle",
        "window",
    ];
    let in_window = |step: &&Step<'_>| has(&normal(&step.words), &WINDOW);
    // An address is entered in a window, too.
    let is_address = |code: &Block<'_>| {
        let line = code.one_line();
        line.is_some_and(|line| line.starts_with("http") && !line.contains(' '))
    };
    // A command or a call, not the name of a file.
    let is_command = |code: &str| code.trim().contains([' ', '(']);
    let has_code = |step: &Step<'_>| {
        let mut inline = step.words.split('`').skip(1).step_by(2);
        step.code.iter().any(|code| !is_address(code)) || inline.any(is_command)
    };
    !steps.iter().any(has_code) && steps.iter().filter(in_window).count() * 2 >= steps.len()
}

/// Returns whether a paragraph says that the list after it is what a program does.
fn explains(before: &str) -> bool {
    let words = normal(before);
    let does = has(&words, &["will", "does", "happens", "works", "performs"]);
    // A list of ways is no sequence.
    if has(
        &words,
        &["ways", "options", "methods", "approaches", "either"],
    ) {
        return true;
    }
    before.ends_with(':') && does && !has(&words, &["you will", "you ll", "we will", "we ll"])
}
