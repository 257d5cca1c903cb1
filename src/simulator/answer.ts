import { createDice, type Dice, fingerprint } from "./dice.ts";
import { describeImage } from "./image-input.ts";
import { findLimits } from "./models.ts";
import { drawPicture } from "./picture.ts";
import {
  countPromptTokens,
  findToolResults,
  identify,
  type PictureOrder,
  type Prompt,
  readQuestion,
  type ReasoningOrder,
} from "./prompt.ts";
import { makeExample, readStatedValues } from "./schema-example.ts";
import { abbreviate, findStop, splitTokens, writeProse } from "./text.ts";
import { hasWrittenCall, readWrittenCall } from "./written-call.ts";

/** First words of tool names that a question may omit: it mentions the weather, not `get_weather`. */
const FETCHING = /^(?:fetch|find|get|list|read)$/iu;

/** Characters at the beginning of a question in which each tool is looked for, and those of all tools together. */
const MAX_READ_CHARS = 10_000;
const MAX_SEARCHED_CHARS = 500_000;

/** The beginning of the question, in which tools are looked for: the more tools, the shorter. */
function readBeginning(prompt: Prompt): string {
  const chars = Math.min(MAX_READ_CHARS, Math.floor(MAX_SEARCHED_CHARS / prompt.tools.length));
  return readQuestion(prompt).slice(0, chars);
}

/** The letters and digits of a question in lower case, and their positions. */
class Letters {
  readonly #text: string;
  readonly #letters: string;
  readonly #places: readonly number[];

  constructor(text: string) {
    const found = [...text.matchAll(/[A-Za-z0-9]/gu)];
    this.#text = text;
    this.#letters = found.map(([letter]) => letter.toLowerCase()).join("");
    this.#places = found.map(({ index }) => index);
  }

