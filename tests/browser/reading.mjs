// What a reader does with a page: dismiss the banner, switch colours, copy, link, press keys.

import { assert, follow, path, reads, seen, site, switchColours, visit, PHONE } from "./reader.mjs";

reads("banner: a dismissed one is hidden before the first paint", async (open) => {
  const page = await open("/");
  await page.locator(".banner .dismiss").click();
  assert.equal(await page.locator(".banner").isVisible(), false);
  await page.addInitScript(() => {
    // The style of the banner at the moment when the parser has created it.
    new MutationObserver(() => {
      const banner = document.querySelector(".banner");
      if (banner && !window.first) window.first = getComputedStyle(banner).display;
    }).observe(document, { childList: true, subtree: true });
  });
  await page.reload();
  assert.equal(await page.evaluate(() => window.first), "none");
  await page.goto(`${site}/ar`);
  assert.ok(await page.locator(".banner").isVisible(), "another text is another banner");
});

reads("banner: the focus is in the header after it was dismissed by the keyboard", async (open) => {
  const page = await open("/");
  await page.locator(".banner .dismiss").focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator(".banner").isVisible(), false);
  assert.ok(await page.evaluate(() => document.activeElement.matches(".logo")), "the next tab stop is the one after it");
});

reads("colours: the switch works, and the next page keeps the choice", async (open) => {
  const page = await open("/");
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await switchColours(page);
  const dark = await ground();
  assert.notEqual(dark, light);
  await page.goto(`${site}/quickstart`);
  assert.equal(await ground(), dark);
  assert.deepEqual(await seen(page, ".logo img"), [""], "one of the two logos");
  assert.match(await page.locator(".logo img:visible").getAttribute("src"), /dark/);
});

reads("colours: the switch returns to those of the system, and the bar of the browser follows", async (open) => {
  for (const scheme of ["light", "dark"]) {
    const page = await open("/quickstart", { scheme });
    const state = () => page.evaluate(() => {
      const bars = [...document.querySelectorAll("meta[name=theme-color]")];
      const bar = bars.find(({ media }) => !media || matchMedia(media).matches).content;
      const probe = Object.assign(document.createElement("i"), { style: `color: ${bar}` });
      document.body.append(probe);
      const same = getComputedStyle(probe).color === getComputedStyle(document.body).backgroundColor;
      probe.remove();
      return { label: document.querySelector(".theme").ariaLabel, isDark: document.documentElement.classList.contains("dark"), same };
    });
    const wasDark = scheme === "dark";
    const other = wasDark ? "light" : "dark";
    for (const [label, isDark] of [["as the system", wasDark], [other, !wasDark], [scheme, wasDark], ["as the system", wasDark]]) {
      assert.deepEqual(await state(), { label: `Colours: ${label}`, isDark, same: true });
      await switchColours(page);
    }
    await switchColours(page);
    await switchColours(page);
    await page.emulateMedia({ colorScheme: other });
    await page.reload();
    assert.deepEqual(await state(), { label: "Colours: as the system", isDark: !wasDark, same: true }, "the system has changed");
    await page.emulateMedia({ colorScheme: scheme });
  }
});

