//! `waypost convert`: the configurations of other tools become a `docs.json` that passes `check`.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Writes a repository; each file has a path and a text.
fn repository(files: &[(&str, &str)]) -> TempDir {
    let directory = TempDir::new().unwrap();
    fs::create_dir(directory.path().join(".git")).unwrap();
    for (path, text) in files {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

fn convert(directory: &Path, arguments: &[&str]) -> (i32, String) {
    let output: Output = Command::new(env!("CARGO_BIN_EXE_waypost"))
        .arg("convert")
        .args(arguments)
        .arg(directory)
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    (output.status.code().unwrap(), text)
}

fn config(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path.join("docs.json")).unwrap()).unwrap()
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

const MINT: &str = r##"{
  "name": "Acme",
  "logo": {"light": "/logo.svg", "dark": "/logo.svg"},
  "favicon": "/logo.svg",
  "colors": {"primary": "#0b6e4f", "anchors": {"from": "#fff", "to": "#000"}},
  "topbarLinks": [{"name": "Support", "url": "mailto:help@acme.test"}],
  "topbarCtaButton": {"type": "github", "url": "https://github.com/acme/acme"},
  "modeToggle": {"default": "dark", "isHidden": true},
  "tabs": [
    {"name": "API", "url": "api"},
    {"name": "Status", "url": "https://status.acme.test"}
  ],
  "anchors": [{"name": "Community", "icon": "discord", "url": "https://chat.acme.test"}],
  "primaryTab": {"name": "Guides"},
  "navigation": [
    {"group": "Start", "pages": ["index", {"group": "More", "icon": "book", "pages": ["more/one"]}]},
    {"group": "Endpoints", "pages": ["api/pay"]}
  ],
  "redirects": [{"source": "/old", "destination": "/more/one"}],
  "footerSocials": {"x": "https://x.com/acme"},
  "isWhiteLabeled": true
}"##;

#[test]
fn a_mint_json_becomes_tabs_with_the_same_pages() {
    let files = [
        ("docs/mint.json", MINT),
        ("docs/index.mdx", "---\ntitle: Start\n---\n"),
        ("docs/more/one.mdx", "---\ntitle: One\n---\n"),
        ("docs/api/pay.mdx", "---\ntitle: Pay\n---\n"),
        (
            "docs/logo.svg",
            "<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
        ),
    ];
    let repository = repository(&files);
    let docs = repository.path().join("docs");
    let (code, text) = convert(&docs, &[]);
    assert_eq!(code, 0, "{text}");
    says(
        &text,
        &[
            "docs/mint.json:5:36",
            "`colors.anchors` has no counterpart",
            "docs/mint.json:21:3",
            "`isWhiteLabeled` has no counterpart in docs.json",
            "0 errors",
        ],
    );
    let config = config(&docs);
    assert_eq!(
        config["navigation"],
        json!({
            "tabs": [
                {"tab": "Guides", "groups": [{"group": "Start", "pages":
                    ["index", {"group": "More", "icon": "book", "pages": ["more/one"]}]}]},
                {"tab": "API", "groups": [{"group": "Endpoints", "pages": ["api/pay"]}]},
                {"tab": "Status", "href": "https://status.acme.test"}
            ],
            "global": {"anchors":
                [{"anchor": "Community", "icon": "discord", "href": "https://chat.acme.test"}]}
        })
    );
    assert_eq!(
        config["appearance"],
        json!({"default": "dark", "strict": true})
    );
    assert_eq!(config["navbar"]["primary"]["type"], "github");
    assert_eq!(config["footer"]["socials"]["x"], "https://x.com/acme");
    assert_eq!(config["redirects"][0]["source"], "/old");
}

#[test]
fn nothing_is_replaced_without_force() {
    let files = [
        ("mint.json", MINT),
        ("index.mdx", "# Start"),
        ("docs.json", "mine"),
    ];
    let repository = repository(&files);
    let (code, text) = convert(repository.path(), &[]);
    assert_eq!(code, 2, "{text}");
    says(&text, &["docs.json is already there: --force replaces it"]);
    let kept = fs::read_to_string(repository.path().join("docs.json")).unwrap();
    assert_eq!(kept, "mine");
    let (_, text) = convert(repository.path(), &["--force"]);
    says(&text, &["wrote"]);
    assert_eq!(config(repository.path())["name"], "Acme");
}