  /**
   * Whether the text has these words as one name, with at most one other character between two of them. Not an expression for each tool: a
   * request has thousands, and compiling one takes some milliseconds.
   */
  have(words: readonly string[]): boolean {
    const name = words.join("").toLowerCase();
    for (let at = this.#letters.indexOf(name); at >= 0; at = this.#letters.indexOf(name, at + 1))
      if (this.#isName(at, words)) return true;
    return false;
  }

  /** Whether words at a position among the letters are not parts of others, and together. */
  #isName(at: number, words: readonly string[]): boolean {
    const [text, places] = [this.#text, this.#places];
    let next = places[at]!;
    if (/\w/u.test(text.charAt(next - 1))) return false;
    for (const { length } of words) {
      const first = places[at]!;
      at += length;
      if (first - next > 1 || places[at - 1]! - first !== length - 1) return false;
      next = first + length;
    }
    return !/\w/u.test(text.charAt(next));
  }
}

/**
 * Whether the text names the tool: as `get_weather`, `get-weather` or `get weather`, or without its verb, as `weather`.
 */
function isNamed(tool: string, question: Letters): boolean {
  const words = tool.split(/[^A-Za-z0-9]+/u).filter(Boolean);
  const [first, ...rest] = words;
  if (first === undefined) return false;
  return question.have(words) || (rest.length > 0 && FETCHING.test(first) && question.have(rest));
}

/**
 * Returns the tools that an answer calls. In mode `required`: the tools that the last user message names, or else the
 * first allowed one. In mode `auto`: the tools that the message names. After their results it answers with text. Where the
 * message has written calls with named arguments, other names in it are not calls.
 */
function chooseTools(prompt: Prompt): string[] {
  const { mode, names, parallel } = prompt.toolChoice;
  const isRequired = mode === "required";
  if (mode === "none" || (!isRequired && findToolResults(prompt).length > 0)) return [];
  const question = readBeginning(prompt);
  const permitted = names && new Set(names);
  const allowed = prompt.tools.map((tool) => tool.name).filter((name) => permitted?.has(name) ?? true);
  const written = allowed.filter((name) => hasWrittenCall(question, name));
  const letters = new Letters(question);
  const named = written.length > 0 ? written : allowed.filter((name) => isNamed(name, letters));
  const chosen = named.length > 0 || !isRequired ? named : allowed.slice(0, 1);
  return parallel ? chosen : chosen.slice(0, 1);
}

const THOUGHT_QUOTE_LENGTH = 120;

/** Number of reasoning sentences by effort. */
const DEPTHS = { minimal: 1, low: 1, medium: 2, high: 3, xhigh: 4, max: 4 } as const;

/** A reasoning effort, in the words that the dialects share. */
export type Effort = keyof typeof DEPTHS;

/** Whether a word is an effort that enables reasoning. */
export function isEffort(word: string): word is Effort {
  return Object.hasOwn(DEPTHS, word);
}

function writeThoughts(prompt: Prompt): [string, ...string[]] {
  const question = readQuestion(prompt);
  const results = findToolResults(prompt).length;
  const tools = prompt.tools.map((tool) => tool.name).join(", ");
  return [
    question === ""
      ? "The last message has no text."
      : `The last message reads "${abbreviate(question, THOUGHT_QUOTE_LENGTH)}".`,
    results > 0
      ? `Results to go on with: ${results}.`
      : tools === ""
        ? "There are no tools to call."
        : `The tools that might help: ${abbreviate(tools, THOUGHT_QUOTE_LENGTH)}.`,
    `The conversation has ${prompt.turns.length} ${prompt.turns.length === 1 ? "message" : "messages"} so far.`,
    "Nothing else is known about it, so the answer follows from these.",
  ];
}

/** Returns the reasoning as stream tokens. More effort adds sentences; `maxTokens` truncates. */
function writeReasoning(prompt: Prompt, { effort, maxTokens }: ReasoningOrder): string[] {
  const text = writeThoughts(prompt).slice(0, DEPTHS[effort]).join(" ");
  return splitTokens(text).slice(0, maxTokens);
}

/** Details of a refusal besides status and message. Each dialect encodes them differently. */
interface RefusalDetail {
  /** Requested wait: a header in two dialects, a `RetryInfo` detail in Gemini's. */
  readonly retryAfterSeconds?: number;
  /** Machine-readable error code, such as `context_length_exceeded` or `API_KEY_INVALID`. */
  readonly code?: string;
  /** The offending request field, in the dialect's own spelling. */
  readonly field?: string;
}

/** An error response of the simulated provider. Encoded by the dialect of the request. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  /** HTTP status. */
  readonly status: number;
  readonly detail: RefusalDetail;

  constructor(status: number, message: string, detail: RefusalDetail = {}) {
    super(message);
    this.status = status;
    this.detail = detail;
  }
}

export interface TextPart {
  readonly kind: "text";
  /** Tokens of a stream, one per event. Joined they are the text. */
  readonly tokens: readonly string[];
}

export interface ReasoningPart {
  readonly kind: "reasoning";
  /** Visibility: readable, encrypted (readable only by the provider), or redacted as unsafe. */
  readonly form: "shown" | "hidden" | "redacted";
  /** Tokens of the reasoning. They count in every form. */
  readonly tokens: readonly string[];
}

interface ImagePart {
  readonly kind: "image";
  readonly mediaType: "image/png";
  readonly bytes: Buffer;
  readonly tokenCount: number;
}

export interface CallPart {
  readonly kind: "call";
  /** Hexadecimal and unique in its conversation; the dialect adds its prefix. */
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** The input as JSON, split into stream tokens. */
  readonly tokens: readonly string[];
}

export type Part = ReasoningPart | TextPart | ImagePart | CallPart;

/** Reason for the end of an answer. Undefined in an `Answer` means that no finish reason is sent. */
type End = { readonly kind: "done" | "calls" | "length" } | { readonly kind: "stop"; readonly sequence: string };

interface Usage {
  readonly promptTextTokens: number;
  readonly promptImageTokens: number;
  readonly promptTokens: number;
  /** Exact number of tokens of the parts, including reasoning. */
  readonly completionTokens: number;
  readonly reasoningTokens: number;
  readonly completionImageTokens: number;
}

/** A whole answer, independent of the dialect. */
export interface Answer {
  /** Hexadecimal; the dialect adds its prefix. */
  readonly id: string;
  readonly model: string;
  readonly parts: readonly Part[];
  readonly end: End | undefined;
  readonly usage: Usage;
}

const MAX_PROSE_WORDS = 100_000;
const QUOTE_LENGTH = 240;
const PICTURE_TOKENS = 1120;
const LARGE_PICTURE_TOKENS = 2000;

/** Returns the token count of a part. */
export function countTokens(part: Part): number {
  return part.kind === "image" ? part.tokenCount : part.tokens.length;
}

function sumTokens(parts: readonly Part[]): number {
  return parts.reduce((sum, part) => sum + countTokens(part), 0);
}

function readWordCount(question: string): number | undefined {
  const count = /\b(\d{1,6})[ -]words?\b/iu.exec(question)?.[1];
  return count === undefined ? undefined : Math.min(Number(count), MAX_PROSE_WORDS);
}

function writeEcho(prompt: Prompt, dice: Dice): string {
  const question = readQuestion(prompt);
  const images = prompt.turns.findLast((turn) => turn.role === "user")?.images ?? [];
  const instructions = prompt.turns.find((turn) => turn.role === "system");
  const earlier = prompt.turns.filter((turn) => turn.role === "user" || turn.role === "assistant").length - 1;
  const sentences = [
    dice.pick([
      `Hello! This is a simulated answer from ${prompt.model}.`,
      `Greetings from the simulator, standing in for ${prompt.model}.`,
      `This is ${prompt.model} as the simulator plays it.`,
    ]),
    question === "" ? "Your message has no text." : `You wrote: "${abbreviate(question, QUOTE_LENGTH)}".`,
    ...images.map((image, index) => `Picture ${index + 1} of ${images.length} is ${describeImage(image)}.`),
    ...(instructions ? [`Your instructions begin: "${abbreviate(instructions.text, 80)}".`] : []),
    ...(earlier > 0 ? [`I have also read the ${earlier} earlier message${earlier > 1 ? "s" : ""}.`] : []),
    dice.pick([
      "No model has thought about it, but everything on the way here and back is real.",
      "A real model would have more to say; the way here and back is the same.",
      "The same request always gets this same answer.",
    ]),
  ];
  return sentences.join(" ");
}

/** Whether the system message demands JSON, for dialects without a JSON mode. */
function isJsonDemanded({ turns }: Prompt): boolean {
  return turns.some((turn) => turn.role === "system" && /\b(?:one|only a) JSON object\b/iu.test(turn.text));
}

/** Returns the schema for JSON without one: the properties quoted in the question, or a `simulated` flag. */
function toFreeSchema(question: string): object {
  const names = readStatedValues(question).texts;
  const properties = names.map((name) => [name, { type: "string" }] as const);
  return { properties: names.length > 0 ? Object.fromEntries(properties) : { simulated: { const: true } } };
}

function writeText(prompt: Prompt, dice: Dice): string {
  const json = prompt.json ?? (isJsonDemanded(prompt) ? {} : undefined);
  if (json) return JSON.stringify(makeExample(json.schema ?? toFreeSchema(readQuestion(prompt))));
  const results = findToolResults(prompt);
  if (results.length > 0) {
    const quotes = results.map((result) => `"${abbreviate(result.text, QUOTE_LENGTH)}"`);
    return `This is a simulated answer. The tool${quotes.length > 1 ? "s" : ""} returned: ${quotes.join(", ")}.`;
  }
  const words = readWordCount(readQuestion(prompt));
  if (words === undefined) return writeEcho(prompt, dice);
  // A word has at least one token. More words than the answer may have would cost time, and not change it.
  return writeProse(Math.min(words, (prompt.maxTokens ?? words) + 1), dice);
}

/** Truncates the text at the token limit, then at the first remaining stop sequence. */
function limitText(text: string, prompt: Prompt): { part: TextPart; end: End } {
  const all = splitTokens(text);
  const kept = all.slice(0, prompt.maxTokens);
  const shown = kept.join("");
  const stop = findStop(shown, prompt.stop);
  if (stop) {
    const part: TextPart = { kind: "text", tokens: splitTokens(shown.slice(0, stop.at)) };
    return { part, end: { kind: "stop", sequence: stop.sequence } };
  }
  return { part: { kind: "text", tokens: kept }, end: { kind: kept.length < all.length ? "length" : "done" } };
}

function writeCalls(names: readonly string[], prompt: Prompt, identity: string): { parts: CallPart[]; end: End } {
  const parts: CallPart[] = [];
  const question = readBeginning(prompt);
  const stated = readStatedValues(question);
  let room = prompt.maxTokens ?? Infinity;
  for (const [index, name] of names.entries()) {
    const schema = prompt.tools.find((tool) => tool.name === name)?.parameters;
    const made =
      readWrittenCall(question, { name, parameters: schema }, names.length) ??
      makeExample(schema, stated, names.length);
    const input = typeof made === "object" && made !== null ? { ...made } : {};
    const tokens = splitTokens(JSON.stringify(input));
    room -= tokens.length;
    // A call with truncated arguments is unusable, so the whole call is omitted.
    if (room < 0) return { parts, end: { kind: "length" } };
    parts.push({ kind: "call", id: fingerprint(`${identity} call ${index}`).slice(0, 24), name, input, tokens });
  }
  return { parts, end: { kind: "calls" } };
}

async function drawPart(question: string, order: PictureOrder): Promise<ImagePart> {
  const tokenCount = order.size === "4K" ? LARGE_PICTURE_TOKENS : PICTURE_TOKENS;
  return { kind: "image", mediaType: "image/png", bytes: await drawPicture(question, order), tokenCount };
}

/** A redacted part follows the readable reasoning and counts as one token. */
function writeReasoningParts(prompt: Prompt): ReasoningPart[] {
  if (!prompt.reasoning) return [];
  const { shown, redacted } = prompt.reasoning;
  const tokens = writeReasoning(prompt, prompt.reasoning).slice(0, prompt.maxTokens);
  const open: ReasoningPart = { kind: "reasoning", form: shown ? "shown" : "hidden", tokens };
  const isSealed = redacted === true && tokens.length < (prompt.maxTokens ?? Infinity);
  return isSealed ? [open, { kind: "reasoning", form: "redacted", tokens: [" …"] }] : [open];
}

/** Writes the reasoning first. It counts against the token limit; if it reaches the limit, no other content follows. */
async function writeParts(prompt: Prompt, identity: string): Promise<{ parts: readonly Part[]; end: End }> {
  const reasoning = writeReasoningParts(prompt);
  if (reasoning.length === 0 || prompt.maxTokens === undefined) {
    const { parts, end } = await writeContent(prompt, identity);
    return { parts: [...reasoning, ...parts], end };
  }
  const maxTokens = prompt.maxTokens - sumTokens(reasoning);
  if (maxTokens <= 0) return { parts: reasoning, end: { kind: "length" } };
  const { parts, end } = await writeContent({ ...prompt, maxTokens }, identity);
  return { parts: [...reasoning, ...parts], end };
}

async function writeContent(prompt: Prompt, identity: string): Promise<{ parts: readonly Part[]; end: End }> {
  const dice = createDice(identity);
  const names = chooseTools(prompt);
  if (names.length > 0) return writeCalls(names, prompt, identity);
  const picture = findLimits(prompt.model).makesPictures ? prompt.picture : undefined;
  if (!picture) {
    const { part, end } = limitText(writeText(prompt, dice), prompt);
    return { parts: part.tokens.length > 0 ? [part] : [], end };
  }
  const question = readQuestion(prompt);
  const image = await drawPart(question, picture);
  if (!picture.caption) return { parts: [image], end: { kind: "done" } };
  const caption = `Here is a simulated picture of "${abbreviate(question, QUOTE_LENGTH)}".`;
  const { part, end } = limitText(caption, prompt);
  return { parts: [part, image], end };
}

/**
 * Composes the answer to a prompt. Deterministic: the same prompt gets the same answer. `choice` is the index of the
 * alternative, from 0; each alternative differs.
 */
export async function composeAnswer(prompt: Prompt, choice: number): Promise<Answer> {
  const id = identify(prompt);
  const maxTokens = Math.min(prompt.maxTokens ?? Infinity, findLimits(prompt.model).maxOutputTokens);
  const { parts, end } = await writeParts({ ...prompt, maxTokens }, choice === 0 ? id : `${id} ${choice}`);
  const counted = countPromptTokens(prompt);
  const usage: Usage = {
    promptTextTokens: counted.text,
    promptImageTokens: counted.images,
    promptTokens: counted.total,
    completionTokens: sumTokens(parts),
    reasoningTokens: sumTokens(parts.filter((part) => part.kind === "reasoning")),
    completionImageTokens: sumTokens(parts.filter((part) => part.kind === "image")),
  };
  return { id, model: prompt.model, parts, end, usage };
}
