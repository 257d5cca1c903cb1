import type { Completion, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../../gen/parley/v1/message_pb.js";
import type { Report } from "../../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import type { Attempt } from "../../core/attempt.ts";
import { countCodePoints } from "../../encoding/code-points.ts";
import { HeldStrings, type JsonText } from "../held-strings.ts";
import { LeftOut } from "../left-out.ts";
import { readFurther } from "../native.ts";
import { writeAttempt, writeReport } from "../report.ts";
import * as write from "./answer.ts";
import { type State, writeState } from "./envelope.ts";
import { DIALECT } from "./native.ts";
import type { Echo, ReadRequest } from "./request.ts";

/** Writes a completion as a response object. */
export function writeResponse(completion: Completion, read: ReadRequest): JsonText {
  const held = new HeldStrings();
  const { id, model, createTime, usage, report } = completion;
  const { output, ending } = toOutput(completion, read, held);
  const facts = { id, model, createdSeconds: Number(createTime?.seconds ?? 0n) };
  const details = completion.choices[0]?.providerDetailsJson;
  const leftOut = new LeftOut(DIALECT).addWhole(completion.choices).names;
  const state = { ...ending, usage, report, details, leftOut };
  const text = new ResponseWriter(facts, read).write(JSON.stringify(output), state);
  return held.putBack(text);
}

/** The parts of a completion from which items are made. */
export type Answered = Pick<Completion, "id" | "choices">;

/** Writes the items of a response with state of the provider, as a JSON list; undefined for an answer without any. */
export function writeStatefulItems(answer: Answered, read: Pick<ReadRequest, "names">): JsonText | undefined {
  const parts = answer.choices[0]?.message?.parts ?? [];
  if (!parts.some(hasState)) return undefined;
  const held = new HeldStrings();
  return held.putBack(JSON.stringify(toOutput(answer, { ...read, withState: true }, held).output));
}

function hasState({ kind, signature }: Part): boolean {
  return signature !== "" || (kind.case === "reasoning" && kind.value.redacted !== "");
}

function toOutput({ id, choices: [choice] }: Answered, read: ItemContext["read"], held: HeldStrings) {
  const output = toItems(choice?.message?.parts ?? [], { completionId: id, read, held });
  const hasRefusal = output.some((item) => item.type === "message" && item.content.some(isRefusal));
  const ending = endOf(choice?.finishReason, hasRefusal);
  const last = output.at(-1);
  if (last !== undefined) write.setStatus(last, ending.status);
  return { output, ending };
}

const isRefusal = ({ type }: { readonly type: string }): boolean => type === "refusal";

/** `status` of a finished response, and why it is incomplete. */
export function endOf(
  reason: FinishReason | undefined,
  hasRefusal: boolean,
): { status: "completed" | "incomplete"; incomplete?: string } {
  const incomplete = reason === undefined ? undefined : write.incompleteReason(reason, hasRefusal);
  return incomplete === undefined ? { status: "completed" } : { status: "incomplete", incomplete };
}

/** Fields of the response object beside its items and the repeated request fields. */
interface ResponseState {
  readonly status: write.Status | "failed";
  readonly incomplete?: string;
  readonly error?: object;
  readonly usage?: Usage | undefined;
  readonly report?: Report | undefined;
  /** `Choice.provider_details_json`. */
  readonly details?: Readonly<Record<string, string>> | undefined;
  readonly leftOut?: readonly string[];
  /** The attempts of a failed response, which has no report. */
  readonly attempts?: readonly Attempt[];
}

/** The end of a response object, which states whether the response is kept; that is known last. Both have the same length. */
export const KEPT = '"store": true}';
export const NOT_KEPT = '"store":false}';

/** Fields that the response object takes from the request, and its own first and last fields. */
const OWN: ReadonlySet<string> = new Set([
  ...Object.keys(repeated({ model: "", input: "", user: "" })),
  "id",
  "object",
  "created_at",
  "output",
  "store",
  "completed_at",
  "usage",
  "parley",
]);

/** Writes the response object of one answer. A stream contains it three times. */
export class ResponseWriter {
  readonly #head: string;
  readonly #model: string;
  readonly #createdSeconds: number;
  readonly #read: Pick<ReadRequest, "echo" | "isKept" | "nameOf">;
  /** The repeated fields as JSON text without braces. */
  #echo = "";

  constructor(
    { id, model, createdSeconds }: { readonly id: string; readonly model: string; readonly createdSeconds: number },
    read: Pick<ReadRequest, "echo" | "isKept" | "nameOf">,
  ) {
    this.#head = `{"id":${JSON.stringify(write.responseId(id))},"object":"response","created_at":${createdSeconds},`;
    this.#model = model;
    this.#createdSeconds = createdSeconds;
    this.#read = read;
  }

  /** `output`: the items as JSON text. */
  write(output: string, { status, incomplete, error, usage, report, ...state }: ResponseState): string {
    const { details = {}, leftOut = [], attempts = [] } = state;
    this.#echo ||= JSON.stringify(repeated(this.#read.echo)).slice(1, -1);
    const further = Object.entries(readFurther(details, { dialect: DIALECT })).filter(([name]) => !OWN.has(name));
    const facts = {
      ...Object.fromEntries(further),
      status,
      error: error ?? null,
      incomplete_details: incomplete === undefined ? null : { reason: incomplete },
      model: this.#model,
      usage: usage === undefined ? null : write.usage(usage),
      completed_at: status === "completed" ? this.#createdSeconds + secondsOf(report) : null,
      ...(report !== undefined && { parley: writeReport(report, this.#read.nameOf, leftOut) }),
      ...(attempts.length > 0 && { parley: { attempts: attempts.map(writeAttempt) } }),
    };
    return `${this.#head}${JSON.stringify(facts).slice(1, -1)},"output":${output},${this.#echo},${this.#read.isKept && status !== "failed" ? KEPT : NOT_KEPT}`;
  }
}

/** Whole seconds until the last attempt ended. */
function secondsOf(report: Report | undefined): number {
  const last = report?.attempts.at(-1);
  if (last === undefined) return 0;
  const { startOffset, duration } = last;
  const nanos = (startOffset?.nanos ?? 0) + (duration?.nanos ?? 0);
  return Number(startOffset?.seconds ?? 0n) + Number(duration?.seconds ?? 0n) + Math.floor(nanos / 1e9);
}

/** The fields of a request that its answer repeats, with their defaults. */
function repeated(asked: Echo): object {
  return {
    background: false,
    // The format has no such request fields, but the Open Responses specification requires them in the answer.
    frequency_penalty: 0,
    presence_penalty: 0,
    instructions: asked.instructions ?? null,
    max_output_tokens: asked.max_output_tokens ?? null,
    max_tool_calls: asked.max_tool_calls ?? null,
    metadata: asked.metadata ?? {},
    parallel_tool_calls: asked.parallel_tool_calls ?? true,
    previous_response_id: asked.previous_response_id || null,
    prompt_cache_key: asked.prompt_cache_key ?? null,
    safety_identifier: asked.safety_identifier ?? null,
    reasoning: {
      effort: asked.reasoning?.effort ?? null,
      summary: asked.reasoning?.summary ?? asked.reasoning?.generate_summary ?? null,
    },
    service_tier: asked.service_tier ?? "default",
    temperature: asked.temperature ?? 1,
    text: {
      format: asked.text?.format ?? { type: "text" },
      ...(asked.text?.verbosity != null && { verbosity: asked.text.verbosity }),
    },
    tool_choice: asked.tool_choice ?? "auto",
    tools: (asked.tools ?? []).map(repeatedTool),
    top_logprobs: asked.top_logprobs ?? 0,
    top_p: asked.top_p ?? 1,
    truncation: "disabled",
    ...(asked.user != null && { user: asked.user }),
  };
}

/** A tool as an answer repeats it: functions have all of their fields. */
function repeatedTool(tool: object): object {
  return "type" in tool && tool.type === "function" ? { ...OF_FUNCTION, ...tool } : tool;
}

const OF_FUNCTION = { description: null, parameters: null, strict: null };

interface ItemContext {
  readonly completionId: string;
  readonly read: Pick<ReadRequest, "names" | "withState">;
  readonly held: HeldStrings;
}

/** The items of a whole answer. */
function toItems(parts: readonly Part[], { completionId, read, held }: ItemContext): write.OutputItem[] {
  const items = new write.OutputItems(completionId);
  /** The last item, while texts are added to it. */
  let open: write.MessageItem | undefined;
  const add = (content: write.MessageItem["content"][number]): void => {
    open ??= items.message();
    open.content.push(content);
  };
  const keep = (state: State): void => {
    open = undefined;
    if (read.withState) items.reasoning().encrypted_content = writeState(state);
  };
  let chars = 0;
  for (const { kind, signature, citations, logprobs, providerDetailsJson } of parts) {
    chars += write.countLogprobs(logprobs);
    if (chars > write.MAX_CHARS) throw write.tooLong();
    if (kind.case === "reasoning" || kind.case === "toolCall" || kind.case === "image") open = undefined;
    switch (kind.case) {
      case "text": {
        const length = citations.length === 0 ? 0 : countCodePoints(kind.value);
        const annotations = citations
          .map((citation) => write.annotation(citation, length))
          .filter((each) => each !== undefined);
        if (kind.value !== "" || logprobs.length > 0 || annotations.length > 0)
          add({
            type: "output_text",
            text: kind.value,
            annotations,
            logprobs: logprobs.map(write.logprob),
          });
        if (open !== undefined) write.addFurther(open, providerDetailsJson);
        if (signature !== "") keep({ text: true, signature });
        break;
      }
      case "refusal":
        if (kind.value !== "" || logprobs.length > 0) add({ type: "refusal", refusal: kind.value });
        break;
      case "reasoning": {
        const item = items.reasoning();
        const { text, redacted } = kind.value;
        write.addFurther(item, providerDetailsJson);
        if (text !== "") item.summary.push({ type: "summary_text", text });
        const state = reasoningState(text, redacted, signature);
        if (read.withState && state !== undefined) item.encrypted_content = state;
        break;
      }
      case "toolCall": {
        const { id, name, input } = kind.value;
        if (signature !== "") keep({ tool_call: id, signature });
        const given = read.names.given(name);
        const item = input.case === "customInput" ? items.customCall(id, given) : items.functionCall(id, given);
        if (item.type === "custom_tool_call") item.input = input.value ?? "";
        else item.arguments = input.value || "{}";
        write.addFurther(item, providerDetailsJson);
        break;
      }
      case "image": {
        const item = items.image();
        write.fillImage(item, kind.value, held);
        write.addFurther(item, providerDetailsJson);
        if (signature !== "") keep({ image: item.id, signature });
        break;
      }
      case "native":
        if (items.native(kind.value) !== undefined) open = undefined;
        break;
      default:
    }
  }
  for (const item of items.list) write.setStatus(item, "completed");
  return items.list;
}

/** The state of a reasoning part; undefined for reasoning without a signature. */
export function reasoningState(text: string, redacted: string, signature: string): string | undefined {
  if (signature === "" && redacted === "") return undefined;
  return writeState({
    reasoning: {
      ...(text !== "" && { text }),
      ...(redacted !== "" && { redacted }),
      ...(signature !== "" && { signature }),
    },
  });
}
