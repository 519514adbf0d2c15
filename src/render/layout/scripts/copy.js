// Buttons that copy code, and the whole page as Markdown.
parts.push(() => {
  if (!navigator.clipboard) {
    element(".copy-page")?.remove();
    return;
  }
  const { copy, copied } = messages();
  const said = make("div", { className: "skip", role: "status" });
  document.body.append(said);
  // Safari copies only what a click begins to copy, so a text that is still loaded is a promise.
  const write = (text) => {
    if (!globalThis.ClipboardItem || !text.then) return Promise.resolve(text).then((text) => navigator.clipboard.writeText(text));
    const blob = text.then((text) => new Blob([text], { type: "text/plain" }));
    return Promise.all([blob, navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })])]);
  };
  const answers = (button, text) => {
    const label = button.textContent;
    let timer;
    button.addEventListener("click", async () => {
      await write(text());
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
    answers(button, () => figure.querySelector("code").textContent);
    figure.append(make("div", { className: "tools" }, button));
  });
  const page = element(".copy-page");
  if (page) {
    const markdown = element(".actions a[type='text/markdown']").href;
    answers(page, async () => {
      const answer = await fetch(markdown);
      if (!answer.ok) throw new Error(answer.status);
      return answer.text();
    });
  }
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
