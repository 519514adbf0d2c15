// Waypost: "try it" on the page of an endpoint. A form sends a request from the reader's browser to
// a server of the specification. Credentials stay in this tab: they are in its session storage,
// and are sent to that server only.
const button = document.querySelector(".try-it");
const { operation: written, words: texts } = button.dataset;
const operation = JSON.parse(written);
const words = JSON.parse(texts);
// How many characters of a response are shown.
const SHOWN_MAX = 200_000;

const make = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children.filter((child) => child !== null));
  return element;
};
let count = 0;

// An input with its label.
const field = ({ name, required, type, values, value = "", about, secret, multiline, file, place }) => {
  const id = `try-${count += 1}`;
  const named = make("label", { htmlFor: id }, make("code", {}, name));
  if (type) named.append(" ", make("span", { className: "badge" }, type));
  if (required) named.append(" ", make("span", { className: "badge required" }, words.required));
  let input;
  if (values) {
    const all = required ? values : ["", ...values];
    input = make("select", { id, required }, ...all.map((one) => make("option", { value: one, selected: one === value }, one)));
  } else if (multiline) {
    input = make("textarea", { id, value, rows: Math.min(Math.max(value.split("\n").length + 1, 4), 16), spellcheck: false });
  } else {
    input = make("input", {
      id, value: file ? "" : value, required, type: file ? "file" : secret ? "password" : "text",
      autocomplete: "off", spellcheck: false, autocapitalize: "off",
    });
    // The URL parser removes these segments, so the request would go to another path (WHATWG URL §4.4).
    if (place === "path") input.pattern = String.raw`(?![\s,]*\.{1,2}[\s,]*$).*`;
  }
  const row = make("div", { className: "try-field" }, named, input);
  if (about) {
    row.append(make("small", { id: `${id}-about` }, about));
    input.setAttribute("aria-describedby", `${id}-about`);
  }
  return { name, row, input };
};
const part = (title, ...rows) => make("fieldset", {}, make("legend", {}, title), ...rows);

// Credentials of this tab, by server and scheme.
const kept = {
  key: (name) => `try:${shownFor}:${name}`,
  get: (name) => { try { return sessionStorage.getItem(kept.key(name)) ?? ""; } catch { return ""; } },
  set: (name, value) => {
    try {
      if (value) sessionStorage.setItem(kept.key(name), value);
      else sessionStorage.removeItem(kept.key(name));
    } catch { /* private mode */ }
  },
};

// The servers, with their variables.
const servers = operation.servers;
const server = make("select", { id: "try-server" }, ...servers.map(({ url, about }, n) => make("option", { value: n }, about ? `${url} (${about})` : url)));
let variables = [];
const variablePlace = make("div");
const base = () => {
  const { url } = servers[server.value];
  const filled = variables.reduce((text, { name, input }) => text.replaceAll(`{${name}}`, input.value), url);
  // A path is one of the documentation's own host.
  return new URL(filled, location.href).href.replace(/\/$/, "");
};
const origin = () => { try { return new URL(base()).origin; } catch { return ""; } };

// Ways to authenticate: a reader chooses between alternatives.
const auth = operation.auth;
const alternative = make("select", { id: "try-auth" }, ...auth.map((schemes, n) => make("option", { value: n }, schemes.map(({ name }) => name).join(" + ") || words.nothing)));
const authPlace = make("div");
let credentials = [];
// The origin whose credentials the fields have.
let shownFor;
const keepAll = () => credentials.forEach(({ user, secret }) => [user, secret].filter(Boolean).forEach(({ key, input }) => kept.set(key, input.value)));
const showAuth = () => {
  keepAll();
  shownFor = origin();
  credentials = (auth[alternative.value] ?? []).flatMap((scheme) => {
    const input = (label, secret, key = scheme.name) => ({
      ...field({ name: label, secret, value: kept.get(key), about: scheme.about }), key,
    });
    if (scheme.kind === "basic") return [{ ...scheme, user: input(`${scheme.name}: ${words.user}`, false, `${scheme.name}:user`), secret: input(`${scheme.name}: ${words.password}`, true) }];
    return [{ ...scheme, secret: input(scheme.name, true) }];
  });
  authPlace.replaceChildren(...credentials.flatMap(({ user, secret }) => [user?.row, secret.row].filter(Boolean)));
};
const showVariables = () => {
  const { variables: all = [] } = servers[server.value];
  variables = all.map((variable) => field({ ...variable, required: true }));
  variablePlace.replaceChildren(...variables.map(({ row }) => row));
  showAuth();
};
alternative.addEventListener("change", showAuth);
server.addEventListener("change", showVariables);
// At each letter: a request that is sent before the field is left must not have the credentials of
// the server before.
variablePlace.addEventListener("input", showAuth);

