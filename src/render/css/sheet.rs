//! One stylesheet: its rules are confined one by one.

use std::sync::Arc;

use cssparser::{Parser, ParserInput, Token};
use lightningcss::declaration::DeclarationBlock;
use lightningcss::printer::PrinterOptions;
use lightningcss::rules::font_face::{FontFaceProperty, FontFaceRule, Source};
use lightningcss::rules::style::StyleRule;
use lightningcss::rules::{CssRule, CssRuleList, Location};
use lightningcss::stylesheet::{ParserOptions, StyleSheet};
use lightningcss::traits::ToCss;
use lightningcss::visitor::Visit;

use super::address::Addresses;
use super::selector::{self, Matches};
use super::{Confined, Sheet, declaration, left_out};
use crate::diagnostic::Diagnostic;
use crate::render::link::Map;

/// How many diagnostics a stylesheet may have.
const DIAGNOSTICS_MAX: usize = 200;
/// How many characters of a selector are in a diagnostic.
const SHOWN_CHARS: usize = 60;

/// Confines the rules of a stylesheet.
pub(super) fn confine(sheet: &Sheet, map: &Map) -> Confined {
    #[expect(
        clippy::disallowed_types,
        reason = "lightningcss gathers its warnings in one"
    )]
    let warnings = Arc::new(std::sync::RwLock::new(Vec::new()));
    let options = ParserOptions {
        error_recovery: true,
        warnings: Some(Arc::clone(&warnings)),
        ..ParserOptions::default()
    };
    let mut rules = Rules {
        file: &sheet.path,
        addresses: Addresses::new(&sheet.path, map),
        diagnostics: Vec::new(),
    };
    let mut styles = String::new();
    match StyleSheet::parse(&sheet.text, options) {
        Ok(mut parsed) => {
            rules.confine(&mut parsed.rules, None);
            let options = PrinterOptions {
                minify: true,
                ..PrinterOptions::default()
            };
            match parsed.to_css(options) {
                Ok(printed) if !printed.code.is_empty() => {
                    styles = format!("@layer author{{{}}}\n", printed.code);
                }
                Ok(_) => {}
                Err(error) => rules.warn(None, format!("it cannot be printed: {error}")),
            }
        }
        Err(error) => {
            let place = error.loc.map(|place| (place.line + 1, place.column));
            rules.warn(
                place,
                format!("{}, so this stylesheet is left out", error.kind),
            );
        }
    }
    let skipped = warnings.read().map(|all| {
        let one = |error: &lightningcss::error::Error<_>| {
            let place = error
                .loc
                .as_ref()
                .map(|place| (place.line + 1, place.column));
            (
                place,
                format!("left out, because it is not CSS: {}", error.kind),
            )
        };
        all.iter().map(one).collect::<Vec<_>>()
    });
    for (place, message) in skipped.unwrap_or_default() {
        rules.warn(place, message);
    }
    let place = |found: &Diagnostic| found.location.map(|place| (place.line, place.column));
    rules.diagnostics.sort_by_key(place);
    rules.diagnostics.dedup();
    Confined {
        styles,
        assets: rules.addresses.assets,
        diagnostics: rules.diagnostics,
    }
}

/// The rules of a stylesheet, while they are confined.
struct Rules<'m> {
    file: &'m str,
    addresses: Addresses<'m>,
    diagnostics: Vec<Diagnostic>,
}

// === impl Rules ===

