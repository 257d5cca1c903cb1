import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  type CompletionChunk,
  type Delta,
  type Logprobs,
  LogprobsSchema,
  type TokenLogprob,
  TokenLogprobSchema,
  ToolCallDeltaSchema,
} from "../../../gen/parley/v1/completion_pb.js";
import { type Image, ImageSchema } from "../../../gen/parley/v1/message_pb.js";
import { deltaChunk, finishChunk } from "../../core/chunks.ts";
import { Base64, EncodedSource } from "../../encoding/base64.ts";
import { array, isObject, type Json, number, object, string } from "../wire/json.ts";
import { brokenCall } from "../wire/response-failure.ts";
import { toFinishReason } from "./finish-reason.ts";

/** A tool call ID that clients of the OpenAI format accept. */
const CALL_ID = /^[A-Za-z0-9_-]{1,40}$/;

/** Reads one candidate, whole or in pieces: each piece has new parts only. */
export class ChoiceReader {
  readonly #index: number;
  readonly #callIds = new Set<string>();
  #content = false;
  #reasoning = false;
  #pictures = false;
  #signature = "";
  #native = "";

  constructor(index: number) {
    this.#index = index;
  }

  /** Whether a finish reason has arrived. More parts may still follow. */
  get finished(): boolean {
    return this.#native !== "";
  }

  /** Appends what the piece adds. Throws `upstream_protocol` for a call without a name. */
  read(candidate: Json, out: CompletionChunk[]): void {
    const from = out.length;
    for (const part of array(object(candidate["content"])["parts"])) this.#part(object(part), out);
    const first = out[from]?.event;
    const logprobs = readLogprobs(candidate["logprobsResult"]);
    if (logprobs !== undefined && first?.case === "delta") first.value.logprobs = logprobs;
    this.#native = string(candidate["finishReason"]) || this.#native;
  }

  /** Appends the text's signature and the finish. Throws `upstream_protocol` for an unusable answer. */
  finish(out: CompletionChunk[]): void {
    const said = { content: this.#content, reasoning: this.#reasoning, calls: this.#callIds.size > 0 };
    const finishReason = toFinishReason(this.#native, said);
    // Emitted at the end, because it may arrive on a last, empty part, and once, because clients concatenate signatures.
    if (this.#signature !== "") out.push(deltaChunk(this.#index, { case: "signature", value: this.#signature }));
    out.push(finishChunk(this.#index, finishReason, this.#native));
  }

  #part(part: Json, out: CompletionChunk[]): void {
    const content = this.#read(part);
    if (content === undefined) return;
    out.push(deltaChunk(this.#index, content));
    if (content.case === "reasoning") this.#reasoning = true;
    else this.#content = true;
  }

  #read({ text, thought, functionCall, inlineData, thoughtSignature }: Json): Delta["content"] | undefined {
    // Pictures in thoughts are drafts. Signatures of thoughts are ignored, because thoughts are not sent back.
    if (thought === true) return string(text) === "" ? undefined : { case: "reasoning", value: string(text) };
    const signature = string(thoughtSignature);
    if (isGiven(functionCall)) return this.#call(object(functionCall), signature);
    if (isGiven(inlineData)) return this.#picture(object(inlineData), signature);
    this.#keep(signature);
    return string(text) === "" ? undefined : { case: "text", value: string(text) };
  }

  /** Text models sign their last text, image models their first part; later text beside pictures is not it. */
  #keep(signature: string): void {
    if (signature !== "" && !(this.#pictures && this.#signature !== "")) this.#signature = signature;
  }

  #call(call: Json, signature: string): Delta["content"] {
    const name = string(call["name"]);
    if (name === "") throw brokenCall();
    const index = this.#callIds.size;
    const id = this.#callId(string(call["id"]));
    return {
      case: "toolCall",
      value: create(ToolCallDeltaSchema, { index, id, name, arguments: toArguments(call["args"]), signature }),
    };
  }

  #callId(given: string): string {
    const usable = CALL_ID.test(given) && !this.#callIds.has(given);
    const id = usable ? given : `call_${randomBytes(12).toString("hex")}`;
    this.#callIds.add(id);
    return id;
  }

  #picture({ mimeType, data }: Json, signature: string): Delta["content"] | undefined {
    const mediaType = string(mimeType);
    const source = readBytes(data);
    if (!mediaType.startsWith("image/") || source === undefined) return undefined;
    this.#pictures = true;
    const image = create(ImageSchema, { mediaType, signature });
    image.source = source;
    return { case: "image", value: image };
  }
}

/** Decodes base64; undefined if it is empty. */
function readBytes(data: unknown): Image["source"] | undefined {
  if (data instanceof Base64) return new EncodedSource(data);
  const value = Buffer.from(string(data), "base64");
  return value.length === 0 ? undefined : { case: "data", value };
}

/** In the provider's JSON null is another way to leave a field out. */
const isGiven = (value: unknown): boolean => value !== undefined && value !== null;

/** The arguments as JSON text, never empty; a string is taken to be that text already. */
function toArguments(args: unknown): string {
  if (typeof args === "string" && args.trim() !== "") return args;
  return isObject(args) ? JSON.stringify(args) : "{}";
}

/** A candidate's `logprobsResult`: the chosen tokens, each with the likeliest ones at its place. Undefined without any. */
function readLogprobs(result: unknown): Logprobs | undefined {
  const { chosenCandidates, topCandidates } = object(result);
  const top = array(topCandidates);
  const content = array(chosenCandidates).map((chosen, index) => {
    const token = toToken(chosen);
    token.top = array(object(top[index])["candidates"]).map(toToken);
    return token;
  });
  return content.length > 0 ? create(LogprobsSchema, { content }) : undefined;
}

function toToken(value: unknown): TokenLogprob {
  const { token, logProbability } = object(value);
  return create(TokenLogprobSchema, {
    token: string(token),
    logprob: number(logProbability) ?? 0,
  });
}
