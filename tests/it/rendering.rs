//! Pages as they are rendered, case by case: `tests/rendering/*.case`.
//!
//! A case is a page, then its HTML, then its Markdown, then its diagnostics, between lines `----`;
//! `== path ==` starts another file that it imports. `UPDATE_GOLDEN=1` writes all parts except the
//! page.
//!
//! For every page, a conforming HTML parser reads the same tree that was written, and finds no
//! error and no script.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use proptest::prelude::*;
use scraper::{Html, Node};
use waypost::diagnostic::Diagnostic;
use waypost::mdx;
use waypost::render::article::{self, Article, Source};
use waypost::render::link::{Asset, Map};

const DIRECTORY: &str = "tests/rendering";
const LINE: &str = "----\n";

/// Every element that may be in an article; SVG and MathML follow below.
const ELEMENTS: &str = "a abbr aside audio b bdi bdo blockquote br caption center cite code col colgroup dd del \
    details dfn div dl dt em figcaption figure h2 h3 h4 h5 h6 hr i iframe img input ins kbd label li link mark \
    ol p picture pre q rp rt ruby s samp section small source span strong sub summary sup svg table tbody td tfoot th \
    thead time tr u ul var video wbr \
    circle clipPath defs desc ellipse g line linearGradient marker mask path pattern polygon polyline \
    radialGradient rect stop symbol text title tspan use \
    math merror mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot mrow ms mspace msqrt \
    mstyle msub msubsup msup mtable mtd mtext mtr munder munderover";
/// Attributes whose value is an address.
const ADDRESSES: [&str; 4] = ["href", "src", "poster", "data"];

fn map() -> Map {
    let size = Some((640, 480));
    Map {
        pages: ["", "guides/a", "guides/b"].map(Into::into).into(),
        assets: ["images/a.png", "images/b.png"]
            .map(|path| (path.into(), Asset { size, form: None }))
            .into(),
        ..Map::default()
    }
}

fn render(text: &str, files: &BTreeMap<&str, &str>) -> Article {
    let source = mdx::Source {
        title: "Case",
        ..mdx::Source::new("guides/a.mdx", text)
    };
    let load = |path: &str| Some(Arc::from(*files.get(path)?));
    let read = mdx::read(&source, &load);
    let mut article = article::render(&Source::alone(&source, &read), &map());
    let warnings = read.map_or_else(
        |rejected| {
            vec![Diagnostic::warning(
                "page-limit",
                source.file,
                rejected.to_string(),
            )]
        },
        |page| page.diagnostics,
    );
    article.diagnostics.splice(0..0, warnings);
    article
}

/// Parses HTML as a browser does and asserts that it has no errors.
fn parsed(html: &str) -> Html {
    let parsed = Html::parse_fragment(html);
    assert!(parsed.errors.is_empty(), "{:?}\nin\n{html}", parsed.errors);
    parsed
}

/// Asserts the invariants R1, R2, R3 and R7 for an article.
fn is_harmless(html: &str) {
    let known: BTreeSet<&str> = ELEMENTS.split_whitespace().collect();
    for node in parsed(html).tree.values() {
        let Node::Element(element) = node else {
            continue;
        };
        // The parser puts these elements around a fragment.
        let name = element.name();
        assert!(
            known.contains(name) || ["html", "body"].contains(&name),
            "<{name}> in\n{html}"
        );
        for (attribute, value) in element.attrs() {
            let lower = attribute.to_ascii_lowercase();
            assert!(!lower.starts_with("on"), "{attribute} in\n{html}");
            assert!(
                !["srcdoc", "formaction", "action", "srcset"].contains(&&*lower),
                "{attribute} in\n{html}"
            );
            // Formulas are written by their converter, which has styles of its own.
            assert!(
                lower != "style" || name.starts_with('m'),
                "{attribute} in\n{html}"
            );
            if ADDRESSES.contains(&&*lower) {
                let scheme = value.split([':', '/', '?', '#']).next().unwrap_or_default();
                let has_scheme = value[scheme.len()..].starts_with(':');
                let may = ["http", "https", "mailto", "tel"].contains(&&*scheme.to_lowercase());
                assert!(!has_scheme || may, "{attribute}={value} in\n{html}");
            }
        }
    }
}

