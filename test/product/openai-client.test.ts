import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type Product, startProduct } from "../support/product.ts";
import {
  answerJson,
  answerText,
  beginStream,
  localModel,
  startUpstream,
  textEvent,
  type Upstream,
} from "./support/upstream.ts";
import { rejectionsOf } from "../support/errors.ts";
import { cleanEnvironment } from "./support/clean-environment.ts";
import { createKey } from "../support/cli.ts";

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
  cleanEnvironment();
});

function client(options: { apiKey?: string; maxRetries?: number } = {}): OpenAI {
  return new OpenAI({ baseURL: `${product.url}/v1`, apiKey: product.firstKey, maxRetries: 0, ...options });
}

function ask(model: string, content = "Tell me about tides"): OpenAI.ChatCompletionCreateParamsNonStreaming {
  return { model, messages: [{ role: "user", content }] };
}

/** The error that a call ends with. */
const errorOf = rejectionsOf<InstanceType<typeof OpenAI.APIError>>(OpenAI.APIError);

const refuse =
  (status: number, headers: Record<string, string> = {}) =>
  (response: Parameters<typeof answerJson>[0]): void =>
    answerJson(response, status, { error: { message: "upstream says no", type: "x", code: null } }, headers);

describe("the unmodified openai client", () => {
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
    const { key } = await createKey(product, "--models beta-3-flash");
    const narrow = client({ apiKey: key });
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
