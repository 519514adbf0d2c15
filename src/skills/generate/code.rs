//! The code of pages: which of it installs, gives access, or makes a call.

use super::text::plain;

/// The most bytes and lines of code that a skill repeats.
const BYTES_MAX: usize = 2000;
const LINES_MAX: usize = 50;
/// An example loses one point of its score for this many lines.
const LONG_LINES: usize = 14;
/// The most lines of code that only installs or only gives access.
const SHORT_LINES_MAX: usize = 8;
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
/// Beginnings of the names of keys of services that many products use.
const VENDORS: [&str; 14] = [
    "OPENAI_",
    "ANTHROPIC_",
    "GEMINI_",
    "GOOGLE_",
    "AWS_",
    "AZURE_",
    "GITHUB_",
    "BRAVE_",
    "HF_",
    "MISTRAL_",
    "GROQ_",
    "STRIPE_",
    "SLACK_",
    "DATABASE_",
];
/// A line that chains more commands is a script.
const CHAINED_MAX: usize = 3;
/// The fewest words of a sentence that is not a command.
const SENTENCE_WORDS_MIN: usize = 4;

/// Commands that install something.
pub(in crate::skills) const INSTALLS: [&str; 33] = [
    "npm i ",
    "npm install",
    "npm add ",
    "pnpm add",
    "pnpm install",
    "pnpm i ",
    "yarn add",
    "yarn install",
    "bun add",
    "bun install",
    "deno add",
    "pip install",
    "pip3 install",
    "pipx install",
    "uv add",
    "uv pip install",
    "uv tool install",
    "poetry add",
    "conda install",
    "brew install",
    "cargo add",
    "cargo install",
    "go get ",
    "go install",
    "gem install",
    "bundle add",
    "composer require",
    "dotnet add",
    "helm install",
    "helm repo add",
    "apt install",
    "apt-get install",
    "winget install",
];
/// Beginnings of shell lines that only prepare.
const PREPARES: [&str; 43] = [
    "cd ",
    "mkdir ",
    "touch ",
    "source ",
    "export ",
    "set ",
    "git clone",
    "python -m venv",
    "python3 -m venv",
    "uv venv",
    "uv init",
    "npm init",
    "npm create ",
    "npx create-",
    "yarn create ",
    "pnpm create ",
    "bun create ",
    "npm run ",
    "npm start",
    "yarn dev",
    "pnpm dev",
    "pnpm run ",
    "pnpm init",
    "echo ",
    "cp ",
    "#",
    "//",
    "git checkout",
    "chmod ",
    "git ",
    "conda ",
    "rm ",
    "ls ",
    "cat ",
    "node -v",
    "sudo ",
    "tar ",
    "brew ",
    "which ",
    "make ",
    "unzip ",
    "mv ",
    "docker pull",
];
/// Languages of code that runs, each with several names.
const LANGUAGES: [&[&str]; 4] = [
    &[
        "js",
        "javascript",
        "jsx",
        "ts",
        "typescript",
        "tsx",
        "node",
        "nodejs",
        "mjs",
    ],
    &["python", "py", "python3"],
    &["go", "golang"],
    &["rust", "rs"],
];
/// Names of other languages of code that runs.
const PROGRAMS: [&str; 21] = [
    "ruby", "rb", "php", "java", "kotlin", "swift", "c", "cpp", "c++", "csharp", "c#", "cs",
    "dart", "elixir", "scala", "sql", "graphql", "solidity", "r", "lua", "http",
];
/// Languages of commands.
const SHELLS: [&str; 12] = [
    "sh",
    "bash",
    "shell",
    "zsh",
    "console",
    "terminal",
    "cmd",
    "powershell",
    "curl",
    "cli",
    "shellscript",
    "",
];
/// Texts that occur in code that runs without other code.
const COMPLETE: [&str; 12] = [
    "import ", "require(", "require ", "from ", "use ", "using ", "package ", "#include", "curl ",
    "http://", "https://", "POST /",
];

