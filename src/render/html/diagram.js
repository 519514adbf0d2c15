// Draws the diagram whose source is in the fragment of this frame's address. After an `&` may
// follow the colour scheme that the reader has chosen instead of the system's.
"use strict";
(() => {
  const SCALE_MIN = 0.8;
  const [source, chosen] = location.hash.slice(1).split("&");
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const colours = chosen ?? system;
  // With the same colour scheme as the page, the frame has no background of its own.
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
      // On a narrow screen the drawing scrolls instead of becoming too small to read.
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
