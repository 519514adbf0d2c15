//! The first working call, more calls, commands and variables.

use super::{BASE, product, section, text};

#[test]
fn a_skill_holds_the_first_call_unchanged_with_its_page() {
    let text = product().text;
    let skills = section(&text, "Skills");
    let page = format!("[Quickstart]({BASE}/start)");
    for line in [
        format!("- Install (JavaScript): `npm i @acme/box` – {page}"),
        "- Install (Python): `pip install acme-box`\n".to_owned(),
        "- Authenticate (.env): `ACME_API_KEY=acme_***`\n".to_owned(),
        "- Call (Python):\n\n  ```python Python\n  from acme import Box\n\n  with Box.create() \
         as box:\n      box.run(\"print('hi')\")  # `hi`\n  ```\n"
            .to_owned(),
    ] {
        assert!(skills.contains(&line), "{line}\n{skills}");
    }
    let decisions = section(&text, "Capabilities");
    assert!(decisions.contains(&format!("- Choose one: JavaScript, Python – {page}")));
    let size = format!(
        "| When | Use | Page |\n|---|---|---|\n\
         | it must start fast | a small box | [Pause a box]({BASE}/boxes) |"
    );
    assert!(decisions.contains(&size), "{decisions}");
}

#[test]
fn a_page_without_code_leads_to_the_start() {
    let files = [
        (
            "docs.json",
            r#"{"name":"x","navigation":{"pages":["index","start"]}}"#,
        ),
        ("index.mdx", "# x\n"),
        (
            "start.mdx",
            "---\ntitle: Getting started\n---\n\nAsk us for an API key. You need an API key for all calls.\n",
        ),
    ];
    let text = text(&files);
    let skills = section(&text, "Skills");
    assert!(
        skills.contains("- Authenticate: Ask us for an API key."),
        "{skills}"
    );
    assert!(
        skills.contains(&format!("Start with [Getting started]({BASE}/start)")),
        "{skills}"
    );
}

#[test]
fn the_commands_of_a_command_line_are_a_table() {
    let config = r#"{"name":"Acme","navigation":{"tabs":[{"tab":"Docs","groups":[
        {"group":"Tools","pages":["start","cli"]}]}]}}"#;
    let cli = "---\ntitle: CLI reference\n---\n\n| Command | What |\n|---|---|\n\
        | [`acme deploy`](#deploy) | Deploys the project \\| all of it |\n\
        | `acme login --token` | Signs in |\n| `npm install acme` | Installs it |\n\
        | `verbose` | Says more |\n\n\
        ### `acme pause`\n\nPauses a box. It costs nothing then.\n\n\
        ## Backups\n\n```bash\n# All of them\nacme backup list\nacme backup create --name x # one\n\
        curl https://acme.test\n```\n";
    let start = "---\ntitle: Quickstart\n---\n\n```bash\nacme init here\n```\n\nRead it.\n";
    let files = [
        ("docs.json", config),
        ("start.mdx", start),
        ("cli.mdx", cli),
    ];
    let text = text(&files);
    let table = "### Commands\n\n| Command | Purpose | Page |\n|---|---|---|\n\
        | `acme deploy` | Deploys the project \\| all of it | [CLI reference](https://docs.acme.test/cli) |\n\
        | `acme login --token` | Signs in | \u{2033} |\n\
        | `acme pause` | Pauses a box. It costs nothing then. | \u{2033} |\n\
        | `acme backup list` | All of them | \u{2033} |\n\
        | `acme backup create --name x` | one | \u{2033} |\n";
    assert!(text.contains(table), "{text}");
    // With one part, the tab says nothing.
    assert!(text.contains("- **Tools**: [Quickstart]"), "{text}");
    // Another program, or two commands, are no table.
    let few = cli.replace("acme ", "npm ");
    let files = [
        ("docs.json", config),
        ("start.mdx", start),
        ("cli.mdx", &few),
    ];
    assert!(!self::text(&files).contains("### Commands"));
}

