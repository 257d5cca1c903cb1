import fc from "fast-check";
import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import { AnswerStream, toAnswerChunks as anthropicChunks } from "../../../src/providers/anthropic/response.ts";
import {
  toAnswerChunks as geminiChunks,
  AnswerStream as GeminiStream,
} from "../../../src/providers/gemini/response.ts";
import {
  AnswerStream as OpenAiStreamReader,
  toAnswerChunks as readOpenAiChunks,
} from "../../../src/providers/openai/response.ts";
import {
  AnswerStream as ResponseStream,
  toAnswerChunks as readResponseChunks,
} from "../../../src/providers/openai-responses/response.ts";
import type { StreamReader } from "../../../src/providers/wire/response.ts";
import type { Answer } from "../../../src/simulator/answer.ts";
import { encodeEvents as encodeAnthropic } from "../../../src/simulator/anthropic/dialect.ts";
import { encodeEvents as encodeGemini } from "../../../src/simulator/gemini/response.ts";
import { encodeEvents as encodeOpenAi } from "../../../src/simulator/openai/dialect.ts";
import { readScenarios } from "../../product/support/fixtures.ts";
import { answers, type AnswerShape } from "../../properties/answers.ts";
import { encodeResponseEvents } from "../../support/responses-wire.ts";
import { seed } from "../../support/scale.ts";

/** The stream reader of one dialect, and its end markers. */
export interface StreamDialect {
  readonly createReader: () => StreamReader;
  /** Response to a request that was not streamed. */
  readonly whole: (json: unknown) => readonly CompletionChunk[];
  /** Text in every complete stream of this dialect. */
  readonly ending: RegExp;
}

export const STREAM_DIALECTS = {
  anthropic: {
    createReader: () => new AnswerStream(),
    whole: anthropicChunks,
    ending: /"stop_reason"\s*:\s*"/,
  },
  gemini: {
    createReader: () => new GeminiStream(),
    whole: geminiChunks,
    ending: /"(finishReason|finish_reason|blockReason|block_reason)"\s*:\s*"/,
  },
  openai: {
    createReader: () => new OpenAiStreamReader(),
    whole: readOpenAiChunks,
    ending: /"finish_reason"\s*:\s*"/,
  },
  "openai-responses": {
    createReader: () => new ResponseStream(),
    whole: readResponseChunks,
    ending: /response\.(?:completed|incomplete)/,
  },
} as const satisfies Record<string, StreamDialect>;

export type DialectName = keyof typeof STREAM_DIALECTS;

/** A stream as a provider sends it, with LF line ends. */
export interface SampleStream {
  readonly dialect: DialectName;
  readonly text: string;
}

/** Number of random answers of each dialect, in addition to the recorded ones. */
const RANDOM_ANSWERS = 30;

const SPOKEN: Readonly<
  Record<DialectName, { shape: AnswerShape; encode: (answer: Answer) => Iterable<{ text: string }> }>
> = {
  anthropic: { shape: { pictures: false, redacted: true, textBesideCalls: true }, encode: encodeAnthropic },
  gemini: { shape: { pictures: true, redacted: false, textBesideCalls: true }, encode: encodeGemini },
  openai: {
    shape: { pictures: false, redacted: false, textBesideCalls: false },
    encode: (answer) => encodeOpenAi([answer], true),
  },
  "openai-responses": {
    shape: { pictures: false, redacted: true, textBesideCalls: true },
    encode: encodeResponseEvents,
  },
};

/** Returns the recorded streams, and random ones from the simulator. */
export function sampleStreams(): SampleStream[] {
  const recorded = readScenarios().flatMap(({ meta, upstreamResponse }): SampleStream[] => {
    if (!meta.stream || upstreamResponse === undefined || meta.provider === "gateway") return [];
    const dialect = meta.provider === "openai-compatible" ? "openai" : meta.provider;
    return [{ dialect, text: upstreamResponse.toString().replace(/\r\n?/g, "\n") }];
  });
  const made = (Object.keys(SPOKEN) as DialectName[]).flatMap((dialect) => {
    const { shape, encode } = SPOKEN[dialect];
    const drawn = fc.sample(answers(shape), { seed: seed(), numRuns: RANDOM_ANSWERS });
    return drawn.map((answer) => ({ dialect, text: [...encode(answer)].map((event) => event.text).join("") }));
  });
  return [...recorded, ...made];
}
