import { anthropic } from "./anthropic/format.ts";
import type { Format } from "./format.ts";
import { gemini } from "./gemini/format.ts";
import { openaiChat } from "./openai-chat/format.ts";
import { openaiEmbeddings } from "./openai-embeddings/format.ts";
import { openaiImages } from "./openai-images/format.ts";
import { openaiResponses } from "./openai-responses/format.ts";

/** All formats. If several share a path, the first that accepts the request handles it. The last one owns all other paths. */
export const FORMATS: readonly Format[] = [
  gemini,
  anthropic,
  openaiEmbeddings,
  openaiImages,
  openaiResponses,
  openaiChat,
];
