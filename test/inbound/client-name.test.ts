import { describe, expect, it } from "vitest";
import { clientName } from "../../src/inbound/client-name.ts";

describe("the name of a caller's program", () => {
  it.each([
    ["OpenAI/JS 6.9.1", "OpenAI/JS 6.9.1"],
    [" \u0000\u001b[31mcurl/8\t", "[31mcurl/8"],
    ["x".repeat(500), "x".repeat(120)],
    ["curl/8 sk_parley_0123456789abcdef", "curl/8 sk_parley_[redacted]"],
    [" ", undefined],
    [undefined, undefined],
  ])("of the header %j is %j", (header, name) => {
    expect(clientName(header)).toBe(name);
  });
});
