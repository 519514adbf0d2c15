//! Messages: the texts of this program on pages, in each language that it knows.
//!
//! Text of authors is never translated. But a callout without a title, the search box or a heading
//! of an endpoint's page needs a text that no author wrote. It comes from the catalogue of the
//! page's language, or from the English catalogue if the language has none.
//!
//! A language is one file here and one row in [`CATALOGUES`]. Every message is a field of
//! [`Messages`], so a catalogue that lacks one does not compile.
//!
//! `{}` in a message is the place of a value, because languages order their words
//! differently.
//!
//! Sources: BCP 47 (RFC 5646) §2.1.

mod ar;
mod de;
mod en;
mod es;
mod fr;
mod he;

use crate::site::language::primary;

/// The catalogue of each language, by its primary subtag.
const CATALOGUES: [(&str, &Messages); 6] = [
    ("ar", &ar::MESSAGES),
    ("de", &de::MESSAGES),
    ("en", &en::MESSAGES),
    ("es", &es::MESSAGES),
    ("fr", &fr::MESSAGES),
    ("he", &he::MESSAGES),
];

/// The messages of one language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Messages {
    pub(super) article: Article,
    pub(super) layout: Layout,
    pub(super) endpoint: Endpoint,
    pub(super) form: Form,
}

/// Messages in an article.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Article {
    pub(super) note: &'static str,
    pub(super) warning: &'static str,
    pub(super) info: &'static str,
    pub(super) tip: &'static str,
    pub(super) check: &'static str,
    pub(super) danger: &'static str,
    /// The label of a box of a task list that is ticked.
    pub(super) ticked: &'static str,
    /// The label of a box of a task list that is not ticked.
    pub(super) not_ticked: &'static str,
    /// The text of a heading follows.
    pub(super) link_to: &'static str,
    /// The replacement of a part that could not be evaluated.
    pub(super) left_out: &'static str,
    pub(super) table: &'static str,
    pub(super) diagram_source: &'static str,
    pub(super) embedded_page: &'static str,
    pub(super) required: &'static str,
    pub(super) deprecated: &'static str,
    pub(super) default: &'static str,
    pub(super) example: &'static str,
    /// The title of code in a group that has no title and no language, and the label of the list
    /// of titles.
    pub(super) code: &'static str,
    /// The label of the box that shows all lines of long code.
    pub(super) show_all: &'static str,
    /// The titles of an accordion, a tab and a view that have none.
    pub(super) details: &'static str,
    pub(super) tab: &'static str,
    pub(super) view: &'static str,
}

/// Messages of the layout around an article.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) skip_to_content: &'static str,
    /// The question below a page, its two answers, and the reply.
    pub(super) helpful: &'static str,
    pub(super) yes: &'static str,
    pub(super) no: &'static str,
    pub(super) thanks: &'static str,
    pub(super) menu: &'static str,
    pub(super) close: &'static str,
    pub(super) search: &'static str,
    pub(super) switch_colors: &'static str,
    /// What the switch of colours chooses, and its three choices: those of the system, light, dark.
    pub(super) schemes: &'static str,
    pub(super) announcement: &'static str,
    pub(super) dismiss: &'static str,
    pub(super) product: &'static str,
    pub(super) version: &'static str,
    pub(super) language: &'static str,
    pub(super) pages: &'static str,
    pub(super) sections: &'static str,
    pub(super) site: &'static str,
    pub(super) breadcrumb: &'static str,
    pub(super) on_this_page: &'static str,
    pub(super) copy_page: &'static str,
    pub(super) view_as_markdown: &'static str,
    pub(super) edit_page: &'static str,
    /// Names of assistants follow.
    pub(super) open_in: &'static str,
    pub(super) related: &'static str,
    /// A day follows.
    pub(super) updated: &'static str,
    pub(super) previous_and_next: &'static str,
    pub(super) previous: &'static str,
    pub(super) next: &'static str,
    pub(super) default: &'static str,
    pub(super) deprecated: &'static str,
    /// The name of a group follows.
    pub(super) pages_of: &'static str,
    /// The name of the version of this page follows.
    pub(super) you_are_reading: &'static str,
    /// The name of the default version follows.
    pub(super) go_to: &'static str,
    pub(super) not_found: &'static str,
    pub(super) not_found_text: &'static str,
    pub(super) go_to_first_page: &'static str,
    pub(super) script: Script,
}

