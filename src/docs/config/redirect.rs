//! Redirects.

use crate::docs::schema::kind::{Label, OrTrue, Required};
use crate::docs::schema::object;

object! {
    /// An old path and its new destination.
    pub struct Redirect = "a redirect" {
        /// The old path; may contain `:name`, `:name*` and `*`.
        "source" => source: Required<Label>,
        /// The new path or URL.
        "destination" => destination: Required<Label>,
        /// Whether the redirect is permanent (308) or temporary (307).
        "permanent" => permanent: OrTrue,
    }
    places {
        /// The place of the old path.
        "source" => span,
        /// The place of the new one.
        "destination" => destination_span,
    }
}
