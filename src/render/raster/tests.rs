//! Drawn images: their size and text, and which images of authors are refused.

use std::io::Cursor;

use super::app::Icons;
use super::preview::{Colours, SIZE, Style, Texts};
use super::text::{Setting, Weight, drawable};
use super::*;

const MARK: &str = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'><path fill='#0b6e4f' d='M4 6h18l6 4-6 4H4z'/></svg>";

fn art(svg: &str) -> Result<Art, Unfit> {
    Art::read("logo.svg", svg.to_owned().into())
}

fn colours() -> Colours {
    Colours {
        background: [0xff; 3],
        strong: "#0d1411".into(),
        quiet: "#55625c".into(),
        accent: "#0b6e4f".into(),
        tint: "#ecf4f1".into(),
        brand: "#0b6e4f".into(),
    }
}

fn style(name: &str, logo: Option<&Art>) -> Style {
    Style::new(colours(), name, logo, None, None)
}

fn texts(title: &str) -> Texts<'_> {
    Texts {
        section: Some("Guides"),
        title,
        description: Some("From an empty machine to a site."),
    }
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let image = image::RgbaImage::from_pixel(width, height, image::Rgba([200, 30, 30, 255]));
    let mut out = Cursor::new(Vec::new());
    image.write_to(&mut out, image::ImageFormat::Png).unwrap();
    out.into_inner()
}

/// Returns the channels of a pixel of a PNG.
fn pixel(png: &[u8], x: u32, y: u32) -> [u8; 4] {
    let image = image::load_from_memory(png).unwrap().into_rgba8();
    image.get_pixel(x, y).0
}

#[test]
fn a_preview_is_a_png_with_the_same_bytes_each_time() {
    let logo = art(MARK).unwrap();
    let preview = style("Acme", Some(&logo))
        .preview(texts("Quickstart"))
        .unwrap();
    let drawn = preview.make().unwrap();
    let size = imagesize::blob_size(&drawn).unwrap();
    assert_eq!(
        (size.width, size.height),
        (SIZE.0 as usize, SIZE.1 as usize)
    );
    assert!(drawn.len() < 60 << 10, "{} bytes", drawn.len());
    assert_eq!(preview.make().unwrap(), drawn);
    // A release must have the same bytes on every machine. Where the drawing is changed on
    // purpose, `VERSION` changes too, and this digest.
    assert_eq!(
        Digest::of(&drawn).to_string(),
        "8c7d63d43d749ef2efe8f0e781cff7046e60473751a0520776d7f6af2028a574"
    );
    // The line at the bottom has the colour of the brand, and the title is drawn.
    assert_eq!(pixel(&drawn, 600, 625), [0x0b, 0x6e, 0x4f, 0xff]);
    let image = image::load_from_memory(&drawn).unwrap().into_rgb8();
    let is_ink = |pixel: &image::Rgb<u8>| pixel.0 == [0x0d, 0x14, 0x11];
    assert!(image.pixels().filter(|pixel| is_ink(pixel)).count() > 3000);
}

#[test]
fn the_name_of_an_image_changes_with_its_inputs_only() {
    let (logo, other) = (art(MARK).unwrap(), art(&MARK.replace("18", "17")).unwrap());
    let path = |logo, title| {
        style("Acme", Some(logo))
            .preview(texts(title))
            .unwrap()
            .path
    };
    let first = path(&logo, "Start");
    assert!(
        first.starts_with("_waypost/preview.") && first.ends_with(".png"),
        "{first}"
    );
    assert_eq!(path(&logo, "Start"), first);
    assert_ne!(path(&logo, "Begin"), first);
    assert_ne!(path(&other, "Start"), first);
}

#[test]
fn text_in_other_scripts_is_not_drawn_and_signs_are_left_out() {
    assert_eq!(drawable("Быстрый старт").as_deref(), Some("Быстрый старт"));
    assert_eq!(
        drawable(" Łódź\n và  Việt 🚀").as_deref(),
        Some("Łódź và Việt")
    );
    for text in ["快速开始", "Start 快", "البدء", "クイック", "🚀", " "] {
        assert_eq!(drawable(text), None, "{text}");
    }
    // The logo stays; without one there is nothing to show.
    let logo = art(MARK).unwrap();
    assert!(
        style("极", Some(&logo))
            .preview(texts("快速开始"))
            .is_some()
    );
    assert!(style("极", None).preview(texts("快速开始")).is_none());
}

