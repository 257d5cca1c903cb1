import { clone } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CompletionRequest, CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { type Message, Role } from "../../gen/parley/v1/message_pb.js";
import { Failure } from "../../src/core/failure.ts";
import type { UpstreamModel } from "../../src/core/provider.ts";
import { NO_RULES } from "../router/routed.ts";
import { planAttempts } from "../../src/router/plan.ts";
import { modelOf } from "../support/scripted-provider.ts";
import { conversations } from "./conversations.ts";
import { type Dialect, DIALECTS, translated } from "./dialects.ts";
import { speakerOf, splitMarked } from "./marks.ts";
import { losesParameter } from "./parameters.ts";

const RUNS = { numRuns: 100 };

const KINDS = DIALECTS.flatMap((dialect) =>
  Object.entries(dialect.models).map(([kind, model]) => ({ name: dialect.name, kind, dialect, model })),
);

describe.each(KINDS)("a conversation translated for $name, a model $kind", ({ dialect, model }) => {
  const requests = conversations(dialect.signatures);
  const glue = model.capabilities.contentParts ? "" : "\n";

  it("is accepted by the simulated service", () => {
    fc.assert(
      fc.property(requests, fc.constantFrom("whole" as const, "stream" as const), (request, mode) => {
        const { body } = dialect.translate(request, model, mode);
        expect(() => dialect.accept(body.toString(), model)).not.toThrow();
      }),
      RUNS,
    );
  });

  it("keeps every text, in its order and with who said it", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const { texts } = dialect.recover(translated(dialect, request, model).json);
        const recovered = (speaker: string): string[] =>
          texts.map(({ text }) => text).filter((text) => speakerOf(text) === speaker);
        for (const [speaker, role] of [
          ["S", Role.SYSTEM],
          ["U", Role.USER],
          ["A", Role.ASSISTANT],
        ] as const) {
          const said = listTexts(request, role);
          const found = recovered(speaker);
          // Where texts are joined, what was between them is behind the one before.
          expect(glue !== "" ? found.map((text, index) => text.slice(0, said[index]?.length)) : found).toEqual(said);
        }
        const places = { S: ["system", "user"], U: ["user"], A: ["assistant"], T: [] };
        for (const { text, place } of texts) expect(places[speakerOf(text)]).toContain(place);
      }),
      RUNS,
    );
  });

  it("keeps every picture's bytes, or says which it left out", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const { json, omitted } = translated(dialect, request, model);
        const { pictures } = dialect.recover(json);
        expect(pictures.toSorted()).toEqual(listPictures(request, omitted).toSorted());
      }),
      RUNS,
    );
  });

  it("keeps every call with its arguments, character by character, and its result", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const { body, json } = translated(dialect, request, model);
        const { calls, results } = dialect.recover(json);
        const asked = request.messages.flatMap((message) => message.toolCalls);
        expect(calls.map((call) => call.name)).toEqual(asked.map((call) => call.name));
        for (const call of asked) expect(body.toString()).toContain(dialect.writeArguments(call.arguments));
        expect(new Set(calls.map((call) => call.id)).size).toBe(calls.length);
        const resultOf = new Map(results.map(({ id, text }) => [id, text]));
        const found = calls.map((call) => resultOf.get(call.id));
        expect(found).toEqual(asked.map((call) => resultText(request, call.id, glue)));
      }),
      RUNS,
    );
  });

  it("keeps the ids of calls that the provider takes as they are", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const { calls } = dialect.recover(translated(dialect, request, model).json);
        const asked = request.messages.flatMap((message) => message.toolCalls.map((call) => call.id));
        const isPlain = (id: string): boolean => /^[A-Za-z0-9_-]{1,40}$/u.test(id);
        expect(calls.map(({ id }) => id).filter((_, index) => isPlain(asked[index]!))).toEqual(asked.filter(isPlain));
      }),
      RUNS,
    );
  });

  it("keeps every tool and its schema, character by character, or says that it left them out", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const { body, json, omitted } = translated(dialect, request, model);
        const names = allowedTools(request);
        const wanted = request.tools.flatMap(({ kind }, index) => {
          const isWanted = kind.case === "function" && (names?.includes(kind.value.name) ?? true);
          return isWanted && !omitted.includes("tools") ? [{ ...kind.value, field: `tools[${index}].strict` }] : [];
        });
        const found = dialect.recover(json).tools.map(({ name, description }) => ({ name, description }));
        expect(found).toEqual(expect.arrayContaining(wanted.map(({ name, description }) => ({ name, description }))));
        const schemas = wanted.map((tool) => tool.parametersJson).filter((schema) => schema !== "");
        expect(schemas.filter((schema) => !body.includes(dialect.writeSchema(schema)))).toEqual([]);
        const strict = wanted.filter((tool) => tool.strict === true && !omitted.includes(tool.field));
        // One provider has a mode for all tools at once instead, which any other choice than a free one implies.
        expect(strict.length === 0 || /"strict":true|"mode":"(?:VALIDATED|ANY|NONE)"/u.test(body.toString())).toBe(
          true,
        );
      }),
      RUNS,
    );
  });

  it("keeps the reasoning that the provider gave, or says of which message it left it out", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const { json, omitted } = translated(dialect, request, model);
        const kept = request.messages.filter((_, index) => !omitted.includes(`messages[${index}].thinking_blocks`));
        expect(dialect.recover(json).reasoning).toEqual(kept.flatMap(listReasoning));
      }),
      RUNS,
    );
  });

  it("keeps every parameter, or says that it left it out or moved it", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const translation = translated(dialect, request, model);
        expect(losesParameter(dialect.name, request, translation)).toEqual([]);
      }),
      RUNS,
    );
  });

  it("is refused by a strict request exactly for what the report would list", () => {
    fc.assert(
      fc.property(requests, (request) => {
        const { omitted, clamped } = dialect.translate(request, model, "whole");
        const strict = clone(CompletionRequestSchema, request);
        strict.strict = true;
        expect(refusedFields(dialect, strict, model)).toEqual(
          asShown([...omitted, ...clamped.map(({ field }) => field)]),
        );
        expect(refusedFields(dialect, request, model)).toEqual([]);
      }),
      RUNS,
    );
  });
});

