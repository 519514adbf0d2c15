// What few pages have: percent signs in addresses, groups of tabs with attributes, terms at an edge,
// code in text that runs from right to left, and pages on paper.

import { assert, of, reads, seen } from "./reader.mjs";

reads("a percent sign in the id of a heading stops no script, and both links lead to the heading", async (open) => {
  const page = await open(of("rare", "/percent"));
  assert.deepEqual(await seen(page, "[role=tab]"), ["Left", "Right"]);
  const links = await page.locator(".contents a").evaluateAll((all) => all.map(({ hash }) => hash));
  const own = await page.locator("h2 .anchor").evaluateAll((all) => all.map(({ hash }) => hash));
  assert.deepEqual(links, ["#a%25b", "#100%2525zz%25"]);
  assert.deepEqual(links, own);
  assert.equal(await page.locator(".contents [aria-current]").count(), 1, "the current heading is marked");
});

reads("a percent sign in the address stops no script", async (open) => {
  const page = await open(of("rare", "/groups#100%"));
  assert.deepEqual(await chosen(page), ["Linux", "Linux"]);
  await page.getByRole("tab", { name: "macOS" }).first().click();
  assert.match(await page.locator("article").innerText(), /Two/);
});

reads("404: a percent sign in the address stops no suggestion", async (open) => {
  const page = await open(of("rare", "/groups/%E0"));
  const first = page.locator("#_suggestions a").first();
  await first.waitFor();
  assert.equal(await first.textContent(), "Groups");
}, { faults: true });
