import { describe, expect, it } from "vitest";
import { keepAll, redactionOf } from "../../../src/providers/wire/redaction.ts";
import { scrub } from "../../../src/providers/wire/scrub.ts";

describe("an upstream's words are shown without", () => {
  it.each([
    ["a key", "Bad key sk-proj-abcDEF123 given", "Bad key [key] given"],
    ["a masked key", "Bad key sk-ab****wxyz given", "Bad key [key] given"],
    ["a bearer", "Got Bearer abc.def now", "Got [key] now"],
    ["something opaque", "token AbCdEf0123456789AbCdEf0123456789 ok", "token [key] ok"],
    ["an e-mail address", "Ask jane.doe+x@mail.example.com now", "Ask [e-mail] now"],
    ["an address", "See https://platform.example.com/keys?x=1 now", "See [address] now"],
    ["a host and port", "dial 10.1.2.3:8080 failed", "dial [address] failed"],
    ["a service of a cluster", "vllm-7.prod.svc is down", "[address] is down"],
    ["a name of a cluster", "vllm-7.prod.svc.cluster.local:8000 is down", "[address] is down"],
    ["an organisation", "in org-AbCdEfGh on tokens", "in [account] on tokens"],
    ["a project", "project 123456789 is off", "[account] is off"],
    ["a request's ID", "see req_0aB1c2D3 please", "see [account] please"],
    ["line breaks", "a\n  b", "a b"],
    ["a key by its name", "api_key=hunter2 is bad", "api_key=[key] is bad"],
    ["a quoted key by its name", '{"api-key": "hunter2"}', '{"api-key": "[key]"}'],
    ["a password", "password: hunter two", "password: [key] two"],
    ["a secret without a separator", "secret abc123def is bad", "secret [key] is bad"],
    ["a token with a separator", "token=abcdef is bad", "token=[key] is bad"],
    ["an authorization", "authorization: Basic dXNlcjpwYXNz now", "authorization: [key] now"],
    ["basic credentials", "Got Basic dXNlcjpwYXNz now", "Got [key] now"],
    ["the ID of a cloud's key", "AKIAIOSFODNN7EXAMPLE was refused", "[key] was refused"],
    ["a cloud's key", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY was refused", "[key] was refused"],
    ["an address of the new kind", "dial [2001:db8::1]:443 failed", "dial [address] failed"],
    ["a full address of the new kind", "from 2001:db8:0:0:0:0:0:1 on", "from [address] on"],
    ["a loopback address", "dial ::1 failed", "dial [address] failed"],
    ["a host with a port", "dial vllm.example.com:8000 failed", "dial [address] failed"],
    ["a bare host with a port", "dial redis-0:6379 and localhost:80", "dial [address] and [address]"],
    ["a host of the inside", "at vllm.svc.cluster.local now", "at [address] now"],
    ["a file", 'File "/usr/lib/python3/site-packages/vllm/x.py", line 5', 'File "[path]", line 5'],
    ["a file of one's home", "in ~/.config/keys and /home/ann/x", "in [path] and [path]"],
    ["a file of the other kind", String.raw`in C:\Users\ann\keys.txt now`, "in [path] now"],
  ])("%s", (_, text, shown) => {
    expect(scrub(text, keepAll)).toBe(shown);
  });

  it.each([
    "prompt is too long: 210000 tokens > 200000 maximum",
    "messages[3].content[0]: unsupported image",
    "user_message is required",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "max_tokens: 5 is too large; tokens: 7",
    "the API key provided has no access; Authorization header missing",
    "Basic authentication is not supported",
    "api-version 2023-06-01 is not supported by claude-haiku-4-5-20251001",
    "gemini-2.5-flash-preview-09-2025-thinking and gpt-4o-mini-2024-07-18-batch",
    "Unsupported MIME type: image/tiff at /messages/0/content",
    "POST /v1/chat/completions at 12:30:45, ratio 4:3, line 3:14",
    "messages.0.content: std::vector is no text",
  ])("anything of %j but itself", (text) => {
    expect(scrub(text, keepAll)).toBe(text);
  });

  it.each(["your credit balance is low", "Quota exceeded", "see Billing", "<!DOCTYPE html><p>x"])(
    "showing %j at all",
    (text) => {
      expect(scrub(text, keepAll)).toBe("");
    },
  );

  it("more than 500 characters, or half a word", () => {
    const shown = scrub("word ".repeat(1000), keepAll);
    expect(shown.length).toBeLessThanOrEqual(502);
    expect(shown).toMatch(/word …$/);
  });

  it("anything of one endless word", () => {
    expect(scrub("a-".repeat(30_000), keepAll)).toBe("");
  });

  it("words of money only as far as it reads", () => {
    expect(scrub(`${"word ".repeat(1000)}billing`, keepAll)).toMatch(/^word/);
  });

  it("what is known to be a credential before what looks like one", () => {
    const redact = redactionOf(["jane@keys.example.com/tail-of-it"]);
    expect(scrub("Bad key jane@keys.example.com/tail-of-it given", redact)).toBe("Bad key [key] given");
    expect(scrub("Bad key jane@keys.example.com/tail-of-it given", keepAll)).toContain("tail-of-it");
  });
});
