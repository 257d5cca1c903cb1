import { create } from "@bufbuild/protobuf";
import { type Clamp, ReportSchema } from "../../gen/parley/v1/report_pb.js";
import type { Dialect } from "../../src/config/dialects.ts";
import { Failure } from "../../src/core/failure.ts";
import type { UpstreamModel } from "../../src/core/provider.ts";
import { writeReport } from "../../src/formats/report.ts";
import type { NameOf } from "../../src/formats/format.ts";
import { renameFields } from "../../src/inbound/http/completion.ts";
import { readChatRequest } from "../../src/formats/openai-chat/request.ts";
import { modelOf, TRANSLATORS } from "./dialects.ts";
import type { Fields, RequestSample } from "./request-samples.ts";
import { codeIn, type Condition, type DialectRow } from "./table.ts";

/** What a field does to a translation. Indexes in paths are left open: `messages[].content`. */
export interface Outcome {
  /** Paths of the upstream body that are other with the field than without. */
  readonly changed: readonly string[];
  readonly omitted: readonly string[];
  readonly clamped: readonly { readonly field: string; readonly sent: number | string }[];
  /** The field that the refusal names; undefined when nothing was refused. */
  readonly refused: string | undefined;
}

/** Translates both requests of a sample and says in what they differ. */
export function observe({ given, without = {} }: RequestSample, dialect: Dialect, condition: Condition): Outcome {
  const model = modelOf(dialect, condition);
  const translate = (fields: Fields): Translated => translateChat({ dialect, model, fields });
  let translated: Translated;
  try {
    translated = translate({ ...without, ...given });
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== "invalid_request") throw error;
    return { changed: [], omitted: [], clamped: [], refused: open(error.param ?? "") };
  }
  const plain = translate(without);
  return {
    changed: changes(leaves(plain.json), leaves(translated.json)),
    omitted: translated.omitted.filter((field) => !plain.omitted.includes(field)).map(open),
    clamped: translated.clamped.map(({ field, sent }) => ({ field, sent })),
    refused: undefined,
  };
}

/** What a cell of a row promises: whether the body changes and where, what is listed, and what is refused. */
export interface Promised {
  /** The path that changes, or `ANYWHERE`; undefined when nothing does. */
  readonly changed: string | undefined;
  readonly omitted: readonly string[];
  readonly clamped: Outcome["clamped"];
  readonly refused: string | undefined;
}

/** A clamped value is sent, and the page does not say again under which name. */
const ANYWHERE = "anywhere";

const WORDS = ["passed", "mapped", "clamped", "omitted", "refused", "ignored", "gateway"];

/** Reads a cell such as "mapped `system`; omitted". Throws for a word that the page does not explain. */
export function promisedBy({ field, cells, condition }: DialectRow, dialect: Dialect): Promised {
  const clauses = cells[dialect].split("; ").map((clause) => ({
    word: clause.split(" ")[0] ?? "",
    code: codeIn(clause)[0],
    bound: /^clamped to `?(\w+)/.exec(clause)?.[1],
  }));
  const unknown = clauses.find(({ word }) => !WORDS.includes(word));
  if (unknown !== undefined) throw new Error(`"${unknown.word}" is none of ${WORDS.join(", ")}`);
  const clause = (word: string): (typeof clauses)[number] | undefined => clauses.find((each) => each.word === word);
  const mapped = clause("mapped")?.code;
  const moved = clause("clamped");
  const { maxOutputTokens } = modelOf(dialect, condition);
  const bound = moved?.bound ?? "";
  const sent = bound === "max_output_tokens" ? maxOutputTokens : /^\d+$/.test(bound) ? Number(bound) : bound;
  const omitted = clause("omitted");
  const refused = clause("refused");
  return {
    changed: mapped ?? (clause("passed") && field) ?? (moved && ANYWHERE),
    omitted: omitted === undefined ? [] : [omitted.code ?? field],
    clamped: moved === undefined ? [] : [{ field, sent }],
    refused: refused && (refused.code ?? field),
  };
}

/** `promised` when something changed there, else what did change; undefined when nothing did. */
export function placeOfChange(changed: readonly string[], promised: string | undefined): string | undefined {
  if (changed.length === 0) return undefined;
  const kept = promised !== undefined && (promised === ANYWHERE || covers(promised, changed));
  return kept ? promised : changed.join(", ");
}

/** Whether one of `paths` is `path` or below it. */
export function covers(path: string, paths: readonly string[]): boolean {
  return paths.some((each) => each === path || each.startsWith(`${path}.`) || each.startsWith(`${path}[`));
}

function translateChat(of: {
  readonly dialect: Dialect;
  readonly model: UpstreamModel;
  readonly fields: Fields;
}): Translated {
  const chat = { model: "m", messages: [{ role: "user", content: "Hi" }], ...of.fields };
  const { request, nameOf } = readChatRequest(chat);
  try {
    const { body, omitted, clamped } = TRANSLATORS[of.dialect].translate(request, of.model, { mode: "whole" });
    return {
      json: JSON.parse(body.toString()),
      omitted: omitted.map(({ field }) => nameOf(field)),
      clamped: asReported(clamped, nameOf),
    };
  } catch (error) {
    throw error instanceof Failure ? renameFields(error, nameOf) : error;
  }
}

/** Clamped fields in the words of the `parley` object. */
function asReported(clamped: readonly Clamp[], nameOf: NameOf): Outcome["clamped"] {
  const written = writeReport(create(ReportSchema, { clamped: [...clamped] }), nameOf) as Pick<Outcome, "clamped">;
  return written.clamped.map(({ field, sent }) => ({ field: open(field), sent }));
}

/** A translation with the caller's names of fields. */
interface Translated extends Pick<Outcome, "omitted" | "clamped"> {
  readonly json: unknown;
}

/** The path with its indexes left open. */
function open(path: string): string {
  return path.replace(/\[\d+\]/g, "[]");
}

/** Every value in a JSON document that holds no other, by its path. */
function leaves(value: unknown, path = ""): Map<string, string> {
  if (typeof value !== "object" || value === null || Object.keys(value).length === 0)
    return new Map([[path, JSON.stringify(value)]]);
  const at = (key: string): string => (Array.isArray(value) ? `${path}[${key}]` : path === "" ? key : `${path}.${key}`);
  return new Map(Object.entries(value).flatMap(([key, inner]) => [...leaves(inner, at(key))]));
}

function changes(before: Map<string, string>, after: Map<string, string>): string[] {
  const paths = new Set([...before.keys(), ...after.keys()]);
  return [...new Set([...paths].filter((path) => before.get(path) !== after.get(path)).map(open))];
}
