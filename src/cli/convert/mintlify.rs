//! `mint.json`, the format that `docs.json` replaces.

use serde_json::{Map, Value as Json};

use super::Converted;
use super::notes::{Notes, object, set};
use crate::source::TreePath;
use crate::syntax::{Data, Member, Value};

/// A part of the site that takes the groups below a path, or a link.
struct Division {
    label: String,
    icon: Json,
    /// The path without slashes, or a URL.
    url: String,
    version: Option<String>,
    openapi: Json,
    is_hidden: bool,
}

/// A group at the top of the navigation.
struct Group {
    json: Json,
    first: Option<String>,
    version: Option<String>,
}

/// Converts `mint.json`.
pub(super) fn convert(mut notes: Notes<'_>, path: &TreePath) -> anyhow::Result<Converted> {
    let root = notes.read(path)?;
    anyhow::ensure!(root.is_map(), "{path} is not a JSON object");
    let mut config = Map::new();
    let schema = "https://mintlify.com/docs.json";
    config.insert("$schema".to_owned(), schema.into());
    let text = |notes: &mut Notes<'_>, key: &str| notes.text(root.get(key)).unwrap_or_default();
    let theme = match text(&mut notes, "theme").as_str() {
        "quill" => "maple",
        "prism" => "palm",
        _ => "mint",
    };
    set(&mut config, "name", text(&mut notes, "name"));
    set(&mut config, "theme", theme);
    let (mut appearance, mut styling) = (Map::new(), Map::new());
    let (mut navbar, mut footer, mut api) = (Map::new(), Map::new(), Map::new());
    for Member { key, span, value } in root.members() {
        let note = |notes: &mut Notes<'_>| {
            notes.setting(*span, format!("`{key}` has no counterpart in docs.json"));
        };
        match &**key {
            // Read elsewhere.
            "$schema" | "name" | "theme" | "navigation" | "versions" | "tabs" | "anchors"
            | "primaryTab" | "topAnchor" | "footerSocials" => {}
            "seo" => {
                let seo = config.entry("seo").or_insert_with(|| Map::new().into());
                if let (Json::Object(seo), Json::Object(own)) = (seo, notes.json(value)) {
                    seo.extend(own);
                }
            }
            "favicon" | "logo" | "redirects" | "search" | "banner" => {
                let value = notes.json(value);
                set(&mut config, key, value);
            }
            "colors" => {
                let mut colors = Map::new();
                for one in value.members() {
                    match &*one.key {
                        "primary" | "light" | "dark" => {
                            let value = notes.json(&one.value);
                            set(&mut colors, &one.key, value);
                        }
                        other => {
                            let message = format!("`colors.{other}` has no counterpart");
                            notes.setting(one.span, message);
                        }
                    }
                }
                set(&mut config, "colors", colors);
            }
            "modeToggle" => {
                let default = notes.text(value.get("default"));
                set(&mut appearance, "default", default.unwrap_or_default());
                if value.get("isHidden").and_then(Value::flag) == Some(true) {
                    set(&mut appearance, "strict", true);
                }
            }
            "metadata" => {
                let metatags = notes.json(value);
                let seo = config.entry("seo").or_insert_with(|| Map::new().into());
                if let Json::Object(seo) = seo {
                    set(seo, "metatags", metatags);
                }
            }
            "openapi" => {
                let value = notes.json(value);
                set(&mut api, "openapi", value);
            }
            "api" => convert_api(&mut notes, value, &mut api),
            "topbarLinks" => {
                let links = value.items().iter();
                let links: Vec<_> = links.map(|link| convert_link(&mut notes, link)).collect();
                set(&mut navbar, "links", links);
            }
            "topbarCtaButton" => {
                let primary = convert_link(&mut notes, value);
                set(&mut navbar, "primary", primary);
            }
            "footer" => {
                if let Some(socials) = value.get("socials") {
                    let socials = notes.json(socials);
                    set(&mut footer, "socials", socials);
                }
                let columns = value.get("links").map_or(&[][..], Value::items).iter();
                let columns: Vec<_> = columns
                    .map(|column| {
                        let items = column.get("links").map_or(&[][..], Value::items).iter();
                        let items: Vec<_> =
                            items.map(|link| convert_link(&mut notes, link)).collect();
                        let header = notes.text(column.get("title")).unwrap_or_default();
                        Json::from(object([("header", header.into()), ("items", items.into())]))
                    })
                    .collect();
                set(&mut footer, "links", columns);
            }
            "font" => {
                let fonts = match value.get("headings").or_else(|| value.get("body")) {
                    Some(_) => {
                        let mut part =
                            |key: &str| value.get(key).map_or(Json::Null, |font| notes.json(font));
                        Json::from(object([
                            ("heading", part("headings")),
                            ("body", part("body")),
                        ]))
                    }
                    None => notes.json(value),
                };
                set(&mut config, "fonts", fonts);
            }
            "codeBlock" => {
                let mode = value.get("mode").and_then(Value::text);
                let mode = mode.map(|mode| if mode == "dark" { "dark" } else { "system" });
                set(&mut styling, "codeblocks", mode.unwrap_or_default());
            }
            "eyebrow" => {
                let value = notes.json(value.get("display").unwrap_or(value));
                set(&mut styling, "eyebrows", value);
            }
            _ => note(&mut notes),
        }
    }
    if let Some(socials) = root.get("footerSocials") {
        let converted = match socials.is_map() {
            true => notes.json(socials),
            // A list of kinds and addresses.
            false => {
                let mut map = Map::new();
                for one in socials.items() {
                    if let Some(kind) = notes.text(one.get("type")) {
                        let url = notes.text(one.get("url")).unwrap_or_default();
                        set(&mut map, &kind, url);
                    }
                }
                map.into()
            }
        };
        set(&mut footer, "socials", converted);
    }
    let navigation = navigation(&mut notes, &root);
    for (key, part) in [
        ("appearance", appearance),
        ("styling", styling),
        ("api", api),
        ("navbar", navbar),
        ("footer", footer),
    ] {
        set(&mut config, key, part);
    }
    config.insert("navigation".to_owned(), navigation.into());
    let root = path.parent().unwrap_or_default();
    Ok(notes.finish(root, config, Vec::new(), Vec::new()))
}

