// The search, with the keyboard only.

import { assert, axe, path, reads, site, PHONE } from "./reader.mjs";

/** Types into the search and waits for its results. */
async function find(page, typed) {
  const input = page.locator("dialog.finder input");
  await input.fill("");
  await page.waitForFunction(() => !document.querySelector("#found a:not(.start)"));
  await input.fill(typed);
  await page.waitForFunction(() => /^\d+$|zzzz|:/.test(document.querySelector(".finder .said").textContent)
    || document.querySelector(".finder .said.seen"));
}

/** Opens the search by its key. */
async function begin(page) {
  await page.keyboard.press("/");
  await page.locator("dialog.finder[open]").waitFor();
}

/** The base path of the site. */
const base = new URL(site).pathname.replace(/\/$/, "");

/** The paths that were found, best first. */
const found = (page) => page.locator("#found a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));

reads("the page whose title is typed is the first", async (open) => {
  for (const at of ["/", "/next", "/fr", "/ar"]) {
    const page = await open(at);
    const { language, version = null } = await page.evaluate(() => ({ ...document.body.dataset }));
    const listed = await page.evaluate((url) => fetch(url).then((answer) => answer.json()), `${base}/_waypost/pages`);
    const here = listed.pages.filter((one) => one.language === language && (one.version ?? null) === version);
    const pages = here.map((one) => [`${base}/${one.id === "index" ? "" : one.id}`, one.title]);
    assert.ok(pages.length > 1, `pages that are listed at ${at}`);
    await begin(page);
    for (const [path, title] of pages.slice(0, 12)) {
      await find(page, title);
      const [first] = await found(page);
      // Two pages may have the same title.
      const same = pages.filter((other) => other[1] === title).map(([path]) => path);
      assert.ok(same.includes(first), `${title}: ${path} is wanted, ${first} came first`);
    }
  }
});

reads("opened by a key, chosen with arrows, closed by Escape", async (open) => {
  const page = await open("/");
  await begin(page);
  await find(page, "quick");
  const first = page.locator("#found a").first();
  assert.equal(await first.locator("span").innerText(), "Quickstart");
  assert.equal(await first.locator("mark").first().innerText(), "Quick");
  assert.equal(await first.getAttribute("aria-selected"), "true");
  await page.keyboard.press("ArrowDown");
  assert.equal(await page.locator("#found a").nth(1).getAttribute("aria-selected"), "true");
  await page.keyboard.press("ArrowUp");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.equal(path(page), "/quickstart");
  await page.keyboard.press("Control+k");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await page.locator("dialog[open]").count(), 0);
});

