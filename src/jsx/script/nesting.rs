//! Finds the largest possible nesting of a source without parsing it.
//!
//! The bound counts what makes a recursive parser go deeper: an opening bracket, `<`, an
//! operator before an operand, an operator that binds to the right, a keyword that a statement
//! or an operand follows. It may count too much, never too little.
//!
//! In plain code a closing bracket ends the level of its opening bracket, and `,` and `;` end
//! operators. After a `<`, which may open JSX, or a `/`, which may open a regular expression, the
//! counter cannot tell code from text. From there on nothing ends a level: a bracket could be
//! part of a text.

/// Words after which the parser goes deeper.
const DEEPER: [&str; 21] = [
    "if", "else", "for", "while", "do", "with", "typeof", "void", "delete", "await", "yield",
    "new", "function", "class", "keyof", "infer", "unique", "readonly", "asserts", "return",
    "abstract",
];
/// Other words that are not operands.
const OTHER: [&str; 14] = [
    "case",
    "default",
    "in",
    "of",
    "instanceof",
    "throw",
    "extends",
    "as",
    "satisfies",
    "is",
    "async",
    "export",
    "import",
    "try",
];

/// Returns the most levels that a parser needs for a source.
pub(super) fn bound(source: &str) -> usize {
    let mut counter = Counter {
        bytes: source.as_bytes(),
        at: 0,
        depth: 0,
        deepest: 0,
        base: 0,
        open: Vec::new(),
        is_plain: true,
        after_operand: false,
        after_colon: false,
        // The names in `namespace a.b.c` are nested in each other.
        dots: source.contains("namespace") || source.contains("module"),
    };
    counter.run();
    counter.deepest
}

/// A bracket that is open in plain code.
struct Open {
    /// The depth before it.
    depth: usize,
    /// The base before it.
    base: usize,
    /// Whether it is the `${` of a template.
    in_template: bool,
}

struct Counter<'s> {
    bytes: &'s [u8],
    at: usize,
    depth: usize,
    deepest: usize,
    /// The depth that remains after `,` and `;`.
    base: usize,
    open: Vec<Open>,
    /// Whether everything up to here was plain code.
    is_plain: bool,
    after_operand: bool,
    after_colon: bool,
    dots: bool,
}

// === impl Counter ===

impl Counter<'_> {
    fn run(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            let start = self.at;
            self.at += 1;
            if is_word(byte) {
                self.word(start);
                continue;
            }
            let next = self.bytes.get(self.at).copied();
            let after_operand = std::mem::take(&mut self.after_operand);
            let after_colon = std::mem::take(&mut self.after_colon);
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => {
                    self.after_operand = after_operand;
                    self.after_colon = after_colon;
                }
                b'(' | b'[' | b'{' => self.opens(false),
                b')' | b']' | b'}' => self.closes(byte),
                b',' | b';' if self.is_plain => self.depth = self.base,
                b'"' | b'\'' if self.is_plain => self.string(byte),
                b'`' if self.is_plain => self.template(),
                b'/' if self.is_plain => self.slash(next, after_operand, after_colon),
                b'<' => {
                    self.is_plain = false;
                    if next != Some(b'/') {
                        self.deeper();
                    }
                }
                b'=' | b'!' if next == Some(b'=') => self.run_of(b'='),
                b'=' | b'@' => self.deeper(),
                // `a?.b` only continues; `a?.5:b` is a choice.
                b'?' if next != Some(b'.') || self.digit_follows() => self.deeper(),
                b'*' if next == Some(b'*') => {
                    self.run_of(b'*');
                    self.deeper();
                }
                b'+' | b'-' | b'!' | b'~' if !(self.is_plain && after_operand) => self.deeper(),
                b':' => {
                    if after_colon || !self.is_plain {
                        self.deeper();
                    }
                    self.after_colon = true;
                }
                b'.' if self.dots => self.deeper(),
                _ => {}
            }
        }
    }

    fn deeper(&mut self) {
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
    }

    fn digit_follows(&self) -> bool {
        let after = self.bytes.get(self.at + 1);
        after.is_some_and(u8::is_ascii_digit)
    }

    fn run_of(&mut self, byte: u8) {
        while self.bytes.get(self.at) == Some(&byte) {
            self.at += 1;
        }
    }

    fn word(&mut self, start: usize) {
        while self.bytes.get(self.at).copied().is_some_and(is_word) {
            self.at += 1;
        }
        let word = str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
        let is_deeper = DEEPER.contains(&word);
        if is_deeper {
            self.deeper();
        }
        // `if (a); else if (b);`: a semicolon does not end the outer statement.
        if word == "else" {
            self.base += 1;
        }
        self.after_operand = !is_deeper && !OTHER.contains(&word);
    }

    fn opens(&mut self, in_template: bool) {
        if self.is_plain {
            self.open.push(Open {
                depth: self.depth,
                base: self.base,
                in_template,
            });
        }
        self.deeper();
        self.base = self.depth;
    }

    fn closes(&mut self, byte: u8) {
        if !self.is_plain {
            return;
        }
        self.after_operand = byte == b']';
        let Some(open) = self.open.pop() else {
            return;
        };
        self.depth = open.depth;
        self.base = open.base;
        if open.in_template {
            self.template();
        }
    }

    /// Steps over a string. A string that does not end in its line is not a string.
    fn string(&mut self, quote: u8) {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'\n' | b'\r' => break,
                byte if byte == quote => {
                    self.after_operand = true;
                    return;
                }
                _ => {}
            }
        }
        self.is_plain = false;
    }

    /// Steps over the text of a template, up to its end or to its next expression.
    fn template(&mut self) {
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'$' if self.bytes.get(self.at) == Some(&b'{') => {
                    self.at += 1;
                    self.opens(true);
                    return;
                }
                b'`' => {
                    self.after_operand = true;
                    return;
                }
                _ => {}
            }
        }
    }

    /// Steps over a comment.
    fn slash(&mut self, next: Option<u8>, after_operand: bool, after_colon: bool) {
        let rest = &self.bytes[self.at..];
        let end = match next {
            // U+2028 and U+2029, which start with 0xe2, end a line too.
            Some(b'/') => {
                let end = memchr::memchr3(b'\n', b'\r', 0xe2, rest);
                self.is_plain = end.is_none_or(|end| rest[end] != 0xe2);
                end
            }
            Some(b'*') => memchr::memmem::find(&rest[1..], b"*/").map(|at| at + 3),
            _ => {
                self.is_plain = false;
                return;
            }
        };
        self.at = end.map_or(self.bytes.len(), |end| self.at + end);
        self.after_operand = after_operand;
        self.after_colon = after_colon;
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'\\' | b'#')
}
