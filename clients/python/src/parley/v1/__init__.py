"""The messages and enums of the contract `parley.v1`. Their comments are its reference."""

from parley.v1.completion_pb2 import *
from parley.v1.key_pb2 import *
from parley.v1.message_pb2 import *
from parley.v1.model_pb2 import *
from parley.v1.report_pb2 import *
