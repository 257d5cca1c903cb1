import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import {
  type Completion,
  type CompletionChunk,
  CompletionSchema,
  CompletionStartSchema,
  FinishReason,
} from "../../gen/parley/v1/completion_pb.js";
import { UsageSchema } from "../../gen/parley/v1/usage_pb.js";
import { AnswerBuilder, ChoiceWriter, toChunk, toPart, usageChunk } from "../core/chunks.ts";
import type { Answer, Part, ReasoningPart } from "./answer.ts";
import type { StreamEvent } from "./dialect.ts";

/** What of an answer depends on its dialect. */
export interface AnswerForm {
  readonly completionId: (id: string) => string;
  readonly callId: (id: string) => string;
  /** The signature of reasoning, or what it is redacted to. Default: none. */
  readonly seal?: (part: ReasoningPart, answer: Answer) => string;
}

/** A writer of a format. */
interface ChunkWriter {
  write(chunks: readonly CompletionChunk[]): string;
  /** The end of a stream whose answers have ended. */
  end(): string;
}

/** Converts the choices of an answer to a completion. */
export function toCompletion(answers: readonly Answer[], form: AnswerForm): Completion {
  const builder = new AnswerBuilder();
  for (const { chunks } of toSteps(answers, form)) for (const chunk of chunks) builder.add(chunk);
  const { choices, usage } = builder.build();
  const head = { ...toHead(answers, form), choices };
  return create(CompletionSchema, usage === undefined ? head : { ...head, usage });
}

/** Encodes the choices of an answer as the events of a stream, one choice after the other. */
export function* encodeChunks(
  answers: readonly Answer[],
  form: AnswerForm,
  writer: ChunkWriter,
): Generator<StreamEvent> {
  for (const { kind, chunks } of toSteps(answers, form)) {
    const text = writer.write(chunks);
    if (text !== "") yield { kind, text };
  }
  if (answers.every(({ end }) => end !== undefined)) yield { kind: "finish", text: writer.end() };
}

/** The chunks of one event. */
interface Step {
  readonly kind: StreamEvent["kind"];
  readonly chunks: readonly CompletionChunk[];
}

function* toSteps(answers: readonly Answer[], form: AnswerForm): Generator<Step> {
  const start = create(CompletionStartSchema, toHead(answers, form));
  yield { kind: "frame", chunks: [toChunk({ case: "start", value: start })] };
  for (const [index, answer] of answers.entries()) {
    const writer = new ChoiceWriter(index);
    for (const part of answer.parts) yield* toPartSteps(part, answer, { form, writer });
    const { end } = answer;
    const chunks: CompletionChunk[] = [];
    if (end === undefined) writer.endFlow(chunks);
    else {
      const stopSequence = end.kind === "stop" ? end.sequence : "";
      writer.finish({ reason: FINISH_REASONS[end.kind], native: "", stopSequence }, chunks);
    }
    yield { kind: "frame", chunks };
  }
  yield { kind: "frame", chunks: [usageChunk(toUsage(answers))] };
}

const FINISH_REASONS = {
  done: FinishReason.STOP,
  stop: FinishReason.STOP,
  calls: FinishReason.TOOL_CALLS,
  length: FinishReason.LENGTH,
} as const;

function toHead([first]: readonly Answer[], form: AnswerForm) {
  return { id: form.completionId(first?.id ?? ""), createTime: timestampNow(), model: first?.model ?? "" };
}

/** Each token is a step. Reasoning that is not shown has none. */
function* toPartSteps(
  part: Part,
  answer: Answer,
  { form, writer }: { readonly form: AnswerForm; readonly writer: ChoiceWriter },
): Generator<Step> {
  const step = (kind: Step["kind"], write: (out: CompletionChunk[]) => void): Step => {
    const chunks: CompletionChunk[] = [];
    write(chunks);
    return { kind, chunks };
  };
  switch (part.kind) {
    case "text":
      for (const value of part.tokens) yield step("content", (out) => writer.text({ case: "text", value }, out));
      break;
    case "reasoning": {
      const seal = form.seal?.(part, answer) ?? "";
      if (part.form === "redacted") {
        const value = { $typeName: "parley.v1.Reasoning", text: "", redacted: seal } as const;
        yield step("frame", (out) => writer.whole(toPart({ case: "reasoning", value }), out));
        break;
      }
      for (const value of part.form === "shown" ? part.tokens : [])
        yield step("content", (out) => writer.text({ case: "reasoning", value }, out));
      if (seal !== "") yield step("frame", (out) => writer.sign("reasoning", seal, out));
      break;
    }
    case "call": {
      let at = 0;
      const call = { id: form.callId(part.id), name: part.name };
      yield step("frame", (out) => {
        at = writer.beginCall(call, "", out);
      });
      for (const token of part.tokens) yield step("content", (out) => writer.arguments(at, token, out));
      yield step("frame", (out) => writer.endCall(at, out));
      break;
    }
    // Of Gemini's dialect only, which has its own writer.
    case "image":
  }
}

/** Usage of all choices. The prompt counts once. */
function toUsage(answers: readonly Answer[]) {
  const sum = (count: (answer: Answer) => number): number => answers.reduce((total, one) => total + count(one), 0);
  const inputTokens = answers[0]?.usage.promptTokens ?? 0;
  const outputTokens = sum(({ usage }) => usage.completionTokens);
  return create(UsageSchema, {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cachedInputTokens: 0,
    reasoningOutputTokens: sum(({ usage }) => usage.reasoningTokens),
  });
}
