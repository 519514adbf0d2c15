//! Tests of the values of expressions and modules, and of the limits of a page.

use serde_json::{Map, json};

use super::*;

/// The names of all built-in components. Their list belongs to a layer above this one.
fn components() -> impl Iterator<Item = &'static str> {
    let lists = include_str!("../mdx/component.rs")
        .split("const HTML_INLINE")
        .next();
    let names = lists.unwrap_or_default().split('"').skip(1).step_by(2);
    names.filter(|name| name.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// Compiles and runs a module, and then an expression that uses its names.
fn shown(module: &str, expression: &str) -> Result<Vec<Output>, Failed> {
    let mut compiled = compile::Module::default();
    compile::statements(module, "page.tsx", &mut compiled)
        .map_err(|broken| Failed::Threw(broken.message))?;
    let mut engine = Engine::start(components())?;
    let mut imports = Map::new();
    imports.insert("react".to_owned(), json!("react"));
    engine.add("page", &compiled.code(), &imports)?;
    let piece = compile::expression(expression).map_err(|broken| Failed::Threw(broken.message))?;
    let names = piece
        .free
        .iter()
        .filter(|name| compiled.names.contains(*name));
    let names: Vec<&str> = names.map(|name| &**name).collect();
    let code = format!(
        "(function ({RUNTIME}, {{ {} }}) {{ return {RUNTIME}.t(0, () => {}); }})",
        names.join(", "),
        piece.code
    );
    engine.nodes("page", &code).map(|shown| shown.result)
}

/// Writes a result as markup.
fn markup(outputs: &[Output]) -> String {
    let mut out = String::new();
    for output in outputs {
        match output {
            Output::Text(text) => out.push_str(text),
            Output::Leaf(number) => out.push_str(&format!("#{number}")),
            Output::Element {
                name,
                attributes,
                children,
                ..
            } => {
                out.push_str(&format!("<{name}"));
                for (name, value) in attributes {
                    let value = match value {
                        Value::Text(text) => text.clone(),
                        Value::Nodes(nodes) => markup(nodes),
                        other => format!("{other:?}"),
                    };
                    out.push_str(&format!(" {name}={value}"));
                }
                out.push_str(&format!(">{}</{name}>", markup(children)));
            }
            Output::Failed(failure) => out.push_str(&format!(
                "[{} failed: {}]{}",
                failure.component,
                failure.reason,
                markup(&failure.children)
            )),
        }
    }
    out
}

#[track_caller]
fn is(module: &str, expression: &str, expected: &str) {
    let found = shown(module, expression).map(|outputs| markup(&outputs));
    assert_eq!(found.as_deref(), Ok(expected), "{module}\n{expression}");
}

#[test]
fn expressions_have_values() {
    is("", "1 + 2", "3");
    is(
        "",
        "[1, 2].map(n => <b key={n}>{n * 2}</b>)",
        "<b>2</b><b>4</b>",
    );
    is("", "true && <i>yes</i>", "<i>yes</i>");
    is("", "null ?? undefined ?? false", "");
    is(
        "const a = {b: {c: 'x'}};",
        "a?.b?.c + `${a.d?.e ?? '-'}`",
        "x-",
    );
    is(
        "",
        "<><a href='/x' {...{title: 't'}}>k</a>{' '}</>",
        "<a href=/x title=t>k</a> ",
    );
    is(
        "enum A { B = 'b' }\nconst f = (n: number): string => `${n as number}`;",
        "f(1) + A.B",
        "1b",
    );
    is(
        "",
        "<Card title={<b>t</b>} href=\"/x\" onClick={() => {}}>x</Card>",
        "<Card title=<b>t</b> href=/x>x</Card>",
    );
}

#[test]
fn components_are_called_as_in_react() {
    let module = "import { useState, useMemo, createContext, useContext, memo, forwardRef } from 'react';
        import * as R from 'react';
        const Theme = createContext('light');
        const Name = ({ first = 'A', ...rest }) => <b {...rest}>{first}{useContext(Theme)}</b>;
        function Count({ children }) {
            const [n, setN] = useState(() => 1);
            if (n < 3) setN(n + 1);
            return <i>{useMemo(() => n * 10, [n])}{children}</i>;
        }
        const M = memo(Name), F = forwardRef((props, ref) => <u>{props.x}</u>);
        const List = ({ children }) => R.Children.map(children, (child, at) => R.cloneElement(child, { at }));
        class Old extends R.Component { state = { x: 1 }; render() { return <s>{this.state.x}{this.props.y}</s>; } }
        const Late = () => { const [x, set] = useState('first'); R.useEffect(() => { set('second'); }, []); return x; };
        const Never = () => { const [x, set] = useState('first'); R.useEffect(() => { set('lost'); window.x; }, []); return x; };";
    is(
        module,
        "<Name className='c' />",
        "<b className=c>Alight</b>",
    );
    is(
        module,
        "<Theme.Provider value='dark'><Name first='B' /></Theme.Provider>",
        "<b>Bdark</b>",
    );
    is(module, "<Count>x</Count>", "<i>30x</i>");
    is(module, "<M/>", "<b>Alight</b>");
    is(module, "<F x='1'/>", "<u>1</u>");
    is(
        module,
        "<List><p>a</p><p>b</p></List>",
        "<p at=0>a</p><p at=1>b</p>",
    );
    is(module, "<Old y='2'/>", "<s>12</s>");
    is(module, "<Late/>", "second");
    is(module, "<Never/>", "first");
}

#[test]
fn components_do_not_replace_the_globals_of_javascript() {
    assert!(
        components().any(|name| name == "Error") && components().any(|name| name == "Tree.File")
    );
    let module =
        "const tried = call => { try { return call(); } catch (error) { return error.message; } };
        class Mine extends Error {}";
    is(
        module,
        "tried(() => { throw new Error('zebra'); })",
        "zebra",
    );
    is(
        module,
        "tried(() => JSON.parse('{')) && (() => { try { JSON.parse('{'); } catch (e) { return e instanceof Error ? 'is' : 'no'; } })()",
        "is",
    );
    is(module, "new Mine('giraffe').message", "giraffe");
    is(
        module,
        "<Error title='t'>x</Error>",
        "<Error title=t>x</Error>",
    );
    is(
        "import { createElement } from 'react';",
        "createElement(Error, null, 'x')",
        "<Error>x</Error>",
    );
    is("const Error = () => 'own';", "<Error>x</Error>", "own");
}

#[test]
fn what_an_effect_breaks_is_shown_as_before_the_effect() {
    let module = "import { useState, useEffect } from 'react';
        const Broken = () => { const [n, set] = useState(0); useEffect(() => { set(1); }, []); \
        if (n) throw new Error('second'); return <p>first</p>; };
        const Both = () => <><Broken/><Bad/></>; const Bad = () => { throw new Error('always'); };";
    is(module, "<Broken/>", "<p>first</p>");
    is(module, "<Both/>", "<p>first</p>[Bad failed: always]");
}

#[test]
fn what_fails_leaves_the_rest() {
    let module = "import Icon from 'lucide-react';
        const now = Date.now();
        export const x = 1;
        const Bad = () => { throw new Error('no'); };
        const Async = async () => <b/>;";
    is(module, "x", "1");
    is(
        module,
        "now",
        "[ failed: Date.now is not available: the page is made when the site is built]",
    );
    is(
        module,
        "<p>a<Bad>kept</Bad>b</p>",
        "<p>a[Bad failed: no]keptb</p>",
    );
    is(
        module,
        "<Icon/>",
        "[ failed: `lucide-react` is a package; pages use `react` and files of the documentation]",
    );
    is(
        module,
        "window.location",
        "[ failed: window is not defined]",
    );
    is(
        module,
        "typeof window === 'undefined' ? 'server' : 'browser'",
        "server",
    );
    is(
        module,
        "<Async/>",
        "[Async failed: asynchronous components are not available]",
    );
    assert_eq!(
        shown(module, "({})"),
        Err(Failed::Threw("an object is no part of a page".to_owned()))
    );
}

#[test]
fn nothing_of_the_machine_is_there() {
    for code in [
        "eval('1')",
        "Function('return 1')()",
        "(() => {}).constructor('return 1')()",
        "(async () => {}).constructor('return 1')()",
        "Math.random()",
        "new Date()",
        "Date()",
        "setTimeout(() => {})",
        "fetch('/')",
        "performance.now()",
        "new WeakRef({})",
        "Atomics.load",
        "new SharedArrayBuffer(1)",
        "queueMicrotask(() => {})",
        "document.body",
        "localStorage.x.y",
        "navigator.userAgent",
        "process.env",
        "require('fs')",
        "10n ** 9n",
        "new Intl.DateTimeFormat('de').format(new Date(0))",
        "(1).toLocaleString('de-DE')",
        "new Date(0).toLocaleDateString('en-US', { timeZone: 'Europe/Paris' })",
        "new Intl.Collator()",
        "new Intl.ListFormat('en').format(['a', 'b'])",
        "[1234.5].toLocaleString('de')",
        "[new Date(0)].toLocaleString('fr')",
        "'I'.toLocaleLowerCase('tr')",
        "'i'.toLocaleUpperCase('tr-TR')",
        "'æ'.localeCompare('z')",
    ] {
        match shown("", code) {
            Ok(outputs) => assert!(
                matches!(outputs[..], [Output::Failed(_)]),
                "{code}: {outputs:?}"
            ),
            Err(_failed) => {}
        }
    }
}

#[test]
fn the_storage_is_that_of_a_reader_who_comes_for_the_first_time() {
    let module = "import { useState } from 'react';
        const Apps = () => { const [apps] = useState(() => { const raw = localStorage.getItem('apps'); \
        if (raw) return JSON.parse(raw); localStorage.setItem('apps', JSON.stringify(['Default'])); \
        return JSON.parse(localStorage.getItem('apps')); }); return <b>{apps}</b>; };";
    is(module, "<Apps/>", "<b>Default</b>");
    is(
        module,
        "sessionStorage.getItem('a') ?? `none of ${localStorage.length}`",
        "none of 0",
    );
}

#[test]
fn a_channel_to_other_tabs_reaches_nobody() {
    let module = "import { useState, useEffect } from 'react';
        const Tabs = () => { const [heard, hear] = useState('nothing'); \
        const [channel] = useState(() => new BroadcastChannel('sync')); \
        useEffect(() => { channel.onmessage = () => hear('a message'); \
        channel.addEventListener('message', () => hear('a message')); \
        channel.postMessage({ a: 1 }); return () => channel.close(); }, []); \
        return <b>{channel.name}: {heard}</b>; };";
    is(module, "<Tabs/>", "<b>sync: nothing</b>");
    is(
        "",
        "new BroadcastChannel()",
        "[ failed: a channel needs a name]",
    );
}

#[test]
fn numbers_and_dates_are_written_as_browsers_do() {
    // Some of the results of Node.js 20 for the locale en-US and the time zone UTC. All of
    // `tests/jsx/locale.js` are compared with Node.js itself in `tests/it/jsx.rs`.
    for (code, expected) in [
        ("(1234567.891).toLocaleString()", "1,234,567.891"),
        (
            "(1234.5).toLocaleString('en-US', { minimumFractionDigits: 2 })",
            "1,234.50",
        ),
        (
            "(0.256).toLocaleString(undefined, { style: 'percent' })",
            "26%",
        ),
        (
            "(1234.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })",
            "$1,234.50",
        ),
        (
            "(-5).toLocaleString('en', { style: 'currency', currency: 'EUR' })",
            "-€5.00",
        ),
        (
            "(5).toLocaleString('en', { style: 'currency', currency: 'GBP', maximumFractionDigits: 0 })",
            "£5",
        ),
        (
            "new Intl.NumberFormat('en-US', { notation: 'compact' }).format(1234)",
            "1.2K",
        ),
        (
            "new Intl.NumberFormat('en-US', { notation: 'compact' }).format(999999)",
            "1M",
        ),
        ("(0.1 + 0.2).toLocaleString()", "0.3"),
        (
            "[0.5, null, [0.25]].toLocaleString('en-US', { style: 'percent' })",
            "50%,,25%",
        ),
        ("'İI'.toLocaleLowerCase('en-US').length", "3"),
        ("(1e20).toLocaleString()", "100,000,000,000,000,000,000"),
        (
            "(1.005).toLocaleString(undefined, { maximumFractionDigits: 2 })",
            "1.01",
        ),
        (
            "new Date('2024-03-05').toLocaleDateString('en-US')",
            "3/5/2024",
        ),
        (
            "new Date('2024-03-05').toLocaleDateString('en-US', { month: 'long', day: 'numeric', year: 'numeric' })",
            "March 5, 2024",
        ),
        (
            "new Date('2024-03-05').toLocaleDateString('en-US', { month: 'short', year: 'numeric' })",
            "Mar 2024",
        ),
        (
            "new Date('2024-03-05').toLocaleDateString('en-US', { weekday: 'long', month: 'long', day: 'numeric' })",
            "Tuesday, March 5",
        ),
        (
            "new Date(Date.UTC(2024, 2, 5, 13, 4, 9)).toLocaleString('en-US')",
            "3/5/2024, 1:04:09 PM",
        ),
        (
            "new Date(2024, 2, 5).toISOString()",
            "2024-03-05T00:00:00.000Z",
        ),
        ("new Date('2024-03-05T10:00').getHours()", "10"),
        (
            "String(new Date(0))",
            "Thu Jan 01 1970 00:00:00 GMT+0000 (Coordinated Universal Time)",
        ),
        (
            "['b', 'A', 'a', 'C', '_', '1'].sort((x, y) => x.localeCompare(y)).join('')",
            "_1aAbC",
        ),
        (
            "['a10', 'a9'].sort((x, y) => x.localeCompare(y, undefined, { numeric: true })).join()",
            "a9,a10",
        ),
    ] {
        is("", code, expected);
    }
}

#[test]
fn no_page_works_without_end() {
    let failed = |module: &str, expression: &str| match shown(module, expression) {
        Err(failed) => failed.to_string(),
        Ok(outputs) => match &outputs[..] {
            [Output::Failed(failure)] => failure.reason.clone(),
            other => panic!(
                "{expression}: {}",
                markup(other).chars().take(200).collect::<String>()
            ),
        },
    };
    for (module, expression, expected) in [
        ("", "(() => { for (;;) {} })()", "steps"),
        (
            "",
            "(() => { for (;;) { try { for (;;) {} } catch {} } })()",
            "steps",
        ),
        ("const X = () => <X/>;", "<X/>", "deep"),
        ("const f = () => f();", "f()", "stack"),
        ("", "(() => { let s = 'x'; for (;;) s += s; })()", ""),
        (
            "",
            "(() => { const a = []; for (;;) a.push(new Array(1000).fill(0)); })()",
            "",
        ),
        ("", "'x'.repeat(2 ** 28)", ""),
        ("", "'x'.repeat(5e6)", "characters"),
        (
            "",
            "Array.prototype.indexOf.call({ length: 2 ** 53 }, 1)",
            "work",
        ),
        ("", "new Array(4e9).includes(1)", "work"),
        ("", "new Array(4e9).fill(<b/>)", "work"),
        ("", "Array.from({ length: 1e6 }, () => <b/>)", "parts"),
        ("", "/(a+)+$/.test('a'.repeat(50) + 'b')", "steps"),
        ("", "new Proxy({}, { get() { for (;;) {} } })", "steps"),
        (
            "",
            "({ get $$typeof() { throw new Error('getter'); } })",
            "getter",
        ),
        (
            "let a = []; for (let i = 0; i < 1e5; i++) a = [a];",
            "a",
            "",
        ),
        (
            "",
            "({ [Symbol.iterator]: () => ({ next: () => ({ value: 'x' }) }) })",
            "",
        ),
        (
            "import { useState } from 'react'; const X = () => { const [n, set] = useState(0); set(n + 1); };",
            "<X/>",
            "renders",
        ),
        (
            "Object.prototype.toJSON = () => 1; Array.prototype[Symbol.iterator] = null;",
            "[1]",
            "",
        ),
    ] {
        let found = failed(module, expression);
        assert!(found.contains(expected), "{expression}: {found}");
    }
}

#[test]
fn a_body_with_many_parts_costs_them_each_time() {
    let parts = "a.x;".repeat(2_000);
    let statement = |code: &str| code.replace("PARTS", &parts);
    for code in [
        "(() => { for (;;) { PARTS } })()",
        "(() => { while (true) { PARTS } })()",
        "(() => { do { PARTS } while (true) })()",
        "(() => { for (const b in [...Array(2e5).keys()]) { PARTS } })()",
        "(() => { for (const b of Array(2e5)) { PARTS } })()",
        "(() => { const f = () => { PARTS }; for (;;) f(); })()",
        "(() => { function f() { 'use strict'; PARTS } for (;;) f(); })()",
        "(() => { const o = { get b() { PARTS } }; for (;;) o.b; })()",
        "(() => { class C { constructor() { PARTS } } for (;;) new C(); })()",
        "(() => { const f = (b = (() => { PARTS })()) => b; for (;;) f(); })()",
    ] {
        cost_too_much("const a = {};", &[&statement(code)]);
    }
    let values = format!("a.x{}", " + a.x".repeat(2_000));
    let fields: String = (0..500).map(|at| format!("f{at} = a.x;")).collect();
    for code in [
        format!("(() => {{ const f = () => {values}; for (;;) f(); }})()"),
        format!("(() => {{ for (; {values};); }})()"),
        format!("(() => {{ for (;;) {values}; }})()"),
        format!("(() => {{ class C {{ {fields} }} for (;;) new C(); }})()"),
    ] {
        cost_too_much("const a = { x: 1 };", &[&code]);
    }
    // The marks change no result.
    let sum = format!("1{}", " + 1".repeat(200));
    is("", &format!("(() => {sum})()"), "201");
    is("", &format!("(() => ({{ sum: {sum} }}))().sum"), "201");
    is(
        "",
        &format!("(() => {{ let n = 0; for (let at = 0; at < 2; at++) n += {sum}; return n; }})()"),
        "402",
    );
    is(
        "",
        &format!("(() => {{ 'use strict'; return {sum}; }})()"),
        "201",
    );
    is(
        "",
        &format!("(() => {{ class C {{ a = {sum}; b = this.a + 1; }} return new C().b; }})()"),
        "202",
    );
    is(
        &format!("class C {{ #a = 1; b = {sum} + this.#a; static c = 1; }}"),
        "new C().b + C.c",
        "203",
    );
}

/// Runs code that returns an object with as many prototypes as it can get, and counts them.
#[track_caller]
fn has_few_prototypes(code: &str) {
    let count = "const count = (a) => { let n = 0; while ((a = Object.getPrototypeOf(a)) !== null && n < 1000) n++; return n; };";
    let expression =
        format!("String(count((() => {{ let last = {{}}; {code}; return last; }})()))");
    let found = shown(count, &expression).map(|outputs| markup(&outputs));
    // Whether the code fails or goes on without the object is the same here.
    if let Ok(found) = &found
        && let Ok(count) = found.parse::<u32>()
    {
        assert!(count <= PROTOTYPES_MAX + 2, "{code}: {count}");
        return;
    }
    let said = format!("{found:?}");
    let reasons = ["prototype", "constructor", "not available", "proxies"];
    assert!(
        reasons.iter().any(|reason| said.contains(reason)),
        "{code}: {said}"
    );
}

#[test]
fn objects_have_few_prototypes() {
    let again = |code: &str| {
        has_few_prototypes(&format!("for (let i = 0; i < 500; i++) {{ {code} }}"));
        has_few_prototypes(&format!(
            "for (let i = 0; i < 500; i++) {{ try {{ {code} }} catch {{}} }}"
        ));
    };
    for code in [
        "last = Object.create(last)",
        "last = { __proto__: last }",
        "last = { '__proto__': last }",
        "last = (<a __proto__={last}/>).props",
        "const a = {}; Object.setPrototypeOf(a, last); last = a",
        "const a = {}; Object.setPrototypeOf(last, a); last = a",
        "const a = {}; Reflect.setPrototypeOf(a, last); last = a",
        "const a = {}; a.__proto__ = last; last = a",
        "const a = {}; a['__proto__'] = last; last = a",
        "const a = {}; Object.prototype.__lookupSetter__('__proto__').call(a, last); last = a",
        "last = Object.assign({}, { ['__proto__']: last })",
        "const { proxy } = Proxy.revocable({}, { getPrototypeOf: () => last }); last = Object.create(proxy)",
        "last = new Proxy(last, {})",
        "last = Object.create(new Proxy(last, {}))",
        "function F() {} F.prototype = last; last = new F()",
        "const F = function () {}; F.prototype = last; last = new F()",
        "function F() { last = this } F.prototype = last; new F()",
        "function F(a = (last = this)) {} F.prototype = last; new F()",
        "function F(a = (() => { last = this })()) {} F.prototype = last; new F()",
        "function F() {} F.prototype = last; const B = F.bind(null); last = new B()",
        "function F() {} F.prototype = last; last = Reflect.construct(F, [])",
        "function F() {} F.prototype = last; last = Reflect.construct(Array, [], F)",
        "function F() {} F.prototype = last; last = Array.from.call(F, [])",
        "function F() {} F.prototype = last; last = Array.of.call(F)",
        "function F() {} F.prototype = last; const a = [1]; a.constructor = { [Symbol.species]: F }; last = a.map((b) => b)",
        "function F() {} F.prototype = last; class C extends F {} last = new C()",
        "function F() {} F.prototype = last; class C extends F { constructor() { last = super() } } new C()",
        "function F() {} F.prototype = last; last = Reflect.construct(Map, [], F)",
        "function F() {} F.prototype = last; const P = new Proxy(F, {}); last = new P()",
        "last = Reflect.construct(Map, [], new Proxy(Map, { get: (a, name) => name === 'prototype' ? last : a[name] }))",
        "const P = new Proxy(Map, { get: (a, name) => name === 'prototype' ? last : a[name] }); last = new P()",
        "const B = (() => {}).bind(); Object.defineProperty(B, 'prototype', { get: () => last }); last = Reflect.construct(Map, [], B)",
        "Date.prototype = last; last = new Date(0)",
        "Proxy.prototype = last; last = Reflect.construct(Object, [], Proxy)",
        "Intl.NumberFormat.prototype = last; last = Reflect.construct(Object, [], Intl.NumberFormat)",
        "Iterator.prototype.map.prototype = last; last = [1].values().map((a) => a)",
        "Date.prototype.toString.prototype = last; last = new Date.prototype.toString()",
        "const P = Promise; function F(run) { run(() => {}, () => {}) } F.prototype = last; last = Reflect.construct(P, [() => {}], F)",
        "last = structuredClone({ ['__proto__']: last })",
    ] {
        again(code);
    }
    for code in [
        "let C = class {}; for (let i = 0; i < 500; i++) { const B = C; C = class extends B {} } last = C",
        "let C = class {}; for (let i = 0; i < 500; i++) { try { const B = C; C = class extends B {} } catch {} } last = new C()",
        "let C = class {}; for (let i = 0; i < 500; i++) { const B = C; class D extends B {} C = D } last = new C()",
        "let C = class { constructor() { last = this } }; for (let i = 0; i < 500; i++) { const B = C; C = class extends B {} } new C()",
        "let C = Array; for (let i = 0; i < 500; i++) { const B = C; C = class extends B {} } last = new C()",
    ] {
        has_few_prototypes(code);
    }
}

#[test]
fn no_function_of_the_environment_takes_another_prototype() {
    let walk = "
        const seen = new Set([globalThis]), open = [];
        for (const a of seen) {
            for (const name of Reflect.ownKeys(a)) {
                const of = Object.getOwnPropertyDescriptor(a, name);
                if (typeof a === 'function' && name === 'prototype' && of.writable) {
                    try { Reflect.construct(Object, [], a) } catch { continue }
                    open.push(a.name);
                }
                for (const b of [of.value, of.get, of.set]) {
                    if (typeof b === 'object' && b !== null || typeof b === 'function') seen.add(b);
                }
            }
            const prototype = Object.getPrototypeOf(a);
            if (prototype !== null) seen.add(prototype);
        }
        return seen.size > 500 ? open.join() : 'few ' + seen.size;
    ";
    is("", &format!("(() => {{ {walk} }})() || 'none'"), "none");
}

#[test]
fn a_page_cannot_change_what_counts_its_work() {
    for code in [
        "_wp$.w = () => {}",
        "(() => { let _wp$ = {}; })()",
        "<_wp$.F/>",
    ] {
        let broken = compile::expression(code).unwrap_err();
        assert!(broken.message.contains("reserved"), "{code}: {broken:?}");
    }
    is("", "String(globalThis['_wp$'])", "undefined");
    let much = "const s = 'x'.repeat(1e7); for (;;) s.toUpperCase();";
    for code in [
        "const [counts] = arguments; try { counts.w = () => {}; } catch {}",
        "const [counts] = arguments; counts.w(-1e15);",
        "const [counts] = arguments; try { counts.w(NaN); } catch {}",
    ] {
        cost_too_much("", &[&format!("(() => {{ {code} {much} }})()")]);
    }
}

#[test]
fn classes_and_prototypes_of_usual_code_work() {
    is(
        "class A { constructor(a) { this.a = a; } get b() { return this.a + 1; } static c() { return new this(5).b; } }
         class B extends A { constructor() { super(1); this.d = super.b; } }
         function Old(name) { this.name = name; } Old.prototype.hello = function () { return 'hello ' + this.name; };
         class Wrong extends Error { constructor(m) { super(m); Object.setPrototypeOf(this, new.target.prototype); } }
         class Words extends Map { constructor() { super(); this.set('a', 1); } }
         const plain = Object.create(null); plain.a = 1;
         const inherits = Object.create({ a: 2 });
         const literal = { __proto__: { a: 3 } };",
        "[A.c(), new B().d, new Old('you').hello(), new Wrong('no').message, new Wrong('no') instanceof Wrong, new Words().size, plain.a, inherits.a, literal.a, Reflect.construct(Array, [3], Words) instanceof Words].join()",
        "6,2,hello you,no,true,1,1,2,3,true",
    );
    // The engine reads `new new A()()` in its own way.
    is(
        "const inner = () => ({ B: class { constructor(a) { this.a = a; } } }); class A { constructor() { return inner().B; } } class C { constructor() { this.B = inner().B; } }",
        "new (new A())(1).a + new (new C().B)(2).a + new new A()(3).a",
        "6",
    );
    is(
        "",
        "Object.getPrototypeOf(Object.setPrototypeOf({}, null)) === null ? 'null' : ''",
        "null",
    );
    let found = shown("", "Object.setPrototypeOf({}, { a: 1 }).a").unwrap();
    assert!(
        markup(&found).contains("cannot be changed here after it is made"),
        "{found:?}"
    );
    let broken = compile::expression("(function* () {})").unwrap_err();
    assert!(broken.message.contains("generators"), "{broken:?}");
}

#[test]
fn an_error_that_is_thrown_does_not_say_where() {
    let lines = "(() => { try { Error.stackTraceLimit = 10; null.x; } catch (e) { return String(e.stack ?? '').trim() || 'nowhere'; } })()";
    is("", lines, "nowhere");
}

#[test]
fn proxies_stand_for_few_others() {
    let twice = "(() => { let p = { x: 1 }; for (let i = 0; i < 60; i++) p = new Proxy(p, p); return p.x; })()";
    cost_too_much("", &[twice]);
    // The handler of each one is the one before.
    let handler = "(() => { let p = {}; for (let i = 0; i < 60; i++) p = new Proxy({ x: 1 }, p); return String(p.x); })()";
    is("", handler, "1");
    is(
        "const seen = []; const p = new Proxy({ a: 1 }, { get(target, name, self) { seen.push(name); return Reflect.get(target, name, self); }, has: () => true });",
        "[p.a, 'b' in p, seen.join()].join()",
        "1,true,a",
    );
}

#[test]
fn a_page_is_evaluated_alike_each_time() {
    let module = "const f = n => n < 2 ? n : f(n - 1) + f(n - 2);
        let count = 0; const all = [];
        try { (function deep() { count++; deep(); })(); } catch {}
        for (const key in { b: 1, a: 2, 1: 3 }) all.push(key);";
    let first = shown(
        module,
        "[f(15), ' ', all.join(), ' ', new Set([3, 1, 2]).size]",
    );
    for _ in 0..3 {
        let again = shown(
            module,
            "[f(15), ' ', all.join(), ' ', new Set([3, 1, 2]).size]",
        );
        assert_eq!(again, first);
    }
    assert_eq!(
        first.map(|outputs| markup(&outputs)),
        Ok("610 1,b,a 3".to_owned())
    );
}

#[test]
fn an_engine_can_be_called_on_any_stack() {
    // Each call may come from another place of the stack, or from another stack.
    fn call(engine: &mut Engine, deep: usize) -> String {
        let room = [deep; 2048];
        if room[deep] > 0 {
            return call(engine, deep - 1);
        }
        let code = "(function () { const f = n => (n === 0 ? 0 : 1 + f(n - 1)); return f(500); })";
        match engine.nodes("", code) {
            Ok(shown) => markup(&shown.result),
            Err(failed) => failed.to_string(),
        }
    }
    let mut engine = Engine::start(["Card"].into_iter()).unwrap();
    for deep in [0, 20, 3, 40, 0] {
        assert_eq!(call(&mut engine, deep), "500", "{deep}");
        let on_another = stacker::grow(8 << 20, || call(&mut engine, deep));
        assert_eq!(on_another, "500", "{deep}");
    }
}

/// Evaluates a list of functions with a built-in function that does much work for few steps.
#[track_caller]
fn cost_too_much(values: &str, expressions: &[&str]) {
    for expression in expressions {
        let found = shown(values, &format!("String(({expression}))"));
        let is_refused = match &found {
            Err(_failed) => true,
            Ok(outputs) => matches!(&outputs[..], [Output::Failed(_)]),
        };
        assert!(is_refused, "{expression}: {found:?}");
    }
}

#[test]
fn searching_a_long_text_costs_the_product_of_both_lengths() {
    cost_too_much(
        "const text = 'a'.repeat(8e6), other = 'a'.repeat(4e6) + 'b';",
        &[
            "text.indexOf(other)",
            "text.lastIndexOf(other)",
            "text.includes(other)",
            "text.replace(other, '')",
            "text.replaceAll(other, '')",
            "text.split(other).length",
            "text.indexOf({ toString: () => other })",
            "text.split({ toString: () => other }).length",
            "String.prototype.includes.call({ length: 0, toString: () => text }, other)",
            "(() => { let n = 0; return text.replace({ get [Symbol.replace]() { return n++ ? null : (Array.prototype[Symbol.iterator] = null); }, toString: () => other }, ''); })()",
        ],
    );
    is("", "'a-b-a'.replaceAll('a', m => m + 1)", "a1-b-a1");
    is("", "'a1b22'.split(/[0-9]+/).join('|')", "a|b|");
    is(
        "",
        "'xyz'.repeat(1000).indexOf('zz') + 'abc'.lastIndexOf('c', -1)",
        "-2",
    );
}

#[test]
fn a_length_that_changes_while_it_is_read_costs_nothing_more() {
    let lying = "const lying = more => { let n = 0; return { get length() { return n++ ? 2 ** 53 - 1 : 0; }, ...more }; };
        const long = () => { const a = []; a.length = 4e9; return a; };";
    // Nothing is left to do: the first length is 0.
    for name in [
        "indexOf",
        "lastIndexOf",
        "includes",
        "join",
        "slice",
        "toSpliced",
        "toReversed",
        "flat",
        "at",
    ] {
        is(
            lying,
            &format!("'' + Array.prototype.{name}.call(lying(), 1)").replace("'' +", "typeof "),
            match name {
                "indexOf" | "lastIndexOf" => "number",
                "includes" => "boolean",
                "join" => "string",
                "at" => "undefined",
                _ => "object",
            },
        );
    }
    is(
        lying,
        "[1].concat(lying({ [Symbol.isConcatSpreadable]: true })).length",
        "1",
    );
    cost_too_much(
        lying,
        &[
            "Array.prototype.reverse.call(lying())",
            "Array.prototype.splice.call(lying(), 0, 1)",
            "Array.prototype.shift.call(lying())",
            "Array.prototype.unshift.call(lying(), 1)",
            "Array.prototype.copyWithin.call(lying(), 1, 0)",
            "Array.prototype.sort.call(lying())",
            "Array.prototype.fill.call(lying(), 1)",
            "Array.prototype.reverse.call(new Proxy([], { get: (() => { let n = 0; return (t, k) => (k === 'length' ? (n++ ? 2 ** 53 - 1 : 0) : t[k]); })() }))",
            "(() => { const a = [1], b = []; Object.defineProperty(a, 0, { get() { b.length = 4e9; } }); return a.concat(b); })()",
            "(() => { const a = [1]; a[Symbol.isConcatSpreadable] = true; Object.defineProperty(a, Symbol.isConcatSpreadable, { get() { a.length = 4e9; return true; } }); return [].concat(a); })()",
            "[1].flatMap(long)",
            "[long()].flat()",
        ],
    );
}

#[test]
fn parts_that_are_shared_are_counted_each_time() {
    let shared =
        "const list = n => { let a = []; for (let i = 0; i < n; i++) a = [a, a]; return a; };
        const object = n => { let a = {}; for (let i = 0; i < n; i++) a = { a, b: a }; return a; };
        const items = n => Array.from({ length: n }, (_, i) => 'k' + i);";
    cost_too_much(
        shared,
        &[
            "list(40).flat(Infinity).length",
            "list(40).flatMap(x => x.flat(50)).length",
            "list(40).join()",
            "list(40).toLocaleString()",
            "JSON.stringify(list(40)).length",
            "JSON.stringify(object(22)).length",
            "JSON.stringify(object(40), ['a', 'b']).length",
            "JSON.stringify(object(40), (k, v) => v).length",
            "JSON.stringify(object(40), (k, v) => v, 9).length",
            "JSON.stringify({ get a() { return object(40); } }).length",
            "JSON.stringify({ toJSON: () => object(40) }).length",
            "JSON.stringify((() => { let a = 1; for (let i = 0; i < 2000; i++) a = [a]; return a; })())",
            "(() => { const a = items(1e5); for (let n = 0; n < 1e4; n++) JSON.stringify({}, a); })()",
            "Object.keys(new Proxy({}, { ownKeys: () => items(1e5) })).length",
        ],
    );
    // The page cannot change how its result is written.
    is(
        &format!("{shared} try {{ Array.prototype.toJSON = () => object(40); }} catch {{}}"),
        "1",
        "1",
    );
}

#[test]
fn functions_that_read_an_iterator_count_each_value() {
    let endless =
        "const long = () => { const a = []; const i = a.values(); a.length = 4e9; return i; };
        const wide = new Array(5e5).fill({});
        const marks = '\\u0301\\u0316'.repeat(1e6);";
    cost_too_much(
        endless,
        &[
            "long().drop(4e9).next().value",
            "long().every(x => !x)",
            "long().reduce((a, b) => a)",
            "new Set([1]).union({ size: 1, has: () => true, keys: long }).size",
            "new Set([undefined]).isSupersetOf({ size: 1, has: () => true, keys: long })",
            "Map.groupBy(long(), Boolean).size",
            "Object.groupBy(long(), Boolean)",
            "(() => { for (let n = 0; n < 1e4; n++) new WeakSet(wide); })()",
            "(() => { const a = new Array(5e5).fill(''); for (let n = 0; n < 1e4; n++) String.raw({ raw: a }); })()",
            "(() => { const a = new Array(6e4).fill(1); for (let n = 0; n < 1e6; n++) Boolean.apply(null, a); })()",
            "(() => { const f = Boolean.bind(null, ...new Array(6e4).fill(1)); for (let n = 0; n < 1e6; n++) f(); })()",
            "('a' + marks).normalize('NFD').length",
            "(() => { for (let n = 0; n < 1e6; n++) (1.234e-300).toString(3); })()",
            "(() => { const s = 'ab'.repeat(4e6); for (let n = 0; n < 1e4; n++) s.toUpperCase(); })()",
        ],
    );
    is(
        "",
        "[1, 2, 3].values().drop(1).map(n => n * 2).toArray().join()",
        "4,6",
    );
    is(
        "",
        "[...new Set([1, 2]).union(new Set([2, 3]))].join()",
        "1,2,3",
    );
    is(
        "",
        "JSON.stringify(Object.groupBy([1, 2, 3], n => (n % 2 ? 'odd' : 'even')))",
        "{\"odd\":[1,3],\"even\":[2]}",
    );
    is(
        "",
        "Math.max.apply(null, [1, 3]) + Math.max.bind(null, 7)(3)",
        "10",
    );
}

#[test]
fn an_object_that_becomes_a_long_text_is_counted_as_the_text() {
    cost_too_much(
        "const digits = '1'.repeat(1e7), object = { toString: () => digits }, all = {};
        const often = call => { for (let n = 0; n < 1e6; n++) call(n); };",
        &[
            "often(() => +object)",
            "often(n => n - object)",
            "often(() => all[object])",
            "often(() => object in all)",
            "often(() => parseInt(object))",
            "often(() => Number(object))",
            "often(() => Math.max(object))",
            "often(() => JSON.parse(object))",
            "often(() => Symbol.for(object))",
            "often(() => encodeURIComponent(object))",
            "often(() => class { [digits]() {} })",
        ],
    );
    is(
        "const a = { valueOf: () => 3, toString: () => 'k' }, b = { k: 'x', 1: 'y', 0: 'z' }, day = new Date(5);",
        "[a - 1, -a, b[a], a in b, b[day - 4], b[a - 3], Number(a), Math.max(a, 2), isNaN(day), [] * 1].join()",
        "2,-3,x,true,y,z,3,3,false,0",
    );
}

#[test]
fn built_in_functions_have_their_usual_results() {
    for (code, expected) in [
        (
            "[3, 1, 10, 'b', undefined, 'a'].sort().join()",
            "1,10,3,a,b,",
        ),
        (
            "[3, 1, 10].toSorted().join() + [3, 1].sort((a, b) => a - b)",
            "1,10,31,3",
        ),
        ("[1, [2, [3, [4]]]].flat(2).length", "4"),
        ("[1, 2].flatMap(x => [x, [x]]).length", "4"),
        ("[1].concat(2, [3, [4]], 'ab').length", "5"),
        (
            "Array.prototype.map.call('abc', x => x + 1).join('')",
            "a1b1c1",
        ),
        (
            "(function () { return Array.prototype.slice.call(arguments, 1); })(1, 2, 3).join()",
            "2,3",
        ),
        (
            "JSON.stringify({ a: { b: 1, c: 2 }, b: [3] }, ['a', 'b'], 1).length",
            "39",
        ),
        (
            "JSON.stringify([new Date(0), undefined, () => 1, 'x'])",
            "[\"1970-01-01T00:00:00.000Z\",null,null,\"x\"]",
        ),
        (
            "JSON.stringify(Object.fromEntries(new Map([['a', 1]])))",
            "{\"a\":1}",
        ),
        ("new Proxy([1, 2], {}).map(x => x * 2).join()", "2,4"),
        ("Object.keys(new Proxy({ a: 1 }, {})).join()", "a"),
        ("String.raw`a${1}\\n`", "a1\\n"),
        (
            "'aXbX'.replace(/X/g, '$&$&') + 'a,b'.split(',', 1)",
            "aXXbXXa",
        ),
    ] {
        is("", code, expected);
    }
}
