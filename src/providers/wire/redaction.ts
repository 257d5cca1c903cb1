/** Replaces what must not be shown in a text. */
export type Redact = (text: string) => string;

/** Replaces nothing: for a provider without credentials. */
export const keepAll: Redact = (text) => text;

/** Shorter values are words, numbers and names as often as secrets: replacing them would make errors unreadable. */
const MIN_CHARS = 8;

/** What a credential is replaced by. */
const WORD = "[key]";

/**
 * A replacement of these values, and of each of their words of 8 characters or more, wherever a text has them as they are,
 * in JSON, in a URL, or in base64 alone and inside of something longer. Letter case does not matter.
 */
export function redactionOf(secrets: readonly string[]): Redact {
  const words = secrets
    .flatMap((secret) => [secret, ...secret.split(/\s+/)])
    .filter((word) => word.length >= MIN_CHARS);
  const forms = new Set(words.flatMap(formsOf).filter((form) => form.length >= MIN_CHARS));
  if (forms.size === 0) return keepAll;
  // The longest first: a form may begin with another one.
  const ordered = [...forms].toSorted((a, b) => b.length - a.length);
  const pattern = new RegExp(ordered.map((form) => form.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|"), "gi");
  return (text) => text.replace(pattern, WORD);
}

function formsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const ascii = json.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const inUrl = encodeURIComponent(secret.toWellFormed());
  const base64 = base64Of(secret);
  return [
    secret,
    ...[json, ascii].flatMap((text) => [text, text.replaceAll("/", "\\/"), JSON.stringify(text).slice(1, -1)]),
    inUrl,
    inUrl.replaceAll("%20", "+"),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
  ];
}

/** Its base64 at each of the three places where it can begin, without the characters that depend on what is around it. */
function base64Of(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
  });
}