reads("copy: code, and the page as Markdown", async (open) => {
  const page = await open("/quickstart");
  const clipboard = () => page.evaluate(() => navigator.clipboard.readText());
  const code = page.locator("figure.code").first();
  await code.hover();
  await code.locator(".copy").click();
  await page.locator(".copy.done").waitFor();
  assert.equal((await clipboard()).trim(), "make run");
  await page.locator(".copy-page").click();
  await page.locator(".copy-page.done").waitFor();
  assert.match(await clipboard(), /^# Quickstart\n/);
  await follow(page, page.getByText("View as Markdown"));
  assert.equal(path(page), "/quickstart.md");
});

reads("copy: the text is given to the clipboard within the click, as Safari demands", async (open) => {
  const prepare = (page) => page.addInitScript(() => {
    for (const name of ["write", "writeText"]) {
      const write = Clipboard.prototype[name];
      Clipboard.prototype[name] = function (...given) {
        if (window.event?.type !== "click") return Promise.reject(new DOMException("not within a click", "NotAllowedError"));
        return write.apply(this, given);
      };
    }
  });
  const page = await open("/quickstart", { prepare });
  const code = page.locator("figure.code").first();
  await code.hover();
  await code.locator(".copy").click();
  await page.locator(".copy.done").waitFor();
  await page.locator(".copy-page").click();
  await page.locator(".copy-page.done").waitFor();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^# Quickstart\n/);
});

reads("copy: the page is copied by browsers that take no promise", async (open) => {
  const page = await open("/quickstart", { prepare: (page) => page.addInitScript(() => { delete globalThis.ClipboardItem; }) });
  await page.locator(".copy-page").click();
  await page.locator(".copy-page.done").waitFor();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^# Quickstart\n/);
});

reads("copy: a button that is pressed twice has its label again", async (open) => {
  const page = await open("/quickstart", { prepare: (page) => page.clock.install() });
  const button = page.locator(".copy-page");
  const label = await button.textContent();
  for (const time of ["first", "second"]) {
    await page.evaluate(() => navigator.clipboard.writeText("nothing"));
    await button.click();
    await page.waitForFunction(async () => (await navigator.clipboard.readText()).startsWith("# Quickstart"));
    await page.locator(".copy-page.done").waitFor();
    assert.notEqual(await button.textContent(), label, time);
  }
  await page.clock.runFor(3000);
  assert.equal(await button.textContent(), label);
});

reads("copy: an error of the server is not copied", async (open) => {
  const prepare = (page) => page.route("**/quickstart.md", (route) => route.fulfill({ status: 503, body: "{}" }));
  const page = await open("/quickstart", { prepare });
  await page.evaluate(() => navigator.clipboard.writeText("before"));
  const [error] = await Promise.all([page.waitForEvent("pageerror"), page.locator(".copy-page").click()]);
  assert.match(String(error), /503/);
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "before");
  assert.equal(await page.locator(".copy-page.done").count(), 0);
}, { faults: true });

reads("search: if its script cannot be loaded, its page is opened", async (open) => {
  const prepare = (page) => page.route("**/finder*", (route) => route.abort());
  const page = await open("/quickstart", { prepare });
  await follow(page, page.locator("a.search"));
  assert.equal(path(page), "/_waypost/search");
}, { faults: true });

reads("menu: the MCP server of the site is added to an editor", async (open) => {
  const page = await open("/quickstart");
  const asked = [];
  page.on("request", (request) => { if (request.url().includes("server-card")) asked.push(request.url()); });
  const menu = page.locator(".connect");
  assert.equal(await menu.locator("li").count(), 0, "nothing is loaded before a reader needs it");
  await menu.locator("summary").click();
  const link = (text) => menu.getByRole("link", { name: text }).getAttribute("href");
  const cursor = new URL(await link("Cursor"));
  assert.equal(`${cursor.protocol}//${cursor.host}${cursor.pathname}`, "cursor://anysphere.cursor-deeplink/mcp/install");
  const { url } = JSON.parse(Buffer.from(cursor.searchParams.get("config"), "base64"));
  const code = await link("VS Code");
  const prefix = "vscode:mcp/install?";
  assert.ok(code.startsWith(prefix), code);
  const server = JSON.parse(decodeURIComponent(code.slice(prefix.length)));
  assert.deepEqual(server, { name: cursor.searchParams.get("name"), type: "http", url });
  assert.match(url, /^https?:.*\/mcp$/);
  assert.equal(await menu.locator("code").innerText(), url);
  assert.equal(asked.length, 1, "the card is asked for once");
  await page.keyboard.press("Escape");
  assert.equal(await menu.getAttribute("open"), null);
});

reads("an article begins at the same place, whatever its first element is", async (open) => {
  for (const at of ["/write/pages", "/write/components/callouts", "/write/components/code"]) {
    const page = await open(at);
    const space = await page.locator("article").evaluate((article) => {
      const first = article.querySelector(":scope > :not(link)");
      return [first.className, first.getBoundingClientRect().top - article.getBoundingClientRect().top];
    });
    assert.equal(space[1], 0, `${at} begins with ${space[0]}`);
  }
});

