"""Client for Parley, a completion gateway. The messages are in `parley.v1`."""

from parley.accumulator import Accumulator
from parley.aio import AsyncClient, AsyncStream
from parley.client import Client, Stream
from parley.errors import DeadlineExceededError, ParleyError
from parley.messages import system_text, text_inputs, text_of, tool_result, user_text

__all__ = [
    "Accumulator",
    "AsyncClient",
    "AsyncStream",
    "Client",
    "DeadlineExceededError",
    "ParleyError",
    "Stream",
    "system_text",
    "text_inputs",
    "text_of",
    "tool_result",
    "user_text",
]
