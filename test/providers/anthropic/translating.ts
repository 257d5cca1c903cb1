import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import type { Translation, UpstreamModel } from "../../../src/core/provider.ts";
import { toAnthropicRequest } from "../../../src/providers/anthropic/request.ts";
import { budgetModel } from "./model.ts";
import { failureOf } from "../../support/errors.ts";

/** The request, translated for a whole answer unless `mode` says otherwise. */
export function translate(
  request: CompletionRequest,
  model: UpstreamModel,
  mode: "whole" | "stream" = "whole",
): Translation {
  return toAnthropicRequest(request, model, { mode });
}

/** The body that is sent. */
export function bodyOf(request: CompletionRequest, model: UpstreamModel = budgetModel()): Record<string, unknown> {
  return JSON.parse(translate(request, model).body.toString()) as Record<string, unknown>;
}

/** The turns in it. */
export const messagesOf = (request: CompletionRequest, model?: UpstreamModel): unknown =>
  bodyOf(request, model)["messages"];

/** Why the request is not translated. */
export const refusalOf = (request: CompletionRequest, model: UpstreamModel = budgetModel()): Failure =>
  failureOf(() => translate(request, model));
