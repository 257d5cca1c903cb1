import type { ChoiceFinish, CompletionChunk, PartDelta } from "../../gen/parley/v1/completion_pb.js";
import type { Image, Part, ToolCall } from "../../gen/parley/v1/message_pb.js";
import type { Report } from "../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";

/** The received part of a completion. */
export interface Answer {
  /** Completion ID and serving model; empty before the first chunk. */
  readonly completionId: string;
  readonly model: string;
  readonly text: string;
  readonly reasoning: string;
  readonly refusal: string;
  readonly images: readonly Image[];
  readonly calls: readonly ToolCall[];
  /** All parts in order, as sent back with the next request. */
  readonly parts: readonly Part[];
  readonly finish: ChoiceFinish | undefined;
  readonly usage: Usage | undefined;
  readonly report: Report | undefined;
}

export const NOTHING: Answer = {
  completionId: "",
  model: "",
  text: "",
  reasoning: "",
  refusal: "",
  images: [],
  calls: [],
  parts: [],
  finish: undefined,
  usage: undefined,
  report: undefined,
};

/** Whether the answer has any content to display or send back. */
export function hasContent({ text, reasoning, refusal, images, calls }: Answer): boolean {
  return text !== "" || reasoning !== "" || refusal !== "" || images.length > 0 || calls.length > 0;
}

/** Returns the answer with one more chunk applied. */
export function addChunk(answer: Answer, { event }: CompletionChunk): Answer {
  switch (event.case) {
    case "start":
      return { ...answer, completionId: event.value.id, model: event.value.model };
    case "partStart": {
      const { part, partIndex } = event.value;
      return part === undefined ? answer : withPart(answer, partIndex, part);
    }
    case "partDelta":
      return addDelta(answer, event.value);
    case "partFinish": {
      const { partIndex, signature } = event.value;
      const part = answer.parts[partIndex];
      return part === undefined || signature === "" ? answer : withPart(answer, partIndex, { ...part, signature });
    }
    case "choiceFinish":
      return { ...answer, finish: event.value };
    case "usage":
      return { ...answer, usage: event.value };
    case "report":
      return { ...answer, report: event.value };
    default:
      return answer;
  }
}

function addDelta(answer: Answer, { partIndex, content }: PartDelta): Answer {
  const part = answer.parts[partIndex];
  if (part === undefined) return answer;
  const next = withPart(answer, partIndex, { ...part, kind: addTo(part.kind, content) });
  switch (content.case) {
    case "text":
      return { ...next, text: answer.text + content.value };
    case "reasoning":
      return { ...next, reasoning: answer.reasoning + content.value };
    case "refusal":
      return { ...next, refusal: answer.refusal + content.value };
    default:
      return next;
  }
}

function addTo(kind: Part["kind"], content: PartDelta["content"]): Part["kind"] {
  if ((kind.case === "text" || kind.case === "refusal") && kind.case === content.case)
    return { case: kind.case, value: kind.value + content.value };
  if (kind.case === "reasoning" && content.case === "reasoning")
    return { case: "reasoning", value: { ...kind.value, text: kind.value.text + content.value } };
  if (kind.case === "toolCall" && (content.case === "argumentsJson" || content.case === "customInput")) {
    const input = { case: content.case, value: (kind.value.input.value ?? "") + content.value };
    return { case: "toolCall", value: { ...kind.value, input } };
  }
  return kind;
}

function withPart(answer: Answer, index: number, part: Part): Answer {
  const parts = answer.parts.toSpliced(index, 1, part);
  switch (part.kind.case) {
    case "image":
      return { ...answer, parts, images: parts.flatMap(({ kind }) => (kind.case === "image" ? [kind.value] : [])) };
    case "toolCall":
      return { ...answer, parts, calls: parts.flatMap(({ kind }) => (kind.case === "toolCall" ? [kind.value] : [])) };
    default:
      return { ...answer, parts };
  }
}

/**
 * Returns the answer with another text. Removes reasoning and the signature of the text, because they would not match
 * the new text.
 */
export function withEditedText(answer: Answer, text: string): Answer {
  const first = answer.parts.findIndex(({ kind }) => kind.case === "text");
  const parts = answer.parts.flatMap((part, index): Part[] => {
    if (part.kind.case === "reasoning") return [];
    if (part.kind.case !== "text") return [part];
    return index === first ? [{ ...part, kind: { case: "text", value: text }, signature: "" }] : [];
  });
  return { ...answer, text, parts };
}

/** Returns the parts that a model accepts as input: reasoning only with a signature or as redacted data. */
export function partsToSend({ parts }: Answer): readonly Part[] {
  return parts.filter(({ kind, signature }) => {
    if (kind.case === "reasoning") return signature !== "" || kind.value.redacted !== "";
    return kind.case !== "text" || kind.value !== "" || signature !== "";
  });
}
