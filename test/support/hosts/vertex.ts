import { createServer, type ServerResponse } from "node:http";
import { close, listen, type Received, replyWith, sendEvents, sendJson } from "./server.ts";
import type { IssuedTokens } from "./tokens.ts";

/*
 * A server like Vertex AI in one region, with Gemini's and Anthropic's models and embeddings. Answers and errors are those of the REST
 * reference of Vertex AI ("generateContent", "Text embeddings API", "Use Anthropic's Claude models", docs.cloud.google.com) and of
 * genkit-ai/genkit#4688, read in November 2026.
 */

export const PROJECT = "acme-1";
export const REGION = "europe-west4";
export const GEMINI = "gemini-3-flash";
export const CLAUDE = "claude-sonnet-4-5@20250929";
export const VECTORS = "text-embedding-005";

export interface Vertex {
  /** Without a path. */
  readonly url: string;
  readonly received: Received[];
  close(): void;
}

/** `tokens`: access tokens that it accepts. */
export async function startVertex(tokens: IssuedTokens): Promise<Vertex> {
  const received: Received[] = [];
  const server = createServer(
    replyWith((request, response) => {
      received.push(request);
      serve(request, response, tokens);
    }),
  );
  const port = await listen(server);
  return { url: `http://127.0.0.1:${port}`, received, close: () => close(server) };
}

const PATH =
  /^\/v1(?:beta1)?\/(projects\/([^/]+)\/locations\/([^/]+)\/publishers\/([^/]+)\/models\/([^/:]+)):(\w+)(\?alt=sse)?$/;

function serve({ path, headers, json: body = {} }: Received, response: ServerResponse, tokens: IssuedTokens): void {
  const found = PATH.exec(path);
  if (!tokens.accepts(headers.authorization)) return refuse(response, 401, "UNAUTHENTICATED", NO_TOKEN);
  if (found === null) return refuse(response, 404, "NOT_FOUND", "Not found");
  const [, name = "", project, region, publisher, model, method = "", sse] = found;
  const key = `${publisher}/${model}:${method}${sse ?? ""}`;
  if (project !== PROJECT)
    return refuse(
      response,
      403,
      "PERMISSION_DENIED",
      `Permission 'aiplatform.endpoints.predict' denied on resource '${name}' (or it may not exist).`,
    );
  const answer = region === REGION ? METHODS[key] : undefined;
  if (answer === undefined)
    return refuse(
      response,
      404,
      "NOT_FOUND",
      `Publisher Model \`${name}\` was not found or your project does not have access to it.`,
    );
  answer(body, response);
}

const NO_TOKEN =
  "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.";

function refuse(response: ServerResponse, code: number, status: string, message: string): void {
  sendJson(response, code, { error: { code, message, status } });
}

type Body = Readonly<Record<string, unknown>>;
type Method = (body: Body, response: ServerResponse) => void;

const METHODS: Readonly<Record<string, Method>> = {
  [`google/${GEMINI}:generateContent`]: checked(problemOfContents, (_, response) => sendJson(response, 200, CONTENT)),
  [`google/${GEMINI}:streamGenerateContent?alt=sse`]: checked(problemOfContents, (_, response) =>
    sendEvents(response, [
      {
        ...CONTENT,
        candidates: [{ content: { role: "model", parts: [{ text: "Hallo " }] } }],
        usageMetadata: undefined,
      },
      { ...CONTENT, candidates: [{ content: { role: "model", parts: [{ text: "Vertex" }] }, finishReason: "STOP" }] },
    ]),
  ),
  [`google/${GEMINI}:countTokens`]: checked(problemOfCount, (_, response) =>
    sendJson(response, 200, { totalTokens: 11, totalBillableCharacters: 40 }),
  ),
  [`google/${VECTORS}:predict`]: checked(problemOfInstances, ({ instances }, response) =>
    sendJson(response, 200, {
      predictions: (instances as unknown[]).map(() => ({
        embeddings: { values: [0.5, -0.25], statistics: { truncated: false, token_count: 3 } },
      })),
      metadata: { billableCharacterCount: 12 },
    }),
  ),
  [`anthropic/${CLAUDE}:rawPredict`]: checked(problemOfMessages, ({ stream }, response) =>
    stream === true
      ? refuse(response, 400, "INVALID_ARGUMENT", "stream: use streamRawPredict")
      : sendJson(response, 200, MESSAGE),
  ),
  [`anthropic/${CLAUDE}:streamRawPredict`]: checked(problemOfMessages, ({ stream }, response) =>
    stream === true ? sendMessageEvents(response) : refuse(response, 400, "INVALID_ARGUMENT", "stream: must be true"),
  ),
  "anthropic/count-tokens:rawPredict": ({ model, messages }, response) =>
    model === CLAUDE && Array.isArray(messages)
      ? sendJson(response, 200, { input_tokens: 12 })
      : refuse(response, 400, "INVALID_ARGUMENT", "model: Field required"),
};

