//! Redirects.

use crate::docs::schema::kind::{Label, OrTrue, Required};
use crate::docs::schema::object;

object! {
    /// An old path and where it leads now.
    pub struct Redirect = "a redirect" {
        /// The old path; may contain `:name`, `:name*` and `*`.
        "source" => source: Required<Label>,
        /// Where it leads.
        "destination" => destination: Required<Label>,
        /// Whether it leads there for good (308) or for now (307).
        "permanent" => permanent: OrTrue,
    }
    places {
        /// The place of the old path.
        "source" => span,
        /// The place of the new one.
        "destination" => destination_span,
    }
}