impl Rules<'_> {
    fn warn(&mut self, place: Option<(u32, u32)>, message: String) {
        if self.diagnostics.len() == DIAGNOSTICS_MAX {
            return;
        }
        let found = left_out(self.file, message);
        self.diagnostics.push(match place {
            Some((line, column)) => found.at(line, column.max(1), 0),
            None => found,
        });
    }

    /// Confines the rules of a block; `parent` is what the rule around it matches.
    fn confine(&mut self, list: &mut CssRuleList<'_>, parent: Option<Matches>) {
        list.0.retain_mut(|rule| self.keeps(rule, parent));
    }

    /// Confines a rule, and returns whether anything of it is left.
    fn keeps(&mut self, rule: &mut CssRule<'_>, parent: Option<Matches>) -> bool {
        match rule {
            CssRule::Style(rule) => self.style(rule, parent),
            CssRule::NestedDeclarations(rule) => {
                let matches = parent.unwrap_or(Matches::Root);
                self.declarations(&mut rule.declarations, matches, rule.loc);
                !rule.declarations.is_empty()
            }
            CssRule::Media(rule) => self.block(&mut rule.rules, parent),
            CssRule::Supports(rule) => self.block(&mut rule.rules, parent),
            CssRule::Container(rule) => self.block(&mut rule.rules, parent),
            CssRule::LayerBlock(rule) => self.block(&mut rule.rules, parent),
            CssRule::StartingStyle(rule) => self.block(&mut rule.rules, parent),
            CssRule::Keyframes(rule) => {
                let loc = rule.loc;
                for frame in &mut rule.keyframes {
                    self.declarations(&mut frame.declarations, Matches::Content, loc);
                }
                true
            }
            CssRule::FontFace(rule) => self.font(rule),
            CssRule::LayerStatement(_) => true,
            CssRule::CounterStyle(rule) => {
                let loc = rule.loc;
                let rejected = self.addresses.rewrite(|all| rule.visit(all));
                self.is_kept(rejected, loc)
            }
            CssRule::Property(rule) => {
                let loc = rule.loc;
                let rejected = self.addresses.rewrite(|all| rule.visit(all));
                self.is_kept(rejected, loc)
            }
            CssRule::FontFeatureValues(_) | CssRule::FontPaletteValues(_) => true,
            CssRule::Import(rule) => {
                let shown: String = rule.url.chars().take(SHOWN_CHARS).collect();
                let message = format!(
                    "`@import` of `{shown}` is left out: every stylesheet of the documentation \
                     applies automatically, and no other can be loaded"
                );
                self.left_out(rule.loc, message)
            }
            CssRule::Ignored => false,
            CssRule::Page(rule) => self.unsupported("page", rule.loc),
            CssRule::Namespace(rule) => self.unsupported("namespace", rule.loc),
            CssRule::MozDocument(rule) => self.unsupported("-moz-document", rule.loc),
            CssRule::Nesting(rule) => self.unsupported("nest", rule.loc),
            CssRule::Viewport(rule) => self.unsupported("viewport", rule.loc),
            CssRule::CustomMedia(rule) => self.unsupported("custom-media", rule.loc),
            CssRule::Scope(rule) => self.unsupported("scope", rule.loc),
            CssRule::ViewTransition(rule) => self.unsupported("view-transition", rule.loc),
            CssRule::PositionTry(rule) => self.unsupported("position-try", rule.loc),
            CssRule::Unknown(rule) => {
                let name = rule.name.to_string();
                self.unsupported(&name, rule.loc)
            }
            CssRule::Custom(_) => false,
        }
    }

    fn block(&mut self, rules: &mut CssRuleList<'_>, parent: Option<Matches>) -> bool {
        self.confine(rules, parent);
        !rules.0.is_empty()
    }

    fn style(&mut self, rule: &mut StyleRule<'_>, parent: Option<Matches>) -> bool {
        let mut matches: Option<Matches> = None;
        let loc = rule.loc;
        rule.selectors.0.retain(|one| {
            let written = one.clone();
            match selector::confine(one, parent) {
                Ok(found) => {
                    matches = matches.max(Some(found));
                    true
                }
                Err(why) => {
                    let shown = written.to_css_string(PrinterOptions::default());
                    let shown: String = shown.unwrap_or_default();
                    let shown: String = shown.chars().take(SHOWN_CHARS).collect();
                    self.left_out(loc, format!("`{shown}` is left out: {why}"))
                }
            }
        });
        let Some(matches) = matches else {
            return false;
        };
        self.declarations(&mut rule.declarations, matches, loc);
        self.confine(&mut rule.rules, Some(matches));
        !rule.declarations.is_empty() || !rule.rules.0.is_empty()
    }

    /// Keeps the declarations that are allowed.
    fn declarations(&mut self, block: &mut DeclarationBlock<'_>, matches: Matches, loc: Location) {
        for list in [&mut block.declarations, &mut block.important_declarations] {
            list.retain_mut(|property| {
                let rejected = declaration::rejected(property, matches)
                    .or_else(|| self.addresses.rewrite(|all| property.visit(all)));
                self.is_kept(rejected, loc)
            });
        }
    }

    fn font(&mut self, rule: &mut FontFaceRule<'_>) -> bool {
        let loc = rule.loc;
        // The policy of pages forbids fonts in data.
        self.addresses.is_image = false;
        rule.properties.retain_mut(|property| match property {
            FontFaceProperty::Source(sources) => {
                sources.retain_mut(|source| match source {
                    Source::Url(source) => {
                        let rejected = self.addresses.rewrite(|all| source.url.visit(all));
                        self.is_kept(rejected, loc)
                    }
                    Source::Local(_) => true,
                });
                !sources.is_empty()
            }
            other => {
                let rejected = self.addresses.rewrite(|all| other.visit(all));
                self.is_kept(rejected, loc)
            }
        });
        self.addresses.is_image = true;
        let has_source =
            |property: &FontFaceProperty<'_>| matches!(property, FontFaceProperty::Source(_));
        rule.properties.iter().any(has_source)
    }

    fn is_kept(&mut self, rejected: Option<String>, loc: Location) -> bool {
        match rejected {
            None => true,
            Some(why) => self.left_out(loc, why),
        }
    }

    fn unsupported(&mut self, name: &str, loc: Location) -> bool {
        self.left_out(loc, format!("`@{name}` is left out: pages cannot use it"))
    }

    fn left_out(&mut self, loc: Location, message: String) -> bool {
        self.warn(Some((loc.line + 1, loc.column)), message);
        false
    }
}