reads("the space between elements is the same beside a panel as without one", async (open) => {
  const page = await open("/write/components/layout");
  const spaces = () => page.locator("article").evaluate((article) => {
    const space = (selector) => {
      const after = article.querySelector(selector);
      return after.getBoundingClientRect().top - after.previousElementSibling.getBoundingClientRect().bottom;
    };
    return ["h2 + .cards", "p + .tabs", ".accordion + .accordion", "h2 + .steps"].map((selector) => [selector, Math.round(space(selector))]);
  });
  assert.equal(await page.locator("main.with-panel").count(), 1);
  const beside = await spaces();
  const [list, text] = await Promise.all([".contents", "article > .cards"].map((part) => page.locator(part).first().boundingBox()));
  assert.equal(Math.round(list.width), Math.round(text.width), "the list of headings is as wide as the text");
  await page.setViewportSize({ width: 1100, height: 850 });
  for (const [n, [selector, space]] of (await spaces()).entries()) {
    assert.ok(beside[n][1] <= space, `${selector}: ${beside[n][1]} beside the panel, ${space} without it`);
  }
  await page.setViewportSize({ width: 1440, height: 850 });
});

reads("a table of few columns ends where the code ends; one of many has all the width", async (open) => {
  const page = await open("/write/pages");
  const ends = (selector) => page.locator(selector).evaluateAll((all) => [...new Set(all.map((box) => Math.round(box.getBoundingClientRect().right)))]);
  const code = await ends("article > figure.code");
  assert.equal(code.length, 1);
  assert.deepEqual(await ends("article > .table"), code);
  await visit(page, "/operate/reference/metrics");
  const [wide] = await ends("article > .table");
  assert.ok(wide > code[0] + 50, `${wide} and ${code}`);
});

reads("on a phone the text begins in the upper half of the screen", async (open) => {
  const page = await open("/write/pages", { width: PHONE });
  await page.setViewportSize({ width: PHONE, height: 844 });
  await page.locator(".banner .dismiss").click();
  const y = (selector) => page.locator(selector).first().evaluate((part) => part.getBoundingClientRect().top);
  assert.ok(await y("article p") < 844 / 2, `${await y("article p")}`);
  const buttons = await page.locator(".title .actions").boundingBox();
  const space = await y(".contents") - buttons.y - buttons.height;
  assert.ok(space <= 20, `${space} between the buttons and the list of headings`);
  const size = await page.locator("article h2").first().evaluate((part) => getComputedStyle(part).fontSize);
  assert.equal(size, "24px");
  await page.setViewportSize({ width: PHONE, height: 850 });
});

reads("a name of code in the head of a table is on one line", async (open) => {
  const page = await open("/write/themes");
  const lines = await page.locator("th code").evaluateAll((all) => all.map((code) => code.getClientRects().length));
  assert.ok(lines.length > 2 && lines.every((count) => count === 1), `${lines}`);
});

reads("home: on a phone the two buttons are as wide as the text", async (open) => {
  const page = await open("/", { width: PHONE });
  const widths = await page.locator("article h1 ~ div a").evaluateAll((all) => all.map((link) => link.getBoundingClientRect().width));
  const { width } = await page.locator("article h1").locator("..").boundingBox();
  assert.deepEqual(widths, [width, width]);
});

reads("tree: the name of a file begins where that of a folder beside it begins", async (open) => {
  const page = await open("/write");
  const starts = await page.locator(".tree").first().evaluate((tree) => ["index.mdx", "guides", "start.mdx"].map((name) => {
    const walker = document.createTreeWalker(tree, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      if (walker.currentNode.data.trim() !== name) continue;
      const range = document.createRange();
      range.selectNodeContents(walker.currentNode);
      return Math.round(range.getBoundingClientRect().x);
    }
    return null;
  }));
  assert.equal(starts[0], starts[1], `${starts}`);
  assert.ok(starts[2] > starts[1], `${starts}`);
});

