import { createHmac, timingSafeEqual } from "node:crypto";
import type { Choice, CompletionChunk, CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { type Part, Role } from "../../gen/parley/v1/message_pb.js";
import { type Omission, OmissionReason } from "../../gen/parley/v1/report_pb.js";
import { parseExactly } from "../encoding/exact-json.ts";
import { nativeDeltas } from "./chunks.ts";
import { omission } from "./provider-options.ts";
import type { CallersBody } from "./provider.ts";

/*
 * State of a provider (signatures, encrypted reasoning) is sent to callers with a seal of 32 characters before it: a mark, a tag of
 * the provider, and an HMAC over account, provider and state. The seal has only letters and digits, and its length is a multiple of
 * four, so that base64 stays valid in both alphabets. docs/decisions/0041-own-dialect.md.
 */

/** Limit of reported omissions of lost state. */
const MAX_LISTED = 1_000;

const MARK = "PLY1";
const TAG_CHARS = 6;
const MAC_CHARS = 22;
const PREFIX_CHARS = MARK.length + TAG_CHARS + MAC_CHARS;

/** Name of the key among the secrets of a database. */
export const STATE_SECRET = "provider_state";

/** The owner of state. */
interface Owner {
  readonly accountId: string;
  /** The result of `stateOwner`. */
  readonly provider: string;
}

/** State with a valid seal. */
interface Opened {
  readonly state: string;
  /** See `StateSeal.tagOf`. */
  readonly tag: string;
}

/** Seals the state of providers, and opens it again. */
export interface StateSeal {
  seal(state: string, owner: Owner): string;
  /** Undefined for state of another account, without a seal, or changed after it was sealed. */
  open(sealed: string, accountId: string): Opened | undefined;
  /** The tag of a provider in the seal of its state. */
  tagOf(provider: string): string;
}

/** Seals with a key, which all processes of an installation share. */
export function createStateSeal(key: Buffer): StateSeal {
  const macOf = (accountId: string, tag: string, state: string): string => {
    const mac = createHmac("sha256", key).update(`state\0${accountId}\0${tag}\0`).update(canonical(state));
    return letters(mac.digest("base64"), MAC_CHARS);
  };
  const tagOf = (provider: string): string =>
    letters(createHmac("sha256", key).update(`provider\0${provider}`).digest("base64"), TAG_CHARS);
  return {
    tagOf,
    seal(state, { accountId, provider }) {
      const tag = tagOf(provider);
      return MARK + tag + macOf(accountId, tag, state) + state;
    },
    open(sealed, accountId) {
      if (sealed.length <= PREFIX_CHARS || !sealed.startsWith(MARK)) return undefined;
      const tag = sealed.slice(MARK.length, MARK.length + TAG_CHARS);
      const state = sealed.slice(PREFIX_CHARS);
      const given = Buffer.from(sealed.slice(MARK.length + TAG_CHARS, PREFIX_CHARS));
      const mac = Buffer.from(macOf(accountId, tag, state));
      return given.length === mac.length && timingSafeEqual(given, mac) ? { state, tag } : undefined;
    },
  };
}

/** Returns the same text for both alphabets of base64, with or without padding: some clients send state back in another form. */
function canonical(state: string): string {
  return state
    .replace(/={1,2}$/, "")
    .replaceAll("-", "+")
    .replaceAll("_", "/");
}

/** The first characters of a base64 digest, as letters and digits. */
function letters(digest: string, chars: number): string {
  return digest.slice(0, chars).replaceAll("+", "p").replaceAll("/", "s");
}

/** Seals the state in one answer. */
export class AnswerSeal {
  readonly #seal: (state: string) => string;
  /** JSON of native blocks that have not ended, by their place. */
  readonly #native = new Map<string, string>();

  constructor(seal: StateSeal, owner: Owner) {
    this.#seal = (state) => (state === "" ? "" : seal.seal(state, owner));
  }

  /** Seals a whole answer in place. */
  choices(choices: readonly Choice[]): void {
    for (const { message } of choices) {
      for (const part of message?.parts ?? []) {
        this.#part(part);
        if (part.kind.case === "native") part.kind.value.json = mapNative(part.kind.value.json, this.#seal);
      }
    }
  }

  /** Seals the chunks of a stream in place. Native blocks are held back and returned whole at their end, so the result may be empty. */
  chunks(batch: readonly CompletionChunk[]): readonly CompletionChunk[] {
    let out: CompletionChunk[] | undefined;
    batch.forEach((chunk, at) => {
      const given = this.#chunk(chunk);
      if (given === undefined) out?.push(chunk);
      else (out ??= batch.slice(0, at)).push(...given);
    });
    return out ?? batch;
  }

  /** The chunks that replace `event`; undefined when it stays. */
  #chunk({ event }: CompletionChunk): readonly CompletionChunk[] | undefined {
    if (event.case === "partStart") {
      const { part } = event.value;
      if (part === undefined) return undefined;
      this.#part(part);
      if (part.kind.case === "native") this.#native.set(placeOf(event.value), "");
    } else if (event.case === "partDelta" && event.value.content.case === "nativeJson") {
      const place = placeOf(event.value);
      const before = this.#native.get(place);
      if (before === undefined) return undefined;
      this.#native.set(place, before + event.value.content.value);
      return [];
    } else if (event.case === "partFinish") {
      event.value.signature = this.#seal(event.value.signature);
      const place = placeOf(event.value);
      const json = this.#native.get(place);
      if (json === undefined) return undefined;
      this.#native.delete(place);
      return [
        ...nativeDeltas(event.value, mapNative(json, this.#seal)),
        { $typeName: "parley.v1.CompletionChunk", event },
      ];
    }
    return undefined;
  }

  #part(part: Part): void {
    part.signature = this.#seal(part.signature);
    if (part.kind.case === "reasoning") part.kind.value.redacted = this.#seal(part.kind.value.redacted);
  }
}

const placeOf = ({ choiceIndex, partIndex }: { readonly choiceIndex: number; readonly partIndex: number }): string =>
  `${choiceIndex} ${partIndex}`;

/** Names of fields that hold state: OWN_STATE at the top level of a native block, ANY_STATE at any depth. */
const OWN_STATE = /^(?:signature|thoughtSignature)$/;
const ANY_STATE = /^encrypted_[a-z_]+$/;
/** Arguments of tools: they are the model's output and hold no state. */
const OF_TOOLS: ReadonlySet<string> = new Set(["input", "args", "arguments"]);
const MAY_HAVE_STATE = /"(?:signature|thoughtSignature|encrypted_[a-z_]+)"/;

/** The JSON of a native block with its state replaced. */
function mapNative(json: string, map: (state: string) => string): string {
  if (!MAY_HAVE_STATE.test(json)) return json;
  return JSON.stringify(mapState(parseExactly(json), { map, depth: 0 }));
}

function mapState(value: unknown, at: { readonly map: (state: string) => string; readonly depth: number }): unknown {
  const below = { ...at, depth: at.depth + 1 };
  if (Array.isArray(value)) return value.map((each) => mapState(each, below));
  if (!isPlain(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => {
      if (OF_TOOLS.has(key)) return [key, each];
      const isState = ANY_STATE.test(key) || (at.depth === 0 && OWN_STATE.test(key));
      return [key, isState && typeof each === "string" ? at.map(each) : mapState(each, below)];
    }),
  );
}

const isPlain = (value: unknown): value is object =>
  typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;

/** Values that Google documents as placeholders for a lost signature, plain and in base64 as its clients encode them. */
const NO_STATE: ReadonlySet<string> = new Set(
  ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"].flatMap((words) => [
    words,
    Buffer.from(words).toString("base64"),
  ]),
);

