// Waypost: what a page can do beyond being read. Everything works without it.
// This part runs before the first paint: colours, a dismissed banner, that there is a script.
"use strict";
const root = document.documentElement;
const keep = {
  get: (key) => { try { return localStorage.getItem(key); } catch { return null; } },
  set: (key, value) => { try { localStorage.setItem(key, value); } catch { /* private mode */ } },
};
root.classList.add("js");
const chosen = keep.get("theme");
if (chosen) root.dataset.theme = chosen;
if (root.dataset.banner && keep.get(`banner:${root.dataset.banner}`)) root.classList.add("dismissed");

const make = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};
// The words of the page's language, in the order in which the shell writes them.
const words = () => {
  const [copy, copied, search, none, near] = document.body.dataset.messages.split("|");
  return { copy, copied, search, none, near };
};
// What is done when the page is there, in order.
const parts = [];
document.addEventListener("DOMContentLoaded", () => parts.forEach((part) => part()));
