import { clone } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CompletionRequest, CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { type Part, Role, type ToolCall } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { Failure } from "../../src/core/failure.ts";
import type { Provider, UpstreamModel } from "../../src/core/provider.ts";
import { validate } from "../../src/core/validate.ts";
import { omittedOf } from "../providers/omissions.ts";
import { NO_RULES } from "../router/routed.ts";
import { planAttempts } from "../../src/router/plan.ts";
import { modelOf } from "../support/scripted-provider.ts";
import { conversations } from "./conversations.ts";
import { type Dialect, DIALECTS, translated } from "./dialects.ts";
import { drawOnce } from "./drawn.ts";
import { markOf, speakerOf, splitMarked } from "./marks.ts";
import { losesParameter } from "./parameters.ts";
import { findFailure } from "../support/errors.ts";

const RUNS = 100;
const { VIDEO } = Modality;
const NO_MEDIA = { user: [], assistant: [], result: [] };

const unused = (): never => {
  throw new Error("no provider is called");
};
const IDLE: Provider = { translate: unused, create: unused, stream: unused, close: async () => {} };

const KINDS = DIALECTS.flatMap((dialect) =>
  Object.entries(dialect.models).map(([kind, model]) => ({ name: dialect.name, kind, dialect, model })),
);

describe.each(KINDS)("a conversation translated for $name, a model $kind", ({ dialect, model }) => {
  const drawn = drawOnce(conversations(dialect.signatures, dialect.media), RUNS);
  const known = new WeakMap<CompletionRequest, ReturnType<typeof sentFor>>();
  /** What is sent for a request: the same for all properties. */
  const send = (request: CompletionRequest): ReturnType<typeof sentFor> => {
    const sent = known.get(request) ?? sentFor({ dialect, request, model });
    known.set(request, sent);
    return sent;
  };
  const glue = model.capabilities.contentParts ? "" : "\n";

  it("is one that the contract allows", () => {
    drawn.check((request) => {
      const { maxOutputTokens: _, ...asked } = request;
      expect(() => validate(asked, { ...modelOf("any", IDLE), upstream: model }, () => [])).not.toThrow();
    });
  });

  it("is accepted by the simulated service", () => {
    drawn.check((request) => {
      for (const mode of ["whole", "stream"] as const) {
        const { body } = dialect.translate(request, model, { mode });
        expect(() => dialect.accept(body.toString(), model)).not.toThrow();
      }
    });
  });

  it("keeps every text, in its order and with who said it", () => {
    drawn.check((request) => {
      const { texts } = send(request).recovered;
      const recovered = (speaker: string): string[] =>
        texts.map(({ text }) => text).filter((text) => speakerOf(text) === speaker);
      for (const [speaker, role] of [
        ["S", Role.SYSTEM],
        ["U", Role.USER],
        ["A", Role.ASSISTANT],
        ["N", Role.ASSISTANT],
        ["V", Role.ASSISTANT],
      ] as const) {
        const said = listTexts(request, role).filter((text) => speakerOf(text) === speaker);
        const found = recovered(speaker);
        // Where texts are joined, what was between them is behind the one before.
        expect(glue !== "" ? found.map((text, index) => text.slice(0, said[index]?.length)) : found).toEqual(said);
      }
      const spoken = ["assistant"];
      const places = { S: ["system", "user"], U: ["user"], A: spoken, N: spoken, V: spoken, T: [], R: [] };
      for (const { text, place } of texts) expect(places[speakerOf(text)]).toContain(place);
    });
  });

  it("keeps the order of an answer's parts", () => {
    drawn.check((request) => {
      const { recovered, omitted } = send(request);
      const said = listAnswers(request, dialect.ordered, omittedOf({ omitted }));
      const found = recovered.answers;
      expect(dialect.ordered.size === 0 ? [] : found).toEqual(said);
    });
  });

  it("keeps every signature on its part", () => {
    drawn.check((request) => {
      const signed = request.messages.flatMap(({ parts }) => parts).filter(({ kind }) => kind.case !== "reasoning");
      const unsigned = new Set<string | undefined>(["refusal", "audio", "video", "file"]);
      const given = signed.filter(({ kind }) => !unsigned.has(kind.case));
      expect(send(request).recovered.signatures).toEqual(
        given.map(({ signature }) => signature).filter((signature) => signature !== ""),
      );
    });
  });

  it("keeps the bytes of every picture, recording, video and document, or says which it left out", () => {
    drawn.check((request) => {
      const { recovered, omitted } = send(request);
      const { media } = recovered;
      expect(media.toSorted()).toEqual(listMedia(request, omittedOf({ omitted })).toSorted());
    });
  });

  it("keeps every call with its arguments, character by character, and its result", () => {
    drawn.check((request) => {
      const { body, recovered, omitted } = send(request);
      const { calls, results } = recovered;
      const asked = listCalls(request);
      expect(calls.map((call) => call.name)).toEqual(asked.map((call) => call.name));
      for (const call of asked) expect(body.toString()).toContain(dialect.writeArguments(call.input.value ?? ""));
      expect(new Set(calls.map((call) => call.id)).size).toBe(calls.length);
      const resultOf = new Map(results.map(({ id, text, isError }) => [id, { text, isError }]));
      const found = calls.map((call) => resultOf.get(call.id));
      expect(found).toEqual(
        asked.map((call) => resultOfCall(request, call.id, { glue, omitted: omittedOf({ omitted }) })),
      );
    });
  });

  it("keeps the ids of calls that the provider takes as they are", () => {
    drawn.check((request) => {
      const { calls } = send(request).recovered;
      const asked = listCalls(request).map((call) => call.id);
      const isPlain = (id: string): boolean => /^[A-Za-z0-9_-]{1,40}$/u.test(id);
      expect(calls.map(({ id }) => id).filter((_, index) => isPlain(asked[index]!))).toEqual(asked.filter(isPlain));
    });
  });

  it("keeps every tool and its schema, character by character, or says that it left them out", () => {
    drawn.check((request) => {
      const translation = send(request);
      const { body, recovered } = translation;
      const omitted = omittedOf(translation);
      const names = allowedTools(request);
      const wanted = request.tools.flatMap(({ kind }, index) => {
        const isWanted = kind.case === "function" && (names?.includes(kind.value.name) ?? true);
        return isWanted && !omitted.includes("tools")
          ? [{ ...kind.value, field: `tools[${index}].function.strict` }]
          : [];
      });
      const found = recovered.tools.map(({ name, description }) => ({ name, description }));
      expect(found).toEqual(expect.arrayContaining(wanted.map(({ name, description }) => ({ name, description }))));
      const schemas = wanted.map((tool) => tool.parametersJson).filter((schema) => schema !== "");
      expect(schemas.filter((schema) => !body.includes(dialect.writeSchema(schema)))).toEqual([]);
      const strict = wanted.filter((tool) => tool.strict === true && !omitted.includes(tool.field));
      // One provider has a mode for all tools at once instead, which any other choice than a free one implies.
      expect(strict.length === 0 || /"strict":true|"mode":"(?:VALIDATED|ANY|NONE)"/u.test(body.toString())).toBe(true);
    });
  });

  it("keeps the reasoning that the provider gave, or says which part it left out", () => {
    drawn.check((request) => {
      const { recovered, omitted } = send(request);
      const given = listReasoning(request, omittedOf({ omitted })).map((part) => dialect.writeReasoning?.(part));
      expect(recovered.reasoning).toEqual(dialect.writeReasoning === undefined ? [] : given);
    });
  });

  it("keeps every cache mark, or says which it left out", () => {
    drawn.check((request) => {
      const translation = send(request);
      const sent = translation.body.toString().split('"cache_control":').length - 1;
      const omitted = omittedOf(translation).filter((field) => field.endsWith(".cache_mark"));
      const marks = listMarks(request).map(({ path }) => path);
      expect([...omitted, ...Array.from({ length: sent }, () => "sent")]).toHaveLength(marks.length);
      expect(marks).toEqual(expect.arrayContaining(omitted));
    });
  });

  it("keeps the time of every cache mark that it sends, or says which it sends instead", () => {
    drawn.check((request) => {
      const translation = send(request);
      const omitted = omittedOf(translation);
      const clamped = new Set(translation.clamped.map(({ field }) => field));
      const unkept = listMarks(request).filter(
        ({ seconds }) => seconds !== undefined && ![300, 3600].includes(seconds),
      );
      for (const { path } of unkept) expect(omitted.includes(path) || clamped.has(`${path}.ttl`)).toBe(true);
    });
  });

  it("asks for citations of the documents of which the request does, or says that it does not", () => {
    drawn.check((request) => {
      const translation = send(request);
      const sent = translation.body.toString().split('"citations":{"enabled":true}').length - 1;
      const omitted = omittedOf(translation).filter((field) => field.endsWith(".file.citations"));
      const asked = listCited(request);
      expect([...omitted, ...Array.from({ length: sent }, () => "sent")]).toHaveLength(asked.length);
      expect(asked).toEqual(expect.arrayContaining(omitted));
    });
  });

  it("is refused for a video, naming its part, where the model takes none", () => {
    const blind = { ...model, inputModalities: new Set([...model.inputModalities].filter((kind) => kind !== VIDEO)) };
    const sources = fc.constantFrom("video" as const, "linked video" as const);
    const seen = sources.chain((kind) => conversations(dialect.signatures, { ...NO_MEDIA, user: [kind] }));
    fc.assert(
      fc.property(seen, (request) => {
        const videos = listVideos(request);
        const refuse = (): unknown => dialect.translate(request, blind, { mode: "whole" });
        expect(findFailure(refuse)?.violations.map(({ field }) => field)).toEqual(
          videos.length === 0 ? undefined : [videos[0]],
        );
      }),
      { numRuns: RUNS },
    );
  });

  it("keeps every parameter, or says that it left it out or moved it", () => {
    drawn.check((request) => {
      const translation = send(request);
      expect(losesParameter(dialect.name, request, translation)).toEqual([]);
    });
  });

  it("is refused by a strict request exactly for what the report would list", () => {
    drawn.check((request) => {
      const { omitted, clamped } = dialect.translate(request, model, { mode: "whole" });
      const strict = clone(CompletionRequestSchema, request);
      strict.strict = true;
      expect(refusedFields(dialect, strict, model)).toEqual(
        asShown([...omittedOf({ omitted }), ...clamped.map(({ field }) => field)]),
      );
      expect(refusedFields(dialect, request, model)).toEqual([]);
    });
  });
});

