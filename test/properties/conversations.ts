import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import {
  type CompletionRequest,
  CompletionRequestSchema,
  type ResponseFormatSchema,
  Verbosity,
} from "../../gen/parley/v1/completion_pb.js";
import { CacheMarkSchema, type PartSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { ReasoningEffort } from "../../gen/parley/v1/reasoning_pb.js";
import { type ToolChoiceSchema, ToolMode, type ToolSchema } from "../../gen/parley/v1/tool_pb.js";
import { jsonObject, jsonSchema } from "./json-text.ts";
import { mark, pictureOf, type Speaker } from "./marks.ts";
import { anyCharacter } from "../support/any-character.ts";

type PartInit = MessageInitShape<typeof PartSchema>;

/** A block of reasoning as a provider gave it. */
interface Sealed {
  readonly text?: string;
  readonly redacted?: string;
  readonly signature?: string;
}

/** How the state that a provider keeps in a conversation is made: it has to be one that the provider gave. */
export interface Signatures {
  /** Of the reasoning blocks of one answer, given their texts; `undefined` stands for a redacted one. */
  sealAll(answer: string, texts: readonly (string | undefined)[]): Sealed[];
  /** Of a call; empty when it has none. */
  signCall(name: string, argumentsJson: string): string;
  /** Of a text or a picture of an answer; empty when it has none. */
  signPart(number: number): string;
}

/** Kinds of parts that a dialect takes, of those that only some dialects take. Text and pictures go everywhere. */
export interface MediaKinds {
  readonly user: readonly MediaKind[];
  readonly assistant: readonly MediaKind[];
  readonly result: readonly MediaKind[];
}

type MediaKind = "recording" | "document" | "spoken" | "video" | "linked video";

const word = fc
  .string({ unit: anyCharacter, maxLength: 12 })
  .filter((text) => !text.includes("⟦") && text.isWellFormed());

type PartPlan = { readonly ttl: Ttl } & (
  | { readonly kind: "text" | "refusal"; readonly text: string }
  | { readonly kind: "blank"; readonly text: string }
  | { readonly kind: "thought"; readonly text: string | undefined }
  | { readonly kind: "picture" | MediaKind; readonly cites: boolean }
  | { readonly kind: "call"; readonly call: CallPlan }
);

/** Seconds for which to cache up to a part, or the provider's default; undefined for a part without a mark. */
type Ttl = number | "default" | undefined;

/** Mostly not marked. */
const ttl: fc.Arbitrary<Ttl> = fc.option(fc.constantFrom("default" as const, 60, 300, 301, 3600, 172_800), {
  freq: 8,
  nil: undefined,
});

const textPlan: fc.Arbitrary<PartPlan> = fc.record({ kind: fc.constant("text" as const), text: word, ttl });
const blankPlan: fc.Arbitrary<PartPlan> = fc.record({
  kind: fc.constant("blank" as const),
  text: fc.constant(" \n"),
  ttl,
});
const plain = (...kinds: ("picture" | MediaKind)[]): fc.Arbitrary<PartPlan> =>
  fc.record({ kind: fc.constantFrom(...kinds), cites: fc.boolean(), ttl });

/** What a user says, or a tool. */
const partPlan = (media: readonly MediaKind[]): fc.Arbitrary<PartPlan> =>
  fc.oneof(
    { weight: 4, arbitrary: textPlan },
    { weight: 1, arbitrary: blankPlan },
    { weight: 2, arbitrary: plain("picture", ...media) },
  );

/** Something said at all: at least one text among the parts. */
const spoken = (part: fc.Arbitrary<PartPlan>): fc.Arbitrary<PartPlan[]> =>
  fc
    .tuple(fc.array(part, { maxLength: 2 }), textPlan, fc.array(part, { maxLength: 1 }))
    .map(([before, text, after]) => [...before, text, ...after]);

const callPlan = (media: readonly MediaKind[]) =>
  fc.record({
    name: fc.constantFrom("get_weather", "find", "old-tool"),
    arguments: jsonObject,
    idStem: fc.constantFrom("call_", "toolu:", "fn.get/weather-", "x".repeat(60)),
    result: fc.oneof(
      fc.record({ parts: fc.array(fc.oneof(textPlan, plain("picture", ...media)), { maxLength: 3 }) }),
      fc.record({ json: jsonObject }),
    ),
    isError: fc.boolean(),
    ttl,
    order: fc.nat(),
    /** Whether the result is in the same message as the one before it. */
    isJoined: fc.boolean(),
  });

type CallPlan = ReturnType<typeof callPlan> extends fc.Arbitrary<infer T> ? T : never;

/** What a model says and does, in any order. */
const answerPlan = (media: MediaKinds): fc.Arbitrary<PartPlan> =>
  fc.oneof(
    { weight: 4, arbitrary: textPlan },
    { weight: 1, arbitrary: blankPlan },
    { weight: 2, arbitrary: plain("picture", ...media.assistant) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant("call" as const), call: callPlan(media.result), ttl }) },
    {
      weight: 2,
      arbitrary: fc.record({ kind: fc.constant("thought" as const), text: fc.option(word, { nil: undefined }), ttl }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant("refusal" as const), text: word, ttl }) },
  );

