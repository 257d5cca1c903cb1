import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, it } from "vitest";
import { BadRequestSchema } from "../../gen/google/rpc/error_details_pb.js";
import { lineChanges } from "../../web/configuration/line-changes.ts";
import { describeProblems, readProblems } from "../../web/configuration/problems.ts";
import { fieldOfProblem, OTHER, providerEntry, toChanges } from "../../web/configuration/provider-draft.ts";

const DRAFT = { name: "acme", preset: OTHER, dialect: "openai", baseUrl: "https://a.example/v1", isPrivate: false };

describe("line changes", () => {
  it.each([
    ["", "a: 1\n", [["+", "a: 1"]]],
    ["a: 1", "", [["-", "a: 1"]]],
    ["a\nb\nc", "a\nx\nc", [" a", "-b", "+x", " c"].map((line) => [line[0], line.slice(1)])],
    ["a\na", "a", [" a", "-a"].map((line) => [line[0], line.slice(1)])],
  ])("of %j and %j", (before, after, expected) => {
    expect(lineChanges(before, after)).toEqual(expected);
  });
});

describe("problems of a change", () => {
  const fieldViolations = [
    { field: "changes[1].entry:3:5", description: 'models["a/b.c"].price: must be a map' },
    { field: "changes[1].entry:2:1", description: "models.b.upstream: unknown key" },
    { field: "changes[0].api_keys[0]", description: "must be one word" },
  ];
  const detail = { desc: BadRequestSchema, value: { fieldViolations } };
  const found = readProblems(new ConnectError("wrong", Code.InvalidArgument, undefined, [detail]))!;

  it("have their change, their part and their place, in the order of the text", () => {
    expect(found.all.map(({ index, part, line, column }) => [index, part, line, column])).toEqual([
      [0, "api_keys", 0, 0],
      [1, "entry", 2, 1],
      [1, "entry", 3, 5],
    ]);
  });

  it("are described without the name of the entry", () => {
    expect(describeProblems(found.all.filter(({ index }) => index === 1))).toBe(
      "Line 2, column 1: upstream: unknown key.\nLine 3, column 5: price: must be a map.",
    );
  });
});

describe("a provider of the form", () => {
  it("has the typed settings first, so that a problem is found at its field", () => {
    const entry = providerEntry({ ...DRAFT, more: "labels:\n  region: eu\n" });
    expect(entry.text).toBe('labels:\n  region: eu\ndialect: openai\nbase_url: "https://a.example/v1"');
    const at = (line: number) => fieldOfProblem({ index: 0, part: "entry", line, column: 1, text: "" }, entry);
    expect([0, 1, 2, 3, 4].map(at)).toEqual(["", "more", "more", "", "base_url"]);
  });

  it("is one change with its models, whose names begin with its own", () => {
    const changes = toChanges({ ...DRAFT, more: "" }, "key", [
      { name: 'x: "y"', input: "1", output: "", offered: undefined },
    ]);
    expect(changes.map(({ name }) => name)).toEqual(["acme", 'acme/x: "y"']);
    expect(changes[1]?.entry).toBe('provider: acme\nupstream_model: "x: \\"y\\""\nprice: { input: 1 }');
    expect(toChanges({ ...DRAFT, more: "" }, "", "all")).toMatchObject([
      { apiKeys: [] },
      { name: "acme/*", entry: "import" },
    ]);
  });
});
