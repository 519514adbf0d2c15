//! The names by which code mentions a product: the words of its name, its packages, and the program of
//! its command line.
//!
//! A package or a program often has another name than the product, so its code would look like the
//! code of something else.

use crate::docs::Docs;

use super::about::{self, product_words};
use super::code::without_prompt;
use super::command::Program;
use super::outline::Outline;
use super::package::{installed, packages};

/// The names by which code mentions a product.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// The words of its name and their initials, in lower case.
    words: Vec<String>,
    /// The words of the name of the part.
    part: Vec<String>,
    packages: Vec<String>,
    program: Option<String>,
}

// === impl Names ===

impl Names {
    /// Returns the names of the documented product. `program` is that of its command line.
    pub(super) fn of(docs: &Docs, outline: &Outline, program: Option<&Program>) -> Self {
        let product = about::product(&docs.config.name);
        Self {
            words: words(&product),
            part: Vec::new(),
            packages: packages(docs, outline, &product),
            program: program.map(|program| program.name.clone()),
        }
    }

    /// Adds the words of a part of the product.
    pub(super) fn with_part(&self, part: &str) -> Self {
        let mut names = self.clone();
        names.part = words(part);
        names.words.extend(names.part.iter().cloned());
        names
    }

    /// Returns whether code mentions the part of the product that it is searched for.
    pub(super) fn is_of_part(&self, code: &str) -> bool {
        let lower = code.to_lowercase();
        self.part.iter().any(|word| lower.contains(&**word))
    }

    /// Returns whether code mentions one of the names: a word anywhere, a package that it installs,
    /// the program that a line runs.
    pub(super) fn are_in(&self, code: &str) -> bool {
        let lower = code.to_lowercase();
        let is_word = self.words.iter().any(|word| lower.contains(&**word));
        let is_package = |name: &str| self.packages.iter().any(|own| own == name);
        let runs = |line: &str| {
            let first = without_prompt(line).split(' ').next().unwrap_or_default();
            self.program.as_deref() == Some(first)
        };
        is_word || code.lines().any(runs) || code.lines().flat_map(installed).any(is_package)
    }
}

/// Returns the words of a product's name, and its initials.
fn words(product: &str) -> Vec<String> {
    let mut names = product_words(product);
    let words = product.split_whitespace();
    let initials: String = words.filter_map(|word| word.chars().next()).collect();
    names.extend(product_words(&initials));
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_and_a_program_are_names_of_the_product() {
        let names = Names {
            words: words("Acmeify"),
            part: Vec::new(),
            packages: vec!["acme".to_owned()],
            program: Some("ac".to_owned()),
        };
        for code in [
            "npm i -g acme",
            "$ ac dev",
            "import { Box } from '@acmeify/box'",
        ] {
            assert!(names.are_in(code), "{code}");
        }
        for code in ["npm i -g acme-tools", "react dev", "mac os"] {
            assert!(!names.are_in(code), "{code}");
        }
        let names = names.with_part("Two Phones");
        assert!(names.are_in("phones.call()"));
    }
}
