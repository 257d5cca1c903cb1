"""The connection, the other services, and the package."""

import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import grpc
import parley
import pytest
from conftest import ADDRESS, API_KEY, ask
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase
from parley import AsyncClient, Client, ParleyError, text_inputs
from parley.v1 import (
    KEY_CAPABILITY_CHAT,
    MODALITY_IMAGE,
    Completion,
    Embedding,
    EmbeddingRequest,
    Embeddings,
    ListModelsRequest,
)
from parley.v1.completion_pb2_grpc import CompletionServiceServicer
from parley.v1.embedding_pb2_grpc import EmbeddingServiceServicer, add_EmbeddingServiceServicer_to_server


def test_models_and_key(client: Client):
    models = list(client.models.list())
    assert {"alpha-haiku-4.5", "painter"} <= {model.id for model in models}
    assert list(client.models.list(ListModelsRequest(page_size=2))) == models
    drawing = client.models.list(ListModelsRequest(output_modalities=[MODALITY_IMAGE]))
    assert "painter" in [model.id for model in drawing]
    assert client.models.get("painter") in models
    key = client.key.get()
    assert key.id.startswith("key_")
    assert KEY_CAPABILITY_CHAT in key.capabilities


class Lengths(EmbeddingServiceServicer):
    """Returns the length of each input as its vector."""

    def Create(self, request, context):
        return Embeddings(
            id=dict(context.invocation_metadata())["x-request-id"],
            embeddings=[Embedding(values=[len(item.text)]) for item in request.inputs],
        )


async def test_embeddings(serve):
    request = EmbeddingRequest(model="m", inputs=text_inputs("tide", "sea"))
    with serve(Lengths(), add=add_EmbeddingServiceServicer_to_server) as address:
        with Client(address, API_KEY, plaintext=True) as client:
            made = client.embeddings.create(request, request_id="embed.1")
        async with AsyncClient(address, API_KEY, plaintext=True) as client:
            assert await client.embeddings.create(request, request_id="embed.1") == made
    assert made.id == "embed.1"
    assert [list(embedding.values) for embedding in made.embeddings] == [[4.0], [3.0]]


def test_health(client: Client):
    stub = health_pb2_grpc.HealthStub(client.channel)
    for service in ("", "parley.v1.CompletionService"):
        response = stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=5)
        assert response.status == health_pb2.HealthCheckResponse.SERVING


def test_reflection(client: Client):
    services = ProtoReflectionDescriptorDatabase(client.channel).get_services()
    assert {"parley.v1.CompletionService", "parley.v1.ModelService", "parley.v1.KeyService"} <= set(services)


class Greeting(CompletionServiceServicer):
    """Tells the key that it was called with."""

    def Create(self, request, context):
        return Completion(id=dict(context.invocation_metadata())["authorization"])


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """The key and the self-signed certificate of 127.0.0.1."""
    key, certificate = (tmp_path_factory.mktemp("tls") / name for name in ("key.pem", "certificate.pem"))
    options = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=test"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", *options.split(), *names], check=True, capture_output=True)
    return key.read_bytes(), certificate.read_bytes()


def test_uses_tls(serve, certificate: tuple[bytes, bytes]):
    with serve(Greeting(), grpc.ssl_server_credentials([certificate])) as address:
        with Client(address, API_KEY, root_certificates=certificate[1]) as client:
            assert client.completions.create(ask()).id == f"Bearer {API_KEY}"
        with Client(address, API_KEY) as client, pytest.raises(ParleyError, match="(?i)certificate"):
            client.key.get()


def test_uses_tls_by_default():
    with Client(ADDRESS, API_KEY) as client, pytest.raises(ParleyError, match="SSL") as failed:
        client.key.get()
    assert failed.value.code is grpc.StatusCode.UNAVAILABLE


def test_does_not_show_the_key(client: Client):
    assert repr(client) == str(client) == f"Client('{ADDRESS}')"
    for show in (repr, str):
        assert API_KEY not in show([vars(part) for part in (client, client.completions, client.models, client.key)])


@pytest.mark.parametrize(
    ("address", "api_key", "message"),
    [
        ("", API_KEY, "address is empty"),
        ("http://127.0.0.1:50051", API_KEY, "without http://"),
        (ADDRESS, "", "key is empty"),
        (ADDRESS, "sk_parley_secret\n", "line break"),
    ],
)
def test_refuses_what_cannot_work(address: str, api_key: str, message: str):
    with pytest.raises(ValueError, match=message) as refused:
        Client(address, api_key, plaintext=True)
    assert "secret" not in str(refused.value)


def test_refuses_authorities_without_tls():
    with pytest.raises(ValueError, match="root_certificates"):
        Client(ADDRESS, API_KEY, plaintext=True, root_certificates=b"")


@pytest.mark.parametrize("request_id", ["", "two words", "line\nbreak"])
def test_refuses_a_request_id_that_is_no_header(client: Client, request_id: str):
    with pytest.raises(ValueError, match="request ID") as refused:
        client.completions.create(ask(), request_id=request_id)
    assert API_KEY not in str(refused.value)


def test_runs_the_first_program_of_the_readme():
    readme = Path(__file__).parents[2] / "README.md"
    program = re.search(r"```python\n(.*?)```", readme.read_text("utf-8"), re.DOTALL).group(1)
    ran = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=30)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "Tell me about tides." in ran.stdout


def test_has_the_service_config_of_the_contract():
    config = Path(os.environ["PARLEY_CONTRACT"], "parley/v1/service_config.json")
    assert files("parley.v1").joinpath("service_config.json").read_text() == config.read_text()


def test_is_installed_and_typed():
    assert "site-packages" in parley.__file__
    for stub in ("py.typed", "v1/completion_pb2.pyi", "v1/completion_pb2_grpc.pyi"):
        assert files("parley").joinpath(stub).is_file()
