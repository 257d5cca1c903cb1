import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { type Act, begins, hangsUp, refuses, says, sends, staysSilent } from "../../support/scripted-upstream.ts";
import type { Scenario } from "./scenario.ts";

const hello = says("Hello.");
const twice = (attempt: string): readonly string[] => [attempt, attempt];
const unavailable = twice("alpha upstream_unavailable 503");

/** All kinds of provider failure before the first content, with the number of attempts. */
const WRONGS: readonly (readonly [
  what: string,
  act: Act,
  attempts: readonly string[],
  timeouts?: Readonly<Record<string, number>>,
])[] = [
  ["is overloaded", refuses(529), twice("alpha upstream_unavailable 529")],
  ["fails", refuses(500), twice("alpha upstream_unavailable 500")],
  ["rejects the request", refuses(400), ["alpha upstream_rejected 400"]],
  ["refuses the gateway's credential", refuses(401), ["alpha upstream_refused_us 401"]],
  ["does not know the model", refuses(404), ["alpha upstream_refused_us 404"]],
  ["limits the rate", refuses(429, "Wait.", { "retry-after": "30" }), ["alpha upstream_rate_limited 429"]],
  ["closes the connection", hangsUp, twice("alpha upstream_unavailable")],
  ["stays silent", staysSilent, ["alpha upstream_timeout"], { first_content_ms: 60, idle_ms: 60 }],
  ["sends a web page", sends(200, "text/html", "<html>"), twice("alpha upstream_protocol 200")],
  ["sends an error with a success' status", begins("", "error"), twice("alpha upstream_unavailable 200")],
];

/** Requests with fallback models. */
export const FALLING_BACK: readonly Scenario[] = [
  ...WRONGS.map(([what, act, attempts, timeouts]): Scenario => ({
    name: `falls back when the primary ${what}`,
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [act], beta: [hello] },
    models: timeouts === undefined ? {} : { alpha: { timeouts } },
    expected: { answer: { model: "beta" }, attempts: [...attempts, "beta served 200"] },
  })),
  {
    name: "falls back when the primary interrupts a stream before its first content",
    mode: "stream",
    ask: { fallbackModels: ["local"] },
    upstream: { alpha: [begins("", "end")], local: [hello] },
    expected: { answer: { model: "local" }, attempts: [...twice("alpha upstream_protocol 200"), "local served 200"] },
  },
  {
    name: "falls back when the primary is unreachable",
    ask: { model: "gone", fallbackModels: ["local"] },
    upstream: { local: [hello] },
    expected: { answer: { model: "local" }, attempts: [...twice("gone upstream_unavailable"), "local served 200"] },
  },
  {
    name: "tries fallback models in their order, each once",
    ask: { fallbackModels: ["gone", "local", "beta"] },
    upstream: { alpha: [refuses(400)], local: [refuses(503)], beta: [hello] },
    expected: {
      answer: { model: "beta" },
      attempts: [
        "alpha upstream_rejected 400",
        "gone upstream_unavailable",
        "local upstream_unavailable 503",
        "beta served 200",
      ],
    },
  },
  {
    name: "ignores the primary and duplicates among the fallback models",
    ask: { fallbackModels: ["alpha", "beta", "beta", "alpha", "local", "beta"] },
    upstream: { alpha: [refuses(400)], beta: [refuses(400)], local: [hello] },
    expected: {
      answer: { model: "local" },
      attempts: ["alpha upstream_rejected 400", "beta upstream_rejected 400", "local served 200"],
    },
  },
  {
    name: "returns the primary's failure when all models fail, and lists the attempts",
    ask: { fallbackModels: ["beta", "local"] },
    upstream: { alpha: [refuses(503)], beta: [refuses(401)], local: [refuses(400)] },
    expected: {
      failure: "upstream_unavailable",
      attempts: [...unavailable, "beta upstream_refused_us 401", "local upstream_rejected 400"],
    },
  },
  {
    name: "returns the primary's rate limit when all models fail, without a retry",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [refuses(429, "Wait.", { "retry-after": "9" })], beta: [staysSilent] },
    models: { beta: { timeouts: { first_content_ms: 60, idle_ms: 60 } } },
    expected: {
      failure: "upstream_rate_limited",
      retryAfterS: 9,
      attempts: ["alpha upstream_rate_limited 429", "beta upstream_timeout"],
    },
  },
  {
    name: "reduces max_output_tokens to the range of a fallback model and lists the field",
    ask: { maxOutputTokens: 800, fallbackModels: ["beta"] },
    upstream: { alpha: [refuses(400)], beta: [hello] },
    expected: {
      answer: { model: "beta", clamped: ["max_output_tokens 800>500"] },
      attempts: ["alpha upstream_rejected 400", "beta served 200"],
    },
  },
  {
    name: "skips a fallback model that would lose a field of a strict request",
    ask: { maxOutputTokens: 800, strict: true, fallbackModels: ["beta", "local"] },
    upstream: { alpha: [refuses(400)], beta: [hello], local: [hello] },
    expected: {
      answer: { model: "local" },
      attempts: ["alpha upstream_rejected 400", "beta skipped", "local served 200"],
    },
  },
  {
    name: "permits the client's own retry when the only fallback model was skipped",
    ask: { maxOutputTokens: 800, strict: true, fallbackModels: ["beta"] },
    upstream: { alpha: [refuses(503)], beta: [hello] },
    expected: { failure: "upstream_unavailable", attempts: [...unavailable, "beta skipped"] },
  },
  {
    name: "skips a fallback model that does not support the number of choices",
    ask: { model: "local", choiceCount: 2, fallbackModels: ["alpha"] },
    upstream: { local: [refuses(400)], alpha: [hello] },
    expected: { failure: "upstream_rejected", attempts: ["local upstream_rejected 400", "alpha skipped"] },
  },
  {
    name: "skips a fallback model without image output when images are requested",
    ask: { model: "painter", modalities: [Modality.TEXT, Modality.IMAGE], fallbackModels: ["beta"] },
    upstream: { painter: [refuses(400)], beta: [hello] },
    expected: { failure: "upstream_rejected", attempts: ["painter upstream_rejected 400", "beta skipped"] },
  },
];