const turnPlan = (media: MediaKinds) =>
  fc.oneof(
    { weight: 1, arbitrary: fc.record({ role: fc.constant("system" as const), parts: spoken(textPlan) }) },
    { weight: 3, arbitrary: fc.record({ role: fc.constant("user" as const), parts: spoken(partPlan(media.user)) }) },
    {
      weight: 3,
      arbitrary: fc.record({
        role: fc.constant("assistant" as const),
        parts: fc.array(answerPlan(media), { maxLength: 6 }),
      }),
    },
  );

type TurnPlan = { readonly role: "system" | "user" | "assistant"; readonly parts: readonly PartPlan[] };

/** Writes plans as messages; every text and picture is distinct from all others by its mark. */
class Writer {
  readonly messages: { readonly role: Role; readonly parts: PartInit[] }[] = [];
  readonly #signatures: Signatures;
  #count = 0;

  constructor(signatures: Signatures) {
    this.#signatures = signatures;
  }

  write({ role, parts }: TurnPlan): void {
    if (role === "system") this.messages.push({ role: Role.SYSTEM, parts: this.#parts(parts, "S") });
    else if (role === "user") this.messages.push({ role: Role.USER, parts: this.#parts(parts, "U") });
    else this.#answer(parts);
  }

  #answer(plans: readonly PartPlan[]): void {
    const turn = this.#count++;
    const thoughts = plans.flatMap((plan) => (plan.kind === "thought" ? [plan.text] : []));
    const sealed = this.#signatures.sealAll(
      `answer ${turn}`,
      thoughts.map((said) => (said === undefined ? undefined : mark("R", this.#count++) + said)),
    );
    const calls: { readonly id: string; readonly plan: CallPlan }[] = [];
    const parts = plans.map((plan): PartInit => {
      if (plan.kind === "thought") {
        const { signature = "", ...value } = sealed.shift() ?? {};
        return marked({ kind: { case: "reasoning", value }, signature }, plan.ttl);
      }
      if (plan.kind === "call") {
        const { name, arguments: argumentsJson, idStem } = plan.call;
        const id = `${idStem}${turn}_${calls.length}`;
        calls.push({ id, plan: plan.call });
        const value = { id, name, input: { case: "argumentsJson" as const, value: argumentsJson } };
        const signature = this.#signatures.signCall(name, argumentsJson);
        return marked({ kind: { case: "toolCall", value }, signature }, plan.ttl);
      }
      return this.#part(plan, "A");
    });
    this.messages.push({ role: Role.ASSISTANT, parts });
    for (const { id, plan } of calls.toSorted((a, b) => a.plan.order - b.plan.order)) this.#result(id, plan);
  }

  #result(toolCallId: string, { result, isError, isJoined, ttl: asked }: CallPlan): void {
    const parts = "json" in result ? [text(result.json)] : this.#parts(result.parts, "T");
    const part = marked({ kind: { case: "toolResult", value: { toolCallId, parts, isError } } }, asked);
    const last = this.messages.at(-1);
    if (isJoined && last?.role === Role.TOOL) last.parts.push(part);
    else this.messages.push({ role: Role.TOOL, parts: [part] });
  }

  #parts(plans: readonly PartPlan[], speaker: Speaker): PartInit[] {
    return plans.map((plan) => this.#part(plan, speaker));
  }

  #part(plan: PartPlan, speaker: Speaker): PartInit {
    const number = this.#count++;
    const signature = speaker === "A" ? this.#signatures.signPart(number) : "";
    return marked({ kind: toKind(plan, number, speaker), signature }, plan.ttl);
  }
}

function toKind(plan: PartPlan, number: number, speaker: Speaker): NonNullable<PartInit["kind"]> {
  const data = pictureOf(number);
  switch (plan.kind) {
    case "text":
      return { case: "text", value: mark(speaker, number) + plan.text };
    case "blank":
      return { case: "text", value: plan.text };
    case "refusal":
      return { case: "refusal", value: mark("N", number) + plan.text };
    case "picture":
      return { case: "image", value: { source: { case: "data", value: data }, mediaType: "image/png" } };
    case "recording":
      return {
        case: "audio",
        value: { source: { case: "data", value: Buffer.from(`RIFF${number}`) }, mediaType: "audio/wav" },
      };
    case "document": {
      const value = Buffer.from(`%PDF-1.7 ${number}`);
      const file = { mediaType: "application/pdf", name: "a.pdf", citations: plan.cites };
      return { case: "file", value: { ...file, source: { case: "data", value } } };
    }
    case "video": {
      const value = Buffer.from(`film ${number}`);
      const excerpt = {
        startOffset: durationFromMs(number * 500),
        endOffset: durationFromMs(60_000),
        framesPerSecond: 0.5,
      };
      const cut = number % 2 === 0 ? excerpt : {};
      return { case: "video", value: { source: { case: "data", value }, mediaType: "video/mp4", ...cut } };
    }
    case "linked video":
      return { case: "video", value: { source: { case: "url", value: `https://films.example/${number}` } } };
    case "spoken":
      return { case: "audio", value: { transcript: mark("V", number) } };
    default:
      throw new Error(`a ${plan.kind} has no place here`);
  }
}

function marked(part: PartInit, asked: Ttl): PartInit {
  if (asked === undefined) return part;
  const lifetime = asked === "default" ? {} : { ttl: durationFromMs(asked * 1000) };
  return { ...part, cacheMark: create(CacheMarkSchema, lifetime) };
}

const text = (value: string): PartInit => ({ kind: { case: "text", value } });

const tools = fc.uniqueArray(
  fc.record({
    name: fc.constantFrom("get_weather", "find", "_send-it", "T2"),
    description: fc.oneof(fc.constant(""), word),
    parametersJson: fc.oneof(fc.constant(""), jsonSchema),
    strict: fc.constantFrom(undefined, true, false),
  }),
  { selector: ({ name }) => name, maxLength: 3 },
);

type ToolPlan = typeof tools extends fc.Arbitrary<(infer T)[]> ? T : never;

function toTool({ strict, ...value }: ToolPlan): MessageInitShape<typeof ToolSchema> {
  return { kind: { case: "function", value: { ...value, ...(strict !== undefined && { strict }) } } };
}

const CHOICES = ["none", "auto", "required", "function", "allowed", undefined] as const;

function toChoice(
  choice: (typeof CHOICES)[number],
  names: readonly string[],
): MessageInitShape<typeof ToolChoiceSchema> | undefined {
  const modes = { none: ToolMode.NONE, auto: ToolMode.AUTO, required: ToolMode.REQUIRED };
  if (choice === undefined || names.length === 0) return undefined;
  if (choice === "function") return { choice: { case: "function", value: names[0]! } };
  if (choice === "allowed") return { choice: { case: "allowed", value: { mode: ToolMode.AUTO, names: [names[0]!] } } };
  return { choice: { case: "mode", value: modes[choice] } };
}

const formats: fc.Arbitrary<MessageInitShape<typeof ResponseFormatSchema> | undefined> = fc.oneof(
  fc.constant(undefined),
  fc.constant({ format: { case: "text" as const, value: {} } }),
  fc.constant({ format: { case: "jsonObject" as const, value: {} } }),
  jsonSchema.map((schemaJson) => ({ format: { case: "jsonSchema" as const, value: { name: "answer", schemaJson } } })),
);

const parameters = fc.record(
  {
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    topP: fc.double({ min: 0, max: 1, noNaN: true }),
    topK: fc.integer({ min: 1, max: 100 }),
    maxOutputTokens: fc.integer({ min: 1, max: 20_000 }),
    stopSequences: fc.array(fc.oneof(fc.string({ minLength: 1, maxLength: 6 }), fc.constant(" \n")), { maxLength: 4 }),
    seed: fc.integer().map(BigInt),
    frequencyPenalty: fc.double({ min: -2, max: 2, noNaN: true }),
    presencePenalty: fc.double({ min: -2, max: 2, noNaN: true }),
    logitBias: fc.constantFrom({}, { "50256": -100 }),
    logprobs: fc.record({ topCount: fc.nat(20) }),
    parallelToolCalls: fc.boolean(),
    reasoning: fc.record(
      {
        effort: fc.constantFrom(
          ReasoningEffort.NONE,
          ReasoningEffort.MINIMAL,
          ReasoningEffort.LOW,
          ReasoningEffort.MEDIUM,
          ReasoningEffort.HIGH,
          ReasoningEffort.XHIGH,
          ReasoningEffort.MAX,
        ),
        maxTokens: fc.integer({ min: 1, max: 40_000 }),
      },
      { requiredKeys: [] },
    ),
    endUserId: fc.constantFrom("user-1", "someone"),
    sessionId: fc.constantFrom("session-1"),
    metadata: fc.constantFrom({}, { team: "blue" }),
    serviceTier: fc.constantFrom("auto", "default", "flex", "priority"),
    store: fc.boolean(),
    verbosity: fc.constantFrom(Verbosity.LOW, Verbosity.MEDIUM, Verbosity.HIGH),
    promptCacheKey: fc.constantFrom("key"),
  },
  { requiredKeys: [] },
);

/** Conversations as core lets them pass: each call has its result, and the model is to speak next. */
export function conversations(signatures: Signatures, media: MediaKinds): fc.Arbitrary<CompletionRequest> {
  return fc
    .record({
      turns: fc.array(turnPlan(media), { maxLength: 7 }),
      last: spoken(partPlan(media.user)),
      tools,
      choice: fc.constantFrom(...CHOICES),
      format: formats,
      parameters,
    })
    .map(({ turns, last, tools: toolPlans, choice, format, parameters: given }) => {
      const writer = new Writer(signatures);
      // Calls answer somebody: one provider refuses a conversation that begins with them.
      if (turns.find(({ role }) => role !== "system")?.role === "assistant")
        writer.write({ role: "user", parts: last });
      for (const plan of turns) writer.write(plan);
      const isAnswered = writer.messages.at(-1)?.role === Role.TOOL;
      if (!isAnswered) writer.write({ role: "user", parts: last });
      const toolChoice = toChoice(
        choice,
        toolPlans.map((tool) => tool.name),
      );
      return create(CompletionRequestSchema, {
        model: "any",
        messages: writer.messages,
        tools: toolPlans.map(toTool),
        ...(toolChoice && { toolChoice }),
        ...(format && { responseFormat: format }),
        ...given,
      });
    });
}
