// "Try it": the form on the page of an endpoint, with real servers: the first allows requests of
// other origins, the second does not, and nothing listens at the third. The fourth is the first again,
// with a host for each tenant.

import { assert, axe, of, reads, PHONE } from "./reader.mjs";

const PAY = "/api/pay";
const MISSING = "/api/missing";

/** Opens the form. */
async function form(open, at = PAY, options = {}) {
  const page = await open(of("pay", at), options);
  await page.locator(".try-it:enabled").click();
  return page;
}
const dialog = (page) => page.locator("dialog.try");
/** The input with a name. */
const input = (page, name) => dialog(page).locator(".try-field", {
  has: page.locator("label > code").getByText(name, { exact: true }),
}).locator("input, select, textarea");
const status = (page) => dialog(page).locator("[role=status]");
/** Sends the request and returns the status that is shown. */
async function sent(page) {
  await dialog(page).getByRole("button", { name: "Send" }).click();
  await status(page).filter({ hasNotText: /^(Sending…)?$/ }).waitFor();
  return status(page).textContent();
}
const answer = async (page) => JSON.parse(await dialog(page).locator("pre").first().textContent());

reads("a form sends parameters, credentials and body, and shows status, time, headers and answer", async (open) => {
  const page = await form(open);
  await input(page, "id").fill("a/b c");
  await input(page, "tags").fill("red, blue");
  await input(page, "mode").selectOption("slow");
  await input(page, "key").fill("secret");
  assert.match(await sent(page), /^200 OK · \d+ ms · \d+ B$/);
  const { request, key, type, body, authorization, cookie } = await answer(page);
  assert.equal(request, "POST /v1/pay/a%2Fb%20c?tags=red&tags=blue&mode=slow HTTP/1.1");
  assert.deepEqual([key, type, authorization, cookie], ["secret", "application/json", null, null]);
  assert.deepEqual(JSON.parse(body), { sum: 3 }, "the example of the specification");
  assert.match(await dialog(page).locator("pre").nth(1).textContent(), /^x-request: r1$/m);
});

reads("another way to authenticate and another type of body", async (open) => {
  const page = await form(open);
  await input(page, "id").fill("1");
  await dialog(page).getByLabel("Authorization").selectOption({ label: "basic" });
  await input(page, "basic: user name").fill("Zoë");
  await input(page, "basic: password").fill("p");
  await dialog(page).getByLabel("Body").selectOption("application/x-www-form-urlencoded");
  await input(page, "sum").fill("7");
  assert.match(await sent(page), /^200/);
  const { authorization, body, key } = await answer(page);
  assert.equal(Buffer.from(authorization.split(" ")[1], "base64").toString(), "Zoë:p");
  assert.deepEqual([body, key], ["sum=7", null]);
});

reads("credentials stay in the tab, until the reader removes them", async (open) => {
  const page = await form(open);
  await input(page, "id").fill("1");
  await input(page, "key").fill("secret");
  await sent(page);
  const stored = () => page.evaluate(() => [localStorage, sessionStorage].map((store) => JSON.stringify(store).includes("secret")));
  assert.deepEqual(await stored(), [false, true]);
  assert.ok(!page.url().includes("secret"));
  await page.reload();
  await page.locator(".try-it:enabled").click();
  assert.equal(await input(page, "key").inputValue(), "secret");
  assert.equal(await input(page, "key").getAttribute("type"), "password");
  await dialog(page).getByLabel("Server").selectOption({ index: 1 });
  assert.equal(await input(page, "key").inputValue(), "", "another server does not get them");
  await dialog(page).getByRole("button", { name: "Forget them" }).click();
  assert.deepEqual(await stored(), [false, false]);
});

/** Opens the form with the server of a tenant, and a key for it. */
async function tenant(open) {
  const page = await form(open);
  await dialog(page).getByLabel("Server").selectOption({ index: 3 });
  await input(page, "id").fill("1");
  await input(page, "key").fill("secret");
  return page;
}

reads("a key for one server is not sent to another, whose name was typed a moment ago", async (open) => {
  const page = await tenant(open);
  await input(page, "tenant").fill("other");
  await input(page, "tenant").press("Control+Enter");
  await status(page).filter({ hasText: "200" }).waitFor();
  assert.equal((await answer(page)).key, null);
  const stored = await page.evaluate(() => Object.entries(sessionStorage).filter(([name]) => name.startsWith("try:http://other.")));
  assert.deepEqual(stored, []);
});

reads("a key that was typed is there again when the reader returns to its server", async (open) => {
  const page = await tenant(open);
  const key = input(page, "key");
  for (const name of ["other", "a"]) {
    await input(page, "tenant").fill(name);
    await input(page, "tenant").blur();
    assert.equal(await key.inputValue(), name === "a" ? "secret" : "", name);
  }
  const servers = dialog(page).getByLabel("Server");
  await servers.selectOption({ index: 0 });
  assert.equal(await key.inputValue(), "");
  await servers.selectOption({ index: 3 });
  assert.equal(await key.inputValue(), "secret");
  await sent(page);
  assert.equal((await answer(page)).key, "secret");
});