#[test]
fn a_page_is_rendered_as_its_case_expects() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut wrong = Vec::new();
    let mut paths: Vec<_> = fs::read_dir(DIRECTORY)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(
        paths.len() > 30,
        "the cases are not where they are looked for"
    );
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let input = &text[..text.find(LINE).unwrap()];
        let (page, rest) = input.split_at(input.find("\n== ").map_or(input.len(), |at| at + 1));
        let files = rest
            .split("== ")
            .skip(1)
            .map(|file| file.split_once(" ==\n").unwrap());
        let article = render(page, &files.collect());
        let html = article.html.as_str();
        is_harmless(html);
        let found: String = article
            .diagnostics
            .iter()
            .map(|found| format!("{found}\n"))
            .collect();
        let made = format!(
            "{input}{LINE}{}\n{LINE}{}{LINE}{found}",
            html.trim_end(),
            article.markdown
        );
        if update {
            fs::write(&path, made).unwrap();
        } else if made != text {
            wrong.push(format!("{}:\n{made}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Generates pieces of text that have a meaning in MDX, Markdown or HTML.
fn piece() -> impl Strategy<Value = String> {
    let fixed = prop::sample::select(vec![
        "<",
        ">",
        "/>",
        "</",
        "{",
        "}",
        "\"",
        "'",
        "`",
        "```\n",
        "$",
        "$$",
        "\\",
        "&",
        "&lt;",
        "&#106;",
        "[",
        "](",
        ")",
        "![",
        "*",
        "**",
        "_",
        "~~",
        "|",
        "|-|\n",
        "\n",
        "\n\n",
        "    ",
        "- ",
        "1. ",
        "> ",
        "# ",
        "[^1]",
        "[^1]: ",
        "<!--",
        "-->",
        "{/*",
        "*/}",
        "=",
        "javascript:",
        "data:",
        "https://a.b",
        "url(",
        "style",
        "href",
        "onload",
        "import A from '/a'\n",
        "export const a = ",
        "<Card title=\"",
        "<Card>",
        "</Card>",
        "<Note>",
        "</Note>",
        "<Tabs>",
        "</Tabs>",
        "<Tab title=\"a\">",
        "</Tab>",
        "<Steps>",
        "</Steps>",
        "<Step>",
        "</Step>",
        "<p>",
        "</p>",
        "<div>",
        "</div>",
        "<span>",
        "</span>",
        "<table>",
        "</table>",
        "<tr>",
        "</tr>",
        "<td>",
        "</td>",
        "<ul>",
        "</ul>",
        "<li>",
        "</li>",
        "<a href=\"/x\">",
        "</a>",
        "<svg>",
        "</svg>",
        "<path d=\"M0\"/>",
        "<title>",
        "</title>",
        "<text>",
        "</text>",
        "<script>",
        "</script>",
        "<details>",
        "<summary>",
        "</summary>",
        "</details>",
        "<dl>",
        "<dt>",
        "<dd>",
        "</dd>",
        "</dl>",
        "<img src=\"x\"/>",
        "<br/>",
        "<h2>",
        "</h2>",
        "<pre>",
        "</pre>",
        "<Tooltip tip=\"t\">",
        "</Tooltip>",
        "<Icon icon=\"x\"/>",
        "<View title=\"v\">",
        "</View>",
        "<Frame caption=\"[a](b)\">",
        "</Frame>",
        "<Tree>",
        "<Tree.Folder name=\"f\">",
        "</Tree.Folder>",
        "</Tree>",
        "<Badge>",
        "</Badge>",
        "<b>",
        "</b>",
        "<i>",
        "</i>",
        "<math>",
        "</math>",
        "<ruby>",
        "<rt>",
        "</rt>",
        "</ruby>",
        "<video>",
        "</video>",
        "<Update label=\"u\">",
        "</Update>",
        "<ParamField path=\"p\">",
        "</ParamField>",
        "<caption>",
        "</caption>",
    ])
    .prop_map(str::to_owned);
    prop_oneof![6 => fixed, 1 => "[a-z ]{1,6}", 1 => any::<char>().prop_map(String::from)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        if std::env::var_os("WAYPOST_LONG_TESTS").is_some() { 20_000 } else { 400 }
    ))]

    #[test]
    fn every_page_becomes_valid_html_without_scripts(
        pieces in prop::collection::vec(piece(), 0..40)
    ) {
        let article = render(&pieces.concat(), &BTreeMap::new());
        is_harmless(article.html.as_str());
    }
}
