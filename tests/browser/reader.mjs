// The harness of all tests in this folder: a reader with a browser.
//
// `tests/it/browser.rs` starts a gateway and runs each file beside it: WAYPOST_SITE is the URL of the
// site, or WAYPOST_DOMAIN the domain of several, each at a subdomain; WAYPOST_CLIENT is the
// folder of the packages. Nothing here sleeps: a test waits for the change that it expects.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";

const client = createRequire(`${process.env.WAYPOST_CLIENT}/`);
const { chromium } = client("playwright-core");
export const axe = () => client("axe-core").source;
export const site = process.env.WAYPOST_SITE;
/** A page of one of several sites. */
export const of = (subdomain, path) => `http://${subdomain}.${process.env.WAYPOST_DOMAIN}${path}`;

let browser;
before(async () => {
  browser = await chromium.launch({ executablePath: process.env.WAYPOST_CHROMIUM, args: ["--no-sandbox"] });
});
after(() => browser?.close());

/** Common widths of the window. */
export const WIDE = 1440;
export const TABLET = 820;
export const PHONE = 390;

/** Unused pages, by the options with which they were made: making a page takes longer than using it. */
const idle = new Map();

/** The smallest layout shift that counts: CLS is rounded to three digits. A smaller one is a sign of a few pixels. */
export const SHIFT_MIN = 0.0001;

/** Records layout shifts that no input has caused. */
export const watch = (shiftMin) => {
  window.moved = [];
  const place = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(" ");
  new PerformanceObserver((list) => list.getEntries().forEach(({ hadRecentInput, value, sources }) => {
    if (hadRecentInput || value < shiftMin) return;
    const what = sources.map(({ node, previousRect, currentRect }) =>
      `${node?.parentElement?.className} > ${node?.nodeName} ${node?.className}: ${place(previousRect)} to ${place(currentRect)}`);
    window.moved.push(`${value}: ${what}`);
  })).observe({ type: "layout-shift", buffered: true });
};

async function make({ width, scheme, scripts, watched }) {
  const context = await browser.newContext({
    viewport: { width, height: 850 },
    colorScheme: scheme,
    reducedMotion: "reduce",
    javaScriptEnabled: scripts,
    permissions: ["clipboard-read", "clipboard-write"],
  });
  const page = await context.newPage();
  if (watched) await page.addInitScript(watch, SHIFT_MIN);
  page.on("pageerror", (error) => page.faults.push(String(error)));
  page.on("console", (message) => {
    const { url } = message.location();
    // Chromium requests this by itself for a file without HTML, such as Markdown.
    if (message.type() !== "error" || url.endsWith("/favicon.ico")) return;
    page.faults.push(`${message.text()} ${url}`);
  });
  return page;
}

/** Opens a page without stored state; `prepare` runs before. */
async function open(at, { width = WIDE, scheme = "light", scripts = true, watched = false, prepare } = {}) {
  const key = prepare ? undefined : JSON.stringify([width, scheme, scripts, watched]);
  const page = idle.get(key)?.pop() ?? await make({ width, scheme, scripts, watched });
  Object.assign(page, { key, scripts, faults: [] });
  await prepare?.(page);
  await page.goto(new URL(at, site).href, { waitUntil: "load" });
  return page;
}

/** Removes the stored state of a page. */
async function close(page) {
  if (!page.key) return page.context().close();
  await page.emulateMedia({ media: null });
  if (page.scripts) await page.evaluate(() => { localStorage.clear(); sessionStorage.clear(); });
  // Leaving a page may still store its scroll position. A blank page has none.
  await page.goto("about:blank");
  if (!idle.has(page.key)) idle.set(page.key, []);
  idle.get(page.key).push(page);
}

/** A test that opens pages; none of them may have an error. */
export function reads(name, body, { faults = false } = {}) {
  test(name, async () => {
    const opened = [];
    try {
      await body(async (...how) => {
        const page = await open(...how);
        opened.push(page);
        return page;
      });
      for (const page of opened) {
        if (!faults) assert.deepEqual(page.faults, [], `faults on ${page.url()}`);
      }
    } finally {
      for (const page of opened) await close(page);
    }
  });
}

/** Opens another page of the site, as by typing its address. */
export const visit = (page, at) => page.goto(new URL(at, site).href, { waitUntil: "load" });
/** The path of an open page. */
export const path = (page) => new URL(page.url()).pathname;
/** Clicks an element that opens another page. */
export const follow = async (page, locator) => {
  await Promise.all([page.waitForNavigation({ waitUntil: "load" }), locator.click()]);
};
/** The texts of all visible elements of a kind. */
/** Presses the switch of the colours, and waits until the page has those that the switch shows. */
export const switchColours = async (page) => {
  await page.locator(".theme").click();
  await page.waitForFunction(() => (document.documentElement.dataset.theme ?? "system") === document.querySelector(".theme").dataset.scheme);
};
export const seen = (page, selector) => page.locator(selector).evaluateAll((all) => all
  .filter((element) => element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true }))
  .map((element) => element.innerText.replace(/\s+/g, " ").trim()));

export { assert };
