"""What all tests share: a model of each dialect, the contract, and no downloads."""

import os
import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from product import ANTHROPIC_MODEL, GEMINI_MODEL, OPENAI_MODEL
from samples import RED_PIXEL

pytest.register_assert_rewrite("client_tests")

SILENCE = b"RIFF\x28\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\4\0\0\0\0\0\0\0"
EMPTY_PAGE = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\n%%EOF\n"
STAND_INS = {".png": RED_PIXEL, ".wav": SILENCE, ".pdf": EMPTY_PAGE}
"""What the tests get in place of a download, by the end of its address."""


@pytest.fixture(params=[ANTHROPIC_MODEL, GEMINI_MODEL, OPENAI_MODEL], ids=["anthropic", "gemini", "openai"])
def dialect_model(request: pytest.FixtureRequest) -> str:
    """The name of a model, one after the other for each dialect."""
    return request.param


@pytest.fixture(autouse=True)
def no_downloads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of LangChain's tests download what they show to the model: they get something small instead."""

    def get(url: str, **_options: object) -> httpx.Response:
        return httpx.Response(200, content=STAND_INS[url[-4:]])

    monkeypatch.setattr(httpx, "get", get)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked contract, with the code that the README's command generates."""
    folder = tmp_path_factory.mktemp("contract")
    with tarfile.open(os.environ["PARLEY_PROTOS"]) as archive:
        archive.extractall(folder, filter="data")
    (folder / "gen").mkdir()
    protos = sorted(str(path.relative_to(folder)) for path in folder.glob("parley/v1/*.proto"))
    options = ["-I", ".", "--python_out=gen", "--pyi_out=gen", "--grpc_python_out=gen"]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *options, *protos], cwd=folder, check=True)
    return folder


@pytest.fixture(scope="session")
def contract(folder: Path):
    """The generated modules."""
    sys.path.insert(0, str(folder / "gen"))
    from parley.v1 import (
        completion_pb2,
        completion_pb2_grpc,
        message_pb2,
        modality_pb2,
        model_pb2,
        model_pb2_grpc,
        report_pb2,
    )

    sys.path.pop(0)
    return SimpleNamespace(
        completion=completion_pb2,
        services=completion_pb2_grpc,
        message=message_pb2,
        modality=modality_pb2,
        model=model_pb2,
        report=report_pb2,
        models=model_pb2_grpc,
    )