fn convert_link(notes: &mut Notes<'_>, link: &Value) -> Json {
    let mut text = |key: &str| Json::from(notes.text(link.get(key)).unwrap_or_default());
    let (name, label, url) = (text("name"), text("label"), text("url"));
    let kind = match link.get("type").and_then(Value::text) {
        Some("github") => "github",
        Some("link") => "button",
        _ => "",
    };
    let label = match name.as_str() {
        Some("") | None => label,
        Some(_) => name,
    };
    Json::from(object([
        ("type", kind.into()),
        ("label", label),
        ("href", url),
    ]))
}

fn convert_api(notes: &mut Notes<'_>, value: &Value, api: &mut Map<String, Json>) {
    let mut mdx = Map::new();
    for Member { key, span, value } in value.members() {
        match &**key {
            "baseUrl" => {
                let value = notes.json(value);
                set(&mut mdx, "server", value);
            }
            "auth" => {
                let method = value.get("method").map(|method| notes.json(method));
                let name = value.get("name").map(|name| notes.json(name));
                if let Some(prefix) = value.member("inputPrefix") {
                    let message = "`api.auth.inputPrefix` has no counterpart in docs.json";
                    notes.setting(prefix.span, message);
                }
                let auth = object([
                    ("method", method.unwrap_or_default()),
                    ("name", name.unwrap_or_default()),
                ]);
                set(&mut mdx, "auth", auth);
            }
            "playground" => {
                let display = match value.get("mode").and_then(Value::text) {
                    Some("simple") => "simple",
                    Some("hide") => "none",
                    _ => "interactive",
                };
                set(api, "playground", object([("display", display.into())]));
            }
            "request" => {
                let example = value.get("example");
                let languages = example.and_then(|example| example.get("languages"));
                let languages = languages.map(|languages| notes.json(languages));
                let examples = object([("languages", languages.unwrap_or_default())]);
                set(api, "examples", examples);
            }
            _ => notes.setting(
                *span,
                format!("`api.{key}` has no counterpart in docs.json"),
            ),
        }
    }
    set(api, "mdx", mdx);
}

// === navigation ===