#[test]
fn environment_variables_are_a_table_with_their_meaning() {
    let start = "---\ntitle: Quickstart\n---\n\n```bash .env\n# The key of your project\nACME_API_KEY=acme_***\n\
        ACME_REGION=eu\nOPENAI_API_KEY=sk-...\n```\n\n```js\nacme.run(process.env.ACME_API_KEY, process.env.OTHER_NAME)\n```\n";
    let page = "---\ntitle: Environment variables\n---\n\n| Name | Default | Description |\n|---|---|---|\n\
        | `ACME_TIMEOUT_MS` | 5 | How long a call may take. |\n| `QUEUE_SIZE` | 1 | How many jobs wait. |\n\n\
        ## Errors\n\nThe answer is `ACME_BAD_NAME`.\n\n- `ACME_DEBUG`: writes more.\n";
    let errors = "# Errors\n\n| Code | Meaning |\n|---|---|\n| `ACME_NO_KEY` | No key. |\n\n\
        You get `ACME_NO_MONEY` when nothing is left.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["quickstart","variables","errors"]}}"#,
        ),
        ("quickstart.mdx", start),
        ("variables.mdx", page),
        ("errors.mdx", errors),
    ]);
    let (_, table) = text.split_once("### Environment variables\n\n").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    for row in [
        format!("| `ACME_API_KEY` | The key of your project | [Quickstart]({BASE}/quickstart) |"),
        "| `ACME_REGION` | for example `eu` | \u{2033} |".to_owned(),
        format!(
            "| `ACME_TIMEOUT_MS` | How long a call may take. | [Environment variables]({BASE}/variables) |"
        ),
        "| `ACME_DEBUG` | writes more. | \u{2033} |".to_owned(),
        "| `QUEUE_SIZE` | How many jobs wait. | \u{2033} |".to_owned(),
    ] {
        assert!(table.contains(&row), "{row}\n{table}");
    }
    for other in ["OPENAI", "OTHER_NAME", "ACME_NO_KEY", "ACME_NO_MONEY"] {
        assert!(!table.contains(other), "{other}\n{table}");
    }
}

#[test]
fn a_command_that_signs_in_authenticates_and_the_key_of_another_service_does_not() {
    let start = "---\ntitle: Quickstart\n---\n\n```bash\nnpm install @acme/cli\n```\n\n\
        Choose an account or a Personal Access Token of the warehouse.\n\n\
        ```bash\nexport OPENAI_API_KEY=x\n```\n\n\
        ```bash\nacme login https://app.acme.test --token <token>\n```\n\n```bash\nacme run all\n```\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["quickstart"]}}"#,
        ),
        ("quickstart.mdx", start),
    ]);
    let line = "- Authenticate: `acme login https://app.acme.test --token <token>`\n";
    assert!(text.contains(line), "{text}");
    assert!(!text.contains("Authenticate: Choose"), "{text}");
}

const CONFIG: &str = r#"{"name":"Acme","navigation":{"pages":["quickstart","cli","boxes","files","big","migration"]},
    "seo":{"metatags":{"canonical":"https://acme.test/docs/"}}}"#;

#[test]
fn the_first_call_needs_no_file_that_other_code_of_its_page_makes() {
    let start = "---\ntitle: Quickstart\n---\n\n```bash\nnpm install @acme/web\n```\n\n\
        ```ts lib/acme.ts\nimport { Acme } from '@acme/web';\nexport const acme = new Acme(process.env.KEY);\n```\n\n\
        ```ts app/page.ts\nimport { acme } from '@/lib/acme';\nawait acme.pay(5);\n```\n";
    let text = text(&[("docs.json", CONFIG), ("quickstart.mdx", start)]);
    assert!(text.contains("new Acme(process.env.KEY)"), "{text}");
    assert!(!text.contains("await acme.pay(5)"), "{text}");
}

