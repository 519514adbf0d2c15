// What few pages have: percent signs in addresses, groups of tabs with attributes, terms at an edge,
// code in text that runs from right to left, and pages on paper.

import { assert, of, reads, seen, switchColours } from "./reader.mjs";

const chosen = (page) => seen(page, "[role=tab][aria-selected=true]");

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

reads("tabs: those with `sync={false}` change alone, and are not stored", async (open) => {
  const page = await open(of("rare", "/groups"));
  const tab = (n) => page.getByRole("tab", { name: "macOS" }).nth(n);
  // The address of the tab that was chosen would choose it again.
  const again = () => page.goto(of("rare", "/groups"));
  await tab(1).click();
  assert.deepEqual(await chosen(page), ["Linux", "macOS"]);
  await again();
  assert.deepEqual(await chosen(page), ["Linux", "Linux"]);
  await tab(0).click();
  assert.deepEqual(await chosen(page), ["macOS", "Linux"]);
  await again();
  assert.deepEqual(await chosen(page), ["macOS", "Linux"]);
});

reads("tabs and steps: `defaultTabIndex` shows another tab first, `stepNumber` sets the number", async (open) => {
  const page = await open(of("rare", "/numbers"));
  assert.deepEqual(await chosen(page), ["Second"]);
  assert.deepEqual(await seen(page, ".tab p:not(.tab-title)"), ["Two"]);
  const number = (n) => page.locator(".step").nth(n).evaluate((step) => {
    const { counterReset, counterIncrement } = getComputedStyle(step);
    return [counterReset, counterIncrement];
  });
  assert.deepEqual(await number(0), ["step 6", "step 1"]);
  assert.deepEqual(await number(1), ["none", "step 1"]);
});

reads("code: `dropdown` is a list instead of tabs, and changes with tabs of the same titles", async (open) => {
  const page = await open(of("rare", "/groups"));
  const group = page.locator(".codes");
  assert.equal(await group.getByRole("tab").count(), 0);
  const list = group.getByRole("combobox", { name: "Code" });
  const shown = () => seen(page, ".codes code");
  assert.deepEqual(await list.locator("option").allTextContents(), ["Linux", "macOS"]);
  assert.deepEqual(await shown(), ["apt-get"]);
  await list.selectOption("macOS");
  assert.deepEqual(await shown(), ["brew"]);
  assert.equal((await chosen(page))[0], "macOS");
  await page.getByRole("tab", { name: "Linux" }).first().click();
  assert.deepEqual([await shown(), await list.inputValue()], [["apt-get"], "Linux"]);
  const [box, tools] = await Promise.all([list, group.locator(".tools:visible")].map((part) => part.boundingBox()));
  assert.ok(box.x + box.width <= tools.x, "the buttons do not cover it");
  assert.ok(box.height >= 24, "WCAG 2.5.8");
});

reads("tooltips: the whole text is seen, at an edge and in the head of a table", async (open) => {
  for (const width of [1440, 320]) {
    const page = await open(of("rare", "/tips"), { width });
    const terms = page.locator(".tooltip");
    assert.equal(await terms.count(), 2);
    for (const n of [0, 1]) {
      await terms.nth(n).focus();
      const hidden = await terms.nth(n).locator("[role=tooltip]").evaluate((tip) => {
        const { left, right, top, bottom } = tip.getBoundingClientRect();
        const corners = [[left + 6, top + 6], [right - 6, top + 6], [left + 6, bottom - 6], [right - 6, bottom - 6]];
        return corners.filter(([x, y]) => !tip.contains(document.elementFromPoint(x, y)));
      });
      assert.deepEqual(hidden, [], `term ${n} at ${width}`);
      const [term, tip] = await Promise.all([terms.nth(n), terms.nth(n).locator("[role=tooltip]")].map((part) => part.boundingBox()));
      assert.ok(tip.y >= term.y + term.height - 8 || tip.y + tip.height <= term.y + 8, "it does not cover its term");
    }
  }
});

/** Whether the first letter of a text is at the left of its last one. */
const fromLeft = (page, selector) => page.locator(selector).first().evaluate((element) => {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let text = walker.nextNode();
  while (!text.data.trim()) text = walker.nextNode();
  const [first, last] = [text.data.search(/\S/), text.data.trimEnd().length - 1].map((at) => {
    const range = document.createRange();
    range.setStart(text, at);
    range.setEnd(text, at + 1);
    return range.getBoundingClientRect().x;
  });
  return first < last;
});

reads("right to left: code, keys, types and names of files keep the order of their signs", async (open) => {
  const page = await open(of("hebrew", "/"));
  assert.equal(await page.locator("html").getAttribute("dir"), "rtl");
  for (const part of ["p > code", "p > code ~ code", "kbd", ".tree summary", ".tree .file", ".field-head .badge", ".field-head bdi"]) {
    assert.ok(await fromLeft(page, part), part);
  }
});

reads("parts without a title have a text in the language of the page", async (open) => {
  const page = await open(of("hebrew", "/"));
  assert.deepEqual(await seen(page, ".accordion > summary"), ["פרטים"]);
  assert.deepEqual(await seen(page, "[role=tab]"), ["לשונית", "תצוגה"]);
  assert.deepEqual(await seen(page, ".more"), ["הצגת הכול"]);
});

reads("print: all tabs are on paper, each with its title", async (open) => {
  const page = await open(of("rare", "/groups"));
  await page.emulateMedia({ media: "print" });
  const titles = ["Linux", "macOS"];
  assert.deepEqual(await seen(page, ".tab-title"), [...titles, ...titles, ...titles]);
  assert.deepEqual(await seen(page, ".tab"), ["Linux One", "macOS Two", "Linux Three", "macOS Four", "Linux apt-get", "macOS brew"]);
  assert.deepEqual(await seen(page, ".tablist"), [], "nothing to press");
});

reads("print: what a reader has not opened is on paper", async (open) => {
  const page = await open(of("rare", "/closed"));
  const text = page.getByText("Under it");
  assert.equal(await text.isVisible(), false);
  await page.emulateMedia({ media: "print" });
  assert.equal(await text.isVisible(), true);
});

reads("print: the text is dark, also if the reader has chosen dark colours", async (open) => {
  const page = await open(of("rare", "/groups"));
  await switchColours(page);
  const text = () => page.locator("article .tab p").nth(1).evaluate((text) => getComputedStyle(text).color.match(/[\d.]+/g).map(Number));
  assert.ok((await text()).every((channel) => channel > 120), `${await text()}`);
  await page.emulateMedia({ media: "print" });
  assert.ok((await text()).every((channel) => channel < 120), `${await text()}`);
});
