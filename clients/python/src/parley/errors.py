"""Failed calls as exceptions."""

from collections.abc import Sequence
from typing import cast

import grpc
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from parley.v1 import ERROR_REASON_UNSPECIFIED, Attempt, AttemptList, ErrorReason


class ParleyError(Exception):
    """A call failed. Its `__cause__` is the `grpc.RpcError`, where there is one.

    The string of the exception has the code, the reason, the message and the request ID.
    """

    code: grpc.StatusCode
    """The status of the call."""
    reason: str
    """The name of Parley's reason, such as `MODEL_NOT_FOUND`, also of one that this version does not know. Empty when
    the failure is not Parley's, such as a lost connection."""
    message: str
    """What is wrong and what to do."""
    request_id: str
    """The ID of the call, for its operator. Empty when the call did not reach Parley, or has no answer yet."""
    field_violations: Sequence[BadRequest.FieldViolation]
    """The fields of the request that are wrong."""
    attempts: Sequence[Attempt]
    """The upstream models that were tried or skipped."""
    retryable: bool
    """Whether a retry may help. Retries by the service config have been made already."""
    retry_after: float | None
    """Seconds to wait before a retry. None when Parley named no time."""

    def __init__(
        self,
        message: str,
        *,
        code: grpc.StatusCode = grpc.StatusCode.UNKNOWN,
        reason: str = "",
        request_id: str = "",
        field_violations: Sequence[BadRequest.FieldViolation] = (),
        attempts: Sequence[Attempt] = (),
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.request_id = request_id
        self.field_violations = field_violations
        self.attempts = attempts
        self.retryable = retryable
        self.retry_after = retry_after

    @property
    def error_reason(self) -> "ErrorReason.ValueType":
        """The value that `reason` names, such as `ERROR_REASON_MODEL_NOT_FOUND`.

        `ERROR_REASON_UNSPECIFIED` without a reason, and for a reason of a later version.
        """
        return dict(ErrorReason.items()).get(f"ERROR_REASON_{self.reason}", ERROR_REASON_UNSPECIFIED)

    def __str__(self) -> str:
        request = f" (request {self.request_id})" if self.request_id else ""
        return f"{self.reason or self.code.name}: {self.message}{request}"


class DeadlineExceededError(ParleyError, TimeoutError):
    """The deadline of the call passed."""


def to_error(error: grpc.RpcError) -> ParleyError:
    """Converts the error of a call of grpc or grpc.aio."""
    call = cast(grpc.Call, error)
    # iter: keys() of the metadata of grpc.aio returned pairs up to a later version than the lower bound.
    headers, trailers = dict(iter(call.initial_metadata() or ())), dict(iter(call.trailing_metadata() or ()))
    info, bad_request, attempts, retry = ErrorInfo(), BadRequest(), AttemptList(), RetryInfo()
    for detail in Status.FromString(cast(bytes, trailers.get("grpc-status-details-bin", b""))).details:
        for message in (info, bad_request, attempts, retry):
            detail.Unpack(message)
    code = call.code()
    retryable, retry_after = code is grpc.StatusCode.UNAVAILABLE, None
    if retry.HasField("retry_delay"):
        retryable, retry_after = True, retry.retry_delay.ToTimedelta().total_seconds()
    if "grpc-retry-pushback-ms" in trailers:
        retryable = int(trailers["grpc-retry-pushback-ms"]) >= 0
    error_type = DeadlineExceededError if code is grpc.StatusCode.DEADLINE_EXCEEDED else ParleyError
    return error_type(
        call.details() or "",
        code=code,
        reason=info.reason,
        # In the headers when a stream breaks, else in the trailers.
        request_id=str(trailers.get("x-request-id") or headers.get("x-request-id", "")),
        field_violations=tuple(bad_request.field_violations),
        attempts=tuple(attempts.attempts),
        retryable=retryable,
        retry_after=retry_after,
    )


def truncated(request_id: str) -> ParleyError:
    """Returns the error of a stream that ended with OK, but without its report."""
    message = "The stream ended without its report, so the answer may be incomplete."
    return ParleyError(message, code=grpc.StatusCode.DATA_LOSS, request_id=request_id, retryable=True)
