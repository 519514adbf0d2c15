//! Words of instructions in English.

/// The first words of titles and steps that tell a reader to do something.
const IMPERATIVES: &str = "\
    access activate add adjust allow analyze apply ask assign attach authenticate authorize automate avoid \
    back batch benchmark boot browse build bundle buy cache call cancel capture change charge check choose \
    clear click clone close combine compile complete compose compress compute configure confirm connect \
    consume control convert copy create customize debug decode decrypt define delegate delete delay \
    deploy deliver design detect develop disable discover do don download draw duplicate edit embed emit \
    enable encrypt enforce enrich ensure enter evaluate execute expand explore export expose extend extract \
    fetch filter find fine-tune fix follow forward generate get give go grant group handle host \
    identify implement import improve index ingest initialize insert inspect install integrate invite invoke \
    issue join keep label launch limit link list listen load localize locate log make manage map \
    measure mention merge migrate mint monitor mount move name navigate never note notify observe obtain open \
    optimize orchestrate order organize override package parse paste patch pause pay persist pick \
    pin plan play prepare press preview process protect provide provision publish pull push put \
    query queue read rebuild receive recover redeem redirect refresh refund register release reload \
    remove rename render renew replace report request reset resize resolve restart restore restrict \
    resume retrieve retry return reuse review revoke roll rotate route run save scale scan schedule \
    scrape search secure see select sell send serve set share show sign simulate sort specify split stage start \
    stop store stream style submit subscribe summarize switch sync tag test throttle tokenize trace \
    track train transcribe transfer transform translate trigger troubleshoot try tune turn type \
    understand uninstall unzip update upgrade upload use validate verify view visit wait watch \
    withdraw wrap write";

/// Returns whether a line starts as an instruction: `Create a charge`, `2. Run the server`.
pub(super) fn is_instruction(line: &str) -> bool {
    let line = without_number(line).trim_start_matches(['*', '_', '`', '"']);
    let end = line
        .find(|c: char| !c.is_alphabetic() && c != '-')
        .unwrap_or(line.len());
    let word = line[..end].to_lowercase();
    !word.is_empty() && IMPERATIVES.split(' ').any(|known| known == word)
}

/// Returns whether a title is a task. Verbs that are also nouns need an object: `Request units` is
/// a subject, `Request a refund` is a task.
pub(super) fn is_task(title: &str) -> bool {
    const NOUNS: [&str; 42] = [
        "access", "request", "launch", "debug", "list", "set", "test", "trace", "host", "order",
        "index", "search", "report", "log", "process", "schedule", "cache", "share", "sort",
        "query", "limit", "design", "stream", "monitor", "plan", "start", "filter", "label",
        "measure", "group", "tag", "type", "use", "view", "watch", "issue", "load", "handle",
        "map", "select", "upgrade", "release",
    ];
    // A rule for the reader is no task.
    const RULES: [&str; 5] = ["avoid", "ensure", "do", "don", "never"];
    const OBJECTS: [&str; 15] = [
        "in", "up", "out", "a", "an", "the", "your", "our", "to", "with", "from", "all",
        "multiple", "data", "code",
    ];
    let words = super::role::normal(title);
    let mut words = words.split_whitespace();
    let (first, second) = (words.next().unwrap_or_default(), words.next());
    let has_object = second.is_some_and(|second| OBJECTS.contains(&second));
    is_instruction(title) && !RULES.contains(&first) && (!NOUNS.contains(&first) || has_object)
}

/// Splits a line after the one or two digits at its beginning; `Step ` may come before them.
fn split_number(line: &str) -> Option<(&str, &str)> {
    let rest = line
        .strip_prefix("Step ")
        .or_else(|| line.strip_prefix("step "))
        .unwrap_or(line);
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    (1..=2).contains(&digits).then(|| rest.split_at(digits))
}

/// Removes `1. `, `2) `, `Step 3: ` from the beginning of a line.
pub(super) fn without_number(line: &str) -> &str {
    let line = line.trim();
    let Some((_, rest)) = split_number(line) else {
        return line;
    };
    let after = rest.trim_start_matches(['.', ')', ':', ' ', '–', '-']);
    if after.len() < rest.len() {
        after
    } else {
        line
    }
}

/// Returns the number at the beginning of a heading: `1. Create`, `Step 2: Run`.
pub(super) fn number(line: &str) -> Option<usize> {
    let (digits, after) = split_number(line.trim())?;
    let is_number = after.starts_with(['.', ')', ':']);
    is_number.then(|| digits.parse().ok()).flatten()
}

/// Makes the first letter of a phrase small, unless its first word is a name or an acronym.
pub(super) fn in_sentence(phrase: &str) -> String {
    let mut letters = phrase.chars();
    let Some(first) = letters.next() else {
        return String::new();
    };
    let word: String = letters
        .clone()
        .take_while(|c| c.is_alphanumeric())
        .collect();
    if word.chars().any(|c| c.is_uppercase() || c.is_ascii_digit()) || word.is_empty() {
        return phrase.to_owned();
    }
    first.to_lowercase().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_begin_with_a_verb() {
        for line in [
            "Create a charge",
            "2. Run it",
            "**Open** the page",
            "Step 3: Send it",
        ] {
            assert!(is_instruction(line), "{line}");
        }
        for line in [
            "The attacker sends a link",
            "Quickstart",
            "Sandbox lifecycle",
            "",
        ] {
            assert!(!is_instruction(line), "{line}");
        }
        for rule in ["Avoid two calls", "Don't share it", "Never wait"] {
            assert!(is_instruction(rule) && !is_task(rule), "{rule}");
        }
        assert_eq!(without_number("2024 in review"), "2024 in review");
        assert_eq!(without_number("2. Connect"), "Connect");
        assert_eq!(number("Step 2: Run"), Some(2));
        assert_eq!(number("3D models"), None);
    }

    #[test]
    fn names_and_acronyms_keep_their_letters() {
        assert_eq!(in_sentence("Create a key"), "create a key");
        assert_eq!(in_sentence("OAuth"), "OAuth");
        assert_eq!(in_sentence("A charge"), "A charge");
    }
}
