// Icons, and diagrams in their frames.

import { assert, reads, switchColours, visit, PHONE, WIDE } from "./reader.mjs";

/** Returns the visible icons that refer to another icon of the page. */
const referring = (page, within) => page.locator(`${within} svg.icon:has(> use)`).filter({ visible: true });

/** Whether the screen changes when the shapes of an icon are removed. */
async function isPainted(icon) {
  await icon.scrollIntoViewIfNeeded();
  const drawn = await icon.screenshot();
  await icon.evaluate((svg) => svg.replaceChildren());
  return !drawn.equals(await icon.screenshot());
}

async function everyIconIsPainted(page, within) {
  const icons = referring(page, within);
  const count = await icons.count();
  assert.ok(count > 0, `no icon refers to another in ${within} of ${page.url()}`);
  for (const icon of await icons.elementHandles()) {
    const href = await icon.$eval("use", (use) => use.getAttribute("href"));
    const { width, height } = await icon.boundingBox();
    assert.ok(width >= 8 && height >= 8, `${href} is ${width} by ${height}`);
    assert.ok(await isPainted(icon), `${href} in ${within} of ${page.url()}`);
  }
}

/** Whether the shape of the first reference is in a hidden part. */
const meansHidden = (page, within) => referring(page, within).first().evaluate((icon) =>
  !document.querySelector(icon.querySelector("use").getAttribute("href").replace(":", "\\:")).checkVisibility());

reads("icons: one that refers to another is visible", async (open) => {
  for (const scheme of ["light", "dark"]) {
    await everyIconIsPainted(await open("/quickstart", { scheme }), ".sidebar");
  }
});

reads("icons: one that refers to another in a closed menu is visible", async (open) => {
  const page = await open("/operate/run");
  assert.equal(await page.locator(".sections details").getAttribute("open"), null);
  assert.ok(await meansHidden(page, ".sidebar .anchors"));
  await everyIconIsPainted(page, ".sidebar .anchors");
});

reads("icons: on a phone, one that refers to another in the drawer is visible", async (open) => {
  const page = await open("/skills", { width: PHONE });
  assert.equal(await page.locator(".sidebar").isVisible(), false);
  assert.ok(await meansHidden(page, ".listing"));
  await everyIconIsPainted(page, ".listing");
  await page.locator(".menu").click();
  await page.locator(".sidebar").waitFor({ state: "visible" });
  await everyIconIsPainted(page, ".sidebar");
});

/** Waits until a diagram is drawn, and returns its frame and the document in it. */
async function diagram(page, name) {
  const frame = page.locator(`.diagram iframe[title="${name}"]`).first();
  await frame.scrollIntoViewIfNeeded();
  const inside = page.frameLocator(`.diagram iframe[title="${name}"] >> nth=0`);
  await inside.locator("svg#drawing").waitFor();
  return { frame, inside };
}

/** The lightness of a colour, from 0 to 255. */
const lightness = (colour) => {
  const [red, green, blue] = colour.match(/[\d.]+/g).map(Number);
  return 0.299 * red + 0.587 * green + 0.114 * blue;
};

/** A colour as the browser writes it. */
const computed = (locator, property) => locator.evaluate((part, property) => getComputedStyle(part)[property], property);

/** A diagram is readable: its text has enough contrast with the background. */
async function isReadable(page) {
  const { frame, inside } = await diagram(page, "Flow chart");
  const [outer, drawing] = await Promise.all([frame.boundingBox(), inside.locator("svg#drawing").boundingBox()]);
  assert.ok(drawing.width > 200 && drawing.height > 20, JSON.stringify(drawing));
  assert.ok(drawing.y >= outer.y && drawing.y + drawing.height <= outer.y + outer.height, "it is cut off");
  assert.ok(await inside.getByText("trigger").isVisible());
  const [word, letters] = await inside.locator(".nodeLabel").first().evaluate((label) => {
    const svg = label.closest("svg");
    const { color, fontSize } = getComputedStyle(label);
    return [color, parseFloat(fontSize) * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width];
  });
  assert.ok(letters >= 10, `letters of ${letters} px`);
  const ground = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.ok(Math.abs(lightness(word) - lightness(ground)) > 125, `${word} on ${ground}`);
  const patch = (x, y) => page.screenshot({ clip: { x, y, width: 4, height: 4 } });
  const [within, beside] = await Promise.all([
    patch(outer.x + 8, outer.y + 8), patch(outer.x - 12, outer.y + 8),
  ]);
  assert.ok(within.equals(beside), "the frame has another ground than the page");
}

reads("diagrams: they are drawn in a sandboxed frame, in light and dark", async (open) => {
  for (const [scheme, width] of [["light", WIDE], ["dark", PHONE]]) {
    const page = await open("/write/components/code", { scheme, width });
    await isReadable(page);
    const { frame } = await diagram(page, "Flow chart");
    assert.equal(await frame.getAttribute("sandbox"), "allow-scripts");
    const document = await (await frame.elementHandle()).contentFrame();
    assert.equal(await document.evaluate(() => self.origin), "null");
  }
});

reads("diagrams: they have the colours of the site, in light and dark", async (open) => {
  for (const scheme of ["light", "dark"]) {
    const page = await open("/write/components/code", { scheme });
    const { inside } = await diagram(page, "Flow chart");
    const accent = await page.evaluate(() => {
      const probe = Object.assign(document.body.appendChild(document.createElement("i")), { style: "color: var(--accent)" });
      return getComputedStyle(probe).color;
    });
    assert.equal(await computed(inside.locator(".node rect, .node polygon").first(), "stroke"), accent, scheme);
  }
});

reads("diagrams: they follow the chosen colours, and add no history entry", async (open) => {
  const page = await open("/write/components/code");
  await diagram(page, "Flow chart");
  const steps = await page.evaluate(() => history.length);
  await switchColours(page);
  await isReadable(page);
  assert.equal(await page.evaluate(() => history.length), steps);
  await visit(page, "/write/components/code");
  await isReadable(page);
  const other = await open("/write/components/code", { scheme: "dark" });
  await switchColours(other);
  await isReadable(other);
});

reads("diagrams: an invalid one shows an error, and its source can be opened", async (open) => {
  const page = await open("/write/components/code");
  const source = page.locator(".diagram details").first();
  await source.locator("> summary").click();
  assert.match(await source.innerText(), /trigger --> queue/);
  const { frame, inside } = await diagram(page, "Flow chart");
  await frame.evaluate((shown) => {
    const broken = shown.cloneNode();
    broken.src = shown.src.replace(/#.*/, "#graph%20LR%0A%20%20%5B%5B");
    shown.replaceWith(broken);
  });
  await inside.getByText("This diagram cannot be drawn").waitFor();
});
