import { toJson } from "@bufbuild/protobuf";
import type { CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../../gen/parley/v1/message_pb.js";
import { UsageSchema } from "../../../gen/parley/v1/usage_pb.js";
import { fold } from "../../support/fold.ts";

/** What a list of chunks says of its one choice; what it does not say is absent. */
export interface Said {
  /** Kinds of the parts, in order. */
  parts?: unknown[];
  text?: string;
  reasoning?: string;
  refusal?: string;
  /** Reasoning with its state, without empty fields. */
  blocks?: object[];
  /** ID, name and arguments. */
  calls?: [id: string, name: string, args: string][];
  finish?: [reason: FinishReason, native: string];
  usage?: unknown;
}

/** Joins chunks. */
export function summarize(chunks: readonly CompletionChunk[]): Said {
  const said: Said = {};
  for (const part of fold(chunks).choices[0]?.message?.parts ?? []) addPart(said, part);
  for (const { event } of chunks) {
    if (event.case === "choiceFinish") said.finish = [event.value.finishReason, event.value.nativeFinishReason];
    else if (event.case === "usage") said.usage = toJson(UsageSchema, event.value, { alwaysEmitImplicit: true });
  }
  return said;
}

function addPart(said: Said, { kind, signature }: Part): void {
  (said.parts ??= []).push(kind.case);
  switch (kind.case) {
    case "text":
    case "refusal":
      said[kind.case] = (said[kind.case] ?? "") + kind.value;
      break;
    case "reasoning": {
      const { text, redacted } = kind.value;
      if (text !== "") said.reasoning = (said.reasoning ?? "") + text;
      const fields = Object.entries({ text, signature, redacted }).filter(([, value]) => value !== "");
      (said.blocks ??= []).push(Object.fromEntries(fields));
      break;
    }
    case "toolCall":
      (said.calls ??= []).push([kind.value.id, kind.value.name, kind.value.input.value ?? ""]);
      break;
    default:
      throw new Error(`unexpected part: ${kind.case}`);
  }
}
