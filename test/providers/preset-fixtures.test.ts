import { describe, expect, it } from "vitest";
import { PRESET_NAMES, PRESETS } from "../../src/config/presets.ts";
import type { Failure } from "../../src/core/failure.ts";
import type { Answer } from "../../src/core/provider.ts";
import { toFailure as toAnthropicFailure } from "../../src/providers/anthropic/failure.ts";
import { toAnswer as readAnthropic } from "../../src/providers/anthropic/response.ts";
import { toFailure as toGeminiFailure } from "../../src/providers/gemini/failure.ts";
import { toAnswer as readGemini } from "../../src/providers/gemini/response.ts";
import { toAnswer as readOpenAi } from "../../src/providers/openai/response.ts";
import { toBedrockFailure } from "../../src/providers/wire/bedrock.ts";
import { toFailure as toOpenAiFailure } from "../../src/providers/wire/openai-failure.ts";
import type { Refusal } from "../../src/providers/wire/response.ts";
import { PRESET_FIXTURES } from "./preset-fixtures.ts";

const ANSWERS: Readonly<Record<string, (json: unknown) => Answer>> = {
  anthropic: readAnthropic,
  gemini: readGemini,
  openai: readOpenAi,
};
const FAILURES: Readonly<Record<string, (refusal: Refusal) => Failure>> = {
  anthropic: toAnthropicFailure,
  gemini: toGeminiFailure,
  openai: toOpenAiFailure,
};

describe.each(PRESET_NAMES)("an answer of the host %s", (name) => {
  const { dialect } = PRESETS[name];
  const { answer, expected, errors } = PRESET_FIXTURES[name];

  it("has its text, its reasoning, its end and its usage", () => {
    const { choices, usage } = ANSWERS[dialect]!(answer);
    const parts = choices[0]!.message!.parts;
    const textOf = (kind: "text" | "reasoning"): string =>
      parts
        .map((part) =>
          part.kind.case !== kind ? "" : typeof part.kind.value === "string" ? part.kind.value : part.kind.value.text,
        )
        .join("");
    const sources = parts.flatMap(({ citations }) => citations.map(({ source }) => source.value));
    expect([textOf("text"), textOf("reasoning"), sources, choices[0]!.finishReason]).toEqual([
      expected.text,
      expected.reasoning ?? "",
      expected.citations ?? [],
      expected.finish,
    ]);
    expect(usage).toMatchObject(expected.usage);
  });

  it.each(errors)(
    "is a failure that says whose fault it is: $status, $code",
    ({ status, headers = {}, body, ...failure }) => {
      const refusal = { status, headers, body: JSON.stringify(body) };
      const found = (name === "bedrock" ? toBedrockFailure : FAILURES[dialect]!)(refusal);
      expect({ code: found.code, detail: found.detail }).toEqual({ detail: undefined, ...failure });
    },
  );
});
