// Settings with other values than in the example: small sites that differ in one setting.

import { assert, axe, follow, of, path, reads, seen, switchColours, PHONE } from "./reader.mjs";

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
  await switchColours(page);
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
  const edges = (selector) => page.locator(selector).first().evaluate((element) => element.getBoundingClientRect());
  const [content, side, top] = await Promise.all(["main", ".sidebar", "header.top"].map(edges));
  assert.ok(content.left >= side.right && content.top >= top.bottom, "the content is beside the shell");
  assert.deepEqual(await computed(page, ".sidebar", "outline-style", "box-shadow"), ["none", "none"]);
  assert.deepEqual(await computed(page, "header.top", "filter", "grid-row-start"), ["none", "auto"]);
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

/** The colour of a custom property, as the browser computes it. */
const colour = (page, name) => page.evaluate((name) => {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}, name);

reads("colors: a button has exactly the colour of the brand, in both modes, and readable text", async (open) => {
  for (const scheme of ["light", "dark"]) {
    const page = await open(of("orange", "/"), { scheme });
    assert.deepEqual(await computed(page, ".links .primary", "background-color", "color"), ["rgb(255, 136, 0)", "rgb(0, 0, 0)"]);
  }
});

reads("colors: neutral colours have the hue of the brand", async (open) => {
  const warm = async (site) => {
    const [red, , blue] = (await colour(await open(of(site, "/")), "--quiet")).match(/\d+/g).map(Number);
    return red - blue;
  };
  assert.ok(await warm("orange") > 8, "an orange brand has warm grays");
  assert.ok(await warm("mint") < 4, "a green one has not");
});

reads("theme: three layouts", async (open) => {
  const place = async (site) => {
    const page = await open(of(site, "/"), { width: 1600 });
    const box = await page.locator(".sidebar").boundingBox();
    const [card] = await computed(page, "main", "border-top-width");
    return { x: box.x, isCard: card !== "0px" };
  };
  const [bar, panel, card] = [await place("mint"), await place("orange"), await place("dark")];
  assert.ok(bar.x > 40 && !bar.isCard, JSON.stringify(bar));
  assert.ok(panel.x === 0 && !panel.isCard, JSON.stringify(panel));
  assert.ok(card.isCard, JSON.stringify(card));
  assert.match((await computed(await open(of("dark", "/")), "h1", "font-family"))[0], /^"Geist Mono"/);
});

reads("styling.codeblocks: dark code on a light page", async (open) => {
  const ground = async (site) => {
    const page = await open(of(site, "/payments/refunds"));
    return (await computed(page, "figure.code", "background-color"))[0].match(/\d+/g).map(Number)[0];
  };
  assert.ok(await ground("orange") < 60);
  assert.ok(await ground("mint") > 200);
});

reads("appearance: dark at first, and strict leaves no choice", async (open) => {
  const page = await open(of("dark", "/"), { scheme: "light" });
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
  assert.equal(await page.locator(".theme").count(), 0);
  const plain = await open(of("dark", "/"), { scheme: "light", scripts: false });
  const [ground] = await computed(plain, "body", "background-color");
  assert.ok(ground.match(/\d+/g).every((channel) => Number(channel) < 60), ground);
});

reads("code: a strip with the language, unless it is one line; long lines can be wrapped", async (open) => {
  const page = await open(of("mint", "/payments/refunds"));
  const strip = (n) => page.locator("figure.code").nth(n).evaluate((code) => getComputedStyle(code, "::before").content);
  assert.deepEqual([await strip(0), await strip(1)], ["none", '"bash"']);
  assert.equal(await page.locator("figure.code .copy").first().isVisible(), true, "without pointing at the code");
  assert.equal(await page.locator(".wrap").count(), 1, "only for code that is wider than its place");
  const over = () => page.locator("figure.code pre").nth(1).evaluate((code) => code.scrollWidth - code.clientWidth);
  assert.ok(await over() > 0);
  await page.locator(".wrap").click();
  assert.equal(await over(), 0);
  assert.equal(await page.locator(".wrap").getAttribute("aria-pressed"), "true");
});

reads("code: the button that wraps lines is there while they are too long", async (open) => {
  const page = await open(of("mint", "/payments/refunds"));
  const buttons = page.locator(".wrap");
  assert.equal(await buttons.count(), 1);
  const code = page.locator("figure[data-language=bash] pre").nth(1);
  const changed = (text) => code.evaluate((code, text) => {
    code.firstElementChild.textContent = text;
    dispatchEvent(new Event("resize"));
  }, text);
  await changed("short\nlines");
  assert.equal(await buttons.count(), 0);
  await changed(`long\n${"line ".repeat(80)}`);
  assert.equal(await buttons.count(), 1);
});

reads("code: lines of a diff have colours", async (open) => {
  const page = await open(of("mint", "/payments/refunds"));
  const code = page.locator("figure[data-language=diff]");
  const colours = await code.locator("span").evaluateAll((all) => all.map((piece) => getComputedStyle(piece).color));
  assert.equal(new Set(colours).size, 3, `${colours}`);
});

reads("sidebar: a group that the reader has opened stays open on the next page", async (open) => {
  const page = await open(of("mint", "/"));
  const details = () => nested(page).locator("> details").getAttribute("open");
  assert.equal(await details(), null);
  await nested(page).locator("> details > summary").click();
  await page.reload();
  assert.equal(await details(), "");
  await nested(page).locator("> details > summary").click();
  await page.reload();
  assert.equal(await details(), null);
});

