//! Diagnostics for code scanning: a SARIF log.
//!
//! Sources: SARIF 2.1.0 (OASIS) §3.13 (log), §3.14 (run), §3.27 (result), §3.30 (region), §3.49
//! (description of a rule).

use serde_json::{Value, json};

use super::{Diagnostic, Severity, rules};

/// Writes diagnostics as a SARIF log of one run.
///
/// `rules_url` is the address of the published reference of the rules, if there is one. The
/// reference has a heading for each rule.
#[must_use]
pub fn render(diagnostics: &[Diagnostic], rules_url: Option<&str>) -> String {
    let mut rules: Vec<&str> = diagnostics.iter().map(|d| d.rule).collect();
    rules.sort_unstable();
    rules.dedup();
    let rules: Vec<_> = rules.iter().map(|id| rule(id, rules_url)).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "waypost", "version": env!("CARGO_PKG_VERSION"), "rules": rules } },
            // §3.14.17: columns count Unicode characters, as our locations do.
            "columnKind": "unicodeCodePoints",
            "results": diagnostics.iter().map(result).collect::<Vec<_>>(),
        }],
    });
    serde_json::to_string_pretty(&log).expect("texts and numbers are always JSON")
}

/// Describes a rule (§3.49).
fn rule(id: &str, rules_url: Option<&str>) -> Value {
    let mut descriptor = json!({ "id": id });
    if let Some(rule) = rules::find(id) {
        descriptor["shortDescription"] = json!({ "text": rule.title });
        descriptor["fullDescription"] = json!({ "text": rule.text });
        descriptor["help"] = json!({ "text": rule.text, "markdown": rule.text });
    }
    if let Some(url) = rules_url {
        descriptor["helpUri"] = format!("{url}#{}", id.to_ascii_lowercase()).into();
    }
    descriptor
}

fn result(diagnostic: &Diagnostic) -> Value {
    let mut physical = json!({ "artifactLocation": { "uri": uri(&diagnostic.file) } });
    if let Some(location) = diagnostic.location {
        physical["region"] = json!({
            "startLine": location.line,
            "startColumn": location.column,
            "endColumn": location.column + location.length.max(1),
        });
    }
    let text = match &diagnostic.help {
        Some(help) => format!("{}: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    json!({
        "ruleId": diagnostic.rule,
        "level": match diagnostic.severity { Severity::Error => "error", Severity::Warning => "warning" },
        "message": { "text": text },
        "locations": [{ "physicalLocation": physical }],
    })
}

/// Writes a path as a relative URI reference (§3.10, RFC 3986 §3.3).
fn uri(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_names_rule_place_and_help() {
        let found = Diagnostic::warning("page-missing", "a b/docs.json", "there is no page `x`")
            .at(2, 5, 3)
            .help("did you mean `y`?");
        let log: Value =
            serde_json::from_str(&render(&[found], Some("https://docs.test/rules"))).unwrap();
        let result = &log["runs"][0]["results"][0];
        assert_eq!(result["ruleId"], "page-missing");
        assert_eq!(
            result["message"]["text"],
            "there is no page `x`: did you mean `y`?"
        );
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "a%20b/docs.json");
        assert_eq!(place["region"]["endColumn"], 8);
        let rule = &log["runs"][0]["tool"]["driver"]["rules"][0];
        assert_eq!(rule["id"], "page-missing");
        assert_eq!(
            rule["shortDescription"]["text"],
            "entries of `pages` name pages"
        );
        let help = rule["help"]["text"].as_str().unwrap();
        assert!(help.starts_with("An entry without its page is left out."));
        assert_eq!(rule["helpUri"], "https://docs.test/rules#page-missing");
    }
}
