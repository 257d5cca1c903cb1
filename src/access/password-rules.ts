import { invalidField } from "../core/failure.ts";
import { COMMON_PASSWORDS, COMMON_WORDS, KEYBOARD_RUNS } from "./common-passwords.ts";

const MIN_CHARACTERS = 12;
const MAX_CHARACTERS = 128;
/** Longer words are looked for as whole passwords only. */
const MAX_WORD = 20;

/**
 * The form in which a password is counted, hashed and compared: Unicode NFC, because keyboards differ in how they compose
 * the same character. Nothing is trimmed, cut or folded. Throws an `invalid_request` Failure for more than 128 characters,
 * before anything is hashed.
 */
export function toPassword(text: string, field = "password"): string {
  // NFC makes no text shorter than a third: this bounds the work of normalising too.
  if (text.length > MAX_CHARACTERS * 8) throw tooLong(field);
  const password = text.normalize("NFC");
  if (countCharacters(password) > MAX_CHARACTERS) throw tooLong(field);
  return password;
}

/**
 * Checks a password that somebody chose, in the form of `toPassword`: 12 characters or more (code points), and not one that
 * is tried first. There is no rule about kinds of characters. Throws an `invalid_request` Failure.
 */
export function checkPassword(password: string, email: string, field = "password"): void {
  if (countCharacters(password) < MIN_CHARACTERS) {
    throw invalidField(field, `must have at least ${MIN_CHARACTERS} characters`);
  }
  if (isCommon(password, [email, ...wordsOf(email), "parley"])) {
    throw invalidField(field, "this password is too common; choose another, such as four unrelated words");
  }
}

/** What somebody who knows an address tries: the part before the @, and the names in it, such as the company's. */
function wordsOf(email: string): string[] {
  const at = email.lastIndexOf("@");
  const names = email.toLowerCase().split(/[^\p{L}]+/u);
  return [email.slice(0, at).toLowerCase(), ...names.filter((name) => name.length >= MIN_PIECE)];
}

/** Whether a list of leaked passwords or of what people make of `words` has it. */
function isCommon(password: string, words: readonly string[]): boolean {
  const lower = password.toLowerCase();
  if (COMMON_PASSWORDS.has(lower) || isRepetition(lower) || isRun(lower) || isInterleaved(lower)) return true;
  // Said twice it is no harder to guess than once, and once it would be too short.
  if (countCharacters(repeatedUnit(lower) ?? lower) < MIN_CHARACTERS) return true;
  const pieces = new Set([...COMMON_WORDS, ...words]);
  if (isMadeOf(lower, pieces) || isMadeOf(undisguise(lower), pieces)) return true;
  const known = (text: string): boolean =>
    text === "" || COMMON_WORDS.has(text) || COMMON_PASSWORDS.has(text) || words.includes(text);
  // A word with a number or signs around it, also with its letters disguised: P@ssw0rd2024!
  const core = lower.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, "");
  return [lower, core, undisguise(core)].some((text) => known(text) || known(repeatedUnit(text) ?? text));
}

/** Shorter parts of a word mean nothing. */
const MIN_PIECE = 3;
/** A number or signs as far as they are easy to guess, or one character repeated. */
const FILLER = /^(?:[^\p{L}]{1,8}(?!\P{L})|(.)\1+)/u;
/** Longer runs are made of these. */
const MAX_RUN = 8;
/** Two known words, with anything known between and around them, are tried before three. */
const MOST_WORDS = 2;

/**
 * Whether a password is nothing but at most two known words, also more than once or begun again (`letmeinletme`), and between
 * them numbers, signs, one character repeated, and runs of keys (`qwe123asd`).
 */
function isMadeOf(text: string, words: ReadonlySet<string>): boolean {
  // For each position the sets of words with which it can be reached, the smallest ones only: one entry for each set.
  const reached = Array.from({ length: text.length + 1 }, () => new Map<string, readonly string[]>());
  reached[0]!.set("", []);
  for (let at = 0; at < text.length; at += 1) {
    if (reached[at]!.size === 0) continue;
    const filler = FILLER.exec(text.slice(at))?.[0].length;
    const run = longestRun(text.slice(at, at + MAX_RUN));
    for (const used of reached[at]!.values()) {
      const go = (length: number, next = used): void => void reached[at + length]!.set(next.join(" "), next);
      if (filler !== undefined) go(filler);
      for (let length = 2; length <= run; length += 1) go(length);
      for (let length = MIN_PIECE; length <= Math.min(text.length - at, MAX_WORD); length += 1) {
        const piece = text.slice(at, at + length);
        if (used.some((word) => word.startsWith(piece))) go(length);
        else if (used.length < MOST_WORDS && words.has(piece)) go(length, [...used, piece].toSorted());
      }
    }
  }
  return reached[text.length]!.size > 0;
}

/** How many characters at the beginning are a run of keys. */
function longestRun(text: string): number {
  let length = 1;
  while (length < text.length && isRun(text.slice(0, length + 1))) length += 1;
  return length;
}

const DISGUISES: Readonly<Record<string, string>> = {
  "@": "a",
  "4": "a",
  "0": "o",
  "3": "e",
  "1": "i",
  $: "s",
  "5": "s",
};

function undisguise(text: string): string {
  return text.replace(/[@40315$]/g, (sign) => DISGUISES[sign] ?? sign);
}

/** One to four characters over and over, the last time perhaps in part. */
function isRepetition(text: string): boolean {
  const characters = Array.from(text);
  return [1, 2, 3, 4].some((period) => characters.every((each, at) => each === characters[at % period]));
}

/** What the text is made of when it is the same twice or more: `abc` for `abcabc`. */
function repeatedUnit(text: string): string | undefined {
  const period = (text + text).indexOf(text, 1);
  return period > 0 && period < text.length ? text.slice(0, period) : undefined;
}

/** Neighbours on a keyboard or in the alphabet, forwards or backwards. */
function isRun(text: string): boolean {
  return KEYBOARD_RUNS.some((run) => run.includes(text) || run.includes(Array.from(text).toReversed().join("")));
}

/** Letters that are a run, with digits between them that are one too: `a1s2d3f4g5h6`. */
function isInterleaved(text: string): boolean {
  const [letters, digits] = [text.replaceAll(/\d/g, ""), text.replaceAll(/\D/g, "")];
  return letters.length >= 4 && digits.length >= 4 && isRun(letters) && isRun(digits);
}

function countCharacters(text: string): number {
  return Array.from(text).length;
}

function tooLong(field: string): Error {
  return invalidField(field, `must have at most ${MAX_CHARACTERS} characters`);
}
