"""The C extensions `_text` (`native/text/`) and `_langdetect`, and the switch between C and Python.

Both are optional and need only a compiler. The output is the same without them: the modules that call them have the
same functions in Python, or call a library (langdetect-rs, Punkt), which is slower. `scripts/sanitize` runs them with
AddressSanitizer and UBSan, `make fuzz` gives them damaged bytes.

| file of `native/text/` | its work |
|---|---|
| `lines.c`, `line_rules.c` | lines of a text; the rules on lines, as one program for a page |
| `lower.c`, `spans.c` | lower case; hashes of units and of spans of units |
| `english.c`, `word_statistics.c` | English words; n-grams and statistics of words; statistics of lines |
| `minhash.c` | the signatures of texts |
| `classifier.c` | words and n-grams of a text, and the sums of their rows in a fastText model |
| `listed_words.c`, `sentences.c` | words of a list; starts of sentences |
| `records.c` | records without damage; whether bytes are UTF-8 |
| `pages.c`, `keys.c` | the pages of a WET file with their keys and lines, and a program on many pages |
| `module.c`, `text.h` | the module; what the files share, and who owns which pointer |

Python processes a record with damage, the last record of a file, and pages with rare characters (half of a surrogate
pair, an accent as a separate character).

C, not Rust: for MinHash, both were measured, with vectors of the same width. Signatures of a million characters take
0.039 s in C and 0.042 s in Rust. The Rust source is a fifth shorter, but needs a second compiler and 19 crates, which
take 31 s to compile; all of C takes 6 s.

`langdetect.c` makes the draws and the floating-point operations of langdetect in the same order, so every bit of a
probability is the same. It looks n-grams up only when they are drawn, small tables tell which n-grams of frequent
letters are in a profile, and n-grams of many languages are rows for vectors (eight numbers with AVX-512, four with
AVX2). It reads the profiles of the langdetect package, 2.2 MB of JSON, in a quarter of Python's time.
"""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType

EXTENSION_VERSION = 10
"""The version in both C extensions. It goes up with each change of their functions, so that Python never calls an
extension of older sources."""


def load_extension(name: str) -> ModuleType | None:
    """Returns a C extension by its full name, or None if it was not compiled.

    Raises ImportError if it can't be loaded or is of other sources: a broken build must not look like no build.
    """
    try:
        extension = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None
    except ImportError as error:
        message = f"the C extension {name} can't be loaded ({error}): install c4pipe again, or delete the file"
        raise ImportError(message, name=name, path=error.path) from error
    if getattr(extension, "VERSION", None) != EXTENSION_VERSION:
        raise ImportError(
            f"the C extension {name} was compiled of other sources than those of this c4pipe: install c4pipe again "
            f"(in a clone: make setup), or delete {extension.__file__}",
            name=name,
            path=extension.__file__,
        )
    return extension


text_kernel = load_extension("c4pipe.native._text")
"""The functions of `native/text/`, or None."""

langdetect_kernel = load_extension("c4pipe.native._langdetect")
"""langdetect in C, or None if the package langdetect-rs runs instead."""

lower: Callable[[str], str] = text_kernel.lower if text_kernel else str.lower
"""`str.lower`, the quicker of the two."""


def kernels() -> dict[str, str]:
    """Returns `compiled` or `python` for each kernel: `text` and `langdetect`."""
    loaded = {"text": text_kernel, "langdetect": langdetect_kernel}
    return {name: "compiled" if module else "python" for name, module in loaded.items()}
