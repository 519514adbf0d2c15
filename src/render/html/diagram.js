// Draws the diagram whose source is in the fragment of this frame's address. After an `&` each may
// follow the colours of the site (`layout/colour.rs`), and the colour scheme that the reader has
// chosen instead of the system's.
"use strict";
(() => {
  const SCALE_MIN = 0.8;
  const [source, ...settings] = location.hash.slice(1).split("&");
  const chosen = settings.find((one) => one === "light" || one === "dark");
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const colours = chosen ?? system;
  // With the same colour scheme as the page, the frame has no background of its own.
  document.documentElement.style.colorScheme = colours;
  const isDark = colours === "dark";
  const digits = settings.find((one) => /^[0-9a-f]{84}$/.test(one))?.match(/.{6}/g);
  const [background, raised, line, strong, quiet, tint, accent] = (digits ?? [])
    .map((colour) => `#${colour}`).slice(isDark ? 7 : 0);
  const own = {
    darkMode: isDark, background, mainBkg: tint, primaryColor: tint, primaryTextColor: strong, primaryBorderColor: accent,
    secondaryColor: raised, secondaryTextColor: strong, secondaryBorderColor: line,
    tertiaryColor: raised, tertiaryTextColor: strong, tertiaryBorderColor: line,
    lineColor: quiet, textColor: strong, titleColor: strong, edgeLabelBackground: background,
    noteBkgColor: raised, noteTextColor: strong, noteBorderColor: line,
    clusterBkg: raised, clusterBorder: line, activationBkgColor: raised, activationBorderColor: accent,
    labelBoxBkgColor: raised, labelBoxBorderColor: line,
  };
  mermaid.initialize({
    startOnLoad: false,
    securityLevel: "strict",
    suppressErrorRendering: true,
    theme: digits ? "base" : isDark ? "dark" : "neutral",
    ...(digits && { themeVariables: own }),
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
