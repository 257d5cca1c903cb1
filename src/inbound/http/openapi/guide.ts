import { FAILURE_ADVICE } from "../../failure-advice.ts";
import { FAILURE_TABLE, GRPC_STATUS } from "../../failure-table.ts";
import { MAX_REQUEST_JSON } from "../../../encoding/json-size.ts";
import { MAX_FALLBACKS, MAX_MESSAGES, MAX_STOPS } from "../../../core/validate.ts";
import type { FailureCode } from "../../../core/failure.ts";
import { MAX_BODY_BYTES } from "../exchange.ts";
import { errorCodesOf } from "./errors.ts";

/**
 * Markdown for facts that schemas cannot express: each heading is a section of the API reference with its own address.
 * `grpcPort`: port of gRPC.
 */
export function guide(grpcPort: number): string {
  return `OpenAI-compatible chat completions in front of many models, and the same services over gRPC and the Connect protocol. Any client of the OpenAI format works with the base URL \`{server}/v1\` and an API key of Parley; Google’s clients work with \`{server}\`.

# Authentication

Send an API key with every call: \`authorization: Bearer sk_parley_…\`, as a header over HTTP and Connect, as metadata over gRPC. Keys are created, rotated and revoked in the dashboard, where each can be given models, capabilities, an expiry and limits. \`/healthz\`, \`/readyz\`, \`/openapi.json\` and \`/proto/\` need no key.

Keep keys out of programs and repositories: the programs on this page read one from the environment variable \`PARLEY_API_KEY\`.

# Fields that a provider lacks

A field that the model’s provider cannot honour does not fail the request. It is left out, or moved into the provider’s range, and named in \`parley.omitted\` or \`parley.clamped\` of the answer; so are unknown and mistyped names. With \`parley.strict\` (gRPC: \`strict\`) the request is refused instead.

Checks run in this order: the key (401), a body that cannot be read (400), an unknown model (404), what the key may do (403), the rest of the request (400), rates, and last the budget (429).

# Streaming

With \`"stream": true\` the answer is a stream of server-sent events. Each is a line \`data: \` with a chunk as JSON, and an empty line:

1. For each choice a first delta with the role and an empty \`content\`.
2. Any number of deltas with content, reasoning, tool calls, pictures.
3. For each choice a chunk with its finish reason, an empty delta, and the object \`parley\`.
4. With \`stream_options.include_usage\`, one chunk without choices that has the usage.
5. \`data: [DONE]\`

Nothing is sent before the first content, so an early failure has its own status and a fallback is not visible. A later failure is the last event, \`data: {"error": {…}}\`, and the connection closes without \`data: [DONE]\`; over gRPC the call ends with a status other than OK. A stream that ends with \`[DONE]\`, or with OK, is complete. Lines that begin with a colon are comments, sent after 15 seconds of silence.

# Fallbacks

With \`fallback_models\` the named models are tried in order when the provider of the first one cannot be reached, answers with an error, is silent for too long, or sends an answer that cannot be read, as long as no content has been sent. What Parley itself refuses (an invalid request, a key, a limit) is not tried elsewhere. One deadline bounds all attempts together.

\`model\` in the answer is the model that answered, and \`parley.attempts\` lists every attempt with its outcome. When all fail, the error is the first model’s, with the list in \`error.attempts\` (gRPC: \`parley.v1.AttemptList\`).

# Pictures

To show a model a picture, send an \`image_url\` part with a data URL or an https address (gRPC: \`Part.image\`). To have one made, ask a model that makes pictures for the modalities \`image\` and \`text\`; \`GET /v1/models\` says which can. \`content\` of a whole answer is then a list of text and \`image_url\` parts with data URLs; in a stream, pictures come whole in \`delta.images\`; over gRPC they are parts with their bytes. \`POST /v1/images/generations\` and \`POST /v1/images/edits\` of the OpenAI format make and edit pictures too.

# gRPC and Connect

gRPC is served on port ${grpcPort}, with reflection and \`grpc.health.v1.Health\`. The Connect protocol is served on this port, as JSON or binary; the operations under “Connect” and the schemas under “Messages” describe both. Generate clients from the files under \`/proto/\`: each \`.proto\`, [all of them in one archive](/proto/parley-protos.tar.gz), and [a \`FileDescriptorSet\` with comments](/proto/parley.binpb) for tools:

\`\`\`
curl -sO {server}/proto/parley.binpb
buf curl --protocol grpc --http2-prior-knowledge --schema parley.binpb \\
  --header "authorization: Bearer $PARLEY_API_KEY" \\
  --data '{"model": "alpha-haiku-4.5", "messages": [{"role": "ROLE_USER", "parts": [{"text": "Hello!"}]}]}' \\
  http://127.0.0.1:${grpcPort}/parley.v1.CompletionService/Create
\`\`\`

The headers described here are metadata of the same names. The time to wait is \`google.rpc.RetryInfo\`, for retry policies \`grpc-retry-pushback-ms\` in the trailers (-1: do not retry), and the deadline is the call’s own (Connect: \`connect-timeout-ms\`).

# Limits

A key and its account can have limits: requests per minute, tokens per minute, concurrent requests, and a budget per calendar month in UTC. Rates refill continuously; the \`x-ratelimit-…\` headers of every answer say what is left. Every request is limited to:

- ${MAX_BODY_BYTES / 1024 / 1024} MiB of JSON, not compressed (Connect: or gzip), ${MAX_REQUEST_JSON.depth} levels deep, with ${count(MAX_REQUEST_JSON.values)} keys and values
- ${count(MAX_MESSAGES)} messages, ${MAX_FALLBACKS} fallback models, ${MAX_STOPS} stop sequences
- as many tokens in the answer as the model’s \`max_output_tokens\`

# Errors

Over HTTP the body of a failure is \`{"error": {"message", "type", "param", "code"}}\`; \`param\` is the field that is wrong, and \`attempts\` lists the models that were tried. Over gRPC it is a status with \`google.rpc.ErrorInfo\`, whose \`reason\` is the code below in upper case and whose \`domain\` is \`parley\`, and where they apply \`google.rpc.BadRequest\`, \`google.rpc.RetryInfo\` and \`parley.v1.AttemptList\`.

Every 429 and 503 says how long to wait, 1 to 60 seconds. \`x-should-retry: false\` keeps official clients from retrying by themselves: when a retry changes nothing, and when more than one model was tried already. Retry with exponential backoff and jitter, and give up after a few times.

${Object.keys(FAILURE_TABLE)
  .map((code) => describeFailure(code as FailureCode))
  .join("\n\n")}

# Not offered

Parley serves no other endpoints of the OpenAI format: no responses, legacy completions, variations of images, audio (speech, transcriptions, translations), moderations, files, uploads, batches, fine-tuning, vector stores, assistants, threads, evals or realtime. A call of one is answered with a 404 (\`not_found\`). Speech is made through \`POST /v1/chat/completions\`, with \`modalities\`.

# Compatibility

The version is part of the path, \`/v1\`, and of the package, \`parley.v1\`. Within a version nothing that works is removed; fields, values of enumerations, events and error codes may be added. Ignore fields that you do not know. What Parley adds to the OpenAI format is under \`parley\`, in headers of its own, and in fields that many clients know (\`reasoning_content\`, \`thinking_blocks\`, \`extra_content\`). Models whose ID has the word \`preview\` may change or be withdrawn.`;
}

const RETRY = {
  no: "Do not retry without a change.",
  "after a wait": "Retry after the time to wait.",
  once: "Retry once.",
} as const;

function describeFailure(code: FailureCode): string {
  const { http, type, grpc } = FAILURE_TABLE[code];
  const { means, todo, retry } = FAILURE_ADVICE[code]!;
  const codes = errorCodesOf(code).filter((each) => each !== null);
  const status = GRPC_STATUS.find(([, number]) => number === grpc)![0];
  const overHttp = `HTTP ${http}, \`${type}\`${codes.length > 0 ? ` (${codes.map((each) => `\`${each}\``).join(", ")})` : ""}`;
  return `## ${code}

${means} ${todo} ${RETRY[retry]}

${code === "cancelled" ? "No answer over HTTP" : overHttp}; gRPC \`${status}\`.`;
}

function count(value: number): string {
  return value.toLocaleString("en");
}
