//! Tests of the HTML of pages, and of content that it must never have.

use super::*;
use crate::mdx;
use crate::render::image::{Form, Use};
use crate::render::link::{Asset, Start};

fn map() -> Map {
    Map {
        pages: ["", "guides/a", "guides/b", "api"].map(Into::into).into(),
        assets: [(
            "images/a.png".into(),
            Asset {
                size: Some((640, 480)),
                form: None,
            },
        )]
        .into(),
        ..Map::default()
    }
}

fn written(text: &str) -> HtmlPage {
    written_with(text, &map())
}

fn written_with(text: &str, map: &Map) -> HtmlPage {
    let read = mdx::read(&mdx::Source::new("guides/a.mdx", text), &|_| None).unwrap();
    write(
        "guides/a.mdx",
        Start::Page("guides/a"),
        &read.nodes,
        map,
        Messages::of("en"),
        true,
    )
}

#[track_caller]
fn check(text: &str, html: &str) {
    assert_eq!(written(text).html.as_str().trim(), html, "{text}");
}

#[test]
fn links_are_relative_and_images_have_sizes() {
    check(
        "[b](/guides/b.mdx#x) ![A](../images/a.png)",
        "<p><a href=\"b#x\">b</a> <img src=\"../images/a.png\" alt=\"A\" loading=lazy width=\"640\" height=\"480\"></p>",
    );
    let assets = written("![A](/images/a.png)").assets;
    assert_eq!(
        assets.into_iter().collect::<Vec<_>>(),
        ["images/a.png".into()]
    );
}

#[test]
fn headings_have_different_anchors() {
    let written = written("## Set up\n\n### Set up\n\n## Set up-2\n\n## Keys {#k}\n");
    let ids: Vec<_> = written.headings.iter().map(|h| &*h.id).collect();
    assert_eq!(ids, ["set-up", "set-up-2", "set-up-2-2", "k"]);
    assert!(written.html.as_str().starts_with(
        "<h2 id=\"set-up\">Set up<a class=anchor href=\"#set-up\" aria-label=\"Link to Set up\"></a></h2>"
    ));
}

#[test]
fn callouts_cards_and_steps_are_written_as_html() {
    check(
        "<Warning>Mind *this*.</Warning>",
        "<aside class=\"callout warning\" role=note><strong class=callout-title>Warning</strong><div><p>Mind <em>this</em>.</p>\n</div></aside>",
    );
    check(
        "> [!TIP]\n> So.",
        "<aside class=\"callout tip\" role=note><strong class=callout-title>Tip</strong><div><p>So.</p>\n</div></aside>",
    );
    check(
        "<Card title=\"B & C\" href=\"/guides/b\">Text</Card>",
        "<div class=\"card\"><p class=card-title><a href=\"b\">B &amp; C</a></p>\n<div><p>Text</p>\n</div></div>",
    );
    check(
        "<Steps>\n  <Step title=\"One\">Do.</Step>\n</Steps>",
        "<ol class=steps>\n<li class=step><p class=step-title id=\"one\">One</p><div><p>Do.</p>\n</div></li>\n</ol>",
    );
}

#[test]
fn code_has_highlighting_marked_lines_and_a_title() {
    let html = written("```rust title=\"a.rs\" {2}\nlet a = \"<b>\";\nlet c = 1;\n```").html;
    let html = html.as_str();
    assert!(html.contains("<figcaption>a.rs</figcaption>"), "{html}");
    assert!(
        html.contains("<span class=s>&quot;&lt;b&gt;&quot;</span>"),
        "{html}"
    );
    assert!(html.contains("<span class=\"line marked\">"), "{html}");
    let unknown = written("```nolang\n<b>\n```").html;
    assert!(unknown.as_str().contains("<code>&lt;b&gt;\n</code>"));
}

