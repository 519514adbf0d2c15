//! The procedures of a generated skill.

use super::*;

#[test]
fn workflows_are_procedures_of_the_product_only() {
    let text = product().text;
    let workflows = section(&text, "Workflows");
    for wanted in [
        "1. Install Acme",
        "3. Run code",
        "1. Call `box.pause()`.",
        "2. Keep the id of the box.",
    ] {
        assert!(workflows.contains(wanted), "{wanted}: {workflows}");
    }
    for other in ["Steal", "Acme stops", "Start the copy", "Add boxes", "Fork"] {
        assert!(!workflows.contains(other), "{other}: {workflows}");
    }
    let steps = workflows.find("Install Acme").unwrap();
    assert!(
        steps < workflows.find("box.pause").unwrap(),
        "the start comes first"
    );
}

#[test]
fn a_step_shows_its_own_command_and_no_message() {
    let page = "## Install the Acme CLI\n\nYou need Node first.\n\n```bash\ncurl -o- https://nvm.test/install.sh | bash\n```\n\n\
        ```bash\nnpm install -g @acme/cli\n```\n\n## Connect to a warehouse\n\nIf you see this, allow our address.\n\n\
        ```\nOperation did not complete within the designated timeout.\n```\n\n## Run a query\n\n```bash\nacme query 1\n```\n\n## See also\n\nMore.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{ "name": "Acme", "navigation": { "pages": ["quickstart"] } }"#,
        ),
        ("quickstart.mdx", page),
    ]);
    assert!(text.contains("1. Install the Acme CLI"), "{text}");
    assert!(!text.contains("nvm.test"), "{text}");
    assert!(text.contains("\n2. Connect to a warehouse\n"), "{text}");
    assert!(!text.contains("designated timeout"), "{text}");
    assert!(!text.contains("See also"), "{text}");
}

#[test]
fn a_step_announces_no_output_that_it_does_not_show() {
    let page = "<Steps>\n<Step title=\"Install Acme\">\n```bash\nnpm install -g acme\n```\n</Step>\n\
        <Step title=\"Send a message\">\n```bash\nacme send 1\n```\n\nYou should see:\n\n```json\n{ \"ok\": true }\n```\n</Step>\n\
        <Step title=\"Read the answer\">\n```bash\nacme read 1\n```\n</Step>\n</Steps>\n";
    let text = text(&[
        (
            "docs.json",
            r#"{ "name": "Acme", "navigation": { "pages": ["quickstart"] } }"#,
        ),
        ("quickstart.mdx", page),
    ]);
    assert!(text.contains("2. Send a message"), "{text}");
    assert!(!text.contains("You should see"), "{text}");
}

#[test]
fn the_same_steps_of_several_pages_are_shown_once_and_prerequisites_never() {
    let chain = |name: &str| {
        format!(
            "# {name}: quickstart\n\n## Prerequisites\n\n1. Create an AWS account.\n2. Install Terraform.\n\n\
             ## How to start\n\n1. Sign up with Acme.\n2. Deploy a node.\n3. View its credentials.\n"
        )
    };
    let (one, two) = (chain("Base"), chain("Tron"));
    let text = text(&[
        (
            "docs.json",
            r#"{ "name": "Acme", "navigation": { "pages": ["base-quickstart", "tron-quickstart"] } }"#,
        ),
        ("base-quickstart.mdx", &one),
        ("tron-quickstart.mdx", &two),
    ]);
    assert_eq!(text.matches("2. Deploy a node.").count(), 1, "{text}");
    assert!(!text.contains("AWS account"), "{text}");
}

#[test]
fn a_procedure_is_whole_and_an_explanation_is_none() {
    let page = "---\ntitle: Deploy\n---\n\nThe service will:\n\n1. Read the file.\n2. Start the job.\n\n\
        ## Connect a tunnel\n\n<Steps>\n<Step title=\"Run a host\">\nPut it in the network. The host needs:\n\n\
        - a public address that other networks reach, which the administrator of the network gives to it\n\
        - a second address that stays the same after each restart of the host, whatever happens there\n</Step>\n\
        <Step title=\"Set the fields\">\nFill in:\n\n- the host\n- the port\n</Step>\n\
        <Step title=\"Send a job\">\n```js\ntest('x', () => {\n  acme.send();\n```\n\nFollow [the guide](/send).\n</Step>\n</Steps>\n\n\
        ## Set up mail\n\n<Steps>\n<Step title=\"Add it\"></Step>\n<Step title=\"Enable it\"></Step>\n</Steps>\n\n\
        There are two ways to stop.\n\n1. Stop it now.\n2. Stop it later.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["deploy","send"]}}"#,
        ),
        ("deploy.mdx", page),
        ("send.mdx", "# Send\n"),
    ]);
    let workflows = section(&text, "Workflows");
    for wanted in [
        "1. Run a host. Put it in the network.\n".to_owned(),
        "2. Set the fields. Fill in: the host; the port\n".to_owned(),
        format!("3. Send a job. Follow the guide. – [Send]({BASE}/send)\n"),
    ] {
        assert!(workflows.contains(&wanted), "{wanted}: {workflows}");
    }
    for other in [
        "Read the file",
        "The host needs",
        "test(",
        "Add it",
        "Stop it now",
    ] {
        assert!(!workflows.contains(other), "{other}: {workflows}");
    }
}

