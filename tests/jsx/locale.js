// Numbers, dates and orders of texts as they are written for readers: each group returns lines of
// the form `expression = result`, with `!` for one that throws.

const line = (label, make) => {
  let result;
  try {
    result = String(make());
  } catch {
    result = "!";
  }
  return label + " = " + result;
};

// All objects that take one value of each list.
const all = (lists) => {
  let found = [{}];
  for (const list of lists) {
    found = found.flatMap((one) => list.map((more) => ({ ...one, ...more })));
  }
  return found;
};

const each = (key, ...values) => [{}, ...values.map((value) => ({ [key]: value }))];

const numbers = [
  0, -0, 1, -1, 5, 12, 123, 999, 1000, 1234.5, -1234.567, 0.5, 0.05, 0.005, 0.256, 1.005, 2.5, 1.45, 0.1 + 0.2, 99.5,
  99.95, 999.5, 999.95, 9.95, 9.96, 9999, 99999, 123456, 999999, 1e6, 1234567.891, 1.5e9, 1e12, 1e15,
  123456789012345680, 1e20, 1e21, 1e-7, NaN, Infinity, -Infinity, 1050, 10500, 0.00012, 1000.5,
];

const forms = [
  ...all([each("minimumFractionDigits", 0, 2, 4), each("maximumFractionDigits", 0, 1, 2, 30, "2"), each("notation", "compact", "standard", "scientific")]),
  ...all([[{ style: "percent" }], each("minimumFractionDigits", 2), each("maximumFractionDigits", 1)]),
  ...all([
    [..."USD EUR JPY INR CNY CHF usd".split(" ").map((currency) => ({ style: "currency", currency })), { style: "currency" }],
    each("minimumFractionDigits", 0), each("maximumFractionDigits", 0), each("notation", "compact"),
  ]),
  ...each("useGrouping", true, false, "min2", "always", "auto"),
  ...each("minimumIntegerDigits", 3, 22),
  { notation: "compact", compactDisplay: "long" }, { style: "unit", unit: "kilobyte" }, { signDisplay: "always" },
  { maximumSignificantDigits: 3 }, { style: "currency", currency: "USD", currencyDisplay: "code" },
];

const dates = [
  Date.UTC(2024, 2, 5, 13, 4, 9), Date.UTC(2024, 11, 31), Date.UTC(2024, 0, 1, 12, 30), Date.UTC(999, 0, 2),
  Date.UTC(12024, 4, 6, 5, 6, 7), -1e14, 0, NaN,
];

const days = all([
  each("year", "numeric", "2-digit"), each("month", "numeric", "2-digit", "short", "long", "narrow"),
  each("day", "numeric", "2-digit"), each("weekday", "short", "long", "narrow"),
]);
const times = [
  {}, { hour: "numeric" }, { hour: "2-digit", minute: "2-digit" }, { hour: "numeric", minute: "numeric", second: "2-digit" },
  { minute: "2-digit", second: "2-digit" }, { hour: "numeric", hour12: false }, { hour: "numeric", hour12: true },
];
const styles = all([
  each("dateStyle", "full", "long", "medium", "short"), each("timeStyle", "full", "long", "medium", "short"),
]);
const others = [
  { timeZone: "UTC" }, { timeZone: "America/New_York" }, { timeZoneName: "short" }, { era: "short" },
  { dayPeriod: "short" }, { fractionalSecondDigits: 3 }, { calendar: "buddhist" }, { dateStyle: "short", year: "numeric" },
];

const texts = [
  "2024-03-05", "2024-03", "2024", "2024-03-05T10:00", "2024-03-05T10:00:30.5", "2024-03-05T10:00Z",
  "2024-03-05T10:00+02:00", "2024-03-05 10:00", "March 5, 2024", "Mar 5, 2024 10:00", "5 March 2024", "3/5/2024",
  "Tue, 05 Mar 2024 10:00:00 GMT", "Tue Mar 05 2024 10:00:00 GMT+0200 (CEST)", "Mar 5, 2024 10:00 EST",
  "Mar 5, 2024 10:00 PDT", "March 5, 2024 10:00 PM", "2024-03-31T02:30", "2024-11-03T01:30", "bogus", "", "2024-13-01",
];

