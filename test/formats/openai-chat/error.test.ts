import { describe, expect, it } from "vitest";
import { Failure } from "../../../src/core/failure.ts";
import { toErrorBody, toErrorEvent } from "../../../src/formats/openai-error.ts";
import { readEvents } from "./scenarios.ts";
import { attemptOf } from "../../support/attempt.ts";

const attempts = [
  attemptOf({
    model: "a",
    outcome: "upstream_timeout",
    upstreamStatus: 504,
    reason: "Late.",
    durationMs: 9,
  }),
];

describe("an error body", () => {
  it.each<[string, Failure, object]>([
    [
      "names the field",
      new Failure("invalid_request", "n: is wrong.", { violations: [{ field: "n", description: "is wrong" }] }),
      { message: "n: is wrong.", type: "invalid_request_error", param: "n", code: null },
    ],
    [
      "of a 401 has no code at all",
      new Failure("unauthenticated", "No."),
      { message: "No.", type: "authentication_error", param: null },
    ],
    [
      "lists what was tried",
      new Failure("upstream_timeout", "Late.", { attempts }),
      {
        message: "Late.",
        type: "service_unavailable",
        param: null,
        code: "upstream_timeout",
        attempts: [
          {
            model: "a",
            outcome: "upstream_timeout",
            upstream_status: 504,
            reason: "Late.",
            start_ms: 0,
            duration_ms: 9,
          },
        ],
      },
    ],
  ])("%s", (_, failure, error) => {
    expect(toErrorBody(failure)).toEqual({ error });
  });
});

it.each(["a\n\nb", "\r", "\u2028", "data: [DONE]\n\n"])(
  "an error event is one event, whatever its message: %j",
  (message) => {
    expect(readEvents(toErrorEvent(new Failure("internal", message)))).toMatchObject([{ error: { message } }]);
  },
);
