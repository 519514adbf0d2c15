//! Build: from a tree to a release.
//!
//! A function from a value to a value: no clock, no files but the tree's, nothing of the
//! place where it runs. The same tree gives the same release, byte for byte, whether it
//! was read from a directory or from git, here or on another machine; so a release's id
//! answers whether anything changed.
//!
//! What goes into a release:
//!
//! | path | content |
//! |---|---|
//! | `discovery.json` | the [`Summary`]: title, description and the list of skills |
//! | `navigation.json` | the resolved navigation ([`navigation::to_json`]), when there is one |
//! | `skills/{slug}/SKILL.md` | a public skill, the author's bytes; or the one generated where authors wrote none |
//! | `skills/{slug}/SKILL.md.br`, `.zst`, `.gz` | the same, encoded, where that saves a fifth |
//! | `site.json`, `pages/`, `assets/`, `static/`, `texts/`, `404.html`, `404/` | the site, as [`release::site`](crate::release::site) lays it out |
//!
//! **Invariant:** what is not public has no bytes in a release.
//!
//! A build always ends with a release and a [`Report`]. Whether a release with findings may
//! be promoted is the caller's question to the report ([`Report::refuse_if_errors`]).

mod before;
mod draft;
mod report;
mod site;
mod title;
mod written;

use crate::diagnostic::Diagnostic;
use crate::digest::Digest;
use crate::discovery::{
    BASE_URL_PLACEHOLDER, JSON, Listed, MARKDOWN, SUMMARY_PATH, Summary, skill_path,
};
use crate::docs::page::Pages;
use crate::docs::{self, Docs, navigation};
use crate::release::site::{SITE_FILE, SiteDescription};
use crate::release::{Builder, Release, ReleaseFile, ReleasePath};
use crate::response::Encoding;
use crate::response::encoding::Effort;
use crate::site::{EditLink, Frames, Service};
use crate::skills::{self, Generated, Meta, Skill};
use crate::source::{Tree, TreePath};

pub use before::{Articles, Before, Earlier};
pub use draft::{Draft, Known};
pub use report::{BuildError, Report, Served};

use title::Title;

/// Where the resolved navigation lies.
pub const NAVIGATION_PATH: &str = "navigation.json";

/// What a report calls the file of a generated skill.
const GENERATED: &str = "(generated)";

/// What a build is told beside the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The short name of the service: skills lie in `.{service_name}/skills`.
    pub service_name: Box<str>,
    /// The sites that pages may show in frames.
    pub frames: Frames,
    /// Where the files of the repository are edited, when that is known.
    pub edit: Option<EditLink>,
}

/// What a build made.
#[derive(Clone, Debug)]
pub struct Built {
    /// The release.
    pub release: Release,
    /// What is in it, and what is wrong with what it was made from.
    pub report: Report,
}