#[test]
fn nothing_is_written_if_one_file_is_already_there() {
    let files = [
        (
            "docusaurus.config.js",
            "module.exports = {presets: ['classic']};",
        ),
        ("docs/index.md", "# Start"),
        ("src/theme.js", ""),
        (".waypostignore", "mine"),
    ];
    let repository = repository(&files);
    let (code, text) = convert(repository.path(), &[]);
    assert_eq!(code, 2, "{text}");
    says(&text, &[".waypostignore is already there"]);
    assert!(!repository.path().join("docs.json").exists());
}

#[test]
fn settings_of_a_mint_json_that_are_lost_are_named() {
    let mint = r#"{
      "name": "Acme",
      "metadata": {"og:title": "A"},
      "seo": {"indexHiddenPages": true},
      "versions": [{"name": "2"}, {"name": "1", "default": true, "locale": "fr"}],
      "api": {"auth": {"method": "key", "name": "X", "inputPrefix": "sk-"}},
      "footerSocials": [{"type": "x", "url": "https://x.com/acme"}],
      "navigation": [
        {"group": "A", "version": "1", "pages": ["index"]},
        {"group": "B", "version": "3", "pages": ["index"]}
      ]
    }"#;
    let repository = repository(&[("mint.json", mint), ("index.mdx", "# Start")]);
    let (_, text) = convert(repository.path(), &[]);
    says(
        &text,
        &[
            "a version with a `locale` is a language",
            "`api.auth.inputPrefix` has no counterpart",
            "this version is not in `versions`",
        ],
    );
    let config = config(repository.path());
    assert_eq!(
        config["seo"],
        json!({"metatags": {"og:title": "A"}, "indexHiddenPages": true})
    );
    assert_eq!(config["navigation"]["versions"][1]["default"], true);
    assert_eq!(config["footer"]["socials"]["x"], "https://x.com/acme");
}

const DOCUSAURUS: &str = r#"
import {themes} from 'prism-react-renderer';
import type {Config} from '@docusaurus/types';

const title = 'Acme';
const config: Config = {
  title,
  tagline: 'Pays bills',
  favicon: 'img/logo.svg',
  url: 'https://acme.test',
  baseUrl: '/',
  presets: [
    ['classic', {
      docs: {sidebarPath: './sidebars.ts'},
      blog: {showReadingTime: true},
    } satisfies Preset.Options],
  ],
  plugins: [
    ['@docusaurus/plugin-client-redirects', {redirects: [{from: '/start', to: '/docs/intro'}]}],
    myPlugin(),
  ],
  themeConfig: {
    colorMode: {defaultMode: 'dark', disableSwitch: true},
    navbar: {
      logo: {src: 'img/logo.svg'},
      items: [
        {type: 'docSidebar', sidebarId: 'guides', label: 'Guides'},
        {href: 'https://github.com/acme/acme', label: 'GitHub'},
        {type: 'dropdown', label: 'More', items: []},
      ],
    },
    footer: {links: [{title: 'Learn', items: [{label: 'Start', to: '/docs/intro'}]}]},
  },
};
export default config;
"#;

#[test]
fn pages_that_docusaurus_does_not_publish_are_not_published() {
    let config_file = "module.exports = {\n  title: 'Acme',\n  presets: [\n    ['classic', {docs: {exclude: ['internal/**']}}],\n\
        ['redocusaurus', {specs: []}],\n  ],\n\
        themeConfig: {footer: {links: [{label: 'Flat', to: '/docs/a'}], copyright: 'Acme'}},\n};";
    let files = [
        ("docusaurus.config.js", config_file),
        ("docs/a.md", "# A"),
        ("docs/b.md", "---\ndraft: true\n---\n\n# B"),
        ("docs/u.md", "---\nunlisted: true\n---\n\n# U"),
        ("docs/internal/plan.md", "# Plan"),
    ];
    let repository = repository(&files);
    let (code, text) = convert(repository.path(), &[]);
    assert_eq!(code, 0, "{text}");
    says(
        &text,
        &[
            "the preset \"redocusaurus\" has no counterpart",
            "a footer has columns with a title",
            "the `copyright` of a footer",
        ],
    );
    let root = match repository.path().join("docs/docs.json").exists() {
        true => repository.path().join("docs"),
        false => repository.path().to_owned(),
    };
    let config = config(&root);
    let navigation = config["navigation"].to_string();
    assert!(
        navigation.contains("a\"") && !navigation.contains("plan"),
        "{navigation}"
    );
    for page in ["b\"", "u\"", "plan\"", "tabs"] {
        assert!(!navigation.contains(page), "{navigation}");
    }
    let ignored = fs::read_to_string(root.join(".waypostignore")).unwrap();
    says(&ignored, &["b.md\n", "internal/plan.md\n"]);
    assert!(!ignored.contains("u.md"), "{ignored}");
}

