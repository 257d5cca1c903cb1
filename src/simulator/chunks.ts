import { create } from "@bufbuild/protobuf";
import { timestampNow } from "@bufbuild/protobuf/wkt";
import {
  type Completion,
  type CompletionChunk,
  CompletionSchema,
  CompletionStartSchema,
  FinishReason,
} from "../../gen/parley/v1/completion_pb.js";
import { ImageSchema } from "../../gen/parley/v1/message_pb.js";
import { UsageSchema } from "../../gen/parley/v1/usage_pb.js";
import { AnswerBuilder } from "../core/answer-builder.ts";
import { ChoiceWriter, toChunk, toPart, usageChunk } from "../core/chunks.ts";
import type { Answer, Part } from "./answer.ts";
import type { StreamEvent } from "./dialect.ts";

/** Parts of an answer that depend on its dialect. */
export interface AnswerForm {
  readonly completionId: (id: string) => string;
  readonly callId: (id: string) => string;
  /** The signature of a part, or the data of redacted reasoning. Default: none. */
  readonly seal?: (part: Part, answer: Answer) => string;
  /** Whether usage also precedes each content, as a running total, and counts images apart. Default: once, without. */
  readonly runningUsage?: boolean;
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

/** Encodes the choices of an answer as the events of a stream, one choice after the other. A writer may hold content until it is whole. */
export function* encodeChunks(
  answers: readonly Answer[],
  form: AnswerForm,
  writer: ChunkWriter,
): Generator<StreamEvent> {
  let isHeld = false;
  for (const { kind, chunks } of toSteps(answers, form)) {
    const text = writer.write(chunks);
    const isContent: boolean = isHeld || kind === "content";
    if (text !== "") yield { kind: isContent ? "content" : kind, text };
    isHeld = isContent && text === "";
  }
  if (answers.every(({ end }) => end !== undefined)) yield { kind: "finish", text: writer.end() };
}

/** The chunks of one event. */
interface Step {
  readonly kind: StreamEvent["kind"];
  readonly chunks: readonly CompletionChunk[];
  /** Output tokens since the event before. */
  readonly tokens: number;
}

function* toSteps(answers: readonly Answer[], form: AnswerForm): Generator<Step> {
  const start = create(CompletionStartSchema, toHead(answers, form));
  yield { kind: "frame", chunks: [toChunk({ case: "start", value: start })], tokens: 0 };
  let sent = 0;
  for (const [index, answer] of answers.entries()) {
    const writer = new ChoiceWriter(index);
    for (const step of answer.parts.values().flatMap((part) => toPartSteps(part, answer, { form, writer }))) {
      sent += step.tokens;
      const isCounted = form.runningUsage === true && step.kind === "content";
      yield isCounted ? { ...step, chunks: [usageChunk(toUsage(answers, form, sent)), ...step.chunks] } : step;
    }
    const { end } = answer;
    const chunks: CompletionChunk[] = [];
    if (end === undefined) writer.endFlow(chunks);
    else {
      const stopSequence = end.kind === "stop" ? end.sequence : "";
      writer.finish({ reason: FINISH_REASONS[end.kind], native: "", stopSequence }, chunks);
    }
    yield { kind: "frame", chunks, tokens: 0 };
  }
  yield { kind: "frame", chunks: [usageChunk(toUsage(answers, form))], tokens: 0 };
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

/** Each token is a step. Reasoning that is not shown is one without chunks. */
function* toPartSteps(
  part: Part,
  answer: Answer,
  { form, writer }: { readonly form: AnswerForm; readonly writer: ChoiceWriter },
): Generator<Step> {
  const seal = form.seal?.(part, answer) ?? "";
  const step = (
    kind: Step["kind"],
    write: (out: CompletionChunk[]) => void,
    tokens = kind === "content" ? 1 : 0,
  ): Step => {
    const chunks: CompletionChunk[] = [];
    write(chunks);
    return { kind, chunks, tokens };
  };
  switch (part.kind) {
    case "text":
      for (const value of part.tokens) yield step("content", (out) => writer.text({ case: "text", value }, out));
      if (seal !== "") yield step("frame", (out) => writer.sign("text", seal, out));
      break;
    case "reasoning": {
      if (part.form === "redacted") {
        const value = { $typeName: "parley.v1.Reasoning", text: "", redacted: seal } as const;
        yield step("frame", (out) => writer.whole(toPart({ case: "reasoning", value }), out), part.tokens.length);
        break;
      }
      if (part.form === "hidden") yield { kind: "frame", chunks: [], tokens: part.tokens.length };
      else
        for (const value of part.tokens) yield step("content", (out) => writer.text({ case: "reasoning", value }, out));
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
      yield step("frame", (out) => writer.endCall(at, out, { signature: seal }));
      break;
    }
    case "image": {
      const source = { case: "data", value: new Uint8Array(part.bytes) } as const;
      const value = create(ImageSchema, { source, mediaType: part.mediaType });
      yield step("content", (out) => writer.whole(toPart({ case: "image", value }, seal), out), part.tokenCount);
      break;
    }
  }
}

/** Usage of all choices, of which `sent` tokens were sent. Default: all. The prompt counts once. */
function toUsage(answers: readonly Answer[], { runningUsage }: AnswerForm, sent = Infinity) {
  const sum = (count: (answer: Answer) => number): number => answers.reduce((total, one) => total + count(one), 0);
  const { promptTokens: inputTokens = 0, promptImageTokens: imageInputTokens = 0 } = answers[0]?.usage ?? {};
  const all = sum(({ usage }) => usage.completionTokens);
  const outputTokens = Math.min(sent, all);
  // Images come last.
  const imageOutputTokens = outputTokens === all ? sum(({ usage }) => usage.completionImageTokens) : 0;
  return create(UsageSchema, {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cachedInputTokens: 0,
    reasoningOutputTokens: Math.min(
      outputTokens,
      sum(({ usage }) => usage.reasoningTokens),
    ),
    ...(runningUsage === true && { imageInputTokens, imageOutputTokens }),
  });
}
