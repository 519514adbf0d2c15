// Waypost: what a page can do beyond being read. Everything works without it.
"use strict";
(() => {
  const root = document.documentElement;
  const keep = {
    get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
    set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* private mode */ } },
  };
  // Before the first paint: colours, and that there is a script.
  root.classList.add("js");
  const theme = keep.get("theme");
  if (theme) root.dataset.theme = theme;

  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  const colours = () => {
    const button = document.querySelector(".theme");
    button.hidden = false;
    button.addEventListener("click", () => {
      const now = root.dataset.theme
        || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
      root.dataset.theme = now === "dark" ? "light" : "dark";
      keep.set("theme", root.dataset.theme);
    });
  };

  const banner = () => {
    const banner = document.querySelector("[data-banner]");
    if (!banner) return;
    const key = `banner:${banner.dataset.banner}`;
    if (keep.get(key)) { banner.remove(); return; }
    const button = banner.querySelector("button");
    button.hidden = false;
    button.addEventListener("click", () => { keep.set(key, "1"); banner.remove(); });
  };

  const menus = () => {
    const pages = document.querySelector(".pages");
    pages?.querySelector("summary").addEventListener("click", (event) => {
      event.preventDefault();
      pages.classList.toggle("shown");
    });
    const close = (except) => document.querySelectorAll("details.selector[open]").forEach((menu) => {
      if (!menu.contains(except)) menu.open = false;
    });
    document.addEventListener("click", (event) => close(event.target));
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(null); });
    document.querySelector(".sidebar [aria-current=page]")?.scrollIntoView({ block: "nearest" });
  };

  // Tabs of the same title change together and are remembered.
  const groups = [];
  const tabs = () => {
    document.querySelectorAll(".tabs").forEach((group, g) => {
      const panels = [...group.children].filter((child) => child.matches(".tab"));
      if (!panels.length) return;
      const list = make("div", { className: "tablist" });
      list.setAttribute("role", "tablist");
      const buttons = panels.map((panel, n) => {
        const button = make("button", { type: "button", id: `tab-${g}-${n}` }, panel.dataset.title);
        panel.id ||= `panel-${g}-${n}`;
        button.setAttribute("role", "tab");
        button.setAttribute("aria-controls", panel.id);
        panel.setAttribute("role", "tabpanel");
        panel.setAttribute("aria-labelledby", button.id);
        button.addEventListener("click", () => {
          choose(panel.dataset.title);
          show(n);
          keep.set("tab", panel.dataset.title);
        });
        button.addEventListener("keydown", (event) => {
          const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!step) return;
          const next = buttons[(n + step + buttons.length) % buttons.length];
          next.click();
          next.focus();
        });
        return button;
      });
      const show = (shown) => panels.forEach((panel, n) => {
        panel.hidden = n !== shown;
        buttons[n].setAttribute("aria-selected", n === shown);
        buttons[n].tabIndex = n === shown ? 0 : -1;
      });
      list.append(...buttons);
      group.prepend(list);
      group.classList.add("ready");
      groups.push({ panels, show });
      show(0);
    });
    choose(keep.get("tab"));
    reveal();
  };
  const choose = (title) => groups.forEach(({ panels, show }) => {
    const at = panels.findIndex((panel) => panel.dataset.title === title);
    if (at >= 0) show(at);
  });
  // A link to something inside of a tab or an accordion opens it.
  const reveal = () => {
    const target = location.hash.length > 1
      && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    groups.forEach(({ panels, show }) => {
      const at = panels.findIndex((panel) => panel.contains(target));
      if (at >= 0) show(at);
    });
    for (let outer = target; outer; outer = outer.parentElement) {
      if (outer.localName === "details") outer.open = true;
    }
    target.scrollIntoView();
  };

  const copy = () => {
    if (!navigator.clipboard) return;
    document.querySelectorAll("figure.code").forEach((figure) => {
      const button = make("button", { type: "button", className: "copy" }, "Copy");
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(figure.querySelector("code").textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      figure.append(button);
    });
  };

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

  const search = () => {
    const button = document.querySelector("button.search");
    button.hidden = false;
    const input = make("input", { type: "search", placeholder: "Search", autocomplete: "off" });
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-label", "Search");
    input.setAttribute("aria-controls", "found");
    const list = make("ul", { id: "found" });
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", "Pages");
    const dialog = make("dialog", { className: "finder" }, input, list);
    dialog.setAttribute("aria-label", "Search");
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
  };

  const suggestions = async () => {
    const place = document.getElementById("suggestions");
    if (!place) return;
    const asked = fold(decodeURIComponent(location.pathname.split("/").filter(Boolean).pop() ?? ""))
      .replace(/[-_.]/g, " ");
    const all = await load();
    const words = asked.split(/\s+/).filter((word) => word.length > 2);
    const near = all
      .map((page) => ({ page, hits: words.filter((word) => fold(`${page[0]} ${page[1]}`).includes(word)).length }))
      .filter(({ hits }) => hits)
      .sort((one, other) => other.hits - one.hits)
      .slice(0, 5);
    if (!near.length) return;
    const list = make("ul", {});
    near.forEach(({ page: [path, title, where] }) => list.append(item({ path, title, where }, "")));
    place.append(make("p", {}, "Did you mean"), list);
  };

  document.addEventListener("DOMContentLoaded", () => {
    for (const part of [colours, banner, menus, tabs, copy, search, suggestions]) part();
    addEventListener("hashchange", reveal);
  });
})();
