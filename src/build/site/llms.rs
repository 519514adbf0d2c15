//! `llms.txt` and its parts, and the index for an `AGENTS.md`.
//!
//! Tools read at most 50,000 characters of a list. So a list that would be longer names its parts,
//! and each part is a list of its own: one for each division or group at the top of the
//! navigation, and further ones for what does not fit into the first. The first list also names
//! the lists of the other languages and versions, so that an agent that follows its links finds
//! every page.
//!
//! Names depend only on the navigation and the descriptions in the frontmatter, because they are
//! known before any page is rendered. A summary that is taken from a page is cut to the length
//! that was counted for it.
//!
//! Sources: llmstxt.org; the limits of afdocs 0.22.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::docs::Docs;
use crate::docs::navigation::tree::{Content, DivisionKind, Entry, Page, PageId};
use crate::release::announcements;
use crate::render::article::Article;
use crate::render::layout::path_of;
use crate::render::markdown;
use crate::site::percent::encode;
use crate::skills::{self, ADDRESS_CHARACTERS_MAX, Slug};

use super::catalog;

/// The name of the first list, and the end of the names of the others.
pub(super) const LLMS: &str = "llms.txt";
/// The name of the index for an `AGENTS.md`.
pub(super) const AGENTS: &str = "llms-agents.txt";
/// How many characters a list may have, with the longest address of a site.
const CHARS_MAX: usize = 49_000;
/// How many characters longer than its placeholder the address of a site may be.
const ADDRESS_SPARE: usize = ADDRESS_CHARACTERS_MAX - BASE_URL_PLACEHOLDER.len();
/// How many characters of a description a list has.
const DESCRIPTION_MAX: usize = 200;
/// The most specifications that a list names.
const SPECIFICATIONS_MAX: usize = 30;
/// How many characters the address of a page needs besides its path: the base URL, `[](): .md`.
const LINE_EXTRA: usize = 40 + ADDRESS_SPARE;
/// How many bytes the index for an `AGENTS.md` has at most.
const AGENTS_BYTES_MAX: usize = 8 << 10;
/// How many bytes longer the address of a site may be than its placeholder.
const AGENTS_SPARE: usize = 4 * 100;

/// A list of pages.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct List {
    /// Its path on the site.
    pub(super) name: String,
    /// The title of the list; empty for the first list.
    title: String,
    pages: Vec<PageId>,
    /// The lists that it names instead of pages.
    parts: Vec<List>,
}

/// The lists of a documentation. Finding them takes as long as the documentation has pages, so it
/// is done once for all their files.
#[derive(Debug)]
pub(super) struct Lists {
    /// First the main list, then a list for each other language and version.
    lists: Vec<List>,
    /// What the product is, in the words of its authors.
    about: Option<String>,
}

// === impl Lists ===

impl Lists {
    /// Finds the lists.
    pub(super) fn of(docs: &Docs) -> Self {
        let about = skills::about(docs);
        Self {
            lists: lists(docs, CHARS_MAX - fixed(docs, about.as_deref())),
            about,
        }
    }

    /// Returns the parts of the first list; none if it has all its pages itself.
    pub(super) fn parts(&self) -> Vec<skills::PageList> {
        let parts = self.lists.first().map_or(&[][..], |list| &list.parts);
        let list = |part: &List| skills::PageList {
            title: part.title.clone(),
            path: part.name.clone(),
            pages: part.pages.iter().copied().collect(),
        };
        parts.iter().map(list).collect()
    }

    /// Returns the names of all lists.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.lists.iter().flat_map(|list| {
            let parts = list.parts.iter().map(|part| &part.name);
            [&list.name].into_iter().chain(parts)
        });
        names.map(String::as_str)
    }
}

