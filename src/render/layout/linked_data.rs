//! Linked data of a page for search engines: what it is, and where it is in the site.
//!
//! Sources: schema.org (`WebPage`, `TechArticle`, `BreadcrumbList`, `Organization`); JSON-LD 1.1 §7
//! (embedding in HTML).

use serde_json::{Value, json};

use super::PageWriter;
use crate::discovery::BASE_URL_PLACEHOLDER;
use crate::docs::config::Organization;
use crate::site::percent::encode;

// === impl PageWriter ===

impl PageWriter<'_> {
    /// Writes the linked data of a page that search engines may find.
    pub(super) fn linked_data(&mut self, title: &str, description: Option<&str>) {
        let Some(id) = self.id else {
            return;
        };
        let layout = self.layout;
        let page = layout.navigation().page(id);
        let url = address(self.path);
        let name = &*layout.config().name;
        // The page that a site opens with is about the site.
        let (kind, name_of_page) = match self.path == layout.home() {
            true => ("WebPage", "name"),
            false => ("TechArticle", "headline"),
        };
        let mut article = json!({
            "@type": kind,
            "url": url,
            "inLanguage": layout.language_tag(Some(id)),
        });
        article[name_of_page] = title.into();
        if let Some(description) = description {
            article["description"] = description.into();
        }
        if let Some(day) = layout.docs.updated(page) {
            article["dateModified"] = day.into();
        }
        if !name.is_empty() {
            article["isPartOf"] = json!({"@type": "WebSite", "name": name, "url": address("")});
        }
        if let Some(organization) = &layout.config().seo.organization {
            article["publisher"] = publisher(organization);
        }
        let labels = page
            .place
            .as_ref()
            .map_or(&[][..], |place| &place.breadcrumb);
        let targets = layout.breadcrumbs(Some(id), labels);
        // Search engines want an address for all but the last.
        let above = labels.iter().zip(targets).enumerate();
        let above = above.filter_map(|(n, (label, target))| {
            let target = target.filter(|target| *target != id)?;
            let is_repeated = labels.get(n + 1) == Some(label);
            (!is_repeated).then(|| (&**label, address(layout.path(target))))
        });
        let items = above.chain([(title, url.clone())]).enumerate();
        let items = items.map(|(at, (name, item))| {
            json!({"@type": "ListItem", "position": at + 1, "name": name, "item": item})
        });
        let breadcrumb = json!({
            "@type": "BreadcrumbList",
            "itemListElement": items.collect::<Vec<Value>>(),
        });
        let data = json!({"@context": "https://schema.org", "@graph": [article, breadcrumb]});
        // No `<` can end the element or start a comment (WHATWG HTML §4.12.1.3).
        let data = data.to_string().replace('<', "\\u003c");
        self.out
            .markup("<script type=\"application/ld+json\">")
            .escaped(&data)
            .markup("</script>\n");
    }
}

fn address(path: &str) -> String {
    format!("{BASE_URL_PLACEHOLDER}/{}", encode(path))
}

fn publisher(organization: &Organization) -> Value {
    let mut value = json!({"@type": "Organization", "name": organization.name});
    for (key, text) in [
        ("@id", &organization.id),
        ("legalName", &organization.legal_name),
        ("url", &organization.url),
        ("logo", &organization.logo),
    ] {
        if let Some(text) = text {
            value[key] = (&**text).into();
        }
    }
    if let Some(addresses) = &organization.same_as {
        value["sameAs"] = addresses.iter().map(|address| &**address).collect();
    }
    value
}
