//! Finds values of a specification by name. Without an index, a map of 10,000 schemas would be
//! searched from its beginning for each of 10,000 references.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::{Endpoint, Method, plain};
use crate::syntax::{Data, Value};

/// Maps with more members are searched with an index.
const MEMBERS_MAX: usize = 32;

/// The places of values by their names.
type Places = HashMap<Box<str>, usize>;

/// The indices of a specification. Each is made when it is first asked.
#[derive(Debug, Default)]
pub struct Lookup {
    /// The large maps, by their first byte in the file.
    maps: OnceLock<HashMap<u32, Places>>,
    /// The endpoints by method: by path, and by path without a slash at the end.
    endpoints: OnceLock<HashMap<Method, [Places; 2]>>,
}

// === impl Lookup ===

impl Lookup {
    /// Returns the value of a key of a map that is somewhere in `root`.
    pub(super) fn get<'v>(&self, root: &Value, value: &'v Value, key: &str) -> Option<&'v Value> {
        let members = value.members();
        if !has_index(value) {
            return value.get(key);
        }
        let maps = self.maps.get_or_init(|| maps(root));
        let Some(map) = maps.get(&value.span.start) else {
            return value.get(key);
        };
        match map.get(key).map(|at| members.get(*at)) {
            Some(Some(member)) if *member.key == *key => Some(&member.value),
            None if map.len() == members.len() => None,
            // The map has a key twice.
            _ => value.get(key),
        }
    }

    /// Returns the place of an endpoint with this exact path, or else of one whose path differs by
    /// a slash at the end.
    pub(super) fn endpoint(
        &self,
        endpoints: &[Endpoint],
        method: Method,
        path: &str,
    ) -> Option<usize> {
        let all = self.endpoints.get_or_init(|| by_path(endpoints));
        let [exact, similar] = all.get(&method)?;
        exact
            .get(path)
            .or_else(|| similar.get(plain(path)))
            .copied()
    }
}

/// Returns whether a map is large and has a place in a file. A value that the program makes has none.
fn has_index(value: &Value) -> bool {
    value.members().len() > MEMBERS_MAX && !value.span.range().is_empty()
}

fn maps(root: &Value) -> HashMap<u32, Places> {
    let mut maps = HashMap::new();
    let mut waiting = vec![root];
    while let Some(value) = waiting.pop() {
        match &value.data {
            Data::List(items) => waiting.extend(items),
            Data::Map(members) => {
                waiting.extend(members.iter().map(|member| &member.value));
                if has_index(value) {
                    let map: &mut Places = maps.entry(value.span.start).or_default();
                    for (at, member) in members.iter().enumerate() {
                        map.entry(member.key.clone()).or_insert(at);
                    }
                }
            }
            _ => {}
        }
    }
    maps
}

fn by_path(endpoints: &[Endpoint]) -> HashMap<Method, [Places; 2]> {
    let mut all: HashMap<Method, [Places; 2]> = HashMap::new();
    for (at, endpoint) in endpoints.iter().enumerate() {
        let [exact, similar] = all.entry(endpoint.method).or_default();
        exact.entry(endpoint.path.clone()).or_insert(at);
        similar.entry(plain(&endpoint.path).into()).or_insert(at);
    }
    all
}