/// Makes the lists, whose pages have at most this many characters together.
fn lists(docs: &Docs, chars_max: usize) -> Vec<List> {
    let mut names = BTreeSet::from([LLMS.to_owned()]);
    let mut done: HashSet<PageId> = HashSet::new();
    let mut lists = Vec::new();
    let first = docs.navigation.first().map(|id| docs.navigation.page(id));
    let own_language = first.and_then(|page| language(page));
    let mut books: Vec<(Option<&str>, String, Vec<PageId>)> = Vec::new();
    books.push((own_language, String::new(), shown(docs, own_language)));
    for other in languages(docs) {
        if Some(other) != own_language {
            books.push((Some(other), other.to_owned(), shown(docs, Some(other))));
        }
    }
    done.extend(books.iter().flat_map(|(.., pages)| pages.iter().copied()));
    // Pages that are in no default version are listed by their version.
    for (id, page) in docs.navigation.pages().filter(|(_, page)| page.is_listed()) {
        if done.contains(&id) {
            continue;
        }
        let version = page
            .place
            .as_ref()
            .and_then(|place| place.version.as_deref());
        let version = version.unwrap_or("more");
        let title = match language(page).filter(|code| Some(*code) != own_language) {
            Some(code) => format!("{code} {version}"),
            None => version.to_owned(),
        };
        match books
            .iter_mut()
            .find(|(code, own, _)| *code == language(page) && *own == title)
        {
            Some((.., pages)) => pages.push(id),
            None => books.push((language(page), title, vec![id])),
        }
    }
    for (nth, (_, title, pages)) in books.into_iter().enumerate() {
        if nth > 0 && pages.is_empty() {
            continue;
        }
        let name = match nth {
            0 => LLMS.to_owned(),
            _ => free(&title, &mut names),
        };
        let prefix = if nth == 0 { "" } else { &*title };
        let parts = parts(docs, &pages, prefix, chars_max, &mut names);
        lists.push(List {
            name,
            title,
            pages,
            parts,
        });
    }
    lists
}

/// Finds a free name for the list of a part: `{slug}/llms.txt`.
fn free(title: &str, names: &mut BTreeSet<String>) -> String {
    // The code of a language is not changed, because it is also the directory of its pages.
    let slug = match title
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b == b'-')
    {
        true => title.to_owned(),
        false => Slug::from_name(title).map_or("more".to_owned(), |slug| slug.as_str().to_owned()),
    };
    let numbered = (2..).map(|nth| format!("{slug}-{nth}/{LLMS}"));
    let free = [format!("{slug}/{LLMS}")].into_iter().chain(numbered);
    let mut free = free.filter(|name| names.insert(name.clone()));
    free.next().expect("there are more numbers than lists")
}

/// Divides pages among lists that are short enough; there are none if one list is enough.
fn parts(
    docs: &Docs,
    pages: &[PageId],
    prefix: &str,
    chars_max: usize,
    names: &mut BTreeSet<String>,
) -> Vec<List> {
    let cost = |id: &PageId| cost(docs.navigation.page(*id));
    if pages.iter().map(cost).sum::<usize>() <= chars_max {
        return Vec::new();
    }
    let mut parts: Vec<List> = Vec::new();
    // The newest list of each title, and how long it is.
    let mut newest: HashMap<&str, (usize, usize)> = HashMap::new();
    for id in pages {
        let title = section(docs.navigation.page(*id), 0);
        match newest.get_mut(title) {
            Some((at, chars)) if *chars + cost(id) <= chars_max => {
                parts[*at].pages.push(*id);
                *chars += cost(id);
            }
            _ => {
                newest.insert(title, (parts.len(), cost(id)));
                parts.push(List {
                    name: free(format!("{prefix} {title}").trim(), names),
                    title: title.to_owned(),
                    pages: vec![*id],
                    parts: Vec::new(),
                });
            }
        }
    }
    parts
}

/// Returns about how many characters a list has besides its pages.
fn fixed(docs: &Docs, about: Option<&str>) -> usize {
    let specifications = specifications(docs);
    let specifications = specifications.iter().map(|line| line.len() + ADDRESS_SPARE);
    let about = about.map_or(0, str::len);
    (specifications.sum::<usize>() + about + 1400).min(CHARS_MAX / 2)
}

/// Returns a line with a link for each specification; if there are too many to read, one for the catalog
/// that names them.
fn specifications(docs: &Docs) -> Vec<String> {
    let interfaces = catalog::interfaces(docs);
    match interfaces.len() > SPECIFICATIONS_MAX {
        true => vec![format!(
            "- [Catalog of {} specifications]({BASE_URL_PLACEHOLDER}/.well-known/api-catalog)\n",
            interfaces.len()
        )],
        false => {
            let line =
                |one: catalog::Interface<'_>| format!("- [{}]({})\n", one.title, one.description);
            interfaces.into_iter().map(line).collect()
        }
    }
}

/// Returns the most characters of the line of a page.
fn cost(page: &Page) -> usize {
    let heading = section(page, 0).len() + section(page, 1).len();
    let title = markdown::escaped(&page.title).len();
    title + encode(&page.url).len() + description_max(page) + LINE_EXTRA + heading / 4
}