#[test]
fn the_label_of_a_tab_tells_similar_procedures_apart() {
    let tab = |language: &str| {
        format!(
            "<Tab title=\"{language}\">\n\n### Set up\n\n1. Create the {language} project.\n2. Add `acme`.\n\n</Tab>\n"
        )
    };
    let page = format!(
        "---\ntitle: Build a client\n---\n\n<Tabs>\n{}{}</Tabs>\n",
        tab("Java"),
        tab("Python")
    );
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["build"]}}"#,
        ),
        ("build.mdx", &page),
    ]);
    for heading in ["Java", "Python"] {
        let heading = format!("### Build a client: {heading}: Set up\n");
        assert!(text.contains(&heading), "{text}");
    }
}

#[test]
fn variants_windows_and_migrations_are_no_workflows() {
    let variants = "---\ntitle: Quickstart for files\n---\n\n## Upload a file\n\n```js\nacme.up(1)\n```\n\n## Upload a directory\n\nMore.\n\n\
        ## Download a file\n\n```js\nacme.down(1)\n```\n\n## Download a directory\n\nMore.\n";
    let window =
        "---\ntitle: Get a key\n---\n\n1. Click the button.\n2. Copy the key from the dashboard.\n";
    let migration =
        "---\ntitle: Migrate to v2\n---\n\n1. Run `acme migrate`.\n2. Remove the old file.\n";
    let guide = "---\ntitle: Pay\n---\n\n1. Run `acme pay`.\n2. Read the receipt.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["files-quickstart","key","migrate","pay"]}}"#,
        ),
        ("files-quickstart.mdx", variants),
        ("key.mdx", window),
        ("migrate.mdx", migration),
        ("pay.mdx", guide),
    ]);
    let workflows = section(&text, "Workflows");
    assert_eq!(workflows.matches("\n### ").count(), 1, "{workflows}");
    assert!(workflows.contains("### Pay\n"), "{workflows}");
}

#[test]
fn one_of_several_quickstarts_is_a_workflow() {
    let page =
        |name: &str| format!("---\ntitle: {name}\n---\n\n1. Install {name}.\n2. Run `{name}`.\n");
    let (go, node, python) = (page("Go"), page("Node"), page("Python"));
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"groups":[{"group":"Quickstarts","pages":["go","node","python"]}]}}"#,
        ),
        ("go.mdx", &go),
        ("node.mdx", &node),
        ("python.mdx", &python),
    ]);
    let workflows = section(&text, "Workflows");
    assert!(workflows.contains("2. Run `Go`"), "{workflows}");
    assert!(!workflows.contains("Run `Node`"), "{workflows}");
}

#[test]
fn a_procedure_whose_steps_are_elsewhere_is_left_out() {
    let page = "---\ntitle: Connect a warehouse\n---\n\n<Steps>\n<Step title=\"Connect to the warehouse\">\n\
        See each section below for your kind.\n</Step>\n<Step title=\"Import a project\">\nFollow the guide below.\n</Step>\n</Steps>\n";
    let test = "---\ntitle: Deploy a contract\n---\n\n<Steps>\n<Step title=\"Build it\">\n```bash\nacme build\n```\n</Step>\n\
        <Step title=\"Test it\">\nPaste the following code.\n</Step>\n\
        <Step title=\"Deploy it\">\nRun `acme deploy` for the chain.\n\n```bash\nacme deploy\n```\n</Step>\n</Steps>\n";
    let text = text(&[
        (
            "docs.json",
            r#"{ "name": "Acme", "navigation": { "pages": ["connect", "deploy"] } }"#,
        ),
        ("connect.mdx", page),
        ("deploy.mdx", test),
    ]);
    let workflows = section(&text, "Workflows");
    assert_eq!(
        workflows.trim(),
        "Workflows\n\n### Deploy a contract\n\n1. Build it (the code is in the first working call)\n2. Test it (see the page)\n\
         3. Deploy it. Run `acme deploy` for the chain.\n\n\
         Details: [Deploy a contract](https://docs.acme.test/deploy)"
    );
}

