// Waypost: script of every page. Everything can be read without it.
// This part runs before the first paint: it sets the colours, hides a dismissed banner, and
// marks that scripts run.
"use strict";
const root = document.documentElement;
const keep = {
  get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
  set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* private mode */ } },
};
root.classList.add("js");
const chosen = keep.get("theme");
if (chosen) root.dataset.theme = chosen;
// Stylesheets of authors ask for the class of the colour scheme that is shown.
const dark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
const markScheme = () => root.classList.toggle("dark", isDark());
markScheme();
dark.addEventListener("change", markScheme);
if (root.dataset.banner && keep.get(`banner:${root.dataset.banner}`)) root.classList.add("dismissed");

const make = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
// The messages in the page's language, in the order in which the layout writes them.
const messages = () => {
  const [copy, copied, search, none, near] = document.body.dataset.messages.split("|");
  return { copy, copied, search, none, near };
};
// Functions that run, in this order, once the page is loaded.
const parts = [];
document.addEventListener("DOMContentLoaded", () => parts.forEach((part) => part()));
