// The rules of the navigation, as a reader sees them.

import { assert, follow, path, reads, seen, visit, PHONE } from "./reader.mjs";

reads("tabs: the current one is marked, another one opens its first page", async (open) => {
  const page = await open("/");
  assert.deepEqual(await seen(page, ".sections > ul > li.current"), ["Guides"]);
  await follow(page, page.locator(".sections").getByText("Internals"));
  assert.equal(path(page), "/internals/architecture");
  assert.deepEqual(await seen(page, ".sections > ul > li.current"), ["Internals"]);
});

reads("menu: a tab with a menu opens a list of its items with their descriptions", async (open) => {
  const page = await open("/");
  const menu = page.locator(".sections details", { hasText: "Operate" });
  await menu.locator("summary").click();
  assert.match(await menu.locator("li").first().innerText(), /Run\s+Start, watch and stop a node/);
  await page.keyboard.press("Escape");
  assert.equal(await menu.getAttribute("open"), null, "Escape closes the menu");
  await menu.locator("summary").click();
  await follow(page, menu.getByText("Configure"));
  assert.equal(path(page), "/operate/configuration");
});

reads("menu: opening one closes the other, and a press elsewhere closes it", async (open) => {
  const page = await open("/");
  await page.locator(".sections summary").click();
  await page.locator("[data-kind=languages] summary").click();
  assert.equal(await page.locator("details.selector[open]").count(), 1);
  await page.locator("h1").click();
  assert.equal(await page.locator("details.selector[open]").count(), 0);
});

reads("anchors: they are in the sidebar and lead to their first pages", async (open) => {
  const page = await open("/internals/architecture");
  await follow(page, page.locator(".anchors").getByText("Speed"));
  assert.equal(path(page), "/internals/speed");
  assert.deepEqual(await seen(page, ".anchors [aria-current]"), ["Speed"]);
});

reads("global anchors: they are on every page, in every language", async (open) => {
  const page = await open("/quickstart");
  for (const at of ["/quickstart", "/api", "/next", "/ar", "/fr"]) {
    await visit(page, at);
    assert.ok((await seen(page, ".anchors a")).includes("Agent Skills"), `global anchor on ${at}`);
  }
});

reads("N3: the title of a group with a root is a link to it, a chevron beside it opens the group", async (open) => {
  const page = await open("/quickstart");
  const group = page.locator(".nested", { hasText: "Components" }).first();
  assert.equal(await group.locator("summary a").count(), 0, "no link in a summary");
  assert.equal(await group.locator("> details").getAttribute("open"), "", "expanded at first");
  await group.locator("> details > summary").click();
  assert.equal(await group.locator("> details").getAttribute("open"), null);
  assert.equal(path(page), "/quickstart", "the chevron leads nowhere");
  await follow(page, group.locator("> a"));
  assert.equal(path(page), "/write/components");
  const top = page.locator(".group-title a", { hasText: "Skills" });
  await follow(page, top);
  assert.equal(path(page), "/skills");
  assert.equal(await page.locator(".group-title [aria-current=page]").innerText(), "Skills");
});

reads("N4: `card` and `accordion` list the children on root pages, `none` does not", async (open) => {
  let page = await open("/write");
  assert.deepEqual(await seen(page, ".cards.listing .card-title > a"), ["Pages", "Navigation", "Components", "Publishing", "Reference"]);
  await follow(page, page.locator(".listing").getByRole("link", { name: "Publishing" }));
  assert.equal(path(page), "/write/themes");
  assert.equal(await page.locator(".listing").count(), 0, "no listing on a page that is no root");
  page = await open("/skills");
  const nested = page.locator(".rows details");
  assert.equal(await nested.locator("a").first().isVisible(), false);
  await nested.locator("summary").click();
  assert.deepEqual(await seen(page, ".rows details a"), ["The manifest", "The agent card", "The index of 0.1"]);
  page = await open("/standards");
  assert.equal(await page.locator(".listing").count(), 0, "directory: none");
});

reads("N5: a nested group is closed unless it is expanded or contains the page", async (open) => {
  let page = await open("/quickstart");
  const open_ = () => page.locator(".nested", { hasText: "Publishing" }).locator("> details").getAttribute("open");
  assert.equal(await open_(), null, "closed");
  await page.locator(".nested summary", { hasText: "Publishing" }).click();
  assert.equal(await open_(), "", "opened by hand");
  page = await open("/write/themes");
  assert.equal(await open_(), "", "open around the page that is read");
  assert.equal(await page.locator("section.group > details").count(), 0, "groups at the top cannot be closed");
});

