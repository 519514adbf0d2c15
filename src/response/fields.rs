//! The header fields of a response, for each version of HTTP.
//!
//! [`Response::each_field`] is the one list of fields. HTTP/1.1 writes them as text, and most of a
//! line is known when the program is compiled: its name with the colon, or all of it. So a field
//! takes one to three copies, and no value is formatted in memory that has to be allocated.
//!
//! Names compare without case (RFC 9110 §5.1). HTTP/2 has lower-case names only; over HTTP/1.1
//! they have the case that people expect who read with `curl -i`.

use http::Version;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use pingora::http::ResponseHeader;

use super::{Cors, Response, caching, date};

/// Most responses have at most this many fields.
const FIELDS_TYPICAL: usize = 16;
const LINE_END: &[u8] = b"\r\n";

/// A field of a response.
#[derive(Clone, Copy)]
enum Field<'r> {
    /// The same in each response that has it.
    Fixed(&'static Fixed),
    /// A value that is known when the program is compiled.
    Constant(&'static Name, &'static str),
    /// A value of this response.
    Made(&'static Name, &'r [u8]),
    /// One of [`Response::more`].
    More(&'r HeaderName, &'r HeaderValue),
}

/// The name of a field, for HTTP/2 and for HTTP/1.1.
struct Name {
    name: HeaderName,
    /// With the colon and the space behind it.
    title: &'static str,
}

/// A field with its value.
struct Fixed {
    name: HeaderName,
    value: HeaderValue,
    /// The whole line for HTTP/1.1.
    line: &'static str,
}

/// Makes the name `header::$name`, which HTTP/1.1 writes as `$title`.
macro_rules! name {
    ($name:ident, $title:literal) => {
        Name {
            name: header::$name,
            title: concat!($title, ": "),
        }
    };
}

/// Makes a field with its value.
macro_rules! fixed {
    ($name:ident, $title:literal, $value:literal) => {
        Fixed {
            name: header::$name,
            value: HeaderValue::from_static($value),
            line: concat!($title, ": ", $value, "\r\n"),
        }
    };
}

static ALLOW: Name = name!(ALLOW, "Allow");
static CACHE_CONTROL: Name = name!(CACHE_CONTROL, "Cache-Control");
static CONTENT_ENCODING: Name = name!(CONTENT_ENCODING, "Content-Encoding");
static CONTENT_LENGTH: Name = name!(CONTENT_LENGTH, "Content-Length");
static CONTENT_TYPE: Name = name!(CONTENT_TYPE, "Content-Type");
static ETAG: Name = name!(ETAG, "ETag");
static LAST_MODIFIED: Name = name!(LAST_MODIFIED, "Last-Modified");
static LOCATION: Name = name!(LOCATION, "Location");
static VARY: Name = name!(VARY, "Vary");

static NO_SNIFFING: Fixed = fixed!(X_CONTENT_TYPE_OPTIONS, "X-Content-Type-Options", "nosniff");

/// Scripts of all origins may read the response.
static ANY_ORIGIN: Fixed = fixed!(
    ACCESS_CONTROL_ALLOW_ORIGIN,
    "Access-Control-Allow-Origin",
    "*"
);
static PREFLIGHT_AGE: Fixed = fixed!(ACCESS_CONTROL_MAX_AGE, "Access-Control-Max-Age", "86400");
/// They may read the entity tags of discovery documents too.
static EXPOSED: Fixed = fixed!(
    ACCESS_CONTROL_EXPOSE_HEADERS,
    "Access-Control-Expose-Headers",
    "ETag"
);
static METHODS: Fixed = fixed!(
    ACCESS_CONTROL_ALLOW_METHODS,
    "Access-Control-Allow-Methods",
    "GET, HEAD, OPTIONS"
);
/// A2A clients in browsers send `A2A-Version`, which needs a preflight.
static ALLOWED: Fixed = fixed!(
    ACCESS_CONTROL_ALLOW_HEADERS,
    "Access-Control-Allow-Headers",
    "Accept, A2A-Version, Content-Type, If-None-Match, MCP-Protocol-Version"
);
static MCP_EXPOSED: Fixed = fixed!(
    ACCESS_CONTROL_EXPOSE_HEADERS,
    "Access-Control-Expose-Headers",
    "Retry-After"
);
static MCP_METHODS: Fixed = fixed!(
    ACCESS_CONTROL_ALLOW_METHODS,
    "Access-Control-Allow-Methods",
    "POST, OPTIONS"
);
/// The fields of messages to MCP servers, also of earlier revisions: clients send them, and a
/// browser sends nothing if one of them is not allowed.
static MCP_ALLOWED: Fixed = fixed!(
    ACCESS_CONTROL_ALLOW_HEADERS,
    "Access-Control-Allow-Headers",
    "Accept, Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, \
     MCP-Protocol-Version, Mcp-Session-Id"
);

static CORS_OPEN: [&Fixed; 2] = [&ANY_ORIGIN, &EXPOSED];
static CORS_PREFLIGHT: [&Fixed; 4] = [&ANY_ORIGIN, &METHODS, &ALLOWED, &PREFLIGHT_AGE];
static CORS_MCP: [&Fixed; 2] = [&ANY_ORIGIN, &MCP_EXPOSED];
static CORS_MCP_PREFLIGHT: [&Fixed; 4] = [&ANY_ORIGIN, &MCP_METHODS, &MCP_ALLOWED, &PREFLIGHT_AGE];

// === impl Response ===

