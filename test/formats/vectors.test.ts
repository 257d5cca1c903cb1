import { expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { EmbeddingSchema } from "../../gen/parley/v1/embedding_pb.js";
import { writeVectors } from "../../src/formats/vectors.ts";

const FRAME = { head: '{"data":[', tail: "]}" };
const vectors = (count: number, length: number) =>
  Array.from({ length: count }, (_, at) => create(EmbeddingSchema, { values: Array<number>(length).fill(at + 0.5) }));

it("writes vectors in pieces, each when it is asked for, and releases their numbers", () => {
  const given = vectors(40, 3_000);
  const pieces = writeVectors(given, FRAME, (values) => ({ values }));
  const first = (pieces.next().value as Buffer).toString();
  expect(first.length).toBeLessThan(128 * 1024);
  expect(given.filter(({ values }) => values.length === 0).length).toBeLessThan(10);
  const rest = [...pieces];
  const { data } = JSON.parse(first + Buffer.concat(rest).toString()) as { data: { values: number[] }[] };
  expect(data.map(({ values }) => [values.length, values[0]])).toEqual(
    vectors(40, 3_000).map((_, at) => [3_000, at + 0.5]),
  );
  expect(given.every(({ values }) => values.length === 0)).toBe(true);
});

it("writes few of them, and none, in one piece", () => {
  const text = (count: number) => [...writeVectors(vectors(count, 2), FRAME, (values) => ({ values }))].map(String);
  expect(text(2)).toEqual(['{"data":[{"values":[0.5,0.5]},{"values":[1.5,1.5]}]}']);
  expect(text(0)).toEqual(['{"data":[]}']);
});
