//! The details of an endpoint, read from its specification.

use crate::syntax::Value;

use super::{Endpoint, Method, Specification};

/// How many parameters of an endpoint are read.
const PARAMETERS_MAX: usize = 1000;

/// An endpoint as its specification describes it.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'s> {
    specification: &'s Specification,
    item: &'s Value,
    operation: &'s Value,
}

/// A value that a request carries in its path, query, header or cookie.
#[derive(Clone, Copy, Debug)]
pub struct Parameter<'s> {
    /// Its name.
    pub name: &'s str,
    /// `path`, `query`, `header` or `cookie`.
    pub place: &'s str,
    /// Whether a request must carry it.
    pub required: bool,
    /// Whether it is deprecated.
    pub deprecated: bool,
    /// Its description.
    pub description: Option<&'s str>,
    /// Its schema.
    pub schema: Option<Schema<'s>>,
    /// The whole object, which holds `example` and `examples`.
    pub value: &'s Value,
}

/// The body of a request.
#[derive(Clone, Debug)]
pub struct Body<'s> {
    /// Its description.
    pub description: Option<&'s str>,
    /// Whether a request must have a body.
    pub required: bool,
    /// Its content, one entry for each media type.
    pub content: Vec<Media<'s>>,
}

/// The content of a body in one media type.
#[derive(Clone, Copy, Debug)]
pub struct Media<'s> {
    /// Its media type.
    pub kind: &'s str,
    /// Its schema.
    pub schema: Option<Schema<'s>>,
    /// The whole object, which holds `example` and `examples`.
    pub value: &'s Value,
}

/// A response.
#[derive(Clone, Debug)]
pub struct Response<'s> {
    /// Its status: `200`, `4XX`, `default`.
    pub status: &'s str,
    /// Its description.
    pub description: Option<&'s str>,
    /// Its content, one entry for each media type.
    pub content: Vec<Media<'s>>,
}

/// A server.
#[derive(Clone, Copy, Debug)]
pub struct Server<'s> {
    /// Its URL, which may hold variables.
    pub url: &'s str,
    /// Its description.
    pub description: Option<&'s str>,
    /// The whole object, which holds `variables`.
    pub value: &'s Value,
}

/// One way to authenticate: all of these schemes together.
#[derive(Clone, Debug)]
pub struct Security<'s> {
    /// The name of each scheme, and the scheme.
    pub schemes: Vec<(&'s str, &'s Value)>,
}

/// A schema, after its references were followed.
#[derive(Clone, Copy, Debug)]
pub struct Schema<'s> {
    /// The last segment of the reference to it. Code that walks schemas compares these names to
    /// detect a schema that contains itself.
    pub name: Option<&'s str>,
    /// The schema itself.
    pub value: &'s Value,
    /// The reference to it as its author wrote it, which may have a description and other values
    /// of its own ([`Specification::stated`]); the schema itself if there is no reference.
    pub written: &'s Value,
}

// === impl Operation ===

impl<'s> Operation<'s> {
    pub(super) fn find(specification: &'s Specification, endpoint: &Endpoint) -> Option<Self> {
        let (holder, key) = match endpoint.method {
            Method::Webhook => ("webhooks", None),
            method => ("paths", Some(method.key())),
        };
        let item = specification.root.get(holder)?.get(&endpoint.path)?;
        let item = specification.resolve(item)?;
        let operation = match key {
            Some(key) => item.get(key)?,
            None => Method::ALL
                .iter()
                .find_map(|method| item.get(method.key()))?,
        };
        Some(Self {
            specification,
            item,
            operation,
        })
    }

