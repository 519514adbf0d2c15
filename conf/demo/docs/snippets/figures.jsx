import figures from "/snippets/figures.json";

// The figures of `make bench`, from `figures.json`. README.md is compared with that file by a test.

export const requests = figures.requests;

/** A number of requests, such as 198,000. */
export const perSecond = (row) => String(row.perSecond).replace(/\B(?=(\d{3})+$)/g, ",");

/** A ratio to nginx, always with two digits. */
export const ratio = (number) => number.toFixed(2);

/** A ratio in a cell of a table; one below 1 is bold. */
export const Ratio = ({ of }) => (of < 1 ? <strong>{ratio(of)}</strong> : ratio(of));

/** The row of a table whose subject begins with these words. */
export const request = (words) => figures.requests.find((row) => row.what.startsWith(words));

/** The figure with this id. */
export const cost = (id) => figures.costs.find((row) => row.id === id).figure;

/** The same with what belongs to it. */
export const sentence = (id) => {
  const row = figures.costs.find((row) => row.id === id);
  return `${row.figure}${row.more ?? ""}`;
};

/** Text between backticks as code. */
export const Words = ({ text }) => text.split("`").map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part));

/** All rows of requests per second. */
export const Requests = () => (
  <table>
    <thead>
      <tr><th>What</th><th align="right">Waypost, requests/s</th><th align="right">compared with nginx</th><th align="right">processor time</th></tr>
    </thead>
    <tbody>
      {figures.requests.map((row) => (
        <tr key={row.what}>
          <td><Words text={row.what} /></td>
          <td align="right">{perSecond(row)}</td>
          <td align="right"><Ratio of={row.ratio} /></td>
          <td align="right"><Ratio of={row.processor} /></td>
        </tr>
      ))}
    </tbody>
  </table>
);

/** All figures of memory and time. */
export const Costs = () => (
  <table>
    <thead><tr><th>What</th><th>Figure</th><th>Command</th></tr></thead>
    <tbody>
      {figures.costs.map((row) => (
        <tr key={row.id}>
          <td><Words text={row.what} /></td>
          <td>{row.figure}{row.more}</td>
          <td><Words text={row.command} /></td>
        </tr>
      ))}
    </tbody>
  </table>
);
