"""The characters that datatrove's filters and spaCy's English tokenizer tell apart, as tables of code points.

Sources: spaCy 3.8 (MIT), `lang/char_classes.py` and `pipeline/sentencizer.pyx`; datatrove 0.10.1 (Apache-2.0),
`utils/text.py`. They are fixed lists, not properties of Unicode, so they are written out. Where both packages are
installed, the tests compare each table with theirs.
"""

from collections.abc import Iterator


def code_ranges(table: str) -> Iterator[range]:
    """Yields the code points of a table: hexadecimal numbers, ranges `a-b`, and each second one of `a-b/2`."""
    for each in table.split():
        ends, _, step = each.partition("/")
        first, _, last = ends.partition("-")
        yield range(int(first, 16), int(last or first, 16) + 1, int(step or 1))


def characters(table: str) -> str:
    """Returns the characters of a table, as `code_ranges` reads it."""
    return "".join(chr(code) for codes in code_ranges(table) for code in codes)


def character_class(table: str) -> str:
    """Returns the ranges of a table as the inside of a regular expression's `[...]`."""
    pieces = []
    for each in table.split():
        ends, _, step = each.partition("/")
        first, _, last = ends.partition("-")
        if step:
            pieces += [f"\\U{ord(each):08x}" for each in characters(f"{ends}/{step}")]
        else:
            pieces.append(f"\\U{int(first, 16):08x}" + (f"-\\U{int(last, 16):08x}" if last else ""))
    return "".join(pieces)


UNCASED = (
    "591-5f4 620-64a 66e-6d5 6e5-6ff 750-77f 8a0-8bd 900-9ff b80-cff d80-dff 1100-137f 2e80-2fdf 2ff0-30ff "
    "31c0-31ef 3200-4dbf 4e00-9fff ac00-d7af f900-faff fb1d-fbb1 fbd3-fd3d fd50-fdc7 fdf0-fdfb fe30-fe4f "
    "fe70-fefc 1ee00-1eebb 1f200-1f2ff 20000-2a6df 2a700-2ebef 2f800-2fa1f"
)
"""Letters of scripts without case, with their marks and punctuation, as spaCy has them."""

SMALL = (
    "61-7a df-f6 f8-ff 101-137/2 138-148/2 149-177/2 17a-17e/2 17f-180 183-185/2 188 18c-18d 192 195 199-19b "
    "19e 1a1-1a5/2 1a8-1aa/2 1ab-1ad/2 1b0 1b4-1b6/2 1b9-1ba 1bd-1bf 1c6 1c9 1cc-1dc/2 1dd-1ef/2 1f0 "
    "1f3-1f5/2 1f9-233/2 234-239 23c 23f-240 242 247-24f/2 250-2af 3ac-3af 3b1-3c9 3cc-3ce 430-451 453-45a "
    "45c-45d 491 497 4a3 4af 4bb 4d9 4e9 1d00-1d25 1d6b-1d77 1d79-1d9a 1e01-1e95/2 1e96-1e9d 1e9f-1eff/2 2c61 "
    "2c65-2c66 2c68-2c6c/2 2c71-2c73/2 2c74-2c76/2 2c77-2c7b a723-a72f/2 a730-a731 a733-a771/2 a772-a778 "
    "a77a-a77c/2 a77f-a787/2 a78c-a78e/2 a791-a793/2 a794-a795 a797-a7a9/2 a7af a7b5-a7b9/2 a7fa ab30-ab5a "
    "ab60-ab64 ff41-ff5a"
)
"""Small letters."""

CAPITAL = (
    "41-5a c0-d6 d8-de 100-136/2 139-147/2 14a-178/2 179-17d/2 181-182 184-186/2 187-189/2 18a-18b 18e-191 "
    "193-194 196-198 19c-19d 19f-1a0 1a2-1a6/2 1a7-1a9/2 1ac-1ae/2 1af-1b1/2 1b2-1b3 1b5-1b7/2 1b8 1bc 1c4 "
    "1c7 1ca 1cd-1db/2 1de-1ee/2 1f1 1f4-1f6/2 1f7-1f8 1fa-232/2 23a-23b 23d-23e 241-243/2 244-246 248-24e/2 "
    "386-388/2 389-38a 38c-38e/2 38f-391/2 392-3a9 400-401 403-40a 40c-40d 410-42f 490 496 4a2 4ae 4ba 4d8 "
    "4e8 1e00-1e94/2 1e9e-1efe/2 2c60-2c62/2 2c63-2c64 2c67-2c6d/2 2c6e-2c70 2c72 2c75 2c7e-2c7f a722-a72e/2 "
    "a732-a76e/2 a779-a77d/2 a77e-a786/2 a78b-a78d/2 a790-a792/2 a796-a7aa/2 a7ab-a7ae a7b0-a7b4 a7b6-a7b8/2 "
    "ff21-ff3a"
)
"""Capital letters."""

