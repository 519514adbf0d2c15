// Waypost: search. Pages whose title matches come first, from the list of titles. Results of
// the full-text index of this language and version follow, section by section.
const { root, search: directory, messages } = document.body.dataset;
const [, , search, none, near] = messages.split("|");
const at = (path) => new URL(path, new URL(root.replace(/\/?$/, "/"), location.href)).href;
const inside = (path) => new URL(path, new URL(`${directory}/`, location.href)).href;

const RESULTS_MAX = 20;
const PAGES_MAX = 8;
const SECTIONS_MAX = 3;

const make = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};

// The list of pages: [path, title, breadcrumb, description, [[anchor, heading]…]].
let titles;
const load = () => titles ??= fetch(inside("pages.json")).then((answer) => answer.json());

// The full-text index; if it cannot be loaded, only titles and headings are searched.
let index;
const words = () => index ??= import(inside("pagefind.js")).then(async (pagefind) => {
  await pagefind.options({ excerptLength: 22 });
  await pagefind.init();
  return pagefind;
}).catch(() => null);

const fold = (text) => text.toLowerCase().normalize("NFKD").replace(/\p{M}/gu, "");

const rank = ([, title, where, description, headings], query, terms) => {
  const name = fold(title);
  if (name === query) return { score: 1000 };
  if (name.startsWith(query)) return { score: 500 };
  if (name.includes(query)) return { score: 300 };
  if (terms.every((term) => name.includes(term))) return { score: 200 };
  const heading = headings.find(([, text]) => terms.every((term) => fold(text).includes(term)));
  if (heading) return { score: 100, heading };
  const about = fold(`${title} ${where} ${description}`);
  return { score: terms.every((term) => about.includes(term)) ? 50 : 0 };
};

const byTitle = (pages, typed) => {
  const query = fold(typed);
  const terms = query.split(/\s+/);
  return pages
    .map((page) => ({ page, ...rank(page, query, terms) }))
    .filter(({ score }) => score)
    // If two titles match equally, the shorter one comes first.
    .sort((one, other) => other.score - one.score || one.page[1].length - other.page[1].length)
    .map(({ page: [path, title, where], heading }) => ({
      path: heading ? `${path}#${heading[0]}` : path,
      title: heading ? heading[1] : title,
      under: heading ? title : where,
    }));
};

const byWords = async (typed) => {
  const pagefind = await words();
  const found = await pagefind?.search(typed);
  const pages = await Promise.all((found?.results ?? []).slice(0, PAGES_MAX).map((one) => one.data()));
  return pages.flatMap(({ raw_url, meta, excerpt, sub_results: sections }) => {
    const path = raw_url.slice(1);
    const within = sections.filter((section) => section.anchor).slice(0, SECTIONS_MAX);
    if (!within.length) return [{ path, title: meta.title, excerpt }];
    return within.map((section) => ({
      path: `${path}#${section.anchor.id}`, title: section.title, under: meta.title, excerpt: section.excerpt,
    }));
  });
};

// An excerpt is HTML with `<mark>`. It is parsed, and only text and marks are taken from it.
const excerpt = (html) => [...new DOMParser().parseFromString(html, "text/html").body.childNodes]
  .map((node) => (node.nodeName === "MARK" ? make("mark", {}, node.textContent) : node.textContent));

const marked = (text, typed) => {
  const folded = fold(text);
  const start = folded.indexOf(fold(typed));
  if (start < 0 || folded.length !== text.length) return [text];
  const end = start + typed.length;
  return [text.slice(0, start), make("mark", {}, text.slice(start, end)), text.slice(end)];
};

const link = ({ path, title, under, excerpt: html }, typed) => {
  const entry = make("a", { href: at(path) }, make("span", {}, ...marked(title, typed)));
  if (under) entry.append(make("small", {}, under));
  if (html) entry.append(make("small", { className: "excerpt" }, ...excerpt(html)));
  return entry;
};