/** Names of fields as a failure shows them: not too many, not too long, and without half characters. */
function asShown(fields: readonly string[]): string[] {
  const violations = fields.map((field) => ({ field, description: "" }));
  return new Failure("invalid_request", "", { violations }).violations.map(({ field }) => field);
}

/** The tools that may be called, when the choice names some. */
function allowedTools({ toolChoice }: CompletionRequest): readonly string[] | undefined {
  return toolChoice?.choice.case === "allowed" ? toolChoice.choice.value.names : undefined;
}

function listTexts({ messages }: CompletionRequest, role: Role): string[] {
  return messages
    .filter((message) => message.role === role)
    .flatMap((message) => message.content)
    .flatMap(({ content }) => (content.case === "text" ? splitMarked(content.value) : []));
}

function listPictures({ messages }: CompletionRequest, omitted: readonly string[]): string[] {
  return messages.flatMap((message, index) =>
    message.content.flatMap(({ content }, position) => {
      if (content.case !== "image" || content.value.source.case !== "data") return [];
      if (omitted.includes(`messages[${index}].content[${position}]`)) return [];
      return [Buffer.from(content.value.source.value).toString("base64")];
    }),
  );
}

function resultText({ messages }: CompletionRequest, callId: string, glue: string): string {
  const result = messages.find((message) => message.toolCallId === callId);
  return (result?.content ?? []).flatMap(({ content }) => (content.case === "text" ? [content.value] : [])).join(glue);
}

/** As blocks of the only dialect that gives reasoning with a state to keep. */
function listReasoning({ reasoning }: Message): unknown[] {
  return reasoning.map(({ text, signature, redacted }) =>
    redacted === "" ? { type: "thinking", thinking: text, signature } : { type: "redacted_thinking", data: redacted },
  );
}

function refusedFields(dialect: Dialect, request: CompletionRequest, upstream: UpstreamModel): string[] {
  const unused = (): never => {
    throw new Error("a plan calls nobody");
  };
  const provider = { translate: dialect.translate, create: unused, stream: unused, close: async () => {} };
  try {
    planAttempts(request, [{ ...modelOf("any", provider), upstream }], { mode: "whole", rules: NO_RULES });
    return [];
  } catch (reason) {
    if (!(reason instanceof Failure) || reason.code !== "invalid_request") throw reason;
    return (reason.violations ?? []).map(({ field }) => field);
  }
}
