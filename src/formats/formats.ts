import type { Format } from "./format.ts";
import { openaiChat } from "./openai-chat/format.ts";
import { openaiResponses } from "./openai-responses/format.ts";

/** All formats. Of those that share a path, the first that accepts a request has it; the last owns all paths. */
export const FORMATS: readonly Format[] = [openaiResponses, openaiChat];
