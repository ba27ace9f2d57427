"""`c4pipe --help` imports none of the large libraries."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("code", ["import c4pipe.cli", "from c4pipe.cli.main import main; main(['--help'])"])
def test_help_does_not_wait_for_large_libraries(code: str) -> None:
    large = ("apache_beam", "pyarrow", "numpy", "rich")
    script = f"""
import sys
try:
    {code}
except SystemExit:
    pass
print([name for name in {large} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
