//! Link resolution, against a model and by hand.

use proptest::prelude::*;

use super::*;

fn path(text: &str) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn listing(files: &[&str], links: &[(&str, &str)]) -> Listing {
    let mut listing = Listing::default();
    for file in files {
        listing.insert(path(file), Node::File).unwrap();
    }
    for (link, target) in links {
        let node = Node::Link((*target).into());
        listing.insert(path(link), node).unwrap();
    }
    listing
}

#[track_caller]
fn leads(listing: &Listing, from: &str, to: &str, kind: Kind) {
    let expected = Found {
        path: path(to),
        kind,
    };
    assert_eq!(listing.lookup(&path(from)), Ok(expected), "{from}");
}

#[test]
fn an_empty_root_is_a_directory() {
    leads(&Listing::default(), "", "", Kind::Directory);
    assert_eq!(Listing::default().list(&TreePath::root()), Ok(vec![]));
}

#[test]
fn every_segment_of_a_path_may_be_a_link() {
    let listing = listing(
        &["skills/acme/SKILL.md", "shared/one/SKILL.md"],
        &[
            ("docs/.waypost/skills", "../../skills"),
            ("skills/one", "../shared/one"),
            ("docs/alias", ".waypost"),
        ],
    );
    leads(&listing, "docs/.waypost/skills", "skills", Kind::Directory);
    leads(
        &listing,
        "docs/alias/skills/acme/SKILL.md",
        "skills/acme/SKILL.md",
        Kind::File,
    );
    leads(
        &listing,
        "docs/.waypost/skills/one/SKILL.md",
        "shared/one/SKILL.md",
        Kind::File,
    );
}

#[test]
fn dots_in_a_target_are_resolved_from_the_directory_reached() {
    let listing = listing(
        &["deep/down/here/x", "deep/down/y", "y"],
        &[("shortcut", "deep/down/here"), ("up", "shortcut/../y")],
    );
    leads(&listing, "up", "deep/down/y", Kind::File);
}

#[test]
fn a_link_out_of_the_repository_is_rejected() {
    let listing = listing(
        &["docs/a"],
        &[
            ("docs/absolute", "/etc/passwd"),
            ("docs/climbs", "../../secrets"),
            ("docs/climbs-and-returns", "../../repository/docs/a"),
        ],
    );
    for name in ["absolute", "climbs", "climbs-and-returns"] {
        let link = path("docs").join(name).unwrap();
        let error = listing.lookup(&link).unwrap_err();
        assert!(
            matches!(&error, LookupError::LeavesRepository { link: l, .. } if *l == link),
            "{error:?}"
        );
    }
}

#[test]
fn the_link_whose_target_is_missing_is_named() {
    let listing = listing(&["a/b"], &[("first", "second"), ("second", "a/nothing")]);
    let dangling = LookupError::Dangling {
        link: path("second"),
        target: "a/nothing".into(),
    };
    assert_eq!(listing.lookup(&path("first")), Err(dangling));
}

#[test]
fn a_path_missing_below_a_valid_link_is_not_a_dangling_link() {
    let listing = listing(&["a/b"], &[("link", "a")]);
    let missing = LookupError::NotFound {
        path: path("a/nothing"),
    };
    assert_eq!(listing.lookup(&path("link/nothing/more")), Err(missing));
}

#[test]
fn a_cycle_of_links_is_an_error() {
    let listing = listing(&[], &[("a", "b"), ("b", "a"), ("self", "self/self")]);
    for name in ["a", "b", "self"] {
        let error = listing.lookup(&path(name)).unwrap_err();
        assert!(matches!(error, LookupError::Loop { .. }), "{error:?}");
    }
}

#[test]
fn a_chain_of_forty_links_is_followed_and_one_of_forty_one_is_not() {
    let mut listing = listing(&["l0"], &[]);
    for n in 1..=LINK_HOPS_MAX + 1 {
        let target = format!("l{}", n - 1).into();
        let link = path(&format!("l{n}"));
        listing.insert(link, Node::Link(target)).unwrap();
    }
    leads(&listing, "l40", "l0", Kind::File);
    let error = listing.lookup(&path("l41")).unwrap_err();
    assert!(matches!(error, LookupError::Loop { .. }), "{error:?}");
}

