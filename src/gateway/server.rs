//! Settings of pingora: threads, connection pools and others.
//!
//! They are the keys of pingora's [`ServerConf`], under `server` in our configuration. pingora
//! ignores unknown keys, so that programs can add their own keys. Our own keys are elsewhere, so
//! an unknown key is an error here. A key that pingora would ignore, or that would break this
//! program, is an error too: otherwise an operator could believe that the process has dropped its
//! privileges when it has not.

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
    /// pingora has the setting, but this program cannot keep what it promises.
    #[error("`server.{key}` cannot be set: {reason}")]
    Unsupported {
        /// The key in the configuration.
        key: &'static str,
        /// Why not, and what to do instead.
        reason: &'static str,
    },
    /// pingora rejects the values.
    #[error("pingora rejects `server`: {0}")]
    Rejected(String),
}

/// Settings of pingora that this program rejects, with the reason.
const UNSUPPORTED: [(&str, &str); 6] = [
    ("user", PRIVILEGES),
    ("group", PRIVILEGES),
    (
        "daemon",
        "a process with threads cannot go to the background; use a supervisor, such as systemd",
    ),
    (
        "pid_file",
        "only a daemon has one; use a supervisor, such as systemd",
    ),
    (
        "error_log",
        "only a daemon has one; the process log is on standard error",
    ),
    (
        "upgrade_sock",
        "listeners cannot be passed to another process",
    ),
];
const PRIVILEGES: &str = "the process does not change its user; start it as the user that it \
    should run as (User= and Group= of systemd, with AmbientCapabilities=CAP_NET_BIND_SERVICE for \
    ports below 1024)";

/// Makes pingora's configuration from the mapping under `server`.
///
/// # Errors
///
/// All keys that pingora does not know or that are not supported. If there are none, the reason
/// why it rejects a value.
pub fn server_conf(written: &Map<String, Value>) -> Result<ServerConf, Vec<InvalidServerConf>> {
    let rejected = |error: String| vec![InvalidServerConf::Rejected(error)];
    let defaults = serde_json::to_value(ServerConf::default());
    let known = match &defaults {
        Ok(Value::Object(known)) => known,
        Ok(_) => return Err(rejected("its settings are not a mapping".to_owned())),
        Err(error) => return Err(rejected(error.to_string())),
    };
    let mut unknown: Vec<_> = written
        .keys()
        .filter(|key| !known.contains_key(*key))
        .map(|key| InvalidServerConf::Unknown {
            key: key.clone(),
            likely: closest(key, known.keys().map(String::as_str)).map(str::to_owned),
        })
        .collect();
    let is_set = |key: &str| {
        let value = written.get(key);
        value.is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
    };
    let unsupported = UNSUPPORTED.into_iter().filter(|(key, _)| is_set(key));
    unknown.extend(unsupported.map(|(key, reason)| InvalidServerConf::Unsupported { key, reason }));
    if !unknown.is_empty() {
        return Err(unknown);
    }
    let conf: ServerConf = serde_json::from_value(Value::Object(written.clone()))
        .map_err(|error| rejected(error.to_string()))?;
    conf.validate().map_err(|error| rejected(error.to_string()))
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
        let conf = server_conf(&written(r#"{"threads": 4, "daemon": false}"#)).unwrap();
        assert_eq!((conf.threads, conf.daemon), (4, false));
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
    fn a_setting_that_would_be_ignored_is_rejected_with_the_reason() {
        let all = r#"{"user": "www", "group": "www", "daemon": true, "pid_file": "/run/w.pid"}"#;
        let errors = server_conf(&written(all)).unwrap_err();
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 4, "{errors:?}");
        assert!(errors[0].starts_with("`server.user` cannot be set: the process does not"));
        assert!(
            errors[2].contains("cannot go to the background"),
            "{errors:?}"
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