#[test]
fn a_text_that_does_not_fit_is_cut_between_words() {
    let setting = Setting::new(Weight::SemiBold, 60.0, 0.0);
    let text = "One two three four five six seven eight nine ten eleven twelve, thirteen";
    let (_, is_cut) = setting.broken(text, 1040.0, 3);
    assert!(!is_cut);
    let (lines, _) = setting.broken(text, 600.0, 2);
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[1].ends_with('…') && !lines[1].contains(",…"),
        "{lines:?}"
    );
    let kept = lines.join(" ");
    assert!(text.starts_with(kept.trim_end_matches('…')), "{kept}");
    let (long, _) = setting.broken(&"a".repeat(500), 600.0, 2);
    assert_eq!(long.len(), 1);
    assert!(long[0].ends_with('…') && long[0].len() < 100, "{long:?}");
}

#[test]
fn a_drawing_that_would_take_long_is_refused_before_it_is_drawn() {
    let svg = |inside: &str| {
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' viewBox='0 0 9 9'>{inside}</svg>"
        )
    };
    let nested = |levels: usize, tag: &str| {
        svg(&format!(
            "{}<path d='M0 0h9v9z'/>{}",
            format!("<{tag}>").repeat(levels),
            "</g>".repeat(levels)
        ))
    };
    let copies: String = (0..20)
        .map(|n| {
            format!(
                "<g id='a{}'><use href='#a{n}'/><use href='#a{n}'/></g>",
                n + 1
            )
        })
        .collect();
    let clips = "<clipPath id='c'><path d='M0 0h9v9z'/></clipPath>".to_owned()
        + &"<g clip-path='url(#c)'><path d='M0 0h9v9z'/></g>".repeat(40);
    // Reading it makes a copy of each path of the marker for each point.
    let marked = format!(
        "<marker id='m'>{}</marker><path marker-mid='url(#m)' d='M0 0{}'/>",
        "<path d='M0 0h9'/>".repeat(1500),
        "l1 1".repeat(18_000)
    );
    // Reading it compares each rule with each chain of elements around each path.
    let rules = |count: usize, rule: &str| {
        let rules: String = (0..count)
            .map(|n| rule.replace('N', &n.to_string()))
            .collect();
        let (open, close) = ("<g>".repeat(28), "</g>".repeat(28));
        let paths = "<path d='M0 0h9'/>".repeat(2000);
        svg(&format!("<style>{rules}</style>{open}{paths}{close}"))
    };
    let long = format!(
        "<path id='a0' d='M0 0{}'/>{}",
        "l1 1".repeat(18_000),
        copies.replace("20", "7")
    );
    // A mask is made again for each element.
    let masks = "<mask id='m'>".to_owned()
        + &"<path d='M0 0h9v9z'/>".repeat(1000)
        + "</mask>"
        + &"<path mask='url(#m)' d='M0 0h9v9z'/>".repeat(1000);
    let chain: String = (0..6)
        .map(|n| {
            let path = format!("<path class='m{}' d='M0 0h9v9z'/>", n + 1);
            format!("<mask id='m{n}'>{}</mask>", path.repeat(20))
        })
        .collect();
    let sheet: String = (0..6)
        .map(|n| format!(".m{n}{{mask:url(#m{n})}}"))
        .collect();
    // Lines that cross each other in each row of pixels, and large areas above each other.
    let zigzag: String = (0..18_000)
        .map(|n| format!("L{} {}", n * 7 % 9, n % 2 * 9))
        .collect();
    let zigzag =
        |paint: &str, end: usize| svg(&format!("<path {paint} d='M0 0{}'/>", &zigzag[..end]));
    let gradient =
        "<radialGradient id='r'><stop stop-color='red'/><stop offset='1'/></radialGradient>";
    let areas = |count: usize| {
        let area = "<path fill='url(#r)' d='M0 0h9v9H0z'/>".repeat(count);
        svg(&format!("{gradient}{area}"))
    };
    for (svg, unfit) in [
        (zigzag("", 70_000), Unfit::Complex),
        (zigzag("fill='none' stroke='red'", 40_000), Unfit::Complex),
        (areas(1900), Unfit::Complex),
        (svg(&marked), Unfit::Refused),
        (rules(200, ".aN * * path{fill:red}"), Unfit::Complex),
        (rules(200, ".aN/* */path{fill:red}"), Unfit::Complex),
        (rules(4000, ".aN{fill:red}"), Unfit::Complex),
        (svg(&long), Unfit::Complex),
        (svg(&masks), Unfit::Complex),
        (
            svg(&format!(
                "<style>{sheet}</style>{chain}<path class='m0' d='M0 0h9v9z'/>"
            )),
            Unfit::Complex,
        ),
        (nested(40, "g"), Unfit::Complex),
        (nested(6, "g opacity='.5'"), Unfit::Complex),
        (svg(&copies), Unfit::Complex),
        (svg(&clips), Unfit::Complex),
        (
            svg(&format!("<text>{}</text>", "a".repeat(600))),
            Unfit::Complex,
        ),
        (svg("<filter id='f'/>"), Unfit::Refused),
        (svg("<pattern id='f'/>"), Unfit::Refused),
        (svg("<image href='/etc/passwd'/>"), Unfit::Refused),
        (
            svg("<path d='M0 0h9' stroke='red' stroke-dasharray='.0001'/>"),
            Unfit::Refused,
        ),
        (
            format!("<!DOCTYPE svg [<!ENTITY a 'b'>]>{}", svg("&a;")),
            Unfit::Refused,
        ),
        (svg(&" ".repeat(130 << 10)), Unfit::Large),
        (svg(&"<g/>".repeat(5000)), Unfit::Complex),
        ("<svg".to_owned(), Unfit::Unknown),
        (String::new(), Unfit::Unknown),
    ] {
        let read = art(&svg).map(|_| ());
        assert_eq!(read, Err(unfit), "{}", &svg[..svg.len().min(160)]);
    }
    assert!(art(&format!("<!DOCTYPE svg>{MARK}")).is_ok());
    assert!(art(&zigzag("fill='none' stroke='red'", 400)).is_ok());
    assert!(art(&areas(20)).is_ok());
    // A stylesheet and clips as drawing programs write them.
    assert!(art(&rules(60, ".clsN{fill:red;stroke:none}")).is_ok());
    let drawn = "<style>@media (prefers-color-scheme: dark){.a{fill:#fff}} svg g .b,.c{fill:red}</style>\
        <defs><clipPath id='c'><path id='p' d='M0 0h9v9z'/></clipPath></defs>\
        <g clip-path='url(#c)' class='a'><use xlink:href='#p'/><path class='b' d='M0 0h9v9z'/></g>";
    assert!(art(&svg(drawn)).is_ok());
}

