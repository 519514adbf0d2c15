// Settings with other values than in the example: small sites that differ in one setting.

import { assert, follow, of, path, reads, seen, PHONE } from "./reader.mjs";

/** The group without a root that is nested in another one. */
const nested = (page) => page.locator(".nested", { hasText: "Payments" });

/** The title of a group is a link, and beside it the group opens. */
async function isLink(page) {
  const group = nested(page);
  assert.equal(await group.locator("summary a").count(), 0, "no link in a summary");
  assert.equal(await group.locator("> details").getAttribute("open"), null);
  await group.locator("> details > summary").click();
  assert.equal(await group.locator("> details").getAttribute("open"), "");
  assert.equal(path(page), "/", "the chevron leads nowhere");
  assert.equal(await group.locator("> details > summary").getAttribute("aria-label"), "Pages of Payments");
  const [link, chevron] = await Promise.all([
    group.locator("> a").boundingBox(), group.locator("> details > summary").boundingBox(),
  ]);
  assert.ok(chevron.x >= link.x + link.width, "one can be pressed without the other");
  assert.ok(chevron.width >= 24 && chevron.height >= 24, "WCAG 2.5.8");
  await follow(page, group.locator("> a"));
  assert.equal(path(page), "/payments/start", "its first page");
  assert.equal(await nested(page).locator("> details").getAttribute("open"), "", "open around the page that is read");
}

/** The title of a group opens it, and closes it. */
async function isToggle(page) {
  const group = nested(page);
  assert.equal(await group.locator("> a").count(), 0);
  const title = group.locator("> details > summary");
  assert.equal((await title.innerText()).trim(), "Payments");
  assert.equal(await group.getByText("Refunds").isVisible(), false);
  await title.click();
  assert.ok(await group.getByText("Refunds").isVisible());
  assert.equal(path(page), "/", "a title that opens leads nowhere");
  await title.click();
  assert.equal(await group.getByText("Refunds").isVisible(), false);
}

reads("drilldown true: the title of a group without a root leads to its first page", async (open) => {
  const page = await open(of("always", "/"));
  await isLink(page);
  await follow(page, page.locator(".group-title a", { hasText: "Guides" }));
  assert.equal(path(page), "/", "of a group at the top too");
});

reads("drilldown true: on a phone, title and chevron are apart in the drawer", async (open) => {
  const page = await open(of("always", "/"), { width: PHONE });
  await page.locator(".menu").click();
  await isLink(page);
});

reads("drilldown true: without scripts the chevron opens the group", async (open) => {
  await isLink(await open(of("always", "/"), { scripts: false }));
});

reads("drilldown false: the title opens and closes the group with any theme", async (open) => {
  const page = await open(of("never", "/"));
  await isToggle(page);
  assert.equal(await page.locator(".group-title a").count(), 0);
});

reads("drilldown unset: the theme decides", async (open) => {
  await isLink(await open(of("willow", "/")));
  await isToggle(await open(of("mint", "/")));
});

reads("edit: a record whose host is unknown, or that names no repository, gives no link", async (open) => {
  const edit = (page) => page.locator(".actions .edit");
  const known = await open(of("always", "/payments/start"));
  assert.equal(await edit(known).getAttribute("href"), "https://gitlab.acme.test/docs/guide/-/edit/next/payments/start.mdx");
  for (const site of ["never", "mint"]) {
    assert.equal(await edit(await open(of(site, "/payments/start"))).count(), 0, site);
  }
});

/** Returns computed properties of the first element that a selector matches. */
const computed = (page, selector, ...names) => page.locator(selector).first().evaluate((element, names) => {
  const style = getComputedStyle(element);
  return names.map((name) => style.getPropertyValue(name));
}, names);

reads("a stylesheet of the author changes the content, the header and the body", async (open) => {
  const page = await open(of("styled", "/"));
  assert.deepEqual(await computed(page, ".brand", "color"), ["rgb(1, 2, 3)"]);
  assert.deepEqual(await computed(page, "header.top", "background-color"), ["rgb(4, 5, 6)"]);
  assert.deepEqual(await computed(page, "body", "background-color"), ["rgb(7, 8, 9)"]);
  assert.notDeepEqual(await computed(page, ".sidebar a", "color"), ["rgb(9, 9, 9)"], "a plain selector stays in the content");
  assert.deepEqual(await computed(page, ".sidebar", "position"), ["sticky"], "a part of the shell stays in its place");
});

reads("utility classes have their meaning, and the colour scheme has its class", async (open) => {
  const page = await open(of("styled", "/"));
  assert.deepEqual(await computed(page, ".cover", "background-color", "width"), ["rgba(0, 0, 0, 0.5)", "300px"]);
  const isDark = () => page.evaluate(() => document.documentElement.classList.contains("dark"));
  const before = await isDark();
  assert.deepEqual(await computed(page, ".brand", "border-left-width"), [before ? "3px" : "0px"]);
  await page.locator(".theme").click();
  assert.equal(await isDark(), !before);
  assert.deepEqual(await computed(page, ".brand", "border-left-width"), [before ? "0px" : "3px"]);
});

reads("nothing in the content covers the parts around it", async (open) => {
  const page = await open(of("styled", "/"));
  assert.deepEqual(await computed(page, ".cover", "position"), ["fixed"]);
  const isFree = (selector) => page.locator(selector).first().evaluate((element) => {
    const box = element.getBoundingClientRect();
    const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return element === top || element.contains(top);
  });
  for (const selector of [".search", ".logo", ".sidebar a"]) {
    assert.ok(await isFree(selector), selector);
  }
});

reads("the row of a table has the colour that its author gives it", async (open) => {
  const page = await open(of("styled", "/"));
  assert.deepEqual(await computed(page, "thead tr", "background-color"), ["rgb(17, 17, 17)"]);
  assert.deepEqual(await computed(page, "thead th", "background-color", "color"), ["rgba(0, 0, 0, 0)", "rgb(255, 255, 255)"]);
});

reads("on this page: only the headings of the tabs that are shown", async (open) => {
  const page = await open(of("styled", "/payments/start"));
  const listed = () => seen(page, ".contents a");
  assert.deepEqual(await listed(), ["Before", "Install", "Check", "After"]);
  await page.getByRole("tab", { name: "macOS" }).click();
  assert.deepEqual(await listed(), ["Before", "Install with brew", "After"]);
});
