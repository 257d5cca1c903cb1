import type { Answer, Provider, UpstreamCall } from "../../core/provider.ts";
import { listAt } from "../wire/model-list.ts";
import { type DialectCall, fetchCount, fetchFramedStream, fetchWhole, SSE } from "../wire/response.ts";
import type { Service } from "../wire/service.ts";
import { toFailure } from "./failure.ts";
import { toAnthropicRequest, toCountBody } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";
import { type AnthropicSite, betasOf, DIRECT } from "./site.ts";

/** A provider that speaks Anthropic's Messages API. The paths of `site` are appended to the base URL. */
export function anthropic({ upstream, headers, redact }: Service, site: AnthropicSite = DIRECT): Provider {
  const plain = {
    "content-type": "application/json",
    "accept-encoding": "identity",
    ...site.headers,
    ...headers,
  };
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

  const toDialectCall = (call: UpstreamCall): DialectCall => {
    const { model, translation, signal, idleMs, progress, keyFamilyId, accountId, share, trace } = call;
    return {
      path: site.toPath(model.name, translation.streamed),
      headers: toHeaders(call),
      body: translation.body,
      signal,
      idleMs,
      progress,
      keyFamilyId,
      accountId,
      share,
      trace,
      toFailure: (refusal) => (site.toFailure ?? toFailure)(refusal, redact, translation),
    };
  };

  return {
    translate: (request, model, options) => toAnthropicRequest(request, model, { ...options, site }),
    create: (call) => fetchWhole(upstream, toDialectCall(call), toWhole),
    stream: (call, emit) =>
      fetchFramedStream(upstream, toDialectCall(call), {
        framing: site.framing ?? SSE,
        reader: new AnswerStream(redact),
        whole: (json) => toAnswerChunks(json, redact),
        emit,
      }),
    count: (call) => {
      const asked = {
        // The count endpoint accepts fewer betas, and the fields of betas do not change the count.
        ...toDialectCall({ ...call, translation: { ...call.translation, betas: undefined } }),
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
