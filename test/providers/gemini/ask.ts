import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { type CompletionRequest, CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import type { Translation, UpstreamModel } from "../../../src/core/provider.ts";
import { toGeminiRequest } from "../../../src/providers/gemini/request.ts";
import { flash } from "./model.ts";

/** A picture of one pixel. */
export const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Fields of a request. */
export type Fields = { readonly [key: string]: JsonValue };

/** A user's turn. */
export const ask = (text: string): JsonValue => ({ role: "ROLE_USER", parts: [{ text }] });

/** An instruction. */
export const system = (text: string): JsonValue => ({ role: "ROLE_SYSTEM", parts: [{ text }] });

/** A model's turn of text. */
export const say = (text: string, signature = ""): JsonValue => answer({ text, signature });

/** A model's turn. */
export const answer = (...parts: JsonValue[]): JsonValue => ({ role: "ROLE_ASSISTANT", parts });

/** A call of a function `f`, unless it says otherwise. */
export const call = (id: string, { signature = "", ...more }: Fields = {}): JsonValue => ({
  toolCall: { id, name: "f", ...("customInput" in more ? {} : { argumentsJson: "{}" }), ...more },
  signature,
});

/** The result of a call: its text or its parts. */
export const result = (toolCallId: string, said: string | readonly JsonValue[], isError = false): JsonValue => {
  const parts = typeof said === "string" ? [{ text: said }] : [...said];
  return { role: "ROLE_TOOL", parts: [{ toolResult: { toolCallId, parts, isError } }] };
};

/** A request with one short question, unless it says otherwise. */
export const request = (fields: Fields): CompletionRequest =>
  fromJson(CompletionRequestSchema, { model: "m", messages: [ask("hi")], ...fields });

/** Its translation, by default for a model of the third generation. */
export const translate = (fields: Fields, model: UpstreamModel = flash()): Translation =>
  toGeminiRequest(request(fields), model, { mode: "whole" });

/** The parts of a body that tests look at. */
export interface Body {
  readonly systemInstruction?: { readonly parts: readonly unknown[] };
  readonly contents: readonly { readonly role: string; readonly parts: readonly Record<string, unknown>[] }[];
  readonly tools?: readonly { readonly functionDeclarations: readonly unknown[] }[];
  readonly toolConfig?: unknown;
  readonly generationConfig?: Readonly<Record<string, unknown>>;
  readonly safetySettings?: unknown;
  readonly serviceTier?: string;
}

/** The body that a request becomes. */
export const body = (fields: Fields, model?: UpstreamModel): Body =>
  JSON.parse(translate(fields, model).body.toString()) as Body;

/** The generation config of that body. */
export const config = (fields: Fields, model?: UpstreamModel): unknown => body(fields, model).generationConfig;

/** The contents that a conversation becomes. */
export const contents = (...messages: JsonValue[]): Body["contents"] => body({ messages }).contents;

/** The least that a function can be. */
export const F = { function: { name: "f" } };

/** Modalities that ask for pictures. */
export const pictures = ["MODALITY_IMAGE", "MODALITY_TEXT"];
