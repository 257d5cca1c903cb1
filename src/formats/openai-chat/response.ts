import type { Choice, Completion } from "../../../gen/parley/v1/completion_pb.js";
import type { Part, TokenLogprob, ToolCall } from "../../../gen/parley/v1/message_pb.js";
import { countCodePoints } from "../../encoding/code-points.ts";
import { writeLogprobs } from "../logprobs.ts";
import { writeReport } from "../report.ts";
import * as write from "./answer.ts";
import { DIALECT } from "./answer.ts";
import { HeldStrings, type JsonText } from "../held-strings.ts";
import type { NameOf } from "../format.ts";
import { LeftOut } from "../left-out.ts";
import { readFurther } from "../native.ts";

/** Writes a completion as OpenAI's `chat.completion`. `nameOf`: the caller's names of request fields. */
export function writeChatCompletion(completion: Completion, nameOf: NameOf): JsonText {
  const held = new HeldStrings();
  return held.putBack(JSON.stringify(toChatCompletion(completion, nameOf, held)));
}

/** Converts a completion to OpenAI's `chat.completion`; images are stored in `held`. */
export function toChatCompletion(completion: Completion, nameOf: NameOf, held?: HeldStrings): object {
  const { choices } = completion;
  return {
    ...readFurther(choices[0]?.providerDetailsJson ?? {}, { dialect: DIALECT }),
    id: completion.id,
    object: "chat.completion",
    created: Number(completion.createTime?.seconds ?? 0n),
    model: completion.model,
    // Without a report, an answer has no `parley` fields.
    choices: choices.map((choice) => toChoice(choice, held, completion.report !== undefined)),
    ...(completion.usage !== undefined && { usage: write.usage(completion.usage) }),
    ...(completion.report !== undefined && {
      parley: writeReport(completion.report, nameOf, new LeftOut(DIALECT).addWhole(choices).names),
    }),
  };
}

function toChoice(choice: Choice, held: HeldStrings | undefined, isReported: boolean): object {
  const details = choice.providerDetailsJson;
  return {
    ...readFurther(details, { dialect: DIALECT, place: "choices" }),
    index: choice.index,
    message: {
      ...readFurther(details, { dialect: DIALECT, place: "message" }),
      ...toMessage(choice.message!.parts, held),
    },
    logprobs: writeLogprobs(logprobsOf(choice.message!.parts)),
    finish_reason: write.finishReason(choice.finishReason),
    native_finish_reason: isReported ? choice.nativeFinishReason : undefined,
  };
}

/** Log probabilities by the lists of the format. */
function logprobsOf(parts: readonly Part[]): Parameters<typeof writeLogprobs>[0] {
  const of = (kind: Part["kind"]["case"]): TokenLogprob[] =>
    parts.flatMap((part) => (part.kind.case === kind ? part.logprobs : []));
  return { content: of("text"), refusal: of("refusal") };
}

function toMessage(parts: readonly Part[], held: HeldStrings | undefined): object {
  const pieces = sort(parts, held);
  const { text, refusal, calls, speech } = pieces;
  const reasoning = pieces.reasoning.map((block) => block.text).join("");
  const signed = pieces.reasoning.filter((block) => block.signature !== "" || block.redacted !== "");
  const signature = write.textSignature(pieces.textSignatures, pieces.hasImage);
  const isSilent = text === "" && (calls.length > 0 || refusal !== undefined);
  return {
    role: "assistant",
    // A string for text only; a list of parts in the provider's order with images.
    content: pieces.hasImage ? pieces.content : isSilent ? null : text,
    refusal: refusal ?? null,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(signed.length > 0 && { thinking_blocks: signed.map(write.thinkingBlock) }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(signature !== "" && { extra_content: write.thoughtSignature(signature) }),
    ...(pieces.annotations.length > 0 && { annotations: pieces.annotations }),
    ...(speech !== undefined && { audio: speech }),
  };
}

/** The parts of an answer, sorted by their fields in the OpenAI format. */
interface Pieces {
  text: string;
  /** Length of the text up to the last citation, in code points and UTF-16 units, so that each character is counted once. */
  counted: { codePoints: number; units: number };
  /** Texts and images. */
  readonly content: object[];
  hasImage: boolean;
  refusal: string | undefined;
  readonly textSignatures: string[];
  readonly reasoning: write.PlacedReasoning[];
  readonly calls: object[];
  readonly annotations: object[];
  speech: object | undefined;
}

function sort(parts: readonly Part[], held: HeldStrings | undefined): Pieces {
  const out: Pieces = {
    text: "",
    counted: { codePoints: 0, units: 0 },
    content: [],
    hasImage: false,
    refusal: undefined,
    textSignatures: [],
    reasoning: [],
    calls: [],
    annotations: [],
    speech: undefined,
  };
  for (const { kind, citations, signature, providerDetailsJson } of parts) {
    switch (kind.case) {
      case "text":
        if (citations.length > 0) {
          const place = { before: countText(out), length: countCodePoints(kind.value) };
          out.annotations.push(...write.annotations(citations, place));
        }
        out.text += kind.value;
        if (kind.value !== "") out.content.push({ type: "text", text: kind.value });
        if (signature !== "") out.textSignatures.push(signature);
        break;
      case "image":
        out.hasImage = true;
        out.content.push(write.imagePart(kind.value, signature, held));
        break;
      case "refusal":
        out.refusal = (out.refusal ?? "") + kind.value;
        break;
      case "reasoning": {
        const { text, redacted } = kind.value;
        const place = { textOffset: out.text.length, callOffset: out.calls.length };
        out.reasoning.push({ text, redacted, signature, ...place });
        break;
      }
      case "toolCall":
        out.calls.push(toToolCall(kind.value, signature, providerDetailsJson));
        break;
      case "audio":
        out.speech ??= write.audio(kind.value);
        break;
      default:
    }
  }
  return out;
}

/** Code points of the text so far. */
function countText(pieces: Pieces): number {
  const { text, counted } = pieces;
  counted.codePoints += countCodePoints(text.slice(counted.units));
  counted.units = text.length;
  return counted.codePoints;
}

function toToolCall(call: ToolCall, signature: string, details: Part["providerDetailsJson"]): object {
  const text = call.input.value ?? "";
  const further = write.furtherOfCall(details);
  if (call.input.case === "customInput")
    return {
      ...further.ofCall,
      id: call.id,
      type: "custom",
      custom: { ...further.ofCustom, name: call.name, input: text },
    };
  return {
    ...further.ofCall,
    id: call.id,
    type: "function",
    function: { ...further.ofFunction, name: call.name, arguments: text },
    ...(signature !== "" && { extra_content: write.thoughtSignature(signature) }),
  };
}
