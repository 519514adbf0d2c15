//! Stylesheets, pictures and icons of a release.

use super::*;

#[test]
fn stylesheets_of_authors_apply_to_every_page_and_load_files_of_the_release() {
    let built = built(&[
        ("index.mdx", "<div className=\"hero top\">Text.</div>"),
        ("guides/a.mdx", "Text."),
        (
            "style.css",
            ".hero { background: url(images/x.svg) }\n@import url(https://fonts.test/x);\n",
        ),
        ("theme/more.css", ".top { color: red }"),
        (".waypostignore", "drafts\n"),
        ("drafts/x.css", ".no { color: red }"),
        ("images/x.svg", "<svg/>"),
    ]);
    let files = || built.release.files().map(|(path, _)| path.to_string());
    let authors: Vec<_> = files().filter(|path| path.contains("/authors.")).collect();
    let sheet = text(&built.release, &authors[0]);
    assert!(sheet.contains("url(../images/x.svg)"), "{sheet}");
    assert!(
        sheet.contains(".x-top:where(main,main *){color:red}"),
        "{sheet}"
    );
    assert!(
        !sheet.contains("fonts.test") && !sheet.contains(".no"),
        "{sheet}"
    );
    assert!(files().any(|path| path == "assets/images/x.svg"));
    for page in ["pages/index.html", "pages/guides/a.html", "404.html"] {
        let name = authors[0].strip_prefix("static/").unwrap();
        assert!(text(&built.release, page).contains(name), "{page}");
    }
    let index = text(&built.release, "pages/index.html");
    assert!(index.contains("class=\"hero x-top\""), "{index}");
    let found = built.report.diagnostics.iter();
    let found: Vec<_> = found
        .filter(|found| found.rule == "stylesheet")
        .map(ToString::to_string)
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("style.css:2:"), "{found:?}");
}

/// Returns a PNG of random pixels, which no encoding makes much smaller.
fn noisy_png(width: u32, height: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let pixels = image::GrayImage::from_fn(width, height, |_, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        image::Luma([state.to_be_bytes()[0]])
    });
    let mut out = std::io::Cursor::new(Vec::new());
    pixels.write_to(&mut out, image::ImageFormat::Png).unwrap();
    out.into_inner()
}

#[test]
fn a_large_picture_and_a_heavy_icon_have_smaller_forms_that_are_made_once() {
    let config = CONFIG.replacen('{', "{\"favicon\": \"/icon.png\", ", 1);
    let tree = |page: &str| {
        let file = |path: &str, bytes: Vec<u8>| (TreePath::parse(path).unwrap(), bytes.into());
        let files = [
            file("docs.json", config.clone().into_bytes()),
            file("index.mdx", format!("![](/wide.png) {page}").into_bytes()),
            file("guides/a.mdx", b"![](/copy.png)".to_vec()),
            file("wide.png", noisy_png(3_000, 100)),
            file("copy.png", noisy_png(3_000, 100)),
            file("unused.png", noisy_png(2_999, 100)),
            file("icon.png", noisy_png(200, 200)),
        ];
        Tree::from_files(files, [])
    };
    let first = of_tree(tree("One."));
    let forms: Vec<(String, _)> = first
        .release
        .files()
        .filter(|(path, _)| path.as_str().contains("/image."))
        .map(|(path, file)| (path.to_string(), file.clone()))
        .collect();
    assert_eq!(
        forms.len(),
        2,
        "one of two equal pictures, one of the icon: {forms:?}"
    );
    let (path, wide) = forms
        .iter()
        .find(|(path, _)| path.ends_with(".webp"))
        .unwrap();
    assert_eq!(&*wide.media_type, "image/webp");
    let original = first.release.file("assets/wide.png").unwrap();
    assert!(wide.bytes.len() * 2 < original.bytes.len() * 3 / 2);
    let index = text(&first.release, "pages/index.html");
    assert!(
        index.contains(path.strip_prefix("static/").unwrap()),
        "{index}"
    );
    let (icon, _) = forms
        .iter()
        .find(|(path, _)| path.ends_with(".png"))
        .unwrap();
    let link = format!(
        "<link rel=icon href=\"{}\"",
        icon.strip_prefix("static/").unwrap()
    );
    assert!(index.contains(&link), "{index}");

    // The next build takes the forms from the release before it.
    let taken = std::sync::Mutex::new(Vec::new());
    let take = |item: &Item| {
        let (path, file) = first
            .release
            .files()
            .find(|(_, file)| file.digest() == item.digest)?;
        taken.lock().unwrap().push(path.to_string());
        Some(file.clone())
    };
    let inventory = first.release.inventory();
    let previous = Previous {
        release: Some(PreviousRelease {
            inventory,
            file: &take,
        }),
        ..Previous::default()
    };
    let again = build_after(&input(tree("Two.")), &Options::default(), &previous);
    assert_eq!(again.release.id(), of_tree(tree("Two.")).release.id());
    let taken = taken.into_inner().unwrap();
    assert!(
        forms.iter().all(|(path, _)| taken.contains(path)),
        "{taken:?}"
    );
}

