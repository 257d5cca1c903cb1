"""What the clients of grpc and grpc.aio have in common: how they connect, and what they send with each call."""

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import grpc

from parley.v1 import CompletionRequest

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
_MAX_REQUEST_BYTES = 32 * 1024 * 1024
"""Parley's limit. gRPC does not retry requests larger than its retry buffer, which is 256 KiB by default."""

OPTIONS = [
    ("grpc.max_receive_message_length", MAX_RESPONSE_BYTES),
    ("grpc.service_config", files("parley.v1").joinpath("service_config.json").read_text("utf-8")),
    ("grpc.per_rpc_retry_buffer_size", _MAX_REQUEST_BYTES),
]


def check_address(address: str) -> str:
    """Returns the address, or raises ValueError when it is not one."""
    if not address:
        raise ValueError("The address is empty. It is host:port, such as parley.example.com:443.")
    if re.match("https?://", address):
        raise ValueError(f"The address is host:port, without http:// or https://: {address}")
    return address


def channel_credentials(*, plaintext: bool, root_certificates: bytes | None) -> grpc.ChannelCredentials | None:
    """Returns the credentials of a TLS channel, or None for a plaintext channel."""
    if plaintext and root_certificates is not None:
        raise ValueError("root_certificates are for TLS: leave them out, or plaintext.")
    return None if plaintext else grpc.ssl_channel_credentials(root_certificates)


class Credentials:
    """An API key. It is not shown by `repr`, nor by errors of gRPC about invalid metadata."""

    def __init__(self, api_key: str) -> None:
        if not api_key:
            raise ValueError("The API key is empty.")
        if not _is_header_value(api_key):
            raise ValueError("The API key has a space, a line break or another character that no key has.")
        self._authorization = f"Bearer {api_key}"

    def metadata(self, request_id: str | None) -> tuple[tuple[str, str], ...]:
        """Returns the metadata of a call."""
        if request_id is None:
            return (("authorization", self._authorization),)
        if not _is_header_value(request_id):
            raise ValueError("The request ID is empty, or has a character that is not visible ASCII.")
        return (("authorization", self._authorization), ("x-request-id", request_id))


def with_response_limit(request: CompletionRequest) -> CompletionRequest:
    """Returns the request for Create, with `max_response_bytes`."""
    if request.HasField("max_response_bytes"):
        return request
    limited = CompletionRequest(max_response_bytes=MAX_RESPONSE_BYTES)
    limited.MergeFrom(request)
    return limited


def to_text(metadata: Any) -> Mapping[str, str]:
    """Returns the entries of metadata that are text."""
    return {key: value for key, value in metadata or () if isinstance(value, str)}


def _is_header_value(text: str) -> bool:
    return re.fullmatch(r"[\x21-\x7e]+", text) is not None
