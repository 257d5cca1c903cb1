import { createServer, type ServerResponse } from "node:http";
import { close, listen, type Received, replyWith, sendEvents, sendJson } from "./server.ts";
import type { IssuedTokens } from "./tokens.ts";

/*
 * A server like a resource of Azure OpenAI: the v1 API and the addresses of deployments. Answers and errors are those of "Azure OpenAI in
 * Azure AI Foundry Models REST API reference" and "Content filtering", learn.microsoft.com, and of issues of their users
 * (MicrosoftDocs/azure-docs#114013, chatboxai/chatbox#646), read in November 2026.
 */

export const AZURE_KEY = "azure-key-0123456789abcdef0123456789";
export const DEPLOYMENT = "gpt-5-in-sweden";
export const EMBEDDINGS = "embeddings-in-sweden";
const VERSION = "2024-10-21";

export interface Azure {
  /** Without a path. */
  readonly url: string;
  readonly received: Received[];
  close(): void;
}

/** `tokens`: access tokens that it accepts in addition to AZURE_KEY. */
export async function startAzure(tokens?: IssuedTokens): Promise<Azure> {
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

function serve(request: Received, response: ServerResponse, tokens: IssuedTokens | undefined): void {
  const { pathname, searchParams } = new URL(request.path, "http://azure");
  const v1 = /^\/openai\/v1\/(chat\/completions|responses|embeddings)$/.exec(pathname);
  const classic = /^\/openai\/deployments\/([^/]+)\/(chat\/completions|embeddings)$/.exec(pathname);
  const version = searchParams.get("api-version");
  const isKnown = v1 !== null ? version === null : classic !== null && version === VERSION;
  if (!isKnown) return sendJson(response, 404, { error: { code: "404", message: "Resource not found" } });
  const { "api-key": key, authorization } = request.headers;
  if (key !== AZURE_KEY && tokens?.accepts(authorization) !== true)
    return sendJson(response, 401, key === undefined ? WITHOUT_TOKEN : WITHOUT_KEY);
  const deployment = v1 === null ? decodeURIComponent(classic![1]!) : request.json?.["model"];
  const method = (v1?.[1] ?? classic![2])!;
  if (deployment !== (method === "embeddings" ? EMBEDDINGS : DEPLOYMENT)) return sendJson(response, 404, UNKNOWN);
  if (method === "responses") return sendJson(response, 200, RESPONSE);
  if (method === "embeddings") return sendJson(response, 200, toEmbeddings(request.json!));
  const text = JSON.stringify(request.json?.["messages"]);
  if (text.includes("something violent")) return sendJson(response, 400, FILTERED);
  // An error text that repeats the access token. No service is known to send one; the gateway must remove the token anyway.
  if (text.includes("repeat"))
    return sendJson(response, 400, { error: { message: `wrong: ${authorization?.slice("Bearer ".length)}` } });
  if (text.includes("busy")) return sendJson(response, 429, BUSY, { "retry-after-ms": "1500", "retry-after": "2" });
  if (request.json?.["stream"] === true) return sendEvents(response, [...CHUNKS, "[DONE]"]);
  sendJson(response, 200, ANSWER);
}

const WITHOUT_KEY = {
  error: {
    code: "401",
    message:
      "Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.",
  },
};
const WITHOUT_TOKEN = {
  error: {
    code: "401",
    message:
      "Unauthorized. Access token is missing, invalid, audience is incorrect (https://cognitiveservices.azure.com), or have expired.",
  },
};
const UNKNOWN = {
  error: {
    code: "DeploymentNotFound",
    message:
      "The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.",
  },
};
const BUSY = {
  error: {
    code: "429",
    message:
      "Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded token rate limit of your current OpenAI S0 pricing tier. Please retry after 2 seconds.",
  },
};
const SAFE = { filtered: false, severity: "safe" };
const FILTERED = {
  error: {
    message:
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify your prompt and retry.",
    type: null,
    param: "prompt",
    code: "content_filter",
    status: 400,
    innererror: {
      code: "ResponsibleAIPolicyViolation",
      content_filter_result: {
        hate: SAFE,
        self_harm: SAFE,
        sexual: SAFE,
        violence: { filtered: true, severity: "medium" },
      },
    },
  },
};
const PROMPT_FILTER = [{ prompt_index: 0, content_filter_results: { hate: SAFE, violence: SAFE } }];
const USAGE = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12 };
const HEAD = { id: "chatcmpl-1", created: 1_763_000_000, model: "gpt-5-2025-08-07", system_fingerprint: "fp_1" };
const ANSWER = {
  ...HEAD,
  object: "chat.completion",
  choices: [
    {
      index: 0,
      message: { role: "assistant", content: "Hej från Azure", refusal: null },
      finish_reason: "stop",
      logprobs: null,
      content_filter_results: { hate: SAFE, violence: SAFE },
    },
  ],
  prompt_filter_results: PROMPT_FILTER,
  usage: USAGE,
};
const RESPONSE = {
  id: "resp_1",
  object: "response",
  status: "completed",
  output: [
    { id: "msg_1", type: "message", role: "assistant", content: [{ type: "output_text", text: "Hej från Azure" }] },
  ],
  usage: { input_tokens: 9, output_tokens: 3, total_tokens: 12 },
};
const CHUNK = { ...HEAD, object: "chat.completion.chunk" };
const choice = (delta: object, finish_reason: string | null = null) => ({
  index: 0,
  delta,
  finish_reason,
  logprobs: null,
  content_filter_results: finish_reason === null ? { hate: SAFE } : {},
});
const CHUNKS = [
  { id: "", object: "", created: 0, model: "", choices: [], prompt_filter_results: PROMPT_FILTER },
  { ...CHUNK, choices: [choice({ role: "assistant", content: "", refusal: null })], usage: null },
  { ...CHUNK, choices: [choice({ content: "Hej från" })], usage: null },
  { ...CHUNK, choices: [choice({ content: " Azure" })], usage: null },
  { ...CHUNK, choices: [choice({}, "stop")], usage: null },
  { ...CHUNK, choices: [], usage: USAGE },
];

function toEmbeddings({ input, encoding_format: format }: Readonly<Record<string, unknown>>): object {
  const inputs = Array.isArray(input) ? input : [input];
  const values = new Float32Array([0.5, -0.25]);
  const embedding = format === "base64" ? Buffer.from(values.buffer).toString("base64") : [...values];
  return {
    object: "list",
    model: "text-embedding-3-small",
    data: inputs.map((_, index) => ({ object: "embedding", index, embedding })),
    usage: { prompt_tokens: 4, total_tokens: 4 },
  };
}
