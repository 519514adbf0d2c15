// Buttons that copy code, and the whole page as Markdown.
parts.push(() => {
  const page = element(".copy-page");
  const { clipboard } = navigator;
  if (!clipboard) return page?.remove();
  const { copy, copied } = messages();
  const said = make("div", { className: "skip", role: "status" });
  document.body.append(said);
  const answers = (button, write) => {
    const label = button.textContent;
    let timer;
    button.addEventListener("click", async () => {
      await write();
      said.textContent = copied;
      if (label) button.textContent = copied;
      button.classList.add("done", "sign-done");
      clearTimeout(timer);
      timer = setTimeout(() => {
        button.textContent = label;
        button.classList.remove("done", "sign-done");
        said.textContent = "";
      }, 1500);
    });
  };
  elements("figure.code").forEach((figure) => {
    const button = make("button", { type: "button", className: "copy sign sign-copy", ariaLabel: copy, title: copy });
    answers(button, () => clipboard.writeText(figure.querySelector("code").textContent));
    figure.append(make("div", { className: "tools" }, button));
  });
  const load = async () => {
    const answer = await fetch(element(".actions a[type='text/markdown']").href);
    if (!answer.ok) throw new Error(answer.status);
    return new Blob([await answer.text()], { type: "text/plain" });
  };
  // Safari copies only what a click begins to copy, so the text is a promise. Older browsers take none.
  if (page) answers(page, async () => {
    const text = load();
    if (!globalThis.ClipboardItem) return clipboard.writeText(await (await text).text());
    return Promise.all([text, clipboard.write([new ClipboardItem({ "text/plain": text })])]);
  });
});

// A button that wraps long lines, while code is wider than its place.
parts.push(() => {
  const { wrap } = messages();
  const offer = () => elements(".tools").forEach((tools) => {
    const code = tools.parentElement.querySelector("pre");
    const own = tools.querySelector(".wrap");
    const isWide = code.scrollWidth > code.clientWidth + 1;
    // Code that is wrapped, or not shown, has no width that could be compared.
    if (own && !isWide && code.clientWidth && !code.matches(".wrapped")) own.remove();
    if (own || !isWide) return;
    const button = make("button", { type: "button", className: "wrap sign sign-wrap", ariaLabel: wrap, title: wrap, ariaPressed: false });
    button.addEventListener("click", () => { button.ariaPressed = code.classList.toggle("wrapped"); });
    tools.prepend(button);
  });
  offer();
  ["panels", "resize"].forEach((event) => addEventListener(event, offer));
});
