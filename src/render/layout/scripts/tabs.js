// Tabs: those with the same title change together, and the choice is stored. A tab or
// accordion opens if the address of the page points into it.
const groups = [];
const choose = (title) => groups.forEach(({ panels, show }) => {
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
    const list = make("div", { className: "tablist" });
    list.setAttribute("role", "tablist");
    const buttons = panels.map((panel, n) => {
      const button = make("button", { type: "button", id: `tab-${g}-${n}` }, panel.dataset.title);
      const isNamed = Boolean(panel.id);
      panel.id ||= `panel-${g}-${n}`;
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", panel.id);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", button.id);
      button.addEventListener("click", () => {
        const top = button.getBoundingClientRect().top;
        choose(panel.dataset.title);
        show(n);
        // Tab groups above may have changed their height; keep the clicked tab in place.
        scrollBy({ top: button.getBoundingClientRect().top - top, behavior: "instant" });
        keep.set("tab", panel.dataset.title);
        if (isNamed) address(panel.id);
      });
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
      panels.forEach((panel, n) => {
        panel.hidden = n !== shown;
        buttons[n].setAttribute("aria-selected", n === shown);
        buttons[n].tabIndex = n === shown ? 0 : -1;
      });
      dispatchEvent(new Event("panels"));
    };
    list.append(...buttons);
    group.prepend(list);
    group.classList.add("ready");
    groups.push({ panels, show });
    show(0);
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
