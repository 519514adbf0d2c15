// Packs the icons of Font Awesome Free and Lucide into `icons.br`.
//
//   npm pack @fortawesome/fontawesome-free@7.3.1 lucide-static@1.62.0   (unpacked side by side)
//   node pack.mjs <font awesome directory> <lucide directory>
//
// One icon a line: library, name, other names, width, height and the path, tabs between.
// The circles, rectangles and lines of Lucide become a path like all others, so
// that an icon is one attribute and nothing else of these files can reach a page.

import fs from "node:fs";
import path from "node:path";
import zlib from "node:zlib";

const [awesome, lucide] = process.argv.slice(2);
const lines = [];
const add = (library, name, others, width, height, d) =>
  lines.push([library, name, [...new Set(others)].filter((other) => other !== name).join(" "), width, height, d].join("\t"));

const families = JSON.parse(fs.readFileSync(path.join(awesome, "metadata/icon-families.json")));
for (const [name, icon] of Object.entries(families)) {
  for (const { family, style } of icon.familyStylesByLicense.free) {
    if (family !== "classic") continue;
    const { width, height, path: d } = icon.svgs.classic[style];
    add(style, name, icon.aliases?.names ?? [], width, height, d);
  }
}

// SVG 2 §10 gives each basic shape its equivalent path.
const number = (value) => Number(value ?? 0);
const ring = (cx, cy, rx, ry) => `M${cx - rx} ${cy}a${rx} ${ry} 0 1 0 ${2 * rx} 0a${rx} ${ry} 0 1 0 ${-2 * rx} 0z`;
const points = (text) => "M" + text.trim().split(/[\s,]+/).join(" ");
const shapes = {
  path: ({ d }) => d,
  circle: ({ cx, cy, r }) => ring(number(cx), number(cy), number(r), number(r)),
  ellipse: ({ cx, cy, rx, ry }) => ring(number(cx), number(cy), number(rx), number(ry)),
  line: ({ x1, y1, x2, y2 }) => `M${x1} ${y1}L${x2} ${y2}`,
  polyline: (shape) => points(shape.points),
  polygon: (shape) => `${points(shape.points)}z`,
  rect: (shape) => {
    const [x, y, w, h] = [shape.x, shape.y, shape.width, shape.height].map(number);
    const rx = number(shape.rx ?? shape.ry);
    const ry = number(shape.ry ?? shape.rx);
    if (!rx) return `M${x} ${y}h${w}v${h}h${-w}z`;
    const arc = (dx, dy) => `a${rx} ${ry} 0 0 1 ${dx} ${dy}`;
    return `M${x + rx} ${y}h${w - 2 * rx}${arc(rx, ry)}v${h - 2 * ry}${arc(-rx, ry)}h${2 * rx - w}${arc(-rx, -ry)}v${2 * ry - h}${arc(rx, -ry)}z`;
  },
};

// A file whose drawing is that of another icon is an older name of it.
const nodes = JSON.parse(fs.readFileSync(path.join(lucide, "icon-nodes.json")));
const drawing = (name) =>
  fs.readFileSync(path.join(lucide, "icons", `${name}.svg`), "utf8").replace(/class="[^"]*"/, "");
const names = new Map(Object.keys(nodes).map((name) => [drawing(name), name]));
const others = {};
for (const file of fs.readdirSync(path.join(lucide, "icons"))) {
  const name = file.replace(/\.svg$/, "");
  const real = names.get(drawing(name));
  if (real && real !== name) (others[real] ??= []).push(name);
}
for (const [name, parts] of Object.entries(nodes)) {
  const d = parts.map(([shape, attributes]) => shapes[shape](attributes)).join("");
  add("lucide", name, others[name] ?? [], 24, 24, d.replace(/\s+/g, " "));
}

const strange = lines.find((line) => !/^[a-z]+\t[a-z0-9-]+\t[a-z0-9 -]*\t\d+\t\d+\t[MmLlHhVvCcSsQqTtAaZz0-9eE ,.+-]+$/.test(line));
if (strange) throw new Error(`not an icon: ${strange}`);
const text = Buffer.from(lines.sort().join("\n"));
const packed = zlib.brotliCompressSync(text, {
  params: { [zlib.constants.BROTLI_PARAM_LGWIN]: 24, [zlib.constants.BROTLI_PARAM_SIZE_HINT]: text.length },
});
fs.writeFileSync("icons.br", packed);
console.log(`${lines.length} icons, ${text.length} bytes, ${packed.length} packed`);
