import { create, fromBinary } from "@bufbuild/protobuf";
import { afterEach, expect, it } from "vitest";
import { type Embeddings, EmbeddingsSchema } from "../../gen/parley/v1/embedding_pb.js";
import { encodeVectors, type VectorOptions } from "../../src/inbound/vector-pieces.ts";

const MIB = 1024 * 1024;

/** Numbers of a vector, which have many digits as JSON. */
const DIMENSIONS = 1_000;

function embeddingsOf(count: number): Embeddings {
  const values = [...Float32Array.from({ length: DIMENSIONS }, (_, at) => at / 7)];
  return create(EmbeddingsSchema, { embeddings: Array.from({ length: count }, () => ({ values: [...values] })) });
}

/** Options with an open call, whose pieces of work are counted. */
function optionsOf(form: VectorOptions["form"], maxBytes = 64 * MIB) {
  const leaving = new AbortController();
  const options = {
    form,
    maxBytes,
    worked: 0,
    leaving,
    open: {
      signal: leaving.signal,
      work<T>(run: () => T): T {
        options.worked += 1;
        return run();
      },
    },
  };
  return options;
}

let isOver = false;
afterEach(() => (isOver = true));

/** Counts the turns of the event loop until the end of the test. */
function countTurns(): { turns: number } {
  const counted = { turns: 0 };
  isOver = false;
  const next = (): void => {
    counted.turns += 1;
    if (!isOver) setImmediate(next);
  };
  setImmediate(next);
  return counted;
}

const readJson = (pieces: readonly Buffer[]): unknown => JSON.parse(`[${Buffer.concat(pieces).toString()}]`);
const readBinary = (pieces: readonly Buffer[]): unknown =>
  fromBinary(EmbeddingsSchema, Buffer.concat(pieces)).embeddings;

it.each([
  ["JSON", "json", readJson],
  ["binary", "binary", readBinary],
] as const)(
  "vectors are encoded as %s over several turns of the event loop, charged to their call",
  async (_, form, read) => {
    const embeddings = embeddingsOf(500);
    const options = optionsOf(form);
    const counted = countTurns();
    const pieces = await encodeVectors(embeddings, options);
    expect(options.worked).toBe(10);
    expect(counted.turns).toBeGreaterThanOrEqual(10);
    expect(read(pieces)).toMatchObject(embeddingsOf(500).embeddings.map(({ values }) => ({ values })));
    // Released.
    expect(embeddings.embeddings.every(({ values }) => values.length === 0)).toBe(true);
  },
);

it("vectors that are larger than the limit are refused before all of them are encoded", async () => {
  const options = optionsOf("json", 2 * MIB);
  await expect(encodeVectors(embeddingsOf(500), options)).rejects.toMatchObject({ code: "response_too_large" });
  expect(options.worked).toBeLessThan(5);
});

it("vectors of a caller that has left are encoded no further", async () => {
  const options = optionsOf("binary");
  const encoding = encodeVectors(embeddingsOf(500), options);
  options.leaving.abort(new Error("left"));
  await expect(encoding).rejects.toThrow("left");
  expect(options.worked).toBe(1);
});

it.each([
  ["json", readJson],
  ["binary", readBinary],
] as const)("no vectors, and empty ones, are lists too (%s)", async (form, read) => {
  expect(read(await encodeVectors({ embeddings: [] }, optionsOf(form)))).toEqual([]);
  const { embeddings } = create(EmbeddingsSchema, { embeddings: [{}, { values: [1] }] });
  expect(read(await encodeVectors({ embeddings }, optionsOf(form)))).toMatchObject([{ values: [] }, { values: [1] }]);
});
