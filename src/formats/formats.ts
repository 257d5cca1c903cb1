import { anthropic } from "./anthropic/format.ts";
import type { Format } from "./format.ts";
import { openaiChat } from "./openai-chat/format.ts";

/** All formats. Of those that share a path, the first that accepts a request has it. */
export const FORMATS: readonly Format[] = [anthropic, openaiChat];
