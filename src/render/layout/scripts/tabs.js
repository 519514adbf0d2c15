// Tabs, or a list of their titles: those with the same title change together, and the choice is
// stored. A tab or accordion opens if the address of the page points into it.
const groups = [];
const choose = (title) => groups.forEach(({ panels, show, isAlone }) => {
  if (isAlone) return;
  const at = panels.findIndex((panel) => panel.dataset.title === title);
  if (at >= 0) show(at);
});
const address = (id) => history.replaceState(history.state, "", `#${id}`);
const reveal = () => {
  const target = pointedAt(location.hash);
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

parts.push(() => {
  elements(".tabs").forEach((group, g) => {
    const panels = [...group.children].filter((child) => child.matches(".tab"));
    if (!panels.length) return;
    const { sync, dropdown } = group.dataset;
    const isAlone = sync === "off";
    const titles = panels.map(({ dataset }) => dataset.title);
    const anchors = panels.map(({ id }) => id);
    const pick = (n) => {
      const { top } = list.getBoundingClientRect();
      if (!isAlone) {
        choose(titles[n]);
        keep.set("tab", titles[n]);
      }
      show(n);
      // Tab groups above may have changed their height; keep the chosen tab in place.
      scrollBy({ top: list.getBoundingClientRect().top - top, behavior: "instant" });
      if (anchors[n]) address(anchors[n]);
    };
    const menu = dropdown && make("select", { ariaLabel: dropdown }, ...titles.map((title) => make("option", {}, title)));
    const buttons = menu ? [] : panels.map((panel, n) => {
      const button = make("button", { type: "button", id: `tab-${g}-${n}`, role: "tab" }, titles[n]);
      panel.id ||= `panel-${g}-${n}`;
      button.setAttribute("aria-controls", panel.id);
      panel.role = "tabpanel";
      panel.setAttribute("aria-labelledby", button.id);
      button.addEventListener("click", () => pick(n));
      button.addEventListener("keydown", (event) => {
        const forward = getComputedStyle(group).direction === "rtl" ? -1 : 1;
        const to = { ArrowRight: n + forward, ArrowLeft: n - forward, Home: 0, End: panels.length - 1 }[event.key];
        if (to === undefined) return;
        event.preventDefault();
        const next = buttons[(to + buttons.length) % buttons.length];
        next.click();
        next.focus();
      });
      return button;
    });
    const show = (shown) => {
      panels.forEach((panel, n) => { panel.hidden = n !== shown; });
      buttons.forEach((button, n) => Object.assign(button, { ariaSelected: n === shown, tabIndex: n === shown ? 0 : -1 }));
      if (menu) menu.selectedIndex = shown;
      dispatchEvent(new Event("panels"));
    };
    const list = make("div", { className: "tablist" }, ...(menu ? [menu] : buttons));
    if (menu) menu.addEventListener("change", () => pick(menu.selectedIndex));
    else list.role = "tablist";
    group.prepend(list);
    group.classList.add("ready");
    groups.push({ panels, show, isAlone });
    show(Math.max(0, panels.findIndex((panel) => panel.matches(".chosen"))));
  });
  const last = keep.get("tab");
  if (last) choose(last);
  reveal();
  addEventListener("hashchange", reveal);
  elements(".accordion > summary").forEach((summary) => {
    // Put the accordion into the address, so that it can be linked to.
    const accordion = summary.parentElement;
    summary.addEventListener("click", () => { if (!accordion.open && accordion.id) address(accordion.id); });
  });
});
