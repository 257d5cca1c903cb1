import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { TargetCondition } from "../core/route.ts";
import { estimateTokens, measurePrompt } from "../core/token-estimate.ts";
import { conversationKey } from "./conversation-key.ts";

const MODALITY_OF: Partial<Record<NonNullable<Part["kind"]["case"]>, Modality>> = {
  image: Modality.IMAGE,
  audio: Modality.AUDIO,
  video: Modality.VIDEO,
  file: Modality.FILE,
};

/** What the choice of a target may depend on, each computed on first use: most routes need little of it. */
export class RequestFacts {
  readonly #request: CompletionRequest;
  readonly #keyFamilyId: string;
  #promptTokens: number | undefined;
  #modalities: ReadonlySet<Modality> | undefined;
  #conversation: number | undefined;

  constructor(request: CompletionRequest, keyFamilyId: string) {
    this.#request = request;
    this.#keyFamilyId = keyFamilyId;
  }

  /** Estimated. */
  get promptTokens(): number {
    return (this.#promptTokens ??= estimateTokens(measurePrompt(this.#request)));
  }

  /** Undefined: the request does not limit its answer. */
  get maxOutputTokens(): number | undefined {
    return this.#request.maxOutputTokens;
  }

  /** What conversation and answer may hold beside text. */
  get modalities(): ReadonlySet<Modality> {
    return (this.#modalities ??= modalitiesOf(this.#request));
  }

  get hasTools(): boolean {
    return this.#request.tools.length > 0;
  }

  /** Hash of the conversation. */
  get conversation(): number {
    return (this.#conversation ??= conversationKey(this.#request, this.#keyFamilyId));
  }
}

/** Whether a target with this condition is used for the request. */
export function meets(facts: RequestFacts, { promptTokens, modalities, tools }: TargetCondition): boolean {
  if (tools !== undefined && tools !== facts.hasTools) return false;
  if (promptTokens !== undefined && (facts.promptTokens < promptTokens.min || facts.promptTokens > promptTokens.max))
    return false;
  return modalities === undefined || !modalities.isDisjointFrom(facts.modalities);
}

function modalitiesOf({ messages, modalities }: CompletionRequest): ReadonlySet<Modality> {
  const found = new Set(modalities);
  const add = (parts: readonly Part[]): void => {
    for (const { kind } of parts) {
      if (kind.case === "toolResult") add(kind.value.parts);
      const modality = kind.case && MODALITY_OF[kind.case];
      if (modality !== undefined) found.add(modality);
    }
  };
  for (const { parts } of messages) add(parts);
  return found;
}
