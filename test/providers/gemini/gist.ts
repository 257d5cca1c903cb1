import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../../gen/parley/v1/message_pb.js";
import type { Answer } from "../../../src/core/provider.ts";
import { array, type Json, object, string } from "../../../src/providers/wire/json.ts";
import { bytesOf, jsonOf } from "./fixture.ts";

/** What an answer says, in a form that ours and the expected OpenAI format can both be brought into. */
export interface Gist {
  readonly content: readonly string[];
  readonly reasoning: string;
  readonly refusal: string;
  readonly calls: readonly string[];
  readonly signatures: readonly string[];
  readonly finish: readonly string[];
  readonly usage: readonly unknown[];
}

/** The gist of an answer with one choice. */
export function gistOf({ choices, usage }: Answer): Gist {
  const [choice] = choices;
  const message = choice!.message!;
  return {
    content: joinTexts(message.parts.flatMap(contentOf)),
    reasoning: message.parts.map(({ kind }) => (kind.case === "reasoning" ? kind.value.text : "")).join(""),
    refusal: message.parts.map(({ kind }) => (kind.case === "refusal" ? kind.value : "")).join(""),
    calls: message.parts.flatMap(({ kind }) =>
      kind.case === "toolCall" ? [`${minted(kind.value.id)} ${kind.value.name} ${kind.value.input.value}`] : [],
    ),
    signatures: ["text", "image", "toolCall"].flatMap((owner) =>
      message.parts.flatMap(({ kind, signature }) => (kind.case === owner && signature !== "" ? [signature] : [])),
    ),
    finish: [FinishReason[choice!.finishReason].toLowerCase(), choice!.nativeFinishReason],
    usage: [
      usage?.inputTokens,
      usage?.outputTokens,
      usage?.totalTokens,
      usage?.cachedInputTokens,
      usage?.reasoningOutputTokens,
    ],
  };
}

/** The gist of a scenario's expected answer, whole or as a stream. */
export function expectedGist(scenario: string, file: string): Gist {
  if (file.endsWith(".json")) {
    const { choices, usage } = object(jsonOf(scenario, file));
    const choice = object(array(choices)[0]);
    return gistOfPieces([{ ...choice, delta: choice["message"] }], usage);
  }
  const frames = bytesOf(scenario, file).toString("utf8").split("\n\n");
  const data = frames.map((frame) => frame.replace(/^data: /, "")).filter((frame) => frame.startsWith("{"));
  const chunks = data.map((each) => object(JSON.parse(each)));
  const usage = chunks.findLast((chunk) => chunk["usage"])?.["usage"];
  return gistOfPieces(
    chunks.flatMap((chunk) => array(chunk["choices"]).map(object)),
    usage,
  );
}

function gistOfPieces(choices: readonly Json[], usage: unknown): Gist {
  const deltas = choices.map((choice) => object(choice["delta"]));
  const calls = deltas.flatMap((delta) => array(delta["tool_calls"]).map(object));
  const last = choices.findLast((choice) => choice["finish_reason"]);
  const pictures = deltas.flatMap((delta) => [...array(delta["content"]), ...array(delta["images"])]).map(object);
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details, completion_tokens_details } =
    object(usage);
  const details = [
    object(prompt_tokens_details)["cached_tokens"],
    object(completion_tokens_details)["reasoning_tokens"],
  ];
  return {
    content: joinTexts(deltas.flatMap(expectedContent)),
    reasoning: deltas.map((delta) => string(delta["reasoning_content"])).join(""),
    refusal: deltas.map((delta) => string(delta["refusal"])).join(""),
    calls: joinCalls(calls),
    signatures: [...deltas, ...pictures, ...calls].map(signatureOf).filter((signature) => signature !== ""),
    finish: [string(last?.["finish_reason"]), string(last?.["native_finish_reason"])],
    // A stream that was not asked for usage has none to compare.
    usage: usage === undefined ? [] : [prompt_tokens, completion_tokens, total_tokens, ...details],
  };
}

/** Calls in pieces by index: the first piece has the ID and the name. */
function joinCalls(pieces: readonly Json[]): string[] {
  const calls = new Map<unknown, string>();
  for (const { index, id, function: called } of pieces) {
    const { name, arguments: text } = object(called);
    const begun = index === undefined ? undefined : calls.get(index);
    calls.set(index ?? calls.size, begun === undefined ? [id, name, text].join(" ") : begun + string(text));
  }
  return [...calls.values()];
}

function contentOf({ kind }: Part): string[] {
  if (kind.case === "text") return kind.value === "" ? [] : [`text ${kind.value}`];
  if (kind.case !== "image" || kind.value.source.case !== "data") return [];
  const data = Buffer.from(kind.value.source.value).toString("base64");
  return [`image data:${kind.value.mediaType};base64,${data}`];
}

function expectedContent({ content, images }: Json): string[] {
  const texts = typeof content === "string" && content !== "" ? [{ type: "text", text: content }] : array(content);
  return [...texts, ...array(images)]
    .map(object)
    .map(({ type, text, image_url }) =>
      type === "text" ? `text ${string(text)}` : `image ${string(object(image_url)["url"])}`,
    );
}

function joinTexts(pieces: readonly string[]): string[] {
  const out: string[] = [];
  for (const piece of pieces) {
    const last = out.at(-1);
    if (piece.startsWith("text ") && last?.startsWith("text "))
      out[out.length - 1] = last + piece.slice("text ".length);
    else out.push(piece);
  }
  return out;
}

const signatureOf = ({ extra_content }: Json): string =>
  string(object(object(extra_content)["google"])["thought_signature"]);

/** IDs of our own making have the name that the fixtures give them. */
const minted = (id: string): string => (/^call_[0-9a-f]{24}$/.test(id) ? "call_0" : id);
