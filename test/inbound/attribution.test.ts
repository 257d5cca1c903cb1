import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { attributionHeaders, readAttribution } from "../../src/inbound/attribution.ts";

type Headers = Readonly<Record<string, string>>;
type Fields = Parameters<typeof create<typeof CompletionRequestSchema>>[1];

const read = (headers: Headers, fields: Fields = {}) =>
  readAttribution((name) => headers[name], create(CompletionRequestSchema, fields));

const SESSION = "8ba69d5a-59cd-4c9a-816f-e32cfae9a1ba";
const DEVICE = "44ba71be4201308c55cd8a94f4c7dd67";
const jsonUser = (account: string): string =>
  JSON.stringify({ device_id: DEVICE, account_uuid: account, session_id: SESSION });

describe("whom and what a request is for", () => {
  it.each<[what: string, headers: Headers, fields: Fields, expected: object | undefined]>([
    ["nothing", {}, {}, undefined],
    ["empty texts", { "parley-end-user": "", "parley-tags": " ,," }, { endUserId: "", sessionId: " " }, undefined],
    [
      "Parley's own headers, before all others",
      {
        "parley-end-user": "ann",
        "parley-session-id": "s-1",
        "parley-agent": "nightly",
        "parley-tags": "run=7, search ,search,a%2Cb",
        "user-agent": "curl/8",
        "session-id": "other",
      },
      { endUserId: "bob", safetyIdentifier: "hash", sessionId: "s-2", metadata: { run: "7", team: "a" } },
      { endUser: "ann", session: "s-1", agent: "nightly", tags: ["run=7", "search", "a,b", "team=a"] },
    ],
    ["the request's fields", {}, { endUserId: "bob", sessionId: "s-2" }, { endUser: "bob", session: "s-2" }],
    ["the safety identifier", {}, { safetyIdentifier: "hash" }, { endUser: "hash" }],
    [
      "percent-encoded headers, and those that are not",
      { "parley-end-user": "J%C3%B6rg", "parley-agent": "100%" },
      {},
      { endUser: "Jörg", agent: "100%" },
    ],
    [
      "Claude Code",
      { "user-agent": "claude-cli/2.1.197 (external, sdk-cli)", "x-claude-code-session-id": SESSION },
      { endUserId: jsonUser("") },
      { endUser: DEVICE, session: SESSION, agent: "claude-cli" },
    ],
    ["Claude Code with an account", {}, { endUserId: jsonUser("acc-1") }, { endUser: "acc-1", session: SESSION }],
    [
      "an earlier Claude Code",
      {},
      { endUserId: `user_${DEVICE}_account__session_${SESSION}` },
      { endUser: DEVICE, session: SESSION },
    ],
    [
      "a text like Claude Code's, without an account and a device",
      {},
      { endUserId: '{"session_id":""}' },
      { endUser: '{"session_id":""}' },
    ],
    ["a text like Claude Code's", {}, { endUserId: '{"session_id"' }, { endUser: '{"session_id"' }],
    [
      "Codex",
      { "user-agent": "codex_exec/0.169.0 (Debian 12.0.0; x86_64)", originator: "codex_exec", "session-id": SESSION },
      {},
      { session: SESSION, agent: "codex_exec" },
    ],
    [
      "opencode",
      { "user-agent": "opencode/1.18.33 ai-sdk/provider-utils/4.0.23", "x-session-id": "ses_df9e" },
      {},
      { session: "ses_df9e", agent: "opencode" },
    ],
    [
      "a key that a control character divides",
      {},
      { endUserId: "sk_parley_ab\u0000cd" },
      expect.objectContaining({ endUser: "sk_parley_[redacted]" }),
    ],
    [
      "control characters, keys and what is too long",
      { "parley-session-id": "a%00b%0Ac", "parley-agent": "sk_parley_0123456789abcdef" },
      { endUserId: "x".repeat(300), metadata: { k: "v".repeat(400) } },
      {
        session: "abc",
        agent: "sk_parley_[redacted]",
        endUser: "x".repeat(200),
        tags: [`k=${"v".repeat(126)}`],
      },
    ],
    [
      "huge texts, of which only the beginning is looked at",
      {},
      {
        endUserId: "é".repeat(5_000_000),
        metadata: Object.fromEntries(Array.from({ length: 200_000 }, (_, n) => [`k${n}`, "v"])),
      },
      { endUser: "é".repeat(200), tags: Array.from({ length: 16 }, (_, n) => `k${n}=v`) },
    ],
    [
      "more than 16 tags",
      { "parley-tags": Array.from({ length: 40 }, (_, index) => `t${index}`).join() },
      {},
      { tags: Array.from({ length: 16 }, (_, index) => `t${index}`) },
    ],
  ])("is read of %s", (_, headers, fields, expected) => {
    const found = read(headers, fields);
    expect(found).toEqual(expected);
    // A front passes it on.
    expect(read(Object.fromEntries(attributionHeaders(found ?? {}, 4_000)))).toEqual(expected);
  });

  it("of a header with thousands of wrong tags is read in no time, because of the first ones only", () => {
    const tags = "%,".repeat(8_000);
    const before = process.cpuUsage();
    for (let count = 0; count < 20; count += 1) expect(read({ "parley-tags": tags })).toEqual({ tags: ["%"] });
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000 / 20).toBeLessThan(10);
  });

  it("is forwarded as far as there is room, names before tags, and never without its session and end user", () => {
    const found = {
      session: "話".repeat(20),
      endUser: "ann",
      agent: "a".repeat(50),
      tags: ["é", "b", "c".repeat(20), "d"],
    };
    const handedOn = (maxChars: number) => read(Object.fromEntries(attributionHeaders(found, maxChars)));
    expect(handedOn(1_000)).toEqual(found);
    expect(handedOn(250)).toEqual({ ...found, tags: ["é", "b"] });
    expect(handedOn(185)).toEqual({ session: found.session, endUser: "ann" });
    expect(() => handedOn(182)).toThrow("together more characters than a front forwards");
    expect(() => handedOn(0)).toThrow("together more characters than a front forwards");
  });
});
