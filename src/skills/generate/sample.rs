//! The code of a step: which of it a procedure shows.
//!
//! A step may have several blocks of code, and alternatives of each. Code that belongs together
//! names the same port, address or file, so the later steps decide between alternatives. Code that
//! imports a file that no step shows does not run, and is left to the page.

use std::collections::HashSet;

use crate::mdx::{Element, Node};

use super::code::{Block, Kind};
use super::own_file::stem;
use super::role::{has, normal};
use super::step::Step;
use super::text::{plain, sentences, words};
use super::wrong::{self, Verdict};

/// The most lines and bytes of code in a step.
const CODE_LINES_MAX: usize = 25;
const CODE_BYTES_MAX: usize = 1100;
/// The shortest number that is a literal, such as a port, in digits.
const NUMBER_MIN: usize = 4;

/// The alternatives of one piece of code. An alternative may have several blocks.
pub(super) type Sample<'d> = Vec<Vec<Block<'d>>>;

/// Collects the code of a step.
pub(super) struct Samples<'d> {
    found: Vec<Sample<'d>>,
    /// Code in remarks and in parts that a reader opens.
    aside: Vec<Sample<'d>>,
    verdict: Verdict,
    /// Whether the paragraph before offers another way, and whether it announces an output.
    is_other_way: bool,
    is_output: bool,
    enters_steps: bool,
}

// === impl Samples ===

