import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Part } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { Principal } from "../core/principal.ts";
import type { TargetCondition } from "../core/route.ts";
import { estimateTokens, measurePrompt } from "../core/token-estimate.ts";
import { conversationKey } from "./conversation-key.ts";

const MODALITY_OF: Partial<Record<NonNullable<Part["kind"]["case"]>, Modality>> = {
  image: Modality.IMAGE,
  audio: Modality.AUDIO,
  video: Modality.VIDEO,
  file: Modality.FILE,
};

/** Facts of a request on which the choice of a target may depend. Each is computed on first use: most routes need few of them. */
export class RequestFacts {
  readonly #request: CompletionRequest;
  readonly #caller: Pick<Principal, "keyFamilyId" | "tags">;
  #promptTokens: number | undefined;
  #modalities: ReadonlySet<Modality> | undefined;
  #conversation: number | undefined;

  constructor(request: CompletionRequest, caller: Pick<Principal, "keyFamilyId" | "tags">) {
    this.#request = request;
    this.#caller = caller;
  }

  /** Estimated tokens of the prompt. */
  get promptTokens(): number {
    return (this.#promptTokens ??= estimateTokens(measurePrompt(this.#request)));
  }

  /** Undefined: the request does not limit its answer. */
  get maxOutputTokens(): number | undefined {
    return this.#request.maxOutputTokens;
  }

  /** Modalities that conversation and answer may hold beside text. */
  get modalities(): ReadonlySet<Modality> {
    return (this.#modalities ??= modalitiesOf(this.#request));
  }

  get hasTools(): boolean {
    return this.#request.tools.length > 0;
  }

  /** Tags of the key. */
  get keyTags(): ReadonlySet<string> {
    return this.#caller.tags ?? NO_TAGS;
  }

  /** Hash of the conversation. */
  get conversation(): number {
    return (this.#conversation ??= conversationKey(this.#request, this.#caller.keyFamilyId));
  }
}

const NO_TAGS: ReadonlySet<string> = new Set();

/** The first part of a target's condition that the request does not meet; undefined when it meets all. */
export function unmetCondition(
  facts: RequestFacts,
  { promptTokens, modalities, tools, keyTags }: TargetCondition,
): keyof TargetCondition | undefined {
  if (tools !== undefined && tools !== facts.hasTools) return "tools";
  if (keyTags?.isDisjointFrom(facts.keyTags) === true) return "keyTags";
  if (promptTokens !== undefined && (facts.promptTokens < promptTokens.min || facts.promptTokens > promptTokens.max))
    return "promptTokens";
  return modalities?.isDisjointFrom(facts.modalities) === true ? "modalities" : undefined;
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