reads("a form that is closed while it sends says nothing when it is opened again", async (open) => {
  const page = await form(open, PAY, { prepare: (page) => page.route("**/v1/**", () => {}) });
  await input(page, "id").fill("1");
  await dialog(page).getByRole("button", { name: "Send" }).click();
  await status(page).filter({ hasText: "Sending…" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".try-it").click();
  assert.equal(await status(page).textContent(), "");
});

reads("a part of the path that would lead to another path is refused", async (open) => {
  const page = await form(open);
  for (const part of [".", " .. "]) {
    await input(page, "id").fill(part);
    await dialog(page).getByRole("button", { name: "Send" }).click();
    assert.equal(await page.evaluate(() => document.activeElement.matches("input:invalid")), true, part);
    assert.equal(await status(page).textContent(), "", part);
  }
  await input(page, "id").fill("...");
  assert.match(await sent(page), /^200/);
});

reads("a server that does not allow the request: the reason is CORS", async (open) => {
  const page = await form(open);
  await input(page, "id").fill("1");
  await dialog(page).getByLabel("Server").selectOption({ index: 1 });
  const text = await sent(page);
  assert.match(text, /CORS/);
  assert.ok(text.includes(new URL(page.url()).origin), text);
}, { faults: true });

reads("a server that cannot be reached", async (open) => {
  const page = await form(open);
  await input(page, "id").fill("1");
  await dialog(page).getByLabel("Server").selectOption({ index: 2 });
  assert.match(await sent(page), /cannot be reached/);
}, { faults: true });

reads("an error of the server is shown as it is", async (open) => {
  const page = await form(open, MISSING);
  assert.match(await sent(page), /^404 Not Found/);
  assert.equal(await dialog(page).locator("pre").first().textContent(), "gone");
  assert.equal(await dialog(page).getByText("Authorization").count(), 0, "an endpoint without credentials");
}, { faults: true });

reads("a required parameter is asked for before anything is sent", async (open) => {
  const page = await form(open);
  await dialog(page).getByRole("button", { name: "Send" }).click();
  assert.equal(await page.evaluate(() => document.activeElement.matches(":invalid")), true);
  assert.equal(await status(page).textContent(), "");
});

reads("the form works with the keyboard alone", async (open) => {
  const page = await open(of("pay", MISSING));
  await page.locator(".try-it:enabled").focus();
  await page.keyboard.press("Enter");
  assert.ok(await dialog(page).isVisible());
  await dialog(page).getByRole("button", { name: "Send" }).focus();
  await page.keyboard.press("Enter");
  await status(page).filter({ hasText: "404" }).waitFor();
  await page.keyboard.press("Escape");
  assert.equal(await dialog(page).isVisible(), false);
  assert.ok(await page.evaluate(() => document.activeElement.matches(".try-it")), "the focus is back");
}, { faults: true });

for (const [scheme, width] of [["light", 1440], ["dark", 820], ["light", PHONE]]) {
  reads(`the form has no serious violation by axe (${scheme}, ${width})`, async (open) => {
    const page = await form(open, PAY, { scheme, width });
    await input(page, "id").fill("1");
    await sent(page);
    await page.evaluate(axe());
    const { violations } = await page.evaluate(() => window.axe.run(document.querySelector("dialog.try")));
    assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes[0].failureSummary]), []);
    assert.equal(await dialog(page).evaluate((box) => box.scrollWidth > box.clientWidth), false);
  });
}

reads("only pages of endpoints may ask the servers, and only they load the script", async (open) => {
  const loaded = [];
  const watch = (page) => page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
  const page = await open(of("pay", "/"), { prepare: watch });
  assert.ok(!loaded.some((name) => /\/try\./.test(name)), String(loaded));
  const policy = async (project, at) => (await page.goto(of(project, at))).headers()["content-security-policy"];
  const connect = async (...where) => (await policy(...where)).match(/connect-src ([^;]*)/)[1];
  assert.equal(await connect("pay", "/"), "'self'");
  const hosts = (await connect("pay", PAY)).split(" ");
  const local = "http://127.0.0.1";
  assert.deepEqual(hosts.map((host) => host.replace(/:\d+$/, "")), ["'self'", "http://*.acme.localhost", local, local, local]);
  assert.equal(await connect("simple", PAY), "'self'");
  const server = hosts.at(-1);
  await page.goto(of("pay", "/"));
  const refused = await page.evaluate((url) => fetch(url, { mode: "no-cors" }).then(() => false, () => true), server);
  assert.ok(refused, "a page without an endpoint asks nobody");
}, { faults: true });

reads("without `interactive` there is no form, and without scripts no button", async (open) => {
  assert.equal(await (await open(of("simple", PAY))).locator(".try-it").count(), 0);
  const plain = await open(of("pay", PAY), { scripts: false });
  assert.equal(await plain.locator(".try-it").isVisible(), false);
});