fn description_max(page: &Page) -> usize {
    let description = page.description.as_deref().map(|text| text.chars().count());
    description.unwrap_or(DESCRIPTION_MAX).min(DESCRIPTION_MAX)
}

/// Returns the label of the division or group at a level of the navigation.
fn section(page: &Page, level: usize) -> &str {
    let place = page.place.as_ref();
    place
        .and_then(|place| place.breadcrumb.get(level))
        .map_or("Pages", |label| label)
}

fn language(page: &Page) -> Option<&str> {
    page.place.as_ref()?.language.as_deref()
}

/// Returns the codes of the languages if the documentation has several.
fn languages(docs: &Docs) -> BTreeSet<&str> {
    let listed = docs.navigation.pages.iter().filter(|page| page.is_listed());
    listed.filter_map(language).collect()
}

/// Returns the listed pages that readers of a language see without choosing a version, in order.
fn shown(docs: &Docs, code: Option<&str>) -> Vec<PageId> {
    let mut found = HashSet::new();
    if let Some(content) = &docs.navigation.content {
        collect(content, code, &mut found);
    }
    let pages = docs.navigation.pages();
    pages
        .filter(|(id, page)| page.is_listed() && found.contains(id) && language(page) == code)
        .map(|(id, _)| id)
        .collect()
}

fn collect(content: &Content, code: Option<&str>, found: &mut HashSet<PageId>) {
    match content {
        Content::Entries(entries) => entries.iter().for_each(|entry| collect_entry(entry, found)),
        Content::Groups(groups) => {
            for group in groups {
                found.extend(group.root);
                group
                    .entries
                    .iter()
                    .for_each(|entry| collect_entry(entry, found));
            }
        }
        Content::Divisions(divisions) => {
            let default = divisions.list.get(divisions.default);
            for (nth, division) in divisions.list.iter().enumerate() {
                let is_chosen = match divisions.kind {
                    DivisionKind::Versions => nth == divisions.default,
                    DivisionKind::Languages => {
                        let own = division
                            .language
                            .as_ref()
                            .map(|parts| &*parts.language.code);
                        own.map_or(
                            default.is_some_and(|it| std::ptr::eq(it, division)),
                            |own| Some(own) == code,
                        )
                    }
                    _ => true,
                };
                if is_chosen {
                    collect(&division.content, code, found);
                }
            }
        }
        Content::Link(_) => {}
    }
}

fn collect_entry(entry: &Entry, found: &mut HashSet<PageId>) {
    match entry {
        Entry::Page(id) => {
            found.insert(*id);
        }
        Entry::Group(group) => {
            found.extend(group.root);
            group
                .entries
                .iter()
                .for_each(|entry| collect_entry(entry, found));
        }
    }
}

/// Writes a list by its name; `None` if there is no such list. `article` returns the article of a
/// page that everybody may read.
pub(super) fn write<'a>(
    name: &str,
    docs: &Docs,
    lists: &Lists,
    article: &dyn Fn(PageId) -> Option<&'a Article>,
) -> Option<String> {
    let Lists { lists, about } = lists;
    let (nth, list) = lists.iter().enumerate().find_map(|(nth, list)| {
        if list.name == name {
            return Some((nth, list));
        }
        list.parts
            .iter()
            .find(|part| part.name == name)
            .map(|part| (usize::MAX, part))
    })?;
    let mut out = head(docs, &list.title, about.as_deref());
    match list.parts.is_empty() {
        true => pages(docs, list, nth == usize::MAX, article, &mut out),
        false => {
            out += "## Parts\n\n";
            for part in &list.parts {
                let count = part.pages.len();
                let plural = if count == 1 { "" } else { "s" };
                out += &format!(
                    "- [{}]({BASE_URL_PLACEHOLDER}/{}): {count} page{plural}\n",
                    part.title, part.name
                );
            }
            out.push('\n');
        }
    }
    if nth == 0 {
        for (nth, line) in specifications(docs).into_iter().enumerate() {
            let title = if nth == 0 { "## OpenAPI\n\n" } else { "" };
            let line = format!("{title}{line}");
            if length(&out) + length(&line) > CHARS_MAX {
                break;
            }
            out += &line;
        }
        let others = &lists[1..];
        if !others.is_empty() {
            out += if out.ends_with("\n\n") { "" } else { "\n" };
            out += "## Other languages and versions\n\n";
            for other in others {
                out += &format!(
                    "- [{}]({BASE_URL_PLACEHOLDER}/{})\n",
                    other.title, other.name
                );
            }
        }
    }
    Some(format!("{}\n", out.trim_end()))
}