interface Sending {
  readonly dialect: Dialect;
  readonly request: CompletionRequest;
  readonly model: UpstreamModel;
}

/** What is sent for a request, and what can be read of it again. */
function sentFor({ dialect, request, model }: Sending) {
  const translation = translated(dialect, request, model);
  return { ...translation, recovered: dialect.recover(translation.json) };
}

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
    .flatMap(({ parts }) => parts)
    .flatMap(({ kind }) => splitMarked(textOf(kind)));
}

/** What a part says: its text, its refusal, or what is spoken. */
function textOf(kind: Part["kind"]): string {
  if (kind.case === "audio") return kind.value.transcript;
  return kind.case === "text" || kind.case === "refusal" ? kind.value : "";
}

/** What assistants say and do of the given kinds, as `Recovered.answers` has it. */
function listAnswers(
  { messages }: CompletionRequest,
  kinds: ReadonlySet<string>,
  omitted: readonly string[],
): string[] {
  return messages.flatMap(({ role, parts }, at) =>
    parts.flatMap(({ kind }, index) => {
      if (role !== Role.ASSISTANT || !kinds.has(kind.case ?? "")) return [];
      if (omitted.includes(`messages[${at}].parts[${index}]`)) return [];
      if (kind.case === "toolCall") return [kind.value.name];
      if (kind.case === "reasoning") return ["reasoning"];
      return splitMarked(textOf(kind)).map(markOf).concat(dataOf(kind));
    }),
  );
}