/// The purpose of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It installs something.
    Install,
    /// It sets or sends credentials.
    Access,
    /// It uses the product.
    Call,
    /// Anything else: output, configuration, long code.
    Other,
}

/// A block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block<'d> {
    pub(super) language: &'d str,
    /// Its title, or the title of its tab.
    pub(super) label: String,
    pub(super) code: &'d str,
}

// === impl Block ===

impl<'d> Block<'d> {
    /// Reads a fence. The info string is a language, then a title and options such as `{1,3}` or
    /// `wrap`.
    pub(super) fn of(info: &'d str, code: &'d str, label: &str) -> Self {
        let info = info.trim();
        let end = info
            .find(|c: char| c.is_whitespace() || c == '{')
            .unwrap_or(info.len());
        let (language, rest) = info.split_at(end);
        let options = [
            "lines",
            "wrap",
            "expandable",
            "twoslash",
            "showLineNumbers",
            "numbered",
        ];
        let mut title: Vec<&str> = Vec::new();
        for word in rest.split_whitespace() {
            if word.starts_with('{') || word.ends_with('}') || options.contains(&word) {
                continue;
            }
            match word.split_once('=') {
                Some(("title" | "filename", value)) => title.push(value.trim_matches(['"', '\''])),
                Some(_) => {}
                None => title.push(word.trim_matches(['"', '\''])),
            }
        }
        let own = plain(&title.join(" ")).replace('`', "");
        Self {
            language,
            label: if own.is_empty() { plain(label) } else { own },
            code: code.trim_matches('\n'),
        }
    }

    /// Returns the purpose of the code.
    pub(super) fn kind(&self) -> Kind {
        let lines = || {
            self.code
                .lines()
                .map(str::trim)
                .filter(|line| !line.is_empty())
        };
        let count = lines().count();
        let chained = |line: &str| line.matches(" && ").count() + line.matches("; ").count();
        let is_script = !self.is_program() && lines().any(|line| chained(line) >= CHAINED_MAX);
        if self.code.len() > BYTES_MAX || count > LINES_MAX || count == 0 || is_script {
            return Kind::Other;
        }
        // Remarks do not make a command longer.
        let remarks = lines().filter(|line| is_remark(line)).count();
        let is_short = count - remarks <= SHORT_LINES_MAX;
        let bare = |line: &'d str| line.trim_start_matches(['$', '>', '%', ' ']);
        let installs = |line: &str| INSTALLS.iter().any(|command| line.contains(command));
        let is_program = self.is_program();
        let is_shell = self.is_shell();
        // A package manager without a package installs what the reader's own project needs.
        let installs_product =
            |line: &str| installs(line) && !line.trim_end().ends_with(" install");
        // A remark counts only if there is nothing else: many programs begin with `# pip install`.
        let is_remarks = remarks == count;
        let mut commands = lines().filter(|line| is_remarks || !is_remark(line));
        if is_short && commands.any(|line| installs_product(bare(line))) {
            return Kind::Install;
        }
        if is_short && self.gives_access() {
            return Kind::Access;
        }
        let acts = |line: &str| {
            let line = line.trim_start_matches(['$', '>', '%', ' ']);
            !PREPARES.iter().any(|start| line.starts_with(start))
                && !line.ends_with("version")
                // An installer of a tool that is needed first.
                && !["| sh", "| bash", "| iex"].iter().any(|end| line.contains(end))
                && !line.ends_with("--help")
                && !line.ends_with(" -h")
                && !installs(line)
                && looks_like_command(line)
        };
        // Imports alone call nothing.
        let imports = |line: &str| {
            let starts = [
                "import ", "from ", "use ", "using ", "#", "//", "--", "package ",
            ];
            starts.iter().any(|start| line.starts_with(start))
        };
        if (is_program && !lines().all(imports) && self.is_whole() && !self.is_edit())
            || (is_shell && !self.shows_output() && lines().any(acts))
        {
            return Kind::Call;
        }
        Kind::Other
    }