const input = make("input", { type: "search", className: "sign-close", placeholder: search, autocomplete: "off", spellcheck: false });
const list = make("div", { id: "found" });
const status = make("p", { className: "said" });
const dialog = make("dialog", { className: "finder" }, input, list, status);
const describe = (element, attributes) => {
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
};
describe(dialog, { "aria-label": search });
describe(input, {
  role: "combobox", "aria-label": search, "aria-controls": "found", "aria-expanded": false, "aria-autocomplete": "list",
});
describe(list, { role: "listbox", "aria-label": search });
describe(status, { role: "status" });

let chosen = 0;
const choose = (n) => {
  const options = [...list.children];
  if (!options.length) { input.removeAttribute("aria-activedescendant"); return; }
  chosen = (n + options.length) % options.length;
  options.forEach((option, n) => option.setAttribute("aria-selected", n === chosen));
  options[chosen].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", options[chosen].id);
};

const show = (found, typed) => {
  const seen = new Set();
  const fresh = found.filter(({ path }) => !seen.has(path) && seen.add(path)).slice(0, RESULTS_MAX);
  list.replaceChildren(...fresh.map((one, n) => {
    const option = link(one, typed);
    describe(option, { role: "option", id: `found-${n}`, tabindex: -1 });
    return option;
  }));
  input.setAttribute("aria-expanded", fresh.length > 0);
  return fresh.length;
};

// Results of an earlier query are dropped if a later one was typed meanwhile.
let asked = 0;
const find = async () => {
  const turn = ++asked;
  const typed = input.value.trim();
  status.textContent = "";
  if (!typed) { show([], ""); choose(0); return; }
  const pages = byTitle(await load(), typed);
  if (turn !== asked) return;
  show(pages, typed);
  choose(0);
  const sections = await byWords(typed);
  if (turn !== asked) return;
  // Pages whose title matches come before pages whose text does.
  const count = show([...pages.slice(0, PAGES_MAX), ...sections, ...pages.slice(PAGES_MAX)], typed);
  choose(chosen);
  status.textContent = count || `${none}: ${typed}`;
};

input.addEventListener("input", find);
input.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) { event.preventDefault(); choose(chosen + step); }
  if (event.key === "Enter") { event.preventDefault(); list.children[chosen]?.click(); }
});
list.addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
document.body.append(dialog);

// Opens the search.
export const open = () => {
  if (dialog.open) return;
  load();
  words();
  dialog.showModal();
  input.select();
};

// The similarity of two texts is the share of letter pairs that they have in common. It finds
// misspelt words and words in another order.
const pairs = (text) => {
  const letters = [...fold(text).replace(/[^\p{L}\p{N}]+/gu, " ").trim()];
  return new Set(letters.slice(1).map((letter, n) => letters[n] + letter));
};
const nearness = (one, other) => {
  const common = [...one].filter((pair) => other.has(pair)).length;
  return 2 * common / (one.size + other.size || 1);
};
const SUGGESTIONS_MAX = 5;
const NEAR = 0.4;

// Suggests the pages whose titles and paths are most similar to the requested path.
export const suggest = async (place) => {
  const address = decodeURIComponent(location.pathname);
  const last = (path) => path.split("/").filter(Boolean).pop() ?? "";
  const [wanted, end] = [pairs(address), pairs(last(address))];
  const score = ([path, title]) => Math.max(
    nearness(wanted, pairs(path)), nearness(end, pairs(title)), nearness(end, pairs(last(path))),
  );
  const nearest = (await load())
    .map((page) => ({ page, score: score(page) }))
    .filter((found) => found.score > NEAR)
    .sort((one, other) => other.score - one.score)
    .slice(0, SUGGESTIONS_MAX);
  if (!nearest.length) return;
  const items = nearest.map(({ page: [path, title, under] }) => make("li", {}, link({ path, title, under }, "")));
  place.append(make("p", {}, near), make("ul", {}, ...items));
};
