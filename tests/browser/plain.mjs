// Without scripts: every page can be read, and every menu and selector works.

import { assert, follow, path, reads, seen, visit, PHONE } from "./reader.mjs";

const plain = { scripts: false };

reads("controls that need a script are hidden", async (open) => {
  const page = await open("/quickstart", plain);
  for (const control of [".theme", ".dismiss", ".copy-page", ".connect", ".copy"]) {
    const controls = page.locator(control);
    for (let n = 0; n < await controls.count(); n += 1) {
      assert.equal(await controls.nth(n).isVisible(), false, control);
    }
  }
  assert.ok(await page.getByText("View as Markdown").isVisible());
});

reads("groups, menus and selectors open, and their links work", async (open) => {
  const page = await open("/quickstart", plain);
  await page.locator(".nested summary", { hasText: "Publishing" }).click();
  assert.ok(await page.locator(".sidebar").getByText("What is public").isVisible());
  await page.locator("[data-kind=versions] summary").click();
  await page.locator(".sections summary").click();
  assert.equal(await page.locator("details.selector[open]").count(), 1, "one at a time");
  await page.locator(".sections summary").click();
  await page.locator("[data-kind=versions] summary").click();
  await follow(page, page.locator("[data-kind=versions]").getByText("Next"));
  assert.equal(path(page), "/next");
});

reads("the drawer opens and closes on a phone", async (open) => {
  const page = await open("/concepts", { ...plain, width: PHONE });
  await page.locator(".menu").click();
  await page.locator(".sidebar").waitFor({ state: "visible" });
  await page.locator(".drawer-head button").click();
  await page.locator(".sidebar").waitFor({ state: "hidden" });
  await page.locator(".menu").click();
  await follow(page, page.locator(".sidebar").getByText("Quickstart"));
  assert.equal(path(page), "/quickstart");
});

reads("all tabs are shown, with their titles", async (open) => {
  const page = await open("/write/components/layout", plain);
  assert.deepEqual((await seen(page, ".tab-title")).slice(0, 4), ["Debian", "macOS", "Debian", "macOS"]);
  await visit(page, "/write/publish");
  assert.deepEqual(await seen(page, ".views .tab-title"), ["From a directory", "From a branch"]);
  for (const text of ["publish docs --project acme", "update trigger acme"]) {
    assert.ok(await page.locator(".views").getByText(text).isVisible(), text);
  }
});

reads("accordions open, headings are linked, the 404 page links to the first page", async (open) => {
  const page = await open("/write/navigation", plain);
  await page.locator("#n3 > summary").click();
  assert.ok(await page.locator("#n3 > div").isVisible());
  await page.locator(".contents").getByText("Drilldown").click();
  assert.equal(new URL(page.url()).hash, "#drilldown");
  const missing = await open("/no/such/page", plain);
  await follow(missing, missing.getByText("Go to the first page"));
  assert.equal(path(missing), "/");
}, { faults: true });
