"""Failed calls."""

import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from conftest import ADDRESS, API_KEY, MIB, ask, upstream_calls, wait_for_close
from parley import Client, DeadlineExceededError, ParleyError
from parley.v1 import ERROR_REASON_MODEL_NOT_FOUND, ERROR_REASON_UNSPECIFIED, Completion, CompletionRequest
from parley.v1.completion_pb2_grpc import CompletionServiceServicer


def failure(call, *arguments, **options) -> ParleyError:
    with pytest.raises(ParleyError) as failed:
        call(*arguments, **options)
    return failed.value


def test_bad_request(client: Client):
    error = failure(client.completions.create, ask(temperature=9), request_id="bad.1")
    assert (error.code, error.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert [(violation.field, violation.description) for violation in error.field_violations] == [
        ("temperature", "must be between 0 and 2")
    ]
    assert str(error) == "INVALID_REQUEST: temperature: must be between 0 and 2. (request bad.1)"
    assert (error.retryable, error.retry_after) == (False, None)
    assert isinstance(error.__cause__, grpc.RpcError)
    assert pickle.loads(pickle.dumps(error)).field_violations == error.field_violations


def test_strict(client: Client):
    request = CompletionRequest.FromString(ask(strict=True).SerializeToString() + b"\xc0\x3e\x01")
    error = failure(client.completions.create, request)
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "1000" in error.field_violations[0].field


def test_unauthenticated():
    with Client(ADDRESS, "sk_parley_wrong", plaintext=True) as client:
        for call in (lambda: client.completions.create(ask()), lambda: list(client.models.list()), client.key.get):
            error = failure(call)
            assert (error.code, error.reason) == (grpc.StatusCode.UNAUTHENTICATED, "UNAUTHENTICATED")
            assert "wrong" not in str(error) + repr(error)


def test_model_not_found(client: Client):
    for call in (
        lambda: client.completions.create(ask(model="no-such-model")),
        lambda: list(client.completions.stream(ask(model="no-such-model"))),
        lambda: client.models.get("no-such-model"),
    ):
        error = failure(call)
        assert (error.code, error.reason) == (grpc.StatusCode.NOT_FOUND, "MODEL_NOT_FOUND")
        assert error.error_reason == ERROR_REASON_MODEL_NOT_FOUND
        assert error.request_id


@pytest.mark.parametrize("reason", ["", "OF_TOMORROW"])
def test_keeps_a_reason_that_it_does_not_know(reason: str):
    error = ParleyError("No.", reason=reason)
    assert (error.reason, error.error_reason) == (reason, ERROR_REASON_UNSPECIFIED)


def test_attempts_and_retry_info(overload):
    error, seconds = overload()
    assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, "UPSTREAM_UNAVAILABLE")
    assert [(attempt.model, attempt.http_status_code) for attempt in error.attempts] == [("overloaded-too", 503)]
    assert (error.retryable, error.retry_after) == (True, 7.0)
    # Two retries by the service config, each after the time that Parley said.
    assert 14 <= seconds < 20


def test_retry_policy(client: Client):
    before = len(upstream_calls("overloaded"))
    error = failure(client.completions.create, ask(model="overloaded", fallback_models=["overloaded-too"]))
    assert [attempt.model for attempt in error.attempts] == ["overloaded", "overloaded-too"]
    assert (error.retryable, error.retry_after) == (False, 7.0)
    # Each retry would begin with this model.
    assert len(upstream_calls("overloaded")) == before + 1


class Recovering(CompletionServiceServicer):
    """Fails once."""

    calls = 0

    def Create(self, request, context):
        self.calls += 1
        if self.calls == 1:
            context.set_trailing_metadata((("grpc-retry-pushback-ms", "1"),))
            context.abort(grpc.StatusCode.UNAVAILABLE, "once")
        return Completion(id=str(request.max_response_bytes))


def test_retries_large_requests(serve):
    service = Recovering()
    with serve(service) as address, Client(address, API_KEY, plaintext=True) as client:
        completion = client.completions.create(ask("x" * (3 * MIB)))
    assert service.calls == 2
    assert completion.id == str(64 * MIB)


def test_deadline(client: Client):
    calls = len(upstream_calls("silent")) + 1
    start = time.monotonic()
    error = failure(client.completions.create, ask(model="silent"), timeout=0.3)
    assert 0.3 <= time.monotonic() - start < 2
    assert isinstance(error, DeadlineExceededError) and isinstance(error, TimeoutError)
    assert error.code is grpc.StatusCode.DEADLINE_EXCEEDED
    wait_for_close("silent", calls)


def test_deadline_of_a_stream(client: Client):
    calls = len(upstream_calls("endless")) + 1
    error = failure(list, client.completions.stream(ask(model="endless"), timeout=0.3))
    assert isinstance(error, DeadlineExceededError)
    wait_for_close("endless", calls)


def test_unknown_address():
    for address, message in (("127.0.0.1:1", "Connection refused"), ("no-such-host.invalid:443", "no-such-host")):
        start = time.monotonic()
        with Client(address, API_KEY, plaintext=True) as client:
            error = failure(client.key.get)
        assert time.monotonic() - start < 5
        assert error.code is grpc.StatusCode.UNAVAILABLE
        assert message in str(error)
        assert error.retryable


def test_is_shared_by_threads(client: Client):
    with ThreadPoolExecutor(8) as executor:
        ids = {completion.id for completion in executor.map(client.completions.create, [ask() for _ in range(16)])}
    assert len(ids) == 16
