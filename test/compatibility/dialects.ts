import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { camelKeys } from "../../src/config/config.ts";
import { type Dialect, DIALECT_DEFAULTS } from "../../src/config/dialects.ts";
import type { Answer, Provider, UpstreamModel } from "../../src/core/provider.ts";
import { toAnthropicRequest } from "../../src/providers/anthropic/request.ts";
import {
  toAnswer as readMessage,
  toAnswerChunks as readMessageChunks,
} from "../../src/providers/anthropic/response.ts";
import { toConverseRequest } from "../../src/providers/bedrock-converse/request.ts";
import {
  toAnswer as readConverse,
  toAnswerChunks as readConverseChunks,
} from "../../src/providers/bedrock-converse/response.ts";
import { toGeminiRequest } from "../../src/providers/gemini/request.ts";
import { toAnswer as readContent, toAnswerChunks as readContentChunks } from "../../src/providers/gemini/response.ts";
import { toOpenAiRequest } from "../../src/providers/openai/request.ts";
import {
  toAnswerChunks as readOpenAiChunks,
  toAnswer as readOpenAiCompletion,
} from "../../src/providers/openai/response.ts";
import { toResponsesRequest } from "../../src/providers/openai-responses/request.ts";
import {
  toAnswer as readResponse,
  toAnswerChunks as readResponseChunks,
} from "../../src/providers/openai-responses/response.ts";
import { withCustomTools } from "../../src/providers/wire/custom-tools.ts";
import type { Condition } from "./table.ts";

/** The pure parts of a dialect. */
interface Translator {
  readonly translate: Provider["translate"];
  readonly read: (json: unknown) => Answer;
  readonly readChunks: (json: unknown) => readonly CompletionChunk[];
}

/** As the gateway joins it. */
function withCustom(translate: Provider["translate"]): Provider["translate"] {
  const provider = withCustomTools({ translate } as Provider);
  return (request, model, options) => provider.translate(request, model, options);
}

export const TRANSLATORS: Readonly<Record<Dialect, Translator>> = {
  anthropic: { translate: withCustom(toAnthropicRequest), read: readMessage, readChunks: readMessageChunks },
  "bedrock-converse": {
    translate: withCustom(toConverseRequest),
    read: readConverse,
    readChunks: readConverseChunks,
  },
  gemini: { translate: withCustom(toGeminiRequest), read: readContent, readChunks: readContentChunks },
  openai: { translate: toOpenAiRequest, read: readOpenAiCompletion, readChunks: readOpenAiChunks },
  "openai-responses": { translate: toResponsesRequest, read: readResponse, readChunks: readResponseChunks },
};

const MODALITIES: Readonly<Record<string, Modality>> = {
  text: Modality.TEXT,
  image: Modality.IMAGE,
  audio: Modality.AUDIO,
};

/** The model that a row speaks of. */
export function modelOf(dialect: Dialect, { input, output, ...capabilities }: Condition): UpstreamModel {
  const modalities = (names: unknown): Set<Modality> =>
    new Set((names as string[]).map((name) => MODALITIES[name] ?? Modality.UNSPECIFIED));
  return {
    name: "upstream-model",
    contextWindow: 200_000,
    maxOutputTokens: 64_000,
    defaultMaxTokens: 8192,
    inputModalities: modalities(input ?? ["text", "image", "audio"]),
    outputModalities: modalities(output ?? ["text"]),
    capabilities: camelKeys({ ...DIALECT_DEFAULTS[dialect].capabilities, ...capabilities }),
  };
}
