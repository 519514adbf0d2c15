//! The page of the metrics.
//!
//! A process registers only the groups of metrics that its configuration needs. Here all groups are
//! registered, and the definitions in the source show whether a group was forgotten.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use syn::visit::{self, Visit};
use waypost::acme;
use waypost::clock::Clock;
use waypost::deploy::queue::PostgresMetrics;
use waypost::deploy::sites::verification;
use waypost::deploy::{api, worker};
use waypost::follow;
use waypost::isolation;
use waypost::store::shared;
use waypost::telemetry::{Family, Health, Metrics};

use super::{assert_page, code, prose};
use crate::tidy;

/// Every family that the program can have, in the order of the names.
fn families() -> Vec<Family> {
    let metrics = Metrics::new();
    let _worker = worker::Metrics::new(&metrics);
    let _api = api::Metrics::new(&metrics);
    let _queue = PostgresMetrics::new(&metrics);
    let _acme = acme::Metrics::new(&metrics);
    let _domains = verification::Metrics::new(&metrics);
    let _store = shared::Metrics::new(&metrics);
    let _isolation = isolation::Metrics::new(&metrics);
    let _source = follow::SourceMetrics::new(&metrics);
    let _relay = follow::RelayMetrics::new(&metrics);
    let edge = Health::new(Clock::System).part("edge");
    let _follow = follow::Status::new("https://source.test", &metrics, edge);
    metrics.families()
}

/// The names in the definitions of metrics: calls whose first argument is a name, and whose second
/// is a sentence.
#[derive(Default)]
struct Definitions(BTreeSet<String>);

impl<'ast> Visit<'ast> for Definitions {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !tidy::is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let mut texts = call.args.iter().map(|argument| match argument {
            syn::Expr::Lit(syn::ExprLit {
                lit: syn::Lit::Str(text),
                ..
            }) => Some(text.value()),
            _ => None,
        });
        let is_name = |text: &String| text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_'));
        let is_sentence = |text: &String| text.contains(' ') && text.ends_with('.');
        let name = texts.next().flatten().filter(is_name);
        let help = texts.next().flatten().filter(is_sentence);
        if let (Some(name), Some(_help)) = (name, help) {
            self.0.insert(name);
        }
        visit::visit_expr_call(self, call);
    }
}

#[test]
fn every_metric_that_the_source_defines_is_registered_here() {
    let mut defined = Definitions::default();
    for source in tidy::program() {
        if source.text.contains("prometheus") {
            let file = syn::parse_file(&source.text).unwrap();
            defined.visit_file(&file);
        }
    }
    let registered = families().into_iter().map(|family| family.name);
    assert_eq!(registered.collect::<BTreeSet<_>>(), defined.0);
}

#[test]
fn every_metric_is_on_its_page() {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "| Name | Kind | Labels | Meaning |\n| --- | --- | --- | --- |"
    );
    for family in families() {
        let labels: Vec<_> = family.labels.iter().map(|label| code(label)).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} |",
            code(&family.name),
            family.kind,
            labels.join(", "),
            prose(&family.help),
        );
    }
    assert_page("operate/reference/metrics.mdx", &out);
}
