// Starts a gateway with the bundled documentation, for measurements in a browser.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import { createRequire } from "node:module";
import net from "node:net";
import path from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { fileURLToPath } from "node:url";

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
export const { chromium } = createRequire(path.join(ROOT, "target/clients/browser/"))("playwright-core");
const HOST = "docs.bench.localhost";

/** Returns the value of an option of the command line. */
export const option = (name, otherwise) => {
  const at = process.argv.indexOf(name);
  return at < 0 ? otherwise : process.argv[at + 1];
};

const freePort = () => new Promise((done) => {
  const server = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});

/** Starts a gateway whose files are in a directory. */
export async function start(directory, binary) {
  const [port, operator] = [await freePort(), await freePort()];
  const conf = path.join(directory, "waypost.yaml");
  fs.mkdirSync(path.join(directory, "sites"));
  fs.writeFileSync(path.join(directory, "sites/docs.yaml"), `project: docs\nsubdomain: docs\ndomains: [${HOST}]\n`);
  fs.writeFileSync(conf, `service: { scheme: http, port: ${port} }
listen: { http: ["127.0.0.1:${port}"], operator: "127.0.0.1:${operator}" }
store: { local: { path: ${directory}/store } }
queue: { sqlite: { path: ${directory}/queue.sqlite } }
sites: ${directory}/sites
git: { mirrors: ${directory}/git }
worker: { directory: ${directory}/work }
`);
  const docs = path.join(ROOT, "conf/demo/docs");
  const published = spawnSync(binary, ["publish", docs, "--root", docs, "--project", "docs", "--conf", conf], { encoding: "utf8" });
  if (published.status !== 0) throw new Error(published.stdout + published.stderr);
  const gateway = spawn(binary, ["serve", "--conf", conf], { stdio: "ignore" });
  for (let tries = 0; ; tries += 1) {
    const is = await fetch(`http://127.0.0.1:${operator}/readyz`).then(({ ok }) => ok, () => false);
    if (is) return { gateway, site: `http://${HOST}:${port}` };
    if (tries > 200 || gateway.exitCode !== null) {
      gateway.kill();
      throw new Error("the gateway is not ready");
    }
    await after(50);
  }
}

/** Ends a gateway. It writes into its directory until it has ended. */
export async function stop(gateway) {
  if (gateway.exitCode !== null || gateway.signalCode !== null) return;
  const ended = new Promise((resolve) => gateway.once("exit", resolve));
  gateway.kill();
  await ended;
}
