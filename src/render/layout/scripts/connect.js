// The menu that adds the site's MCP server to an editor. Whether a site has the server is not
// known when its pages are built, so its card is asked for when a reader reaches for the menu.
parts.push(() => {
  const menu = document.querySelector(".connect");
  if (!menu) return;
  const card = new URL(`${document.body.dataset.root || "./"}.well-known/mcp/server-card.json`, location.href);
  const fill = async () => {
    const answer = await fetch(card);
    if (!answer.ok) { menu.remove(); return; }
    const { name: full, url } = await answer.json();
    const name = full.split("/").pop();
    const cursor = new URLSearchParams({ name, config: btoa(JSON.stringify({ url })) });
    const code = encodeURIComponent(JSON.stringify({ name, type: "http", url }));
    const entries = [
      make("a", { href: `cursor://anysphere.cursor-deeplink/mcp/install?${cursor}` }, "Cursor"),
      make("a", { href: `vscode:mcp/install?${code}` }, "VS Code"),
      make("code", {}, url),
    ];
    menu.querySelector("ul").replaceChildren(...entries.map((entry) => make("li", {}, entry)));
  };
  let filled;
  const ask = () => { filled ??= fill().catch(() => { filled = null; }); };
  ["pointerenter", "focusin", "toggle"].forEach((event) => menu.addEventListener(event, ask));
});
