import type { Answer, Provider, UpstreamCall } from "../../core/provider.ts";
import { listAt } from "../wire/model-list.ts";
import { type DialectCall, fetchCount, fetchFramedStream, fetchWhole, SSE, toDialectCall } from "../wire/response.ts";
import { JSON_HEADERS, type Service } from "../wire/service.ts";
import { toFailure } from "./failure.ts";
import { toAnthropicRequest, toCountBody } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";
import { type AnthropicSite, betasOf, DIRECT } from "./site.ts";

/** A provider that speaks Anthropic's Messages API. The paths of `site` are appended to the base URL. */
export function anthropic({ upstream, headers, redact }: Service, site: AnthropicSite = DIRECT): Provider {
  const plain = { ...JSON_HEADERS, ...site.headers, ...headers };
  const configured = headers?.["anthropic-beta"];
  const toHeaders = ({ model, translation }: UpstreamCall): Readonly<Record<string, string>> => {
    const { betas, headers: callers } = translation;
    const names = site.hasBetaHeader ? betasOf(model, betas) : [];
    if (names.length === 0 && callers === undefined) return plain;
    const all = { ...callers, ...plain };
    if (names.length === 0) return all;
    return { ...all, "anthropic-beta": [...names, ...(configured === undefined ? [] : [configured])].join() };
  };

  const toWhole = (json: unknown): Answer => toAnswer(json, redact);

  const toCall = (call: UpstreamCall): DialectCall =>
    toDialectCall(call, {
      path: site.toPath(call.model.name, call.translation.streamed),
      headers: toHeaders(call),
      toFailure: (refusal) => (site.toFailure ?? toFailure)(refusal, redact, call.translation),
    });

  return {
    translate: (request, model, options) => toAnthropicRequest(request, model, { ...options, site }),
    create: (call) => fetchWhole(upstream, toCall(call), toWhole),
    stream: (call, emit) =>
      fetchFramedStream(upstream, toCall(call), {
        framing: site.framing ?? SSE,
        reader: new AnswerStream(redact),
        whole: (json) => toAnswerChunks(json, redact),
        emit,
      }),
    count: (call) => {
      const asked = {
        // The count endpoint accepts fewer betas, and the fields of betas do not change the count.
        ...toCall({ ...call, translation: { ...call.translation, betas: undefined } }),
        path: site.toCountPath(call.model.name),
        body: toCountBody(call, site),
      };
      return fetchCount(upstream, asked, site.countField);
    },
    ...(site === DIRECT && {
      list: listAt(upstream, {
        path: "/v1/models?limit=1000",
        headers: plain,
        toFailure: (refusal) => toFailure(refusal, redact),
      }),
    }),
    close: () => upstream.close(),
  };
}
