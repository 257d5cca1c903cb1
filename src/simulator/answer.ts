import { createDice, type Dice, fingerprint } from "./dice.ts";
import { describeImage } from "./image-input.ts";
import { findLimits } from "./models.ts";
import { drawPicture } from "./picture.ts";
import { writeProse } from "./prose.ts";
import {
  countPromptTokens,
  findToolResults,
  identify,
  readQuestion,
  type PictureOrder,
  type Prompt,
} from "./prompt.ts";
import { writeReasoning } from "./reasoning.ts";
import { makeExample } from "./schema-example.ts";
import { readStatedValues } from "./stated-values.ts";
import { abbreviate, findStop, splitTokens } from "./text.ts";
import { chooseTools } from "./tool-calls.ts";

export interface TextPart {
  readonly kind: "text";
  /** What a stream sends one by one; joined they are the text. */
  readonly tokens: readonly string[];
}

export interface ReasoningPart {
  readonly kind: "reasoning";
  /** Visibility: readable, sealed (only the provider can read it), or withheld as unsafe. */
  readonly form: "shown" | "hidden" | "redacted";
  /** Its token count, whatever the visibility. */
  readonly tokens: readonly string[];
}

export interface ImagePart {
  readonly kind: "image";
  readonly mediaType: "image/png";
  readonly bytes: Buffer;
  readonly tokenCount: number;
}

export interface CallPart {
  readonly kind: "call";
  /** Hexadecimal and unique in its conversation; the dialect puts its prefix before it. */
  readonly id: string;
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** The input as JSON, in the pieces that a stream sends. */
  readonly tokens: readonly string[];
}

export type Part = ReasoningPart | TextPart | ImagePart | CallPart;

/** Why an answer ended. Undefined in an `Answer` means that it never says. */
export type End = { readonly kind: "done" | "calls" | "length" } | { readonly kind: "stop"; readonly sequence: string };

export interface Usage {
  readonly promptTextTokens: number;
  readonly promptImageTokens: number;
  readonly promptTokens: number;
  /** Exactly the tokens of the parts, reasoning included. */
  readonly completionTokens: number;
  readonly reasoningTokens: number;
  readonly completionImageTokens: number;
}

/** One whole answer, in no dialect yet. */
export interface Answer {
  /** Hexadecimal; the dialect puts its prefix before it. */
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

/** Tokens that a part counts as. */
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

/** Whether the instructions say, where the dialect has no field for it, that the answer has to be JSON. */
function isJsonDemanded({ turns }: Prompt): boolean {
  return turns.some((turn) => turn.role === "system" && /\b(?:one|only a) JSON object\b/iu.test(turn.text));
}

/** JSON of no schema has the properties that the question puts in quotation marks, or else one that says what it is. */
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
  return words === undefined ? writeEcho(prompt, dice) : writeProse(words, dice);
}

/** Cuts the text at the token limit, then at the first stop sequence that is left in it. */
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
  const stated = readStatedValues(readQuestion(prompt));
  let room = prompt.maxTokens ?? Infinity;
  for (const [index, name] of names.entries()) {
    const schema = prompt.tools.find((tool) => tool.name === name)?.parameters;
    const made = makeExample(schema, stated);
    const input = typeof made === "object" && made !== null ? { ...made } : {};
    const tokens = splitTokens(JSON.stringify(input));
    room -= tokens.length;
    // A call whose arguments are cut has no use; it is left out as a whole.
    if (room < 0) return { parts, end: { kind: "length" } };
    parts.push({ kind: "call", id: fingerprint(`${identity} call ${index}`).slice(0, 24), name, input, tokens });
  }
  return { parts, end: { kind: "calls" } };
}

async function drawPart(question: string, order: PictureOrder): Promise<ImagePart> {
  const tokenCount = order.size === "4K" ? LARGE_PICTURE_TOKENS : PICTURE_TOKENS;
  return { kind: "image", mediaType: "image/png", bytes: await drawPicture(question, order), tokenCount };
}

/** A sealed piece follows the readable reasoning and counts as one token. */
function writeReasoningParts(prompt: Prompt): ReasoningPart[] {
  if (!prompt.reasoning) return [];
  const { shown, redacted } = prompt.reasoning;
  const tokens = writeReasoning(prompt, prompt.reasoning).slice(0, prompt.maxTokens);
  const open: ReasoningPart = { kind: "reasoning", form: shown ? "shown" : "hidden", tokens };
  const isSealed = redacted === true && tokens.length < (prompt.maxTokens ?? Infinity);
  return isSealed ? [open, { kind: "reasoning", form: "redacted", tokens: [" …"] }] : [open];
}

/** Reasoning first: it uses up the token limit, and nothing is left to say when it took all of it. */
async function writeParts(prompt: Prompt, identity: string): Promise<{ parts: readonly Part[]; end: End }> {
  const reasoning = writeReasoningParts(prompt);
  if (reasoning.length === 0 || prompt.maxTokens === undefined) {
    const { parts, end } = await writeSaid(prompt, identity);
    return { parts: [...reasoning, ...parts], end };
  }
  const maxTokens = prompt.maxTokens - sumTokens(reasoning);
  if (maxTokens <= 0) return { parts: reasoning, end: { kind: "length" } };
  const { parts, end } = await writeSaid({ ...prompt, maxTokens }, identity);
  return { parts: [...reasoning, ...parts], end };
}

async function writeSaid(prompt: Prompt, identity: string): Promise<{ parts: readonly Part[]; end: End }> {
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
 * The answer to a prompt: the same one whenever the same is asked. `choice` counts the alternatives of one request from
 * 0; each is another answer.
 */
export async function composeAnswer(prompt: Prompt, choice: number): Promise<Answer> {
  const id = identify(prompt);
  const { parts, end } = await writeParts(prompt, choice === 0 ? id : `${id} ${choice}`);
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

/** The reasoning of an answer that may be read. */
export function joinReasoning(parts: readonly Part[]): string {
  return parts.map((part) => (part.kind === "reasoning" && part.form === "shown" ? part.tokens.join("") : "")).join("");
}

/** The text of an answer, without its reasoning, pictures and calls. */
export function joinText(parts: readonly Part[]): string {
  return parts.map((part) => (part.kind === "text" ? part.tokens.join("") : "")).join("");
}