fn navigation(notes: &mut Notes<'_>, root: &Value) -> Map<String, Json> {
    let groups: Vec<_> = root
        .get("navigation")
        .map_or(&[][..], Value::items)
        .iter()
        .filter_map(|entry| {
            let json = group(notes, entry)?;
            Some(Group {
                json,
                first: first_page(entry),
                version: notes.text(entry.get("version")),
            })
        })
        .collect();
    let tabs = divisions(notes, root.get("tabs"));
    let anchors = divisions(notes, root.get("anchors"));
    let (links, anchors): (Vec<_>, Vec<_>) =
        anchors.into_iter().partition(|anchor| is_url(&anchor.url));
    let name = |notes: &mut Notes<'_>, key: &str| {
        let value = root.get(key);
        notes.text(value.and_then(|value| value.get("name")))
    };
    let label = name(notes, "primaryTab").or_else(|| name(notes, "topAnchor"));
    let label = label.unwrap_or_else(|| "Documentation".to_owned());
    let icon = root.get("topAnchor").and_then(|top| top.get("icon"));
    let icon = icon.map_or(Json::Null, |icon| notes.json(icon));
    let part = |version: Option<&str>| {
        let is_of = |other: &Option<String>| match (version, other) {
            (Some(version), Some(other)) => version == other,
            _ => true,
        };
        let groups = groups.iter().filter(|group| is_of(&group.version));
        let tabs = tabs.iter().filter(|tab| is_of(&tab.version));
        let anchors = anchors.iter().filter(|anchor| is_of(&anchor.version));
        divided(
            &groups.collect::<Vec<_>>(),
            &tabs.collect::<Vec<_>>(),
            &anchors.collect::<Vec<_>>(),
            (&label, &icon),
        )
    };
    let versions = root.get("versions").map_or(&[][..], Value::items);
    let name_of = |version: &Value| {
        version
            .get("name")
            .unwrap_or(version)
            .text()
            .map(str::to_owned)
    };
    let names: Vec<_> = versions.iter().filter_map(name_of).collect();
    for entry in root.get("navigation").map_or(&[][..], Value::items) {
        let version = entry.member("version");
        let is_listed = |name: &str| versions.is_empty() || names.iter().any(|one| one == name);
        if let Some(version) = version
            && version.value.text().is_some_and(|name| !is_listed(name))
        {
            let message = "this version is not in `versions`, so its group is left out";
            notes.entry(version.span, message, "add the version, or remove the key");
        }
    }
    let mut navigation = match versions {
        [] => part(None),
        versions => {
            let versions: Vec<_> = versions
                .iter()
                .filter_map(|version| {
                    let name = notes.text(version.get("name").or(Some(version)))?;
                    let mut map = object([("version", name.as_str().into())]);
                    if version.get("default").and_then(Value::flag) == Some(true) {
                        set(&mut map, "default", true);
                    }
                    if let Some(locale) = version.member("locale") {
                        let message = "a version with a `locale` is a language in docs.json";
                        let help = "write it as an entry of `navigation.languages`";
                        notes.setting_with_help(locale.span, message, help);
                    }
                    map.extend(part(Some(&name)));
                    Some(Json::from(map))
                })
                .collect();
            object([("versions", versions.into())])
        }
    };
    let links = links.into_iter().map(|link| {
        Json::from(object([
            ("anchor", link.label.into()),
            ("icon", link.icon),
            ("href", link.url.into()),
        ]))
    });
    let links: Vec<_> = links.collect();
    set(
        &mut navigation,
        "global",
        object([("anchors", links.into())]),
    );
    navigation
}

/// Converts a group; a page in its place has no group, so it is no group.
fn group(notes: &mut Notes<'_>, entry: &Value) -> Option<Json> {
    if entry.data == Data::Unresolved || !entry.is_map() {
        let help = "write the page into a group";
        notes.entry(entry.span, "this is not a group", help);
        return None;
    }
    let mut map = Map::new();
    for Member { key, span, value } in entry.members() {
        match &**key {
            "pages" => {
                let mut pages = Vec::new();
                for page in value.items() {
                    match page.text() {
                        Some(text) => pages.push(text.into()),
                        None => pages.extend(group(notes, page)),
                    }
                }
                map.insert("pages".to_owned(), Json::Array(pages));
            }
            "group" | "icon" | "tag" | "root" | "openapi" | "expanded" | "hidden" | "directory" => {
                let value = notes.json(value);
                set(&mut map, key, value);
            }
            "version" => {}
            _ => notes.setting(*span, format!("`{key}` of a group has no counterpart")),
        }
    }
    Some(map.into())
}

