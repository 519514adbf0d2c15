//! Which responses may be kept, and for how long a copy may be used.
//!
//! The rules are those of a shared cache. A copy that is no longer fresh is used only if nothing
//! forbids it; the configuration is the permission that RFC 9111 §4.2.4 asks for. A cache would
//! replace its response by a newer one to the same request. Here a newer response that cannot be
//! kept, and is no failure (RFC 5861 §4), removes the copy.
//!
//! Sources: RFC 9111 §3 (storing), §3.5 (`Authorization`), §4.1 (`Vary`), §4.2 (freshness, age,
//! stale responses), §4.4 (invalidation), §5.2.2 (directives); RFC 5861 §4 (`stale-if-error`);
//! RFC 9213 (`CDN-Cache-Control`); Edge Architecture Specification (`Surrogate-Control`).

use crate::response::{Encoding, read_date};

/// The largest number of seconds (RFC 9111 §1.2.2).
const SECONDS_MAX: u64 = 1 << 31;

/// What a response means for the copies of its target.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It may be kept.
    Keep(Terms),
    /// It must not be kept, and copies of earlier responses must not be used any more.
    Forget,
    /// Nothing.
    Nothing,
}

/// How a copy may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) coding: Encoding,
    /// Its age when it was received, in seconds.
    pub(super) age: u64,
    /// Up to which age it is fresh.
    pub(super) fresh: u64,
    /// How much longer it may be used after that.
    pub(super) stale: u64,
    /// The length of the content, if the response names it.
    pub(super) length: Option<u64>,
}

/// The directives of `Cache-Control`.
#[derive(Debug, Default)]
struct Directives {
    /// `no-store`, `private` or `no-cache`.
    is_forbidden: bool,
    /// `must-revalidate` or `proxy-revalidate`.
    must_revalidate: bool,
    s_maxage: Option<u64>,
    max_age: Option<u64>,
    stale_if_error: Option<u64>,
}

/// The fields of a response that matter here.
#[derive(Debug, Default)]
struct ResponseFields {
    control: Directives,
    targeted: Directives,
    expires: Option<Option<u64>>,
    date: Option<u64>,
    age: u64,
    /// Whether it depends on a field other than `Accept-Encoding`.
    varies: bool,
    sets_cookie: bool,
    is_event_stream: bool,
    codings: Vec<u8>,
    length: Option<u64>,
}

/// Judges the final response to a request whose response may be kept. `now` is the time of day, and
/// `stale_max` the longest time after freshness, both in seconds.
pub(super) fn judge<'f>(
    status: u16,
    fields: impl Iterator<Item = (&'f [u8], &'f [u8])>,
    now: u64,
    stale_max: u64,
) -> Verdict {
    match status {
        200 | 304 => {}
        // The page has gone, has moved, or is not public any more.
        301 | 302 | 303 | 307 | 308 | 401 | 403 | 404 | 410 | 451 => return Verdict::Forget,
        _ => return Verdict::Nothing,
    }
    let parsed = ResponseFields::of(fields);
    let Some(terms) = parsed.terms(now, stale_max) else {
        return Verdict::Forget;
    };
    match status {
        200 => Verdict::Keep(terms),
        // The response that it confirms is kept, or is not.
        _ => Verdict::Nothing,
    }
}

// === impl ResponseFields ===

