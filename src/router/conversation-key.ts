import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { type Part, Role } from "../../gen/parley/v1/message_pb.js";
import { Hash } from "./rendezvous.ts";

/** Tools of a request that the key depends on. */
const MAX_TOOLS = 32;
/** Parts of the system's and of the first user message that the key depends on. */
const MAX_PARTS = 8;

/**
 * A hash that the requests of one conversation share, and that other conversations rarely have. It covers the caller's key family
 * and `prompt_cache_key`, else `session_id`, else the beginning of the prompt, by which providers cache: system messages, tools
 * and the first user message.
 */
export function conversationKey(request: CompletionRequest, keyFamilyId: string): number {
  const hash = new Hash();
  hash.add(keyFamilyId);
  const name = request.promptCacheKey || request.sessionId;
  if (name !== undefined && name !== "") hash.add(name);
  else addPrefix(request, hash);
  return hash.value;
}

function addPrefix({ messages, tools }: CompletionRequest, hash: Hash): void {
  for (const { kind } of tools.slice(0, MAX_TOOLS)) {
    if (kind.case === "native") hash.add(kind.value.json);
    else if (kind.case !== undefined) hash.add(kind.value.name);
  }
  const end = messages.findIndex(({ role }) => role !== Role.SYSTEM);
  const prefix = end < 0 ? messages : messages.slice(0, end + 1);
  // The first of several system messages identifies the agent.
  for (const { parts } of prefix.length > 1 ? [prefix[0]!, prefix.at(-1)!] : prefix)
    for (const part of parts.slice(0, MAX_PARTS)) addPart(part, hash);
}

function addPart({ kind }: Part, hash: Hash): void {
  switch (kind.case) {
    case "text":
      return hash.add(kind.value);
    case "image":
    case "audio":
    case "video":
    case "file": {
      const { source } = kind.value;
      // Bytes count by their number: pictures of the same size are rare, and hashing megabytes would cost more than it gains.
      hash.add(typeof source.value === "string" ? source.value : `${kind.case} ${source.value?.length ?? 0}`);
      return;
    }
    default:
  }
}
