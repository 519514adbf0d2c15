"""Writes the fonts of the pages and of the images that a build draws: subsets of Geist and Geist Mono.

    pip install fonttools==4.68.0 brotli==1.2.1
    npm pack @fontsource-variable/geist@5.3.0 @fontsource-variable/geist-mono@5.3.0 geist@1.9.2
    python3 src/render/font/pack.py GEIST_VARIABLE_PACKAGE GEIST_MONO_VARIABLE_PACKAGE GEIST_PACKAGE

The arguments are the three unpacked packages. The weight of the fonts of pages is limited to what
the stylesheet uses, and glyphs and features that are not needed are removed. Images are drawn with
two fonts of one weight, without compression, because the program reads them itself; they have the
letters of Vietnamese and of Cyrillic scripts too. The same packages give the same bytes: no time is
written into the files.
"""

import sys
from io import BytesIO
from pathlib import Path

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

HERE = Path(__file__).parent
ASCII = list(range(0x20, 0x7F))
LATIN = ASCII + list(range(0xA0, 0x100)) + [
    0x131, 0x152, 0x153, 0x2C6, 0x2DC, 0x2013, 0x2014, 0x2018, 0x2019, 0x201A, 0x201C, 0x201D,
    0x201E, 0x2022, 0x2026, 0x2039, 0x203A, 0x20AC, 0x2122, 0x2190, 0x2191, 0x2192, 0x2193,
    0x2212,
]
# What only the fonts of images have: Latin Extended-A and -B, combining marks, Cyrillic, Latin
# Extended Additional.
MORE = LATIN + list(range(0x100, 0x250)) + list(range(0x300, 0x370)) + list(range(0x400, 0x530)) + list(range(0x1E00, 0x1F00))


def pack(source, target, characters, weights, features):
    font = TTFont(source, recalcTimestamp=False)
    options = Options()
    options.layout_features = features
    options.hinting = False
    # The copyright, the licence and its address stay in the file (OFL 1.1, condition 2).
    # 6, the PostScript name, is required by the program that draws images. 16 and 17 are family and
    # style if the family has other weights than regular and bold.
    options.name_IDs = [0, 1, 2, 13, 14] + ([6, 16, 17] if weights is None else [])
    options.name_languages = [0x409]
    options.notdef_outline = True
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=characters)
    subsetter.subset(font)
    font.flavor = None
    if weights is None:
        font.save(HERE / target)
        return
    smaller = BytesIO()
    font.save(smaller)
    font = TTFont(smaller, recalcTimestamp=False)
    instantiateVariableFont(font, {"wght": weights}, inplace=True)
    font.flavor = "woff2"
    font.save(HERE / target)


sans, mono = (Path(path) / "files" for path in sys.argv[1:3])
drawn = Path(sys.argv[3]) / "dist/fonts/geist-sans"
pack(sans / "geist-latin-wght-normal.woff2", "geist.woff2", LATIN, (400, 700), ["kern", "liga", "calt", "mark", "ccmp", "locl", "tnum"])
pack(mono / "geist-mono-latin-wght-normal.woff2", "geist-mono.woff2", LATIN, (400, 700), ["ccmp"])
for name in ["Regular", "SemiBold"]:
    pack(drawn / f"Geist-{name}.ttf", f"geist-{name.lower()}.ttf", MORE, None, ["kern", "mark", "mkmk", "ccmp", "locl"])
