import type { Redact } from "./redaction.ts";

/** Characters read of an upstream's text. */
export const MAX_READ_CHARS = 2000;

const MAX_SHOWN_CHARS = 500;

/** A part of a model's name or of a date: a short word, a number, or a version such as `4o` or `v2`. */
const PLAIN = /(?:[a-z]{1,16}|\d{1,8}|[a-z]{1,8}\d{1,3}|\d{1,3}[a-z]{1,3})/.source;

/**
 * Information in an upstream's text about the gateway, its account and its network, with its replacement.
 * Every quantifier is bounded, or stops at a character that cannot begin another match.
 */
const SECRETS: readonly (readonly [pattern: RegExp, word: string])[] = [
  [/\b[a-z][a-z0-9+.-]{1,20}:\/\/\S+/gi, "[address]"],
  [/\bwww\.\S+/gi, "[address]"],
  [/[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}/g, "[e-mail]"],

  // Credentials by their names: with a separator any value, except for counts of tokens; without one, what looks like it.
  [
    /\b((?:api[ _-]?key|secret|password|passwd|authorization)["'`]?\s{0,3}[:=]\s{0,3}["'`]?)(?:(?:basic|bearer|token)\s{1,3})?[^\s"'`]{1,500}/gi,
    "$1[key]",
  ],
  [/\b(token["'`]?\s{0,3}[:=]\s{0,3}["'`]?)(?!\d{1,12}(?!\w))[^\s"'`]{1,500}/gi, "$1[key]"],
  [
    /\b((?:api[ _-]?key|token|secret|password|authorization)\s{1,3}["'`]?)(?=\S{0,100}\d)(?=\S{0,100}[a-z])[^\s"'`]{6,500}/gi,
    "$1[key]",
  ],
  [/\bBearer\s{1,3}\S+/gi, "[key]"],
  [/\b[Bb]asic\s{1,3}(?=[\w+/]{0,100}[A-Z\d=])[\w+/]{6,500}={0,2}/g, "[key]"],

  // Credentials by their shapes.
  [/\b(?:sk|pk|rk|gsk|xai)[-_][\w*.-]{4,}/gi, "[key]"],
  [/\b(?:key|api|tok)[-_](?=[\w*.-]{0,100}[\d*])[\w*.-]{4,}/gi, "[key]"],
  [/\bAIza[\w-]{10,}/g, "[key]"],
  [/\b(?:AKIA|ASIA)[A-Z\d]{12,}/g, "[key]"],

  [/\bconsumer\s{1,3}'[^']{0,200}'/gi, "[account]"],
  [/\b(?:org|proj|acct)[-_]\w{4,}/gi, "[account]"],
  [/\b(?:user|req|request|team|ws|wrkspc|workspace)[-_](?=\w{0,100}\d)\w{5,}/gi, "[account]"],
  [
    /\b(?:organi[sz]ation|project|account|workspace)s?(?:[/: ]|\s{1,3}(?:id|number|named)\s{1,3})\s{0,3}["'`]?(?=[\w.-]{0,100}\d)[\w.-]{1,200}["'`]?/gi,
    "[account]",
  ],

  // Network addresses: IPv4, IPv6, internal names, and any name with a port.
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?\b/g, "[address]"],
  [
    /(?<![\w:.])\[?(?:(?:[\da-f]{1,4}:){7}[\da-f]{1,4}|(?=[\da-f:]{0,40}::)(?=:{0,2}[\da-f])(?:[\da-f]{0,4}:){2,7}[\da-f]{0,4})(?![\w:])(?:\](?::\d{1,5})?)?/gi,
    "[address]",
  ],
  [
    /\b(?:[a-z\d-]{1,63}\.){1,8}(?:internal|intranet|local|localdomain|lan|corp|svc|consul)\b(?::\d{1,5})?/gi,
    "[address]",
  ],
  [/\b(?:(?:[a-z\d-]{1,63}\.){1,8}[a-z]{2,24}|localhost|[a-z\d]{1,30}-[a-z\d-]{1,30}):\d{2,5}\b/gi, "[address]"],

  // File paths. Paths of an API and of a JSON document are useful to the caller and stay.
  [
    /(?<![\w/.#])(?:~|\/(?:app|build|code|data|etc|home|lib|mnt|opt|private|proc|root|run|srv|tmp|usr|users|var|workspace))(?:\/[\w.@+-]{1,100}){1,20}/gi,
    "[path]",
  ],
  [/\b[a-z]:\\[^\s"'<>|]{1,300}/gi, "[path]"],

  // Opaque tokens: long, of letters and digits, and not a model name with its date.
  [/(?<![\w/+-])(?=[\w/+]{0,100}\d)(?=[\w/+]{0,100}[A-Z])(?=[\w/+]{0,100}[a-z])[\w/+]{40,}={0,2}/g, "[key]"],
  [
    new RegExp(
      `(?<![\\w-])(?!${PLAIN}(?:[-_]${PLAIN}){1,20}(?![\\w-]))(?=[\\w-]*\\d)(?=[\\w-]*[A-Za-z])[\\w-]{24,}`,
      "g",
    ),
    "[key]",
  ],
];

/** Words that make some clients stop retrying for good, and that describe the gateway's account, not the caller's. */
const MONEY = /quota|billing|credit|balance|payment/i;

/**
 * Returns an upstream's text as a caller may see it: without the provider's credentials (`redact`), without anything
 * that looks like a key, address, path, account name or e-mail address, and cut to MAX_SHOWN_CHARS. Empty if nothing is
 * left, or if the text is about billing.
 */
export function scrub(text: string, redact: Redact): string {
  const read = redact(cutText(text, MAX_READ_CHARS));
  return MONEY.test(read) ? "" : withoutSecrets(read);
}

/** As `scrub`, for administrators: texts about billing are kept. */
export function scrubForOperators(text: string, redact: Redact): string {
  return withoutSecrets(redact(cutText(text, MAX_READ_CHARS)));
}

/** Replaces SECRETS. Empty for an HTML page. */
function withoutSecrets(read: string): string {
  if (/<(?:!doctype|html|head|body)\b/i.test(read)) return "";
  const shown = SECRETS.reduce((out, [pattern, word]) => out.replace(pattern, word), read);
  return cutText(shown.replace(/[\s\p{Cc}]+/gu, " ").trim(), MAX_SHOWN_CHARS);
}

/** Cuts `text` at a word boundary: a secret cut in half would not be recognised. */
export function cutText(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const end = text.slice(0, chars).search(/\s\S*$/);
  return end <= 0 ? "" : `${text.slice(0, end).trimEnd()} …`;
}