#[test]
fn a_step_names_what_a_list_below_it_holds_or_has_only_its_title() {
    let long = "words ".repeat(30);
    let page = format!(
        "---\ntitle: Quickstart\n---\n\n<Steps>\n<Step title=\"Describe the app\">\nFill in the details:\n\n\
         - **Name**: {long}\n- **Home**: {long}\n</Step>\n\
         <Step title=\"Save the keys\">\nAfter that, you see:\n\n- {long}\n- {long}\n\nClose the window.\n</Step>\n\
         <Step title=\"Run it\">\n```bash\nacme run\n```\n</Step>\n</Steps>\n"
    );
    let config = r#"{ "name": "Acme", "navigation": { "pages": ["quickstart"] } }"#;
    let text = text(&[("docs.json", config), ("quickstart.mdx", &page)]);
    assert!(
        text.contains("\n1. Describe the app. Fill in the details: Name; Home\n"),
        "{text}"
    );
    assert!(text.contains("\n2. Save the keys\n"), "{text}");
}

#[test]
fn the_code_of_a_step_is_no_address_and_not_from_steps_inside_it() {
    let page = "---\ntitle: Quickstart\n---\n\n<Steps>\n<Step title=\"Describe the endpoint\">\nWrite its address.\n\n\
        ```yaml\nhttps://api.acme.test/v1/{id}\n```\n</Step>\n\
        <Step title=\"Change a page\">\nChoose a way.\n<Steps>\n<Step title=\"Install it\">\n```bash\nnpm i acme-tool\n```\n</Step>\n\
        <Step title=\"Use it\">\nWrite.\n</Step>\n</Steps>\n</Step>\n\
        <Step title=\"Run it\">\n```bash\nacme run\n```\n</Step>\n</Steps>\n";
    let config = r#"{ "name": "Acme", "navigation": { "pages": ["quickstart"] } }"#;
    let text = text(&[("docs.json", config), ("quickstart.mdx", page)]);
    let workflows = section(&text, "Workflows");
    assert!(!workflows.contains("api.acme.test"), "{text}");
    assert!(
        workflows.contains("\n2. Change a page. Choose a way.\n"),
        "{text}"
    );
}

#[test]
fn a_step_has_all_its_code_and_later_code_imports_only_what_is_shown() {
    let page = "## 1. Install it\n\n```bash\nnpm install acme\n```\n\n## 2. Connect\n\n1. Paste the key:\n\n   \
        ```bash title=\".env.local\"\n   ACME_KEY=x\n   ```\n\n2. Make a client\n\n   ```ts title=\"lib/client.ts\"\n   \
        import { Acme } from \"acme\"\n\n   export const client = new Acme()\n   ```\n\n## 3. Pay\n\n```ts title=\"app/page.ts\"\n\
        import { client } from \"@/lib/client\"\n\nawait client.pay(1)\n```\n\n## 4. Refund\n\nSend it back.\n\n```ts title=\"app/refund.ts\"\n\
        import { ledger } from \"@/lib/ledger\"\n\nawait ledger.refund(1)\n```\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["quickstart"]}}"#,
        ),
        ("quickstart.mdx", page),
    ]);
    let workflows = section(&text, "Workflows");
    for wanted in ["export const client = new Acme()", "await client.pay(1)"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(
        workflows.contains("4. Refund (the code is on the page)\n"),
        "{text}"
    );
    assert!(!workflows.contains("ledger.refund"), "{text}");
}

#[test]
fn of_alternatives_a_step_shows_the_one_that_a_later_step_uses() {
    let page = "<Steps>\n<Step title=\"Run the server\">\n<CodeGroup>\n```python server.py (stdio)\nfrom acme import mcp\n\
        mcp.run()\n```\n```python server.py (HTTP)\nfrom acme import mcp\nmcp.run(transport=\"http\", port=8000)\n```\n</CodeGroup>\n</Step>\n\
        <Step title=\"Call the server\">\n```python client.py\nfrom acme import Client\nClient(\"http://localhost:8000/mcp\").ping()\n```\n</Step>\n</Steps>\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["index","serve"]}}"#,
        ),
        (
            "index.mdx",
            "# Acme\n\n```python\nimport acme\nacme.run(1)\n```\n",
        ),
        ("serve.mdx", page),
    ]);
    let workflows = section(&text, "Workflows");
    assert!(workflows.contains("port=8000"), "{text}");
    assert!(!workflows.contains("stdio"), "{text}");
}