fn first_page(entry: &Value) -> Option<String> {
    let pages = entry.get("pages")?.items();
    pages.iter().find_map(|page| match page.text() {
        Some(text) => Some(text.trim_matches('/').to_owned()),
        None => first_page(page),
    })
}

fn divisions(notes: &mut Notes<'_>, value: Option<&Value>) -> Vec<Division> {
    let entries = value.map_or(&[][..], Value::items).iter();
    let mut divisions = Vec::new();
    for entry in entries {
        let (label, url) = (notes.text(entry.get("name")), notes.text(entry.get("url")));
        let (Some(label), Some(url)) = (label, url) else {
            notes.entry(
                entry.span,
                "`name` or `url` is missing",
                "write the entry by hand",
            );
            continue;
        };
        if let Some(color) = entry.member("color") {
            notes.setting(color.span, "`color` of an anchor has no counterpart");
        }
        divisions.push(Division {
            label,
            icon: entry
                .get("icon")
                .map_or(Json::Null, |icon| notes.json(icon)),
            url: match is_url(&url) {
                true => url,
                false => url.trim_matches('/').to_owned(),
            },
            version: notes.text(entry.get("version")),
            openapi: entry
                .get("openapi")
                .map_or(Json::Null, |one| notes.json(one)),
            is_hidden: entry.get("isDefaultHidden").and_then(Value::flag) == Some(true),
        });
    }
    divisions
}

fn is_url(text: &str) -> bool {
    text.contains("://") || text.starts_with("mailto:")
}

/// Distributes groups to tabs and anchors by the path of their first page.
fn divided(
    groups: &[&Group],
    tabs: &[&Division],
    anchors: &[&Division],
    (label, icon): (&str, &Json),
) -> Map<String, Json> {
    let divisions: Vec<&Division> = tabs.iter().chain(anchors).copied().collect();
    if divisions.is_empty() {
        let groups: Vec<_> = groups.iter().map(|group| group.json.clone()).collect();
        return object([("groups", groups.into())]);
    }
    let mut taken: Vec<Vec<Json>> = vec![Vec::new(); divisions.len()];
    let mut rest = Vec::new();
    for group in groups {
        let is_below = |division: &&Division| {
            let first = group.first.as_deref().unwrap_or_default();
            let after = first.strip_prefix(&*division.url);
            !division.url.is_empty()
                && after.is_some_and(|after| after.is_empty() || after.starts_with('/'))
        };
        // The longest path counts: `api/v2` before `api`.
        let indexes = (0..divisions.len()).filter(|at| is_below(&divisions[*at]));
        match indexes.max_by_key(|at| divisions[*at].url.len()) {
            Some(at) => taken[at].push(group.json.clone()),
            None => rest.push(group.json.clone()),
        }
    }
    let (kind, kinds) = match tabs.is_empty() {
        true => ("anchor", "anchors"),
        false => ("tab", "tabs"),
    };
    let mut out = Vec::new();
    if !rest.is_empty() {
        let icon = match kind {
            "anchor" => icon.clone(),
            _ => Json::Null,
        };
        out.push(Json::from(object([
            (kind, label.into()),
            ("icon", icon),
            ("groups", rest.into()),
        ])));
    }
    for (division, groups) in divisions.iter().zip(taken) {
        let mut map = object([
            (kind, division.label.as_str().into()),
            ("icon", division.icon.clone()),
        ]);
        let is_empty = groups.is_empty() && division.openapi.is_null();
        if is_empty {
            let href = match is_url(&division.url) {
                true => division.url.clone(),
                false => format!("/{}", division.url),
            };
            set(&mut map, "href", href);
        }
        set(&mut map, "openapi", division.openapi.clone());
        set(&mut map, "groups", groups);
        if division.is_hidden {
            set(&mut map, "hidden", true);
        }
        out.push(map.into());
    }
    object([(kinds, out.into())])
}
