// Components of our own: what pages do with JSX. The test renders each example here with
// react-dom/server and with the engine of the build; both must show the same.
import {
  Children, Fragment, cloneElement, createContext, createElement, forwardRef, isValidElement, memo,
  useCallback, useContext, useId, useMemo, useReducer, useRef, useState,
} from "react";
import * as React from "react";

const plans = [
  { name: "Free", price: 0, tags: [] },
  { name: "Pro", price: 12.5, tags: ["popular", "new"] },
  { name: "Team", price: 40, tags: ["new"] },
];
const Theme = createContext("light");
const Level = createContext(1);

const Text = ({ children }) => <p className="text">{children}</p>;
const Named = ({ name: title = "none", ...rest }) => <b {...rest}>{title}</b>;
const Plan = ({ plan: { name, price, tags }, index }) => (
  <li className={index % 2 ? "odd" : "even"}>
    <strong>{name}</strong> {price === 0 ? "free" : `$${price.toFixed(2)}`}
    {tags.length > 0 && <ul>{tags.map((tag) => <li key={tag}>{tag}</li>)}</ul>}
  </li>
);
function Counter({ start = 0, children }) {
  const [count, setCount] = useState(() => start * 2);
  const [state, dispatch] = useReducer((state, action) => state + action, 5, (n) => n + 1);
  const ref = useRef(null);
  const double = useMemo(() => count * 2, [count]);
  const add = useCallback(() => setCount((n) => n + 1), []);
  return <button onClick={add} ref={ref}>{count}/{double}/{state}/{typeof dispatch}{children}</button>;
}
const Derived = ({ value }) => {
  const [seen, setSeen] = useState(null);
  if (seen !== value) setSeen(value);
  return <i>{seen}</i>;
};
const Section = ({ title, children }) => {
  const level = useContext(Level);
  return (
    <section>
      {createElement(`h${level + 1}`, null, title)}
      <Level.Provider value={level + 1}>{children}</Level.Provider>
    </section>
  );
};
const Tabs = ({ children }) => (
  <div>
    <nav>{Children.map(children, (tab, at) => tab && <a href={`#${at}`}>{tab.props.title}</a>)}</nav>
    {Children.toArray(children).filter(isValidElement).map((tab, at) => cloneElement(tab, { at }))}
  </div>
);
const Tab = ({ title, at, children }) => <div title={title} id={`tab-${at}`}>{children}</div>;
const Memo = memo(function Inner({ a }) { return <em>{a}</em>; });
const Forward = forwardRef(({ label, ...rest }, ref) => <a ref={ref} {...rest}>{label}</a>);
class Old extends React.Component {
  constructor(props) { super(props); this.state = { on: true }; }
  render() { return <s>{this.state.on ? this.props.on : "off"}</s>; }
}
Named.defaultTitle = "static";
const Render = ({ render, of }) => <ul>{of.map((one, at) => <Fragment key={at}>{render(one, at)}</Fragment>)}</ul>;
const Recursive = ({ n }) => (n === 0 ? "end" : <span><Recursive n={n - 1} /></span>);
const Labelled = ({ text }) => { const id = useId(); return <label title={typeof id}>{text}</label>; };
const Pick = ({ kind }) => { switch (kind) { case "a": return <b>A</b>; case "b": return "B"; default: return null; } };

export const examples = {
  text: () => <Text>one {"two"} {3} {null}{undefined}{false}{true} {0} {NaN}</Text>,
  spaces: () => (
    <Text>
      a
      <b>b</b> c{" "}
      d {" e "}

      f
    </Text>
  ),
  entities: () => <Text>&lt;a&gt; &amp; &copy; &nbsp;|{"<b>&amp;"}</Text>,
  arrays: () => <Text>{["a", ["b", [1, [null, "c"]]]]}</Text>,
  fragments: () => <><Text>1</Text><Fragment key="x">2<>3</></Fragment></>,
  spread: () => <Named {...{ name: "n", id: "i" }} title="t" />,
  defaults: () => <Named id="x" />,
  list: () => <ul>{plans.map((plan, index) => <Plan key={plan.name} {...{ plan, index }} />)}</ul>,
  state: () => <Counter start={3}>!</Counter>,
  derived: () => <Derived value="v" />,
  context: () => <Theme.Provider value="dark"><Theme.Consumer>{(theme) => <i>{theme}</i>}</Theme.Consumer></Theme.Provider>,
  contextDefault: () => <Theme.Consumer>{(theme) => theme}</Theme.Consumer>,
  nested: () => <Section title="a"><Section title="b"><Section title="c">x</Section></Section><Section title="d" /></Section>,
  tabs: () => <Tabs><Tab title="A">a</Tab>{null}<Tab title="B">b</Tab>{[<Tab key="c" title="C">c</Tab>]}</Tabs>,
  memo: () => <Memo a={<b>x</b>} />,
  forward: () => <Forward label="L" href="/x" />,
  classes: () => <Old on="yes" />,
  statics: () => Named.defaultTitle,
  render: () => <Render of={[3, 4]} render={(n, at) => <li>{n * at}</li>} />,
  recursion: () => <Recursive n={20} />,
  ids: () => <Labelled text="x" />,
  pick: () => <>{["a", "b", "c"].map((kind) => <Pick key={kind} kind={kind} />)}</>,
  count: () => <Text>{Children.count([1, null, <b key="b" />])} {Children.toArray([1, null, ["x"]]).length}</Text>,
  only: () => Children.only(<b>one</b>),
  valid: () => `${isValidElement(<a />)} ${isValidElement("a")} ${isValidElement({})}`,
  logic: () => <Text>{0 && "no"}{"" || "or"}{null ?? "nullish"}{!!1 && <i>and</i>}</Text>,
  template: () => `${plans.length} plans: ${plans.map(({ name }) => name).join(", ")}`,
  objects: () => Object.entries({ b: 1, a: 2, 1: 3 }).map(([key, value]) => <i key={key}>{key}{value}</i>),
  sorted: () => [...plans].sort((one, other) => other.price - one.price).map((plan) => plan.name + " "),
  reduced: () => plans.reduce((sum, plan) => sum + plan.price, 0),
  sets: () => [...new Set(plans.flatMap((plan) => plan.tags))].join(),
  regular: () => "a-b_c".replace(/[-_](\w)/g, (_, letter) => letter.toUpperCase()),
  attributes: () => <a className="c" href="/x?a=1&b=2" title={'"quoted" <x>'} tabIndex={3}>{"'"}</a>,
  numbers: () => [0.1 + 0.2, 1e21, -0, 5e-7, 0xff].map((n) => <i key={n}>{n}</i>),
  created: () => createElement("p", { className: "x" }, "a", createElement("b", null, 1)),
  cloned: () => cloneElement(<p className="a">old</p>, { className: "b" }, "new"),
  namespace: () => <React.Fragment><Named name="ns" /></React.Fragment>,
  thrown: () => { try { null.x; } catch (error) { return error instanceof TypeError ? "caught" : "no"; } },
  labels: () => { outer: for (const a of [1, 2]) { for (const b of [1, 2]) { if (b === 2) continue outer; if (a === 2) break outer; } } return "done"; },
  optional: () => <Text>{plans[9]?.name}{plans.at(-1)?.tags?.[0]}</Text>,
  destructured: () => { const [{ name }, , { tags: [tag] }] = plans; return name + tag; },
  dates: () => new Date(Date.UTC(2024, 1, 29)).toISOString(),
  json: () => JSON.stringify({ a: [1, { b: null }], c: undefined }),
  padded: () => "7".padStart(3, "0") + "ab".repeat(2),
};
