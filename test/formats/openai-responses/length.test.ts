import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { type CompletionChunk, CompletionSchema, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { ChoiceWriter } from "../../../src/core/chunks.ts";
import { readResponsesRequest } from "../../../src/formats/openai-responses/request.ts";
import { writeResponse } from "../../../src/formats/openai-responses/response.ts";
import { EventStream } from "../../../src/formats/openai-responses/stream.ts";
import { ASKED, eventsOf, type Json } from "./support.ts";

const MI_CHARS = 1024 * 1024;

it.each(["text", "reasoning"] as const)(
  "a stream is cut after 16 Mi characters of %s, which its last events repeat",
  (kind) => {
    const stream = new EventStream(readResponsesRequest(ASKED), "req_1");
    const writer = new ChoiceWriter(0);
    const write = (): void => {
      const chunks: CompletionChunk[] = [];
      writer.text({ case: kind, value: "x".repeat(MI_CHARS) }, chunks);
      stream.write(chunks);
    };
    for (let written = 0; written < 16; written++) write();
    expect(write).toThrow(expect.objectContaining({ code: "upstream_protocol" }));
  },
);

const token = (chars: number) => ({
  $typeName: "parley.v1.TokenLogprob" as const,
  token: "x".repeat(chars),
  logprob: -1,
  top: [],
});

it("log probabilities count with the text of their tokens in a whole answer", () => {
  const logprobs = Array.from({ length: 4096 }, () => token(1024));
  const part = { kind: { case: "text" as const, value: "x" }, logprobs };
  const completion = create(CompletionSchema, { id: "chatcmpl-1", choices: [{ message: { parts: [part] } }] });
  expect(() => writeResponse(completion, readResponsesRequest(ASKED))).toThrow(
    expect.objectContaining({ code: "upstream_protocol" }),
  );
});

it.each([
  ["are repeated by the last events of a stream", 1_000],
  ["that are many are only in the deltas of a stream", 20_000],
])("log probabilities %s", (_, count) => {
  const stream = new EventStream(readResponsesRequest(ASKED), "req_1");
  const writer = new ChoiceWriter(0);
  const chunks: CompletionChunk[] = [];
  for (let at = 0; at < count; at += 100)
    writer.text(
      { case: "text", value: "x" },
      chunks,
      Array.from({ length: 100 }, () => token(5)),
    );
  writer.finish({ reason: FinishReason.STOP, native: "stop" }, chunks);
  const events = eventsOf(stream.write(chunks));
  const sum = (of: Json[]): number => of.reduce((all, each) => all + (each["logprobs"] as object[]).length, 0);
  const ofType = (type: string): Json[] => events.filter((event) => event["type"] === type);
  expect(sum(ofType("response.output_text.delta"))).toBe(count);
  expect(sum(ofType("response.output_text.done"))).toBe(count > 10_000 ? 0 : count);
});
