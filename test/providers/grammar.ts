import type { CompletionChunk } from "../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../gen/parley/v1/message_pb.js";

/** Kinds of deltas by the kind of their part. The other kinds have none. */
const DELTAS: Readonly<Record<string, readonly string[]>> = {
  text: ["text", "citation"],
  reasoning: ["reasoning"],
  refusal: ["refusal"],
  argumentsJson: ["argumentsJson"],
  customInput: ["customInput"],
  native: ["nativeJson"],
  audio: ["audio"],
};

/** Kinds of parts whose tokens may have log probabilities. */
const WITH_LOGPROBS: ReadonlySet<string> = new Set(["text", "refusal"]);

/** The kind of a part; of a tool call, the kind of its input. */
function kindOf(part: Part | undefined): string | undefined {
  return part?.kind.case === "toolCall" ? part.kind.value.input.case : part?.kind.case;
}

/** What the beginning of a part has of what deltas carry. Images are whole within a process. */
function contentOf({ kind, citations, logprobs }: Part): unknown[] {
  const rest = [...citations, ...logprobs];
  switch (kind.case) {
    case "text":
    case "refusal":
      return [kind.value, ...rest];
    case "reasoning":
      return [kind.value.text, ...rest];
    case "toolCall":
      return [kind.value.input.value, ...rest];
    case "native":
      return [kind.value.json, ...rest];
    case "audio":
      return [
        kind.value.transcript,
        kind.value.id,
        ...(kind.value.source.case === "data" ? kind.value.source.value : []),
        ...rest,
      ];
    default:
      return rest;
  }
}

/** State of one choice. */
interface ChoiceState {
  /** The kind of each unfinished part, see `kindOf`. */
  readonly open: Map<number, string>;
  parts: number;
  isFinished: boolean;
}

/**
 * Throws unless the chunks are a provider's part of the grammar of `CompletionService.Stream`: for each part one start, its
 * deltas and one finish; then the finish of the choice; at most one usage, at the end. Parts are numbered in the order of
 * their start, only tool calls overlap, and a part begins without the content that deltas carry.
 */
export function checkGrammar(chunks: readonly CompletionChunk[]): void {
  const choices = new Map<number, ChoiceState>();
  const stateOf = (index: number): ChoiceState => {
    const state = choices.get(index) ?? { open: new Map(), parts: 0, isFinished: false };
    choices.set(index, state);
    demand(!state.isFinished, `choice ${index} goes on after its finish`);
    return state;
  };
  chunks.forEach(({ event }, at) => {
    switch (event.case) {
      case "partStart": {
        const { choiceIndex, partIndex, part } = event.value;
        const { open, parts } = stateOf(choiceIndex);
        demand(partIndex === parts, `part ${partIndex} starts after ${parts} parts`);
        const kind = kindOf(part);
        const others = [...open.values()].filter((other) => other !== "argumentsJson" && other !== "customInput");
        demand(kind !== undefined && others.length === 0, `a ${kind} starts inside ${others.join()}`);
        const content = contentOf(part!).filter((each) => each !== "");
        demand(content.length === 0, `a ${kind} starts with ${JSON.stringify(content)}`);
        choices.get(choiceIndex)!.parts++;
        open.set(partIndex, kind!);
        break;
      }
      case "partDelta": {
        const { choiceIndex, partIndex, content, logprobs } = event.value;
        const kind = stateOf(choiceIndex).open.get(partIndex);
        const isKind = kind !== undefined && content.case !== undefined && DELTAS[kind]?.includes(content.case);
        const isFit = isKind || (kind !== undefined && content.case === "nativeEvent");
        demand(isFit, `${content.case} for part ${partIndex}, which is ${kind}`);
        demand(content.value !== "", `an empty ${content.case}`);
        demand(logprobs.length === 0 || WITH_LOGPROBS.has(content.case!), `probabilities of ${content.case}`);
        break;
      }
      case "partFinish": {
        const { choiceIndex, partIndex } = event.value;
        demand(stateOf(choiceIndex).open.delete(partIndex), `part ${partIndex} finishes unopened`);
        break;
      }
      case "choiceFinish": {
        const state = stateOf(event.value.choiceIndex);
        demand(state.open.size === 0, "the choice finishes before its parts");
        state.isFinished = true;
        break;
      }
      case "nativeEvent":
        demand(at > 0, "an event comes before any content");
        break;
      case "partialImage":
        break;
      case "usage":
        demand(at === chunks.length - 1, "usage is not the last chunk");
        break;
      default:
        demand(false, `a provider says ${event.case}`);
    }
  });
  for (const [index, { isFinished }] of choices) demand(isFinished, `choice ${index} has no finish`);
}

function demand(holds: boolean, message: string): void {
  if (!holds) throw new Error(message);
}
