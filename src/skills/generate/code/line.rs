//! What a line of code does.

/// Programs of others that sign in with `login`.
const FOREIGN: [&str; 20] = [
    "docker",
    "npm",
    "gcloud",
    "aws",
    "az",
    "heroku",
    "vercel",
    "gh",
    "fly",
    "flyctl",
    "oc",
    "podman",
    "helm",
    "wrangler",
    "netlify",
    "koyeb",
    "railway",
    "doctl",
    "huggingface-cli",
    "snow",
];

/// Returns whether a line of a shell could be a command, not output: it starts with a small letter
/// or a path and has an argument.
pub(super) fn looks_like_command(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_./".contains(c);
    word.len() > 1 && line.contains(' ') && word.chars().all(inside) && !word.ends_with('.')
}

/// Returns a line of shell code without the prompt before its command.
pub(in crate::skills::generate) fn without_prompt(line: &str) -> &str {
    line.trim_start_matches(['$', '>', '%', ' ', '\t'])
}

/// Returns the command in a line of shell code, without a prompt and without `sudo`.
pub(in crate::skills::generate) fn bare_command(line: &str) -> &str {
    let line = without_prompt(line);
    line.strip_prefix("sudo ").unwrap_or(line)
}

/// Returns whether a command only prepares the program itself: `acme setup`, `npx @acme/mcp init`.
pub(super) fn sets_up(line: &str) -> bool {
    const SETS_UP: [&str; 15] = [
        "auth",
        "completion",
        "config",
        "configure",
        "help",
        "init",
        "install",
        "login",
        "logout",
        "register",
        "setup",
        "signup",
        "update",
        "upgrade",
        "version",
    ];
    let words = without_prompt(line).split_whitespace();
    let words = words.skip_while(|word| *word == "npx");
    // `--install-completion` prepares, too.
    let first = |word: &str| {
        word.trim_start_matches('-')
            .split('-')
            .next()
            .map(str::to_owned)
    };
    let mut second = words.skip(1).take(1).filter_map(first);
    second.any(|word| SETS_UP.contains(&&*word))
}

/// Returns the name of the value that a line makes: a client, a server, a connection.
pub(super) fn made_by(line: &str) -> Option<&str> {
    const MAKES: [&str; 6] = ["create", "connect", "init", "make", "open", "get_client"];
    const BASICS: [&str; 14] = [
        "Array", "Date", "JSON", "List", "Map", "Math", "Number", "Object", "Path", "Promise",
        "Response", "Set", "String", "URL",
    ];
    let (left, right) = line.split_once('=')?;
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let left = left.trim_end().trim_end_matches(':').trim_end();
    let name = left.rsplit(|c: char| !is_name(c)).next()?;
    let right = right.trim_start().trim_start_matches("await ");
    let callee = right.trim_start_matches("new ");
    let is_new = callee.len() < right.len();
    let end = callee.find(|c: char| !(is_name(c) || ".:".contains(c)))?;
    let is_call = callee[end..].starts_with(['(', '<']);
    let parts = || {
        callee[..end]
            .split(['.', ':'])
            .filter(|part| !part.is_empty())
    };
    let is_type = |part: &str| {
        part.starts_with(char::is_uppercase) && part.contains(char::is_lowercase)
            || part.starts_with(char::is_uppercase) && is_new
    };
    let is_basic = parts().next().is_some_and(|part| BASICS.contains(&part));
    let makes = |part: &str| MAKES.iter().any(|start| part.starts_with(start));
    // `createClient()` makes something for later; `client.charges.create()` is a call.
    let is_function = parts().count() == 1 && parts().all(makes);
    let is_made = is_new || parts().any(is_type) || is_function;
    (!name.is_empty()
        && !left.ends_with(['.', ']', '!', '<', '>'])
        && is_call
        && is_made
        && !is_basic)
        .then_some(name)
}

/// Returns whether a line of code uses a value: `client.pay(1)`, `run(client)`, `@app.get`.
pub(in crate::skills::generate) fn is_used(line: &str, name: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + name.len()..].trim_start_matches(['?', '!']);
        let is_whole =
            !before.is_some_and(|c| inside(c) || matches!(c, '.' | '"' | '\'' | '/' | '-'));
        is_whole
            && !after.starts_with(inside)
            && (after.starts_with(['.', ',', ')', '(', ';', '[']) || after.starts_with("->"))
    })
}

/// Returns whether a line of code begins to import something.
pub(super) fn is_import(line: &str) -> bool {
    let starts = ["import ", "from ", "use ", "using ", "#include", "package "];
    starts.iter().any(|start| line.starts_with(start))
}

/// Returns whether a line of code is only a remark.
pub(super) fn is_remark(line: &str) -> bool {
    line.starts_with('#') || line.starts_with("//")
}

/// Returns whether a line of a shell signs in to the product: `acme login --token x`.
pub(super) fn signs_in(line: &str) -> bool {
    let line = line.trim_start_matches(['$', '>', ' ']);
    let line = line.strip_prefix("npx ").unwrap_or(line);
    let mut parts = line.split(' ');
    let program = parts.next().unwrap_or_default();
    let is_sign = |part: &str| matches!(part, "login" | "signin" | "sign-in" | "authenticate");
    let mut rest = parts.take(2);
    looks_like_command(line)
        && !FOREIGN.contains(&program)
        && match rest.next() {
            Some("auth") => rest.next().is_some_and(is_sign),
            Some(part) => is_sign(part),
            None => false,
        }
}

/// Returns whether a line sets a variable: `NAME=value`, `export NAME=value`.
pub(super) fn is_assignment(line: &str) -> bool {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let Some((name, _)) = line.split_once('=') else {
        return false;
    };
    let name = name.trim();
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}
