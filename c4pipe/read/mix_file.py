"""A mix: a TOML file that names several sources, the share of each, and how often its documents are read."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from os.path import normpath
from pathlib import Path
from typing import Annotated, Any

from c4pipe.errors import UsageError
from c4pipe.io.json_files import check_of, from_json, parse_json
from c4pipe.io.text import lines_of, read_toml
from c4pipe.io.words import error_reason, locate_errors, short
from c4pipe.read.curve import MEMBERS, ROUNDED, Curve, Seed, check_names, parse_curve

_DEFAULTS = ("max_repeat", "drop", "seed")  # of all sources
_MEMBERS = ("sources", "target_tokens", *_DEFAULTS)
_OF_SOURCE = ("path", "share", "tokens")


@dataclass(frozen=True)
class MixSource:
    """A source of a mix.

    Attributes:
        path: a corpus, or the folder of one of its languages.
        share: its share of the target; 0 if the mix has no target.
        weights: how often its documents are read: members of a `Curve`. The target in it is that of the source.
        tokens: the folder of its token files, which lists name; "" for none.
    """

    path: str
    share: float
    weights: Mapping[str, Any]
    tokens: str = ""


@dataclass(frozen=True)
class Mix:
    """Several sources that are read together.

    Attributes:
        sources: the sources, at least one; each has its own path.
        target_tokens: the tokens to read of all sources in an epoch; 0 if each source has its own curve.
        seed: of `Curve`; it also decides, with the page, the order of token files.
        file: the name of the file, for errors.
    """

    sources: Annotated[Sequence[MixSource], check_of(Sequence[dict[str, Any]])]
    target_tokens: int = 0
    seed: Seed = Curve.seed
    file: str = "the mix"


def read_mix_table(path: str | Path) -> dict[str, Any]:
    """Returns the table of a TOML file of a mix or of weights. That of a mix gets the member `file`.

    Raises OSError or ValueError if it can't be read, UsageError if the table of a mix has an unknown name.
    """
    values = read_toml(Path(path))
    if "sources" in values:
        _check_names(str(path), 0, values, _MEMBERS)
        values["file"] = str(path)
    return values


def _check_names(file: str, source: int, names: Iterable[str], known: Sequence[str]) -> None:
    """Raises UsageError for unknown names at the top of the file of a mix (0), or in a source of it (from 1)."""
    for name in (each for each in names if each not in known):
        line, place = _line_of(file, source, name), "it" if source else file
        check_names(f"{place}, line {line}, has" if line else f"{place} has", [name], known)


def _line_of(file: str, source: int, name: str) -> int:
    """Returns the number of the line that sets a name; 0 if it is not found."""
    with suppress(OSError, ValueError):
        for number, line in enumerate(lines_of(Path(file)), 1):
            source -= line.lstrip().startswith("[[")
            if not source and re.match(rf"""\s*["']?{re.escape(name)}["']?\s*=""", line):
                return number
    return 0


def read_mix(path: str | Path) -> Mix:
    """Returns the mix of a TOML file. Raises UsageError if it can't be read, and as `parse_mix`."""
    try:
        return parse_mix({**read_mix_table(path), "file": str(path)})
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} can't be read as the TOML file of a mix: {error_reason(error)}") from None


def parse_mix(values: Mapping[str, Any]) -> Mix:
    """Returns the mix that a table of a user says; its member `file` names it in errors. No corpus is opened.

    Raises UsageError for unknown names, impossible numbers, shares whose sum is not 1, and a path that is there twice.
    """
    file = values.get("file", Mix.file)
    _check_names(file, 0, [name for name in values if name != "file"], _MEMBERS)
    try:
        mix = from_json(Mix, parse_json(json.dumps(dict(values))))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{file}: {short(str(error), 120)}") from None
    common = {name: values[name] for name in _DEFAULTS if name in values}
    sources = [_parse_source(number, each, mix, common) for number, each in enumerate(mix.sources, 1)]
    shares, paths = sum(each.share for each in sources), {normpath(each.path) for each in sources}
    if not sources or len(paths) < len(sources):
        raise UsageError(f"{file} has no sources, or one of them twice: give each one a table [[sources]] and a path")
    if mix.target_tokens and abs(shares - 1) > ROUNDED:
        raise UsageError(f"{file}: the shares of the sources are {shares:g} together: give shares whose sum is 1")
    return replace(mix, sources=tuple(sources))


def _parse_source(number: int, given: Any, mix: Mix, common: Mapping[str, Any]) -> MixSource:
    """Returns a source, given its number from 1, its table, the mix, and the members of all curves."""
    path, share, target = given.get("path"), given.get("share", 0), mix.target_tokens
    with locate_errors(f"{mix.file}, source {path}"):
        _check_names(mix.file, number, given, [*_OF_SOURCE, *MEMBERS])
        weights = {**common, **{name: value for name, value in given.items() if name not in _OF_SOURCE}}
        is_share = isinstance(share, int | float) and 0 < share <= 1 and "target_tokens" not in weights
        if not isinstance(path, str) or (not is_share if target else share):
            raise UsageError(
                "give it a path; if the mix has target_tokens, also a share of them, such as 0.5, and no own "
                "target_tokens; otherwise no share"
            )
        if target:
            weights["target_tokens"] = max(1, round(share * target))
        elif not {"column", "quantiles", "target_tokens"} & set(weights):
            weights["quantiles"] = [[1, 1]]
        parse_curve(weights)
    return MixSource(path, float(share), weights, str(given.get("tokens", "")))