reads("N6: endpoint pages are generated, except for endpoints that have a page", async (open) => {
  const page = await open("/api");
  assert.deepEqual(await seen(page, ".sidebar .group a"), [
    "Introduction", "Errors", "GET Follow an update", "GET This document", "POST Queue an update of the project from its branch",
    "GET List sites, by project", "GET Read the record of a site", "PUT Create a site, or replace its record",
    "DEL Remove a site", "PATCH Change some keys of a record",
    "GET Read what was counted for the owner of a site", "GET List the domains of a site, the canonical one first",
    "GET Read the state of a domain", "PUT Add a domain to a site, as its last one", "DEL Remove a domain from a site",
    "POST Check the DNS of a domain now",
    "GET List the changes of sites, the newest first",
  ]);
  await follow(page, page.locator(".sidebar").getByText("Queue an update"));
  assert.match(await page.locator("article").innerText(), /\/v1\/project\/update\/\{projectId\}/);
  assert.match(await page.locator("article").innerText(), /Idempotency-Key/);
});

reads("N7: versions have badges and mark the default; choosing one leads to the alternate page", async (open) => {
  const page = await open("/operate/certificates");
  const versions = page.locator("[data-kind=versions]");
  await versions.locator("summary").click();
  assert.deepEqual(await seen(page, "[data-kind=versions] li a"), ["Next Preview", "0.1 Current default"]);
  await follow(page, versions.getByText("Next"));
  assert.equal(path(page), "/next/operate/certificates");
  assert.match(await page.locator(".outdated").innerText(), /You are reading Next\.\s+Go to 0\.1/);
  await follow(page, page.locator(".outdated a"));
  assert.equal(path(page), "/operate/certificates");
  assert.equal(await page.locator(".outdated").count(), 0);
});

reads("versions: a page that the other version lacks leads to the nearest page", async (open) => {
  const page = await open("/operate/drain");
  const href = await page.locator("[data-kind=versions] li a").first().evaluate((a) => new URL(a.href).pathname);
  assert.equal(href, "/next/operate/certificates");
});

reads("dropdowns: the entries lead to their pages, one to another site", async (open) => {
  const page = await open("/next");
  const dropdown = page.locator("[data-kind=dropdowns]");
  await dropdown.locator("summary").click();
  assert.equal(await dropdown.getByText("Agent Skills").getAttribute("href"), "https://agentskills.io");
  await follow(page, dropdown.getByText("For authors"));
  assert.equal(path(page), "/next/preview");
});

reads("products: they have descriptions and lead to their pages", async (open) => {
  const page = await open("/ar");
  const products = page.locator("[data-kind=products]");
  await products.locator("summary").click();
  assert.equal(await products.locator("li small").first().innerText(), "كتابة الوثائق ونشرها");
  await follow(page, products.getByText("للمشغّلين"));
  assert.equal(path(page), "/ar/operate/run");
});

reads("N8: a language has its own banner, navbar, footer and text direction", async (open) => {
  const page = await open("/quickstart");
  const languages = page.locator("[data-kind=languages]");
  await languages.locator("summary").click();
  await follow(page, languages.getByText("العربية"));
  assert.equal(path(page), "/ar/quickstart", "the counterpart");
  assert.equal(await page.locator("html").getAttribute("dir"), "rtl");
  assert.match(await page.locator(".banner").innerText(), /تبني Waypost/);
  assert.deepEqual((await seen(page, ".links a")), ["تشغيل عقدة", "البدء السريع"]);
  assert.match(await page.locator(".bottom").innerText(), /تعلّم/);
  const [sidebar, main] = await Promise.all([page.locator(".sidebar").boundingBox(), page.locator("main").boundingBox()]);
  assert.ok(sidebar.x > main.x, "the sidebar is on the right");
  const french = await open("/fr");
  assert.equal(await french.locator(".dismiss").count(), 0, "this banner cannot be dismissed");
});

reads("redirects: exact, with a wildcard, and temporary", async (open) => {
  const page = await open("/");
  for (const [from, to] of [["/start", "/quickstart"], ["/reference/errors", "/api/errors"], ["/news", "/changelog"]]) {
    await visit(page, from);
    assert.equal(path(page), to, `redirect of ${from}`);
  }
});

reads("eyebrows: the breadcrumb is above the title", async (open) => {
  const page = await open("/write/components/code");
  assert.deepEqual(await seen(page, ".eyebrow li"), ["Guides", "Write", "Components"]);
});

reads("previous and next lead through the sidebar in its order", async (open) => {
  const page = await open("/fr");
  assert.equal(await page.locator(".previous a").count(), 0);
  await follow(page, page.locator(".next a"));
  assert.equal(path(page), "/fr/quickstart");
  await follow(page, page.locator(".previous a"));
  assert.equal(path(page), "/fr");
});

