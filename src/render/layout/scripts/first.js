// Waypost: script of every page. Everything can be read without it.
// This part runs before the first paint: it sets the colours, hides a dismissed banner, and
// marks that scripts run.
"use strict";
const root = document.documentElement;
// Storage fails in private mode.
const keep = {
  get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
  set: (key, value) => { try { localStorage.setItem(key, value); } catch {} },
};
root.classList.add("js");
// `light`, `dark`, or `system` for the colours of the reader's system.
const setScheme = (scheme) => {
  if (scheme === "system") delete root.dataset.theme;
  else root.dataset.theme = scheme;
};
const chosen = keep.get("theme");
if (chosen && !("strict" in root.dataset)) setScheme(chosen);
// Stylesheets of authors ask for the class of the colour scheme that is shown.
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
const markScheme = () => root.classList.toggle("dark", isDark());
markScheme();
dark.addEventListener("change", markScheme);
if (root.dataset.banner && keep.get(`banner:${root.dataset.banner}`)) root.classList.add("dismissed");

const make = (name, properties, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
const element = (selector) => document.querySelector(selector);
const elements = (selector) => [...document.querySelectorAll(selector)];
// The messages in the page's language, in the order in which the layout writes them.
const messages = () => {
  const all = document.body.dataset.messages.split("|");
  return { copy: all[0], copied: all[1], wrap: all.at(-1) };
};
// Functions that run, in this order, once the page is loaded. An error in one stops no other.
const parts = [];
document.addEventListener("DOMContentLoaded", () => parts.forEach((part) => {
  try { part(); } catch (error) { reportError(error); }
}));
// The element that a fragment points at. A percent sign in a fragment may encode nothing.
const pointedAt = (hash) => {
  let id = hash.slice(1);
  try { id = decodeURIComponent(id); } catch {}
  return document.getElementById(id);
};

// Groups of the sidebar that the reader has opened or closed stay so on the next page. They are
// set before the first paint, when the content begins.
const OPENED = `opened:${document.baseURI.split("/")[2]}`;
const groupName = (details) => {
  const names = [];
  for (let at = details; at; at = at.parentElement.closest(".nested > details")) {
    const summary = at.querySelector("summary");
    names.unshift(summary.ariaLabel ?? summary.textContent);
  }
  return names.join("/");
};
const opened = (() => { try { return JSON.parse(sessionStorage.getItem(OPENED)) ?? {}; } catch { return {}; } })();
if (Object.keys(opened).length) {
  new MutationObserver((_, observer) => {
    if (!document.getElementById("_content")) return;
    observer.disconnect();
    elements(".nested > details").forEach((details) => {
      const state = opened[groupName(details)];
      if (state !== undefined && !details.parentElement.querySelector("[aria-current=page]")) details.open = state;
    });
  }).observe(document, { childList: true, subtree: true });
}