#[test]
fn a_first_call_names_the_files_of_its_page_that_it_imports() {
    let start = "---\ntitle: Quickstart\n---\n\n```bash\nnpm install @acme/web\n```\n\n\
        ```ts src/main.tsx\nimport { Acme } from '@acme/web';\nimport App from './App.tsx';\nawait Acme.run(App);\n```\n\n\
        ```ts src/Login.tsx\nexport const Login = 1;\n```\n\n\
        ```ts src/Other.tsx\nexport const Other = 1;\n```\n\n\
        ```ts src/App.tsx\nimport { Login } from './Login';\nimport main from './main';\nexport default Login;\n```\n";
    let text = text(&[("docs.json", CONFIG), ("quickstart.mdx", start)]);
    let skills = section(&text, "Skills");
    let named =
        "await Acme.run(App);\n  ```\n\n- The same page has `src/Login.tsx` and `src/App.tsx`.\n";
    assert!(skills.contains(named), "{skills}");
}

#[test]
fn the_installation_is_the_one_with_the_name_of_the_product_and_never_of_the_system() {
    let start = "---\ntitle: Quickstart\n---\n\n```bash\nsudo apt-get install jq -y\n```\n\n\
        ```bash\nnpm install -g boxes\n```\n\n```bash\nacme run here\n```\n";
    let text = text(&[("docs.json", CONFIG), ("quickstart.mdx", start)]);
    assert!(text.contains("- Install: `npm install -g boxes`"), "{text}");
    assert!(!text.contains("jq -y"), "{text}");
    let named = start.replace(
        "npm install -g boxes\n```",
        "npm install vite\n```\n\n```bash\nnpm i @acme/box\n```",
    );
    let text = self::text(&[("docs.json", CONFIG), ("quickstart.mdx", &named)]);
    assert!(text.contains("- Install: `npm i @acme/box`"), "{text}");
}

#[test]
fn the_command_of_an_imported_snippet_or_of_a_linked_page_is_shown() {
    let start = "---\ntitle: Quickstart\n---\n\nimport Install from '/snippets/install.mdx';\n\n<Steps>\n\
        <Step title=\"Install the library\">\n<Install />\n</Step>\n\
        <Step title=\"Install the command line\">\nInstall the latest [Acme CLI](https://acme.test/docs/cli#npm).\n</Step>\n\
        <Step title=\"Read more\">\nRead about [boxes](/boxes).\n</Step>\n</Steps>\n";
    let text = text(&[
        ("docs.json", CONFIG),
        ("quickstart.mdx", start),
        (
            "snippets/install.mdx",
            "```bash\nnpm install @acme/box\n```\n",
        ),
        (
            "cli.mdx",
            "---\ntitle: Acme CLI\n---\n\n```bash\nnpm install -g @acme/cli\n```\n",
        ),
        (
            "boxes.mdx",
            "# Boxes\n\n```bash\nnpm install unrelated\n```\n",
        ),
    ]);
    assert!(
        text.contains("- Install: `npm install @acme/box` – [Quickstart]"),
        "{text}"
    );
    let step = format!(
        "2. Install the command line. Install the latest Acme CLI: `npm install -g @acme/cli` – [Acme CLI]({BASE}/cli)\n"
    );
    assert!(text.contains(&step), "{text}");
    let other = format!("3. Read more. Read about boxes. – [Boxes]({BASE}/boxes)\n");
    assert!(text.contains(&other), "{text}");
}

#[test]
fn more_calls_are_short_examples_of_guides_in_the_language_of_the_first_call() {
    let start = "---\ntitle: Quickstart\n---\n\n```js\nimport { Box } from 'acme';\nawait Box.create();\n```\n";
    let boxes = "# Boxes\n\n```python\nfrom acme import Box\nBox.pause()\n```\n\n\
        ```ts\nimport { Box } from 'acme';\n\nawait Box.pause('1');\n```\n\n\
        ```ts\nimport { Box } from 'acme';\nawait Box.stop('1');\n```\n";
    let files = "# Files\n\n```js\nimport fs from 'fs';\nfs.read('x');\n```\n\n\
        ```js\nimport { Box } from './acme';\nawait Box.files();\n```\n";
    let big = format!(
        "# Big\n\n```js\nimport {{ Box }} from 'acme';\n{}```\n",
        "await Box.run();\n".repeat(20)
    );
    let text = text(&[
        ("docs.json", CONFIG),
        ("quickstart.mdx", start),
        ("boxes.mdx", boxes),
        ("files.mdx", files),
        ("big.mdx", &big),
        (
            "migration.mdx",
            "```js\nimport { Box } from 'acme';\nBox.old();\n```\n",
        ),
    ]);
    let (_, more) = text.split_once("### More calls\n\n").unwrap();
    let (more, _) = more.split_once("\n\n### ").unwrap();
    let expected = format!(
        "- [Boxes]({BASE}/boxes):\n\n  ```ts\n  import {{ Box }} from 'acme';\n\n  await Box.pause('1');\n  ```"
    );
    assert_eq!(more.trim_end(), expected, "{text}");
}