const words =
  "a A b B z Z 1 2 10 _ - ab aB Ab a-b co-op coop v1.10 v1.9 $ # ' it's it’s its ‘x’ é è ê ë E É n ñ côté coté côte cote å ß € …".split(" ");

export const groups = {
  numbers: () =>
    numbers.flatMap((number) => forms.map((form) => line(number + JSON.stringify(form), () => number.toLocaleString("en-US", form)))),
  locales: () =>
    [undefined, "en", "en-US", "en-GB", "de-DE", ["en-US", "de"]].flatMap((locale) => [
      line("number " + locale, () => new Intl.NumberFormat(locale).format(1234.5)),
      line("call " + locale, () => [1.5, 2000].map(new Intl.NumberFormat(locale).format)),
      line("date " + locale, () => new Date(0).toLocaleDateString(locale)),
    ]),
  days: () =>
    days.flatMap((form) => dates.map((date) => line(date + JSON.stringify(form), () => new Date(date).toLocaleDateString("en-US", form)))),
  times: () =>
    all([days, times]).map((form) => line(JSON.stringify(form), () => {
      const date = new Date(dates[0]);
      return [date.toLocaleString("en-US", form), date.toLocaleTimeString("en-US", form), new Intl.DateTimeFormat("en-US", form).format(date)].join(" | ");
    })),
  styles: () =>
    [...styles, ...others].flatMap((form) => ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"].flatMap((name) =>
      dates.map((date) => line(name + date + JSON.stringify(form), () => new Date(date)[name]("en-US", form))))),
  methods: () =>
    ["toString", "toDateString", "toTimeString", "toISOString", "toUTCString", "toJSON", "getDay", "getHours", "getTimezoneOffset", "valueOf"]
      .flatMap((name) => dates.map((date) => line(name + date, () => new Date(date)[name]()))),
  texts: () => texts.map((text) => line(text, () => new Date(text).getTime())),
  values: () => [
    line("parts", () => new Date(2024, 2, 5).toISOString()),
    line("short year", () => new Date(99, 1, 1).getFullYear()),
    line("copy", () => new Date(new Date(5)).getTime()),
    line("object", () => new Date({ toString: () => "2024-03-05T10:00" }).toISOString()),
    line("null", () => new Date(null).getTime()),
    line("undefined", () => new Date(undefined).getTime()),
    line("hours", () => { const date = new Date(0); date.setHours(5); return date.toISOString(); }),
    line("year", () => { const date = new Date(0); date.setYear(99); return date.toISOString(); }),
    line("sum", () => new Date(0) + 1),
    line("difference", () => new Date(5) - 1),
  ],
  lists: () =>
    [undefined, "en-US", "de", "tr-TR", "fr"].flatMap((locale) => [
      line("numbers " + locale, () => [1234.5, [0.5, null], undefined].toLocaleString(locale)),
      line("percent " + locale, () => [0.5, 0.25].toLocaleString(locale, { style: "percent" })),
      line("dates " + locale, () => [new Date(0)].toLocaleString(locale)),
      line("lower " + locale, () => "Iİ Straße Ǆ".toLocaleLowerCase(locale)),
      line("upper " + locale, () => "iı Straße ǆ".toLocaleUpperCase(locale)),
    ]),
  words: () =>
    words.flatMap((one) => words.map((two) => line(one + " " + two, () => [
      Math.sign(one.localeCompare(two)),
      Math.sign(one.localeCompare(two, undefined, { numeric: true })),
      Math.sign(one.localeCompare(two, "en", { sensitivity: "base" })),
    ]))),
};