TITLE = "1bb 1c5 1c8 1cb 1f2"
"""Letters that are neither small nor capital."""

SYMBOLS = (
    "a6 a9 ae-b0/2 482 58d-58e 60e-60f 6de 6e9 6fd-6fe 7f6 9fa b70 bf3-bf8 bfa c7f d4f d79 f01-f03 f13-f15/2 "
    "f16-f17 f1a-f1f f34-f38/2 fbe-fc5 fc7-fcc fce-fcf fd5-fd8 109e-109f 1390-1399 1940 19de-19ff 1b61-1b6a "
    "1b74-1b7c 2100-2101 2103-2106 2108-2109 2114-2116/2 2117 211e-2123 2125-2129/2 212e 213a-213b "
    "214a-214c/2 214d-214f/2 218a-218b 2195-2199 219c-219f 21a1-21a2 21a4-21a5 21a7-21ad 21af-21cd 21d0-21d1 "
    "21d3-21d5/2 21d6-21f3 2300-2307 230c-231f 2322-2328 232b-237b 237d-239a 23b4-23db 23e2-2426 2440-244a "
    "249c-24e9 2500-25b6 25b8-25c0 25c2-25f7 2600-266e 2670-2767 2794-27bf 2800-28ff 2b00-2b2f 2b45-2b46 "
    "2b4d-2b73 2b76-2b95 2b98-2bc8 2bca-2bfe 2ce5-2cea 2e80-2e99 2e9b-2ef3 2f00-2fd5 2ff0-2ffb 3004 3012-3013 "
    "3020 3036-3037 303e-303f 3190-3191 3196-319f 31c0-31e3 3200-321e 322a-3247 3250 3260-327f 328a-32b0 "
    "32c0-32fe 3300-33ff 4dc0-4dff a490-a4c6 a828-a82b a836-a837 a839 aa77-aa79 fdfd ffe4 ffe8 ffed-ffee "
    "fffc-fffd 10137-1013f 10179-10189 1018c-1018e 10190-1019b 101a0 101d0-101fc 10877-10878 10ac8 1173f "
    "16b3c-16b3f 16b45 1bc9c 1d000-1d0f5 1d100-1d126 1d129-1d164 1d16a-1d16c 1d183-1d184 1d18c-1d1a9 "
    "1d1ae-1d1e8 1d200-1d241 1d245 1d300-1d356 1d800-1d9ff 1da37-1da3a 1da6d-1da74 1da76-1da83 1da85-1da86 "
    "1ecac 1f000-1f02b 1f030-1f093 1f0a0-1f0ae 1f0b1-1f0bf 1f0c1-1f0cf 1f0d1-1f0f5 1f110-1f16b 1f170-1f1ac "
    "1f1e6-1f202 1f210-1f23b 1f240-1f248 1f250-1f251 1f260-1f265 1f300-1f3fa 1f400-1f6d4 1f6e0-1f6ec "
    "1f6f0-1f6f9 1f700-1f773 1f780-1f7d8 1f800-1f80b 1f810-1f847 1f850-1f859 1f860-1f887 1f890-1f8ad "
    "1f900-1f90b 1f910-1f93e 1f940-1f970 1f973-1f976 1f97a-1f97c/2 1f97d-1f9a2 1f9b0-1f9b9 1f9c0-1f9c2 "
    "1f9d0-1f9ff 1fa60-1fa6d"
)
"""Pictures and other symbols."""

