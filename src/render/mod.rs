//! Render: writes pages as HTML for people and as Markdown for agents.
//!
//! All functions are pure. A page is read once ([`crate::mdx`]) and written twice: as HTML
//! ([`html`]) and as Markdown ([`markdown`]). The article depends only on its own page, so
//! it can be reused when another page changes. The layout around it ([`layout`]) depends on
//! the whole site, and is cheap to write.
//!
//! | rule | |
//! |---|---|
//! | **R1** | No script of a page is written. Its JSX was evaluated when it was read ([`crate::jsx`]), and the result is treated like text of the author. |
//! | **R2** | HTML is written by [`Html`](crate::markup::Html), which takes text only through its escapes and markup only as constants. |
//! | **R3** | Only listed elements, attributes and URL schemes of authors are written. |
//! | **R4** | An unknown element is replaced by its content. |
//! | **R5** | Links inside the site are relative: an article knows no domain and no base path. |
//! | **R6** | No page can stop a build: its size and work are limited, and a panic is caught. Such a page is shown as its source, with a warning. |
//! | **R7** | A browser parses the HTML into the tree that was written: no element is where a parser would move it. |
//!
//! Sources: `docs.json` navigation rules N1 to N8; WHATWG HTML; MathML Core.

pub mod article;
mod component;
pub mod css;
pub mod endpoint;
pub mod file;
mod highlight;
pub mod html;
pub mod icon;
pub mod image;
pub mod layout;
pub mod link;
pub mod markdown;
pub mod messages;
pub mod raster;
