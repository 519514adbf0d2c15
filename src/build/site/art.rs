//! The pictures of authors that images are drawn with: logo, icon, background of previews.

use crate::diagnostic::Diagnostic;
use crate::docs::config::Scheme;
use crate::docs::{CONFIG, Docs};
use crate::render::layout::site_icon;
use crate::render::link::{Map, Target};
use crate::render::raster::{Art, Arts, Unfit};
use crate::source::Tree;

use super::files;

/// The rule for pictures that cannot be drawn.
const RULE: &str = "drawn-image";
/// The extensions of files that are drawn.
const EXTENSIONS: [&str; 4] = [".svg", ".png", ".jpg", ".jpeg"];

/// Reads pictures, and collects diagnostics.
struct Reader<'r> {
    tree: &'r Tree,
    docs: &'r Docs,
    map: &'r Map,
    found: Vec<Diagnostic>,
}

/// Reads the pictures. Reports each picture that cannot be drawn.
pub(super) fn read(tree: &Tree, docs: &Docs, map: &Map) -> (Arts, Vec<Diagnostic>) {
    let config = &docs.config;
    let mut reader = Reader {
        tree,
        docs,
        map,
        found: Vec::new(),
    };
    let is_dark = config.thumbnails.appearance == Scheme::Dark;
    let logo = config.logo.as_ref().and_then(|logo| match is_dark {
        true => reader.shown(&["logo.dark", "logo"], &logo.dark),
        false => reader.shown(&["logo.light", "logo"], &logo.light),
    });
    let icon = match &config.favicon {
        Some(icon) => reader.shown(&["favicon.light", "favicon"], &icon.light),
        None => logo.clone().filter(|_| site_icon(docs, map).is_some()),
    };
    let background = config.thumbnails.background.as_deref();
    let arts = Arts {
        logo,
        icon,
        background: background.and_then(|written| reader.background(written)),
    };
    (arts, reader.found)
}

// === impl Reader ===