    /// Returns whether shell code is only the output of a program: its first line cannot be a
    /// command, or one of its lines is an error message.
    fn shows_output(&self) -> bool {
        let begins = |line: &str| line.starts_with(['[', '=', '|', '+', '*']);
        let first = self
            .code
            .lines()
            .map(str::trim)
            .find(|line| !line.is_empty() && !is_remark(line));
        let is_prompted = first.is_some_and(|line| line.starts_with(['$', '>', '%']));
        let is_test = first.is_some_and(|line| line.starts_with("[ "));
        let fails = |line: &str| {
            let line = line.trim().to_ascii_lowercase();
            let starts = ["usage:", "error:", "fatal:", "traceback ("];
            starts.iter().any(|start| line.starts_with(start)) || line.contains("*** [")
        };
        !is_prompted && (first.is_some_and(begins) && !is_test || self.code.lines().any(fails))
    }

    /// Returns whether the code only sets or sends credentials.
    fn gives_access(&self) -> bool {
        let mut lines = self
            .code
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let is_access = |line: &str| {
            let upper = line.to_ascii_uppercase();
            let is_secret = [
                "API_KEY",
                "APIKEY",
                "_TOKEN",
                "_SECRET",
                "SECRET_KEY",
                "CLIENT_ID",
                "ACCESS_KEY",
            ]
            .iter()
            .any(|name| upper.contains(name));
            let sets = is_secret
                && (line.starts_with("export ") || line.starts_with("set ") || is_assignment(line));
            sets || upper.starts_with("AUTHORIZATION:") || signs_in(line)
        };
        let mut some = false;
        let all = lines.all(|line| {
            let is = is_access(line);
            some |= is;
            is || is_remark(line) || is_assignment(line)
        });
        all && some
    }

    /// Returns whether the code is in this language. A language may have several names, such as
    /// `js` and `javascript`.
    pub(super) fn is_in(&self, language: &str) -> bool {
        let own = &*self.language.to_ascii_lowercase();
        let language = &*language.to_ascii_lowercase();
        let has_both = |names: &&[&str]| names.contains(&own) && names.contains(&language);
        own == language || LANGUAGES.iter().any(has_both)
    }

    /// Returns whether the code runs without other code of its page.
    pub(super) fn is_complete(&self) -> bool {
        !self.needs_files()
            && (self.is_shell() || COMPLETE.iter().any(|mark| self.code.contains(mark)))
    }

    /// Returns whether the code imports what it uses.
    pub(super) fn imports(&self) -> bool {
        let mut lines = self.code.lines().map(str::trim_start);
        lines.any(|line| is_import(line) || line.contains("require("))
    }

    /// Returns whether the code imports a file of the reader's own project, which other code of its
    /// page makes.
    pub(super) fn needs_files(&self) -> bool {
        const OWN: [&str; 10] = [
            "from \"./",
            "from \"../",
            "from \"@/",
            "from \"~/",
            "from './",
            "from '../",
            "from '@/",
            "from '~/",
            "require('./",
            "require(\"./",
        ];
        OWN.iter().any(|mark| self.code.contains(mark))
    }

    /// Returns whether the code installs packages of the system, which others need first.
    pub(super) fn is_of_system(&self) -> bool {
        const SYSTEM: [&str; 5] = [
            "apt install",
            "apt-get install",
            "dnf install",
            "yum install",
            "apk add",
        ];
        SYSTEM.iter().any(|command| self.code.contains(command))
    }

    /// Returns how well the code shows a use of the product with one of these names. If two blocks
    /// show the same, the shorter block gets the higher score.
    pub(super) fn score(&self, names: &[String]) -> usize {
        let long = self.code.lines().count() / LONG_LINES;
        let mentions = 2 * usize::from(self.mentions(names));
        let shows = mentions
            + usize::from(self.is_program())
            + usize::from(self.is_complete())
            + usize::from(self.acts())
            // It makes a client and calls it.
            + usize::from(self.made().1 > 0);
        (2 + shows).saturating_sub(long)
    }