reads("a word of the text leads to its section, and is marked in the excerpt", async (open) => {
  const page = await open("/");
  await begin(page);
  await find(page, "idempotency");
  const about = page.locator("#found a.section", { hasText: "24 hours" }).first();
  assert.match(await about.getAttribute("href"), /#/);
  assert.match(await about.locator(".excerpt mark").first().innerText(), /idempotency/i);
});

reads("each version and language has its own search", async (open) => {
  const page = await open("/ar");
  await begin(page);
  await find(page, "Waypost");
  const paths = await found(page);
  assert.ok(paths.length > 0 && paths.every((path) => path.startsWith(`${base}/ar`)), `${paths}`);
});

reads("a search without results says so", async (open) => {
  const page = await open("/");
  await begin(page);
  await find(page, "zzzz");
  assert.equal((await found(page)).length, 0);
  assert.match(await page.locator(".finder .said").innerText(), /zzzz/);
});

reads("what was searched is offered again, and can be cleared", async (open) => {
  const page = await open("/");
  await begin(page);
  await find(page, "quickstart");
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  await begin(page);
  assert.equal(await page.locator("#found .again").innerText(), "quickstart");
  await page.keyboard.press("Enter");
  await page.locator("#found a:not(.start)").first().waitFor();
  await page.locator("dialog.finder input").fill("");
  await page.locator(".finder .forget").click();
  assert.equal(await page.locator("#found .again").count(), 0);
});

reads("before anything is typed it offers pages, and selects none", async (open) => {
  const page = await open("/quickstart");
  await begin(page);
  const pages = page.locator("#found a.start");
  assert.ok(await pages.count() > 2);
  assert.ok((await pages.allInnerTexts()).every((title) => title && title !== "Quickstart"));
  assert.equal(await page.locator("#found [aria-selected=true]").count(), 0);
  await page.keyboard.press("Enter");
  assert.equal(path(page), "/quickstart", "Enter alone opens nothing");
  await page.keyboard.press("ArrowDown");
  const wanted = new URL(await pages.first().getAttribute("href"), page.url()).pathname;
  await Promise.all([page.waitForNavigation(), page.keyboard.press("Enter")]);
  assert.equal(path(page), wanted);
});

reads("an excerpt has no markup, also from the middle of a table", async (open) => {
  const page = await open("/operate/run");
  await begin(page);
  for (const typed of ["tls_handshake", "counter", "gauge", "listen.operator"]) {
    await find(page, typed);
    const texts = await page.locator("#found .excerpt").allInnerTexts();
    assert.ok(texts.length > 0, typed);
    for (const text of texts) assert.doesNotMatch(text, /`|\| |^\s*\|/, typed);
  }
});

reads("another version can be chosen", async (open) => {
  const page = await open("/next");
  await begin(page);
  await find(page, "preview");
  const versions = page.locator(".finder select");
  await versions.waitFor();
  const labels = await versions.locator("option").allInnerTexts();
  assert.ok(labels.length > 1, `${labels}`);
  const before = await found(page);
  assert.ok(before.every((path) => path.startsWith(`${base}/next`)), `${before}`);
  const other = labels.find((label) => label !== "next" && label !== labels[0]) ?? labels.at(-1);
  const value = await versions.locator("option", { hasText: other }).getAttribute("value");
  await versions.selectOption(value);
  await find(page, "waypost");
  const after = await found(page);
  assert.ok(after.length > 0 && after.every((path) => !path.startsWith(`${base}/next`)), `${after}`);
});

reads("an excerpt has at most two lines, so that results of several pages are seen at once", async (open) => {
  const page = await open("/");
  await page.setViewportSize({ width: 1440, height: 900 });
  await begin(page);
  await find(page, "certificate");
  const lines = await page.locator("#found .excerpt").evaluateAll((all) => all.map((excerpt) =>
    Math.round(excerpt.getBoundingClientRect().height / parseFloat(getComputedStyle(excerpt).lineHeight))));
  assert.ok(lines.length > 3 && Math.max(...lines) === 2, `${lines}`);
  const seen = await page.locator("#found [role=group] > a:first-child").evaluateAll((all) => {
    const end = document.getElementById("found").getBoundingClientRect().bottom;
    return all.filter((title) => title.getBoundingClientRect().bottom <= end).length;
  });
  assert.ok(seen >= 3, `${seen} pages`);
  await page.setViewportSize({ width: 1440, height: 850 });
});

reads("the search has its icon before the text, and on a phone the button that closes it", async (open) => {
  for (const [width, icon] of [[1440, "block"], [PHONE, "none"]]) {
    const page = await open("/", { width });
    await begin(page);
    const shown = await page.locator(".finder .asked").evaluate((row) => getComputedStyle(row, "::before").display);
    assert.equal(shown, icon, `${width}`);
    assert.equal(await page.locator(".finder .leave").isVisible(), width === PHONE);
  }
});

reads("keys are shown below the results", async (open) => {
  const page = await open("/");
  await begin(page);
  assert.ok(await page.locator(".finder .keys").isVisible());
  assert.deepEqual(await page.locator(".finder .keys kbd").allInnerTexts(), ["↑", "↓", "↵", "esc"]);
});

reads("results are grouped by page, with the sections below it", async (open) => {
  const page = await open("/");
  await begin(page);
  await find(page, "idempotency");
  const groups = await page.locator("#found [role=group]").evaluateAll((all) => all.map((group) => {
    const [first, ...sections] = [...group.querySelectorAll("a")].map((link) => link.getAttribute("href"));
    return { first, sections };
  }));
  assert.ok(groups.some(({ sections }) => sections.length > 0), JSON.stringify(groups));
  for (const { first, sections } of groups) {
    assert.ok(!first.includes("#"), first);
    assert.ok(sections.every((section) => section.startsWith(`${first}#`)), `${first}: ${sections}`);
  }
  assert.equal(new Set(groups.map(({ first }) => first)).size, groups.length);
});

reads("a search without results tells what may help", async (open) => {
  const page = await open("/");
  await begin(page);
  await find(page, "zzzz");
  const help = await page.evaluate(() => document.body.dataset.messages.split("|")[5]);
  assert.ok(help.length > 10);
  assert.ok((await page.locator(".finder .said").innerText()).includes(help));
});

// The answer of the server takes a few milliseconds more; `benches/peers/search` measures it.
reads("a question is asked at once, and 30 ms after the last of fast keys", async (open) => {
  const page = await open("/");
  await begin(page);
  await find(page, "key");
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 60_000);
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).searchParams.get("q")));
  const input = page.locator("dialog.finder input");
  for (const typed of ["qui", "quic", "quick"]) {
    await input.fill(typed);
    await page.clock.runFor(29);
  }
  assert.deepEqual(asked, ["qui"]);
  const answered = page.waitForResponse((response) => new URL(response.url()).searchParams.get("q") === "quick");
  await page.clock.runFor(1);
  await answered;
  await page.locator("#found a", { hasText: "Quickstart" }).first().waitFor();
  assert.deepEqual(asked, ["qui", "quick"]);
  // Another test may use this page.
  await page.clock.resume();
});

