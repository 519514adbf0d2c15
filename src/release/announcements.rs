//! The lines about skills and the MCP server in the lists of a site.
//!
//! A build writes the lists, but only the site record says whether the site has an MCP server. So
//! every list announces the server, and the embedded origin removes the announcement for a site
//! without one.

/// The beginning of the line in `llms.txt`.
const MCP: &str = "MCP server: ";
/// The beginning of the line in the Markdown of a page.
const INDEX: &str = "> For agents: all pages are listed in [llms.txt]";

/// The line above the instructions of the authors for agents, in the Markdown of a page.
const INSTRUCTIONS: &str = "> Instructions for agents, the same on every page:";

/// Returns the lines of `llms.txt` that tell agents where the skills and the MCP server of the
/// site at `address` are.
///
/// The address of the server is not a link, because nothing can be read there with `GET`.
#[must_use]
pub fn lines(address: &str) -> String {
    format!(
        "Skills for agents: [list]({address}/.well-known/agent-skills/index.json)\n\n\
         {MCP}`{address}/mcp`\n\n"
    )
}

/// Returns whether a line of a page's Markdown is the one of [`with_index`].
#[must_use]
pub fn is_index_line(line: &str) -> bool {
    line.starts_with(INDEX)
}

/// Returns the Markdown of a page with the instructions of its authors for agents below its text.
///
/// They are below it because offsets in the Markdown of a release must stay valid.
///
/// ```
/// use waypost::release::announcements::{instructions_start, with_instructions};
///
/// let page = with_instructions("# Pay\n", &["Use version 2.".into()]);
/// assert!(page.ends_with("\n> Use version 2.\n"));
/// assert_eq!(&page[..instructions_start(&page)], "# Pay\n\n");
/// assert_eq!(with_instructions("# Pay\n", &[]), "# Pay\n");
/// ```
#[must_use]
pub fn with_instructions(markdown: &str, lines: &[Box<str>]) -> String {
    let mut out = markdown.to_owned();
    if lines.iter().any(|line| !line.trim().is_empty()) {
        out += &format!("\n{INSTRUCTIONS}\n>\n");
        for line in lines {
            out += format!("> {line}").trim_end();
            out.push('\n');
        }
    }
    out
}

/// Returns where the instructions for agents begin in the Markdown of a page; without instructions,
/// its length.
#[must_use]
pub fn instructions_start(markdown: &str) -> usize {
    let line = markdown.rfind(INSTRUCTIONS);
    let line = line.filter(|at| markdown[..*at].ends_with('\n'));
    // Nothing else follows them.
    let is_last = |at: &usize| markdown[*at..].lines().all(|line| line.starts_with('>'));
    line.filter(is_last).unwrap_or(markdown.len())
}

/// Returns the Markdown of a page with a line below its title that says where all pages of the
/// site at `address` are listed.
///
/// The line is added when a page is sent, so that offsets in the Markdown of a release stay valid.
///
/// ```
/// use waypost::release::announcements::with_index;
///
/// let page = with_index("# Pay\n\nMoney.\n", "https://docs.acme.com");
/// assert!(page.starts_with("# Pay\n\n> "));
/// assert!(page.contains("https://docs.acme.com/llms.txt") && page.ends_with("\n\nMoney.\n"));
/// ```
#[must_use]
pub fn with_index(markdown: &str, address: &str) -> String {
    let line = format!("{INDEX}({address}/llms.txt)\n\n");
    let is_title = markdown.starts_with("# ");
    let end = markdown.find("\n\n").map(|at| at + 2).filter(|_| is_title);
    let (title, rest) = markdown.split_at(end.unwrap_or(0));
    [title, &line, rest].concat()
}

/// Returns `llms.txt` without the announcement of the MCP server.
///
/// ```
/// use waypost::release::announcements::{lines, without_mcp};
///
/// let list = format!("# Acme\n\n{}## Start\n", lines("https://docs.acme.com"));
/// let without = without_mcp(&list);
/// assert!(without.contains("Skills") && without.ends_with("\n\n## Start\n"));
/// assert!(!without.contains("/mcp"));
/// ```
#[must_use]
pub fn without_mcp(list: &str) -> String {
    let start = list.find(&format!("\n{MCP}")).map(|at| at + 1);
    let end = start.and_then(|start| Some(start + list[start..].find("\n\n")? + 2));
    match (start, end) {
        (Some(start), Some(end)) => [&list[..start], &list[end..]].concat(),
        _ => list.to_owned(),
    }
}