#[test]
fn a_call_that_only_makes_a_client_is_followed_by_code_that_uses_it() {
    let start = "---\ntitle: Quickstart\n---\n\n```bash\nnpm install acme\n```\n\n\
        ```ts\nimport { Index } from 'acme';\n\nconst index = new Index();\n```\n\n\
        ```json\n{ \"index\": 1 }\n```\n\n```python\nindex.add(1)\n```\n\n\
        ```ts\nawait index.upsert({ id: 1 });\n```\n\n```ts\nawait index.query({ id: 2 });\n```\n";
    let text = text(&[("docs.json", CONFIG), ("quickstart.mdx", start)]);
    let then = "- Then: `await index.upsert({ id: 1 });`\n";
    let wanted = format!(
        "- Install: `npm install acme` – [Quickstart]({BASE}/quickstart)\n- Call:\n\n  ```ts\n  import {{ Index }} from 'acme';\n\n  const index = new Index();\n  ```\n\n{then}"
    );
    assert!(text.contains(&wanted), "{text}");
    assert!(!text.contains("index.query"), "{text}");
}

#[test]
fn code_that_an_earlier_part_shows_is_not_shown_again() {
    let config = r#"{"name":"Acme","navigation":{"tabs":[{"tab":"One","pages":["one/quickstart"]},
        {"tab":"Two","pages":["two/quickstart"]},{"tab":"Three","pages":["three/quickstart"]}]}}"#;
    let page = |call: &str| {
        format!(
            "---\ntitle: Quickstart\n---\n\n```bash\nnpm install acme\n```\n\n```js\nimport {{ Acme }} from 'acme';\nawait Acme.{call}();\n```\n"
        )
    };
    let (one, two) = (page("pay"), page("refund"));
    let text = text(&[
        ("docs.json", config),
        ("one/quickstart.mdx", &one),
        ("two/quickstart.mdx", &one),
        ("three/quickstart.mdx", &two),
    ]);
    let skills = section(&text, "Skills");
    assert_eq!(skills.matches("await Acme.pay();").count(), 1, "{skills}");
    assert_eq!(skills.matches("npm install acme").count(), 1, "{skills}");
    assert!(!skills.contains("First working call: Two"), "{skills}");
    assert!(skills.contains("First working call: Three"), "{skills}");
    assert!(skills.contains("await Acme.refund();"), "{skills}");
}

#[test]
fn a_command_without_a_heading_has_the_title_of_its_page_and_a_name_is_no_purpose() {
    let config = r#"{"name":"Acme","navigation":{"groups":[{"group":"CLI","pages":["cli/auth","cli/list"]}]}}"#;
    let auth = "---\ntitle: Authentication in CLI\n---\n\n```bash\nacme auth login\n```\n";
    let list = "---\ntitle: List boxes in CLI\n---\n\n```bash\nacme box list\n```\n\n## List limit\n\n```bash\nacme box list --limit 10\n```\n\n\
        ## Filter by state\n\n```bash\nacme box list --state paused\n```\n\n## Core\n\n```bash\nacme team list\n```\n";
    let text = text(&[
        ("docs.json", config),
        ("cli/auth.mdx", auth),
        ("cli/list.mdx", &list.replace("List boxes", "Boxes")),
    ]);
    for row in [
        format!(
            "| `acme auth login` | Authentication in CLI | [Authentication in CLI]({BASE}/cli/auth) |"
        ),
        format!("| `acme box list` | Boxes in CLI | [Boxes in CLI]({BASE}/cli/list) |"),
        "| `acme box list --limit 10` |  | \u{2033} |".to_owned(),
        "| `acme box list --state paused` | Filter by state | \u{2033} |".to_owned(),
        "| `acme team list` |  | \u{2033} |".to_owned(),
    ] {
        assert!(text.contains(&row), "{row}\n{text}");
    }
}