#[test]
fn a_page_has_a_sheet_of_the_utility_classes_that_it_uses() {
    let page = "<div className=\"flex md:p-4 unknown\" style={{gap: '1px'}}>Text.</div>";
    let built = built(&[("index.mdx", page), ("guides/a.mdx", "Text.")]);
    let files = || built.release.files().map(|(path, _)| path.to_string());
    let sheets: Vec<_> = files()
        .filter(|path| path.starts_with("static/_waypost/page."))
        .collect();
    let sheet = text(&built.release, &sheets[0]);
    assert!(
        sheet.starts_with("@layer utilities{.flex{display:flex}"),
        "{sheet}"
    );
    assert!(
        sheet.contains("@media (min-width:768px){.md\\:p-4{padding:1rem}}"),
        "{sheet}"
    );
    assert!(!sheet.contains("unknown"), "{sheet}");
    assert!(!text(&built.release, "pages/guides/a.html").contains("page."));

    // A later process takes the page with its sheet.
    let articles = Articles::from_bytes(&built.articles.to_bytes()).unwrap();
    assert_eq!(articles.len(), 2);
    let file =
        |(path, text): (&str, &str)| (TreePath::parse(path).unwrap(), text.to_owned().into());
    let files = [
        ("docs.json", CONFIG),
        ("index.mdx", page),
        ("guides/a.mdx", "Text."),
    ];
    let previous = Previous {
        articles: articles.clone(),
        ..Previous::default()
    };
    let tree = Tree::from_files(files.map(file), []);
    let again = build_after(&input(tree), &Options::default(), &previous);
    assert_eq!(again.release.id(), built.release.id());
    assert_eq!(again.articles.shared(&articles), 2);
}

#[test]
fn a_page_frames_the_hosts_of_the_service_and_links_others() {
    let page = "<iframe src=\"https://play.acme.test/x\" title=\"Play\"></iframe>";
    let files = [("docs.json", CONFIG), ("index.mdx", page)];
    let files = files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_owned().into()));
    let input = input(Tree::from_files(files, []));
    let options = Options {
        frames: Frames::new([FrameHost::parse("*.acme.test").unwrap()]),
        ..Options::default()
    };
    let index = |built: Built| text(&built.release, "pages/index.html");
    let default = build(&input, &Options::default());
    let articles = default.articles.clone();
    assert!(index(default).contains("<a href=\"https://play.acme.test/x\""));
    // Articles that were made with another list are not reused.
    let previous = Previous {
        articles,
        release: None,
    };
    let framed = build_after(&input, &options, &previous);
    assert!(index(framed).contains("<iframe "));
}

