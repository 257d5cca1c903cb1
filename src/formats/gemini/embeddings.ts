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

/** The body of `embedContent`. */
export const embedContentRequest = field(
  z.looseObject({
    content: field(content, "The text to embed. Parts are joined."),
    taskType: optional(z.string(), "What the vector is for, such as `RETRIEVAL_QUERY`."),
    outputDimensionality: optional(z.int(), "The length of the vector; the model’s own without it."),
    title: field(z.unknown().optional(), "Not passed on."),
    model: field(z.unknown().optional(), "Ignored: the path names the model."),
  }),
  "What to embed.",
);

/** The body of `batchEmbedContents`. */
export const batchEmbedContentsRequest = field(
  z.looseObject({
    requests: field(
      z.array(embedContentRequest).max(MAX_INPUTS),
      "One for each vector. All must have the same `taskType` and `outputDimensionality`.",
    ),
  }),
  "What to embed.",
);

const spellOne = spellingOf(embedContentRequest);
const readOne = shapeReader(embedContentRequest, "a request to embed");
const spellBatch = spellingOf(batchEmbedContentsRequest);
const readBatch = shapeReader(batchEmbedContentsRequest, "a request to embed");

type One = z.output<typeof embedContentRequest>;

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
  const read = toRead([readOne(spellOne(json))], model, () => "");
  return {
    ...read,
    write: (answer) => [Buffer.from(JSON.stringify({ embedding: vectorOf(answer), ...rest(answer, read) }))],
  };
}

const vectorOf = ({ embeddings }: Embeddings): object => ({ values: embeddings[0]?.values ?? [] });

/** Reads a request for several vectors. */
export function readBatchEmbedContents({ json }: Pick<FormatInput, "json">, model: string): ReadEmbedding {
  const read = toRead(readBatch(spellBatch(json)).requests, model, (index) => `requests[${index}].`);
  return {
    ...read,
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

/** `pathOf`: what is before the fields of a request of the batch. */
function toRead(given: readonly One[], model: string, pathOf: (index: number) => string): Omit<ReadEmbedding, "write"> {
  const [first] = given;
  const request: EmbeddingRequest = {
    $typeName: "parley.v1.EmbeddingRequest",
    model: model.replace(/^models\//, ""),
    inputs: given.map((one, index) => ({
      $typeName: "parley.v1.EmbeddingInput",
      kind: { case: "text", value: toText(one, pathOf(index)) },
    })),
    task: toTask(first?.taskType, pathOf(0)),
    strict: false,
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
  const unrecognized = given
    .flatMap((one, index) => (one.title == null ? [] : [`${pathOf(index)}title`]))
    .slice(0, MAX_UNRECOGNIZED);
  return { request, unrecognized, nameOf: (path) => toName(path, pathOf) };
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
