import type { Format } from "./format.ts";
import { gemini } from "./gemini/format.ts";
import { openaiChat } from "./openai-chat/format.ts";
import { openaiEmbeddings } from "./openai-embeddings/format.ts";

/** All formats. Of those that share a path, the first that accepts a request has it. */
export const FORMATS: readonly Format[] = [gemini, openaiEmbeddings, openaiChat];
