// The environment of the JavaScript of pages. It has no clock, no randomness and no access to the
// machine. It has React's functions, and the renderer, which calls components and returns a tree.
//
// It is called once for each page with the limits, the names of the built-in components and the
// global names that stay. Generated code gets the object with its functions as an argument.
export default function (limits, builtinNames, allowedNames) {
  // The originals, which pages cannot replace afterwards.
  const { apply, construct, ownKeys, defineProperty, getPrototypeOf, setPrototypeOf, getOwnPropertyDescriptor } = Reflect;
  const { stringify, parse } = JSON;
  const { is, create, keys, assign, freeze } = Object;
  const ObjectOf = Object, NumberOf = Number;
  const { isArray } = Array;
  const { min, max, abs, floor } = Math;
  const iteratorOf = Symbol.iterator;
  const ArrayOf = Array, MapOf = Map, WeakMapOf = WeakMap, ProxyOf = Proxy, DateOf = Date;
  const ErrorOf = Error, RangeErrorOf = RangeError, TypeErrorOf = TypeError, StringOf = String;
  const own = Function.prototype.call.bind(Object.prototype.hasOwnProperty);
  const get = Function.prototype.call.bind(WeakMap.prototype.get);
  const put = Function.prototype.call.bind(WeakMap.prototype.set);
  const has = Function.prototype.call.bind(WeakMap.prototype.has);
  const push = (list, value) => defineProperty(list, list.length, { value, writable: true, enumerable: true, configurable: true });

  // --- Removed on purpose.

  const allowed = new Set(allowedNames);
  const missing = (name) => () => {
    throw new ErrorOf(name + " is not available: the page is made when the site is built");
  };
  const functions = [function () {}, function* () {}, async function () {}, async function* () {}];
  for (const one of functions) {
    const value = missing("code made of text");
    defineProperty(getPrototypeOf(one), "constructor", { value, writable: true, configurable: true });
  }
  globalThis.Function = Object.assign(missing("Function"), { prototype: Function.prototype });
  for (const name of ownKeys(globalThis)) {
    if (typeof name !== "string" || !allowed.has(name)) delete globalThis[name];
  }
  Math.random = missing("Math.random");
  // The engine would write down where each error is thrown, which takes longer than a step.
  ErrorOf.stackTraceLimit = 0;
  delete ErrorOf.stackTraceLimit;
  const quiet = () => {};
  globalThis.console = { log: quiet, warn: quiet, error: quiet, info: quiet, debug: quiet };

  // The storage of a reader who comes for the first time: empty, and new for each piece.
  const storage = () => {
    const items = new MapOf();
    return {
      getItem: (key) => (items.has(StringOf(key)) ? items.get(StringOf(key)) : null),
      setItem: (key, value) => { items.set(StringOf(key), StringOf(value)); },
      removeItem: (key) => { items.delete(StringOf(key)); },
      clear: () => { items.clear(); },
      key: (at) => [...items.keys()][at] ?? null,
      get length() { return items.size; },
    };
  };
  const addStorage = () => {
    for (const name of ["localStorage", "sessionStorage"]) {
      defineProperty(globalThis, name, { value: storage(), writable: true, configurable: true });
    }
  };
  addStorage();

  // A channel to other tabs of the reader (WHATWG HTML, "Broadcasting to other browsing contexts").
  // When a site is built there are none: what is sent arrives nowhere, and nothing arrives.
  const BroadcastChannel = class BroadcastChannel {
    constructor(name) {
      if (arguments.length === 0) throw new TypeErrorOf("a channel needs a name");
      this.name = StringOf(name);
      this.onmessage = this.onmessageerror = null;
    }
    postMessage() {}
    close() {}
    addEventListener() {}
    removeEventListener() {}
    dispatchEvent() { return true; }
  };
  defineProperty(globalThis, "BroadcastChannel", { value: BroadcastChannel, writable: true, configurable: true });

  // --- Functions that do much work in one call, which the interpreter does not count: counted here.

  let work = 0;
  let pieceWork = 0;
  const spend = (n) => {
    work += n;
    pieceWork += n;
    if (!(work <= limits.work && pieceWork <= limits.pieceWork)) {
      throw new RangeErrorOf("it does more than " + limits.pieceWork + " units of work, or the page more than " + limits.work);
    }
  };
  const lengthOf = (value) => {
    if (value === null || value === undefined) return 0;
    const length = value.length;
    return typeof length === "number" ? max(length, 0) || 0 : typeof length === "undefined" ? 0 : Infinity;
  };
  // A text that is compared, converted to a number or used as a name is read to its end.
  const read = (value) => (typeof value === "string" && value.length > 64 ? value.length / 16 : 0);
  const readAll = (values) => {
    let cost = 0;
    for (let at = 0; at < values.length; at++) cost += read(values[at]);
    return cost;
  };
  const replace = (object, name, value) => {
    defineProperty(object, name, { value, writable: true, configurable: true });
  };
  // Before `cost` is asked, `ready` makes values that the function and `cost` read alike: a length
  // or a text that a function of the page returns may differ the second time.
  const counted = (object, name, cost, ready) => {
    const original = object[name];
    if (typeof original !== "function") return;
    const wrapped = ready === undefined ? {
      [name](...values) {
        spend(cost(this, values) + readAll(values));
        return apply(original, this, values);
      },
    } : {
      [name](...values) {
        const self = ready(this, values);
        spend(cost(self, values) + readAll(values));
        return apply(original, self, values);
      },
    };
    replace(object, name, wrapped[name]);
  };
  // The functions of an object whose cost is known; the cost of the others is that of their texts.
  const countAll = (object, costs, usual, ready) => {
    for (const name of ownKeys(object)) {
      const { get: isComputed } = getOwnPropertyDescriptor(object, name);
      if (isComputed !== undefined || name === "constructor" || name === "prototype") continue;
      counted(object, name, own(costs, name) ? costs[name] : usual, ready && (own(ready, name) ? ready[name] : ready.usual));
    }
  };
  const one = () => 1;
  const isObject = (value) => typeof value === "object" && value !== null || typeof value === "function";
  // ECMA-262 §7.1.1: what an object is converted to. The function that is called returns a text of
  // any length, so it is called before the text is counted.
  const primitiveOf = (value, hint) => {
    if (!isObject(value)) return value;
    const own = value[Symbol.toPrimitive];
    const isOwn = own !== undefined && own !== null;
    const calls = isOwn ? [own] : hint === "string" ? [value.toString, value.valueOf] : [value.valueOf, value.toString];
    for (let at = 0; at < calls.length; at++) {
      if (typeof calls[at] !== "function") continue;
      const found = apply(calls[at], value, isOwn ? [hint] : []);
      if (!isObject(found)) return found;
    }
    throw new TypeErrorOf("an object cannot be converted");
  };
  const primitives = (hint) => (self, values) => {
    for (let at = 0; at < values.length; at++) values[at] = primitiveOf(values[at], hint);
    return self;
  };
  const numbers = primitives("number"), texts = primitives("string");

  // Proxies are known, because their length may be any number. What `ownKeys` of a proxy returns
  // is compared with each other: the square of its length. The functions of the handler are read
  // once: a handler may be a proxy too, and each level would double the work of one look-up. A proxy
  // is no constructor: its `prototype` could be another one each time.
  const proxies = new WeakMapOf();
  let hasProxies = false;
  const isList = (value) => isArray(value) && !(hasProxies && has(proxies, value));
  const traps = ["apply", "defineProperty", "deleteProperty", "get", "getOwnPropertyDescriptor", "getPrototypeOf", "has", "isExtensible", "preventExtensions", "set", "setPrototypeOf"];
  const handled = (handler) => {
    if (!isObject(handler)) throw new TypeErrorOf("a proxy needs a handler");
    const guard = create(null);
    for (let at = 0; at < traps.length; at++) {
      const trap = handler[traps[at]];
      if (trap === undefined || trap === null) continue;
      if (typeof trap !== "function") throw new TypeErrorOf("`" + traps[at] + "` of a handler is a function");
      guard[traps[at]] = (...values) => apply(trap, handler, values);
    }
    const keysOf = handler.ownKeys;
    guard.ownKeys = (target) => {
      const found = keysOf === undefined || keysOf === null ? ownKeys(target) : listOf(apply(keysOf, handler, [target]));
      spend(1 + found.length * found.length / 16);
      return found;
    };
    guard.construct = () => { throw new TypeErrorOf("a proxy is no constructor here"); };
    return guard;
  };
  const levelsOf = (target) => {
    const levels = 1 + (isObject(target) && get(proxies, target) || 0);
    if (levels > limits.proxies) throw new RangeErrorOf("more than " + limits.proxies + " proxies stand for each other");
    return levels;
  };
  const proxied = (made, levels) => {
    put(proxies, made, levels);
    hasProxies = true;
    return made;
  };
  const Proxied = function (target, handler) {
    if (new.target === undefined) throw new TypeErrorOf("`Proxy` needs `new`");
    return proxied(new ProxyOf(target, handled(handler)), levelsOf(target));
  };
  defineProperty(Proxied, "name", { value: "Proxy" });
  replace(Proxied, "revocable", (target, handler) => {
    const levels = levelsOf(target);
    const made = ProxyOf.revocable(target, handled(handler));
    proxied(made.proxy, levels);
    return made;
  });
  replace(globalThis, "Proxy", Proxied);

  // --- Prototypes. Looking up a property reads one after the other in one step. So their number is
  // checked when an object is made, and stays: see `charge`.

  const checkPrototypes = (first) => {
    let count = 0;
    for (let at = first; at !== null; at = getPrototypeOf(at)) {
      if (hasProxies && has(proxies, at)) throw new TypeErrorOf("a proxy is no prototype here");
      if (++count > limits.prototypes) throw new RangeErrorOf("an object has more than " + limits.prototypes + " prototypes, one after the other");
    }
    return first;
  };
  // A function that `new` calls keeps its `prototype` from then on.
  const constructors = new WeakMapOf();
  const checkConstructor = (made) => {
    if (!isObject(made) || has(constructors, made)) return;
    const of = hasProxies && has(proxies, made) ? undefined : getOwnPropertyDescriptor(made, "prototype");
    if (of === undefined || !own(of, "value")) throw new TypeErrorOf("this is no constructor here");
    if (isObject(of.value)) checkPrototypes(of.value);
    keepPrototype(made);
    put(constructors, made, true);
  };
  const keepPrototype = (made) => {
    if (own(made, "prototype")) defineProperty(made, "prototype", { writable: false });
  };
  const keepPrototypes = (object) => {
    for (const name of ownKeys(object)) {
      const { value } = getOwnPropertyDescriptor(object, name);
      if (typeof value === "function") keepPrototype(value);
    }
  };
  keepPrototype(Proxied);
  const changePrototype = (object, prototype) => {
    if (!isObject(object) || getPrototypeOf(object) === prototype) return true;
    if (prototype === null) return setPrototypeOf(object, null);
    throw new TypeErrorOf("the prototype of an object cannot be changed here after it is made");
  };
  const prototypeOf = getOwnPropertyDescriptor(Object.prototype, "__proto__").get;
  const setter = { set(prototype) { if (isObject(prototype) || prototype === null) changePrototype(this, prototype); } };
  defineProperty(Object.prototype, "__proto__", { get: prototypeOf, set: setter.set, configurable: true });

  // An array whose length is what it says: other values with a length are copied.
  const listOf = (value) => {
    if (isList(value)) return value;
    const length = min(max(floor(+value.length) || 0, 0), Number.MAX_SAFE_INTEGER);
    spend(1 + length);
    const copy = [];
    for (let at = 0; at < length; at++) {
      if (at in value) defineProperty(copy, at, { value: value[at], writable: true, enumerable: true, configurable: true });
    }
    copy.length = length;
    return copy;
  };
  const readyList = (value) =>
    (isList(value) || typeof value === "string" || value === null || value === undefined ? value : listOf(new ObjectOf(value)));
  const onlyList = (value) => {
    if (!isList(value)) throw new TypeErrorOf("this function is available for arrays only");
    return value;
  };
  const asIs = (value) => value;
  const spreadable = Symbol.isConcatSpreadable;
  const { toSpliced: plain, concat: joined, sort: ordered } = ArrayOf.prototype;
  // Compares a text with each item.
  const searched = (list, values) => 1 + lengthOf(list) * (1 + read(values[0]));
  const sorted = (list) => 1 + 8 * lengthOf(list);
  countAll(ArrayOf.prototype, {
    push: one, pop: one, toString: one, includes: searched, indexOf: searched, lastIndexOf: searched, sort: sorted,
  }, (list) => 1 + lengthOf(list), {
    usual: readyList, push: asIs, pop: asIs, toString: asIs, values: asIs, keys: asIs, entries: asIs, [iteratorOf]: asIs,
    reverse: onlyList, splice: onlyList, shift: onlyList, unshift: onlyList, copyWithin: onlyList, sort: onlyList, fill: onlyList,
  });
  // A copy that only the prelude knows: no function of the page can change its length.
  const copied = (list) => {
    const whole = listOf(list);
    spend(1 + whole.length);
    return apply(plain, whole, []);
  };
  // Sorts a copy by the texts of its items. Each text is compared with about 20 others.
  const byText = (items) => {
    let cost = items.length;
    let hasObjects = false;
    for (let at = 0; at < items.length; at++) {
      const item = items[at];
      if (typeof item === "string") cost += item.length > 64 ? item.length * 1.25 : 0;
      else if (typeof item !== "number" && item !== undefined) hasObjects = true;
    }
    spend(cost);
    if (!hasObjects) return apply(ordered, items, []);
    const found = [];
    let missing = 0;
    for (let at = 0; at < items.length; at++) {
      if (items[at] === undefined) {
        missing++;
        continue;
      }
      const text = StringOf(items[at]);
      spend(1 + read(text) * 20);
      push(found, [text, items[at]]);
    }
    apply(ordered, found, [(a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0)]);
    for (let at = 0; at < found.length; at++) items[at] = found[at][1];
    for (let at = found.length; at < found.length + missing; at++) items[at] = undefined;
    return items;
  };
  const { sort: byOrder, toSorted: byOrderCopied } = ArrayOf.prototype;
  const flatten = (list, depth, out) => {
    spend(1 + list.length);
    for (let at = 0; at < list.length; at++) {
      if (!(at in list)) continue;
      const item = list[at];
      if (depth >= 1 && isArray(item)) flatten(item, depth - 1, out);
      else out[out.length] = item;
    }
    return out;
  };
  const arrays = {
    sort(order) {
      if (order !== undefined) return apply(byOrder, this, [order]);
      const items = byText(copied(onlyList(this)));
      for (let at = 0; at < items.length; at++) this[at] = items[at];
      return this;
    },
    toSorted(order) {
      return order === undefined ? byText(copied(this)) : apply(byOrderCopied, this, [order]);
    },
    flat(depth) {
      return flatten(listOf(this), depth === undefined ? 1 : +depth || 0, []);
    },
    flatMap(call, self) {
      const list = listOf(this);
      if (typeof call !== "function") throw new TypeErrorOf("`flatMap` needs a function");
      spend(1 + list.length);
      const out = [];
      for (let at = 0; at < list.length; at++) {
        if (!(at in list)) continue;
        const item = apply(call, self, [list[at], at, this]);
        if (isArray(item)) flatten(item, 0, out);
        else out[out.length] = item;
      }
      return out;
    },
    concat(...values) {
      const part = (value) => {
        const isSpread = isObject(value) && (value[spreadable] ?? isArray(value));
        const items = isSpread ? copied(value) : [value];
        return defineProperty(items, spreadable, { value: true }) && items;
      };
      const first = part(this);
      for (let at = 0; at < values.length; at++) values[at] = part(values[at]);
      return apply(joined, first, values);
    },
  };
  for (const name of keys(arrays)) replace(ArrayOf.prototype, name, arrays[name]);
  // Loops and `[...list]` use this one.
  replace(ArrayOf.prototype, iteratorOf, ArrayOf.prototype.values);
  // The engine walks arrays of the page without a count, if this is a function.
  defineProperty(ArrayOf.prototype, "toJSON", { value: undefined });

  // A text that is searched is compared with the other one at each place.
  const searches = (text, values) => {
    const other = values[0];
    const length = typeof other === "string" && other.length <= lengthOf(text) ? other.length : 0;
    return 1 + lengthOf(text) * (1 + length) / 64;
  };
  // Marks after a letter are brought into an order by comparing them with each other.
  const marks = /\p{M}{16,}/gu;
  const execOf = RegExp.prototype.exec;
  const normalized = (text) => {
    let cost = 1 + lengthOf(text);
    marks.lastIndex = 0;
    for (let run = apply(execOf, marks, [text]); run !== null; run = apply(execOf, marks, [text])) {
      cost += run[0].length * run[0].length;
    }
    return cost;
  };
  // Texts are converted once, before their length is asked.
  const textOf = (value) => (typeof value === "string" || value === null || value === undefined ? value : StringOf(value));
  const bothTexts = (text, values) => {
    const other = values[0];
    if (typeof other !== "string" && typeof other !== "symbol") values[0] = StringOf(other);
    return textOf(text);
  };
  const isExpression = Symbol.match;
  const noExpression = (text, values) => {
    if (isObject(values[0]) && values[0][isExpression]) throw new TypeErrorOf("a regular expression cannot be searched for in this way");
    return bothTexts(text, values);
  };
  const changed = (text) => 1 + lengthOf(text) / 4;
  countAll(StringOf.prototype, {
    repeat: (text, values) => 1 + max(0, lengthOf(text) * (+values[0] || 0)) / 16,
    padStart: (_, values) => 1 + max(0, +values[0] || 0) / 16,
    padEnd: (_, values) => 1 + max(0, +values[0] || 0) / 16,
    charAt: one, charCodeAt: one, codePointAt: one, at: one, toString: one, valueOf: one,
    [iteratorOf]: (text) => 1 + lengthOf(text),
    split: (text, values) => lengthOf(text) + searches(text, values),
    indexOf: searches, lastIndexOf: searches, includes: searches, startsWith: searches, endsWith: searches,
    replace: searches, replaceAll: searches,
    toUpperCase: changed, toLowerCase: changed, toLocaleUpperCase: changed, toLocaleLowerCase: changed,
    normalize: normalized,
  }, (text) => 1 + lengthOf(text) / 64, {
    usual: textOf, toString: asIs, valueOf: asIs, indexOf: bothTexts, lastIndexOf: bothTexts,
    includes: noExpression, startsWith: noExpression, endsWith: noExpression,
  });
  // These search a text, unless the other value searches by itself, as regular expressions do.
  for (const [name, by] of [["replace", Symbol.replace], ["replaceAll", Symbol.replace], ["split", Symbol.split]]) {
    const original = StringOf.prototype[name];
    replace(StringOf.prototype, name, {
      [name](other, more) {
        const own = isObject(other) ? other[by] : undefined;
        if (own === undefined || own === null) {
          const isWhole = name === "split" && other === undefined;
          return apply(original, this, [isWhole || typeof other === "symbol" ? other : StringOf(other), more]);
        }
        if (this === null || this === undefined) throw new TypeErrorOf("there is no text");
        if (name === "replaceAll" && other[isExpression] && StringOf(other.flags).indexOf("g") < 0) {
          throw new TypeErrorOf("`replaceAll` needs an expression with the flag `g`");
        }
        return apply(own, other, [this, more]);
      },
    }[name]);
  }
  countAll(RegExp.prototype, {}, one);
  counted(RegExp, "escape", (_, values) => 1 + lengthOf(values[0]) / 4);
  counted(ArrayOf, "from", (_, values) => 1 + lengthOf(values[0]));
  counted(Symbol, "for", one, texts);
  for (const name of ["__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__"]) counted(Object.prototype, name, one);

  // Functions with a list of arguments copy it.
  const applied = Function.prototype.apply;
  replace(Function.prototype, "apply", {
    apply(self, values) {
      if (values === null || values === undefined) return apply(applied, this, [self]);
      const list = typeof values === "object" || typeof values === "function" ? listOf(values) : values;
      spend(1 + lengthOf(list));
      return apply(applied, this, [self, list]);
    },
  }.apply);
  const bound = new WeakMapOf();
  const bind = Function.prototype.bind;
  replace(Function.prototype, "bind", {
    bind(...values) {
      const count = max(values.length - 1, 0) + (typeof this === "function" && get(bound, this) || 0);
      if (count > 1000) throw new RangeErrorOf("a function is bound to more than 1000 arguments");
      const made = apply(bind, this, values);
      put(bound, made, count);
      return made;
    },
  }.bind);

  // What the functions of objects cost for each property.
  const entries = (value) => {
    if (typeof value === "string") return 1 + value.length;
    if (typeof value !== "object" && typeof value !== "function" || value === null) return 1;
    return 1 + 4 * (isList(value) ? value.length : ownKeys(value).length);
  };
  const first = (_, values) => entries(values[0]);
  const isCheap = { is: one, create: one, getPrototypeOf: one, setPrototypeOf: one, hasOwn: one, defineProperty: one, getOwnPropertyDescriptor: one, isExtensible: one, preventExtensions: one };
  countAll(Object, {
    ...isCheap,
    assign: (_, values) => {
      let cost = 1;
      for (let at = 0; at < values.length; at++) cost += entries(values[at]);
      return cost;
    },
    create: (_, values) => entries(values[1]),
    defineProperties: (_, values) => entries(values[1]),
  }, first);
  const { create: createCounted } = Object;
  const isPrototype = (value) => {
    if (!isObject(value) && value !== null) throw new TypeErrorOf("a prototype is an object or null");
  };
  const objects = {
    create(prototype, ...more) {
      if (isObject(prototype)) checkPrototypes(prototype);
      return createCounted(prototype, ...more);
    },
    setPrototypeOf(object, prototype) {
      if (object === null || object === undefined) throw new TypeErrorOf("there is no object");
      isPrototype(prototype);
      changePrototype(object, prototype);
      return object;
    },
  };
  for (const name of keys(objects)) replace(Object, name, objects[name]);
  const readyArguments = (at) => (self, values) => {
    if (typeof values[at] === "object" && values[at] !== null) values[at] = listOf(values[at]);
    return self;
  };
  countAll(Reflect, {
    ...isCheap, get: one, set: one, has: one, deleteProperty: one,
    apply: (_, values) => 1 + lengthOf(values[2]),
    construct: (_, values) => 1 + lengthOf(values[1]),
  }, first, {
    apply: readyArguments(2),
    construct: (self, values) => {
      if (values.length > 2) checkConstructor(values[2]);
      return readyArguments(1)(self, values);
    },
  });
  replace(Reflect, "setPrototypeOf", (object, prototype) => {
    if (!isObject(object)) throw new TypeErrorOf("there is no object");
    isPrototype(prototype);
    return changePrototype(object, prototype);
  });
  counted(Object.prototype, "hasOwnProperty", one);
  counted(Object.prototype, "propertyIsEnumerable", one);

  const firstText = (self, values) => {
    values[0] = primitiveOf(values[0], "string");
    return self;
  };
  counted(JSON, "parse", one, firstText);
  counted(JSON, "rawJSON", one, firstText);
  // Every value is counted each time it is written. A list of names is a function here: the engine
  // compares each of its names with the others.
  replace(JSON, "stringify", {
    stringify(value, replacer, space) {
      spend(1 + read(space));
      let names;
      if (isArray(replacer)) {
        names = new Set();
        const list = listOf(replacer);
        for (let at = 0; at < list.length; at++) {
          const name = list[at];
          if (typeof name === "string" || typeof name === "number" || name instanceof StringOf || name instanceof NumberOf) names.add(StringOf(name));
        }
      }
      const depths = new WeakMapOf();
      let values = 0;
      return stringify(value, function (key, given) {
        let part = typeof replacer === "function" ? apply(replacer, this, [key, given]) : given;
        // Most values are short: they are counted together.
        if (++values % 256 === 0) spend(256);
        if (key.length > 64) spend(key.length / 16);
        if (typeof part === "string" && part.length > 64) spend(part.length / 64);
        if (typeof part !== "object" || part === null) return part;
        if (names !== undefined && !isArray(part) && !(part instanceof StringOf || part instanceof NumberOf || part instanceof Boolean)) {
          const picked = create(null);
          for (const name of names) addEntry(picked, name, part[name]);
          part = picked;
        }
        const depth = 1 + (get(depths, this) ?? 0);
        if (depth > limits.jsonDepth) throw new RangeErrorOf("a value is more than " + limits.jsonDepth + " levels deep");
        put(depths, part, depth);
        if (!isArray(part)) spend(ownKeys(part).length);
        return part;
      }, space);
    },
  }.stringify);

  // Functions that read anything with an iterator.
  replace(Object, "fromEntries", (list) => {
    const made = {};
    for (const entry of list) {
      if (typeof entry !== "object" || entry === null) throw new TypeErrorOf("an entry is a list");
      addEntry(made, entry[0], entry[1]);
    }
    return made;
  });
  const addEntry = (object, name, value) => {
    const key = typeof name === "symbol" ? name : StringOf(name);
    spend(read(key));
    defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
  };
  const groupInto = (list, call, has, get, add) => {
    if (typeof call !== "function") throw new TypeErrorOf("groups need a function");
    let at = 0;
    for (const item of list) {
      const key = call(item, at++);
      if (has(key)) push(get(key), item);
      else add(key, [item]);
    }
  };
  replace(Object, "groupBy", (list, call) => {
    const made = create(null);
    const name = (value, at) => {
      const key = call(value, at);
      return typeof key === "symbol" ? key : StringOf(key);
    };
    groupInto(list, typeof call === "function" ? name : call, (key) => own(made, key), (key) => made[key], (key, items) => addEntry(made, key, items));
    return made;
  });
  replace(MapOf, "groupBy", (list, call) => {
    const made = new MapOf();
    groupInto(list, call, (key) => made.has(key), (key) => made.get(key), (key, items) => { made.set(key, items); });
    return made;
  });
  for (const Table of [MapOf, Set]) {
    const size = getOwnPropertyDescriptor(Table.prototype, "size").get;
    const whole = (table) => {
      try {
        return 1 + apply(size, table, []);
      } catch {
        return 1;
      }
    };
    countAll(Table.prototype, { get: one, set: one, has: one, add: one, delete: one }, whole);
  }
  for (const Table of [WeakMapOf, WeakSet]) countAll(Table.prototype, {}, one);
  // An iterator of a `Set`, or of another value that has its functions.
  const through = (iterator) => ({ [iteratorOf]: () => iterator });
  const keysOf = (other) => through(other.keys());
  const sets = {
    union(other) {
      const made = new Set(this);
      for (const key of keysOf(other)) made.add(key);
      return made;
    },
    intersection(other) {
      const made = new Set();
      if (this.size <= other.size) {
        for (const key of through(this.keys())) if (other.has(key)) made.add(key);
      } else {
        for (const key of keysOf(other)) if (this.has(key)) made.add(key);
      }
      return made;
    },
    difference(other) {
      const made = new Set(this);
      for (const key of keysOf(other)) made.delete(key);
      return made;
    },
    symmetricDifference(other) {
      const made = new Set(this);
      for (const key of keysOf(other)) {
        if (this.has(key)) made.delete(key);
        else made.add(key);
      }
      return made;
    },
    isSubsetOf(other) {
      if (this.size > other.size) return false;
      for (const key of through(this.keys())) if (!other.has(key)) return false;
      return true;
    },
    isSupersetOf(other) {
      if (this.size < other.size) return false;
      for (const key of keysOf(other)) if (!this.has(key)) return false;
      return true;
    },
    isDisjointFrom(other) {
      for (const key of through(this.keys())) if (other.has(key)) return false;
      return true;
    },
  };
  for (const name of keys(sets)) replace(Set.prototype, name, sets[name]);
  const callable = (call) => {
    if (typeof call !== "function") throw new TypeErrorOf("an iterator needs a function here");
    return call;
  };
  const countOf = (given) => {
    const count = +given;
    if (!(count >= 0)) throw new RangeErrorOf("a number of items is 0 or more");
    return floor(count);
  };
  const iterators = {
    *map(call) {
      let at = 0;
      for (const value of through(this)) yield callable(call)(value, at++);
    },
    *filter(call) {
      let at = 0;
      for (const value of through(this)) if (callable(call)(value, at++)) yield value;
    },
    *take(count) {
      let left = countOf(count);
      if (left === 0) return;
      for (const value of through(this)) {
        yield value;
        if (--left === 0) return;
      }
    },
    *drop(count) {
      let left = countOf(count);
      for (const value of through(this)) {
        if (left > 0) left--;
        else yield value;
      }
    },
    *flatMap(call) {
      let at = 0;
      for (const value of through(this)) yield* callable(call)(value, at++);
    },
    every(call) {
      let at = 0;
      for (const value of through(this)) if (!callable(call)(value, at++)) return false;
      return true;
    },
    some(call) {
      let at = 0;
      for (const value of through(this)) if (callable(call)(value, at++)) return true;
      return false;
    },
    find(call) {
      let at = 0;
      for (const value of through(this)) if (callable(call)(value, at++)) return value;
      return undefined;
    },
    forEach(call) {
      let at = 0;
      for (const value of through(this)) callable(call)(value, at++);
    },
    reduce(call, ...first) {
      let at = 0;
      let result = first[0];
      for (const value of through(this)) {
        result = at === 0 && first.length === 0 ? value : callable(call)(result, value, at);
        at++;
      }
      if (at === 0 && first.length === 0) throw new TypeErrorOf("the iterator has no values");
      return result;
    },
    toArray() {
      return [...through(this)];
    },
  };
  for (const name of keys(iterators)) replace(Iterator.prototype, name, iterators[name]);
  keepPrototypes(Iterator.prototype);
  // What ECMA-262 (2025) does not have, and what reads an iterator to its end in one step.
  for (const name of ["chunks", "windows", "includes", "join"]) delete Iterator.prototype[name];
  for (const name of ["concat", "zip", "zipKeyed"]) delete Iterator[name];
  delete Math.sumPrecise;
  for (const object of [Math, DateOf, StringOf]) countAll(object, {}, one, { usual: numbers });
  for (const object of [Number, DateOf.prototype]) countAll(object, {}, one);
  const digits = () => 10;
  countAll(Number.prototype, {
    toFixed: digits, toPrecision: digits, toExponential: digits,
    toString: (_, values) => (values[0] === undefined ? 1 : 100),
  }, one);
  replace(StringOf, "raw", (template, ...values) => {
    const parts = listOf(template.raw);
    let text = "";
    for (let at = 0; at < parts.length; at++) {
      text += StringOf(parts[at]);
      if (at + 1 < parts.length && at < values.length) text += StringOf(values[at]);
    }
    return text;
  });
  for (const name of ["parseInt", "parseFloat", "isNaN", "isFinite", "encodeURI", "encodeURIComponent", "decodeURI", "decodeURIComponent", "escape", "unescape", "atob", "btoa"]) {
    counted(globalThis, name, one, name === "isNaN" || name === "isFinite" ? numbers : texts);
  }
  Number.parseInt = globalThis.parseInt;
  Number.parseFloat = globalThis.parseFloat;
  globalThis.Number = new ProxyOf(NumberOf, {
    apply: (_, self, values) => {
      spend(readAll(numbers(values, values)));
      return apply(NumberOf, self, values);
    },
    construct: (_, values, target) => {
      spend(readAll(numbers(values, values)));
      return construct(NumberOf, values, target);
    },
  });
  replace(NumberOf.prototype, "constructor", globalThis.Number);
  globalThis.structuredClone = (value) => {
    const seen = new MapOf();
    const copy = (one) => {
      if (typeof one === "function" || typeof one === "symbol") throw new ErrorOf("this cannot be cloned");
      if (typeof one !== "object" || one === null) return one;
      if (seen.has(one)) return seen.get(one);
      if (one instanceof DateOf) return new globalThis.Date(one.getTime());
      if (one instanceof MapOf) return new MapOf([...one].map(([key, value]) => [copy(key), copy(value)]));
      if (one instanceof Set) return new Set([...one].map(copy));
      const made = isArray(one) ? [] : {};
      seen.set(one, made);
      for (const key of keys(one)) made[key] = copy(one[key]);
      return made;
    };
    return copy(value);
  };

  // --- Numbers and dates in English, as browsers write them; other formats throw.

  const unknown = (what) => {
    throw new RangeErrorOf(what + " is not available when the site is built");
  };
  const english = (locales) => {
    const first = isArray(locales) ? locales[0] : locales;
    if (first !== undefined && !/^en(-US)?$/.test(first)) unknown("the locale " + StringOf(first));
  };
  const numberOf = Number.prototype.valueOf;
  const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ",");
  const symbols = {
    USD: "$", EUR: "€", GBP: "£", JPY: "¥", INR: "₹", CNY: "CN¥", KRW: "₩", CAD: "CA$",
    AUD: "A$", MXN: "MX$", NZD: "NZ$", BRL: "R$", ILS: "₪", VND: "₫", TWD: "NT$", HKD: "HK$",
  };
  const known = (options, names) => {
    for (const key of keys(options)) {
      if (options[key] !== undefined && !names.includes(key)) unknown("the option " + key);
    }
  };
  // A decimal number: its digits, and how many of them are before the point. Browsers round the
  // shortest decimal form of a number, so 1.005 becomes 1.01.
  const decimal = (value) => {
    const [digits, power = "0"] = StringOf(value).split("e");
    const [before, after = ""] = digits.split(".");
    const all = (before + after).replace(/^0+/, "");
    return { digits: all, point: all === "" ? 0 : before.length + +power - (before.length + after.length - all.length) };
  };
  // Rounds to a number of digits after the point, half away from zero.
  const rounded = ({ digits, point }, places) => {
    const kept = point + places;
    if (kept >= digits.length) return { digits, point };
    if (kept < 0) return { digits: "", point: 0 };
    const list = digits.slice(0, kept).split("");
    if (digits[kept] < "5") return { digits: list.join(""), point };
    let at = kept - 1;
    while (at >= 0 && list[at] === "9") list[at--] = "0";
    if (at >= 0) list[at] = StringOf(+list[at] + 1);
    else return { digits: "1" + list.join(""), point: point + 1 };
    return { digits: list.join(""), point };
  };
  const isZero = ({ digits }) => /^0*$/.test(digits);
  const written = ({ digits, point }) => {
    const all = point > 0 ? digits : "0".repeat(-point) + digits;
    const cut = max(point, 0);
    return [all.slice(0, cut).padEnd(cut, "0"), all.slice(cut)];
  };
  const formatNumber = (given, locales, settings) => {
    english(locales);
    const options = settings ?? {};
    known(options, ["style", "currency", "currencyDisplay", "minimumFractionDigits", "maximumFractionDigits", "useGrouping", "notation", "compactDisplay", "minimumIntegerDigits"]);
    const style = options.style ?? "decimal";
    if (!["decimal", "percent", "currency"].includes(style)) unknown("the style " + style);
    if (!["standard", "compact", undefined].includes(options.notation)) unknown("the notation " + options.notation);
    if (!["short", undefined].includes(options.compactDisplay)) unknown("long numbers");
    if (!["symbol", undefined].includes(options.currencyDisplay)) unknown("the currency as text");
    if (![true, false, "auto", "always", "min2", undefined].includes(options.useGrouping)) unknown("this grouping");
    const code = options.currency === undefined ? "" : StringOf(options.currency).toUpperCase();
    if (style === "currency" && code === "") throw new TypeErrorOf("a currency style needs a currency");
    const whole = style === "currency" && ["JPY", "KRW", "VND"].includes(code);
    if (style === "currency" && !own(symbols, code)) unknown("the currency " + code);
    const compact = options.notation === "compact";
    const usual = style === "currency" ? (whole ? 0 : 2) : style === "percent" ? 0 : 3;
    let least = options.minimumFractionDigits === undefined ? undefined : +options.minimumFractionDigits;
    let most = options.maximumFractionDigits === undefined ? undefined : +options.maximumFractionDigits;
    const isSignificant = compact && least === undefined && most === undefined;
    const natural = style === "currency" && !compact ? usual : 0;
    least ??= min(natural, most ?? natural);
    most ??= max(usual, least);
    const integers = options.minimumIntegerDigits === undefined ? 1 : +options.minimumIntegerDigits;
    if (!(least >= 0 && most <= 20 && least <= most && integers >= 1 && integers <= 21)) throw new RangeErrorOf("the number of digits is out of range");
    if (most % 1 !== 0 || least % 1 !== 0 || integers % 1 !== 0) unknown("a part of a digit");
    if (typeof given !== "number" && typeof given !== "bigint") unknown("a number as another type");
    const number = typeof given === "bigint" ? 0 : given;
    const sign = given < 0 || is(number, -0) && typeof given === "number" ? "-" : "";
    const money = style === "currency" ? symbols[code] : "";
    const end = style === "percent" ? "%" : "";
    if (number !== number) return money + "NaN" + end;
    if (abs(number) === Infinity) return sign + money + "∞" + end;
    const value = decimal(typeof given === "bigint" ? StringOf(given < 0 ? -given : given) : abs(number));
    if (style === "percent" && value.digits !== "") value.point += 2;
    // The number of digits after the point of a short number: two significant digits, or all before the point.
    const places = (one) => (isSignificant ? max(0, one.digits === "" ? 0 : 2 - one.point) : most);
    const units = compact ? ["", "K", "M", "B", "T"] : [""];
    let at = 0;
    let shown = value;
    for (; ; at++) {
      const scaled = { digits: value.digits, point: value.point - 3 * at };
      shown = rounded(scaled, places(scaled));
      if (at === units.length - 1 || shown.point <= 3) break;
    }
    if (isSignificant && at < 1 && shown.point < 0 && style === "currency") unknown("a short amount below 0.1");
    let [before, after] = written(isZero(shown) ? { digits: "", point: 0 } : shown);
    after = after.replace(/0+$/, "").padEnd(isSignificant ? 0 : least, "0");
    before = before.padStart(integers, "0");
    const grouping = options.useGrouping ?? (compact ? "min2" : "auto");
    const isGrouped = grouping !== false && (grouping !== "min2" || before.length >= 5);
    return sign + money + (isGrouped ? grouped(before) : before) + (after === "" ? "" : "." + after) + units[at] + end;
  };
  defineProperty(Number.prototype, "toLocaleString", {
    value(locales, options) { return formatNumber(apply(numberOf, this, []), locales, options); }, writable: true, configurable: true,
  });
  defineProperty(ArrayOf.prototype, "toLocaleString", {
    value(locales, options) {
      const length = lengthOf(this);
      spend(1 + length);
      const texts = [];
      for (let at = 0; at < length; at++) {
        const item = this[at];
        push(texts, item === null || item === undefined ? "" : StringOf(item.toLocaleString(locales, options)));
      }
      return texts.join(",");
    },
    writable: true,
    configurable: true,
  });
  for (const [name, plain] of [["toLocaleLowerCase", "toLowerCase"], ["toLocaleUpperCase", "toUpperCase"]]) {
    const change = StringOf.prototype[plain];
    defineProperty(StringOf.prototype, name, {
      value(locales) {
        english(locales);
        return apply(change, this, []);
      },
      writable: true,
      configurable: true,
    });
  }
  const months = "January February March April May June July August September October November December".split(" ");
  const days = "Sunday Monday Tuesday Wednesday Thursday Friday Saturday".split(" ");
  const two = (n) => (n < 10 ? "0" + n : "" + n);
  const time = DateOf.prototype.getTime;
  const formatDate = (date, locales, settings, usual) => {
    english(locales);
    const at = apply(time, date, []);
    if (at !== at) return "Invalid Date";
    const options = settings ?? {};
    known(options, ["year", "month", "day", "weekday", "hour", "minute", "second", "hour12", "timeZone", "dateStyle", "timeStyle"]);
    if (!["UTC", "GMT", "Etc/UTC", undefined].includes(options.timeZone)) unknown("the time zone " + options.timeZone);
    let { year, month, day, weekday, hour, minute, second, dateStyle, timeStyle } = options;
    if (options.hour12 === false) unknown("the 24-hour clock");
    if (dateStyle !== undefined || timeStyle !== undefined) {
      if (usual === "date" && timeStyle !== undefined || usual === "time" && dateStyle !== undefined) throw new TypeErrorOf("this style is not one of dates and times");
      if ([year, month, day, weekday, hour, minute, second].some((one) => one !== undefined)) throw new TypeErrorOf("a style cannot be combined with parts");
      if (dateStyle !== undefined) {
        [year, month, day] = ["numeric", { full: "long", long: "long", medium: "short", short: "numeric" }[dateStyle], "numeric"];
        if (month === undefined) unknown("the style " + dateStyle);
        if (dateStyle === "full") weekday = "long";
        if (dateStyle === "short") year = "2-digit";
      }
      if (timeStyle !== undefined) {
        if (!["short", "medium"].includes(timeStyle)) unknown("the style " + timeStyle);
        [hour, minute, second] = ["numeric", "2-digit", timeStyle === "medium" ? "2-digit" : undefined];
        if (dateStyle === "full" || dateStyle === "long") unknown("this style of a date and a time");
      }
    } else if ([year, month, day, weekday, hour, minute, second].every((one) => one === undefined)) {
      if (usual !== "time") [year, month, day] = ["numeric", "numeric", "numeric"];
      if (usual !== "date" && usual !== "any") [hour, minute, second] = ["numeric", "2-digit", "2-digit"];
    } else if (usual === "time" && hour === undefined && minute === undefined && second === undefined) {
      [hour, minute, second] = ["numeric", "2-digit", "2-digit"];
    } else if (usual === "date" && [year, month, day, weekday].every((one) => one === undefined)) {
      [year, month, day] = ["numeric", "numeric", "numeric"];
    }
    const part = (how, number, names) => {
      switch (how) {
        case undefined: return undefined;
        case "numeric": return "" + number;
        case "2-digit": return two(number % 100);
        case "long": if (names) return names[number];
        case "short": if (names) return names[number].slice(0, 3);
        default: return unknown("the form " + how);
      }
    };
    const full = date.getUTCFullYear();
    const y = part(year, full > 0 ? full : 1 - full);
    const named = month === "long" || month === "short";
    const m = named ? part(month, date.getUTCMonth(), months) : part(month, date.getUTCMonth() + 1);
    const d = part(day, date.getUTCDate());
    const w = weekday === undefined ? undefined : part(weekday, date.getUTCDay(), days);
    let text;
    if (named) {
      const front = d === undefined ? m : m + " " + d;
      text = y === undefined ? front : d === undefined ? front + " " + y : front + ", " + y;
      if (w !== undefined) text = d === undefined ? unknown("this form of a date") : w + ", " + text;
    } else {
      if (y !== undefined && d !== undefined && m === undefined) unknown("this form of a date");
      text = [m, d, y].filter((one) => one !== undefined).join("/");
      if (w !== undefined && text !== "" && d === undefined) unknown("this form of a date");
      if (w !== undefined) text = text === "" ? w : m === undefined ? d + " " + w : w + ", " + text;
    }
    if (hour !== undefined || minute !== undefined || second !== undefined) {
      if (hour === undefined || minute === undefined && second !== undefined) unknown("this form of a time");
      for (const how of [hour, minute, second]) if (!["numeric", "2-digit", undefined].includes(how)) unknown("the form " + how);
      const hours = date.getUTCHours();
      const shown = hours % 12 || 12;
      let clock = hour === "2-digit" ? two(shown) : "" + shown;
      if (minute !== undefined) clock += ":" + two(date.getUTCMinutes());
      if (second !== undefined) clock += ":" + two(date.getUTCSeconds());
      clock += hours < 12 ? " AM" : " PM";
      const isDay = w !== undefined && d === undefined && m === undefined && y === undefined;
      text = text === "" ? clock : isDay ? text + " " + clock : named && dateStyle === undefined && month === "long" ? text + " at " + clock : text + ", " + clock;
    }
    return text;
  };
  globalThis.Intl = {};
  for (const name of ["Collator", "DisplayNames", "DurationFormat", "ListFormat", "Locale", "PluralRules", "RelativeTimeFormat", "Segmenter", "getCanonicalLocales", "supportedValuesOf"]) {
    globalThis.Intl[name] = function () { unknown("Intl." + name); };
  }
  assign(globalThis.Intl, {
    NumberFormat: function NumberFormat(locales, options) {
      formatNumber(0, locales, options);
      return {
        format: (number) => formatNumber(typeof number === "bigint" ? number : +number, locales, options),
        formatToParts: () => unknown("formatToParts"),
        resolvedOptions: () => unknown("resolvedOptions"),
      };
    },
    DateTimeFormat: function DateTimeFormat(locales, options) {
      return {
        format: (date) => formatDate(date ?? new globalThis.Date(), locales, options, "any"),
        formatToParts: () => unknown("formatToParts"),
        resolvedOptions: () => unknown("resolvedOptions"),
      };
    },
  });
  keepPrototypes(globalThis.Intl);

  // Dates without a clock, in UTC, so that the machine's time zone has no effect. The engine reads
  // a text without a zone in the zone of the machine, so such a text gets the zone UTC here.
  const parseOf = DateOf.parse;
  const zone = /[\d\s](Z|GMT|UTC?|[ECMP][SD]T)\s*$|(GMT|UTC|\d:\d\d(:\d\d(\.\d+)?)?)\s*[+-]\d\d(:?\d\d)?\s*$/i;
  const parseDate = (given) => {
    const text = given.replace(/\([^()]*\)\s*$/, "").trim();
    if (/^[+-]?\d{4,6}(-\d\d(-\d\d)?)?$/.test(text) || zone.test(text)) return parseOf(text);
    return parseOf(text + (/^[+-]?\d{4,6}-\d\d-\d\dT/.test(text) ? "Z" : " UTC"));
  };
  const utc = DateOf.UTC;
  const primitive = (value) => {
    if (typeof value !== "object" && typeof value !== "function" || value === null) return value;
    const own = value[Symbol.toPrimitive];
    if (own !== undefined && own !== null) return own.call(value, "default");
    for (const name of ["valueOf", "toString"]) {
      const found = typeof value[name] === "function" ? value[name]() : value;
      if (typeof found !== "object" && typeof found !== "function" || found === null) return found;
    }
    throw new TypeErrorOf("an object is no date");
  };
  function Moment(...values) {
    if (new.target === undefined || values.length === 0) missing("the current date")();
    const only = values.length === 1 && !(values[0] instanceof DateOf) ? primitive(values[0]) : values[0];
    const at = values.length > 1 ? utc(...values)
      : only instanceof DateOf ? apply(time, only, [])
      : typeof only === "string" ? parseDate(only) : only;
    return construct(DateOf, [at], new.target);
  }
  Moment.prototype = DateOf.prototype;
  Moment.UTC = utc;
  Moment.parse = (text) => parseDate(StringOf(text));
  Moment.now = missing("Date.now");
  defineProperty(Moment, "name", { value: "Date" });
  defineProperty(Moment, "length", { value: 7 });
  const dates = DateOf.prototype;
  defineProperty(dates, "constructor", { value: Moment, writable: true, configurable: true });
  for (const name of ["FullYear", "Month", "Date", "Day", "Hours", "Minutes", "Seconds", "Milliseconds"]) {
    dates["get" + name] = dates["getUTC" + name];
    if (name !== "Day") dates["set" + name] = dates["setUTC" + name];
  }
  dates.getTimezoneOffset = function () { return isNaN(this) ? NaN : 0; };
  dates.setYear = function (year) {
    const full = floor(+year);
    return this.setUTCFullYear(full >= 0 && full <= 99 ? 1900 + full : full);
  };
  dates.getYear = function () { return this.getUTCFullYear() - 1900; };
  dates.toDateString = function () {
    if (isNaN(this)) return "Invalid Date";
    return days[this.getUTCDay()].slice(0, 3) + " " + months[this.getUTCMonth()].slice(0, 3) + " " + two(this.getUTCDate()) + " " + StringOf(this.getUTCFullYear()).padStart(4, "0");
  };
  dates.toTimeString = function () {
    if (isNaN(this)) return "Invalid Date";
    return two(this.getUTCHours()) + ":" + two(this.getUTCMinutes()) + ":" + two(this.getUTCSeconds()) + " GMT+0000 (Coordinated Universal Time)";
  };
  dates.toString = function () {
    return isNaN(this) ? "Invalid Date" : this.toDateString() + " " + this.toTimeString();
  };
  dates.toLocaleDateString = function (locales, options) { return formatDate(this, locales, options, "date"); };
  dates.toLocaleTimeString = function (locales, options) {
    return formatDate(this, locales, options, "time");
  };
  dates.toLocaleString = function (locales, options) { return formatDate(this, locales, options, "both"); };
  keepPrototypes(dates);
  globalThis.Date = Moment;

  // The order of letters, digits and marks in browsers (Unicode Technical Standard 10): first by
  // letters, then by accents, then by case. Other characters throw.
  const order = "_-–—,;:!¡?¿.·'‹›\"«»()[]{}§¶@*/\\&#%•`^°©®←→↑↓+±÷×<=>¬|¦~¢$£¥€0123456789abcdefghijklmnopqrstuvwxyz";
  const quotes = { "‘": ["'", 1], "’": ["'", 2], "“": ["\"", 1], "”": ["\"", 2] };
  const accents = "\u0301\u0300\u0306\u0302\u030c\u030a\u0308\u030b\u0303\u0307\u0327\u0328";
  const letters = (text, numeric) => {
    const found = [[], [], []];
    const add = (first, second, third) => {
      if (first !== undefined) push(found[0], first);
      push(found[1], second);
      push(found[2], third);
    };
    for (let at = 0; at < text.length; at++) {
      const digits = numeric ? /^\d{1,12}/.exec(text.slice(at, at + 12)) : null;
      if (digits) {
        add(1000 + Number(digits[0]), 0, 0);
        at += digits[0].length - 1;
        continue;
      }
      const accent = accents.indexOf(text[at]);
      if (accent >= 0) {
        add(undefined, 1 + accent, 0);
        continue;
      }
      const quote = own(quotes, text[at]) ? quotes[text[at]] : undefined;
      const letter = quote === undefined ? text[at].toLowerCase() : quote[0];
      const rank = letter === " " ? 0 : order.indexOf(letter) + 1;
      if (rank === 0 && letter !== " ") unknown("the order of " + stringify(text[at]));
      const isDigit = letter >= "0" && letter <= "9";
      const place = isDigit ? 1000 + Number(letter) : rank > order.length - 26 ? 1e15 + rank : rank;
      add(place, 0, quote === undefined ? Number(letter !== text[at]) : quote[1]);
    }
    return found;
  };
  const normalize = StringOf.prototype.normalize;
  defineProperty(String.prototype, "localeCompare", {
    value(other, locales, settings) {
      english(locales);
      const options = settings ?? {};
      known(options, ["numeric", "sensitivity"]);
      const levels = { base: 1, accent: 2, variant: 3 }[options.sensitivity ?? "variant"];
      if (levels === undefined) unknown("this comparison");
      const [one, two] = [StringOf(this), StringOf(other)];
      if (one === two) return 0;
      const numeric = options.numeric === true;
      const left = letters(apply(normalize, one, ["NFD"]), numeric);
      const right = letters(apply(normalize, two, ["NFD"]), numeric);
      for (let level = 0; level < levels; level++) {
        const [first, second] = [left[level], right[level]];
        for (let at = 0; at < min(first.length, second.length); at++) {
          if (first[at] !== second[at]) return first[at] < second[at] ? -1 : 1;
        }
        if (first.length !== second.length) return first.length < second.length ? -1 : 1;
      }
      return 0;
    },
    writable: true,
    configurable: true,
  });

  // --- React.

  const ELEMENT = Symbol.for("react.element");
  const FRAGMENT = Symbol.for("react.fragment");
  const LEAF = Symbol("a part of the page");
  const broken = new WeakMapOf();
  const builtins = new WeakMapOf();
  const limitErrors = new WeakMapOf();
  const over = (message) => {
    const error = new RangeErrorOf(message);
    put(limitErrors, error, true);
    return error;
  };

  const element = (type, props, key, more) => ({ $$typeof: ELEMENT, type, props, key, ref: null, ...more });
  const isElement = (value) => typeof value === "object" && value !== null && value.$$typeof === ELEMENT;
  let made = 0;
  // The values of JavaScript that have the name of a built-in component, with that component.
  const ambiguous = new WeakMapOf();
  const typeOf = (type) => (typeof type === "function" && has(ambiguous, type) ? get(ambiguous, type) : type);
  const createElement = (given, config, ...children) => {
    const type = typeOf(given);
    if (++made > limits.nodes) throw over("more than " + limits.nodes + " parts are made");
    const props = {};
    let key = null;
    if (config !== null && config !== undefined) {
      for (const name of keys(config)) {
        if (name === "key") key = StringOf(config.key);
        else if (name !== "ref" || (typeof type === "object" && type !== null)) props[name] = config[name];
      }
    }
    if (children.length === 1) props.children = children[0];
    else if (children.length > 1) props.children = children;
    const usual = typeof type === "function" && !has(broken, type) ? type.defaultProps : undefined;
    if (usual) for (const name of keys(usual)) if (props[name] === undefined) props[name] = usual[name];
    return element(type, props, key);
  };
  const cloneElement = (original, config, ...children) => {
    if (!isElement(original)) throw new TypeErrorOf("cloneElement needs an element");
    const props = { ...original.props };
    let key = original.key;
    for (const name of keys(config ?? {})) {
      if (name === "key") key = StringOf(config.key);
      else if (name !== "ref") props[name] = config[name];
    }
    if (children.length === 1) props.children = children[0];
    else if (children.length > 1) props.children = children;
    const { shell, site } = original;
    return element(original.type, props, key, shell === undefined ? { site } : { shell, site });
  };

  const each = (children, visit) => {
    if (children === null || children === undefined || typeof children === "boolean") visit(null);
    else if (typeof children === "object" && !isElement(children)) {
      if (typeof children[iteratorOf] !== "function") throw new TypeErrorOf("an object is no part of a page");
      for (const child of children) each(child, visit);
    } else visit(children);
  };
  const toArray = (children) => {
    const found = [];
    if (children !== null && children !== undefined) each(children, (child) => { if (child !== null) push(found, child); });
    return found;
  };
  const mapChildren = (children, call) => {
    if (children === null || children === undefined) return children;
    const found = [];
    let at = 0;
    each(children, (child) => {
      const mapped = call(child, at++);
      each(mapped, (one) => { if (one !== null) push(found, one); });
    });
    return found;
  };
  const Children = {
    map: mapChildren,
    forEach: (children, call) => { mapChildren(children, (child, at) => { call(child, at); return null; }); },
    count: (children) => {
      let count = 0;
      if (children !== null && children !== undefined) each(children, () => { count++; });
      return count;
    },
    only: (children) => {
      if (!isElement(children)) throw new ErrorOf("Children.only needs one element");
      return children;
    },
    toArray,
  };

  // The component that is being called, and the state of its hooks.
  let current = null;
  let effects = [];
  let changes = null;
  let ids = 0;
  const interactive = new Set();
  const hook = (make) => {
    if (current === null) throw new ErrorOf("a hook is called outside of a component");
    const { hooks } = current;
    const at = current.at++;
    if (at === hooks.length) push(hooks, make());
    return hooks[at];
  };
  const reducer = (reduce, first, start) => {
    const owner = current;
    const cell = hook(() => {
      const made = { value: start === undefined ? first : start(first), reduce, send: null };
      made.send = (action) => {
        const next = made.reduce(made.value, action);
        if (is(next, made.value)) return;
        if (changes !== null) push(changes, [made, made.value]);
        made.value = next;
        owner.changed = true;
      };
      return made;
    });
    cell.reduce = reduce;
    current.hasState = true;
    if (current.name !== "") interactive.add(current.name);
    return [cell.value, cell.send];
  };
  const sameDeps = (before, now) =>
    isArray(before) && isArray(now) && before.length === now.length && now.every((one, at) => is(one, before[at]));
  const useMemo = (make, deps) => {
    const cell = hook(() => ({ value: make(), deps }));
    if (cell.deps !== deps && !sameDeps(cell.deps, deps)) assign(cell, { value: make(), deps });
    return cell.value;
  };
  const useEffect = (effect, deps) => {
    const cell = hook(() => ({ isNew: true, deps: undefined }));
    if (cell.isNew || !sameDeps(cell.deps, deps)) push(effects, { effect, owner: current });
    assign(cell, { isNew: false, deps });
    if (current.name !== "") interactive.add(current.name);
  };
  let contexts = new MapOf();
  class Component {
    constructor(props) { this.props = props; this.state = this.state ?? {}; }
    setState(next) { assign(this.state, typeof next === "function" ? next(this.state, this.props) : next); }
    forceUpdate() {}
  }
  Component.prototype.isReactComponent = {};
  const React = {
    createElement, cloneElement, isValidElement: isElement, Children, Component, PureComponent: Component,
    Fragment: FRAGMENT, StrictMode: FRAGMENT, Suspense: FRAGMENT, Profiler: FRAGMENT,
    createContext: (value) => {
      const context = { value };
      context.Provider = { context };
      context.Consumer = { consumer: context };
      return context;
    },
    useContext: (context) => (contexts.has(context) ? contexts.get(context) : context.value),
    memo: (type) => ({ memo: type }),
    forwardRef: (render) => ({ forward: render }),
    createRef: () => ({ current: null }),
    lazy: () => missing("lazy")(),
    startTransition: (call) => call(),
    useState: (first) => reducer((value, next) => (typeof next === "function" ? next(value) : next), undefined, () => (typeof first === "function" ? first() : first)),
    useReducer: (reduce, first, start) => reducer(reduce, first, start),
    useRef: (value) => hook(() => ({ current: value })),
    useMemo,
    useCallback: (call, deps) => useMemo(() => call, deps),
    useId: () => hook(() => ({ id: ":r" + (ids++).toString(32) + ":" })).id,
    useEffect, useLayoutEffect: useEffect,
    useInsertionEffect: () => { hook(() => ({})); },
    useImperativeHandle: () => { hook(() => ({})); },
    useDebugValue: quiet,
    useDeferredValue: (value) => value,
    useTransition: () => [false, (call) => call()],
    useSyncExternalStore: (_, snapshot, first) => (first ?? snapshot)(),
  };
  React.default = React;

  // --- The built-in components: the program renders them.

  const define = (name) => {
    const made = { [name]: (props) => createElement(made, props) }[name];
    made.displayName = name;
    put(builtins, made, name);
    return made;
  };
  const globals = create(null);
  for (const name of builtinNames) {
    const [first, second] = name.split(".");
    globals[first] ??= define(first);
    if (second !== undefined) globals[first][second] = define(name);
  }
  const available = create(null);
  assign(available, globals);
  for (const name of ["Fragment", "Children", "cloneElement", "createContext", "createElement", "forwardRef", "isValidElement", "memo"]) {
    available[name] = React[name];
  }
  for (const name of keys(React)) if (name.startsWith("use")) available[name] = React[name];
  available.React = React;
  for (const name of keys(available)) {
    // `<Error>` is a component, `new Error()` is JavaScript.
    if (allowed.has(name)) {
      put(ambiguous, globalThis[name], available[name]);
      continue;
    }
    defineProperty(globalThis, name, { value: available[name], writable: true, enumerable: false, configurable: true });
  }

  // --- Failures.

  const reason = (error) => {
    let text;
    try {
      text = typeof error === "object" && error !== null && "message" in error ? StringOf(error.message) : StringOf(error);
    } catch {
      text = "an error without a message";
    }
    if (text === "out of memory") text = "it needs more than " + limits.allocation + " bytes of memory at once, or " + limits.memory + " in all";
    return text.length > 200 ? text.slice(0, 200) + "…" : text;
  };
  const failed = (error) => {
    const fail = () => { throw error; };
    const trapped = new ProxyOf(quiet, {
      get: fail, set: fail, has: fail, apply: fail, construct: fail, ownKeys: fail,
      getOwnPropertyDescriptor: fail, defineProperty: fail, deleteProperty: fail,
      getPrototypeOf: fail, setPrototypeOf: fail, isExtensible: fail, preventExtensions: fail,
    });
    put(broken, trapped, { error });
    return trapped;
  };
  class Failure {
    constructor(site, component, error, rest) {
      this.site = site;
      this.component = component;
      this.error = error;
      this.rest = rest;
    }
  }

  // --- Rendering.

  let nodes = 0;
  let bytes = 0;
  let failures = 0;
  const grow = (text) => {
    bytes += text.length;
    if (bytes > limits.bytes) throw over("more than " + limits.bytes + " characters would be shown");
    return text;
  };
  const nameOf = (type) => {
    try {
      const name = type.displayName ?? type.name;
      return typeof name === "string" ? name.slice(0, 80) : "";
    } catch {
      return "";
    }
  };
  const addText = (out, text) => {
    grow(text);
    if (text === "") return;
    const last = out.length - 1;
    if (last >= 0 && typeof out[last] === "string") out[last] += text;
    else push(out, text);
  };
  const call = (type, props, inst) => {
    for (let again = 0; ; again++) {
      if (again > limits.renders) throw over("a component changes its state in each of " + limits.renders + " renders");
      inst.at = 0;
      inst.changed = false;
      const outer = current;
      current = inst;
      let result;
      try {
        if (typeof type.prototype === "object" && type.prototype !== null && typeof type.prototype.render === "function") {
          inst.made ??= new type(props);
          inst.made.props = props;
          result = inst.made.render();
        } else {
          result = type(props);
        }
      } finally {
        current = outer;
      }
      if (!inst.changed) return result;
    }
  };
  const within = (inst, key) => {
    let inner = inst.inner.get(key);
    if (inner === undefined) {
      inner = { hooks: [], at: 0, changed: false, inner: new MapOf(), name: "", type: undefined };
      inst.inner.set(key, inner);
    }
    return inner;
  };
  const render = (node, out, inst, depth, site) => {
    if (++nodes > limits.nodes) throw over("the result has more than " + limits.nodes + " parts");
    if (depth > limits.depth) throw over("the parts lie more than " + limits.depth + " deep in each other");
    switch (typeof node) {
      case "undefined": case "boolean": return;
      case "string": return addText(out, node);
      case "number": case "bigint": return addText(out, StringOf(node));
      case "symbol": throw new TypeErrorOf("a symbol is no part of a page");
      case "function": {
        if (has(broken, node)) throw get(broken, node).error;
        return;
      }
    }
    if (node === null) return;
    if (node instanceof Failure) return addFailure(node, out, inst, depth);
    if (!isElement(node)) {
      if (typeof node.then === "function") throw new TypeErrorOf("asynchronous components are not available");
      if (typeof node[iteratorOf] !== "function") throw new TypeErrorOf("an object is no part of a page");
      let at = 0;
      for (const child of node) {
        const key = isElement(child) && child.key !== null ? "k" + child.key : at;
        render(child, out, within(inst, key), depth + 1, site);
        at++;
      }
      return;
    }
    const place = node.site ?? site;
    const { type, props } = node;
    if (typeof type === "string" || has(builtins, type)) {
      const name = typeof type === "string" ? type : get(builtins, type);
      const children = [];
      const shown = attributes(name, props, inst, depth, place);
      render(props.children, children, within(inst, 0), depth + 1, place);
      push(out, [1, grow(name), node.shell ?? -1, shown, children]);
      return;
    }
    if (type === LEAF) {
      push(out, [0, node.shell]);
      return;
    }
    if (type === FRAGMENT) return render(props.children, out, within(inst, 0), depth + 1, place);
    if (typeof type === "object" && type !== null && !has(broken, type)) {
      if (type.context !== undefined) {
        const outer = contexts;
        contexts = new MapOf(outer);
        contexts.set(type.context, props.value);
        try {
          return render(props.children, out, within(inst, 0), depth + 1, place);
        } finally {
          contexts = outer;
        }
      }
      if (type.consumer !== undefined) {
        return render(props.children(React.useContext(type.consumer)), out, within(inst, 0), depth + 1, place);
      }
      if (type.memo !== undefined) return render({ ...node, type: type.memo }, out, inst, depth + 1, place);
    }
    const component = typeof type === "object" && type !== null ? type.forward : type;
    const children = [];
    const [before, outer] = [contexts, current];
    try {
      if (typeof component !== "function") throw new TypeErrorOf("this is not a component");
      if (inst.type !== type) {
        assign(inst, { type, hooks: [], inner: new MapOf(), made: undefined });
        inst.name = has(broken, component) ? "" : nameOf(component);
      }
      const result = call(component === type ? component : (given) => component(given, null), props, inst);
      push(owners, inst.name);
      try {
        render(result, children, within(inst, 0), depth + 1, place);
      } finally {
        owners.length--;
      }
    } catch (error) {
      [contexts, current] = [before, outer];
      if (typeof error === "object" && error !== null && has(limitErrors, error)) throw error;
      addFailure(new Failure(place, inst.name, error, given(props)), out, inst, depth);
      return;
    }
    for (const child of children) {
      if (typeof child === "string") {
        const last = out.length - 1;
        if (last >= 0 && typeof out[last] === "string") out[last] += child;
        else push(out, child);
      } else push(out, child);
    }
  };
  const addFailure = (failure, out, inst, depth) => {
    failures++;
    const rest = [];
    // The children of a component that failed are shown, so that no text is lost.
    try {
      if (failure.rest !== undefined) render(failure.rest, rest, within(inst, "rest"), depth + 1, failure.site);
    } catch (error) {
      if (typeof error === "object" && error !== null && has(limitErrors, error)) throw error;
      rest.length = 0;
    }
    push(out, [2, failure.site ?? -1, failure.component, reason(failure.error), rest]);
  };
  // The titles, texts and children of a component that failed, so that no text is lost.
  const given = (props) => {
    const parts = [];
    const add = (name, wrap) => {
      const value = props[name];
      const isText = typeof value === "string" && /\S/.test(value);
      if (isText || holdsElement(value, 0)) push(parts, element("p", { children: wrap(value) }, null));
    };
    for (const name of limits.titles) add(name, (value) => element("strong", { children: value }, null));
    for (const name of limits.texts) add(name, (value) => value);
    if (parts.length === 0) return props.children;
    push(parts, props.children);
    return parts;
  };
  const owners = [];
  const attributes = (element, props, inst, depth, site) => {
    const found = [];
    for (const name of keys(props)) {
      if (name === "children" || name === "key" || name === "ref") continue;
      const value = props[name];
      if (/^on[A-Z]/.test(name)) {
        if (typeof value === "function") interactive.add(owners[owners.length - 1] || element);
        continue;
      }
      if (value === undefined || typeof value === "symbol" || (typeof value === "function" && !has(broken, value))) continue;
      push(found, grow(name === "htmlFor" ? "for" : name));
      push(found, shown(value, within(inst, "p" + name), depth + 1, site));
    }
    return found;
  };
  const holdsElement = (value, depth) => {
    if (typeof value === "function") return has(broken, value);
    if (typeof value !== "object" || value === null || depth > 4) return false;
    if (isElement(value) || value instanceof Failure) return true;
    return isArray(value) && value.some((one) => holdsElement(one, depth + 1));
  };
  const shown = (value, inst, depth, site) => {
    if (++nodes > limits.nodes) throw over("the result has more than " + limits.nodes + " parts");
    if (depth > limits.depth) throw over("the parts lie more than " + limits.depth + " deep in each other");
    switch (typeof value) {
      case "string": return grow(value);
      case "number": case "bigint": return grow(StringOf(value));
      case "boolean": return value;
    }
    if (holdsElement(value, 0)) {
      const out = [];
      if (!isArray(value)) render(value, out, within(inst, 0), depth, site);
      // Texts that are items of a list stay apart.
      else for (let at = 0; at < value.length; at++) {
        const parts = [];
        render(value[at], parts, within(inst, at), depth + 1, site);
        for (const part of parts) push(out, part);
      }
      return [2, out];
    }
    if (typeof value !== "object" || value === null) return null;
    if (isArray(value)) return [0, value.map((one, at) => shown(one, within(inst, at), depth + 1, site))];
    if (value instanceof DateOf) return grow(value.toString());
    const found = [];
    for (const name of keys(value)) {
      if (typeof value[name] === "function" || value[name] === undefined) continue;
      push(found, grow(name));
      push(found, shown(value[name], within(inst, name), depth + 1, site));
    }
    return [1, found];
  };

  // Whether a part of the output shows something: a word, a picture, or what the program renders.
  const shows = (part) => {
    if (typeof part === "string") return /\S/.test(part);
    if (part[0] !== 1) return true;
    const [, name, shell, , children] = part;
    return shell >= 0 || /^[A-Z]/.test(name) || ["audio", "hr", "iframe", "img", "input", "svg", "textarea", "video"].includes(name) || children.some(shows);
  };
  // The first effect that threw, and its component. One without state shows nothing by its effect.
  let brokenEffect = null;
  // Runs the effects of the first render; returns whether the page must be rendered again.
  const runEffects = () => {
    const all = effects;
    effects = [];
    let changed = false;
    for (const { effect, owner } of all) {
      changes = [];
      try {
        const result = effect();
        if (result !== null && typeof result === "object" && typeof result.then === "function") throw new ErrorOf("an effect is asynchronous");
        changed ||= changes.length > 0;
      } catch (error) {
        if (owner.hasState) brokenEffect ??= { name: owner.name, error };
        for (const [cell, value] of changes.reverse()) cell.value = value;
      }
    }
    changes = null;
    return changed;
  };

  // --- What generated code and the program call.

  const modules = new MapOf();
  modules.set("react", { exports: React, names: {} });
  const load = (path) => {
    const module = modules.get(path);
    if (module === undefined) throw new ErrorOf("`" + path + "` is not part of the documentation");
    if (module.exports === null) {
      module.exports = {};
      const { factory, from } = module;
      factory(runtime, module, (name, what) => imported(from, name, what));
    }
    return module;
  };
  const imported = (from, specifier, name) => {
    try {
      if (!own(from, specifier)) throw new ErrorOf("`" + specifier + "` is a package; pages use `react` and files of the documentation");
      const { exports } = load(from[specifier]);
      if (name === "*") return exports;
      if (!(name in exports)) throw new ErrorOf("`" + specifier + "` exports no `" + name + "`");
      return exports[name];
    } catch (error) {
      return failed(error);
    }
  };
  const getters = (object, all) => {
    for (const name of keys(all)) defineProperty(object, name, { get: all[name], enumerable: true, configurable: true });
  };
  const counts = (value) => {
    if (typeof value === "string" && value.length > 64) spend(value.length / 16);
    return value;
  };
  const runtime = freeze({
    h: createElement,
    // A value that is compared: see `compile`.
    e: counts,
    // A value that is converted to a number, and one that is the name of a property.
    n: (value) => counts(primitiveOf(value, "number")),
    k: (value) => counts(primitiveOf(value, "string")),
    // A function or a loop begins that has many parts.
    w: (parts) => spend(max(parts, 0) / 4),
    // A value that becomes a prototype, a function that `new` calls, and a derived class.
    p: (value) => (isObject(value) ? checkPrototypes(value) : value),
    i: checkConstructor,
    d: (made) => {
      checkPrototypes(made);
      if (isObject(made.prototype)) checkPrototypes(made.prototype);
    },
    F: FRAGMENT,
    failed,
    // A shell: an element or a piece of Markdown that the program keeps.
    s: (shell, type, props, children) => {
      const made = globals[type];
      if (children.length > 0) props.children = children.length === 1 ? children[0] : children;
      return element(made ?? typeOf(type), props, null, { shell });
    },
    // A leaf: a finished part of the page.
    l: (shell, name, text) => element(LEAF, text === undefined ? { name } : { name, children: text }, null, { shell }),
    // A component of a page with its children, which are shown also if it fails.
    c: (site, make, children, texts) => {
      try {
        const [type, props] = make();
        return { ...createElement(type, props, ...children), site };
      } catch (error) {
        return new Failure(site, "", error, given({ ...texts, children }));
      }
    },
    // Tries to get a value; the site is where it is written.
    t: (site, make) => {
      try {
        const value = make();
        if (isElement(value) && value.site === undefined) return { ...value, site };
        if (typeof value === "function" && has(broken, value)) throw get(broken, value).error;
        return value;
      } catch (error) {
        return new Failure(site, "", error, undefined);
      }
    },
    exports: (module, all) => getters(module.exports, all),
    names: (module, all) => { getters(module.names, all); },
    star: (module, all) => {
      if (has(broken, all)) return;
      for (const name of keys(all)) {
        if (name !== "default" && !own(module.exports, name)) getters(module.exports, { [name]: () => all[name] });
      }
    },
  });
  return {
    add: (path, factory, from) => { modules.set(path, { factory, from: parse(from), exports: null, names: {} }); },
    // Calls a piece of a page and returns what it shows, as JSON.
    run: (path, piece, isValue) => {
      made = 0;
      nodes = 0;
      bytes = 0;
      failures = 0;
      pieceWork = 0;
      effects = [];
      brokenEffect = null;
      contexts = new MapOf();
      addStorage();
      const module = path === "" ? { names: {} } : load(path);
      const root = { hooks: [], at: 0, changed: false, inner: new MapOf(), name: "", type: undefined };
      const once = () => {
        const value = piece(runtime, module.names);
        if (isValue) return shown(value, root, 0, -1);
        const out = [];
        render(value, out, root, 0, -1);
        return out;
      };
      let out = once();
      for (let again = 0; again < limits.effectRenders && effects.length > 0 && runEffects(); again++) {
        made = 0;
        nodes = 0;
        bytes = 0;
        // What an effect breaks is shown as before the effect.
        const before = [out, failures];
        failures = 0;
        try {
          out = once();
        } catch {
          failures = Infinity;
        }
        if (failures > before[1]) {
          out = before[0];
          break;
        }
      }
      // What such a component would show comes from its effect.
      if (!isValue && brokenEffect !== null && !out.some(shows)) {
        out = [[2, -1, brokenEffect.name, reason(brokenEffect.error), []]];
      }
      return stringify([out, [...interactive]]);
    },
  };
}
