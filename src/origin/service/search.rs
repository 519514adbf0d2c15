//! The search of a site, at `/_waypost/search` and at `/search`.
//!
//! Programs get JSON; a browser without scripts gets a page of results: a file of the release, into
//! which the results are inserted. Answers depend on the release, the base path and the question
//! alone, so an entity tag is known before anything is searched.
//!
//! Sources: WHATWG URL §5.2 (`application/x-www-form-urlencoded`).

use std::fmt::Write as _;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use serde::Serialize;

use super::{HTML, Request, form};
use crate::digest::Digest;
use crate::index::ReadFileError;
use crate::markup::Html;
use crate::release::site::{
    SEARCH, SEARCH_QUERY_PLACEHOLDER, SEARCH_RESULTS_END, SEARCH_RESULTS_START, search_page_file,
};
use crate::response::encoding::Accepted;
use crate::response::{Cors, ETag, Encoding, Outcome, Problem, Response, caching};
use crate::search::{
    Excerpt, FOUND_MAX, Hit, LIMIT_DEFAULT, LIMIT_MAX, PartInfo, QUESTION_BYTES_MAX, Question,
    SearchResult, Section,
};
use crate::site::percent::{encode, encode_component};

const JSON: &str = "application/json";
/// The longest query of a request, in bytes.
const QUERY_BYTES_MAX: usize = 4096;
const VARY: &str = "Accept";

/// The parameters of a question, decoded.
#[derive(Debug, Default)]
struct Parameters {
    text: Option<String>,
    limit: Option<String>,
    cursor: Option<String>,
    version: Option<String>,
    language: Option<String>,
    typing: Option<String>,
    settled: Option<String>,
}

/// The answer for programs.
#[derive(Serialize)]
struct AnswerJson<'a> {
    query: &'a str,
    total: usize,
    elsewhere: bool,
    cursor: Option<String>,
    versions: Vec<&'a str>,
    results: Vec<HitJson<'a>>,
}

#[derive(Serialize)]
struct HitJson<'a> {
    url: String,
    title: &'a str,
    breadcrumb: &'a [String],
    language: &'a str,
    version: Option<&'a str>,
    score: f32,
    sections: Vec<SectionJson<'a>>,
}

#[derive(Serialize)]
struct SectionJson<'a> {
    heading: Option<&'a str>,
    url: String,
    excerpt: Vec<PieceJson<'a>>,
}

#[derive(Serialize)]
struct PieceJson<'a> {
    text: &'a str,
    #[serde(rename = "match", skip_serializing_if = "std::ops::Not::not")]
    is_match: bool,
}

/// A mistake in a question, as a sentence.
type Mistake = String;

// === impl Request ===

