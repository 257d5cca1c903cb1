import { describe, expect, it } from "vitest";
import type { CallersBody, Translation } from "../../../src/core/provider.ts";
import { toAnthropicRequest, toCountBody } from "../../../src/providers/anthropic/request.ts";
import { type AnthropicSite, DIRECT, vertexSite } from "../../../src/providers/anthropic/site.ts";
import { request } from "./builders.ts";
import { adaptiveModel, budgetModel } from "./model.ts";

const vertex = vertexSite({ project: "acme-1", region: "us-east5" });
const model = { ...budgetModel(), name: "claude-sonnet-4-5@20250929" };

const translate = (site: AnthropicSite, callers?: CallersBody): Translation =>
  toAnthropicRequest(request({ maxOutputTokens: 100 }), model, { mode: "stream", site, callers });
const read = (body: Buffer): Record<string, unknown> => JSON.parse(body.toString()) as Record<string, unknown>;
const countOf = (site: AnthropicSite): Record<string, unknown> =>
  read(toCountBody({ model, translation: translate(site), signal: new AbortController().signal, idleMs: 1 }, site));

describe("Vertex AI", () => {
  it("names model and method in the path", () => {
    const models = "/v1/projects/acme-1/locations/us-east5/publishers/anthropic/models";
    expect(vertex.toPath(model.name, false)).toBe(`${models}/claude-sonnet-4-5@20250929:rawPredict`);
    expect(vertex.toPath(model.name, true)).toBe(`${models}/claude-sonnet-4-5@20250929:streamRawPredict`);
    expect(vertex.toPath("a/../b?c#d", false)).toBe(`${models}/a%2F..%2Fb%3Fc%23d:rawPredict`);
    expect(vertex.countPath).toBe(`${models}/count-tokens:rawPredict`);
  });

  it("names the version in the body in place of the model", () => {
    const { model: _, ...fields } = read(translate(DIRECT).body);
    expect(read(translate(vertex).body)).toEqual({ ...fields, anthropic_version: "vertex-2023-10-16" });
    expect(vertex.headers).toEqual({});
  });

  it("does so in the caller's own body, too", () => {
    const messages = [{ role: "user", content: [{ type: "text", text: "hi" }] }];
    const json = { model: "alias", max_tokens: 100, messages, mystery: 1 };
    const callers = { dialect: "anthropic", mayHaveMore: true, json } satisfies CallersBody;
    const asked = request({ maxOutputTokens: 100 });
    const { body, isCallers } = toAnthropicRequest(asked, model, { mode: "whole", site: vertex, callers });
    expect(isCallers).toBe(true);
    expect(read(body)).toEqual({ max_tokens: 100, messages, mystery: 1, anthropic_version: "vertex-2023-10-16" });
  });

  it("counts with the model and the version in the body", () => {
    expect(countOf(vertex)).toEqual({ ...countOf(DIRECT), anthropic_version: "vertex-2023-10-16" });
    expect(countOf(DIRECT)["model"]).toBe(model.name);
  });
});

describe("a host with betas in its body", () => {
  it("gets the model's and the caller's", () => {
    const site: AnthropicSite = {
      ...DIRECT,
      hasBetaHeader: false,
      toBody: (body, betas) => ({ ...body, anthropic_beta: betas }),
    };
    const asked = request({ providerOptionsJson: { "anthropic.betas": '["one-2026-01-01"]' } });
    const bound = { ...adaptiveModel(), capabilities: { ...adaptiveModel().capabilities, preservedReasoning: true } };
    const { body } = toAnthropicRequest(asked, bound, { mode: "whole", site });
    expect(read(body)["anthropic_beta"]).toEqual(["thinking-binding-controls-2026-08-01", "one-2026-01-01"]);
  });
});
