//! Build: makes a release from a tree.
//!
//! A build is a pure function: it uses no clock, no files outside of the tree, and nothing of the
//! machine. The same tree gives the same release, byte for byte, on every machine, whether it was
//! read from a directory or from git. So equal release ids mean that nothing has changed.
//!
//! ```text
//!  Tree ── Input::fetch ──▶ Input ─┬─ build_after ──▶ Built: release, report, articles
//!           read once, fetch       └─ Preview::new ─▶ Preview: one file at a time
//! ```
//!
//! The files of a release:
//!
//! | path | content |
//! |---|---|
//! | `discovery.json` | the [`Summary`]: title, description and the list of skills |
//! | `navigation.json` | the resolved navigation ([`navigation::to_json`]), if there is one |
//! | `skills/{slug}/SKILL.md` | a public skill with the author's bytes, or the generated skill if authors wrote none |
//! | `skills/{slug}/SKILL.md.br`, `.zst`, `.gz` | the same file, encoded, if it is at least a fifth smaller |
//! | `site.json`, `pages/`, `assets/`, `static/`, `texts/`, `404.html`, `404/` | the site; see [`release::site`](crate::release::site) |
//!
//! **Invariant:** private content has no bytes in a release.
//!
//! # Errors and warnings
//!
//! A build always returns a release and a [`Report`]. An error means that readers would miss
//! something that authors wrote, or see something that authors did not want to publish: a page that
//! cannot be decoded, frontmatter that may have restricted the page, an ambiguous navigation. A
//! warning means that nothing is missing.
//!
//! **One error on one page prevents the publication of the whole release**, and the current release
//! stays served. If the other pages were published, readers could lose a page, or see a change that
//! the author did not want yet. Instead, the author has to push again. All commands report this
//! with the same sentence ([`NotPublishable`]):
//!
//! | | with an error |
//! |---|---|
//! | `waypost check` | exit status 1 |
//! | `waypost preview` | everything that can be read is shown, with the errors |
//! | `waypost build` | exit status 1, nothing is written; with `--keep-going` the release is written for inspection |
//! | `waypost publish`, an update | nothing is published, the current release stays served |
//!
//! [`Options::lenient`], or the key `lenient` of `docs.json`, allows the publication of a
//! navigation that breaks the rules N1 or N2; its errors are then warnings.

pub mod check;
mod input;
mod output;
mod preview;
mod previous;
mod report;
mod site;
mod skill;
mod title;

use crate::diagnostic::Diagnostic;
use crate::digest::Digest;
use crate::discovery::{
    BASE_URL_PLACEHOLDER, JSON, Listed, MARKDOWN, SUMMARY_PATH, Summary, skill_path,
};
use crate::docs::{self, navigation};
use crate::release::site::SiteDescription;
use crate::release::{Builder, Release, ReleaseFile, ReleasePath};
use crate::response::Encoding;
use crate::response::encoding::Effort;
use crate::site::{EditLink, Frames, Service};
use crate::skills::{self, Generated, Meta, Skill};
use crate::source::TreePath;

pub use input::Input;
pub use output::Output;
pub use preview::{Preview, PreviewCache};
pub use previous::{Articles, Previous, PreviousRelease};
pub use report::{NotPublishable, Report, Served, first_renders};

use output::InMemory;
use site::{Plan, Site};
use title::Title;

/// The path of the resolved navigation in a release.
pub const NAVIGATION_PATH: &str = "navigation.json";

/// The name that a report gives the file of a generated skill.
const GENERATED: &str = "(generated)";

/// The options of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The short name of the service: skills are in `.{service_name}/skills`.
    pub service_name: Box<str>,
    /// The sites that pages may show in frames.
    pub frames: Frames,
    /// The service on which the files of the repository are edited, if it is known.
    pub edit: Option<EditLink>,
    /// Rules N1 and N2 of the navigation warn instead of failing, even if `docs.json` does not say
    /// so.
    pub lenient: bool,
    /// A tree without documentation, or documentation without a page, is not an error.
    pub allow_empty: bool,
}

/// The result of a build.
#[derive(Clone, Debug)]
pub struct Built {
    /// The release.
    pub release: Release,
    /// The content of the release, and the diagnostics of its input.
    pub report: Report,
    /// The articles that the next build may reuse.
    pub articles: Articles,
    /// The release's `discovery.json`.
    summary: Summary,
    /// The release's `site.json`, if it has a site.
    description: Option<SiteDescription>,
    /// The error about a tree without documentation. It is in the report only if the tree has no
    /// skill either.
    no_site: Option<Diagnostic>,
}