impl Request<'_> {
    /// Answers a question: JSON, or a page for a browser.
    pub(super) fn search(&self) -> Result<Response, ReadFileError> {
        let parameters = Parameters::parse(self.headers.query.unwrap_or_default());
        let accepts = |media_type| self.headers.names_accepted(media_type);
        // A client that follows a link to the search sends no question, and gets the form.
        let asks_nothing = parameters.text.is_none() && !accepts("application/json");
        let wants_page = accepts("text/html") || asks_nothing;
        let etag = self.search_etag(wants_page);
        let response = |body: Bytes, media_type| Response {
            etag,
            caching: caching::DISCOVERY,
            vary: Some(VARY),
            ..Response::new(200, media_type, body)
        };
        // The entity tag shows that the answer is the same, without computing the answer.
        let is_current = |etag| match (Response {
            etag,
            ..Response::empty(200)
        })
        .evaluate(&self.headers.conditions)
        {
            Outcome::NotModified => true,
            Outcome::Send | Outcome::Failed => false,
        };
        if wants_page && let Some(page) = self.search_page(&parameters)? {
            let page = response(page, HTML);
            let page = page.with(header::CONTENT_SECURITY_POLICY, with_form(self.policy));
            return Ok(self.conditional(page));
        }
        let open = |response: Response| Response {
            cors: Cors::Open,
            ..response
        };
        let question = match parameters.question() {
            Ok(question) => question,
            Err(mistake) => return Ok(open(Problem::new(400, mistake).response())),
        };
        if is_current(etag) {
            return Ok(open(response(Bytes::new(), JSON).not_modified()));
        }
        let answer = self.files.search_with_parts(&question)?;
        self.count(&parameters, &question, &answer.0);
        let mut body = self.search_json(&question, &answer);
        body.push(b'\n');
        Ok(open(self.conditional(response(body.into(), JSON))))
    }

    /// Counts a search for the owner of the site. A `HEAD` is no search.
    fn count(&self, parameters: &Parameters, question: &Question<'_>, found: &SearchResult) {
        let is_counted = self.headers.method == "GET" && parameters.is_counted();
        if let Some(numbers) = self.numbers.filter(|_| is_counted) {
            numbers.search(question, found.total);
        }
    }

    /// Returns the entity tag of an answer. A preview has none, because its files change.
    fn search_etag(&self, is_page: bool) -> Option<ETag> {
        let release = self.files.files.release()?;
        let query = self.headers.query.unwrap_or_default();
        let name = format!("{release} {} {is_page} {query}", self.base);
        Some(ETag::new(&Digest::of(name.as_bytes()), Encoding::Identity))
    }

    fn search_json(
        &self,
        question: &Question<'_>,
        (found, parts): &(SearchResult, Vec<PartInfo>),
    ) -> Vec<u8> {
        let language = found.hits.first().map(|hit| hit.language.as_str());
        let language = language.or(question.language);
        let language = language.or(parts.first().map(|part| part.language.as_str()));
        let mut versions: Vec<&str> = Vec::new();
        for part in parts {
            if Some(part.language.as_str()) == language
                && let Some(version) = &part.version
                && !versions.contains(&version.as_str())
            {
                versions.push(version);
            }
        }
        let answer = AnswerJson {
            query: question.text,
            total: found.total,
            elsewhere: found.is_elsewhere,
            cursor: next(question, found).map(|next| next.to_string()),
            versions,
            results: found.hits.iter().map(|hit| self.hit_json(hit)).collect(),
        };
        serde_json::to_vec(&answer).unwrap_or_default()
    }

    fn hit_json<'h>(&self, hit: &'h Hit) -> HitJson<'h> {
        let url = self.location(&hit.path);
        let section = |section: &'h Section| SectionJson {
            heading: section.heading.as_deref(),
            url: address(&url, section),
            excerpt: excerpt_json(&section.excerpt),
        };
        HitJson {
            title: &hit.title,
            breadcrumb: &hit.breadcrumb,
            language: &hit.language,
            version: hit.version.as_deref(),
            score: hit.score,
            sections: hit.sections.iter().map(section).collect(),
            url,
        }
    }

    /// Writes the page of results for a browser; `None` if the release has no such page.
    fn search_page(&self, parameters: &Parameters) -> Result<Option<Bytes>, ReadFileError> {
        let of_language = parameters
            .language
            .as_deref()
            .map(|tag| search_page_file(Some(tag)));
        let of_language = of_language.filter(|path| self.files.has(path));
        let path = of_language.unwrap_or_else(|| search_page_file(None));
        let identity = Accepted::IDENTITY_ONLY;
        let Some(file) = self.files.read_addressed(&path, self.base, identity)? else {
            return Ok(None);
        };
        let Ok(page) = file.body.read_all() else {
            return Ok(None);
        };
        let page = String::from_utf8_lossy(&page);
        let text = parameters.text.as_deref().unwrap_or_default();
        let mut words = Html::default();
        words.text(text);
        let page = page.replace(SEARCH_QUERY_PLACEHOLDER, words.as_str());
        let parts = page
            .split_once(SEARCH_RESULTS_START)
            .and_then(|(before, rest)| {
                let (messages, after) = rest.split_once(SEARCH_RESULTS_END)?;
                Some((before, messages, after))
            });
        let Some((before, messages, after)) = parts else {
            return Ok(None);
        };
        let mut results = Html::default();
        match (text.trim().is_empty(), parameters.question()) {
            (true, _) => {}
            (false, Ok(question)) => {
                let found = self.files.search(&question)?;
                self.count(parameters, &question, &found);
                self.results(&mut results, &question, &found, messages);
            }
            (false, Err(mistake)) => {
                results.markup("<p>").text(&mistake).markup("</p>");
            }
        }
        Ok(Some([before, results.as_str(), after].concat().into()))
    }

    /// Writes results as HTML. `messages` are texts of the layout, escaped and divided by a bar.
    fn results(
        &self,
        out: &mut Html,
        question: &Question<'_>,
        found: &SearchResult,
        messages: &str,
    ) {
        let (nothing, more) = messages.split_once('|').unwrap_or((messages, ""));
        if found.hits.is_empty() {
            out.markup("<p>").escaped(nothing).markup("</p>");
            return;
        }
        out.markup("<ol class=results>\n");
        for hit in &found.hits {
            self.hit_html(out, hit);
        }
        out.markup("</ol>\n");
        if let Some(next) = next(question, found) {
            out.markup("<p><a rel=next")
                .attribute("href", &self.next_address(question, next))
                .markup(">")
                .escaped(more)
                .markup("</a></p>\n");
        }
    }

    fn hit_html(&self, out: &mut Html, hit: &Hit) {
        let url = self.location(&hit.path);
        out.markup("<li><h2>");
        link(out, &url, &hit.title);
        out.markup("</h2><small>");
        for (i, label) in hit.breadcrumb.iter().chain(&hit.version).enumerate() {
            if i > 0 {
                out.markup(" › ");
            }
            out.text(label);
        }
        out.markup("</small>\n");
        // The beginning of the page is below its title, as in the dialog, although a section may have
        // a better score.
        let (start, below): (Vec<_>, Vec<_>) = hit
            .sections
            .iter()
            .partition(|section| section.heading.is_none());
        for section in start.into_iter().chain(below) {
            if let Some(heading) = &section.heading {
                out.markup("<h3>");
                link(out, &address(&url, section), heading);
                out.markup("</h3>");
            }
            out.markup("<p>");
            excerpt_html(out, &section.excerpt);
            out.markup("</p>\n");
        }
        out.markup("</li>\n");
    }

    /// Returns the address of the results after the first `next` pages.
    fn next_address(&self, question: &Question<'_>, next: usize) -> String {
        let words = encode_component(question.text);
        let mut address = format!("{}/{SEARCH}?q={words}&cursor={next}", self.base);
        let limit = Some(question.limit.to_string());
        let limit = limit.filter(|_| question.limit != LIMIT_DEFAULT);
        let others = [
            ("limit", limit.as_deref()),
            ("version", question.version),
            ("language", question.language),
        ];
        for (name, value) in others {
            if let Some(value) = value {
                let _infallible = write!(address, "&{name}={}", encode_component(value));
            }
        }
        address
    }
}

