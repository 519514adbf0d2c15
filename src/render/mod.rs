//! Render: from the text of a page to what people and agents read.
//!
//! Functions from values to values. A page is read once ([`crate::mdx`]) and written twice: as
//! HTML ([`html`]) for people and as Markdown ([`markdown`]) for agents. The shell around
//! an article ([`layout`]) knows the whole site and is cheap; the article knows only its
//! own page, so it can be kept when another page changes.
//!
//! | rule | |
//! |---|---|
//! | **R1** | No script of a page is run, and none is passed on: what has a value is read off. |
//! | **R2** | HTML is written by [`escape::Html`], which takes text only through its escapes and markup only as constants. |
//! | **R3** | Of elements and attributes that authors write, those of a list pass; an address has a scheme of a list. |
//! | **R4** | An element nobody knows shows what it holds. |
//! | **R5** | Links inside the site are relative: an article knows no domain and no base path. |
//! | **R6** | One page never takes down or stalls a build: limits by name, and what panics is caught. Such a page is shown as its source, with a warning. |
//! | **R7** | What is written as HTML reads back as it was written: nothing stands where a parser would move it. |
//!
//! Sources: `docs.json` navigation rules N1 to N8; WHATWG HTML; MathML Core.

pub mod article;
mod component;
pub mod endpoint;
pub mod escape;
pub mod file;
mod highlight;
pub mod html;
pub mod icon;
pub mod layout;
pub mod link;
pub mod markdown;
pub mod messages;
