//! The limits of an authority for one domain and one name: how many certificates it issues in some
//! days for the names of a registrable domain, and for the same name.
//!
//! A certificate counts from the beginning of its order. If the order fails, it does not count any
//! more. A renewal that names the certificate that it replaces never counts (RFC 9773 §5; rate
//! limits of Let's Encrypt).
//!
//! The domains are divided into parts. Each part is a document, so an order writes little.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::schedule::is_of_wrong_clock;
use super::state::Issue;
use crate::digest::Digest;

/// The certificates of one authority that count.
#[derive(Debug)]
pub(super) struct Quota {
    domain_max: usize,
    name_max: usize,
    window: u64,
    /// By part and registrable domain.
    parts: HashMap<u8, HashMap<Box<str>, Vec<Issue>>>,
}

/// A limit that is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Full {
    /// The domain or the name.
    of: Box<str>,
    max: usize,
    /// The key of the configuration.
    key: &'static str,
    window: u64,
    /// Until when no order may begin.
    pub(super) until: u64,
}

// === impl Quota ===

impl Quota {
    pub(super) fn new(domain_max: u32, name_max: u32, window: Duration) -> Self {
        let max = |max| usize::try_from(max).unwrap_or(usize::MAX);
        Self {
            domain_max: max(domain_max),
            name_max: max(name_max),
            window: window.as_secs(),
            parts: HashMap::new(),
        }
    }

    /// Replaces the certificates of a part.
    pub(super) fn replace(&mut self, part: u8, list: Vec<Issue>) {
        let mut by_domain: HashMap<Box<str>, Vec<Issue>> = HashMap::new();
        for issue in list {
            let domain = domain_of(&issue.name).into();
            by_domain.entry(domain).or_default().push(issue);
        }
        for issues in by_domain.values_mut() {
            issues.sort_unstable_by_key(|issue| issue.at);
        }
        self.parts.insert(part, by_domain);
    }

    /// Returns the part of a name, and its certificates.
    pub(super) fn part_with(&self, name: &str) -> (u8, Vec<Issue>) {
        let part = part_of(domain_of(name));
        let by_domain = self.parts.get(&part).into_iter();
        let list = by_domain.flat_map(HashMap::values).flatten().cloned();
        (part, list.collect())
    }

    /// Checks that an order of a name may begin.
    pub(super) fn check(&self, now: u64, name: &str) -> Result<(), Full> {
        let domain = domain_of(name);
        let part = self.parts.get(&part_of(domain));
        let list = part.and_then(|part| part.get(domain)).into_iter().flatten();
        // An order of this name that has not ended is the one that begins again.
        let counted: Vec<_> = list
            .filter(|issue| is_counted(issue, self.window, now))
            .filter(|issue| issue.is_issued || *issue.name != *name)
            .collect();
        let of_name = counted.iter().filter(|issue| *issue.name == *name);
        let of_name: Vec<_> = of_name.map(|issue| issue.at).collect();
        let of_domain: Vec<_> = counted.iter().map(|issue| issue.at).collect();
        let limits = [
            (name, of_name, self.name_max, "name_certificates_max"),
            (
                domain,
                of_domain,
                self.domain_max,
                "domain_certificates_max",
            ),
        ];
        let full = limits.into_iter().filter_map(|(of, at, max, key)| {
            // When this one does not count any more, there is room for one.
            let frees = at.len().checked_sub(max).and_then(|first| at.get(first))?;
            Some(Full {
                of: of.into(),
                max,
                key,
                window: self.window,
                until: frees + self.window,
            })
        });
        match full.max_by_key(|full| full.until) {
            Some(full) => Err(full),
            None => Ok(()),
        }
    }

    /// Counts an order of a name that begins.
    pub(super) fn begin(&mut self, now: u64, name: &str) {
        let window = self.window;
        let domain = domain_of(name);
        let part = self.parts.entry(part_of(domain)).or_default();
        part.retain(|_, list| {
            list.retain(|issue| is_counted(issue, window, now));
            !list.is_empty()
        });
        let list = part.entry(domain.into()).or_default();
        list.retain(|issue| issue.is_issued || *issue.name != *name);
        list.push(Issue {
            name: name.into(),
            at: now,
            is_issued: false,
        });
    }

    /// Notes the end of an order of a name. Returns whether the order was counted.
    pub(super) fn end(&mut self, now: u64, name: &str, is_issued: bool) -> bool {
        let domain = domain_of(name);
        let part = self.parts.get_mut(&part_of(domain));
        let Some(list) = part.and_then(|part| part.get_mut(domain)) else {
            return false;
        };
        let mut issues = list.iter();
        let Some(at) = issues.position(|issue| !issue.is_issued && *issue.name == *name) else {
            return false;
        };
        let issue = list.remove(at);
        if is_issued {
            list.push(Issue {
                at: now,
                is_issued,
                ..issue
            });
        }
        true
    }
}