reads("callouts: the ground of each kind is seen on the page, in dark mode too", async (open) => {
  for (const [scheme, least] of [["light", 1.05], ["dark", 1.15]]) {
    const page = await open("/write/components/callouts", { scheme });
    const contrasts = await page.evaluate(() => {
      const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
      const luminance = (part) => {
        canvas.fillStyle = getComputedStyle(part).backgroundColor;
        canvas.fillRect(0, 0, 1, 1);
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((channel) => channel / 255)
          .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
          .reduce((sum, value, n) => sum + value * [0.2126, 0.7152, 0.0722][n], 0.05);
      };
      const ground = luminance(document.body);
      return ["note", "info", "tip", "check", "warning", "danger"].map((kind) => luminance(document.querySelector(`.callout.${kind}`))).map((own) => Math.max(own, ground) / Math.min(own, ground));
    });
    assert.ok(Math.min(...contrasts) >= least, `${scheme}: ${contrasts}`);
  }
});

reads("the logo has no text, which would have a font of the reader's system", async (open) => {
  const page = await open("/quickstart");
  const logos = await page.locator(".logo img").evaluateAll((all) => Promise.all(all.map(({ src }) => fetch(src).then((answer) => answer.text()))));
  assert.equal(logos.length, 2);
  for (const logo of logos) assert.doesNotMatch(logo, /<text/);
});

reads("tabs: those with the same title change together, are stored, and move by arrow keys", async (open) => {
  const page = await open("/write/components/layout");
  const chosen = () => seen(page, "main [role=tab][aria-selected=true]");
  assert.deepEqual(await chosen(), ["Debian", "Debian"]);
  await page.getByRole("tab", { name: "macOS" }).first().click();
  assert.deepEqual(await chosen(), ["macOS", "macOS"]);
  await page.keyboard.press("ArrowLeft");
  assert.deepEqual(await chosen(), ["Debian", "Debian"]);
  await page.keyboard.press("End");
  await visit(page, "/write/components/layout");
  assert.deepEqual(await chosen(), ["macOS", "macOS"]);
  await visit(page, "/ar/components");
  assert.deepEqual(await chosen(), ["macOS"], "on another page, in another language");
  await visit(page, "/");
  assert.deepEqual(await chosen(), ["Skills"], "tabs without this title are left as they are");
});

reads("views: one is shown at a time, and each can be linked to", async (open) => {
  const page = await open("/write/publish");
  const views = page.locator(".views");
  assert.match(await views.innerText(), /publish docs --project acme/);
  assert.doesNotMatch(await views.innerText(), /update trigger/);
  await page.getByRole("tab", { name: "From a branch" }).click();
  assert.match(await views.innerText(), /update trigger acme/);
  assert.doesNotMatch(await views.innerText(), /publish docs/);
  assert.equal(new URL(page.url()).hash, "#from-a-branch");
  assert.ok(await page.getByText("To roll back, promote").isVisible(), "what is below belongs to both");
  const linked = await open("/write/publish#from-a-branch");
  assert.match(await linked.locator(".views").innerText(), /update trigger acme/);
});

reads("visibility: people and agents get only the content for them", async (open) => {
  const page = await open("/write/components/reference");
  const [people, agents] = [/You are a person/, /You are an agent/];
  assert.match(await page.locator("article").innerText(), people);
  assert.doesNotMatch(await page.content(), agents);
  const markdown = await page.evaluate(() => fetch("reference.md").then((answer) => answer.text()));
  assert.match(markdown, agents);
  assert.doesNotMatch(markdown, people);
});

reads("edit: a page links to its source in the repository of the site's record; a generated page has no link", async (open) => {
  const page = await open("/write/pages");
  const edit = page.locator(".actions .edit");
  assert.equal(await edit.innerText(), "Edit this page");
  assert.equal(await edit.getAttribute("href"), "https://github.com/acme/docs/edit/main/handbook/write/pages.mdx");
  await visit(page, "/fr");
  assert.equal(await edit.innerText(), "Modifier cette page");
  assert.equal(await edit.getAttribute("href"), "https://github.com/acme/docs/edit/main/handbook/fr/index.mdx");
  await visit(page, "/api/queue-an-update-of-the-project-from-its-branch");
  assert.equal(await page.locator(".actions").isVisible(), true);
  assert.equal(await edit.count(), 0);
});