reads("contextual: assistants, links of the owner and the MCP server are in a menu below the list of headings", async (open) => {
  const page = await open(of("menu", "/payments/start"));
  const menu = page.locator(".contents .connect");
  assert.deepEqual(await seen(page, ".contents .actions > :not(details)"), ["Copy page"]);
  await menu.locator("summary").click();
  const at = new URL("/payments/start.md", page.url()).href;
  const asked = await menu.getByRole("link", { name: "Claude" }).getAttribute("href");
  assert.equal(new URL(asked).searchParams.get("q"), `Read ${at}. I want to ask questions about it.`);
  const own = new URL(await menu.getByRole("link", { name: "Report" }).getAttribute("href"));
  assert.deepEqual([own.searchParams.get("page"), own.searchParams.get("at")], [at, "/payments/start"]);
  const code = menu.getByRole("link", { name: "VS Code" });
  await code.waitFor();
  const added = JSON.parse(decodeURIComponent((await code.getAttribute("href")).split("?")[1]));
  assert.deepEqual([added.type, added.url], ["http", await menu.locator("code").textContent()]);
  assert.equal(await menu.getByText("Cursor").count(), 0, "an option that is not named");
});

reads("contextual: a page without a list of headings has the menu below its title", async (open) => {
  const page = await open(of("menu", "/payments/refunds"));
  assert.equal(await page.locator(".title .actions").count(), 1);
  await page.locator(".copy-page").click();
  await page.locator(".copy-page.done").waitFor();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^# Refunds/);
});

reads("search.prompt: in the header and in the search", async (open) => {
  const page = await open(of("menu", "/"));
  assert.equal(await page.locator("a.search > span").textContent(), "Ask Acme");
  await page.locator("a.search").click();
  assert.equal(await page.locator(".finder input").getAttribute("placeholder"), "Ask Acme");
});

reads("errors.404: the title and the text of the site", async (open) => {
  const page = await open(of("menu", "/no/such/page"));
  assert.equal(await page.locator("h1").textContent(), "Lost");
  await follow(page, page.locator(".lead a"));
  assert.equal(path(page), "/payments/refunds");
}, { faults: true });

reads("previews of links: every page names its own address", async (open) => {
  const page = await open(of("mint", "/payments/start"));
  // The main address of a site has TLS, whatever the port of this test.
  assert.equal(await page.locator("meta[property='og:url']").getAttribute("content"), "https://mint.waypost.localhost/payments/start");
});

reads("sidebar: labels with and without an icon begin at the same place", async (open) => {
  const page = await open(of("mint", "/"));
  const start = (text) => page.locator(".sidebar li", { hasText: text }).last().evaluate((entry, text) => {
    const walker = document.createTreeWalker(entry, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      if (walker.currentNode.data.trim() !== text) continue;
      const range = document.createRange();
      range.selectNodeContents(walker.currentNode);
      return range.getBoundingClientRect().x;
    }
    return null;
  }, text);
  assert.ok(await page.locator(".sidebar summary > .icon").count(), "one of them has an icon");
  assert.equal(Math.round(await start("Index")), Math.round(await start("Payments")));
});

reads("a reader says whether a page was helpful, once in a tab", async (open) => {
  const page = await open(of("menu", "/payments/refunds"));
  const form = page.locator(".helpful");
  assert.equal(await page.getByText("Thank you.").isVisible(), false);
  await page.evaluate(axe());
  // The stylesheet of this site has its own colours.
  const rules = { "color-contrast": { enabled: false } };
  const { violations } = await page.evaluate((rules) => axe.run(".helpful", { rules }), rules);
  assert.deepEqual(violations.map(({ id }) => id), []);
  await form.getByRole("button", { name: "Yes" }).click();
  await page.getByText("Thank you.").waitFor({ state: "visible" });
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Thank you.", "screen readers read it");
  assert.equal(await form.isVisible(), false);
  assert.equal(path(page), "/payments/refunds", "the page stays");
  await page.reload();
  await page.getByText("Thank you.").waitFor({ state: "visible" });
  assert.equal(await form.isVisible(), false);
});

reads("without scripts a vote leads back to the page", async (open) => {
  const page = await open(of("menu", "/payments/refunds"), { scripts: false });
  await page.locator(".helpful").getByRole("button", { name: "No" }).click();
  await page.getByText("Thank you.").waitFor({ state: "visible" });
  assert.equal(path(page), "/payments/refunds");
  assert.equal(new URL(page.url()).hash, "#_thanked");
  assert.equal(await page.locator(".helpful").isVisible(), false);
});

reads("a site that does not ask has no question", async (open) => {
  const page = await open(of("mint", "/payments/refunds"));
  assert.equal(await page.locator(".helpful").count(), 0);
});

reads("code: added and removed lines are below each other, each with its sign at the edge", async (open) => {
  const page = await open(of("mint", "/payments/refunds"));
  const lines = await page.locator(".added, .removed").evaluateAll((all) => all.map((line) => {
    const [box, code] = [line, line.closest("pre")].map((part) => part.getBoundingClientRect());
    const sign = getComputedStyle(line, "::after");
    return { at: box.y, end: box.bottom, left: box.x - code.x, code: code.y, sign: [sign.content, parseFloat(sign.left)] };
  }));
  assert.ok(lines.length >= 2, `${lines.length} lines`);
  for (const [n, line] of lines.entries()) {
    assert.equal(line.left, 0, "the colour reaches the edge of the block");
    assert.match(line.sign[0], /^"[+−]"$/);
    assert.ok(line.sign[1] >= 0 && line.sign[1] < 16, `the sign is at ${line.sign[1]}`);
    const next = lines[n + 1];
    if (next?.code === line.code) assert.ok(next.at >= line.end - 0.5, `${next.at} is beside ${line.end}`);
  }
});
