import { z } from "zod";
import { type EmbeddingRequest, type Embeddings, EmbeddingTask } from "../../../gen/parley/v1/embedding_pb.js";
import { invalidField } from "../../core/failure.ts";
import { MAX_INT32, MAX_UNRECOGNIZED } from "../../core/validate.ts";
import { MAX_INPUTS } from "../../core/validate-embedding.ts";
import type { FormatInput, ReadEmbedding } from "../format.ts";
import { writeReport } from "../report.ts";
import { field, optional } from "../schema-field.ts";
import { shapeReader } from "../shape.ts";
import { writeVectors } from "../vectors.ts";
import { content } from "./content-schema.ts";
import { spellingOf } from "./spelling.ts";

const parley = optional(
  z.looseObject({
    strict: optional(z.boolean(), "Refuse what would otherwise be left out.", { default: false }),
  }),
  "What no field of the format can say.",
);

const oneRequest = field(
  z.looseObject({
    content: field(content, "The text to embed. Parts are joined."),
    taskType: optional(z.string(), "What the vector is for, such as `RETRIEVAL_QUERY`."),
    outputDimensionality: optional(z.int(), "The length of the vector; the model’s own without it."),
    title: field(z.unknown().optional(), "Not passed on."),
    model: field(z.unknown().optional(), "Ignored: the path names the model."),
  }),
  "What to embed.",
);

/** The body of `embedContent`. */
export const embedContentRequest = field(z.looseObject({ ...oneRequest.shape, parley }), "What to embed.");

/** The body of `batchEmbedContents`. */
export const batchEmbedContentsRequest = field(
  z.looseObject({
    requests: field(
      z.array(oneRequest).max(MAX_INPUTS),
      "One for each vector. All must have the same `taskType` and `outputDimensionality`.",
    ),
    parley,
  }),
  "What to embed.",
);

const spellOne = spellingOf(embedContentRequest);
const readOne = shapeReader(embedContentRequest, "a request to embed");
const spellBatch = spellingOf(batchEmbedContentsRequest);
const readBatch = shapeReader(batchEmbedContentsRequest, "a request to embed");

type One = z.output<typeof oneRequest>;

const KNOWN_BATCH_KEYS: ReadonlySet<string> = new Set(Object.keys(batchEmbedContentsRequest.shape));
/** A title is known, and has no place in the contract. */
const KNOWN_KEYS: ReadonlySet<string> = new Set(Object.keys(oneRequest.shape).filter((key) => key !== "title"));
const KNOWN_SINGLE_KEYS: ReadonlySet<string> = new Set([...KNOWN_KEYS, "parley"]);

/** The vendor has more tasks than the contract. */
const TASKS: Readonly<Record<string, EmbeddingTask>> = {
  TASK_TYPE_UNSPECIFIED: EmbeddingTask.UNSPECIFIED,
  RETRIEVAL_QUERY: EmbeddingTask.QUERY,
  QUESTION_ANSWERING: EmbeddingTask.QUERY,
  FACT_VERIFICATION: EmbeddingTask.QUERY,
  CODE_RETRIEVAL_QUERY: EmbeddingTask.QUERY,
  RETRIEVAL_DOCUMENT: EmbeddingTask.DOCUMENT,
  SEMANTIC_SIMILARITY: EmbeddingTask.SIMILARITY,
  CLASSIFICATION: EmbeddingTask.CLASSIFICATION,
  CLUSTERING: EmbeddingTask.CLUSTERING,
};

/** Reads a request for one vector. */
export function readEmbedContent({ json }: Pick<FormatInput, "json">, model: string): ReadEmbedding {
  const given = readOne(spellOne(json));
  const read = toRead([given], { model, pathOf: () => "", isStrict: given.parley?.strict === true });
  return {
    ...read,
    unrecognized: unknownKeys([["", given, KNOWN_SINGLE_KEYS]]),
    write: (answer) => [Buffer.from(JSON.stringify({ embedding: vectorOf(answer), ...rest(answer, read) }))],
  };
}

const vectorOf = ({ embeddings }: Embeddings): object => ({ values: embeddings[0]?.values ?? [] });

