// The layout: colours, banner, menus, sidebar, and which heading is current.
parts.push(() => {
  // The frame of a diagram knows only the colour scheme of the system. The one that the
  // reader has chosen is passed in its address.
  const tellDiagrams = () => elements(".diagram iframe").forEach((frame) => {
    // A new frame, because changing the address of this one would add a history entry.
    const told = frame.cloneNode();
    const own = root.dataset.theme ? `&${root.dataset.theme}` : "";
    told.src = frame.src.replace(/&(light|dark)$/, "") + own;
    frame.replaceWith(told);
  });
  // The bar of the browser has the colour of the scheme that is shown.
  const bars = elements("meta[name=theme-color][media]");
  const medias = bars.map((bar) => bar.media);
  const tellBrowser = () => bars.forEach((bar, n) => {
    const { theme } = root.dataset;
    bar.media = theme ? (medias[n].includes(theme) ? "all" : "not all") : medias[n];
  });
  const button = element(".theme");
  let scheme = root.dataset.theme ?? "system";
  const name = () => {
    const [what, ...names] = button.dataset.names.split("|");
    const label = `${what}: ${names[["system", "light", "dark"].indexOf(scheme)]}`;
    button.dataset.scheme = scheme;
    Object.assign(button, { ariaLabel: label, title: label });
  };
  if (root.dataset.theme) { tellDiagrams(); tellBrowser(); }
  if (button) name();
  const colour = () => {
    setScheme(scheme);
    markScheme();
    tellDiagrams();
    tellBrowser();
  };
  // The scheme that the system does not have comes first, because the reader sees it at once.
  button?.addEventListener("click", () => {
    const order = dark.matches ? ["system", "light", "dark"] : ["system", "dark", "light"];
    scheme = order[(order.indexOf(scheme) + 1) % 3];
    keep.set("theme", scheme);
    name();
    // The next frame shows the choice on the button. The colours follow in the frame after it,
    // because drawing a whole page again takes longer than a button should take.
    requestAnimationFrame(() => setTimeout(colour));
  });
  element(".dismiss")?.addEventListener("click", () => {
    keep.set(`banner:${root.dataset.banner}`, "1");
    root.classList.add("dismissed");
    element(".logo").focus();
  });
});

// A menu closes when the reader presses elsewhere, or Escape, which keeps the focus on it.
parts.push(() => {
  const close = (except) => elements("details.selector[open]").forEach((menu) => {
    if (menu.contains(except)) return;
    if (menu.contains(document.activeElement)) menu.querySelector("summary").focus();
    menu.open = false;
  });
  document.addEventListener("click", (event) => close(event.target));
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") close(null); });
});

// The strip of tabs scrolls to the current one. `scrollIntoView` would move the start of the keyboard.
parts.push(() => {
  const current = element(".sections .current");
  if (!current) return;
  const [outer, inner] = [current.parentElement, current].map((part) => part.getBoundingClientRect());
  if (inner.right > outer.right || inner.left < outer.left) current.parentElement.scrollLeft += inner.left - outer.left - outer.width / 3;
});

// The sidebar keeps its scroll position from page to page, shows the current page, and keeps
// the groups as the reader has left them.
parts.push(() => {
  const sidebar = element(".sidebar");
  if (!sidebar) return;
  const key = `scroll:${sidebar.querySelectorAll("a").length}`;
  const showCurrent = () => {
    const current = sidebar.querySelector("[aria-current=page]");
    if (!current) return;
    const [outer, inner] = [sidebar.getBoundingClientRect(), current.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) {
      sidebar.scrollTop += inner.top - outer.top - outer.height / 3;
    }
  };
  // Storage fails in private mode.
  try {
    sidebar.scrollTop = Number(sessionStorage.getItem(key)) || 0;
    addEventListener("pagehide", () => sessionStorage.setItem(key, sidebar.scrollTop));
  } catch {}
  sidebar.querySelectorAll(".nested > details").forEach((details) => {
    details.querySelector("summary").addEventListener("click", () => {
      opened[groupName(details)] = !details.open;
      try { sessionStorage.setItem(OPENED, JSON.stringify(opened)); } catch {}
    });
  });
  showCurrent();
  // As a drawer it also holds the rest of the header, which a narrow screen has no room for.
  sidebar.addEventListener("toggle", (event) => {
    if (event.newState !== "open") return;
    if (!sidebar.querySelector(".moved")) {
      const moved = make("div", { className: "moved" });
      elements(".top .sections, .top .links, .bar .at-end").forEach((part) => moved.append(part.cloneNode(true)));
      sidebar.querySelector(".drawer-head").after(moved);
    }
    showCurrent();
  });
});

// The list of headings shows the headings of the visible tabs only. It marks the heading that the
// reader has scrolled to.
parts.push(() => {
  const links = elements(".contents > details a");
  const headings = links.map(({ hash }) => pointedAt(hash));
  if (!headings.length || headings.includes(null)) return;
  const choose = () => headings.forEach((heading, n) => {
    links[n].parentElement.hidden = heading.closest("[hidden]") !== null;
  });
  const mark = () => {
    const shown = headings.filter((_, n) => !links[n].parentElement.hidden);
    const line = parseFloat(getComputedStyle(root).scrollPaddingTop) + 8;
    const after = shown.findIndex((heading) => heading.getBoundingClientRect().top > line);
    const atEnd = innerHeight + scrollY >= root.scrollHeight - 2 && scrollY > 0;
    const at = atEnd || after < 0 ? shown.length - 1 : Math.max(after - 1, 0);
    links.forEach((link, n) => { link.ariaCurrent = headings[n] === shown[at] || null; });
  };
  let waits = false;
  addEventListener("scroll", () => {
    if (waits) return;
    waits = true;
    requestAnimationFrame(() => { waits = false; mark(); });
  }, { passive: true });
  addEventListener("panels", () => { choose(); mark(); });
  choose();
  mark();
});
