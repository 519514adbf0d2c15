//! The purpose of code: which of it installs, gives access, or makes a call.

use super::Block;
use super::line::{is_assignment, is_remark, looks_like_command, signs_in};

/// The most bytes and lines of code that a skill repeats.
const BYTES_MAX: usize = 2000;
const LINES_MAX: usize = 50;
/// The most lines of code that only installs or only gives access.
const SHORT_LINES_MAX: usize = 8;
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
const PREPARES: [&str; 44] = [
    "alias ",
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

/// The purpose of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::skills::generate) enum Kind {
    /// It installs something.
    Install,
    /// It sets or sends credentials.
    Access,
    /// It uses the product.
    Call,
    /// Anything else: output, configuration, long code.
    Other,
}

// === impl Block ===

impl<'d> Block<'d> {
    /// Returns the purpose of the code.
    pub(in crate::skills::generate) fn kind(&self) -> Kind {
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
        let installs_product = |line: &str| {
            let mut commands = line.split("&&").map(str::trim_end);
            commands.any(|command| installs(command) && !command.ends_with(" install"))
        };
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

    /// Returns whether the code is only an address.
    pub(in crate::skills::generate) fn is_address(&self) -> bool {
        let line = self.one_line().unwrap_or_default();
        line.starts_with("http") && line.contains("://") && !line.contains(' ')
    }

    /// Returns whether the code is an output or a message that the page shows.
    pub(in crate::skills::generate) fn is_output(&self) -> bool {
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
            kind("sh", "npm add @acme/pay && npm install"),
            Kind::Install
        );
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
        assert_eq!(
            kind("bash", "alias acme=\"$(brew --prefix a)/acme\""),
            Kind::Other
        );
        let two = "const { Acme } = require('acme')\nimport { Acme } from 'acme'\nAcme.pay()";
        assert_eq!(kind("js", two), Kind::Other);
        assert_eq!(
            kind("js", "import { Acme } from 'acme'\nAcme.pay(require('x'))"),
            Kind::Call
        );
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
}
