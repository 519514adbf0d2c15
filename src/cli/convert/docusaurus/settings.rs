//! The settings of `docusaurus.config.*`: title, logo, colours, links, redirects.

use serde_json::{Map, Value as Json};

use super::navbar_items;
use crate::cli::convert::notes::{Notes, object, resolve, set};
use crate::source::TreePath;
use crate::syntax::{Data, Member, Value};

struct Settings<'n, 't, 'p> {
    notes: &'n mut Notes<'t>,
    directory: &'p TreePath,
    root: &'p TreePath,
}

/// Converts the settings.
pub(super) fn convert(
    notes: &mut Notes<'_>,
    config: &Value,
    directory: &TreePath,
    root: &TreePath,
) -> Map<String, Json> {
    let mut settings = Settings {
        notes,
        directory,
        root,
    };
    let mut out = Map::new();
    let title = settings.notes.text(config.get("title"));
    set(&mut out, "name", title.unwrap_or_default());
    let tagline = settings.notes.text(config.get("tagline"));
    set(&mut out, "description", tagline.unwrap_or_default());
    if let Some(favicon) = config.get("favicon") {
        let favicon = settings.image(favicon);
        set(&mut out, "favicon", favicon);
    }
    for Member { key, span, value } in config.members() {
        match &**key {
            // Read elsewhere, or without a meaning here.
            "title"
            | "tagline"
            | "favicon"
            | "url"
            | "presets"
            | "plugins"
            | "themeConfig"
            | "onBrokenLinks"
            | "onBrokenMarkdownLinks"
            | "onBrokenAnchors"
            | "organizationName"
            | "projectName"
            | "deploymentBranch"
            | "trailingSlash"
            | "future"
            | "markdown"
            | "onDuplicateRoutes"
            | "titleDelimiter"
            | "noIndex"
            | "staticDirectories" => {}
            "baseUrl" => {
                let base = value.text().unwrap_or("/");
                if !base.trim_matches('/').is_empty() {
                    let help = "set `base_path` in the record of the site";
                    let message = "the site is below a path of its host";
                    settings.notes.setting_with_help(*span, message, help);
                }
            }
            "i18n" => {
                let locales = value.get("locales").map_or(&[][..], Value::items);
                if locales.len() > 1 {
                    let help = "make a directory for each language, and `navigation.languages`";
                    let message = "translations are not converted";
                    settings.notes.setting_with_help(*span, message, help);
                }
            }
            _ => {
                let message = format!("`{key}` has no counterpart in docs.json");
                settings.notes.setting(*span, message);
            }
        }
    }
    settings.theme(config, &mut out);
    settings.redirects(config, &mut out);
    settings.presets(config);
    let versions = settings.directory.join("versions.json").ok();
    let versions = versions.filter(|path| settings.notes.is_file(path));
    if let Some(Ok(versions)) = versions.map(|path| settings.notes.read(&path)) {
        let help = "put each version into a directory, and list them in `navigation.versions`";
        let message = "earlier versions are not converted";
        settings
            .notes
            .setting_with_help(versions.span, message, help);
    }
    out
}

// === impl Settings ===