reads("tabs and accordions can be linked to", async (open) => {
  const tab = await open("/write/components/layout#macos");
  assert.deepEqual((await seen(tab, "main [role=tab][aria-selected=true]"))[0], "macOS");
  const closed = await open("/write/navigation");
  assert.equal(await closed.locator("#n3").getAttribute("open"), null);
  await closed.locator("#n3 > summary").click();
  assert.equal(new URL(closed.url()).hash, "#n3");
  const opened = await open("/write/navigation#n3");
  assert.equal(await opened.locator("#n3").getAttribute("open"), "");
});

reads("on this page: the current heading is marked", async (open) => {
  const page = await open("/write/pages");
  const current = () => seen(page, ".contents [aria-current]");
  assert.deepEqual(await current(), ["Addresses"]);
  await page.locator(".contents").getByText("Snippets").click();
  await page.waitForFunction(() => document.querySelector(".contents [aria-current]")?.textContent === "Snippets");
  const box = await page.locator("#snippets").boundingBox();
  assert.ok(box.y > 90 && box.y < 850, `the heading is not below the header: ${box.y}`);
});

reads("404: similar pages are suggested, at any depth", async (open) => {
  const page = await open("/write/componets/");
  assert.equal(await page.locator("h1").innerText(), "Page not found");
  const first = page.locator("#_suggestions a").first();
  await first.waitFor();
  await follow(page, first);
  assert.equal(path(page), "/write/components");
}, { faults: true });

reads("keyboard: the first link skips to the content, and every control can be reached", async (open) => {
  const page = await open("/quickstart");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to content");
  const box = await page.locator(".skip:focus").boundingBox();
  assert.ok(box.x >= 0, "the link is seen while it has the focus");
  const stops = [];
  for (let n = 0; n < 200; n += 1) {
    await page.keyboard.press("Tab");
    // After the last stop the focus moves to the browser's own controls.
    if (await page.evaluate(() => document.activeElement === document.body)) break;
    const stop = await page.evaluate(() => {
      const at = document.activeElement;
      const style = getComputedStyle(at);
      return {
        what: at.matches(".search, .theme, .dismiss, summary, .copy-page") ? at.className || at.localName : at.localName,
        ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2,
        seen: at.checkVisibility({ visibilityProperty: true }),
      };
    });
    assert.ok(stop.ring && stop.seen, `stop ${n} has no focus ring or is not seen: ${JSON.stringify(stop)}`);
    stops.push(stop.what);
  }
  assert.ok(stops.length > 40, `only ${stops.length} stops`);
  for (const wanted of ["search", "theme", "dismiss", "copy-page", "summary"]) {
    assert.ok(stops.some((stop) => stop.includes(wanted)), `${wanted} cannot be reached`);
  }
});

reads("keyboard: a group of the sidebar opens by Enter", async (open) => {
  const page = await open("/quickstart");
  const summary = page.locator(".nested summary", { hasText: "Publishing" });
  await summary.focus();
  await page.keyboard.press("Enter");
  assert.ok(await page.locator(".sidebar").getByText("What is public").isVisible());
});

reads("phone: nothing is wider than the screen, and the bar is sticky", async (open) => {
  const page = await open("/", { width: PHONE });
  for (const at of ["/", "/write/components/code", "/write/components/reference", "/internals/speed", "/ar", "/ar/components", "/next", "/cheat-sheet", "/skills/legacy-index"]) {
    await visit(page, at);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `${at} is ${over} px too wide`);
    await page.evaluate(() => scrollTo(0, 500));
    if (await page.evaluate(() => scrollY > 300)) {
      const bar = await page.locator(".logo").boundingBox();
      assert.ok(bar.y >= 0 && bar.y < 60, `the bar of ${at} has scrolled away`);
    }
  }
});

reads("print: only the article is printed", async (open) => {
  const page = await open("/quickstart");
  await page.emulateMedia({ media: "print" });
  for (const part of [".top", ".sidebar", ".bottom", ".actions", ".neighbours"]) {
    assert.equal(await page.locator(part).first().isVisible(), false, part);
  }
  assert.ok(await page.locator("article").isVisible());
});