const SIDEBARS: &str = r#"
const api = ['api/pay'];
module.exports = {
  guides: [
    'intro',
    {type: 'category', label: 'Use it', link: {type: 'doc', id: 'use/index'}, items: [
      {type: 'autogenerated', dirName: 'use'},
      {type: 'link', label: 'Elsewhere', href: 'https://example.com'},
    ]},
    'gone',
    ...made(),
  ],
  apiSidebar: [...api, {'Errors': ['api/errors']}],
};
"#;

#[test]
fn a_docusaurus_site_keeps_its_sidebars_and_addresses() {
    let files = [
        ("docusaurus.config.ts", DOCUSAURUS),
        ("sidebars.ts", SIDEBARS),
        (
            "docs/intro.md",
            "---\nsidebar_label: Hello\n---\n\n# Introduction\n\n:::note\n\nRead.\n\n:::\n",
        ),
        ("docs/use/index.md", "---\ntitle: Use it\n---\n"),
        ("docs/use/02-later.md", "---\ntitle: Later\n---\n"),
        ("docs/use/01-first.md", "---\ntitle: First\n---\n"),
        (
            "docs/use/deep/_category_.json",
            "{\"label\": \"In depth\", \"position\": 1.5}",
        ),
        (
            "docs/use/deep/one.mdx",
            "---\ntitle: One\nslug: /deep-one\n---\n",
        ),
        ("docs/api/pay.mdx", "---\ntitle: Pay\n---\n"),
        ("docs/api/errors.mdx", "---\ntitle: Errors\n---\n"),
        ("src/pages/index.tsx", "export default () => null;"),
        ("blog/post.md", "# Post"),
        (
            "static/img/logo.svg",
            "<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
        ),
    ];
    let repository = repository(&files);
    let (code, text) = convert(repository.path(), &["--pages"]);
    assert_eq!(code, 0, "{text}");
    says(
        &text,
        &[
            "sidebars.ts:10:5",
            "there is no page with the id \"gone\"",
            "sidebars.ts:11:5",
            "a program computes this value",
            "a link in a sidebar (https://example.com) is not converted",
            "the blog is not converted",
            "the home page in src/pages is not converted",
            "docusaurus.config.ts:20:5",
            "an admonition (`:::`) is not read",
            "docs/intro.md:9:1",
            "0 errors",
        ],
    );
    let config = config(repository.path());
    assert_eq!(
        config["navigation"],
        json!({"tabs": [
            {"tab": "Guides", "pages": [
                "docs/intro",
                {"group": "Use it", "root": "docs/use/index", "pages": [
                    "docs/use/01-first",
                    {"group": "In depth", "pages": ["docs/use/deep/one"]},
                    "docs/use/02-later"
                ]}
            ]},
            {"tab": "Api", "pages": [
                "docs/api/pay",
                {"group": "Errors", "pages": ["docs/api/errors"]}
            ]}
        ]})
    );
    assert_eq!(config["name"], "Acme");
    assert_eq!(config["favicon"], "/static/img/logo.svg");
    assert_eq!(
        config["appearance"],
        json!({"default": "dark", "strict": true})
    );
    // The addresses that change have redirects.
    let redirects = config["redirects"].as_array().unwrap().iter();
    let mut redirects: Vec<_> = redirects
        .map(|one| {
            (
                one["source"].as_str().unwrap(),
                one["destination"].as_str().unwrap(),
            )
        })
        .collect();
    redirects.sort_unstable();
    assert_eq!(
        redirects,
        [
            ("/docs/deep-one", "/docs/use/deep/one"),
            ("/docs/use/first", "/docs/use/01-first"),
            ("/docs/use/later", "/docs/use/02-later"),
            ("/start", "/docs/intro"),
        ]
    );
    let page = fs::read_to_string(repository.path().join("docs/intro.md")).unwrap();
    assert!(
        page.starts_with("---\ntitle: \"Introduction\"\nsidebarTitle: \"Hello\"\nsidebar_label"),
        "{page}"
    );
    let ignored = fs::read_to_string(repository.path().join(".waypostignore")).unwrap();
    assert_eq!(ignored, "/src/\n/blog/\n");
}

const MKDOCS: &str = r#"
site_name: Acme
site_description: Pays bills
repo_url: https://github.com/acme/acme
theme:
  name: material
  custom_dir: overrides
  features: [navigation.tabs]
  palette:
    - scheme: default
      primary: teal
    - scheme: slate
      primary: teal
