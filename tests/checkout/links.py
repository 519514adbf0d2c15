"""The links of a built site, and what the check says of them."""

import collections
import json
import re
import subprocess
import urllib.parse


# What the gateway makes when it is asked.
SERVED = {"llms.txt", "llms-full.txt", "skill.md", "sitemap.xml", "robots.txt", "mcp"}


class Site:
    """The pages, files and redirects of a release."""

    def __init__(self, root, pages):
        self.root, self.pages = root, pages
        redirects = json.loads((root / "site.json").read_text())["redirects"]
        sources = {redirect["source"].strip("/") for redirect in redirects}
        self.redirects = {source for source in sources if not re.search(r"\*|(^|/):", source)}
        self.patterns = [re.compile(pattern(source)) for source in sources - self.redirects]
        self.known = {}

    def look_up(self, name, link):
        """Returns the target of a link on a page; `None` if it leads to another site."""
        try:
            url = urllib.parse.urlsplit(link)
        except ValueError:  # `http://[HOST]` of a sample
            return None
        if url.scheme or url.netloc:
            return None
        path = urllib.parse.urljoin("/" + name, urllib.parse.unquote(url.path)) if url.path else name
        anchor = urllib.parse.unquote(url.fragment)
        # Browsers handle text fragments and the top of a page.
        is_top = anchor in ("", "top") or anchor.startswith(":~:")
        return bare(path), None if is_top else anchor

    def has(self, target):
        """Tells whether a target exists."""
        if target not in self.known:
            self.known[target] = self.finds(*target)
        return self.known[target]

    def finds(self, path, anchor):
        page = self.pages.get(path or "index")
        if page is not None:
            return anchor is None or anchor in page.ids
        is_file = any((self.root / kind / path).is_file() for kind in ("assets", "static", "texts"))
        is_redirected = path in self.redirects or any(one.fullmatch(path) for one in self.patterns)
        return is_file or path in SERVED or is_redirected


def pattern(source):
    """Returns the regular expression of the paths that a redirect matches."""
    expression = ""
    for number, segment in enumerate(source.split("/")):
        slash = "/" if number else ""
        if segment == "*" or (segment.startswith(":") and segment.endswith("*")):
            return f"{expression}(?:{slash}.*)?"
        is_any = segment.startswith(":")
        expression += slash + ("[^/]+" if is_any else "[^/]*".join(map(re.escape, segment.split("*"))))
    return expression


def bare(path):
    """Returns the path of a page without the ending that an author may write."""
    path = re.sub(r"\.mdx?$", "", path.strip("/"))
    return re.sub(r"(^|/)index$", "", path)


def warned(program, directory):
    """Runs the check; returns the files, below the directory, with the missing targets of each.

    A target is a path and an anchor or `None`. A link that leads out of the site has no path, and in
    place of the anchor what its author wrote. A page whose specification is not available has the
    target `(None, None)`: the anchors of its endpoint are not known.
    """
    arguments = [program, "check", "--all", "--format", "json", directory]
    said = subprocess.run(arguments, capture_output=True, check=False).stdout
    parents = [directory.resolve(), *directory.resolve().parents]
    repository = next((path for path in parents if (path / ".git").exists()), parents[0])
    below = directory.resolve().relative_to(repository).as_posix() + "/"
    prefix = below.removeprefix("./")
    targets = collections.defaultdict(set)
    for found in json.loads(said)["diagnostics"]:
        file, message = found["file"].removeprefix(prefix), found["message"]
        if found["rule"] == "link" and (missing := re.fullmatch("there is no (?:page|file) `/(.*)`", message, re.S)):
            targets[file].add((bare(missing[1]), None))
        if found["rule"] == "link" and (outside := re.fullmatch("`(.*)` leads out of .*", message, re.S)):
            targets[file].add((None, outside[1]))
        if found["rule"] == "N6":
            targets[file].add((None, None))
        if found["rule"] == "anchor" and (missing := re.fullmatch("(.*) has no heading `#(.*)`", message, re.S)):
            targets[file].add((bare(missing[1].removeprefix(prefix)), missing[2]))
    return targets


def compare(site, targets, source_of):
    """Returns the links that the check passed and are dead, those that it warned of and work, and how
    many lead to an anchor that is not known."""
    sources = {name: source_of(name) for name in site.pages}
    of_snippets = set().union(*(targets[file] for file in targets.keys() - set(sources.values())))
    has_unknown = {bare(name) for name in site.pages if (None, None) in targets.get(sources[name], ())}
    passed, unknown = [], 0
    for name, page in site.pages.items():
        known = targets.get(sources[name], set()) | of_snippets
        known |= {site.look_up(name, written) for path, written in known if path is None and written}
        # A link to an anchor of a missing page is reported without the anchor.
        found = {site.look_up(name, link) for link in page.links} - {None}
        dead = {target for target in found if not site.has(target)}
        open_questions = {(path, anchor) for path, anchor in dead - known if anchor and path in has_unknown}
        dead, unknown = dead - open_questions, unknown + len(open_questions)
        passed += sorted(
            (name, path, anchor)
            for path, anchor in dead
            if (path, anchor) not in known and (path, None) not in known
        )
    warned_of = [(file, *target) for file in targets for target in targets[file]]
    works = [(file, path, anchor) for file, path, anchor in warned_of if path is not None and site.has((path, anchor))]
    return passed, works, unknown
