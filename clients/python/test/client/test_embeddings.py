"""Embeddings."""

import grpc
import pytest
from parley import AsyncClient, Client, ParleyError, text_inputs
from parley.v1 import ATTEMPT_OUTCOME_SERVED, MODALITY_EMBEDDING, EmbeddingRequest, Embeddings, ListModelsRequest

MODEL = "gamma-embedding-3-small"
REQUEST = EmbeddingRequest(model=MODEL, inputs=text_inputs("tide", "sea", "tide"))


def check(made: Embeddings) -> None:
    assert made.model == MODEL
    tide, sea, again = (list(embedding.values) for embedding in made.embeddings)
    assert len(tide) == len(sea)
    assert tide == again != sea
    assert made.usage.input_tokens > 0
    assert [attempt.outcome for attempt in made.report.attempts] == [ATTEMPT_OUTCOME_SERVED]


def test_makes_a_vector_for_each_input(client: Client):
    check(client.embeddings.create(REQUEST))


async def test_makes_them_with_asyncio(async_client: AsyncClient):
    check(await async_client.embeddings.create(REQUEST))


def test_makes_vectors_of_a_length(client: Client):
    request = EmbeddingRequest(model=MODEL, inputs=text_inputs("tide"), dimensions=8)
    [embedding] = client.embeddings.create(request).embeddings
    assert len(embedding.values) == 8


def test_lists_their_models(client: Client):
    models = [model.id for model in client.models.list(ListModelsRequest(output_modalities=[MODALITY_EMBEDDING]))]
    assert MODEL in models
    assert "alpha-haiku-4.5" not in models


def test_refuses_a_model_that_makes_none(client: Client):
    with pytest.raises(ParleyError) as refused:
        client.embeddings.create(EmbeddingRequest(model="alpha-haiku-4.5", inputs=text_inputs("tide")))
    assert (refused.value.code, refused.value.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
