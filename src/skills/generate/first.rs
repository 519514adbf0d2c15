//! The first working call: install, authenticate, call. The code is copied unchanged.
//!
//! The page that holds most of the three comes first; what it lacks is taken from other pages of
//! the same part. So an agent gets code that belongs together.

use std::cell::Cell;
use std::collections::HashSet;

use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;
use crate::mdx::Node;

use super::code::{Block, Kind, is_used};
use super::group::{Group, groups};
use super::name::Names;
use super::outline::{Entry, Outline, content, endpoint, link_to};
use super::own_file::own_files;
use super::role::{Role, has, normal};
use super::sink::{Share, Sink};
use super::text::{fit, sentences, words};
use super::words::is_task;

/// The most lines and characters of the section.
const LINES_MAX: usize = 130;
const CHARACTERS_MAX: usize = 3900;
/// How many alternatives of the first call are shown, and of an installation.
const CALLS_MAX: usize = 2;
const INSTALLS_MAX: usize = 3;
/// How many parts of a site get a first call of their own.
const PARTS_MAX: usize = 3;
/// How many guides are searched if no page about the start has code.
const GUIDES_MAX: usize = 40;
/// The most bytes of code that uses what the call has made.
const USE_BYTES_MAX: usize = 1200;
/// The longest sentence about credentials, and about the placeholders of a call, in characters.
const SENTENCE_MAX: usize = 240;
/// The shortest placeholder, in characters.
const PLACEHOLDER_MIN: usize = 3;

/// Within how many characters a sentence about credentials names them.
const MARK_MAX: usize = 90;

/// Labels that are not presented as a choice.
const MANAGERS: [&str; 16] = [
    "npm",
    "pnpm",
    "yarn",
    "bun",
    "pip",
    "uv",
    "poetry",
    "brew",
    "homebrew",
    "bash",
    "shell",
    "sh",
    "powershell",
    "zsh",
    "conda",
    "curl",
];

/// A group of code, and its page.
type FirstExample<'d> = (PageId, Group<'d>);

/// The steps to a first result.
#[derive(Debug, Default)]
struct Plan<'d> {
    install: Option<FirstExample<'d>>,
    access: Option<FirstExample<'d>>,
    call: Option<FirstExample<'d>>,
}

/// The section, and its values that other sections need.
#[derive(Debug, Default)]
pub(super) struct First<'d> {
    pub(super) lines: Vec<String>,
    /// The code that the section shows.
    pub(super) shown: HashSet<&'d str>,
    /// The language of the first call, if it is a programming language.
    pub(super) language: Option<&'d str>,
    /// The alternatives among which an agent must choose: their names, and the page.
    pub(super) choices: Vec<(Vec<String>, PageId)>,
}

/// Writes the first calls of the documentation.
pub(super) fn first<'d>(
    docs: &'d Docs,
    outline: &Outline,
    names: &Names,
    share: Share,
    base_url: &str,
) -> First<'d> {
    let mut sink = Sink::new(base_url, LINES_MAX, share.of(CHARACTERS_MAX));
    let mut first = First::default();
    let mut plans = plans(docs, outline, names);
    // Code without its installation is no beginning of a further part.
    let mut nth = 0..;
    plans.retain(|(_, plan)| nth.next() == Some(0) || plan.install.is_some());
    plans.truncate(PARTS_MAX);
    for (nth, (part, plan)) in plans.iter().enumerate() {
        let heading = match nth {
            0 => "First working call".to_owned(),
            _ => format!("First working call: {part}"),
        };
        // Later parts show one alternative, and only what fits.
        let calls_max = if nth == 0 { CALLS_MAX } else { 1 };
        let sizes = (1..=calls_max).rev().map(|calls| (calls, true));
        for (calls, has_use) in sizes.chain([(1, false)]) {
            let (known, size) = (&first.shown, (calls, has_use, nth == 0));
            let (lines, shown) = plan.lines(docs, outline, base_url, size, known);
            if sink.add_under(&heading, lines) {
                first.shown.extend(shown);
                first.language = first.language.or_else(|| plan.language());
                first.choices.extend(plan.choices());
                break;
            }
        }
    }
    if sink.lines.is_empty() {
        let home = outline.entries_of(|role| role == Role::Start).next();
        let home = home.map(|entry| entry.page).or_else(|| outline.home(docs));
        let mut lines = Vec::new();
        lines.extend(credentials(docs, outline, (&[], true), base_url));
        if let Some(id) = home {
            let link = link_to(docs, id, base_url);
            lines.push(format!(
                "- The pages that lead to a first result show no code. Start with {link}."
            ));
        }
        sink.add_under("First working call", lines);
    }
    first.lines = sink.lines;
    first
}

