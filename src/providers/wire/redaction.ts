/** Replaces secrets in a text. */
export type Redact = (text: string) => string;

/** Replaces nothing: for a provider without credentials. */
export const keepAll: Redact = (text) => text;

/** Minimum length of a replaced value: shorter ones are often ordinary words, and replacing them makes errors unreadable. */
const MIN_CHARS = 8;

/** Replacement of a credential. */
const WORD = "[key]";

/**
 * Creates a redaction of these values and of each of their words of MIN_CHARS or more: plain, in JSON, in a URL, and in
 * base64, alone or inside a longer value. Ignores letter case.
 */
export function redactionOf(secrets: readonly string[]): Redact {
  const words = secrets
    .flatMap((secret) => [secret, ...secret.split(/\s+/)])
    .filter((word) => word.length >= MIN_CHARS);
  const forms = new Set(words.flatMap(formsOf).filter((form) => form.length >= MIN_CHARS));
  if (forms.size === 0) return keepAll;
  // Longest first: one form may be a prefix of another.
  const ordered = [...forms].toSorted((a, b) => b.length - a.length);
  const pattern = new RegExp(ordered.map((form) => form.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|"), "gi");
  return (text) => text.replace(pattern, WORD);
}

/** A redaction of secrets that change. */
export function redactionOfChanging(secrets: () => readonly string[]): Redact {
  let known = secrets();
  let redact = redactionOf(known);
  return (text) => {
    const now = secrets();
    if (now.length !== known.length || now.some((secret, index) => secret !== known[index])) {
      redact = redactionOf(now);
      known = now;
    }
    return redact(text);
  };
}

function formsOf(secret: string): string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const ascii = json.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);
  const base64 = base64Of(secret);
  return [
    secret,
    ...[json, ascii].flatMap((text) => [text, text.replaceAll("/", "\\/"), JSON.stringify(text).slice(1, -1)]),
    ...formsInUrls(secret),
    ...base64,
    ...base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
  ];
}

/** Percent-encoded forms: of JavaScript, of RFC 3986, and of encoders that keep slashes, each with both encodings of a space. */
function formsInUrls(secret: string): string[] {
  const common = encodeURIComponent(secret.toWellFormed());
  const strict = common.replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);
  return [common, strict]
    .flatMap((text) => [text, text.replaceAll("%2F", "/")])
    .flatMap((text) => [text, text.replaceAll("%20", "+")]);
}

/** Base64 of the value at the three possible offsets, without the characters that depend on its neighbours. */
function base64Of(secret: string): string[] {
  const bytes = Buffer.from(secret);
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
  });
}