// === impl Full ===

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            of,
            max,
            key,
            window,
            ..
        } = self;
        write!(
            f,
            "{max} certificates for {of} were ordered within {window} s, which is the limit `acme.{key}`"
        )
    }
}

/// Returns whether a certificate counts now.
fn is_counted(issue: &Issue, window: u64, now: u64) -> bool {
    !is_of_wrong_clock(issue.at, now) && issue.at.saturating_add(window) > now
}

/// Returns the registrable domain of a name, which may be a wildcard.
pub(super) fn domain_of(name: &str) -> &str {
    let host = name.strip_prefix("*.").unwrap_or(name);
    psl::domain_str(host).unwrap_or(host)
}

fn part_of(domain: &str) -> u8 {
    Digest::of(domain.as_bytes()).as_bytes()[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400;

    fn quota() -> Quota {
        Quota::new(50, 5, Duration::from_secs(7 * DAY))
    }

    /// Orders a certificate, if it may be ordered.
    fn issue(quota: &mut Quota, now: u64, name: &str) -> Result<(), u64> {
        quota.check(now, name).map_err(|full| full.until)?;
        quota.begin(now, name);
        assert!(quota.end(now, name, true));
        Ok(())
    }

    #[test]
    fn a_domain_gets_so_many_certificates_in_seven_days_and_others_are_free() {
        let mut quota = quota();
        for n in 0..50 {
            let name = format!("n{n}.docs.acme.co.uk");
            assert_eq!(issue(&mut quota, DAY + n, &name), Ok(()));
        }
        for name in ["acme.co.uk", "*.acme.co.uk", "more.acme.co.uk"] {
            assert_eq!(issue(&mut quota, 2 * DAY, name), Err(8 * DAY));
        }
        assert_eq!(issue(&mut quota, 2 * DAY, "second.co.uk"), Ok(()));
        let full = quota.check(2 * DAY, "more.acme.co.uk").unwrap_err();
        assert_eq!(
            full.to_string(),
            "50 certificates for acme.co.uk were ordered within 604800 s, which is the limit `acme.domain_certificates_max`"
        );
        // The first one does not count any more.
        assert_eq!(issue(&mut quota, 8 * DAY, "more.acme.co.uk"), Ok(()));
        assert_eq!(
            issue(&mut quota, 8 * DAY, "last.acme.co.uk"),
            Err(8 * DAY + 1)
        );
    }

    #[test]
    fn a_name_gets_so_many_certificates_in_seven_days() {
        let mut quota = quota();
        for n in 0..5 {
            assert_eq!(issue(&mut quota, n, "docs.acme.com"), Ok(()));
        }
        assert_eq!(issue(&mut quota, 6, "docs.acme.com"), Err(7 * DAY));
        assert_eq!(issue(&mut quota, 6, "help.acme.com"), Ok(()));
    }

    #[test]
    fn orders_that_fail_do_not_count_and_those_that_run_do() {
        let mut quota = Quota::new(2, 5, Duration::from_secs(7 * DAY));
        for n in 0..20 {
            quota.check(n, "docs.acme.com").unwrap();
            quota.begin(n, "docs.acme.com");
            assert!(quota.end(n, "docs.acme.com", false));
        }
        for name in ["a.acme.com", "b.acme.com"] {
            quota.check(30, name).unwrap();
            quota.begin(30, name);
        }
        assert_eq!(issue(&mut quota, 31, "docs.acme.com"), Err(30 + 7 * DAY));
        // The process has ended in the middle, and the same order begins again.
        quota.check(32, "a.acme.com").unwrap();
        quota.begin(32, "a.acme.com");
        assert!(quota.end(33, "b.acme.com", false));
        assert_eq!(issue(&mut quota, 34, "docs.acme.com"), Ok(()));
        // A renewal that was not counted.
        assert!(!quota.end(35, "docs.acme.com", true));
    }

    #[test]
    fn what_was_counted_is_kept_in_parts() {
        let mut quota = quota();
        for n in 0..5 {
            issue(&mut quota, n, "docs.acme.com").unwrap();
        }
        let (part, list) = quota.part_with("docs.acme.com");
        let mut again = self::quota();
        again.replace(part, list);
        assert_eq!(issue(&mut again, 6, "docs.acme.com"), Err(7 * DAY));
        // What does not count any more is not kept.
        issue(&mut again, 8 * DAY, "acme.com").unwrap();
        assert_eq!(again.part_with("acme.com").1.len(), 1);
    }
}
