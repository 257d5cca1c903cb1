import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { type Product, runProduct, startProduct } from "../support/product.ts";
import {
  answerJson,
  answerText,
  beginStream,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
} from "./support/upstream.ts";

let upstream: Upstream;
let product: Product;
/** What the upstream does with the next requests; it serves them when the list is empty. */
let script: ((response: Parameters<typeof answerJson>[0]) => void)[] = [];

beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    const step = script.shift();
    if (step === undefined) answerText(exchange, "Served.");
    else step(exchange.response);
  });
  product = await startProduct({
    config: {
      ...localModel(upstream.url),
      simulator: { enabled: true, tokens_per_second: 1_000_000, first_token_ms: 0 },
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      timeouts: { settle_ms: 100 },
    },
  });
});

afterAll(async () => {
  await product.stop();
  await upstream.close();
});

beforeEach(() => {
  script = [];
  // The client reads real keys and addresses from here.
  for (const name of Object.keys(process.env)) if (name.startsWith("OPENAI_")) vi.stubEnv(name, undefined);
});

function client(options: { apiKey?: string; maxRetries?: number } = {}): OpenAI {
  return new OpenAI({ baseURL: `${product.url}/v1`, apiKey: product.firstKey, maxRetries: 0, ...options });
}

function ask(model: string, content = "Tell me about tides"): OpenAI.ChatCompletionCreateParamsNonStreaming {
  return { model, messages: [{ role: "user", content }] };
}

/** The error that a call ends with. */
async function errorOf(call: PromiseLike<unknown>): Promise<InstanceType<typeof OpenAI.APIError>> {
  const error: unknown = await Promise.resolve(call).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof OpenAI.APIError) return error;
  throw new Error(`this is not one of the client's errors: ${String(error)}`);
}

const refuse =
  (status: number, headers: Record<string, string> = {}) =>
  (response: Parameters<typeof answerJson>[0]): void =>
    answerJson(response, status, { error: { message: "upstream says no", type: "x", code: null } }, headers);

/** A picture request; the client's types only know text and speech. */
const DRAW = {
  ...ask("beta-3-pro-image-preview", "Draw a lighthouse"),
  modalities: ["text", "image"] as unknown as ("text" | "audio")[],
};

interface ImagePart {
  readonly type: string;
  readonly image_url?: { readonly url: string };
}

const PNG_URL = /^data:image\/png;base64,iVBORw0KGgo/;

