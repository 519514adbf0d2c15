//! The files of the reader's own project that a first call imports, and that its page shows.
//!
//! A call of a framework is one file of several. All of them together are too long for a skill, so
//! the skill names the files that an agent finds on the page.

use super::code::Block;

/// Returns the titles of the blocks whose files a block imports, and of those that these import.
pub(super) fn own_files<'b>(block: &Block<'_>, of_page: &'b [Block<'_>]) -> Vec<&'b str> {
    let mut found: Vec<&'b Block<'_>> = Vec::new();
    let mut imports: Vec<&str> = block.own_imports().collect();
    while let Some(import) = imports.pop() {
        let is_file = |other: &&Block<'_>| stem(&other.label) == stem(import);
        let Some(file) = of_page.iter().find(is_file) else {
            continue;
        };
        let is_known = found.iter().any(|known| known.label == file.label);
        if !is_known && file.code != block.code {
            imports.extend(file.own_imports());
            found.push(file);
        }
    }
    // In the order of the page.
    let is_found = |file: &&Block<'_>| found.iter().any(|other| other.code == file.code);
    let files = of_page.iter().filter(is_found);
    files.map(|file| &*file.label).collect()
}

/// Returns the name of a file without its directory and its extension: `redis` of `lib/redis.ts (new)`.
pub(super) fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.split_once('.').map_or(name, |(stem, _)| stem)
}
