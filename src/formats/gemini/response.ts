import type { Choice, Completion } from "../../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../../gen/parley/v1/message_pb.js";
import { HeldStrings, type JsonText } from "../held-strings.ts";
import { LeftOut } from "../left-out.ts";
import { writeReport } from "../report.ts";
import * as write from "./answer.ts";
import type { ReadRequest } from "./request.ts";
import { type SignedReasoning, writeSignature } from "./signature.ts";

/** Facts of a request on which its answer depends. */
export type AnswerFacts = Pick<ReadRequest, "nameOf" | "includeThoughts" | "functionNames">;

/** Writes a completion as a `GenerateContentResponse`. */
export function writeGeminiResponse(completion: Completion, facts: AnswerFacts): JsonText {
  const held = new HeldStrings();
  const { choices, usage, report, model, id } = completion;
  const candidates = choices.map((choice) => toCandidate(choice, facts, held)).join(",");
  const rest = {
    ...(usage !== undefined && { usageMetadata: write.usage(usage) }),
    modelVersion: model,
    responseId: id,
    ...(report !== undefined && {
      parley: writeReport(report, facts.nameOf, new LeftOut(write.DIALECT).addWhole(choices).names),
    }),
  };
  const further = write.responseFields(choices[0]?.providerDetailsJson ?? {});
  return held.putBack(`{"candidates":[${candidates}]${further},${JSON.stringify(rest).slice(1)}`);
}

function toCandidate(choice: Choice, facts: AnswerFacts, held: HeldStrings): string {
  const { parts } = choice.message!;
  const tokens = parts.flatMap(({ logprobs }) => logprobs);
  const probable = tokens.length === 0 ? "" : `,"logprobsResult":${write.logprobs(tokens)}`;
  const cited = new Map<string, string>();
  for (const { citations } of parts) for (const citation of citations) write.cite(cited, citation);
  const content = `{"role":"model","parts":[${toParts(parts, facts, held).join(",")}]}`;
  return `{"content":${content},"index":${choice.index}${probable},${write.finishFields(choice, cited)}}`;
}

/** The parts as JSON texts, at least one: clients drop a turn without parts. */
function toParts(parts: readonly Part[], facts: AnswerFacts, held: HeldStrings): string[] {
  const out: string[] = [];
  let before: SignedReasoning[] = [];
  for (const { kind, signature, providerDetailsJson } of parts) {
    if (kind.case === "reasoning") {
      const { text, redacted } = kind.value;
      if (facts.includeThoughts && text !== "")
        out.push(write.withFurther(write.thoughtPart(text), providerDetailsJson));
      if (signature !== "" || redacted !== "") before.push({ text, redacted, signature });
      continue;
    }
    const written = toPart(kind, { signature: writeSignature(signature, before), facts, held });
    if (written === undefined) continue;
    out.push(write.withFurther(written, providerDetailsJson));
    if (kind.case !== "native") before = [];
  }
  if (before.length > 0 || out.length === 0) out.push(write.textPart("", writeSignature("", before)));
  return out;
}

function toPart(
  kind: Part["kind"],
  {
    signature,
    facts,
    held,
  }: { readonly signature: string | undefined; readonly facts: AnswerFacts; readonly held: HeldStrings },
): string | undefined {
  switch (kind.case) {
    case "text":
    case "refusal":
      return kind.value === "" && signature === undefined ? undefined : write.textPart(kind.value, signature);
    case "image":
      return write.imagePart(kind.value, signature, held);
    case "audio":
      return write.audioPart(kind.value);
    case "toolCall": {
      const { id, name, input } = kind.value;
      return write.callPart({ id, name, args: input.value ?? "" }, facts.functionNames, signature);
    }
    case "native":
      return write.nativePart(kind.value);
    default:
      return undefined;
  }
}
