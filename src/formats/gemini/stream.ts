import type {
  ChoiceFinish,
  CompletionChunk,
  CompletionStart,
  PartDelta,
  PartFinish,
  PartStart,
} from "../../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../../gen/parley/v1/message_pb.js";
import type { Report } from "../../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import type { Failure } from "../../core/failure.ts";
import { type AnswerStream, EVENT_STREAM } from "../format.ts";
import { LeftOut } from "../left-out.ts";
import { writeReport } from "../report.ts";
import * as write from "./answer.ts";
import { toErrorBody } from "./error.ts";
import type { AnswerFacts } from "./response.ts";
import { type SignedReasoning, writeSignature } from "./signature.ts";

/** The two forms of a stream: server-sent events, or one JSON array that grows. */
export type StreamForm = "events" | "array";

/** Facts of a request on which its stream depends. */
interface StreamFacts extends AnswerFacts {
  readonly form: StreamForm;
  readonly requestId: string;
}

/**
 * Writes chunks as `GenerateContentResponse` objects. Each has a part, because clients drop the turn otherwise. One writer per stream.
 * Calls and native blocks are held until they are whole, reasoning that must be sent back until the part after it, and the finishes
 * until the report. Once usage has arrived, each further object has it.
 */
export class GeminiStream implements AnswerStream {
  readonly contentType: string;
  readonly keepAlive: string;
  readonly #facts: StreamFacts;
  readonly #before: string;
  readonly #after: string;
  /** The end of each object, without its last brace: model and ID. */
  #tail = "";
  readonly #candidates = new Map<number, Candidate>();
  readonly #finishes: ChoiceFinish[] = [];
  readonly #leftOut = new LeftOut(write.DIALECT);
  #usage: Usage | undefined;
  #begun = false;
  #ended = false;

  constructor(facts: StreamFacts) {
    const isEvents = facts.form === "events";
    this.#facts = facts;
    this.contentType = isEvents ? EVENT_STREAM : "application/json";
    // A comment, or white space before the next element.
    this.keepAlive = isEvents ? ": keep-alive\n\n" : "\n";
    this.#before = isEvents ? "data: " : ",\n";
    this.#after = isEvents ? "\n\n" : "";
  }

  /** Whether the last object was written. */
  get ended(): boolean {
    return this.#ended;
  }

  write(chunks: readonly CompletionChunk[]): string {
    let out = "";
    for (const chunk of chunks) {
      const { event } = chunk;
      this.#leftOut.addChunk(chunk);
      if (event.case === "partDelta") out += this.#delta(event.value);
      else if (event.case === "partStart") out += this.#startPart(event.value);
      else if (event.case === "partFinish") out += this.#finishPart(event.value);
      else if (event.case === "start") this.#start(event.value);
      else if (event.case === "choiceFinish") this.#finishes.push(event.value);
      else if (event.case === "usage") this.#usage = event.value;
      else if (event.case === "report") out += this.end(event.value);
    }
    return out;
  }

