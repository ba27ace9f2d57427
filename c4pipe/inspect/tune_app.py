# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The page of `c4pipe tune`, as an app of marimo: `tune_server` gives it the annotated folder and the recipe file."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="c4pipe tune")

with app.setup:
    from pathlib import Path
    from typing import Any

    import marimo as mo

    from c4pipe.inspect import tune_page, tune_server


@app.cell
def _() -> Any:
    arguments = mo.cli_args()
    folder, output = str(arguments["annotated"]), Path(str(arguments["output"]))
    tuner = tune_server.open_tuner(folder)
    sliders, choice = tune_page.make_sliders(tuner), tune_page.limit_choice(tuner)
    before = tuner.kept({})
    return before, choice, folder, output, sliders, tuner


@app.cell
def _(folder: Any, tuner: Any) -> Any:
    tune_page.show_heading(tuner, folder)
    return


@app.cell
def _(before: Any, sliders: Any, tuner: Any) -> Any:
    changes = tune_page.changes_of(tuner, sliders.value)
    kept = tuner.kept(changes)
    tune_page.show_totals(tuner, before, kept)
    return changes, kept


@app.cell
def _(choice: Any, sliders: Any) -> Any:
    limit = choice.value
    mo.vstack([choice, sliders[limit.key]], gap=2)  # room for the number above the slider
    return (limit,)


@app.cell
def _(changes: Any, limit: Any, sliders: Any, tuner: Any) -> Any:
    look = tuner.look(limit, changes)
    mo.vstack([tune_page.histogram(tuner, limit, look, sliders.value), tune_page.show_dropped(limit, look)])
    return (look,)


@app.cell
def _() -> Any:
    save = mo.ui.run_button(label="Save as recipe")
    return (save,)


@app.cell
def _(changes: Any, output: Any, save: Any, tuner: Any) -> Any:
    tune_page.show_recipe(tuner, changes, output, save)
    return


@app.cell
def _(look: Any, tuner: Any) -> Any:
    tune_page.show_near(tuner, look)
    return


@app.cell
def _(kept: Any, tuner: Any) -> Any:
    tune_page.show_notes(tuner, kept)
    return


if __name__ == "__main__":
    app.run()