impl Settings<'_, '_, '_> {
    fn theme(&mut self, config: &Value, out: &mut Map<String, Json>) {
        let Some(theme) = config.get("themeConfig") else {
            return;
        };
        if theme.data == Data::Unresolved {
            self.notes.computed(theme.span);
        }
        for Member { key, span, value } in theme.members() {
            match &**key {
                "navbar" => {
                    if let Some(logo) = value.get("logo") {
                        let light = logo.get("src").map(|one| self.image(one));
                        let dark = logo.get("srcDark").map(|one| self.image(one));
                        let light = light.unwrap_or_default();
                        let dark = dark.filter(|dark| !dark.is_null());
                        let dark = dark.unwrap_or_else(|| light.clone());
                        set(out, "logo", object([("light", light), ("dark", dark)]));
                    }
                    let links: Vec<_> = navbar_items(config)
                        .iter()
                        .filter_map(|item| self.link(item))
                        .collect();
                    set(out, "navbar", object([("links", links.into())]));
                }
                "footer" => {
                    let columns = value.get("links").map_or(&[][..], Value::items);
                    let mut converted = Vec::new();
                    for column in columns {
                        if column.get("items").is_none() || column.get("title").is_none() {
                            let message = "a footer has columns with a title here";
                            self.notes.setting(column.span, message);
                        }
                        let items = column.get("items").map_or(&[][..], Value::items).iter();
                        let items: Vec<_> = items.filter_map(|item| self.link(item)).collect();
                        let title = self.notes.text(column.get("title"));
                        if let (Some(title), false) = (title, items.is_empty()) {
                            let column = [("header", title.into()), ("items", items.into())];
                            converted.push(Json::from(object(column)));
                        }
                    }
                    if let Some(copyright) = value.member("copyright") {
                        let message = "the `copyright` of a footer has no counterpart";
                        self.notes.setting(copyright.span, message);
                    }
                    set(out, "footer", object([("links", converted.into())]));
                }
                "colorMode" => {
                    let flag = |key: &str| value.get(key).and_then(Value::flag) == Some(true);
                    let mode = self.notes.text(value.get("defaultMode"));
                    let mode = match flag("respectPrefersColorScheme") {
                        true => "system".to_owned(),
                        false => mode.unwrap_or_else(|| "light".to_owned()),
                    };
                    let mut appearance = object([("default", mode.into())]);
                    if flag("disableSwitch") {
                        appearance.insert("strict".to_owned(), true.into());
                    }
                    set(out, "appearance", appearance);
                }
                "announcementBar" => {
                    let content = self.notes.text(value.get("content")).unwrap_or_default();
                    if content.contains('<') {
                        let help = "write the text in Markdown";
                        let message = "the text of the announcement has HTML";
                        self.notes.setting_with_help(*span, message, help);
                    }
                    let closes = value.get("isCloseable").and_then(Value::flag) != Some(false);
                    let banner = [("content", content.into()), ("dismissible", closes.into())];
                    set(out, "banner", object(banner));
                }
                "image" | "metadata" => {
                    let message = format!("`themeConfig.{key}` is not converted");
                    let help = "write the tags into `seo.metatags`";
                    self.notes.setting_with_help(*span, message, help);
                }
                "algolia" => {
                    let message = "the search is built in: `themeConfig.algolia` is left out";
                    self.notes.setting(*span, message);
                }
                // How a part looks, without a meaning here.
                "prism" | "docs" | "tableOfContents" | "liveCodeBlock" | "zoom" | "mermaid" => {}
                _ => {
                    let message = format!("`themeConfig.{key}` has no counterpart in docs.json");
                    self.notes.setting(*span, message);
                }
            }
        }
    }

    /// Converts a link of the navbar or the footer.
    fn link(&mut self, item: &Value) -> Option<Json> {
        let kind = item.get("type").and_then(Value::text).unwrap_or("link");
        match kind {
            "docSidebar" | "search" | "localeDropdown" | "docsVersionDropdown" => return None,
            "link" | "default" | "doc" if item.get("items").is_none() => {}
            _ => {
                let help = "write the links into `navbar.links`";
                let message = "this element of the bar is not converted";
                self.notes.setting_with_help(item.span, message, help);
                return None;
            }
        }
        let label = item.get("label").or_else(|| item.get("aria-label"));
        let label = self.notes.text(label);
        let target = item.get("href").or_else(|| item.get("to"));
        let page = item.get("docId").and_then(Value::text);
        let page = page.map(|page| format!("/docs/{page}"));
        let href = self.notes.text(target).or(page);
        let (Some(label), Some(href)) = (label, href) else {
            let help = "write the link into docs.json";
            self.notes
                .setting_with_help(item.span, "a link without label or target", help);
            return None;
        };
        let href = match href.contains("://") || href.starts_with(['/', '#']) {
            true => href,
            false => format!("/{href}"),
        };
        let label = label.trim_start_matches("aria-").to_owned();
        let kind = match href.starts_with("https://github.com/") {
            true => "github",
            false => "",
        };
        let link = [
            ("type", kind.into()),
            ("label", label.into()),
            ("href", href.into()),
        ];
        Some(object(link).into())
    }

    /// Returns the path of an image, which is below a directory for static files.
    fn image(&mut self, value: &Value) -> Json {
        let Some(name) = self.notes.text(Some(value)) else {
            return Json::Null;
        };
        if name.contains("://") {
            return name.into();
        }
        let below = format!("static/{}", name.trim_start_matches('/'));
        let file = resolve(self.directory, &below).filter(|file| self.notes.is_file(file));
        let Some(file) = file else {
            let help = "name a file of the repository in docs.json";
            let message = format!("there is no file {below:?}");
            self.notes.setting_with_help(value.span, message, help);
            return Json::Null;
        };
        format!("/{}", file.strip_prefix(self.root).unwrap_or_default()).into()
    }

    /// Converts the redirects of the plugin for them.
    fn redirects(&mut self, config: &Value, out: &mut Map<String, Json>) {
        let mut redirects = Vec::new();
        for plugin in config.get("plugins").map_or(&[][..], Value::items) {
            let [name, options, ..] = plugin.items() else {
                continue;
            };
            if !name
                .text()
                .is_some_and(|name| name.contains("client-redirects"))
            {
                continue;
            }
            let listed = options.get("redirects");
            if let Some(listed) = listed.filter(|listed| listed.data == Data::Unresolved) {
                self.notes.computed(listed.span);
            }
            for one in listed.map_or(&[][..], Value::items) {
                let to = self.notes.text(one.get("to"));
                let from = one.get("from");
                let from = match from.and_then(Value::list) {
                    Some(list) => list.iter().collect(),
                    None => from.into_iter().collect::<Vec<_>>(),
                };
                for from in from {
                    if let (Some(from), Some(to)) = (self.notes.text(Some(from)), to.clone()) {
                        let redirect = [("source", from.into()), ("destination", to.into())];
                        redirects.push(Json::from(object(redirect)));
                    }
                }
            }
            if let Some(made) = options.member("createRedirects") {
                self.notes.computed(made.value.span);
            }
        }
        set(out, "redirects", redirects);
    }

    /// Says what presets have besides pages.
    fn presets(&mut self, config: &Value) {
        for preset in config.get("presets").map_or(&[][..], Value::items) {
            let [_, options, ..] = preset.items() else {
                continue;
            };
            for Member { key, span, value } in options.members() {
                let is_off = value.flag() == Some(false) || value.is_null();
                let (message, help) = match &**key {
                    "blog" => (
                        "the blog is not converted",
                        "write a changelog with `<Update>`, or list the posts as pages",
                    ),
                    "theme" if value.get("customCss").is_some() => (
                        "a stylesheet of another theme",
                        "put rules that you need into a stylesheet beside the pages",
                    ),
                    "pages" => (
                        "pages in React are not converted",
                        "write them in MDX, with `mode: custom`",
                    ),
                    "gtag" | "googleAnalytics" | "googleTagManager" => (
                        "scripts for analytics are not run",
                        "see the numbers of the site",
                    ),
                    _ => continue,
                };
                if !is_off {
                    self.notes.setting_with_help(*span, message, help);
                }
            }
        }
        let pages = self.directory.join("src/pages").ok();
        let entries = pages.and_then(|pages| self.notes.tree.list(&pages).ok());
        let is_home = |name: &str| name.starts_with("index.") && !name.ends_with(".css");
        let has_home = entries.is_some_and(|entries| entries.iter().any(|(name, _)| is_home(name)));
        if let (true, Some(title)) = (has_home, config.member("title")) {
            let help = "write an index.mdx, with `mode: custom` for a page without sidebar";
            let message = "the home page in src/pages is not converted";
            self.notes.setting_with_help(title.span, message, help);
        }
    }
}
