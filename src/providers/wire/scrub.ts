import type { Redact } from "./redaction.ts";

/** What is read of an upstream's text. */
export const MAX_READ_CHARS = 2000;

const MAX_SHOWN_CHARS = 500;

/** A part of a model's name or of a date: a short word, a number, or a version such as `4o` or `v2`. */
const PLAIN = /(?:[a-z]{1,16}|\d{1,8}|[a-z]{1,8}\d{1,3}|\d{1,3}[a-z]{1,3})/.source;

/**
 * What an upstream's text may tell of the gateway, its account and its surroundings, each replaced by a word for it.
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

  // Places in a network: IPv4, IPv6, names of the inside, and any name with a port.
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

  // Places in a file system. Paths of an API and of a JSON document are of use to a caller, and stay.
  [
    /(?<![\w/.#])(?:~|\/(?:app|build|code|data|etc|home|lib|mnt|opt|private|proc|root|run|srv|tmp|usr|users|var|workspace))(?:\/[\w.@+-]{1,100}){1,20}/gi,
    "[path]",
  ],
  [/\b[a-z]:\\[^\s"'<>|]{1,300}/gi, "[path]"],

  // Anything opaque: long, of letters and digits, and not the name of a model with its date.
  [/(?<![\w/+-])(?=[\w/+]{0,100}\d)(?=[\w/+]{0,100}[A-Z])(?=[\w/+]{0,100}[a-z])[\w/+]{40,}={0,2}/g, "[key]"],
  [
    new RegExp(
      `(?<![\\w-])(?!${PLAIN}(?:[-_]${PLAIN}){1,20}(?![\\w-]))(?=[\\w-]*\\d)(?=[\\w-]*[A-Za-z])[\\w-]{24,}`,
      "g",
    ),
    "[key]",
  ],
];

/** Words that some clients take for the end of all trying, and that tell of an account that is not the caller's. */
const MONEY = /quota|billing|credit|balance|payment/i;

/**
 * An upstream's text as a caller may see it: first without what `redact` knows of the provider's credentials, then without
 * what looks like keys, addresses, paths, account names and e-mail addresses, and
 * short. Empty when there is nothing to show, or when it speaks of money.
 */
export function scrub(text: string, redact: Redact): string {
  const read = redact(cutText(text, MAX_READ_CHARS));
  if (MONEY.test(read) || /<(?:!doctype|html|head|body)\b/i.test(read)) return "";
  const shown = SECRETS.reduce((out, [pattern, word]) => out.replace(pattern, word), read);
  return cutText(shown.replace(/[\s\p{Cc}]+/gu, " ").trim(), MAX_SHOWN_CHARS);
}

/** The beginning of `text`, to the end of a word: a cut secret would not look like one. */
export function cutText(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const end = text.slice(0, chars).search(/\s\S*$/);
  return end <= 0 ? "" : `${text.slice(0, end).trimEnd()} …`;
}
