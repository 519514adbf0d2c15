//! Skills: the instructions for agents that a repository contains.
//!
//! A skill is a Markdown file whose frontmatter names and describes it. [`collect()`] finds
//! every skill of a documentation root, decides its slug and description, and reports what is
//! wrong with it. The file itself is never changed: the author's bytes are served.
//!
//! # Where skills come from
//!
//! 1. `skill.md` in the documentation root.
//! 2. `SKILL.md` in each directory of `.{service}/skills/`.
//!
//! Both sources are used together. Files and directories may be symbolic links, or be reached
//! through symbolic links, to any place in the repository. A file that is reached twice is one
//! skill. The root has priority, then the directory whose name sorts first.
//!
//! # Rules
//!
//! Each name is the `rule` of its diagnostics. *Left out* means that no list contains the skill and
//! no release contains its bytes; the other skills are not affected. A skill that is left out
//! causes a warning, because the release is usable without it. If there are skill files and
//! **none** of them can be used, the warning `skill-none` is reported too: a mistake in a skill
//! never prevents the publication of pages, and a generated skill is served instead.
//!
//! | rule | meaning |
//! |---|---|
//! | `link-outside`, `link-loop`, `link-dangling` | A skill behind a link that has no target in the repository is left out. |
//! | `skill-file` | A directory of skills contains `SKILL.md`, in this spelling; the root contains `skill.md`. A file with another spelling is left out, because only some file systems would find it. A skill in a directory inside another one is left out. |
//! | `skill-size` | A file has at most [`BYTES_MAX`] bytes, all files together at most [`TOTAL_BYTES_MAX`]. Files that are longer, or that exceed the total, are left out. |
//! | `skill-encoding` | A file that is not UTF-8 is left out. |
//! | `skill-empty` | A file that contains only white space is left out. |
//! | `skill-frontmatter` | A file whose frontmatter cannot be read is left out, because the frontmatter may contain `groups`. A repeated key and missing frontmatter are reported, because the `skills` tool then does not install the file. |
//! | `skill-groups` | A skill whose frontmatter contains `groups`, in any letter case and with any value, is not public: it is left out and does not count as unusable. |
//! | `skill-name` | The name is a text. If it is missing, the directory's name is used, at the root `skill`. The slug is made from the name; a name that differs from its slug is reported, because other tools require both to be equal. |
//! | `skill-slug` | If several skills have the same slug, the root keeps it, else the directory whose name sorts first. The others get the slug of their directory, else the first free slug that ends in `-2`, `-3`, … A slug that one skill has by its name is never given to another. |
//! | `skill-description` | The description is a text. If it is missing, the first words of the body are used. It is cut after [`DESCRIPTION_UNITS_MAX`] UTF-16 code units: clients count these units and drop an entry with more. |
//! | `skill-meta` | `license`, `compatibility` (at most 500 characters) and `allowed-tools` are texts, `metadata` contains texts. A value of another type is left out of [`Meta`]; the file is served unchanged. |
//! | `skill-internal` | `metadata.internal: true` is reported: the `skills` tool hides such a skill. |
//! | `skill-companion` | A file beside `SKILL.md` that `SKILL.md` mentions is reported: only `SKILL.md` is served. |
//! | `skill-unsafe` | A sentence of a page that instructs agents against their users is not used in the generated skill. |
//! | `skill-count` | There are at most [`COUNT_MAX`] skills; directories whose names sort later are left out. |
//!
//! Skills are returned sorted by slug, as in the example of the discovery specification.
//!
//! Sources: Agent Skills specification (fields, names, lengths);
//! Agent Skills Discovery 0.2.0; the `skills` tool 1.7.4 (which files it drops).

mod address;
mod collect;
mod find;
mod generate;
mod material;
mod read;
mod slug;
mod description;
mod meta;
mod unsafe_text;
pub mod written;

use bytes::Bytes;

use crate::source::TreePath;

pub use collect::collect;
pub use description::cut;
pub use generate::{
    ADDRESS_CHARACTERS_MAX, Age, CHARACTERS_MAX, Generated, LINES_MAX, PageList, Rejected,
    SourcePage, about, accept, documentation_version, generate, source_pages,
};
pub use material::{Material, SourceText};
pub use meta::Meta;
pub use slug::{InvalidSlug, Slug};

/// How many bytes a skill file may have.
pub const BYTES_MAX: u64 = 1 << 20;
/// How many bytes all skill files of a repository may have together: gateways hold them in memory.
pub const TOTAL_BYTES_MAX: usize = 16 << 20;
/// How many skills a repository may have.
pub const COUNT_MAX: usize = 1000;
/// How many UTF-16 code units a description has in lists: clients drop entries with more.
pub const DESCRIPTION_UNITS_MAX: usize = 1024;
/// How many UTF-16 code units a name has in lists. No specification sets a limit; people read
/// these names on cards.
pub const NAME_UNITS_MAX: usize = 256;

/// A public skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    /// Its name in URLs, unique among the skills of a repository.
    pub slug: Slug,
    /// Its name as the author wrote it, at most [`NAME_UNITS_MAX`] long; never empty.
    pub name: Box<str>,
    /// When to use it, at most [`DESCRIPTION_UNITS_MAX`] long; never empty.
    pub description: Box<str>,
    /// The other values of its frontmatter.
    pub meta: Meta,
    /// The author's bytes.
    pub bytes: Bytes,
    /// The path of the file before symbolic links are followed.
    pub path: TreePath,
}

#[cfg(test)]
mod tests;
