/** Replaces secrets in a text. */
export type Redact = (text: string) => string;

/** Replaces nothing: for a provider without credentials. */
export const keepAll: Redact = (text) => text;

/** Minimum length of a replaced value: shorter ones are often ordinary words, and replacing them makes errors unreadable. */
const MIN_CHARS = 8;

/** Length from which the beginning or the end of a value is replaced, with and without a digit: ordinary words are shorter. */
const PART_CHARS = { withDigit: 12, withoutDigit: 16 } as const;

/** Replacement of a credential. */
const WORD = "[key]";

/**
 * Creates a redaction of these values and of each of their words of MIN_CHARS or more: plain, in base64 and in hexadecimal, alone or
 * inside a longer value, each also in HTML, in JSON and in a URL, and cut at one end down to PART_CHARS. Ignores letter case.
 */
export function redactionOf(secrets: readonly string[]): Redact {
  const words = secrets
    .flatMap((secret) => [secret, ...secret.split(/\s+/)])
    .filter((word) => word.length >= MIN_CHARS);
  const forms = new Set(words.flatMap(formsOf).filter((form) => form.length >= MIN_CHARS));
  if (forms.size === 0) return keepAll;
  const find = findingOf([...forms]);
  const replaceIn = (text: string, { plain, indexOf }: Unescaped): string => {
    let shown = "";
    let from = 0;
    for (const [start, end] of find(plain)) {
      shown += text.slice(from, indexOf(start)) + WORD;
      from = indexOf(end);
    }
    return shown + text.slice(from);
  };
  return (text) => {
    const unescaped = withoutEscapes(text);
    const shown = replaceIn(text, unescaped);
    // What looks like an escape may be a secret behind a percent sign.
    return unescaped.plain.length === text.length ? shown : replaceIn(shown, asItIs(shown));
  };
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

/** Returns a function that lists where a text has a value, or its beginning or end, in order. */
function findingOf(forms: readonly string[]): (text: string) => Iterable<readonly [start: number, end: number]> {
  const heads = Map.groupBy(forms, (form) =>
    form.slice(0, partChars(form.slice(0, PART_CHARS.withDigit))).toLowerCase(),
  );
  const tails = Map.groupBy(forms, (form) => form.slice(-partChars(form.slice(-PART_CHARS.withDigit))).toLowerCase());
  // Longest first: one may be a prefix of another.
  const parts = [...new Set([...heads.keys(), ...tails.keys()])].toSorted((a, b) => b.length - a.length);
  const pattern = new RegExp(parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|"), "gi");
  return function* find(text) {
    let end = 0;
    for (;;) {
      pattern.lastIndex = end;
      const match = pattern.exec(text);
      if (match === null) return;
      const part = match[0].toLowerCase();
      const { index } = match;
      const next = index + part.length;
      const before = (tails.get(part) ?? []).map((form) =>
        countEqual([text, index - 1], [form, form.length - part.length - 1], -1),
      );
      const after = (heads.get(part) ?? []).map((form) => countEqual([text, next], [form, part.length], 1));
      const start = Math.max(end, index - Math.max(0, ...before));
      end = next + Math.max(0, ...after);
      yield [start, end];
    }
  };
}

function partChars(part: string): number {
  return /\d/.test(part) ? PART_CHARS.withDigit : PART_CHARS.withoutDigit;
}

type Place = readonly [text: string, index: number];

/** Number of equal characters from two places on, forwards or backwards. */
function countEqual([left, from]: Place, [right, to]: Place, step: 1 | -1): number {
  let count = 0;
  for (;;) {
    const char = left[from + step * count]?.toLowerCase();
    if (char === undefined || char !== right[to + step * count]?.toLowerCase()) return count;
    count += 1;
  }
}

/** A text in which values are searched for. It has a space for each `+`, as forms encode it. */
interface Unescaped {
  readonly plain: string;
  /** Index of a character in the original text. */
  readonly indexOf: (index: number) => number;
}

function asItIs(text: string): Unescaped {
  return { plain: text.replaceAll("+", " "), indexOf: (index) => index };
}

/**
 * Decodes the escapes of HTML, JSON and URLs; also of a text that was escaped several times, which has its escapes escaped. By
 * hand, as a regular expression takes up to ten times as long.
 */
function withoutEscapes(text: string): Unescaped {
  if (!/[&%\\]/.test(text)) return asItIs(text);
  const codes = new Uint16Array(text.length);
  const indexes = new Uint32Array(text.length + 1);
  let count = 0;
  for (let index = 0; index < text.length; count++) {
    indexes[count] = index;
    const escape = readEscape(text, index);
    codes[count] = escape?.code ?? text.charCodeAt(index);
    index = escape?.end ?? index + 1;
  }
  indexes[count] = text.length;
  const plain = Buffer.from(codes.buffer, 0, 2 * count).toString("utf16le");
  return { plain: plain.replaceAll("+", " "), indexOf: (index) => indexes[index]! };
}

/** The character that an escape stands for, and the index behind the escape. */
interface Escape {
  readonly code: number;
  readonly end: number;
}

const [PERCENT, BACKSLASH, AMPERSAND] = [0x25, 0x5c, 0x26];

/** Reads the escape at this index; undefined for none. */
function readEscape(text: string, index: number): Escape | undefined {
  const first = text.charCodeAt(index);
  if (first === PERCENT) return readPercent(text, index + 1);
  if (first === BACKSLASH) return readBackslash(text, index + 1);
  return first === AMPERSAND ? readEntity(text, index + 1) : undefined;
}

function readPercent(text: string, index: number): Escape | undefined {
  const at = skip(text, index, "25");
  const code = hexAt(text, at, 2);
  if (code !== undefined) return { code, end: at + 2 };
  return at === index ? undefined : { code: PERCENT, end: at };
}

function readBackslash(text: string, index: number): Escape | undefined {
  const at = skip(text, index, "\\");
  const code = text[at] === "u" ? hexAt(text, at + 1, 4) : undefined;
  if (code !== undefined) return { code, end: at + 5 };
  if (text[at] === '"' || text[at] === "/") return { code: text.charCodeAt(at), end: at + 1 };
  return at === index ? undefined : { code: BACKSLASH, end: at };
}

function readEntity(text: string, index: number): Escape | undefined {
  const at = skip(text, index, "amp;");
  const [entity, digits, name] = ENTITY.exec(text.slice(at, at + ENTITY_CHARS)) ?? [];
  if (entity === undefined) return at === index ? undefined : { code: AMPERSAND, end: at };
  const code = digits === undefined ? ENTITIES[name!.toLowerCase()]! : Number(digits.replace(/^x/i, "0x"));
  return { code, end: at + entity.length };
}

/** Characters of the longest entity. */
const ENTITY_CHARS = 8;
const ENTITY = /^(?:#(\d{1,6}|x[\da-f]{1,5})|(lt|gt|quot|apos));/i;
const ENTITIES: Readonly<Record<string, number>> = { lt: 0x3c, gt: 0x3e, quot: 0x22, apos: 0x27 };

function hexAt(text: string, index: number, digits: number): number | undefined {
  const hex = text.slice(index, index + digits);
  return hex.length === digits && /^[\da-f]+$/i.test(hex) ? parseInt(hex, 16) : undefined;
}

/** The index behind all repetitions of a text. */
function skip(text: string, index: number, repeated: string): number {
  let end = index;
  while (text.startsWith(repeated, end)) end += repeated.length;
  return end;
}

/** The value as it is searched for: its characters, or their bytes in UTF-8 as a URL has them; in base64, and in hexadecimal. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret);
  const base64 = base64Of(bytes);
  const forms = [secret, bytes.toString("latin1"), bytes.toString("hex"), ...base64];
  const ofUrls = base64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_"));
  return [asItIs(secret).plain, ...[...forms, ...ofUrls].map((form) => withoutEscapes(form).plain)];
}

/** Base64 of the value at the three possible offsets, without the characters that depend on its neighbours. */
function base64Of(bytes: Buffer): string[] {
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
  });
}
