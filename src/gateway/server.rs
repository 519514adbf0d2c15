//! Settings of pingora: threads, user, pid file, connection pools.
//!
//! They are the keys of pingora's [`ServerConf`], under `server` in our configuration. pingora
//! ignores unknown keys, so that programs can add their own keys. Our own keys are elsewhere, so
//! an unknown key is an error here.

use pingora::server::configuration::ServerConf;
use serde_json::{Map, Value};

use crate::diagnostic::closest;

/// Why the settings under `server` are rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidServerConf {
    /// pingora has no such setting.
    #[error("`server.{key}` is not a setting of pingora{}", likely.as_ref().map(|word| format!(" (did you mean `{word}`?)")).unwrap_or_default())]
    Unknown {
        /// The key in the configuration.
        key: String,
        /// The most similar setting of pingora, if there is one.
        likely: Option<String>,
    },
    /// pingora rejects the values.
    #[error("pingora rejects `server`: {0}")]
    Rejected(String),
}

/// Makes pingora's configuration from the mapping under `server`.
///
/// # Errors
///
/// All keys that pingora does not know. If it knows all keys, the reason why it rejects a value.
pub fn server_conf(written: &Map<String, Value>) -> Result<ServerConf, Vec<InvalidServerConf>> {
    let refused = |error: String| vec![InvalidServerConf::Rejected(error)];
    let defaults = serde_json::to_value(ServerConf::default());
    let known = match &defaults {
        Ok(Value::Object(known)) => known,
        Ok(_) => return Err(refused("its settings are not a mapping".to_owned())),
        Err(error) => return Err(refused(error.to_string())),
    };
    let unknown: Vec<_> = written
        .keys()
        .filter(|key| !known.contains_key(*key))
        .map(|key| InvalidServerConf::Unknown {
            key: key.clone(),
            likely: closest(key, known.keys().map(String::as_str)).map(str::to_owned),
        })
        .collect();
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let conf: ServerConf = serde_json::from_value(Value::Object(written.clone()))
        .map_err(|error| refused(error.to_string()))?;
    conf.validate().map_err(|error| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(json: &str) -> Map<String, Value> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_empty_server_section_has_the_defaults() {
        assert_eq!(server_conf(&Map::new()).unwrap(), ServerConf::default());
    }

    #[test]
    fn written_keys_are_set() {
        let conf = server_conf(&written(r#"{"threads": 4, "user": "www"}"#)).unwrap();
        assert_eq!((conf.threads, conf.user.as_deref()), (4, Some("www")));
    }

    #[test]
    fn every_unknown_key_is_reported() {
        let errors = server_conf(&written(r#"{"thread": 4, "colour": 1}"#)).unwrap_err();
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            errors,
            [
                "`server.thread` is not a setting of pingora (did you mean `threads`?)",
                "`server.colour` is not a setting of pingora",
            ]
        );
    }

    #[test]
    fn an_invalid_value_is_rejected() {
        for wrong in [r#"{"threads": "many"}"#, r#"{"max_blocking_threads": 0}"#] {
            let errors = server_conf(&written(wrong)).unwrap_err();
            assert!(
                matches!(errors[..], [InvalidServerConf::Rejected(_)]),
                "{wrong}"
            );
        }
    }
}