/// Returns whether blocks and parentheses of a stylesheet are nested deeper than allowed.
pub(super) fn is_deeper_than(text: &str, depth: usize) -> bool {
    let mut input = ParserInput::new(text);
    is_deeper(&mut Parser::new(&mut input), depth)
}

fn is_deeper(input: &mut Parser<'_, '_>, depth: usize) -> bool {
    loop {
        let opens = match input.next() {
            Ok(token) => is_opening(token),
            Err(_end) => return false,
        };
        if !opens {
            continue;
        }
        if depth == 0 {
            return true;
        }
        let inner = input.parse_nested_block(|inner| {
            Ok::<_, cssparser::ParseError<'_, ()>>(is_deeper(inner, depth - 1))
        });
        if inner.unwrap_or(true) {
            return true;
        }
    }
}

fn is_opening(token: &Token<'_>) -> bool {
    matches!(
        token,
        Token::Function(_)
            | Token::ParenthesisBlock
            | Token::SquareBracketBlock
            | Token::CurlyBracketBlock
    )
}

/// Returns whether a printed stylesheet has one layer and nothing beside it, loads files of the
/// site only, and imports nothing.
pub(super) fn is_confined(styles: &str, depth: usize) -> bool {
    let mut input = ParserInput::new(styles);
    let mut input = Parser::new(&mut input);
    if input.is_exhausted() {
        return true;
    }
    let is_layer = matches!(input.next(), Ok(Token::AtKeyword(name)) if **name == *"layer")
        && matches!(input.next(), Ok(Token::Ident(name)) if **name == *"author")
        && matches!(input.next(), Ok(Token::CurlyBracketBlock));
    is_layer
        && input
            .parse_nested_block(|inner| {
                Ok::<_, cssparser::ParseError<'_, ()>>(loads_nothing(inner, depth, false))
            })
            .unwrap_or(false)
        && input.is_exhausted()
}

fn loads_nothing(input: &mut Parser<'_, '_>, depth: usize, is_address: bool) -> bool {
    loop {
        let (opens, names) = match input.next() {
            Ok(Token::UnquotedUrl(address)) if is_local(address) => continue,
            Ok(Token::UnquotedUrl(_) | Token::BadUrl(_)) => return false,
            Ok(Token::QuotedString(text)) if is_address && !is_local(text) => return false,
            Ok(Token::AtKeyword(name)) if name.eq_ignore_ascii_case("import") => return false,
            Ok(token @ Token::Function(name)) => {
                let name = name.to_ascii_lowercase();
                let loads =
                    name.ends_with("image-set") || matches!(&*name, "url" | "src" | "image");
                (is_opening(token), loads)
            }
            Ok(token) => (is_opening(token), is_address),
            Err(_end) => return true,
        };
        if !opens {
            continue;
        }
        let Some(depth) = depth.checked_sub(1) else {
            return false;
        };
        let inner = input.parse_nested_block(|inner| {
            Ok::<_, cssparser::ParseError<'_, ()>>(loads_nothing(inner, depth, names))
        });
        if !inner.unwrap_or(false) {
            return false;
        }
    }
}

fn is_local(address: &str) -> bool {
    ["../", "#", "data:image/"].iter().any(|start| {
        let head = address.get(..start.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(start))
    }) && !address.contains("/../")
}
