//! Tests of stylesheets of authors: the printed rules, and the rejected ones.

use super::*;
use crate::render::link::Asset;

fn map() -> Map {
    let file = |path: &str| (path.into(), Asset::default());
    Map {
        assets: [file("images/a b.png"), file("fonts/x.woff2")].into(),
        ..Map::default()
    }
}

fn confined(text: &str) -> Confined {
    let sheet = Sheet {
        path: "style.css".into(),
        text: text.to_owned(),
    };
    confine(&[sheet], &map())
}

/// Returns what a stylesheet becomes, without its layer, and its messages with their lines.
fn of(text: &str) -> (String, Vec<String>) {
    let Confined {
        styles,
        diagnostics,
        ..
    } = confined(text);
    let inner = styles.strip_prefix("@layer author{");
    let inner = inner.and_then(|rest| rest.strip_suffix("}\n"));
    let messages = diagnostics.iter().map(ToString::to_string);
    (inner.unwrap_or_default().to_owned(), messages.collect())
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let (styles, messages) = of(text);
    assert_eq!(styles, expected, "{text} {messages:?}");
    assert_eq!(messages, [""; 0], "{text}");
}

#[test]
fn a_selector_matches_the_content() {
    check("h2 { color: red }", "h2:where(main,main *){color:red}");
    check(
        ".dark .u-card:hover { color: red }",
        ".dark .u-card:hover:where(main,main *){color:red}",
    );
    check(
        "h2::before { content: \"x\" }",
        "h2:where(main,main *):before{content:\"x\"}",
    );
    check(
        "body:has(#x) * { color: red }",
        "body:has(#x) :where(main,main *){color:red}",
    );
    check(
        "li:has(> a) { color: red }",
        "li:has(>a):where(main,main *){color:red}",
    );
}

#[test]
fn a_hook_is_the_part_that_it_names() {
    check("#navbar a { color: red }", ":is(#navbar,.top) a{color:red}");
    check(
        "#content-area h1 { color: red }",
        ":is(:is(#content-area,main)) h1:where(main,main *){color:red}"
            .replace(":is(:is(#content-area,main))", ":is(#content-area,main)")
            .as_str(),
    );
    check(
        ".card { color: red }",
        ":is(.card,.x-card):where(main,main *){color:red}",
    );
    check(
        ".top { color: red }",
        ".x-top:where(main,main *){color:red}",
    );
    check("html.dark body { color: red }", "html.dark body{color:red}");
}

#[test]
fn nested_rules_are_confined_too() {
    check(
        "#content-area { h5 { color: red } &:hover { color: red } }",
        ":is(#content-area,main):where(main,main *){& h5:where(main,main *){color:red}&:hover{color:red}}",
    );
    check(
        "body:has(#x) { .u { position: fixed } }",
        "body:has(#x){& .u:where(main,main *){position:fixed}}",
    );
    let (styles, messages) = of("#navbar { a { position: fixed; color: red } }");
    assert_eq!(styles, ":is(#navbar,.top){& a{color:red}}");
    assert_eq!(messages.len(), 1, "{messages:?}");
}