/// Finds the plans of the parts; the part of the first page comes first, and the others only if
/// they have a page about the start.
fn plans<'d>(docs: &'d Docs, outline: &Outline, names: &Names) -> Vec<(String, Plan<'d>)> {
    let home = outline.home(docs);
    let mut parts: Vec<&str> = Vec::new();
    for category in outline.early() {
        if !parts.contains(&&*category.part) {
            parts.push(&category.part);
        }
    }
    let mut plans: Vec<(String, Plan<'d>)> = Vec::new();
    for part in &parts {
        let candidates: Vec<(PageId, bool)> = entries_of_part(outline, part)
            .filter(|entry| Some(entry.page) == home || entry.role <= Role::Access)
            .map(|entry| {
                let is_start = Some(entry.page) == home || entry.role == Role::Start;
                (entry.page, is_start)
            })
            .collect();
        let names = names.with_part(part);
        let plan = Plan::of(docs, &candidates, &names);
        let is_own = |(id, group): &FirstExample<'_>| {
            let starts = candidates
                .iter()
                .any(|(other, starts)| *starts && other == id);
            starts && group.blocks.iter().any(|block| block.mentions(&names))
        };
        if plan.call.as_ref().is_some_and(is_own) {
            plans.push(((*part).to_owned(), plan));
        }
    }
    // The part that a visitor sees first gets the best code of its guides.
    let first_part = parts
        .first()
        .filter(|part| plans.first().is_none_or(|(own, _)| own != *part));
    if let Some(part) = first_part {
        let guides = |entry: &&Entry| entry.role <= Role::Integration;
        let guides = entries_of_part(outline, part)
            .filter(guides)
            .take(GUIDES_MAX);
        let candidates: Vec<(PageId, bool)> = home
            .into_iter()
            .chain(guides.map(|entry| entry.page))
            .map(|id| (id, false))
            .collect();
        let plan = Plan::of(docs, &candidates, names);
        let is_program = |(_, group): &FirstExample<'_>| group.blocks.iter().any(Block::is_program);
        if plan
            .call
            .as_ref()
            .is_some_and(|call| plans.is_empty() || is_program(call))
        {
            plans.insert(0, ((*part).to_owned(), plan));
        }
    }
    if plans.is_empty() {
        // No page of the first part makes a call: take the best of all guides.
        let guides = outline
            .entries_of(|role| role <= Role::Integration)
            .take(GUIDES_MAX);
        let candidates: Vec<(PageId, bool)> = guides
            .map(|entry| (entry.page, entry.role == Role::Start))
            .collect();
        let plan = Plan::of(docs, &candidates, names);
        if plan.call.is_some() || plan.install.is_some() {
            plans.push((String::new(), plan));
        }
    }
    // A part with a whole program comes before a part with only a command.
    plans.sort_by_key(|(_, plan)| !plan.is_program());
    // A page of another part may have what the first part lacks.
    if let Some((_, plan)) = plans.first_mut() {
        let others: Vec<PageId> = outline
            .entries_of(|role| matches!(role, Role::Install | Role::Access))
            .map(|entry| entry.page)
            .collect();
        plan.complete(docs, &others, names);
    }
    plans
}

/// Returns the pages of a part, in order.
fn entries_of_part<'o>(outline: &'o Outline, part: &'o str) -> impl Iterator<Item = &'o Entry> {
    let of_part = outline
        .categories
        .iter()
        .filter(move |category| category.part == part);
    of_part.flat_map(|category| &category.entries)
}

fn score(group: &Group<'_>, names: &Names) -> usize {
    let scores = group.blocks.iter().map(|block| block.score(names));
    scores.max().unwrap_or(0)
}