describe("the unmodified openai client", () => {
  it("gets a whole completion", async () => {
    const { data, request_id: requestId } = await client()
      .chat.completions.create(ask("alpha-haiku-4.5"))
      .withResponse();
    expect(data).toMatchObject({ object: "chat.completion", model: "alpha-haiku-4.5" });
    expect(data.id).toMatch(/^chatcmpl-/);
    expect(data.choices[0]).toMatchObject({ finish_reason: "stop", message: { role: "assistant" } });
    expect(data.choices[0]?.message.content).toContain("Tell me about tides");
    const { prompt_tokens: prompt = 0, completion_tokens: answer = 0, total_tokens: total } = data.usage ?? {};
    expect(total).toBe(prompt + answer);
    expect(requestId).toMatch(/^req_/);
  });

  it("reads a stream to its end, with usage on request", async () => {
    const whole = await client().chat.completions.create(ask("beta-3-flash"));
    const stream = await client().chat.completions.create({
      ...ask("beta-3-flash"),
      stream: true,
      stream_options: { include_usage: true },
    });
    const chunks = await Array.fromAsync(stream);
    expect(chunks[0]?.choices[0]?.delta).toEqual({ role: "assistant", content: "" });
    const text = chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join("");
    expect(text).toBe(whole.choices[0]?.message.content);
    expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe("stop");
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: whole.usage?.total_tokens } });
    expect(new Set(chunks.map((chunk) => chunk.id)).size).toBe(1);
  });

  it("puts a stream together with its own helper", async () => {
    const runner = client().chat.completions.stream({ ...ask("alpha-sonnet-4.5"), stream: true });
    let heard = "";
    runner.on("content", (delta) => void (heard += delta));
    const final = await runner.finalChatCompletion();
    expect(final.choices[0]).toMatchObject({ finish_reason: "stop", message: { role: "assistant", content: heard } });
    expect(heard).toContain("Tell me about tides");
  });

  it("gets a picture in the content of a whole completion", async () => {
    const completion = await client().chat.completions.create(DRAW);
    const parts = completion.choices[0]?.message.content as unknown as ImagePart[];
    const pictures = parts.filter((part) => part.type === "image_url");
    expect(pictures.length).toBeGreaterThan(0);
    expect(pictures[0]?.image_url?.url).toMatch(PNG_URL);
  });

  it("gets a picture in a stream", async () => {
    const stream = await client().chat.completions.create({ ...DRAW, stream: true });
    const pictures: ImagePart[] = [];
    for await (const { choices } of stream)
      pictures.push(...((choices[0]?.delta as { images?: ImagePart[] } | undefined)?.images ?? []));
    expect(pictures.length).toBeGreaterThan(0);
    expect(pictures[0]).toMatchObject({ index: 0, type: "image_url" });
    expect(pictures[0]?.image_url?.url).toMatch(PNG_URL);
  });

  it("gets embeddings, in the base64 that it asks for by itself, and as numbers", async () => {
    const asked = { model: "gamma-embedding-3-small", input: ["the cat sat", "a dog ran"], dimensions: 8 };
    const { data, model, usage } = await client().embeddings.create(asked);
    expect(data.map(({ embedding }) => embedding.length)).toEqual([8, 8]);
    expect(model).toBe("gamma-embedding-3-small");
    expect(usage.total_tokens).toBeGreaterThan(0);
    const plain = await client().embeddings.create({ ...asked, input: "the cat sat", encoding_format: "float" });
    expect(plain.data[0]?.embedding.map(Math.fround)).toEqual([...(data[0]?.embedding ?? [])].map(Math.fround));
    const error = await errorOf(client().embeddings.create({ ...asked, input: [] }));
    expect(error).toMatchObject({ status: 400, param: "input" });
  });

  it("lists the models and retrieves one, an ID with a slash too", async () => {
    const ids = (await client().models.list()).data.map((model) => model.id);
    expect(ids).toEqual(expect.arrayContaining(["alpha-opus-4.5", "beta-3-pro-image-preview", "local/test"]));
    expect(await client().models.retrieve("beta-3-flash")).toMatchObject({ id: "beta-3-flash", object: "model" });
    expect(await client().models.retrieve("local/test")).toMatchObject({ id: "local/test", context_window: 100_000 });
  });
});