    /// Returns whether a line of the code calls something; imports, constants and the line that
    /// makes a client do not.
    pub(super) fn acts(&self) -> bool {
        let is_call = |line: &str| {
            let is_import = is_import(line) || line.starts_with("export default ");
            let method = line.match_indices('.').any(|(at, _)| {
                let rest = &line[at + 1..];
                let inside = |c: char| c.is_alphanumeric() || c == '_';
                let end = rest.find(|c| !inside(c)).unwrap_or(rest.len());
                end > 0 && rest[end..].starts_with('(')
            });
            let is_request = line.contains("await ") || line.contains("http");
            !is_import && !is_remark(line) && (method || is_request)
        };
        !self.is_program() || self.code.lines().map(str::trim).any(is_call)
    }

    /// Returns the name of the last value that the code makes and does not use: `client` of
    /// `client = acme.Client()`. `None` if the code uses one, or makes none.
    pub(super) fn only_makes(&self) -> Option<String> {
        let (made, used) = self.made();
        let last = made.last().filter(|_| used == 0)?;
        Some((*last).to_owned())
    }

    /// Returns the names of the values that the code makes, and how many of them it uses.
    fn made(&self) -> (Vec<&'d str>, usize) {
        if !self.is_program() {
            return (Vec::new(), 0);
        }
        let lines = self.code.lines().map(str::trim);
        // `from mcp.server import …` does not use the value `mcp`.
        let lines = lines.filter(|line| !is_remark(line) && !is_import(line));
        let lines: Vec<&'d str> = lines.collect();
        let (mut made, mut used) = (Vec::new(), 0);
        for (at, line) in lines.iter().enumerate() {
            if let Some(name) = made_by(line) {
                let mut others = lines.iter().enumerate().filter(|(other, _)| *other != at);
                used += usize::from(others.any(|(_, line)| is_used(line, name)));
                made.push(name);
            }
        }
        (made, used)
    }

    /// Returns whether the code has as many closing brackets as opening ones. Authors split long
    /// code, and a part of it is no example.
    pub(super) fn is_whole(&self) -> bool {
        let count = |c: char| self.code.matches(c).count();
        !self.is_program() || (count('{') == count('}') && count('(') == count(')'))
    }

    /// Returns whether the code begins with a remark that it changes a file, which other code of
    /// its page makes: `// Replace the function in app.js`.
    fn is_edit(&self) -> bool {
        const EDITS: [&str; 8] = [
            "replace", "update", "modify", "change", "edit", "insert", "append", "extend",
        ];
        let is_file = |word: &str| {
            let word = word.trim_end_matches([':', '.', ',', '`']);
            let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
            (1..=4).contains(&ending.len()) && ending.bytes().all(|b| b.is_ascii_lowercase())
        };
        let first = self.code.lines().find(|line| !line.trim().is_empty());
        let remark = first.map(str::trim).filter(|line| is_remark(line));
        let words = remark
            .unwrap_or_default()
            .trim_start_matches(['/', '#', ' ']);
        let verb = words.split(' ').next().unwrap_or_default().to_lowercase();
        EDITS.contains(&&*verb) && words.split(' ').any(is_file)
    }

    /// Returns whether the code is in a programming language.
    pub(super) fn is_program(&self) -> bool {
        let language = &*self.language.to_ascii_lowercase();
        PROGRAMS.contains(&language) || LANGUAGES.iter().any(|names| names.contains(&language))
    }

    /// Returns whether the code is commands.
    fn is_shell(&self) -> bool {
        SHELLS.contains(&&*self.language.to_ascii_lowercase())
    }

    /// Returns whether the code mentions one of these names.
    pub(super) fn mentions(&self, names: &[String]) -> bool {
        let code = self.code.to_lowercase();
        names.iter().any(|name| code.contains(&**name))
    }

    /// Returns whether the code sets only keys of well-known services that are not this product.
    pub(super) fn is_foreign(&self, names: &[String]) -> bool {
        let mut keys = self
            .code
            .lines()
            .map(str::trim)
            .filter(|line| is_assignment(line));
        let is_other = |line: &str| {
            let name = line.strip_prefix("export ").unwrap_or(line);
            VENDORS.iter().any(|vendor| name.starts_with(vendor))
        };
        !self.mentions(names) && keys.clone().next().is_some() && keys.all(is_other)
    }

