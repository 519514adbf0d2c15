//! The code of pages: what it is, and how well it shows a use of the product.

mod kind;
mod line;
mod unsaid;

use super::name::Names;
use super::text::plain;
use line::{is_assignment, is_import, is_remark, made_by, sets_up};

pub(in crate::skills) use kind::INSTALLS;
pub(in crate::skills::generate) use kind::Kind;
pub(in crate::skills::generate) use line::is_used;
pub(in crate::skills::generate) use line::{bare_command, without_prompt};

/// An example loses one point of its score for this many lines.
const LONG_LINES: usize = 14;
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
/// Languages of code that runs, each with several names.
const LANGUAGES: [&[&str]; 7] = [
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
    &["ruby", "rb"],
    &["php"],
    &["csharp", "c#", "cs"],
];
/// Names of other languages of code that runs.
const PROGRAMS: [&str; 15] = [
    "java", "kotlin", "swift", "c", "cpp", "c++", "dart", "elixir", "scala", "sql", "graphql",
    "solidity", "r", "lua", "http",
];
/// Package managers, and the language of their packages.
const MANAGERS: [(&str, &str); 16] = [
    ("npm", "js"),
    ("pnpm", "js"),
    ("yarn", "js"),
    ("bun", "js"),
    ("deno", "js"),
    ("pip", "python"),
    ("pip3", "python"),
    ("pipx", "python"),
    ("uv", "python"),
    ("poetry", "python"),
    ("go", "go"),
    ("cargo", "rust"),
    ("gem", "ruby"),
    ("bundle", "ruby"),
    ("composer", "php"),
    ("dotnet", "csharp"),
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
/// Texts of code that a platform of others calls: functions for requests, routes of a web server.
const WRAPPERS: [&str; 20] = [
    "export const handler",
    "export const GET",
    "export const POST",
    "export async function GET",
    "export async function POST",
    "export default async function",
    "export default {",
    "exports.handler",
    "\"use server\"",
    "\"use client\"",
    "NextResponse",
    "NextRequest",
    "app.get(",
    "app.post(",
    "router.get(",
    "router.post(",
    "Deno.serve(",
    "def lambda_handler(",
    "addEventListener(\"fetch\"",
    "addEventListener('fetch'",
];
/// Texts that occur in code that runs without other code.
const COMPLETE: [&str; 12] = [
    "import ", "require(", "require ", "from ", "use ", "using ", "package ", "#include", "curl ",
    "http://", "https://", "POST /",
];

/// A block of code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::skills::generate) struct Block<'d> {
    pub(in crate::skills::generate) language: &'d str,
    /// Its title, or the title of its tab.
    pub(in crate::skills::generate) label: String,
    pub(in crate::skills::generate) code: &'d str,
}

// === impl Block ===