reads("modes: the frontmatter of a page chooses the layout around its article", async (open) => {
  const page = await open("/");
  const parts = async (at) => {
    await visit(page, at);
    const has = async (selector) => await page.locator(selector).first().isVisible();
    return { sidebar: await has(".sidebar"), title: await has("main > .title"), contents: await has(".contents") };
  };
  assert.deepEqual(await parts("/write/pages"), { sidebar: true, title: true, contents: true });
  assert.deepEqual(await parts("/standards"), { sidebar: true, title: true, contents: false }, "wide");
  assert.deepEqual(await parts("/skills/legacy-index"), { sidebar: false, title: true, contents: false }, "center");
  assert.deepEqual(await parts("/cheat-sheet"), { sidebar: false, title: false, contents: false }, "custom");
  assert.deepEqual(await parts("/write/specimen"), { sidebar: true, title: false, contents: false }, "frame");
  // Without the title of the layout, the article has its own, with the classes of its author.
  await visit(page, "/");
  assert.match(await page.locator("h1").getAttribute("class"), /text-4xl/);
  assert.equal(await page.locator("main").evaluate((main) => main.getBoundingClientRect().width > innerWidth - 100), true);
});

reads("pages: tags, deprecated pages, external links, hidden pages", async (open) => {
  const page = await open("/standards");
  assert.equal(await page.locator(".sidebar").getByText("The A2A protocol").getAttribute("href"), "https://a2a-protocol.org");
  assert.equal(await page.locator(".sidebar del").textContent(), "The index of 0.1");
  assert.equal(await page.locator(".sidebar", { hasText: "Specimen" }).count(), 0);
  assert.equal(await page.locator(".sidebar a", { hasText: "Navigation" }).locator(".badge").innerText(), "RULES");
  const hidden = await open("/write/specimen");
  assert.equal(await hidden.locator("meta[name=robots]").getAttribute("content"), "noindex");
});

reads("narrow, right to left: the drawer opens from the right, and its text runs right to left", async (open) => {
  const page = await open("/ar/quickstart", { width: PHONE });
  const sidebar = page.locator(".sidebar");
  assert.equal(await sidebar.isVisible(), false);
  const menu = await page.locator(".menu").boundingBox();
  assert.ok(menu.x > PHONE / 2, "what opens it is at the right");
  await page.locator(".menu").click();
  await sidebar.waitFor({ state: "visible" });
  const drawer = await sidebar.boundingBox();
  assert.equal(drawer.x + drawer.width, PHONE, "it stands at the right edge");
  assert.ok(drawer.x > 24, "beside it, the page can be pressed");
  const current = await sidebar.locator("[aria-current=page]").boundingBox();
  assert.ok(current.x >= drawer.x && current.x + current.width <= PHONE, "its entries lie inside of it");
  const [sign, name] = await sidebar.locator(".anchors a").first().evaluate((entry) => {
    const range = document.createRange();
    range.selectNodeContents(entry.lastChild);
    return [entry.querySelector("svg"), range].map((part) => part.getBoundingClientRect().x);
  });
  assert.ok(sign > name, "an icon stands to the right of its name");
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), PHONE, "nothing is wider than the screen");
  await page.mouse.click(10, 500);
  await sidebar.waitFor({ state: "hidden" });
  await page.locator(".menu").click();
  const products = sidebar.locator("[data-kind=products]");
  await products.locator("summary").click();
  await follow(page, products.getByText("للمشغّلين"));
  assert.equal(path(page), "/ar/operate/run");
});

reads("narrow: the sidebar is a drawer, which Escape and a press outside close", async (open) => {
  const page = await open("/write/components/code", { width: PHONE });
  const sidebar = page.locator(".sidebar");
  assert.equal(await sidebar.isVisible(), false);
  await page.locator(".menu").click();
  await sidebar.waitFor({ state: "visible" });
  assert.ok(await sidebar.locator("[aria-current=page]").isVisible());
  await page.keyboard.press("Escape");
  await sidebar.waitFor({ state: "hidden" });
  await page.locator(".menu").click();
  await page.mouse.click(380, 500);
  await sidebar.waitFor({ state: "hidden" });
  await page.locator(".menu").click();
  await follow(page, sidebar.getByText("Callouts"));
  assert.equal(path(page), "/write/components/callouts");
  assert.equal(await page.locator(".sidebar").isVisible(), false);
});

reads("of the entries of a list in the sidebar all have an icon, or none", async (open) => {
  const page = await open("/quickstart");
  for (const at of ["/quickstart", "/skills/mcp", "/operate/run", "/operate/sites", "/internals/architecture"]) {
    await visit(page, at);
    const lists = await page.locator(".sidebar .group > ul").evaluateAll((all) => all.map((list) => {
      const entries = [...list.children];
      return [entries.filter((entry) => entry.querySelector(":scope > a > .icon, :scope > details > summary > .icon")).length, entries.length];
    }));
    assert.ok(lists.length > 0, at);
    for (const [icons, entries] of lists) assert.ok([0, entries].includes(icons), `${at}: ${icons} icons of ${entries} entries`);
  }
});
