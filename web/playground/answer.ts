import type { ChoiceFinish, CompletionChunk, Delta, ToolCallDelta, Usage } from "../../gen/parley/v1/completion_pb.js";
import type { Image, ReasoningBlock } from "../../gen/parley/v1/message_pb.js";
import type { Report } from "../../gen/parley/v1/report_pb.js";

/** A call of a tool, as far as it has arrived. */
export interface Call {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
  readonly signature: string;
}

/** What has arrived of a completion. */
export interface Answer {
  /** The completion's ID and the model that answers; empty until something has arrived. */
  readonly completionId: string;
  readonly model: string;
  readonly text: string;
  readonly reasoning: string;
  readonly refusal: string;
  readonly images: readonly Image[];
  readonly calls: readonly Call[];
  /** What has to go back with the next request to let a model go on from its reasoning. */
  readonly blocks: readonly ReasoningBlock[];
  readonly signature: string | undefined;
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
  blocks: [],
  signature: undefined,
  finish: undefined,
  usage: undefined,
  report: undefined,
};

/** Whether there is anything that a person could read, or send back. */
export function hasContent({ text, reasoning, refusal, images, calls }: Answer): boolean {
  return text !== "" || reasoning !== "" || refusal !== "" || images.length > 0 || calls.length > 0;
}

/** The answer with what one more chunk says. */
export function addChunk(answer: Answer, { event }: CompletionChunk): Answer {
  switch (event.case) {
    case "start":
      return { ...answer, completionId: event.value.id, model: event.value.model };
    case "delta":
      return addDelta(answer, event.value);
    case "finish":
      return { ...answer, finish: event.value };
    case "usage":
      return { ...answer, usage: event.value };
    case "report":
      return { ...answer, report: event.value };
    default:
      return answer;
  }
}

function addDelta(answer: Answer, { content }: Delta): Answer {
  switch (content.case) {
    case "text":
      return { ...answer, text: answer.text + content.value };
    case "reasoning":
      return { ...answer, reasoning: answer.reasoning + content.value };
    case "refusal":
      return { ...answer, refusal: answer.refusal + content.value };
    case "image":
      return { ...answer, images: [...answer.images, content.value] };
    case "toolCall":
      return { ...answer, calls: addCall(answer.calls, content.value) };
    case "reasoningBlock":
      return { ...answer, blocks: [...answer.blocks, content.value] };
    case "signature":
      return { ...answer, signature: content.value };
    default:
      return answer;
  }
}

function addCall(calls: readonly Call[], delta: ToolCallDelta): readonly Call[] {
  const known = calls[delta.index] ?? { id: "", name: "", arguments: "", signature: "" };
  const call: Call = {
    id: known.id || delta.id,
    name: known.name || delta.name,
    arguments: known.arguments + delta.arguments,
    signature: known.signature || delta.signature,
  };
  return calls.toSpliced(delta.index, 1, call);
}
