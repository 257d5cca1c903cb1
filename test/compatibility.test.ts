import { describe, expect, it } from "vitest";
import { z } from "zod";
import { CompletionChunkSchema, CompletionRequestSchema, CompletionSchema } from "../gen/parley/v1/completion_pb.js";
import { type Dialect, DIALECTS } from "../src/config/dialects.ts";
import { Failure } from "../src/core/failure.ts";
import { readChatRequest } from "../src/formats/openai-chat/request.ts";
import { toErrorBody } from "../src/formats/openai-error.ts";
import { chatRequest } from "../src/formats/openai-chat/schema.ts";
import { createCors } from "../src/inbound/http/routes.ts";
import { ANSWER_SAMPLES, answerEnding } from "./compatibility/answer-samples.ts";
import { asCompletion, asEvents, pathsOf } from "./compatibility/answers.ts";
import { covers, observe, placeOfChange, promisedBy } from "./compatibility/outcome.ts";
import { hasProtoField } from "./compatibility/proto-path.ts";
import { REQUEST_SAMPLES } from "./compatibility/request-samples.ts";
import { codeIn, dialectRowsUnder, tableUnder } from "./compatibility/table.ts";
import { attemptOf } from "./support/attempt.ts";

describe("docs/compatibility.md on requests", () => {
  const rows = [...dialectRowsUnder("Request"), ...dialectRowsUnder("Messages")];
  const cases = rows.flatMap((row) =>
    DIALECTS.map((dialect) => ({
      row,
      dialect,
      title: `${row.name}${Object.keys(row.condition).length > 0 ? `, ${JSON.stringify(row.condition)}` : ""}`,
    })),
  );

  it.each(cases)("says of $title what $dialect does with it", ({ row, dialect }) => {
    const sample = REQUEST_SAMPLES[row.name];
    expect(sample, `there is a sample of "${row.name}"`).toBeDefined();
    const promised = promisedBy(row, dialect);
    const outcome = observe(sample!, dialect, row.condition);
    expect({ ...outcome, changed: placeOfChange(outcome.changed, promised.changed) }).toEqual(promised);
  });

  it("has a row for every field that clients may send", () => {
    const fields = rows.map(({ field }) => field);
    const isBelow = (path: string, above: string): boolean => covers(above, [path]) && path !== above;
    const isDocumented = (path: string): boolean =>
      fields.some((field) => field === path || isBelow(field, path)) ||
      // A row without rows below it speaks for all that is below it.
      fields.some((field) => isBelow(path, field) && !fields.some((other) => isBelow(other, field)));
    const known = pathsIn(z.toJSONSchema(chatRequest, { io: "input" })).filter((path) => !path.endsWith(".type"));
    expect(known.length).toBeGreaterThan(80);
    expect(known.filter((path) => !isDocumented(path))).toEqual([]);
  });

  it("has a sample for every row, and no other", () => {
    expect(Object.keys(REQUEST_SAMPLES).toSorted()).toEqual([...new Set(rows.map(({ name }) => name))].toSorted());
  });

  it.each(rows.flatMap(({ proto }) => (proto === undefined ? [] : [proto])))(
    "names the contract's field %s",
    (path) => {
      expect(path).toSatisfy((each: string) => hasProtoField(CompletionRequestSchema, each));
    },
  );

  it("says how an unknown key is treated", () => {
    const messages = [{ role: "user", content: "Hi", weight: 1 }];
    expect(readChatRequest({ model: "m", messages, frobnicate: 1 }).unrecognized).toEqual([
      "frobnicate",
      "messages[0].weight",
    ]);
  });
});