#[test]
fn the_first_call_makes_a_client_and_calls_it_even_if_other_code_is_shorter() {
    let send = "```ts\nimport { Client } from 'acme';\n\nconst client = new Client({ token: 'x' });\n\n\
        export const POST = async () => {\n  // Comment.\n  // Comment.\n  // Comment.\n  // Comment.\n  // Comment.\n  \
        const sent = await client.publish({\n    url: 'https://hook.test',\n    body: 1,\n  });\n  return sent;\n};\n```\n";
    let receive = "```ts\nimport { verify } from 'acme/next';\n\nexport const POST = verify(async (request) => {\n  \
        const body = await request.json();\n});\n```\n";
    let start = format!(
        "---\ntitle: Quickstart\n---\n\n```bash\nnpm install acme\n```\n\n{send}\n{receive}"
    );
    let text = text(&[("docs.json", CONFIG), ("quickstart.mdx", &start)]);
    assert!(text.contains("await client.publish({"), "{text}");
}

#[test]
fn an_example_makes_what_it_calls() {
    let start = "---\ntitle: Quickstart\n---\n\n```ts\nimport { Acme } from 'acme'\nconst acme = new Acme()\nawait acme.pay(1)\n```\n";
    let part = "---\ntitle: Refund a charge\n---\n\n```ts\nimport { Cents } from 'acme/cents'\nconst r = await client.refund(new Cents(1))\n```\n";
    let gap = "---\ntitle: Store a vector\n---\n\n```ts\nimport { Acme } from 'acme'\nconst acme = new Acme()\nawait acme.store({ vector: [...] })\n```\n";
    let good = "---\ntitle: List charges\n---\n\n```ts\nimport { Acme } from 'acme'\nconst acme = new Acme()\nawait acme.list(9)\n```\n";
    let text = text(&[
        (
            "docs.json",
            r#"{ "name": "Acme", "navigation": { "pages": ["quickstart", "refund", "store", "list"] } }"#,
        ),
        ("quickstart.mdx", start),
        ("refund.mdx", part),
        ("store.mdx", gap),
        ("list.mdx", good),
    ]);
    let skills = section(&text, "Skills");
    assert!(skills.contains("acme.list(9)"), "{text}");
    assert!(
        !skills.contains("client.refund") && !skills.contains("[...]"),
        "{text}"
    );
}

#[test]
fn a_plain_installation_comes_before_one_that_removes_something() {
    let repair = "```bash\nnpm uninstall -g acme-old\nnpm i -g @acme/ac\n```\n\n";
    let call = "```bash\nac deploy acme\n```\n";
    let start = |plain: &str| {
        let page =
            format!("---\ntitle: Quickstart\n---\n\nFrom an old one:\n\n{repair}{plain}{call}");
        let config = r#"{ "name": "Acme", "navigation": { "pages": ["quickstart"] } }"#;
        text(&[("docs.json", config), ("quickstart.mdx", &page)])
    };
    let both = start("```bash\nnpm i -g @acme/ac\n```\n\n");
    assert!(both.contains("- Install: `npm i -g @acme/ac`"), "{both}");
    assert!(!both.contains("uninstall"), "{both}");
    let only = start("");
    assert!(only.contains("npm i -g @acme/ac"), "{only}");
}

