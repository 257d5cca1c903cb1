import { z } from "zod";

/** Text that ends up in every sample and tutorial, and so protects nothing. */
const SAMPLE_SECRETS =
  /^(change-?me|(my-?)?(secret|password|api-?key)|(your|my)[-_].*|example.*|placeholder|todo|test|x+|\*+|\.+|<.*>|(sk-)?1234.*)$/i;

const MIN_SECRET_LENGTH = 8;

/** Set by our own HTTP code; another value would break the connection or the dialect. */
const OUR_HEADERS = new Set([
  "accept-encoding",
  "host",
  "connection",
  "content-length",
  "content-type",
  "transfer-encoding",
  "te",
  "upgrade",
]);

/** A secret of ours at a provider. */
export const credential = z.string().superRefine((text, context) => {
  const problem = credentialProblem(text);
  if (problem !== undefined) context.addIssue(problem);
});

function credentialProblem(text: string): string | undefined {
  if (/[\r\n]/.test(text)) return "the credential contains a line break; write it without (printf, not echo)";
  if (!/^[\x21-\x7e]*$/.test(text)) return "the credential contains a space or a character that is not ASCII";
  return text === "" ? "the credential is empty" : undefined;
}

/** Why a credential cannot be one that a public service gave out; undefined when it can. */
export function sampleProblem(text: string): string | undefined {
  if (SAMPLE_SECRETS.test(text)) return "this is a sample, not a credential; write the real one, best as ${NAME}";
  return text.length < MIN_SECRET_LENGTH ? `the credential is shorter than ${MIN_SECRET_LENGTH} characters` : undefined;
}

export const providerName = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,31}$/, "a provider's name is 1 to 32 of a-z, 0-9, - and _, beginning with a letter");

export const modelId = z
  .string()
  .regex(/^[A-Za-z0-9._:/@-]{1,256}$/, "a model's ID is 1 to 256 of letters, digits and . _ : / @ -");

export const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/, "this is not the name of an HTTP header")
  .refine((name) => !OUR_HEADERS.has(name.toLowerCase()), "this header is set by Parley itself; remove it");

export const headerValue = z
  .string()
  .max(8192)
  .regex(/^[\x20-\x7e]*$/, "a header's value is printable ASCII on one line");

export const isoDate = z.iso.date("must be a date, such as 2025-11-24");

/** An allowed origin of browsers' requests, exactly as browsers write it, or `*`. */
export const origin = z
  .string()
  .refine((text) => text === "*" || isOrigin(text), 'must be an origin, such as "https://app.example.com", or "*"');

function isOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.parse(text)?.origin === text;
}