reads("breadcrumb: its labels lead to their first pages", async (open) => {
  const page = await open("/write/components/code");
  const crumb = (label) => page.locator(".eyebrow").getByRole("link", { name: label }).evaluate((a) => new URL(a.href).pathname);
  assert.deepEqual([await crumb("Guides"), await crumb("Write"), await crumb("Components")], ["/", "/write", "/write/components"]);
});

/** The numbers of characters in the lines of text: of all lines, or of all but the last of each part. */
const lines = (page, selector, all) => page.locator(selector).evaluateAll((parts, all) => parts.flatMap((part) => {
  if (!part.checkVisibility()) return [];
  const walker = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  const lines = new Map();
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (let at = 0; at < node.length; at += 1) {
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + 1);
      const box = range.getBoundingClientRect();
      const line = Math.round((box.top + box.height / 2) / 14);
      if (box.width) lines.set(line, (lines.get(line) ?? 0) + 1);
    }
  }
  return [...lines.values()].slice(0, all ? undefined : -1);
}), all);

reads("text: the median of the lines of a page has 66 to 75 characters", async (open) => {
  for (const width of [1280, 1920]) {
    const page = await open("/internals/decisions", { width });
    await page.evaluate(() => document.fonts.ready);
    const found = await lines(page, "article > p");
    assert.ok(found.length > 20, `${found.length} lines`);
    const sorted = found.sort((a, b) => a - b);
    const median = sorted[Math.floor(sorted.length / 2)];
    assert.ok(median >= 66 && median <= 75, `median ${median} at ${width}`);
  }
});

reads("text: no line is too long to read, on any kind of page", async (open) => {
  const page = await open("/");
  for (const at of ["/", "/standards", "/write/pages", "/api/remove-a-site", "/_waypost/search?q=certificate", "/skills/legacy-index"]) {
    await visit(page, at);
    await page.evaluate(() => document.fonts.ready);
    const found = await lines(page, "article p", true);
    assert.ok(Math.max(...found) <= 90, `${Math.max(...found)} characters on ${at}`);
  }
});

reads("text: it begins at the same place on all pages, and a wide table is not cut off", async (open) => {
  const page = await open("/write/pages");
  const starts = new Map();
  for (const at of ["/write/pages", "/standards", "/api/remove-a-site", "/no-such-page", "/_waypost/search?q=certificate"]) {
    await visit(page, at);
    starts.set(at, await page.locator("h1").evaluate((title) => title.getBoundingClientRect().x));
  }
  assert.equal(new Set(starts.values()).size, 1, JSON.stringify([...starts]));
  await visit(page, "/operate/reference/metrics");
  const over = await page.locator("article > .table").evaluateAll((all) => all.map((table) => table.scrollWidth - table.clientWidth));
  assert.ok(over.length && Math.max(...over) <= 0, `${over}`);
}, { faults: true });

reads("callouts: each kind has an icon and a colour of its own", async (open) => {
  const page = await open("/write/components/callouts");
  const kinds = await page.locator(".callout").evaluateAll((all) => all.map((callout) => {
    const { maskImage, backgroundColor } = getComputedStyle(callout, "::before");
    return [callout.classList[1], `${maskImage} ${backgroundColor}`];
  }));
  const looks = new Map(kinds);
  for (const kind of ["note", "info", "tip", "check", "warning", "danger"]) assert.ok(looks.has(kind), kind);
  assert.equal(new Set(looks.values()).size, looks.size);
});

reads("phone: one bar; the rest of the header is in the drawer, which shows the current page", async (open) => {
  const page = await open("/operate/limits", { width: PHONE });
  const text = await page.locator("h1").boundingBox();
  const bar = await page.locator(".bar").boundingBox();
  assert.ok(text.y - (bar.y + bar.height) < 90, `${text.y - bar.y - bar.height} px between the bar and the title`);
  assert.equal(await page.locator(".top > .sections").isVisible(), false);
  await page.locator(".menu").click();
  const current = page.locator(".sidebar [aria-current=page]").first();
  const box = await current.boundingBox();
  assert.ok(box.y > 0 && box.y < 800, `the current page is at ${box.y}`);
  const drawer = page.locator(".moved");
  assert.equal(await drawer.locator(".primary").innerText(), "Quickstart");
  await follow(page, drawer.getByRole("link", { name: "Internals" }));
  assert.equal(path(page), "/internals/architecture");
});

