import fc from "fast-check";
import { accumulateResponse } from "openai/lib/responses/ResponseAccumulator";
import { describe, expect, it } from "vitest";
import { type CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../../gen/parley/v1/message_pb.js";
import { finishChunk, toPart } from "../../../src/core/chunks.ts";
import { readResponsesRequest } from "../../../src/formats/openai-responses/request.ts";
import { chunksOfPart } from "../../support/to-chunks.ts";
import { REPORT, startOf } from "../openai-chat/scenarios.ts";
import { anyStream, ASKED, completionOf, eventsOf, type Json, settled, streamOf, wholeOf } from "./support.ts";

describe("any stream", () => {
  it("is one that the official client accepts, and ends with what its events said", () => {
    fc.assert(
      fc.property(anyStream, (chunks) => {
        const events = eventsOf(streamOf(chunks));
        let response: ReturnType<typeof accumulateResponse> | undefined;
        for (const event of events.slice(0, -1)) response = accumulateResponse(event as never, response);
        const last = events.at(-1) as { type: string; response: Json };
        expect(last.type).toMatch(/^response\.(completed|incomplete)$/);
        const done = events.filter(({ type }) => type === "response.output_item.done");
        expect(done.map(({ output_index: at }) => at)).toEqual(done.map((_, at) => at));
        expect(last.response["output"]).toEqual(done.map(({ item }) => item));
        expect(response?.output ?? []).toMatchObject(last.response["output"] as object[]);
      }),
    );
  });

  it("says the same as a whole answer", () => {
    fc.assert(
      fc.property(anyStream, (chunks) => {
        const last = eventsOf(streamOf(chunks)).at(-1) as { response: Json };
        const whole = wholeOf(completionOf(chunks));
        expect(settled(last.response["output"])).toEqual(settled(whole["output"]));
        expect(last.response["status"]).toBe(whole["status"]);
      }),
    );
  });

  it("is the same text however its chunks come", () => {
    fc.assert(
      fc.property(anyStream, fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1 }), (chunks, sizes) => {
        expect(streamOf(chunks, ASKED, sizes)).toBe(streamOf(chunks));
      }),
    );
  });
});

const words = fc.string({ minLength: 1, maxLength: 12 });
const state = fc.oneof(fc.constant(""), words);
const PICTURE = Buffer.from("iVBORw0KGgo=", "base64");

/** Parts of an answer that the format can say, with state of the provider. */
const answer: fc.Arbitrary<Part[]> = fc
  .array(
    fc.oneof(
      fc
        .record({ text: words, signature: state })
        .map(({ text, signature }) => toPart({ case: "text", value: text }, signature)),
      words.map((refusal) => toPart({ case: "refusal", value: refusal })),
      fc
        .record({ text: words, signature: state })
        .map(({ text, signature }) =>
          toPart({ case: "reasoning", value: { $typeName: "parley.v1.Reasoning", text, redacted: "" } }, signature),
        ),
      words.map((redacted) =>
        toPart({ case: "reasoning", value: { $typeName: "parley.v1.Reasoning", text: "", redacted } }),
      ),
      fc.record({ name: words, custom: fc.boolean(), signature: state }).map(({ name, custom, signature }) => {
        const input = custom
          ? ({ case: "customInput", value: "x" } as const)
          : ({ case: "argumentsJson", value: "{}" } as const);
        return toPart({ case: "toolCall", value: { $typeName: "parley.v1.ToolCall", id: "", name, input } }, signature);
      }),
      state.map((signature) =>
        toPart(
          {
            case: "image",
            value: {
              $typeName: "parley.v1.Image",
              source: { case: "data", value: PICTURE },
              mediaType: "image/png",
              detail: 0,
            },
          },
          signature,
        ),
      ),
      fc.record({ id: fc.option(words, { nil: undefined }), later: fc.jsonValue() }).map(({ later, id }) => {
        const json = JSON.stringify({ type: "web_search_call", later, id });
        return toPart({
          case: "native",
          value: { $typeName: "parley.v1.NativeBlock", dialect: "openai-responses", json },
        });
      }),
    ),
    { minLength: 1, maxLength: 6 },
  )
  .map((parts) => {
    parts.forEach(({ kind }, at) => {
      if (kind.case === "toolCall") kind.value.id = `call_${at}`;
      if (kind.case === "native") kind.value.json = kind.value.json.replace(',"id":"', `$&${at}`);
    });
    return parts;
  });

/** Kind, content and state of each part. */
const said = (parts: readonly Part[]): unknown =>
  parts.map(({ kind, signature }) => {
    const value: unknown = kind.case === "image" ? "picture" : kind.value;
    return { kind: kind.case, value, signature };
  });

describe("any answer that is sent back", () => {
  it.each(["whole", "streamed"])("is the same message again, %s", (how) => {
    fc.assert(
      fc.property(answer, (parts) => {
        const chunks = parts.flatMap((part, at) => chunksOfPart(part, 0, at));
        chunks.push(finishChunk(0, { reason: FinishReason.STOP, native: "" }));
        const whole = wholeOf(completionOf(chunks));
        const stream = eventsOf(streamOf([...startAndEnd(chunks)])).at(-1) as { response: Json };
        const output = how === "whole" ? whole["output"] : stream.response["output"];
        const { request, unrecognized } = readResponsesRequest({ ...ASKED, input: output });
        expect(unrecognized).toEqual([]);
        expect(said(request.messages[0]?.parts ?? [])).toEqual(said(parts));
      }),
    );
  });
});

function startAndEnd(chunks: readonly CompletionChunk[]): readonly CompletionChunk[] {
  return [startOf("a"), ...chunks, REPORT];
}