// === impl Plan ===

impl<'d> Plan<'d> {
    /// Finds the best of some pages; `true` marks those about the start.
    fn of(docs: &'d Docs, candidates: &[(PageId, bool)], names: &Names) -> Self {
        let mut best = Self::default();
        let mut most = 0;
        for (id, is_start) in candidates {
            let plan = Self::of_page(docs, *id, names);
            let score = plan.score(*is_start, names);
            if score > most {
                most = score;
                best = plan;
            }
        }
        let pages: Vec<PageId> = candidates.iter().map(|(id, _)| *id).collect();
        best.complete(docs, &pages, names);
        best.fit(docs, &pages, names);
        best
    }

    /// Makes the call and the installation fit: code in one language does not run with the packages of
    /// another language. The alternatives of the call that fit the installation stay. If none fits, the
    /// installation is replaced by one of another page that fits.
    fn fit(&mut self, docs: &'d Docs, candidates: &[PageId], names: &Names) {
        let Some(((_, install), (_, call))) = self.install.as_ref().zip(self.call.as_mut()) else {
            return;
        };
        let fits = |group: &Group<'d>, block: &Block<'d>| {
            let mut installs = group.blocks.iter();
            installs.any(|one| one.installs_for(block.language) == Some(true))
        };
        if call.blocks.iter().any(|block| fits(install, block)) {
            let stays = |block: &Block<'d>| !block.is_program() || fits(install, block);
            call.blocks.retain(stays);
            return;
        }
        let Some(block) = call.blocks.first().filter(|block| block.is_program()) else {
            return;
        };
        let differs = |one: &Block<'d>| one.installs_for(block.language) == Some(false);
        if !install.blocks.iter().all(differs) {
            return;
        }
        let other = candidates.iter().find_map(|id| {
            let nodes = content(docs, docs.navigation.page(*id))?;
            let is_own = |group: &Group<'d>| group.blocks.iter().any(|one| one.mentions(names));
            let mut found = groups(nodes).into_iter();
            let found = found
                .find(|group| group.kind == Kind::Install && is_own(group) && fits(group, block))?;
            Some((*id, found))
        });
        self.install = other.or(self.install.take());
    }