#[test]
fn formulas_are_mathml() {
    let html = written("$x^2$").html;
    assert!(
        html.as_str().contains("<math") && html.as_str().contains("<msup>"),
        "{html:?}"
    );
    let broken = written("$\\nosuch{x}$");
    assert!(broken.html.as_str().contains("<code>"), "{broken:?}");
}

#[test]
fn a_formula_passes_on_no_markup_of_its_author() {
    for tex in [
        "\\text{<script>alert(1)</script>}",
        "\\href{javascript:alert(1)}{x}",
        "<img src=x onerror=alert(1)>",
    ] {
        let html = written(&format!("$${tex}$$")).html.into_string();
        assert!(
            !html.contains("<script") && !html.contains("<img") && !html.contains(" href="),
            "{html}"
        );
    }
}

#[test]
fn a_page_runs_no_script_of_its_author() {
    let hostile = [
        "<script>alert(1)</script>",
        "<img src=\"x\" onerror=\"alert(1)\" />",
        "<div onClick={() => alert(1)} style={{background: 'url(javascript:alert(1))'}}>x</div>",
        "<a href=\"javascript:alert(1)\">x</a>",
        "<a href={\"java\\nscript:alert(1)\"}>x</a>",
        "[x](javascript:alert(1))",
        "[x](<java&#x73;cript:alert(1)>)",
        "<iframe src=\"javascript:alert(1)\"></iframe>",
        "<iframe src=\"https://evil.test/\"></iframe>",
        "<iframe srcdoc=\"<script>alert(1)</script>\"></iframe>",
        "<svg><script>alert(1)</script></svg>",
        "<svg onload=\"alert(1)\"><animate/><use href=\"https://evil.test/a.svg#x\"/><use xlinkHref=\"data:x#x\"/><use href=\"javascript:alert(1)#x\"/><set attributeName=\"href\"/></svg>",
        "<svg><foreignObject><div>x</div></foreignObject><image href=\"https://x.test\"/></svg>",
        "<svg><title><script>alert(1)</script></title></svg>",
        "<svg><path fill=\"url(javascript:alert(1))\" style=\"background:url(x)\"/></svg>",
        "<object data=\"x\"></object><embed src=\"x\"/>",
        "<form action=\"/login\"><input name=\"p\"/></form>",
        "<base href=\"https://evil.test/\"/>",
        "<meta http-equiv=\"refresh\" content=\"0;url=https://evil.test\"/>",
        "<link rel=\"stylesheet\" href=\"https://evil.test\"/>",
        "<style>body{display:none}</style>",
        "<Card title='\"><script>alert(1)</script>' href=\"data:text/html,x\"/>",
        "<Tooltip tip=\"<script>alert(1)</script>\">x</Tooltip>",
        "<video src=\"javascript:alert(1)\"></video>",
        "```<script>\nx\n```",
        "| <script>alert(1)</script> |\n|-|\n| x |",
        "<!-- --><script>alert(1)</script>",
        "{\"<script>alert(1)</script>\"}",
        "<p id=\"x\" dangerouslySetInnerHTML={{__html: '<script>'}} />",
    ];
    for text in hostile {
        let html = written(text).html.into_string();
        let lower = html.to_lowercase();
        for forbidden in [
            "<script",
            "<object",
            "<embed",
            "<form",
            "<base",
            "<meta",
            "<link",
            "<style",
            "<animate",
            "<use",
            "<set",
            "<foreignobject",
            "<image",
            "srcdoc=",
            "style=",
            "<iframe",
            "href=\"javascript",
            "src=\"javascript",
            "href=\"data",
            " onload=",
            " onerror=",
            " onclick=",
        ] {
            assert!(!lower.contains(forbidden), "{text}: {html}");
        }
    }
}

#[test]
fn frames_of_known_hosts_are_shown_in_a_sandbox() {
    let html =
        written("<iframe src=\"https://www.youtube.com/embed/x\" title=\"T\" onload=\"x\" />").html;
    assert!(
        html.as_str()
            .starts_with("<iframe loading=lazy allowfullscreen sandbox="),
        "{html:?}"
    );
    assert!(!html.as_str().contains("onload"));
}