#[test]
fn icons_of_the_navigation_are_written_or_included_or_reported() {
    let config = r#"{"name": "Acme", "icons": {"library": "lucide"}, "navigation": {"groups": [
{"group": "A", "icon": "rockett", "pages": ["index"]},
{"group": "B", "icon": "bell", "pages": [{"group": "C", "icon": "/images/c.svg", "pages": ["b"]}]},
{"group": "D", "icon": "/images/none.svg", "pages": ["d"]}]}}"#;
    let files = [
        ("docs.json", config),
        ("index.mdx", "---\nicon: hosue\ncanonical: nowhere\n---\nx"),
        ("b.mdx", "---\nicon: \"🚀\"\n---\nx"),
        ("d.mdx", "x"),
        ("images/c.svg", "<svg/>"),
    ];
    let files = files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_owned().into()));
    let Built {
        release, report, ..
    } = of_tree(Tree::from_files(files, []));
    let html = text(&release, "pages/b.html");
    // Lucide icons are stroked.
    assert!(html.contains("fill=none stroke=currentColor") && html.contains("🚀"));
    assert!(html.contains("src=\"images/c.svg\"") && release.file("assets/images/c.svg").is_some());
    let mut reported: Vec<_> = report.diagnostics.iter().map(ToString::to_string).collect();
    reported.sort();
    assert_eq!(
        reported,
        [
            "docs.json:2:24: warning[icon]: there is no icon `rockett` (did you mean `rocket`?)",
            "docs.json:4:24: warning[icon]: there is no file `/images/none.svg`",
            "index.mdx: warning[canonical]: `canonical` is `nowhere`, neither a page of this site nor a URL (write a path such as `/guides/start`, or `https://` and the rest)",
            "index.mdx: warning[icon]: there is no icon `hosue` (did you mean `house`?)",
        ]
    );
}

#[test]
fn files_that_the_layout_links_are_in_the_release() {
    let config = r#"{"name": "Acme", "banner": {"content": "[New](/files/banner.pdf)"},
        "navbar": {"links": [{"label": "N", "href": "/files/navbar.pdf"}], "primary": {"type": "button", "label": "P", "href": "/files/primary.pdf"}},
        "footer": {"socials": {"x": "/files/social.pdf"}, "links": [{"header": "H", "items": [{"label": "F", "href": "/files/footer.pdf"}]}]},
        "navigation": {"global": {"anchors": [{"anchor": "G", "href": "/files/global.pdf"}]}, "languages": [
            {"language": "en", "tabs": [{"tab": "T", "pages": ["index"]}, {"tab": "D", "href": "/files/tab.pdf"}]},
            {"language": "fr", "banner": {"content": "[Neuf](/files/neuf.pdf)"}, "pages": ["fr/index"]}]}}"#;
    let names = [
        "banner", "navbar", "primary", "social", "footer", "global", "tab", "neuf", "unused",
    ];
    let pdfs = names.map(|name| (format!("files/{name}.pdf"), "%PDF".to_owned()));
    let pages = ["index", "fr/index"].map(|page| (format!("{page}.mdx"), "Text.".to_owned()));
    let files = pdfs
        .into_iter()
        .chain(pages)
        .chain([("docs.json".to_owned(), config.to_owned())]);
    let files = files.map(|(path, text)| (TreePath::parse(&path).unwrap(), text.into()));
    let Built {
        release, report, ..
    } = of_tree(Tree::from_files(files, []));
    report.publishable().unwrap();
    let html = text(&release, "pages/index.html") + &text(&release, "pages/fr.html");
    for name in names {
        let is_linked = html.contains(&format!("files/{name}.pdf\""));
        assert_eq!(is_linked, name != "unused", "{name} in {html}");
        let is_there = release.file(&format!("assets/files/{name}.pdf")).is_some();
        assert_eq!(is_there, is_linked, "{name}");
    }
}

#[test]
fn an_icon_library_that_is_not_bundled_is_reported_once() {
    let config = r#"{"name": "Acme", "icons": {"library": "tabler"}, "navigation": {"groups": [
{"group": "A", "icon": "player-play", "pages": ["index"]},
{"group": "B", "icon": "brand-github", "pages": ["b"]}]}}"#;
    let files = [
        ("docs.json", config),
        (
            "index.mdx",
            "<Icon icon=\"stack-2\" /> <Icon icon=\"book-2\" />",
        ),
        ("b.mdx", "---\nicon: world\n---\nx"),
    ];
    let files = files.map(|(path, text)| (TreePath::parse(path).unwrap(), text.to_owned().into()));
    let Built {
        release, report, ..
    } = of_tree(Tree::from_files(files, []));
    let reported: Vec<_> = report.diagnostics.iter().map(ToString::to_string).collect();
    let once = "docs.json: warning[icon-library]: the icons of `tabler` are not bundled; an icon is shown only if Font Awesome or Lucide has one of the same name (write `fontawesome` or `lucide`, and add other icons as files of the site)";
    assert_eq!(reported, [once]);
    // Two groups, a page, and what the page shows.
    let html = text(&release, "pages/index.html");
    assert_eq!(html.matches("<svg class=\"icon\"").count(), 5);
}
