"""Runs commands of c4pipe in this process."""

from c4pipe.cli import main


def run(*arguments: object) -> int:
    """Runs a command, and returns its exit status."""
    return main.main([*map(str, arguments)])


def run_tokens(*arguments: object) -> int:
    """Runs the command `tokens`."""
    return run("tokens", *arguments, "--workers", "1", "--quiet")