impl<'d> Samples<'d> {
    /// Returns the code of a step in the order of the page; without code in its text, the code in
    /// remarks. `enters_steps` adds the code of `<Steps>` inside it.
    pub(super) fn of(title: &str, nodes: &'d [Node], enters_steps: bool) -> Vec<Sample<'d>> {
        let mut samples = Self::new(Verdict::default(), enters_steps);
        samples.verdict.heading(title);
        samples.nodes(nodes);
        match samples.found.is_empty() {
            true => samples.aside,
            false => samples.found,
        }
    }

    fn new(verdict: Verdict, enters_steps: bool) -> Self {
        Self {
            found: Vec::new(),
            aside: Vec::new(),
            verdict,
            is_other_way: false,
            is_output: false,
            enters_steps,
        }
    }

    fn nodes(&mut self, nodes: &'d [Node]) {
        for node in nodes {
            match node {
                Node::Heading { children, .. } => self.verdict.heading(&words(children)),
                Node::Paragraph(line) => self.line(&words(line)),
                Node::Fence { info, code } => {
                    let block = Block::of(info, code, "");
                    self.add(vec![vec![block]]);
                }
                Node::Element(element) => self.element(element),
                node => node.each_children(&mut |children| self.nodes(children)),
            }
        }
    }

    fn line(&mut self, line: &str) {
        let words = normal(line);
        let mut starts = [" or ", " alternatively ", " optionally "].iter();
        self.is_other_way = starts.any(|start| words.starts_with(start));
        self.is_output = announces_output(line);
        self.verdict.line(line);
    }

    fn element(&mut self, element: &'d Element) {
        if element.text("title").is_some_and(wrong::is_wrong) {
            return;
        }
        match &*element.name {
            // Steps inside a step are a procedure of their own.
            "Steps" if !self.enters_steps => {}
            "ResponseExample" => {}
            "CodeGroup" | "RequestExample" | "Tabs" => {
                let ways = element.children.iter().map(|child| self.way(child));
                let ways: Sample<'d> = ways.filter(|way| !way.is_empty()).collect();
                match are_files(&ways) {
                    true => ways.into_iter().for_each(|way| self.add(vec![way])),
                    false => self.add(ways),
                }
            }
            "Accordion" | "Expandable" | "Note" | "Tip" | "Info" | "Warning" | "Check" => {
                let found = std::mem::take(&mut self.found);
                self.nodes(&element.children);
                let aside = std::mem::replace(&mut self.found, found);
                self.aside.extend(aside);
            }
            _ => self.nodes(&element.children),
        }
    }

    /// Returns the code of one of several alternatives; its title is the label of code without one.
    fn way(&self, alternative: &'d Node) -> Vec<Block<'d>> {
        let mut inner = Self::new(self.verdict, false);
        inner.nodes(std::slice::from_ref(alternative));
        let found = inner.found.into_iter();
        let firsts = found.filter_map(|found| found.into_iter().next());
        let mut way: Vec<Block<'d>> = firsts.flatten().collect();
        if let Node::Element(tab) = alternative
            && let Some(title) = tab.text("title").map(plain)
        {
            let unlabelled = way.iter_mut().filter(|block| block.label.is_empty());
            unlabelled.for_each(|block| block.label.clone_from(&title));
        }
        way
    }

    fn add(&mut self, ways: Sample<'d>) {
        let is_sample = |code: &Block<'_>| {
            let is_file = is_file(&code.label);
            let is_shown = is_file || code.sets_variables() || !code.is_output();
            is_shown && !code.is_address() && code.is_whole() && !code.code.trim().is_empty()
        };
        let verdict = self.verdict;
        let right = ways.into_iter().filter_map(|mut way| {
            way.retain(|code| is_sample(code) && !verdict.is_wrong(code));
            (!way.is_empty()).then_some(way)
        });
        let right: Sample<'d> = right.collect();
        let is_other_way = std::mem::take(&mut self.is_other_way);
        if std::mem::take(&mut self.is_output) {
            return;
        }
        if right.is_empty() || is_other_way && !self.found.is_empty() {
            return;
        }
        self.found.push(right);
    }
}

/// Returns whether the last sentence of a paragraph announces what a program shows: "You should see:".
pub(super) fn announces_output(line: &str) -> bool {
    const OUTPUTS: [&str; 9] = [
        "should see",
        "will see",
        "ll see",
        "you see",
        "output",
        "prints",
        "response",
        "returns",
        "result",
    ];
    const RUNS: [&str; 5] = ["run", "use", "execute", "call", "to"];
    let last = sentences(line).pop().unwrap_or_default();
    let words = normal(last);
    last.ends_with(':') && has(&words, &OUTPUTS) && !has(&words, &RUNS)
}

/// Returns whether a label is the name of a file.
fn is_file(label: &str) -> bool {
    let name = label.split(' ').next().unwrap_or_default();
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    (1..=5).contains(&ending.len()) && ending.bytes().all(|b| b.is_ascii_alphanumeric())
}

/// Returns whether blocks beside each other are different files of one program, not alternatives.
fn are_files(ways: &[Vec<Block<'_>>]) -> bool {
    let blocks: Vec<&Block<'_>> = ways.iter().flatten().collect();
    let stems: HashSet<&str> = blocks.iter().map(|block| stem(&block.label)).collect();
    let Some(first) = blocks.first() else {
        return false;
    };
    blocks.len() > 1
        && stems.len() == blocks.len()
        && blocks
            .iter()
            .all(|block| is_file(&block.label) && block.is_in(first.language))
}

/// Chooses the code of every step of a procedure: for each piece of code the alternative that has most
/// in common with the later steps, as long as there is room.
pub(super) fn choose(steps: &mut [Step<'_>]) {
    for nth in 0..steps.len() {
        let (before, after) = steps.split_at_mut(nth + 1);
        let later = after
            .iter()
            .flat_map(|step| step.samples.iter().flatten().flatten());
        let later: HashSet<&str> = later.flat_map(literals).collect();
        let step = &mut before[nth];
        let (mut lines, mut bytes) = (0, 0);
        for sample in &step.samples {
            let shared = |way: &Vec<Block<'_>>| {
                let own: HashSet<&str> = way.iter().flat_map(literals).collect();
                own.intersection(&later).count()
            };
            let mut ways: Vec<&Vec<Block<'_>>> = sample.iter().collect();
            // The sort is stable: of equal ones, the first is used.
            ways.sort_by_key(|way| std::cmp::Reverse(shared(way)));
            let is_short = |way: &&&Vec<Block<'_>>| {
                way.first().is_some_and(|code| {
                    code.code.lines().count() <= CODE_LINES_MAX && code.code.len() <= CODE_BYTES_MAX
                })
            };
            let Some(way) = ways.iter().find(is_short) else {
                step.has_more = true;
                continue;
            };
            for code in *way {
                let (own_lines, own_bytes) = (code.code.lines().count(), code.code.len());
                if lines + own_lines > CODE_LINES_MAX || bytes + own_bytes > CODE_BYTES_MAX {
                    step.has_more = true;
                    continue;
                }
                if step.code.iter().any(|other| other.code == code.code) {
                    continue;
                }
                lines += own_lines;
                bytes += own_bytes;
                step.code.push(code.clone());
            }
        }
    }
    leave_out_incomplete(steps);
}

/// Leaves out code that imports a file of the reader's project that no step shows.
fn leave_out_incomplete(steps: &mut [Step<'_>]) {
    let codes = steps.iter().flat_map(|step| &step.code);
    let shown: HashSet<String> = codes.map(|code| stem(file_of(code)).to_owned()).collect();
    for step in steps {
        let count = step.code.len();
        step.code.retain(|code| {
            let mut imports = code.own_imports();
            code.kind() == Kind::Install || imports.all(|import| shown.contains(stem(import)))
        });
        step.has_more |= step.code.len() < count;
    }
}

/// Returns the name of the file that a block makes: its label, or a remark in its first line.
fn file_of<'b>(block: &'b Block<'_>) -> &'b str {
    let first = block.code.lines().next().unwrap_or_default();
    let remark = ["// ", "# "]
        .iter()
        .find_map(|mark| first.strip_prefix(mark));
    let remark = remark
        .map(str::trim)
        .filter(|name| is_file(name) && !name.contains(' '));
    match is_file(&block.label) {
        true => &block.label,
        false => remark.unwrap_or(&block.label),
    }
}

/// Returns the texts of a block by which code belongs together: ports, addresses, names of files.
fn literals<'b>(block: &'b Block<'_>) -> Vec<&'b str> {
    let inside = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let all = [&*block.label, block.code];
    let words = all
        .into_iter()
        .flat_map(move |text| text.split(move |c: char| !inside(c)));
    let is_literal = |word: &&str| {
        let is_number = word.len() >= NUMBER_MIN && word.bytes().all(|b| b.is_ascii_digit());
        is_number || word.contains('.') && word.contains(char::is_alphabetic)
    };
    words.filter(is_literal).collect()
}