impl<'d> Block<'d> {
    /// Reads a fence. The info string is a language, then a title and options such as `{1,3}` or
    /// `wrap`.
    pub(in crate::skills::generate) fn of(info: &'d str, code: &'d str, label: &str) -> Self {
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

    /// Returns whether the code is in this language. A language may have several names, such as
    /// `js` and `javascript`.
    pub(in crate::skills::generate) fn is_in(&self, language: &str) -> bool {
        let own = &*self.language.to_ascii_lowercase();
        let language = &*language.to_ascii_lowercase();
        let has_both = |names: &&[&str]| names.contains(&own) && names.contains(&language);
        own == language || LANGUAGES.iter().any(has_both)
    }

    /// Returns whether the code runs without other code of its page.
    pub(in crate::skills::generate) fn is_complete(&self) -> bool {
        !self.needs_files()
            && !self.has_gaps()
            && self.unsaid().is_none()
            && (self.is_shell() || COMPLETE.iter().any(|mark| self.code.contains(mark)))
    }

    /// Returns whether the code imports what it uses.
    pub(in crate::skills::generate) fn imports(&self) -> bool {
        let mut lines = self.code.lines().map(str::trim_start);
        lines.any(|line| is_import(line) || line.contains("require("))
    }

    /// Returns whether the code imports or reads a file of the reader's own project, which other code
    /// of its page makes.
    pub(in crate::skills::generate) fn needs_files(&self) -> bool {
        self.own_imports().next().is_some() || self.reads_files()
    }

    /// Returns whether the code reads a file: `-d @jobs.json`, `open("jobs.json")`, `readFile('a.txt')`.
    fn reads_files(&self) -> bool {
        if self.is_shell() {
            let mut words = self
                .code
                .split(|c: char| c.is_whitespace() || "\"'=".contains(c));
            // A package has a scope: `@acme/box`.
            return words.any(|word| {
                let file = word.strip_prefix('@').unwrap_or_default();
                file.contains('.')
                    && !file.contains('@')
                    && !file.starts_with('.')
                    && (!file.contains('/') || file.starts_with('/'))
            });
        }
        let opens = |(at, mark): (usize, &'static str)| {
            let before = self.code[..at].chars().next_back();
            let is_function = !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.');
            let rest = &self.code[at + mark.len()..];
            let arguments = rest.split(')').next().unwrap_or_default();
            let is_literal = arguments.starts_with(['"', '\'']) && arguments.contains('.');
            let writes = ["\"w", "'w", "\"a\"", "'a'", "://"];
            let is_read = mark != "open(" || is_function;
            is_read && is_literal && !writes.iter().any(|mode| arguments.contains(mode))
        };
        let marks = ["open(", "readFile(", "readFileSync("];
        marks.iter().any(|mark| {
            let mut places = self.code.match_indices(mark).map(|(at, _)| (at, *mark));
            places.any(opens)
        })
    }

    /// Returns whether all lines of the code set variables: the content of a file such as `.env`.
    pub(in crate::skills::generate) fn sets_variables(&self) -> bool {
        let mut lines = self.code.lines().map(str::trim);
        self.is_shell()
            && self.code.contains('=')
            && lines.all(|line| line.is_empty() || is_remark(line) || is_assignment(line))
    }

    /// Returns whether the code runs only inside a platform of others.
    fn is_wrapped(&self) -> bool {
        WRAPPERS.iter().any(|wrapper| self.code.contains(wrapper))
    }

    /// Returns the files of the reader's own project that the code imports: `./App.tsx` of
    /// `import App from './App.tsx'`.
    pub(in crate::skills::generate) fn own_imports(&self) -> impl Iterator<Item = &'d str> {
        const OWN: [&str; 4] = ["./", "../", "@/", "~/"];
        let after = |mark| self.code.split(mark).skip(1);
        let paths = after("from ").chain(after("require("));
        paths.filter_map(|rest| {
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (path, _) = rest[1..].split_once(quote)?;
            OWN.iter().any(|own| path.starts_with(own)).then_some(path)
        })
    }

    /// Returns whether the code installs packages of the system, which others need first.
    pub(in crate::skills::generate) fn is_of_system(&self) -> bool {
        const SYSTEM: [&str; 5] = [
            "apt install",
            "apt-get install",
            "dnf install",
            "yum install",
            "apk add",
        ];
        SYSTEM.iter().any(|command| self.code.contains(command))
    }

    /// Returns whether the code installs packages for this language; `None` if it does not show for
    /// which language its packages are.
    pub(in crate::skills::generate) fn installs_for(&self, language: &str) -> Option<bool> {
        let lines = self.code.lines().map(bare_command);
        let of_line = |line: &str| {
            let program = line.split(' ').next()?;
            let known = MANAGERS.iter().find(|(manager, _)| *manager == program)?;
            Some(Block::of(known.1, "", "").is_in(language))
        };
        let fits: Vec<bool> = lines.filter_map(of_line).collect();
        (!fits.is_empty()).then(|| fits.contains(&true))
    }

    /// Returns whether the code removes a package.
    pub(in crate::skills::generate) fn uninstalls(&self) -> bool {
        let removes = ["uninstall", "npm rm", "apt remove", "brew remove"];
        self.is_shell() && removes.iter().any(|command| self.code.contains(command))
    }