function checked(problemOf: (body: Body) => string | undefined, answer: Method): Method {
  return (body, response) => {
    const problem = problemOf(body);
    if (problem === undefined) answer(body, response);
    else refuse(response, 400, "INVALID_ARGUMENT", problem);
  };
}

function unknownName(body: Body, known: readonly string[]): string | undefined {
  const name = Object.keys(body).find((key) => !known.includes(key));
  return name === undefined ? undefined : `Invalid JSON payload received. Unknown name "${name}": Cannot find field.`;
}

const CONTENT_FIELDS = ["contents", "systemInstruction", "tools", "generationConfig"];

function problemOfContents(body: Body): string | undefined {
  const contents = body["contents"];
  // Unlike the Gemini API, Vertex AI requires a role of each content.
  if (!Array.isArray(contents) || contents.some(({ role }: { role?: unknown }) => role !== "user" && role !== "model"))
    return "Please use a valid role: user, model.";
  return unknownName(body, [...CONTENT_FIELDS, "toolConfig", "safetySettings", "serviceTier", "labels"]);
}

function problemOfCount(body: Body): string | undefined {
  return problemOfContents(body) ?? unknownName(body, CONTENT_FIELDS);
}

function problemOfInstances({ instances, parameters, ...others }: Body): string | undefined {
  if (!Array.isArray(instances) || instances.some(({ content }: { content?: unknown }) => content === undefined))
    return "The text content is empty.";
  return (
    unknownName(others, []) ??
    unknownName((parameters ?? {}) as Body, ["autoTruncate", "outputDimensionality"]) ??
    (instances as Body[]).map((each) => unknownName(each, ["content", "task_type", "title"])).find(Boolean)
  );
}

function problemOfMessages(body: Body): string | undefined {
  if (body["model"] !== undefined) return "model: Extra inputs are not permitted";
  const version = body["anthropic_version"];
  // The documented version, or a date, which Anthropic's own client sends as of 2026.
  if (typeof version !== "string" || !/^(?:vertex-2023-10-16|\d{4}-\d{2}-\d{2})$/.test(version))
    return "anthropic_version: Field required";
  return Array.isArray(body["messages"]) ? undefined : "messages: Field required";
}

const CONTENT = {
  candidates: [
    { content: { role: "model", parts: [{ text: "Hallo Vertex" }] }, finishReason: "STOP", avgLogprobs: -0.1 },
  ],
  usageMetadata: {
    promptTokenCount: 8,
    candidatesTokenCount: 3,
    totalTokenCount: 11,
    trafficType: "ON_DEMAND",
    promptTokensDetails: [{ modality: "TEXT", tokenCount: 8 }],
  },
  modelVersion: GEMINI,
  createTime: "2026-11-20T10:00:00.000000Z",
  responseId: "r-1",
};

const MESSAGE = {
  id: "msg_vrtx_01",
  type: "message",
  role: "assistant",
  model: "claude-sonnet-4-5-20250929",
  content: [{ type: "text", text: "Bonjour Vertex" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: 10, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 4 },
};

function sendMessageEvents(response: ServerResponse): void {
  const events = [
    { type: "message_start", message: { ...MESSAGE, content: [], stop_reason: null } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Bonjour Vertex" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 4 } },
    { type: "message_stop" },
  ];
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}
