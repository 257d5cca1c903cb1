"""Runs the programs in Python of docs/clients.md, with the address and the key of the product."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from product import API_KEY, ORIGIN

NEEDS_OLDER_OPENAI = {"LlamaIndex", "LiteLLM"}


def programs() -> dict[str, str]:
    """The programs by the headings above them."""
    sections = Path(os.environ["PARLEY_CLIENTS_PAGE"]).read_text(encoding="utf-8").split("\n### ")[1:]
    found = {}
    for section in sections:
        if code := re.search(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE):
            found[section.split("\n", 1)[0]] = code[1]
    return found


PROGRAMS = programs()


def test_every_library_has_a_program() -> None:
    assert {"OpenAI SDK", "LangChain", "Agents SDK", "pydantic-ai", *NEEDS_OLDER_OPENAI} <= PROGRAMS.keys()


@pytest.mark.parametrize("name", PROGRAMS)
def test_documented_program_runs(name: str) -> None:
    code = PROGRAMS[name].replace("http://127.0.0.1:8080", ORIGIN).replace("YOUR_KEY", API_KEY)
    python = os.environ["PARLEY_OTHER_PYTHON"] if name in NEEDS_OLDER_OPENAI else sys.executable
    # LiteLLM downloads prices otherwise.
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    result = subprocess.run([python, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    assert "Hello!" in result.stdout
