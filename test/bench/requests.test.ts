import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { toHttpRequest } from "../../bench/load/formats.ts";
import { toCompletionRequest } from "../../bench/load/requests.ts";
import { answerOf, modelOf } from "../../bench/upstream/answers.ts";
import { readChatRequest } from "../../src/formats/openai-chat/request.ts";

const bytesOf = (conversation: "short" | "fifty messages"): number =>
  toHttpRequest({ model: "m", streamed: false, conversation }).body.length;

describe("a request of a load", () => {
  it("has the size in the load's name", () => {
    expect(bytesOf("short")).toBeGreaterThan(500);
    expect(bytesOf("short")).toBeLessThan(750);
    expect(bytesOf("fifty messages")).toBeGreaterThan(29_000);
    expect(bytesOf("fifty messages")).toBeLessThan(34_000);
  });

  it("has fifty messages, and calls with their results", () => {
    const read = (conversation: "fifty messages" | "tools") =>
      readChatRequest(JSON.parse(toHttpRequest({ model: "m", streamed: false, conversation }).body)).request;
    expect(read("fifty messages").messages).toHaveLength(50);
    const { messages, tools } = read("tools");
    expect(tools).toHaveLength(3);
    expect(messages.filter(({ parts }) => parts.some(({ kind }) => kind.case === "toolCall"))).toHaveLength(2);
  });

  it("is the same over gRPC and over HTTP", () => {
    const load = { model: "m", streamed: false } as const;
    const overHttp = readChatRequest(JSON.parse(toHttpRequest(load).body)).request;
    const overGrpc = fromBinary(CompletionRequestSchema, toCompletionRequest(load));
    expect(overGrpc).toMatchObject({ model: "m", temperature: 0.7, maxOutputTokens: 512 });
    for (const field of ["model", "messages", "temperature", "maxOutputTokens"] as const)
      expect(overGrpc[field]).toEqual(overHttp[field]);
  });

  it.each([
    "whole",
    "tools",
    "picture",
    { chunks: 5, intervalMs: 10 },
    { chunks: 5, intervalMs: 10, firstMs: 3 },
    { chunks: 5, intervalMs: 10, firstMs: 3, together: 2 },
    { everyMs: 1000 },
  ] as const)("selects the answer %j by the model's name", (answer) =>
    expect(answerOf(modelOf(answer))).toEqual(answer),
  );
});
