import { create, type MessageInitShape } from "@bufbuild/protobuf";
import fc from "fast-check";
import {
  type CompletionRequest,
  CompletionRequestSchema,
  ReasoningEffort,
  type ResponseFormatSchema,
} from "../../gen/parley/v1/completion_pb.js";
import {
  type ContentPartSchema,
  type MessageSchema,
  type ReasoningBlockSchema,
  Role,
  type ToolCallSchema,
  type ToolChoiceSchema,
  ToolMode,
  type ToolSchema,
} from "../../gen/parley/v1/message_pb.js";
import { jsonObject, jsonSchema } from "./json-text.ts";
import { mark, pictureOf, type Speaker } from "./marks.ts";

type MessageInit = MessageInitShape<typeof MessageSchema>;
type PartInit = MessageInitShape<typeof ContentPartSchema>;
type ReasoningInit = MessageInitShape<typeof ReasoningBlockSchema>;
type CallInit = MessageInitShape<typeof ToolCallSchema>;

/** How the state that a provider keeps in a conversation is made: it has to be one that the provider gave. */
export interface Signatures {
  /** Of the reasoning blocks of one answer, given their texts; `undefined` stands for a redacted one. */
  sealAll(answer: string, texts: readonly (string | undefined)[]): ReasoningInit[];
  /** Of a call; empty when it has none. */
  signCall(name: string, argumentsJson: string): string;
}

const word = fc.string({ unit: "binary", maxLength: 12 }).filter((text) => !text.includes("⟦") && text.isWellFormed());

type PartPlan =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "blank" }
  | { readonly kind: "picture" };

const textPlan: fc.Arbitrary<PartPlan> = word.map((text) => ({ kind: "text", text }));
const partPlan: fc.Arbitrary<PartPlan> = fc.oneof(
  { weight: 4, arbitrary: textPlan },
  { weight: 1, arbitrary: fc.constant({ kind: "blank" } as const) },
  { weight: 2, arbitrary: fc.constant({ kind: "picture" } as const) },
);

/** Something said at all: at least one text among the parts. */
const spoken = (part: fc.Arbitrary<PartPlan>): fc.Arbitrary<PartPlan[]> =>
  fc
    .tuple(fc.array(part, { maxLength: 2 }), textPlan, fc.array(part, { maxLength: 1 }))
    .map(([before, text, after]) => [...before, text, ...after]);

const callPlan = fc.record({
  name: fc.constantFrom("get_weather", "find", "old-tool"),
  arguments: jsonObject,
  idStem: fc.constantFrom("call_", "toolu:", "fn.get/weather-", "x".repeat(60)),
  result: fc.oneof(
    fc.record({ parts: fc.array(fc.oneof(textPlan, fc.constant({ kind: "picture" } as const)), { maxLength: 3 }) }),
    fc.record({ json: jsonObject }),
  ),
  order: fc.nat(),
});

const turnPlan = fc.oneof(
  { weight: 1, arbitrary: fc.record({ role: fc.constant("system" as const), parts: spoken(textPlan) }) },
  { weight: 3, arbitrary: fc.record({ role: fc.constant("user" as const), parts: spoken(partPlan) }) },
  {
    weight: 3,
    arbitrary: fc.record({
      role: fc.constant("assistant" as const),
      parts: fc.oneof(spoken(partPlan), fc.constant([])),
      calls: fc.array(callPlan, { maxLength: 3 }),
      thoughts: fc.array(fc.option(word, { nil: undefined }), { maxLength: 2 }),
    }),
  },
);

type TurnPlan = typeof turnPlan extends fc.Arbitrary<infer T> ? T : never;

/** Writes plans as messages; every text and picture is told apart from all others by its mark. */
class Writer {
  readonly messages: MessageInit[] = [];
  readonly #signatures: Signatures;
  #count = 0;

  constructor(signatures: Signatures) {
    this.#signatures = signatures;
  }

  write(plan: TurnPlan): void {
    if (plan.role === "system") this.messages.push({ role: Role.SYSTEM, content: this.#parts(plan.parts, "S") });
    else if (plan.role === "user") this.messages.push({ role: Role.USER, content: this.#parts(plan.parts, "U") });
    else this.#answer(plan);
  }

  #answer({ parts, calls, thoughts }: Extract<TurnPlan, { role: "assistant" }>): void {
    const turn = this.#count++;
    const toolCalls = calls.map((call, index): CallInit => {
      const { name, arguments: argumentsJson, idStem } = call;
      const id = `${idStem}${turn}_${index}`;
      return { id, name, arguments: argumentsJson, signature: this.#signatures.signCall(name, argumentsJson) };
    });
    this.messages.push({
      role: Role.ASSISTANT,
      content: this.#parts(parts, "A"),
      toolCalls,
      reasoning: this.#signatures.sealAll(`answer ${turn}`, thoughts),
    });
    const results = calls.map(({ result }, index): MessageInit => {
      const content = "json" in result ? [text(result.json)] : this.#parts(result.parts, "T");
      return { role: Role.TOOL, toolCallId: toolCalls[index]?.id ?? "", content };
    });
    const order = results.map((_, index) => index).toSorted((a, b) => (calls[a]?.order ?? 0) - (calls[b]?.order ?? 0));
    for (const index of order) this.messages.push(results[index]!);
  }

  #parts(plans: readonly PartPlan[], speaker: Speaker): PartInit[] {
    return plans.map((plan) => {
      const number = this.#count++;
      if (plan.kind === "blank") return text(" \n");
      if (plan.kind === "text") return text(mark(speaker, number) + plan.text);
      const value = { source: { case: "data" as const, value: pictureOf(number) }, mediaType: "image/png" };
      return { content: { case: "image", value } };
    });
  }
}

const text = (value: string): PartInit => ({ content: { case: "text", value } });

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
    maxTokens: fc.integer({ min: 1, max: 20_000 }),
    stop: fc.array(fc.oneof(fc.string({ minLength: 1, maxLength: 6 }), fc.constant(" \n")), { maxLength: 4 }),
    seed: fc.integer().map(BigInt),
    frequencyPenalty: fc.double({ min: -2, max: 2, noNaN: true }),
    presencePenalty: fc.double({ min: -2, max: 2, noNaN: true }),
    logitBias: fc.constantFrom({}, { "50256": -100 }),
    logprobs: fc.boolean(),
    parallelToolCalls: fc.boolean(),
    reasoningEffort: fc.constantFrom(
      ReasoningEffort.NONE,
      ReasoningEffort.LOW,
      ReasoningEffort.MEDIUM,
      ReasoningEffort.HIGH,
      ReasoningEffort.MAX,
    ),
    user: fc.constantFrom("user-1", "someone"),
    metadata: fc.constantFrom({}, { team: "blue" }),
    serviceTier: fc.constantFrom("auto", "default", "flex", "priority"),
    store: fc.boolean(),
    verbosity: fc.constantFrom("low", "medium", "high"),
    promptCacheKey: fc.constantFrom("key"),
  },
  { requiredKeys: [] },
);

/** Conversations as core lets them pass: each call has its result, and the model is to speak next. */
export function conversations(signatures: Signatures): fc.Arbitrary<CompletionRequest> {
  return fc
    .record({
      turns: fc.array(turnPlan, { maxLength: 7 }),
      last: spoken(partPlan),
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