#[test]
fn a_page_in_a_group_inside_the_quickstarts_leads_to_the_first_call() {
    let call = |name: &str| {
        format!(
            "```bash\nnpm install acme\n```\n\n```js\nimport {{ Acme }} from 'acme';\nawait Acme.{name}();\n```\n"
        )
    };
    let config = r#"{"name":"Acme","navigation":{"tabs":[{"tab":"Docs","groups":[{"group":"Money","pages":["index","refund"]},
        {"group":"Quickstarts","pages":[{"group":"Web","pages":["react"]}]}]}]}}"#;
    let text = text(&[
        ("docs.json", config),
        ("index.mdx", "# Acme\n"),
        (
            "refund.mdx",
            &format!("---\ntitle: Refund a charge\n---\n\n{}", call("refund")),
        ),
        (
            "react.mdx",
            &format!("---\ntitle: Add a shop to React\n---\n\n{}", call("shop")),
        ),
    ]);
    let first = text.split_once("### First working call").unwrap().1;
    let first = first.split_once("###").unwrap().0;
    assert!(first.contains("await Acme.shop();"), "{text}");
    assert!(!first.contains("await Acme.refund();"), "{text}");
}

#[test]
fn the_first_call_is_of_the_program_that_the_package_of_the_product_installs() {
    let config = r#"{"name":"Acmeify","navigation":{"pages":["quickstart","cli"]}}"#;
    let start = "---\ntitle: Quickstart\n---\n\n```bash\nnpm uninstall -g acmeify\nnpm i -g acme\n```\n\n\
        ```bash\nnpm i -g acme\n```\n\n```bash\nnpx @other/tool page https://x.test\n```\n\n```bash\nacme dev here\n```\n";
    let cli = "---\ntitle: CLI commands\n---\n\n## `acme dev`\n\nStarts.\n\n## `acme stop`\n\nStops.\n\n## `acme push`\n\nPushes.\n";
    let text = text(&[
        ("docs.json", config),
        ("quickstart.mdx", start),
        ("cli.mdx", cli),
    ]);
    assert!(text.contains("- Install: `npm i -g acme`"), "{text}");
    assert!(text.contains("- Call: `acme dev here`"), "{text}");
}

#[test]
fn a_command_that_prepares_the_program_is_no_call_beside_others() {
    let start = "---\ntitle: Quickstart\n---\n\n```bash\nacme signup \\\n  --key x\n```\n\n\
        ```bash\nacme setup --key x --now\n```\n\n```bash\nacme pay 1\n```\n";
    let config = r#"{"name":"Acme","navigation":{"groups":[{"group":"Start","pages":["quickstart"]},
        {"group":"API","openapi":"api.json"}]}}"#;
    let api = r#"{"openapi":"3.1.0","info":{"title":"Acme API"},"security":[{"key":[]}],
        "components":{"securitySchemes":{"key":{"type":"http","scheme":"bearer"}}},
        "paths":{"/pay":{"post":{"summary":"Pay"}}}}"#;
    let text = text(&[
        ("docs.json", config),
        ("quickstart.mdx", start),
        ("api.json", api),
    ]);
    assert!(text.contains("- Call: `acme pay 1`"), "{text}");
    // A command does not send the header of a request.
    let first = text.split_once("### First working call").unwrap().1;
    let first = first.split_once("\n###").unwrap().0;
    assert!(!first.contains("Bearer"), "{text}");
    assert!(text.contains("Bearer"), "{text}");
    let request = start.replace("acme pay 1", "curl -X POST https://api.acme.test/pay");
    let text = self::text(&[
        ("docs.json", config),
        ("quickstart.mdx", &request),
        ("api.json", api),
    ]);
    assert!(
        text.contains("- Authenticate: `Authorization: Bearer"),
        "{text}"
    );
}

#[test]
fn the_call_is_in_the_language_of_the_installed_package() {
    let config = r#"{"name":"Acme","navigation":{"pages":["quickstart","install"]}}"#;
    let python = "```python Python\nfrom acme import pay\npay.all(1)\n```\n";
    let js = "```js JS\nimport { pay } from 'acme';\nawait pay.all(1);\n```\n";
    let npm = "---\ntitle: Quickstart\n---\n\n```bash\nnpm install acme\n```\n\n";
    let pip = "---\ntitle: Installation\n---\n\n```bash\npip install acme\n```\n";
    let of = |start: &str| {
        text(&[
            ("docs.json", config),
            ("quickstart.mdx", start),
            ("install.mdx", pip),
        ])
    };
    let both = of(&format!("{npm}<CodeGroup>\n{python}\n{js}</CodeGroup>\n"));
    assert!(both.contains("- Install: `npm install acme`"), "{both}");
    assert!(both.contains("await pay.all(1);"), "{both}");
    assert!(!both.contains("from acme import pay"), "{both}");
    let one = of(&format!("{npm}{python}"));
    assert!(one.contains("- Install: `pip install acme`"), "{one}");
    assert!(!one.contains("- Install: `npm"), "{one}");
}