// Parameters by their place, and the body.
const parameters = operation.parameters.map((parameter) => ({ ...parameter, ...field(parameter) }));
const places = ["path", "query", "header"].map((place) => {
  const here = parameters.filter((parameter) => parameter.place === place);
  return here.length ? part(words[place], ...here.map(({ row }) => row)) : null;
});
const kind = make("select", { id: "try-kind" }, ...operation.body.map(({ type }, n) => make("option", { value: n }, type)));
const bodyPlace = make("div");
let inputs = [];
const showBody = () => {
  const body = operation.body[kind.value];
  if (!body) return;
  inputs = body.fields
    ? body.fields.map((one) => field(one))
    : [field({ name: body.type, value: body.example ?? "", multiline: !body.file, file: body.file })];
  bodyPlace.replaceChildren(...inputs.map(({ row }) => row));
};
kind.addEventListener("change", showBody);

// The body as the browser sends it. A form tells the browser its own type.
const content = () => {
  const body = operation.body[kind.value];
  if (!body) return {};
  if (body.fields) {
    const form = body.type === "multipart/form-data" ? new FormData() : new URLSearchParams();
    inputs.forEach(({ name, input }) => {
      if (input.type === "file") [...input.files].forEach((file) => form.append(name, file));
      else if (input.value) form.append(name, input.value);
    });
    return { body: form };
  }
  const [{ input }] = inputs;
  const value = input.type === "file" ? input.files[0] : input.value;
  return value ? { body: value, type: body.type } : {};
};

// The request that the form describes.
const request = () => {
  const value = ({ input, type }) => (type?.startsWith("array") ? input.value.split(",").map((one) => one.trim()).filter(Boolean) : [input.value].filter(Boolean));
  let path = operation.path;
  const headers = new Headers();
  const query = [];
  parameters.forEach((parameter) => {
    const all = value(parameter);
    if (parameter.place === "path") path = path.replaceAll(`{${parameter.name}}`, all.map(encodeURIComponent).join(","));
    if (parameter.place === "query") all.forEach((one) => query.push([parameter.name, one]));
    if (parameter.place === "header" && all.length) headers.set(parameter.name, all.join(","));
  });
  credentials.forEach((scheme) => {
    const secret = scheme.secret.input.value;
    if (scheme.kind === "basic") {
      const pair = new TextEncoder().encode(`${scheme.user.input.value}:${secret}`);
      if (secret || scheme.user.input.value) headers.set("Authorization", `Basic ${btoa(String.fromCharCode(...pair))}`);
    } else if (secret) {
      if (scheme.kind === "bearer") headers.set("Authorization", `Bearer ${secret}`);
      else if (scheme.place === "query") query.push([scheme.key, secret]);
      else headers.set(scheme.key, secret);
    }
  });
  const url = new URL(base() + path);
  query.forEach(([name, one]) => url.searchParams.append(name, one));
  const { body, type } = content();
  if (type) headers.set("Content-Type", type);
  return [url, { method: operation.method, headers, body, credentials: operation.credentials ? "include" : "omit", redirect: "follow" }];
};

const status = make("p", { className: "try-status" });
status.setAttribute("role", "status");
const result = make("div", { className: "try-result" });
const say = (text, mood) => { status.textContent = text; status.dataset.mood = mood ?? ""; };
const block = (title, text) => {
  const code = make("pre", { tabIndex: 0 }, make("code", {}, text));
  code.setAttribute("aria-label", title);
  return [make("h3", {}, title), code];
};

