//! Components and HTML elements as HTML.
//!
//! What opens and closes is `<details>`, what is chosen from is a group of sections that a
//! script makes tabs of: everything is readable without it.

use super::fence::Info;
use super::{Writer, slug};
use crate::render::component as known;
use crate::render::link::Target;
use crate::render::mdx::{Element, Node, Value};

/// Hosts whose players and drawings pages may embed.
const FRAME_HOSTS: [&str; 9] = [
    "www.youtube.com",
    "www.youtube-nocookie.com",
    "player.vimeo.com",
    "www.loom.com",
    "fast.wistia.net",
    "codesandbox.io",
    "stackblitz.com",
    "www.figma.com",
    "codepen.io",
];

/// Attributes that every HTML element may have; they name and describe, and do nothing.
const GLOBAL_ATTRIBUTES: [&str; 7] = [
    "id",
    "title",
    "lang",
    "dir",
    "role",
    "aria-label",
    "aria-hidden",
];
/// Attributes that only some elements have.
const ATTRIBUTES: [(&str, &[&str]); 8] = [
    ("td", &["colspan", "rowspan"]),
    ("th", &["colspan", "rowspan", "scope"]),
    ("ol", &["start", "reversed"]),
    ("details", &["open"]),
    ("time", &["datetime"]),
    ("col", &["span"]),
    (
        "video",
        &[
            "width",
            "height",
            "controls",
            "loop",
            "muted",
            "autoplay",
            "playsinline",
        ],
    ),
    ("img", &["width", "height"]),
];

// === impl Writer ===

