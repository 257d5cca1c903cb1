"""Where the product is that the tests talk to, and which model of it speaks which dialect upstream."""

import os

BASE_URL = os.environ["PARLEY_BASE_URL"]
"""Ends in `/v1`."""

ORIGIN = BASE_URL.removesuffix("/v1")

API_KEY = os.environ["PARLEY_API_KEY"]

SPENT_KEY = os.environ["PARLEY_SPENT_KEY"]
"""A key whose budget is too small for any request."""

ANTHROPIC_MODEL = "alpha-haiku-4.5"
GEMINI_MODEL = "beta-3-flash"
OPENAI_MODEL = "local/test"
IMAGE_MODEL = "beta-3-pro-image-preview"
