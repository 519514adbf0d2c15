// Each kind of page: no violation by axe, no layout shift, and a limited size.

import http from "node:http";
import { assert, axe, reads, site, watch, PHONE, SHIFT_MIN, TABLET, WIDE } from "./reader.mjs";

/** A page of each sort. */
const SORTS = {
  "first page": "/",
  "callouts": "/write/components/callouts",
  "layout": "/write/components/layout",
  "code": "/write/components/code",
  "fields": "/write/components/reference",
  "endpoint": "/api/queue-an-update-of-the-project-from-its-branch",
  "cards": "/write",
  "rows": "/skills",
  "accordions and tables": "/write/navigation",
  "colours": "/write/themes",
  "changelog": "/changelog",
  "another version": "/next",
  "products, from right to left": "/ar/components",
  "custom": "/cheat-sheet",
  "center": "/skills/legacy-index",
  "frame": "/write/specimen",
  "missing": "/no-such-page",
  "results": "/_waypost/search?q=certificate",
};
/** Compressed, without pictures and fonts. */
const PAGE_BYTES_MAX = 40 << 10;
/** The first page has code, so it loads both fonts. */
const WITH_FONTS_BYTES_MAX = 75 << 10;
const SCRIPT_BYTES_MAX = 15 << 10;

/** Returns the violations of a page, of any impact. */
async function findViolations(page) {
  if (!await page.evaluate(() => "axe" in window)) await page.evaluate(axe());
  const { violations } = await page.evaluate(() => axe.run({ resultTypes: ["violations"] }));
  return violations.map(({ id, help, nodes }) => ({
    rule: id, help, where: nodes.slice(0, 3).map(({ target, failureSummary }) => `${target}: ${failureSummary}`),
  }));
}

/** Returns the layout shifts of a loaded page. */
async function layoutShifts(page) {
  // The page is loaded. The last layout shift is reported at most two frames later.
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return page.evaluate(() => window.moved);
}

// A test for each kind, so that few pages are open at once: dozens slow each other down.
for (const [sort, at] of Object.entries(SORTS)) {
  const isMissing = sort === "missing";
  reads(`${sort}: no violation by axe in light and dark, and no layout shift at any width`, async (open) => {
    for (const [scheme, other, width] of [["light", "dark", WIDE], ["light", "dark", TABLET], ["dark", "light", PHONE]]) {
      const page = await open(at, { scheme, width, watched: true });
      const where = `${at} ${scheme} ${width}`;
      // The suggestions of the 404 page appear late.
      if (!isMissing) assert.deepEqual(await layoutShifts(page), [], where);
      assert.deepEqual(await findViolations(page), [], where);
      await page.emulateMedia({ colorScheme: other });
      await page.waitForFunction((isDark) => document.documentElement.classList.contains("dark") === isDark, other === "dark");
      assert.deepEqual(await findViolations(page), [], `${at} ${other} ${width}`);
      await page.emulateMedia({ colorScheme: scheme });
    }
  }, { faults: isMissing });
}

/** The place in a page at a share of its article. */
const atShare = (share) => (body) => {
  const [begin, end] = ["<article", "</article>"].map((tag) => body.indexOf(tag));
  return begin < 0 ? -1 : begin + Math.round((end - begin) * share);
};

/** Serves the site. A page arrives up to a place; the rest when its beginning is painted. */
async function inPieces(place, test) {
  let send;
  const server = http.createServer((request, response) => {
    if (request.url === "/painted") {
      send();
      return response.end();
    }
    const headers = { ...request.headers, "accept-encoding": "identity" };
    // Only browsers resolve the name of the site by themselves.
    http.get({ host: "127.0.0.1", port: new URL(site).port, path: request.url, headers }, async (answer) => {
      const body = Buffer.concat(await answer.toArray());
      response.writeHead(answer.statusCode, answer.headers);
      const cut = place(body);
      if (cut < 0) return response.end(body);
      send = () => response.end(body.subarray(cut));
      response.write(body.subarray(0, cut));
    });
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  try {
    const url = new URL(site);
    url.port = server.address().port;
    await test(url.href);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** Tells the server when the beginning of a page is painted: up to this element. */
const tell = (last) => {
  const wait = () => requestAnimationFrame(() => (document.querySelector(last)
    ? requestAnimationFrame(() => fetch("/painted")) : wait()));
  wait();
};

for (const sort of ["first page", "layout", "fields", "endpoint", "cards", "accordions and tables"]) {
  reads(`${sort}: nothing moves when the rest of a page arrives after its beginning is painted`, async (open) => {
    for (const share of [0, 0.1, 0.5, 0.9]) {
      await inPieces(atShare(share), async (url) => {
        const prepare = async (page) => {
          await page.addInitScript(watch, SHIFT_MIN);
          await page.addInitScript(tell, share ? "article" : "main");
        };
        const page = await open(new URL(SORTS[sort], url).href, { prepare });
        assert.deepEqual(await layoutShifts(page), [], `after ${share} of the article`);
        // A browser may request the icon late. It must not do so after the server is closed.
        await page.goto("about:blank");
      });
    }
  });
}

reads("no column of a table moves when the rest of its rows arrive late", async (open) => {
  for (const at of ["/write/themes", "/write/components/layout", "/operate/reference/metrics"]) {
    for (const rows of [2, 4]) {
      const place = (body) => {
        let from = body.indexOf("<table");
        for (let n = 0; n <= rows && from >= 0; n += 1) from = body.indexOf("<tr", from + 1);
        return from;
      };
      await inPieces(place, async (url) => {
        const prepare = async (page) => {
          await page.addInitScript(watch, SHIFT_MIN);
          await page.addInitScript(tell, "article table");
        };
        const page = await open(new URL(at, url).href, { prepare });
        assert.deepEqual(await layoutShifts(page), [], `after ${rows} rows of ${at}`);
        assert.ok(await page.locator("article table").first().isVisible(), at);
        await page.goto("about:blank");
      });
    }
  }
});

reads("a first visit is light", async (open) => {
  const sizes = new Map();
  await open("/", {
    prepare: async (page) => {
      const network = await page.context().newCDPSession(page);
      await network.send("Network.enable");
      const urls = new Map();
      network.on("Network.responseReceived", ({ requestId, response, type }) => urls.set(requestId, [response.url, type]));
      network.on("Network.loadingFinished", ({ requestId, encodedDataLength }) => {
        const [url, type] = urls.get(requestId) ?? [];
        if (url && type !== "Image") sizes.set(url, [type, encodedDataLength]);
      });
    },
  });
  const all = [...sizes.values()];
  const sum = (list) => list.reduce((total, [, bytes]) => total + bytes, 0);
  const told = JSON.stringify([...sizes]);
  assert.ok(all.length >= 3, `a page, a stylesheet and a script: ${told}`);
  assert.ok(sum(all) <= WITH_FONTS_BYTES_MAX, `${sum(all)} bytes: ${told}`);
  const withoutFonts = sum(all.filter(([type]) => type !== "Font"));
  assert.ok(withoutFonts <= PAGE_BYTES_MAX, `${withoutFonts} bytes without fonts: ${told}`);
  assert.ok(sum(all.filter(([type]) => type === "Script")) <= SCRIPT_BYTES_MAX, told);
});
