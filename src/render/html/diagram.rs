//! Diagrams: Mermaid runs in the browser, in a frame without access to the page or network.
//!
//! The library builds styles from text of the author, so it must not run in the page itself.
//! The page has a sandboxed frame without origin (`sandbox="allow-scripts"`), whose document
//! is a constant of this program. The source of the diagram is in the fragment of the frame's
//! address, which browsers send to no server; the colours of the site follow it, and the colour
//! scheme that the reader has chosen. The policy of the frame
//! ([`DIAGRAM_POLICY`](crate::release::site::DIAGRAM_POLICY)) allows its own scripts and
//! styles in markup, and no requests. Readers without scripts open the source below the frame.
//!
//! A renderer in Rust (`mermaid-rs-renderer` 0.3) was tested with 235 diagrams of public
//! documentation. It rejected 16 of them because of `A->>+B` and drew labels over boxes in others.
//! It measured text with the fonts of the machine, so a release would depend on the machine that
//! builds it.
//!
//! Sources: Mermaid 11.17.2 (MIT), vendored as `mermaid.min.js.br`; CSP Level 3 §6.1, §7.

use std::io::Read as _;
use std::sync::OnceLock;

use bytes::Bytes;

use super::Writer;
use super::fence::Info;
use crate::render::file::File;
use crate::site::percent::encode_component;

/// How long the source of a diagram may be; a longer one is shown as code.
const SOURCE_BYTES_MAX: usize = 32 << 10;

const LIBRARY: &[u8] = include_bytes!("mermaid.min.js.br");
const START: &str = include_str!("diagram.js");

/// Returns the files that a page with diagrams loads: the frame, then its scripts.
#[must_use]
pub fn files() -> &'static [File; 3] {
    static FILES: OnceLock<[File; 3]> = OnceLock::new();
    FILES.get_or_init(|| {
        const SCRIPT: &str = "text/javascript; charset=utf-8";
        let mut library = Vec::new();
        brotli::Decompressor::new(LIBRARY, 64 << 10)
            .read_to_end(&mut library)
            .expect("the library is part of this program");
        let library = File::new("mermaid", "js", library.into(), SCRIPT);
        let start = File::new("diagram", "js", Bytes::from_static(START.as_bytes()), SCRIPT);
        // All three files are in the same directory.
        let name = |file: &File| file.path.rsplit('/').next().unwrap_or_default().to_owned();
        let document = format!(
            "<!doctype html>\n<html lang=en>\n<meta charset=utf-8>\n<title>Diagram</title>\n\
             <meta name=color-scheme content=\"light dark\">\n\
             <style>html,body{{margin:0;height:100%}}body{{display:grid;place-items:safe center;\
             font:14px system-ui,sans-serif}}svg{{max-width:100%!important;max-height:100vh}}</style>\n\
             <body>\n<noscript>Scripts are off: open the source below.</noscript>\n\
             <script src=\"{}\"></script>\n<script src=\"{}\"></script>\n",
            name(&library),
            name(&start),
        );
        let frame = File::new("diagram", "html", document.into(), "text/html; charset=utf-8");
        [frame, library, start]
    })
}

// === impl Writer ===

impl Writer<'_> {
    /// Writes a diagram: the frame that draws it, and its source in a `<details>`.
    pub(in crate::render) fn diagram(&mut self, source: &str, title: &str) {
        let source = source.trim();
        let info = Info {
            language: "mermaid".to_owned(),
            title: title.to_owned(),
            ..Info::default()
        };
        if source.is_empty() || source.len() > SOURCE_BYTES_MAX {
            return self.code(&info, source, true);
        }
        self.has_diagrams = true;
        let frame = self.start.to(&files()[0].path);
        let mut address = format!("{frame}#{}", encode_component(source));
        if !self.map.palette.is_empty() {
            address = format!("{address}&{}", self.map.palette);
        }
        self.out.markup(match height(source) {
            0 => "<figure class=\"diagram flat\">",
            1..=6 => "<figure class=\"diagram small\">",
            7..=16 => "<figure class=diagram>",
            _ => "<figure class=\"diagram large\">",
        });
        self.out
            .markup("<iframe sandbox=allow-scripts loading=lazy");
        self.out.attribute("src", &address);
        let name = if title.is_empty() {
            kind(source)
        } else {
            title
        };
        self.out.attribute("title", name);
        self.out
            .markup("></iframe><details><summary>")
            .text(self.messages.article.diagram_source)
            .markup("</summary>");
        let info = Info {
            title: String::new(),
            ..info
        };
        self.code(&info, source, true);
        self.out.markup("</details></figure>\n");
    }
}

/// Estimates the height of a diagram in lines, so that the page does not move when it is drawn.
fn height(source: &str) -> usize {
    let lines = source
        .split(['\n', ';'])
        .filter(|line| !line.trim().is_empty())
        .count();
    match kind(source) {
        "Sequence diagram" => lines,
        // From left to right, several lines of source share one row of the drawing.
        _ if source.contains(" LR") || source.contains(" RL") => lines / 3,
        _ => lines,
    }
}

/// Returns the kind of a diagram, as its label for screen readers.
fn kind(source: &str) -> &'static str {
    let first = source
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("%%") && !line.starts_with("---"));
    match first.and_then(|line| line.split([' ', '-', ';']).next()) {
        Some("sequenceDiagram") => "Sequence diagram",
        Some("graph" | "flowchart") => "Flow chart",
        Some("classDiagram") => "Class diagram",
        Some("stateDiagram") => "State diagram",
        Some("erDiagram") => "Entity relationship diagram",
        Some("gantt") => "Gantt chart",
        Some("pie") => "Pie chart",
        Some("mindmap") => "Mind map",
        Some("timeline") => "Timeline",
        _ => "Diagram",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagram_has_its_kind_as_a_label() {
        assert_eq!(
            kind("%% x\n\nsequenceDiagram\n A->>B: x"),
            "Sequence diagram"
        );
        assert_eq!(kind("graph TD; A-->B"), "Flow chart");
        assert_eq!(kind("nonsense"), "Diagram");
    }

    #[test]
    fn a_chain_from_left_to_right_is_one_line_high() {
        assert_eq!(height("graph LR\n  A-->B-->C"), 0);
        assert_eq!(height("graph LR; A-->B; A-->C; A-->D"), 1);
        assert_eq!(height("graph TD\n\n  A-->B-->C"), 2);
    }

    #[test]
    fn the_frame_names_its_scripts() {
        let [frame, library, start] = files();
        assert!(
            frame.path.starts_with(crate::release::site::DIAGRAM_FRAME)
                && frame.path.ends_with(".html")
        );
        let document = str::from_utf8(&frame.bytes).unwrap();
        for script in [library, start] {
            let name = script.path.rsplit('/').next().unwrap();
            assert!(document.contains(name), "{document}");
        }
    }
}
