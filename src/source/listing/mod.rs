//! The listing of a tree: names, kinds and link targets, and how a path is resolved.
//!
//! Resolution is a loop over the remaining segments. When it meets a link, the segments of the
//! link's target are put in front. Each of these segments remembers the link, so that an error
//! can name the link with the wrong target, and not the path that led to it.
//!
//! Sources: POSIX.1-2024 §4.16 (pathname resolution), §2.2.2 `SYMLOOP_MAX`.

use std::collections::BTreeMap;

use super::TreePath;

/// How many links one path may lead through: the limit of Linux (`path_resolution(7)`).
pub const LINK_HOPS_MAX: usize = 40;

/// The entries of a tree, by path.
///
/// A directory is listed when it contains an entry: git records no empty directories.
#[derive(Debug)]
pub struct Listing {
    nodes: BTreeMap<TreePath, Place>,
}

/// An entry that a reader inserts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A regular file.
    File,
    /// A symbolic link with its target as written.
    Link(Box<str>),
    /// A commit of another repository; its files are not part of this one.
    Submodule,
}

/// The entry that a path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The real path, after links.
    pub path: TreePath,
    /// The kind of the entry.
    pub kind: Kind,
}

/// The kinds of entries that a path can lead to, after links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A commit of another repository.
    Submodule,
}

/// The kind of an entry of a directory; links are not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
    /// A commit of another repository.
    Submodule,
}

/// Why a path leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// Nothing has this name.
    #[error("there is no {path}")]
    NotFound {
        /// The path down to the name that is missing.
        path: TreePath,
    },
    /// The target of a link is outside the repository.
    #[error("link {link} leads out of the repository, to {target}")]
    LeavesRepository {
        /// The link.
        link: TreePath,
        /// Its target as written.
        target: Box<str>,
    },
    /// Links lead to each other without end, or through too many others.
    #[error("link {link} leads to a cycle of links or through more than {LINK_HOPS_MAX} links")]
    Loop {
        /// One of the links.
        link: TreePath,
    },
    /// The target of a link does not exist.
    #[error("link {link} leads to {target}, which does not exist")]
    Dangling {
        /// The link.
        link: TreePath,
        /// Its target as written.
        target: Box<str>,
    },
    /// A path continues below an entry that is not a directory.
    #[error("{path} is not a directory")]
    NotADirectory {
        /// The entry.
        path: TreePath,
    },
}

/// Two entries that cannot be in the same listing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} is listed twice, or is below an entry that is not a directory")]
pub struct Conflict {
    /// The entry that does not fit.
    pub path: TreePath,
}

/// The entry that a path names.
#[derive(Debug)]
enum Place {
    Directory(Vec<Box<str>>),
    Entry(Node),
}

/// A remaining segment, and the link whose target it belongs to.
struct Step<'l> {
    segment: &'l str,
    origin: Option<(&'l TreePath, &'l str)>,
}

// === impl Listing ===

impl Listing {
    /// Adds an entry, and the directories above it.
    ///
    /// # Errors
    ///
    /// [`Conflict`] when the path is listed already, is the root, or is below an entry that is not
    /// a directory. Nothing is changed then.
    pub fn insert(&mut self, path: TreePath, node: Node) -> Result<(), Conflict> {
        if self.nodes.contains_key(&path) {
            return Err(Conflict { path });
        }
        let mut missing = vec![path.clone()];
        loop {
            let last = missing.last().expect("the path itself is first");
            let parent = last.parent().expect("the root is always listed");
            match self.nodes.get(&parent) {
                Some(Place::Directory(_)) => break,
                Some(Place::Entry(_)) => return Err(Conflict { path }),
                None => missing.push(parent),
            }
        }
        self.nodes.insert(path, Place::Entry(node));
        for added in missing {
            let parent = added.parent().expect("the root is never missing");
            let place = self
                .nodes
                .entry(parent)
                .or_insert_with(|| Place::Directory(Vec::new()));
            if let Place::Directory(names) = place {
                let name = added.name();
                // Readers mostly insert in order, so this is mostly the end.
                let index = names.partition_point(|other| **other < *name);
                names.insert(index, name.into());
            }
        }
        Ok(())
    }

