# /// script
# [tool.marimo.display]
# theme = "system"
# ///
"""The page of `c4pipe tune`, as an app of marimo: `tune_server` gives it the annotated folder and the recipe file."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="c4pipe tune")

with app.setup:
    from typing import Any

    import marimo as mo

    from c4pipe.inspect import tune_page, tune_server


@app.cell
def _() -> Any:
    arguments = mo.cli_args()
    tuner = tune_server.open_tuner(str(arguments["annotated"]))
    sliders = mo.ui.dictionary(
        {
            each.key: mo.ui.slider(steps=tuner.steps(each), value=each.value, show_value=True, full_width=True)
            for each in tuner.limits
        }
    )
    names = {f"{each.rule}: {each.parameter}": each for each in tuner.limits}
    choice = mo.ui.dropdown(names, value=next(iter(names)), label="Limit")
    save = mo.ui.run_button(label="Save as recipe")
    return arguments, choice, save, sliders, tuner


@app.cell
def _(arguments: Any, sliders: Any, tuner: Any) -> Any:
    changes = {each.key: sliders.value[each.key] for each in tuner.limits if sliders.value[each.key] != each.value}
    tune_page.show_totals(tuner, str(arguments["annotated"]), changes)
    return (changes,)


@app.cell
def _(choice: Any, sliders: Any) -> Any:
    mo.vstack([choice, sliders[choice.value.key]], gap=2)  # room for the number above the slider
    return


@app.cell
def _(arguments: Any, changes: Any, choice: Any, save: Any, tuner: Any) -> Any:
    recipe = tune_page.show_recipe(tuner, changes, str(arguments["output"]), save)
    mo.vstack(tune_page.show_rule(tuner, choice.value, changes, recipe))
    return


if __name__ == "__main__":
    app.run()