reads("on a phone the search fills the screen and has a button that closes it", async (open) => {
  const page = await open("/", { width: PHONE });
  await page.locator("a.search").click();
  const box = await page.locator("dialog.finder[open]").boundingBox();
  assert.deepEqual([box.x, box.y, box.width], [0, 0, PHONE]);
  assert.equal(box.height, await page.evaluate(() => window.innerHeight));
  await page.locator(".finder .leave").click();
  assert.equal(await page.locator("dialog[open]").count(), 0);
});

reads("without scripts the search is a page with a form", async (open) => {
  const page = await open("/", { scripts: false });
  await Promise.all([page.waitForNavigation(), page.locator("a.search").click()]);
  await page.locator("main input[name=q]").fill("quickstart");
  await Promise.all([page.waitForNavigation(), page.locator("main form button").click()]);
  assert.equal(await page.locator(".results a").first().innerText(), "Quickstart");
});

reads("without scripts the beginning of a page is below its title, before its sections", async (open) => {
  const page = await open("/_waypost/search?q=certificate", { scripts: false });
  const orders = await page.locator(".results > li").evaluateAll((all) => all.map((found) =>
    [...found.querySelectorAll("h3, p")].map((part) => (part.localName === "h3" ? "h" : "p")).join("")));
  assert.ok(orders.some((order) => order.includes("h")), `${orders}`);
  // Each heading is followed by its excerpt; an excerpt without a heading is the first one.
  for (const order of orders) assert.match(order, /^p?(hp)*$/, `${orders}`);
});

reads("axe: the open search has no serious violation", async (open) => {
  const page = await open("/");
  await begin(page);
  await find(page, "key");
  await page.evaluate(axe());
  const { violations } = await page.evaluate(() => axe.run("dialog.finder", { resultTypes: ["violations"] }));
  const grave = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  assert.deepEqual(grave.map(({ id, nodes }) => [id, nodes.map((node) => node.failureSummary)]), []);
});