    fn of_page(docs: &'d Docs, id: PageId, names: &Names) -> Self {
        let nodes = content(docs, docs.navigation.page(id)).unwrap_or_default();
        let groups = groups(nodes);
        // Other packages, such as those of the system, are what the product needs.
        let installs = || groups.iter().filter(|group| group.kind == Kind::Install);
        let any = |group: &&Group<'d>, is_wanted: &dyn Fn(&Block<'d>) -> bool| {
            group.blocks.iter().any(is_wanted)
        };
        // Code that also removes a package repairs an installation: a plain one is better.
        let plain = |block: &Block<'d>| block.mentions(names) && !block.uninstalls();
        // One page may install several parts of the product.
        let of_part = |block: &Block<'d>| plain(block) && names.is_of_part(block.code);
        let install = installs()
            .find(|group| any(group, &of_part))
            .or_else(|| installs().find(|group| any(group, &plain)))
            .or_else(|| installs().find(|group| any(group, &|block| block.mentions(names))))
            .or_else(|| installs().find(|group| any(group, &|block| !block.is_of_system())));
        // The key of another service gives no access to the product.
        let is_foreign =
            |group: &&Group<'d>| group.blocks.iter().all(|block| block.is_foreign(names));
        let mut accesses = groups.iter().filter(|group| group.kind == Kind::Access);
        let access = accesses.find(|group| !is_foreign(group));
        let calls = groups.iter().filter(|group| group.kind == Kind::Call);
        // If several groups have the same score, the first is used: it is usually the smallest
        // example.
        let call = calls.rev().max_by_key(|group| score(group, names));
        let found = |group: Option<&Group<'d>>| group.map(|group| (id, group.clone()));
        Self {
            install: found(install),
            access: found(access),
            call: found(call),
        }
    }

    /// Adds each missing part, from the first page that has it.
    fn complete(&mut self, docs: &'d Docs, candidates: &[PageId], names: &Names) {
        for id in candidates {
            if self.install.is_some() && self.access.is_some() && self.call.is_some() {
                return;
            }
            let other = Self::of_page(docs, *id, names);
            // The installation of something else would mislead.
            let is_own = |(_, group): &FirstExample<'d>| {
                group.blocks.iter().any(|block| block.mentions(names))
            };
            self.install = self.install.take().or(other.install.filter(is_own));
            self.access = self.access.take().or(other.access.filter(is_own));
            self.call = self.call.take().or(other.call);
        }
    }

    /// Returns whether the plan installs something and calls it in a programming language.
    fn is_program(&self) -> bool {
        let calls = |(_, group): &FirstExample<'d>| group.blocks.iter().any(Block::is_program);
        self.install.is_some() && self.call.as_ref().is_some_and(calls)
    }

    /// Returns whether the call may be a request: a command of a command line signs in in its own way.
    fn is_request(&self) -> bool {
        let is_request = |block: &Block<'_>| block.is_program() || block.code.contains("http");
        let call = self.call.as_ref();
        call.is_none_or(|(_, group)| group.blocks.iter().any(is_request))
    }

    /// Returns the language of the call, if it is a programming language.
    fn language(&self) -> Option<&'d str> {
        let (_, call) = self.call.as_ref()?;
        let block = call.blocks.first().filter(|block| block.is_program())?;
        Some(block.language)
    }

    fn score(&self, is_start: bool, names: &Names) -> usize {
        let steps = usize::from(self.install.is_some()) + usize::from(self.access.is_some());
        let call = self.call.as_ref().map_or(0, |(_, group)| {
            2 + score(group, names) + 2 * usize::from(is_start)
        });
        steps + call
    }

    fn pages(&self) -> Vec<PageId> {
        let found = [&self.call, &self.install, &self.access];
        found.into_iter().flatten().map(|(id, _)| *id).collect()
    }

    /// Writes the plan with at most this many alternatives of the call, and with code that uses what
    /// the call makes if `has_use`, without the code of `known`; returns the code it shows. A plan
    /// whose call is known has no lines.
    fn lines(
        &self,
        docs: &'d Docs,
        outline: &Outline,
        base_url: &str,
        (calls, has_use, is_first): (usize, bool, bool),
        known: &HashSet<&'d str>,
    ) -> (Vec<String>, Vec<&'d str>) {
        let mut lines = Vec::new();
        let mut shown: Vec<&'d str> = Vec::new();
        let named = Cell::new(None);
        let mut put = |what: &str, id: PageId, blocks: &[&Block<'d>], lines: &mut Vec<String>| {
            // A step without a page is from the page of the step above it.
            let from = (named.get() != Some(id)).then(|| link_to(docs, id, base_url));
            named.set(Some(id));
            lines.extend(step(what, blocks, from.as_deref()));
            shown.extend(blocks.iter().map(|block| block.code));
        };
        let new = |found: &'_ Option<FirstExample<'d>>, max: usize| -> Vec<Block<'d>> {
            let blocks = found.iter().flat_map(|(_, group)| &group.blocks);
            let blocks = blocks.filter(|block| !known.contains(block.code));
            blocks.take(max).cloned().collect()
        };
        let of_call = new(&self.call, calls);
        if self.call.is_some() && of_call.is_empty() {
            return (lines, shown);
        }
        for (what, found, max) in [
            ("Install", &self.install, INSTALLS_MAX),
            ("Authenticate", &self.access, 1),
        ] {
            let blocks = new(found, max);
            if let Some((id, _)) = found.as_ref().filter(|_| !blocks.is_empty()) {
                put(what, *id, &blocks.iter().collect::<Vec<_>>(), &mut lines);
            }
            if what == "Authenticate" && found.is_none() && is_first {
                let pages = (&self.pages()[..], self.is_request());
                let line = credentials(docs, outline, pages, base_url);
                // This line has a page of its own.
                if line.is_some() {
                    named.set(None);
                }
                lines.extend(line);
            }
        }
        if let Some((id, _)) = &self.call {
            for block in &of_call {
                put("Call", *id, &[block], &mut lines);
                lines.extend(placeholders_of(docs, *id, block));
                lines.extend(files_of(docs, *id, block));
                // Code that only makes a client shows no use of it.
                let next = use_of(docs, *id, block).filter(|next| !known.contains(next.code));
                if let Some(next) = next.filter(|_| has_use) {
                    put("Then", *id, &[&next], &mut lines);
                }
            }
        }
        (lines, shown)
    }

    /// Returns the alternatives of the plan: the labels of all code beside its call and beside its
    /// installation.
    fn choices(&self) -> Vec<(Vec<String>, PageId)> {
        let found = [&self.install, &self.call].into_iter().flatten();
        found
            .filter_map(|(id, group)| {
                let mut labels: Vec<String> = Vec::new();
                for label in &group.labels {
                    if !label.is_empty() && !labels.contains(label) {
                        labels.push(label.clone());
                    }
                }
                let is_tool = |label: &String| {
                    let label = label.to_lowercase();
                    MANAGERS.contains(&&*label)
                };
                let is_choice = labels.len() > 1 && !labels.iter().all(is_tool);
                // Files of one example are no alternatives.
                let is_file = labels.iter().any(|label| label.contains(['/', '.']));
                (is_choice && !is_file).then_some((labels, *id))
            })
            .collect()
    }
}