/// Returns how many pages the reader has seen after this answer; `None` if there are no more.
fn next(question: &Question<'_>, found: &SearchResult) -> Option<usize> {
    let seen = question.skip + found.hits.len();
    (seen < found.total && found.hits.len() == question.limit).then_some(seen)
}

/// Returns the address of a section of a page.
fn address(url: &str, section: &Section) -> String {
    match &section.anchor {
        Some(anchor) => format!("{url}#{}", encode(anchor)),
        None => url.to_owned(),
    }
}

/// Returns the policy of a page with a form that is sent to the site itself.
pub(super) fn with_form(policy: &HeaderValue) -> HeaderValue {
    let allowed = policy
        .to_str()
        .map(|policy| policy.replace("form-action 'none'", "form-action 'self'"));
    let allowed = allowed
        .ok()
        .and_then(|policy| HeaderValue::from_str(&policy).ok());
    allowed.unwrap_or_else(|| policy.clone())
}

/// Divides an excerpt into texts; `true` marks words of the question.
fn pieces(excerpt: &Excerpt) -> Vec<(&str, bool)> {
    let mut pieces = Vec::new();
    let mut at = 0;
    for mark in &excerpt.marks {
        let between = excerpt.text.get(at..mark.start).unwrap_or_default();
        let marked = excerpt.text.get(mark.clone()).unwrap_or_default();
        pieces.extend([(between, false), (marked, true)]);
        at = mark.end;
    }
    pieces.push((excerpt.text.get(at..).unwrap_or_default(), false));
    pieces.retain(|(text, _)| !text.is_empty());
    pieces
}

fn excerpt_json(excerpt: &Excerpt) -> Vec<PieceJson<'_>> {
    let piece = |(text, is_match)| PieceJson { text, is_match };
    pieces(excerpt).into_iter().map(piece).collect()
}

fn excerpt_html(out: &mut Html, excerpt: &Excerpt) {
    for (text, is_marked) in pieces(excerpt) {
        match is_marked {
            true => out.markup("<mark>").text(text).markup("</mark>"),
            false => out.text(text),
        };
    }
}

fn link(out: &mut Html, url: &str, text: &str) {
    out.markup("<a").attribute("href", url).markup(">");
    out.text(text).markup("</a>");
}

// === impl Parameters ===

