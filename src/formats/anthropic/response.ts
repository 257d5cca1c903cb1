import type { Choice, Completion } from "../../../gen/parley/v1/completion_pb.js";
import type { Citation, Part, Reasoning, ToolCall } from "../../../gen/parley/v1/message_pb.js";
import type { NameOf } from "../format.ts";
import { LeftOut } from "../left-out.ts";
import { readFurther } from "../native.ts";
import { writeReport } from "../report.ts";
import * as write from "./answer.ts";
import { DIALECT } from "./blocks.ts";

/** Facts of a request on which the form of its answer depends. */
export interface AnswerForm {
  /** The caller's names of request fields. */
  readonly nameOf: NameOf;
  /** Whether the text of the model's reasoning is left out. */
  readonly hidesThinking: boolean;
  /** Estimated tokens of the request, for a provider without token counts. */
  readonly inputTokens: number;
}

/** Converts a completion to a message. */
export function toMessage({ id, model, choices, usage, report }: Completion, form: AnswerForm): object {
  const [choice] = choices;
  const details = choice?.providerDetailsJson ?? {};
  const counted = usage === undefined ? write.estimatedUsage(form.inputTokens, 0) : write.usage(usage);
  return {
    ...readFurther(details, { dialect: DIALECT }),
    id: write.messageId(id),
    type: "message",
    role: "assistant",
    model,
    ...(choice === undefined ? { content: [] } : toAnswer(choice, form)),
    usage: { ...readFurther(details, { dialect: DIALECT, place: "usage" }), ...counted },
    ...(report !== undefined && {
      parley: writeReport(report, form.nameOf, new LeftOut(DIALECT).addWhole(choices).names),
    }),
  };
}

function toAnswer(choice: Choice, form: AnswerForm): object {
  const parts = choice.message?.parts ?? [];
  const refusal = parts.map(({ kind }) => (kind.case === "refusal" ? kind.value : "")).join("");
  return { content: parts.flatMap((part) => toBlocks(part, form)), ...write.stop(choice, refusal) };
}

/** The blocks of a part. The format has no blocks for images, recordings and refusals. */
function toBlocks({ kind, signature, citations, providerDetailsJson }: Part, form: AnswerForm): object[] {
  const further = readFurther(providerDetailsJson, { dialect: DIALECT });
  switch (kind.case) {
    case "text": {
      const text = kind.value === "" ? [] : [{ ...further, ...textBlock(kind.value, citations) }];
      return signature === "" ? text : [...text, write.stateBlock(signature)];
    }
    case "reasoning":
      return thinkingBlocks(kind.value, signature, form).map((block) => ({ ...further, ...block }));
    case "toolCall": {
      const state = signature === "" ? [] : [write.stateBlock(signature, kind.value.id)];
      return [...state, { ...further, ...toolUse(kind.value) }];
    }
    case "native": {
      const block = write.nativeBlock(kind.value);
      return block === undefined ? [] : [block];
    }
    default:
      return [];
  }
}

function textBlock(text: string, citations: readonly Citation[]): object {
  const cited = citations.map(write.citation).filter((one) => one !== undefined);
  return { type: "text", text, ...(cited.length > 0 && { citations: cited }) };
}

/** The blocks of reasoning. Without a signature the field is left out: clients would send an empty one back, which providers refuse. */
function thinkingBlocks({ text, redacted }: Reasoning, signature: string, { hidesThinking }: AnswerForm): object[] {
  if (redacted !== "") return [{ type: "redacted_thinking", data: redacted }];
  const thinking = hidesThinking ? "" : text;
  if (thinking === "" && signature === "") return [];
  return [{ type: "thinking", thinking, ...(signature !== "" && { signature }) }];
}

function toolUse({ id, name, input }: ToolCall): object {
  return { type: "tool_use", id, name, input: write.toInput(input.value ?? "") };
}
