import { FunctionNames } from "../../formats/gemini/function-names.ts";
import { writeGeminiResponse } from "../../formats/gemini/response.ts";
import { GeminiStream, type StreamForm } from "../../formats/gemini/stream.ts";
import type { Answer } from "../answer.ts";
import { type AnswerForm, encodeChunks, toCompletion } from "../chunks.ts";
import type { StreamEvent } from "../dialect.ts";
import { sealPart } from "./thinking.ts";

const FORM: AnswerForm = {
  completionId: (id) => id.slice(0, 22),
  callId: (id) => id,
  seal: sealPart,
  runningUsage: true,
};

/** The simulator's answers have the caller's names of functions, and no thoughts that are not to be shown. */
const FACTS = { nameOf: (path: string) => path, includeThoughts: true, functionNames: new FunctionNames() };

/** The service ends lines with CRLF, and does not count the text beside a picture apart. */
function asService(text: string): string {
  return text
    .replaceAll("\n", "\r\n")
    .replace(/("candidatesTokensDetails":\[)\{"modality":"TEXT","tokenCount":\d+\},/u, "$1");
}

/** A whole response. */
export function encodeResponse(answer: Answer): string {
  const text = asService([writeGeminiResponse(toCompletion([answer], FORM), FACTS)].flat().join(""));
  if (answer.end !== undefined) return text;
  // The format has a finish reason for every answer.
  const { candidates, ...rest } = JSON.parse(text) as { readonly candidates: readonly object[] };
  return JSON.stringify({ candidates: candidates.map((each) => ({ ...each, finishReason: undefined })), ...rest });
}

/** A stream: events with `alt=sse`, otherwise one JSON array, sent incrementally. */
export function* encodeEvents(answer: Answer, form: StreamForm = "events"): Generator<StreamEvent> {
  const writer = new GeminiStream({ ...FACTS, form, requestId: "" });
  for (const { kind, text } of encodeChunks([answer], FORM, writer)) yield { kind, text: asService(text) };
}
