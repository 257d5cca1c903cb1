import { create } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import { type Audio, AudioSchema, TokenLogprobSchema } from "../../gen/parley/v1/message_pb.js";
import { AnswerBuilder, MAX_ANSWER_BYTES } from "../../src/core/answer-builder.ts";
import { ChoiceWriter, deltaChunk } from "../../src/core/chunks.ts";
import { findFailure } from "../support/errors.ts";

const PLACE = { choiceIndex: 0, partIndex: 0 };
const MIB = 1024 * 1024;

afterEach(() => void vi.restoreAllMocks());

/** An answer with the beginning of a text. */
function begun(): AnswerBuilder {
  const builder = new AnswerBuilder();
  const out: CompletionChunk[] = [];
  new ChoiceWriter(0).text({ case: "text", value: "a" }, out);
  for (const chunk of out) builder.add(chunk);
  return builder;
}

const text = (value: string, tokens = 0): CompletionChunk => {
  const logprobs = Array.from({ length: tokens }, () => create(TokenLogprobSchema));
  return deltaChunk(PLACE, { case: "text", value }, logprobs);
};

/** How often a chunk can be added before the answer is refused. */
function roomFor(chunk: CompletionChunk): number {
  const builder = begun();
  for (let count = 0; count < 200; count++) {
    const failure = findFailure(() => builder.add(chunk));
    if (failure?.code === "upstream_protocol") return count;
  }
  return expect.fail("it was taken whole");
}

describe("an answer that is joined from a stream", () => {
  it("has a limit, whatever it consists of", () => {
    const most = MAX_ANSWER_BYTES / MIB - 1;
    expect(roomFor(text("x".repeat(MIB)))).toBe(most);
    expect(roomFor(text("", 10_000))).toBeLessThan(most);
    expect(roomFor(deltaChunk(PLACE, { case: "audio", value: speech(MIB) }))).toBe(most);
  });

  it("takes the text of a whole response of the largest size", () => {
    const builder = begun();
    for (let count = 0; count < 64; count++) builder.add(text("x".repeat(MIB)));
    expect(builder.build().choices).toHaveLength(1);
  });

  it("copies a recording once, of however many pieces", () => {
    const out: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    for (let count = 0; count < 100; count++) writer.audio(speech(2), out);
    const builder = new AnswerBuilder();
    const concat = vi.spyOn(Buffer, "concat");
    for (const chunk of out) builder.add(chunk);
    const [choice] = builder.build().choices;
    expect(concat).toHaveBeenCalledTimes(1);
    expect(choice?.message?.parts[0]?.kind.value).toMatchObject({ source: { value: { length: 200 } } });
  });

  it("goes on after it was looked at", () => {
    const builder = new AnswerBuilder();
    const out: CompletionChunk[] = [];
    const writer = new ChoiceWriter(0);
    for (let count = 0; count < 3; count++) {
      writer.audio(speech(2), out);
      for (const chunk of out.splice(0)) builder.add(chunk);
      const [choice] = builder.build().choices;
      expect(choice?.message?.parts[0]?.kind.value).toMatchObject({ source: { value: { length: 2 * (count + 1) } } });
    }
  });
});

function speech(bytes: number): Audio {
  return create(AudioSchema, { source: { case: "data", value: new Uint8Array(bytes) } });
}
