import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { chunkFrame, eventFrame, exceptionFrame } from "./frames.ts";
import { type KnownKeys, type Refused, refuseSignature } from "./sigv4.ts";

type Json = Readonly<Record<string, unknown>>;

/** One request that was authenticated. */
interface BedrockRequest {
  readonly operation: string;
  /** Decoded. */
  readonly model: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: Json;
}

/**
 * A server that behaves like Amazon Bedrock's runtime in a region: it verifies signatures and keys, and refuses bodies
 * that the documentation does not allow. The last text of the user selects the answer: `call` a tool call, `throttle
 * MODEL` a throttling error of that model, `break` a stream that ends with an error, any other text an echo. A tool's
 * result is answered with that result.
 */
export interface BedrockServer {
  readonly url: string;
  readonly requests: BedrockRequest[];
  /** Errors of refused requests, oldest first. */
  readonly refused: Refused[];
  close(): Promise<void>;
}

export interface BedrockRules {
  readonly keys: readonly KnownKeys[];
  readonly region: string;
  /** Bedrock API keys. Default: none. */
  readonly apiKeys?: readonly string[];
}

const OPERATION = /^\/model\/([^/]+)\/(converse|converse-stream|invoke|invoke-with-response-stream|count-tokens)$/;

export async function startBedrock(rules: BedrockRules): Promise<BedrockServer> {
  const requests: BedrockRequest[] = [];
  const refused: Refused[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.once("end", () => {
      const path = request.url ?? "";
      const refuse = (status: number, error: Refused): void => {
        refused.push(error);
        answerError(response, status, error);
      };
      const wrong = authenticate(request, Buffer.concat(pieces), rules);
      if (wrong !== undefined) return refuse(403, wrong);
      const [, segment = "", operation = ""] = OPERATION.exec(path) ?? [];
      if (request.method !== "POST" || operation === "")
        return refuse(404, { type: "UnknownOperationException", message: path });
      const body = JSON.parse(Buffer.concat(pieces).toString()) as Json;
      const model = decodeURIComponent(segment);
      requests.push({ operation, model, path, headers: request.headers, body });
      const problem = operation === "count-tokens" ? undefined : problemOf(operation, body);
      if (problem !== undefined) return refuse(400, { type: "ValidationException", message: problem });
      if (model.includes("unknown"))
        return refuse(400, { type: "ValidationException", message: "The provided model identifier is invalid." });
      answer(response, { operation, model, body });
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    refused,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function authenticate(
  { method = "", url = "", headers }: IncomingMessage,
  body: Buffer,
  { keys, region, apiKeys = [] }: BedrockRules,
): Refused | undefined {
  const bearer = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1];
  if (bearer === undefined)
    return refuseSignature({ method, path: url, headers, body }, { keys, region, nowMs: Date.now() });
  return apiKeys.includes(bearer)
    ? undefined
    : { type: "AccessDeniedException", message: "Authentication failed: Please make sure your API Key is valid." };
}

const CONVERSE_FIELDS: ReadonlySet<string> = new Set([
  "additionalModelRequestFields",
  "additionalModelResponseFieldPaths",
  "inferenceConfig",
  "messages",
  "outputConfig",
  "serviceTier",
  "system",
  "toolConfig",
]);

/** Returns the service's error text for an invalid body; undefined for a valid one. */
function problemOf(operation: string, body: Json): string | undefined {
  const messages = (body["messages"] ?? []) as { role: string; content: Json[] | string }[];
  const unknown = Object.keys(body).filter((key) =>
    operation.startsWith("invoke")
      ? ["model", "stream", "metadata", "service_tier"].includes(key)
      : !CONVERSE_FIELDS.has(key),
  );
  if (unknown.length > 0) return `Malformed input request: extraneous key [${unknown.join()}] is not permitted`;
  if (operation.startsWith("invoke"))
    // The documented version, or a later date, because Anthropic's own client sends a different version.
    return /^(?:bedrock-2023-05-31|202\d-\d\d-\d\d)$/.test(String(body["anthropic_version"]))
      ? undefined
      : "anthropic_version: Field required";
  if (messages[0]?.role !== "user") return "A conversation must start with a user message.";
  const roles = messages.map(({ role }) => role);
  if (roles.some((role, index) => role === roles[index - 1])) return "Roles must alternate between user and assistant.";
  const blocks = messages.flatMap(({ content }) => content as Json[]);
  if (blocks.some(({ text }) => typeof text === "string" && text.trim() === "")) return "The text field is blank.";
  if (body["toolConfig"] === undefined && blocks.some((block) => "toolUse" in block || "toolResult" in block))
    return "The toolConfig field must be defined when using toolUse and toolResult content blocks.";
  return undefined;
}

interface Said {
  readonly operation: string;
  readonly model: string;
  readonly body: Json;
}

function answer(response: ServerResponse, { operation, model, body }: Said): void {
  const said = lastSaid(body);
  if (operation === "count-tokens") return answerJson(response, { inputTokens: 42 });
  if (said === `throttle ${model}`)
    return answerError(response, 429, { type: "ThrottlingException", message: "Too many requests, please wait." });
  const called = said.includes("call");
  if (operation === "converse") return answerJson(response, converseAnswer(said, called));
  if (operation === "invoke") return answerJson(response, messagesAnswer(said, called));
  response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
  const broken = said.includes("break") ? exceptionFrame("modelStreamErrorException", "The model broke.") : undefined;
  const frames = operation === "converse-stream" ? converseFrames(said, called) : messagesFrames(said, called);
  // Writes of 37 bytes split the frames at arbitrary offsets, as a network may.
  const bytes = Buffer.concat(broken === undefined ? frames : [...frames.slice(0, 3), broken]);
  for (let at = 0; at < bytes.length; at += 37) response.write(bytes.subarray(at, at + 37));
  response.end();
}

/** Returns the last text of the user, or of a tool's result. */
function lastSaid({ messages = [] }: { messages?: unknown } & Json): string {
  const content = (messages as { content: Json[] | string }[]).at(-1)?.content ?? "";
  if (typeof content === "string") return content;
  const block = content.findLast((each) => !("cachePoint" in each)) ?? {};
  const result = (block["toolResult"] ?? (block["type"] === "tool_result" ? block : undefined)) as Json | undefined;
  if (result === undefined) return String(block["text"]);
  const inner = result["content"];
  return `result: ${typeof inner === "string" ? inner : String((inner as Json[])[0]?.["text"])}`;
}

const USAGE = { inputTokens: 7, outputTokens: 3, totalTokens: 15, cacheReadInputTokens: 5, cacheWriteInputTokens: 0 };
const CALL = { toolUseId: "tooluse_1", name: "weather" };
const INPUT = { city: "Bern" };

function converseAnswer(said: string, called: boolean): object {
  const content = [{ text: `You said ${said}` }, ...(called ? [{ toolUse: { ...CALL, input: INPUT } }] : [])];
  return {
    output: { message: { role: "assistant", content } },
    stopReason: called ? "tool_use" : "end_turn",
    usage: USAGE,
    metrics: { latencyMs: 12 },
  };
}

function converseFrames(said: string, called: boolean): Buffer[] {
  const input = JSON.stringify(INPUT);
  return [
    eventFrame("messageStart", { role: "assistant", p: "ab" }),
    eventFrame("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "You said " } }),
    eventFrame("contentBlockDelta", { contentBlockIndex: 0, delta: { text: said } }),
    eventFrame("contentBlockStop", { contentBlockIndex: 0 }),
    ...(called
      ? [
          eventFrame("contentBlockStart", { contentBlockIndex: 1, start: { toolUse: CALL } }),
          eventFrame("contentBlockDelta", { contentBlockIndex: 1, delta: { toolUse: { input: input.slice(0, 5) } } }),
          eventFrame("contentBlockDelta", { contentBlockIndex: 1, delta: { toolUse: { input: input.slice(5) } } }),
          eventFrame("contentBlockStop", { contentBlockIndex: 1 }),
        ]
      : []),
    eventFrame("messageStop", { stopReason: called ? "tool_use" : "end_turn" }),
    eventFrame("metadata", { usage: USAGE, metrics: { latencyMs: 12 } }),
  ];
}

const COUNTED = { input_tokens: 7, cache_read_input_tokens: 5, cache_creation_input_tokens: 0 };

function messagesAnswer(said: string, called: boolean): object {
  const use = { type: "tool_use", id: "toolu_bdrk_1", name: "weather", input: INPUT };
  return {
    id: "msg_bdrk_1",
    type: "message",
    role: "assistant",
    model: "claude",
    content: [{ type: "text", text: `You said ${said}` }, ...(called ? [use] : [])],
    stop_reason: called ? "tool_use" : "end_turn",
    stop_sequence: null,
    usage: { ...COUNTED, output_tokens: 3 },
  };
}

function messagesFrames(said: string, called: boolean): Buffer[] {
  const { content: _, ...message } = messagesAnswer(said, called) as Json;
  const use = { type: "tool_use", id: "toolu_bdrk_1", name: "weather", input: {} };
  const delta = (index: number, value: object): Buffer =>
    chunkFrame({ type: "content_block_delta", index, delta: value });
  return [
    chunkFrame({ type: "message_start", message: { ...message, content: [], stop_reason: null } }),
    chunkFrame({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    delta(0, { type: "text_delta", text: "You said " }),
    delta(0, { type: "text_delta", text: said }),
    chunkFrame({ type: "content_block_stop", index: 0 }),
    ...(called
      ? [
          chunkFrame({ type: "content_block_start", index: 1, content_block: use }),
          delta(1, { type: "input_json_delta", partial_json: JSON.stringify(INPUT) }),
          chunkFrame({ type: "content_block_stop", index: 1 }),
        ]
      : []),
    chunkFrame({
      type: "message_delta",
      delta: { stop_reason: called ? "tool_use" : "end_turn", stop_sequence: null },
      usage: { output_tokens: 3 },
    }),
    chunkFrame({
      type: "message_stop",
      "amazon-bedrock-invocationMetrics": { inputTokenCount: 7, outputTokenCount: 3, invocationLatency: 12 },
    }),
  ];
}

function answerJson(response: ServerResponse, body: object): void {
  response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body));
}

function answerError(response: ServerResponse, status: number, { type, message }: Refused): void {
  response
    .writeHead(status, {
      "content-type": "application/json",
      "x-amzn-errortype": `${type}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
    })
    .end(JSON.stringify({ message }));
}