/// Returns the next code of a page, in the same language, that uses what a block only makes.
fn use_of<'d>(docs: &'d Docs, id: PageId, block: &Block<'d>) -> Option<Block<'d>> {
    let made = block.only_makes()?;
    let nodes = content(docs, docs.navigation.page(id))?;
    let groups = groups(nodes);
    let mut blocks = groups.into_iter().flat_map(|group| group.blocks);
    blocks.find(|other| other.code == block.code)?;
    blocks.find(|other| {
        other.is_in(block.language)
            && other.code.len() <= USE_BYTES_MAX
            && other.kind() == Kind::Call
            && !other.needs_files()
            && other.code.lines().any(|line| is_used(line, &made))
    })
}

/// Returns what the paragraph after a block says about its placeholders: "Where `ACME_URL` is …".
fn placeholders_of(docs: &Docs, id: PageId, block: &Block<'_>) -> Option<String> {
    let nodes = content(docs, docs.navigation.page(id))?;
    let said = after_code(nodes, block.code)?;
    let is_shared = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        word.chars().count() >= PLACEHOLDER_MIN && is_placeholder(word) && block.code.contains(word)
    };
    let said = said.split(' ').any(is_shared).then_some(said)?;
    Some(format!("- {}", fit(&said, SENTENCE_MAX)))
}

/// Returns whether a word can stand for a value of the reader: `ACME_URL`, `your-key`, `<key>`.
fn is_placeholder(word: &str) -> bool {
    let is_large = !word.contains(char::is_lowercase) && word.contains(char::is_uppercase);
    is_large || word.contains(['_', '-'])
}

/// Returns the paragraph after a block that begins with "Where", and the list that it announces.
fn after_code(nodes: &[Node], code: &str) -> Option<String> {
    for (at, node) in nodes.iter().enumerate() {
        if !has_code(node, code) {
            continue;
        }
        if let Some(Node::Paragraph(line)) = nodes.get(at + 1) {
            let said = words(line);
            if normal(&said).starts_with(" where ") {
                let items = match nodes.get(at + 2) {
                    Some(Node::List { items, .. }) if said.ends_with(':') => {
                        let items = items.iter().map(|item| words(&item.children));
                        format!(" {}", items.collect::<Vec<_>>().join("; "))
                    }
                    _ => String::new(),
                };
                return Some(format!("{said}{items}"));
            }
        }
        let mut found = None;
        node.each_children(&mut |children| {
            found = found.take().or_else(|| after_code(children, code))
        });
        return found;
    }
    None
}

fn has_code(node: &Node, wanted: &str) -> bool {
    if let Node::Fence { code, .. } = node {
        return code.trim_matches('\n') == wanted;
    }
    let mut found = false;
    node.each_children(&mut |children| found |= children.iter().any(|node| has_code(node, wanted)));
    found
}

