"""What the site says of a function that takes the options of a record: signature and docstring as Python has them."""

import importlib
import inspect
from typing import Any

import griffe


class RecordOptions(griffe.Extension):
    """Reads the functions that `takes_options` made, which are not in the source as they are called."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Gives a function the parameters and the docstring that it has at run time."""
        if not any("takes_options(" in str(decorator.value) for decorator in func.decorators):
            return
        function = getattr(importlib.import_module(func.module.path), func.name)
        parameters = inspect.signature(function).parameters.values()
        func.parameters = griffe.Parameters(*map(_parameter, parameters))
        assert func.docstring
        func.docstring.value = inspect.cleandoc(function.__doc__)


def _parameter(parameter: inspect.Parameter) -> griffe.Parameter:
    is_required = parameter.default is inspect.Parameter.empty
    return griffe.Parameter(
        parameter.name,
        annotation=_annotation(parameter.annotation),
        kind=griffe.ParameterKind(parameter.kind.description),
        default=None if is_required else repr(parameter.default),
    )


def _annotation(annotation: Any) -> str:
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return text.replace("collections.abc.", "")