    /// Returns the code if it is one line that fits between backticks.
    pub(super) fn one_line(&self) -> Option<&'d str> {
        let mut lines = self
            .code
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let first = lines.next()?;
        (lines.next().is_none() && !first.contains('`') && first.len() <= 160).then_some(first)
    }

    /// Returns whether the code is an output or a message that the page shows.
    pub(super) fn is_output(&self) -> bool {
        let Some(line) = self.one_line() else {
            return self.kind() == Kind::Other;
        };
        let language = self.language.to_ascii_lowercase();
        let is_sentence = line.ends_with('.')
            && line.split(' ').count() >= SENTENCE_WORDS_MIN
            && !line.contains(['=', '|', '/', '$', '<'])
            && !line.contains(" -");
        let is_text = ["", "text", "txt", "plaintext", "log"].contains(&&*language);
        // Authors show messages as shell code, too.
        let is_message = line.starts_with(char::is_uppercase) && self.is_shell();
        is_sentence && (is_text || is_message)
    }

    /// Writes the code as a fence, unchanged.
    pub(super) fn fence(&self, indent: &str) -> Vec<String> {
        let backticks = |line: &str| line.trim_start().chars().take_while(|c| *c == '`').count();
        let longest = self.code.lines().map(backticks).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        let space = if self.label.is_empty() { "" } else { " " };
        let language = self.language.replace('`', "");
        let mut lines = vec![format!("{indent}{fence}{language}{space}{}", self.label)];
        let put = |line: &str| match line.is_empty() {
            true => String::new(),
            false => format!("{indent}{line}"),
        };
        lines.extend(self.code.lines().map(put));
        lines.push(format!("{indent}{fence}"));
        lines
    }
}

/// Returns whether a line of a shell could be a command, not output: it starts with a small letter
/// or a path and has an argument.
fn looks_like_command(line: &str) -> bool {
    let word = line.split(' ').next().unwrap_or_default();
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_./".contains(c);
    word.len() > 1 && line.contains(' ') && word.chars().all(inside) && !word.ends_with('.')
}