/// Says which files that a block imports are on its page.
fn files_of(docs: &Docs, id: PageId, block: &Block<'_>) -> Option<String> {
    let nodes = content(docs, docs.navigation.page(id))?;
    let blocks: Vec<Block<'_>> = groups(nodes)
        .into_iter()
        .flat_map(|group| group.blocks)
        .collect();
    let files = own_files(block, &blocks);
    let files: Vec<String> = files.iter().map(|file| format!("`{file}`")).collect();
    let (last, others) = files.split_last()?;
    let names = match others {
        [] => last.clone(),
        others => format!("{} and {last}", others.join(", ")),
    };
    Some(format!("- The same page has {names}."))
}

/// Writes a step with its code: in the line if it is one line, else as a fence.
fn step(what: &str, blocks: &[&Block<'_>], from: Option<&str>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for (nth, block) in blocks.iter().enumerate() {
        let label = match &*block.label {
            "" => String::new(),
            label => format!(" ({label})"),
        };
        let from = from.filter(|_| nth == 0).map(|from| format!(" – {from}"));
        let from = from.unwrap_or_default();
        match block.one_line() {
            Some(code) => lines.push(format!("- {what}{label}: `{code}`{from}")),
            None => {
                lines.push(format!("- {what}{label}{from}:"));
                lines.push(String::new());
                lines.extend(block.fence("  "));
                lines.push(String::new());
            }
        }
    }
    lines
}

/// Says how the call is authenticated: a sentence of a page, else the method of a specification if the
/// call may be a request.
fn credentials(
    docs: &Docs,
    outline: &Outline,
    (first, is_request): (&[PageId], bool),
    base_url: &str,
) -> Option<String> {
    let of = |wanted: fn(Role) -> bool| outline.entries_of(wanted).map(|entry| entry.page);
    // A page about authentication says it best; then the pages of the first call.
    let pages: Vec<PageId> = of(|role| role == Role::Access)
        .chain(first.iter().copied())
        .chain(of(|role| role < Role::Access))
        .chain(outline.home(docs))
        .collect();
    for id in pages {
        let nodes = content(docs, docs.navigation.page(id)).unwrap_or_default();
        if let Some(sentence) = about_credentials(nodes) {
            let from = link_to(docs, id, base_url);
            return Some(format!("- Authenticate: {sentence} – {from}"));
        }
    }
    if !is_request {
        return None;
    }
    let id = outline
        .pages()
        .find(|id| endpoint(docs, docs.navigation.page(*id)).is_some())?;
    let (specification, one) = endpoint(docs, docs.navigation.page(id))?;
    let security = specification.operation(one)?.security();
    let method = security
        .iter()
        .find(|security| !security.schemes.is_empty())?;
    let method = super::integration::authentication(method);
    let from = link_to(docs, id, base_url);
    Some(format!("- Authenticate: {method} – {from}"))
}

/// Returns whether a sentence tells a reader what to do.
fn tells(sentence: &str) -> bool {
    const TELLS: [&str; 7] = [
        "you need",
        "you ll need",
        "you must",
        "you can create",
        "you can get",
        "you can find",
        "requires",
    ];
    (is_task(sentence) || has(&normal(sentence), &TELLS))
        // A single word is a name, not an instruction.
        && sentence.contains(' ')
        && !sentence.ends_with([':', '?'])
        && !sentence.starts_with("See ")
}

fn about_credentials(nodes: &[Node]) -> Option<String> {
    const MARKS: [&str; 6] = [
        "api key",
        "api keys",
        "access token",
        "api token",
        "sign up",
        "client id",
    ];
    // A sentence that mentions a key at its end is about something else.
    let is_early = |sentence: &str| {
        let start: String = sentence.chars().take(MARK_MAX).collect();
        let other = ["deprecated", "note that", "optional"];
        has(&normal(&start), &MARKS) && !has(&normal(sentence), &other)
    };
    nodes.iter().find_map(|node| match node {
        Node::Paragraph(line) => {
            let line = words(line);
            let found = sentences(&line)
                .into_iter()
                .find(|sentence| is_early(sentence) && tells(sentence))?;
            Some(fit(found, SENTENCE_MAX))
        }
        Node::Heading { .. } | Node::Table(_) | Node::Fence { .. } => None,
        node => {
            let mut found = None;
            node.each_children(&mut |children| {
                found = found.take().or_else(|| about_credentials(children));
            });
            found
        }
    })
}
