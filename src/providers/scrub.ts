const MAX_READ_CHARS = 2000;
const MAX_SHOWN_CHARS = 500;

/** What an upstream's text may tell of the gateway's account there, each replaced by a word for it. */
const SECRETS: readonly (readonly [pattern: RegExp, word: string])[] = [
  [/\b[a-z][a-z0-9+.-]{1,20}:\/\/\S+/gi, "[address]"],
  [/\bwww\.\S+/gi, "[address]"],
  [/[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g, "[e-mail]"],
  [/\bBearer\s+\S+/gi, "[key]"],
  [/\b(?:sk|pk|rk|gsk|key|api|tok|xai)[-_][\w*.-]{4,}/gi, "[key]"],
  [/\bAIza[\w-]{10,}/g, "[key]"],
  [/\bconsumer\s+'[^']*'/gi, "[account]"],
  [/\b(?:org|proj|acct)[-_]\w{4,}/gi, "[account]"],
  [/\b(?:user|req|request|team|ws|wrkspc|workspace)[-_](?=\w*\d)\w{5,}/gi, "[account]"],
  [
    /\b(?:organi[sz]ation|project|account|workspace)s?(?:[/: ]|\s+(?:id|number|named)\s+)\s*["'`]?(?=[\w.-]*\d)[\w.-]+["'`]?/gi,
    "[account]",
  ],
  [/\b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b/g, "[address]"],
  // Anything opaque: long, of letters and digits.
  [/(?<![\w-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]{24,}/g, "[key]"],
];

/** Words that some clients take for the end of all trying, and that tell of an account that is not the caller's. */
const MONEY = /quota|billing|credit|balance|payment/i;

/**
 * An upstream's text as a caller may see it: without keys, addresses, account names and e-mail addresses, and short.
 * Empty when there is nothing to show, or when it speaks of money.
 */
export function scrub(text: string): string {
  if (MONEY.test(text) || /<(?:!doctype|html|head|body)\b/i.test(text)) return "";
  const shown = SECRETS.reduce((out, [pattern, word]) => out.replace(pattern, word), cut(text, MAX_READ_CHARS));
  return cut(shown.replace(/[\s\p{Cc}]+/gu, " ").trim(), MAX_SHOWN_CHARS);
}

/** The beginning of `text`, to the end of a word: a cut secret would not look like one. */
function cut(text: string, chars: number): string {
  if (text.length <= chars) return text;
  const end = text.slice(0, chars).search(/\s\S*$/);
  return end <= 0 ? "" : `${text.slice(0, end).trimEnd()} …`;
}