/** State in a part of a request. */
interface Found {
  readonly message: number;
  readonly part: number;
  /** Tag of the provider whose state it is; undefined for state without a valid seal, or of several providers. */
  readonly tag: string | undefined;
}

/** A request for one provider. */
interface ForProvider {
  readonly request: CompletionRequest;
  /** State that was removed, because this provider did not send it to this account. */
  readonly omitted: readonly Omission[];
}

/**
 * Opens the state in a request and in its caller's body, in place. Undefined for a request without state. A part is sent to one
 * provider at most: that of all its state. State without a valid seal is sent to none.
 */
export function openState(
  request: CompletionRequest,
  {
    seal,
    accountId,
    body,
  }: { readonly seal: StateSeal; readonly accountId: string; readonly body: CallersBody | undefined },
): RequestState | undefined {
  const opener = new Opener(seal, accountId);
  request.messages.forEach(({ role, parts }, message) => {
    parts.forEach((part, index) => {
      if (!mayHaveState(part)) return;
      const tags = opener.part(part, role);
      if (tags.size > 0) opener.found.push({ message, part: index, tag: tags.size === 1 ? [...tags][0] : undefined });
    });
  });
  const { found, known } = opener;
  if (found.length === 0) return undefined;
  if (body?.json !== undefined) body.json = openBody(body.json, known) as NonNullable<CallersBody["json"]>;
  return new RequestState(request, found, seal);
}