    /// Returns how well the code shows a use of the product with one of these names. If two blocks
    /// show the same, the shorter block gets the higher score.
    pub(in crate::skills::generate) fn score(&self, names: &Names) -> usize {
        let long = self.code.lines().count() / LONG_LINES;
        let mentions = 2 * usize::from(self.mentions(names));
        // The code of another part shows nothing of this one.
        let of_part = 2 * usize::from(names.is_of_part(self.code));
        let shows = mentions
            + of_part
            + usize::from(self.is_program())
            + usize::from(self.is_complete())
            + usize::from(self.acts())
            // It makes a client and calls it.
            + usize::from(self.made().1 > 0);
        let special = usize::from(self.only_sets_up()) + usize::from(self.is_wrapped());
        (2 + shows).saturating_sub(long + special)
    }

    /// Returns whether all commands of the code only prepare their program.
    fn only_sets_up(&self) -> bool {
        let lines = self.code.lines().map(str::trim);
        // An option on a line of its own belongs to the command above it.
        let is_command =
            |line: &&str| !line.is_empty() && !is_remark(line) && !line.starts_with('-');
        self.is_shell() && lines.filter(is_command).all(sets_up)
    }

    /// Returns whether a line of the code calls something; imports, constants and the line that
    /// makes a client do not.
    pub(in crate::skills::generate) fn acts(&self) -> bool {
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
    pub(in crate::skills::generate) fn only_makes(&self) -> Option<String> {
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

    /// Returns whether the code has as many closing brackets as opening ones, and one way to import what
    /// it uses. Authors split long code, and a part of it is no example.
    pub(in crate::skills::generate) fn is_whole(&self) -> bool {
        let count = |c: char| self.code.matches(c).count();
        let is_closed = count('{') == count('}') && count('(') == count(')');
        !self.is_program() || is_closed && !self.imports_twice()
    }

    /// Returns whether the code imports the same module in two ways. A program uses only one of them.
    fn imports_twice(&self) -> bool {
        let module = |after: &'d str| after.split(['"', '\'']).nth(1);
        let after = |mark: &'static str| self.code.split(mark).skip(1).filter_map(module);
        after(" from ").any(|one| after("require(").any(|other| one == other))
    }

    /// Returns whether the code is in a programming language.
    pub(in crate::skills::generate) fn is_program(&self) -> bool {
        let language = &*self.language.to_ascii_lowercase();
        PROGRAMS.contains(&language) || LANGUAGES.iter().any(|names| names.contains(&language))
    }

    /// Returns whether the code is commands.
    fn is_shell(&self) -> bool {
        SHELLS.contains(&&*self.language.to_ascii_lowercase())
    }

    /// Returns whether the code mentions one of these names.
    pub(in crate::skills::generate) fn mentions(&self, names: &Names) -> bool {
        names.are_in(self.code)
    }

    /// Returns whether the code sets only keys of well-known services that are not this product.
    pub(in crate::skills::generate) fn is_foreign(&self, names: &Names) -> bool {
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
    pub(in crate::skills::generate) fn one_line(&self) -> Option<&'d str> {
        let mut lines = self
            .code
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty());
        let first = lines.next()?;
        (lines.next().is_none() && !first.contains('`') && first.len() <= 160).then_some(first)
    }

    /// Writes the code as a fence, unchanged.
    pub(in crate::skills::generate) fn fence(&self, indent: &str) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_reads_a_file_is_told_from_code_that_names_a_package() {
        for (language, code) in [
            (
                "bash",
                "curl -X POST 'ACME_URL/jobs' --data-binary @jobs.json",
            ),
            ("bash", "curl -F \"file=@/tmp/a.png\" https://acme.test"),
            (
                "python",
                "with open(\"jobs.json\") as jobs:\n    acme.send(jobs)",
            ),
            ("js", "acme.send(fs.readFileSync('jobs.json'))"),
            ("js", "import { a } from './a'"),
        ] {
            assert!(Block::of(language, code, "").needs_files(), "{code}");
        }
        for (language, code) in [
            ("bash", "npm install @acme/box@1.2"),
            ("bash", "acme send me@acme.test"),
            ("python", "open(\"out.txt\", \"w\").write(acme.read())"),
            ("js", "window.open('https://acme.test')"),
        ] {
            assert!(!Block::of(language, code, "").needs_files(), "{code}");
        }
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