reads("phone: a page without a sidebar has one bar and the same drawer", async (open) => {
  for (const scripts of [true, false]) {
    const page = await open("/", { width: 360, scripts });
    const bar = await page.locator(".bar").boundingBox();
    assert.ok(bar.height < 64, `the bar is ${bar.height} px high`);
    assert.ok(await page.locator(".sidebar").isHidden());
    await page.locator(".menu").click();
    await page.locator(".sidebar").waitFor({ state: "visible" });
    await follow(page, page.locator(".sidebar").getByText("Quickstart", { exact: true }).last());
    assert.equal(path(page), "/quickstart");
  }
  const page = await open("/", { width: 360 });
  const [bar, title] = await Promise.all([".bar", "h1"].map((part) => page.locator(part).boundingBox()));
  assert.ok(title.y - (bar.y + bar.height) < 120, `the title is at ${title.y}, the bar ends at ${bar.y + bar.height}`);
  for (const part of [".top > .sections", ".top > .head > .links"]) assert.ok(await page.locator(part).isHidden(), part);
  await page.setViewportSize({ width: 1440, height: 850 });
  assert.ok(await page.locator(".sidebar").isHidden(), "a wide window shows neither a column nor a drawer");
  assert.ok(await page.locator(".bar > .choices").isVisible());
});

reads("tabs: a strip of many tabs is no wider than the window, and a menu of it is not cut off", async (open) => {
  for (const width of [1000, 1440]) {
    const page = await open("/operate/run", { width });
    const menu = page.locator(".sections details").first();
    await menu.evaluate((menu) => {
      const list = menu.closest("nav > ul");
      while (list.children.length < 18) list.append(list.firstElementChild.cloneNode(true));
    });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${width}`);
    await menu.locator("summary").click();
    const last = menu.locator("li a").last();
    const isOnTop = await last.evaluate((link) => {
      const { x, y, width, height } = link.getBoundingClientRect();
      return link.contains(document.elementFromPoint(x + width / 2, y + height / 2));
    });
    assert.ok(isOnTop, `the menu is cut off at ${width}`);
    const [list, title] = await Promise.all([menu.locator("> ul"), menu.locator("> summary")].map((part) => part.boundingBox()));
    assert.ok(Math.abs(list.x - title.x) < 12 && list.y >= title.y + title.height, "it is below its title");
  }
});

reads("phone: every control of the bar is on a screen of 320 pixels", async (open) => {
  const page = await open("/quickstart", { width: 320 });
  for (const control of [".menu", ".logo", ".search", ".theme"]) {
    const box = await page.locator(`.bar ${control}`).boundingBox();
    assert.ok(box.x >= 0 && box.x + box.width <= 320, `${control}: ${JSON.stringify(box)}`);
  }
});

reads("endpoint: two columns, and the right one stays in view", async (open) => {
  const page = await open("/api/queue-an-update-of-the-project-from-its-branch");
  const [left, right] = [await page.locator("article > h2").first().boundingBox(), await page.locator("article > .panel").boundingBox()];
  assert.ok(right.x > left.x + left.width, "beside the text");
  await page.locator("#responses").scrollIntoViewIfNeeded();
  await page.evaluate(() => scrollTo(0, 900));
  const after = await page.locator("article > .panel").boundingBox();
  assert.ok(after.y >= 90 && after.y < 300, `the panel is at ${after.y}`);
  const phone = await open("/api/queue-an-update-of-the-project-from-its-branch", { width: PHONE });
  const below = await phone.locator("article > .panel").boundingBox();
  assert.ok(below.x < 30, "below each other on a phone");
});

reads("endpoint: samples in four languages, and the responses by status", async (open) => {
  const page = await open("/api/queue-an-update-of-the-project-from-its-branch");
  const request = page.locator(".panel .request");
  assert.deepEqual(await seen(page, ".panel .request [role=tab]"), ["cURL", "Python", "JavaScript", "Go"]);
  for (const [name, text] of [["Python", "requests.post("], ["JavaScript", "await fetch("], ["Go", "http.NewRequest("]]) {
    await request.getByRole("tab", { name, exact: true }).click();
    assert.ok((await request.innerText()).includes(text), name);
  }
  assert.equal((await seen(page, ".panel .response [role=tab]"))[0], "202");
});

reads("endpoint: the method has the colour of the sidebar, and the first response is the usual one", async (open) => {
  const page = await open("/api/remove-a-site");
  const colour = (part) => page.locator(part).evaluate((part) => getComputedStyle(part).color);
  assert.equal(await colour("article > .code .k"), await colour(".sidebar [aria-current=page] .method"));
  assert.equal((await seen(page, ".panel .response [role=tab]"))[0], "204");
  assert.match(await page.locator(".panel .response code").first().innerText(), /^HTTP\/1.1 204 No Content/);
});

reads("endpoint: a sample has a body, made from the schema if the specification has no example", async (open) => {
  const page = await open("/api/create-a-site-or-replace-its-record");
  const request = page.locator(".panel .request");
  for (const [name, body] of [["cURL", /-d '\{\n/], ["Python", /json=\{\n/], ["JavaScript", /body: JSON\.stringify\(\{\n/], ["Go", /strings\.NewReader\(`\{\n/]]) {
    await request.getByRole("tab", { name, exact: true }).click();
    assert.match(await request.locator(".tab:not([hidden]) code").textContent(), body, name);
  }
});

