// Waypost: search. The server answers questions; here they are asked while a reader types.
const { root, search: api, language, version, messages } = document.body.dataset;
const [
  , , search, none, near, help, recently, clear, toChoose, toOpen, toClose, elsewhere, failed, versionOf,
] = messages.split("|");

// How long after a key the question is asked, in milliseconds.
const PAUSE = 30;
// How long a text must stay to be a search, which is counted, in milliseconds.
const SETTLED = 2000;
const ANSWERS_MAX = 100;
const RECENT_MAX = 5;
const SUGGESTIONS_MAX = 5;
const PAGES_MAX = 6;
// How many sections are shown of a page that is not the first one, so that more pages are seen.
const SECTIONS_MAX = 2;

const make = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
const describe = (element, attributes) => {
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  return element;
};

// Answers by their address. An answer that was asked a moment ago is not asked again.
const answers = new Map();
const ask = async (parameters, signal) => {
  const address = `${api}?${new URLSearchParams(parameters)}`;
  if (answers.has(address)) return answers.get(address);
  const answer = await fetch(address, { signal, headers: { accept: "application/json" } });
  if (!answer.ok) throw new Error(answer.status);
  const found = await answer.json();
  if (answers.size >= ANSWERS_MAX) answers.delete(answers.keys().next().value);
  answers.set(address, found);
  return found;
};

// What was searched before, the last first.
const key = `searches:${new URL(root || ".", location.href).pathname}`;
const recent = {
  get: () => {
    try { return JSON.parse(localStorage.getItem(key)) ?? []; } catch { return []; }
  },
  set: (list) => { try { localStorage.setItem(key, JSON.stringify(list)); } catch { /* private mode */ } },
  add: (typed) => {
    if (typed) recent.set([typed, ...recent.get().filter((other) => other !== typed)].slice(0, RECENT_MAX));
  },
};

const input = make("input", { type: "search", className: "sign-close", placeholder: document.querySelector("a.search > span")?.textContent ?? search, autocomplete: "off", spellcheck: false, enterKeyHint: "search", maxLength: 200 });
const versions = make("select", { hidden: true });
const close = make("button", { type: "button", className: "plain-button leave sign sign-chevron" });
const list = make("div", { id: "found" });
const status = make("p", { className: "said" });
const hint = (keys, text) => make("span", {}, ...keys.map((name) => make("kbd", {}, name)), ` ${text}`);
const keys = make("p", { className: "keys" }, hint(["↑", "↓"], toChoose), hint(["↵"], toOpen), hint(["esc"], toClose));
const dialog = make("dialog", { className: "finder" }, make("div", { className: "asked sign sign-search" }, input, versions, close), list, status, keys);
describe(dialog, { "aria-label": search });
describe(input, {
  role: "combobox", "aria-label": search, "aria-controls": "found", "aria-expanded": false, "aria-autocomplete": "list",
});
describe(versions, { "aria-label": versionOf });
describe(close, { "aria-label": toClose });
describe(list, { role: "listbox", "aria-label": search });
describe(status, { role: "status" });
keys.setAttribute("aria-hidden", "true");

let chosen = 0;
const options = () => [...list.querySelectorAll("[role=option]")];
const choose = (n) => {
  const all = options();
  all.forEach((option, at) => { option.id = `found-${at}`; });
  if (!all.length) { input.removeAttribute("aria-activedescendant"); return; }
  chosen = (n + all.length) % all.length;
  all.forEach((option, at) => option.setAttribute("aria-selected", at === chosen));
  all[chosen].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", all[chosen].id);
};
const show = (...entries) => {
  list.replaceChildren(...entries);
  input.setAttribute("aria-expanded", entries.length > 0);
  choose(0);
};

const excerpt = (pieces) => make("small", { className: "excerpt" }, ...pieces
  .map(({ text, match }) => (match ? make("mark", {}, text) : text)));
const marked = (text, typed) => {
  const words = typed.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  const parts = text.split(/([\p{L}\p{N}_]+)/u);
  return parts.map((part) => {
    const is = words.find((word) => part.toLowerCase().startsWith(word));
    return is ? [make("mark", {}, part.slice(0, is.length)), part.slice(is.length)] : [part];
  }).flat();
};
const option = (element, typed) => {
  element.addEventListener("click", () => { recent.add(typed); dialog.close(); });
  return describe(element, { role: "option", tabindex: -1 });
};

// A page with its sections. The beginning of the page is shown below its title.
const group = ({ url, title, breadcrumb, version: of, sections: all }, typed, isElsewhere, sectionsMax) => {
  const sections = all.slice(0, sectionsMax);
  const page = make("a", { href: url }, make("span", {}, ...marked(title, typed)));
  const where = [...breadcrumb, ...(isElsewhere && of ? [of] : [])].join(" › ");
  if (where) page.append(make("small", {}, where));
  const lead = sections.find(({ heading }) => heading === null);
  if (lead?.excerpt.length) page.append(excerpt(lead.excerpt));
  const below = sections.filter(({ heading }) => heading !== null).map(({ url, heading, excerpt: pieces }) => {
    const section = make("a", { href: url, className: "section" }, make("span", {}, ...marked(heading, typed)));
    if (pieces.length) section.append(excerpt(pieces));
    return option(section, typed);
  });
  return describe(make("div", {}, option(page, typed), ...below), { role: "group", "aria-label": title });
};