impl Response {
    /// Calls `field` with every field but `Date` and `Connection`, in the order in which HTTP/1.1
    /// writes them.
    fn each_field(&self, mut field: impl FnMut(Field<'_>)) {
        if let Some(media_type) = self.media_type {
            field(Field::Constant(&CONTENT_TYPE, media_type));
        }
        if self.has_length() {
            let mut digits = itoa::Buffer::new();
            let length = digits.format(self.body.len());
            field(Field::Made(&CONTENT_LENGTH, length.as_bytes()));
        }
        if let Some(coding) = self.encoding.coding() {
            field(Field::Constant(&CONTENT_ENCODING, coding));
        }
        if let Some(etag) = &self.etag {
            let (text, length) = etag.text();
            field(Field::Made(&ETAG, &text[..length]));
        }
        if let Some(seconds) = self.last_modified {
            field(Field::Made(&LAST_MODIFIED, &date(seconds)));
        }
        if self.caching != caching::OWN {
            field(Field::Constant(&CACHE_CONTROL, self.caching));
        }
        if let Some(vary) = self.vary {
            field(Field::Constant(&VARY, vary));
        }
        for fixed in self.cors.fields() {
            field(Field::Fixed(fixed));
        }
        if self.media_type.is_some() {
            field(Field::Fixed(&NO_SNIFFING));
        }
        if let Some(allow) = self.allow {
            field(Field::Constant(&ALLOW, allow));
        }
        if let Some(location) = &self.location {
            field(Field::Made(&LOCATION, location));
        }
        for (name, value) in &self.more {
            field(Field::More(name, value));
        }
    }

    /// Appends the lines of all fields but `Date` and `Connection`, for HTTP/1.1.
    pub(super) fn write_fields(&self, out: &mut Vec<u8>) {
        self.each_field(|field| field.write(out));
    }

    /// Returns the header as pingora's type. pingora adds `Date` in every version of HTTP.
    #[must_use]
    pub fn response_header(&self, version: Version) -> ResponseHeader {
        // HTTP/2 has lower-case names only.
        let build = if version == Version::HTTP_2 {
            ResponseHeader::build_no_case
        } else {
            ResponseHeader::build
        };
        let mut response =
            build(self.status, Some(FIELDS_TYPICAL)).expect("our status codes are valid");
        self.each_field(|field| {
            response
                .append_header(field.name(), field.value())
                .expect("a header name and value we made");
        });
        response
    }

    /// Returns the fields for HTTP/2, all but `Date`.
    #[must_use]
    pub fn http2_fields(&self) -> HeaderMap {
        let mut fields = HeaderMap::with_capacity(FIELDS_TYPICAL);
        self.each_field(|field| {
            fields.append(field.name(), field.value());
        });
        fields
    }
}

// === impl Cors ===

impl Cors {
    fn fields(self) -> &'static [&'static Fixed] {
        match self {
            Self::Closed => &[],
            Self::Open => &CORS_OPEN,
            Self::Preflight => &CORS_PREFLIGHT,
            Self::Mcp => &CORS_MCP,
            Self::McpPreflight => &CORS_MCP_PREFLIGHT,
        }
    }
}

// === impl Field ===

impl Field<'_> {
    fn name(&self) -> &HeaderName {
        match self {
            Self::Fixed(Fixed { name, .. }) => name,
            Self::Constant(Name { name, .. }, _) | Self::Made(Name { name, .. }, _) => name,
            Self::More(name, _) => name,
        }
    }

    fn value(&self) -> HeaderValue {
        match self {
            Self::Fixed(Fixed { value, .. }) => value.clone(),
            Self::Constant(_, value) => HeaderValue::from_static(value),
            Self::Made(_, value) => {
                HeaderValue::from_bytes(value).expect("our header values are visible ASCII")
            }
            Self::More(_, value) => HeaderValue::clone(value),
        }
    }

    /// Appends the line of HTTP/1.1.
    fn write(&self, out: &mut Vec<u8>) {
        let (title, value) = match self {
            Self::Fixed(Fixed { line, .. }) => return out.extend_from_slice(line.as_bytes()),
            Self::Constant(Name { title, .. }, value) => (*title, value.as_bytes()),
            Self::Made(Name { title, .. }, value) => (*title, *value),
            Self::More(name, value) => {
                out.extend_from_slice(name.as_str().as_bytes());
                (": ", value.as_bytes())
            }
        };
        out.extend_from_slice(title.as_bytes());
        out.extend_from_slice(value);
        out.extend_from_slice(LINE_END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_a_name_are_one_name() {
        for Name { name, title } in [
            &ALLOW,
            &CACHE_CONTROL,
            &CONTENT_ENCODING,
            &CONTENT_LENGTH,
            &CONTENT_TYPE,
            &ETAG,
            &LAST_MODIFIED,
            &LOCATION,
            &VARY,
        ] {
            assert_eq!(title.to_ascii_lowercase(), format!("{name}: "));
        }
        let lists = [
            &CORS_OPEN[..],
            &CORS_PREFLIGHT,
            &CORS_MCP,
            &CORS_MCP_PREFLIGHT,
            &[&NO_SNIFFING],
        ];
        for Fixed { name, value, line } in lists.into_iter().flatten() {
            let (title, rest) = line.split_at(name.as_str().len());
            assert_eq!(title.to_ascii_lowercase(), name.as_str());
            assert_eq!(rest, format!(": {}\r\n", value.to_str().unwrap()));
        }
    }
}
