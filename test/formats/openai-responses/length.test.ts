import { create } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { type CompletionChunk, CompletionSchema } from "../../../gen/parley/v1/completion_pb.js";
import { ChoiceWriter } from "../../../src/core/chunks.ts";
import { readResponsesRequest } from "../../../src/formats/openai-responses/request.ts";
import { writeResponse } from "../../../src/formats/openai-responses/response.ts";
import { EventStream } from "../../../src/formats/openai-responses/stream.ts";
import { ASKED } from "./support.ts";

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

it("log probabilities count with the text of their tokens, also in a whole answer", () => {
  const token = { $typeName: "parley.v1.TokenLogprob" as const, token: "x".repeat(1024), logprob: -1, top: [] };
  const logprobs = Array.from({ length: 4096 }, () => token);
  const stream = new EventStream(readResponsesRequest(ASKED), "req_1");
  const writer = new ChoiceWriter(0);
  expect(() => {
    const chunks: CompletionChunk[] = [];
    writer.text({ case: "text", value: "x" }, chunks, logprobs);
    stream.write(chunks);
  }).toThrow(expect.objectContaining({ code: "upstream_protocol" }));
  const part = { kind: { case: "text" as const, value: "x" }, logprobs };
  const completion = create(CompletionSchema, { id: "chatcmpl-1", choices: [{ message: { parts: [part] } }] });
  expect(() => writeResponse(completion, readResponsesRequest(ASKED))).toThrow(
    expect.objectContaining({ code: "upstream_protocol" }),
  );
});