SENTENCE_ENDS = (
    "21 2e 3f 589 61f 6d4 700-702 7f9 964-965 104a-104b 1362 1367-1368 166e 1735-1736 1803 1809 1944-1945 "
    "1aa8-1aab 1b5a-1b5b 1b5e-1b5f 1c3b-1c3c 1c7e-1c7f 203c-203d 2047-2049 2e2e 2e3c 3002 a4ff a60e-a60f a6f3 "
    "a6f7 a876-a877 a8ce-a8cf a92f a9c8-a9c9 aa5d-aa5f aaf0-aaf1 abeb fe52 fe56-fe57 ff01 ff0e ff1f ff61 "
    "10a56-10a57 11047-11048 110be-110c1 11141-11143 111c5-111c6 111cd 111de-111df 11238-11239 1123b-1123c "
    "112a9 1144b-1144c 115c2-115c3 115c9-115d7 11641-11642 1173c-1173e 11a42-11a43 11a9b-11a9c 11c41-11c42 "
    "16a6e-16a6f 16af5 16b37-16b38 16b44 1bc9f 1da88"
)
"""Characters that end a sentence for spaCy's sentencizer."""

TERMINAL_PUNCTUATION = (
    "21 2e 3f 589 61d-61f 6d4 700-702 7f9 837-839/2 83d-83e 964-965 104a-104b 1362 1367-1368 166e 1735-1736 "
    "17d4-17d6 17d9-17da 1803 1809 1944-1945 1aa8-1aab 1b5a-1b5b 1b5e-1b5f 1b7d-1b7e 1c3b-1c3c 1c7e-1c7f "
    "203c-203d 2047-2049 2e2e 2e3c 2e53-2e54 3002 a4ff a60e-a60f a6f3 a6f7 a876-a877 a8ce-a8cf a92f a9c8-a9c9 "
    "aa5d-aa5f aaf0-aaf1 abeb fe52 fe56-fe57 ff01 ff0e ff1f ff61 10a56-10a57 10f55-10f59 10f86-10f89 "
    "11047-11048 110be-110c1 11141-11143 111c5-111c6 111cd 111de-111df 11238-11239 1123b-1123c 112a9 "
    "1144b-1144c 115c2-115c3 115c9-115d7 11641-11642 1173c-1173e 11944-11946/2 11a42-11a43 11a9b-11a9c "
    "11c41-11c42 11ef7-11ef8 11f43-11f44 16a6e-16a6f 16af5 16b37-16b38 16b44 16e98 1bc9f 1da88"
)
"""Terminal punctuation of all scripts, as datatrove has it."""

OTHER_PUNCTUATION = (
    "0-8 b-1f 22-2d 2f 3a-3e 40 5b-60 7b-9f ab b4 bb 2013-2014 2019 201c-201e 2026 2236 2501 25ba 3001 "
    "3008-300d 3010-3011 ff05 ff08-ff09 ff0c ff11 ff1a-ff1b ff5e"
)
"""Further characters that datatrove takes for punctuation, such as control characters."""


