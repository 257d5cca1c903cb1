"""The messages and enums of the contract `parley.v1`. Their comments are its reference."""

from parley.v1.completion_pb2 import *
from parley.v1.embedding_pb2 import *
from parley.v1.error_pb2 import *
from parley.v1.key_pb2 import *
from parley.v1.message_pb2 import *
from parley.v1.label_pb2 import *
from parley.v1.modality_pb2 import *
from parley.v1.model_pb2 import *
from parley.v1.reasoning_pb2 import *
from parley.v1.report_pb2 import *
from parley.v1.tool_pb2 import *
from parley.v1.usage_pb2 import *
