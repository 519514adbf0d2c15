// The page for what is not there: pages whose path or title is near what was asked for.
parts.push(async () => {
  const place = document.getElementById("suggestions");
  if (!place) return;
  const asked = fold(decodeURIComponent(location.pathname.split("/").filter(Boolean).pop() ?? ""))
    .replace(/[-_.]/g, " ");
  const all = await load();
  const typed = asked.split(/\s+/).filter((word) => word.length > 2);
  const near = all
    .map((page) => ({ page, hits: typed.filter((word) => fold(`${page[0]} ${page[1]}`).includes(word)).length }))
    .filter(({ hits }) => hits)
    .sort((one, other) => other.hits - one.hits)
    .slice(0, 5);
  if (!near.length) return;
  const list = make("ul", {});
  near.forEach(({ page: [path, title, where] }) => list.append(item({ path, title, where }, "")));
  place.append(make("p", {}, words().near), list);
});
