// The page for what is not there: pages whose path or title is near what was asked for.
parts.push(async () => {
  const place = document.getElementById("suggestions");
  if (!place) return;
  // Two texts are as near as the share of their pairs of letters that they have in common:
  // that finds a word misspelt as well as one in another order.
  const pairs = (text) => {
    const letters = fold(text).replace(/[^\p{L}\p{N}]+/gu, " ").trim();
    return new Set([...letters].slice(1).map((letter, n) => letters[n] + letter));
  };
  const near = (one, other) => {
    const common = [...one].filter((pair) => other.has(pair)).length;
    return 2 * common / (one.size + other.size || 1);
  };
  const path = decodeURIComponent(location.pathname);
  const asked = pairs(path);
  const last = pairs(path.split("/").filter(Boolean).pop() ?? "");
  const found = (await load())
    .map(([path, title, where]) => ({
      path, title, where,
      score: Math.max(near(asked, pairs(path)), near(last, pairs(title)), near(last, pairs(path.split("/").pop()))),
    }))
    .filter(({ score }) => score > 0.4)
    .sort((one, other) => other.score - one.score)
    .slice(0, 5);
  if (!found.length) return;
  const list = make("ul", {});
  found.forEach((page) => list.append(item(page, "")));
  place.append(make("p", {}, words().near), list);
});
