"""The lists of a mix for other programs: Megatron-LM's blend, OLMo-core's source mixture, and the priors of Olmix.

Sources: `get_blend_and_blend_per_split` of Megatron-LM (megatron/training/utils/common_utils.py), `SourceMixtureList`
of OLMo-core (src/olmo_core/data/source_mixture.py), `PriorsConfig` and `calculate_priors` of Olmix (olmix/fit/config.py
and olmix/generate/synthesize_mixture.py of https://github.com/allenai/olmix).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from c4pipe.corpus.opened import open_language
from c4pipe.errors import UsageError
from c4pipe.io.atomic import write_text
from c4pipe.io.lock import only_run
from c4pipe.io.paths import StoragePath
from c4pipe.io.words import locate_errors
from c4pipe.read.curve import CurveTimes, json_of, parse_curve
from c4pipe.read.mix_file import Mix, MixSource
from c4pipe.report.rendering import quoted
from c4pipe.tokens.folder import MEGATRON, OLMO, TokenSet, check_files, read_token_manifest
from c4pipe.tokens.tokenizer import TokenizerFile

_IDENTITY = ("manifest", "languages", "vocabulary", "eos", "bos")  # of token files


@dataclass(frozen=True)
class ListedSource:
    """A source with its token files.

    Attributes:
        path: the path of its corpus.
        taken: how many tokens the mix takes.
        most: how often a document may be read.
        layout: the layout of the token files; "" without token files.
        files: the tokens of each file of ids that has some, by absolute path.
        has_weights: whether its documents are in the files as often as the mix reads them.
    """

    path: str
    taken: float
    most: float
    layout: str = ""
    files: Mapping[str, int] = field(default_factory=dict)
    has_weights: bool = False


def write_lists(
    folder: StoragePath, mix: Mix, planned: Sequence[tuple[str, CurveTimes]], tokenizer: TokenizerFile
) -> list[str]:
    """Writes the lists of a mix, given what `plan_mix` returns. A list of an earlier plan is replaced or removed.

    Returns a sentence for each list that can't be made, and for each source whose token files lack its weights.

    Raises UsageError if token files are of another corpus or tokenizer, DamagedFileError if a token file is missing.
    """
    domains, sources, notes = domain_tokens(planned), [], []
    if not sum(taken for _, taken in domains.values()):
        raise UsageError(f"{mix.file} takes no tokens, and --lists needs some: give documents more than 0 times")
    for source, (_, times) in zip(mix.sources, planned, strict=True):
        with locate_errors(f"{mix.file}, source {source.path}"):
            sources.append(_list_source(source, times, tokenizer))
    with only_run(folder):
        write_text(folder / "olmix.yaml", priors(domains))
        for layout, (name, write) in _LISTS.items():
            if missing := [each.path for each in sources if each.layout != layout]:
                (folder / name).unlink(missing_ok=True)
                notes.append(
                    f"{name} is left out: {missing[0]} has no token files for {layout}; write them with c4pipe tokens "
                    f'{missing[0]} --format {layout}, and name their folder in the mix: tokens = "tokens-{layout}"'
                )
                continue
            write_text(folder / name, write(sources))
            notes += [
                f"{name} has the share of {each.path} alone, as its token files are not written with its weights; "
                f"c4pipe tokens --format {layout} --weights {mix.file} writes files of the whole mix"
                for each in sources
                if not each.has_weights
            ]
    return notes


def _list_source(source: MixSource, times: CurveTimes, tokenizer: TokenizerFile) -> ListedSource:
    """Returns a source with its token files. Raises UsageError if they are of another corpus or tokenizer."""
    taken = sum(taken for _, taken in domain_tokens([(source.path, times)]).values())
    used = [often for each in times.labels for there, often in zip(each.tokens, each.times, strict=True) if there]
    curve = parse_curve(source.weights)
    most = curve.max_repeat if curve.target_tokens else max(used, default=0)
    if not source.tokens:
        return ListedSource(source.path, taken, most)
    folder, corpus = Path(source.tokens).absolute(), open_language(source.path)
    manifest = read_token_manifest(folder)
    wanted = [corpus.digest, list(corpus.languages), tokenizer.sha256, tokenizer.end, tokenizer.begin]
    if manifest is None or [manifest.get(name) for name in _IDENTITY] != wanted:
        raise UsageError(
            f"{source.tokens} has no token files of this corpus and tokenizer: write them into a new folder with "
            f"c4pipe tokens {source.path} --format"
        )
    check_files(folder, manifest)
    if manifest["layout"] == MEGATRON and len(str(folder).split()) > 1:
        raise UsageError(f"{folder}: Megatron-LM divides lists at blanks: give token files in a path without blanks")
    layout, files = manifest["layout"], {}
    for language, splits in manifest["totals"].items():
        if "train" in splits and (tokens := splits["train"]["tokens"]):
            files[str(folder / TokenSet(language, "train").id_files(layout)[0])] = tokens
    by_pages = replace(times, labels=tuple(replace(each, tokens=()) for each in times.labels))
    if manifest.get("weights") in (json_of(times), json_of(by_pages)):
        return ListedSource(source.path, sum(files.values()), 1, layout, files, True)
    return ListedSource(source.path, taken, most, layout, files, len(set(used)) == 1 and "weights" not in manifest)


def domain_tokens(planned: Sequence[tuple[str, CurveTimes]]) -> dict[str, tuple[int, float]]:
    """Returns how many tokens are there, and how many are taken, by domain of Olmix: a source, or `source:label`."""
    return {
        path if each.label is None else f"{path}:{each.label}": (
            sum(each.tokens),
            float(np.dot(each.tokens, each.times)),
        )
        for path, times in planned
        for each in times.labels
    }


def priors(domains: Mapping[str, tuple[int, float]]) -> str:
    """Returns the priors of Olmix: the tokens of each domain, and their shares."""
    total = sum(there for there, _ in domains.values())
    sizes = [f"    {quoted(name)}: {there / total:.12f}" for name, (there, _) in domains.items()]
    counts = [f"    {quoted(name)}: {there}" for name, (there, _) in domains.items()]
    return "\n".join(["priors:", "  relative_sizes:", *sizes, "  token_counts:", *counts, ""])


def blend(sources: Sequence[ListedSource]) -> str:
    """Returns a file for --data-args-path of Megatron-LM: on each line, how many tokens are taken, and a prefix."""
    weights = {
        path.removesuffix(".bin"): round(each.taken * tokens / sum(each.files.values()))
        for each in sources
        for path, tokens in each.files.items()
    }
    return "".join(f"{weight} {prefix}\n" for prefix, weight in weights.items() if weight)  # it refuses 0


def source_mixture(sources: Sequence[ListedSource]) -> str:
    """Returns a file for `SourceMixtureList.from_yaml` of OLMo-core."""
    total = sum(each.taken for each in sources)
    lines = [f"# requested_tokens of an epoch of the mix: {round(total)}", "sources:"]
    for each in sources:
        lines += [
            f"  - source_name: {quoted(each.path)}",
            f"    target_ratio: {each.taken / total:.12f}",
            f"    max_repetition_ratio: {max(1, each.most):.12g}",
            "    paths:",
            *(f"      - {quoted(path)}" for path in each.files),
        ]
    return "\n".join([*lines, ""])


_LISTS = {MEGATRON: ("megatron.txt", blend), OLMO: ("olmo_core.yaml", source_mixture)}
"""The name and the function of a list, by the layout of its token files."""