impl ResponseFields {
    fn of<'f>(fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> Self {
        let mut parsed = Self::default();
        for (name, value) in fields {
            let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
            match name.len() {
                3 if is("age") => parsed.age = parsed.age.max(seconds(value).unwrap_or(0)),
                4 if is("date") => parsed.date = read_date(value),
                4 if is("vary") => {
                    let mut members = members(value);
                    parsed.varies |=
                        !members.all(|member| member.eq_ignore_ascii_case(b"accept-encoding"));
                }
                // A date that cannot be read is in the past (RFC 9111 §5.3).
                7 if is("expires") => parsed.expires = Some(read_date(value)),
                10 if is("set-cookie") => parsed.sets_cookie = true,
                12 if is("content-type") => {
                    parsed.is_event_stream |=
                        super::super::http2_stream::is_event_stream_type(value);
                }
                13 if is("cache-control") => parsed.control.add(value),
                14 if is("content-length") => {
                    let first = value.split(|&b| b == b',').next();
                    let first = str::from_utf8(first.unwrap_or_default().trim_ascii());
                    parsed.length = first.ok().and_then(|digits| digits.parse().ok());
                }
                16 if is("content-encoding") => {
                    if !parsed.codings.is_empty() {
                        parsed.codings.push(b',');
                    }
                    parsed.codings.extend_from_slice(value);
                }
                17 if is("cdn-cache-control") || is("surrogate-control") => {
                    parsed.targeted.add(value);
                }
                _ => {}
            }
        }
        parsed
    }

    /// Returns how a copy may be used; `None` if there may be none.
    fn terms(&self, now: u64, stale_max: u64) -> Option<Terms> {
        let control = &self.control;
        let is_private = control.is_forbidden || self.targeted.is_forbidden;
        if is_private || self.varies || self.sets_cookie || self.is_event_stream {
            return None;
        }
        let coding = match self.codings.trim_ascii() {
            b"" => Encoding::Identity,
            coding => Encoding::CODED.into_iter().find(|known| {
                let name = known.coding().unwrap_or_default().as_bytes();
                coding.eq_ignore_ascii_case(name)
            })?,
        };
        // RFC 9111 §4.2.3, without the time that the response was under way.
        let apparent = self.date.map_or(0, |date| now.saturating_sub(date));
        let age = apparent.max(self.age).min(SECONDS_MAX);
        let until_expiry = |expires: Option<u64>| {
            let date = self.date.unwrap_or(now);
            expires.map_or(0, |expires| expires.saturating_sub(date))
        };
        let fresh = control
            .s_maxage
            .or(control.max_age)
            .or_else(|| self.expires.map(until_expiry))
            .unwrap_or(0);
        let stale = match control.stale_if_error {
            _ if control.must_revalidate || self.targeted.must_revalidate => 0,
            Some(allowed) => allowed.min(stale_max),
            // RFC 9111 §5.2.2.10: it implies `proxy-revalidate`.
            None if control.s_maxage.is_some() => 0,
            None => stale_max,
        };
        let fresh = fresh.min(SECONDS_MAX);
        (age < fresh + stale).then_some(Terms {
            coding,
            age,
            fresh,
            stale,
            length: self.length,
        })
    }
}

// === impl Directives ===

impl Directives {
    /// Adds the directives of a field line. Of two values, the shorter time counts.
    fn add(&mut self, line: &[u8]) {
        // A quote without its end could hide a directive.
        self.is_forbidden |= memchr::memchr_iter(b'"', line).count() % 2 == 1;
        for member in members(line) {
            let (name, value) = match memchr::memchr(b'=', member) {
                Some(equals) => (&member[..equals], Some(&member[equals + 1..])),
                None => (member, None),
            };
            let is = |known: &str| name.trim_ascii().eq_ignore_ascii_case(known.as_bytes());
            // A time that cannot be read counts as none at all.
            let time = || value.and_then(seconds).unwrap_or(0);
            let shorter =
                |known: Option<u64>| Some(known.map_or(time(), |known| known.min(time())));
            if is("no-store") || is("private") || is("no-cache") {
                // With names of fields it would forbid these fields only.
                self.is_forbidden = true;
            } else if is("must-revalidate") || is("proxy-revalidate") {
                self.must_revalidate = true;
            } else if is("s-maxage") {
                self.s_maxage = shorter(self.s_maxage);
            } else if is("max-age") {
                self.max_age = shorter(self.max_age);
            } else if is("stale-if-error") {
                self.stale_if_error = shorter(self.stale_if_error);
            }
        }
    }
}

/// Splits a list at its commas, but not inside quotes. Empty members are left out.
pub(super) fn members(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let parts = list.split(move |&byte| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match byte {
            b'\\' if is_quoted && !was_escaped => is_escaped = true,
            b'"' if !was_escaped => is_quoted = !is_quoted,
            _ => {}
        }
        byte == b',' && !is_quoted
    });
    parts
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