/// Returns the name of the value that a line makes: a client, a server, a connection.
fn made_by(line: &str) -> Option<&str> {
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
pub(super) fn is_used(line: &str, name: &str) -> bool {
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
fn is_import(line: &str) -> bool {
    let starts = ["import ", "from ", "use ", "using ", "#include", "package "];
    starts.iter().any(|start| line.starts_with(start))
}

/// Returns whether a line of code is only a remark.
fn is_remark(line: &str) -> bool {
    line.starts_with('#') || line.starts_with("//")
}

/// Returns whether a line of a shell signs in to the product: `acme login --token x`.
fn signs_in(line: &str) -> bool {
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
fn is_assignment(line: &str) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(info: &str, code: &str) -> Kind {
        Block::of(info, code, "").kind()
    }

    #[test]
    fn code_is_told_apart_by_what_it_does() {
        assert_eq!(
            kind("javascript JavaScript", "npm i @acme/pay dotenv"),
            Kind::Install
        );
        assert_eq!(kind("bash", "export ACME_API_KEY=sk_..."), Kind::Access);
        assert_eq!(
            kind("bash .env", "# the key\nACME_API_KEY=e2b_***"),
            Kind::Access
        );
        assert_eq!(kind("bash", "acme login"), Kind::Access);
        assert_eq!(
            kind("bash", "acme login https://acme.test --token x"),
            Kind::Access
        );
        assert_eq!(kind("bash", "docker login -u me"), Kind::Call);
        assert_eq!(kind("bash", "npm adduser"), Kind::Call);
        assert_eq!(kind("bash", "acme --help"), Kind::Other);
        assert_eq!(kind("js", "test('x', () => {\n  acme.pay()"), Kind::Other);
        let edit = "// Replace the function in app.js\nfunction pay() { acme.pay(1); }";
        assert_eq!(kind("js", edit), Kind::Other);
        assert_eq!(kind("js", "// Update a charge\nacme.pay(1);"), Kind::Call);
        assert_eq!(kind("python", "import acme\nacme.pay(1)"), Kind::Call);
        assert_eq!(
            kind("sh", "curl https://api.acme.test/v2/charges -d amount=500"),
            Kind::Call
        );
        assert_eq!(kind("bash", "cd app && ls"), Kind::Other);
        assert_eq!(kind("sh", "npm create vite@latest acme"), Kind::Other);
        let script = "brew tap acme && brew install acme && acme login && acme apps create";
        assert_eq!(kind("sh", script), Kind::Other);
        assert_eq!(kind("json", "{\"a\": 1}"), Kind::Other);
        assert_eq!(kind("", "Ready in 3 seconds"), Kind::Other);
        let progress = "[#7cca 271GiB(99%) CN:1]\n01/11 complete: /mnt/x";
        assert_eq!(kind("", progress), Kind::Other);
        let failed = "flag provided but not defined: -L\nusage: link [options] main.o";
        assert_eq!(kind("sh", failed), Kind::Other);
        assert_eq!(kind("sh", "$ acme pay 1\nError: no key"), Kind::Call);
    }

    #[test]
    fn a_remark_about_an_installation_makes_no_program_an_installation() {
        let program = "# In the command line:\n# pip3 install acme\n\nimport acme\nacme.pay(1)";
        assert_eq!(kind("python", program), Kind::Call);
        assert_eq!(kind("python", "# pip3 install acme"), Kind::Install);
    }

    #[test]
    fn code_that_only_makes_a_value_is_told_from_code_that_uses_it() {
        let made = |language: &str, code: &str| Block::of(language, code, "").only_makes();
        for (language, code, name) in [
            (
                "ts",
                "import { Index } from 'a';\n\nconst index = new Index();",
                "index",
            ),
            ("python", "client = acme.Client(\n  'key'\n)", "client"),
            (
                "python",
                "from mcp.server import MCPServer\nmcp = MCPServer(\"weather\")\n# Constants\nBASE = \"x\"",
                "mcp",
            ),
            ("ts", "export const redis = Redis.fromEnv()", "redis"),
            (
                "js",
                "const server = await createServer({ a: 1 })",
                "server",
            ),
            ("go", "client := acme.NewClient(key)", "client"),
        ] {
            assert_eq!(made(language, code).as_deref(), Some(name), "{code}");
        }
        for (language, code) in [
            (
                "ts",
                "const sbx = await Sandbox.create()\nawait sbx.run('x')",
            ),
            ("ts", "const redis = new Redis()\nrun(redis)"),
            ("python", "app = Acme()\n@app.get('/')\ndef pay(): ..."),
            ("ts", "const result = await client.search('x')"),
            ("ts", "const charge = await acme.charges.create({ a: 1 })"),
            ("ts", "const text = JSON.parse(read())"),
            ("sh", "A=$(B)"),
            ("ts", "pay(1)"),
        ] {
            assert_eq!(made(language, code), None, "{code}");
        }
    }

    #[test]
    fn titles_are_told_from_options() {
        let block = Block::of("python my_server.py (stdio) {9, 10} wrap", "x\n", "");
        assert_eq!(
            (block.language, &*block.label),
            ("python", "my_server.py (stdio)")
        );
        let block = Block::of("ts title=\"a.ts\" icon=\"x\"", "x\n", "Tab");
        assert_eq!(&*block.label, "a.ts");
        assert_eq!(&*Block::of("ts", "x", "Tab").label, "Tab");
    }

    #[test]
    fn code_is_written_unchanged() {
        let block = Block::of("md", "a\n\n```\n  b\n```\n", "");
        assert_eq!(
            block.fence(""),
            ["````md", "a", "", "```", "  b", "```", "````"]
        );
    }
}