/// Returns the length of a text if the address of the site is the longest one.
fn length(text: &str) -> usize {
    text.len() + text.matches(BASE_URL_PLACEHOLDER).count() * ADDRESS_SPARE
}

/// Writes the description of the site, and links to its other texts for agents.
fn head(docs: &Docs, title: &str, about: Option<&str>) -> String {
    let name = match &*docs.config.name {
        "" => "Documentation",
        name => name,
    };
    let title = if title.is_empty() {
        String::new()
    } else {
        format!(": {title}")
    };
    let mut out = format!("# {name}{title}\n\n");
    if let Some(about) = about.or(docs.config.description.as_deref()) {
        out += &format!("> {}\n\n", about.replace('\n', " "));
    }
    out + &announcements::lines(BASE_URL_PLACEHOLDER)
}

fn pages<'a>(
    docs: &Docs,
    list: &List,
    is_part: bool,
    article: &dyn Fn(PageId) -> Option<&'a Article>,
    out: &mut String,
) {
    let mut heading: Option<&str> = None;
    for id in &list.pages {
        let page = docs.navigation.page(*id);
        let Some(article) = article(*id) else {
            continue;
        };
        // A part has the pages of one division; the groups in it are its sections.
        let here = section(page, usize::from(is_part));
        if heading != Some(here) {
            *out += &format!("{}## {here}\n\n", if heading.is_some() { "\n" } else { "" });
            heading = Some(here);
        }
        let title = markdown::escaped(&page.title);
        *out += &format!("- [{title}]({})", markdown::address(path_of(page)));
        if let Some(summary) = &article.summary {
            *out += &format!(
                ": {}",
                shortened(&summary.replace('\n', " "), description_max(page))
            );
        }
        out.push('\n');
    }
    out.push('\n');
}

/// Cuts a text after the last word that fits.
fn shortened(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.to_owned();
    }
    let cut: String = text
        .chars()
        .take(characters_max.saturating_sub(1))
        .collect();
    let words = cut.rsplit_once(' ').map_or(&*cut, |(words, _)| words);
    format!("{words}…")
}

/// Writes the index for an `AGENTS.md`: a short list of the pages.
///
/// The pages are named by directory. If they are too many, each directory names its first ones
/// only, then none; directories that still do not fit are left out.
pub(super) fn agents(docs: &Docs, lists: &Lists) -> String {
    let Lists { lists, about } = lists;
    let pages = lists.first().map_or(&[][..], |list| &list.pages);
    let mut directories: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for id in pages {
        let path = path_of(docs.navigation.page(*id));
        let path = if path.is_empty() { "index" } else { path };
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        let at = *places.entry(directory).or_insert(directories.len());
        match directories.get_mut(at) {
            Some((_, names)) => names.push(name),
            None => directories.push((directory, vec![name])),
        }
    }
    let name = match &*docs.config.name {
        "" => "Documentation",
        name => name,
    };
    let mut head = format!("## {name}\n\n");
    if let Some(about) = about {
        head += &format!("{}\n\n", about.replace('\n', " "));
    }
    head += &format!(
        "Read the pages that concern a task before you write code: they may be newer than what \
         you know. A page is at {BASE_URL_PLACEHOLDER}/{{directory}}/{{page}}.md. All pages with \
         descriptions: {BASE_URL_PLACEHOLDER}/{LLMS}. Skills: \
         {BASE_URL_PLACEHOLDER}/.well-known/agent-skills/index.json\n\nPages by directory:\n\n"
    );
    let bytes_max = AGENTS_BYTES_MAX - AGENTS_SPARE;
    let mut text = String::new();
    for names_max in [usize::MAX, 64, 32, 16, 8, 4, 2, 0] {
        text = head.clone();
        for (directory, names) in &directories {
            text += &line(directory, names, names_max);
        }
        if text.len() <= bytes_max {
            return text;
        }
    }
    // An incomplete last line is removed.
    let end = text[..text.floor_char_boundary(bytes_max - 8)].rfind('\n');
    text.truncate(end.map_or(0, |end| end + 1));
    text + "- …\n"
}

fn line(directory: &str, names: &[&str], names_max: usize) -> String {
    let shown = &names[..names.len().min(names_max)];
    let left = names.len() - shown.len();
    let more = match (shown.is_empty(), left) {
        (_, 0) => String::new(),
        (true, left) => format!("{left} pages"),
        (false, left) => format!(", and {left} more"),
    };
    format!("- {directory}/: {}{more}\n", shown.join(", "))
}
