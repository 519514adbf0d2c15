//! The size of an SVG file, from the attributes of its root element.

/// The width of a drawing that has a ratio only. It is wider than its place.
const WIDTH: f64 = 1504.0;
/// How many bytes of the file are read.
const HEAD_BYTES: usize = 4 << 10;

/// Returns width and height: the attributes of these names in pixels, or else the size of
/// `viewBox`. One of the two attributes is enough, if `viewBox` has the ratio.
pub(super) fn size(bytes: &[u8]) -> Option<(usize, usize)> {
    let head = &bytes[..bytes.len().min(HEAD_BYTES)];
    let head = String::from_utf8_lossy(head);
    let start = head.find("<svg")?;
    let tag = &head[start + 4..];
    let tag = &tag[..tag.find('>')?];
    let (width, height) = (attribute(tag, "width"), attribute(tag, "height"));
    let (width, height) = (width.and_then(pixels), height.and_then(pixels));
    let drawn = attribute(tag, "viewBox").and_then(|text| {
        let numbers = text.split([' ', ',', '\t', '\n', '\r']);
        let numbers = numbers
            .filter(|part| !part.is_empty())
            .map(str::parse::<f64>);
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().ok()?;
        let [_, _, width, height] = numbers[..] else {
            return None;
        };
        (width > 0.0 && height > 0.0).then_some((width, height))
    });
    let (width, height) = match (width, height, drawn) {
        (Some(width), Some(height), _) => (width, height),
        (Some(width), None, Some((w, h))) => (width, width * h / w),
        (None, Some(height), Some((w, h))) => (height * w / h, height),
        // Without a size of its own, a drawing is as wide as its place.
        (None, None, Some((w, h))) => (WIDTH, WIDTH * h / w),
        _ => return None,
    };
    Some((whole(width)?, whole(height)?))
}

/// Returns the value of an attribute in a tag.
fn attribute<'t>(tag: &'t str, name: &str) -> Option<&'t str> {
    let mut rest = tag;
    loop {
        let at = rest.find(name)?;
        let before = rest[..at].chars().next_back();
        let after = rest[at + name.len()..].trim_start();
        rest = &rest[at + name.len()..];
        let is_whole = before.is_some_and(|c| c.is_ascii_whitespace() || matches!(c, '"' | '\''));
        let Some(value) = after.strip_prefix('=').filter(|_| is_whole) else {
            continue;
        };
        let value = value.trim_start();
        let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        return value[1..].split(quote).next();
    }
}

/// Reads a length without unit or in `px`.
fn pixels(text: &str) -> Option<f64> {
    let number = text.trim();
    let number = number.strip_suffix("px").unwrap_or(number);
    let number: f64 = number.parse().ok()?;
    (number.is_finite() && number > 0.0).then_some(number)
}

fn whole(number: f64) -> Option<usize> {
    // The limit of 16 bits makes every conversion exact.
    (0.5..65_536.0)
        .contains(&number)
        .then(|| format!("{number:.0}").parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_comes_from_the_attributes_of_the_root() {
        for (svg, expected) in [
            ("<svg width=\"24\" height='12px'/>", Some((24, 12))),
            (
                "<?xml version='1.0'?>\n<svg xmlns='x' viewBox=\"0 0 100 50\">",
                Some((1504, 752)),
            ),
            (
                "<svg width=\"200\" viewBox=\"0,0,100,50\">",
                Some((200, 100)),
            ),
            (
                "<svg stroke-width=\"3\" height=\"10\" viewBox=\"0 0 2 1\">",
                Some((20, 10)),
            ),
            (
                "<svg width=\"100%\" viewBox=\"0 0 3 4\">",
                Some((1504, 2005)),
            ),
            ("<svg width=\"100%\">", None),
            ("<svg viewBox=\"0 0 nan 4\">", None),
            ("<svg viewBox=\"0 0 0 4\">", None),
            ("<svg width=\"1e9\" height=\"1\">", None),
            ("<svg", None),
            ("", None),
        ] {
            assert_eq!(size(svg.as_bytes()), expected, "{svg}");
        }
    }
}
