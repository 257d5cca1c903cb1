import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type CompletionChunk, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { type Image, ImageSchema, type TokenLogprob, type TopLogprob } from "../../../gen/parley/v1/message_pb.js";
import { ChoiceWriter, toPart } from "../../core/chunks.ts";
import type { PartBudget } from "../../core/part-budget.ts";
import { Base64, EncodedSource } from "../../encoding/base64.ts";
import { FurtherFields, furtherOf } from "../wire/further-fields.ts";
import { array, isObject, type Json, MAX_TOKEN_CHARS, number, object, string } from "../wire/json.ts";
import type { Redact } from "../wire/redaction.ts";
import { brokenCall } from "../wire/response-failure.ts";
import { CitedText } from "./citations.ts";
import { toFinishReason } from "./finish-reason.ts";
import { ProviderDetails } from "./provider-details.ts";

/** A tool call ID that clients of the OpenAI format accept. */
const CALL_ID = /^[A-Za-z0-9_-]{1,40}$/;

/** Fields that a part of any kind may have. */
const OF_ANY_PART: ReadonlySet<string> = new Set(["thought", "thoughtSignature", "videoMetadata"]);

/** Fields of parts that are read. */
const OF_PART: ReadonlySet<string> = new Set(["text", "thought", "thoughtSignature", "functionCall", "inlineData"]);

/** Reads one candidate, whole or in stream pieces. Each piece contains only new parts. */
export class ChoiceReader {
  readonly #writer: ChoiceWriter;
  readonly #callIds = new Set<string>();
  readonly #budget: PartBudget;
  readonly #details: ProviderDetails;
  /** The last text part, for its citations. */
  readonly #cited = new CitedText();
  /** Log probabilities of the current piece, until its text is written. */
  #logprobs: TokenLogprob[] | undefined;
  readonly #redact: Redact;
  #content = false;
  #reasoning = false;
  /**
   * Signature that ends the text part in progress. Written before the next part or at the end, because citations of the text may
   * follow it. Empty without one.
   */
  #signature = "";
  /**
   * Signature of an empty text that arrived before any content. It is held back until the end, because it must not count as first
   * content.
   */
  #earlySignature = "";
  #native = "";
  /** Further fields of the text or thought in progress. */
  #further: FurtherFields | undefined;

  /** `redact` removes the provider's credentials from everything but content. */
  constructor(index: number, { budget, redact }: { readonly budget: PartBudget; readonly redact: Redact }) {
    this.#budget = budget;
    this.#details = new ProviderDetails(budget);
    this.#writer = new ChoiceWriter(index, budget);
    this.#redact = redact;
  }

  /** Whether a finish reason has arrived. More parts may still follow. */
  get finished(): boolean {
    return this.#native !== "";
  }

  /** Appends the chunks of one piece. Throws `upstream_protocol` for a call without a name. */
  read(candidate: Json, out: CompletionChunk[]): void {
    this.#logprobs = readLogprobs(candidate["logprobsResult"]);
    for (const part of array(object(candidate["content"])["parts"])) this.#part(object(part), out);
    this.#details.add(candidate);
    this.#native = string(candidate["finishReason"]) || this.#native;
  }