impl Parameters {
    /// Reads the query of a request. If a parameter is repeated, the first value is used. Unknown
    /// parameters are ignored.
    fn parse(query: &str) -> Self {
        let mut parameters = Self::default();
        if query.len() > QUERY_BYTES_MAX {
            return parameters;
        }
        for (name, value) in form::pairs(query) {
            let place = match name {
                "q" => &mut parameters.text,
                "limit" => &mut parameters.limit,
                "cursor" => &mut parameters.cursor,
                "version" => &mut parameters.version,
                "language" => &mut parameters.language,
                "typing" => &mut parameters.typing,
                "settled" => &mut parameters.settled,
                _ => continue,
            };
            if place.is_none() {
                *place = Some(form::decoded(value));
            }
        }
        parameters
    }

    /// Returns whether the question is counted. Questions while a reader types are not counted;
    /// when the text stays, the search box asks again with `settled=1`. With `settled=0` no person
    /// asks.
    fn is_counted(&self) -> bool {
        match self.settled.as_deref() {
            Some("1") => true,
            Some("0") => false,
            _ => self.typing.as_deref() != Some("1"),
        }
    }

    fn question(&self) -> Result<Question<'_>, Mistake> {
        let text = self.text.as_deref().map(str::trim).unwrap_or_default();
        if text.is_empty() {
            return Err("`q` is missing: the words to search".to_owned());
        }
        if text.len() > QUESTION_BYTES_MAX {
            return Err(format!("`q` is longer than {QUESTION_BYTES_MAX} bytes"));
        }
        let number = |name: &str, text: &Option<String>, least: usize, most: usize| {
            let Some(text) = text else {
                return Ok(None);
            };
            match text.parse::<usize>() {
                Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
                _ => Err(format!("`{name}` is a number from {least} to {most}")),
            }
        };
        for (name, flag) in [("typing", &self.typing), ("settled", &self.settled)] {
            if !matches!(flag.as_deref(), None | Some("" | "0" | "1")) {
                return Err(format!("`{name}` is 0 or 1"));
            }
        }
        Ok(Question {
            text,
            limit: number("limit", &self.limit, 1, LIMIT_MAX)?.unwrap_or(LIMIT_DEFAULT),
            skip: number("cursor", &self.cursor, 0, FOUND_MAX)?.unwrap_or(0),
            version: self.version.as_deref().filter(|text| !text.is_empty()),
            language: self.language.as_deref().filter(|text| !text.is_empty()),
            is_typing: self.typing.as_deref() == Some("1"),
            ..Question::new(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_checked() {
        let parameters = Parameters::parse("q=max+tokens%3F&limit=5&version=v%201&x=1&q=other");
        let question = parameters.question().unwrap();
        assert_eq!((question.text, question.limit), ("max tokens?", 5));
        assert_eq!(question.version, Some("v 1"));
        for (query, wrong) in [
            ("", "`q` is missing"),
            ("q=+", "`q` is missing"),
            ("q=a&limit=0", "`limit` is a number from 1 to 50"),
            ("q=a&limit=51", "`limit`"),
            ("q=a&cursor=-1", "`cursor`"),
            ("q=a&typing=true", "`typing` is 0 or 1"),
            ("q=a&settled=2", "`settled` is 0 or 1"),
            (&format!("q={}", "a".repeat(513)), "longer than 512"),
            (&format!("q=a&x={}", "a".repeat(5000)), "`q` is missing"),
        ] {
            let mistake = Parameters::parse(query).question().unwrap_err();
            assert!(mistake.contains(wrong), "{query}: {mistake}");
        }
    }

    #[test]
    fn excerpts_are_escaped_and_marked() {
        let excerpt = Excerpt {
            text: "a <b> & c".to_owned(),
            marks: std::iter::once(2..5).collect(),
        };
        let html = |excerpt| {
            let mut out = Html::default();
            excerpt_html(&mut out, excerpt);
            out.into_string()
        };
        assert_eq!(html(&excerpt), "a <mark>&lt;b&gt;</mark> &amp; c");
        assert_eq!(
            serde_json::to_string(&excerpt_json(&excerpt)).unwrap(),
            r#"[{"text":"a "},{"text":"<b>","match":true},{"text":" & c"}]"#
        );
        let odd = Excerpt {
            text: "é".to_owned(),
            marks: std::iter::once(1..9).collect(),
        };
        assert_eq!(html(&odd), "");
    }
}
