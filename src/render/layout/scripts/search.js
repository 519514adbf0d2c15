// Search, and the suggestions of the 404 page. Both are in a script of their own, which is
// loaded on first use. Without a script the link leads to a page with a form.
const finder = () => import(new URL(document.body.dataset.finder, location.href));
parts.push(() => {
  const link = element("a.search");
  if (!link) return;
  const isApple = /Mac|iP/.test(navigator.platform);
  link.querySelector("kbd").textContent = isApple ? "⌘K" : "Ctrl K";
  link.ariaHasPopup = "dialog";
  const open = () => finder().then((module) => module.open()).catch(() => location.assign(link.href));
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    const asked = event.key === "/" && !typing
      || event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
    if (asked) { event.preventDefault(); open(); }
  });
});
parts.push(async () => {
  const place = document.getElementById("_suggestions");
  if (place) (await finder()).suggest(place);
});