/// Messages that the script of the layout shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) copy: &'static str,
    pub(super) copied: &'static str,
    pub(super) search: &'static str,
    pub(super) nothing_found: &'static str,
    pub(super) did_you_mean: &'static str,
    /// Shown when nothing was found: how to search differently.
    pub(super) search_help: &'static str,
    pub(super) recent_searches: &'static str,
    pub(super) clear: &'static str,
    /// The action of the arrow keys in the search.
    pub(super) to_choose: &'static str,
    /// The action of Enter.
    pub(super) to_open: &'static str,
    /// The action of Escape.
    pub(super) to_close: &'static str,
    /// Shown when only other versions or languages have results.
    pub(super) found_elsewhere: &'static str,
    pub(super) search_failed: &'static str,
    pub(super) version: &'static str,
    /// The label of the button that wraps long lines of code.
    pub(super) wrap: &'static str,
}

/// Messages on the page of an endpoint.
///
/// Text from the specification is not translated: names, types, places (`path`, `query`),
/// descriptions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) deprecated: &'static str,
    /// `{}` is the name of the webhook.
    pub(super) webhook_sends: &'static str,
    pub(super) servers: &'static str,
    pub(super) variable: &'static str,
    pub(super) authorization: &'static str,
    pub(super) any_one_is_enough: &'static str,
    /// Between the security schemes of a set. All schemes of a set are required.
    pub(super) and: &'static str,
    /// Shown instead of the security schemes of a set that has none.
    pub(super) nothing: &'static str,
    pub(super) api_key: &'static str,
    pub(super) certificate: &'static str,
    pub(super) path_parameters: &'static str,
    pub(super) query_parameters: &'static str,
    pub(super) headers: &'static str,
    pub(super) cookies: &'static str,
    pub(super) body: &'static str,
    pub(super) request: &'static str,
    pub(super) responses: &'static str,
    /// The title of errors with the same body, and of the columns of their table.
    pub(super) errors: &'static str,
    pub(super) status: &'static str,
    pub(super) when: &'static str,
    pub(super) example: &'static str,
    pub(super) fields: &'static str,
    /// Shown where the fields of a page end before those of its schemas.
    pub(super) more_fields: &'static str,
    /// Shown instead of the name of a field if every name is allowed.
    pub(super) any_key: &'static str,
    /// `{}` is the link to a schema.
    pub(super) same_as_above: &'static str,
    pub(super) one_of_these: &'static str,
    pub(super) any_of_these: &'static str,
    /// The name of an alternative that has none; `{}` is its number.
    pub(super) option: &'static str,
    /// Between the types of a value.
    pub(super) or: &'static str,
    /// The only allowed value follows.
    pub(super) only_value: &'static str,
    /// The allowed values follow.
    pub(super) one_of_values: &'static str,
    /// After allowed values that are a part of all; `{}` is the number of the others.
    pub(super) and_more: &'static str,
    pub(super) read_only: &'static str,
    pub(super) write_only: &'static str,
    pub(super) nullable: &'static str,
    pub(super) bounds: Bounds,
}

/// Messages of the form that sends a request from the page of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) try_it: &'static str,
    pub(super) server: &'static str,
    pub(super) user: &'static str,
    pub(super) password: &'static str,
    /// Where credentials are kept.
    pub(super) kept: &'static str,
    pub(super) forget: &'static str,
    pub(super) send: &'static str,
    pub(super) sending: &'static str,
    /// Shown when a server does not allow requests of the page; the first `{}` is its origin, the
    /// second one the origin of the page.
    pub(super) cors: &'static str,
    /// `{}` is the origin of the server.
    pub(super) unreachable: &'static str,
    /// Shown when a page with TLS may not ask a server without it; `{}` is its origin.
    pub(super) mixed: &'static str,
}

/// Messages for the keywords that bound a value; `{}` is the bound
/// (JSON Schema 2020-12, validation, §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) minimum: &'static str,
    pub(super) exclusive_minimum: &'static str,
    pub(super) maximum: &'static str,
    pub(super) exclusive_maximum: &'static str,
    pub(super) min_length: &'static str,
    pub(super) max_length: &'static str,
    pub(super) min_items: &'static str,
    pub(super) max_items: &'static str,
    pub(super) pattern: &'static str,
}

// === impl Messages ===