reads("endpoint: errors with the same body are one table", async (open) => {
  const page = await open("/api/remove-a-site");
  const statuses = await seen(page, "#errors ~ .table tbody td:first-child");
  assert.ok(statuses.length > 3 && statuses.every((status) => /^[45]\d\d$/.test(status)), `${statuses}`);
  const titles = await seen(page, "#responses ~ h3");
  assert.ok(!titles.some((title) => /^[45]/.test(title)), `${titles}`);
});

reads("code: the buttons of a block cover neither its tabs nor its code", async (open) => {
  for (const width of [1440, 360]) {
    const page = await open("/api/remove-a-site", { width });
    const places = await page.locator(".codes, .code.short:not(.codes *)").evaluateAll((all) => all.map((block) => {
      const beside = block.querySelector(".tablist") ?? block.querySelector("pre");
      const tools = [...block.querySelectorAll(".tools")].find((tools) => tools.checkVisibility());
      return [block.className, beside.getBoundingClientRect().right, tools.getBoundingClientRect().left];
    }));
    assert.ok(places.length > 2, JSON.stringify(places));
    for (const [block, end, tools] of places) assert.ok(end <= tools, `${block} at ${width}: ${end} is below ${tools}`);
    const last = page.locator(".response [role=tab]").last();
    await last.focus();
    const [tab, list] = await Promise.all([last, page.locator(".response .tablist")].map((part) => part.boundingBox()));
    assert.ok(tab.x + tab.width <= list.x + list.width, "the last tab can be reached");
  }
});

reads("frame: the picture is in its middle, and the caption directly below", async (open) => {
  const page = await open("/write/components/layout");
  const [frame, picture, caption] = await Promise.all(["", " img", " figcaption"].map((part) => page.locator(`.frame${part}`).first().boundingBox()));
  assert.ok(Math.abs(frame.x + frame.width / 2 - (picture.x + picture.width / 2)) < 2, "in the middle");
  assert.ok(caption.y - (picture.y + picture.height) < 4, `${caption.y - picture.y - picture.height} px`);
});

reads("404: it has a search field, which works without scripts", async (open) => {
  const page = await open("/no/such/page", { scripts: false });
  await page.locator("main input[name=q]").fill("quickstart");
  await follow(page, page.locator("main form button"));
  assert.equal(await page.locator(".results a").first().innerText(), "Quickstart");
}, { faults: true });

reads("header: the search is at the same place on all pages of a wide window", async (open) => {
  const page = await open("/");
  const places = [];
  for (const at of ["/", "/write/pages", "/api/remove-a-site", "/no-such-page"]) {
    await visit(page, at);
    places.push((await page.locator("a.search").boundingBox()).x);
  }
  assert.equal(new Set(places).size, 1, `${places}`);
}, { faults: true });
