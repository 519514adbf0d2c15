//! Settings of endpoint pages: `api` in `docs.json`.

use crate::docs::schema::kind::{Flag, Lines, OrDefault, Section, Specifications, Text, TextList};
use crate::docs::schema::{self, Field, Kind, Shape, elsewhere, object};
use crate::syntax::{Diagnostics, SpanDiagnostic, Value};

object! {
    /// Settings of endpoint pages.
    pub struct Api = "`api`" {
        /// The specification for pages that bind an endpoint.
        "openapi" => openapi: OrDefault<Specifications>,
        /// The sample requests of an endpoint.
        "examples" => examples: OrDefault<Section<Examples>>,
        /// The form that sends requests from the page of an endpoint.
        "playground" => playground: OrDefault<Section<Playground>>,
        /// How fields of schemas are shown.
        "params" => params: OrDefault<Section<Params>>,
        /// Settings of endpoint pages that are written by hand, with `api` in their frontmatter.
        "mdx" => mdx: OrDefault<Section<Mdx>>,
        /// `full`: the address above an endpoint names the first server too.
        "url" => url: Text,
    }
    also {
        Field::new(
            "asyncapi",
            Shape::Described(&["string", "array"], &elsewhere::SOURCE),
            "AsyncAPI specifications: a path, or a list of paths",
        )
        .without_effect(),
        Field::accepted(
            "auth",
            &["object"],
            "How a playground signs in; no effect here, the specification says it",
        ),
        Field::accepted(
            "baseUrl",
            &["string", "array"],
            "The server of pages written by hand; no effect here",
        ),
        Field::accepted(
            "maintainOrder",
            &["boolean"],
            "The order of fields; no effect here, it is always that of the specification",
        ),
        Field::accepted(
            "proxy",
            &["boolean"],
            "Whether requests go through a proxy; no effect here, they go from the reader's browser",
        ),
        Field::new(
            "spec",
            Shape::Described(&["string"], &elsewhere::API_SPEC),
            "How specifications are shown; no effect here, `openapi` names them",
        )
        .without_effect(),
    }
}

object! {
    /// Settings of endpoint pages that are written by hand.
    pub struct Mdx = "`mdx`" {
        /// The address of the API, or several. Pages may name one themselves.
        "server" => server: OrDefault<Lines>,
        /// How requests are authenticated; `authMethod` of a page overrides it.
        "auth" => auth: OrDefault<Section<MdxAuth>>,
    }
}

object! {
    /// How requests are authenticated.
    pub struct MdxAuth = "the `auth` of `mdx`" {
        /// `bearer`, `basic`, `key` or `none`.
        "method" => method: Text,
        /// The name of the header of a key.
        "name" => name: Text,
    }
}

object! {
    /// The sample requests of an endpoint.
    pub struct Examples = "`examples`" {
        /// The programming languages: `curl`, `python`, `javascript`, `go`. Others are left out.
        "languages" => languages: Languages,
        /// Whether the form of an endpoint has the examples of parameters at first.
        "prefill" => prefill: OrDefault<Flag>,
        /// The fields of bodies that are made for samples: `all`, or those that are `required`.
        "defaults" => defaults: OrDefault<Defaults>,
        /// `false`: samples are those of the specification only.
        "autogenerate" => autogenerate: Flag,
    }
}

object! {
    /// The form that sends requests from the page of an endpoint.
    pub struct Playground = "`playground`" {
        /// `interactive` shows the form; with any other value there is none.
        "display" => display: Playing,
        /// Whether requests carry the cookies that the reader has for the server.
        "credentials" => credentials: OrDefault<Flag>,
    }
    also { Field::no_effect("proxy", &["boolean"], "Requests go from the reader's browser to the server"), }
}

object! {
    /// How fields of schemas are shown.
    pub struct Params = "`params`" {
        /// `all`: fields inside fields are open at first. `closed`: they are closed.
        "expanded" => expanded: OrDefault<Expanded>,
        /// Keys of schemas, such as `format` or `x-since`, whose values are shown after the name of a
        /// field. Of a key that is `true`, the key is shown.
        "post" => post: OrDefault<TextList>,
    }
}

/// Whether the page of an endpoint has a form that sends requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Playing {
    /// It has one.
    Interactive,
    /// It shows samples only.
    Samples,
}