  /** The error is not written as an event, because most versions of the vendor's clients accept only bare JSON as an error. */
  fail(failure: Failure): string {
    const body = JSON.stringify(toErrorBody(failure, this.#facts.requestId));
    return this.#facts.form === "events" ? body : `${this.#open()}${body}]`;
  }

  #start({ id, model }: CompletionStart): void {
    this.#tail = `,"modelVersion":${JSON.stringify(model)},"responseId":${JSON.stringify(id)}`;
  }

  #startPart({ choiceIndex, partIndex, part }: PartStart): string {
    if (part === undefined) return "";
    const candidate = this.#candidate(choiceIndex);
    const { kind, signature, providerDetailsJson: details } = part;
    switch (kind.case) {
      case "reasoning":
        candidate.open.set(partIndex, { kind: "reasoning", ...kind.value, signature });
        return "";
      case "toolCall": {
        const { id, name } = kind.value;
        const before = candidate.takeReasoning();
        candidate.open.set(partIndex, { kind: "call", id, name, args: "", signature, details, before });
        return "";
      }
      case "native":
        candidate.open.set(partIndex, { kind: "native", dialect: kind.value.dialect, json: "" });
        return "";
      case "image":
        return this.#piece(
          candidate,
          write.withFurther(write.imagePart(kind.value, candidate.sign(signature)), details),
        );
      default:
        return "";
    }
  }

  #delta({ choiceIndex, partIndex, content, logprobs }: PartDelta): string {
    const candidate = this.#candidate(choiceIndex);
    switch (content.case) {
      case "text":
      case "refusal": {
        if (content.value === "" && logprobs.length === 0) return "";
        const fields = logprobs.length === 0 ? "" : `,"logprobsResult":${write.logprobs(logprobs)}`;
        return this.#piece(candidate, write.textPart(content.value, candidate.sign("")), fields);
      }
      case "audio":
        return content.value.source.case === undefined ? "" : this.#piece(candidate, write.audioPart(content.value));
      case "citation":
        write.cite(candidate.cited, content.value);
        return "";
      default:
        return this.#deltaOfOpen(candidate, partIndex, content);
    }
  }

  #deltaOfOpen(candidate: Candidate, partIndex: number, content: PartDelta["content"]): string {
    const open = candidate.open.get(partIndex);
    if (content.case === "reasoning" && open?.kind === "reasoning") {
      open.text += content.value;
      const isShown = this.#facts.includeThoughts && content.value !== "";
      return isShown ? this.#piece(candidate, write.thoughtPart(content.value)) : "";
    }
    if ((content.case === "argumentsJson" || content.case === "customInput") && open?.kind === "call")
      open.args += content.value;
    else if (content.case === "nativeJson" && open?.kind === "native") open.json += content.value;
    return "";
  }

  #finishPart({ choiceIndex, partIndex, signature, providerDetailsJson: details }: PartFinish): string {
    const candidate = this.#candidate(choiceIndex);
    const open = candidate.open.get(partIndex);
    candidate.open.delete(partIndex);
    // A text is sent before its signature arrives.
    if (open === undefined) {
      if (signature === "" && !write.hasFurther(details)) return "";
      return this.#piece(candidate, write.withFurther(write.textPart("", candidate.sign(signature)), details));
    }
    if (open.kind === "native") {
      const part = write.nativePart(open);
      return part === undefined ? "" : this.#piece(candidate, part);
    }
    const last = signature || open.signature;
    if (open.kind === "call") {
      const part = write.callPart(open, this.#facts.functionNames, writeSignature(last, open.before));
      return this.#piece(candidate, write.withFurther(part, open.details));
    }
    candidate.addReasoning({ ...open, signature: last });
    if (!this.#facts.includeThoughts || !write.hasFurther(details)) return "";
    return this.#piece(candidate, write.withFurther(write.thoughtPart(""), details));
  }

  /** An object with one part. */
  #piece({ index }: Candidate, part: string, fields = ""): string {
    const candidate = `{"content":{"role":"model","parts":[${part}]},"index":${index}${fields}}`;
    return `${this.#open()}{"candidates":[${candidate}]${this.#counted}${this.#tail}}${this.#after}`;
  }

  /** The last object, with all candidates and their finishes; without a report, it has no `parley` fields. */
  end(report?: Report): string {
    const candidates = this.#finishes.map((finish) => {
      const candidate = this.#candidate(finish.choiceIndex);
      const content = `{"role":"model","parts":[${write.textPart("", candidate.sign(""))}]}`;
      return `{"content":${content},"index":${candidate.index},${write.finishFields(finish, candidate.cited)}}`;
    });
    const { nameOf } = this.#facts;
    const leftOut = this.#leftOut.names;
    const routing = report === undefined ? "" : `,"parley":${JSON.stringify(writeReport(report, nameOf, leftOut))}`;
    const further = write.responseFields(this.#finishes[0]?.providerDetailsJson ?? {});
    this.#ended = true;
    const close = this.#facts.form === "events" ? this.#after : "]\n";
    return `${this.#open()}{"candidates":[${candidates.join(",")}]${further}${this.#counted}${this.#tail}${routing}}${close}`;
  }

  get #counted(): string {
    return this.#usage === undefined ? "" : `,"usageMetadata":${JSON.stringify(write.usage(this.#usage))}`;
  }

  /** The text before an object. */
  #open(): string {
    if (this.#begun || this.#facts.form === "events") return this.#before;
    this.#begun = true;
    return "[";
  }

  #candidate(index: number): Candidate {
    let candidate = this.#candidates.get(index);
    if (candidate === undefined) this.#candidates.set(index, (candidate = new Candidate(index)));
    return candidate;
  }
}

/** A part that is sent only when it is whole, or whose content is needed later. */
type OpenPart =
  | { readonly kind: "reasoning"; text: string; readonly redacted: string; readonly signature: string }
  | {
      readonly kind: "call";
      readonly details: Part["providerDetailsJson"];
      readonly id: string;
      readonly name: string;
      args: string;
      readonly signature: string;
      readonly before: readonly SignedReasoning[];
    }
  | { readonly kind: "native"; readonly dialect: string; json: string };

const NO_REASONING: readonly SignedReasoning[] = [];

class Candidate {
  readonly index: number;
  /** Open parts by part index. */
  readonly open = new Map<number, OpenPart>();
  /** Titles of cited pages by address. */
  readonly cited = new Map<string, string>();
  /** Reasoning for the signature of the next part. */
  #reasoning: readonly SignedReasoning[] = NO_REASONING;

  constructor(index: number) {
    this.index = index;
  }

  addReasoning({ text, redacted, signature }: SignedReasoning): void {
    if (signature !== "" || redacted !== "") this.#reasoning = [...this.#reasoning, { text, redacted, signature }];
  }

  takeReasoning(): readonly SignedReasoning[] {
    const reasoning = this.#reasoning;
    this.#reasoning = NO_REASONING;
    return reasoning;
  }

  /** `thoughtSignature` of the next part. */
  sign(signature: string): string | undefined {
    return signature === "" && this.#reasoning.length === 0
      ? undefined
      : writeSignature(signature, this.takeReasoning());
  }
}
