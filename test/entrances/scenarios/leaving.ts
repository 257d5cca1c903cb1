import { begins, refuses, says, staysSilent } from "../../support/scripted-upstream.ts";
import type { Scenario } from "./scenario.ts";

const hello = says("Hello.");

/** Calls that end before their answer is complete: the caller cancels, a deadline passes, or the gateway stops. */
export const LEAVING: readonly Scenario[] = [
  {
    name: "closes the upstream connection when the caller cancels before the first content",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [staysSilent], beta: [hello] },
    leaves: "in the first call",
    expected: { failure: "cancelled", attempts: ["alpha cancelled"], breaker: "closed" },
  },
  {
    name: "closes the upstream connection when the caller cancels during a retry",
    upstream: { alpha: [refuses(503), staysSilent] },
    leaves: "in the second call",
    expected: { failure: "cancelled", attempts: ["alpha upstream_unavailable 503", "alpha cancelled"] },
  },
  {
    name: "closes the upstream connection when the caller cancels during a fallback",
    ask: { fallbackModels: ["beta", "local"] },
    upstream: { alpha: [refuses(400)], beta: [staysSilent], local: [hello] },
    leaves: "in the second call",
    expected: { failure: "cancelled", attempts: ["alpha upstream_rejected 400", "beta cancelled"] },
  },
  {
    name: "closes the upstream connection when the caller cancels in the middle of a stream",
    mode: "stream",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [begins("Hel", "silence")], beta: [hello] },
    leaves: "after content",
    expected: { failure: "cancelled", attempts: ["alpha cancelled 200"], breaker: "closed" },
  },
  {
    name: "responds in time when the caller's deadline passes before the first content, without calling another model",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [staysSilent], beta: [hello] },
    deadlineMs: 1_000,
    expected: { failure: "deadline_exceeded", attempts: ["alpha deadline_exceeded"], breaker: "closed" },
  },
  {
    name: "ends a stream when the caller's deadline passes in the middle",
    mode: "stream",
    upstream: { alpha: [begins("Hel", "silence")] },
    deadlineMs: 1_000,
    expected: {
      failure: "deadline_exceeded",
      after: "Hel",
      attempts: ["alpha deadline_exceeded 200"],
      closesConnection: true,
    },
  },
  {
    name: "applies the caller's deadline to all attempts together",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [refuses(400)], beta: [staysSilent] },
    deadlineMs: 1_000,
    expected: { failure: "deadline_exceeded", attempts: ["alpha upstream_rejected 400", "beta deadline_exceeded"] },
  },
  {
    name: "applies the timeout header of OpenAI's clients",
    at: "http",
    http: { headers: { "x-stainless-timeout": "1" } },
    upstream: { alpha: [staysSilent] },
    expected: { failure: "deadline_exceeded", attempts: ["alpha deadline_exceeded"] },
  },
  {
    name: "returns overloaded when it stops before the first content",
    ask: { fallbackModels: ["beta"] },
    upstream: { alpha: [staysSilent], beta: [hello] },
    stops: "in the first call",
    expected: { failure: "overloaded", attempts: ["alpha overloaded"], breaker: "closed" },
  },
  {
    name: "ends a stream with a failure when it stops in the middle",
    mode: "stream",
    upstream: { alpha: [begins("Hel", "silence")] },
    stops: "after content",
    expected: { failure: "overloaded", after: "Hel", attempts: ["alpha overloaded 200"], closesConnection: true },
  },
];