describe("docs/compatibility.md on answers", () => {
  const whole = dialectRowsUnder("Answer");
  const streamed = dialectRowsUnder("Stream");
  const seen = (read: (dialect: Dialect, json: object) => unknown): Record<Dialect, Set<string>> =>
    Object.fromEntries(
      DIALECTS.map((dialect) => [dialect, pathsOf({ _: ANSWER_SAMPLES[dialect].map((json) => read(dialect, json)) })]),
    ) as Record<Dialect, Set<string>>;
  const inWhole = seen(asCompletion);
  const inStream = seen(asEvents);
  const found = (paths: Record<Dialect, Set<string>>, field: string, prefix: string): Record<Dialect, string> =>
    Object.fromEntries(
      DIALECTS.map((dialect) => [dialect, paths[dialect].has(`${prefix}.${field}`) ? "yes" : "–"]),
    ) as Record<Dialect, string>;

  it.each(whole)("says which dialects' answers have $field", ({ field, cells }) => {
    expect(found(inWhole, field, "_[]")).toEqual(cells);
  });

  it.each(streamed)("says which dialects' streams have $field", ({ field, cells }) => {
    expect(found(inStream, field, "_[][]")).toEqual(cells);
  });

  it("has a row for every field that clients are given", () => {
    const undocumented = (paths: Record<Dialect, Set<string>>, prefix: string, fields: readonly string[]): string[] => {
      const all = new Set(DIALECTS.flatMap((dialect) => [...paths[dialect]]));
      return [...all]
        .filter((path) => path.startsWith(`${prefix}.`))
        .map((path) => path.slice(prefix.length + 1))
        .filter((path) => !fields.some((field) => covers(field, [path]) || covers(path, [field])))
        .filter((path) => !path.endsWith("[].type") && !path.endsWith("[].text"));
    };
    const fields = whole.map(({ field }) => field);
    expect(undocumented(inWhole, "_[]", fields)).toEqual([]);
    const inEvents = [...streamed.map(({ field }) => field), "id", "object", "created", "model", "choices[].index"];
    expect(undocumented(inStream, "_[][]", inEvents)).toEqual([]);
  });

  it.each(whole.flatMap(({ proto }) => (proto === undefined ? [] : [proto])))("names the contract's %s", (path) => {
    expect(path).toSatisfy((each: string) => hasProtoField(CompletionSchema, each));
  });

  it.each(streamed.flatMap(({ proto }) => (proto === undefined ? [] : [proto])))("names the chunk's %s", (path) => {
    expect(path).toSatisfy((each: string) => hasProtoField(CompletionChunkSchema, each));
  });

  it.each(tableUnder("Why an answer ended"))("says that %s of %s is %s", (first, dialect, reason) => {
    const ending = { word: codeIn(first)[0] ?? "", called: first.endsWith("with a call") };
    expect(asCompletion(dialect as Dialect, answerEnding(dialect as Dialect, ending))).toMatchObject({
      choices: [{ finish_reason: reason, native_finish_reason: ending.word }],
    });
  });
});

describe("docs/compatibility.md on what comes with an answer", () => {
  it("has a row for every field of an error, and no other", () => {
    const attempts = [attemptOf()];
    const violations = [{ field: "n", description: "is wrong" }];
    const { error } = toErrorBody(new Failure("invalid_request", "n: is wrong.", { violations, attempts })) as {
      error: object;
    };
    const fields = tableUnder("Errors").map(([field = ""]) => codeIn(field)[0] ?? "");
    expect(fields.toSorted()).toEqual(
      Object.keys(error)
        .map((key) => `error.${key}`)
        .toSorted(),
    );
  });

  it("has a row for every header that clients may read, and no other", () => {
    const headers = createCors(["*"])({ headers: { origin: "https://example.com" }, method: "POST" } as never);
    const exposed = headers.find(([name]) => name === "access-control-expose-headers")?.[1].split(", ") ?? [];
    expect(tableUnder("Headers").map(([name = ""]) => codeIn(name)[0])).toEqual(exposed);
  });
});

/** Every path in a JSON schema, in the words of the page. */
function pathsIn(schema: unknown, path = ""): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, items, anyOf = [], oneOf = [] } = schema as Readonly<Record<string, object>>;
  const own = Object.entries(properties).flatMap(([key, value]: [string, unknown]) => {
    const at = path === "" ? key : `${path}.${key}`;
    return [at, ...pathsIn(value, at)];
  });
  const inner = [...Object.values(anyOf), ...Object.values(oneOf)].flatMap((each: unknown) => pathsIn(each, path));
  return [...new Set([...own, ...inner, ...pathsIn(items, `${path}[]`)])];
}
