import { countTokens, type Answer } from "../answer.ts";
import type { StreamEvent } from "../dialect.ts";
import { encodeEnd, encodeEnvelope, encodePart, encodeUsage, signText } from "./response.ts";

interface Step {
  readonly parts: readonly Record<string, unknown>[];
  readonly tokens: number;
}

/** Text and thoughts go out token by token, pictures and calls as a whole; what is not to be seen is only counted. */
function* splitAnswer({ parts }: Answer): Generator<Step> {
  let unseen = 0;
  for (const part of parts) {
    if (part.kind === "reasoning" && part.form !== "shown") unseen += countTokens(part);
    else if (part.kind === "text" || part.kind === "reasoning") {
      const mark = part.kind === "reasoning" ? { thought: true } : {};
      for (const text of part.tokens) {
        yield { parts: [{ text, ...mark }], tokens: unseen + 1 };
        unseen = 0;
      }
    } else {
      yield { parts: encodePart(part, parts), tokens: unseen + countTokens(part) };
      unseen = 0;
    }
  }
}

function* encodeChunks(answer: Answer): Generator<{ kind: "content" | "finish"; chunk: unknown }> {
  let sent = 0;
  for (const { parts, tokens } of splitAnswer(answer)) {
    sent += tokens;
    const candidates = [{ content: { parts, role: "model" }, index: 0 }];
    const chunk = { candidates, usageMetadata: encodeUsage(answer, sent), ...encodeEnvelope(answer) };
    yield { kind: "content", chunk };
  }
  if (!answer.end) return;
  const content = sent > 0 ? { content: { parts: [{ text: "", ...signText(answer.parts) }], role: "model" } } : {};
  const candidates = [{ ...content, ...encodeEnd(answer), index: 0 }];
  const usageMetadata = encodeUsage(answer, answer.usage.completionTokens);
  yield { kind: "finish", chunk: { candidates, usageMetadata, ...encodeEnvelope(answer) } };
}

/** One server-sent event, with the line ends that the service uses. */
export function frame(data: unknown): string {
  return `data: ${JSON.stringify(data)}\r\n\r\n`;
}

/** With `alt=sse`: a chunk per event, and no mark at the end. */
export function* encodeEvents(answer: Answer): Generator<StreamEvent> {
  for (const { kind, chunk } of encodeChunks(answer)) yield { kind, text: frame(chunk) };
}

/** Without `alt=sse`: one JSON array that grows. */
export function* encodeArray(answer: Answer): Generator<StreamEvent> {
  let lead = "[";
  for (const { kind, chunk } of encodeChunks(answer)) {
    yield { kind, text: lead + JSON.stringify(chunk) };
    lead = ",\r\n";
  }
  yield { kind: "frame", text: lead === "[" ? "[]" : "]" };
}