#[test]
fn the_version_since_which_a_command_is_there_is_not_its_purpose() {
    let config = r#"{"name":"Acme","navigation":{"pages":["start","cli"]}}"#;
    let cli = "---\ntitle: CLI\n---\n\n## `acme pay`\n\nNew in version 2.1.0\n\nPays a charge.\n\n\
        ## `acme stop`\n\nStops.\n\n## `acme push`\n\nPushes.\n";
    let text = text(&[
        ("docs.json", config),
        ("start.mdx", "# x\n"),
        ("cli.mdx", cli),
    ]);
    assert!(text.contains("| `acme pay` | Pays a charge. |"), "{text}");
    assert!(!text.contains("New in version"), "{text}");
}

#[test]
fn the_old_name_of_a_variable_is_no_variable() {
    let start = "---\ntitle: Environment variables\n---\n\nThe variable `ACME_OLD_KEY` is now `ACME_KEY`.\n\n\
        - `ACME_PORT`: the port.\n- `ACME_LEVEL` was renamed to `ACME_LOG`.\n";
    let config = r#"{"name":"Acme","navigation":{"pages":["variables"]}}"#;
    let text = text(&[("docs.json", config), ("variables.mdx", start)]);
    let table = text.split_once("### Environment variables").unwrap().1;
    let table = table.split_once("\n###").unwrap().0;
    assert!(table.contains("`ACME_PORT`"), "{text}");
    for old in ["ACME_OLD_KEY", "ACME_LEVEL"] {
        assert!(!table.contains(old), "{old}\n{text}");
    }
}

#[test]
fn a_further_part_begins_with_an_installation() {
    let config = r#"{"name":"Acme","navigation":{"tabs":[{"tab":"One","pages":["one/quickstart"]},
        {"tab":"Two","pages":["two/quickstart"]},{"tab":"Three","pages":["three/quickstart"]}]}}"#;
    let call =
        |name: &str| format!("```js\nimport {{ Acme }} from 'acme';\nawait Acme.{name}();\n```\n");
    let page = |name: &str, install: &str| {
        format!("---\ntitle: Quickstart\n---\n\n{install}{}", call(name))
    };
    let install = "```bash\nnpm install acme\n```\n\n";
    let text = text(&[
        ("docs.json", config),
        ("one/quickstart.mdx", &page("pay", install)),
        ("two/quickstart.mdx", &page("stop", "")),
        (
            "three/quickstart.mdx",
            &page("refund", &install.replace("acme", "acme-more")),
        ),
    ]);
    assert!(text.contains("await Acme.refund();"), "{text}");
    assert!(!text.contains("await Acme.stop();"), "{text}");
}

#[test]
fn a_neutral_call_comes_before_one_inside_a_platform_and_its_placeholders_are_explained() {
    let wrapped = "---\ntitle: Quickstart for functions\n---\n\n```bash\nnpm install acme\n```\n\n```bash\nexport ACME_KEY=x\n```\n\n```ts\n\
        import { Acme } from 'acme';\n\nexport const handler = async () => {\n  return new Acme(process.env.ACME_KEY).pay(5);\n};\n```\n";
    let neutral = "---\ntitle: Get started\n---\n\n```bash\nnpm install acme\n```\n\n```bash\nexport ACME_KEY=x\n```\n\n```ts\n\
        import { Acme } from 'acme';\n\nawait new Acme('ACME_URL').pay(5);\n```\n\n\
        Where `ACME_URL` is the address of your project.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["function-quickstart","start"]}}"#,
        ),
        ("function-quickstart.mdx", wrapped),
        ("start.mdx", neutral),
    ]);
    let (first, _) = text.split_once("### Guides").unwrap();
    assert!(
        first.contains("await new Acme('ACME_URL').pay(5);"),
        "{text}"
    );
    assert!(!first.contains("export const handler"), "{text}");
    assert!(
        first.contains("\n- Where `ACME_URL` is the address of your project.\n"),
        "{text}"
    );
}