#[test]
fn nothing_covers_the_shell() {
    for text in [
        "#sidebar::after { content: \"\"; position: fixed; inset: 0; z-index: 99 }",
        "html { position: fixed }",
        ":is(body, .x) { transform: scale(9) }",
        "#footer { margin-top: -100vh }",
        "#footer { margin: calc(0px - 9rem) }",
        "nav { animation: x 1s }",
        "::view-transition { background: red }",
        "#sidebar::backdrop { background: red }",
        ".x { view-transition-name: top }",
        "footer { all: unset; top: 0; translate: 0 -9rem }",
        "#navbar ~ * { position: fixed }",
        "@media print { body { z-index: 9 !important } }",
        "main { margin-top: -200px; margin-left: -320px }",
        "#content-area { margin: calc(0px - 9rem) }",
        "* { margin-top: -200px }",
        ":is(main, h1):not(.x) { margin-top: -200px }",
        "#content { &:hover { margin-top: -200px } }",
        "main { box-shadow: 0 0 0 900px red; outline: 900px solid; order: -1; grid-row: 1 }",
        "body { grid-template: 1fr / 1fr } #navbar { grid-area: 1 / 1 }",
        "#body-content { grid-row: 1; order: -1 }",
        "#sidebar { outline: 900px solid lime }",
        "#sidebar { box-shadow: 0 0 0 900px lime }",
        "#sidebar { box-shadow: 1px 1px red, 0 0 0 calc(1px + 90vw) lime }",
        "#sidebar { box-shadow: 0 0 0 var(--x) lime }",
        "#sidebar { text-shadow: 40vw 0 red; text-indent: 30vw; float: right }",
        "#sidebar { border-image-outset: 900px } #navbar { border-image: url(images/a%20b.png) 1 / 1 / 900px }",
        "#navbar { filter: drop-shadow(0 300px red) }",
        "#navbar { -webkit-filter: drop-shadow(0 300px red) }",
    ] {
        let (styles, messages) = of(text);
        assert!(!messages.is_empty(), "{text} {styles}");
        for word in [
            "position",
            "z-index",
            "transform",
            "margin",
            "animation",
            "view",
            "backdrop",
            "translate",
            "outline",
            "grid",
            "order",
            "shadow",
            "indent",
            "float",
            "filter",
        ] {
            assert!(!styles.contains(word), "{text} {styles}");
        }
    }
}

#[test]
fn the_shell_may_have_a_small_shadow_and_the_content_any() {
    check(
        "#navbar { box-shadow: 0 1px 40px -2px rgb(var(--primary) / .5), inset 0 0 2px #0000000a }",
        ":is(#navbar,.top){box-shadow:0 1px 40px -2px rgb(var(--primary) / .5), inset 0 0 2px #0000000a}",
    );
    check(
        "main { box-shadow: 0 1px 2px red; margin: 0 auto }",
        ":is(main,.x-main):where(main,main *){box-shadow:0 1px 2px red;margin:0 auto}",
    );
    check(
        "#content-area h2, .x:first-child { margin-top: -4px; outline: 99px solid red }",
        ":is(#content-area,main) h2:where(main,main *),.x:first-child:where(main,main *){margin-top:-4px;outline:99px solid red}",
    );
}

#[test]
fn addresses_lead_into_the_release() {
    check(
        ".x { background: url(images/a%20b.png) }",
        ".x:where(main,main *){background:url(../images/a%20b.png)}",
    );
    check(
        "@font-face { font-family: X; src: url('/fonts/x.woff2') format('woff2') }",
        "@font-face{font-family:X;src:url(../fonts/x.woff2)format(\"woff2\")}",
    );
    let found = confined(".x { background: url(/images/a%20b.png) }");
    assert_eq!(found.assets, ["images/a b.png".into()].into());
    for text in [
        ".x { background: url(https://x.test/a.png) }",
        ".x { background: url(\"//x.test/a\") }",
        ".x { background: \\75rl(https://x.test/a) }",
        ".x { background: image-set('https://x.test/a' 1x) }",
        ".x { background: image-set('https://x.test/a' 1x, var(--y) 2x) }",
        ".x { background: -webkit-image-set(url(https://x.test/a) 1x) }",
        ".x { --y: url(https://x.test/a); background: var(--y) }",
        ".x { background: src('https://x.test/a') }",
        ".x { cursor: url(https://x.test/a), auto }",
        ".x { content: url(https://x.test/a) }",
        ".x { filter: url(https://x.test/a#b) }",
        ".x { mask: url(javascript:alert(1)) }",
        ".x { background: url(data:text/html,x) }",
        ".x { list-style: url(missing.png) }",
        "@font-face { font-family: X; src: url(https://x.test/a) }",
        "@font-face { font-family: X; src: url(data:font/woff2;base64,AA) }",
        "@import 'https://x.test/a.css';",
        "@import url(//x.test/a.css) layer(a);",
        "@keyframes k { to { background: url(https://x.test/a) } }",
        "@counter-style c { system: cyclic; symbols: url(https://x.test/a) }",
        "@property --p { syntax: '<url>'; inherits: true; initial-value: url(https://x.test/a) }",
        "@namespace url(https://x.test/a);",
        "@document url(https://x.test) { a { color: red } }",
    ] {
        let (styles, messages) = of(text);
        assert!(!messages.is_empty(), "{text} {styles}");
        assert!(
            !styles.contains("x.test") && !styles.contains("url("),
            "{text} {styles}"
        );
    }
}

