import type { Choice, CompletionChunk, CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { Message, Part } from "../../../gen/parley/v1/message_pb.js";
import type { Tool, ToolChoice } from "../../../gen/parley/v1/tool_pb.js";
import { deltaChunk } from "../../core/chunks.ts";
import type { Answer, Provider, Translation, UpstreamCall } from "../../core/provider.ts";
import { isObject, parsed } from "./json.ts";

/*
 * Custom tools for dialects without them: the tool is sent as a function with one text, `input`, and its calls become custom calls again.
 */

const PARAMETERS = JSON.stringify({
  type: "object",
  properties: { input: { type: "string", description: "The tool's input, as it is." } },
  required: ["input"],
  additionalProperties: false,
});

/** A translation that remembers which functions stand for custom tools. */
interface Wrapped extends Translation {
  readonly customTools: ReadonlySet<string>;
}

/** Wraps a provider without custom tools into one that takes them. */
export function withCustomTools(provider: Provider): Provider {
  return {
    ...provider,
    translate(request, model, options) {
      if (!hasCustom(request)) return provider.translate(request, model, options);
      const translation = provider.translate(wrap(request), model, options);
      const wrapped: Wrapped = Object.assign(translation, { customTools: new Set(customNames(request.tools)) });
      return wrapped;
    },
    create(call) {
      const names = customToolsOf(call);
      const answer = provider.create(call);
      return names === undefined ? answer : answer.then((given) => unwrapAnswer(given, names));
    },
    stream(call, emit) {
      const names = customToolsOf(call);
      if (names === undefined) return provider.stream(call, emit);
      const unwrapper = new ChunkUnwrapper(names);
      return provider.stream(call, (batch) => {
        const unwrapped = batch.flatMap((chunk) => unwrapper.read(chunk));
        return unwrapped.length === 0 ? undefined : emit(unwrapped);
      });
    },
  };
}

function unwrapAnswer(answer: Answer, names: ReadonlySet<string>): Answer {
  return { ...answer, choices: answer.choices.map((choice) => unwrap(choice, names)) };
}

function customToolsOf({ translation }: UpstreamCall): ReadonlySet<string> | undefined {
  return "customTools" in translation ? (translation as Wrapped).customTools : undefined;
}

function customNames(tools: readonly Tool[]): string[] {
  return tools.flatMap(({ kind }) => (kind.case === "custom" ? [kind.value.name] : []));
}

function hasCustom({ tools, toolChoice, messages }: CompletionRequest): boolean {
  return (
    toolChoice?.choice.case === "custom" ||
    tools.some(({ kind }) => kind.case === "custom") ||
    messages.some(({ parts }) => parts.some(isCustomCall))
  );
}

const isCustomCall = ({ kind }: Part): boolean => kind.case === "toolCall" && kind.value.input.case === "customInput";

/** The request with functions for custom tools. */
function wrap(request: CompletionRequest): CompletionRequest {
  const wrapped = { ...request, tools: request.tools.map(wrapTool), messages: request.messages.map(wrapMessage) };
  if (request.toolChoice !== undefined) wrapped.toolChoice = wrapChoice(request.toolChoice);
  return wrapped;
}

function wrapTool(tool: Tool): Tool {
  if (tool.kind.case !== "custom") return tool;
  const { name, description, formatJson } = tool.kind.value;
  const told = [description, describeFormat(formatJson)].filter((text) => text !== "").join("\n\n");
  const value = { $typeName: "parley.v1.FunctionTool", name, description: told, parametersJson: PARAMETERS } as const;
  return { ...tool, kind: { case: "function", value } };
}

/** Describes a grammar for the model. It is not enforced. */
function describeFormat(formatJson: string): string {
  const format = formatJson === "" ? undefined : parsed(formatJson);
  if (!isObject(format)) return "";
  // In chat completions the grammar is an object of its own.
  const grammar = isObject(format["grammar"]) ? format["grammar"] : format;
  const { syntax, definition } = grammar;
  if (typeof definition !== "string") return "";
  return `The input must match this ${typeof syntax === "string" ? `${syntax} ` : ""}grammar:\n${definition}`;
}

function wrapChoice({ choice, ...rest }: ToolChoice): ToolChoice {
  return { ...rest, choice: choice.case === "custom" ? { case: "function", value: choice.value } : choice };
}

function wrapMessage(message: Message): Message {
  if (!message.parts.some(isCustomCall)) return message;
  return { ...message, parts: message.parts.map(wrapCall) };
}

function wrapCall(part: Part): Part {
  const { kind } = part;
  if (kind.case !== "toolCall" || kind.value.input.case !== "customInput") return part;
  const argumentsJson = JSON.stringify({ input: kind.value.input.value });
  return {
    ...part,
    kind: { case: "toolCall", value: { ...kind.value, input: { case: "argumentsJson", value: argumentsJson } } },
  };
}

function unwrap(choice: Choice, names: ReadonlySet<string>): Choice {
  if (choice.message === undefined) return choice;
  const parts = choice.message.parts.map((part) => unwrapCall(part, names));
  return { ...choice, message: { ...choice.message, parts } };
}

function unwrapCall(part: Part, names: ReadonlySet<string>): Part {
  const { kind } = part;
  if (kind.case !== "toolCall" || !names.has(kind.value.name)) return part;
  const customInput = toInput(kind.value.input.value ?? "");
  return {
    ...part,
    kind: { case: "toolCall", value: { ...kind.value, input: { case: "customInput", value: customInput } } },
  };
}

/** The input in a function's arguments. Arguments of another shape are the input themselves. */
function toInput(argumentsJson: string): string {
  const value = parsed(argumentsJson);
  const input = isObject(value) ? value["input"] : undefined;
  return typeof input === "string" ? input : argumentsJson;
}

/** Unwraps calls in the chunks of a stream. Their arguments are gathered, because only whole ones can be parsed. */
class ChunkUnwrapper {
  readonly #names: ReadonlySet<string>;
  /** Arguments so far of unfinished calls, by choice and part. */
  readonly #calls = new Map<string, string>();

  constructor(names: ReadonlySet<string>) {
    this.#names = names;
  }

  read(chunk: CompletionChunk): CompletionChunk[] {
    const { event } = chunk;
    if (event.case === "partStart") return [this.#start(chunk, event.value)];
    if (event.case !== "partDelta" && event.case !== "partFinish") return [chunk];
    const key = `${event.value.choiceIndex} ${event.value.partIndex}`;
    const gathered = this.#calls.get(key);
    if (gathered === undefined) return [chunk];
    if (event.case === "partDelta") {
      const { content } = event.value;
      if (content.case !== "argumentsJson") return [chunk];
      this.#calls.set(key, gathered + content.value);
      return [];
    }
    this.#calls.delete(key);
    return [deltaChunk(event.value, { case: "customInput", value: toInput(gathered) }), chunk];
  }

  #start(
    chunk: CompletionChunk,
    { choiceIndex, partIndex, part, ...rest }: Extract<CompletionChunk["event"], { case: "partStart" }>["value"],
  ): CompletionChunk {
    if (part?.kind.case !== "toolCall" || !this.#names.has(part.kind.value.name)) return chunk;
    this.#calls.set(`${choiceIndex} ${partIndex}`, "");
    const call = { ...part.kind.value, input: { case: "customInput", value: "" } } as const;
    const value = {
      ...rest,
      choiceIndex,
      partIndex,
      part: { ...part, kind: { case: "toolCall", value: call } as const },
    };
    return { ...chunk, event: { case: "partStart", value } };
  }
}