/** Whether a part may have state; most parts of a conversation have none. */
function mayHaveState({ kind, signature }: Part): boolean {
  return signature !== "" || kind.case === "reasoning" || kind.case === "native" || kind.case === "toolResult";
}

class Opener {
  readonly found: Found[] = [];
  /** State by its sealed text. */
  readonly known = new Map<string, string>();
  readonly #seal: StateSeal;
  readonly #accountId: string;

  constructor(seal: StateSeal, accountId: string) {
    this.#seal = seal;
    this.#accountId = accountId;
  }

  /** Opens the state of a part, and returns the tags of the providers that sent it. */
  part(part: Part, role: Role): ReadonlySet<string | undefined> {
    const tags = new Set<string | undefined>();
    const open = (sealed: string): string => {
      if (sealed === "" || NO_STATE.has(sealed)) return sealed;
      const opened = this.#seal.open(sealed, this.#accountId);
      tags.add(opened?.tag);
      if (opened !== undefined) this.known.set(sealed, opened.state);
      return opened?.state ?? "";
    };
    part.signature = open(part.signature);
    const { kind } = part;
    if (kind.case === "reasoning") kind.value.redacted = open(kind.value.redacted);
    else if (kind.case === "native" && role === Role.ASSISTANT) kind.value.json = mapNative(kind.value.json, open);
    // Tool results are written by the caller and have no state of a provider.
    else if (kind.case === "toolResult") for (const inner of kind.value.parts) inner.signature = "";
    return tags;
  }
}

/** Replaces sealed state in a body. Values without state are shared with the given body. */
function openBody(value: unknown, known: ReadonlyMap<string, string>): unknown {
  if (typeof value === "string") return value.startsWith(MARK) ? (known.get(value) ?? value) : value;
  if (Array.isArray(value)) {
    const opened = value.map((each) => openBody(each, known));
    return opened.some((each, at) => each !== value[at]) ? opened : value;
  }
  if (!isPlain(value)) return value;
  let opened: Record<string, unknown> | undefined;
  for (const [key, each] of Object.entries(value)) {
    const mapped = openBody(each, known);
    if (mapped !== each) Object.defineProperty((opened ??= { ...value }), key, { value: mapped, enumerable: true });
  }
  return opened ?? value;
}

/** The state in a request that was opened. */
export class RequestState {
  readonly #request: CompletionRequest;
  readonly #found: readonly Found[];
  readonly #seal: StateSeal;

  constructor(request: CompletionRequest, found: readonly Found[], seal: StateSeal) {
    this.#request = request;
    this.#found = found;
    this.#seal = seal;
  }

  /** The request with the state of one provider only. */
  for(provider: string): ForProvider {
    const request = this.#request;
    const tag = this.#seal.tagOf(provider);
    const foreign = this.#found.filter((each) => each.tag !== tag);
    if (foreign.length === 0) return { request, omitted: [] };
    const messages = [...request.messages];
    const omitted: Omission[] = [];
    for (const { message, part } of foreign) {
      const given = request.messages[message]!;
      const before = messages[message]!;
      const parts = before === given ? [...given.parts] : before.parts;
      messages[message] = { ...given, parts };
      for (const lost of removeState(parts, part))
        if (omitted.length < MAX_LISTED) omitted.push(toOmission(`messages[${message}].parts${lost}`));
    }
    return { request: { ...request, messages }, omitted };
  }
}

const toOmission = (field: string): Omission => omission(field, OmissionReason.FOREIGN_STATE);

/** Removes the state of a part from a list of parts. Returns the paths of the removed state, such as `[3].signature`. */
function removeState(parts: Part[], index: number): string[] {
  const part = parts[index]!;
  const { kind } = part;
  switch (kind.case) {
    case "native": {
      // Providers refuse a native tool call without its result, and a result without its call, so all native parts go.
      const natives = parts.flatMap((each, at) => (each.kind.case === "native" ? [at] : []));
      for (const at of natives) parts[at] = { ...parts[at]!, signature: "", kind: { case: undefined } };
      return natives.map((at) => `[${at}]`);
    }
    case "reasoning":
      parts[index] = { ...part, signature: "", kind: { case: "reasoning", value: { ...kind.value, redacted: "" } } };
      return [`[${index}]`];
    case undefined:
      // Was removed together with another native block of its message.
      return [];
    default:
      parts[index] = { ...part, signature: "" };
      return [`[${index}].signature`];
  }
}
