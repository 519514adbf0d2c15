// Draws the diagram whose source is the fragment of this frame's address.
"use strict";
(() => {
  const source = decodeURIComponent(location.hash.slice(1));
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    theme: dark ? "dark" : "neutral",
    fontFamily: "system-ui, sans-serif",
  });
  mermaid.render("drawing", source).then(
    ({ svg }) => { document.body.innerHTML = svg; },
    (error) => {
      const text = document.createElement("pre");
      text.textContent = `This diagram cannot be drawn: ${error.message}`;
      document.body.replaceChildren(text);
    },
  );
})();
