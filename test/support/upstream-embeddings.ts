import { COUNTED, geminiWire, openAiWire, type ScriptedAnswer, type UpstreamDialect } from "./upstream-dialects.ts";

/* Embeddings of the dialects that have them. `ScriptedAnswer.choices` is the number of vectors. */

/** The codes of a text's characters: a scripted vector, from which its reader gets the text. */
function toVector(text: string): readonly number[] {
  return Array.from(text, (char) => char.codePointAt(0)!);
}

/** The text of a scripted vector. */
export function textOfVector(values: readonly number[]): string {
  return String.fromCodePoint(...values);
}

function vectorsOf({ text, choices = 1 }: ScriptedAnswer): readonly (readonly number[])[] {
  return Array.from({ length: choices }, () => toVector(text));
}

const toBase64 = (values: readonly number[]): string =>
  Buffer.from(Float32Array.from(values).buffer).toString("base64");

/** `POST /embeddings` of OpenAI's dialect, in base64. Unfinished: without vectors. */
export const openAiEmbeddings: UpstreamDialect = {
  ...openAiWire,
  whole: (answer) => ({
    object: "list",
    data: vectorsOf(answer).map((values, index) => ({ object: "embedding", index, embedding: toBase64(values) })),
    usage: { prompt_tokens: COUNTED.prompt, total_tokens: COUNTED.prompt },
  }),
  unfinished: () => ({ object: "list", data: [] }),
};

/** `batchEmbedContents`. Unfinished: without vectors. */
export const geminiEmbeddings: UpstreamDialect = {
  ...geminiWire,
  whole: (answer) => ({
    embeddings: vectorsOf(answer).map((values) => ({ values })),
    usageMetadata: { promptTokenCount: COUNTED.prompt },
  }),
  unfinished: () => ({ embeddings: [] }),
};
