//! The footer of a page, and the links of header and footer.

use super::PageWriter;
use crate::docs::config::Link;

// === impl PageWriter ===

impl PageWriter<'_> {
    pub(super) fn bottom(&mut self) {
        self.out.markup("<footer class=bottom><div>");
        if let Some(footer) = self.layout.footer(self.beside) {
            for column in &footer.columns {
                self.out.markup("<div>");
                if let Some(header) = &column.header {
                    self.out.markup("<p>").text(header).markup("</p>");
                }
                self.out.markup("<ul>");
                for item in &column.items {
                    self.out.markup("<li>");
                    self.link(item, "<a");
                    self.out.markup("</li>");
                }
                self.out.markup("</ul></div>");
            }
            if !footer.socials.is_empty() {
                self.out.markup("<ul class=socials>");
                for (network, href) in &footer.socials {
                    self.out.markup("<li><a");
                    self.href_written(href);
                    self.out.markup(">").text(name(network)).markup("</a></li>");
                }
                self.out.markup("</ul>");
            }
        }
        self.out.markup("</div></footer>\n</body></html>\n");
    }

    pub(super) fn link(&mut self, link: &Link, open: &'static str) {
        self.out.markup(open);
        self.href_written(&link.href);
        self.out.markup(">");
        self.icon(link.icon.as_deref());
        let label = link.label.as_deref();
        let label = label.or_else(|| link.kind.as_deref().map(name));
        self.out.text(label.unwrap_or(&link.href)).markup("</a>");
    }
}

/// Returns the name of a network of `footer.socials`; for an unknown one, the key.
fn name(network: &str) -> &str {
    match network {
        "bluesky" => "Bluesky",
        "discord" => "Discord",
        "facebook" => "Facebook",
        "github" => "GitHub",
        "gitlab" => "GitLab",
        "hacker-news" => "Hacker News",
        "instagram" => "Instagram",
        "linkedin" => "LinkedIn",
        "mastodon" => "Mastodon",
        "medium" => "Medium",
        "podcast" => "Podcast",
        "reddit" => "Reddit",
        "slack" => "Slack",
        "telegram" => "Telegram",
        "threads" => "Threads",
        "twitter" => "Twitter",
        "website" | "earth-americas" => "Website",
        "x" | "x-twitter" => "X",
        "youtube" => "YouTube",
        other => other,
    }
}