#[test]
fn what_is_left_out_is_told_with_its_line() {
    let (styles, messages) = of(
        "h1 { color: red }\n@import url(https://fonts.test/x);\n\n#navbar { position: fixed }\n.u { color red }\n",
    );
    assert_eq!(styles, "h1:where(main,main *){color:red}");
    assert!(messages[0].starts_with("style.css:2:"), "{messages:?}");
    assert!(messages[1].starts_with("style.css:4:"), "{messages:?}");
    assert!(messages[1].contains("`position`"), "{messages:?}");
}

#[test]
fn our_custom_properties_keep_their_values() {
    check(
        ":root { --accent: red; --own: var(--accent) }",
        ":root{--x-accent:red;--own:var(--x-accent)}",
    );
}

#[test]
fn hostile_text_stays_text_or_is_left_out() {
    for text in [
        "</style><script>alert(1)</script>",
        "/* </style> */ h1 { content: '</style>' }",
        "h1 { color: expression(alert(1)) }",
        "h1 { behavior: url(x.htc) }",
        "h1 { -moz-binding: url(//x.test/x) }",
        "@charset \"utf-7\"; +ADw-script+AD4-",
        "h1 { color: red",
        "h1 { color: red } } } } #navbar { position: fixed }",
        "h1 { background: url(",
        "h1 { /*",
        "h1 { content: \"\\",
        "@media screen { @media print { h1 { color: red",
        "@layer waypost { main { contain: none !important } }",
        "@layer x; @layer author { #navbar { position: fixed } }",
        "@scope (html) { :scope { position: fixed } }",
        "\u{feff}h1{}",
        "\0",
        "@\\69mport url(https://x.test/a);",
        "a{}@import url(https://x.test/a);",
        "<!-- h1 { color: red } -->",
        "::part(x), ::slotted(x), :host { color: red }",
        "h1:nth-child(2 of .top, #navbar) { color: red }",
        "* { --x: { } ; --y: } ; }",
        "h1 { --x: \"a\nb\" }",
    ] {
        let styles = confined(text).styles;
        assert!(sheet::is_confined(&styles, 64), "{text} {styles}");
        assert!(
            !styles.contains("x.test") && !styles.contains("x.htc"),
            "{styles}"
        );
        assert!(!styles.contains("position"), "{styles}");
    }
}

#[test]
fn work_is_bounded() {
    let deep = "a{".repeat(100_000);
    let (styles, messages) = of(&deep);
    assert_eq!((styles.as_str(), messages.len()), ("", 1));
    let deep = format!(
        "{}a{}{{color:red}}",
        ":not(".repeat(50_000),
        ")".repeat(50_000)
    );
    assert_eq!(of(&deep).0, "");
    let long = "a".repeat(SHEET_BYTES_MAX + 1);
    assert!(of(&long).1[0].contains("may have"), "{:?}", of(&long).1);
    // Each selector grows by its condition.
    let many = "a,".repeat(100_000) + "a{color:red}";
    let (styles, messages) = of(&many);
    assert_eq!((styles.as_str(), messages.len()), ("", 1), "{messages:?}");
    let nested = "&&,".repeat(10) + "a{";
    let nested = "a{".to_owned() + &nested.repeat(20);
    assert!(confined(&nested).styles.len() < 1 << 16);
    let bad = "#navbar{position:fixed}\n".repeat(5_000);
    assert!(of(&bad).1.len() <= 200);
}
