import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { EmbeddingRequest } from "../../gen/parley/v1/embedding_pb.js";
import { type Attribution, MAX_TAG_CHARS, MAX_TAGS } from "../core/attribution.ts";
import { MAX_READ_CHARS, toName, toText } from "../core/attribution-names.ts";
import { Failure } from "../core/failure.ts";

/**
 * Request headers with the attribution of a request, which are read before its body. Other texts than visible ASCII are
 * percent-encoded UTF-8.
 */
export const ATTRIBUTION_HEADERS = {
  endUser: "parley-end-user",
  session: "parley-session-id",
  agent: "parley-agent",
  /** Separated by commas. */
  tags: "parley-tags",
} as const;

/** Headers in which programs send their sessions: Claude Code, Codex, earlier Codex, opencode. */
const SESSION_HEADERS = ["x-claude-code-session-id", "session-id", "session_id", "x-session-id"] as const;

type HeaderOf = (name: string) => string | readonly string[] | undefined;
type Named = Partial<Pick<CompletionRequest, "endUserId" | "safetyIdentifier" | "sessionId" | "metadata">>;

/** Reads the attribution of a request: of its headers first, then of its fields. Undefined without any. */
export function readAttribution(
  headerOf: HeaderOf,
  request: CompletionRequest | EmbeddingRequest,
): Attribution | undefined {
  const textOf = (name: string): string | undefined => {
    const value = headerOf(name);
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const fields: Named = request;
  const endUser = decode(textOf(ATTRIBUTION_HEADERS.endUser));
  const session = decode(textOf(ATTRIBUTION_HEADERS.session));
  const agent = decode(textOf(ATTRIBUTION_HEADERS.agent)) ?? textOf("originator") ?? programOf(textOf("user-agent"));
  const tags = textOf(ATTRIBUTION_HEADERS.tags);
  const stated = joined({
    endUser: toName(endUser),
    session: toName(session),
    agent: toName(agent),
    tags: tags === undefined ? undefined : toTags(tags.split(",", MAX_READ_TAGS).map((tag) => decode(tag)!)),
  });
  return addFields(stated, fields, () => SESSION_HEADERS.map(textOf).find((text) => text !== undefined));
}

/** Adds the attribution in a request's fields to that of its headers. */
export function addFields(
  stated: Attribution | undefined,
  { endUserId, safetyIdentifier, sessionId, metadata }: Named,
  sessionOf: () => string | undefined = () => undefined,
): Attribution | undefined {
  const user = endUserId || safetyIdentifier || undefined;
  const program = user === undefined ? undefined : readProgramUser(user);
  const labels = metadata === undefined ? NO_LABELS : toLabels(metadata);
  return joined({
    endUser: stated?.endUser ?? toName(program === undefined ? user : program.user),
    session: stated?.session ?? toName(sessionId || sessionOf() || program?.session),
    agent: stated?.agent,
    tags: labels.length === 0 ? stated?.tags : toTags([...(stated?.tags ?? []), ...labels]),
  });
}

/**
 * Writes an attribution as headers for a core, with at most `maxChars` characters of values. An agent and tags without room
 * are left out, the last tags first. Throws `invalid_request` for a session or an end user without room: limits and stops
 * would not hold for it.
 */
export function attributionHeaders(
  { session, endUser, agent, tags = [] }: Attribution,
  maxChars: number,
): (readonly [name: string, value: string])[] {
  let left = maxChars;
  const fits = ({ length }: string): boolean => {
    if (length > left) return false;
    left -= length;
    return true;
  };
  const headers: [name: string, value: string][] = [];
  for (const [name, value] of Object.entries({ session, endUser, agent })) {
    const text = value && encodeURIComponent(value);
    if (!text) continue;
    if (fits(text)) headers.push([ATTRIBUTION_HEADERS[name as "session" | "endUser" | "agent"], text]);
    else if (name !== "agent") throw tooLong();
  }
  const texts = tags.map((tag) => encodeURIComponent(tag));
  const end = texts.findIndex((text) => !fits(`${text},`));
  const shown = end < 0 ? texts : texts.slice(0, end);
  return shown.length === 0 ? headers : [...headers, [ATTRIBUTION_HEADERS.tags, shown.join()]];
}

function tooLong(): Failure {
  return new Failure(
    "invalid_request",
    "The key or token, the session and the end user have together more characters than a front forwards. Use shorter ones, or call the core.",
  );
}

const NO_LABELS: readonly string[] = [];

/** The first pairs, as tags: how many there are is not checked yet. */
function toLabels(metadata: Readonly<Record<string, string>>): readonly string[] {
  const labels: string[] = [];
  for (const name in metadata) {
    if (labels.length === MAX_TAGS) break;
    labels.push(`${name.slice(0, MAX_READ_CHARS)}=${metadata[name]!.slice(0, MAX_READ_CHARS)}`);
  }
  return labels;
}

function joined(attribution: Attribution): Attribution | undefined {
  const { endUser, session, agent, tags } = attribution;
  const isEmpty = endUser === undefined && session === undefined && agent === undefined && tags === undefined;
  return isEmpty ? undefined : attribution;
}

/** The name of a program without its version: `claude-cli` of `claude-cli/2.1.197 (external)`. */
function programOf(userAgent: string | undefined): string | undefined {
  if (userAgent === undefined) return undefined;
  const end = userAgent.search(/[/ ]/);
  return end < 0 ? userAgent : userAgent.slice(0, end);
}

/** What Claude Code writes in place of an end user, as JSON or in the form of earlier versions. */
const EARLIER_USER = /^user_([\da-f]{1,128})_account_([\da-f-]{0,64})_session_([\da-f-]{1,64})$/;
const MAX_USER_JSON_CHARS = 1_000;

interface ProgramUser {
  readonly user: string | undefined;
  readonly session: string | undefined;
}

/** The account, else the device, and the session that a program has put into one text; undefined for any other text. */
function readProgramUser(text: string): ProgramUser | undefined {
  if (text.startsWith("user_")) {
    const [, device, account, session] = EARLIER_USER.exec(text) ?? [];
    return session === undefined ? undefined : { user: account || device, session };
  }
  if (!text.startsWith("{") || text.length > MAX_USER_JSON_CHARS || !text.includes('"session_id"')) return undefined;
  try {
    const {
      account_uuid: account,
      device_id: device,
      session_id: session,
    } = JSON.parse(text) as Record<string, unknown>;
    const found = textOr(account) ?? textOr(device);
    // Without an account or a device the text itself is the end user: a text that an end user chose must not evade limits.
    return found === undefined ? undefined : { user: found, session: textOr(session) };
  } catch {
    return undefined;
  }
}

function textOr(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** The text of a header with percent-encoding; as it is where that is not valid. */
function decode(text: string | undefined): string | undefined {
  if (text?.includes("%") !== true) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function toTags(texts: readonly string[]): readonly string[] | undefined {
  const tags = new Set<string>();
  for (const text of texts) {
    const tag = toText(text, MAX_TAG_CHARS);
    if (tag !== undefined && tags.size < MAX_TAGS) tags.add(tag);
  }
  return tags.size === 0 ? undefined : [...tags];
}

/** Tags of a header that are read, of which some may be empty or the same. */
const MAX_READ_TAGS = 4 * MAX_TAGS;
