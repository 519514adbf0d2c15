// Draws the diagram whose source is the fragment of this frame's address; behind it may stand
// which colours the reader has chosen, where these are not the system's.
"use strict";
(() => {
  const SCALE_MIN = 0.8;
  const [source, chosen] = location.hash.slice(1).split("&");
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const colours = chosen ?? system;
  // Of the colours of the page around it, a frame has no ground of its own.
  document.documentElement.style.colorScheme = colours;
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    theme: colours === "dark" ? "dark" : "neutral",
    fontFamily: "system-ui, sans-serif",
  });
  mermaid.render("drawing", decodeURIComponent(source)).then(
    ({ svg }) => {
      document.body.innerHTML = svg;
      // Where there is little room it is scrolled rather than made too small to read.
      const drawing = document.body.firstElementChild;
      drawing.style.minWidth = `${drawing.viewBox.baseVal.width * SCALE_MIN}px`;
    },
    (error) => {
      const text = document.createElement("pre");
      text.textContent = `This diagram cannot be drawn: ${error.message}`;
      document.body.replaceChildren(text);
    },
  );
})();
