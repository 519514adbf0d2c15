// The search, with the keyboard only: titles first, then the text of pages.

import { assert, axe, path, reads, site } from "./reader.mjs";

/** Types into the search and waits for its final results. */
async function find(page, typed) {
  const input = page.locator("dialog.finder input");
  await input.fill("");
  await input.fill(typed);
  await page.locator(".finder .said:not(:empty)").waitFor();
}

/** Opens the search by its key. */
async function begin(page) {
  await page.keyboard.press("/");
  await page.locator("dialog.finder[open]").waitFor();
}

/** The paths that were found, best first. */
const found = (page) => page.locator("#found a").evaluateAll((links) => links.map((link) => link.getAttribute("href")));

reads("the page whose title is typed is the first", async (open) => {
  for (const at of ["/", "/next", "/fr", "/ar"]) {
    const page = await open(at);
    const pages = await page.evaluate(() =>
      fetch(`${document.body.dataset.search}/pages.json`).then((answer) => answer.json()));
    assert.ok(pages.length > 1, `pages that are found from ${at}`);
    await begin(page);
    for (const [path, title] of pages) {
      await find(page, title);
      const [first] = await found(page);
      // Two pages may have the same title.
      const same = pages.filter((other) => other[1] === title).map(([path]) => `${site}/${path}`);
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
  const about = page.locator("#found a", { hasText: "24 hours" }).first();
  assert.match(await about.getAttribute("href"), /#/);
  assert.match(await about.locator(".excerpt mark").first().innerText(), /idempotency/i);
});

reads("each version and language has its own search", async (open) => {
  const page = await open("/ar");
  await begin(page);
  await find(page, "Waypost");
  const paths = await found(page);
  assert.ok(paths.length > 0 && paths.every((path) => path.startsWith(`${site}/ar`)), `${paths}`);
});

reads("a search without results says so", async (open) => {
  const page = await open("/");
  await begin(page);
  await find(page, "zzzz");
  assert.equal((await found(page)).length, 0);
  assert.match(await page.locator(".finder .said").innerText(), /zzzz/);
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
