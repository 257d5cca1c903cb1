import { type CompletionRequest, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { curl, node, type Program, python } from "../programs.ts";
import { toChatJson } from "./chat.ts";
import { toGeminiJson } from "./gemini.ts";
import type { Json } from "./json.ts";
import { toMessagesJson } from "./messages.ts";
import { toResponsesJson } from "./responses.ts";

/** A wire format in which the request of the playground can be sent. */
export interface Format {
  readonly name: string;
  readonly toJson: (request: CompletionRequest) => Json;
  readonly programsFor: (request: CompletionRequest) => readonly Program[];
  /** Names of fields of the request that the format does not have. */
  readonly lacks: (request: CompletionRequest) => readonly string[];
}

type Check = (request: CompletionRequest) => boolean;

const SEED: readonly [string, Check] = ["seed", ({ seed }) => seed !== undefined];
const PENALTIES: readonly [string, Check] = [
  "penalties",
  ({ frequencyPenalty, presencePenalty }) => frequencyPenalty !== undefined || presencePenalty !== undefined,
];
const STOPS: readonly [string, Check] = ["stop sequences", ({ stopSequences }) => stopSequences.length > 0];
const IMAGES: readonly [string, Check] = ["generated images", ({ modalities }) => modalities.length > 0];
const VERBOSITY: readonly [string, Check] = ["verbosity", ({ verbosity }) => verbosity !== Verbosity.UNSPECIFIED];
const JSON_OBJECT: readonly [string, Check] = [
  "JSON without a schema",
  ({ responseFormat }) => responseFormat?.format.case === "jsonObject",
];

const lacks =
  (...checks: readonly (readonly [string, Check])[]): Format["lacks"] =>
  (request) =>
    checks.filter(([, has]) => has(request)).map(([name]) => name);

const OPENAI = {
  python: {
    needs: "pip install openai",
    imports: "from openai import OpenAI",
    client: (origin: string) => `client = OpenAI(
    base_url="${origin}/v1",
    api_key=os.environ["PARLEY_API_KEY"],
)`,
  },
  node: {
    needs: "npm install openai; save as try.mjs",
    imports: 'import OpenAI from "openai";',
    client: (origin: string) => `const client = new OpenAI({
  baseURL: "${origin}/v1",
  apiKey: process.env.PARLEY_API_KEY,
});`,
  },
};

const BEARER = "authorization: Bearer $PARLEY_API_KEY";

/** Programs for Chat Completions. */
export const CHAT_PROGRAMS: readonly Program[] = [
  curl("/v1/chat/completions", [BEARER]),
  python({
    ...OPENAI.python,
    call: "stream = client.chat.completions.create",
    print: `for chunk in stream:
    for choice in chunk.choices:
        print(choice.delta.content or "", end="", flush=True)`,
  }),
  node({
    ...OPENAI.node,
    call: "const stream = await client.chat.completions.create",
    print: `for await (const chunk of stream) {
  for (const { delta } of chunk.choices) process.stdout.write(delta.content ?? "");
}`,
  }),
];

const RESPONSES = [
  curl("/v1/responses", [BEARER]),
  python({
    ...OPENAI.python,
    call: "stream = client.responses.create",
    print: `for event in stream:
    if event.type == "response.output_text.delta":
        print(event.delta, end="", flush=True)`,
  }),
  node({
    ...OPENAI.node,
    call: "const stream = await client.responses.create",
    print: `for await (const event of stream) {
  if (event.type === "response.output_text.delta") process.stdout.write(event.delta);
}`,
  }),
];

const MESSAGES = [
  curl("/v1/messages", ["x-api-key: $PARLEY_API_KEY", "anthropic-version: 2023-06-01"]),
  python({
    needs: "pip install anthropic",
    imports: "from anthropic import Anthropic",
    client: (origin) => `client = Anthropic(
    base_url="${origin}",
    api_key=os.environ["PARLEY_API_KEY"],
)`,
    call: "stream = client.messages.create",
    print: `for event in stream:
    if event.type == "content_block_delta" and event.delta.type == "text_delta":
        print(event.delta.text, end="", flush=True)`,
  }),
  node({
    needs: "npm install @anthropic-ai/sdk; save as try.mjs",
    imports: 'import Anthropic from "@anthropic-ai/sdk";',
    client: (origin) => `const client = new Anthropic({
  baseURL: "${origin}",
  apiKey: process.env.PARLEY_API_KEY,
});`,
    call: "const stream = await client.messages.create",
    print: `for await (const { type, delta } of stream) {
  if (type === "content_block_delta" && delta.type === "text_delta") process.stdout.write(delta.text);
}`,
  }),
];

/** All formats, the one of most clients first. */
export const FORMATS: readonly Format[] = [
  { name: "Chat Completions", toJson: toChatJson, programsFor: () => CHAT_PROGRAMS, lacks: lacks() },
  {
    name: "Responses",
    toJson: toResponsesJson,
    programsFor: () => RESPONSES,
    lacks: lacks(STOPS, SEED, PENALTIES, IMAGES),
  },
  {
    name: "Anthropic Messages",
    toJson: toMessagesJson,
    programsFor: () => MESSAGES,
    lacks: lacks(SEED, PENALTIES, VERBOSITY, IMAGES, JSON_OBJECT),
  },
  {
    name: "Gemini",
    toJson: toGeminiJson,
    programsFor: ({ model }) => [
      curl(`/v1beta/models/${encodeURIComponent(model)}:streamGenerateContent?alt=sse`, [
        "x-goog-api-key: $PARLEY_API_KEY",
      ]),
    ],
    lacks: lacks(VERBOSITY),
  },
];
