//! Addresses in the stylesheets of authors: they lead to files of the release, and nowhere else.
//!
//! A stylesheet that loads files from other servers would tell these servers who reads which page.
//! An address becomes relative to our stylesheet, which is one directory below the root of a site.

use std::collections::BTreeSet;
use std::convert::Infallible;

use lightningcss::properties::custom::Function;
use lightningcss::values::ident::DashedIdent;
use lightningcss::values::url::Url;
use lightningcss::visitor::{Visit, VisitTypes, Visitor};

use super::name;
use crate::render::link::{Map, Target};
use crate::site::percent::encode;

/// Functions that load a file whose name is a text. The parser returns typed values for functions
/// that it knows; such a text could not be checked.
const LOADING: [&str; 7] = [
    "-webkit-image-set",
    "domain",
    "image",
    "image-set",
    "src",
    "url",
    "url-prefix",
];

/// Rewrites the addresses of one stylesheet.
pub(super) struct Addresses<'m> {
    /// The path of the stylesheet, from the root of the documentation.
    pub(super) file: &'m str,
    pub(super) map: &'m Map,
    /// Whether addresses in data (`data:image/…`) are allowed here.
    pub(super) is_image: bool,
    /// The files that the stylesheet loads.
    pub(super) assets: BTreeSet<Box<str>>,
    /// Why the value that was visited last cannot be used.
    rejected: Option<String>,
}

// === impl Addresses ===

impl<'m> Addresses<'m> {
    pub(super) fn new(file: &'m str, map: &'m Map) -> Self {
        Self {
            file,
            map,
            is_image: true,
            assets: BTreeSet::new(),
            rejected: None,
        }
    }

    /// Rewrites the addresses and names in a value. Returns why it cannot be used, or nothing.
    pub(super) fn rewrite(
        &mut self,
        visit: impl FnOnce(&mut Self) -> Result<(), Infallible>,
    ) -> Option<String> {
        let Ok(()) = visit(self);
        self.rejected.take()
    }

    /// Returns the address that is written instead of an author's address.
    fn resolve(&mut self, written: &str) -> Result<String, String> {
        let start = written.trim_start();
        if self.is_image
            && start
                .get(..11)
                .is_some_and(|s| s.eq_ignore_ascii_case("data:image/"))
        {
            return Ok(start.to_owned());
        }
        match self.map.resolve(self.file, written) {
            Target::Asset(path) => {
                let address = format!("../{}", encode(&path));
                self.assets.insert(path);
                Ok(address)
            }
            Target::Here(place) if place.starts_with('#') => Ok(place.into()),
            Target::Unknown { path, .. } => Err(format!("there is no file `{path}` for `url()`")),
            _ => {
                let shown: String = written.chars().take(80).collect();
                Err(format!(
                    "`url({shown})` is left out: it is not a file of this site"
                ))
            }
        }
    }
}

impl<'i> Visitor<'i> for Addresses<'_> {
    type Error = Infallible;

    fn visit_types(&self) -> VisitTypes {
        VisitTypes::all()
    }

    fn visit_url(&mut self, url: &mut Url<'i>) -> Result<(), Infallible> {
        match self.resolve(&url.url) {
            Ok(address) => url.url = address.into(),
            Err(why) => self.rejected = Some(why),
        }
        Ok(())
    }

    fn visit_dashed_ident(&mut self, ident: &mut DashedIdent<'_>) -> Result<(), Infallible> {
        if let Some(name) = name::property(&ident.0) {
            ident.0 = name.into();
        }
        Ok(())
    }

    fn visit_function(&mut self, function: &mut Function<'i>) -> Result<(), Infallible> {
        let name = function.name.0.to_ascii_lowercase();
        if LOADING.contains(&&*name) {
            self.rejected = Some(format!(
                "`{name}()` is left out: its value cannot be checked"
            ));
        }
        function.visit_children(self)
    }
}
