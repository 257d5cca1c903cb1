import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type CompletionRequest, CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import type { CallerShare } from "../../../src/core/call.ts";
import type { Completions } from "../../../src/core/completions.ts";
import { Failure } from "../../../src/core/failure.ts";
import { readFormatRequests } from "../../../src/inbound/http/format-requests.ts";
import type { Refusal } from "../../../src/inbound/services.ts";
import { callOf } from "../../support/core-ports.ts";

const LATE = new Failure("rate_limited", "The key stays in debt.");

/** Completions that note the model of each counted request; `turn` is when a caller's work may run. */
function createWorld(turn: Promise<void>) {
  const models: string[] = [];
  const refused: Refusal[] = [];
  const noting = {
    async count({ model }: CompletionRequest) {
      models.push(model);
      return { inputTokens: 1 };
    },
  } as unknown as Completions;
  const share: CallerShare = {
    holdAnswer: () => undefined,
    answered: () => undefined,
    openAnswer: () => undefined,
    keepAnswers: () => undefined,
    work: () => expect.fail("not in a turn"),
    workInTurn: async (run) => turn.then(run),
  };
  const completions = readFormatRequests(noting, (refusal) => void refused.push(refusal));
  const call = { ...callOf({ signal: new AbortController().signal, arrivedMs: 0 }), share };
  const body = Buffer.from(JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] }));
  const inFormat = { path: "/v1/messages/count_tokens", headers: {}, body };
  const count = (fields: object = { inFormat }) => completions.count(requestOf(fields), call);
  return { models, refused, inFormat, count };
}

const requestOf = (fields: object): CompletionRequest => create(CompletionRequestSchema, fields);

describe("a request in a format", () => {
  it("is read in a turn of its caller", async () => {
    const turn = Promise.withResolvers<void>();
    const { models, count } = createWorld(turn.promise);
    const counted = count();
    await count({ model: "plain" });
    expect(models).toEqual(["plain"]);
    turn.resolve();
    await counted;
    expect(models).toEqual(["plain", "m"]);
  });

  it("is refused when its turn does not come", async () => {
    const { models, refused, count } = createWorld(Promise.reject(LATE));
    await expect(count()).rejects.toBe(LATE);
    expect(models).toEqual([]);
    expect(refused).toMatchObject([{ target: "in_format", failure: LATE }]);
  });

  it.each([
    ["max_output_tokens", { maxOutputTokens: 0 }],
    ["temperature", { temperature: 0 }],
    ["model", { model: "m" }],
  ])("is refused beside %s", async (name, other) => {
    const { inFormat, models, count } = createWorld(Promise.resolve());
    await expect(count({ inFormat, ...other })).rejects.toMatchObject({ code: "invalid_request", param: name });
    expect(models).toEqual([]);
  });
});