#[test]
fn files_and_submodules_have_no_entries() {
    let mut listing = listing(&["file"], &[("slash", "file/"), ("dot", "file/.")]);
    listing.insert(path("module"), Node::Submodule).unwrap();
    leads(&listing, "module", "module", Kind::Submodule);
    for (from, end) in [
        ("file/x", "file"),
        ("slash", "file"),
        ("dot", "file"),
        ("module/x", "module"),
    ] {
        let error = LookupError::NotADirectory { path: path(end) };
        assert_eq!(listing.lookup(&path(from)), Err(error), "{from}");
    }
}

#[test]
fn repeated_slashes_and_dots_in_a_target_are_ignored() {
    let listing = listing(&["a/b/c"], &[("link", "./a//b/./c"), ("dir", "a/b/")]);
    leads(&listing, "link", "a/b/c", Kind::File);
    leads(&listing, "dir", "a/b", Kind::Directory);
}

#[test]
fn an_empty_target_is_a_dangling_link() {
    let listing = listing(&[], &[("link", "")]);
    let dangling = LookupError::Dangling {
        link: path("link"),
        target: "".into(),
    };
    assert_eq!(listing.lookup(&path("link")), Err(dangling));
}

#[test]
fn a_directory_is_listed_by_name_with_links_unresolved() {
    let mut listing = listing(&["d/b.md", "d/a/x"], &[("d/c", "/nowhere")]);
    listing.insert(path("d/m"), Node::Submodule).unwrap();
    let expected = [
        ("a", EntryKind::Directory),
        ("b.md", EntryKind::File),
        ("c", EntryKind::Link),
        ("m", EntryKind::Submodule),
    ];
    let names = listing.list(&path("d")).unwrap();
    let names: Vec<_> = names.iter().map(|(name, kind)| (&**name, *kind)).collect();
    assert_eq!(names, expected);
    assert!(listing.list(&path("d/b.md")).is_err());
}

#[test]
fn a_path_is_unique_and_a_file_has_no_entries() {
    let mut listing = listing(&["a/b"], &[]);
    for taken in ["a", "a/b", "a/b/c/d", ""] {
        let path = path(taken);
        let conflict = Err(Conflict { path: path.clone() });
        assert_eq!(listing.insert(path, Node::File), conflict, "{taken:?}");
    }
    assert_eq!(listing.files().count(), 1);
}

/// The model: resolution as POSIX describes it, written recursively.
fn model(listing: &Listing, start: &TreePath, text: &str, hops: &mut usize) -> Option<TreePath> {
    let mut here = start.clone();
    for segment in text.split('/') {
        if !matches!(listing.nodes.get(&here), Some(Place::Directory(_))) {
            return None;
        }
        here = match segment {
            "" | "." => here,
            ".." => here.parent()?,
            name => {
                let next = here.join(name).ok()?;
                match listing.nodes.get(&next)? {
                    Place::Entry(Node::Link(target)) => {
                        *hops += 1;
                        if *hops > LINK_HOPS_MAX || target.starts_with('/') || target.is_empty() {
                            return None;
                        }
                        model(listing, &here, target, hops)?
                    }
                    _ => next,
                }
            }
        };
    }
    Some(here)
}

proptest! {
    #[test]
    fn resolution_agrees_with_the_model(
        files in prop::collection::vec("[ab](/[ab]){0,3}", 0..8),
        links in prop::collection::vec(
            ("[ab](/[ab]){0,3}", "/?([ab]|\\.|\\.\\.)?(/([ab]|\\.|\\.\\.)){0,4}/?"),
            0..12,
        ),
        requested in "[ab](/[ab]){0,5}",
    ) {
        let mut listing = Listing::default();
        for file in files {
            // An entry that conflicts with the others is left out.
            let _conflict = listing.insert(path(&file), Node::File);
        }
        for (link, target) in links {
            let _conflict = listing.insert(path(&link), Node::Link(target.into()));
        }
        let found = listing.lookup(&path(&requested)).map(|found| found.path);
        let expected = model(&listing, &TreePath::root(), &requested, &mut 0);
        prop_assert_eq!(found.clone().ok(), expected);
        if let Ok(real) = found {
            let place = listing.nodes.get(&real);
            prop_assert!(place.is_some_and(|p| !matches!(p, Place::Entry(Node::Link(_)))));
        }
    }
}