#[test]
fn pictures_in_pixels_are_read_by_their_bytes_and_bounded() {
    let read = |path: &str, bytes: Vec<u8>| Art::read(path, bytes.into()).map(|_| ());
    assert_eq!(read("a.png", png(40, 20)), Ok(()));
    let mut large = png(40, 20);
    large[16..24].copy_from_slice(&[0, 0, 0x40, 0, 0, 0, 0x40, 0]);
    assert_eq!(read("a.png", large), Err(Unfit::Large));
    assert_eq!(read("a.png", b"GIF89a".to_vec()), Err(Unfit::Unknown));
    // A file that ends early has a size, but no pixels: the image is drawn without it.
    let cut = Art::read("a.png", png(400, 200)[..60].to_vec().into()).unwrap();
    assert!(
        style("Acme", Some(&cut))
            .preview(texts("Start"))
            .unwrap()
            .make()
            .is_some()
    );
}

#[test]
fn icons_of_apps_are_never_larger_than_their_picture() {
    let sizes = |art: &Art| {
        let icons = Icons::new(art, "Acme", [0xff; 3])?;
        Some(icons.images().map(|icon| icon.width).collect::<Vec<_>>())
    };
    let of_png = |side| Art::read("a.png", png(side, side).into()).unwrap();
    assert_eq!(sizes(&art(MARK).unwrap()), Some(vec![180, 192, 512]));
    assert_eq!(sizes(&of_png(200)), Some(vec![180, 192]));
    assert_eq!(sizes(&of_png(64)), None);
}

#[test]
fn the_icon_for_apples_systems_is_opaque_and_the_others_are_not() {
    let icons = Icons::new(&art(MARK).unwrap(), "Acme", [0xfe, 0xfd, 0xfc]).unwrap();
    let touch = icons.touch.make().unwrap();
    assert_eq!(pixel(&touch, 2, 2), [0xfe, 0xfd, 0xfc, 0xff]);
    let large = icons.sizes.last().unwrap().make().unwrap();
    assert_eq!(pixel(&large, 2, 2)[3], 0);
    assert_eq!(pixel(&large, 128, 160), [0x0b, 0x6e, 0x4f, 0xff]);
    let manifest: serde_json::Value = serde_json::from_slice(&icons.manifest.bytes).unwrap();
    assert_eq!(manifest["start_url"], "../");
    assert_eq!(manifest["theme_color"], "#fefdfc");
    for (named, drawn) in manifest["icons"]
        .as_array()
        .unwrap()
        .iter()
        .zip(&icons.sizes)
    {
        assert_eq!(
            format!("_waypost/{}", named["src"].as_str().unwrap()),
            *drawn.path
        );
        assert_eq!(named["sizes"], format!("{0}x{0}", drawn.width));
    }
}
