"""Rules of a user's own: classes of the user's module, named as `my_rules:ShortTitle`.

They have the same base classes as the rules of c4pipe (`filters.rule`), and stand in recipes beside them. A recipe's
JSON has the rule's name and its origin: module, class, and the SHA-256 of the module's file. So the fingerprint covers
the source, and a worker or a later job reports another file.
"""

import hashlib
import re
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from inspect import get_annotations, getsourcefile, isabstract
from pathlib import Path
from typing import cast

from c4pipe.errors import UsageError
from c4pipe.filters.rule import LineRule, PageRule, Rule, parameter_names
from c4pipe.filters.rules import RULES
from c4pipe.io.words import explain_errors

_NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_ORIGIN = re.compile(rf"({_NAME.pattern})@([0-9a-f]{{64}})")
_STAGES = {"page": ("readable", "crawled", "lines", "cleaned", "final"), "line": ("lines", "cleaned")}
_HOW = "put the module beside the recipe file, install it, or name its folder in PYTHONPATH"


def is_own(rule: type[Rule]) -> bool:
    """Tells whether a rule is a user's own."""
    return RULES.get(rule.name) is not rule


def find_rule(name: str, folder: Path | None = None) -> type[Rule]:
    """Returns a rule of the user's own, given as `MODULE:CLASS`. The module is imported.

    Args:
        name: module and class, such as `my_rules:ShortTitle`.
        folder: a further folder in which to look for the module; None for no further folder.

    Raises UsageError if the module can't be imported, or has no such rule.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} names no rule of your own: write MODULE:CLASS, such as my_rules:ShortTitle")
    module, _, attribute = name.partition(":")
    if folder is not None and str(folder.absolute()) not in sys.path:
        sys.path.append(str(folder.absolute()))  # the workers of this machine get the same path
    with explain_errors(f"the module of the rule {name} can't be imported", _HOW, errors=Exception):  # of any kind
        found = getattr(import_module(module), attribute, None)
    if not isinstance(found, type) or not issubclass(found, (PageRule, LineRule)):
        raise UsageError(f"{name} is no rule: it must be a class that extends PageRule or LineRule of c4pipe")
    return _check_class(cast(type[Rule], found), name)


def _check_class(rule: type[Rule], name: str) -> type[Rule]:
    """Returns a rule of the user's own. Raises UsageError if its class is incomplete."""
    for attribute in ("name", "does", "source"):
        if not isinstance(getattr(rule, attribute, None), str):
            raise UsageError(f"the rule {name} has no {attribute}: give it a text, {attribute} = '...'")
    if not re.fullmatch("[a-z][a-z0-9_]{0,63}", rule.name):
        raise UsageError(f"the rule {name} has the name {rule.name!r}: use small letters, digits and _")
    if rule.name in RULES:
        raise UsageError(f"the rule {name} has the name {rule.name}, which is a rule of c4pipe: choose another name")
    methods = ("value", "drops") if issubclass(rule, PageRule) else ("edit",)
    base = PageRule if issubclass(rule, PageRule) else LineRule
    for method in methods:
        if getattr(rule, method) is getattr(base, method) or isabstract(rule):
            raise UsageError(f"the rule {name} has no method {method}: see docs/own_rules.md")
    if "__dataclass_fields__" not in vars(rule) and get_annotations(rule):
        raise UsageError(f"the rule {name} has parameters, but is no dataclass: put @dataclass(frozen=True) before it")
    reserved = [each for each in parameter_names(rule) if each in ("rule", "before", "after", "stage")]
    if reserved:
        raise UsageError(f"the rule {name} has a parameter {reserved[0]!r}, which recipe files need: rename it")
    return rule


def origin_of(rule: type[Rule]) -> str:
    """Returns the origin of a rule of the user's own: `MODULE:CLASS@SHA256`, with the digest of the module's file.

    Raises UsageError for a class that is in no file, such as a class of a notebook.
    """
    file = None if rule.__module__ == "__main__" else getsourcefile(rule)
    if file is None:
        raise UsageError(
            f"the rule {rule.__qualname__} is in no module that other processes can import: put it into a file of its "
            "own, such as my_rules.py, and import it"
        )
    return f"{rule.__module__}:{rule.__qualname__}@{_digest(file)}"


def load_rule(origin: str) -> type[Rule]:
    """Returns the rule of an origin (see `origin_of`). The recipe that names it may come from anyone.

    Nothing is imported unless the module here has the same digest and defines the class.

    Raises UsageError if the module is missing, or its file differs.
    """
    match = _ORIGIN.fullmatch(origin) if isinstance(origin, str) else None
    if match is None:
        raise UsageError(f"{str(origin)[:100]!r} says of no rule where it is from")
    name, digest = match.groups()
    module = name.partition(":")[0]
    path = _find_file(module)
    if path is None:
        raise UsageError(f"the recipe has the rule {name}, and there is no module {module} here: {_HOW}")
    if _digest(path) != digest:
        raise UsageError(
            f"the recipe has the rule {name}, and {path} is another file than the one that was used: bring that "
            "one back, or begin with a new work folder"
        )
    if f"class {name.partition(':')[2]}(".encode() not in Path(path).read_bytes():
        raise UsageError(f"the recipe has the rule {name}, and {path} defines no such class")
    return find_rule(name)


def check_place(rule: Rule, stage: str) -> str | None:
    """Returns the reason why a rule of the user's own can't stand in a stage; None if it can."""
    if not is_own(type(rule)) or stage in _STAGES.get(rule.scope, ()):
        return None
    stages = ", ".join(_STAGES.get(rule.scope, ())) or "none"
    return f"the rule {rule.name} can't stand in the stage {stage}; its stages are {stages}"


def _find_file(module: str) -> str | None:
    """Returns the file of a module, without importing it or its packages; None if it is missing."""
    name, folders, spec = "", None, None
    for part in module.split("."):
        name = f"{name}.{part}".lstrip(".")
        spec = PathFinder.find_spec(name, folders)
        if spec is None:
            return None
        folders = spec.submodule_search_locations
    return spec.origin if spec and spec.has_location else None


@cache
def _digest(path: str) -> str:
    """Returns the SHA-256 of a module's file at its first use in this process."""
    with explain_errors(f"{path} can't be read"):
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