/** All parts of a request with their paths, those of tool results too. */
function listParts({ messages }: CompletionRequest): { readonly part: Part; readonly path: string }[] {
  const ofParts = (parts: readonly Part[], list: string): { part: Part; path: string }[] =>
    parts.flatMap((part, index) => {
      const path = `${list}[${index}]`;
      const { kind } = part;
      return [
        { part, path },
        ...(kind.case === "toolResult" ? ofParts(kind.value.parts, `${path}.tool_result.parts`) : []),
      ];
    });
  return messages.flatMap(({ parts }, index) => ofParts(parts, `messages[${index}].parts`));
}

/** Paths and times of the cache marks of a request. */
function listMarks(request: CompletionRequest): { readonly path: string; readonly seconds: number | undefined }[] {
  return listParts(request).flatMap(({ part: { cacheMark }, path }) =>
    cacheMark === undefined
      ? []
      : [{ path: `${path}.cache_mark`, seconds: cacheMark.ttl && Number(cacheMark.ttl.seconds) }],
  );
}

/** Paths of the requests to cite a document. */
function listCited(request: CompletionRequest): string[] {
  return listParts(request).flatMap(({ part: { kind }, path }) =>
    kind.case === "file" && kind.value.citations ? [`${path}.file.citations`] : [],
  );
}