    /// See [`super::Tree::lookup`].
    pub(super) fn lookup(&self, path: &TreePath) -> Result<Found, LookupError> {
        let mut steps: Vec<Step<'_>> = path
            .segments()
            .map(|segment| Step {
                segment,
                origin: None,
            })
            .collect();
        steps.reverse();
        let mut here = TreePath::root();
        let mut hops = 0;
        while let Some(Step { segment, origin }) = steps.pop() {
            if !matches!(self.nodes.get(&here), Some(Place::Directory(_))) {
                return Err(LookupError::NotADirectory { path: here });
            }
            match segment {
                // POSIX.1-2024 §4.16: a trailing slash requires a directory, as `.` does.
                "" | "." => continue,
                ".." => {
                    let outside = || leaves(origin, &here);
                    here = here.parent().ok_or_else(outside)?;
                    continue;
                }
                _ => {}
            }
            let next = here.join(segment).ok();
            let Some((next, place)) = next.and_then(|next| self.nodes.get_key_value(&next)) else {
                return Err(missing(origin, &here, segment));
            };
            let Place::Entry(Node::Link(target)) = place else {
                here = next.clone();
                continue;
            };
            hops += 1;
            if hops > LINK_HOPS_MAX {
                return Err(LookupError::Loop { link: next.clone() });
            }
            let origin = Some((next, &**target));
            if target.starts_with('/') {
                return Err(leaves(origin, next));
            }
            if target.is_empty() {
                return Err(missing(origin, &here, segment));
            }
            // The target is relative to the directory of the link, which is `here`.
            let segments = target.rsplit('/');
            steps.extend(segments.map(|segment| Step { segment, origin }));
        }
        let kind = match &self.nodes[&here] {
            Place::Directory(_) => Kind::Directory,
            Place::Entry(Node::Submodule) => Kind::Submodule,
            Place::Entry(Node::File | Node::Link(_)) => Kind::File,
        };
        Ok(Found { path: here, kind })
    }

    /// See [`super::Tree::list`].
    pub(super) fn list(
        &self,
        directory: &TreePath,
    ) -> Result<Vec<(Box<str>, EntryKind)>, LookupError> {
        let found = self.lookup(directory)?;
        let Some(Place::Directory(names)) = self.nodes.get(&found.path) else {
            return Err(LookupError::NotADirectory { path: found.path });
        };
        let entries = names.iter().map(|name| {
            let path = found.path.join(name).expect("a listed name is a segment");
            let kind = match &self.nodes[&path] {
                Place::Directory(_) => EntryKind::Directory,
                Place::Entry(Node::File) => EntryKind::File,
                Place::Entry(Node::Link(_)) => EntryKind::Link,
                Place::Entry(Node::Submodule) => EntryKind::Submodule,
            };
            (name.clone(), kind)
        });
        Ok(entries.collect())
    }

    /// See [`super::Tree::files_and_links`].
    pub(super) fn files_and_links(&self) -> impl Iterator<Item = &TreePath> {
        let is_one = |place: &Place| matches!(place, Place::Entry(Node::File | Node::Link(_)));
        self.nodes
            .iter()
            .filter(move |(_, place)| is_one(place))
            .map(|(path, _)| path)
    }

    /// See [`super::Tree::files`].
    pub(super) fn files(&self) -> impl Iterator<Item = &TreePath> {
        self.nodes
            .iter()
            .filter(|(_, place)| matches!(place, Place::Entry(Node::File)))
            .map(|(path, _)| path)
    }
}

// === impl LookupError ===

impl LookupError {
    /// Returns the rule of a diagnostic about this error.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self {
            Self::LeavesRepository { .. } => "link-outside",
            Self::Loop { .. } => "link-loop",
            Self::Dangling { .. } => "link-dangling",
            Self::NotFound { .. } | Self::NotADirectory { .. } => "path-missing",
        }
    }
}

impl Default for Listing {
    /// A listing with the root only.
    fn default() -> Self {
        Self {
            nodes: BTreeMap::from([(TreePath::root(), Place::Directory(Vec::new()))]),
        }
    }
}

/// Returns the error for a step above the root.
fn leaves(origin: Option<(&TreePath, &str)>, here: &TreePath) -> LookupError {
    // A `TreePath` has no `..`, so only the target of a link can lead there.
    let (link, target) = origin.unwrap_or((here, ".."));
    LookupError::LeavesRepository {
        link: link.clone(),
        target: target.into(),
    }
}

/// Returns the error for a missing name. It is about the link when the name is part of its
/// target.
fn missing(origin: Option<(&TreePath, &str)>, here: &TreePath, segment: &str) -> LookupError {
    match origin {
        Some((link, target)) => LookupError::Dangling {
            link: link.clone(),
            target: target.into(),
        },
        None => LookupError::NotFound {
            path: here.join(segment).unwrap_or_else(|_| here.clone()),
        },
    }
}

#[cfg(test)]
mod tests;