  /** Appends the finish. Throws `upstream_protocol` for an unusable answer. */
  finish(ofResponse: Readonly<Record<string, string>>, out: CompletionChunk[]): void {
    const produced = { content: this.#content, reasoning: this.#reasoning, calls: this.#callIds.size > 0 };
    const finishReason = toFinishReason(this.#native, produced);
    const { details, grounding } = this.#details.read(this.#redact);
    // An earlier text part is finished and takes no citations.
    if (this.#writer.flowing === "text")
      for (const citation of this.#cited.toCitations(grounding)) this.#writer.cite(citation, out);
    this.#sign(out);
    if (this.#earlySignature !== "") this.#writer.sign("text", this.#earlySignature, out);
    const all = { ...details, ...ofResponse };
    this.#writer.finish({ reason: finishReason, native: this.#native, details: all }, out);
  }

  /** Appends a refusal and the finish. */
  refuse(explanation: string, native: string, out: CompletionChunk[]): void {
    this.#sign(out);
    this.#writer.text({ case: "refusal", value: explanation }, out);
    const { details } = this.#details.read(this.#redact);
    this.#writer.finish({ reason: FinishReason.CONTENT_FILTER, native, details }, out);
  }

  #part(part: Json, out: CompletionChunk[]): void {
    const { text, thought, functionCall, inlineData, thoughtSignature } = part;
    // Images in thoughts are drafts. Signatures of thoughts are ignored, because thoughts are not sent back.
    if (thought === true) return this.#think(part, out);
    const signature = string(thoughtSignature);
    if (isGiven(functionCall)) return this.#call(part, signature, out);
    if (isGiven(inlineData)) return this.#picture(part, signature, out);
    if (!isGiven(text) && hasOtherContent(part)) return this.#nativeBlock(part, out);
    this.#text(part, signature, out);
  }

  /** Notes the further fields of a piece of the text or thought in progress. A joined part has the fields of all its pieces. */
  #describe(part: Json): void {
    if (!Object.keys(part).some((name) => !OF_PART.has(name))) return;
    if (this.#further === undefined) {
      const further = new FurtherFields("gemini.", OF_PART, this.#budget);
      this.#further = further;
      this.#writer.describeAtEnd(() => {
        this.#further = undefined;
        return further.read(this.#redact);
      });
    }
    this.#further.addPiece(part);
  }

  /** Writes another part as a native block, such as code that the provider ran, and its result. */
  #nativeBlock(part: Json, out: CompletionChunk[]): void {
    this.#content = true;
    this.#sign(out);
    this.#writer.native({ dialect: "gemini", json: JSON.stringify(part) }, out);
  }

  #think(part: Json, out: CompletionChunk[]): void {
    const text = string(part["text"]);
    if (text === "") return;
    this.#reasoning = true;
    this.#sign(out);
    this.#writer.text({ case: "reasoning", value: text }, out);
    this.#describe(part);
  }

  /**
   * A signature ends its part, because it must be sent back with exactly this text. It may arrive on an empty text
   * after that text.
   */
  #text(part: Json, signature: string, out: CompletionChunk[]): void {
    const text = string(part["text"]);
    if (text !== "") {
      this.#content = true;
      this.#sign(out);
      if (this.#writer.flowing !== "text") this.#cited.restart();
      this.#cited.append(text);
      this.#writer.text({ case: "text", value: text }, out, this.#logprobs);
      this.#logprobs = undefined;
      this.#describe(part);
    }
    if (signature === "") return;
    this.#sign(out);
    if (this.#writer.begun) this.#signature = signature;
    else this.#earlySignature = signature;
  }

  #sign(out: CompletionChunk[]): void {
    if (this.#signature === "") return;
    this.#writer.sign("text", this.#signature, out);
    this.#signature = "";
  }

  #call(part: Json, signature: string, out: CompletionChunk[]): void {
    const call = object(part["functionCall"]);
    const name = string(call["name"]);
    if (name === "") throw brokenCall();
    this.#content = true;
    this.#sign(out);
    const begun = { id: this.#callId(string(call["id"])), name, details: this.#furtherOf(part) };
    const partIndex = this.#writer.beginCall(begun, signature, out);
    this.#writer.arguments(partIndex, toArguments(call["args"]), out);
    this.#writer.endCall(partIndex, out);
  }

  #callId(given: string): string {
    const usable = CALL_ID.test(given) && !this.#callIds.has(given);
    const id = usable ? given : `call_${randomBytes(12).toString("hex")}`;
    this.#callIds.add(id);
    return id;
  }

  /** Fields of a part that the contract does not have. */
  #furtherOf(part: Json): Record<string, string> {
    return furtherOf(part, { prefix: "gemini.", known: OF_PART, budget: this.#budget, redact: this.#redact });
  }

  #picture(part: Json, signature: string, out: CompletionChunk[]): void {
    const { mimeType, data } = object(part["inlineData"]);
    const mediaType = string(mimeType);
    const source = readBytes(data);
    if (!mediaType.startsWith("image/") || source === undefined) return;
    this.#content = true;
    this.#sign(out);
    const image = create(ImageSchema, { mediaType });
    image.source = source;
    this.#writer.whole(toPart({ case: "image", value: image }, signature, this.#furtherOf(part)), out);
  }
}

/** Decodes base64; undefined if it is empty. */
function readBytes(data: unknown): Image["source"] | undefined {
  if (data instanceof Base64) return new EncodedSource(data);
  const value = Buffer.from(string(data), "base64");
  return value.length === 0 ? undefined : { case: "data", value };
}

/** Whether a part without text has fields beyond OF_ANY_PART. */
function hasOtherContent(part: Json): boolean {
  return Object.entries(part).some(([name, value]) => isGiven(value) && !OF_ANY_PART.has(name));
}

/** The provider treats null as an absent field. */
const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** The arguments as JSON text, never empty. A non-empty string is taken as JSON text. */
function toArguments(args: unknown): string {
  if (typeof args === "string" && args.trim() !== "") return args;
  return isObject(args) ? JSON.stringify(args) : "{}";
}

/** Converts `logprobsResult`: the chosen tokens with their top alternatives. Undefined when empty. */
function readLogprobs(result: unknown): TokenLogprob[] | undefined {
  if (result === undefined) return undefined;
  const { chosenCandidates, topCandidates } = object(result);
  const top = array(topCandidates);
  const tokens = array(chosenCandidates).map((chosen, index): TokenLogprob => {
    const likely = array(object(top[index])["candidates"]).map((other): TopLogprob => {
      return { $typeName: "parley.v1.TopLogprob", ...readToken(other) };
    });
    return { $typeName: "parley.v1.TokenLogprob", ...readToken(chosen), top: likely };
  });
  return tokens.length > 0 ? tokens : undefined;
}

function readToken(value: unknown): Pick<TopLogprob, "token" | "logprob"> {
  const { token, logProbability } = object(value);
  return { token: string(token).slice(0, MAX_TOKEN_CHARS), logprob: number(logProbability) ?? 0 };
}
