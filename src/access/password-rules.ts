import { invalidField } from "../core/failure.ts";
import { COMMON_PASSWORDS, COMMON_WORDS, KEYBOARD_RUNS } from "./common-passwords.ts";

const MIN_CHARACTERS = 12;
const MAX_CHARACTERS = 128;
/** Longest word looked for inside a password; longer words are matched only as whole passwords. */
const MAX_WORD = 20;

/**
 * Normalises a password for counting, hashing and comparing: Unicode NFC, because keyboards compose the same character
 * differently. Nothing is trimmed, cut or folded. Throws an `invalid_request` Failure for more than 128 characters, before
 * anything is hashed.
 */
export function toPassword(text: string, field = "password"): string {
  // NFC shortens a text to no less than a third, so this also bounds the work of normalising.
  if (text.length > MAX_CHARACTERS * 8) throw tooLong(field);
  const password = text.normalize("NFC");
  if (countCharacters(password) > MAX_CHARACTERS) throw tooLong(field);
  return password;
}

/**
 * Checks a new password, in the form of `toPassword`: at least 12 code points, and not a common one. There is no rule about
 * kinds of characters. Throws an `invalid_request` Failure.
 */
export function checkPassword(password: string, email: string, field = "password"): void {
  if (countCharacters(password) < MIN_CHARACTERS) {
    throw invalidField(field, `must have at least ${MIN_CHARACTERS} characters`);
  }
  if (isCommon(password, [email, ...wordsOf(email), "parley"])) {
    throw invalidField(field, "this password is too common; choose another, such as four unrelated words");
  }
}

/** Words guessed from an address: the part before the @, and the names in it, such as the company's. */
function wordsOf(email: string): string[] {
  const at = email.lastIndexOf("@");
  const names = email.toLowerCase().split(/[^\p{L}]+/u);
  return [email.slice(0, at).toLowerCase(), ...names.filter((name) => name.length >= MIN_PIECE)];
}

/** Whether the password is on a list of leaked passwords or derived from `words`. */
function isCommon(password: string, words: readonly string[]): boolean {
  const lower = password.toLowerCase();
  if (COMMON_PASSWORDS.has(lower) || isRepetition(lower) || isRun(lower) || isInterleaved(lower)) return true;
  // A repeated text is no harder to guess than the text once, which would be too short.
  if (countCharacters(repeatedUnit(lower) ?? lower) < MIN_CHARACTERS) return true;
  const pieces = new Set([...COMMON_WORDS, ...words]);
  if (isMadeOf(lower, pieces) || isMadeOf(undisguise(lower), pieces)) return true;
  const known = (text: string): boolean =>
    text === "" || COMMON_WORDS.has(text) || COMMON_PASSWORDS.has(text) || words.includes(text);
  // A word surrounded by numbers or signs, also with letters replaced: P@ssw0rd2024!
  const core = lower.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, "");
  return [lower, core, undisguise(core)].some((text) => known(text) || known(repeatedUnit(text) ?? text));
}

/** Shortest part of a word that is matched. */
const MIN_PIECE = 3;
/** Up to eight digits or signs, or one character repeated. */
const FILLER = /^(?:[^\p{L}]{1,8}(?!\P{L})|(.)\1+)/u;
/** Longest run of keys matched at once; longer runs consist of several. */
const MAX_RUN = 8;
/** Passwords of up to this many known words, with anything known between and around them, count as common. */
const MOST_WORDS = 2;

/**
 * Whether a password consists only of at most two known words, also repeated or begun again (`letmeinletme`), and between
 * them digits, signs, one character repeated, and runs of keys (`qwe123asd`).
 */
function isMadeOf(text: string, words: ReadonlySet<string>): boolean {
  // For each position, the sets of words with which it can be reached; one entry for each set.
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

/** Number of characters at the beginning that are a run of keys. */
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

/** Whether the text repeats one to four characters, the last time perhaps in part. */
function isRepetition(text: string): boolean {
  const characters = Array.from(text);
  return [1, 2, 3, 4].some((period) => characters.every((each, at) => each === characters[at % period]));
}

/** The repeated unit of a text: `abc` for `abcabc`; undefined when nothing repeats. */
function repeatedUnit(text: string): string | undefined {
  const period = (text + text).indexOf(text, 1);
  return period > 0 && period < text.length ? text.slice(0, period) : undefined;
}

/** Whether the text is a run of keys or of the alphabet, forwards or backwards. */
function isRun(text: string): boolean {
  return KEYBOARD_RUNS.some((run) => run.includes(text) || run.includes(Array.from(text).toReversed().join("")));
}

/** Whether the letters are a run and the digits between them are one too: `a1s2d3f4g5h6`. */
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
