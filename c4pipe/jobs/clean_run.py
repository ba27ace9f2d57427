"""The parts of job 1 that every runner has: cleans files in a prepared work folder, and verifies the result."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from c4pipe.clean import work_folder
from c4pipe.clean.annotated_folder import list_annotated
from c4pipe.clean.examples import find_last
from c4pipe.clean.progress import HeaderTally, watch_clean
from c4pipe.clean.steps import CleanWetFile
from c4pipe.errors import C4pipeError, LostDataError, UsageError
from c4pipe.io.atomic import clear_abandoned, sync
from c4pipe.io.downloads import NetworkOptions
from c4pipe.io.log import LOG
from c4pipe.io.paths import storage_path
from c4pipe.io.words import first_of, format_count, visible
from c4pipe.jobs.clean_plan import CleanPlan, work_state
from c4pipe.jobs.import_text import number_lines
from c4pipe.jobs.logs import count_values
from c4pipe.jobs.options import BuildOptions, CleanOptions, ImportOptions
from c4pipe.lists.lists import LISTS_FOLDER
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.local_flow import Workers, local_workers
from c4pipe.runners.machine_limits import PROCESS_BYTES, allowed_cores
from c4pipe.runners.runner import run_job
from c4pipe.wet.columns import COLUMN_COUNTERS, LEFT_VALUES, RESERVED, Column, parse_columns
from c4pipe.wet.damage import HAS_NO
from c4pipe.wet.inputs import InputFile


def finish_work(plan: CleanPlan, progress: Progress, tally: HeaderTally | None = None) -> dict[str, int]:
    """Checks that all files are cleaned, finishes the annotated folder, and returns the counts over all files.

    Removes the unfinished files of killed workers. `tally` has the headers that this run has read already.
    """
    counts = _verify(plan, progress, tally or HeaderTally(plan.work))
    clear_abandoned(plan.work)
    if annotate := plan.options.annotation:
        clear_abandoned(storage_path(annotate.folder))
        list_annotated(annotate, (file.work_name for file in work_state(plan).done))
    LOG.info("clean: %s", count_values(counts))
    return counts


def largest_first(files: Iterable[InputFile]) -> list[InputFile]:
    """Returns the files in the order of their tasks: workers that take the largest first end at the same time."""
    return sorted(files, key=lambda file: (-file.load, file.work_name))


def run_clean(
    plan: CleanPlan, files: list[InputFile], progress: Progress, workers: Workers | None = None
) -> HeaderTally:
    """Cleans files on the runner, and returns which headers it has read. The work folder is prepared."""
    options = plan.options
    files = number_lines(plan.work, files, options.network, progress.note)
    tasks = [
        tuple((file.absolute_path, str(plan.target(file)), *(file.part or ())) for file in some)
        for some in _tasks(files)
    ]
    load = sum(file.load or PROCESS_BYTES for file in files)  # of a URL, it is not known
    task_count = options.useful_tasks(len(tasks), load, PROCESS_BYTES)

    def graph(flow: Flow) -> None:
        step = CleanWetFile(
            plan.recipe.to_json(),
            str(plan.work / LISTS_FOLDER),
            plan.listed.lists.digests,
            network_of_worker(options, task_count),
            plan.dropped,
            options.annotation,
            options.input_kind,
            isinstance(options, ImportOptions) and options.further_columns is None,
            find_last(plan.loads),
        )
        flow.map("Clean file", flow.create("Files", tasks), step)

    with watch_clean(progress, plan.work, plan.loads) as tally:
        run_job(graph, options, task_count, progress, workers)
    if isinstance(plan.work, Path):
        sync(plan.work)
    return tally


_SMALL_BYTES = 64 * 1024  # of an input that shares its task

_SMALL_TASKS = 64  # at least: enough for many workers

_MOST_FILES = 64  # of a task: a killed run loses them


def _tasks(files: Sequence[InputFile]) -> list[Sequence[InputFile]]:
    """Returns the files of each task: one, or several small ones if there are many."""
    small = [file for file in files if file.size is not None and file.load <= _SMALL_BYTES]
    number = min(_MOST_FILES, max(1, len(small) // _SMALL_TASKS))
    ones = [[file] for file in files if file.size is None or file.load > _SMALL_BYTES]
    return [*ones, *(small[start : start + number] for start in range(0, len(small), number))]


def network_of_worker(options: CleanOptions | BuildOptions | ImportOptions, tasks: int) -> NetworkOptions:
    """Returns the network options of one process: its share of `--bandwidth`. At most `tasks` processes download."""
    network = options.network
    if not network.bytes_per_second:
        return network
    processes = local_workers(options, tasks) if options.is_local else allowed_cores()
    return network._replace(bytes_per_second=network.bytes_per_second / processes.most)


def _verify(plan: CleanPlan, progress: Progress, tally: HeaderTally) -> dict[str, int]:
    """Checks the work files that the runner wrote, and returns the counts over all work files.

    If no file has a page, everything about the files is deleted.
    """
    state = work_state(plan)
    count = len(plan.files)  # with the parts of large files
    if state.open:
        raise LostDataError(
            f"the runner ended without cleaning {len(state.open)} of {count} files: {state.open[0].work_name}, ..."
        )
    errors = [note["error"] for note in plan.missing()]
    tally.read({plan.target(file).name for file in state.done})
    counts = dict(tally.counts)
    problems = sorted(filter(None, tally.without_page.values()))
    lossy = _lossy_columns(plan, counts)
    if lossy or not counts.get("pages.read"):
        for file in plan.files:  # a run with the right inputs or columns must find no traces of these
            work_folder.forget_input(plan.target(file))
    if lossy:
        raise UsageError(lossy)
    _check_missing_files(plan, errors)
    if not counts.get("pages.read"):
        raise _no_page(plan, problems + errors)
    if left := _left_columns(plan, counts):
        progress.note(left)
    for error in errors:
        LOG.warning("missing: %s", error)
    if problems:
        progress.note(f"no page is in {'; '.join(first_of(problems))}")
    return counts


def _lossy_columns(plan: CleanPlan, counts: Mapping[str, int]) -> str:
    """Returns a sentence about columns that lose more than one value in a hundred, or "".

    Only columns whose type the user did not name count.
    """
    asked = plan.options.further_columns if isinstance(plan.options, ImportOptions) else None
    named = {each.name for each in asked or () if each.type}
    lossy, advice = list[str](), list[str]()
    for column in parse_columns(plan.recipe.input_columns):
        name, kind = column
        lost = {wider: counts.get(f"{COLUMN_COUNTERS}lost.{name}:{wider}", 0) for wider in ("string", "float", "")}
        count = sum(lost.values())
        values = count + counts.get(f"{COLUMN_COUNTERS}kept.{name}", 0)
        if name not in named and count * 100 > values:
            lost_values = f"{count:,} of the {values:,} values in the column {name} are no {kind}"
            lossy.append(f"{lost_values}, and {column} leaves them out")
            column = Column(name, next((wider for wider in lost if wider and lost[wider]), kind))
        advice += [] if name in RESERVED else [str(column)]
    return f"{'; '.join(lossy)}: give --columns {','.join(advice)}" if lossy else ""


def _left_columns(plan: CleanPlan, counts: Mapping[str, int]) -> str:
    """Returns a sentence about the columns that begin after the first rows of JSON, or ""."""
    left, types = Counter[str](), dict[str, set[str]]()
    for counter, count in counts.items():
        if counter.startswith(LEFT_VALUES):
            name, _, kind = counter.removeprefix(LEFT_VALUES).rpartition(":")
            left[name] += count
            types.setdefault(name, set()).add(kind)
    names = sorted(left, key=lambda name: (-left[name], name))
    shown = "; ".join(first_of([f"{visible(name)} in {format_count(left[name], 'row')}" for name in names], 3))
    known = [str(each) for each in parse_columns(plan.recipe.input_columns) if each.name not in RESERVED]
    kinds = {name: min(types[name]) for name in names[:3] if name not in RESERVED}  # float of float and int
    more = [f"{name}:{kind}" for name, kind in kinds.items() if kind and types[name] in ({kind}, {"float", "int"})]
    give = f": give --columns {','.join([*known, *more])}" if more else ""
    return f"warning: columns that begin after the first rows are left out: {shown}{give}" if left else ""


def _no_page(plan: CleanPlan, reasons: Sequence[str]) -> C4pipeError:
    files = "the input file" if plan.file_count == 1 else f"the {plan.file_count:,} input files"
    why = "; ".join(first_of(reasons))
    return C4pipeError(f"no page was found in {files}: {why}; give {plan.recipe.input_format} files")


def _check_missing_files(plan: CleanPlan, errors: Sequence[str]) -> None:
    """Raises C4pipeError if more files are missing than the options allow, given the errors of all of them."""
    limit, count = plan.options.max_missing, plan.file_count
    if len(errors) <= (count - 1 if limit is None else limit):
        return
    unread = [error for error in errors if HAS_NO in error]
    if unread and len(errors) == count:
        raise _no_page(plan, unread)
    what = "have no record or could not be downloaded" if unread else "could not be downloaded"
    raise C4pipeError(f"{len(errors)} of {count} files {what}: {'; '.join(first_of(unread or errors))}")