/// Whether fields inside fields are open at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expanded {
    /// A reader opens them.
    #[default]
    Closed,
    /// They are open.
    All,
}

/// The fields of bodies that are made for samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Defaults {
    /// All fields.
    #[default]
    All,
    /// The fields that a request must have.
    Required,
}

/// A programming language of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// A command for a shell.
    Curl,
    /// Python with `requests`.
    Python,
    /// JavaScript with `fetch`.
    JavaScript,
    /// Go with its standard library.
    Go,
}

// === impl Language ===

impl Language {
    /// All languages, in the order in which they are shown.
    pub const ALL: [Self; 4] = [Self::Curl, Self::Python, Self::JavaScript, Self::Go];

    /// Returns the name of its highlighting, and the name that readers see.
    #[must_use]
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Curl => ("bash", "cURL"),
            Self::Python => ("python", "Python"),
            Self::JavaScript => ("javascript", "JavaScript"),
            Self::Go => ("go", "Go"),
        }
    }

    /// Reports languages of samples that are left out.
    pub(super) fn check(root: &Value, diagnostics: &mut Diagnostics) {
        let examples = root.get("api").and_then(|api| api.get("examples"));
        let languages = examples.and_then(|examples| examples.get("languages"));
        for item in languages.map_or(&[][..], Value::items) {
            let Some(name) = item.text().filter(|name| Self::parse(name).is_none()) else {
                continue;
            };
            let message = format!("there are no samples in `{name}`");
            let help = "the languages are `curl`, `python`, `javascript` and `go`";
            let warning = SpanDiagnostic::warning(schema::NO_EFFECT, item.span, message);
            diagnostics.push(warning.help(help));
        }
    }

    fn parse(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "curl" | "bash" | "shell" | "sh" => Self::Curl,
            "python" | "py" => Self::Python,
            "javascript" | "js" | "node" | "typescript" | "ts" => Self::JavaScript,
            "go" | "golang" => Self::Go,
            _ => return None,
        })
    }
}

/// The programming languages of samples: a list of names.
#[derive(Debug)]
pub enum Languages {}

// === impl Kind ===

impl Kind for Playing {
    type Value = Option<Self>;
    const SHAPE: Shape = Shape::OneOf(&["interactive", "simple", "none", "auth"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(Value::text).map(|text| match text {
            "interactive" => Self::Interactive,
            _ => Self::Samples,
        }))
    }
}

impl Kind for Expanded {
    type Value = Option<Self>;
    const SHAPE: Shape = Shape::OneOf(&["all", "closed"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(Value::text).and_then(|text| match text {
            "all" => Some(Self::All),
            "closed" => Some(Self::Closed),
            _ => None,
        }))
    }
}

impl Kind for Defaults {
    type Value = Option<Self>;
    const SHAPE: Shape = Shape::OneOf(&["all", "required"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        Some(value.and_then(Value::text).and_then(|text| match text {
            "all" => Some(Self::All),
            "required" => Some(Self::Required),
            _ => None,
        }))
    }
}

impl Kind for Languages {
    type Value = Option<Vec<Language>>;
    const SHAPE: Shape = Shape::OfType(&["array"]);

    fn read(value: Option<&Value>) -> Option<Self::Value> {
        let Some(value) = value else {
            return Some(None);
        };
        let mut languages = Vec::new();
        for language in value
            .items()
            .iter()
            .filter_map(Value::text)
            .filter_map(Language::parse)
        {
            if !languages.contains(&language) {
                languages.push(language);
            }
        }
        Some((!languages.is_empty()).then_some(languages))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::json;

    #[test]
    fn languages_are_read_in_their_order_without_unknown_ones() {
        for (text, expected) in [
            (
                "[\"Go\", \"bash\", \"cobol\", \"curl\"]",
                Some(vec![Language::Go, Language::Curl]),
            ),
            ("[\"cobol\"]", None),
            ("7", None),
        ] {
            let mut diagnostics = Diagnostics::default();
            let file = diagnostics.files.add("docs.json", text.into());
            let value = json::read(file, &mut diagnostics);
            assert_eq!(Languages::read(value.as_ref()), Some(expected), "{text}");
        }
    }
}
