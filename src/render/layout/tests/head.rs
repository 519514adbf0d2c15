//! The head of a page: its tags, its linked data, and what search engines get.

use super::*;

#[test]
fn tags_of_a_page_replace_those_of_the_site() {
    let config = r#""description": "About", "seo": {"metatags": {"og:site_name": "Acme docs", "twitter:card": "summary", "author": "A \"B\"", "og:image": "/s.png", "canonical": "https://x.test"},
        "paths": [{"path": "/guides", "metatags": {"author": "C"}}]}, "navigation": {"pages": ["a", "guides/b", "c"]}"#;
    let b = "---\ntitle: B\ndescription: Of b\n'og:title': Other\n'og:image': ./b.png\n'twitter:site': '@acme'\n---\n";
    let c = "---\n'og:image': javascript:alert(1)\n---\n";
    let (docs, mut map) = docs(config, &[("a", ""), ("guides/b", b), ("c", c)]);
    for image in ["s.png", "guides/b.png"] {
        map.assets.insert(image.into(), Asset::default());
    }
    let placeholder = crate::discovery::BASE_URL_PLACEHOLDER;
    let image =
        |path: &str| format!("<meta property=\"og:image\" content=\"{placeholder}/{path}\">");
    let html = page(&docs, &map, "a");
    shows(
        &html,
        &[
            "<meta property=\"og:site_name\" content=\"Acme docs\">",
            "<meta name=\"author\" content=\"A &quot;B&quot;\">",
            "<meta name=\"twitter:card\" content=\"summary\">",
            "<meta property=\"og:type\" content=\"website\">",
            &format!("<meta property=\"og:url\" content=\"{placeholder}/a\">"),
            &image("s.png"),
        ],
    );
    assert_eq!(html.matches("twitter:card").count(), 1);
    assert!(!html.contains("canonical"), "the response names it");
    let html = page(&docs, &map, "guides/b");
    shows(
        &html,
        &[
            "<meta name=\"author\" content=\"C\">",
            "<meta property=\"og:title\" content=\"Other\">",
            "<meta property=\"og:description\" content=\"Of b\">",
            "<meta name=\"twitter:site\" content=\"@acme\">",
            &image("guides/b.png"),
        ],
    );
    assert!(!html.contains("s.png"));
    shows(&page(&docs, &map, "c"), &[&image("s.png")]);
    let missing = missing_images(&docs, &map);
    assert_eq!(missing.len(), 1);
    assert_eq!(&*missing[0].file, "c.mdx");
    let files: Vec<_> = linked_files(&docs, &map).into_iter().collect();
    assert_eq!(files, ["guides/b.png".into(), "s.png".into()]);
    // A page that is shown at any path has no address of its own.
    let assets = Assets::new(&docs, "");
    assert!(
        !Layout::new(&docs, &map, &assets)
            .not_found(None)
            .contains("og:url")
    );
}

#[test]
fn search_engines_find_pages_as_seo_says() {
    let robots = |seo: &str, path: &str| {
        let config = format!(r#""seo": {seo}, "navigation": {{"pages": ["a", "b", "c"]}}"#);
        let pages = [
            ("a", ""),
            ("b", "---\nhidden: true\n---\n"),
            ("c", "---\nnoindex: true\n---\n"),
        ];
        let (docs, map) = docs(&config, &pages);
        let html = page(&docs, &map, path);
        let (_, rest) = html
            .split_once("<meta name=robots content=")
            .or_else(|| html.split_once("<meta name=\"robots\" content="))?;
        Some(rest.split_once('>').unwrap().0.to_owned())
    };
    let none = Some("noindex".to_owned());
    assert_eq!(robots("{}", "a"), None);
    assert_eq!(robots("{}", "b"), none);
    assert_eq!(robots(r#"{"indexing": "all"}"#, "b"), None);
    assert_eq!(robots(r#"{"indexing": "all"}"#, "c"), none);
    let tagged = |content: &str| format!(r#"{{"metatags": {{"robots": "{content}"}}}}"#);
    assert_eq!(robots(&tagged("noindex"), "a"), none);
    assert_eq!(
        robots(&tagged("max-snippet:50"), "a").as_deref(),
        Some("\"max-snippet:50\"")
    );
    assert_eq!(robots(&tagged("index"), "c"), none);
}

#[test]
fn linked_data_say_what_a_page_is_and_where() {
    let (docs, map) = docs(
        r#""seo": {"organization": {"name": "Acme </script>", "url": "https://acme.test"}}, "navigation": {"groups": [{"group": "Guides", "root": "a", "pages": ["b", "c"]}]}"#,
        &[
            ("a", ""),
            (
                "b",
                "---\ntitle: \"</script><b>\"\ndescription: Of b\n---\n",
            ),
            ("c", "---\nnoindex: true\n---\n"),
        ],
    );
    let html = page(&docs, &map, "b");
    let (_, data) = html
        .split_once("<script type=\"application/ld+json\">")
        .unwrap();
    let (data, _) = data.split_once("</script>").unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let placeholder = crate::discovery::BASE_URL_PLACEHOLDER;
    let [article, breadcrumb] = &data["@graph"].as_array().unwrap()[..] else {
        panic!("{data}");
    };
    assert_eq!(article["headline"], "</script><b>");
    assert_eq!(article["description"], "Of b");
    assert_eq!(article["publisher"]["name"], "Acme </script>");
    assert_eq!(article["isPartOf"]["name"], "Acme");
    let items = breadcrumb["itemListElement"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["name"]), (2, &"Guides".into()));
    assert_eq!(items[0]["item"], format!("{placeholder}/a"));
    assert_eq!(items[1]["item"], format!("{placeholder}/b"));
    assert!(!page(&docs, &map, "c").contains("ld+json"));
}
