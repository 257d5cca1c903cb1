import fc from "fast-check";
import { parseExactly } from "../../src/encoding/exact-json.ts";
import {
  type Answer,
  type CallPart,
  countTokens,
  type Part,
  type ReasoningPart,
  type TextPart,
} from "../../src/simulator/answer.ts";
import { splitTokens } from "../../src/simulator/text.ts";
import { jsonObject } from "./json-text.ts";
import { pictureOf } from "./marks.ts";
import { anyCharacter } from "../support/any-character.ts";

/** What an answer may consist of, by the dialect that says it. */
export interface AnswerShape {
  readonly pictures: boolean;
  readonly redacted: boolean;
  /** Whether text may stand before calls. */
  readonly textBesideCalls: boolean;
}

const spoken = fc
  .string({ unit: anyCharacter, minLength: 1, maxLength: 30 })
  .filter((text) => text.isWellFormed() && text.trim() !== "");

const text: fc.Arbitrary<TextPart> = spoken.map((said) => ({ kind: "text", tokens: splitTokens(said) }));

const thought: fc.Arbitrary<ReasoningPart> = fc.record({
  kind: fc.constant("reasoning" as const),
  form: fc.constantFrom("shown" as const, "hidden" as const),
  tokens: spoken.map(splitTokens),
});

const sealed: ReasoningPart = { kind: "reasoning", form: "redacted", tokens: [" …"] };

const call = jsonObject.map((written): Omit<CallPart, "id"> => ({
  kind: "call",
  name: "get_weather",
  input: parseExactly(written) as Readonly<Record<string, unknown>>,
  tokens: splitTokens(written),
}));

/** The arguments of the calls in an answer, as they were written. */
export function listArguments({ parts }: Answer): string[] {
  return parts.flatMap((part) => (part.kind === "call" ? [part.tokens.join("")] : []));
}

/** Answers as the simulator composes them, with arguments that no schema of it would lead to. */
export function answers({ pictures, redacted, textBesideCalls }: AnswerShape): fc.Arbitrary<Answer> {
  return fc
    .record({
      thoughts: fc.array(thought, { maxLength: 1 }),
      isRedacted: fc.boolean(),
      said: fc.option(text, { nil: undefined }),
      calls: fc.array(call, { maxLength: 3 }),
      hasPicture: fc.boolean(),
    })
    .map(({ thoughts, isRedacted, said, calls, hasPicture }) => {
      const reasoning = isRedacted && redacted && thoughts.length > 0 ? [...thoughts, sealed] : thoughts;
      const words = said && (textBesideCalls || calls.length === 0) ? [said] : [];
      const picture: Part = { kind: "image", mediaType: "image/png", bytes: pictureOf(1), tokenCount: 1120 };
      const parts: Part[] = [
        ...reasoning,
        ...words,
        ...(pictures && hasPicture ? [picture] : []),
        ...calls.map((part, index): CallPart => ({ ...part, id: `abcdef0123456789abcdef0${index}` })),
      ];
      const spent = parts.reduce((sum, part) => sum + countTokens(part), 0);
      const thoughtTokens = reasoning.reduce((sum, part) => sum + countTokens(part), 0);
      return {
        id: "0123456789abcdef0123456789abcdef",
        model: "any",
        parts: parts.length > reasoning.length ? parts : [...parts, { kind: "text", tokens: ["Yes."] } as const],
        end: { kind: calls.length > 0 ? "calls" : "done" } as const,
        usage: {
          promptTextTokens: 5,
          promptImageTokens: 0,
          promptTokens: 5,
          completionTokens: spent + (parts.length > reasoning.length ? 0 : 1),
          reasoningTokens: thoughtTokens,
          completionImageTokens: 0,
        },
      };
    });
}
