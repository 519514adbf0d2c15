//! Skills: what a repository tells agents about using its product.
//!
//! A skill is a Markdown file whose frontmatter names and describes it. [`collect()`] finds
//! every skill of a documentation root, decides its slug and description, and says what is
//! wrong with it. The file itself is never changed: what is served are the author's bytes.
//!
//! # Where skills come from
//!
//! 1. `skill.md` in the documentation root.
//! 2. `SKILL.md` in each directory of `.{service}/skills/`.
//!
//! Both together. Either may be, or lie behind, symbolic links to anywhere in the
//! repository. A file that is reached twice is one skill: the root wins, then the
//! directory whose name comes first.
//!
//! # Rules
//!
//! Each is the `rule` of its diagnostics. *Left out* means that the skill is in no list and
//! its bytes in no release; every other skill is as if it were not there. Leaving out is a
//! warning, because the release is good without that skill; only when files are there and
//! **none** of them can be used is it the error `skill-none`: then the author meant to
//! publish skills, and the release served before says more than one without any.
//!
//! | rule | what it says |
//! |---|---|
//! | `link-outside`, `link-loop`, `link-dangling` | A link that leads nowhere in the repository: left out. |
//! | `skill-file` | A directory of skills holds `SKILL.md`, in this spelling; the root holds `skill.md`. Another spelling is not taken, because it would be found on some machines only. |
//! | `skill-size` | At most [`BYTES_MAX`] bytes in a file and [`TOTAL_BYTES_MAX`] in all; what is longer, or comes later, is left out. |
//! | `skill-encoding` | UTF-8; anything else is left out. |
//! | `skill-empty` | Nothing but white space is left out. |
//! | `skill-frontmatter` | Frontmatter that cannot be read is left out: it might have named groups. A repeated key or none at all is told, because the `skills` tool then does not install the file. |
//! | `skill-groups` | Frontmatter with `groups`, in any letter case and with any value, is not public: left out, without counting as unusable. |
//! | `skill-name` | A text. Missing: the directory's name, at the root `skill`. The slug is made from it; a name that is not its own slug is told, since other tools want them equal. |
//! | `skill-slug` | Skills that come to the same slug: the root keeps it, then the directory whose name comes first. The others get the slug of their directory, else the first free of `-2`, `-3`, … A slug that one skill has by its name is never given to another. |
//! | `skill-description` | A text. Missing: the first words of the body. More than [`DESCRIPTION_UNITS_MAX`] UTF-16 code units are cut: clients count so, and drop the entry otherwise. |
//! | `skill-meta` | `license`, `compatibility` (at most 500 characters) and `allowed-tools` are texts, `metadata` holds texts; what is not is left out of [`Meta`], not of the file. |
//! | `skill-internal` | `metadata.internal: true` is told: the `skills` tool hides such a skill. |
//! | `skill-companion` | A file beside `SKILL.md` that it mentions is told: only `SKILL.md` is served. |
//! | `skill-count` | At most [`COUNT_MAX`] skills; directories whose names come later are left out. |
//!
//! Skills are returned sorted by slug, which is the order of the manifest's own example.
//!
//! Sources: Agent Skills specification (fields, names, lengths);
//! Agent Skills Discovery 0.2.0; the `skills` tool 1.7.4 (what it drops).

mod collect;
mod find;
mod generate;
mod read;
mod slug;
mod description;
mod meta;

use bytes::Bytes;

use crate::source::TreePath;

pub use collect::{collect, has_authored};
pub use description::cut;
pub use generate::{
    CHARACTERS_MAX, Generated, LINES_MAX, Material, Refused, accept, documentation_version,
    generate, material,
};
pub use meta::Meta;
pub use slug::{InvalidSlug, Slug};

/// How many bytes a skill file may have.
pub const BYTES_MAX: u64 = 1 << 20;
/// How many bytes all skill files of a repository may have together: edges keep them in memory.
pub const TOTAL_BYTES_MAX: usize = 16 << 20;
/// How many skills a repository may have.
pub const COUNT_MAX: usize = 1000;
/// How long a description is in lists: clients drop an entry with a longer one.
pub const DESCRIPTION_UNITS_MAX: usize = 1024;
/// How long a name is in lists; nobody asks for a bound, but a card is read by people.
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
    /// What else its frontmatter says.
    pub meta: Meta,
    /// The author's bytes.
    pub bytes: Bytes,
    /// Where the author put it, before links.
    pub path: TreePath,
}

#[cfg(test)]
mod tests;