#[test]
fn code_that_does_not_fit_is_named() {
    let long = |name: &str| format!("await acme.{name}(1)\n").repeat(20);
    let page = format!(
        "<Steps>\n<Step title=\"Pay\">\n```js\n{}```\n\nThen read them.\n\n```js\n{}```\n</Step>\n\
         <Step title=\"Refund\">\n```js\nawait acme.refund(1)\n```\n\nOr with the command line:\n\n```bash\nacme refund 1\n```\n</Step>\n</Steps>\n",
        long("pay"),
        long("read")
    );
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["index","pay"]}}"#,
        ),
        ("index.mdx", "# Acme\n\n```js\nawait acme.run(1)\n```\n"),
        ("pay.mdx", &page),
    ]);
    let workflows = section(&text, "Workflows");
    assert!(
        workflows.contains("1. Pay. Then read them (more code on the page):\n"),
        "{text}"
    );
    assert!(
        workflows.contains("2. Refund: `await acme.refund(1)`\n"),
        "{text}"
    );
}

#[test]
fn numbered_headings_at_any_level_are_one_procedure_with_the_steps_inside() {
    let page = "## Configuration\n\n### Prerequisites\n\nA key.\n\n### Step 1: Configure Acme\n\n<Steps>\n\
        <Step title=\"Create a server\">\nOpen the console.\n</Step>\n<Step title=\"Note its address\">\nCopy it from the console.\n</Step>\n</Steps>\n\n\
        ### Step 2: Set the key\n\n```bash\nexport ACME_KEY=x\n```\n\n### Step 3: Run it\n\n```bash\nacme run server.py\n```\n\n## Testing\n\nTest it.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["index","connect"]}}"#,
        ),
        ("index.mdx", "# Acme\n\n```bash\nacme go 1\n```\n"),
        ("connect.mdx", page),
    ]);
    let workflows = section(&text, "Workflows");
    let wanted = format!(
        ": Configuration\n\n1. Configure Acme. Create a server; Note its address\n2. Set the key: `export ACME_KEY=x`\n\
         3. Run it: `acme run server.py`\n\nDetails: [Connect]({BASE}/connect#configuration)\n"
    );
    assert!(workflows.contains(&wanted), "{text}");
    assert_eq!(workflows.matches("\n### ").count(), 1, "{text}");
}

#[test]
fn a_step_keeps_settings_and_code_that_returns_something_and_numbers_of_parts_are_no_steps() {
    let page = "<Steps>\n<Step title=\"Set the server\">\n```bash\nACME_SERVER=http://localhost:3000     # the address\nOTHER_NAME=x\n```\n</Step>\n\
        <Step title=\"Add a tool\">\nTo add a tool that returns a greeting, write a function:\n\n```python\nimport acme\nacme.tool(greet)\n```\n</Step>\n</Steps>\n\n\
        ## Variables\n\n### 1. Global variables\n\n```js\nawait acme.run({ all: 1 })\n```\n\n### 2. Local variables\n\n```js\nawait acme.run({ own: 1 })\n```\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"pages":["index","tools"]}}"#,
        ),
        (
            "index.mdx",
            "# Acme\n\n```python\nimport acme\nacme.run(1)\n```\n",
        ),
        ("tools.mdx", page),
    ]);
    let workflows = section(&text, "Workflows");
    for wanted in ["ACME_SERVER=http://localhost:3000", "acme.tool(greet)"] {
        assert!(workflows.contains(wanted), "{wanted}: {text}");
    }
    assert!(!workflows.contains("Global variables"), "{text}");
}

#[test]
fn a_page_of_a_group_of_quickstarts_without_code_comes_after_guides_with_code() {
    let tunnel = "---\ntitle: Connect a tunnel\n---\n\n1. Add the public key to the host.\n2. Restart the host.\n";
    let pay = "---\ntitle: Pay an order\n---\n\n1. Run `acme pay`.\n\n   ```bash\n   acme pay 1\n   ```\n\n2. Read the receipt.\n";
    let text = text(&[
        (
            "docs.json",
            r#"{"name":"Acme","navigation":{"groups":[{"group":"Quickstart","pages":["tunnel"]},{"group":"Orders","pages":["pay"]}]}}"#,
        ),
        ("tunnel.mdx", tunnel),
        ("pay.mdx", pay),
    ]);
    let workflows = section(&text, "Workflows");
    let at = |what: &str| workflows.find(what).unwrap_or_else(|| panic!("{text}"));
    assert!(
        at("### Pay an order") < at("### Connect a tunnel"),
        "{text}"
    );
}