impl Options {
    /// Returns the options that a service has for all builds.
    #[must_use]
    pub fn of(service: &Service) -> Self {
        Self {
            service_name: service.name.clone(),
            frames: service.frames.clone(),
            edit: None,
            lenient: false,
            allow_empty: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self::of(&Service::default())
    }
}

/// Builds a release.
#[must_use]
pub fn build(input: &Input, options: &Options) -> Built {
    build_after(input, options, &Previous::default())
}

/// Builds a release and reuses the parts of the previous build that have not changed. The release
/// is the same as without reuse.
#[must_use]
pub fn build_after(input: &Input, options: &Options, previous: &Previous<'_>) -> Built {
    build_into(input, options, previous, &InMemory)
}

/// Does the same, and hands the files of the site to `output` while they are made.
///
/// The files of skills and of discovery are small and stay in the release; so does the search
/// index, because the writer of a skill needs it.
#[must_use]
pub fn build_into(
    input: &Input,
    options: &Options,
    previous: &Previous<'_>,
    output: &dyn Output,
) -> Built {
    let mut release = Release::builder();
    let plan = Plan::new(input, options, previous.articles.clone());
    let site = Site::new(input, &plan);
    let site = Some(site).filter(|_| input.has_site());
    let insert_site = |release: &mut Builder| {
        let Some(site) = &site else {
            return Vec::new();
        };
        let navigation = ReleaseFile::new(navigation::to_json(&input.docs.navigation), JSON);
        insert(release, NAVIGATION_PATH, navigation);
        site.insert(release, previous.release.as_ref(), output)
    };
    // The skill of a large site takes as long as hundreds of pages, and one thread generates it.
    let (mut found, described) = rayon::join(
        || insert_site(&mut release),
        || Described::new(input, options, site.as_ref()),
    );
    for skill in &described.skills {
        insert_skill(&mut release, skill);
    }
    let summary = ReleaseFile::new(described.summary.to_bytes(), JSON);
    insert(&mut release, SUMMARY_PATH, summary);

    let release = release.finish();
    found.extend(diagnostics(input, &described, site.as_ref()));
    let mut report = Report::new(&release, &described.skills, found);
    report.add_interactive(&input.docs);
    Built {
        release,
        report,
        summary: described.summary,
        description: site.map(|site| site.description().clone()),
        articles: plan.into_articles(),
        no_site: described.no_site,
    }
}

/// Returns the diagnostics of the documentation, its skills and the rendered pages of its site.
fn diagnostics(input: &Input, described: &Described, site: Option<&Site<'_>>) -> Vec<Diagnostic> {
    let mut found = input.diagnostics.clone();
    found.extend(check::references(&input.docs, &input.tree));
    found.extend(described.found.iter().cloned());
    found.extend(site.into_iter().flat_map(Site::found));
    found
}

/// The title and description of the documentation, for discovery.
#[derive(Debug)]
struct Described {
    summary: Summary,
    /// The public skills.
    skills: Vec<Skill>,
    found: Vec<Diagnostic>,
    /// The error about a tree that has skills but no documentation.
    no_site: Option<Diagnostic>,
}

impl Described {
    fn new(input: &Input, options: &Options, site: Option<&Site<'_>>) -> Self {
        let Input { tree, docs, .. } = input;
        let (mut skills, mut found) = skills::collect(tree, &options.service_name);
        let about = skills::about(docs);
        let title = Title::of(&docs.config, about.as_deref());
        let mut list: Vec<Listed> = skills.iter().map(|skill| listed(skill, false)).collect();
        // A site without a public skill gets a generated one. Its authors wrote none, or none of
        // their skills can be used, or all are for some groups of readers only.
        if skills.is_empty()
            && let Some(mut generated) = skills::generate(
                docs,
                (&title.title, &title.description),
                BASE_URL_PLACEHOLDER,
                site.map(Site::page_lists).unwrap_or_default(),
            )
        {
            found.append(&mut generated.warnings);
            let skill = into_skill(generated);
            list.push(listed(&skill, true));
            skills.push(skill);
        }
        let version = skills::documentation_version(docs);
        let summary = Summary::new(&title.title, &title.description, &version, list);
        let mut no_site = None;
        if !options.allow_empty {
            if docs::has_documentation(tree) {
                found.extend(docs::without_pages(docs, tree));
            } else if skills.is_empty() || docs::is_older(tree) {
                found.push(docs::missing(tree));
            } else {
                // A tree may hold skills only, unless the site had pages before.
                no_site = Some(docs::missing(tree));
            }
        }
        Self {
            summary,
            skills,
            found,
            no_site,
        }
    }
}

// === impl Built ===

impl Built {
    /// Returns the error about a release without a site, where an earlier release had pages, by
    /// its `navigation.json`.
    #[must_use]
    pub fn all_removed(&self, navigation_before: &[u8]) -> Option<Diagnostic> {
        let before = navigation::urls(navigation_before);
        self.no_site.clone().filter(|_| !before.is_empty())
    }

    /// Finds the pages that an earlier release had, by its `navigation.json`, and that are
    /// neither a page nor redirected in this one.
    ///
    /// A release that removes all pages because its tree has no documentation is an error, unless
    /// the options allow it.
    #[must_use]
    pub fn removed_pages(&self, input: &Input, navigation_before: &[u8]) -> Vec<Diagnostic> {
        let (Some(description), Ok(config)) =
            (&self.description, input.tree.docs_root().join(docs::CONFIG))
        else {
            return self.all_removed(navigation_before).into_iter().collect();
        };
        let before = navigation::urls(navigation_before);
        let now = input.docs.navigation.pages.iter();
        let now: Vec<&str> = now
            .filter(|page| page.public)
            .map(|page| &*page.url)
            .collect();
        docs::removed::find(
            before.iter().map(|url| &**url),
            &now,
            |path| description.redirect(path).is_some(),
            &config,
        )
    }
}

fn into_skill(generated: Generated) -> Skill {
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

/// Adds a skill file, and encoded variants that are smaller. A generated skill has no variants: the
/// index encodes it with the address of each site.
fn insert_skill(release: &mut Builder, skill: &Skill) {
    let is_generated = skill.path.as_str() == GENERATED;
    let slug = skill.slug.as_str();
    let identity = ReleaseFile::new(skill.bytes.clone(), MARKDOWN);
    insert(release, &skill_path(slug, Encoding::Identity), identity);
    for encoding in Encoding::CODED.into_iter().filter(|_| !is_generated) {
        if let Some(coded) = encoding.encode(&skill.bytes, Effort::Release) {
            // RFC 9110 §8.4: an encoding does not change the media type.
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