// Pages of the sidebar: something to open before anything is typed.
const sidebar = document.querySelector(".sidebar");
const pages = () => {
  const links = sidebar?.querySelectorAll(".group a:not([rel], [aria-current=page])") ?? [];
  const entries = [...links].slice(0, PAGES_MAX).map((link) => {
    const isTitle = ({ nodeType, localName }) => nodeType === Node.TEXT_NODE || localName === "del";
    const title = [...link.childNodes].filter(isTitle).map(({ textContent }) => textContent).join("").trim();
    return option(make("a", { href: link.href, className: "start" }, make("span", {}, title)), "");
  });
  if (!entries.length) return [];
  return [describe(make("div", {}, ...entries), { role: "group", "aria-label": sidebar.ariaLabel })];
};

// What is shown before anything is typed. The first search can be repeated by Enter; no page is
// selected.
const showRecent = () => {
  status.textContent = "";
  const searched = recent.get();
  if (!searched.length) {
    show(...pages());
    options().forEach((option) => option.setAttribute("aria-selected", false));
    input.removeAttribute("aria-activedescendant");
    chosen = -1;
    return;
  }
  const again = searched.map((typed) => {
    const entry = make("button", { type: "button", className: "again" }, typed);
    entry.addEventListener("click", () => { input.value = typed; input.focus(); find(0); });
    return describe(entry, { role: "option", tabindex: -1 });
  });
  const forget = make("button", { type: "button", className: "plain-button forget" }, clear);
  forget.addEventListener("click", () => { recent.set([]); showRecent(); input.focus(); });
  show(describe(make("div", {}, ...again), { role: "group", "aria-label": recently }), ...pages());
  status.replaceChildren(forget);
};

// The versions that can be chosen. The version of the page is selected first.
const offer = (all) => {
  if (versions.options.length || all.length < 2) return;
  const labels = version ? all : ["", ...all];
  versions.append(...labels.map((label) => make("option", { value: label, selected: label === (version ?? "") }, label || versionOf)));
  versions.hidden = false;
};

const parametersOf = (typed) => ({
  q: typed, language, typing: 1, limit: 8, ...(versions.value || version ? { version: versions.value || version } : {}),
});

// An earlier question is dropped when a later one is asked.
let running;
let timer;
let settling;
const find = (pause) => {
  running?.abort();
  clearTimeout(timer);
  clearTimeout(settling);
  const typed = input.value.trim();
  if (!typed) { showRecent(); return; }
  const { signal } = running = new AbortController();
  timer = setTimeout(async () => {
    try {
      const found = await ask(parametersOf(typed), signal);
      if (signal.aborted) return;
      offer(found.versions);
      show(...found.results.map((result, at) => group(result, typed, found.elsewhere, at ? SECTIONS_MAX : undefined)));
      if (!found.results.length) status.textContent = `${none}: ${typed}. ${help}`;
      else status.textContent = found.elsewhere ? elsewhere : found.total;
      status.classList.toggle("seen", found.elsewhere);
      settling = setTimeout(() => ask({ ...parametersOf(typed), settled: 1 }).catch(() => {}), SETTLED);
    } catch {
      if (signal.aborted) return;
      show();
      status.textContent = failed;
    }
  }, pause);
};

// A key after a pause is asked for at once; only keys that follow each other fast wait.
let typedAt = -PAUSE;
input.addEventListener("input", () => {
  const now = performance.now();
  const isFast = now - typedAt < PAUSE;
  typedAt = now;
  find(isFast ? PAUSE : 0);
});
versions.addEventListener("change", () => { find(0); input.focus(); });
input.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step) { event.preventDefault(); choose(chosen < 0 && step < 0 ? step : chosen + step); }
  // Not the Enter that ends the input of a character.
  if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); options()[chosen]?.click(); }
});
close.addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
document.body.append(dialog);

// Opens the search.
export const open = () => {
  if (dialog.open) return;
  dialog.showModal();
  input.select();
  if (!input.value) showRecent();
};

// Suggests the pages that have the words of the requested path.
export const suggest = async (place) => {
  const base = new URL(root || ".", location.href).pathname;
  let path = location.pathname;
  try { path = decodeURIComponent(path); } catch { /* not UTF-8 */ }
  const below = path.startsWith(base) ? path.slice(base.length) : path;
  const words = below.replace(/\.\w+$/, "").split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  // The last words say most, and a question has an end.
  const typed = words.slice(-12).join(" ").slice(-200);
  if (!typed) return;
  const { results } = await ask({ q: typed, language, limit: SUGGESTIONS_MAX, settled: 0 });
  if (!results.length) return;
  const items = results.map(({ url, title, breadcrumb }) => {
    const entry = make("a", { href: url }, make("span", {}, title));
    if (breadcrumb.length) entry.append(make("small", {}, breadcrumb.join(" › ")));
    return make("li", {}, entry);
  });
  place.append(make("p", {}, near), make("ul", {}, ...items));
};