#[test]
fn most_variables_are_on_a_page_only_if_more_than_half_are() {
    let page = |nth: usize| {
        let rows = |n: usize| {
            format!(
                "| `ACME_{nth}_NUMBER_{n}` | A number that the program reads at its start, {n} of {nth}. |\n"
            )
        };
        let rows: String = (0..10).map(rows).collect();
        format!(
            "---\ntitle: Environment variables {nth}\n---\n\n| Variable | Description |\n|---|---|\n{rows}"
        )
    };
    let pages: Vec<String> = (0..3).map(page).collect();
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["a","b","c"]}}"#,
        ),
        ("a.mdx", &pages[0]),
        ("b.mdx", &pages[1]),
        ("c.mdx", &pages[2]),
    ]);
    assert!(
        text.contains(" more variables are on other pages; "),
        "{text}"
    );
    assert!(!text.contains("; most are in"), "{text}");
}

#[test]
fn the_first_call_of_a_part_is_about_that_part() {
    let config = r#"{"name":"Acme","navigation":{"tabs":[
        {"tab":"Boxes","groups":[{"group":"Start","pages":["boxes/start"]}]},
        {"tab":"Mailing","groups":[{"group":"Quickstarts","pages":["mailing/server","mailing/clean"]}]}]}}"#;
    let page =
        |install: &str, code: &str| format!("```bash\n{install}\n```\n\n```ts\n{code}\n```\n");
    let boxes = page(
        "npm install @acme/boxes",
        "import { Acme } from '@acme/boxes'\nawait new Acme().open(1)",
    );
    let server = page(
        "npm install @acme/mailing",
        "import { Acme } from '@acme/mailing'\nexport const POST = async () => {\n  await new Acme().send(1)\n}",
    );
    let clean = page(
        "npm install @acme/boxes",
        "import { Acme } from '@acme/boxes'\nawait new Acme().clean(1)",
    );
    let text = text(&[
        ("docs.json", config),
        (
            "boxes/start.mdx",
            &format!("---\ntitle: Quickstart\n---\n\n{boxes}"),
        ),
        (
            "mailing/server.mdx",
            &format!("---\ntitle: Server\n---\n\n{server}"),
        ),
        (
            "mailing/clean.mdx",
            &format!("---\ntitle: Cleaning\n---\n\n{clean}"),
        ),
    ]);
    let (_, mailing) = text.split_once("First working call: Mailing").unwrap();
    let (mailing, _) = mailing.split_once("\n### ").unwrap();
    assert!(mailing.contains("send(1)"), "{text}");
}

#[test]
fn a_part_is_installed_by_its_own_package() {
    let config = r#"{"name":"Acme","navigation":{"tabs":[
        {"tab":"Boxes","groups":[{"group":"Start","pages":["boxes"]}]},
        {"tab":"Mailing","groups":[{"group":"Start","pages":["mailing"]}]}]}}"#;
    let page = |installs: &str, code: &str| {
        format!("---\ntitle: Quickstart\n---\n\n{installs}```ts\n{code}\n```\n")
    };
    let install = |package: &str| format!("```bash\nnpm install {package}\n```\n\n");
    let boxes = page(
        &install("@acme/boxes"),
        "import { Acme } from '@acme/boxes'\nawait new Acme().open(1)",
    );
    let both = format!("{}{}", install("@acme/boxes"), install("@acme/mailing"));
    let mailing = page(
        &both,
        "import { Acme } from '@acme/mailing'\nawait new Acme().send(1)",
    );
    let text = text(&[
        ("docs.json", config),
        ("boxes.mdx", &boxes),
        ("mailing.mdx", &mailing),
    ]);
    let (_, first) = text.split_once("First working call: Mailing").unwrap();
    assert!(
        first.starts_with("\n\n- Install: `npm install @acme/mailing`"),
        "{text}"
    );
}