/** Reads a request for several vectors. */
export function readBatchEmbedContents({ json }: Pick<FormatInput, "json">, model: string): ReadEmbedding {
  const given = readBatch(spellBatch(json));
  const pathOf = (index: number): string => `requests[${index}].`;
  const read = toRead(given.requests, { model, pathOf, isStrict: given.parley?.strict === true });
  return {
    ...read,
    unrecognized: unknownKeys([
      ["", given, KNOWN_BATCH_KEYS],
      ...given.requests.map((one, index) => [pathOf(index), one, KNOWN_KEYS] as const),
    ]),
    write(answer) {
      const head = JSON.stringify({ ...rest(answer, read), embeddings: [] }).slice(0, -2);
      return writeVectors(answer.embeddings, { head, tail: "]}" }, (values) => ({ values }));
    },
  };
}

function rest({ usage, report }: Embeddings, { nameOf }: Pick<ReadEmbedding, "nameOf">): object {
  return {
    ...(usage !== undefined && { usageMetadata: { promptTokenCount: usage.inputTokens } }),
    ...(report !== undefined && { parley: writeReport(report, nameOf) }),
  };
}

interface Asked {
  readonly model: string;
  /** Prefix of the field paths of a request of the batch. */
  readonly pathOf: (index: number) => string;
  readonly isStrict: boolean;
}

function toRead(
  given: readonly One[],
  { model, pathOf, isStrict }: Asked,
): Omit<ReadEmbedding, "write" | "unrecognized"> {
  const [first] = given;
  const request: EmbeddingRequest = {
    $typeName: "parley.v1.EmbeddingRequest",
    model: model.replace(/^models\//, ""),
    inputs: given.map((one, index) => ({
      $typeName: "parley.v1.EmbeddingInput",
      kind: { case: "text", value: toText(one, pathOf(index)) },
    })),
    task: toTask(first?.taskType, pathOf(0)),
    strict: isStrict,
  };
  const dimensions = first?.outputDimensionality;
  if (dimensions != null) {
    if (Math.abs(dimensions) > MAX_INT32) throw invalidField(`${pathOf(0)}outputDimensionality`, "is too large");
    request.dimensions = dimensions;
  }
  given.forEach((one, index) => {
    for (const name of ["taskType", "outputDimensionality"] as const)
      if ((one[name] ?? undefined) !== (first?.[name] ?? undefined))
        throw invalidField(`${pathOf(index)}${name}`, "must be the same in all requests");
  });
  return { request, nameOf: (path) => toName(path, pathOf) };
}

/** Names of the fields that are not passed on, the first MAX_UNRECOGNIZED. `of`: objects with their paths and known keys. */
function unknownKeys(
  of: readonly (readonly [path: string, object: Readonly<Record<string, unknown>>, known: ReadonlySet<string>])[],
): string[] {
  const unknown: string[] = [];
  for (const [path, object, known] of of) {
    for (const key in object) {
      if (known.has(key) || (key === "title" && object[key] == null)) continue;
      if (unknown.length >= MAX_UNRECOGNIZED) return unknown;
      unknown.push(`${path}${key.slice(0, 64)}`);
    }
  }
  return unknown;
}

function toText({ content: { parts } }: One, path: string): string {
  return (parts ?? [])
    .map(({ text }, index) => {
      if (text == null) throw invalidField(`${path}content.parts[${index}]`, "must be text");
      return text;
    })
    .join("");
}

function toTask(taskType: string | null | undefined, path: string): EmbeddingTask {
  const name = taskType?.toUpperCase();
  if (name === undefined) return EmbeddingTask.UNSPECIFIED;
  const task = Object.hasOwn(TASKS, name) ? TASKS[name] : undefined;
  if (task === undefined) throw invalidField(`${path}taskType`, `must be one of ${Object.keys(TASKS).join(", ")}`);
  return task;
}

function toName(path: string, pathOf: (index: number) => string): string {
  const input = /^inputs\[(\d+)\]/.exec(path);
  if (input !== null) return `${pathOf(Number(input[1]))}content`;
  if (path === "inputs") return pathOf(0) === "" ? "content" : "requests";
  if (path === "dimensions") return `${pathOf(0)}outputDimensionality`;
  return path === "task" ? `${pathOf(0)}taskType` : path;
}
