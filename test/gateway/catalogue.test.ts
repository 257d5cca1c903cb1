import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterAll, describe, expect, it } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { type PartSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { parseConfig } from "../../src/config/parse.ts";
import { boundCost } from "../../src/core/cost.ts";
import { measurePrompt } from "../../src/core/token-estimate.ts";
import { buildCatalogue } from "../../src/gateway/catalogue.ts";
import { ReadScheduler } from "../../src/scheduling/read-scheduler.ts";

const PROVIDERS = {
  google: { dialect: "gemini", base_url: "https://generativelanguage.googleapis.com", api_keys: ["k".repeat(20)] },
  other: { dialect: "openai", base_url: "https://models.example/v1", api_keys: ["k".repeat(20)] },
};
const MODELS = {
  "gemini-drawing": { provider: "google", upstream_model: "gemini-2.5-flash-image" },
  "other-drawing": { provider: "other", upstream_model: "a", price: { input: 1, output: 2, image_output: 30 } },
  "other-writing": { provider: "other", upstream_model: "b", price: { input: 1, output: 2, image_output: 2 } },
  known: { provider: "other", upstream_model: "c", price: { input: 1, output: 0 }, context_window: 100_000 },
  unknown: { provider: "other", upstream_model: "d", price: { input: 1, output: 0 } },
};

const catalogue = buildCatalogue(
  parseConfig({
    file: "parley.yaml",
    text: JSON.stringify({ providers: PROVIDERS, models: MODELS }),
    env: {},
  }),
  { simulatorUrl: undefined, readScheduler: new ReadScheduler() },
);

afterAll(() => catalogue.close());

type PartInit = MessageInitShape<typeof PartSchema>;

const text = (value: string): PartInit => ({ kind: { case: "text", value } });
const document: PartInit = {
  kind: { case: "file", value: { mediaType: "application/pdf", source: { case: "data", value: new Uint8Array(8) } } },
};

/** What is sent to a model for a prompt, and the money that is held for it. */
function askFor(id: string, ...parts: PartInit[]) {
  const model = catalogue.models.find((each) => each.id === id)!;
  const messages = [{ role: Role.USER, parts }];
  const request = create(CompletionRequestSchema, { model: id, messages, maxOutputTokens: 10 });
  const { body, sent } = model.provider.translate(request, model.upstream, { mode: "whole", capped: true });
  const heldMicroUsd = boundCost(request, { prompt: measurePrompt(request), sent, model })!;
  return { body: JSON.parse(body.toString()) as object, sent, heldMicroUsd };
}

describe("a model whose price has pictures, and whose output modalities have none", () => {
  it("is asked not to draw where that is possible", () => {
    expect(askFor("gemini-drawing", text("Draw a cat.")).body).toMatchObject({
      generationConfig: { responseModalities: ["TEXT"] },
    });
  });

  it("has money held for a picture elsewhere, unless it is no dearer than text", () => {
    expect(askFor("other-drawing", text("Draw a cat.")).heldMicroUsd).toBeGreaterThan(24_019 * 30);
    expect(askFor("other-writing", text("Draw a cat.")).sent.pictureTokens).toBeUndefined();
  });
});

describe("the money that is held for a prompt", () => {
  const long = text("word ".repeat(400_000));

  it("is at most that of the context window that is known", () => {
    expect(askFor("known", long).heldMicroUsd).toBe(100_000);
    expect(askFor("known", document).heldMicroUsd).toBe(100_000);
  });

  it("is not cut by one that is assumed", () => {
    expect(askFor("unknown", long).heldMicroUsd).toBeGreaterThan(2_000_000);
    expect(askFor("unknown", document).heldMicroUsd).toBe(2_000_000);
    expect(askFor("unknown", document, long, long).heldMicroUsd).toBeGreaterThan(4_000_000);
  });
});
