import assert from "node:assert/strict";
import { test } from "node:test";
import { AttemptOutcome, Code, Modality, textInputs } from "@parley/client";
import { failure, MODEL, parley } from "./support.js";

const EMBEDDING_MODEL = "gamma-embedding-3-small";

test("embeddings: returns one vector for each input, in their order", async () => {
  const { model, embeddings, usage, report } = await parley.embeddings.create({
    model: EMBEDDING_MODEL,
    inputs: textInputs("tide", "sea", "tide"),
  });
  assert.equal(model, EMBEDDING_MODEL);
  const [tide, sea, again] = embeddings.map(({ values }) => values);
  assert.equal(embeddings.length, 3);
  assert.equal(tide?.length, sea?.length);
  assert.notDeepEqual(tide, sea);
  assert.deepEqual(tide, again);
  assert.ok(usage!.inputTokens > 0);
  assert.equal(report?.attempts.at(-1)?.outcome, AttemptOutcome.SERVED);
});

test("embeddings: have the length that is asked for", async () => {
  const { embeddings } = await parley.embeddings.create({
    model: EMBEDDING_MODEL,
    inputs: textInputs("tide"),
    dimensions: 8,
  });
  assert.equal(embeddings[0]?.values.length, 8);
});

test("embeddings: their models are listed", async () => {
  const { models } = await parley.models.list({ outputModalities: [Modality.EMBEDDING] });
  assert.ok(models.some(({ id }) => id === EMBEDDING_MODEL));
  assert.ok(models.every(({ id }) => id !== MODEL));
});

test("embeddings: a model that makes none is refused", async () => {
  const error = await failure(parley.embeddings.create({ model: MODEL, inputs: textInputs("tide") }));
  assert.equal(error.code, Code.InvalidArgument);
  assert.equal(error.reason, "INVALID_REQUEST");
});
