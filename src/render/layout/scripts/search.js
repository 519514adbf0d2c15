// Search, and the suggestions of the 404 page. Both are in a script of their own, which is
// loaded on first use.
const finder = () => import(new URL(document.body.dataset.finder, location.href));
parts.push(() => {
  const button = document.querySelector("button.search");
  if (!button) return;
  const open = async () => (await finder()).open();
  button.addEventListener("click", open);
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