impl Reader<'_> {
    /// Reads a picture that pages show. A file of another type, such as `.ico`, is no mistake.
    fn shown(&mut self, keys: &[&str], written: &str) -> Option<Art> {
        let path = self.file(written)?;
        let lower = path.to_ascii_lowercase();
        let is_drawn = EXTENSIONS.iter().any(|end| lower.ends_with(end));
        is_drawn.then(|| self.art(keys, &path)).flatten()
    }

    /// Reads the background of previews, which has no other use.
    fn background(&mut self, written: &str) -> Option<Art> {
        let keys = ["thumbnails.background"];
        match self.file(written) {
            Some(path) => self.art(&keys, &path),
            None => {
                let why = format!("`{written}`, which is not a file of this site");
                self.report(&keys, &why);
                None
            }
        }
    }

    /// Returns the file of the repository that a setting names.
    fn file(&self, written: &str) -> Option<Box<str>> {
        match self.map.resolve(CONFIG, written) {
            Target::Asset(path) => Some(path),
            _ => None,
        }
    }

    fn art(&mut self, keys: &[&str], path: &str) -> Option<Art> {
        let read = match files::read(self.tree, path) {
            Some((bytes, _)) => Art::read(path, bytes),
            None => Err(Unfit::Unknown),
        };
        read.inspect_err(|unfit| {
            let why = format!("`{path}`, which is not drawn in previews and icons: {unfit}");
            self.report(keys, &why);
        })
        .ok()
    }

    /// Reports the value of the first of some keys that is set.
    fn report(&mut self, keys: &[&str], why: &str) {
        let pictures = &self.docs.pictures;
        let place = |key: &&str| pictures.iter().find(|picture| picture.key == *key);
        let warning =
            |file: &str, key: &str| Diagnostic::warning(RULE, file, format!("`{key}` is {why}"));
        self.found.push(match keys.iter().find_map(place) {
            Some(picture) => {
                let at = picture.location;
                warning(&picture.file, picture.key).at(at.line, at.column, at.length)
            }
            None => warning(CONFIG, keys[keys.len() - 1]),
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::build::{Built, Input, Options, Previous, PreviousRelease, build, build_after};
    use crate::release::{Item, Release};
    use crate::source::{Tree, TreePath};

    const ICON: &str = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 9 9'><path fill='#00f' d='M0 0h9v9z'/></svg>";
    const PAGES: [(&str, &str); 3] = [
        ("a.mdx", "---\ntitle: A\nthumbnail: true\n---\n"),
        ("b.mdx", "---\ntitle: B\n---\n"),
        ("c.mdx", "---\ntitle: C\n\"og:image\": /own.png\n---\n"),
    ];

    fn input(settings: &str, icon: &str) -> Input {
        let config = format!(
            r#"{{"name": "Acme", "favicon": "/icon.svg", {settings} "navigation": {{"tabs": [
                {{"tab": "Guides", "pages": ["a", "b"]}}, {{"tab": "API", "pages": ["c"]}}]}}}}"#
        );
        let path = |path: &str| TreePath::parse(path).unwrap();
        let pages = PAGES.map(|(at, text)| (path(at), text.to_owned().into()));
        let own = [
            (path("docs.json"), config.into()),
            (path("icon.svg"), icon.to_owned().into()),
            (path("own.png"), "no image".to_owned().into()),
            (path("back.webp"), "RIFF".to_owned().into()),
        ];
        let tree = Tree::from_files(own.into_iter().chain(pages), []);
        Input::read(tree, &Options::default())
    }

    fn built(settings: &str) -> Built {
        build(&input(settings, ICON), &Options::default())
    }

    /// Returns the paths of the drawn images of a kind.
    fn drawn(release: &Release, kind: &str) -> Vec<String> {
        let start = format!("static/_waypost/{kind}.");
        let paths = release.files().map(|(path, _)| path.to_string());
        paths
            .filter(|path| {
                path.starts_with(&start) && !path.ends_with(".br") && !path.ends_with(".gz")
            })
            .collect()
    }

    fn html(built: &Built, page: &str) -> String {
        let file = built.release.file(&format!("pages/{page}.html")).unwrap();
        String::from_utf8(file.bytes.to_vec()).unwrap()
    }

    /// Returns the path of the image that a page names.
    fn image(html: &str) -> &str {
        let (_, rest) = html.split_once("og:image\" content=\"").unwrap();
        let url = rest.split('"').next().unwrap();
        url.rsplit_once("_waypost/").map_or(url, |(_, name)| name)
    }

    #[test]
    fn parts_have_an_image_and_pages_that_ask_for_one() {
        let built = built("");
        let (a, b, c) = (html(&built, "a"), html(&built, "b"), html(&built, "c"));
        assert_ne!(image(&a), image(&b), "a page with its own");
        for html in [&a, &b] {
            let name = image(html);
            let path = format!("static/_waypost/{name}");
            let file = built
                .release
                .file(&path)
                .unwrap_or_else(|| panic!("{path}"));
            assert_eq!(&*file.media_type, "image/png");
            for tag in [
                "og:image:width\" content=\"1200\"",
                "og:image:height\" content=\"630\"",
                "summary_large_image",
            ] {
                assert!(html.contains(tag), "{tag}: {html}");
            }
        }
        assert!(image(&c).ends_with("/own.png"), "{c}");
        assert_eq!(
            drawn(&built.release, "preview").len(),
            3,
            "one for each tab, one for a page"
        );
    }

    #[test]
    fn each_page_has_an_image_if_the_site_says_so() {
        let built = built(r#""thumbnails": {"pages": true, "appearance": "dark"},"#);
        assert_ne!(image(&html(&built, "a")), image(&html(&built, "b")));
        assert_eq!(drawn(&built.release, "preview").len(), 5);
    }

    #[test]
    fn a_site_with_an_icon_has_icons_for_apps_and_a_manifest() {
        let built = built("");
        let html = html(&built, "a");
        let named = drawn(&built.release, "app");
        assert_eq!(
            named.iter().filter(|path| path.ends_with(".png")).count(),
            3,
            "{named:?}"
        );
        let manifest = named
            .iter()
            .find(|path| path.ends_with(".webmanifest"))
            .unwrap();
        let href = manifest.trim_start_matches("static/");
        assert!(
            html.contains(&format!(
                "<link rel=manifest crossorigin=use-credentials href=\"{href}\""
            )),
            "{html}"
        );
        assert!(
            html.contains("<link rel=apple-touch-icon href=\"_waypost/app."),
            "{html}"
        );
        assert_eq!(html.matches("<meta name=theme-color").count(), 2);
    }

    #[test]
    fn unchanged_images_are_taken_from_the_previous_release() {
        let first = built("");
        let taken = std::sync::Mutex::new(Vec::new());
        let take = |item: &Item| {
            let mut files = first.release.files();
            let (path, file) = files.find(|(_, file)| file.digest() == item.digest)?;
            taken.lock().unwrap().push(path.to_string());
            Some(file.clone())
        };
        let previous = Previous {
            release: Some(PreviousRelease {
                inventory: first.release.inventory(),
                file: &take,
            }),
            ..Previous::default()
        };
        let again = build_after(&input("", ICON), &Options::default(), &previous);
        assert_eq!(again.release.id(), first.release.id());
        let taken = taken.into_inner().unwrap();
        for kind in ["preview", "app"] {
            let images = drawn(&first.release, kind).into_iter();
            for image in images.filter(|path| path.ends_with(".png")) {
                assert!(taken.contains(&image), "{image}");
            }
        }
    }

    #[test]
    fn a_background_of_a_type_that_is_not_drawn_is_reported_with_its_line() {
        let settings = "\n\"thumbnails\": {\"background\": \"/back.webp\"},";
        let built = built(settings);
        let mut found = built.report.diagnostics.iter();
        let found = found.find(|found| found.rule == super::RULE).unwrap();
        assert_eq!(
            (&*found.file, found.location.unwrap().line),
            ("docs.json", 2)
        );
        let message = "`thumbnails.background` is `back.webp`, which is not drawn in previews and \
                       icons: it is not an SVG, PNG or JPEG file that can be read";
        assert_eq!(found.message, message);
    }

    #[test]
    fn a_picture_that_cannot_be_drawn_is_reported_by_a_check_too() {
        let hostile = ICON.replace("<path", "<filter id='f'/><path");
        let input = input(r#""thumbnails": {"background": "/none.png"},"#, &hostile);
        let built = build(&input, &Options::default());
        let found: Vec<_> = built
            .report
            .diagnostics
            .iter()
            .filter(|found| found.rule == super::RULE)
            .collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found.iter().any(|found| found.message.contains("filters")),
            "{found:?}"
        );
        assert!(
            found.iter().any(|found| found.message.contains("none.png")),
            "{found:?}"
        );
        let checked = super::super::check(&input.docs, &input.tree);
        assert_eq!(
            checked
                .iter()
                .filter(|found| found.rule == super::RULE)
                .count(),
            2
        );
        assert!(drawn(&built.release, "app").is_empty());
    }
}
