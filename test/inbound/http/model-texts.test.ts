import { expect, it } from "vitest";
import type { Model } from "../../../gen/parley/v1/model_pb.js";
import { ModelTexts } from "../../../src/inbound/http/model-texts.ts";

it("the text of a list is written once by each format, and each time for a query", () => {
  const texts = new ModelTexts();
  let written = 0;
  const formats = ["one", "other"].map((name) => () => {
    written += 1;
    return { name };
  });
  const write = (list: readonly Model[], query = ""): string[] =>
    formats.map((format) => texts.of(list, format, new URLSearchParams(query)));
  const list: Model[] = [];
  const text = ['{"name":"one"}', '{"name":"other"}'];
  expect([write(list), write(list)]).toEqual([text, text]);
  expect(written).toBe(2);
  write([]);
  expect(written).toBe(4);
  for (const query of ["limit=1", "limit=2", "limit=1"]) write(list, query);
  expect(written).toBe(10);
});