impl Writer<'_> {
    /// Writes a component; `false` when it is none.
    pub(super) fn component(&mut self, element: &Element) -> bool {
        let children = &element.children;
        match &*element.name {
            name if known::callout(name, element.text("type")).is_some() => {
                self.callout(element);
            }
            "Card" | "Tile" => self.card(element),
            "CardGroup" | "Columns" => self.columns(element),
            "Column" => self.wrap("<div class=column>", children, "</div>\n"),
            "Tabs" | "View" => self.sections(element),
            "Tab" => self.section(element.text("title").unwrap_or("Tab"), children),
            "CodeGroup" | "RequestExample" | "ResponseExample" | "CodeBlock" => {
                self.code_group(children);
            }
            "Steps" => self.wrap("<ol class=steps>\n", children, "</ol>\n"),
            "Step" => self.step(element),
            "AccordionGroup" => self.wrap("<div class=accordions>\n", children, "</div>\n"),
            "Accordion" | "Expandable" => self.accordion(element),
            "Frame" => self.frame(element),
            "ParamField" | "Param" | "ResponseField" | "Response" => self.field(element),
            "Tooltip" => self.tooltip(element),
            "Icon" => self.icon(element),
            "Badge" => self.wrap("<span class=badge>", children, "</span>"),
            "Update" => self.update(element),
            "Panel" => self.wrap("<aside class=panel>", children, "</aside>\n"),
            "Prompt" => self.prompt(element),
            "Tree" => self.wrap("<ul class=tree>\n", children, "</ul>\n"),
            "Tree.Folder" => self.folder(element),
            "Tree.File" => {
                let name = element.text("name").unwrap_or_default();
                self.out
                    .markup("<li class=file>")
                    .text(name)
                    .markup("</li>\n");
            }
            "Color" | "Color.Row" => self.wrap("<div class=colors>", children, "</div>\n"),
            "Color.Item" => self.colour(element),
            "Latex" => {
                let tex = crate::render::mdx::plain(children);
                self.formula(&tex, false);
            }
            "Mermaid" => {
                let info = Info {
                    language: "mermaid".to_owned(),
                    ..Info::default()
                };
                let source = crate::render::mdx::plain(children);
                self.code(&info, &source, true);
            }
            "Visibility" => {
                if element.text("for") != Some("agents") {
                    self.nodes(children);
                }
            }
            _ => return false,
        }
        true
    }

    fn callout(&mut self, element: &Element) {
        let Some((class, word)) = known::callout(&element.name, element.text("type")) else {
            return;
        };
        self.out.markup("<aside class=\"callout ").markup(class);
        self.out.markup("\" role=note><strong class=callout-word>");
        self.out.text(element.text("title").unwrap_or(word));
        self.wrap("</strong><div>", &element.children, "</div></aside>\n");
    }

    fn card(&mut self, element: &Element) {
        self.out.markup(if element.has("horizontal") {
            "<div class=\"card horizontal\">"
        } else {
            "<div class=card>"
        });
        if let Some(src) = element.text("img") {
            self.image(src, "", &[]);
        }
        self.out.markup("<p class=card-title>");
        let title = element.text("title").unwrap_or_default();
        match element.text("href") {
            Some(href) => self.link(href, &[Node::Text(title.to_owned())]),
            None => {
                self.out.text(title);
            }
        }
        self.wrap("</p>\n<div>", &element.children, "</div></div>\n");
    }

    fn columns(&mut self, element: &Element) {
        let columns = match element.text("cols").and_then(|n| n.parse().ok()) {
            Some(1_u8) => "<div class=\"cards cols-1\">\n",
            Some(3) => "<div class=\"cards cols-3\">\n",
            Some(4..) => "<div class=\"cards cols-4\">\n",
            _ => "<div class=\"cards cols-2\">\n",
        };
        self.wrap(columns, &element.children, "</div>\n");
    }

    fn sections(&mut self, element: &Element) {
        if let Some(title) = element.text("title") {
            return self.section(title, &element.children);
        }
        self.wrap("<div class=tabs>\n", &element.children, "</div>\n");
    }

    /// One of several things to choose from.
    fn section(&mut self, title: &str, children: &[Node]) {
        let id = self.anchor(&slug(title));
        self.out.markup("<section class=tab").attribute("id", &id);
        self.out
            .attribute("data-title", title)
            .markup("><p class=tab-title>");
        self.out.text(title);
        self.wrap("</p>", children, "</section>\n");
    }

    fn code_group(&mut self, children: &[Node]) {
        self.out.markup("<div class=\"tabs codes\">\n");
        for child in children {
            match child {
                Node::Fence { info, code } => {
                    let info = Info::parse(info);
                    let title = [&info.title, &info.language, "Code"]
                        .into_iter()
                        .find(|title| !title.is_empty())
                        .unwrap_or_default()
                        .to_owned();
                    self.out.markup("<section class=tab");
                    self.out.attribute("data-title", &title);
                    self.out
                        .markup("><p class=tab-title>")
                        .text(&title)
                        .markup("</p>");
                    self.code(&info, code, false);
                    self.out.markup("</section>\n");
                }
                other => self.node(other),
            }
        }
        self.out.markup("</div>\n");
    }

    fn step(&mut self, element: &Element) {
        self.out.markup("<li class=step>");
        if let Some(title) = element.text("title") {
            let id = self.anchor(&element.text("id").map_or_else(|| slug(title), slug));
            self.out.markup("<p class=step-title").attribute("id", &id);
            self.out.markup(">").text(title).markup("</p>");
        }
        self.wrap("<div>", &element.children, "</div></li>\n");
    }

    fn accordion(&mut self, element: &Element) {
        let title = element.text("title").unwrap_or("Details");
        let id = self.anchor(&element.text("id").map_or_else(|| slug(title), slug));
        self.out
            .markup("<details class=accordion")
            .attribute("id", &id);
        if element.has("defaultOpen") {
            self.out.markup(" open");
        }
        self.out.markup("><summary>").text(title);
        if let Some(description) = element.text("description") {
            self.out
                .markup("<small>")
                .text(description)
                .markup("</small>");
        }
        self.wrap("</summary><div>", &element.children, "</div></details>\n");
    }

    fn frame(&mut self, element: &Element) {
        self.wrap("<figure class=frame>", &element.children, "");
        if let Some(caption) = element.text("caption") {
            self.out
                .markup("<figcaption>")
                .text(caption)
                .markup("</figcaption>");
        }
        self.out.markup("</figure>\n");
    }

    fn field(&mut self, element: &Element) {
        let (place, name) = known::parameter(element)
            .map_or(("", element.text("name")), |(place, name)| {
                (place, Some(name))
            });
        let name = name.unwrap_or_default();
        let id = self.anchor(&format!("field-{}", slug(name)));
        self.out.markup("<div class=field").attribute("id", &id);
        self.out
            .markup("><p class=field-head><code>")
            .text(name)
            .markup("</code>");
        for text in [element.text("type").unwrap_or_default(), place] {
            if !text.is_empty() {
                self.out
                    .markup(" <span class=badge>")
                    .text(text)
                    .markup("</span>");
            }
        }
        if element.has("required") {
            self.out
                .markup(" <span class=\"badge required\">required</span>");
        }
        if element.has("deprecated") {
            self.out
                .markup(" <span class=\"badge deprecated\">deprecated</span>");
        }
        if let Some(default) = element.text("default") {
            self.out
                .markup(" <span class=badge>default: ")
                .text(default)
                .markup("</span>");
        }
        self.wrap("</p>", &element.children, "</div>\n");
    }

    fn tooltip(&mut self, element: &Element) {
        self.wrap("<span class=tooltip tabindex=0>", &element.children, "");
        self.out.markup("<span role=tooltip>");
        self.out.text(element.text("tip").unwrap_or_default());
        self.out.markup("</span></span>");
    }

    /// An icon that is a file; named icons have no drawing yet and are left out.
    fn icon(&mut self, element: &Element) {
        if let Some(icon) = element.text("icon").filter(|icon| icon.contains('/')) {
            self.image(icon, "", &[("class", "icon")]);
        }
    }

    fn update(&mut self, element: &Element) {
        let label = element.text("label").unwrap_or_default();
        let id = self.anchor(&slug(label));
        self.out
            .markup("<section class=update")
            .attribute("id", &id);
        self.out
            .markup("><p class=update-label>")
            .text(label)
            .markup("</p>");
        if let Some(Value::List(tags)) = element.get("tags") {
            for tag in tags.iter().filter_map(Value::as_text) {
                self.out
                    .markup("<span class=badge>")
                    .text(tag)
                    .markup("</span> ");
            }
        }
        if let Some(description) = element.text("description") {
            self.out
                .markup("<p class=update-description>")
                .text(description)
                .markup("</p>");
        }
        self.wrap("<div>", &element.children, "</div></section>\n");
    }

    fn prompt(&mut self, element: &Element) {
        let title = element.text("description").unwrap_or("Prompt");
        let text = crate::render::mdx::plain(&element.children);
        let info = Info {
            title: title.to_owned(),
            wrapped: true,
            ..Info::default()
        };
        self.code(&info, text.trim(), true);
    }

    fn folder(&mut self, element: &Element) {
        let name = element.text("name").unwrap_or_default();
        self.out.markup("<li class=folder><details");
        if element.has("defaultOpen") {
            self.out.markup(" open");
        }
        self.out.markup("><summary>").text(name);
        self.wrap(
            "</summary><ul>",
            &element.children,
            "</ul></details></li>\n",
        );
    }

    /// A colour to look at. A policy forbids styles in pages, and a drawing needs none.
    fn colour(&mut self, element: &Element) {
        let value = match element.get("value") {
            Some(Value::Object(modes)) => modes.first().and_then(|(_, value)| value.as_text()),
            value => value.and_then(Value::as_text),
        };
        let value = value.unwrap_or_default();
        let is_colour =
            value.starts_with('#') && value.bytes().skip(1).all(|b| b.is_ascii_hexdigit());
        self.out.markup("<div class=color>");
        if is_colour {
            self.out
                .markup("<svg viewBox=\"0 0 1 1\" aria-hidden=true><path d=\"M0 0h1v1H0z\"");
            self.out.attribute("fill", value).markup("/></svg>");
        }
        self.out.text(element.text("name").unwrap_or_default());
        self.out
            .markup(" <code>")
            .text(value)
            .markup("</code></div>\n");
    }

    /// Writes an HTML element with the attributes that it may have (R3).
    pub(super) fn html_element(&mut self, name: &'static str, element: &Element) {
        match name {
            "a" => return self.link(element.text("href").unwrap_or("#"), &element.children),
            "img" => return self.html_image(element),
            "iframe" => return self.html_frame(element),
            "br" | "wbr" | "hr" | "col" => {
                self.out.markup("<").markup(name);
                self.attributes(name, element);
                self.out.markup(">");
                return;
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                let level = name.as_bytes()[1] - b'0';
                return self.heading(level, element.text("id"), &element.children);
            }
            _ => {}
        }
        self.out.markup("<").markup(name);
        self.attributes(name, element);
        if name == "video" {
            if let Some(src) = element.text("src") {
                self.href("src", src);
            }
            self.out.markup(" preload=metadata");
        }
        self.out.markup(">");
        self.nodes(&element.children);
        self.out.markup("</").markup(name).markup(">");
    }

    fn attributes(&mut self, name: &'static str, element: &Element) {
        let own = ATTRIBUTES.iter().find(|(element, _)| *element == name);
        let own = own.map_or(&[][..], |(_, attributes)| attributes);
        for allowed in GLOBAL_ATTRIBUTES.iter().chain(own) {
            // JSX spells some of them in its own way: `colSpan`.
            let found = element
                .attributes
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(allowed));
            match found.map(|(_, value)| value) {
                Some(Value::Text(value)) if *allowed == "id" => {
                    let id = self.anchor(value);
                    self.out.attribute(allowed, &id);
                }
                Some(Value::Text(value)) => {
                    self.out.attribute(allowed, value);
                }
                Some(Value::Boolean(true)) => {
                    self.out.attribute(allowed, "");
                }
                _ => {}
            }
        }
        // Pages show one picture in light and another in dark by these class names.
        match element.text("className").or_else(|| element.text("class")) {
            Some(class) if class.contains("dark:hidden") => {
                self.out.attribute("class", "only-light");
            }
            Some(class) if class.contains("dark:block") => {
                self.out.attribute("class", "only-dark");
            }
            _ => {}
        }
    }

    fn html_image(&mut self, element: &Element) {
        let numeric = |name| element.text(name).filter(|n| n.parse::<u32>().is_ok());
        let mut more: Vec<(&'static str, &str)> = Vec::new();
        more.extend(numeric("width").map(|n| ("width", n)));
        more.extend(numeric("height").map(|n| ("height", n)));
        match element.text("className").or_else(|| element.text("class")) {
            Some(class) if class.contains("dark:hidden") => more.push(("class", "only-light")),
            Some(class) if class.contains("dark:block") => more.push(("class", "only-dark")),
            _ => {}
        }
        let src = element.text("src").unwrap_or_default();
        self.image(src, element.text("alt").unwrap_or_default(), &more);
    }

    /// A frame is shown for hosts of a list, without access to anything; else a link to it is.
    fn html_frame(&mut self, element: &Element) {
        let src = element.text("src").unwrap_or_default();
        let title = element.text("title").unwrap_or("Embedded page");
        let Target::Elsewhere(url) = self.map.resolve(self.file, src) else {
            return;
        };
        let host = url.strip_prefix("https://").map(|rest| {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            &rest[..end]
        });
        if !host.is_some_and(|host| FRAME_HOSTS.contains(&host)) {
            return self.link(&url, &[Node::Text(title.to_owned())]);
        }
        self.out.markup(
            "<iframe loading=lazy allowfullscreen sandbox=\"allow-scripts allow-same-origin allow-presentation\"",
        );
        self.out.attribute("src", &url).attribute("title", title);
        self.out.markup("></iframe>\n");
    }
}

/// Returns the sources from which a page may embed frames, for its policy.
#[must_use]
pub fn frame_sources() -> String {
    let sources = FRAME_HOSTS.map(|host| format!("https://{host}"));
    sources.join(" ")
}
