//! Links to related content below an article: `related` of the frontmatter.

use super::PageWriter;
use crate::diagnostic::Diagnostic;
use crate::docs::Docs;
use crate::docs::link::LINK;
use crate::docs::page::Related;
use crate::render::link::{Map, Target};

// === impl PageWriter ===

impl PageWriter<'_> {
    /// Writes the links; those that lead nowhere are left out.
    pub(super) fn related(&mut self) {
        let layout = self.layout;
        let Some(id) = self.id else {
            return;
        };
        let slug = &layout.navigation().page(id).slug;
        let links = layout.related(id).iter().filter_map(|related| {
            let target = layout.map().resolve(slug, &related.href);
            let label = || Some(related.label.as_deref()?.to_owned());
            Some(match target {
                Target::Page { page, rest } => {
                    let label = label().or_else(|| layout.title_at(&page));
                    (self.start.to(&page) + &rest, label, false)
                }
                Target::Asset(path) => (self.start.to(&path), label(), false),
                Target::Elsewhere(url) => (url.into(), label(), true),
                _ => return None,
            })
        });
        let links: Vec<(String, Option<String>, bool)> = links.collect();
        if links.is_empty() {
            return;
        }
        self.out
            .markup("<nav class=related aria-labelledby=_related><p id=_related>")
            .text(self.messages.related)
            .markup("</p><ul>");
        for (href, label, is_away) in links {
            self.out.markup("<li><a").attribute("href", &href);
            self.out
                .markup(if is_away { " rel=noopener>" } else { ">" });
            self.out
                .text(label.as_deref().unwrap_or(&href))
                .markup("</a></li>");
        }
        self.out.markup("</ul></nav>\n");
    }
}

/// Finds links to related content that lead nowhere.
#[must_use]
pub fn broken_related(docs: &Docs, map: &Map) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for page in docs.pages.iter() {
        let is_broken = |related: &&Related| {
            let target = map.resolve(&page.slug, &related.href);
            matches!(
                target,
                Target::Unknown { .. } | Target::Rejected | Target::Here(_)
            )
        };
        for related in page.meta.related.iter().filter(is_broken) {
            let message = format!(
                "`{}` leads nowhere: there is no such page or file",
                related.href
            );
            let place = related.location;
            let diagnostic = Diagnostic::warning(LINK, page.path.as_str(), message);
            found.push(diagnostic.at(place.line, place.column, place.length));
        }
    }
    found
}