#[test]
fn only_allowed_parts_of_an_svg_are_written() {
    check(
        "a <svg viewBox=\"0 0 1 1\" onload=\"x\"><title>Plan</title><path d=\"M0 0\" strokeWidth={2} /><image href=\"x\"/><a href=\"/b\">t</a></svg> b",
        "<p>a <svg viewBox=\"0 0 1 1\"><title>Plan</title><path d=\"M0 0\" stroke-width=\"2\"></path></svg> b</p>",
    );
}

#[test]
fn every_tag_that_is_opened_is_closed() {
    let page = "<Tabs><Tab title=\"a\">\n\n- x\n  - y **z\n\n</Tab></Tabs>\n\n<AccordionGroup>\n<Accordion title=\"q\">\n| a |\n|-|\n| `b` |\n</Accordion>\n</AccordionGroup>\n\n<ParamField path=\"id\" type=\"string\" required>The *id*.</ParamField>\n\ntext <b>bold *it</b> end*\n\n<div>\n\n<span>a\n\nb</span>\n\n</div>";
    let html = written(page).html.into_string();
    let mut open: Vec<&str> = Vec::new();
    for tag in html.split('<').skip(1) {
        let name = tag
            .trim_start_matches('/')
            .split([' ', '>', '\n'])
            .next()
            .unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "{html}");
        } else if !["br", "hr", "img", "input", "wbr", "col"].contains(&name) {
            open.push(name);
        }
    }
    assert!(open.is_empty(), "{open:?} {html}");
}

#[test]
fn an_image_has_both_sizes_and_names_its_smaller_form() {
    let mut map = map();
    let form = Form {
        path: "_waypost/image.0.webp".into(),
        width: 1504,
        used: Use::Picture,
    };
    let large = Asset {
        size: Some((3008, 1000)),
        form: Some(form),
    };
    map.assets.insert("images/b.png".into(), large);
    for (text, expected) in [
        (
            "<img src=\"/images/a.png\" width=\"320\" />",
            "height=\"240\" width=\"320\"",
        ),
        (
            "<img src=\"/images/a.png\" height=\"120\" />",
            "width=\"160\" height=\"120\"",
        ),
        (
            "<img src=\"/images/a.png\" width=\"1\" height=\"2\" />",
            "width=\"1\" height=\"2\"",
        ),
        ("![](/images/a.png)", "width=\"640\" height=\"480\">"),
        (
            "![](/images/b.png)",
            "width=\"3008\" height=\"1000\" srcset=\"../_waypost/image.0.webp 1504w, \
             ../images/b.png 3008w\" sizes=",
        ),
    ] {
        let written = written_with(text, &map);
        let html = written.html.as_str();
        assert!(html.contains(expected), "{html}");
    }
}

#[test]
fn an_unknown_icon_in_a_snippet_has_no_line_of_the_page() {
    let page = "import S from \"/s.mdx\"\n\n<S />\n\n<Card title=\"x\" icon=\"no-such\" />\n";
    let snippet = "\n\n\n\n<Icon icon=\"not-there\" />\n";
    let load = |path: &str| (path == "s.mdx").then(|| snippet.into());
    let read = mdx::read(&mdx::Source::new("guides/a.mdx", page), &load).unwrap();
    let map = map();
    let start = Start::Page("guides/a");
    let messages = Messages::of("en");
    let written = write("guides/a.mdx", start, &read.nodes, &map, messages, true);
    let told: Vec<_> = written.diagnostics.iter().map(|d| d.to_string()).collect();
    assert_eq!(
        told,
        [
            "guides/a.mdx: warning[icon]: there is no icon `not-there`",
            "guides/a.mdx:5:1: warning[icon]: there is no icon `no-such`"
        ]
    );
}