markdown_extensions:
  - admonition
  - pymdownx.emoji:
      emoji_index: !!python/name:material.extensions.emoji.twemoji
  - pymdownx.critic
plugins:
  - search
  - redirects:
      redirect_maps:
        old.md: guide/index.md
  - macros
extra:
  social:
    - icon: fontawesome/brands/github
      link: https://github.com/acme
nav:
  - Home: index.md
  - Guide:
      - guide/index.md
      - First steps: guide/first.md
      - Deep:
          - guide/deep/one.md
      - Gone: guide/gone.md
  - More: more/
  - Chat: https://chat.acme.test
"#;

#[test]
fn a_mkdocs_site_keeps_its_navigation_colours_and_redirects() {
    let files = [
        ("mkdocs.yml", MKDOCS),
        (
            "docs/index.md",
            "# Acme\n\n!!! note \"Title\"\n    Text.\n\n```\n!!! not this\n```\n",
        ),
        ("docs/guide/index.md", "# The guide\n"),
        ("docs/guide/first.md", "# Your first steps\n"),
        ("docs/guide/deep/one.md", "# One\n"),
        ("docs/more/b.md", "# B\n"),
        ("docs/more/a.md", "# A\n"),
    ];
    let repository = repository(&files);
    let (code, text) = convert(repository.path(), &[]);
    assert_eq!(code, 0, "{text}");
    says(
        &text,
        &[
            "mkdocs.yml:36:15",
            "there is no page \"guide/gone.md\"",
            "`theme.custom_dir` has no counterpart",
            "the plugin `macros` has no counterpart",
            "the syntax of the extension `pymdownx.critic` is not read",
            "docs/index.md:3:1",
            "an admonition (`!!!`) is not read",
            "the frontmatter lacks `title: Your first steps` and `sidebarTitle: First steps`",
            "0 errors",
        ],
    );
    assert!(!text.contains("not this"), "{text}");
    let config = config(&repository.path().join("docs"));
    assert_eq!(
        config["navigation"],
        json!({
            "tabs": [
                {"tab": "Home", "pages": ["index"]},
                {"tab": "Guide", "pages": [
                    "guide/index",
                    "guide/first",
                    {"group": "Deep", "pages": ["guide/deep/one"]}
                ]},
                {"tab": "More", "pages": ["more/a", "more/b"]}
            ],
            "global": {"anchors": [{"anchor": "Chat", "href": "https://chat.acme.test"}]}
        })
    );
    assert_eq!(config["colors"]["primary"], "#009485");
    assert_eq!(
        config["redirects"],
        json!([{"source": "/old", "destination": "/guide"}])
    );
    assert_eq!(
        config["footer"]["socials"]["github"],
        "https://github.com/acme"
    );
    assert_eq!(
        config["navbar"]["primary"]["href"],
        "https://github.com/acme/acme"
    );
}

#[test]
fn a_mkdocs_site_without_nav_keeps_its_readmes() {
    let files = [
        ("mkdocs.yml", "site_name: Acme\nuse_directory_urls: false\n"),
        ("docs/README.md", "# Acme"),
        ("docs/MYREADME.md", "# Mine"),
        ("docs/sub/README.md", "# Sub"),
        ("docs/both/index.md", "# Both"),
        ("docs/both/README.md", "# Not used"),
    ];
    let repository = repository(&files);
    let (_, text) = convert(repository.path(), &[]);
    says(
        &text,
        &[
            "docs/README.md is ignored, because its name is README.md",
            "docs/sub/README.md is ignored",
            "addresses have no `.html` here",
        ],
    );
    assert!(!text.contains("both/README.md is ignored"), "{text}");
    let config = config(&repository.path().join("docs"));
    let navigation = config["navigation"].to_string();
    for page in [
        "\"index\"",
        "\"MYREADME\"",
        "\"sub/index\"",
        "\"both/index\"",
    ] {
        assert!(navigation.contains(page), "{page}: {navigation}");
    }
}

#[test]
fn an_unreadable_configuration_is_named_with_its_line() {
    let broken = repository(&[("docusaurus.config.js", "module.exports = {\n  a: ;\n};")]);
    let (code, text) = convert(broken.path(), &[]);
    assert_eq!(code, 2, "{text}");
    says(&text, &["docusaurus.config.js:2:6"]);
    let empty = repository(&[("index.md", "# A")]);
    let (code, text) = convert(empty.path(), &[]);
    assert_eq!(code, 2, "{text}");
    says(
        &text,
        &["there is no mint.json, docusaurus.config.js or mkdocs.yml"],
    );
}