/// Reads a number of seconds, with or without quotes (RFC 9111 §5.2).
fn seconds(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    let value = value
        .strip_prefix(b"\"")
        .and_then(|value| value.strip_suffix(b"\""))
        .unwrap_or(value);
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    // A number with too many digits is the largest one.
    let number = str::from_utf8(value).ok()?.parse().unwrap_or(SECONDS_MAX);
    Some(number.min(SECONDS_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 784_111_777;
    const STALE_MAX: u64 = 1000;

    fn judged(status: u16, fields: &str) -> Verdict {
        let lines = fields.lines().filter_map(|line| line.split_once(": "));
        let fields = lines.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        judge(status, fields, NOW, STALE_MAX)
    }

    /// Returns age, fresh time and stale time of a response that may be kept.
    #[track_caller]
    fn terms(fields: &str) -> (u64, u64, u64) {
        match judged(200, fields) {
            Verdict::Keep(terms) => (terms.age, terms.fresh, terms.stale),
            other => panic!("{fields}: {other:?}"),
        }
    }

    #[test]
    fn what_is_private_or_has_another_form_for_others_is_not_kept() {
        for fields in [
            "Cache-Control: no-store",
            "Cache-Control: max-age=9, Private",
            "Cache-Control: private=\"x-a, x-b\"",
            "Cache-Control: no-cache",
            "Cache-Control: no-cache=\"set-cookie\"",
            "Cache-Control: max-age=9\nCache-Control: no-store",
            "Cache-Control: x=\"a, no-store",
            "CDN-Cache-Control: no-store",
            "Surrogate-Control: no-store",
            "Set-Cookie: a=b",
            "Vary: *",
            "Vary: Cookie",
            "Vary: Accept-Encoding, Accept",
            "Vary: Accept-Encoding\nVary: Origin",
            "Content-Encoding: deflate",
            "Content-Encoding: gzip, br",
            "Content-Encoding: gzip\nContent-Encoding: br",
            "Content-Type: text/event-stream; charset=utf-8",
            // Nothing is left of it.
            "Cache-Control: must-revalidate",
            "Cache-Control: max-age=0, proxy-revalidate",
            "Cache-Control: s-maxage=0",
            "Cache-Control: stale-if-error=0",
            "Cache-Control: max-age=9\nAge: 1009",
        ] {
            assert_eq!(judged(200, fields), Verdict::Forget, "{fields}");
        }
    }

    #[test]
    fn the_response_says_how_long_a_copy_may_be_used() {
        assert_eq!(terms(""), (0, 0, STALE_MAX));
        assert_eq!(
            terms("Vary: accept-encoding, Accept-Encoding"),
            (0, 0, 1000)
        );
        assert_eq!(
            terms("Cache-Control: x=\"no-store, private\""),
            (0, 0, 1000)
        );
        assert_eq!(terms("Cache-Control: max-age=60"), (0, 60, 1000));
        assert_eq!(
            terms("Cache-Control: max-age=\"60\", max-age=70"),
            (0, 60, 1000)
        );
        assert_eq!(terms("Cache-Control: max-age=x"), (0, 0, 1000));
        assert_eq!(
            terms("Cache-Control: max-age=60, must-revalidate"),
            (0, 60, 0)
        );
        assert_eq!(terms("Cache-Control: max-age=6, s-maxage=60"), (0, 60, 0));
        let both = "Cache-Control: s-maxage=60, stale-if-error=50";
        assert_eq!(terms(both), (0, 60, 50));
        let strict = "Cache-Control: max-age=60, must-revalidate, stale-if-error=50";
        assert_eq!(terms(strict), (0, 60, 0));
        assert_eq!(
            terms("Cache-Control: stale-if-error=99999"),
            (0, 0, STALE_MAX)
        );
        assert_eq!(terms("Age: 7"), (7, 0, STALE_MAX));
        let dated = "Date: Sun, 06 Nov 1994 08:49:07 GMT\nExpires: Sun, 06 Nov 1994 08:50:07 GMT";
        assert_eq!(terms(dated), (30, 60, STALE_MAX));
        assert_eq!(terms("Expires: 0"), (0, 0, STALE_MAX));
        let huge = "Cache-Control: max-age=99999999999999999999999";
        assert_eq!(terms(huge), (0, SECONDS_MAX, STALE_MAX));
    }

    #[test]
    fn a_page_that_has_gone_has_no_copy_and_a_failure_changes_nothing() {
        for status in [301, 302, 303, 307, 308, 401, 403, 404, 410, 451] {
            assert_eq!(judged(status, ""), Verdict::Forget, "{status}");
        }
        for status in [206, 304, 400, 405, 416, 429, 500, 502, 503, 504] {
            assert_eq!(judged(status, ""), Verdict::Nothing, "{status}");
        }
        assert_eq!(judged(304, "Cache-Control: private"), Verdict::Forget);
    }
}