impl Options {
    /// Says what a service has to say about every build.
    #[must_use]
    pub fn of(service: &Service) -> Self {
        Self {
            service_name: service.name.clone(),
            frames: service.frames.clone(),
            edit: None,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::of(&Service::default())
    }
}

/// Builds a release from the documentation of a tree.
#[must_use]
pub fn build(tree: &Tree, options: &Options) -> Built {
    build_after(tree, options, &Before::default()).0
}

/// Builds the same release, taking over what did not change; returns what the next build
/// may take over.
#[must_use]
pub fn build_after(tree: &Tree, options: &Options, before: &Before<'_>) -> (Built, Articles) {
    let mut release = Release::builder();
    let (docs, mut diagnostics) = documentation(tree, &Pages::default());
    diagnostics.extend(docs::check::check(&docs, tree));
    let mut articles = Articles::default();
    if docs.navigation.content.is_some() {
        let navigation = ReleaseFile::new(navigation::to_json(&docs.navigation), JSON);
        insert(&mut release, NAVIGATION_PATH, navigation);
        let (made, found) = site::insert(&mut release, tree, &docs, options, before);
        articles = made;
        diagnostics.extend(found);
    }
    let described = Described::new(tree, &docs, options);
    diagnostics.extend(described.found);
    for skill in &described.skills {
        insert_skill(&mut release, skill);
    }
    insert(
        &mut release,
        SUMMARY_PATH,
        ReleaseFile::new(described.summary.to_bytes(), JSON),
    );

    let release = release.finish();
    let report = Report::new(&release, &described.skills, diagnostics);
    (Built { release, report }, articles)
}

/// What discovery says of a documentation.
struct Described {
    summary: Summary,
    /// The public skills.
    skills: Vec<Skill>,
    found: Vec<Diagnostic>,
}

impl Described {
    fn new(tree: &Tree, docs: &Docs, options: &Options) -> Self {
        let (mut skills, found) = skills::collect(tree, &options.service_name);
        let title = Title::of(&docs.config);
        let mut list: Vec<Listed> = skills.iter().map(|skill| listed(skill, false)).collect();
        // A skill is generated only where authors wrote none. Files that are there and
        // cannot be used are no reason to write another.
        if !skills::has_authored(tree, &options.service_name)
            && let Some(generated) =
                skills::generate(docs, &title.title, &title.description, BASE_URL_PLACEHOLDER)
        {
            let skill = as_skill(generated);
            list.push(listed(&skill, true));
            skills.push(skill);
        }
        let version = skills::documentation_version(docs);
        let summary = Summary::new(&title.title, &title.description, &version, list);
        Self {
            summary,
            skills,
            found,
        }
    }
}

/// Finds the pages that an earlier release had, by its `navigation.json`, and that lead
/// nowhere in what was built of `tree`.
#[must_use]
pub fn gone(navigation_before: &[u8], built: &Built, tree: &Tree) -> Vec<Diagnostic> {
    let file = |name: &str| {
        let mut files = built.release.files();
        let found = files.find(|(path, _)| path.as_str() == name);
        found.map(|(_, file)| &file.bytes)
    };
    // Without a documentation there is no configuration that could redirect.
    let (Some(now), Some(description), Ok(config)) = (
        file(NAVIGATION_PATH),
        file(SITE_FILE),
        tree.docs_root().join(docs::CONFIG),
    ) else {
        return Vec::new();
    };
    let description =
        SiteDescription::parse(description).expect("a build writes its own description");
    let (before, now) = (navigation::urls(navigation_before), navigation::urls(now));
    let now: Vec<&str> = now.iter().map(|url| &**url).collect();
    docs::gone::find(
        before.iter().map(|url| &**url),
        &now,
        |path| description.redirect(path).is_some(),
        &config,
    )
}

/// Reads the documentation of a tree; one that has none may still have skills.
fn documentation(tree: &Tree, before: &Pages) -> (Docs, Vec<Diagnostic>) {
    if !docs::is_there(tree) {
        return (Docs::default(), Vec::new());
    }
    docs::read_after(tree, &docs::Options::default(), before)
}

fn as_skill(generated: Generated) -> Skill {
    Skill {
        slug: generated.slug.clone(),
        name: generated.slug.as_str().into(),
        description: generated.description.into(),
        meta: Meta::default(),
        bytes: generated.text.into(),
        path: TreePath::parse(GENERATED).expect("a constant path"),
    }
}

fn listed(skill: &Skill, generated: bool) -> Listed {
    Listed {
        slug: skill.slug.as_str().into(),
        name: skill.name.clone(),
        description: skill.description.clone(),
        digest: Digest::of(&skill.bytes),
        generated,
    }
}

/// Adds a skill file in every coding that pays. A generated one is only there as it is: the
/// index encodes it anew with each site's own address.
fn insert_skill(release: &mut Builder, skill: &Skill) {
    let is_generated = skill.path.as_str() == GENERATED;
    let slug = skill.slug.as_str();
    let identity = ReleaseFile::new(skill.bytes.clone(), MARKDOWN);
    insert(release, &skill_path(slug, Encoding::Identity), identity);
    for encoding in Encoding::CODED.into_iter().filter(|_| !is_generated) {
        if let Some(coded) = encoding.encode(&skill.bytes, Effort::Release) {
            // RFC 9110 §8.4: a coding leaves the media type as it is.
            let coded = ReleaseFile::new(coded, MARKDOWN);
            insert(release, &skill_path(slug, encoding), coded);
        }
    }
}

fn insert(release: &mut Builder, path: &str, file: ReleaseFile) {
    let path = ReleasePath::parse(path).expect("constants and slugs make a path");
    release
        .insert(path, file)
        .expect("slugs are unique and their number is bounded");
}

#[cfg(test)]
mod tests;
