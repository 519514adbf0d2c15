// Buttons that copy code, and the whole page as Markdown.
parts.push(() => {
  if (!navigator.clipboard) {
    document.querySelector(".copy-page")?.remove();
    return;
  }
  const { copy, copied } = messages();
  const said = make("div", { className: "skip" });
  said.setAttribute("role", "status");
  document.body.append(said);
  const answers = (button, text) => button.addEventListener("click", async () => {
    const before = button.textContent;
    await navigator.clipboard.writeText(await text());
    button.textContent = said.textContent = copied;
    button.classList.add("done");
    setTimeout(() => {
      button.textContent = before;
      button.classList.remove("done");
      said.textContent = "";
    }, 1500);
  }, false);
  document.querySelectorAll("figure.code").forEach((figure) => {
    const button = make("button", { type: "button", className: "copy sign sign-copy" }, copy);
    answers(button, () => figure.querySelector("code").textContent);
    figure.append(button);
  });
  const page = document.querySelector(".copy-page");
  if (page) {
    const markdown = document.querySelector(".actions a[type='text/markdown']").href;
    answers(page, async () => (await fetch(markdown)).text());
  }
});
