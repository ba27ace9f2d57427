"""Makes c4pipe/text/language_names.tsv: the English names of languages, by code.

    python scripts/make_language_names.py REGISTRY

The names are those of CLDR, which Babel has. For the other languages of FineWeb-2, whose labels begin with codes of ISO
639-3, they are those of REGISTRY: IANA's `language-subtag-registry` (https://www.iana.org/assignments/language-subtag-registry).
"""

import sys
from pathlib import Path

from babel import Locale
from babel.core import get_global

PACKAGE = Path(__file__).resolve().parents[1] / "c4pipe"
CHINESE = {"zh-cn": "zh_Hans", "zh-tw": "zh_Hant"}  # as langdetect calls them


def main() -> int:
    """Writes the table. Returns the exit status."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    names = registry_names(Path(sys.argv[1]).read_text(encoding="utf-8"))
    of_cldr = Locale("en").languages
    labels = (PACKAGE / "filters" / "fineweb_2.tsv").read_text(encoding="utf-8").splitlines()
    wanted = {label.partition("_")[0] for label in labels}
    two_letters = get_global("language_aliases")  # registry and CLDR have the code of ISO 639-1 where there is one
    names |= of_cldr
    found = {code: names[two_letters.get(code, code)] for code in wanted if two_letters.get(code, code) in names}
    found |= {code: name for code, name in of_cldr.items() if code.isalpha()}
    found |= {code: of_cldr[other] for code, other in CHINESE.items()}
    lines = (f"{code}\t{name}\n" for code, name in sorted(found.items()))
    (PACKAGE / "text" / "language_names.tsv").write_text("".join(lines), encoding="utf-8")
    return 0


def registry_names(registry: str) -> dict[str, str]:
    """Returns the first name of each language of the registry."""
    names: dict[str, str] = {}
    for record in registry.split("%%\n"):
        fields = [line.partition(": ") for line in record.splitlines()]
        values = {name: value for name, _, value in reversed(fields)}  # the first description counts
        if values.get("Type") == "language":
            names[values["Subtag"]] = values["Description"]
    return names


if __name__ == "__main__":
    sys.exit(main())
