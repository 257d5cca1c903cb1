import { invalidField } from "../core/failure.ts";
import { COMMON_PASSWORDS, COMMON_WORDS, KEYBOARD_RUNS } from "./common-passwords.ts";

const MIN_CHARACTERS = 12;
const MAX_CHARACTERS = 128;

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
  const words = [email, email.slice(0, email.lastIndexOf("@")), "parley"];
  if (isCommon(password, words)) {
    throw invalidField(field, "is one of those that are guessed first; choose another, such as four unrelated words");
  }
}

/** Whether a list of leaked passwords or of what people make of `words` has it. */
function isCommon(password: string, words: readonly string[]): boolean {
  const lower = password.toLowerCase();
  if (COMMON_PASSWORDS.has(lower) || isRepetition(lower) || isRun(lower)) return true;
  const known = (text: string): boolean =>
    text === "" || COMMON_WORDS.has(text) || COMMON_PASSWORDS.has(text) || words.includes(text);
  // A word with a number or signs around it, also with its letters disguised: P@ssw0rd2024!
  const core = lower.replace(/^[^\p{L}]+|[^\p{L}]+$/gu, "");
  return [lower, core, undisguise(core)].some((text) => known(text) || known(repeatedUnit(text) ?? text));
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

function countCharacters(text: string): number {
  return Array.from(text).length;
}

function tooLong(field: string): Error {
  return invalidField(field, `must have at most ${MAX_CHARACTERS} characters`);
}