PUNCTUATION_AND_SYMBOLS = (
    "0-8 e-1b 21-2f 3a-40 5b-60 7b-84 86-9f a1-a9 ab-b1 b4 b6-b8 bb bf d7 f7 2c2-2c5 2d2-2df 2e5-2eb 2ed 2ef-2ff "
    "375 37e 384-385 387 3f6 482 55a-55f 589-58a 58d-58f 5be 5c0 5c3 5c6 5f3-5f4 600-60f 61b-61f 66a-66d 6d4 "
    "6dd-6de 6e9 6fd-6fe 700-70d 70f 7f6-7f9 7fe-7ff 830-83e 85e 888 890-891 8e2 964-965 970 9f2-9f3 9fa-9fb 9fd "
    "a76 af0-af1 b70 bf3-bfa c77 c7f c84 d4f d79 df4 e3f e4f e5a-e5b f01-f17 f1a-f1f f34 f36 f38 f3a-f3d f85 "
    "fbe-fc5 fc7-fcc fce-fda 104a-104f 109e-109f 10fb 1360-1368 1390-1399 1400 166d-166e 169b-169c 16eb-16ed "
    "1735-1736 17d4-17d6 17d8-17db 1800-180a 180e 1940 1944-1945 19de-19ff 1a1e-1a1f 1aa0-1aa6 1aa8-1aad "
    "1b5a-1b6a 1b74-1b7e 1bfc-1bff 1c3b-1c3f 1c7e-1c7f 1cc0-1cc7 1cd3 1fbd 1fbf-1fc1 1fcd-1fcf 1fdd-1fdf "
    "1fed-1fef 1ffd-1ffe 200b-2027 202a-202e 2030-205e 2060-2064 2066-206f 207a-207e 208a-208e 20a0-20c0 "
    "2100-2101 2103-2106 2108-2109 2114 2116-2118 211e-2123 2125 2127 2129 212e 213a-213b 2140-2144 214a-214d "
    "214f 218a-218b 2190-2426 2440-244a 249c-24e9 2500-2775 2794-2b73 2b76-2b95 2b97-2bff 2ce5-2cea 2cf9-2cfc "
    "2cfe-2cff 2d70 2e00-2e2e 2e30-2e5d 2e80-2e99 2e9b-2ef3 2f00-2fd5 2ff0-2ffb 3001-3004 3008-3020 3030 "
    "3036-3037 303d-303f 309b-309c 30a0 30fb 3190-3191 3196-319f 31c0-31e3 3200-321e 322a-3247 3250 3260-327f "
    "328a-32b0 32c0-33ff 4dc0-4dff a490-a4c6 a4fe-a4ff a60d-a60f a673 a67e a6f2-a6f7 a700-a716 a720-a721 "
    "a789-a78a a828-a82b a836-a839 a874-a877 a8ce-a8cf a8f8-a8fa a8fc a92e-a92f a95f a9c1-a9cd a9de-a9df "
    "aa5c-aa5f aa77-aa79 aade-aadf aaf0-aaf1 ab5b ab6a-ab6b abeb fb29 fbb2-fbc2 fd3e-fd4f fdcf fdfc-fdff "
    "fe10-fe19 fe30-fe52 fe54-fe66 fe68-fe6b feff ff01-ff0f ff1a-ff20 ff3b-ff40 ff5b-ff65 ffe0-ffe6 ffe8-ffee "
    "fff9-fffd 10100-10102 10137-1013f 10179-10189 1018c-1018e 10190-1019c 101a0 101d0-101fc 1039f 103d0 1056f "
    "10857 10877-10878 1091f 1093f 10a50-10a58 10a7f 10ac8 10af0-10af6 10b39-10b3f 10b99-10b9c 10ead 10f55-10f59 "
    "10f86-10f89 11047-1104d 110bb-110c1 110cd 11140-11143 11174-11175 111c5-111c8 111cd 111db 111dd-111df "
    "11238-1123d 112a9 1144b-1144f 1145a-1145b 1145d 114c6 115c1-115d7 11641-11643 11660-1166c 116b9 1173c-1173f "
    "1183b 11944-11946 119e2 11a3f-11a46 11a9a-11a9c 11a9e-11aa2 11c41-11c45 11c70-11c71 11ef7-11ef8 11fd5-11ff1 "
    "11fff 12470-12474 12ff1-12ff2 13430-13438 16a6e-16a6f 16af5 16b37-16b3f 16b44-16b45 16e97-16e9a 16fe2 1bc9c "
    "1bc9f-1bca3 1cf50-1cfc3 1d000-1d0f5 1d100-1d126 1d129-1d164 1d16a-1d16c 1d173-1d17a 1d183-1d184 1d18c-1d1a9 "
    "1d1ae-1d1ea 1d200-1d241 1d245 1d300-1d356 1d6c1 1d6db 1d6fb 1d715 1d735 1d74f 1d76f 1d789 1d7a9 1d7c3 "
    "1d800-1d9ff 1da37-1da3a 1da6d-1da74 1da76-1da83 1da85-1da8b 1e14f 1e2ff 1e95e-1e95f 1ecac 1ecb0 1ed2e "
    "1eef0-1eef1 1f000-1f02b 1f030-1f093 1f0a0-1f0ae 1f0b1-1f0bf 1f0c1-1f0cf 1f0d1-1f0f5 1f10d-1f1ad 1f1e6-1f202 "
    "1f210-1f23b 1f240-1f248 1f250-1f251 1f260-1f265 1f300-1f6d7 1f6dd-1f6ec 1f6f0-1f6fc 1f700-1f773 1f780-1f7d8 "
    "1f7e0-1f7eb 1f7f0 1f800-1f80b 1f810-1f847 1f850-1f859 1f860-1f887 1f890-1f8ad 1f8b0-1f8b1 1f900-1fa53 "
    "1fa60-1fa6d 1fa70-1fa74 1fa78-1fa7c 1fa80-1fa86 1fa90-1faac 1fab0-1faba 1fac0-1fac5 1fad0-1fad9 1fae0-1fae7 "
    "1faf0-1faf6 1fb00-1fb92 1fb94-1fbca e0001 e0020-e007f"
)
"""Punctuation (categories P*), symbols (S*), format characters (Cf) and control characters (Cc) but white space, as
Unicode 14.0 has them.
"""
