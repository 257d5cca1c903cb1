import type { Format } from "./format.ts";
import { openaiEmbeddings } from "./openai-embeddings/format.ts";
import { openaiImages } from "./openai-images/format.ts";
import { openaiChat } from "./openai-chat/format.ts";

/** All formats. Of those that share a path, the first that accepts a request has it. */
export const FORMATS: readonly Format[] = [openaiEmbeddings, openaiImages, openaiChat];
