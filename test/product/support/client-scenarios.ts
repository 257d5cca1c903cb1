import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Product, startProduct } from "../../support/product.ts";
import {
  type Act,
  begins,
  refuses,
  says,
  type ScriptedCall,
  sends,
  startScriptedUpstream,
  staysSilent,
} from "../../support/scripted-upstream.ts";

const MIB = 1024 * 1024;
/** More than gRPC clients receive in one message by default. */
const PICTURE_BYTES = 6 * MIB;
const ENDLESS_CHUNK_INTERVAL_MS = 50;

/**
 * One act for each model of the scenarios. Clients in all languages are tested against these names, see clients/README.md.
 */
const ACTS: Readonly<Record<string, Act>> = {
  painter: draws(PICTURE_BYTES),
  silent: staysSilent,
  endless: speaksUntilClosed,
  breaking: begins("The beginning of an answer", "reset"),
  overloaded: refuses(503, "Scripted overload.", { "retry-after": "7" }),
  "overloaded-too": refuses(503, "Scripted overload.", { "retry-after": "7" }),
  spare: says("From the spare model."),
  coder: sendsBoth(
    geminiAnswer(
      [
        { text: "I compute." },
        { executableCode: { language: "PYTHON", code: "print(6 * 7)" } },
        { codeExecutionResult: { outcome: "OUTCOME_OK", output: "42" } },
        { text: "It is 42." },
      ],
      "STOP",
    ),
  ),
};

/** The product with the models that the tests of the client packages ask for. */
export interface ClientScenarios {
  /** What the tests read: addresses and a key. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/**
 * Starts the product, the provider of its scripted models, and a server that reports to clients what that provider has received:
 * `GET /calls/<model>` returns the states of the model's calls in order, as `["answered", "closed", "open"]`.
 */
export async function startClientScenarios(): Promise<ClientScenarios> {
  const upstream = await startScriptedUpstream();
  for (const [model, act] of Object.entries(ACTS)) upstream.script(model, [act]);
  const observer = createServer((request, response) => {
    const model = (request.url ?? "").replace("/calls/", "");
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(upstream.calls(model).map((call) => call.state)));
  });
  observer.listen(0, "127.0.0.1");
  await once(observer, "listening");
  const product = await startProduct({ config: configure(upstream.url) }).catch(async (error: unknown) => {
    observer.close();
    await upstream.close();
    throw error;
  });
  return {
    env: environment(product, `http://127.0.0.1:${(observer.address() as AddressInfo).port}`),
    async stop() {
      await product.stop();
      observer.closeAllConnections();
      observer.close();
      await upstream.close();
    },
  };
}

function configure(upstreamUrl: string): object {
  const text = { input: ["text"], output: ["text"] };
  const models = Object.keys(ACTS).map((name) => [
    name,
    {
      provider: "scripted",
      upstream_model: name,
      modalities: name === "painter" ? { input: ["text"], output: ["text", "image"] } : text,
    },
  ]);
  return {
    simulator: { enabled: true, tokens_per_second: 1_000_000, first_token_ms: 0 },
    retries: { base_ms: 0, cap_ms: 0 },
    // The default of 2 s is as long as the tests wait for the upstream call to be closed.
    timeouts: { settle_ms: 100 },
    // Scenarios that fail on purpose do not stop the calls after them.
    breaker: { failures: 1000 },
    providers: {
      scripted: { dialect: "gemini", base_url: upstreamUrl, allow_private: true, api_keys: ["any"] },
    },
    models: Object.fromEntries(models) as object,
  };
}

function environment(product: Product, observerUrl: string): Record<string, string> {
  return {
    PARLEY_GRPC: `127.0.0.1:${product.grpcPort}`,
    PARLEY_HTTP: product.url,
    PARLEY_API_KEY: product.firstKey,
    PARLEY_UPSTREAM: observerUrl,
    // Otherwise some clients use a proxy even for loopback.
    NO_PROXY: "127.0.0.1",
    no_proxy: "127.0.0.1",
  };
}

function draws(bytes: number): Act {
  const data = Buffer.alloc(bytes, "parley").toString("base64");
  return sendsBoth(geminiAnswer([{ inlineData: { mimeType: "image/png", data } }], "STOP"));
}

/** Sends an answer whole, or as the only event of a stream. */
function sendsBoth(answer: object): Act {
  return (call) => {
    const body = JSON.stringify(answer);
    if (call.streamed) sends(200, "text/event-stream", `data: ${body}\n\n`)(call);
    else sends(200, "application/json", body)(call);
  };
}

function speaksUntilClosed({ response }: ScriptedCall): void {
  const event = `data: ${JSON.stringify(geminiAnswer([{ text: "and so on " }]))}\n\n`;
  response.writeHead(200, { "content-type": "text/event-stream" });
  const timer = setInterval(() => response.write(event), ENDLESS_CHUNK_INTERVAL_MS);
  response.once("close", () => clearInterval(timer));
}

function geminiAnswer(parts: readonly object[], finishReason?: string): object {
  return {
    candidates: [{ content: { role: "model", parts }, ...(finishReason !== undefined && { finishReason }) }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2, totalTokenCount: 3 },
  };
}
