//! The search index of a site, and which pages it has.

use crate::docs::Docs;
use crate::docs::navigation::tree::PageId;
use crate::render::article::Article;
use crate::render::layout::{Layout, path_of};
use crate::search::{self, Document, Heading, Part};

/// Writes the search index. Which pages are in it says [`Page::is_searchable`].
///
/// [`Page::is_searchable`]: crate::docs::navigation::tree::Page::is_searchable
pub(super) fn index(docs: &Docs, layout: &Layout<'_>, articles: &[Option<&Article>]) -> Vec<u8> {
    let mut parts: Vec<Part<'_>> = Vec::new();
    for ((id, page), article) in docs.navigation.pages().zip(articles) {
        let (true, Some(article)) = (page.is_searchable(), *article) else {
            continue;
        };
        let of = layout.part(Some(id));
        let part = parts
            .iter()
            .position(|part| part.language == of.language && part.version == of.version);
        let part = part.unwrap_or_else(|| {
            parts.push(Part {
                language: of.language,
                version: of.version,
                is_default: false,
                documents: Vec::new(),
            });
            parts.len() - 1
        });
        // A version may be the default in one tab and not in another.
        parts[part].is_default |= of.is_default;
        parts[part].documents.push(document(docs, id, article));
    }
    // The language for readers who name none comes first.
    let first = layout.part(None).language;
    parts.sort_by_key(|part| part.language != first);
    search::write(&parts)
}

fn document<'d>(docs: &'d Docs, id: PageId, article: &'d Article) -> Document<'d> {
    let page = docs.navigation.page(id);
    let meta = docs.pages.get(&page.slug).map(|written| &written.meta);
    let heading = |heading: &'d crate::render::html::Heading| Heading {
        anchor: &heading.id,
        text: &heading.text,
    };
    let labels = page.place.iter().flat_map(|place| &place.breadcrumb);
    let keywords = meta.iter().flat_map(|meta| &meta.keywords);
    Document {
        path: path_of(page),
        title: &page.title,
        breadcrumb: labels.map(|label| &**label).collect(),
        keywords: keywords.map(|keyword| &**keyword).collect(),
        description: page.description.as_deref(),
        boost: page.boost,
        markdown: &article.markdown,
        headings: article.headings.iter().map(heading).collect(),
    }
}