/** Paths of the videos of a request. */
function listVideos(request: CompletionRequest): string[] {
  return listParts(request).flatMap(({ part: { kind }, path }) => (kind.case === "video" ? [path] : []));
}

function listCalls({ messages }: CompletionRequest): ToolCall[] {
  return messages.flatMap(({ parts }) => parts.flatMap(({ kind }) => (kind.case === "toolCall" ? [kind.value] : [])));
}

/** The data of a picture, recording, video or document, in base64, or the address of a video. */
function dataOf(kind: Part["kind"]): string[] {
  const data = kind.case === "audio" && kind.value.source.case === "data" ? kind.value.source.value : undefined;
  if (kind.case === "video" && kind.value.source.case === "url") return [kind.value.source.value];
  const hasSource = kind.case === "image" || kind.case === "file" || kind.case === "video";
  const source = hasSource ? kind.value.source : undefined;
  const bytes = source?.case === "data" ? source.value : data;
  return bytes === undefined || bytes.length === 0 ? [] : [Buffer.from(bytes).toString("base64")];
}

function listMedia({ messages }: CompletionRequest, omitted: readonly string[]): string[] {
  const ofParts = (parts: readonly Part[], path: string): string[] =>
    parts.flatMap(({ kind }, index) => {
      if (omitted.includes(`${path}[${index}]`)) return [];
      return kind.case === "toolResult"
        ? ofParts(kind.value.parts, `${path}[${index}].tool_result.parts`)
        : dataOf(kind);
    });
  return messages.flatMap(({ parts }, index) => ofParts(parts, `messages[${index}].parts`));
}

/** The result of a call: its text, and whether the tool failed if the provider can be told. */
function resultOfCall(
  { messages }: CompletionRequest,
  callId: string,
  { glue, omitted }: { readonly glue: string; readonly omitted: readonly string[] },
): unknown {
  const found = messages.flatMap(({ parts }, at) =>
    parts.flatMap(({ kind }, index) => {
      if (kind.case !== "toolResult" || kind.value.toolCallId !== callId) return [];
      const isTold = !omitted.includes(`messages[${at}].parts[${index}].tool_result.is_error`);
      const texts = kind.value.parts.flatMap((part) => (part.kind.case === "text" ? [part.kind.value] : []));
      return [{ text: texts.join(glue), isError: kind.value.isError && isTold }];
    }),
  );
  return found[0];
}

function listReasoning({ messages }: CompletionRequest, omitted: readonly string[]): Part[] {
  return messages.flatMap(({ parts }, at) =>
    parts.filter(
      ({ kind }, index) => kind.case === "reasoning" && !omitted.includes(`messages[${at}].parts[${index}]`),
    ),
  );
}

function refusedFields(dialect: Dialect, request: CompletionRequest, upstream: UpstreamModel): string[] {
  const provider = { ...IDLE, translate: dialect.translate };
  try {
    planAttempts(request, [{ ...modelOf("any", provider), upstream }], { mode: "whole", rules: NO_RULES });
    return [];
  } catch (reason) {
    if (!(reason instanceof Failure) || reason.code !== "invalid_request") throw reason;
    return (reason.violations ?? []).map(({ field }) => field);
  }
}