    /// Returns its description.
    #[must_use]
    pub fn description(&self) -> Option<&'s str> {
        self.operation.get("description")?.text()
    }

    /// Returns the text of its author before the generated parts, from `x-mint.content`.
    #[must_use]
    pub fn introduction(&self) -> Option<&'s str> {
        self.operation.get("x-mint")?.get("content")?.text()
    }

    /// Returns its identifier.
    #[must_use]
    pub fn id(&self) -> Option<&'s str> {
        self.operation.get("operationId")?.text()
    }

    /// Returns the whole object, extensions included.
    #[must_use]
    pub fn value(&self) -> &'s Value {
        self.operation
    }

    /// Returns its parameters; a parameter of the operation overrides the same one of the path.
    #[must_use]
    pub fn parameters(&self) -> Vec<Parameter<'s>> {
        let of = |value: &'s Value| value.get("parameters").map_or(&[][..], Value::items);
        let mut found: Vec<Parameter<'s>> = Vec::new();
        // §4.8.9: parameters of the operation override parameters of the path item, by name and
        // place.
        let written = of(self.operation).iter().chain(of(self.item));
        for value in written.take(PARAMETERS_MAX) {
            let Some(parameter) = self.parameter(value) else {
                continue;
            };
            let same = |p: &Parameter<'_>| (p.name, p.place) == (parameter.name, parameter.place);
            if !found.iter().any(same) {
                found.push(parameter);
            }
        }
        found
    }

    /// Returns the description of an object that may be a reference.
    fn described(&self, value: &'s Value) -> Option<&'s str> {
        self.specification.stated(value, "description")?.text()
    }

    fn parameter(&self, value: &'s Value) -> Option<Parameter<'s>> {
        let description = self.described(value);
        let value = self.specification.resolve(value)?;
        let place = value.get("in")?.text()?;
        let flag = |key| value.get(key).and_then(Value::flag).unwrap_or(false);
        Some(Parameter {
            name: value.get("name")?.text()?,
            place,
            required: place == "path" || flag("required"),
            deprecated: flag("deprecated"),
            description,
            schema: value
                .get("schema")
                .or_else(|| value.get("content")?.members().first()?.value.get("schema"))
                .and_then(|schema| self.specification.schema(schema)),
            value,
        })
    }

    /// Returns the body of its request.
    #[must_use]
    pub fn body(&self) -> Option<Body<'s>> {
        let value = self.operation.get("requestBody")?;
        let description = self.described(value);
        let value = self.specification.resolve(value)?;
        Some(Body {
            description,
            required: value.get("required").and_then(Value::flag).unwrap_or(false),
            content: self.content(value),
        })
    }

    /// Returns its responses, in the order of the file.
    #[must_use]
    pub fn responses(&self) -> Vec<Response<'s>> {
        let responses = self
            .operation
            .get("responses")
            .map_or(&[][..], Value::members);
        let response = |status: &'s str, value: &'s Value| {
            let description = self.described(value);
            let value = self.specification.resolve(value)?;
            Some(Response {
                status,
                description,
                content: self.content(value),
            })
        };
        responses
            .iter()
            .filter_map(|member| response(&member.key, &member.value))
            .collect()
    }

    fn content(&self, value: &'s Value) -> Vec<Media<'s>> {
        let content = value.get("content").map_or(&[][..], Value::members);
        let media = |kind: &'s str, value: &'s Value| Media {
            kind,
            schema: value
                .get("schema")
                .and_then(|schema| self.specification.schema(schema)),
            value,
        };
        content
            .iter()
            .map(|member| media(&member.key, &member.value))
            .collect()
    }

    /// Returns the servers of the operation, or else of its path, or else of the specification.
    #[must_use]
    pub fn servers(&self) -> Vec<Server<'s>> {
        let places = [self.operation, self.item, &self.specification.root];
        let own = places.into_iter().find_map(|place| place.get("servers"));
        let servers = own.map_or(&[][..], Value::items);
        servers
            .iter()
            .filter_map(|value| {
                Some(Server {
                    url: value.get("url")?.text()?,
                    description: value.get("description").and_then(Value::text),
                    value,
                })
            })
            .collect()
    }

    /// Returns the alternative ways to authenticate; an empty list means that none is needed.
    #[must_use]
    pub fn security(&self) -> Vec<Security<'s>> {
        let places = [self.operation, &self.specification.root];
        let own = places.into_iter().find_map(|place| place.get("security"));
        let root = &self.specification.root;
        let schemes = root
            .get("components")
            .and_then(|c| c.get("securitySchemes"));
        let scheme = |name| self.specification.resolve(schemes?.get(name)?);
        let alternatives = own.map_or(&[][..], Value::items);
        alternatives
            .iter()
            .map(|alternative| Security {
                schemes: alternative
                    .members()
                    .iter()
                    .filter_map(|member| Some((&*member.key, scheme(&member.key)?)))
                    .collect(),
            })
            .collect()
    }
}

// === impl Specification ===

impl Specification {
    /// Follows the references of a schema.
    #[must_use]
    pub fn schema<'s>(&'s self, value: &'s Value) -> Option<Schema<'s>> {
        let reference = value.get("$ref").and_then(Value::text);
        Some(Schema {
            name: reference.and_then(|reference| reference.rsplit('/').next()),
            value: self.resolve(value)?,
            written: value,
        })
    }
}