// What a browser does not tell: whether the server cannot be reached, or does not allow requests
// from pages of other origins. A request without any content, whose answer nobody can read, shows it.
const explain = async (url, signal) => {
  if (location.protocol === "https:" && url.protocol === "http:" && !/^(localhost|127\.0\.0\.1|\[::1\])$/.test(url.hostname)) {
    return words.mixed.replace("{}", url.origin);
  }
  try {
    await fetch(url.origin, { mode: "no-cors", credentials: "omit", cache: "no-store", signal });
    return words.cors.replace("{}", url.origin).replace("{}", location.origin);
  } catch {
    return words.unreachable.replace("{}", url.origin);
  }
};

const show = async (answer, started) => {
  const bytes = await answer.arrayBuffer();
  const time = Math.round(performance.now() - started);
  const type = answer.headers.get("content-type") ?? "";
  say(`${answer.status} ${answer.statusText} · ${time} ms · ${bytes.byteLength} B`.replace("  ", " "), answer.ok ? "good" : "bad");
  const parts = [];
  if (bytes.byteLength) {
    let text;
    try { text = new TextDecoder("utf-8", { fatal: true }).decode(bytes); } catch { text = `${type} (${bytes.byteLength} B)`; }
    if (type.includes("json")) { try { text = JSON.stringify(JSON.parse(text), null, 2); } catch { /* as it is */ } }
    const cut = text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}\n…` : text;
    parts.push(...block(words.body, cut));
  }
  const headers = [...answer.headers].map(([name, one]) => `${name}: ${one}`).join("\n");
  if (headers) parts.push(...block(words.header, headers));
  result.replaceChildren(...parts);
};

let running;
const send = make("button", { type: "submit", className: "try-send" }, words.send);
const form = make("form", { noValidate: false });
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  running?.abort();
  const { signal } = running = new AbortController();
  keepAll();
  result.replaceChildren();
  say(words.sending);
  let url;
  try {
    let options;
    [url, options] = request();
    const started = performance.now();
    await show(await fetch(url, { ...options, signal }), started);
  } catch (error) {
    const reason = url && !signal.aborted ? await explain(url, signal) : String(error);
    if (!signal.aborted) say(reason, "bad");
  }
});
form.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
});

const forget = make("button", { type: "button", className: "plain-button" }, words.forget);
forget.addEventListener("click", () => {
  try { Object.keys(sessionStorage).filter((key) => key.startsWith("try:")).forEach((key) => sessionStorage.removeItem(key)); } catch { /* private mode */ }
  credentials = [];
  showAuth();
});
const close = make("button", { type: "button", className: "plain-button sign sign-close", ariaLabel: words.close });
const title = make("h2", { id: "try-title" }, make("span", { className: "method" }, operation.method), " ", make("code", {}, operation.path));
title.querySelector(".method").dataset.method = operation.method;
const choose = (label, select) => make("div", { className: "try-field" }, make("label", { htmlFor: select.id }, label), select);
form.append(
  part(words.server, choose(words.server, server), variablePlace),
  ...(auth.some((schemes) => schemes.length) ? [part(words.authorization, ...(auth.length > 1 ? [choose(words.authorization, alternative)] : []), authPlace, make("p", { className: "try-note" }, `${words.kept} `, forget))] : []),
  ...places.filter(Boolean),
  ...(operation.body.length ? [part(words.body, ...(operation.body.length > 1 ? [choose(words.body, kind)] : []), bodyPlace)] : []),
  send, status, result,
);
const dialog = make("dialog", { className: "try" }, make("div", { className: "try-head" }, title, close), form);
dialog.setAttribute("aria-labelledby", "try-title");
close.addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
dialog.addEventListener("close", () => {
  running?.abort();
  if (status.textContent === words.sending) say("");
  button.focus();
});
showVariables();
showBody();
document.body.append(dialog);
button.disabled = false;
button.addEventListener("click", () => dialog.showModal());
