// The menu that opens the page in an assistant, or adds the site's MCP server to an editor. Whether
// a site has the server is not known when its pages are built, so its card is asked for when
// a reader reaches for the menu.
parts.push(() => {
  const menu = element(".connect");
  if (!menu) return;
  const list = menu.querySelector("ul");
  const page = element(".actions a[type='text/markdown']").href;
  const to = (link, mcp) => {
    const { ask, to: own = "" } = link.dataset;
    if (ask) link.href = ask + encodeURIComponent(`Read ${page}. I want to ask questions about it.`);
    else if (mcp || !own.includes("$mcp")) {
      link.href = own.replaceAll(/\$(page|path|mcp)/g, (_, name) => encodeURIComponent({ page, path: location.pathname, mcp }[name]));
    }
  };
  const links = [...list.querySelectorAll("a")];
  links.forEach((link) => to(link));
  const { mcp: wanted } = menu.dataset;
  const isAsking = wanted || links.some((link) => link.dataset.to?.includes("$mcp"));
  if (!isAsking) return;
  const card = new URL(`${document.body.dataset.root || "./"}.well-known/mcp/server-card.json`, location.href);
  const fill = async () => {
    const answer = await fetch(card);
    if (!answer.ok) { if (!links.length) menu.remove(); return; }
    const { name: full, url } = await answer.json();
    const name = full.split("/").pop();
    const cursor = new URLSearchParams({ name, config: btoa(JSON.stringify({ url })) });
    const code = encodeURIComponent(JSON.stringify({ name, type: "http", url }));
    const entries = {
      cursor: make("a", { href: `cursor://anysphere.cursor-deeplink/mcp/install?${cursor}` }, "Cursor"),
      vscode: make("a", { href: `vscode:mcp/install?${code}` }, "VS Code"),
      mcp: make("code", {}, url),
    };
    links.forEach((link) => to(link, url));
    if (wanted) list.append(...wanted.split(" ").map((key) => make("li", {}, entries[key])));
  };
  let filled;
  const ask = () => { filled ??= fill().catch(() => { filled = null; }); };
  ["pointerenter", "focusin", "toggle"].forEach((event) => menu.addEventListener(event, ask));
});