describe("the openai client's typed errors", () => {
  it("are BadRequestError with the field for a value out of range", async () => {
    const error = await errorOf(client().chat.completions.create({ ...ask("alpha-haiku-4.5"), temperature: 3 }));
    expect(error).toBeInstanceOf(OpenAI.BadRequestError);
    expect(error).toMatchObject({ status: 400, type: "invalid_request_error", param: "temperature" });
    expect(error.requestID).toMatch(/^req_/);
  });

  it("are AuthenticationError without a code for a wrong key", async () => {
    const error = await errorOf(client({ apiKey: "sk_parley_wrong" }).chat.completions.create(ask("alpha-haiku-4.5")));
    expect(error).toBeInstanceOf(OpenAI.AuthenticationError);
    expect(error).toMatchObject({ status: 401, type: "authentication_error", code: undefined });
    expect(error.requestID).toMatch(/^req_/);
  });

  it("are PermissionDeniedError for a model that the key may not use", async () => {
    const command = runProduct(
      ["keys", "create", "--config", "parley.yaml", "--name", "narrow", "--models", "beta-3-flash"],
      product,
    );
    expect(await command.ending).toMatchObject({ code: 0 });
    const narrow = client({ apiKey: command.output.stdout.trim() });
    const error = await errorOf(narrow.chat.completions.create(ask("alpha-haiku-4.5")));
    expect(error).toBeInstanceOf(OpenAI.PermissionDeniedError);
    expect(error).toMatchObject({ status: 403, type: "permission_error" });
    expect(error.requestID).toMatch(/^req_/);
    expect((await narrow.models.list()).data.map((model) => model.id)).toEqual(["beta-3-flash"]);
  });

  it("are NotFoundError for an unknown model, asked for a completion or by name", async () => {
    const calls = [() => client().chat.completions.create(ask("gamma-9")), () => client().models.retrieve("gamma-9")];
    for (const call of calls) {
      const error = await errorOf(call());
      expect(error).toBeInstanceOf(OpenAI.NotFoundError);
      expect(error).toMatchObject({ status: 404, type: "not_found_error", code: "model_not_found" });
      expect(error.requestID).toMatch(/^req_/);
    }
  });

  it("are RateLimitError with the wait for a provider's rate limit", async () => {
    script = [refuse(429, { "retry-after": "1" })];
    const error = await errorOf(client().chat.completions.create(ask("local/test")));
    expect(error).toBeInstanceOf(OpenAI.RateLimitError);
    expect(error).toMatchObject({ status: 429, type: "rate_limit_error", code: "rate_limit_exceeded" });
    expect(error.headers?.get("retry-after")).toBe("1");
    expect(error.requestID).toMatch(/^req_/);
    // The circuit breaker is open for that second; the next tests need it closed.
    await expect.poll(() => client().chat.completions.create(ask("local/test")), { timeout: 5000 }).toBeDefined();
  });

  it("are InternalServerError with a status of 500 or 503 for a provider's other failures", async () => {
    const before = upstream.exchanges.length;
    script = [refuse(401)];
    const refused = await errorOf(client().chat.completions.create(ask("local/test")));
    expect(refused).toBeInstanceOf(OpenAI.InternalServerError);
    expect(refused).toMatchObject({ status: 500, type: "server_error", code: "upstream_auth_error" });
    expect(refused.requestID).toMatch(/^req_/);

    script = [refuse(503), refuse(503)];
    const down = await errorOf(client().chat.completions.create(ask("local/test")));
    expect(down).toBeInstanceOf(OpenAI.InternalServerError);
    expect(down).toMatchObject({ status: 503, type: "service_unavailable" });
    expect(down.headers?.get("retry-after")).toMatch(/^\d+$/);
    expect(down.requestID).toMatch(/^req_/);
    // One call for the refused credential; one and the gateway's own retry for the other. None by the client.
    expect(upstream.exchanges.length - before).toBe(3);
  });

  it("are thrown in the middle of a stream that breaks off", async () => {
    script = [
      (response) => {
        beginStream(response);
        response.end(textEvent("Once upon"));
      },
    ];
    const stream = await client().chat.completions.create({ ...ask("local/test"), stream: true });
    let text = "";
    const error = await errorOf(
      (async () => {
        for await (const { choices } of stream) text += choices[0]?.delta.content ?? "";
      })(),
    );
    expect(text).toBe("Once upon");
    expect(error).toMatchObject({ type: "server_error", code: "upstream_invalid_response" });
  });
});

describe("retries and cancellation", () => {
  it("lets the client retry after the response's retry-after", async () => {
    script = [refuse(429, { "retry-after": "1" })];
    const before = upstream.exchanges.length;
    const completion = await client({ maxRetries: 1 }).chat.completions.create(ask("local/test"));
    expect(completion.choices[0]?.message.content).toBe("Served.");
    expect(upstream.exchanges.length - before).toBe(2);
  });

  it("closes the upstream when the client aborts in mid-stream", async () => {
    script = [
      (response) => {
        beginStream(response);
        response.write(textEvent("Once upon"));
      },
    ];
    const stream = await client().chat.completions.create({ ...ask("local/test"), stream: true });
    for await (const { choices } of stream) if (choices[0]?.delta.content) stream.controller.abort();
    await expect.poll(() => upstream.exchanges.at(-1)?.closed, { interval: 10 }).toBe(true);
  });

  it("limits a completion by the timeout in the client's header", async () => {
    script = [() => undefined];
    const headers = { "x-stainless-timeout": "0.2" };
    const error = await errorOf(client().chat.completions.create(ask("local/test"), { headers }));
    expect(error).toMatchObject({ status: 503, code: "deadline_exceeded" });
    await expect.poll(() => upstream.exchanges.at(-1)?.closed, { interval: 10 }).toBe(true);
  });

  it("closes the upstream when the client times out", async () => {
    script = [() => undefined];
    const impatient = client().chat.completions.create(ask("local/test"), { timeout: 300 });
    await expect(impatient).rejects.toBeInstanceOf(OpenAI.APIConnectionTimeoutError);
    await expect.poll(() => upstream.exchanges.at(-1)?.closed, { interval: 10 }).toBe(true);
  });
});
