// Search: titles, headings and descriptions of the pages of a language.
// The list of pages: [path, title, where it stands, description, [[anchor, heading]…]].
let pages;
const load = async () => {
  pages ??= fetch(document.body.dataset.search).then((answer) => answer.json());
  return pages;
};
const fold = (text) => text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");
const find = (all, typed) => {
  const query = fold(typed.trim());
  const words = query.split(/\s+/);
  const found = [];
  for (const [path, title, where, description, headings] of all) {
    const name = fold(title);
    let score = name === query ? 1000 : name.startsWith(query) ? 500 : name.includes(query) ? 300 : 0;
    if (!score && words.every((word) => name.includes(word))) score = 200;
    let heading;
    if (!score) {
      heading = headings.find(([, text]) => words.every((word) => fold(text).includes(word)));
      if (heading) score = 100;
      else if (words.every((word) => fold(`${title} ${where} ${description}`).includes(word))) score = 50;
    }
    if (score) found.push({ score: score - title.length / 100, path, title, where, heading });
  }
  return found.sort((one, other) => other.score - one.score).slice(0, 20);
};
const marked = (text, typed) => {
  const at = fold(text).indexOf(fold(typed.trim()));
  if (at < 0 || fold(text).length !== text.length) return [text];
  const end = at + typed.trim().length;
  return [text.slice(0, at), make("mark", {}, text.slice(at, end)), text.slice(end)];
};
const item = ({ path, title, where, heading }, typed) => {
  const link = make("a", {
    href: document.body.dataset.root.replace(/\/?$/, "/") + path + (heading ? `#${heading[0]}` : ""),
  }, make("span", {}, ...marked(heading ? heading[1] : title, typed)));
  const under = heading ? title : where;
  if (under) link.append(make("small", {}, under));
  return make("li", {}, link);
};

parts.push(() => {
  const button = document.querySelector("button.search");
  if (!button) return;
  const { search: word } = words();
  const input = make("input", { type: "search", placeholder: word, autocomplete: "off" });
  input.setAttribute("role", "combobox");
  input.setAttribute("aria-label", word);
  input.setAttribute("aria-controls", "found");
  const list = make("ul", { id: "found" });
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Pages");
  const dialog = make("dialog", { className: "finder" }, input, list);
  dialog.setAttribute("aria-label", word);
  document.body.append(dialog);
  let at = 0;
  const select = (n) => {
    const items = [...list.children];
    if (!items.length) return;
    at = (n + items.length) % items.length;
    items.forEach((one, n) => one.setAttribute("aria-selected", n === at));
    items[at].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", items[at].id);
  };
  input.addEventListener("input", async () => {
    const all = await load();
    const found = input.value.trim() ? find(all, input.value) : [];
    list.replaceChildren(...found.map((one, n) => {
      const entry = item(one, input.value);
      entry.id = `found-${n}`;
      entry.setAttribute("role", "option");
      return entry;
    }));
    select(0);
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); select(at + step); }
    if (event.key === "Enter") list.children[at]?.querySelector("a").click();
  });
  list.addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  const open = () => { load(); dialog.showModal(); input.select(); };
  button.addEventListener("click", open);
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select, [contenteditable]");
    const asked = event.key === "/" && !typing
      || event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey);
    if (asked && !dialog.open) { event.preventDefault(); open(); }
  });
});