impl Messages {
    /// Returns the messages of a language by its BCP 47 tag; a region has the messages of its
    /// language.
    #[must_use]
    pub fn of(tag: &str) -> &'static Self {
        let language = primary(tag);
        let mut all = CATALOGUES.iter();
        all.find(|(known, _)| *known == language)
            .map_or(&en::MESSAGES, |(_, messages)| messages)
    }
}

impl Messages {
    /// Returns the texts of the form of an endpoint, by the names that its script uses.
    pub(super) fn words_of_form(&self) -> serde_json::Value {
        let Self { form, endpoint, .. } = self;
        serde_json::json!({
            "server": form.server,
            "authorization": endpoint.authorization,
            "nothing": endpoint.nothing,
            "user": form.user,
            "password": form.password,
            "kept": form.kept,
            "forget": form.forget,
            "path": endpoint.path_parameters,
            "query": endpoint.query_parameters,
            "header": endpoint.headers,
            "body": endpoint.body,
            "required": self.article.required,
            "send": form.send,
            "sending": form.sending,
            "close": self.layout.close,
            "cors": form.cors,
            "unreachable": form.unreachable,
            "mixed": form.mixed,
        })
    }
}

// === impl Article ===

impl Article {
    /// Returns the title of a callout by the class that styles it.
    pub(super) fn callout(&self, class: &str) -> &'static str {
        match class {
            "warning" => self.warning,
            "info" => self.info,
            "tip" => self.tip,
            "check" => self.check,
            "danger" => self.danger,
            _ => self.note,
        }
    }
}

// === impl Script ===

impl Script {
    /// Returns the messages in the order in which `scripts/first.js` reads them.
    pub(super) fn joined(&self) -> String {
        /// Names every field once, so that none can be forgotten.
        macro_rules! values {
            ($($field:ident),+ $(,)?) => {{
                let Self { $($field),+ } = *self;
                [$($field),+]
            }};
        }
        values![
            copy,
            copied,
            search,
            nothing_found,
            did_you_mean,
            search_help,
            recent_searches,
            clear,
            to_choose,
            to_open,
            to_close,
            found_elsewhere,
            search_failed,
            version,
            wrap,
        ]
        .join("|")
    }
}

// === impl Bounds ===

impl Bounds {
    /// Returns the message of each keyword.
    pub(super) fn by_keyword(&self) -> [(&'static str, &'static str); 9] {
        [
            ("minimum", self.minimum),
            ("exclusiveMinimum", self.exclusive_minimum),
            ("maximum", self.maximum),
            ("exclusiveMaximum", self.exclusive_maximum),
            ("minLength", self.min_length),
            ("maxLength", self.max_length),
            ("minItems", self.min_items),
            ("maxItems", self.max_items),
            ("pattern", self.pattern),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_has_its_language_and_an_unknown_language_has_english() {
        assert_eq!(Messages::of("fr-CA"), &fr::MESSAGES);
        assert_eq!(Messages::of("uz"), &en::MESSAGES);
        assert_eq!(Messages::of(""), &en::MESSAGES);
    }

    #[test]
    fn every_language_has_the_placeholders_of_english() {
        for (tag, messages) in CATALOGUES {
            let endpoint = messages.endpoint;
            let own = [
                endpoint.webhook_sends,
                endpoint.same_as_above,
                endpoint.option,
                endpoint.and_more,
            ];
            let bounds = endpoint.bounds.by_keyword().map(|(_, message)| message);
            for message in own.into_iter().chain(bounds) {
                assert_eq!(message.matches("{}").count(), 1, "{tag}: {message}");
            }
        }
    }

    #[test]
    fn messages_of_failed_requests_name_the_origins() {
        for (tag, Messages { form, .. }) in CATALOGUES {
            let counts = [form.cors, form.unreachable, form.mixed].map(|m| m.matches("{}").count());
            assert_eq!(counts, [2, 1, 1], "{tag}");
        }
    }

    #[test]
    fn the_switch_of_colours_has_three_choices() {
        for (tag, messages) in CATALOGUES {
            assert_eq!(messages.layout.schemes.split('|').count(), 4, "{tag}");
        }
    }

    #[test]
    fn no_message_of_the_script_contains_the_separator() {
        for (tag, messages) in CATALOGUES {
            let joined = messages.layout.script.joined();
            assert_eq!(joined.split('|').count(), 15, "{tag}: {joined}");
        }
    }
}
